/*-------------------------------------------------------------------------
 *
 * walsizer_sample.c
 *	  One observation of the server.  The only reader of its state.
 *
 * The settings are this process's copies, which follow the configuration as
 * far as the caller has reread it.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <time.h>

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogrecovery.h"
#include "catalog/pg_control.h"
#include "common/controldata_utils.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgwriter.h"
#include "utils/timestamp.h"

#include "walsizer.h"
#include "walsizer_compat.h"

/* Milliseconds of a clock that nobody sets. */
int64
walsizer_monotonic_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void
read_settings(WalsizerSettings *settings)
{
	settings->segment_size = wal_segment_size;
	settings->max_wal_size = max_wal_size_mb;
	settings->completion_target = CheckPointCompletionTarget;
	settings->timeout = (int64) CheckPointTimeout * 1000;
}

/*
 * Positions.  What has been written, not inserted, is what the server's own
 * trigger looks at.  The redo pointer is that of the last checkpoint that was
 * started (standby: restartpoint); when it is not the last completed one, a
 * checkpoint is under way.
 */
static void
read_positions(WalsizerSample *sample)
{
	XLogRecPtr	completed;
	TimeLineID	tli;

	sample->standby = RecoveryInProgress();
	sample->write_lsn = sample->standby ? GetXLogReplayRecPtr(NULL) : GetXLogWriteRecPtr();
	sample->redo_lsn = GetRedoRecPtr();
	GetOldestRestartPoint(&completed, &tli);
	sample->checkpoint_running = completed != sample->redo_lsn;
}

/*
 * Counters.  The snapshot is dropped first: by default a process that is never
 * in a transaction would see its first one for ever.
 */
static void
read_counters(WalsizerSample *sample, bool first)
{
	static TimestampTz last_reset = 0;
	WalsizerCounters counters;

	pgstat_clear_snapshot();
	counters = walsizer_fetch_counters(sample->standby);
	sample->requested = Max(counters.requested, 0);
	sample->timed = Max(counters.timed, 0);
	sample->counters_reset = !first && counters.reset_at != last_reset;
	last_reset = counters.reset_at;
}

/*
 * Milliseconds since the last completed checkpoint was started, by the clock
 * on the wall, or -1.  Reads the control file, so it is for the first sample.
 */
static int64
read_checkpoint_age(void)
{
	bool		crc_ok;
	ControlFileData *control = get_controlfile(DataDir, &crc_ok);
	int64		age = -1;

	if (crc_ok)
		age = ((int64) time(NULL) - (int64) control->checkPointCopy.time) * 1000;
	pfree(control);
	return Max(age, -1);
}

/* Does the value in force come from ALTER SYSTEM? */
static bool
stands_in_auto_conf(void)
{
	const struct config_generic *setting = walsizer_find_setting("max_wal_size");
	const char *name;

	if (setting == NULL || setting->source != PGC_S_FILE || setting->sourcefile == NULL)
		return false;
	name = last_dir_separator(setting->sourcefile);
	name = name ? name + 1 : setting->sourcefile;
	return strcmp(name, PG_AUTOCONF_FILENAME) == 0;
}

/*
 * Observe the server.  "first" is the first sample of this process.
 *
 * Takes spinlocks and lightweight locks of the server for an instant each.
 * May raise an error only if first (the control file cannot be read).
 */
void
walsizer_take_sample(WalsizerSample *sample, bool first)
{
	memset(sample, 0, sizeof(*sample));
	sample->now = walsizer_monotonic_ms();
	sample->hour = (int64) time(NULL) / SECS_PER_HOUR;
	read_settings(&sample->settings);
	read_positions(sample);
	read_counters(sample, first);
	sample->checkpoint_age = first ? read_checkpoint_age() : -1;
	sample->alter_system = stands_in_auto_conf();
}
