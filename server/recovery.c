/*-------------------------------------------------------------------------
 *
 * server/recovery.c
 *	  Measure how fast this server replays WAL, at each crash recovery.
 *
 * A larger max_wal_size means more WAL to replay after a crash.  How long that
 * takes depends on machine and load.  The startup process measures it, as it
 * logs the beginning and the end of its replay.  That needs no worker, and
 * covers the crash of a single process.  A server that does not log at level
 * LOG is not measured.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog_internal.h"
#include "access/xlogrecovery.h"
#include "miscadmin.h"
#include "utils/elog.h"

#include "server/walsizer.h"

/* The server's function, and how its two messages begin */
#define REPLAY_FUNCTION		"PerformWalRecovery"
#define REPLAY_BEGINS		"redo starts at "
#define REPLAY_ENDS			"redo done at "

/* A shorter recovery is mostly startup. */
#define LEAST_BYTES			(16 * WALSIZER_MB)
#define LEAST_MS			100

static emit_log_hook_type prev_emit_log_hook = NULL;

/* Where and when replay began; invalid: it did not. */
static XLogRecPtr begin_lsn = InvalidXLogRecPtr;
static int64 begin_ms;

/* Leave the measurement to the worker, which writes it to disk. */
static void
publish(int64 bytes, int64 ms)
{
	if (bytes < LEAST_BYTES || ms < LEAST_MS)
		return;
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->replay_bytes = bytes;
	walsizer_shared->replay_ms = ms;
	LWLockRelease(walsizer_shared->lock);
}

/* Does the untranslated message begin like this? */
static bool
begins(const ErrorData *message, const char *with)
{
	return message->message_id != NULL &&
		strncmp(message->message_id, with, strlen(with)) == 0;
}

/*
 * The startup process logs something.  A standby, or a backup being restored,
 * replays at the pace of its source of WAL, which says nothing about a crash.
 */
static void
watch_replay(const ErrorData *message)
{
	if (ArchiveRecoveryRequested || walsizer_shared == NULL ||
		message->funcname == NULL || strcmp(message->funcname, REPLAY_FUNCTION) != 0)
		return;
	if (begins(message, REPLAY_BEGINS))
	{
		begin_lsn = GetXLogReplayRecPtr(NULL);
		begin_ms = walsizer_monotonic_ms();
	}
	else if (begins(message, REPLAY_ENDS) && !XLogRecPtrIsInvalid(begin_lsn))
		publish((int64) (GetXLogReplayRecPtr(NULL) - begin_lsn),
				walsizer_monotonic_ms() - begin_ms);
}

/*
 * emit_log_hook, for each message to the log in any process, also in critical
 * sections.  Allocates nothing and raises no error.  Only the two messages
 * lead to a lock, and neither is logged in a critical section.
 */
static void
see_message(ErrorData *message)
{
	if (MyBackendType == B_STARTUP)
		watch_replay(message);
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
