/*-------------------------------------------------------------------------
 *
 * walsizer.c
 *	  Module initialization: settings, hooks, worker.
 *
 * Unless it is loaded through shared_preload_libraries, the library defines
 * nothing, and its SQL functions raise an error that says so.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/guc.h"

#include "server/compat.h"
#include "server/walsizer.h"

WALSIZER_MODULE_MAGIC;

void		_PG_init(void);

static void
define_settings(void)
{
	DefineCustomBoolVariable("walsizer.enable",
							 "Lets walsizer change max_wal_size.",
							 "Turn it off to keep the value in effect. walsizer continues to measure and to advise.",
							 &walsizer_enable, true,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("walsizer.dry_run",
							 "Lets walsizer decide and record without changing max_wal_size.",
							 "Turn it on to see in walsizer_history what walsizer would do.",
							 &walsizer_dry_run, false,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("walsizer.predict",
							 "Raises max_wal_size before the first checkpoint is forced.",
							 "Turn it off to have walsizer raise only after checkpoints were forced.",
							 &walsizer_predict, true,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("walsizer.max",
							"Sets the largest value that walsizer gives to max_wal_size.",
							"Choose it by the disk space and the recovery time that you can afford. It takes precedence over walsizer.min.",
							&walsizer_max_mb, 16 * 1024, 2, MAX_KILOBYTES,
							PGC_SIGHUP, GUC_UNIT_MB, NULL, NULL, NULL);
	DefineCustomIntVariable("walsizer.min",
							"Sets the smallest value to which walsizer lowers max_wal_size.",
							"Set it if you know a load that comes less often than walsizer.lookback. walsizer never sets less than the original value.",
							&walsizer_min_mb, 0, 0, MAX_KILOBYTES,
							PGC_SIGHUP, GUC_UNIT_MB, NULL, NULL, NULL);
	DefineCustomIntVariable("walsizer.threshold",
							"Sets the number of forced checkpoints per checkpoint_timeout that trigger a raise.",
							"Raise it if rare bursts may force a checkpoint. With walsizer.predict, walsizer does not wait for forced checkpoints.",
							&walsizer_threshold, 1, 1, 1000,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("walsizer.sample_interval",
							"Sets the time between two measurements.",
							"Lower it if loads that write several hundred megabytes per second begin all at once.",
							&walsizer_interval, 1000, 100, 60 * 1000,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomRealVariable("walsizer.headroom",
							 "Sets the factor by which max_wal_size exceeds what the measured demand needs.",
							 "Raise it if demand grows from one peak to the next.",
							 &walsizer_headroom, 1.2, 1.0, 4.0,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("walsizer.lookback",
							"Sets how long a peak of demand is remembered.",
							"Choose a little more than the longest time between two runs of a periodic load.",
							&walsizer_lookback, 7 * 24 * 60, 60, 31 * 24 * 60,
							PGC_SIGHUP, GUC_UNIT_MIN, NULL, NULL, NULL);
	DefineCustomIntVariable("walsizer.max_disk_percent",
							"Sets the percentage of free space and existing WAL on the file system of pg_wal that max_wal_size may claim.",
							"Lower it if other programs need the free space of that file system.",
							&walsizer_max_disk_percent, 50, 1, 100,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("walsizer.max_recovery_time",
							"Sets how long crash recovery may take at worst.",
							"Set it if you have agreed on a recovery time. Zero means that recovery time does not limit max_wal_size.",
							&walsizer_max_recovery_time, 0, 0, 24 * 60 * 60,
							PGC_SIGHUP, GUC_UNIT_S, NULL, NULL, NULL);
	DefineCustomIntVariable("walsizer.replay_rate",
							"Sets the amount of WAL per second that this server recovers after a crash.",
							"Set it if you have measured it. Zero means the speed measured in the last crash recoveries, or assumed if there was none.",
							&walsizer_replay_rate, 0, 0, 1024 * 1024,
							PGC_SIGHUP, GUC_UNIT_MB, NULL, NULL, NULL);

	/* Internal, so hidden from SHOW ALL: the note beside our value. */
	DefineCustomStringVariable("walsizer.last_written",
							   "Shows the value that walsizer last wrote to max_wal_size, and the original value.",
							   "walsizer writes it itself, together with that value.",
							   &walsizer_last_written, "", PGC_SIGHUP,
							   GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE,
							   NULL, NULL, NULL);

	MarkGUCPrefixReserved("walsizer");
}

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;

	define_settings();
	walsizer_shmem_install_hooks();

	/* The servers that pg_upgrade starts have no load to size for. */
	if (IsBinaryUpgrade)
		return;
	walsizer_startcheck_install_hook();
	walsizer_recovery_install_hook();
	walsizer_register_worker();
}
