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

#define RECENT_STEP			200 /* ms: closer samples give no useful rate */
#define MOST_COUNTED		1000	/* checkpoints of a primary in a timeout */

static WalsizerMark *
mark_at(WalsizerState *state, int position)
{
	return &state->window.marks[(state->window.first + position) % WALSIZER_WINDOW_SLOTS];
}

/*
 * Once the value is larger than where a peak was inflated, a clean demand that would
 * have been forced there shows what such a load really writes.  The oldest mark's does
 * if it lasts: as a load that was forced ends, demand is as large for a moment, too.
 */
static void
deflate(WalsizerState *state)
{
	const WalsizerSettings *settings = &state->last.settings;
	int64_t		trigger_point = settings->segment_bytes < WALSIZER_MB ? 0 :
		walsizer_trigger_point(settings->max_wal_size_mb, settings);
	const WalsizerMark *clean = mark_at(state, 0);
	/* a standby's is that of a whole interval of the primary */
	const WalsizerMark *later = mark_at(state, state->last.standby ? 0 : state->window.number / 2);
	int64_t		lasting = walsizer_min(clean->peak.demand, later->peak.demand);
	int64_t		largest = 0;	/* the oldest mark's may be of a load that has just begun */

	if (clean->peak.inflated_at != 0 || later->peak.inflated_at != 0 ||
		(!state->last.standby && later->ms - clean->ms < settings->timeout_ms / 3))
		return;
	for (int i = 0; i < state->window.number; i++)
		if (mark_at(state, i)->peak.inflated_at == 0)
			largest = walsizer_max(largest, mark_at(state, i)->peak.demand);
	for (int i = 0; i < WALSIZER_PEAK_SLOTS; i++)
	{
		WalsizerPeak *peak = &state->learned.peaks[i];

		if (peak->inflated_at == 0 || peak->inflated_at >= trigger_point || lasting < peak->inflated_at)
			continue;
		peak->demand = walsizer_min(peak->demand, largest);
		peak->inflated_at = 0;
		state->learned.hour = 0;
	}
}

/*
 * Remember this peak if it is the largest of its hour.  It stays as measured with its
 * timeout, whatever the timeout is later: what a longer one needs is learned by measuring.
 */
void
walsizer_remember(WalsizerState *state, const WalsizerPeak *peak)
{
	WalsizerPeak *kept;

	if (peak->hour <= 0 || peak->demand <= 0 || peak->timeout_ms <= 0)
		return;
	kept = &state->learned.peaks[peak->hour % WALSIZER_PEAK_SLOTS];
	if (kept->hour == peak->hour && kept->demand >= peak->demand)
		return;
	*kept = (WalsizerPeak) {peak->hour, walsizer_min(peak->demand, WALSIZER_MOST_BYTES),
							peak->timeout_ms, peak->inflated_at};
	state->learned.hour = 0;
}

/* The peak of an hour (since 1970), which may be any number; NULL if none. */
const WalsizerPeak *
walsizer_peak_of(const WalsizerState *state, int64_t hour)
{
	const WalsizerPeak *peak = &state->learned.peaks[walsizer_max(hour, 0) % WALSIZER_PEAK_SLOTS];

	return hour > 0 && peak->hour == hour ? peak : NULL;
}

/*
 * The clock was set: this hour (since 1970) is another one now.  Move what was
 * measured up to it.  Peaks that are as far off as no lookback may be of an
 * earlier clock, maybe the right one: a server may start before its clock is set.
 */
void
walsizer_move_peaks(WalsizerState *state, int64_t before, int64_t now)
{
	WalsizerLearned kept = state->learned;

	state->learned = (WalsizerLearned) {0};
	for (int i = 0; i < WALSIZER_PEAK_SLOTS; i++)
	{
		WalsizerPeak peak = kept.peaks[i];

		if (peak.hour <= before && peak.hour > before - WALSIZER_PEAK_SLOTS)
			peak.hour = walsizer_min(now, now - (before - peak.hour));
		walsizer_remember(state, &peak);
	}
}

/* The peak with the largest demand of lookback hours up to this one; all 0 if there is none. */
WalsizerPeak
walsizer_largest_peak(const WalsizerState *state, int64_t hour, int64_t lookback)
{
	WalsizerPeak largest = {0};

	for (int i = 0; i < WALSIZER_PEAK_SLOTS; i++)
	{
		const WalsizerPeak *peak = &state->learned.peaks[i];

		if (peak->demand > largest.demand && walsizer_is_remembered(state, peak, hour, lookback))
			largest = *peak;
	}
	return largest;
}

/* The same of now, cached until the hour, the lookback, the timeout or a peak changes. */
const WalsizerPeak *
walsizer_learned_now(WalsizerState *state, int64_t lookback)
{
	WalsizerLearned *learned = &state->learned;

	if (learned->hour != state->last.hour || learned->lookback_hours != lookback)
	{
		learned->largest = walsizer_largest_peak(state, state->last.hour, lookback);
		learned->hour = state->last.hour;
		learned->lookback_hours = lookback;
	}
	return &learned->largest;
}

/*
 * Remove the oldest mark.  Its demand is remembered only now: "learned" means
 * from windows that ended more than a timeout ago.
 */
static void
drop_oldest_mark(WalsizerState *state)
{
	deflate(state);
	walsizer_remember(state, &mark_at(state, 0)->peak);
	state->window.first = (state->window.first + 1) % WALSIZER_WINDOW_SLOTS;
	state->window.number--;
}

/*
 * Begin a new step of the window with the last sample, in place of the oldest if
 * the ring is full.  The mark takes the largest demand since the last one.
 */
void
walsizer_add_mark(WalsizerState *state)
{
	if (state->window.number == WALSIZER_WINDOW_SLOTS)
		drop_oldest_mark(state);
	state->window.step.hour = state->last.hour;
	state->window.step.timeout_ms = state->last.settings.timeout_ms;
	*mark_at(state, state->window.number++) = (WalsizerMark) {
		.ms = state->last.now, .lsn = state->window.lsn,
		.padding = state->window.padding, .peak = state->window.step,
		.forced = walsizer_forced_total(state),
		.forced_old_value = state->checkpoints.total[WALSIZER_CAUSE_OLD_VALUE],
		.requested = state->checkpoints.requested, .timed = state->checkpoints.timed,
	};
	state->window.step = (WalsizerPeak) {0};
}

/*
 * Measure demand.  The position one timeout ago usually lies between two marks
 * and is interpolated.  A shorter window (after a start) is not scaled.
 */
static void
measure_window(WalsizerState *state, WalsizerFigures *figures)
{
	int64_t		start = state->last.now - state->last.settings.timeout_ms;
	WalsizerMark now = {.ms = state->last.now, .lsn = state->window.lsn};
	const WalsizerMark *oldest;
	const WalsizerMark *next;
	int64_t		skipped = 0;
	int64_t		padding;

	while (state->window.number > 1 && mark_at(state, 1)->ms <= start)
		drop_oldest_mark(state);
	if (state->window.number == 0)
		return;

	oldest = mark_at(state, 0);
	next = state->window.number > 1 ? mark_at(state, 1) : &now;
	if (oldest->ms < start)		/* and start < next->ms */
		skipped = walsizer_to_int64((double) walsizer_distance(oldest->lsn, next->lsn) *
									((double) (start - oldest->ms) /
									 (double) (next->ms - oldest->ms)));

	figures->demand = walsizer_distance(oldest->lsn + (uint64_t) skipped, now.lsn);
	padding = walsizer_min(walsizer_max(0, state->window.padding - oldest->padding), figures->demand);
	figures->padding_percent =
		(int) walsizer_min(100, padding / walsizer_max(1, figures->demand / 100));
	figures->demand = walsizer_without_padding(figures->demand, padding);
	figures->forced = walsizer_forced_total(state) - oldest->forced;
	figures->forced_old_value =
		state->checkpoints.total[WALSIZER_CAUSE_OLD_VALUE] - oldest->forced_old_value;
	figures->requested = state->checkpoints.requested - oldest->requested;
	figures->timed = state->checkpoints.timed - oldest->timed;
}

/* This demand counts for the present step, if it is the largest. */
static void
note_demand(WalsizerState *state, int64_t demand, int64_t inflated_at)
{
	if (demand <= state->window.step.demand)
		return;
	state->window.step.demand = demand;
	state->window.step.inflated_at = inflated_at;
}

/*
 * Demand of the primary, from two of its checkpoints about one timeout apart.
 * Restartpoints may skip checkpoints, many while catching up, and the
 * primary's times are whole seconds: other distances are scaled to one
 * timeout.  Two more between them were forced, and inflate the demand.  An idle
 * primary makes no checkpoints: a burst after that shows only in the window, and
 * what was measured before ends with the next timeout but one.
 */
void
walsizer_observe_primary(WalsizerState *state, const WalsizerSample *sample)
{
	WalsizerPrimary *primary = &state->primary;
	int64_t		timeout = sample->settings.timeout_ms;
	int64_t		wal = walsizer_distance(primary->redo, sample->primary_redo);
	int64_t		elapsed;

	if (sample->now - primary->measured_at > 2 * timeout)
		primary->demand = 0;
	if (sample->primary_time <= 0 || sample->primary_time >= WALSIZER_MOST_BYTES / 1000)
		return;
	if (primary->time != 0 && sample->primary_time >= primary->time &&
		sample->primary_redo >= primary->redo)
	{
		elapsed = (sample->primary_time - primary->time) * 1000;
		if (sample->primary_redo != state->last.primary_redo)
			primary->checkpoints = (int) walsizer_min(primary->checkpoints + 1, MOST_COUNTED);
		if (elapsed < timeout - timeout / 4)
			return;
		/* a trigger point is counted from the start of a segment */
		primary->inflated_at = primary->checkpoints <= 2 ? 0 :
			wal / primary->checkpoints + sample->settings.segment_bytes;
		primary->demand = walsizer_to_int64((double) wal * ((double) timeout / (double) elapsed));
		primary->measured_at = sample->now;
		if (sample->now >= state->boost.planned_until)
			note_demand(state, primary->demand, primary->inflated_at);
	}
	primary->checkpoints = 0;
	primary->redo = sample->primary_redo;
	primary->time = sample->primary_time;
}

/*
 * Measure demand, and record the WAL position once per step.
 *
 * On a standby the position is the primary's, because replay may be faster than the
 * primary wrote.  While it is not known nothing is measured, and no window spans that time.
 */
void
walsizer_observe_window(WalsizerState *state, WalsizerFigures *figures)
{
	const WalsizerSample *sample = &state->last;
	int64_t		step = sample->settings.timeout_ms / WALSIZER_WINDOW_STEPS;
	uint64_t	lsn = sample->standby ? sample->primary_lsn : sample->write_lsn;
	bool		begins = sample->standby && state->window.lsn == 0 && lsn != 0;
	bool		planned = sample->now < state->boost.planned_until;
	bool		requested = state->last_resort.asked_at > 0 &&
		sample->now - state->last_resort.asked_at < sample->settings.timeout_ms;
	bool		several;

	while (state->window.number > 0 && (begins || lsn < state->window.lsn))
		drop_oldest_mark(state);
	state->window.lsn = lsn;
	measure_window(state, figures);
	/* with one that is not over, and may have been forced */
	several = figures->forced + (state->checkpoints.old.asked_at > 0 && !state->checkpoints.old.counted) > 1;
	if (!planned)
		note_demand(state, figures->demand,
					several ? state->checkpoints.forced_at : requested ? figures->trigger_point : 0);
	figures->inflated = several || requested;
	if (sample->standby && state->primary.demand > figures->demand)	/* in the step */
	{
		figures->demand = state->primary.demand;
		figures->inflated = state->primary.inflated_at != 0;
	}

	if (!planned)
		state->cycle.demand = walsizer_max(state->cycle.demand, figures->demand);
	state->cycle.forced = walsizer_max(state->cycle.forced, figures->forced - figures->forced_old_value);

	if (state->window.number == 0 ||
		sample->now - mark_at(state, state->window.number - 1)->ms >= step)
		walsizer_add_mark(state);
}

/* A first sample takes all slots: there is no rate yet. */
void
walsizer_begin_rate(WalsizerState *state, const WalsizerSample *sample)
{
	for (int i = 0; i < WALSIZER_RATE_SLOTS; i++)
	{
		state->rate.ms[i] = sample->now;
		state->rate.lsn[i] = sample->write_lsn;
	}
}

/*
 * The mean rate (bytes per second) at which this position was reached since a kept
 * sample; 0 if it is too close.
 */
static int64_t
rate_since(const WalsizerRate *rate, int slot, int64_t now, uint64_t lsn)
{
	return now - rate->ms[slot] < RECENT_STEP ? 0 :
		walsizer_to_int64((double) walsizer_distance(rate->lsn[slot], lsn) * 1000.0 /
						  (double) (now - rate->ms[slot]));
}

/*
 * The recent rate of WAL without padding (bytes per second): since the oldest or the newest
 * kept sample, the larger one, so that a load that has just begun counts in full.
 */
int64_t
walsizer_observe_rate(WalsizerState *state, const WalsizerSample *sample)
{
	WalsizerRate *kept = &state->rate;
	int			newest = (kept->next + WALSIZER_RATE_SLOTS - 1) % WALSIZER_RATE_SLOTS;
	uint64_t	lsn;
	int64_t		rate;

	state->window.padding =
		walsizer_min(WALSIZER_MOST_BYTES, state->window.padding +
					 walsizer_min(walsizer_max(sample->padding, 0),
								  walsizer_distance(state->last.write_lsn, sample->write_lsn)));
	lsn = sample->write_lsn - (uint64_t) state->window.padding;
	rate = walsizer_max(rate_since(kept, kept->next, sample->now, lsn),
						rate_since(kept, newest, sample->now, lsn));

	if (sample->now - kept->ms[newest] >= RECENT_STEP)
	{
		kept->ms[kept->next] = sample->now;
		kept->lsn[kept->next] = lsn;
		kept->next = (kept->next + 1) % WALSIZER_RATE_SLOTS;
	}
	return rate;
}

/* Remember all demand in the window, and empty the window. */
void
walsizer_remember_window(WalsizerState *state)
{
	walsizer_add_mark(state);
	while (state->window.number > 0)
		drop_oldest_mark(state);
}

/*
 * Forget all demand, remembered and in the window.  Ownership stays.  Nobody knows any more
 * what our raise was for: it may be lowered once two new windows do not need it.
 */
void
walsizer_forget(WalsizerState *state)
{
	state->learned = (WalsizerLearned) {0};
	state->window.number = 0;
	state->window.step.demand = 0;
	state->primary.demand = 0;
	state->curve = (WalsizerCurve) {0};
	state->cycle.demand = state->cycle.forced = state->cycle.old_value = 0;
	state->pacing.changed_at = state->last.now;
	state->pacing.keep_ms = 0;
}
