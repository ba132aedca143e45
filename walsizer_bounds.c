/*-------------------------------------------------------------------------
 *
 * walsizer_bounds.c
 *	  How large max_wal_size may be: walsizer.max, disk space, recovery time.
 *
 * Part of the policy: this file includes no server header.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "walsizer_model.h"

/* What more free space allows must be at least this many times the old size. */
#define WORTH_RAISING		1.1

/*
 * A size (MB) down to whole segments, which is what the server computes with, but
 * never below two: with less it would not start again.
 */
int64_t
walsizer_whole_segments(int64_t mb, const WalsizerSettings *settings)
{
	int64_t		segment_mb = settings->segment_size / WALSIZER_MB;

	return walsizer_max(mb - mb % segment_mb, 2 * segment_mb);
}

static void
consider_bound(WalsizerFigures *figures, int64_t limit, WalsizerBound bound)
{
	if (limit < figures->limit)
	{
		figures->limit = limit;
		figures->limit_by = bound;
	}
}

/*
 * Time (ms) that recovery takes at worst with a size (MB): a crash comes just
 * before a checkpoint completes, and then about max_wal_size of WAL is to be
 * replayed, which is what the server derives its CheckPointSegments from.
 */
int64_t
walsizer_recovery_time(const WalsizerConfig *config, int64_t mb)
{
	return walsizer_to_int64((double) mb * (double) WALSIZER_MB * 1000.0 / config->replay_rate);
}

/*
 * Find the bounds (MB, in whole segments), and the smallest of them: fills
 * figures->limit, limit_by, disk_limit and recovery_limit.
 *
 * Disk: a share of what is free plus what WAL occupies already on behalf of
 * max_wal_size.  Recovery: the size with which it takes max_recovery_time, see
 * walsizer_recovery_time().
 */
void
walsizer_find_limit(const WalsizerConfig *config, const WalsizerState *state,
					const WalsizerSample *sample, WalsizerFigures *figures)
{
	figures->limit = WALSIZER_LIMIT_MB;
	consider_bound(figures, config->max, WALSIZER_BOUND_MAX);
	if (state->has_disk)
	{
		figures->disk_limit = walsizer_whole_segments(state->disk_room / 100 *
													  config->max_disk_percent / WALSIZER_MB,
													  &sample->settings);
		consider_bound(figures, figures->disk_limit, WALSIZER_BOUND_DISK);
	}
	if (config->max_recovery_time > 0)
	{
		double		bytes = config->replay_rate * (double) config->max_recovery_time / 1000.0;

		figures->recovery_limit = walsizer_whole_segments(walsizer_to_int64(bytes) / WALSIZER_MB,
														  &sample->settings);
		consider_bound(figures, figures->recovery_limit, WALSIZER_BOUND_RECOVERY);
	}
	figures->limit = walsizer_whole_segments(figures->limit, &sample->settings);
}

/*
 * Would a raise to this size (MB) come to anything within the bounds?  Free space is
 * never still: what it allows beyond the value in force must be worth a change.
 */
bool
walsizer_worth_raising(const WalsizerFigures *figures, int64_t size)
{
	if (walsizer_min(size, figures->limit) <= figures->in_force)
		return false;
	return size <= figures->limit || figures->limit_by != WALSIZER_BOUND_DISK ||
		(double) figures->limit >= WORTH_RAISING * (double) figures->in_force;
}
