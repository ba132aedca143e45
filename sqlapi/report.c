/*-------------------------------------------------------------------------
 *
 * sqlapi/report.c
 *	  walsizer_report(): the page that a person reads.
 *
 * Lines of at most 80 columns, without colour, made of the same figures that
 * the views show.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "server/walsizer.h"
#include "sqlapi/rows.h"

#define COLUMNS				80
#define BAR_COLUMNS			40
#define HOURS_SHOWN			24
#define CHANGES_SHOWN		5

PG_FUNCTION_INFO_V1(walsizer_report);

static void
put_line(FunctionCallInfo fcinfo, const char *line)
{
	WalsizerRow row = {0};

	walsizer_put_datum(&row, CStringGetTextDatum(line));
	walsizer_store_row(fcinfo, &row);
}

/* A paragraph, broken at spaces so that no line exceeds the width. */
static void say(FunctionCallInfo fcinfo, const char *format,...) pg_attribute_printf(2, 3);

static void
say(FunctionCallInfo fcinfo, const char *format,...)
{
	char		text[2048];
	char	   *rest = text;
	va_list		args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);

	while (strlen(rest) > COLUMNS)
	{
		char	   *cut = rest + COLUMNS;

		while (cut > rest && *cut != ' ')
			cut--;
		if (cut == rest)
			break;
		*cut = '\0';
		put_line(fcinfo, rest);
		rest = cut + 1;
	}
	put_line(fcinfo, rest);
}

/* A size (MB) for people. */
static const char *
size_text(int64 mb)
{
	if (mb < 10 * 1024)
		return psprintf("%lld MB", (long long) mb);
	return psprintf("%.1f GB", (double) mb / 1024);
}

static const char *
bytes_text(int64 bytes)
{
	if (bytes < 10 * WALSIZER_MB)
		return psprintf("%.1f MB", (double) bytes / WALSIZER_MB);
	return size_text(bytes / WALSIZER_MB);
}

/* A time (ms) for people. */
static const char *
time_text(int64 ms)
{
	if (ms < 120 * 1000)
		return psprintf("%lld s", (long long) ms / 1000);
	if (ms < 120 * 60 * 1000)
		return psprintf("%lld min", (long long) ms / 60000);
	return psprintf("%lld h", (long long) ms / 3600000);
}

/*-------------------------------------------------------------------------
 * The parts of the page
 *-------------------------------------------------------------------------
 */

static void
say_state(FunctionCallInfo fcinfo, const WalsizerShared *shared)
{
	const WalsizerState *state = &shared->state;
	const WalsizerFigures *figures = &shared->decision.figures;
	const char *role = shared->sample.standby ? "standby" : "primary";

	say(fcinfo, "walsizer on this %s: %s", role, walsizer_state_name(shared));
	put_line(fcinfo, "");
	if (state->own != 0 && state->own != state->found)
		say(fcinfo, "max_wal_size is %s, set by walsizer; it found %s.",
			size_text(figures->in_force), size_text(state->found));
	else
		say(fcinfo, "max_wal_size is %s and not set by walsizer.",
			size_text(figures->in_force));
	if (shared->boost != 0)
		say(fcinfo, "Planned: at least %s until %.16s; walsizer_boost_end() ends it.",
			size_text(shared->boost), timestamptz_to_str(shared->boost_until));
	if (shared->sample.standby)
		say(fcinfo, "The primary writes %s of WAL between two checkpoints; after a promotion one is forced at %s. The most remembered of one such interval is %s. For that, with headroom, max_wal_size should be %s.",
			bytes_text(figures->demand), bytes_text(figures->capacity),
			bytes_text(Max(figures->learned, figures->demand)), size_text(figures->wanted));
	else
		say(fcinfo, "In the last %s %s of WAL were written; a checkpoint is forced at %s. The most remembered of one such interval is %s. For that, with headroom, max_wal_size should be %s.",
			time_text(figures->window), bytes_text(figures->demand),
			bytes_text(figures->capacity), bytes_text(Max(figures->learned, figures->demand)),
			size_text(figures->wanted));
}

static void
say_checkpoints(FunctionCallInfo fcinfo, const WalsizerShared *shared)
{
	const int64_t *checkpoints = shared->state.checkpoints;
	const WalsizerFigures *figures = &shared->decision.figures;

	if (shared->sample.standby)
	{
		say(fcinfo, "Restartpoints since %s: %lld started by the clock, %lld forced by WAL, which does no harm on a standby, %lld by commands.",
			timestamptz_to_str(shared->started_at),
			(long long) checkpoints[WALSIZER_CAUSE_TIMED],
			(long long) (checkpoints[WALSIZER_CAUSE_FORCED] + checkpoints[WALSIZER_CAUSE_STALE]),
			(long long) checkpoints[WALSIZER_CAUSE_OTHER]);
		return;
	}
	say(fcinfo, "Checkpoints since %s: %lld started by the clock, %lld forced by WAL (%lld of them by statements that still ran with an older value), %lld by commands.",
		timestamptz_to_str(shared->started_at),
		(long long) checkpoints[WALSIZER_CAUSE_TIMED],
		(long long) (checkpoints[WALSIZER_CAUSE_FORCED] + checkpoints[WALSIZER_CAUSE_STALE]),
		(long long) checkpoints[WALSIZER_CAUSE_STALE],
		(long long) checkpoints[WALSIZER_CAUSE_OTHER]);
	if (figures->until_forced >= 0 && figures->until_forced < figures->until_timed)
		say(fcinfo, "At the present rate the next one is forced in %s.",
			time_text(figures->until_forced));
	else
		say(fcinfo, "The next one is due by the clock in %s.",
			time_text(figures->until_timed));
}

static void
say_recovery(FunctionCallInfo fcinfo, const WalsizerShared *shared)
{
	double		measured = walsizer_measured_replay_rate(shared);
	WalsizerConfig config = walsizer_config(measured);

	say(fcinfo, "After a crash, recovery would take up to %s at %.0f MB/s (%s).",
		time_text(walsizer_recovery_time(&config, shared->sample.settings.max_wal_size)),
		config.replay_rate / WALSIZER_MB,
		walsizer_replay_rate_source(shared));
}

/* What the bars have in common: sizes in MB. */
typedef struct Chart
{
	int64		in_force;
	int64		limit;
	int64		widest;			/* of all that is shown */
	bool		shows_limit;	/* it is not far beyond all the others */
} Chart;

/* In which column does this size end? */
static int
column_of(const Chart *chart, int64 mb)
{
	return (int) Min(mb * BAR_COLUMNS / chart->widest, BAR_COLUMNS);
}

/*
 * One bar: '#' for what is needed, '|' where the value in force ends, ']' where
 * the limit does, or next to it if that is the same column.
 */
static void
say_hour(FunctionCallInfo fcinfo, int64 hour, int64 needed, const Chart *chart)
{
	char		bar[BAR_COLUMNS + 3];
	int			mark = column_of(chart, chart->in_force);
	int			limit = column_of(chart, chart->limit);
	const char *when = timestamptz_to_str(time_t_to_timestamptz((pg_time_t) hour * SECS_PER_HOUR));

	memset(bar, ' ', sizeof(bar));
	memset(bar, '#', (size_t) column_of(chart, needed));
	if (chart->shows_limit)
		bar[limit == mark ? mark + 1 : limit] = ']';
	bar[mark] = '|';
	bar[BAR_COLUMNS + 2] = '\0';
	say(fcinfo, "  %.16s  %s %s", when, bar, size_text(needed));
}

/* The last hours: what each would have needed, against the value in force and the limit. */
static void
say_demand(FunctionCallInfo fcinfo, const WalsizerShared *shared)
{
	const WalsizerSettings *settings = &shared->sample.settings;
	WalsizerConfig config = walsizer_config(0);
	Chart		chart = {0};
	int64		needed[HOURS_SHOWN];
	int64		last = shared->sample.hour;

	chart.in_force = settings->max_wal_size;
	chart.limit = shared->decision.figures.limit;
	chart.widest = Max(chart.in_force, 1);
	for (int i = 0; i < HOURS_SHOWN; i++)
	{
		const WalsizerPeak *peak = walsizer_peak_of(&shared->state,
													last - HOURS_SHOWN + 1 + i);

		needed[i] = peak == NULL ? 0 :
			walsizer_roomy_size(&config, settings, peak->demand);
		chart.widest = Max(chart.widest, needed[i]);
	}
	chart.shows_limit = chart.limit <= 2 * chart.widest;
	if (chart.shows_limit)
		chart.widest = Max(chart.widest, chart.limit);

	put_line(fcinfo, "");
	say(fcinfo, "max_wal_size that each of the last hours needed (| is %s, in force; %s %s):",
		size_text(chart.in_force),
		chart.shows_limit ? "] the limit," : "the limit is far off, at",
		size_text(chart.limit));
	for (int i = 0; i < HOURS_SHOWN; i++)
	{
		if (needed[i] > 0)
			say_hour(fcinfo, last - HOURS_SHOWN + 1 + i, needed[i], &chart);
	}
}

static void
say_change(FunctionCallInfo fcinfo, const WalsizerEvent *event)
{
	const char *after = event->followed >= 0 ?
		psprintf("; %lld forced after it", (long long) event->followed) : "";

	say(fcinfo, "  %.19s  %s %s -> %s, %s%s", timestamptz_to_str(event->at),
		walsizer_action_name(event->action), size_text(event->old_size),
		size_text(event->new_size), walsizer_outcome_name(event->outcome), after);
}

static void
say_changes(FunctionCallInfo fcinfo)
{
	WalsizerEvent events[CHANGES_SHOWN];
	int			number = 0;
	int64		first;

	LWLockAcquire(walsizer_shared->lock, LW_SHARED);
	first = Max(walsizer_state_first_event(walsizer_shared),
				walsizer_shared->last_event - CHANGES_SHOWN + 1);
	for (int64 i = first; i <= walsizer_shared->last_event; i++)
		events[number++] = *walsizer_state_event(walsizer_shared, i);
	LWLockRelease(walsizer_shared->lock);

	put_line(fcinfo, "");
	put_line(fcinfo, number > 0 ? "Last changes:" : "No changes so far.");
	for (int i = 0; i < number; i++)
		say_change(fcinfo, &events[i]);
}

static void
say_not_running(FunctionCallInfo fcinfo)
{
	say(fcinfo, "To do: the worker is not running; see the server log.");
}

/* What limits it, and what there is to do. */
static void
say_outlook(FunctionCallInfo fcinfo, const WalsizerShared *shared)
{
	const WalsizerFigures *figures = &shared->decision.figures;

	put_line(fcinfo, "");
	say(fcinfo, "The limit is %s (%s).", size_text(figures->limit),
		walsizer_bound_name(figures->limit_by));
	if (walsizer_remark(shared) != NULL)
		say(fcinfo, "Note: %s.", walsizer_remark(shared));
	if (shared->worker_pid == 0)
		say_not_running(fcinfo);
	else if (shared->trouble.outcome != WALSIZER_NOTED)
		say(fcinfo, "To do: walsizer cannot change the setting: %s. See walsizer_instructions() for how to set it by hand.",
			walsizer_printable(shared->trouble.message));
	else if (walsizer_limited_by(figures) != WALSIZER_UNBOUND)
		say(fcinfo, "To do: demand needs %s, which this bound forbids. See walsizer_advice.",
			size_text(figures->wanted));
	else if (shared->state.own != 0 && figures->wanted < figures->in_force)
		say(fcinfo, "Nothing to do for max_wal_size; walsizer lowers it when the demand of the whole lookback leaves it far too large.");
	else
		say(fcinfo, "Nothing to do for max_wal_size.");
}

/* Other settings that are the real cause. */
static void
say_companions(FunctionCallInfo fcinfo, const WalsizerShared *shared)
{
	WalsizerCompanion companions[WALSIZER_COMPANIONS];
	int			number = walsizer_find_companions(shared, companions);

	if (number > 0)
		put_line(fcinfo, "");
	for (int i = 0; i < number; i++)
		say(fcinfo, "Consider %s = %s instead of %s: %s", companions[i].setting,
			companions[i].proposal, companions[i].value, companions[i].reason);
}

/* The page, line by line. */
Datum
walsizer_report(PG_FUNCTION_ARGS)
{
	WalsizerShared *shared = walsizer_copy_shared();

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (shared->sampled_at == 0)
	{
		put_line(fcinfo, "walsizer has not taken a sample yet.");
		if (shared->worker_pid == 0)
			say_not_running(fcinfo);
		say_companions(fcinfo, shared);
		return (Datum) 0;
	}
	walsizer_settle(&shared->state);
	say_state(fcinfo, shared);
	say_checkpoints(fcinfo, shared);
	if (!shared->sample.standby)
		say_recovery(fcinfo, shared);
	say_demand(fcinfo, shared);
	say_changes(fcinfo);
	say_outlook(fcinfo, shared);
	say_companions(fcinfo, shared);
	return (Datum) 0;
}
