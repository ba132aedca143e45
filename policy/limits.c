/*-------------------------------------------------------------------------
 *
 * policy/limits.c
 *	  How large max_wal_size may be: walsizer.max, disk space, recovery time.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "policy/internal.h"

/*
 * The least factor of a raise to a limit of the disk, of one step towards a limit
 * that swings, and of a raise to the limit of recovery.
 */
#define WORTH_RAISING		1.1
#define WORTH_A_STEP		1.3
#define WORTH_RECOVERY		1.25

/*
 * The disk is read after LOOK_TICKS at the latest, and before 1/NOTICEABLE_PART
 * of the free space can be gone.  Others may begin to write at UNSEEN_RATE.
 * Where reading takes long, because pg_wal has many files, LOOK_COST times as
 * long, but at most MOST_BETWEEN_LOOKS, is the latest instead.
 */
#define LOOK_TICKS			10
#define LOOK_COST			1000
#define MOST_BETWEEN_LOOKS	(INT64_C(300) * 1000)	/* ms */
#define NOTICEABLE_PART		16
#define UNSEEN_RATE			(64.0 * WALSIZER_MB)	/* bytes per second */

#define MOST_FAILURES		5	/* in a row to read the disk: then nothing is known */

/* A raise claims 1/10 of the free space, or one segment if within 1/8. */
#define CLAIMED_PART		10
#define CLAIMED_BY_SEGMENT	8

/*
 * Free space and what WAL consists of vary all the time, so a measured limit is
 * followed down to at most this part of the size, from which it takes WORTH_RECOVERY
 * to come back; and recovery must take more than this many times what is allowed.
 */
#define FOLLOW_BELOW		0.8
#define FOLLOW_RECOVERY_ABOVE	1.1

/* At most this part of the new trigger point may be used before a lowering. */
#define LOWER_USED			0.5

/*
 * Round a size (MB) down to whole segments, as the server does, but to at
 * least two: the server does not start with less.
 */
int64_t
walsizer_whole_segments(int64_t mb, const WalsizerSettings *settings)
{
	int64_t		segment_mb = settings->segment_bytes / WALSIZER_MB;

	return walsizer_max(mb - mb % segment_mb, 2 * segment_mb);
}

/*
 * Must the disk be read for this sample?  Yes if what is written until the next one, by
 * us, by others, and by a program that may begin, could be a noticeable part of the space
 * last found free.  So the figures are good enough for a raise at any time.
 */
bool
walsizer_look_is_due(const WalsizerConfig *config, const WalsizerState *state,
					 const WalsizerSample *sample)
{
	int64_t		most = walsizer_max(LOOK_TICKS * config->sample_interval_ms,
									walsizer_min(LOOK_COST * state->disk.look_ms, MOST_BETWEEN_LOOKS));
	int64_t		elapsed;
	double		until_next;
	double		own;
	double		others;

	if (!walsizer_sample_valid(sample))
		return false;
	elapsed = sample->now - state->disk.looked_at;
	until_next = (double) (elapsed + config->sample_interval_ms);
	if (!state->disk.known || state->disk.failures > 0 || sample->act_now || elapsed < 0 ||
		elapsed >= most)
		return true;
	own = (double) walsizer_distance(state->disk.looked_lsn, sample->write_lsn) *
		until_next / (double) walsizer_max(elapsed, 1);
	others = ((double) state->disk.others_rate + UNSEEN_RATE) * until_next / 1000.0;
	return own + others >= (double) state->disk.free / NOTICEABLE_PART;
}

/*
 * Keep the disk figures of a sample.  If the reading failed, keep those before,
 * but not for long: it is tried again at each sample.
 */
void
walsizer_observe_disk(WalsizerState *state, const WalsizerSample *sample)
{
	int64_t		elapsed = sample->now - state->disk.looked_at;
	int64_t		room = state->disk.free + state->disk.wal + state->disk.held;

	if (!sample->disk_tried)
		return;
	if (!sample->disk_read)
	{
		if (++state->disk.failures == MOST_FAILURES)
			state->disk = (WalsizerDisk) {0};
		return;
	}
	state->disk.free = walsizer_clamp_bytes(sample->disk_free);
	state->disk.wal = walsizer_clamp_bytes(sample->disk_wal);
	state->disk.held = walsizer_clamp_bytes(sample->disk_held);

	/* the same moment gives no rate; the first reading gives 0 */
	room -= state->disk.free + state->disk.wal + state->disk.held;
	if (elapsed > 0)
		state->disk.others_rate =
			walsizer_to_int64((double) room * 1000.0 / (double) walsizer_max(elapsed, 1000));
	state->disk.alone = sample->disk_alone;
	state->disk.known = true;
	state->disk.looked_at = sample->now;
	state->disk.looked_lsn = sample->write_lsn;
	state->disk.look_ms = walsizer_max(0, walsizer_min(sample->look_ms, MOST_BETWEEN_LOOKS));
	state->disk.failures = 0;
}

/*
 * The largest size (MB) that one raise may reach now.  Other clusters on the
 * file system may see the same free space at the same time, and none sees what
 * the others have claimed and not filled yet.  So beyond the existing WAL the
 * new size may fill only a small part of the free space, less what others are about
 * to take, until it is filled, and seen, or an hour later: the WAL of a short load is
 * recycled before it fills the size.  A file system of our WAL alone needs none.
 *
 * A size is filled by WAL of (1 + c) times its trigger point, which is less
 * than the size by what rounding to segments took away.
 */
static int64_t
step_limit(const WalsizerConfig *config, const WalsizerState *state)
{
	const WalsizerSettings *settings = &state->last.settings;
	double		taken = (double) state->disk.others_rate * (double) walsizer_lead(config) / 1000.0;
	int64_t		left = walsizer_to_int64((double) state->disk.free - taken);
	double		spread = 1.0 + settings->completion_target;
	int64_t		smallest = (int64_t) ((double) settings->segment_bytes * spread) + 1;
	int64_t		claim = walsizer_max(left / CLAIMED_PART,
									 walsizer_min(smallest, left / CLAIMED_BY_SEGMENT));
	int64_t		segment_mb = settings->segment_bytes / WALSIZER_MB;
	int64_t		ours = walsizer_max(state->disk.wal,
									state->last.now - state->pacing.changed_at < WALSIZER_KEEP_RAISE ? 0 :
									settings->max_wal_size_mb * WALSIZER_MB);
	int64_t		allowed = (int64_t) ((double) (ours + claim) /
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
 * How far a raise to this size (MB), which is within the limits, may go now:
 * the value in effect if that is not worth a change.  If a claim is small
 * because the disk is nearly full, half of it is worth a change, but not while
 * the limit swings: there, each fall takes all steps back.
 */
int64_t
walsizer_step_size(const WalsizerState *state, const WalsizerFigures *figures, int64_t size)
{
	bool		swings = walsizer_limit_swings(state);
	double		factor = swings ? WORTH_A_STEP : WORTH_RAISING;
	int64_t		least = (int64_t) ((factor - 1.0) * (double) figures->in_effect_mb);

	if (size <= figures->step_limit_mb)
		return size;
	if (!swings)
		least = walsizer_min(least, state->disk.free / (2 * CLAIMED_PART) / WALSIZER_MB);
	return figures->step_limit_mb >= figures->in_effect_mb + least ?
		figures->step_limit_mb : figures->in_effect_mb;
}

/*
 * Fill the figures of limits, in whole segments but for walsizer.max itself.
 *
 * Disk: a part p of (free space + existing WAL that max_wal_size covers).  N clusters that
 * share a file system and all want more arrive at p / (1 + p * (N - 1)) each.
 */
void
walsizer_find_limit(const WalsizerConfig *config, const WalsizerState *state,
					WalsizerFigures *figures)
{
	const WalsizerSettings *settings = &state->last.settings;

	figures->limits_mb[WALSIZER_LIMIT_MAX] = config->max_mb;
	figures->limit_mb = figures->step_limit_mb = WALSIZER_MOST_MB;
	if (state->disk.known)
	{
		int64_t		room = state->disk.free + state->disk.wal;

		figures->limits_mb[WALSIZER_LIMIT_DISK] =
			walsizer_whole_segments(room / 100 * config->max_disk_percent / WALSIZER_MB, settings);
		figures->step_limit_mb = step_limit(config, state);
	}
	if (config->max_recovery_ms > 0)
		figures->limits_mb[WALSIZER_LIMIT_RECOVERY] =
			walsizer_whole_segments(walsizer_recovery_limit(config, state), settings);
	for (int i = 0; i < WALSIZER_LIMITS; i++)
	{
		if (figures->limits_mb[i] == 0 || figures->limits_mb[i] >= figures->limit_mb)
			continue;
		figures->limit_mb = figures->limits_mb[i];
		figures->limit_kind = (WalsizerLimit) i;
	}
	figures->limit_mb = walsizer_whole_segments(figures->limit_mb, settings);
}

/*
 * Would a raise to this size (MB) change anything within the limits?  A measured
 * limit varies all the time, so a raise to it must be worth a change.
 */
bool
walsizer_worth_raising(const WalsizerFigures *figures, int64_t size)
{
	if (walsizer_min(size, figures->limit_mb) <= figures->in_effect_mb)
		return false;
	return size <= figures->limit_mb || figures->limit_kind == WALSIZER_LIMIT_MAX ||
		(double) figures->limit_mb >= (double) figures->in_effect_mb *
		(figures->limit_kind == WALSIZER_LIMIT_RECOVERY ? WORTH_RECOVERY : WORTH_RAISING);
}

/* This size (MB), but at least the original value and two segments: nothing lowers further. */
int64_t
walsizer_least_size(const WalsizerState *state, int64_t mb)
{
	return walsizer_max(walsizer_max(state->owner.original_mb, mb),
						2 * (state->last.settings.segment_bytes / WALSIZER_MB));
}

/*
 * Is lowering to this size (MB) safe, so that it forces no checkpoint?  On a
 * standby it always is: a forced restartpoint is harmless, and replay of a
 * steady load is never near the redo pointer of the last one.  Of a trigger point of
 * one segment any part may be used, as redo may lie at its end: what is expected counts.
 */
static bool
can_lower_to(const WalsizerState *state, const WalsizerFigures *figures, int64_t size)
{
	const WalsizerSettings *settings = &state->last.settings;
	int64_t		trigger_point = walsizer_trigger_point(size, settings);

	return state->last.standby || (double) figures->used <= LOWER_USED * (double) trigger_point ||
		(trigger_point == settings->segment_bytes && figures->projected < trigger_point);
}

/* What to set to lower to this size (MB): less if a limit is less, 0 if that forces a checkpoint. */
int64_t
walsizer_lowered_size(const WalsizerState *state, const WalsizerFigures *figures, int64_t size)
{
	size = walsizer_min(size, walsizer_least_size(state, figures->limit_mb));
	return can_lower_to(state, figures, size) ? size : 0;
}

/*
 * Must our own raise be lowered to what this limit allows (MB)?  A filling disk does
 * not wait for a good moment: the checkpoint that the lowering may force frees WAL.
 */
static bool
must_follow(const WalsizerConfig *config, const WalsizerState *state,
			const WalsizerFigures *figures, WalsizerLimit kind, int64_t allowed)
{
	if (kind == WALSIZER_LIMIT_DISK)
		return state->last.disk_tried && state->last.disk_read &&
			(double) allowed <= FOLLOW_BELOW * (double) figures->in_effect_mb;
	if (kind == WALSIZER_LIMIT_RECOVERY &&
		(double) walsizer_recovery_time(config, state, &state->last, figures->in_effect_mb) <=
		FOLLOW_RECOVERY_ABOVE * (double) config->max_recovery_ms)
		return false;
	/* a better moment than the first sample after a checkpoint does not come */
	return allowed < figures->in_effect_mb &&
		(can_lower_to(state, figures, allowed) ||
		 (double) (figures->used - state->last.settings.segment_bytes) <=
		 (double) figures->rate * (double) config->sample_interval_ms / 1000.0);
}

/*
 * The size (MB) to which our own raise must be lowered now because of a limit, *kind; 0:
 * none.  walsizer.min and a planned load do not count: they would keep the disk full.
 */
int64_t
walsizer_limit_to_follow(const WalsizerConfig *config, const WalsizerState *state,
						 const WalsizerFigures *figures, WalsizerLimit *kind)
{
	int64_t		below = (int64_t) (FOLLOW_BELOW * (double) figures->in_effect_mb);
	int64_t		size = 0;

	*kind = WALSIZER_UNLIMITED;
	if (!walsizer_is_own_raise(state))
		return 0;
	for (int i = 0; i < WALSIZER_LIMITS; i++)
	{
		int64_t		limit = i == WALSIZER_LIMIT_RECOVERY ?
			walsizer_min(figures->limits_mb[i], below) : figures->limits_mb[i];
		int64_t		allowed = walsizer_least_size(state, walsizer_whole_segments(limit, &state->last.settings));

		if (limit == 0 || (size != 0 && allowed >= size) ||
			!must_follow(config, state, figures, (WalsizerLimit) i, allowed))
			continue;
		size = allowed;
		*kind = (WalsizerLimit) i;
	}
	return size;
}
