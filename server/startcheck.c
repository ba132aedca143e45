/*-------------------------------------------------------------------------
 *
 * server/startcheck.c
 *	  Restore the original value at the start of a server whose disk has no
 *	  room for ours.
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
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/guc.h"

#include "server/server.h"
#include "server/compat.h"

/*
 * Percentage of the space for WAL that our value may claim, or more if
 * walsizer.max_disk_percent is larger.  WAL may exceed max_wal_size.
 */
#define MOST_PERCENT		90

static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

/*
 * Put the value and the note into effect in this process alone, from which all
 * others inherit them, until a reload: the file keeps our line.
 */
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

/*
 * Log what was done, or, with walsizer turned off, would be.  obstacle: why the
 * file keeps our line, NULL if it does not.
 */
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
			 obstacle == NULL ?
			 errmsg("walsizer restored the original \"max_wal_size\" of %lld MB, because the file system of \"pg_wal\" has no room for %lld MB",
					to, from) :
			 errmsg("walsizer restored the original \"max_wal_size\" of %lld MB until the next reload, because the file system of \"pg_wal\" has no room for %lld MB",
					to, from),
			 obstacle == NULL ?
			 errdetail("The file system has %lld MB of WAL and %lld MB of free space.", wal, free) :
			 errdetail("The file system has %lld MB of WAL and %lld MB of free space. The file \"%s\" keeps the larger value: %s.",
					   wal, free, PG_AUTOCONF_FILENAME, obstacle),
			 done ? 0 :
			 errhint("Turn on \"walsizer.enable\" and turn off \"walsizer.dry_run\" to have it restored, or set \"max_wal_size\" yourself.")));
}

/*
 * Restore the original value if there is no room for ours.  A value in
 * postgresql.conf that ours hides counts as the original one.
 *
 * shmem_startup_hook: the postmaster has its settings and shared memory, and no
 * processes, at its start and again after a crash of one.
 */
static void
check_at_start(void)
{
	int64		percent = Max(walsizer_max_disk_percent, MOST_PERCENT);
	bool		done = walsizer_enable && !walsizer_dry_run;
	WalsizerSample disk = {0};	/* no positions: all WAL counts as ours */
	const char *obstacle = NULL;
	WalsizerNote note = walsizer_auto_conf_in_effect().note;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	if (!IsPostmasterEnvironment || IsUnderPostmaster || note.kind != WALSIZER_NOTE_WRITTEN)
		return;
	note = walsizer_restoring(&note, walsizer_configured_mb(), WALSIZER_NOTE_NO_ROOM);
	if (note.original_mb >= note.written_mb)
		return;
	walsizer_take_disk(&disk);
	if (!disk.disk_read ||
		note.written_mb <= (disk.disk_free + disk.disk_wal) / WALSIZER_MB * percent / 100)
		return;
	if (done && walsizer_write_note(&note, &obstacle) == WALSIZER_APPLIED)
		ProcessConfigFile(PGC_SIGHUP);
	else if (done)
		restore_in_memory(&note);
	log_restored(&note, &disk, obstacle, done);
}

/* Called by _PG_init(), also for "postgres -C", which runs no such hook. */
void
walsizer_startcheck_install_hook(void)
{
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = check_at_start;
}
