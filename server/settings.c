/*-------------------------------------------------------------------------
 *
 * server/settings.c
 *	  walsizer's settings; policy.h has the defaults and ranges.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "server/server.h"

bool		walsizer_enable;
bool		walsizer_dry_run;
int			walsizer_interval;	/* ms */
int			walsizer_max_disk_percent;
char	   *walsizer_last_written; /* a WalsizerNote */

static bool predict;
static bool prevent_disk_full;
static int	max_mb;
static int	min_mb;
static int	threshold;
static double headroom;
static int	lookback;			/* minutes */
static int	max_recovery_time;	/* s */
static int	replay_rate;		/* MB per second */

/* A field's default, least and most, as a GUC can hold it; "field / 1000" for another unit. */
#define LIMITS(field) \
	walsizer_default.field, walsizer_least.field, Min(walsizer_most.field, MAX_KILOBYTES)

#define BOOL_SETTING(name, variable, boot_value, what, when) \
	DefineCustomBoolVariable("walsizer." name, what, when, variable, boot_value, \
							 PGC_SIGHUP, 0, NULL, NULL, NULL)
#define NUMBER_SETTING(type, name, variable, unit, limits, what, when) \
	DefineCustom##type##Variable("walsizer." name, what, when, variable, limits, \
								 PGC_SIGHUP, unit, NULL, NULL, NULL)

/*
 * Called by _PG_init().  False if another copy of the library, or a library with
 * settings of these names, has been loaded before; an error in the postmaster.
 */
bool
walsizer_define_settings(void)
{
	const struct config_generic *setting = walsizer_find_setting("walsizer.enable");

	if (setting != NULL && (setting->flags & GUC_CUSTOM_PLACEHOLDER) == 0 &&
		!process_shared_preload_libraries_in_progress)
		return false;
	BOOL_SETTING("enable", &walsizer_enable, walsizer_default.enable,
				 "Lets walsizer change max_wal_size.",
				 "Turn it off to keep the value in effect. walsizer continues to measure and to advise.");
	BOOL_SETTING("dry_run", &walsizer_dry_run, false,
				 "Lets walsizer decide and record without changing max_wal_size.",
				 "Turn it on to see in walsizer_history what walsizer would do. walsizer_revert() still restores the original value.");
	BOOL_SETTING("predict", &predict, walsizer_default.predict,
				 "Raises max_wal_size before the first checkpoint is forced.",
				 "Turn it off to have walsizer raise only after checkpoints were forced.");
	NUMBER_SETTING(Int, "max", &max_mb, GUC_UNIT_MB, LIMITS(max_mb),
				   "Sets the largest value that walsizer gives to max_wal_size.",
				   "Choose it by the disk space and the recovery time that you can afford. It takes precedence over walsizer.min.");
	NUMBER_SETTING(Int, "min", &min_mb, GUC_UNIT_MB, LIMITS(min_mb),
				   "Sets the smallest value to which walsizer lowers max_wal_size.",
				   "Set it if you know a load that comes less often than walsizer.lookback. walsizer never sets less than the original value. Limits take precedence over it.");
	NUMBER_SETTING(Int, "threshold", &threshold, 0, LIMITS(threshold),
				   "Sets the number of forced checkpoints per checkpoint_timeout that trigger a raise.",
				   "Raise it if rare bursts may force a checkpoint. With walsizer.predict, walsizer does not wait for forced checkpoints.");
	NUMBER_SETTING(Int, "sample_interval", &walsizer_interval, GUC_UNIT_MS, LIMITS(sample_interval_ms),
				   "Sets the time between two measurements.",
				   "Lower it if loads that write several hundred megabytes per second begin all at once.");
	NUMBER_SETTING(Real, "headroom", &headroom, 0, LIMITS(headroom),
				   "Sets the factor by which max_wal_size exceeds what the measured demand needs.",
				   "Raise it if demand grows from one peak to the next.");
	NUMBER_SETTING(Int, "lookback", &lookback, GUC_UNIT_MIN, LIMITS(lookback_hours * 60),
				   "Sets how long a peak of demand is remembered.",
				   "Choose a little more than the longest time between two runs of a periodic load.");
	NUMBER_SETTING(Int, "max_disk_percent", &walsizer_max_disk_percent, 0, LIMITS(max_disk_percent),
				   "Sets the percentage of free space and existing WAL on the file system of pg_wal that max_wal_size may claim.",
				   "Lower it if other programs need the free space of that file system.");
	BOOL_SETTING("prevent_disk_full", &prevent_disk_full, walsizer_default.prevent_disk_full,
				 "Requests a checkpoint when WAL is about to fill its file system.",
				 "Turn it off if nothing but an administrator may request checkpoints. walsizer then only says what is about to happen.");
	NUMBER_SETTING(Int, "max_recovery_time", &max_recovery_time, GUC_UNIT_S, LIMITS(max_recovery_ms / 1000),
				   "Sets how long crash recovery may take at worst.",
				   "Set it if you have agreed on a recovery time. Zero means that recovery time does not limit max_wal_size.");
	NUMBER_SETTING(Int, "replay_rate", &replay_rate, GUC_UNIT_MB, LIMITS(replay_rate / WALSIZER_MB),
				   "Sets the amount of WAL per second that this server recovers after a crash.",
				   "Set it if you have measured it. Zero means the speed measured in the last crash recoveries, or assumed if there was none.");

	/* Internal, so hidden from SHOW ALL: the note beside our value. */
	DefineCustomStringVariable("walsizer.last_written",
							   "Shows the value that walsizer last wrote to max_wal_size, and the original value.",
							   "walsizer writes it itself, together with that value.",
							   &walsizer_last_written, "", PGC_SIGHUP,
							   GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE,
							   NULL, NULL, NULL);

	MarkGUCPrefixReserved("walsizer");
	return true;
}

/*
 * The settings in the policy's units, and the last recoveries.  The caller passes a copy of
 * shared memory, or is the worker, which alone changes recoveries while it runs.
 */
WalsizerConfig
walsizer_config(const WalsizerShared *shared)
{
	WalsizerConfig config = {
		.enable = walsizer_enable, .predict = predict,
		.prevent_disk_full = prevent_disk_full && !walsizer_dry_run, .max_mb = max_mb, .min_mb = min_mb,
		.threshold = threshold, .headroom = headroom, .sample_interval_ms = walsizer_interval,
		.lookback_hours = (lookback + 59) / 60, .max_disk_percent = walsizer_max_disk_percent,
		.max_recovery_ms = (int64) max_recovery_time * 1000,
		.replay_rate = (double) replay_rate * WALSIZER_MB,
	};

	memcpy(config.recoveries, shared->recoveries, sizeof(config.recoveries));
	return config;
}
