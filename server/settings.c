/*-------------------------------------------------------------------------
 *
 * server/settings.c
 *	  The variables of walsizer's settings, which walsizer.c defines.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "server/walsizer.h"

bool		walsizer_enable;
bool		walsizer_dry_run;
bool		walsizer_predict;
int			walsizer_max_mb;
int			walsizer_min_mb;
int			walsizer_threshold;
int			walsizer_interval;
int			walsizer_lookback;
int			walsizer_max_disk_percent;
int			walsizer_max_recovery_time;
int			walsizer_replay_rate;
double		walsizer_headroom;
char	   *walsizer_last_written;

/*
 * The settings in the policy's units, and the last recoveries.  The caller
 * passes a copy of shared memory, or is the worker, which alone changes
 * recoveries while it runs.
 */
WalsizerConfig
walsizer_config(const WalsizerShared *shared)
{
	WalsizerConfig config = {0};

	config.enable = walsizer_enable;
	config.predict = walsizer_predict;
	config.max_mb = walsizer_max_mb;
	config.min_mb = walsizer_min_mb;
	config.threshold = walsizer_threshold;
	config.headroom = walsizer_headroom;
	config.sample_interval_ms = walsizer_interval;
	config.lookback_hours = (walsizer_lookback + 59) / 60;
	config.max_disk_percent = walsizer_max_disk_percent;
	config.max_recovery_ms = (int64) walsizer_max_recovery_time * 1000;
	config.replay_rate = (double) walsizer_replay_rate * WALSIZER_MB;
	memcpy(config.recoveries, shared->recoveries, sizeof(config.recoveries));
	return config;
}
