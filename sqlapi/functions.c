/*-------------------------------------------------------------------------
 *
 * sqlapi/functions.c
 *	  The SQL functions: copy out under a shared lock, then format.
 *
 * Nothing is decided here and nothing applied.  What changes anything is asked
 * of the worker, which answers.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xlog.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "server/walsizer.h"
#include "server/compat.h"
#include "sqlapi/rows.h"

PG_FUNCTION_INFO_V1(walsizer_status);
PG_FUNCTION_INFO_V1(walsizer_history);
PG_FUNCTION_INFO_V1(walsizer_demand);
PG_FUNCTION_INFO_V1(walsizer_instructions);
PG_FUNCTION_INFO_V1(walsizer_evaluate);
PG_FUNCTION_INFO_V1(walsizer_revert);
PG_FUNCTION_INFO_V1(walsizer_reset);
PG_FUNCTION_INFO_V1(walsizer_boost);
PG_FUNCTION_INFO_V1(walsizer_boost_end);

/*-------------------------------------------------------------------------
 * walsizer_status()
 *-------------------------------------------------------------------------
 */

/* Sizes: in force, found, own, wanted, the limit and what sets it. */
static void
put_sizes(WalsizerRow *row, const WalsizerShared *shared)
{
	const WalsizerFigures *figures = &shared->decision.figures;

	walsizer_put_size(row, figures->in_force);
	walsizer_put_size(row, shared->state.found);
	walsizer_put_size(row, shared->state.own);
	walsizer_put_size(row, figures->wanted);
	walsizer_put_size(row, figures->limit);
	walsizer_put_bound(row, walsizer_limited_by(figures));
	walsizer_put_size(row, figures->disk_limit);
	walsizer_put_size(row, figures->recovery_limit);
}

/* How long replaying so much WAL takes at this rate (bytes per second). */
static void
put_replay_time(WalsizerRow *row, int64 bytes, double rate)
{
	walsizer_put_interval(row, (int64) ((double) bytes * 1000.0 / rate));
}

/*
 * Recovery: at worst about max_wal_size of WAL is replayed (see
 * walsizer_find_limit()), and now what was written since the last completed
 * checkpoint was begun.
 */
static void
put_recovery(WalsizerRow *row, const WalsizerShared *shared)
{
	double		measured = walsizer_measured_replay_rate(shared);
	WalsizerConfig config = walsizer_config(measured);
	const WalsizerSample *sample = &shared->sample;

	put_replay_time(row, sample->settings.max_wal_size * WALSIZER_MB, config.replay_rate);
	put_replay_time(row, sample->write_lsn > sample->completed_lsn ?
					(int64) (sample->write_lsn - sample->completed_lsn) : 0,
					config.replay_rate);
	walsizer_put_int64(row, (int64) config.replay_rate);
	walsizer_put_text(row, walsizer_replay_rate_source(shared));
}

/* What is measured. */
static void
put_measurements(WalsizerRow *row, const WalsizerShared *shared)
{
	const WalsizerFigures *figures = &shared->decision.figures;
	const WalsizerSample *sample = &shared->sample;

	walsizer_put_int64(row, figures->demand);
	walsizer_put_int64(row, figures->learned);
	walsizer_put_int64(row, figures->rate);
	walsizer_put_int64(row, sample->write_lsn > sample->redo_lsn ?
					   (int64) (sample->write_lsn - sample->redo_lsn) : 0);
	walsizer_put_int64(row, figures->capacity);
	walsizer_put_interval(row, figures->until_forced);
	walsizer_put_interval(row, figures->until_timed);
	for (int cause = 0; cause < WALSIZER_CAUSES; cause++)
		walsizer_put_int64(row, shared->state.checkpoints[cause]);
	walsizer_put_time(row, shared->started_at);
}

/*
 * One row on the state of things.  Before the first sample, what is measured
 * is null.
 */
Datum
walsizer_status(PG_FUNCTION_ARGS)
{
	WalsizerShared *shared = walsizer_copy_shared();
	WalsizerRow row = {0};
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	walsizer_put_text(&row, walsizer_state_name(shared));
	if (shared->sampled_at != 0)
	{
		walsizer_put_role(&row, shared->sample.standby);
		put_sizes(&row, shared);
		put_measurements(&row, shared);
		put_recovery(&row, shared);
		walsizer_put_text(&row, walsizer_action_name(shared->decision.action));
		walsizer_put_text(&row, walsizer_reason_name(shared->decision.reason));
		walsizer_put_time(&row, shared->sampled_at);
		walsizer_put_text(&row, walsizer_remark(shared));
	}
	else
	{
		while (row.next < Min(desc->natts, (int) lengthof(row.values)) - 6)
			walsizer_put_null(&row);
	}
	walsizer_put_text(&row, shared->trouble.outcome == WALSIZER_NOTED ? NULL :
					  walsizer_outcome_name(shared->trouble.outcome));
	walsizer_put_text(&row, walsizer_printable(shared->trouble.message));
	walsizer_put_time(&row, shared->trouble_at);
	walsizer_put_size(&row, shared->boost);
	walsizer_put_time(&row, shared->boost != 0 ? shared->boost_until : 0);
	if (shared->worker_pid != 0)
		walsizer_put_datum(&row, Int32GetDatum(shared->worker_pid));
	else
		walsizer_put_null(&row);

	walsizer_check_columns(&row, desc);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc),
													  row.values, row.nulls)));
}

/*-------------------------------------------------------------------------
 * walsizer_history(), walsizer_demand()
 *-------------------------------------------------------------------------
 */

static void
put_event(WalsizerRow *row, const WalsizerEvent *event)
{
	walsizer_put_int64(row, event->number);
	walsizer_put_time(row, event->at);
	walsizer_put_text(row, walsizer_action_name(event->action));
	walsizer_put_text(row, walsizer_reason_name(event->reason));
	walsizer_put_size(row, event->old_size);
	walsizer_put_size(row, event->wanted);
	walsizer_put_size(row, event->new_size);
	walsizer_put_bound(row, event->bound);
	walsizer_put_text(row, walsizer_outcome_name(event->outcome));
	walsizer_put_text(row, walsizer_printable(event->message));
	walsizer_put_int64(row, event->demand);
	walsizer_put_int64(row, event->rate);
	walsizer_put_int64(row, event->forced);
	walsizer_put_int64(row, event->requested);
	walsizer_put_interval(row, event->timeout);
	walsizer_put_datum(row, Float8GetDatum(event->completion_target));
	walsizer_put_role(row, event->standby);
	if (event->followed >= 0)
		walsizer_put_int64(row, event->followed);
	else
		walsizer_put_null(row);
}

/* The adjustments that are remembered, oldest first. */
Datum
walsizer_history(PG_FUNCTION_ARGS)
{
	WalsizerEvent *events;
	int			number = 0;

	walsizer_check_preloaded();
	InitMaterializedSRF(fcinfo, 0);

	events = palloc(sizeof(WalsizerEvent) * WALSIZER_HISTORY_SLOTS);
	LWLockAcquire(walsizer_shared->lock, LW_SHARED);
	for (int64 i = walsizer_state_first_event(walsizer_shared);
		 i <= walsizer_shared->last_event; i++)
		events[number++] = *walsizer_state_event(walsizer_shared, i);
	LWLockRelease(walsizer_shared->lock);

	for (int i = 0; i < number; i++)
	{
		WalsizerRow row = {0};

		put_event(&row, &events[i]);
		walsizer_store_row(fcinfo, &row);
	}
	return (Datum) 0;
}

/*
 * The hourly peaks that count, oldest first.  Hours to come are among them where
 * the clock was set back (see walsizer_is_remembered() in policy/internal.h).
 */
Datum
walsizer_demand(PG_FUNCTION_ARGS)
{
	WalsizerShared *shared = walsizer_copy_shared();
	const WalsizerSettings *settings = &shared->sample.settings;
	WalsizerConfig config = walsizer_config(walsizer_measured_replay_rate(shared));

	InitMaterializedSRF(fcinfo, 0);
	if (shared->sampled_at == 0)
		return (Datum) 0;

	walsizer_settle(&shared->state);
	for (int64 hour = shared->sample.hour - config.lookback;
		 hour <= shared->sample.hour + config.lookback; hour++)
	{
		const WalsizerPeak *peak = walsizer_peak_of(&shared->state, hour);
		WalsizerRow row = {0};

		if (peak == NULL)
			continue;
		walsizer_put_time(&row, time_t_to_timestamptz((pg_time_t) hour * SECS_PER_HOUR));
		walsizer_put_int64(&row, peak->demand);
		walsizer_put_interval(&row, peak->timeout);
		walsizer_put_size(&row, walsizer_roomy_size(&config, settings, peak->demand));
		walsizer_store_row(fcinfo, &row);
	}
	return (Datum) 0;
}

/*
 * How to set the wanted size where walsizer cannot or may not: one row for each
 * way of managing a server.  The size is within the bounds, and not below the
 * value in force: lowering is nothing to advise.
 */
Datum
walsizer_instructions(PG_FUNCTION_ARGS)
{
	static const struct
	{
		const char *place;
		const char *format;
	}			ways[] = {
		{"postgresql.conf", "max_wal_size = '%lldMB'"},
		{"SQL", "ALTER SYSTEM SET max_wal_size = '%lldMB'; SELECT pg_reload_conf();"},
		{"Patroni", "postgresql:\n  parameters:\n    max_wal_size: %lldMB"},
		{"CloudNativePG", "spec:\n  postgresql:\n    parameters:\n      max_wal_size: \"%lldMB\""},
	};
	WalsizerShared *shared = walsizer_copy_shared();
	const WalsizerFigures *figures = &shared->decision.figures;
	int64		size = Max(figures->in_force, Min(figures->wanted, figures->limit));

	InitMaterializedSRF(fcinfo, 0);
	if (shared->sampled_at == 0)
		return (Datum) 0;

	for (int i = 0; i < (int) lengthof(ways); i++)
	{
		WalsizerRow row = {0};

		walsizer_put_text(&row, ways[i].place);
		walsizer_put_text(&row, psprintf(ways[i].format, (long long) size));
		walsizer_store_row(fcinfo, &row);
	}
	return (Datum) 0;
}

/*-------------------------------------------------------------------------
 * What is asked of the worker
 *-------------------------------------------------------------------------
 */

/* Ask the worker for anything but a planned load: see walsizer_ask(). */
static WalsizerAnswer
ask(WalsizerAsk what)
{
	walsizer_check_preloaded();
	return walsizer_ask(what, 0, 0);
}

/* A decision and what came of it, in words. */
static Datum
answer_text(const WalsizerAnswer *answer)
{
	const WalsizerDecision *decision = &answer->decision;
	char	   *text = psprintf("%s: %s", walsizer_action_name(decision->action),
								walsizer_reason_name(decision->reason));

	if (decision->action == WALSIZER_RAISE || decision->action == WALSIZER_LOWER ||
		decision->action == WALSIZER_REVERT)
		text = psprintf("%s (%lld MB, %s)", text, (long long) decision->target,
						walsizer_outcome_name(answer->applied.outcome));
	else if (decision->bound != WALSIZER_UNBOUND)
		text = psprintf("%s (limited by %s)", text, walsizer_bound_name(decision->bound));
	return CStringGetTextDatum(text);
}

/* Have all rules applied now; what came of it, in words. */
Datum
walsizer_evaluate(PG_FUNCTION_ARGS)
{
	WalsizerAnswer answer = ask(WALSIZER_ASK_EVALUATE);

	PG_RETURN_DATUM(answer_text(&answer));
}

/* Give back the value that walsizer found; the value in force then, in bytes. */
Datum
walsizer_revert(PG_FUNCTION_ARGS)
{
	WalsizerAnswer answer = ask(WALSIZER_ASK_REVERT);
	const WalsizerApplied *reverted = &answer.reverted;

	if (reverted->outcome == WALSIZER_NOTED)
		ereport(NOTICE,
				(errmsg("max_wal_size was not set by walsizer"),
				 errdetail("There is nothing to revert.")));
	else if (reverted->outcome != WALSIZER_APPLIED)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("could not revert max_wal_size: %s",
						walsizer_printable(reverted->message))));
	else if (walsizer_enable)
		ereport(NOTICE,
				(errmsg("walsizer will raise max_wal_size again when demand exceeds it"),
				 errhint("Turn walsizer.enable off to keep the value.")));
	PG_RETURN_INT64(reverted->in_force * WALSIZER_MB);
}

/* Forget history and learned demand. */
Datum
walsizer_reset(PG_FUNCTION_ARGS)
{
	(void) ask(WALSIZER_ASK_RESET);
	PG_RETURN_VOID();
}

/* Put the request for a planned load; size in MB, 0 ends it; time in ms. */
static Datum
ask_boost(int64 mb, int64 ms)
{
	WalsizerAnswer answer = walsizer_ask(WALSIZER_ASK_BOOST, mb, ms);
	const WalsizerFigures *figures = &answer.decision.figures;
	int64		whole = mb - mb % (wal_segment_size / WALSIZER_MB);

	/* neither a bound nor what is in force is more precise than that */
	if (whole > Max(figures->limit, figures->in_force))
		ereport(WARNING,
				(errmsg("the size asked for exceeds the limit of %lld MB (%s)",
						(long long) figures->limit, walsizer_bound_name(figures->limit_by)),
				 errhint("See the view walsizer_advice.")));
	return answer_text(&answer);
}

/*
 * Announce a load: at least this size (as text, like '8GB') is in force for
 * this long.  A new announcement replaces the one before.
 */
Datum
walsizer_boost(PG_FUNCTION_ARGS)
{
	int64		bytes = DatumGetInt64(DirectFunctionCall1(pg_size_bytes, PG_GETARG_DATUM(0)));
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz until = DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval,
																TimestampTzGetDatum(now),
																PG_GETARG_DATUM(1)));
	int64		least = 2 * (int64) wal_segment_size;

	walsizer_check_preloaded();
	if (bytes < least || bytes / WALSIZER_MB > MAX_KILOBYTES)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the size must be between %lld MB and %lld MB",
						(long long) (least / WALSIZER_MB), (long long) MAX_KILOBYTES),
				 errhint("Write it with its unit, as in '8GB'.")));
	/* a month may have a day of 25 hours */
	if (until <= now || until > now + (WALSIZER_BOOST_MOST_DAYS + 1) * USECS_PER_DAY)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the duration must be positive and at most %d days",
						WALSIZER_BOOST_MOST_DAYS)));
	if (!walsizer_enable)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("walsizer.enable is off"),
				 errhint("Turn walsizer.enable on, or set max_wal_size by hand.")));
	PG_RETURN_DATUM(ask_boost(bytes / WALSIZER_MB, (until - now) / 1000));
}

/* The announced load is over, or will not come. */
Datum
walsizer_boost_end(PG_FUNCTION_ARGS)
{
	walsizer_check_preloaded();
	PG_RETURN_DATUM(ask_boost(0, 0));
}
