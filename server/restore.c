/*-------------------------------------------------------------------------
 *
 * server/restore.c
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
#include "utils/timestamp.h"

#include "server/walsizer.h"
#include "server/compat.h"

/*
 * Percentage of the space for WAL that our value may claim, or more if
 * walsizer.max_disk_percent is larger.  WAL may exceed max_wal_size.
 */
#define MOST_PERCENT		90

/* What was done, for the worker: a fork of the postmaster has its variables. */
typedef struct Restored
{
	int64		from_mb;		/* 0: nothing was done */
	int64		to_mb;
	bool		in_file;		/* also in postgresql.auto.conf */
} Restored;

static Restored restored;

static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static bool
has_room_for(const WalsizerSample *disk, int64 mb)
{
	int			percent = Max(walsizer_max_disk_percent, MOST_PERCENT);

	return mb <= (disk->disk_free + disk->disk_wal) / WALSIZER_MB * percent / 100;
}

/* Change the file (MB; 0: remove the line).  NULL, or why not. */
static const char *
change_file(int64 mb)
{
	WalsizerOutcome outcome;
	const char *obstacle = walsizer_obstacle(&outcome);

	if (obstacle == NULL)
		(void) walsizer_write_auto_conf(mb, NULL, &obstacle);
	return obstacle;
}

/*
 * The same in this process, from which all others inherit it.  The source
 * stays "configuration file", which any reload may replace, but the file is
 * named only if postgresql.auto.conf still sets the value.
 */
static void
change_setting(bool in_auto_conf)
{
	char		value[32];

	snprintf(value, sizeof(value), INT64_FORMAT "MB", restored.to_mb);
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

/* Log what was done, or would be; obstacle: why the file keeps the value. */
static void
log_change(const WalsizerSample *disk, const char *obstacle, bool done)
{
	long long	from = restored.from_mb;
	long long	to = restored.to_mb;
	long long	free = disk->disk_free / WALSIZER_MB;
	long long	wal = disk->disk_wal / WALSIZER_MB;

	if (!done)
		ereport(LOG,
				(errmsg("walsizer would restore the original \"max_wal_size\" of %lld MB, because the file system of \"pg_wal\" has no room for %lld MB",
						to, from),
				 errdetail("The file system has %lld MB of WAL and %lld MB of free space.", wal, free),
				 errhint("Turn on \"walsizer.enable\" and turn off \"walsizer.dry_run\" to have it restored, or set \"max_wal_size\" yourself.")));
	else if (obstacle == NULL)
		ereport(LOG,
				(errmsg("walsizer restored the original \"max_wal_size\" of %lld MB, because the file system of \"pg_wal\" has no room for %lld MB",
						to, from),
				 errdetail("The file system has %lld MB of WAL and %lld MB of free space. walsizer raises \"max_wal_size\" again as far as \"walsizer.max_disk_percent\" allows.",
						   wal, free)));
	else
		ereport(LOG,
				(errmsg("walsizer restored the original \"max_wal_size\" of %lld MB until the next reload, because the file system of \"pg_wal\" has no room for %lld MB",
						to, from),
				 errdetail("The file system has %lld MB of WAL and %lld MB of free space. The file \"%s\" keeps the larger value: %s.",
						   wal, free, PG_AUTOCONF_FILENAME, obstacle),
				 errhint("Remove \"max_wal_size\" and \"walsizer.last_written\" from that file.")));
}

/*
 * Restore the original value if there is no room for ours.  A value in
 * postgresql.conf that ours hides counts as the original one.
 */
static void
restore_if_too_large(const WalsizerNote *note)
{
	bool		uncover;
	int64		configured = walsizer_configured_value(&uncover);
	int64		original = Max(note->original_mb, walsizer_least_mb());
	const char *obstacle;
	WalsizerSample disk = {0};	/* no positions: all WAL counts as ours */

	uncover = uncover && !note->original_by_alter_system;
	if (uncover)
		original = configured;
	if (original >= note->written_mb)
		return;
	walsizer_take_disk(&disk);
	if (!disk.has_disk || has_room_for(&disk, note->written_mb))
		return;
	restored.from_mb = note->written_mb;
	restored.to_mb = original;
	if (!walsizer_enable || walsizer_dry_run)
	{
		log_change(&disk, NULL, false);
		restored.from_mb = 0;
		return;
	}
	obstacle = change_file(uncover ? 0 : original);
	restored.in_file = obstacle == NULL;
	change_setting(restored.in_file && !uncover);
	log_change(&disk, obstacle, true);
}

/*
 * shmem_startup_hook: the postmaster has its settings and shared memory, and
 * no processes yet.  Does nothing when it restarts them after a crash of one:
 * then a worker has already checked the value.
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
		if (conf.note.written_mb != 0)
			restore_if_too_large(&conf.note);
	}
}

/* Called by _PG_init(), also for "postgres -C", which runs no such hook. */
void
walsizer_restore_install_hook(void)
{
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = look_at_start;
}

/*
 * Record what the postmaster restored: otherwise the first worker would take
 * the original value for an administrator's change.  Called when it has just
 * read the state file.  Does nothing if that knows, or if the value changed since.
 * A value still in the file is ours when a reload brings it.  Takes the lock.
 */
void
walsizer_adopt_restored(void)
{
	WalsizerState *state = &walsizer_shared->state;
	int64		expected = state->owner.own_mb != 0 ?
		state->owner.own_mb : state->owner.original_mb;
	WalsizerSample sample;
	WalsizerDecision decision = {
		.action = WALSIZER_LOWER,
		.reason = WALSIZER_BECAUSE_LIMIT_FELL,
		.limited_by = WALSIZER_LIMIT_DISK,
		.wanted_mb = restored.from_mb,
		.target_mb = restored.to_mb,
	};
	WalsizerEvent event;

	if (restored.from_mb == 0 || max_wal_size_mb != restored.to_mb ||
		expected == restored.to_mb)
		return;
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_original_is_back(state, restored.to_mb);
	LWLockRelease(walsizer_shared->lock);
	walsizer_take_sample(&sample, false);
	event = walsizer_make_event(&decision, &sample, restored.from_mb);
	event.at = PgStartTime;
	event.outcome = WALSIZER_APPLIED;
	strlcpy(event.message, "at the start of the server", sizeof(event.message));
	walsizer_add_event(&event);
	walsizer_state_save();
}
