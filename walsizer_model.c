/*-------------------------------------------------------------------------
 *
 * walsizer_model.c
 *	  The physics behind the decision: the server's arithmetic, and what a
 *	  sequence of samples says about demand, rate, timer and checkpoints.
 *
 * Nothing here decides.  walsizer_observe() turns one sample into figures and
 * keeps what later samples need; the rules that use them are in
 * walsizer_policy.c.  This file includes no server header and calls nothing
 * outside of itself.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "walsizer_model.h"

/* Times and counters beyond this are nonsense, and could overflow sums. */
#define LIMIT_COUNT			(INT64_C(1) << 61)

/* The server's timer counts whole seconds on both of its ends. */
#define TIMER_SLACK			2000	/* ms */

/* Recent samples closer than this say more about the clock than the rate. */
#define RECENT_STEP			200 /* ms */

/* The WAL between two positions; 0 if they are not in that order. */
static int64_t
distance(uint64_t from, uint64_t to)
{
	if (to <= from)
		return 0;
	return to - from < (uint64_t) WALSIZER_LIMIT_BYTES ?
		(int64_t) (to - from) : WALSIZER_LIMIT_BYTES;
}

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
 * Memory of peaks
 *-------------------------------------------------------------------------
 */

/*
 * What demand (bytes) measured over one timeout says about another (ms).  In a
 * longer window the same load writes proportionally more.  In a shorter one it
 * may have come all at once, so nothing is taken off.
 */
int64_t
walsizer_scale_demand(int64_t demand, int64_t measured_timeout, int64_t timeout)
{
	if (timeout <= measured_timeout || measured_timeout <= 0)
		return demand;
	return walsizer_to_bytes((double) demand * ((double) timeout / (double) measured_timeout));
}

/* Keep the demand (bytes per timeout, ms) if it is the largest of its hour. */
void
walsizer_remember(WalsizerState *state, int64_t hour, int64_t demand, int64_t timeout)
{
	WalsizerPeak *peak;

	if (hour <= 0 || demand <= 0 || timeout <= 0)
		return;
	peak = &state->peaks[hour % WALSIZER_PEAK_SLOTS];
	if (peak->hour == hour &&
		walsizer_scale_demand(peak->demand, peak->timeout, timeout) >= demand)
		return;
	peak->hour = hour;
	peak->demand = walsizer_min(demand, WALSIZER_LIMIT_BYTES);
	peak->timeout = timeout;
	state->learned_hour = 0;
}

/*
 * The largest remembered demand (bytes per timeout, ms) of the lookback hours
 * before this one, and of this one.  0 if nothing is remembered.
 *
 * Hours to come are those of a wall clock that was set back.  They count like
 * the past: forgetting a demand is the one mistake that costs something.
 */
int64_t
walsizer_learned_demand(const WalsizerState *state, int64_t hour,
						int64_t lookback, int64_t timeout)
{
	int64_t		learned = 0;

	for (int i = 0; i < WALSIZER_PEAK_SLOTS; i++)
	{
		const WalsizerPeak *peak = &state->peaks[i];

		if (peak->hour > 0 &&
			walsizer_max(hour - peak->hour, peak->hour - hour) <= lookback)
			learned = walsizer_max(learned, walsizer_scale_demand(peak->demand,
														   peak->timeout, timeout));
	}
	return learned;
}

/* The same, remembered while neither the hour nor a peak has changed. */
int64_t
walsizer_learned_now(WalsizerState *state, const WalsizerSample *sample, int64_t lookback)
{
	int64_t		timeout = sample->settings.timeout;

	if (state->learned_hour != sample->hour ||
		state->learned_lookback != lookback || state->learned_timeout != timeout)
	{
		state->learned = walsizer_learned_demand(state, sample->hour, lookback, timeout);
		state->learned_hour = sample->hour;
		state->learned_lookback = lookback;
		state->learned_timeout = timeout;
	}
	return state->learned;
}

/*-------------------------------------------------------------------------
 * The window: WAL written in the trailing checkpoint_timeout
 *-------------------------------------------------------------------------
 */

static WalsizerMark *
mark_at(WalsizerState *state, int position)
{
	return &state->marks[(state->first_mark + position) % WALSIZER_WINDOW_SLOTS];
}

/*
 * The oldest mark leaves the window, and only now its demand becomes memory:
 * "learned" means learned from windows that ended more than a timeout ago.
 */
static void
drop_oldest_mark(WalsizerState *state)
{
	WalsizerMark *mark = mark_at(state, 0);

	walsizer_remember(state, mark->hour, mark->demand, state->last_settings.timeout);
	state->first_mark = (state->first_mark + 1) % WALSIZER_WINDOW_SLOTS;
	state->num_marks--;
}

static void
add_mark(WalsizerState *state, const WalsizerMark *mark)
{
	if (state->num_marks == WALSIZER_WINDOW_SLOTS)
		drop_oldest_mark(state);
	*mark_at(state, state->num_marks) = *mark;
	state->num_marks++;
}

/* Forced checkpoints since primed, whatever the capacity they were forced at. */
static int64_t
forced_total(const WalsizerState *state)
{
	return state->checkpoints[WALSIZER_CAUSE_FORCED] +
		state->checkpoints[WALSIZER_CAUSE_STALE];
}

/*
 * Measure W at this sample.  The position one timeout ago lies between two
 * marks as a rule and is interpolated; a window that reaches back less far
 * (after a start) is given as it is, with the time it covers.
 */
static void
measure_window(WalsizerState *state, const WalsizerSample *sample,
			   WalsizerFigures *figures)
{
	int64_t		start = sample->now - sample->settings.timeout;
	const WalsizerMark *oldest;
	int64_t		next_ms = sample->now;
	uint64_t	next_lsn = sample->write_lsn;
	int64_t		skipped = 0;

	while (state->num_marks > 1 && mark_at(state, 1)->ms <= start)
		drop_oldest_mark(state);
	if (state->num_marks == 0)
		return;

	oldest = mark_at(state, 0);
	if (state->num_marks > 1)
	{
		next_ms = mark_at(state, 1)->ms;
		next_lsn = mark_at(state, 1)->lsn;
	}
	if (oldest->ms < start && next_ms > oldest->ms)
		skipped = walsizer_to_bytes((double) distance(oldest->lsn, next_lsn) *
						   ((double) (start - oldest->ms) / (double) (next_ms - oldest->ms)));

	figures->demand = walsizer_max(0, distance(oldest->lsn, sample->write_lsn) - skipped);
	figures->window = walsizer_min(sample->now - oldest->ms, sample->settings.timeout);
	figures->forced = forced_total(state) - oldest->forced;
	figures->requested = state->requested_total - oldest->requested;
}

static void
note_window(WalsizerState *state, const WalsizerSample *sample, WalsizerFigures *figures)
{
	int64_t		step = sample->settings.timeout / WALSIZER_WINDOW_STEPS;
	WalsizerMark mark = {0};

	measure_window(state, sample, figures);
	if (sample->standby)
		figures->demand = state->primary_demand;
	if (state->num_marks > 0 &&
		sample->now - mark_at(state, state->num_marks - 1)->ms < step)
		return;

	mark.ms = sample->now;
	mark.lsn = sample->write_lsn;
	mark.demand = figures->demand;
	mark.hour = sample->hour;
	mark.forced = forced_total(state);
	mark.requested = state->requested_total;
	add_mark(state, &mark);
}

/* The largest W of the window itself, which is not memory yet. */
int64_t
walsizer_recent_peak(const WalsizerState *state)
{
	int64_t		peak = 0;

	for (int i = 0; i < state->num_marks; i++)
	{
		int			slot = (state->first_mark + i) % WALSIZER_WINDOW_SLOTS;

		peak = walsizer_max(peak, state->marks[slot].demand);
	}
	return peak;
}

/*
 * Bytes per second: the larger of the mean over the last few samples and the
 * newest two, so that a load that has just begun counts in full.
 */
static int64_t
note_rate(WalsizerState *state, const WalsizerSample *sample)
{
	int			newest = (state->next_recent + WALSIZER_RECENT_SLOTS - 1) % WALSIZER_RECENT_SLOTS;
	int			oldest = state->num_recent == WALSIZER_RECENT_SLOTS ? state->next_recent : 0;
	double		rate = 0;

	for (int i = 0; i < 2 && state->num_recent > 0; i++)
	{
		int			from = i == 0 ? oldest : newest;
		int64_t		elapsed = sample->now - state->recent_ms[from];
		double		wal = (double) distance(state->recent_lsn[from], sample->write_lsn);

		if (elapsed >= RECENT_STEP && wal * 1000.0 / (double) elapsed > rate)
			rate = wal * 1000.0 / (double) elapsed;
	}

	if (state->num_recent == 0 || sample->now - state->recent_ms[newest] >= RECENT_STEP)
	{
		state->recent_ms[state->next_recent] = sample->now;
		state->recent_lsn[state->next_recent] = sample->write_lsn;
		state->next_recent = (state->next_recent + 1) % WALSIZER_RECENT_SLOTS;
		if (state->num_recent < WALSIZER_RECENT_SLOTS)
			state->num_recent++;
	}
	return walsizer_to_bytes(rate);
}

/*
 * Take all demand of the window into memory, where it survives: for the last
 * state file before the server ends.
 */
void
walsizer_settle(WalsizerState *state)
{
	while (state->num_marks > 0)
		drop_oldest_mark(state);
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

	if (now > before)
		state->stale_capacity = state->stale_capacity > 0 ?
			walsizer_min(state->stale_capacity, before) : before;
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
	int64_t		moved = distance(state->last_redo - state->last_redo % (uint64_t) segment,
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
 * When did the redo pointer move?  It moved as the log passed it, so between
 * the sample before and this one by proportion.
 */
static int64_t
redo_moved(const WalsizerState *state, const WalsizerSample *sample)
{
	int64_t		elapsed = sample->now - state->last_ms;
	double		wal = (double) distance(state->last_lsn, sample->write_lsn);
	double		before = (double) distance(state->last_lsn, sample->redo_lsn);

	if (wal <= 0 || before >= wal)
		return sample->now;
	return state->last_ms + walsizer_min(elapsed, (int64_t) ((double) elapsed * (before / wal)));
}

/*
 * Follow the redo pointer and the counters.
 *
 * Each checkpoint resets the server's timer, and so does one that is skipped
 * because nothing was written: that one shows only in the counters.  Counters
 * appear late, so a skipped one is what is counted beyond the moves of the
 * redo pointer that still wait for their count.
 */
static void
note_checkpoints(WalsizerState *state, const WalsizerSample *sample)
{
	int64_t		requested = counter_progress(state->last_requested, sample->requested,
											 sample->counters_reset);
	int64_t		counted = requested + counter_progress(state->last_timed, sample->timed,
													   sample->counters_reset);

	state->requested_total = walsizer_min(state->requested_total + requested, LIMIT_COUNT);

	if (sample->redo_lsn != state->last_redo)
	{
		WalsizerCause cause = checkpoint_cause(state, sample);

		state->checkpoints[cause]++;
		state->redo_moved = redo_moved(state, sample);
		state->timer_start = state->redo_moved;
		state->uncounted++;

		/* Intervals that were cut short say nothing about whole ones. */
		if (cause == WALSIZER_CAUSE_TIMED)
		{
			state->paces[state->next_pace] = state->pace;
			state->next_pace = (state->next_pace + 1) % WALSIZER_PACED_INTERVALS;
		}
		state->pace = 0;

		/* A whole interval with more WAL than that: nobody uses it any more. */
		if (cause == WALSIZER_CAUSE_TIMED &&
			distance(state->last_redo, sample->redo_lsn) >= state->stale_capacity)
			state->stale_capacity = 0;
	}
	else if (counted > state->uncounted)
		state->timer_start = sample->now;

	if (sample->counters_reset)
		state->uncounted = sample->checkpoint_running ? 1 : 0;
	else
		state->uncounted = walsizer_max(0, state->uncounted - counted);
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
 * Disk; the primary of a standby
 *-------------------------------------------------------------------------
 */

static void
note_disk(WalsizerState *state, const WalsizerSample *sample)
{
	if (!sample->has_disk)
		return;
	state->has_disk = true;
	state->disk_room =
		walsizer_min(walsizer_max(sample->disk_free, 0), WALSIZER_LIMIT_BYTES) +
		walsizer_min(walsizer_max(sample->disk_wal, 0), WALSIZER_LIMIT_BYTES);
}

/*
 * W of the primary, from two of its checkpoints at least a timeout apart.
 * Restartpoints may leave some out, in catching up many: a longer distance is
 * scaled down to one timeout.
 */
static void
note_primary(WalsizerState *state, const WalsizerSample *sample)
{
	int64_t		timeout = sample->settings.timeout;
	int64_t		wal = distance(state->primary_redo, sample->primary_redo);
	int64_t		elapsed;

	if (sample->primary_time <= 0 || sample->primary_time >= LIMIT_COUNT / 1000)
		return;
	elapsed = (sample->primary_time - state->primary_time) * 1000;
	if (state->primary_time > 0 && elapsed >= 0 &&
		sample->primary_redo >= state->primary_redo)
	{
		if (elapsed + TIMER_SLACK < timeout)
			return;
		state->primary_demand = elapsed <= timeout + timeout / 2 ? wal :
			walsizer_to_bytes((double) wal * ((double) timeout / (double) elapsed));
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
								   walsizer_to_bytes((double) distance(sample->redo_lsn, sample->write_lsn) *
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
	change->forced = forced_total(state);
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
	decision->followed_forced = forced_total(state) - oldest->forced;
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
	state->uncounted = sample->checkpoint_running ? 1 : 0;
	state->stale_capacity = 0;
	state->pace = 0;
	for (int i = 0; i < WALSIZER_PACED_INTERVALS; i++)
		state->paces[i] = 0;
	state->num_changes = 0;
	state->first_mark = 0;
	state->next_recent = 0;
	state->num_recent = 0;
	state->cycle_start = sample->now;
	state->settle_until = 0;
	state->tried = 0;
	state->changed_at = sample->now;

	/* The interval under way began with a known position at a known time. */
	if (state->timer_start < sample->now && sample->redo_lsn <= sample->write_lsn &&
		sample->checkpoint_age < sample->settings.timeout)
	{
		WalsizerMark mark = {0};

		mark.ms = state->timer_start;
		mark.lsn = sample->redo_lsn;
		mark.hour = sample->hour;
		mark.forced = forced_total(state);
		mark.requested = state->requested_total;
		add_mark(state, &mark);
	}
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
		note_settings(state, sample);
		note_checkpoints(state, sample);
	}

	note_disk(state, sample);
	if (sample->standby)
		note_primary(state, sample);

	figures->in_force = settings->max_wal_size;
	figures->capacity = walsizer_capacity(settings->max_wal_size, settings);
	figures->used = distance(redo_segment, sample->write_lsn);
	figures->rate = note_rate(state, sample);
	figures->until_timed = until_timed(state, sample);
	figures->pace = note_pace(state, sample);
	figures->projected = walsizer_min(WALSIZER_LIMIT_BYTES, figures->used +
									  walsizer_to_bytes((double) figures->rate *
														((double) figures->until_timed / 1000.0)));
	figures->until_forced = -1;
	if (figures->rate > 0)
		figures->until_forced =
			walsizer_to_bytes((double) walsizer_max(0, figures->capacity - figures->used) *
							  1000.0 / (double) figures->rate);

	state->last_ms = sample->now;
	state->last_lsn = sample->write_lsn;
	state->last_redo = sample->redo_lsn;
	state->last_requested = sample->requested;
	state->last_timed = sample->timed;
	state->was_standby = sample->standby;
	state->last_settings = *settings;

	note_window(state, sample, figures);
}
