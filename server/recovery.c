/*-------------------------------------------------------------------------
 *
 * server/recovery.c
 *	  Measure how fast this server recovers, at each crash recovery.
 *
 * A larger max_wal_size means more WAL to replay after a crash.  How long that
 * takes depends on machine and load.  The startup process measures it, as it
 * logs the beginning and the end of its replay.  That needs no worker, and
 * covers the crash of a single process.  A server that does not log at level
 * LOG is not measured.  What follows is the checkpoint at the end of recovery;
 * when that is complete, the postmaster starts the worker.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/resource.h>

#include "access/xlog_internal.h"
#include "access/xlogrecovery.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "utils/elog.h"

#include "server/server.h"

/* How the two messages of PerformWalRecovery (xlogrecovery.c) begin */
#define REPLAY_BEGINS		"redo starts at "
#define REPLAY_ENDS			"redo done at "

/* A shorter recovery is mostly startup. */
#define LEAST_BYTES			(16 * WALSIZER_MB)
#define LEAST_MS			100

/* The postmaster starts the worker so long (ms) after it could. */
#define WORKER_START_MS		50

static emit_log_hook_type prev_emit_log_hook = NULL;

/* Where, when and with which counts replay began; invalid: it did not. */
static XLogRecPtr begin_lsn = InvalidXLogRecPtr;
static int64 begin_ms;
static BufferUsage begin_usage;
static int64 begin_read;

/* Bytes that this process has read from storage; Linux counts 512 as a block. */
static int64
bytes_read(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64) usage.ru_inblock * 512 : 0;
}

/*
 * Replay has ended.  Leave the measurement to the worker, which writes it to
 * disk.  A page that a record made anew, and one that an image replaced, may
 * count as changed only; all others were in shared_buffers (hit) or were read.
 */
static void
publish(void)
{
	WalsizerRecovery recovery = {0};
	BufferUsage used = pgBufferUsage;
	int64		now = walsizer_monotonic_ms();

	used.shared_blks_hit -= begin_usage.shared_blks_hit;
	used.shared_blks_read -= begin_usage.shared_blks_read;
	used.shared_blks_dirtied -= begin_usage.shared_blks_dirtied;
	recovery.bytes = (int64) (GetXLogReplayRecPtr(NULL) - begin_lsn);
	recovery.replay_ms = now - begin_ms;
	recovery.bytes_read = bytes_read() - begin_read;
	recovery.pages_used = used.shared_blks_hit + used.shared_blks_read + used.shared_blks_dirtied;
	recovery.pages_written = Min(used.shared_blks_dirtied, NBuffers);
	if (recovery.bytes < LEAST_BYTES || recovery.replay_ms < LEAST_MS)
		return;
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->recoveries[0] = recovery;
	walsizer_shared->replayed_at = now;
	LWLockRelease(walsizer_shared->lock);
}

/*
 * The worker starts.  Was a recovery measured that ended just now?  Complete
 * the measurement.  Takes the lock briefly.
 */
bool
walsizer_recovery_ended(void)
{
	int64		writing = walsizer_monotonic_ms() - walsizer_shared->replayed_at - WORKER_START_MS;

	if (walsizer_shared->replayed_at == 0)
		return false;
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->recoveries[0].writing_ms = Max(writing, 0);
	walsizer_shared->replayed_at = 0;
	LWLockRelease(walsizer_shared->lock);
	return true;
}

static bool
begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/*
 * emit_log_hook, for each message to the log in any process, also in critical
 * sections.  Allocates nothing and raises no error.  Only the two messages, as
 * they are before translation, lead to a lock, and neither is logged in a
 * critical section.
 *
 * A standby, or a backup being restored, replays at the pace of its source of
 * WAL, which says nothing about a crash.
 */
static void
see_message(ErrorData *message)
{
	const char *text = message->message_id;

	if (MyBackendType == B_STARTUP && !ArchiveRecoveryRequested && text != NULL)
	{
		if (begins(text, REPLAY_BEGINS))
		{
			begin_lsn = GetXLogReplayRecPtr(NULL);
			begin_ms = walsizer_monotonic_ms();
			begin_usage = pgBufferUsage;
			begin_read = bytes_read();
		}
		else if (begins(text, REPLAY_ENDS) && !XLogRecPtrIsInvalid(begin_lsn))
			publish();
	}
	if (prev_emit_log_hook)
		prev_emit_log_hook(message);
}

/* Called by _PG_init(). */
void
walsizer_recovery_install_hook(void)
{
	prev_emit_log_hook = emit_log_hook;
	emit_log_hook = see_message;
}
