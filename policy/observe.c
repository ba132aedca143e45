/*-------------------------------------------------------------------------
 *
 * policy/observe.c
 *	  The physics behind the decision: the server's arithmetic, and what a
 *	  sequence of samples says about demand, rate, timer and checkpoints.
 *
 * Nothing here decides.  walsizer_observe() turns one sample into figures and
 * keeps what later samples need; the rules that use them are in
 * policy/step.c, the window and the memory of peaks in policy/demand.c.
 * This file includes no server header.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "policy/internal.h"

/* Times and counters beyond this are nonsense, and could overflow sums. */
#define LIMIT_COUNT			(INT64_C(1) << 61)

/* The server's timer counts whole seconds on both of its ends. */
#define TIMER_SLACK			2000	/* ms */

/*
 * After so many whole intervals in which nothing acted upon an old capacity,
 * nothing does any more.
 */
#define STALE_INTERVALS		3

#define HOUR_MS				(INT64_C(3600) * 1000)

/* What a checkpoint itself and an idle server log is less than this. */
#define NOTHING_WRITTEN		65536	/* bytes */

/*-------------------------------------------------------------------------
 * The server's arithmetic
 *-------------------------------------------------------------------------
 */

/*
 * CheckPointSegments for a value of max_wal_size (MB): how many segments, from
 * the start of the one with the redo pointer, force a checkpoint when filled.
 *
 * Integer and double steps are those of CalculateCheckpointSegments() in
 * xlog.c, the same in 15 to 19.  Result at least 1.
 */
int64_t
walsizer_checkpoint_segments(int64_t max_wal_size_mb,
							 const WalsizerSettings *settings)
{
	int64_t		segments = max_wal_size_mb / (settings->segment_size / WALSIZER_MB);
	double		target = (double) segments / (1.0 + settings->completion_target);

	return walsizer_max(1, (int64_t) target);
}

/*
 * Bytes of WAL, counted from the start of the segment with the redo pointer,
 * at which a checkpoint is forced.
 */
int64_t
walsizer_capacity(int64_t max_wal_size_mb, const WalsizerSettings *settings)
{
	return walsizer_checkpoint_segments(max_wal_size_mb, settings) *
		settings->segment_size;
}

/*
 * The smallest max_wal_size (MB, whole segments) with which wal_bytes of WAL
 * between two redo pointers never force a checkpoint, wherever in its segment
 * the first one lies.
 *
 * The redo pointer may lie anywhere in its segment, hence one segment more
 * than the WAL fills; two segments are the least with which the server starts
 * again; the loop mends what rounding may have taken away.  A size beyond what
 * the server can hold is cut off there.
 */
int64_t
walsizer_size_for(int64_t wal_bytes, const WalsizerSettings *settings)
{
	int64_t		segment_mb = settings->segment_size / WALSIZER_MB;
	int64_t		most = WALSIZER_LIMIT_MB / segment_mb;
	int64_t		wal = walsizer_min(walsizer_max(wal_bytes, 0), WALSIZER_LIMIT_BYTES);
	int64_t		needed = (wal + settings->segment_size - 1) / settings->segment_size + 1;
	int64_t		segments;

	if (needed >= most)
		return most * segment_mb;

	segments = (int64_t) ((double) needed * (1.0 + settings->completion_target));
	segments = walsizer_max(2, segments);
	while (segments < most &&
		   walsizer_checkpoint_segments(segments * segment_mb, settings) < needed)
		segments++;

	return walsizer_min(segments, most) * segment_mb;
}

/*-------------------------------------------------------------------------
 * Is the input usable?
 *-------------------------------------------------------------------------
 */

static bool
settings_valid(const WalsizerSettings *settings)
{
	int64_t		size = settings->segment_size;

	return size >= WALSIZER_MB && size <= 1024 * WALSIZER_MB &&
		(size & (size - 1)) == 0 &&
		settings->max_wal_size > 0 && settings->max_wal_size <= WALSIZER_LIMIT_MB &&
		settings->completion_target >= 0.0 && settings->completion_target <= 1.0 &&
		settings->timeout > 0 && settings->timeout <= WALSIZER_LIMIT_MB * 1000;
}

/*
 * Does the sample continue what the state has seen?  Not if time or WAL ran
 * backwards (a restored clone, a broken clock): windows across such a step
 * mean nothing.
 */
static bool
sample_continues(const WalsizerState *state, const WalsizerSample *sample)
{
	return state->primed &&
		sample->now >= state->last_ms &&
		sample->write_lsn >= state->last_lsn &&
		sample->redo_lsn >= state->last_redo &&
		sample->standby == state->was_standby &&
		sample->settings.segment_size == state->last_settings.segment_size;
}

/*-------------------------------------------------------------------------
 * Checkpoints: counters, causes, timer
 *-------------------------------------------------------------------------
 */

/* How far a counter went; after a reset, or backwards, it began anew at 0. */
static int64_t
counter_progress(int64_t before, int64_t now, bool reset)
{
	return reset || now < before ? now : now - before;
}

/*
 * The clock on the wall was set: hours that have passed without us seeing them,
 * or more than the lookback of hours to come, may take all peaks out of it.
 * Nothing is taken back for that before there was time to learn anew, or to
 * correct the clock.
 */
static void
note_clock(WalsizerState *state, const WalsizerSample *sample)
{
	int64_t		elapsed = sample->now - state->last_ms;
	int64_t		jumped = sample->hour - state->last_hour;

	if (jumped < 0 || jumped > elapsed / HOUR_MS + 1)
		state->keep_until = sample->now + WALSIZER_KEEP_RAISE;
}

/*
 * The smallest capacity that some process may have acted upon.  A statement
 * keeps the max_wal_size with which it began, so after a raise the smaller
 * capacity lives on in it (server: PostgresMain rereads the configuration
 * between commands only).  A lowering has no such effect to explain.
 */
static void
note_settings(WalsizerState *state, const WalsizerSample *sample)
{
	int64_t		before = walsizer_capacity(state->last_settings.max_wal_size,
										   &state->last_settings);
	int64_t		now = walsizer_capacity(sample->settings.max_wal_size, &sample->settings);

	/* What was measured with the old timeout is kept apart. */
	if (sample->settings.timeout != state->last_settings.timeout && state->num_marks > 0)
		walsizer_add_mark(state, state->last_ms, state->window_lsn, state->last_hour);

	if (now > before)
	{
		state->stale_capacity = state->stale_capacity > 0 ?
			walsizer_min(state->stale_capacity, before) : before;
		state->stale_quiet = 0;
	}
	else if (state->stale_capacity >= now)
		state->stale_capacity = 0;
}

/*
 * What started the checkpoint that moved the redo pointer?  Forced by WAL if,
 * counted from the segment of the old redo pointer, the capacity was used up:
 * that is the server's own test (XLogCheckpointNeeded in xlog.c), and it is
 * made before the redo pointer moves.  Where the capacity has just changed,
 * the smaller one counts.
 */
static WalsizerCause
checkpoint_cause(const WalsizerState *state, const WalsizerSample *sample)
{
	int64_t		segment = sample->settings.segment_size;
	int64_t		moved = walsizer_distance(state->last_redo - state->last_redo % (uint64_t) segment,
										  sample->redo_lsn);
	int64_t		capacity = walsizer_capacity(sample->settings.max_wal_size,
											 &sample->settings);
	int64_t		before = walsizer_capacity(state->last_settings.max_wal_size,
										   &state->last_settings);
	int64_t		slack = TIMER_SLACK + sample->now - state->last_ms;
	bool		due = sample->now - state->timer_start + slack >= sample->settings.timeout;

	if (moved >= walsizer_min(capacity, before))
		return WALSIZER_CAUSE_FORCED;
	if (due)
		return WALSIZER_CAUSE_TIMED;
	if (state->stale_capacity > 0 && moved >= state->stale_capacity)
		return WALSIZER_CAUSE_STALE;
	return WALSIZER_CAUSE_OTHER;
}

/*
 * Does a statement still use the old capacity?  A process tests it only when it
 * is the one that fills a segment, and others fill most of them, the WAL writer
 * first.  So one interval that ran to its end proves nothing, but several do.
 */
static void
note_stale(WalsizerState *state, const WalsizerSample *sample, WalsizerCause cause)
{
	if (cause == WALSIZER_CAUSE_STALE)
		state->stale_quiet = 0;
	else if (cause == WALSIZER_CAUSE_TIMED &&
			 walsizer_distance(state->last_redo, sample->redo_lsn) >= state->stale_capacity &&
			 ++state->stale_quiet >= STALE_INTERVALS)
		state->stale_capacity = 0;
}

/*
 * When did the redo pointer move?  It moved as the log passed it, so between
 * the sample before and this one by proportion.
 */
static int64_t
redo_moved(const WalsizerState *state, const WalsizerSample *sample)
{
	int64_t		elapsed = sample->now - state->last_ms;
	double		wal = (double) walsizer_distance(state->last_lsn, sample->write_lsn);
	double		before = (double) walsizer_distance(state->last_lsn, sample->redo_lsn);

	if (wal <= 0 || before >= wal)
		return sample->now;
	return state->last_ms + walsizer_min(elapsed, (int64_t) ((double) elapsed * (before / wal)));
}

/*
 * Follow the redo pointer and the counters.
 *
 * Each checkpoint resets the server's timer, and so does a timed one that is
 * skipped because nothing was written.  That one shows only in its counter,
 * which also counts those that are not skipped, and late: but then there is WAL
 * since the redo pointer, or too little for the timer to matter.
 */
static void
note_checkpoints(WalsizerState *state, const WalsizerSample *sample)
{
	int64_t		requested = counter_progress(state->last_requested, sample->requested,
											 sample->counters_reset);
	int64_t		timed = counter_progress(state->last_timed, sample->timed,
										 sample->counters_reset);

	state->requested_total = walsizer_min(state->requested_total + requested, LIMIT_COUNT);

	if (sample->redo_lsn != state->last_redo)
	{
		WalsizerCause cause = checkpoint_cause(state, sample);

		state->checkpoints[cause]++;
		state->redo_moved = redo_moved(state, sample);
		state->timer_start = state->redo_moved;

		/* Intervals that were cut short say nothing about whole ones. */
		if (cause == WALSIZER_CAUSE_TIMED)
		{
			state->paces[state->next_pace] = state->pace;
			state->next_pace = (state->next_pace + 1) % WALSIZER_PACED_INTERVALS;
		}
		state->pace = 0;

		note_stale(state, sample, cause);
	}
	else if (timed > 0 && walsizer_distance(sample->redo_lsn, sample->write_lsn) < NOTHING_WRITTEN)
		state->timer_start = sample->now;
}

/*
 * Time until the timer starts a checkpoint, ms.  Past its time the checkpoint
 * is about to start; well past it, the server had nothing to write and the
 * timer went round without us seeing it.  While a checkpoint outlasts the
 * timeout the next one starts at its end, whenever that is: soon.
 */
static int64_t
until_timed(const WalsizerState *state, const WalsizerSample *sample)
{
	int64_t		timeout = sample->settings.timeout;
	int64_t		elapsed = sample->now - state->timer_start;
	int64_t		slack = TIMER_SLACK + sample->now - state->last_ms;

	if (elapsed < timeout)
		return timeout - elapsed;
	if (sample->checkpoint_running || elapsed % timeout < slack)
		return 0;
	return timeout - elapsed % timeout;
}

/*-------------------------------------------------------------------------
 * The primary of a standby
 *-------------------------------------------------------------------------
 */

/*
 * W of the primary, from two of its checkpoints that are about a timeout apart.
 * Restartpoints may leave some out, in catching up many, and the primary's
 * timer counts whole seconds: other distances are scaled to one timeout.  An idle
 * primary makes no checkpoints; the burst after that is seen in the window only.
 */
static void
note_primary(WalsizerState *state, const WalsizerSample *sample)
{
	int64_t		timeout = sample->settings.timeout;
	int64_t		wal = walsizer_distance(state->primary_redo, sample->primary_redo);
	int64_t		elapsed;

	if (sample->primary_time <= 0 || sample->primary_time >= LIMIT_COUNT / 1000)
		return;
	elapsed = (sample->primary_time - state->primary_time) * 1000;
	if (state->primary_time > 0 && elapsed >= 0 &&
		sample->primary_redo >= state->primary_redo)
	{
		if (elapsed < timeout - timeout / 4)
			return;
		state->primary_demand = walsizer_to_int64((double) wal * ((double) timeout /
																  (double) elapsed));
		if (sample->now >= state->planned_until)
			state->step_demand = walsizer_max(state->step_demand, state->primary_demand);
	}
	state->primary_redo = sample->primary_redo;
	state->primary_time = sample->primary_time;
}

/*
 * How much capacity would let time, not WAL, pace the checkpoint that writes
 * since the redo pointer moved: the server compares WAL / capacity with
 * time / checkpoint_timeout (IsCheckpointOnSchedule in checkpointer.c).  Page
 * images come right after the redo pointer, so this can be much more than W.
 * The first tenth is not worth its price.
 *
 * The answer is the least of the last intervals: what happens in each of them
 * is the nature of the load, what happens in one may be chance.
 */
static int64_t
note_pace(WalsizerState *state, const WalsizerSample *sample)
{
	double		timeout = (double) sample->settings.timeout;
	double		elapsed = (double) (sample->now - state->redo_moved);
	double		writing = sample->settings.completion_target * timeout;
	int64_t		pace = WALSIZER_LIMIT_BYTES;

	if (elapsed > 0 && elapsed >= 0.1 * writing && elapsed <= writing)
		state->pace = walsizer_max(state->pace,
								   walsizer_to_int64((double) walsizer_distance(sample->redo_lsn, sample->write_lsn) *
													 (timeout / elapsed)));
	for (int i = 0; i < WALSIZER_PACED_INTERVALS; i++)
		pace = walsizer_min(pace, state->paces[i]);
	return pace;
}

/*-------------------------------------------------------------------------
 * What came of a change
 *-------------------------------------------------------------------------
 */

/* This size (MB) has just been seen in force for the first time. */
void
walsizer_note_change(WalsizerState *state, const WalsizerSample *sample)
{
	WalsizerChange *change;

	if (state->num_changes == WALSIZER_CHANGE_SLOTS)
	{
		for (int i = 1; i < state->num_changes; i++)
			state->changes[i - 1] = state->changes[i];
		state->num_changes--;
	}
	change = &state->changes[state->num_changes++];
	change->ms = sample->now;
	change->size = sample->settings.max_wal_size;
	change->forced = walsizer_forced_total(state);
}

/* Report the oldest change if a whole timeout has passed since. */
void
walsizer_follow_up(WalsizerState *state, const WalsizerSample *sample,
				   WalsizerDecision *decision)
{
	const WalsizerChange *oldest = &state->changes[0];

	if (state->num_changes == 0 || sample->now - oldest->ms < sample->settings.timeout)
		return;
	decision->followed = true;
	decision->followed_size = oldest->size;
	decision->followed_forced = walsizer_forced_total(state) - oldest->forced;
	for (int i = 1; i < state->num_changes; i++)
		state->changes[i - 1] = state->changes[i];
	state->num_changes--;
}

/*-------------------------------------------------------------------------
 * One sample
 *-------------------------------------------------------------------------
 */

/* Begin anew with this sample; what the state file keeps stays. */
static void
prime(WalsizerState *state, const WalsizerSample *sample)
{
	int64_t		age = walsizer_max(0, sample->checkpoint_age) % sample->settings.timeout;

	walsizer_settle(state);
	state->primed = true;
	state->timer_start = sample->now - walsizer_min(age, sample->now);
	state->redo_moved = state->timer_start;
	state->stale_capacity = 0;
	state->stale_quiet = 0;
	state->pace = 0;
	for (int i = 0; i < WALSIZER_PACED_INTERVALS; i++)
		state->paces[i] = 0;
	state->num_changes = 0;
	state->step_demand = 0;
	state->first_mark = 0;
	state->next_recent = 0;
	state->num_recent = 0;
	state->cycle_start = sample->now;
	state->cycle_over = false;
	state->cycle_demand = state->cycle_forced = 0;
	state->window_lsn = 0;
	state->settle_until = 0;
	state->planned_until = 0;
	state->tried = 0;
	state->edit_tried = 0;
	state->changed_at = sample->now;
	state->raise_not_before = 0;
	state->keep_until = sample->now + WALSIZER_KEEP_RAISE;
	state->lower_due = false;

	/* The interval under way began with a known position at a known time. */
	if (!sample->standby &&
		state->timer_start < sample->now && sample->redo_lsn <= sample->write_lsn &&
		sample->checkpoint_age < sample->settings.timeout)
		walsizer_add_mark(state, state->timer_start, sample->redo_lsn, sample->hour);
}

/* Is the sample one that arithmetic can be done with? */
bool
walsizer_sample_valid(const WalsizerSample *sample)
{
	return settings_valid(&sample->settings) &&
		sample->now >= 0 && sample->now < LIMIT_COUNT &&
		sample->hour >= 0 && sample->hour < LIMIT_COUNT &&
		sample->requested >= 0 && sample->requested < LIMIT_COUNT &&
		sample->timed >= 0 && sample->timed < LIMIT_COUNT;
}

/*
 * Take in one valid sample: bring the state up to date and fill the figures
 * that describe the server (not those that depend on walsizer's settings).
 */
void
walsizer_observe(WalsizerState *state, const WalsizerSample *sample,
				 WalsizerFigures *figures)
{
	const WalsizerSettings *settings = &sample->settings;
	uint64_t	redo_segment = sample->redo_lsn -
		sample->redo_lsn % (uint64_t) settings->segment_size;

	if (!sample_continues(state, sample))
		prime(state, sample);
	else
	{
		note_clock(state, sample);
		note_settings(state, sample);
		note_checkpoints(state, sample);
	}

	if (sample->standby)
		note_primary(state, sample);

	figures->in_force = settings->max_wal_size;
	figures->capacity = walsizer_capacity(settings->max_wal_size, settings);
	figures->used = walsizer_distance(redo_segment, sample->write_lsn);
	figures->rate = walsizer_note_rate(state, sample);
	figures->until_timed = until_timed(state, sample);
	figures->pace = note_pace(state, sample);
	figures->projected = walsizer_min(WALSIZER_LIMIT_BYTES, figures->used +
									  walsizer_to_int64((double) figures->rate *
														((double) figures->until_timed / 1000.0)));
	figures->until_forced = -1;
	if (figures->rate > 0)
		figures->until_forced =
			walsizer_to_int64((double) walsizer_max(0, figures->capacity - figures->used) *
							  1000.0 / (double) figures->rate);

	state->last_ms = sample->now;
	state->last_hour = sample->hour;
	state->last_lsn = sample->write_lsn;
	state->last_redo = sample->redo_lsn;
	state->last_requested = sample->requested;
	state->last_timed = sample->timed;
	state->was_standby = sample->standby;
	state->last_settings = *settings;

	walsizer_note_window(state, sample, figures);
}
