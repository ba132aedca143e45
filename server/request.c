/*-------------------------------------------------------------------------
 *
 * server/request.c
 *	  Requests of SQL functions to the worker, and its answers.
 *
 * A session puts its request into a free slot, wakes the worker and sleeps.
 * The worker takes requests one at a time, in the order of asking, and puts
 * each answer into the slot of its request, which the session frees.  A
 * session that stops waiting takes back its request, or leaves the slot to the
 * worker that carries it out.  Requests to a worker that has ended are not
 * carried out.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/timestamp.h"

#include "server/walsizer.h"
#include "server/compat.h"

#define ANSWER_WAIT_MS		30000	/* the reload alone may take 10 s */

/* The worker ends; after an error it may still hold locks, ours among them. */
static void
detach(int code pg_attribute_unused(), Datum arg pg_attribute_unused())
{
	LWLockReleaseAll();
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->worker_proc = NULL;
	walsizer_shared->worker_pid = 0;
	LWLockRelease(walsizer_shared->lock);
	ConditionVariableBroadcast(&walsizer_shared->answered);
}

/* Make this process the worker, until it ends.  Takes the lock briefly. */
void
walsizer_attach_worker(void)
{
	before_shmem_exit(detach, (Datum) 0);
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->worker_proc = MyProc;
	walsizer_shared->worker_pid = MyProcPid;
	if (walsizer_shared->stats_reset == 0)
		walsizer_shared->stats_reset = GetCurrentTimestamp();
	LWLockRelease(walsizer_shared->lock);
}

/* The oldest request not taken yet, or NULL.  The caller holds the lock. */
static WalsizerRequest *
next_request(void)
{
	WalsizerRequest *next = NULL;

	for (int i = 0; i < WALSIZER_REQUEST_SLOTS; i++)
	{
		WalsizerRequest *request = &walsizer_shared->requests[i];

		if (request->state == WALSIZER_SLOT_ASKED && request->worker_pid == MyProcPid &&
			(next == NULL || request->ticket < next->ticket))
			next = request;
	}
	return next;
}

/*
 * For the worker: take the oldest request, or NULL.  It must be answered with
 * walsizer_give_answer().  Both take the lock briefly.
 */
WalsizerRequest *
walsizer_take_request(void)
{
	WalsizerRequest *request;

	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	request = next_request();
	if (request != NULL)
		request->state = WALSIZER_SLOT_TAKEN;
	LWLockRelease(walsizer_shared->lock);
	return request;
}

void
walsizer_give_answer(WalsizerRequest *request, const WalsizerAnswer *answer)
{
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	request->answer = *answer;
	request->state = request->abandoned ? WALSIZER_SLOT_FREE : WALSIZER_SLOT_ANSWERED;
	LWLockRelease(walsizer_shared->lock);
	ConditionVariableBroadcast(&walsizer_shared->answered);
}

/*
 * A free slot, or NULL.  A slot that its session has abandoned and whose
 * worker has ended is free.  The caller holds the lock.
 */
static WalsizerRequest *
free_slot(void)
{
	for (int i = 0; i < WALSIZER_REQUEST_SLOTS; i++)
	{
		WalsizerRequest *request = &walsizer_shared->requests[i];

		if (request->state == WALSIZER_SLOT_FREE ||
			(request->abandoned && request->worker_pid != walsizer_shared->worker_pid))
			return request;
	}
	return NULL;
}

/* Put a request; NULL if no slot is free, an error if there is no worker. */
static WalsizerRequest *
put_request(WalsizerAsk what, int64 boost_mb, int64 boost_ms)
{
	WalsizerRequest *request;
	PGPROC	   *worker;

	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	worker = walsizer_shared->worker_proc;
	request = free_slot();
	if (worker != NULL && request != NULL)
	{
		request->state = WALSIZER_SLOT_ASKED;
		request->ticket = ++walsizer_shared->last_ticket;
		request->worker_pid = walsizer_shared->worker_pid;
		request->abandoned = false;
		request->what = what;
		request->boost_mb = boost_mb;
		request->boost_ms = boost_ms;
		SetLatch(&worker->procLatch);
	}
	LWLockRelease(walsizer_shared->lock);

	if (worker == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the walsizer worker is not running"),
				 errhint("After an error it is started again within 10 seconds. If it never starts, see the server log, and make sure that \"max_worker_processes\" leaves room for it.")));
	return request;
}

/* Copy the answer if there is one; an error if its worker has ended. */
static bool
is_answered(const WalsizerRequest *request, WalsizerAnswer *answer)
{
	bool		answered;
	bool		gone;

	LWLockAcquire(walsizer_shared->lock, LW_SHARED);
	answered = request->state == WALSIZER_SLOT_ANSWERED;
	if (answered)
		*answer = request->answer;
	gone = walsizer_shared->worker_pid != request->worker_pid;
	LWLockRelease(walsizer_shared->lock);

	if (!answered && gone)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the walsizer worker ended before it answered"),
				 errhint("See the server log for the reason, and repeat the command.")));
	return answered;
}

/* The session stops waiting: it has the answer, or an error occurred. */
static void
leave_slot(int code pg_attribute_unused(), Datum slot)
{
	WalsizerRequest *request = (WalsizerRequest *) DatumGetPointer(slot);

	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	if (request->state == WALSIZER_SLOT_TAKEN &&
		request->worker_pid == walsizer_shared->worker_pid)
		request->abandoned = true;
	else
		request->state = WALSIZER_SLOT_FREE;
	LWLockRelease(walsizer_shared->lock);
	ConditionVariableBroadcast(&walsizer_shared->answered); /* others want a slot */
}

/* Sleep until something was answered; an error at the deadline (ms). */
static void
sleep_until(int64 deadline)
{
	int64		left = deadline - walsizer_monotonic_ms();

	if (left <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the walsizer worker has not answered within %d seconds",
						ANSWER_WAIT_MS / 1000),
				 errhint("See the server log, and whether sampled_at in the view walsizer_stats still advances.")));
	(void) ConditionVariableTimedSleep(&walsizer_shared->answered, (long) left,
									   walsizer_wait_event(WALSIZER_WAIT_ANSWER));
}

/* Wait for the answer, and leave the slot whatever happens. */
static WalsizerAnswer
wait_for_answer(WalsizerRequest *request, int64 deadline)
{
	WalsizerAnswer answer;

	PG_ENSURE_ERROR_CLEANUP(leave_slot, PointerGetDatum(request));
	{
		while (!is_answered(request, &answer))
			sleep_until(deadline);
	}
	PG_END_ENSURE_ERROR_CLEANUP(leave_slot, PointerGetDatum(request));
	leave_slot(0, PointerGetDatum(request));
	return answer;
}

/*
 * Ask the worker, and wait for its answer, at most 30 seconds.  boost_mb and
 * boost_ms are for a planned load.  Raises an error if the library was not
 * preloaded, if there is no worker, or if no answer comes in time; then a
 * request that the worker has taken may still be carried out.
 */
WalsizerAnswer
walsizer_ask(WalsizerAsk what, int64 boost_mb, int64 boost_ms)
{
	int64		deadline = walsizer_monotonic_ms() + ANSWER_WAIT_MS;
	WalsizerRequest *request;
	WalsizerAnswer answer;

	walsizer_check_preloaded();
	ConditionVariablePrepareToSleep(&walsizer_shared->answered);
	while ((request = put_request(what, boost_mb, boost_ms)) == NULL)
		sleep_until(deadline);
	answer = wait_for_answer(request, deadline);
	ConditionVariableCancelSleep();
	return answer;
}
