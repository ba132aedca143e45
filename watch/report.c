/*-------------------------------------------------------------------------
 *
 * watch/report.c
 *	  What people read: a line for each change, and the page at the end.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "watch/watch.h"

#define BAR_WIDTH		40
#define MOST_ROWS		24
#define IMAGE_BYTES		6000	/* assumed for one, as in walsizer_related_settings */
#define MINUTES			"%Y-%m-%d %H:%M"	/* of times */

/* Print a paragraph, wrapped at spaces.  indent: columns before its further lines. */
static void __attribute__((format(printf, 2, 3)))
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
		rest += end + strspn(rest + end, " ");
		room = WATCH_COLUMNS - indent;
	}
	printf("%s\n", rest);
}

/* What a size is followed by. */
static const char *const limit_texts[] = {
	[WALSIZER_UNLIMITED] = "", [WALSIZER_LIMIT_MAX] = ", limited by --max",
	[WALSIZER_LIMIT_DISK] = ", limited by --disk-limit",
	[WALSIZER_LIMIT_RECOVERY] = ", limited by --max-recovery-time",
};

/* A decision that is news. */
void
watch_say_change(const WatchChange *change)
{
	const WalsizerDecision *decision = &change->decision;
	const WalsizerFigures *figures = &decision->figures;
	const char *at = watch_time_text(change->at, "%Y-%m-%d %H:%M:%S");

	if (decision->action == WALSIZER_EXTERNAL)
		say(4, "%s  max_wal_size was changed from %lld MB to %lld MB", at, (long long) change->old_mb, (long long) decision->target_mb);
	else
	{
		say(4, "%s  walsizer would change max_wal_size from %lld MB to %lld MB%s: %s", at,
			(long long) change->old_mb, (long long) decision->target_mb,
			limit_texts[decision->limited_by], walsizer_reason_text(decision->reason));
		say(4, "    WAL written within checkpoint_timeout: %lld MB, now %.1f MB/s; since the last checkpoint: %lld MB of the %lld MB that force one. Forced checkpoints in that time: %lld.",
			(long long) (figures->demand / WALSIZER_MB), (double) figures->rate / WALSIZER_MB,
			(long long) (figures->used / WALSIZER_MB), (long long) (figures->trigger_point / WALSIZER_MB), (long long) figures->forced);
	}
	fflush(stdout);
}

static void
say_watched(const Watcher *watcher)
{
	say(14, "Watched       %s, from %s to %s, %lld samples; %s of WAL %s",
		watch_duration_text(watcher->now - watcher->began),
		watch_time_text(watcher->zero + watcher->began / 1000, MINUTES),
		watch_time_text(watcher->zero + watcher->now / 1000, MINUTES),
		(long long) watcher->samples, watch_size_text(watcher->wal), watcher->seen.standby ? "replayed (this is a standby)." : "written.");
	if (watcher->unseen_ms > 0 || watcher->restarts > 0)
		say(14, "              Not seen: %s. Restarts, failovers and promotions: %lld.",
			watch_duration_text(watcher->unseen_ms), (long long) watcher->restarts);
}

/* Why a log does not tell whether the size suffices, or not how much is needed. */
static void
say_log_is_short(const Watcher *watcher, const WatchVerdict *verdict)
{
	const WatchLog *log = watcher->log;
	const WalsizerSettings *settings = &watcher->sample.settings;
	int64_t		forced = watcher->intervals[WALSIZER_CAUSE_FORCED].number;
	bool		few = log->checkpoints < 2 || watcher->samples < 2 || log->lasted_ms + WALSIZER_TIMER_SLACK < settings->timeout_ms;

	if (verdict->status == WATCH_TOO_SMALL)
		say(0, "max_wal_size of %lld MB is too small: at least %lld MB are needed. The log is shorter than checkpoint_timeout, so it may be more.",
			(long long) settings->max_wal_size_mb, (long long) verdict->set_mb);
	else if (few && log->before_mb > 0)
		say(0, "Too little since the settings were changed. The load before needs up to %lld MB.", (long long) log->before_mb);
	else if (log->warnings + log->unfinished > 0 || (few && forced > 0))
		say(0, "max_wal_size was too small: WAL volume forced checkpoints (%lld), but the log does not tell how much WAL there was. To learn how much is needed, give the whole line \"checkpoint complete\" of each, logged when it ends%s.",
			(long long) walsizer_max(forced, log->warnings), log->warnings == 0 ? "" : ", or only the warnings, with --max-wal-size");
	else if (few)
		say(0, "Too little: whole lines \"checkpoint complete\" in the log: %lld. To tell whether max_wal_size suffices takes two, at least one checkpoint_timeout apart.%s",
			(long long) log->checkpoints, watcher->intervals[WALSIZER_CAUSE_TIMED].number == 0 ? "" :
			" WAL volume forced none of the checkpoints in the log.");
	else
		say(0, "The log does not tell all settings: about %lld MB suffice if checkpoint_timeout is %s. Compare with SHOW max_wal_size, or give --max-wal-size and --checkpoint-timeout%s.",
			(long long) verdict->needed_mb, watch_duration_text(settings->timeout_ms),
			watcher->intervals[WALSIZER_CAUSES].number == 0 ? "" : ", or also the lines \"checkpoint starting\"");
}

/* What was read, in place of what was watched. */
static void
say_log(const Watcher *watcher)
{
	static const char *const results[] = {"suffices", "is too small", "could not be judged"};
	const WatchLog *log = watcher->log;

	for (int64_t i = walsizer_max(0, log->num_stretches - WATCH_STRETCHES); i < log->num_stretches; i++)
	{
		const WatchStretch *before = &log->stretches[i % WATCH_STRETCHES];

		say(14, "Before        from %s to %s: max_wal_size = %lld MB%s %s, demand about %s, which needs %lld MB",
			watch_time_text(before->from, MINUTES), watch_time_text(before->to, MINUTES),
			(long long) before->max_wal_size_mb, before->assumed ? " (assumed)" : "", results[before->verdict.status],
			watch_size_text(before->verdict.demand), (long long) before->verdict.needed_mb);
	}
	if (log->warnings_before > 0)
		say(14, "Before        forced checkpoints that are not in the log: %lld. max_wal_size was too small", (long long) log->warnings_before);
	say(14, "Log           checkpoints from %s to %s; %s of WAL written.",
		watch_time_text(log->from, MINUTES), watch_time_text(log->to, MINUTES), watch_size_text(watcher->wal));
	if (log->restarts > 0 || log->missing > 0)
		say(14, "              Restarts: %lld%s. Places where checkpoints are missing: %lld.", (long long) log->restarts,
			log->restarts > 0 ? " (the log does not tell whether one changed a setting)" : "", (long long) log->missing);
	if (log->restartpoints > 0)
		say(14, "              Restartpoints, of a standby: %lld. They tell nothing about the size.", (long long) log->restartpoints);
	if (log->old)
		say(14, "Version       9.6 or older, which forces checkpoints after less WAL: make the size two thirds larger");
	if (log->assumed != 0)
		say(14, "Assumed      %s%s%s, which the log does not tell; the size depends on that",
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
	bool		short_log = log->most == WATCH_UNKNOWN;

	if (short_log)
		say(14, "Demand        at least %s of WAL within checkpoint_timeout, which needs a max_wal_size of at least %lld MB",
			watch_size_text(log->least), least_mb);
	else
		say(14, "Demand        about %s of WAL within checkpoint_timeout (%s to %s), which needs a max_wal_size of %lld MB (%lld MB to %lld MB)",
			watch_size_text(log->about), watch_size_text(log->least), watch_size_text(log->most),
			(long long) verdict->needed_mb, least_mb, (long long) walsizer_size_for(log->most, settings));
	say(14, "Size          %s%lld MB: for a demand of %s, with headroom%s", short_log ? "at least " : "",
		(long long) verdict->wanted_mb, watch_size_text(log->sized), limit_texts[verdict->limited_by]);
}

static void
say_need(const Watcher *watcher, const WatchVerdict *verdict)
{
	const WalsizerSettings *settings = &watcher->sample.settings;
	const char *source = watcher->seen.source;

	say(14, "Set           max_wal_size %lld MB%s%s%s, checkpoint_timeout %s, checkpoint_completion_target %g, WAL segments of %lld MB",
		(long long) settings->max_wal_size_mb, source[0] != '\0' ? " (" : "", source,
		source[0] != '\0' ? ")" : "", watch_duration_text(settings->timeout_ms),
		settings->completion_target, (long long) (settings->segment_bytes / WALSIZER_MB));
	say(14, "Trigger       a checkpoint is forced after %lld MB of WAL",
		(long long) (walsizer_trigger_point(settings->max_wal_size_mb, settings) / WALSIZER_MB));
	if (watcher->log != NULL)
		say_range(watcher, verdict);
	else
		say(14, "Demand        at most %lld MB of WAL within checkpoint_timeout%s, which needs a max_wal_size of %lld MB, or %lld MB with headroom%s",
			(long long) (verdict->demand / WALSIZER_MB),
			verdict->demand > watcher->wal ? ", some of it before the watch began" : "",
			(long long) verdict->needed_mb, (long long) verdict->wanted_mb, limit_texts[verdict->limited_by]);
}

static void
say_checkpoints(const Watcher *watcher)
{
	const WatchIntervals *forced = &watcher->intervals[WALSIZER_CAUSE_FORCED];
	const WatchIntervals *old_value = &watcher->intervals[WALSIZER_CAUSE_OLD_VALUE];
	int64_t		lasted = watcher->now - watcher->began;

	say(14, "%s %lld forced by WAL volume, %lld timed, %lld for other or unknown reasons; forced ones ended %.0f %% of the time%s",
		watcher->seen.standby ? "Restartpoints" : "Checkpoints  ",
		(long long) (forced->number + old_value->number),
		(long long) watcher->intervals[WALSIZER_CAUSE_TIMED].number,
		(long long) (watcher->intervals[WALSIZER_CAUSE_OTHER].number + watcher->intervals[WALSIZER_CAUSES].number),
		lasted > 0 ? 100.0 * (double) (forced->ms + old_value->ms) / (double) lasted : 0,
		watcher->seen.completed == WATCH_UNKNOWN ?
		". These are inferred: the server does not show its checkpoints" : "");
}

static void
say_images(const Watcher *watcher)
{
	bool		counted = watcher->image_bytes != WATCH_UNKNOWN;
	double		bytes = (double) (counted ? watcher->image_bytes : watcher->images * IMAGE_BYTES);

	if (watcher->images == WATCH_UNKNOWN)
		say(14, "Page images   not counted by this server");
	else
		say(14, "Page images   %lld up to the last checkpoint, %s%s, %.0f %% of the WAL: each checkpoint makes the first change of each page log the whole page%s",
			(long long) watcher->images, counted ? "" : "about ", watch_size_text((int64_t) bytes),
			watcher->wal > 0 ? fmin(100, 100 * bytes / (double) watcher->wal) : 0,
			counted ? "" : ". This server does not count their bytes; 6000 are assumed for one");
}

static void
say_recovery(const Watcher *watcher, const WatchVerdict *verdict)
{
	int64_t		mb = watcher->sample.settings.max_wal_size_mb;
	double		rate = watcher->config.replay_rate / WALSIZER_MB;
	const char *now = watch_duration_text(walsizer_recovery_time(&watcher->config, &watcher->state, &watcher->sample, mb));

	if (verdict->set_mb == mb)
		say(14, "Recovery      after a crash up to %s, if %.0f MB are replayed per second", now, rate);
	else
		say(14, "Recovery      after a crash up to %s, with %lld MB up to %s, if %.0f MB are replayed per second",
			now, (long long) verdict->set_mb,
			watch_duration_text(walsizer_recovery_time(&watcher->config, &watcher->state, &watcher->sample, verdict->set_mb)), rate);
}

/* What a longer checkpoint_timeout would save: as walsizer_timeout_advice. */
static void
say_timeouts(const Watcher *watcher)
{
	const char *heading = "Timeout       What a longer checkpoint_timeout would save: ";
	int64_t		timeouts[WALSIZER_TIMEOUTS];
	int			number = walsizer_timeouts(&watcher->sample.settings, timeouts);

	for (int i = 0; i < number; i++)
	{
		WalsizerTimeoutAdvice advice =
			walsizer_advise_timeout(&watcher->config, &watcher->state, &watcher->sample,
									&watcher->decision.figures, timeouts[i]);

		if (timeouts[i] <= watcher->sample.settings.timeout_ms)
			continue;
		if (watcher->seen.wal.bytes == WATCH_UNKNOWN && !watcher->seen.standby)
			advice = (WalsizerTimeoutAdvice) {.basis = "cannot tell: the server does not count its WAL"};
		if (!advice.known)
		{
			say(14, "%s%s", heading, advice.basis);
			return;
		}
		say(14, "%s%.0f to %.0f %% of the WAL with %lld min. It needs a max_wal_size of %lld MB%s, and recovery takes up to %s",
			heading, floor(100 * advice.saved_least), ceil(100 * advice.saved_most),
			(long long) timeouts[i] / 60000, (long long) advice.needed_mb,
			limit_texts[advice.limited_by], watch_duration_text(advice.recovery_ms));
		heading = "              ";
	}
}

/* What each hour needed, or each hour of the day, if there are more than fit. */
static void
say_hours(const Watcher *watcher)
{
	const WalsizerSettings *settings = &watcher->sample.settings;
	WalsizerState state = watcher->state;
	int64_t		last = watcher->sample.hour;
	int64_t		first = (watcher->zero + watcher->began / 1000) / 3600;
	int64_t		rows[MOST_ROWS] = {0};	/* MB */
	int64_t		widest = settings->max_wal_size_mb;
	bool		by_day;

	first = walsizer_max(first, last - watcher->config.lookback_hours);
	by_day = last - first >= MOST_ROWS;
	walsizer_remember_window(&state);
	for (int64_t hour = first; hour <= last; hour++)
	{
		const WalsizerPeak *peak = walsizer_peak_of(&state, hour);
		int64_t    *row = &rows[(hour - first) % MOST_ROWS];
		int64_t		mb = walsizer_size_with_headroom(&watcher->config, settings, peak != NULL ? peak->demand : 0);

		*row = walsizer_max(*row, mb);
		widest = walsizer_max(widest, mb);
	}
	printf("\n");
	say(0, "max_wal_size that each hour%s needed, with headroom (| is %lld MB):",
		by_day ? " of the day at most" : "", (long long) settings->max_wal_size_mb);
	for (int64_t i = 0; i < MOST_ROWS && i <= last - first; i++)
	{
		char		bar[BAR_WIDTH + 2];

		memset(bar, ' ', sizeof(bar));
		memset(bar, '#', (size_t) (BAR_WIDTH * rows[i] / widest));
		bar[BAR_WIDTH * settings->max_wal_size_mb / widest] = '|';
		bar[BAR_WIDTH + 1] = '\0';
		printf("  %s  %s %lld MB\n",
			   watch_time_text((first + i) * 3600, by_day ? "%H:00" : "%Y-%m-%d %H:00"), bar, (long long) rows[i]);
	}
}

/* How to set it, wherever settings are managed. */
static void
say_instructions(const Watcher *watcher, const WatchVerdict *verdict)
{
	WalsizerVerdict size = {.numbers = {0, verdict->set_mb}};
	bool		fixed = strcmp(watcher->seen.source, WATCH_COMMAND_LINE) == 0;

	if (verdict->status != WATCH_TOO_SMALL || verdict->set_mb == watcher->sample.settings.max_wal_size_mb)
		return;
	printf("\nTo set it; %s:\n", fixed ? "nothing else has an effect" : "no restart is needed");
	for (const WalsizerInstruction *way = walsizer_instructions; way->place != NULL; way++)
	{
		char		text[WALSIZER_SENTENCE_SIZE];

		if (fixed != (strcmp(way->place, WATCH_COMMAND_LINE) == 0) ||
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
	const WatchLog *log = watcher->log;
	char		finding[WALSIZER_SENTENCE_SIZE];
	char		remedy[WALSIZER_SENTENCE_SIZE];
	bool		enough = verdict.status == WATCH_SUFFICIENT;

	if (watcher->samples < 2 && log == NULL)
		printf("Too few samples: nothing can be said.\n");
	else if (watcher->samples < 2 || (log != NULL && (verdict.status == WATCH_COULD_NOT_TELL ||
													 log->most == WATCH_UNKNOWN)))
		say_log_is_short(watcher, &verdict);
	else
	{
		printf("%s", log == NULL ? "\n" : "");
		walsizer_verdict_text(&verdict.verdict, verdict.verdict.found.text, finding);
		walsizer_verdict_text(&verdict.verdict, verdict.verdict.found.remedy, remedy);
		if (log != NULL && log->assumed & WATCH_ASSUMED_SIZE)
			snprintf(finding, sizeof(finding), "\"max_wal_size\", which the log does not tell, is %s: about %lld MB are needed",
					 enough ? "large enough" : "too small", (long long) (enough ? verdict.needed_mb : verdict.wanted_mb));
		if (log != NULL && enough && log->before_mb > watcher->sample.settings.max_wal_size_mb)
			snprintf(remedy, sizeof(remedy), "The load before the settings were changed needs up to %lld MB: set as much if it comes again.",
					 (long long) log->before_mb);
		say(0, "%s. %s", finding, remedy);
	}
	if (watcher->samples < 2)
		return;
	printf("\n");
	if (log != NULL)
		say_log(watcher);
	else
		say_watched(watcher);
	say_need(watcher, &verdict);
	say_checkpoints(watcher);
	if (log == NULL)
		say_images(watcher);
	say_recovery(watcher, &verdict);
	if (watcher->live)
		say_timeouts(watcher);
	say_hours(watcher);
	say_instructions(watcher, &verdict);
}
