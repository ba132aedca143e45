/*-------------------------------------------------------------------------
 *
 * watch/logrange.c
 *	  From checkpoints to demand, and to observations for the policy.
 *
 * The log gives points: how much WAL there was when a checkpoint started, and from
 * 16 on also when it was complete.  So demand has a range.  It is at least the WAL
 * between two points within checkpoint_timeout; about what follows from a constant
 * rate between points; and at most the WAL between the points around a window that
 * begins or ends at one of them.  The size is for the middle of the last two.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "watch/log.h"

#define SLACK			1500	/* ms, of a timed checkpoint */
#define LONGEST_LOOKBACK	(INT64_C(31) * 24 * 3600 * 1000)	/* ms */
#define MOST_TICKS		2000	/* between two points */
#define FEW_TICKS		10		/* of which only old changes come */

typedef struct Point
{
	int64_t		ms;
	int64_t		low;			/* WAL so far, bytes */
	int64_t		high;
	bool		begins;			/* WAL before it is not known, or there was a
								 * restart */
	const LogRecord *record;	/* the checkpoint that started here, or NULL */
} Point;

/* A stretch of the log with the same settings. */
typedef struct Stretch
{
	const WalsizerSettings *settings;
	Point	   *points;
	int			number;
	int64_t		redo;			/* WAL at the last redo pointer */
	int64_t		offset;			/* what to add, so that segments are right */
} Stretch;

static void
add_point(Stretch *stretch, int64_t ms, int64_t low, int64_t high, const LogRecord *record)
{
	Point	   *point = &stretch->points[stretch->number];
	const Point *before = stretch->number > 0 ? point - 1 : NULL;

	*point = (Point) {ms, low, high, before == NULL, record};
	if (before != NULL && ms < before->ms)
		point->ms = before->ms;
	stretch->number++;
}

/*
 * Add the points of a checkpoint.  If the interval before it is longer than
 * checkpoint_timeout, the server skipped timed checkpoints, because no WAL was written.
 * So all WAL was written within the last checkpoint_timeout, and a point before that is
 * added first.
 */
static void
add_checkpoint(Stretch *stretch, const LogRecord *record)
{
	int64_t		timeout = stretch->settings->timeout_ms;
	const Point *last = stretch->number > 0 ? &stretch->points[stretch->number - 1] : NULL;
	int64_t		from = record->ms - timeout;
	int64_t		low = stretch->redo;
	int64_t		high = low;
	bool		begins = last == NULL || record->begins ||
		record->ms - record->from_ms > LONGEST_LOOKBACK;

	if (record->from_ms > from - timeout / 2)
		from = record->from_ms;
	if (last != NULL && from < last->ms)
		from = last->ms;
	if (last != NULL && !begins)
	{
		low = last->low > low ? last->low : low;
		high = last->high > high ? last->high : high;
	}

	/* warnings alone: there may have been others, further apart */
	if (record->kind == LOG_FREQUENT && last != NULL && from - last->ms > SLACK && from - last->ms < timeout)
	{
		low = last->low;
		high = last->high + record->distance * (1 + (from - last->ms) / 30000);
		begins = false;
	}
	if (begins || last == NULL || from > last->ms)
		add_point(stretch, from, low, high, NULL);
	stretch->points[stretch->number - 1].begins |= begins;

	if (record->kind == LOG_FREQUENT)
	{
		add_point(stretch, record->ms, low + record->distance - stretch->settings->segment_bytes,
				  high + record->distance, record);
		stretch->redo = low + record->distance - stretch->settings->segment_bytes;
		return;
	}
	stretch->redo += record->distance;
	add_point(stretch, record->ms, stretch->redo > low ? stretch->redo : low,
			  stretch->redo > high ? stretch->redo : high, record);
	if (record->lsn != 0 && record->lsn - record->redo < (uint64_t) LOG_MOST_BYTES)
	{
		low = stretch->redo + (int64_t) (record->lsn - record->redo);
		add_point(stretch, record->end_ms, low, low, NULL);
	}
}

/* The WAL at a time between this point and the one before. */
static int64_t
between(const Point *point, int64_t ms)
{
	const Point *before = point - 1;
	int64_t		from = (before->low + before->high) / 2;
	int64_t		to = (point->low + point->high) / 2;

	if (ms >= point->ms)
		return to;
	if (ms <= before->ms)
		return from;
	return from + (int64_t) ((double) (to - from) * ((double) (ms - before->ms) /
													 (double) (point->ms - before->ms)));
}

static void
enlarge(int64_t *most, int64_t value)
{
	if (value > *most)
		*most = value;
}

/* Demand of the points from first up to last, between which WAL is known. */
static void
measure(const Stretch *stretch, const Point *first, const Point *last, WatchLog *found)
{
	int64_t		timeout = stretch->settings->timeout_ms;
	const Point *i = first;		/* the first within a timeout before j */
	const Point *before = first;	/* the last at least a timeout before j */
	const Point *after = first; /* the first at least a timeout after j */

	for (const Point *j = first; j <= last; j++)
	{
		int64_t		middle = (j->low + j->high) / 2;

		while (j->ms - i->ms > timeout + SLACK)
			i++;
		enlarge(&found->least, j->low - i->low);
		while (before < j && (before + 1)->ms <= j->ms - timeout + SLACK)
			before++;
		if (before->ms <= j->ms - timeout + SLACK)
			enlarge(&found->most, j->high - before->low);
		if (j > first)
			enlarge(&found->about, middle - between(before + (before < j), j->ms - timeout));
		while (after < last && after->ms < j->ms + timeout - SLACK)
			after++;
		if (after->ms >= j->ms + timeout - SLACK)
			enlarge(&found->most, after->high - j->low);
		if (after > first)
			enlarge(&found->about, between(after, j->ms + timeout) - middle);
	}
}

/*
 * Positions are counted as if the first were in its own place of a segment: where
 * the log has none, a forced checkpoint begins a segment.
 */
static void
align(Stretch *stretch)
{
	int64_t		segment = stretch->settings->segment_bytes;

	for (int i = 0; i < stretch->number; i++)
	{
		const Point *point = &stretch->points[i];

		if (point->record != NULL && (point->record->redo != 0 || point->record->flags & LOG_WAL))
		{
			stretch->offset = ((int64_t) (point->record->redo % (uint64_t) segment) -
							   point->low % segment + segment) % segment;
			return;
		}
	}
}

/*
 * The cause of a checkpoint: as the log says, else by its distance in WAL and time.
 * WALSIZER_CAUSES: it cannot be told.
 */
static WalsizerCause
cause_of(const LogRecord *record)
{
	const WalsizerSettings *settings = &record->settings;
	int64_t		trigger = walsizer_trigger_point(settings->max_wal_size_mb, settings);

	if (record->flags & LOG_WAL ||
		(record->flags == 0 && record->distance >= trigger && !(record->assumed & WATCH_ASSUMED_SIZE)))
		return WALSIZER_CAUSE_FORCED;
	if (record->flags & LOG_TIME ||
		(record->flags == 0 && record->from_ms != 0 &&
		 record->ms - record->from_ms > settings->timeout_ms - SLACK))
		return WALSIZER_CAUSE_TIMED;
	return record->flags != 0 || record->from_ms != 0 ? WALSIZER_CAUSE_OTHER : WALSIZER_CAUSES;
}

/* What is fed to the policy. */
typedef struct Feed
{
	Watcher    *watcher;
	TraceWriter *trace;			/* or NULL */
	int64_t		start_ms;
	Observation seen;			/* the last */
	int64_t		unseen_ms;
	bool		failed;
} Feed;

/* One observation, of so much WAL. */
static void
observe(Feed *feed, const Stretch *stretch, int64_t position)
{
	int64_t		unit = stretch->settings->segment_bytes / WATCH_UNITS_PER_SEGMENT;

	feed->seen.position = (position + stretch->offset) / unit * unit;
	if (feed->seen.completed > feed->seen.position)
		feed->seen.position = feed->seen.completed;
	if (feed->trace != NULL && !feed->failed)
		feed->failed = !watch_trace_write(feed->trace, &feed->seen);
	(void) watch_observe(feed->watcher, &feed->seen);
	feed->seen.begins = false;
	feed->seen.tick++;
}

static void
begin(Feed *feed, const Stretch *stretch, const Point *point)
{
	int64_t		unit = stretch->settings->segment_bytes / WATCH_UNITS_PER_SEGMENT;
	int64_t		tick = (point->ms - feed->start_ms) / feed->watcher->interval_ms;

	if (tick > feed->seen.tick)
		feed->seen.tick = tick;
	feed->seen.begins = true;
	feed->seen.settings = *stretch->settings;
	feed->seen.timer_s = feed->seen.started_s = (point->ms - feed->start_ms) / 1000;
	feed->seen.completed = (point->low + stretch->offset) / unit * unit;
	observe(feed, stretch, point->low);
}

/* Feed what lies between the point before and this one, at a constant rate. */
static void
feed_up_to(Feed *feed, const Stretch *stretch, const Point *point)
{
	int64_t		interval = feed->watcher->interval_ms;
	int64_t		unit = stretch->settings->segment_bytes / WATCH_UNITS_PER_SEGMENT;
	int64_t		last = (point->ms - feed->start_ms) / interval;
	int64_t		age = stretch->points[stretch->number - 1].ms - point->ms;
	int64_t		stride = 1 + (last - feed->seen.tick) /
		(age > LONGEST_LOOKBACK && feed->trace == NULL ? FEW_TICKS : MOST_TICKS);

	while (feed->seen.tick <= last)
	{
		observe(feed, stretch, between(point, feed->start_ms + feed->seen.tick * interval));
		feed->seen.tick += stride - 1;
	}
	if (point->record == NULL)
		return;
	feed->seen.completed = ((point->low + point->high) / 2 + stretch->offset) / unit * unit;
	feed->seen.started_s = (point->ms - feed->start_ms) / 1000;
	if (cause_of(point->record) == WALSIZER_CAUSE_TIMED)
		feed->seen.timed++;
	else
		feed->seen.requested++;
}

/* Let the policy see the stretch, and measure its demand. */
static void
run(Feed *feed, const Stretch *stretch, WatchLog *found)
{
	const Point *points = stretch->points;
	int			first = 0;

	found->most = WATCH_UNKNOWN;
	found->least = found->about = found->lasted_ms = 0;
	for (int i = 0; i < stretch->number; i++)
	{
		bool		ends = i + 1 == stretch->number || points[i + 1].begins;

		if (points[i].begins && i > 0)
			feed->unseen_ms += points[i].ms - points[i - 1].ms;
		if (points[i].begins)
			begin(feed, stretch, &points[i]);
		else
			feed_up_to(feed, stretch, &points[i]);
		if (!ends)
			continue;
		observe(feed, stretch, (points[i].low + points[i].high) / 2);
		measure(stretch, &points[first], &points[i], found);
		first = i + 1;
	}
}

/* Count the checkpoints by cause, and their WAL, as the log and not as the policy sees them. */
static void
count(Watcher *watcher, WatchLog *found, const LogRecord *record)
{
	WalsizerCause cause = cause_of(record);
	int64_t		lasted = record->from_ms != 0 ? record->ms - record->from_ms : 0;

	if (lasted > LONGEST_LOOKBACK)
		lasted = 0;
	found->lasted_ms += lasted;
	watcher->wal += record->distance;
	if (cause == WALSIZER_CAUSES)
		return;
	watcher->intervals[cause].number++;
	watcher->intervals[cause].ms += lasted;
}

static bool
same_settings(const WalsizerSettings *a, const WalsizerSettings *b)
{
	return a->max_wal_size_mb == b->max_wal_size_mb && a->timeout_ms == b->timeout_ms &&
		a->completion_target == b->completion_target;
}

/* Judge the records from first up to last, which have the same settings. */
static void
judge(Log *log, Feed *feed, Stretch *stretch, int first, int last)
{
	Watcher    *watcher = feed->watcher;
	WatchLog   *found = &log->found;

	found->from = (log->records[first].from_ms != 0 ? log->records[first].from_ms :
				   log->records[first].ms) / 1000;
	found->to = log->records[last].ms / 1000;
	feed->unseen_ms = 0;
	*stretch = (Stretch) {&log->records[first].settings, stretch->points, 0, 0, 0};
	watch_begin(watcher, log->options, watcher->interval_ms, feed->start_ms / 1000);
	watcher->config.predict = false;
	if (watcher->config.lookback_hours == walsizer_default.lookback_hours)
		watcher->config.lookback_hours = walsizer_most.lookback_hours;
	watcher->log = found;
	for (int i = first; i <= last; i++)
	{
		if (log->records[i].kind == LOG_COMPLETE || log->records[i].distance > 0)
			add_checkpoint(stretch, &log->records[i]);
	}
	align(stretch);
	run(feed, stretch, found);
	memset(watcher->intervals, 0, sizeof(watcher->intervals));
	watcher->wal = found->lasted_ms = 0;
	for (int i = first; i <= last; i++)
		count(watcher, found, &log->records[i]);
	found->assumed = log->records[first].assumed;
	if ((found->to - found->from) * 1000 + SLACK < stretch->settings->timeout_ms)
		found->most = WATCH_UNKNOWN;
	enlarge(&found->about, found->least);
	found->sized = found->most > found->about ? found->about + (found->most - found->about) / 2 :
		found->about;
	watcher->restarts = found->restarts;
	watcher->unseen_ms = feed->unseen_ms;
}

/* Keep the verdict on a stretch that is not the last. */
static void
keep(WatchLog *found, const Watcher *watcher)
{
	WatchVerdict verdict = watch_judge(watcher);

	found->stretches[found->num_stretches++ % WATCH_STRETCHES] = (WatchStretch) {
		.from = found->from,
		.to = found->to,
		.max_wal_size_mb = watcher->sample.settings.max_wal_size_mb,
		.demand = verdict.demand,
		.status = verdict.status,
	};
}

/*
 * Judge each stretch; the watcher has the last one in the end, and points to what
 * the log has found.  False if the trace could not be written.
 */
bool
watch_log_judge(Log *log, Watcher *watcher)
{
	Stretch		stretch = {0};
	Feed		feed = {.watcher = watcher};
	const LogRecord *last = &log->records[log->kept - 1];
	const char *record = log->options->record;
	int64_t		interval = last->settings.timeout_ms / WALSIZER_WINDOW_STEPS / 100 * 100;
	int			first = 0;

	feed.seen = WATCH_NOTHING_SEEN;
	feed.seen.requested = feed.seen.timed = 0;
	feed.start_ms = (log->records[0].ms - log->records[0].settings.timeout_ms * 2) / 1000 * 1000;
	if (feed.start_ms < 0)
		feed.start_ms = 0;
	watcher->interval_ms = interval < 60000 ? interval : 60000;
	stretch.points = watch_allocate((size_t) log->kept * 3 * sizeof(Point));
	if (record != NULL)
		feed.trace = watch_trace_create(record, watcher->interval_ms, feed.start_ms / 1000);
	for (int i = 0; i < log->kept; i++)
	{
		const WalsizerSettings *settings = &log->records[first].settings;

		if (i + 1 < log->kept && same_settings(settings, &log->records[i + 1].settings))
			continue;
		judge(log, &feed, &stretch, first, i);
		if (i + 1 < log->kept && watcher->samples > 1)
			keep(&log->found, watcher);
		first = i + 1;
	}
	free(stretch.points);
	return (feed.trace == NULL || watch_trace_close(feed.trace, feed.seen.tick)) && !feed.failed;
}

/*
 * Read the server's log and judge it.  Ends the program if it has no checkpoint.
 * False if that was not done to the end.
 */
bool
watch_log(const Options *options, Watcher *watcher)
{
	static WatchLog found;
	Log		   *log = watch_log_begin(options);
	bool		good;

	setenv("TZ", "UTC", 1);		/* times are shown as the log has them */
	tzset();
	watch_log_read_all(options, watch_log_take, log);
	watch_log_end(log);
	if (log->kept == 0 && log->found.restartpoints > 0)
		watch_die("the log has only restartpoints, those of a standby: use the log of its primary");
	if (log->kept == 0)
		watch_die("the log has no line about checkpoints: is log_checkpoints on, and does log_line_prefix have a time?");
	good = watch_log_judge(log, watcher);
	found = log->found;
	watcher->log = &found;
	watch_log_free(log);
	return good && !watch_interrupted();
}
