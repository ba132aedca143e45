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

#include "access/xlog.h"
#include "miscadmin.h"
#include "postmaster/bgwriter.h"
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

/*
 * What was done, for the worker: processes inherit it from the postmaster.
 * Nothing, if from_mb is 0.
 */
typedef struct Restored
{
	int64		from_mb;
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

/* Why the file is left as it is, NULL if it is not; the text may be palloc'd. */
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
 * The same in this process, from which all others inherit it.  The source stays
 * "configuration file", which any reload may replace; but the file is known only
 * if it is postgresql.auto.conf as before.
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

/* Say what was done, or would be; obstacle is why the file keeps the value. */
static void
log_change(const WalsizerSample *disk, const char *obstacle, bool done)
{
	long long	from = restored.from_mb;
	long long	to = restored.to_mb;
	long long	free = disk->disk_free / WALSIZER_MB;
	long long	wal = disk->disk_wal / WALSIZER_MB;

	if (!done)
		ereport(LOG,
				(errmsg("walsizer would restore the original max_wal_size of %lld MB, because the file system of \"pg_wal\" has no room for %lld MB",
						to, from),
				 errdetail("It has %lld MB of WAL and %lld MB of free space.", wal, free),
				 errhint("Turn walsizer.enable on and walsizer.dry_run off to have it done, or set max_wal_size.")));
	else if (obstacle == NULL)
		ereport(LOG,
				(errmsg("walsizer restored the original max_wal_size of %lld MB, because the file system of \"pg_wal\" has no room for %lld MB",
						to, from),
				 errdetail("It has %lld MB of WAL and %lld MB of free space.", wal, free),
				 errhint("The worker of walsizer will raise max_wal_size as far as walsizer.max_disk_percent allows.")));
	else
		ereport(LOG,
				(errmsg("walsizer restored the original max_wal_size of %lld MB until the next reload, because the file system of \"pg_wal\" has no room for %lld MB",
						to, from),
				 errdetail("It has %lld MB of WAL and %lld MB of free space. The file \"%s\" keeps the larger value: %s.",
						   wal, free, PG_AUTOCONF_FILENAME, obstacle),
				 errhint("Remove max_wal_size and walsizer.last_written from that file.")));
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
	int64		original = Max(note->original_mb, least);
	const char *obstacle;
	WalsizerSample disk = {0};

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
		if (conf.note.written_mb != 0)
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

/*
 * For a worker that begins, when memory was read: it may take the value for ours
 * that was given back at the start, and would take the original value for a change
 * by an administrator.  Not if memory knows already, or if the value has changed
 * since.  A value that is still in the file is ours when a reload brings it.
 */
void
walsizer_adopt_restored(void)
{
	WalsizerState *state = &walsizer_shared->state;
	int64		expected = state->owner.own_mb != 0 ? state->owner.own_mb : state->owner.original_mb;
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
