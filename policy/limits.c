/*-------------------------------------------------------------------------
 *
 * policy/limits.c
 *	  How large max_wal_size may be: walsizer.max, disk space, recovery time.
 *
 * Part of the policy: this file includes no server header.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "policy/internal.h"

/* What more free space allows must be at least this many times the old size. */
#define WORTH_RAISING		1.1

/* The disk is looked at after this many ticks at the latest ... */
#define LOOK_TICKS			10

/* ... and before this part of the free space can have been taken, ... */
#define NOTICEABLE_PART		16

/* ... where another program may begin to write this many bytes per second. */
#define UNSEEN_RATE			(64.0 * WALSIZER_MB)

/* One raise claims at most this part of the free space, ... */
#define CLAIMED_PART		10

/* ... or, if that is less than the smallest step, which is one segment, this. */
#define CLAIMED_BY_SEGMENT	8

/* A disk limit is followed down when it allows at most this part of the size. */
#define FOLLOW_BELOW		0.8

/* A lower size must leave this much room before it forces a checkpoint. */
#define LOWER_USED			0.5

/*
 * A size (MB) down to whole segments, which is what the server computes with, but
 * never below two: with less it would not start again.
 */
int64_t
walsizer_whole_segments(int64_t mb, const WalsizerSettings *settings)
{
	int64_t		segment_mb = settings->segment_bytes / WALSIZER_MB;

	return walsizer_max(mb - mb % segment_mb, 2 * segment_mb);
}

static void
consider_limit(WalsizerFigures *figures, int64_t limit_mb, WalsizerLimit kind)
{
	if (limit_mb < figures->limit_mb)
	{
		figures->limit_mb = limit_mb;
		figures->limit_kind = kind;
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

/*-------------------------------------------------------------------------
 * The disk
 *-------------------------------------------------------------------------
 */

/*
 * Must the disk be looked at with this sample?  Yes if what is written by the
 * next one could be a noticeable part of what was free at the last look: our own
 * WAL, what others take, and what somebody may begin to write.
 */
bool
walsizer_look_is_due(const WalsizerConfig *config, const WalsizerState *state,
					 const WalsizerSample *sample)
{
	int64_t		elapsed = sample->now - state->disk.looked_at;
	double		until_next = (double) (elapsed + config->sample_interval_ms);
	double		own;
	double		others;

	if (!state->disk.looked || !state->disk.known || sample->adjust || elapsed < 0 ||
		elapsed >= LOOK_TICKS * config->sample_interval_ms)
		return true;
	own = (double) walsizer_distance(state->disk.looked_lsn, sample->write_lsn) *
		until_next / (double) walsizer_max(elapsed, 1);
	others = ((double) state->disk.taken[0] + UNSEEN_RATE) * until_next / 1000.0;
	return own + others >= (double) state->disk.free / NOTICEABLE_PART;
}

/*
 * Keep the figures of a look at the disk.  If it failed the last ones stay.  The
 * same look may be kept twice.
 */
void
walsizer_observe_disk(WalsizerState *state, const WalsizerSample *sample)
{
	int64_t		elapsed = sample->now - state->disk.looked_at;
	int64_t		room = state->disk.free + state->disk.wal + state->disk.held;

	if (!sample->looked)
		return;
	if (sample->has_disk)
	{
		state->disk.free = walsizer_min(walsizer_max(sample->disk_free, 0), WALSIZER_MOST_BYTES);
		state->disk.wal = walsizer_min(walsizer_max(sample->disk_wal, 0), WALSIZER_MOST_BYTES);
		state->disk.held = walsizer_min(walsizer_max(sample->disk_held, 0), WALSIZER_MOST_BYTES);

		/* looks that follow each other closely say nothing about a rate */
		room -= state->disk.free + state->disk.wal + state->disk.held;
		if (state->disk.known && elapsed != 0)
		{
			state->disk.taken[1] = state->disk.taken[0];
			state->disk.taken[0] =
				walsizer_to_int64((double) room * 1000.0 / (double) walsizer_max(elapsed, 1000));
		}
		state->disk.alone = sample->disk_alone;
		state->disk.known = true;
	}
	state->disk.looked = true;
	state->disk.looked_at = sample->now;
	state->disk.looked_lsn = sample->write_lsn;
}

/*
 * The largest size (MB) that one raise may claim.  Other clusters on the same
 * volume may see the same free space at the same time, and none sees what the
 * others have claimed and not filled yet.  So what the new size may fill beyond
 * what WAL occupies already is a small part of the free space, less what others
 * are about to take if they go on (WAL of other clusters comes and goes a little
 * with each checkpoint).  The next step comes when this one is filled, and seen.
 * On a volume that holds nothing but our own WAL there is nobody to consider.
 *
 * A size is filled when WAL of (1 + c) times its trigger point is there, which is less
 * than the size by what rounding to segments took away.
 */
static int64_t
step_limit(const WalsizerConfig *config, const WalsizerState *state,
		   const WalsizerSettings *settings)
{
	int64_t		rate = walsizer_min(state->disk.taken[0], state->disk.taken[1]);
	double		taken = (double) rate * (double) walsizer_lead(config) / 1000.0;
	int64_t		left = walsizer_to_int64((double) state->disk.free - taken);
	double		spread = 1.0 + settings->completion_target;
	int64_t		smallest = (int64_t) ((double) settings->segment_bytes * spread) + 1;
	int64_t		claim = walsizer_max(left / CLAIMED_PART,
									 walsizer_min(smallest, left / CLAIMED_BY_SEGMENT));
	int64_t		segment_mb = settings->segment_bytes / WALSIZER_MB;
	int64_t		allowed = (int64_t) ((double) (state->disk.wal + claim) /
									 (double) settings->segment_bytes / spread);
	int64_t		segments = (int64_t) ((double) (allowed + 1) * spread) + 1;

	if (state->disk.alone)
		return WALSIZER_MOST_MB;
	while (segments > 2 &&
		   walsizer_checkpoint_segments(segments * segment_mb, settings) > allowed)
		segments--;
	return segments * segment_mb;
}

/*
 * How far a raise to this size (MB), which is within the limits, may go now: the
 * value in effect if what may be claimed now is not worth a change.  Where a claim
 * is small because the disk is nearly full, half of it is worth one.
 */
int64_t
walsizer_step_size(const WalsizerState *state, const WalsizerFigures *figures, int64_t size)
{
	int64_t		least = (int64_t) ((WORTH_RAISING - 1.0) * (double) figures->in_effect_mb);

	if (size <= figures->step_limit_mb)
		return size;
	least = walsizer_min(least, state->disk.free / (2 * CLAIMED_PART) / WALSIZER_MB);
	return figures->step_limit_mb >= figures->in_effect_mb + walsizer_max(least, 1) ?
		figures->step_limit_mb : figures->in_effect_mb;
}

/*-------------------------------------------------------------------------
 * All limits
 *-------------------------------------------------------------------------
 */

/*
 * Find the bounds (MB, in whole segments), and the smallest of them: fills
 * figures->limit_mb, limit_by, disk_limit, step_limit and recovery_limit.
 *
 * Disk: a share of what is free plus what WAL occupies already on behalf of
 * max_wal_size.  Clusters that share a volume and all want more thus come to equal
 * shares, each p / (1 + p * (N - 1)) of it.  Recovery: the size with which it takes
 * max_recovery_time, see walsizer_recovery_time().
 */
void
walsizer_find_limit(const WalsizerConfig *config, const WalsizerState *state,
					const WalsizerSample *sample, WalsizerFigures *figures)
{
	figures->limit_mb = figures->step_limit_mb = WALSIZER_MOST_MB;
	consider_limit(figures, config->max_mb, WALSIZER_LIMIT_MAX);
	if (state->disk.known)
	{
		int64_t		room = state->disk.free + state->disk.wal;

		figures->disk_limit_mb = walsizer_whole_segments(room / 100 *
														 config->max_disk_percent / WALSIZER_MB,
														 &sample->settings);
		figures->step_limit_mb = step_limit(config, state, &sample->settings);
		consider_limit(figures, figures->disk_limit_mb, WALSIZER_LIMIT_DISK);
	}
	if (config->max_recovery_ms > 0)
	{
		double		bytes = config->replay_rate * (double) config->max_recovery_ms / 1000.0;

		figures->recovery_limit_mb = walsizer_whole_segments(walsizer_to_int64(bytes) / WALSIZER_MB,
															 &sample->settings);
		consider_limit(figures, figures->recovery_limit_mb, WALSIZER_LIMIT_RECOVERY);
	}
	figures->limit_mb = walsizer_whole_segments(figures->limit_mb, &sample->settings);
}

/*
 * Free space is never still: what the disk allows beyond the value in effect must be
 * worth a change.
 */
bool
walsizer_disk_is_worth_raising(const WalsizerFigures *figures)
{
	return (double) figures->disk_limit_mb >= WORTH_RAISING * (double) figures->in_effect_mb;
}

/* Would a raise to this size (MB) come to anything within the bounds? */
bool
walsizer_worth_raising(const WalsizerFigures *figures, int64_t size)
{
	if (walsizer_min(size, figures->limit_mb) <= figures->in_effect_mb)
		return false;
	return size <= figures->limit_mb || figures->limit_kind != WALSIZER_LIMIT_DISK ||
		walsizer_disk_is_worth_raising(figures);
}

/*
 * This size (MB), or the original value if it is less: nothing lowers further.
 * For a size that a limit dictates walsizer.min is no part of it, for that would
 * keep a disk from being saved, nor is a planned load.
 */
int64_t
walsizer_least_size(const WalsizerState *state, const WalsizerSettings *settings, int64_t mb)
{
	return walsizer_max(walsizer_max(state->owner.original_mb, mb),
						2 * (settings->segment_bytes / WALSIZER_MB));
}

/*
 * Is it safe to lower to this size?  A checkpoint must not be forced by the
 * lowering itself.
 */
bool
walsizer_can_lower_to(const WalsizerFigures *figures, int64_t size, const WalsizerSettings *settings)
{
	return (double) figures->used <= LOWER_USED * (double) walsizer_trigger_point(size, settings);
}

/*
 * A limit has fallen below our own raise: follow it, down to the original value.
 * A disk that fills up does not wait for a good moment, and the checkpoint that
 * lowering may force is what frees WAL; but a fifth may come and go, free space is
 * never still.
 */
bool
walsizer_must_follow_limit(const WalsizerState *state, const WalsizerSample *sample,
						   const WalsizerFigures *figures, int64_t allowed)
{
	if (!walsizer_is_own_raise(state, figures->in_effect_mb) || allowed >= figures->in_effect_mb)
		return false;
	if (figures->limit_kind == WALSIZER_LIMIT_DISK)
		return sample->looked && sample->has_disk &&
			(double) allowed <= FOLLOW_BELOW * (double) figures->in_effect_mb;
	return walsizer_can_lower_to(figures, allowed, &sample->settings);
}
