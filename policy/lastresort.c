/*-------------------------------------------------------------------------
 *
 * policy/lastresort.c
 *	  WAL is about to fill its file system: request a checkpoint.
 *
 * A server that cannot write WAL ends, and cannot recover on the full file system
 * either.  No setting helps at that moment: only a checkpoint removes WAL.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "policy/internal.h"

/*
 * A checkpoint is expected to take as long as the last one requested, but at
 * least as long as writing what is dirty takes at SLOW_WRITES.  It is requested
 * this many times earlier, and at least LEAST_LEAD before the space ends.
 */
#define LEAST_LEAD			(INT64_C(10) * 1000)	/* ms */
#define LEAD_TIMES			2
#define SLOW_WRITES			(100.0 * WALSIZER_MB)	/* bytes per second */

/*
 * A load that pauses, or is slow, may go on at any moment as fast as it was.  What
 * was seen counts less and less, and nothing after this.
 */
#define PEAK_LASTS			(INT64_C(600) * 1000)	/* ms */

/* Worth it if it makes room for at least this part of what is left. */
#define WORTH_PART			2

/* A request that has not helped is repeated after this: a standby may skip one. */
#define STANDBY_RETRY		15000	/* ms */

/*
 * Room in segments that exist already: the one being written, and those ahead.  At
 * the end of one, the next need not exist.
 */
static int64_t
ready(const WalsizerSample *sample)
{
	int64_t		segment = sample->settings.segment_bytes;
	int64_t		used = (int64_t) (sample->write_lsn % (uint64_t) segment);

	return walsizer_clamp_bytes(sample->disk_ahead) + (used > 0 ? segment - used : 0);
}

/*
 * Follow the space for new WAL, and how fast it is lost, to our own WAL, at this
 * rate, and to others.  The smaller loss of the last two readings counts: files that
 * appear between two calls, and what others write at once, are no rate.
 */
static int64_t
observe_loss(WalsizerLastResort *resort, int64_t now, int64_t space, int64_t rate)
{
	int64_t		elapsed = now - resort->space_at;
	int64_t		before = resort->loss;
	double		remains = (double) walsizer_max(0, PEAK_LASTS - elapsed) / (double) PEAK_LASTS;

	resort->peak_rate = walsizer_max(walsizer_max(1, rate),
									 walsizer_to_int64((double) resort->peak_rate * remains));
	resort->loss = resort->space < 0 || elapsed <= 0 ? 0 :
		walsizer_to_int64((double) (resort->space - space) * 1000.0 / (double) elapsed);
	resort->space = space;
	resort->space_at = now;
	return walsizer_max(walsizer_max(1, rate), walsizer_min(before, resort->loss));
}

/*
 * When (ms) will the server's own next checkpoint be complete?  It is paced to end
 * when checkpoint_completion_target of the timeout or of the trigger point is
 * used up.  One that is late may take as long again.
 */
static double
until_complete(const WalsizerState *state, const WalsizerFigures *figures)
{
	const WalsizerSample *sample = &state->last;
	double		rate = (double) figures->rate / 1000.0;
	double		spread = sample->settings.completion_target;
	double		by_time = spread * (double) sample->settings.timeout_ms;
	double		by_wal = spread * (double) figures->trigger_point;
	double		elapsed = (double) (sample->now - state->checkpoints.redo_moved);
	double		wal = (double) walsizer_distance(sample->redo_lsn, sample->write_lsn);

	if (!sample->checkpoint_running)
	{
		by_time += (double) figures->until_timed_ms;
		/* none is expected that should have begun: a statement may have begun with a larger value */
		by_wal += figures->used < figures->trigger_point ?
			(double) (figures->trigger_point - figures->used) : (double) WALSIZER_MOST_BYTES;
	}
	else if (elapsed >= by_time || wal >= by_wal)
		return elapsed;
	else
	{
		by_time -= elapsed;
		by_wal -= wal;
	}
	return rate > 0 && by_wal / rate < by_time ? by_wal / rate : by_time;
}

/* How long (ms) before the space ends a checkpoint must be requested. */
static int64_t
lead(const WalsizerConfig *config, const WalsizerState *state, const WalsizerFigures *figures)
{
	int64_t		dirty = walsizer_min(walsizer_to_int64((double) state->last.buffers * WALSIZER_PAGE),
									 figures->used);
	int64_t		expected = walsizer_max(state->last_resort.took_ms,
										walsizer_to_int64((double) dirty * 1000.0 / SLOW_WRITES));

	return walsizer_max(LEAST_LEAD, LEAD_TIMES * expected) + 2 * config->sample_interval_ms;
}

/* Has the request been carried out, and did it help? */
static void
observe_request(WalsizerState *state)
{
	const WalsizerSample *sample = &state->last;
	WalsizerLastResort *resort = &state->last_resort;
	uint64_t	segment = (uint64_t) sample->settings.segment_bytes;
	int64_t		elapsed = sample->now - resort->asked_at;
	int64_t		newer;

	if (resort->asked_lsn == 0)
		return;
	if (!resort->complete && (sample->standby ? sample->completed_lsn != resort->asked_completed :
							  sample->completed_lsn >= resort->asked_lsn))
	{
		resort->complete = true;
		resort->took_ms = elapsed;
	}
	newer = walsizer_distance(resort->asked_lsn - resort->asked_lsn % segment,
							  sample->write_lsn - sample->write_lsn % segment);
	if ((resort->complete &&
		 resort->removable - newer <= resort->asked_removable / 2) ||
		elapsed >= (sample->standby ? STANDBY_RETRY : walsizer_patience(sample->settings.timeout_ms)))
		resort->asked_lsn = 0;
}

/*
 * Follow the room for new WAL, and judge whether it suffices.
 *
 * It is that for whole segments: one that does not fit is none.  Where others have
 * taken the last free space, WAL continues in the segments that exist.  The room must
 * last until a requested checkpoint is complete for the load at its fastest, and
 * until the server's own is for the load as it is.
 */
void
walsizer_observe_room(const WalsizerConfig *config, WalsizerState *state,
					  const WalsizerFigures *figures)
{
	const WalsizerSample *sample = &state->last;
	WalsizerLastResort *resort = &state->last_resort;
	int64_t		segment = sample->settings.segment_bytes;
	int64_t		exists = ready(sample);
	int64_t		kept;
	int64_t		soonest;		/* ms, if the load is at its fastest */
	double		loss;
	double		peak;
	double		lasts;

	if (!sample->disk_tried)
		return;
	resort->fills = false;
	if (!sample->disk_read)
		return;
	resort->removable = walsizer_clamp_bytes(sample->disk_removable);
	kept = state->disk.wal + state->disk.held - resort->removable - walsizer_clamp_bytes(sample->disk_ahead);
	resort->kept = kept > resort->removable + 2 * segment ? kept : 0;
	observe_request(state);
	resort->room = exists + state->disk.free - state->disk.free % segment;
	loss = (double) observe_loss(resort, sample->now, exists + state->disk.free, figures->rate);
	peak = (double) resort->peak_rate;
	lasts = (double) resort->room * 1000.0 / loss;
	if ((double) exists * loss > (double) resort->room * peak)
		lasts = (double) exists * 1000.0 / peak;
	resort->until_full_ms = walsizer_to_int64(lasts);
	soonest = walsizer_min(resort->until_full_ms,
						   walsizer_to_int64((double) resort->room * 1000.0 / peak));
	resort->fills = soonest <= lead(config, state, figures) &&
		lasts - 2 * (double) segment * 1000.0 / loss <= until_complete(state, figures);
}

/* Is the checkpoint that has just started the one that we requested? */
bool
walsizer_has_requested(const WalsizerState *state, const WalsizerSample *sample)
{
	uint64_t	asked = state->last_resort.asked_lsn;

	return asked != 0 &&
		(sample->standby || (state->last.redo_lsn < asked && sample->redo_lsn >= asked));
}

/*
 * Request a checkpoint if WAL fills the disk and that makes room, for any value of
 * max_wal_size, also an administrator's.  A lowering of our own raise comes first.  One
 * request at a time, and for a while none after one that did not help.
 */
void
walsizer_request_rule(const WalsizerConfig *config, WalsizerState *state, WalsizerDecision *decision)
{
	const WalsizerSample *sample = &state->last;
	WalsizerLastResort *resort = &state->last_resort;
	int64_t		least = walsizer_max(sample->settings.segment_bytes, resort->room / WORTH_PART);

	if (!sample->disk_tried || !resort->fills || !config->enable || !config->prevent_disk_full ||
		decision->action == WALSIZER_LOWER || resort->asked_lsn != 0 || resort->removable < least)
		return;
	resort->asked_lsn = sample->write_lsn;
	resort->asked_completed = sample->completed_lsn;
	resort->asked_at = sample->now;
	resort->asked_removable = resort->removable;
	resort->complete = false;
	decision->action = WALSIZER_CHECKPOINT;
	decision->reason = WALSIZER_BECAUSE_DISK_FULL;
	decision->target_mb = decision->figures.in_effect_mb;
}
