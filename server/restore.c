/*-------------------------------------------------------------------------
 *
 * server/restore.c
 *	  A server that starts with a value of ours that its disk has no room for.
 *
 * A backup or a clone brings postgresql.auto.conf along, and with it the value
 * that the source needed.  No worker runs before a recovery is consistent, none
 * at all with hot_standby = off: on a smaller volume restartpoints would come too
 * late, pg_wal would fill, and the recovery would fail at each start.  The same
 * holds for a server whose disk was filled while it was down.
 *
 * So the postmaster looks, before it starts any process: if the note says that
 * the value in effect is ours, and the volume has no room for it, the original
 * value is restored.  Nothing is changed in any other case.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/statvfs.h>

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "miscadmin.h"
#include "postmaster/bgwriter.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include "server/walsizer.h"
#include "server/compat.h"

/*
 * Percent of the space for WAL that a value may take up.  The rest is for what a
 * soft limit lets through.  More, if walsizer.max_disk_percent allows it.
 */
#define MOST_PERCENT		90

/* What pg_wal has on its volume, in bytes. */
typedef struct Space
{
	int64		free;
	int64		wal;
} Space;

/*
 * What was done, in MB, for the worker: processes inherit it from the
 * postmaster.  Nothing, if "from" is 0.
 */
typedef struct Restored
{
	int64		from;
	int64		to;
	bool		in_file;		/* also in postgresql.auto.conf */
} Restored;

static Restored restored;

static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

/*-------------------------------------------------------------------------
 * Is there room?
 *-------------------------------------------------------------------------
 */

/* False if it cannot be known. */
static bool
read_space(Space *space)
{
	struct statvfs st;
	DIR		   *dir;
	struct dirent *entry;

	if (statvfs(XLOGDIR, &st) != 0 || (dir = AllocateDir(XLOGDIR)) == NULL)
		return false;
	space->free = (int64) st.f_bavail * (int64) st.f_frsize;
	space->wal = 0;
	while (errno = 0, (entry = readdir(dir)) != NULL)
	{
		if (IsXLogFileName(entry->d_name))
			space->wal += wal_segment_size;
	}
	if (errno != 0)
	{
		FreeDir(dir);
		return false;
	}
	FreeDir(dir);
	return true;
}

static bool
has_room_for(const Space *space, int64 mb)
{
	int			percent = Max(walsizer_max_disk_percent, MOST_PERCENT);

	return mb <= (space->free + space->wal) / WALSIZER_MB * percent / 100;
}

/*-------------------------------------------------------------------------
 * Restoring the original value
 *-------------------------------------------------------------------------
 */

/* Why the file is left as it is, NULL if it is not; the text may be palloc'd. */
static const char *
change_file(int64 mb)
{
	WalsizerOutcome outcome;
	const char *obstacle = walsizer_apply_obstacle(&outcome);

	if (obstacle == NULL)
		(void) walsizer_write_auto_conf(mb, NULL, &obstacle);
	return obstacle;
}

/*
 * The same in this process, from which all others inherit it.  The source stays
 * "configuration file", which any reload may replace; but the file is known only
 * if it is postgresql.auto.conf as before.
 */
static void
change_setting(bool in_auto_conf)
{
	char		value[32];

	snprintf(value, sizeof(value), INT64_FORMAT "MB", restored.to);
	SetConfigOption("max_wal_size", value, PGC_POSTMASTER, PGC_S_FILE);
	if (!in_auto_conf)
	{
		struct config_generic *setting = unconstify(struct config_generic *,
													walsizer_find_setting("max_wal_size"));

		setting->sourcefile = NULL;
		setting->sourceline = 0;
	}
	if (restored.in_file)
		SetConfigOption("walsizer.last_written", "", PGC_POSTMASTER, PGC_S_FILE);
}

static void
log_change(const Space *space, int64 from, int64 to, const char *obstacle)
{
	long long	free = space->free / WALSIZER_MB;
	long long	wal = space->wal / WALSIZER_MB;

	if (obstacle == NULL)
		ereport(LOG,
				(errmsg("walsizer restored the original max_wal_size of %lld MB, because the file system of \"pg_wal\" has no room for %lld MB",
						(long long) to, (long long) from),
				 errdetail("It has %lld MB of WAL and %lld MB of free space.", wal, free),
				 errhint("The worker of walsizer will raise max_wal_size as far as walsizer.max_disk_percent allows.")));
	else
		ereport(LOG,
				(errmsg("walsizer restored the original max_wal_size of %lld MB until the next reload, because the file system of \"pg_wal\" has no room for %lld MB",
						(long long) to, (long long) from),
				 errdetail("It has %lld MB of WAL and %lld MB of free space. The file \"%s\" keeps the larger value: %s.",
						   wal, free, PG_AUTOCONF_FILENAME, obstacle),
				 errhint("Remove max_wal_size and walsizer.last_written from that file.")));
}

static void
log_no_change(const Space *space, int64 from, int64 to)
{
	ereport(LOG,
			(errmsg("walsizer would restore the original max_wal_size of %lld MB, because the file system of \"pg_wal\" has no room for %lld MB",
					(long long) to, (long long) from),
			 errdetail("It has %lld MB of WAL and %lld MB of free space.",
					   (long long) (space->wal / WALSIZER_MB),
					   (long long) (space->free / WALSIZER_MB)),
			 errhint("Turn walsizer.enable on and walsizer.dry_run off to have it done, or set max_wal_size.")));
}

/*
 * The value in effect is ours, and may be too large.  An edit of postgresql.conf
 * that our value hides counts as the original value.
 */
static void
restore_if_too_large(const WalsizerNote *note)
{
	bool		uncover;
	int64		configured = walsizer_configured_value(&uncover);
	int64		least = 2 * wal_segment_size / WALSIZER_MB;
	int64		original = Max(note->found, least);
	const char *obstacle;
	Space		space;

	uncover = uncover && !note->found_by_alter_system;
	if (uncover)
		original = configured;
	if (original >= note->written || !read_space(&space) ||
		has_room_for(&space, note->written))
		return;
	if (!walsizer_enable || walsizer_dry_run)
	{
		log_no_change(&space, note->written, original);
		return;
	}
	obstacle = change_file(uncover ? 0 : original);
	restored.from = note->written;
	restored.to = original;
	restored.in_file = obstacle == NULL;
	change_setting(restored.in_file && !uncover);
	log_change(&space, restored.from, restored.to, obstacle);
}

/*
 * At the start of the postmaster, which has its settings and its shared memory by
 * now, and nothing else.  Not when it starts its processes anew after a crash of
 * one: then a worker has seen to the value.
 */
static void
look_at_start(void)
{
	static bool looked = false;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	if (!looked && IsPostmasterEnvironment && !IsUnderPostmaster)
	{
		WalsizerAutoConf conf = walsizer_auto_conf_in_effect();

		looked = true;
		if (conf.note.written != 0)
			restore_if_too_large(&conf.note);
	}
}

/*
 * For _PG_init().  The hook comes when it is certain that this is a start: after
 * "postgres -C" has printed what was asked for.
 */
void
walsizer_restore_install_hook(void)
{
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = look_at_start;
}

/*-------------------------------------------------------------------------
 * What the worker makes of it
 *-------------------------------------------------------------------------
 */

static WalsizerEvent
make_event(void)
{
	WalsizerEvent event = {0};

	event.at = PgStartTime;
	event.action = WALSIZER_LOWER;
	event.reason = WALSIZER_BECAUSE_BOUND_FELL;
	event.bound = WALSIZER_BOUND_DISK;
	event.outcome = WALSIZER_APPLIED;
	event.old_size = event.wanted = restored.from;
	event.new_size = restored.to;
	event.timeout = (int64) CheckPointTimeout * 1000;
	event.completion_target = CheckPointCompletionTarget;
	event.standby = RecoveryInProgress();
	event.followed = -1;
	strlcpy(event.message, "at the start of the server", sizeof(event.message));
	return event;
}

/*
 * For a worker that begins, when memory was read: it may take the value for ours
 * that was given back at the start, and would take the original value for a change
 * by an administrator.  Not if memory knows already, or if the value has changed
 * since.  A value that is still in the file is ours when a reload brings it.
 */
void
walsizer_note_restored(void)
{
	WalsizerState *state = &walsizer_shared->state;
	int64		expected = state->own != 0 ? state->own : state->found;
	WalsizerEvent event;

	if (restored.from == 0 || max_wal_size_mb != restored.to || expected == restored.to)
		return;
	event = make_event();
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_given_back(state, restored.to);
	LWLockRelease(walsizer_shared->lock);
	walsizer_state_add_event(&event);
	walsizer_state_save();
}
