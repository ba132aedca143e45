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
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "walsizer.h"
#include "walsizer_compat.h"

/* How long a function waits for the worker; a reload may take ten of them. */
#define ANSWER_WAIT_MS		30000

PG_FUNCTION_INFO_V1(walsizer_status);
PG_FUNCTION_INFO_V1(walsizer_history);
PG_FUNCTION_INFO_V1(walsizer_demand);
PG_FUNCTION_INFO_V1(walsizer_instructions);
PG_FUNCTION_INFO_V1(walsizer_evaluate);
PG_FUNCTION_INFO_V1(walsizer_revert);
PG_FUNCTION_INFO_V1(walsizer_reset);

/*-------------------------------------------------------------------------
 * Access to shared memory
 *-------------------------------------------------------------------------
 */

static void
check_preloaded(void)
{
	if (walsizer_shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("walsizer must be loaded via \"shared_preload_libraries\""),
				 errhint("Add walsizer to \"shared_preload_libraries\" in the server's configuration and restart the server.")));
}

/* All of shared memory but the history. */
static WalsizerShared *
copy_shared(void)
{
	WalsizerShared *copy;

	check_preloaded();
	copy = palloc(offsetof(WalsizerShared, events));
	LWLockAcquire(walsizer_shared->lock, LW_SHARED);
	memcpy(copy, walsizer_shared, offsetof(WalsizerShared, events));
	LWLockRelease(walsizer_shared->lock);
	return copy;
}

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

	check_preloaded();
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
 * Values for rows
 *-------------------------------------------------------------------------
 */

/* A row that is filled from left to right. */
typedef struct Row
{
	int			next;
	Datum		values[48];
	bool		nulls[48];
} Row;

static void
put_null(Row *row)
{
	row->values[row->next] = (Datum) 0;
	row->nulls[row->next++] = true;
}

static void
put_datum(Row *row, Datum value)
{
	row->values[row->next] = value;
	row->nulls[row->next++] = false;
}

static void
put_int64(Row *row, int64 value)
{
	put_datum(row, Int64GetDatum(value));
}

/* A size in MB, as bytes; 0 is none. */
static void
put_size(Row *row, int64 mb)
{
	if (mb > 0)
		put_int64(row, mb * WALSIZER_MB);
	else
		put_null(row);
}

/* Text; NULL or empty is none. */
static void
put_text(Row *row, const char *text)
{
	if (text != NULL && text[0] != '\0')
		put_datum(row, CStringGetTextDatum(text));
	else
		put_null(row);
}

/* A time; 0 is never. */
static void
put_time(Row *row, TimestampTz time)
{
	if (time != 0)
		put_datum(row, TimestampTzGetDatum(time));
	else
		put_null(row);
}

/* Milliseconds as an interval; negative is none. */
static void
put_interval(Row *row, int64 ms)
{
	Interval   *interval;

	if (ms < 0)
	{
		put_null(row);
		return;
	}
	interval = palloc0(sizeof(Interval));
	interval->time = Min(ms, INT64_C(1) << 50) * 1000;
	put_datum(row, IntervalPGetDatum(interval));
}

static void
put_role(Row *row, bool standby)
{
	put_text(row, standby ? "standby" : "primary");
}

static void
put_bound(Row *row, WalsizerBound bound)
{
	put_text(row, bound == WALSIZER_UNBOUND ? NULL : walsizer_bound_name(bound));
}

/*-------------------------------------------------------------------------
 * walsizer_status()
 *-------------------------------------------------------------------------
 */

static const char *
state_name(const WalsizerShared *shared)
{
	WalsizerOutcome obstacle;

	if (shared->worker_pid == 0)
		return "not running";
	if (!walsizer_enable)
		return "disabled";
	if (walsizer_dry_run)
		return "dry run";
	if (shared->trouble.outcome != WALSIZER_NOTED || walsizer_apply_obstacle(&obstacle) != NULL)
		return "advising";
	return "watching";
}

/* Sizes: in force, found, own, wanted, the limit and what sets it. */
static void
put_sizes(Row *row, const WalsizerShared *shared)
{
	const WalsizerFigures *figures = &shared->decision.figures;

	put_size(row, figures->in_force);
	put_size(row, shared->state.found);
	put_size(row, shared->state.own);
	put_size(row, figures->wanted);
	put_size(row, figures->limit);
	put_bound(row, figures->wanted > figures->limit ? figures->limit_by : WALSIZER_UNBOUND);
	put_size(row, figures->disk_limit);
	put_size(row, figures->recovery_limit);
}

/* How long replaying so much WAL takes at this rate (bytes per second). */
static void
put_replay_time(Row *row, int64 bytes, double rate)
{
	put_interval(row, (int64) ((double) bytes * 1000.0 / rate));
}

/*
 * Recovery: at worst about max_wal_size of WAL is replayed (see find_limit() in
 * walsizer_policy.c), and now what was written since the last completed
 * checkpoint was begun.
 */
static void
put_recovery(Row *row, const WalsizerShared *shared)
{
	double		measured = walsizer_measured_replay_rate(shared);
	WalsizerConfig config = walsizer_config(measured);
	const WalsizerSample *sample = &shared->sample;

	put_replay_time(row, sample->settings.max_wal_size * WALSIZER_MB, config.replay_rate);
	put_replay_time(row, sample->write_lsn > sample->completed_lsn ?
					(int64) (sample->write_lsn - sample->completed_lsn) : 0,
					config.replay_rate);
	put_int64(row, (int64) config.replay_rate);
	put_text(row, walsizer_replay_rate > 0 ? "configured" : measured > 0 ? "measured" : "assumed");
}

/* What is measured. */
static void
put_measurements(Row *row, const WalsizerShared *shared)
{
	const WalsizerFigures *figures = &shared->decision.figures;
	const WalsizerSample *sample = &shared->sample;

	put_int64(row, figures->demand);
	put_int64(row, figures->learned);
	put_int64(row, figures->rate);
	put_int64(row, sample->write_lsn > sample->redo_lsn ?
			  (int64) (sample->write_lsn - sample->redo_lsn) : 0);
	put_int64(row, figures->capacity);
	put_interval(row, figures->until_forced);
	put_interval(row, figures->until_timed);
	for (int cause = 0; cause < WALSIZER_CAUSES; cause++)
		put_int64(row, shared->state.checkpoints[cause]);
	put_time(row, shared->started_at);
}

/*
 * One row on the state of things.  Before the first sample, what is measured
 * is null.
 */
Datum
walsizer_status(PG_FUNCTION_ARGS)
{
	WalsizerShared *shared = copy_shared();
	Row			row = {0};
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	put_text(&row, state_name(shared));
	put_role(&row, shared->sample.standby);
	if (shared->sampled_at != 0)
	{
		put_sizes(&row, shared);
		put_measurements(&row, shared);
		put_recovery(&row, shared);
		put_text(&row, walsizer_action_name(shared->decision.action));
		put_text(&row, walsizer_reason_name(shared->decision.reason));
		put_time(&row, shared->sampled_at);
	}
	else
	{
		while (row.next < desc->natts - 4)
			put_null(&row);
	}
	put_text(&row, shared->trouble.outcome == WALSIZER_NOTED ? NULL :
			 walsizer_outcome_name(shared->trouble.outcome));
	put_text(&row, shared->trouble.message);
	put_time(&row, shared->trouble_at);
	if (shared->worker_pid != 0)
		put_datum(&row, Int32GetDatum(shared->worker_pid));
	else
		put_null(&row);

	Assert(row.next == desc->natts);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc),
													  row.values, row.nulls)));
}

/*-------------------------------------------------------------------------
 * walsizer_history(), walsizer_demand()
 *-------------------------------------------------------------------------
 */

static void
put_event(Row *row, const WalsizerEvent *event)
{
	put_int64(row, event->number);
	put_time(row, event->at);
	put_text(row, walsizer_action_name(event->action));
	put_text(row, walsizer_reason_name(event->reason));
	put_size(row, event->old_size);
	put_size(row, event->wanted);
	put_size(row, event->new_size);
	put_bound(row, event->bound);
	put_text(row, walsizer_outcome_name(event->outcome));
	put_text(row, event->message);
	put_int64(row, event->demand);
	put_int64(row, event->rate);
	put_int64(row, event->forced);
	put_int64(row, event->requested);
	put_interval(row, event->timeout);
	put_datum(row, Float8GetDatum(event->completion_target));
	put_role(row, event->standby);
	if (event->followed >= 0)
		put_int64(row, event->followed);
	else
		put_null(row);
}

static void
store_row(FunctionCallInfo fcinfo, Row *row)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	Assert(row->next == result->setDesc->natts);
	tuplestore_putvalues(result->setResult, result->setDesc,
						 row->values, row->nulls);
}

/* The adjustments that are remembered, oldest first. */
Datum
walsizer_history(PG_FUNCTION_ARGS)
{
	WalsizerEvent *events;
	int			number = 0;

	check_preloaded();
	InitMaterializedSRF(fcinfo, 0);

	events = palloc(sizeof(WalsizerEvent) * WALSIZER_HISTORY_SLOTS);
	LWLockAcquire(walsizer_shared->lock, LW_SHARED);
	for (int64 i = walsizer_state_first_event(walsizer_shared);
		 i <= walsizer_shared->last_event; i++)
		events[number++] = *walsizer_state_event(walsizer_shared, i);
	LWLockRelease(walsizer_shared->lock);

	for (int i = 0; i < number; i++)
	{
		Row			row = {0};

		put_event(&row, &events[i]);
		store_row(fcinfo, &row);
	}
	return (Datum) 0;
}

/* The hourly peaks within the lookback, oldest first, this hour included. */
Datum
walsizer_demand(PG_FUNCTION_ARGS)
{
	WalsizerShared *shared = copy_shared();
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
		Row			row = {0};

		if (peak->hour != hour)
			continue;
		put_time(&row, time_t_to_timestamptz((pg_time_t) hour * SECS_PER_HOUR));
		put_int64(&row, peak->demand);
		put_interval(&row, peak->timeout);
		put_size(&row, walsizer_size_for((int64) ((double) demand * config.headroom), settings));
		store_row(fcinfo, &row);
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
	WalsizerShared *shared = copy_shared();
	const WalsizerFigures *figures = &shared->decision.figures;
	int64		size = Max(figures->in_force, Min(figures->wanted, figures->limit));

	InitMaterializedSRF(fcinfo, 0);
	if (shared->sampled_at == 0)
		return (Datum) 0;

	for (int i = 0; i < (int) lengthof(ways); i++)
	{
		Row			row = {0};

		put_text(&row, ways[i].place);
		put_text(&row, psprintf(ways[i].format, (long long) size));
		store_row(fcinfo, &row);
	}
	return (Datum) 0;
}

/*-------------------------------------------------------------------------
 * What is asked of the worker
 *-------------------------------------------------------------------------
 */

/* Have all rules applied now; what came of it, in words. */
Datum
walsizer_evaluate(PG_FUNCTION_ARGS)
{
	WalsizerApplied applied;
	WalsizerDecision decision;
	char	   *answer;

	ask_worker(WALSIZER_ASK_EVALUATE, &applied, &decision);
	answer = psprintf("%s: %s", walsizer_action_name(decision.action),
					  walsizer_reason_name(decision.reason));
	if (decision.action == WALSIZER_RAISE || decision.action == WALSIZER_LOWER)
		answer = psprintf("%s (%lld MB, %s)", answer, (long long) decision.target,
						  walsizer_outcome_name(applied.outcome));
	PG_RETURN_TEXT_P(cstring_to_text(answer));
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
