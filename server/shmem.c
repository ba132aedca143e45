/*-------------------------------------------------------------------------
 *
 * server/shmem.c
 *	  Shared memory, and the history in it.
 *
 * A server that preloads the library has room for it among its own.  Otherwise,
 * from PostgreSQL 17 on, the first process that needs it makes a named segment.
 * Its name tells the version: after a package upgrade, new sessions load another
 * one.  Both are made anew after the crash of a process.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#include "server/server.h"
#include "server/compat.h"

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
}

/* Called by _PG_init(). */
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
				 errhint("Add walsizer to \"shared_preload_libraries\" in the server's configuration and restart the server. If it is there already, it names another file than \"$libdir/walsizer\", which the SQL functions use.")));
}

/*
 * When the planned load ends, by the system clock, to the second; 0 if there is
 * none.  It lasts as long as was asked for, even if that clock is set.
 */
TimestampTz
walsizer_boost_until(const WalsizerShared *shared)
{
	TimestampTz until = GetCurrentTimestamp() +
		(shared->boost_end - walsizer_monotonic_ms()) * 1000;

	return shared->boost_mb != 0 ? until - until % USECS_PER_SEC + USECS_PER_SEC : 0;
}

/*
 * Number of the oldest event kept, last_event + 1 if there is none; and an
 * event by its number.  The caller holds the lock.
 */
int64
walsizer_first_event(const WalsizerShared *shared)
{
	return Max(shared->forgotten, shared->last_event - WALSIZER_HISTORY_SLOTS) + 1;
}

WalsizerEvent *
walsizer_event(WalsizerShared *shared, int64 number)
{
	return &shared->events[(number - 1) % WALSIZER_HISTORY_SLOTS];
}

/* Add an event and number it.  Takes the lock. */
void
walsizer_add_event(const WalsizerEvent *event)
{
	WalsizerEvent *slot;

	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->last_event++;
	slot = walsizer_event(walsizer_shared, walsizer_shared->last_event);
	*slot = *event;
	slot->number = walsizer_shared->last_event;
	LWLockRelease(walsizer_shared->lock);
}

/*
 * Fill in forced_after of the events whose timeout has passed, except where the
 * original value came back.  Takes the lock.
 */
void
walsizer_follow_events(const WalsizerSample *sample)
{
	WalsizerShared *shared = walsizer_shared;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	shared->followed = Max(shared->followed, walsizer_first_event(shared) - 1);
	for (; shared->followed < shared->last_event; shared->followed++)
	{
		WalsizerEvent *event = walsizer_event(shared, shared->followed + 1);

		if (event->made_at == 0 || event->outcome > WALSIZER_APPLIED ||
			event->action == WALSIZER_REVERT || event->reason == WALSIZER_BECAUSE_EDITED)
			continue;
		if (sample->now - event->made_at < sample->settings.timeout_ms)
			break;
		event->forced_after = walsizer_forced_total(&shared->state) - event->forced_before;
	}
	LWLockRelease(shared->lock);
}
