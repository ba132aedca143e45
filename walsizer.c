/*-------------------------------------------------------------------------
 *
 * walsizer.c
 *	  Start of the module: settings, shared memory, registration.
 *
 * Loaded any other way than through shared_preload_libraries the library is
 * inert: nothing is defined, and its SQL functions say what is missing.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/guc.h"

#include "server/walsizer.h"
#include "server/compat.h"

WALSIZER_MODULE_MAGIC;

void		_PG_init(void);

static void
define_settings(void)
{
	DefineCustomBoolVariable("walsizer.enable",
							 "Lets walsizer change max_wal_size.",
							 "If off, walsizer only watches and records.",
							 &walsizer_enable,
							 true,
							 PGC_SIGHUP, 0,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("walsizer.dry_run",
							 "Lets walsizer decide and record, but change nothing.",
							 NULL,
							 &walsizer_dry_run,
							 false,
							 PGC_SIGHUP, 0,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("walsizer.predict",
							 "Raises max_wal_size before the first checkpoint is forced.",
							 "If off, walsizer raises only after checkpoints have been forced.",
							 &walsizer_predict,
							 true,
							 PGC_SIGHUP, 0,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("walsizer.max",
							"Sets the largest value that walsizer gives to max_wal_size.",
							NULL,
							&walsizer_max_mb,
							16 * 1024, 2, MAX_KILOBYTES,
							PGC_SIGHUP, GUC_UNIT_MB,
							NULL, NULL, NULL);
	DefineCustomIntVariable("walsizer.min",
							"Sets the smallest value to which walsizer lowers max_wal_size.",
							"The value that walsizer found is never gone below.",
							&walsizer_min_mb,
							0, 0, MAX_KILOBYTES,
							PGC_SIGHUP, GUC_UNIT_MB,
							NULL, NULL, NULL);
	DefineCustomIntVariable("walsizer.threshold",
							"Sets the number of checkpoints forced by WAL volume within checkpoint_timeout from which on walsizer raises max_wal_size.",
							NULL,
							&walsizer_threshold,
							1, 1, 1000,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("walsizer.sample_interval",
							"Sets the time between two measurements.",
							NULL,
							&walsizer_interval,
							1000, 100, 60 * 1000,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomRealVariable("walsizer.headroom",
							 "Sets the factor by which max_wal_size is to exceed the measured demand.",
							 NULL,
							 &walsizer_headroom,
							 1.2, 1.0, 4.0,
							 PGC_SIGHUP, 0,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("walsizer.lookback",
							"Sets how long a peak of demand is remembered.",
							NULL,
							&walsizer_lookback,
							7 * 24 * 60, 60, 31 * 24 * 60,
							PGC_SIGHUP, GUC_UNIT_MIN,
							NULL, NULL, NULL);
	DefineCustomIntVariable("walsizer.max_disk_percent",
							"Sets how much of the space that pg_wal has or could have max_wal_size may claim, in percent.",
							NULL,
							&walsizer_max_disk_percent,
							50, 1, 100,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("walsizer.max_recovery_time",
							"Sets how long recovery after a crash may take at worst.",
							"Zero means that recovery time sets no bound to max_wal_size.",
							&walsizer_max_recovery_time,
							0, 0, 24 * 60 * 60,
							PGC_SIGHUP, GUC_UNIT_S,
							NULL, NULL, NULL);
	DefineCustomIntVariable("walsizer.replay_rate",
							"Sets the WAL that this server replays per second in a recovery.",
							"Zero means the rate measured at the last crash recovery, or 40MB until there was one.",
							&walsizer_replay_rate,
							0, 0, 1024 * 1024,
							PGC_SIGHUP, GUC_UNIT_MB,
							NULL, NULL, NULL);

	/* Not for people to set, so it is not listed among the settings. */
	DefineCustomStringVariable("walsizer.last_written",
							   "Notes the value that walsizer last gave to max_wal_size, and the one it found.",
							   "Written by walsizer itself, together with that value.",
							   &walsizer_last_written,
							   "",
							   PGC_SIGHUP, GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE | GUC_NO_RESET_ALL,
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

	/* pg_upgrade's servers are none that anybody works with. */
	if (IsBinaryUpgrade)
		return;
	walsizer_restore_install_hook();
	walsizer_recovery_install_hook();
	walsizer_register_worker();
}
