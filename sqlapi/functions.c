/*-------------------------------------------------------------------------
 *
 * sqlapi/functions.c
 *	  The SQL functions that act: they ask the worker and return what it did.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sqlapi/rows.h"

PG_FUNCTION_INFO_V1(walsizer_boost_1_0);
PG_FUNCTION_INFO_V1(walsizer_forget_1_0);
PG_FUNCTION_INFO_V1(walsizer_reset_stats_1_0);

/*
 * What there is to say about an answer, NULL if nothing.  Whether walsizer raises
 * again depends on the worker's settings: this session's may be older.
 */
static const char *
message_of(WalsizerAsk what, const WalsizerAnswer *answer, WalsizerLimit limit)
{
	const WalsizerDecision *decision = &answer->event.decision;

	if (answer->event.result.message[0] != '\0')
		return answer->event.result.message;
	if (what == WALSIZER_ASK_START)
		return "the worker was started; after a restart of the server, it runs only if \"shared_preload_libraries\" contains walsizer";
	if (what == WALSIZER_ASK_LOOK)
		return "the worker is already running";
	if (what == WALSIZER_ASK_STOP)
		return "the worker has ended; \"max_wal_size\" keeps its value";
	if (what == WALSIZER_ASK_REVERT && decision->action == WALSIZER_NONE)
		return "\"max_wal_size\" was not set by walsizer";
	if (what == WALSIZER_ASK_REVERT && answer->acts)
		return "walsizer raises \"max_wal_size\" again when demand exceeds it; turn off \"walsizer.enable\" to keep the value";
	if (what == WALSIZER_ASK_BOOST && limit != WALSIZER_UNLIMITED)
		return psprintf("the limit is %lld MB", (long long) decision->figures.limit_mb);
	if (decision->action == WALSIZER_NONE || decision->action == WALSIZER_EXTERNAL)
		return walsizer_reason_text(decision->reason);
	return NULL;
}

/* Ask the worker, and return a row of the result.  A planned load has a size and an end. */
static Datum
ask_worker(FunctionCallInfo fcinfo, WalsizerAsk what, int64 boost_mb, TimestampTz boost_until)
{
	WalsizerAnswer answer = walsizer_ask(what, boost_mb, boost_until);
	const WalsizerEvent *event = &answer.event;
	const WalsizerDecision *decision = &event->decision;
	const WalsizerFigures *figures = &decision->figures;
	WalsizerLimit limit = decision->limited_by;

	if (answer.refused)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("\"walsizer.enable\" is off"),
				 errhint("Turn on \"walsizer.enable\", or set \"max_wal_size\" yourself.")));

	if (boost_mb > Max(figures->limit_mb, figures->in_effect_mb))
		limit = figures->limit_kind;

	return PUT_ROW(text_of(walsizer_action_name(decision->action)),
				   size(event->old_mb),
				   size(decision->action == WALSIZER_NONE ? event->old_mb : decision->target_mb),
				   text_of(walsizer_limit_name(limit)),
				   text_of(walsizer_outcome_name(event->result.outcome)),
				   text_of(message_of(what, &answer, limit)));
}

/* A function without arguments that asks for this. */
#define ASKING_FUNCTION(name, what) \
	PG_FUNCTION_INFO_V1(name); \
	Datum \
	name(PG_FUNCTION_ARGS) \
	{ \
		return ask_worker(fcinfo, what, 0, 0); \
	}

ASKING_FUNCTION(walsizer_adjust_1_0, WALSIZER_ASK_ADJUST)
ASKING_FUNCTION(walsizer_revert_1_0, WALSIZER_ASK_REVERT)
ASKING_FUNCTION(walsizer_boost_end_1_0, WALSIZER_ASK_BOOST)
ASKING_FUNCTION(walsizer_start_1_0, walsizer_start_worker() ? WALSIZER_ASK_START : WALSIZER_ASK_LOOK)
ASKING_FUNCTION(walsizer_stop_1_0, WALSIZER_ASK_STOP)

/* At least this size (text, like '8GB') for this long.  A new call replaces the one before. */
Datum
walsizer_boost_1_0(PG_FUNCTION_ARGS)
{
	int64		mb;
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz until;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be null", PG_ARGISNULL(0) ? "size" : "duration")));
	/* at least that, in whole segments, as the limits are */
	mb = (int64) TYPEALIGN64(wal_segment_size, DatumGetInt64(DirectFunctionCall1(pg_size_bytes, PG_GETARG_DATUM(0)))) / WALSIZER_MB;
	until = DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval,
													TimestampTzGetDatum(now),
													PG_GETARG_DATUM(1)));
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("no load can be planned on a standby"),
				 errhint("Call walsizer_boost() on the primary. If the standby itself needs more, set its \"max_wal_size\".")));
	if (mb < walsizer_least_valid_mb() || mb > MAX_KILOBYTES)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("size must be between %lld MB and %lld MB",
						(long long) walsizer_least_valid_mb(), (long long) MAX_KILOBYTES),
				 errhint("Write it with its unit, as in '8GB'.")));
	/* one of the days may have 25 hours */
	if (until <= now || until > now + WALSIZER_BOOST_MOST_DAYS * USECS_PER_DAY + USECS_PER_HOUR)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("duration must be positive and at most %d days", WALSIZER_BOOST_MOST_DAYS)));
	return ask_worker(fcinfo, WALSIZER_ASK_BOOST, mb, until);
}

Datum
walsizer_forget_1_0(PG_FUNCTION_ARGS)
{
	(void) walsizer_ask(WALSIZER_ASK_FORGET, 0, 0);
	PG_RETURN_VOID();
}

/* Let the counters of checkpoints begin anew.  The policy's totals stay, so no worker is needed. */
Datum
walsizer_reset_stats_1_0(PG_FUNCTION_ARGS)
{
	walsizer_attach_shared();
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	memcpy(walsizer_shared->checkpoints_at_reset, walsizer_shared->state.checkpoints.total,
		   sizeof(walsizer_shared->checkpoints_at_reset));
	walsizer_shared->stats_reset = GetCurrentTimestamp();
	LWLockRelease(walsizer_shared->lock);
	PG_RETURN_VOID();
}
