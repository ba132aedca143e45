/*-------------------------------------------------------------------------
 *
 * watch/logrange.c
 *	  From checkpoints to demand.
 *
 * The log gives points: how much WAL there was when a checkpoint started, and from 16 on
 * also when it was complete.  So demand is at least the WAL between two points within
 * checkpoint_timeout, about what follows from a constant rate between points, and at most
 * the WAL between the points around a window that begins or ends at one of them.  The size
 * is for the middle of the last two.  The policy is asked only for limits and verdict.
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
#define HOUR_MS			(INT64_C(3600) * 1000)
#define LONGEST_LOOKBACK	(INT64_C(31) * 24 * 3600 * 1000)	/* ms */

typedef struct Point
{
	int64_t		ms;
	int64_t		low;			/* WAL so far, bytes */
	int64_t		high;
	bool		begins;			/* WAL before it is not known, or a restart */
	const LogRecord *record;	/* the checkpoint that started here, or NULL */
} Point;

/* A stretch of the log with the same settings. */
typedef struct Stretch
{
	const WalsizerSettings *settings;
	Point	   *points;
	int			number;
	int64_t		redo;			/* WAL at the last redo pointer */
} Stretch;

static void
add_point(Stretch *stretch, int64_t ms, int64_t low, int64_t high, const LogRecord *record)
{
	Point	   *point = &stretch->points[stretch->number];
	const Point *before = stretch->number > 0 ? point - 1 : NULL;

	*point = (Point) {ms, low, high, before == NULL, record};
	if (before != NULL)
		point->ms = walsizer_max(ms, before->ms);
	stretch->number++;
}

/*
 * Add the points of a checkpoint.  In an interval longer than checkpoint_timeout, the server was
 * busy with the one before, or skipped timed ones, because no WAL was written: then all of it is of
 * the last checkpoint_timeout, or two if it crashed then, and a point before that is added first.
 */
static void
add_checkpoint(Stretch *stretch, const LogRecord *record)
{
	int64_t		timeout = stretch->settings->timeout_ms;
	const Point *last = stretch->number > 0 ? &stretch->points[stretch->number - 1] : NULL;
	int64_t		from = record->ms - (record->flags & LOG_RECOVERY && record->from_ms != 0 ? 2 * timeout : timeout);
	int64_t		low = stretch->redo;
	int64_t		high = low;
	bool		busy = record->waited && !(record->flags & LOG_RECOVERY);
	bool		begins = last == NULL || record->begins || record->ms - record->from_ms > LONGEST_LOOKBACK;

	if (record->from_ms > (busy ? 0 : from - (record->waited ? 2 * timeout : timeout / 2)))
		from = record->from_ms;
	if (last != NULL)
		from = walsizer_max(from, last->ms);
	if (last != NULL && !begins)
	{
		low = walsizer_max(low, last->low);
		high = walsizer_max(high, last->high);
	}

	/* warnings alone: there may have been others, further apart, each after 30 s */
	if (record->kind == LOG_FREQUENT && last != NULL && from - last->ms > SLACK && from - last->ms < timeout)
	{
		low = last->low;
		high = last->high + record->distance * (1 + (from - last->ms - 28000) / 30000);
		begins = false;
	}
	if (begins || last == NULL || from > last->ms)
		add_point(stretch, from, low, high, NULL);
	stretch->points[stretch->number - 1].begins |= begins;

	if (record->kind == LOG_FREQUENT)
	{
		stretch->redo = low + record->distance - stretch->settings->segment_bytes;
		add_point(stretch, record->ms, stretch->redo, high + record->distance, record);
		return;
	}
	stretch->redo += record->distance;
	add_point(stretch, record->ms, walsizer_max(stretch->redo, low), walsizer_max(stretch->redo, high), record);
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

/* Demand of this hour; one whose points are hours apart has that of all of them. */
static void
remember(Watcher *watcher, const Point *point, int64_t demand)
{
	int64_t		hour = point->ms / HOUR_MS;
	int64_t		first = walsizer_max((point - 1)->ms / HOUR_MS, hour - WALSIZER_PEAK_SLOTS);

	do
		walsizer_remember(&watcher->state, &(WalsizerPeak) {.hour = hour, .demand = demand,
						  .timeout_ms = watcher->sample.settings.timeout_ms});
	while (--hour > first);
}

/* Demand of the points from first up to last, between which WAL is known. */
static void
measure(Watcher *watcher, const Point *first, const Point *last, WatchLog *found)
{
	int64_t		timeout = watcher->sample.settings.timeout_ms;
	const Point *i = first;		/* the first within a timeout before j */
	const Point *before = first;	/* the last at least a timeout before j */
	const Point *after = first; /* the first at least a timeout after j */

	for (const Point *j = first; j <= last; j++)
	{
		int64_t		middle = (j->low + j->high) / 2;

		while (j->ms - i->ms > timeout + SLACK)
			i++;
		found->least = walsizer_max(found->least, j->low - i->low);
		while (before < j && (before + 1)->ms <= j->ms - timeout + SLACK)
			before++;
		if (before->ms <= j->ms - timeout + SLACK)
			found->most = walsizer_max(found->most, j->high - before->high);
		if (j > first)
		{
			int64_t		demand = middle - between(before + (before < j), j->ms - timeout);

			found->about = walsizer_max(found->about, demand);
			remember(watcher, j, demand);
		}
		while (after < last && after->ms < j->ms + timeout - SLACK)
			after++;
		if (after->ms >= j->ms + timeout - SLACK)
			found->most = walsizer_max(found->most, after->high - j->high);
		if (after > first)
			found->about = walsizer_max(found->about, between(after, j->ms + timeout) - middle);
	}
}

/* As the log says, else by the distance in WAL and time; WALSIZER_CAUSES: it cannot be told. */
static WalsizerCause
cause_of(const LogRecord *record)
{
	const WalsizerSettings *settings = &record->settings;
	bool		due = record->from_ms != 0 && record->ms - record->from_ms > settings->timeout_ms - SLACK;

	/* a trigger point counts from the start of a segment, a distance from the redo pointer in it */
	if (record->flags & LOG_WAL ||
		(record->flags == 0 && !(record->assumed & WATCH_ASSUMED_SIZE) && record->distance >
		 walsizer_trigger_point(settings->max_wal_size_mb, settings) - (due ? 1 : settings->segment_bytes)))
		return WALSIZER_CAUSE_FORCED;
	if (record->flags & LOG_TIME || (record->flags == 0 && due))
		return WALSIZER_CAUSE_TIMED;
	return record->flags != 0 || (record->from_ms != 0 && !(record->assumed & WATCH_ASSUMED_SIZE)) ?
		WALSIZER_CAUSE_OTHER : WALSIZER_CAUSES;
}

/* Count the checkpoints by cause, and their WAL. */
static void
count(Watcher *watcher, WatchLog *found, const LogRecord *record)
{
	WalsizerCause cause = cause_of(record);
	bool		known = record->from_ms != 0 && record->ms - record->from_ms <= LONGEST_LOOKBACK;
	int64_t		lasted = known ? record->ms - record->from_ms : 0;

	found->lasted_ms += lasted;
	found->unfinished = record->flags & LOG_RECOVERY ? 0 :	/* the server ended in it */
		found->unfinished + (cause == WALSIZER_CAUSE_FORCED && record->kind == LOG_STARTING);
	watcher->wal += record->distance;
	watcher->intervals[cause].number++;
	watcher->intervals[cause].ms += lasted;
}

/*
 * Where the WAL of these records begins in a segment.  If the log has no positions, it
 * follows from the first checkpoint that WAL forced: that begins a segment.
 */
static int64_t
first_redo(const LogRecord *first, const LogRecord *last)
{
	int64_t		segment = first->settings.segment_bytes;
	int64_t		wal = 0;

	for (const LogRecord *record = first; record <= last; record++)
	{
		wal = (wal + record->distance) % segment;
		if (record->redo != 0 || record->flags & LOG_WAL)
			return ((int64_t) (record->redo % (uint64_t) segment) - wal + segment) % segment;
	}
	return 0;
}

/* Measure the records from first up to last, which have the same settings, for those of another. */
static void
measure_stretch(Log *log, Stretch *stretch, int first, int last, const LogRecord *other, Watcher *watcher)
{
	WatchLog   *found = &log->found;
	const LogRecord *begin = &log->records[first];
	Observation seen = WATCH_NOTHING_SEEN;

	found->from = (begin->from_ms != 0 ? begin->from_ms : begin->ms) / 1000;
	found->to = log->records[last].ms / 1000;
	found->most = WATCH_UNKNOWN;
	found->least = found->about = found->lasted_ms = found->unfinished = 0;
	found->assumed = other->assumed;
	watch_begin(watcher, log->options, 1000, found->from);
	watcher->log = found;
	seen.begins = true;
	seen.completed = 0;
	seen.settings = other->settings;
	seen.tick = found->to - found->from;
	(void) watch_observe(watcher, &seen);
	strcpy(watcher->seen.source, other->settings.max_wal_size_mb != begin->settings.max_wal_size_mb ? "changed at the end" :
		   found->assumed & WATCH_ASSUMED_SIZE ? "assumed" : "");
	watcher->restarts = found->restarts;
	watcher->began = WATCH_CLOCK_START;

	*stretch = (Stretch) {&begin->settings, stretch->points, 0, first_redo(begin, &log->records[last])};
	for (int i = first; i <= last; i++)
	{
		if (log->records[i].kind == LOG_COMPLETE || log->records[i].distance > 0)
			add_checkpoint(stretch, &log->records[i]);
		count(watcher, found, &log->records[i]);
	}
	watcher->samples = stretch->number;
	for (int i = 1, run = 0; i <= stretch->number; i++)
	{
		if (i < stretch->number && !stretch->points[i].begins)
			continue;
		measure(watcher, &stretch->points[run], &stretch->points[i - 1], found);
		run = i;
	}
	found->about = walsizer_max(found->about, found->least);
	found->most = found->most == WATCH_UNKNOWN || (found->to - found->from) * 1000 + SLACK < other->settings.timeout_ms ?
		WATCH_UNKNOWN : walsizer_max(found->most, found->about);
	found->sized = found->about + walsizer_max(0, found->most - found->about) / 2;
}

/* What becomes a trace. */
typedef struct Recorder
{
	TraceWriter *trace;
	int64_t		interval_ms;
	int64_t		start_ms;
	Observation seen;			/* the next, but for its time and position */
	bool		failed;
} Recorder;

static void
record_sample(Recorder *recorder, int64_t ticks, int64_t position)
{
	recorder->seen.tick += ticks;
	recorder->seen.position = position;
	recorder->failed = recorder->failed || !watch_trace_write(recorder->trace, &recorder->seen);
	recorder->seen.begins = false;
}

/* Record what lies between the point before and this one, at two rates, one unit apart. */
static void
record_point(Recorder *recorder, const char *path, const Stretch *stretch, const Point *point)
{
	Observation *seen = &recorder->seen;
	int64_t		unit = stretch->settings->segment_bytes / WATCH_UNITS_PER_SEGMENT;
	int64_t		position = (point->low + point->high) / 2 / unit * unit;
	int64_t		units = (position - seen->position) / unit;
	int64_t		ticks;

	if (recorder->trace == NULL)
	{
		recorder->interval_ms =
			walsizer_min(stretch->settings->timeout_ms / WALSIZER_WINDOW_STEPS / 100 * 100, 60000);
		recorder->start_ms = walsizer_max(0, point->ms / 1000 * 1000);
		recorder->trace = watch_trace_create(path, recorder->interval_ms, recorder->start_ms / 1000);
		*seen = WATCH_NOTHING_SEEN;
		seen->tick = -1;
		seen->requested = seen->timed = 0;
	}
	ticks = (point->ms - recorder->start_ms) / recorder->interval_ms - seen->tick;
	seen->begins = point->begins || ticks > LONGEST_LOOKBACK / recorder->interval_ms;
	for (int64_t i = 1; i <= ticks && !seen->begins && units >= 0; i++)
		record_sample(recorder, 1, seen->position + (units / ticks + (i > ticks - units % ticks)) * unit);
	if (seen->begins || point->record != NULL)
	{
		seen->completed = seen->begins ? position : seen->position;
		seen->started_s = seen->timer_s = (point->ms - recorder->start_ms) / 1000;
	}
	if (point->record != NULL)
		*(cause_of(point->record) == WALSIZER_CAUSE_TIMED ? &seen->timed : &seen->requested) += 1;
	seen->settings = *stretch->settings;
	if (seen->begins)
		record_sample(recorder, walsizer_max(ticks, 1), position);
}

/* Judge each stretch, and what its load needs with the settings at the end.  False if the trace could not be written. */
bool
watch_log_judge(Log *log, Watcher *watcher)
{
	Stretch		stretch = {.points = watch_allocate((size_t) log->kept * 3 * sizeof(Point))};
	Recorder	recorder = {0};
	int			first = 0;

	for (int i = 0; i < log->kept; i++)
	{
		if (i + 1 < log->kept && memcmp(&log->records[first].settings, &log->records[i + 1].settings, sizeof(WalsizerSettings)) == 0)
			continue;
		if (i + 1 < log->kept)
		{
			measure_stretch(log, &stretch, first, i, &log->records[first], watcher);
			log->found.stretches[log->found.num_stretches % WATCH_STRETCHES] = (WatchStretch) {
				.from = log->found.from, .to = log->found.to, .assumed = log->found.assumed & WATCH_ASSUMED_SIZE,
				.max_wal_size_mb = watcher->sample.settings.max_wal_size_mb, .verdict = watch_judge(watcher),
			};
			log->found.num_stretches += watcher->samples >= 2;
		}
		measure_stretch(log, &stretch, first, i, &log->records[log->kept], watcher);
		if (i + 1 < log->kept && watcher->samples >= 2)
			log->found.before_mb = walsizer_max(log->found.before_mb, watch_judge(watcher).needed_mb);
		for (int j = 0; j < stretch.number && log->options->record != NULL; j++)
			record_point(&recorder, log->options->record, &stretch, &stretch.points[j]);
		first = i + 1;
	}
	free(stretch.points);
	return recorder.trace == NULL || watch_trace_close(recorder.trace, recorder.seen.tick + 1);
}

/* Read the server's log and judge it.  Ends the program if it has no checkpoint; false as above. */
bool
watch_log(const Options *options, Watcher *watcher)
{
	Log		   *log = watch_log_begin(options);

	setenv("TZ", "UTC", 1);		/* times are shown as the log has them */
	tzset();
	watch_log_read_all(log);
	watch_log_end(log);
	if (log->kept == 0 && log->found.restartpoints > 0)
		watch_die("the log has only restartpoints, those of a standby: use the log of its primary");
	if (log->kept == 0)
		watch_die("the log has no line about checkpoints that can be read: is log_checkpoints on, does log_line_prefix have a time, and are the lines as the server wrote them, in UTF-8 and not compressed, and is --pid, if given, that of the checkpointer?");
	return watch_log_judge(log, watcher);
}
