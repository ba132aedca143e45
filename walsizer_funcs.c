/*-------------------------------------------------------------------------
 *
 * walsizer_funcs.c
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
#include "utils/tuplestore.h"

#include "walsizer.h"
#include "walsizer_compat.h"
#include "walsizer_rows.h"

/* How long a function waits for the worker; a reload may take ten of them. */
#define ANSWER_WAIT_MS		30000

/* Nobody plans a load for longer. */
#define BOOST_MOST_DAYS		31

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
 * Access to shared memory
 *-------------------------------------------------------------------------
 */

/* Put a request; returns its ticket, and the worker that is to answer. */
static uint64
put_request(int what, int *worker_pid)
{
	PGPROC	   *worker;
	uint64		ticket;

	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	worker = walsizer_shared->worker_proc;
	*worker_pid = walsizer_shared->worker_pid;
	if (worker == NULL)
	{
		LWLockRelease(walsizer_shared->lock);
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the walsizer worker is not running"),
				 errhint("After an error it is started again within 10 seconds. If it never starts, see the server log, and make sure that \"max_worker_processes\" leaves room for it.")));
	}
	walsizer_shared->asked |= what;
	ticket = ++walsizer_shared->asked_ticket;
	SetLatch(&worker->procLatch);
	LWLockRelease(walsizer_shared->lock);
	return ticket;
}

/* Has the request been answered?  Raises an error if it never will be. */
static bool
is_answered(uint64 ticket, int worker_pid, WalsizerApplied *applied,
			WalsizerDecision *decision)
{
	bool		answered;
	bool		gone;

	LWLockAcquire(walsizer_shared->lock, LW_SHARED);
	answered = walsizer_shared->answered_ticket >= ticket;
	gone = walsizer_shared->worker_pid != worker_pid;
	*applied = walsizer_shared->answer;
	*decision = walsizer_shared->answer_decision;
	LWLockRelease(walsizer_shared->lock);

	if (!answered && gone)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the walsizer worker ended before it answered"),
				 errhint("See the server log for the reason, and repeat the command.")));
	return answered;
}

/* Ask the worker for something (WALSIZER_ASK_*) and wait for its answer. */
static void
ask_worker(int what, WalsizerApplied *applied, WalsizerDecision *decision)
{
	int64		deadline = walsizer_monotonic_ms() + ANSWER_WAIT_MS;
	int			worker_pid;
	uint64		ticket;

	walsizer_check_preloaded();
	ticket = put_request(what, &worker_pid);

	ConditionVariablePrepareToSleep(&walsizer_shared->answered);
	while (!is_answered(ticket, worker_pid, applied, decision))
	{
		int64		left = deadline - walsizer_monotonic_ms();

		if (left <= 0)
			ereport(ERROR,
					(errcode(ERRCODE_QUERY_CANCELED),
					 errmsg("the walsizer worker has not answered within %d seconds",
							ANSWER_WAIT_MS / 1000),
					 errhint("See the server log and the view walsizer_status.")));
		(void) ConditionVariableTimedSleep(&walsizer_shared->answered, (long) left,
										   walsizer_wait_event());
	}
	ConditionVariableCancelSleep();
}

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
	walsizer_put_bound(row, figures->wanted > figures->limit ? figures->limit_by : WALSIZER_UNBOUND);
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
 * Recovery: at worst about max_wal_size of WAL is replayed (see find_limit() in
 * walsizer_policy.c), and now what was written since the last completed
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
	WalsizerRow			row = {0};
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	walsizer_put_text(&row, walsizer_state_name(shared));
	walsizer_put_role(&row, shared->sample.standby);
	if (shared->sampled_at != 0)
	{
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
	walsizer_put_text(&row, shared->trouble.message);
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
	walsizer_put_text(row, event->message);
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
		WalsizerRow			row = {0};

		put_event(&row, &events[i]);
		walsizer_store_row(fcinfo, &row);
	}
	return (Datum) 0;
}

/* The hourly peaks within the lookback, oldest first, this hour included. */
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
	for (int64 hour = shared->sample.hour - config.lookback + 1;
		 hour <= shared->sample.hour; hour++)
	{
		const WalsizerPeak *peak = &shared->state.peaks[hour % WALSIZER_PEAK_SLOTS];
		int64		demand = walsizer_scale_demand(peak->demand, peak->timeout,
												   settings->timeout);
		WalsizerRow			row = {0};

		if (peak->hour != hour)
			continue;
		walsizer_put_time(&row, time_t_to_timestamptz((pg_time_t) hour * SECS_PER_HOUR));
		walsizer_put_int64(&row, peak->demand);
		walsizer_put_interval(&row, peak->timeout);
		walsizer_put_size(&row, walsizer_size_for((int64) ((double) demand * config.headroom), settings));
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
		WalsizerRow			row = {0};

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

/* A decision and what came of it, in words. */
static Datum
decision_text(const WalsizerDecision *decision, const WalsizerApplied *applied)
{
	char	   *text = psprintf("%s: %s", walsizer_action_name(decision->action),
								walsizer_reason_name(decision->reason));

	if (decision->action == WALSIZER_RAISE || decision->action == WALSIZER_LOWER)
		text = psprintf("%s (%lld MB, %s)", text, (long long) decision->target,
						walsizer_outcome_name(applied->outcome));
	return CStringGetTextDatum(text);
}

/* Have all rules applied now; what came of it, in words. */
Datum
walsizer_evaluate(PG_FUNCTION_ARGS)
{
	WalsizerApplied applied;
	WalsizerDecision decision;

	ask_worker(WALSIZER_ASK_EVALUATE, &applied, &decision);
	PG_RETURN_DATUM(decision_text(&decision, &applied));
}

/* Give back the value that walsizer found; the value in force then, in bytes. */
Datum
walsizer_revert(PG_FUNCTION_ARGS)
{
	WalsizerApplied applied;
	WalsizerDecision decision;

	ask_worker(WALSIZER_ASK_REVERT, &applied, &decision);
	if (applied.outcome == WALSIZER_NOTED)
		ereport(NOTICE,
				(errmsg("max_wal_size does not stem from walsizer, nothing to revert")));
	else if (applied.outcome != WALSIZER_APPLIED)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("could not revert max_wal_size: %s", applied.message)));
	else if (walsizer_enable)
		ereport(NOTICE,
				(errmsg("walsizer will raise max_wal_size again when demand exceeds it"),
				 errhint("Set walsizer.enable to off to keep the value.")));
	PG_RETURN_INT64(applied.in_force * WALSIZER_MB);
}

/* Forget history and learned demand. */
Datum
walsizer_reset(PG_FUNCTION_ARGS)
{
	WalsizerApplied applied;
	WalsizerDecision decision;

	ask_worker(WALSIZER_ASK_RESET, &applied, &decision);
	PG_RETURN_VOID();
}

/* Put the request for a planned load; size in MB, 0 ends it. */
static Datum
ask_boost(int64 mb, TimestampTz until)
{
	WalsizerApplied applied;
	WalsizerDecision decision;

	walsizer_check_preloaded();
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->asked_boost = mb;
	walsizer_shared->asked_boost_until = until;
	LWLockRelease(walsizer_shared->lock);
	ask_worker(WALSIZER_ASK_BOOST, &applied, &decision);

	if (mb > decision.figures.limit)
		ereport(WARNING,
				(errmsg("the size asked for exceeds the limit of %lld MB (%s)",
						(long long) decision.figures.limit,
						walsizer_bound_name(decision.figures.limit_by)),
				 errhint("See the view walsizer_advice.")));
	return decision_text(&decision, &applied);
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

	if (bytes < least || bytes / WALSIZER_MB > MAX_KILOBYTES)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the size must be between %lld MB and %lld MB",
						(long long) (least / WALSIZER_MB), (long long) MAX_KILOBYTES),
				 errhint("Write it with its unit, as in '8GB'.")));
	if (until <= now || until > now + BOOST_MOST_DAYS * USECS_PER_DAY)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the duration must be positive and at most %d days", BOOST_MOST_DAYS)));
	if (!walsizer_enable)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("walsizer.enable is off"),
				 errhint("Turn walsizer.enable on, or set max_wal_size by hand.")));
	PG_RETURN_DATUM(ask_boost(bytes / WALSIZER_MB, until));
}

/* The announced load is over, or will not come. */
Datum
walsizer_boost_end(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(ask_boost(0, 0));
}
