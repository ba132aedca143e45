/*-------------------------------------------------------------------------
 *
 * walsizer_recovery.c
 *	  How fast does this server replay WAL?  Measured at each crash recovery
 *	  with which the server starts.  (When one process has crashed and the
 *	  postmaster goes on, it does not start a worker again that has ended.)
 *
 * A larger max_wal_size means that more WAL may have to be replayed after a
 * crash.  How long that takes depends on the machine and the load, so it is
 * measured when it really happens: by a second, short-lived worker that is
 * started with the postmaster and follows the replay pointer.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "catalog/pg_control.h"
#include "common/controldata_utils.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "tcop/tcopprot.h"

#include "walsizer.h"
#include "walsizer_compat.h"

#define LOOK_MS				20

/* Less than this says more about starting than about replaying. */
#define LEAST_BYTES			(16 * WALSIZER_MB)
#define LEAST_MS			100

/* The replay pointer, first and last seen. */
typedef struct Replay
{
	int64		first_ms;
	XLogRecPtr	first_lsn;
	int64		last_ms;
	XLogRecPtr	last_lsn;
} Replay;

/* For _PG_init(): it runs from the start of the postmaster on, once. */
void
walsizer_register_recovery_worker(void)
{
	BackgroundWorker worker;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker.bgw_start_time = BgWorkerStart_PostmasterStart;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker.bgw_library_name, "walsizer", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "walsizer_recovery_main",
			sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "walsizer recovery watcher", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "walsizer recovery watcher", BGW_MAXLEN);
	RegisterBackgroundWorker(&worker);
}

/*
 * Is this the recovery of a standby or of a backup?  Its pace is that of its
 * source of WAL, which says nothing about a crash.
 */
static bool
is_archive_recovery(void)
{
	bool		crc_ok;
	ControlFileData *control = get_controlfile(DataDir, &crc_ok);
	bool		archive = crc_ok && control->state == DB_IN_ARCHIVE_RECOVERY;

	pfree(control);
	return archive;
}

static void
look(Replay *replay)
{
	XLogRecPtr	lsn = GetXLogReplayRecPtr(NULL);

	if (XLogRecPtrIsInvalid(lsn) || lsn == replay->last_lsn)
		return;
	replay->last_ms = walsizer_monotonic_ms();
	replay->last_lsn = lsn;
	if (XLogRecPtrIsInvalid(replay->first_lsn))
	{
		replay->first_ms = replay->last_ms;
		replay->first_lsn = lsn;
	}
}

/* Leave what was measured for the worker, which writes it to disk. */
static void
publish(const Replay *replay)
{
	int64		bytes = (int64) (replay->last_lsn - replay->first_lsn);
	int64		ms = replay->last_ms - replay->first_ms;

	if (bytes < LEAST_BYTES || ms < LEAST_MS)
		return;
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->replay_bytes = bytes;
	walsizer_shared->replay_ms = ms;
	LWLockRelease(walsizer_shared->lock);
}

/* Entry point of the watcher; it ends with the recovery. */
void
walsizer_recovery_main(Datum main_arg pg_attribute_unused())
{
	Replay		replay = {0};

	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	while (RecoveryInProgress())
	{
		look(&replay);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 LOOK_MS, walsizer_wait_event());
		ResetLatch(MyLatch);
		if (ProcDiePending)
			proc_exit(0);
		CHECK_FOR_INTERRUPTS();
		if (is_archive_recovery())
			proc_exit(0);
	}
	publish(&replay);
	proc_exit(0);
}
