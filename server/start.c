/*-------------------------------------------------------------------------
 *
 * server/start.c
 *	  What is done before there is a worker: restore the original value if the
 *	  disk has no room for ours, and measure how fast this server recovers.
 *
 * A backup or a clone brings postgresql.auto.conf along, and with it the value
 * that the source needed.  No worker runs before a recovery is consistent, and
 * none at all with hot_standby = off: on a smaller file system restartpoints
 * would come too late, pg_wal would fill, and recovery would fail at each
 * start.  The same holds for a server whose disk was filled while it was down.
 *
 * So before the postmaster starts any process, it restores the original value
 * if the note says that the one in effect is ours and there is no room for it.
 * The note says that, too, and the first worker records it.
 *
 * How long the WAL of a larger max_wal_size takes to replay after a crash depends
 * on machine and load.  The startup process measures it, as it logs the beginning
 * and the end of its replay: with no worker, and for the crash of a single process,
 * too, but not if the server does not log at level LOG.  When the checkpoint at the
 * end of recovery is complete, the postmaster starts the worker.
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

#include "server/server.h"

/* Percentage of the room for WAL that our value may claim, if max_disk_percent is less. */
#define MOST_PERCENT		90		/* WAL may exceed max_wal_size */

/* Put value and note into effect here, from where all processes inherit them, until a reload. */
static void
restore_in_memory(WalsizerNote *note)
{
	char		text[WALSIZER_NOTE_SIZE];

	note->original_by_alter_system = true;
	walsizer_note_format(note, text);
	SetConfigOption("max_wal_size", psprintf(INT64_FORMAT "MB", note->original_mb),
					PGC_POSTMASTER, PGC_S_FILE);
	SetConfigOption("walsizer.last_written", text, PGC_POSTMASTER, PGC_S_FILE);
}

/* Log what was done, or would be.  obstacle: why the file keeps our line, or empty. */
static void
log_restored(const WalsizerNote *note, const WalsizerSample *disk, const char *obstacle, bool done)
{
	long long	from = note->written_mb;
	long long	to = note->original_mb;
	long long	free = disk->disk_free / WALSIZER_MB;
	long long	wal = disk->disk_wal / WALSIZER_MB;

	ereport(LOG,
			(!done ?
			 errmsg("walsizer would restore the original \"max_wal_size\" of %lld MB, because the file system of \"pg_wal\" has no room for %lld MB",
					to, from) :
			 obstacle[0] == '\0' ?
			 errmsg("walsizer restored the original \"max_wal_size\" of %lld MB, because the file system of \"pg_wal\" has no room for %lld MB",
					to, from) :
			 errmsg("walsizer restored the original \"max_wal_size\" of %lld MB until the next reload, because the file system of \"pg_wal\" has no room for %lld MB",
					to, from),
			 obstacle[0] == '\0' ?
			 errdetail("The file system has %lld MB of WAL and %lld MB of free space.", wal, free) :
			 errdetail("The file system has %lld MB of WAL and %lld MB of free space. The file \"%s\" keeps the larger value: %s.",
					   wal, free, PG_AUTOCONF_FILENAME, obstacle),
			 done ? 0 :
			 errhint("Turn on \"walsizer.enable\" and turn off \"walsizer.dry_run\" to have it restored, or set \"max_wal_size\" yourself.")));
}

/*
 * Restore the original value, or one in postgresql.conf that ours hides, if there is no room
 * for ours.  Called when there is shared memory: the postmaster has its settings, and no
 * processes, at its start and again after a crash of one.
 */
void
walsizer_check_at_start(void)
{
	int64		percent = Max(walsizer_max_disk_percent, MOST_PERCENT);
	bool		done = walsizer_enable && !walsizer_dry_run;
	WalsizerSample disk = {0};	/* no positions: all WAL counts as ours */
	WalsizerResult result = {0};
	WalsizerNote note = walsizer_auto_conf_in_effect().note;

	if (!IsPostmasterEnvironment || IsUnderPostmaster || note.kind != WALSIZER_NOTE_WRITTEN)
		return;
	note = walsizer_restoring(&note, walsizer_configured_mb(), WALSIZER_NOTE_NO_ROOM);
	if (note.original_mb >= note.written_mb)
		return;
	walsizer_take_disk(&disk);
	if (!disk.disk_read ||
		note.written_mb <= (disk.disk_free + disk.disk_wal) / WALSIZER_MB * percent / 100)
		return;
	if (done)
		result = walsizer_write_note(&note);
	if (result.outcome == WALSIZER_APPLIED)
		ProcessConfigFile(PGC_SIGHUP);
	/* which does nothing if a file has an error */
	if (done && walsizer_auto_conf_in_effect().note.kind != note.kind)
		restore_in_memory(&note);
	log_restored(&note, &disk, result.message, done);
}

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
	BufferUsage used = {0};
	int64		now = walsizer_monotonic_ms();

	BufferUsageAccumDiff(&used, &pgBufferUsage, &begin_usage);
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

/* The worker starts: complete the measurement of a recovery.  False if there is none. */
bool
walsizer_recovery_ended(void)
{
	int64		writing = walsizer_monotonic_ms() - walsizer_shared->replayed_at - WORKER_START_MS;

	if (walsizer_shared->replayed_at == 0)
		return false;
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->recoveries[0].writing_ms = walsizer_shared->recoveries[0].pages_written > 0 ? Max(writing, 0) : 0;
	walsizer_shared->replayed_at = 0;
	LWLockRelease(walsizer_shared->lock);
	return true;
}

/*
 * emit_log_hook, for each message to the log in any process, also in critical sections.
 * Allocates nothing and raises no error.  Only the two messages, as they are before
 * translation, lead to a lock, and neither is logged in a critical section.
 *
 * A standby, or a backup being restored, replays at the pace of its source of WAL.
 */
static void
see_message(ErrorData *message)
{
	const char *text = message->message_id;

	if (MyBackendType == B_STARTUP && !ArchiveRecoveryRequested && text != NULL)
	{
		if (strncmp(text, REPLAY_BEGINS, strlen(REPLAY_BEGINS)) == 0)
		{
			begin_lsn = GetXLogReplayRecPtr(NULL);
			begin_ms = walsizer_monotonic_ms();
			begin_usage = pgBufferUsage;
			begin_read = bytes_read();
		}
		else if (strncmp(text, REPLAY_ENDS, strlen(REPLAY_ENDS)) == 0 && !XLogRecPtrIsInvalid(begin_lsn))
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
