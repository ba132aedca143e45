/*-------------------------------------------------------------------------
 *
 * policy/observe.c
 *	  What a sequence of samples says about rate, timer and checkpoints.
 *
 * Nothing here decides.  walsizer_observe() turns one sample into figures and
 * keeps what later samples need.  The rules are in policy/rules.c, the window
 * and the memory of peaks in policy/demand.c.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "policy/internal.h"

#define MOST_COUNT			(INT64_C(1) << 61) /* more could overflow sums */
#define MOST_AT_ONCE		1000	/* checkpoints between two samples */

/*
 * Does the sample continue the state?  Not if time or WAL ran backwards (a
 * restored clone, a broken clock): a window across such a step means nothing.
 */
static bool
sample_continues(const WalsizerState *state, const WalsizerSample *sample)
{
	return state->primed && sample->now >= state->last.now &&
		sample->write_lsn >= state->last.write_lsn && sample->redo_lsn >= state->last.redo_lsn &&
		sample->standby == state->last.standby &&
		sample->settings.segment_bytes == state->last.settings.segment_bytes;
}

/* Add how far a counter went, and return that; after a reset, or backwards, it began at 0. */
static int64_t
add_progress(int64_t *total, int64_t before, int64_t now, bool reset)
{
	int64_t		progress = reset || now < before ? now : now - before;

	*total = walsizer_min(*total + progress, MOST_COUNT);
	return progress;
}

/*
 * When the system clock is set, the peaks of the hours before it move with it.  Demand
 * lowers nothing before there was time to learn anew, or to correct the clock.
 */
static void
observe_clock(WalsizerState *state, const WalsizerSample *sample)
{
	int64_t		elapsed = sample->now - state->last.now;
	int64_t		jumped = sample->hour - state->last.hour;

	if (jumped >= 0 && jumped <= elapsed / WALSIZER_HOUR + 1)
		return;
	walsizer_move_peaks(state, state->last.hour, sample->hour);
	walsizer_keep(&state->pacing, sample->now, WALSIZER_KEEP_RAISE);
}

/*
 * Keep apart what was measured with the old timeout.  The window now reaches
 * back for the new one, maybe into a planned load.
 */
static void
observe_timeout(WalsizerState *state, const WalsizerSample *sample)
{
	walsizer_add_mark(state);
	walsizer_begin_curve(state, sample);
	state->learned.hour = 0;	/* others count now */
	state->cycle.over = true;
	if (sample->now < state->boost.planned_until)
		state->boost.planned_until = sample->now + sample->settings.timeout_ms;
}

/* Keep this trigger point, the newest first, and the others once. */
static void
keep_old_value(int64_t *points, int64_t newest)
{
	int64_t		moving = newest;

	for (int i = 0; i < WALSIZER_OLD_VALUES && moving != 0; i++)
	{
		int64_t		here = points[i];

		points[i] = moving;
		moving = here != newest ? here : 0;
	}
}

/*
 * Keep the trigger points that a process may still use.  A statement keeps the
 * max_wal_size with which it began (PostgresMain rereads the configuration between
 * commands only), so a raise leaves the smaller one in it.  A lowering leaves a larger
 * one, which explains nothing.  Long after their last sign, another cause is more likely.
 */
static void
observe_settings(WalsizerState *state, const WalsizerSample *sample)
{
	int64_t		before = walsizer_trigger_point(state->last.settings.max_wal_size_mb,
												&state->last.settings);
	int64_t		now = walsizer_trigger_point(sample->settings.max_wal_size_mb, &sample->settings);

	if (sample->settings.timeout_ms != state->last.settings.timeout_ms)
		observe_timeout(state, sample);
	if (now != before)
		state->checkpoints.forced_before = state->checkpoints.total[WALSIZER_CAUSE_FORCED];
	if (now > before)
	{
		keep_old_value(state->checkpoints.old.points, before);
		state->checkpoints.old.seen = sample->now;
	}
	if (sample->now - state->checkpoints.old.seen >
		WALSIZER_HOUR + 3 * sample->settings.timeout_ms)
		state->checkpoints.old = (WalsizerOldValues) {0};
}

/* WAL (bytes) as the server counts it: from the start of the redo pointer's segment. */
static int64_t
counted(uint64_t redo, uint64_t to, const WalsizerSettings *settings)
{
	return walsizer_distance(redo - redo % (uint64_t) settings->segment_bytes, to);
}

/* Is the next timed checkpoint due, as far as both clocks tell? */
static bool
timer_is_due(const WalsizerState *state, const WalsizerSample *sample)
{
	int64_t		slack = WALSIZER_TIMER_SLACK + sample->now - state->last.now;

	return sample->now - state->checkpoints.timer_start + slack >= sample->settings.timeout_ms;
}

/* The last old trigger point within this much WAL before the redo pointer moved; 0: none. */
static int64_t
old_value(const WalsizerState *state, int64_t moved, int64_t within)
{
	int64_t		found = 0;

	for (int i = 0; i < WALSIZER_OLD_VALUES; i++)
	{
		int64_t		point = state->checkpoints.old.points[i];

		if (point <= moved && moved - point <= within)
			found = walsizer_max(found, point);
	}
	return found;
}

/*
 * What started the checkpoint that moved the redo pointer?  WAL forced it if
 * the distance from the start of the old redo pointer's segment is at least
 * the trigger point: that is the server's own test (XLogCheckpointNeeded in
 * xlog.c), made before the redo pointer moves.  *forced_at: which trigger point.
 *
 * A statement with an old value forces one soon after it has passed its trigger point, or
 * when the checkpoint that is running then is over.  In that case, judge_old_value() tells.
 */
static WalsizerCause
checkpoint_cause(const WalsizerState *state, const WalsizerSample *sample, int64_t *forced_at)
{
	int64_t		moved = counted(state->last.redo_lsn, sample->redo_lsn, &sample->settings);
	int64_t		trigger_point = walsizer_trigger_point(sample->settings.max_wal_size_mb,
													   &sample->settings);

	*forced_at = trigger_point;
	if (moved >= trigger_point)
		return WALSIZER_CAUSE_FORCED;
	if (walsizer_has_requested(state, sample))
		return WALSIZER_CAUSE_DISK_FULL;
	if (timer_is_due(state, sample))
		return WALSIZER_CAUSE_TIMED;
	*forced_at = old_value(state, moved, 2 * sample->settings.segment_bytes +
						   walsizer_distance(state->last.write_lsn, sample->write_lsn));
	if (*forced_at > 0)
		return WALSIZER_CAUSE_OLD_VALUE;
	if (state->last.checkpoint_running)
		*forced_at = old_value(state, moved, moved);
	return WALSIZER_CAUSE_OTHER;
}

/*
 * The checkpoint from this redo pointer, maybe asked for at an old trigger point, is over.
 * For WAL the checkpointer takes its time: completion_target of the timeout or of the
 * trigger point (IsCheckpointOnSchedule in checkpointer.c), if there is much to write.
 * If it took less than half of that, a command may have asked for it, at this distance
 * by chance: then it decides nothing, and counts as forced only if the distance was exact.
 */
static void
judge_old_value(WalsizerState *state, const WalsizerSample *sample, uint64_t redo)
{
	const WalsizerSettings *settings = &sample->settings;
	WalsizerCheckpoints *checkpoints = &state->checkpoints;
	double		half = settings->completion_target / 2;
	double		wal = (double) walsizer_distance(redo, sample->write_lsn);
	double		time = (double) (sample->now - checkpoints->redo_moved);
	bool		slow;

	if (checkpoints->old.asked_at == 0)
		return;
	slow = half > 0 &&
		(time >= half * (double) settings->timeout_ms ||
		 wal >= half * (double) walsizer_trigger_point(settings->max_wal_size_mb, settings));
	state->cycle.old_value += slow;
	if (slow)
		checkpoints->old.seen = sample->now;
	if (slow && !checkpoints->old.counted)
		checkpoints->forced_at = checkpoints->old.asked_at;
	if (!checkpoints->old.counted)
		checkpoints->total[slow ? WALSIZER_CAUSE_OLD_VALUE : WALSIZER_CAUSE_OTHER]++;
	checkpoints->old.asked_at = 0;
}

/*
 * When (ms) did the redo pointer move?  WAL passed it at that time, so
 * interpolate between the sample before and this one.
 */
static int64_t
redo_moved(const WalsizerState *state, const WalsizerSample *sample)
{
	int64_t		elapsed = sample->now - state->last.now;
	int64_t		wal = walsizer_distance(state->last.write_lsn, sample->write_lsn);
	int64_t		before = walsizer_distance(state->last.write_lsn, sample->redo_lsn);

	if (wal == 0)
		return sample->now;
	return walsizer_min(sample->now, state->last.now +
						walsizer_to_int64((double) elapsed * ((double) before / (double) wal)));
}

/*
 * Follow the redo pointer and the counters.
 *
 * Each checkpoint resets the server's timer, and so does a timed one that is
 * skipped because nothing was written.  A skipped one shows only in the
 * counter, which counts the others, too, and late: but then there is WAL since
 * the redo pointer, or the timer is not due.
 *
 * Several can be forced between two samples: as many as it counts, if there is WAL for them.
 */
static void
observe_checkpoints(const WalsizerConfig *config, WalsizerState *state, const WalsizerSample *sample)
{
	bool		moved = sample->redo_lsn != state->last.redo_lsn;
	int64_t		forced_at = 0;
	WalsizerCause cause = moved ? checkpoint_cause(state, sample, &forced_at) : WALSIZER_CAUSE_OTHER;
	int64_t		timed = add_progress(&state->checkpoints.timed, state->last.timed,
									 sample->timed, sample->counters_reset);
	int64_t		requested = add_progress(&state->checkpoints.requested, state->last.requested,
										 sample->requested, sample->counters_reset);
	int64_t		several = forced_at == 0 ? 1 :
		walsizer_max(1, walsizer_min(walsizer_min(requested, MOST_AT_ONCE),
									 counted(state->last.redo_lsn, sample->redo_lsn, &sample->settings) / forced_at));

	if (sample->completed_lsn != state->last.completed_lsn)
	{
		state->checkpoints.completed_at = sample->now;
		state->checkpoints.failures = 0;
	}
	walsizer_observe_curve(state, sample, cause);
	if (moved)
	{
		/* if one was running, and none has completed since, it failed and is tried again */
		if (state->last.checkpoint_running && sample->checkpoint_running &&
			sample->completed_lsn == state->last.completed_lsn)
			state->checkpoints.failures++;
		else
		{
			judge_old_value(state, sample, state->last.redo_lsn);
			state->checkpoints.old.counted = cause != WALSIZER_CAUSE_OTHER || forced_at == 0;
			state->checkpoints.old.asked_at =
				cause == WALSIZER_CAUSE_OLD_VALUE || cause == WALSIZER_CAUSE_OTHER ? forced_at : 0;
			state->checkpoints.total[cause] += state->checkpoints.old.counted ? several : 0;
		}
		if (cause == WALSIZER_CAUSE_FORCED || cause == WALSIZER_CAUSE_OLD_VALUE)
			state->checkpoints.forced_at = forced_at;
		state->checkpoints.redo_moved = redo_moved(state, sample);
		state->checkpoints.timer_start = state->checkpoints.redo_moved;
		state->checkpoints.padding_at_redo = state->window.padding;
		walsizer_observe_wal_contents(config, state, sample, cause);
	}
	else if (timed > 0 && timer_is_due(state, sample) &&
			 walsizer_distance(sample->redo_lsn, sample->write_lsn) < WALSIZER_NOTHING_WRITTEN)
		state->checkpoints.timer_start = sample->now;
	if (!sample->checkpoint_running)
		judge_old_value(state, sample, sample->redo_lsn);
}

/*
 * Time until the timer starts a checkpoint, ms.  Just past its time the checkpoint is
 * about to start.  Well past it, the server had nothing to write and the timer restarted
 * unseen.  While a checkpoint outlasts the timeout, the next one starts at its end: soon.
 */
static int64_t
until_timed(const WalsizerState *state, const WalsizerSample *sample)
{
	int64_t		timeout = sample->settings.timeout_ms;
	int64_t		elapsed = sample->now - state->checkpoints.timer_start;
	int64_t		slack = WALSIZER_TIMER_SLACK + sample->now - state->last.now;

	if (elapsed < timeout)
		return timeout - elapsed;
	if (sample->checkpoint_running || elapsed % timeout < slack)
		return 0;
	return timeout - elapsed % timeout;
}

/*
 * Start over with this sample; what the state file keeps stays, and after a
 * promotion all waits.
 */
static void
prime(WalsizerState *state, const WalsizerSample *sample)
{
	int64_t		age = walsizer_max(0, sample->checkpoint_age) % sample->settings.timeout_ms;

	walsizer_remember_window(state);
	state->primed = true;
	state->checkpoints.timer_start = walsizer_max(0, sample->now - age);
	state->checkpoints.redo_moved = state->checkpoints.timer_start;
	state->checkpoints.old = (WalsizerOldValues) {0};
	state->checkpoints.completed_at = sample->now;
	state->checkpoints.failures = 0;
	state->checkpoints.padding_at_redo = 0;
	state->window = (WalsizerWindow) {0};
	walsizer_begin_rate(state, sample);
	state->last_resort = (WalsizerLastResort) {.space = -1, .took_ms = state->last_resort.took_ms};
	state->wal_contents.at_redo = sample->wal;
	walsizer_begin_curve(state, sample);
	state->boost.planned_until = state->boost.return_mb != 0 ?
		sample->now + sample->settings.timeout_ms : 0;
	state->cycle = (WalsizerCycle) {.start = sample->now};
	if (sample->now < state->last.now)
		state->pacing = (WalsizerPacing) {0};
	state->pacing.changed_at = sample->now;
	walsizer_keep(&state->pacing, sample->now, WALSIZER_KEEP_RAISE);
}

/*
 * Follow sample->boost_mb: the beginning and the end of a planned load.
 *
 * The value in effect at the beginning is to come back at the end.  Demand
 * with WAL of the planned load in its window is not remembered: the next such
 * load will be planned, too.  The first sample without the load begins a step
 * of the window, so that one timeout later no window has such WAL any more, not
 * even an interpolated part of it; another timeout is left for the lowering.
 * Demand that lasts longer was not planned, and is left to the other rules.
 */
void
walsizer_observe_boost(WalsizerState *state)
{
	const WalsizerSample *sample = &state->last;
	WalsizerBoost *boost = &state->boost;
	int64_t		timeout = sample->settings.timeout_ms;
	bool		was_planned = boost->size_mb > 0;

	boost->size_mb = sample->boost_mb <= 0 ? 0 :
		walsizer_whole_segments(walsizer_min(sample->boost_mb, WALSIZER_MOST_MB), &sample->settings);
	if (boost->size_mb > 0 && boost->return_mb == 0)
		boost->return_mb = sample->settings.max_wal_size_mb;
	if (boost->size_mb > 0 || was_planned)
		boost->planned_until = sample->now + timeout;
	if (boost->size_mb > 0)
		return;
	if (was_planned)
		walsizer_add_mark(state);
	if (sample->now > boost->planned_until + timeout ||
		sample->settings.max_wal_size_mb <= boost->return_mb)
		boost->return_mb = 0;
}

static bool
settings_valid(const WalsizerSettings *settings)
{
	int64_t		size = settings->segment_bytes;

	return size >= WALSIZER_MB && size <= 1024 * WALSIZER_MB &&
		(size & (size - 1)) == 0 &&
		settings->max_wal_size_mb > 0 && settings->max_wal_size_mb <= WALSIZER_MOST_MB &&
		settings->completion_target >= 0.0 && settings->completion_target <= 1.0 &&
		settings->timeout_ms > 0 && settings->timeout_ms <= WALSIZER_MOST_MB * 1000;
}

/* Is every figure in the range that the arithmetic can handle? */
bool
walsizer_sample_valid(const WalsizerSample *sample)
{
	return settings_valid(&sample->settings) &&
		sample->now >= 0 && sample->now < MOST_COUNT &&
		sample->hour >= 0 && sample->hour < MOST_COUNT &&
		sample->requested >= 0 && sample->requested < MOST_COUNT &&
		sample->timed >= 0 && sample->timed < MOST_COUNT &&
		sample->wal.bytes >= 0 && sample->wal.records >= 0 && sample->wal.images >= 0 &&
		sample->wal.written >= 0;
}

/*
 * Take in one valid sample: update the state, and fill the figures that do not
 * depend on walsizer's settings.
 */
void
walsizer_observe(const WalsizerConfig *config, WalsizerState *state,
				 const WalsizerSample *sample, WalsizerFigures *figures)
{
	const WalsizerSettings *settings = &sample->settings;
	int64_t		used;

	figures->in_effect_mb = settings->max_wal_size_mb;
	figures->trigger_point = walsizer_trigger_point(settings->max_wal_size_mb, settings);
	if (!sample_continues(state, sample))
		prime(state, sample);
	else
	{
		observe_clock(state, sample);
		observe_settings(state, sample);
		/* a burst across the end of a cycle is seen as a whole by the next one */
		if (state->cycle.over)
			state->cycle = (WalsizerCycle) {.start = state->cycle.start};
		observe_checkpoints(config, state, sample);
	}

	if (sample->standby)
		walsizer_observe_primary(state, sample);

	figures->checkpoints_fail = state->checkpoints.failures > 0 &&
		sample->now - state->checkpoints.completed_at > 2 * settings->timeout_ms;
	figures->used = counted(sample->redo_lsn, sample->write_lsn, settings);
	figures->rate = walsizer_observe_rate(state, sample);
	figures->until_timed_ms = until_timed(state, sample);
	used = walsizer_without_padding(figures->used, state->window.padding -
									state->checkpoints.padding_at_redo);
	figures->projected = walsizer_min(WALSIZER_MOST_BYTES, used +
									  walsizer_to_int64((double) figures->rate *
														((double) figures->until_timed_ms /
														 1000.0)));
	figures->until_forced_ms = figures->rate > 0 ?
		walsizer_to_int64((double) walsizer_max(0, figures->trigger_point - figures->used) *
						  1000.0 / (double) figures->rate) : -1;

	state->last = *sample;
	walsizer_observe_window(state, figures);
}
