/*-------------------------------------------------------------------------
 *
 * policy/demand.c
 *	  How much WAL the server writes: now, in the trailing checkpoint_timeout,
 *	  and at most in each hour of the lookback.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "policy/internal.h"

/* Recent samples closer than this say more about the clock than the rate. */
#define RECENT_STEP			200 /* ms */

/*-------------------------------------------------------------------------
 * Memory of peaks
 *-------------------------------------------------------------------------
 */

/*
 * Keep the demand (bytes) if it is the largest of its hour, with the timeout (ms)
 * that it was measured with.  It stays what was measured, whatever the timeout is
 * later: what a longer one needs is learned by measuring.
 */
void
walsizer_remember(WalsizerState *state, int64_t hour, int64_t demand, int64_t timeout)
{
	WalsizerPeak *peak;

	if (hour <= 0 || demand <= 0 || timeout <= 0)
		return;
	peak = &state->peaks[hour % WALSIZER_PEAK_SLOTS];
	if (peak->hour == hour && peak->demand >= demand)
		return;
	peak->hour = hour;
	peak->demand = walsizer_min(demand, WALSIZER_LIMIT_BYTES);
	peak->timeout = timeout;
	state->learned_hour = 0;
}

/* What is remembered of an hour; NULL if that is nothing.  Takes any number. */
const WalsizerPeak *
walsizer_peak_of(const WalsizerState *state, int64_t hour)
{
	const WalsizerPeak *peak;

	if (hour <= 0)
		return NULL;
	peak = &state->peaks[hour % WALSIZER_PEAK_SLOTS];
	return peak->hour == hour ? peak : NULL;
}

/*
 * The largest remembered demand (bytes) of the lookback hours before this one, and
 * of this one.  0 if nothing is remembered.
 */
int64_t
walsizer_learned_demand(const WalsizerState *state, int64_t hour, int64_t lookback)
{
	int64_t		learned = 0;

	for (int i = 0; i < WALSIZER_PEAK_SLOTS; i++)
	{
		const WalsizerPeak *peak = &state->peaks[i];

		if (walsizer_is_remembered(peak, hour, lookback))
			learned = walsizer_max(learned, peak->demand);
	}
	return learned;
}

/* The same, remembered while neither the hour nor a peak has changed. */
int64_t
walsizer_learned_now(WalsizerState *state, const WalsizerSample *sample, int64_t lookback)
{
	if (state->learned_hour != sample->hour || state->learned_lookback != lookback)
	{
		state->learned = walsizer_learned_demand(state, sample->hour, lookback);
		state->learned_hour = sample->hour;
		state->learned_lookback = lookback;
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

	walsizer_remember(state, mark->hour, mark->demand, mark->timeout);
	state->first_mark = (state->first_mark + 1) % WALSIZER_WINDOW_SLOTS;
	state->num_marks--;
}

/*
 * Begin a new step of the window at this position (time in ms), at the price of
 * the oldest if need be.  It takes the largest demand since the last one, which
 * was measured with the timeout of the last sample.
 */
void
walsizer_add_mark(WalsizerState *state, int64_t ms, uint64_t lsn, int64_t hour)
{
	WalsizerMark mark = {0};

	mark.ms = ms;
	mark.lsn = lsn;
	mark.hour = hour;
	mark.demand = state->step_demand;
	mark.timeout = state->last_settings.timeout;
	mark.forced = walsizer_forced_total(state);
	mark.stale = state->checkpoints[WALSIZER_CAUSE_STALE];
	mark.requested = state->requested_total;
	state->step_demand = 0;

	if (state->num_marks == WALSIZER_WINDOW_SLOTS)
		drop_oldest_mark(state);
	*mark_at(state, state->num_marks) = mark;
	state->num_marks++;
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
	uint64_t	next_lsn = state->window_lsn;
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
		skipped = walsizer_to_int64((double) walsizer_distance(oldest->lsn, next_lsn) *
									((double) (start - oldest->ms) / (double) (next_ms - oldest->ms)));

	figures->demand = walsizer_max(0, walsizer_distance(oldest->lsn, state->window_lsn) - skipped);
	figures->window = walsizer_min(sample->now - oldest->ms, sample->settings.timeout);
	figures->forced = walsizer_forced_total(state) - oldest->forced;
	figures->stale = state->checkpoints[WALSIZER_CAUSE_STALE] - oldest->stale;
	figures->requested = state->requested_total - oldest->requested;
}

/*
 * The largest W since the cycle began: a burst that goes on over the end of one is
 * seen as a whole by the next.
 */
static void
note_cycle(WalsizerState *state, const WalsizerSample *sample, const WalsizerFigures *figures)
{
	if (state->cycle_over)
		state->cycle_demand = state->cycle_forced = 0;
	state->cycle_over = false;
	if (sample->now >= state->planned_until)
		state->cycle_demand = walsizer_max(state->cycle_demand, figures->demand);
	state->cycle_forced = walsizer_max(state->cycle_forced, figures->forced);
}

/*
 * Measure W, and remember where the log was from step to step.
 *
 * On a standby the log is the primary's: it may be replayed faster than it was
 * written.  While its position is not known nothing is measured, and a window never
 * reaches over such a time.
 */
void
walsizer_note_window(WalsizerState *state, const WalsizerSample *sample, WalsizerFigures *figures)
{
	int64_t		step = sample->settings.timeout / WALSIZER_WINDOW_STEPS;
	uint64_t	lsn = sample->standby ? sample->primary_lsn : sample->write_lsn;
	bool		begins = sample->standby && state->window_lsn == 0 && lsn != 0;

	while (state->num_marks > 0 && (begins || lsn < state->window_lsn))
		drop_oldest_mark(state);
	state->window_lsn = lsn;
	measure_window(state, sample, figures);
	if (sample->now >= state->planned_until)
		state->step_demand = walsizer_max(state->step_demand, figures->demand);
	if (sample->standby)		/* that one was counted when it was new */
		figures->demand = walsizer_max(figures->demand, state->primary_demand);
	note_cycle(state, sample, figures);
	if (state->num_marks > 0 &&
		sample->now - mark_at(state, state->num_marks - 1)->ms < step)
		return;

	walsizer_add_mark(state, sample->now, lsn, sample->hour);
}

/* The largest W of the window itself, which is not memory yet. */
int64_t
walsizer_recent_peak(const WalsizerState *state)
{
	int64_t		peak = state->step_demand;

	for (int i = 0; i < state->num_marks; i++)
	{
		const WalsizerMark *mark =
			&state->marks[(state->first_mark + i) % WALSIZER_WINDOW_SLOTS];

		peak = walsizer_max(peak, mark->demand);
	}
	return peak;
}

/*
 * Bytes per second: the larger of the mean over the last few samples and the
 * newest two, so that a load that has just begun counts in full.
 */
int64_t
walsizer_note_rate(WalsizerState *state, const WalsizerSample *sample)
{
	int			newest = (state->next_recent + WALSIZER_RECENT_SLOTS - 1) % WALSIZER_RECENT_SLOTS;
	int			oldest = state->num_recent == WALSIZER_RECENT_SLOTS ? state->next_recent : 0;
	double		rate = 0;

	for (int i = 0; i < 2 && state->num_recent > 0; i++)
	{
		int			from = i == 0 ? oldest : newest;
		int64_t		elapsed = sample->now - state->recent_ms[from];
		double		wal = (double) walsizer_distance(state->recent_lsn[from], sample->write_lsn);

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
	return walsizer_to_int64(rate);
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
	walsizer_remember(state, state->last_hour, state->step_demand,
					  state->last_settings.timeout);
	state->step_demand = 0;
}

/*
 * Forget all demand, remembered and in the window.  Ownership stays, but with
 * nothing known of what our raise was for, it may be taken back once two new
 * windows say that it is not needed.
 */
void
walsizer_forget(WalsizerState *state)
{
	for (int i = 0; i < WALSIZER_PEAK_SLOTS; i++)
		state->peaks[i].hour = 0;
	for (int i = 0; i < WALSIZER_PACED_INTERVALS; i++)
		state->paces[i] = 0;
	state->learned_hour = 0;
	state->num_marks = 0;
	state->step_demand = 0;
	state->primary_demand = 0;
	state->cycle_demand = state->cycle_forced = 0;
	state->changed_at = state->last_ms;
	state->keep_until = 0;
}
