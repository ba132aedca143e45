/*-------------------------------------------------------------------------
 *
 * watch/report.c
 *	  What people read: a line for each change, and the page at the end.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <string.h>

#include "watch/watch.h"

#define MOST_ROWS		24
#define MOST_CHANGES	5

static void say(int indent, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Print a paragraph: wrapped at spaces, further lines indented by so many
 * columns.
 */
static void
say(int indent, const char *format, ...)
{
	char		text[1024];
	char	   *rest = text;
	int			room = WATCH_COLUMNS;
	va_list		args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	while ((int) strlen(rest) > room)
	{
		int			end = room;

		while (end > 0 && rest[end] != ' ')
			end--;
		if (end == 0)			/* one long word */
			end = (int) strcspn(rest, " ");
		printf("%.*s\n%*s", end, rest, indent, "");
		rest += end;
		rest += strspn(rest, " ");
		room = WATCH_COLUMNS - indent;
	}
	printf("%s\n", rest);
}

static long long
in_mb(int64_t bytes)
{
	return bytes / WALSIZER_MB;
}

/* "limited by ...", or nothing. */
static const char *
limit_text(WalsizerLimit limit)
{
	static const char *const texts[] = {
		[WALSIZER_UNLIMITED] = "",
		[WALSIZER_LIMIT_MAX] = ", limited by --max",
		[WALSIZER_LIMIT_DISK] = ", limited by --disk-limit",
		[WALSIZER_LIMIT_RECOVERY] = ", limited by --max-recovery-time",
	};

	return (unsigned int) limit < WALSIZER_LIMITS ? texts[limit] : "";
}

/* A decision that is news. */
void
watch_say_change(const WatchChange *change)
{
	const WalsizerFigures *figures = &change->figures;
	char		at[WATCH_TEXT_SIZE];

	watch_time_text(change->at, "%Y-%m-%d %H:%M:%S", at, sizeof(at));
	if (change->action == WALSIZER_EXTERNAL)
		say(4, "%s  max_wal_size was changed from %lld MB to %lld MB", at,
			(long long) change->old_mb, (long long) change->new_mb);
	else if (change->action == WALSIZER_NONE)
		say(4, "%s  max_wal_size should be %lld MB, but is kept at %lld MB%s", at,
			(long long) figures->wanted_mb, (long long) change->old_mb,
			limit_text(change->limited_by));
	else
		say(4, "%s  walsizer would change max_wal_size from %lld MB to %lld MB%s: %s", at,
			(long long) change->old_mb, (long long) change->new_mb,
			limit_text(change->limited_by), walsizer_reason_text(change->reason));
	if (change->action == WALSIZER_RAISE || change->action == WALSIZER_LOWER)
		say(4, "    WAL written within checkpoint_timeout: %lld MB, now %.1f MB/s; since the last checkpoint: %lld MB of the %lld MB that force one. Forced checkpoints in that time: %lld.",
			in_mb(figures->demand), (double) figures->rate / WALSIZER_MB,
			in_mb(figures->used), in_mb(figures->trigger_point), (long long) figures->forced);
	fflush(stdout);
}

static void
say_verdict(const WalsizerVerdict *verdict)
{
	char		finding[WALSIZER_SENTENCE_SIZE];
	char		remedy[WALSIZER_SENTENCE_SIZE];

	walsizer_verdict_text(verdict, verdict->found.text, finding);
	walsizer_verdict_text(verdict, verdict->found.remedy, remedy);
	say(0, "%s. %s", finding, remedy);
}

static void
say_watched(const Watcher *watcher)
{
	char		lasted[WATCH_TEXT_SIZE];
	char		unseen[WATCH_TEXT_SIZE];
	char		from[WATCH_TEXT_SIZE];
	char		to[WATCH_TEXT_SIZE];
	char		size[WATCH_TEXT_SIZE];

	watch_duration_text(watcher->now - watcher->began, lasted, sizeof(lasted));
	watch_duration_text(watcher->unseen_ms, unseen, sizeof(unseen));
	watch_time_text(watcher->zero + watcher->began / 1000, "%Y-%m-%d %H:%M", from, sizeof(from));
	watch_time_text(watcher->zero + watcher->now / 1000, "%Y-%m-%d %H:%M", to, sizeof(to));
	watch_size_text(watcher->wal, size, sizeof(size));
	say(14, "Watched       %s, from %s to %s, %lld samples; %s of WAL %s", lasted, from, to,
		(long long) watcher->samples, size,
		watcher->seen.standby ? "replayed (this is a standby)." : "written.");
	if (watcher->unseen_ms > 0 || watcher->restarts > 0)
		say(14, "              Not seen: %s. Restarts, failovers and promotions: %lld.", unseen,
			(long long) watcher->restarts);
}

/* Why a log does not tell whether the size suffices. */
static void
say_log_is_short(const Watcher *watcher)
{
	const WatchLog *log = watcher->log;
	char		timeout[WATCH_TEXT_SIZE];

	watch_duration_text(watcher->sample.settings.timeout_ms, timeout, sizeof(timeout));
	if (log->checkpoints == 0 && log->warnings > 0)
		say(0, "max_wal_size is too small: the log has %lld warnings that WAL volume forces checkpoints. It does not say how much WAL there was, so give --max-wal-size to learn how much is needed.",
			(long long) log->warnings);
	else if (log->checkpoints < 2 || watcher->samples < 2 ||
			 log->lasted_ms + WALSIZER_TIMER_SLACK < watcher->sample.settings.timeout_ms)
		say(0, "Too little: complete checkpoints in the log: %lld. To tell whether max_wal_size suffices takes two, at least one checkpoint_timeout apart.",
			(long long) log->checkpoints);
	else if (log->assumed & WATCH_ASSUMED_TIMEOUT)
		say(0, "max_wal_size suffices if checkpoint_timeout is %s, which the log does not tell: give --checkpoint-timeout.",
			timeout);
	else
		say(0, "max_wal_size is too small if it is %lld MB, which the log does not tell: give --max-wal-size.",
			(long long) watcher->sample.settings.max_wal_size_mb);
}

/* What was read, in place of what was watched. */
static void
say_log(const Watcher *watcher)
{
	static const char *const results[] = {"suffices", "is too small", "could not be judged"};
	const WatchLog *log = watcher->log;
	int64_t		first = log->num_stretches > WATCH_STRETCHES ? log->num_stretches - WATCH_STRETCHES : 0;
	char		from[WATCH_TEXT_SIZE];
	char		to[WATCH_TEXT_SIZE];
	char		size[WATCH_TEXT_SIZE];

	for (int64_t i = first; i < log->num_stretches; i++)
	{
		const WatchStretch *stretch = &log->stretches[i % WATCH_STRETCHES];

		watch_time_text(stretch->from, "%Y-%m-%d %H:%M", from, sizeof(from));
		watch_time_text(stretch->to, "%Y-%m-%d %H:%M", to, sizeof(to));
		say(14, "Before        from %s to %s: max_wal_size = %lld MB %s, demand about %lld MB", from, to,
			(long long) stretch->max_wal_size_mb, results[stretch->status], in_mb(stretch->demand));
	}
	watch_time_text(log->from, "%Y-%m-%d %H:%M", from, sizeof(from));
	watch_time_text(log->to, "%Y-%m-%d %H:%M", to, sizeof(to));
	watch_size_text(watcher->wal, size, sizeof(size));
	say(14, "Log           checkpoints from %s to %s; %s of WAL written.", from, to, size);
	if (log->restarts > 0 || log->missing > 0)
		say(14, "              Restarts: %lld. Places where checkpoints are missing: %lld.",
			(long long) log->restarts, (long long) log->missing);
	if (log->restartpoints > 0)
		say(14, "              Restartpoints, of a standby: %lld. They tell nothing about the size.",
			(long long) log->restartpoints);
	if (log->assumed != 0)
		say(14, "Assumed      %s%s%s, which the log does not tell",
			log->assumed & WATCH_ASSUMED_SIZE ? " --max-wal-size" : "",
			log->assumed & WATCH_ASSUMED_TIMEOUT ? " --checkpoint-timeout" : "",
			log->assumed & WATCH_ASSUMED_TARGET ? " --completion-target" : "");
}

/* Demand and size of a log, which have a range. */
static void
say_range(const Watcher *watcher, const WatchVerdict *verdict)
{
	const WalsizerSettings *settings = &watcher->sample.settings;
	const WatchLog *log = watcher->log;
	long long	least_mb = walsizer_size_for(log->least, settings);
	long long	most_mb = walsizer_size_for(log->most, settings);

	if (log->most == WATCH_UNKNOWN)
		say(14, "Demand        at least %lld MB of WAL within checkpoint_timeout, which needs a max_wal_size of at least %lld MB. The log is shorter than checkpoint_timeout, so it may be more.",
			in_mb(log->least), least_mb);
	else
		say(14, "Demand        about %lld MB of WAL within checkpoint_timeout (%lld MB to %lld MB), which needs a max_wal_size of %lld MB (%lld MB to %lld MB)",
			in_mb(log->about), in_mb(log->least), in_mb(log->most), (long long) verdict->needed_mb,
			least_mb, most_mb);
	say(14, "Size          %s%lld MB: the middle of about and at most, with headroom%s",
		log->most == WATCH_UNKNOWN ? "at least " : "", (long long) verdict->wanted_mb,
		limit_text(verdict->limited_by));
}

static void
say_need(const Watcher *watcher, const WatchVerdict *verdict)
{
	const WalsizerSettings *settings = &watcher->sample.settings;
	WatchSource source = watcher->seen.source;
	char		timeout[WATCH_TEXT_SIZE];

	watch_duration_text(settings->timeout_ms, timeout, sizeof(timeout));
	say(14, "Set           max_wal_size %lld MB%s%s%s, checkpoint_timeout %s, checkpoint_completion_target %g, WAL segments of %lld MB",
		(long long) settings->max_wal_size_mb, source != WATCH_SOURCE_UNKNOWN ? " (" : "",
		source != WATCH_SOURCE_UNKNOWN ? watch_source_name(source) : "",
		source != WATCH_SOURCE_UNKNOWN ? ")" : "", timeout, settings->completion_target,
		(long long) (settings->segment_bytes / WALSIZER_MB));
	say(14, "Trigger       a checkpoint is forced after %lld MB of WAL",
		in_mb(walsizer_trigger_point(settings->max_wal_size_mb, settings)));
	if (watcher->log != NULL)
		say_range(watcher, verdict);
	else
		say(14, "Demand        at most %lld MB of WAL within checkpoint_timeout%s, which needs a max_wal_size of %lld MB, or %lld MB with headroom%s",
			in_mb(verdict->demand),
			verdict->demand > watcher->wal ? ", some of it before the watch began" : "",
			(long long) verdict->needed_mb, (long long) verdict->wanted_mb,
			limit_text(verdict->limited_by));
}

static void
say_checkpoints(const Watcher *watcher)
{
	const WatchIntervals *intervals = watcher->intervals;
	int64_t		lasted = watcher->now - watcher->began;
	int64_t		forced_ms = intervals[WALSIZER_CAUSE_FORCED].ms +
		intervals[WALSIZER_CAUSE_OLD_VALUE].ms;

	say(14, "%s %lld forced by WAL volume, %lld timed, %lld requested by commands; forced ones ended %.0f %% of the time%s",
		watcher->seen.standby ? "Restartpoints" : "Checkpoints  ",
		(long long) (intervals[WALSIZER_CAUSE_FORCED].number +
					 intervals[WALSIZER_CAUSE_OLD_VALUE].number),
		(long long) intervals[WALSIZER_CAUSE_TIMED].number,
		(long long) intervals[WALSIZER_CAUSE_OTHER].number,
		lasted > 0 ? 100.0 * (double) forced_ms / (double) lasted : 0,
		watcher->seen.completed == WATCH_UNKNOWN ?
		". These are inferred: the server does not show its checkpoints" : "");
}

static void
say_images(const Watcher *watcher)
{
	int64_t		bytes = watcher->image_bytes;
	double		share;
	char		size[WATCH_TEXT_SIZE];

	if (watcher->log != NULL)
		return;
	if (watcher->images == WATCH_UNKNOWN)
	{
		say(14, "Page images   not counted by this server");
		return;
	}
	if (bytes == WATCH_UNKNOWN)
		bytes = watcher->images < WATCH_MOST_SUM / WALSIZER_IMAGE_BYTES ? watcher->images * WALSIZER_IMAGE_BYTES : WATCH_MOST_SUM;
	share = watcher->wal > 0 ? 100.0 * (double) bytes / (double) watcher->wal : 0;
	watch_size_text(bytes, size, sizeof(size));
	say(14, "Page images   %lld up to the last checkpoint, %s%s, %.0f %% of the WAL: each checkpoint makes the first change of each page log the whole page%s",
		(long long) watcher->images, watcher->image_bytes == WATCH_UNKNOWN ? "about " : "", size,
		share < 100 ? share : 100,
		watcher->image_bytes == WATCH_UNKNOWN ? ". This server does not count their bytes; 6000 are assumed for one" : "");
}

static void
say_recovery(const Watcher *watcher, const WatchVerdict *verdict)
{
	const WalsizerConfig *config = &watcher->config;
	int64_t		mb = watcher->sample.settings.max_wal_size_mb;
	char		now[WATCH_TEXT_SIZE];
	char		then[WATCH_TEXT_SIZE];

	watch_duration_text(watch_recovery_time(watcher, mb), now, sizeof(now));
	watch_duration_text(watch_recovery_time(watcher, verdict->set_mb), then, sizeof(then));
	if (verdict->set_mb == mb)
		say(14, "Recovery      after a crash up to %s, if %.0f MB are replayed per second", now,
			config->replay_rate / WALSIZER_MB);
	else
		say(14, "Recovery      after a crash up to %s, with %lld MB up to %s, if %.0f MB are replayed per second",
			now, (long long) verdict->set_mb, then, config->replay_rate / WALSIZER_MB);
}

/* One row of the table: the largest need of an hour, or of that hour each day. */
typedef struct Row
{
	int64_t		hour;			/* since 1970; 0: none */
	int64_t		mb;
} Row;

/*
 * What each hour needed; hours of the day, if there are more than fit.  Returns
 * the number of rows.
 */
static int
make_rows(const Watcher *watcher, const WalsizerState *state, Row *rows, bool *by_day)
{
	int64_t		last = watcher->sample.hour;
	int64_t		first = (watcher->zero + watcher->began / 1000) / 3600;
	int64_t		days;

	if (last - first > watcher->config.lookback_hours)
		first = last - watcher->config.lookback_hours;
	*by_day = last - first >= MOST_ROWS;
	memset(rows, 0, MOST_ROWS * sizeof(Row));
	for (int64_t hour = first; hour <= last; hour++)
	{
		const WalsizerPeak *peak = walsizer_peak_of(state, hour);
		Row		   *row = &rows[(hour - first) % MOST_ROWS];
		int64_t		mb = walsizer_size_with_headroom(&watcher->config,
													 &watcher->sample.settings,
													 peak != NULL ? peak->demand : 0);

		if (row->hour == 0)
			row->hour = hour;
		if (mb > row->mb)
			row->mb = mb;
	}
	days = last - first + 1;
	return days < MOST_ROWS ? (int) days : MOST_ROWS;
}

static void
say_hours(const Watcher *watcher)
{
	WalsizerState state = watcher->state;
	int64_t		in_effect = watcher->sample.settings.max_wal_size_mb;
	int64_t		widest = in_effect;
	Row			rows[MOST_ROWS];
	bool		by_day;
	int			number;

	walsizer_remember_window(&state);
	number = make_rows(watcher, &state, rows, &by_day);
	for (int i = 0; i < number; i++)
		widest = rows[i].mb > widest ? rows[i].mb : widest;
	printf("\n");
	say(0, "max_wal_size that each hour%s needed, with headroom (| is %lld MB, in effect):",
		by_day ? " of the day at most" : "", (long long) in_effect);
	for (int i = 0; i < number; i++)
	{
		char		bar[WALSIZER_BAR_SIZE];
		char		at[WATCH_TEXT_SIZE];

		walsizer_bar(rows[i].mb, in_effect, 0, widest, bar);
		watch_time_text(rows[i].hour * 3600, by_day ? "%H:00" : "%Y-%m-%d %H:00", at, sizeof(at));
		printf("  %s  %s %lld MB\n", at, bar, (long long) rows[i].mb);
	}
}

static void
say_changes(const Watcher *watcher)
{
	int64_t		first = watcher->num_changes - MOST_CHANGES;

	if (watcher->num_changes == 0)
		return;
	printf("\nWhat walsizer would have done%s:\n",
		   watcher->num_changes > MOST_CHANGES ? ", at the end" : "");
	for (int64_t i = first > 0 ? first : 0; i < watcher->num_changes; i++)
	{
		const WatchChange *change = &watcher->changes[i % WATCH_CHANGES];
		char		at[WATCH_TEXT_SIZE];

		watch_time_text(change->at, "%Y-%m-%d %H:%M:%S", at, sizeof(at));
		say(6, "  %s  %s %lld MB -> %lld MB%s: %s", at,
			change->action == WALSIZER_NONE ? "keep" : walsizer_action_name(change->action),
			(long long) change->old_mb, (long long) change->new_mb,
			limit_text(change->limited_by), walsizer_reason_text(change->reason));
	}
}

/* How to set it, wherever settings are managed. */
static void
say_instructions(const Watcher *watcher, const WatchVerdict *verdict)
{
	WalsizerVerdict size = {.numbers = {0, verdict->set_mb}};
	bool		fixed = watcher->seen.source == WATCH_SOURCE_COMMAND_LINE;

	if (verdict->status != WATCH_TOO_SMALL || verdict->set_mb == watcher->sample.settings.max_wal_size_mb)
		return;
	printf("\nTo set it; %s:\n", fixed ? "nothing else has an effect" : "no restart is needed");
	for (const WalsizerInstruction *way = walsizer_instructions; way->place != NULL; way++)
	{
		char		text[WALSIZER_SENTENCE_SIZE];

		if (fixed != (strcmp(way->place, "command line") == 0) ||
			strcmp(way->place, "configuration files") == 0 || strcmp(way->place, "postgresql.auto.conf") == 0)
			continue;
		walsizer_verdict_text(&size, way->text, text);
		say(19, "  %-15s  %s", way->place, text);
	}
}

/* The page at the end. */
void
watch_report(const Watcher *watcher)
{
	WatchVerdict verdict = watch_judge(watcher);

	if (watcher->samples < 2 && watcher->log != NULL)
	{
		say_log_is_short(watcher);
		return;
	}
	if (watcher->samples < 2)
	{
		printf("Too few samples: nothing can be said.\n");
		return;
	}
	if (watcher->log == NULL)
		printf("\n");
	if (watcher->log != NULL && verdict.status == WATCH_COULD_NOT_TELL)
		say_log_is_short(watcher);
	else
		say_verdict(&verdict.verdict);
	printf("\n");
	if (watcher->log != NULL)
		say_log(watcher);
	else
		say_watched(watcher);
	say_need(watcher, &verdict);
	say_checkpoints(watcher);
	say_images(watcher);
	say_recovery(watcher, &verdict);
	say_hours(watcher);
	say_changes(watcher);
	say_instructions(watcher, &verdict);
}
