/*-------------------------------------------------------------------------
 *
 * server/shmem.c
 *	  Shared memory: the history, and the requests of SQL functions to the worker.
 *
 * A server that preloads the library has room for it among its own.  Otherwise,
 * from PostgreSQL 17 on, the first process that needs it makes a named segment.
 * Its name tells the version: after a package upgrade, new sessions load another
 * one.  Both are made anew after the crash of a process.
 *
 * Requests have one slot.  A session may use it while it holds a lock of the lock
 * manager, for which the others queue: so they are served in the order of asking, can be
 * cancelled, obey lock_timeout, and are seen in pg_locks.  A session that stops waiting
 * takes back its request, unless the worker has begun: then the worker completes it, and
 * the slot is free after that.  Requests to a worker that has ended are not carried out.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/ipc.h"
#include "storage/lock.h"
#include "storage/shmem.h"

#include "server/server.h"

#define ANSWER_WAIT_MS		30000	/* the reload alone may take 10 s */

/* "walsizer", and a number.  No SQL function takes locks of this type. */
#define LOCK_OF_OURS(number) \
	{0x77616C73, 0x697A6572, number, 0, LOCKTAG_USERLOCK, USER_LOCKMETHOD}

/* Who holds this may use the slot. */
static const LOCKTAG queue = LOCK_OF_OURS(0);

/* Who holds this is the worker, whatever copy or version of the library it runs. */
static const LOCKTAG the_worker = LOCK_OF_OURS(1);

WalsizerShared *walsizer_shared = NULL;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static void
request_shared_memory(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	RequestAddinShmemSpace(MAXALIGN(sizeof(WalsizerShared)));
}

static void
init_shared(void *memory)
{
	WalsizerShared *shared = memory;

	memset(shared, 0, sizeof(WalsizerShared));
	walsizer_init_lock(shared->lock);
	ConditionVariableInit(&shared->answered);
}

static void
start_shared_memory(void)
{
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	walsizer_shared = ShmemInitStruct("walsizer", sizeof(WalsizerShared), &found);
	if (!found)
		init_shared(walsizer_shared);
	LWLockRelease(AddinShmemInitLock);
	walsizer_check_at_start();
}

/* Called by _PG_init(), also for "postgres -C", which runs no such hook. */
void
walsizer_shmem_install_hooks(void)
{
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shared_memory;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = start_shared_memory;
}

/*
 * Attach this process to shared memory, unless it is.  Raises an error if there
 * can be none without preloading, or if another copy of the library was preloaded.
 */
void
walsizer_attach_shared(void)
{
	if (walsizer_shared == NULL && walsizer_last_written != NULL)
		walsizer_shared = walsizer_named_memory("walsizer " WALSIZER_VERSION,
												sizeof(WalsizerShared), init_shared);
	if (walsizer_shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("walsizer must be loaded via \"shared_preload_libraries\""),
				 walsizer_last_written != NULL ?
				 errdetail("Before PostgreSQL 17, only libraries that are loaded at the start of the server have shared memory.") : 0,
				 errhint("Add walsizer to \"shared_preload_libraries\" in the server's configuration and restart the server. If it is there already, and the server was restarted since, it names another file than \"$libdir/walsizer\", which the SQL functions use.")));
}

/* Add an event and number it; a full history loses its oldest.  Takes the lock. */
void
walsizer_add_event(const WalsizerEvent *event)
{
	WalsizerHistory *history = &walsizer_shared->history;
	WalsizerEvent *events = history->events;

	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	if (history->length == WALSIZER_HISTORY_SLOTS)
		memmove(events, events + 1, sizeof(*events) * (size_t) --history->length);
	events[history->length] = *event;
	events[history->length++].number = ++history->last_number;
	LWLockRelease(walsizer_shared->lock);
}

/* Fill in forced_after of each event whose timeout has passed.  Takes the lock. */
void
walsizer_follow_events(const WalsizerSample *sample)
{
	WalsizerHistory *history = &walsizer_shared->history;

	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	for (WalsizerEvent *event = history->events; event < history->events + history->length; event++)
	{
		if (event->made_at != 0 && event->forced_after < 0 &&
			event->result.outcome <= WALSIZER_APPLIED &&
			event->decision.action != WALSIZER_REVERT &&
			event->decision.reason != WALSIZER_BECAUSE_EDITED &&
			sample->now - event->made_at >= sample->settings.timeout_ms)
			event->forced_after = walsizer_forced_total(&walsizer_shared->state) -
				event->forced_before;
	}
	LWLockRelease(walsizer_shared->lock);
}

/* The worker ends, maybe with locks, ours among them.  When that is seen, another one can start. */
static void
detach(int code pg_attribute_unused(), Datum arg pg_attribute_unused())
{
	WalsizerRequest *request = &walsizer_shared->request;

	LWLockReleaseAll();
	(void) LockRelease(&the_worker, ExclusiveLock, true);
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	if (request->state == WALSIZER_SLOT_TAKEN && request->what == WALSIZER_ASK_STOP)
	{
		request->answer = (WalsizerAnswer) {.event.old_mb = max_wal_size_mb};
		request->state = WALSIZER_SLOT_ANSWERED;
	}
	else if (request->state != WALSIZER_SLOT_ANSWERED)
		request->state = WALSIZER_SLOT_FREE;
	walsizer_shared->worker_proc = NULL;
	walsizer_shared->worker_pid = 0;
	LWLockRelease(walsizer_shared->lock);
	ConditionVariableBroadcast(&walsizer_shared->answered);
}

/* Make this process the worker.  False if another one runs.  Takes the lock briefly. */
bool
walsizer_attach_worker(void)
{
	if (LockAcquire(&the_worker, ExclusiveLock, true, true) == LOCKACQUIRE_NOT_AVAIL)
		return false;
	before_shmem_exit(detach, (Datum) 0);
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->worker_proc = MyProc;
	walsizer_shared->worker_pid = MyProcPid;
	if (walsizer_shared->stats_reset == 0)
		walsizer_shared->stats_reset = GetCurrentTimestamp();
	LWLockRelease(walsizer_shared->lock);
	return true;
}

/* Take the request, or NULL; walsizer_give_answer() must follow.  Both take the lock. */
const WalsizerRequest *
walsizer_take_request(void)
{
	WalsizerRequest *request = &walsizer_shared->request;
	bool		asked;

	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	asked = request->state == WALSIZER_SLOT_ASKED;
	if (asked)
		request->state = WALSIZER_SLOT_TAKEN;
	LWLockRelease(walsizer_shared->lock);
	return asked ? request : NULL;
}

void
walsizer_give_answer(const WalsizerAnswer *answer)
{
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->request.answer = *answer;
	walsizer_shared->request.state = WALSIZER_SLOT_ANSWERED;
	LWLockRelease(walsizer_shared->lock);
	ConditionVariableBroadcast(&walsizer_shared->answered);
}

/* Put a request.  False if the worker still carries out one that its session has left. */
static bool
put_request(WalsizerAsk what, int64 boost_mb, TimestampTz boost_until)
{
	WalsizerRequest *request = &walsizer_shared->request;
	PGPROC	   *worker;
	bool		is_free;

	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	worker = walsizer_shared->worker_proc;
	is_free = request->state != WALSIZER_SLOT_TAKEN;
	if (worker != NULL && is_free)
	{
		request->state = WALSIZER_SLOT_ASKED;
		request->what = what;
		request->boost_mb = boost_mb;
		request->boost_until = boost_until;
		SetLatch(&worker->procLatch);
	}
	LWLockRelease(walsizer_shared->lock);

	if (worker == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the walsizer worker is not running"),
				 errhint("walsizer_start() starts it. After an error it is started again within 10 seconds. If it never starts, see the server log, and make sure that \"max_worker_processes\" leaves room for it.")));
	return is_free;
}

/* Copy the answer if there is one; an error if its worker has ended. */
static bool
is_answered(WalsizerAnswer *answer)
{
	const WalsizerRequest *request = &walsizer_shared->request;
	WalsizerSlotState state;

	LWLockAcquire(walsizer_shared->lock, LW_SHARED);
	state = request->state;
	if (state == WALSIZER_SLOT_ANSWERED)
		*answer = request->answer;
	LWLockRelease(walsizer_shared->lock);

	if (state == WALSIZER_SLOT_FREE)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the walsizer worker ended before it answered"),
				 errhint("See the server log for the reason, and repeat the command.")));
	return state == WALSIZER_SLOT_ANSWERED;
}

/* The session ends, or fails (code 0), before the answer, and says if the worker has begun. */
static void
take_back(int code, Datum arg pg_attribute_unused())
{
	WalsizerRequest *request = &walsizer_shared->request;
	bool		begun;

	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	begun = request->state > WALSIZER_SLOT_ASKED;
	if (request->state == WALSIZER_SLOT_ASKED)
		request->state = WALSIZER_SLOT_FREE;
	LWLockRelease(walsizer_shared->lock);

	if (begun && code == 0)
		errdetail("The worker had begun to carry out the request, and completes it. walsizer_status and walsizer_history show the result. walsizer_boost_end() ends a planned load.");
}

/* Sleep until something was answered; an error at the deadline. */
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
									   walsizer_wait_event("WalsizerAnswer"));
}

/*
 * Ask the worker, and wait for its answer, at most 30 seconds, in which others that asked
 * before are served, too.  boost_mb and boost_until are for a planned load.  Raises an error if
 * there is no shared memory, no worker, or no answer in time.
 */
WalsizerAnswer
walsizer_ask(WalsizerAsk what, int64 boost_mb, TimestampTz boost_until)
{
	int64		deadline = walsizer_monotonic_ms() + ANSWER_WAIT_MS;
	WalsizerAnswer answer;

	walsizer_attach_shared();
	(void) LockAcquire(&queue, ExclusiveLock, false, false);
	ConditionVariablePrepareToSleep(&walsizer_shared->answered);
	while (!put_request(what, boost_mb, boost_until))
		sleep_until(deadline);
	PG_ENSURE_ERROR_CLEANUP(take_back, (Datum) 0);
	{
		while (!is_answered(&answer))
			sleep_until(deadline);
	}
	PG_END_ENSURE_ERROR_CLEANUP(take_back, (Datum) 0);
	ConditionVariableCancelSleep();
	(void) LockRelease(&queue, ExclusiveLock, false);
	return answer;
}
