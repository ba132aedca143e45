/*-------------------------------------------------------------------------
 *
 * walsizer_policy.c
 *	  The decision: what max_wal_size should be, and why.
 *
 * One call of walsizer_step() takes one observation of the server and answers
 * what to do.  The argument, in short:
 *
 * A checkpoint is forced when WAL fills CheckPointSegments segments counted
 * from the one that holds the redo pointer, so the value that max_wal_size
 * must have follows from one number: W, the WAL written in checkpoint_timeout.
 * W is measured as a distance of LSNs, nothing else.  The server's counter of
 * requested checkpoints also counts CHECKPOINT, backups and DDL, lags behind
 * and can be reset; it is reported, but no size is derived from it.
 *
 * Too small a value shows itself in two ways: a checkpoint was forced (too
 * late, but certain), or the WAL since the redo pointer will reach the
 * capacity before the timer fires (in time, but a guess).  The guess is acted
 * upon late in the interval, where it is good.  Too large a value shows itself
 * only in the largest W of the whole lookback, never in the absence of forced
 * checkpoints: that is what enough looks like.
 *
 * This file includes no server header and calls nothing but walsizer_model.c,
 * walsizer_demand.c, walsizer_owner.c and walsizer_bounds.c.  See
 * walsizer_policy.h for the units.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "walsizer_model.h"

/* A prediction is acted upon when it is near, or this much of the capacity used. */
#define NEAR_CAPACITY		0.85

/* A load that exceeds what was learned by no more than this is a known one. */
#define KNOWN_LOAD			1.05

/*
 * Where page images would make WAL pace the checkpoints, a size may go up to
 * this many times what the demand alone needs.
 */
#define PACED_AT_MOST		1.5

/*
 * It gets this much more than was measured, lest it creeps up step by step,
 * and must be worth a change.
 */
#define PACED_MARGIN		1.1
#define PACED_WORTH			1.06

/* Lowering must be worth it: the new size is at most this part of the old. */
#define LOWER_BELOW			0.8

/* And must leave this much room before the new size forces a checkpoint. */
#define LOWER_USED			0.5

/* A lowering to save the disk that failed is tried again after this time. */
#define SAFETY_RETRY		10000	/* ms */

/* The size for that much WAL (bytes) with the administrator's headroom, MB. */
int64_t
walsizer_roomy_size(const WalsizerConfig *config, const WalsizerSettings *settings,
					int64_t wal_bytes)
{
	return walsizer_size_for(walsizer_to_int64((double) wal_bytes * config->headroom),
							 settings);
}

/* Settings within their ranges, whoever filled them in. */
static WalsizerConfig
sane_config(const WalsizerConfig *given)
{
	WalsizerConfig config = *given;

	config.max = walsizer_min(walsizer_max(config.max, 2), WALSIZER_LIMIT_MB);
	config.min = walsizer_min(walsizer_max(config.min, 0), WALSIZER_LIMIT_MB);
	config.threshold = (int) walsizer_max(config.threshold, 1);
	if (!(config.headroom >= 1.0))
		config.headroom = 1.0;
	if (config.headroom > 4.0)
		config.headroom = 4.0;
	config.sample_interval = walsizer_min(walsizer_max(config.sample_interval, 1),
										  3600 * 1000);
	config.lookback = walsizer_min(walsizer_max(config.lookback, 1),
								   WALSIZER_PEAK_SLOTS - 1);
	config.max_disk_percent = (int) walsizer_min(walsizer_max(config.max_disk_percent, 1), 100);
	config.max_recovery_time = walsizer_min(config.max_recovery_time, WALSIZER_LIMIT_MB);
	return config;
}

/*-------------------------------------------------------------------------
 * Rules: what size, before the bounds
 *-------------------------------------------------------------------------
 */

/*
 * Checkpoints were forced, and W says that this was no accident.
 *
 * Those forced by a statement that still runs with a smaller value count as
 * well: whether a raise helps is up to W alone, which says what the next
 * statement will need.
 *
 * Each checkpoint has pages logged as a whole once more, so a W with several
 * of them is more than the same load will write when none is forced (seen:
 * 1.3 to 1.6 times).  That is headroom enough.
 *
 * A burst that goes on over the end of a cycle may be too small at the end of both
 * of them; then the largest W of the cycle counts.
 */
static int64_t
forced_rule(const WalsizerConfig *config, const WalsizerState *state,
			const WalsizerSample *sample, const WalsizerFigures *figures)
{
	int64_t		demand = figures->demand;
	int64_t		forced = figures->forced;

	if (walsizer_size_for(demand, &sample->settings) <= figures->in_force)
	{
		demand = state->cycle_demand;
		forced = state->cycle_forced;
	}
	if (forced < config->threshold ||
		walsizer_size_for(demand, &sample->settings) <= figures->in_force)
		return 0;
	if (forced > 1)
		return walsizer_size_for(demand, &sample->settings);
	return walsizer_roomy_size(config, &sample->settings, demand);
}

/*
 * A checkpoint is about to be forced.
 *
 * "About to": the later one acts, the better the guess, so act only within a
 * lead of some ticks or when most of the capacity is used.  A load that was
 * seen before is not taken for more than it was.  And since a guess may be
 * wrong, one step goes to at most twice the value in force, unless the W
 * already measured asks for more or that would only last for another lead.
 */
static int64_t
predict_rule(const WalsizerConfig *config, const WalsizerSample *sample,
			 const WalsizerFigures *figures)
{
	const WalsizerSettings *settings = &sample->settings;
	int64_t		lead = walsizer_lead(config);
	int64_t		projected = figures->projected;
	int64_t		known;
	int64_t		soon;
	int64_t		most;

	/*
	 * Without any load what was written stays written, and no raise is
	 * urgent.
	 */
	if (!config->predict || projected < figures->capacity || figures->rate == 0)
		return 0;
	if ((figures->until_forced < 0 || figures->until_forced > lead) &&
		(double) figures->used < NEAR_CAPACITY * (double) figures->capacity)
		return 0;

	known = walsizer_to_int64((double) figures->learned * KNOWN_LOAD);
	if (figures->demand <= known)
		projected = walsizer_min(projected, known);
	if (walsizer_size_for(projected, settings) <= figures->in_force)
		return 0;

	soon = walsizer_min(WALSIZER_LIMIT_BYTES, figures->used +
						walsizer_to_int64((double) figures->rate * (double) lead / 1000.0));
	most = walsizer_max(walsizer_whole_segments(2 * figures->in_force, settings),
						walsizer_roomy_size(config, settings, figures->demand));
	most = walsizer_max(most, walsizer_roomy_size(config, settings, soon));
	return walsizer_min(walsizer_roomy_size(config, settings, projected), most);
}

/*
 * A standby is to be as large as the primary must be, for the day on which it
 * becomes one.  Its own restartpoints are no guide: those that WAL forces come
 * from replaying quickly or find no checkpoint to use.  Nothing is urgent: what the
 * primary writes in the window is looked at once in a cycle, not followed up.
 */
static int64_t
standby_rule(const WalsizerConfig *config, const WalsizerState *state,
			 const WalsizerSample *sample, const WalsizerFigures *figures, bool cycle)
{
	int64_t		demand = cycle ? walsizer_max(state->cycle_demand, state->primary_demand) :
		state->primary_demand;

	if (walsizer_size_for(demand, &sample->settings) <= figures->in_force)
		return 0;
	return walsizer_roomy_size(config, &sample->settings, demand);
}

/*
 * The largest size that smooth checkpoints may cost, given the WAL of the
 * largest window.
 */
static int64_t
most_for_pace(const WalsizerSettings *settings, int64_t wal_bytes)
{
	double		most = PACED_AT_MOST * (double) walsizer_size_for(wal_bytes, settings);

	return walsizer_whole_segments(walsizer_min((int64_t) most, WALSIZER_LIMIT_MB), settings);
}

/*
 * No checkpoint is forced any more, but page images make WAL hurry the timed
 * ones.  Only where the value is our own already: nobody asked us to change
 * one that was never too small.  And only within the bounds: this is not what
 * to warn of.
 */
static int64_t
pace_rule(const WalsizerState *state, const WalsizerFigures *figures)
{
	if (!walsizer_is_own_raise(state, figures->in_force) || figures->pace <= figures->capacity ||
		(double) figures->wanted < PACED_WORTH * (double) figures->in_force ||
		!walsizer_worth_raising(figures, figures->wanted))
		return 0;
	return figures->wanted;
}

/* The largest W that is known: now, in the window, and remembered. */
static int64_t
all_demand(const WalsizerState *state, const WalsizerFigures *figures)
{
	return walsizer_max(walsizer_max(figures->demand, figures->learned),
						walsizer_recent_peak(state));
}

/*
 * What a size (MB) that a limit dictates never goes below: the original value.
 * walsizer.min is no part of it, for that would keep a disk from being saved, nor
 * is a planned load.
 */
static int64_t
least_size(const WalsizerState *state, const WalsizerSettings *settings, int64_t mb)
{
	return walsizer_max(walsizer_max(state->found, mb),
						2 * (settings->segment_size / WALSIZER_MB));
}

/* The least to which falling demand lowers. */
static int64_t
floor_size(const WalsizerConfig *config, const WalsizerState *state,
		   const WalsizerSettings *settings)
{
	return least_size(state, settings, config->min);
}

/*
 * Is it safe to lower to this size?  A checkpoint must not be forced by the
 * lowering itself.
 */
static bool
can_lower_to(const WalsizerFigures *figures, int64_t size, const WalsizerSettings *settings)
{
	return (double) figures->used <= LOWER_USED * (double) walsizer_capacity(size, settings);
}

/*
 * The largest demand of the whole lookback needs much less than our own raise
 * provides: less even than we would give it for smooth checkpoints, or what
 * was raised for them by day would be lowered every night.
 *
 * Two whole windows must have passed since the last change; and an hour since
 * the last raise, lest a load that comes and goes within minutes and was
 * overrated at first has its size taken away between two of its bursts.
 *
 * The end of a cycle makes the lowering due; it comes with the first sample then
 * that has room for it.  Cycle and checkpoint timer have the same period and keep
 * their phase: at the end of a cycle there may never be room.
 */
static int64_t
lower_rule(const WalsizerConfig *config, WalsizerState *state,
		   const WalsizerSample *sample, const WalsizerFigures *figures, bool cycle)
{
	int64_t		size = walsizer_max(walsizer_max(figures->wanted, state->boost),
									floor_size(config, state, &sample->settings));

	if (!walsizer_is_own_raise(state, figures->in_force) ||
		sample->now - state->changed_at < 2 * sample->settings.timeout ||
		sample->now < state->keep_until ||
		(double) size > LOWER_BELOW * (double) figures->in_force ||
		most_for_pace(&sample->settings, all_demand(state, figures)) >= figures->in_force)
	{
		state->lower_due = false;
		return 0;
	}
	state->lower_due = state->lower_due || cycle;
	return state->lower_due && can_lower_to(figures, size, &sample->settings) ? size : 0;
}

/*
 * A load was announced that needs more.  Whoever announced it was told what the
 * bounds make of it; a bound that comes and goes changes the size no more often
 * than once in a timeout.
 */
static int64_t
boost_rule(const WalsizerState *state, const WalsizerSample *sample,
		   const WalsizerFigures *figures)
{
	int64_t		size = walsizer_whole_segments(state->boost, &sample->settings);

	if (state->boost == 0 || !walsizer_worth_raising(figures, size) ||
		(!sample->evaluate && sample->now - state->changed_at < sample->settings.timeout))
		return 0;
	return size;
}

/*
 * A planned load is over: back to what was in force before, or to what demand
 * asks for by now, in one step, once no window contains WAL of the planned load
 * any more.  Nobody has to wait longer: the raise was for a time from the
 * beginning.
 */
static int64_t
boost_over_rule(const WalsizerConfig *config, const WalsizerState *state,
				const WalsizerSample *sample, const WalsizerFigures *figures)
{
	int64_t		size = walsizer_max(walsizer_max(figures->wanted, state->boost_return),
									floor_size(config, state, &sample->settings));

	if (!walsizer_boost_is_over(state) || sample->now < state->planned_until ||
		!walsizer_is_own_raise(state, figures->in_force) ||
		size >= figures->in_force || !can_lower_to(figures, size, &sample->settings))
		return 0;
	return size;
}

/*-------------------------------------------------------------------------
 * The step
 *-------------------------------------------------------------------------
 */

/* Has a timeout passed since the last cycle?  Late wakes shift nothing. */
static bool
cycle_ends(WalsizerState *state, const WalsizerSample *sample)
{
	int64_t		elapsed = sample->now - state->cycle_start;

	if (elapsed < sample->settings.timeout)
		return false;
	state->cycle_start = sample->now - elapsed % sample->settings.timeout;
	state->cycle_over = true;
	return true;
}

/* Fill the figures that depend on walsizer's settings. */
static void
judge(const WalsizerConfig *config, WalsizerState *state, const WalsizerSample *sample,
	  WalsizerFigures *figures)
{
	const WalsizerSettings *settings = &sample->settings;
	int64_t		demand;
	int64_t		paced = walsizer_to_int64((double) figures->pace * PACED_MARGIN);

	figures->learned = walsizer_learned_now(state, sample, config->lookback);
	demand = all_demand(state, figures);
	figures->wanted = walsizer_max(walsizer_roomy_size(config, settings, demand),
								   walsizer_min(walsizer_size_for(paced, settings),
												most_for_pace(settings, demand)));
	walsizer_find_limit(config, state, sample, figures);
}

/*
 * Raise to this size, or as far as the limits let us.
 *
 * A planned load takes at once what the limits allow it in the long run: the
 * statement that it is for may begin soon, and would not see later steps.
 */
static void
decide_raise(const WalsizerState *state, const WalsizerSample *sample,
			 WalsizerDecision *decision, WalsizerReason reason, int64_t size)
{
	const WalsizerFigures *figures = &decision->figures;
	int64_t		most = walsizer_min(size, figures->limit);

	decision->wanted = size;
	decision->target = figures->in_force;
	decision->reason = reason;
	if (most < size)
		decision->bound = figures->limit_by;
	if (!walsizer_worth_raising(figures, size))
	{
		decision->limited = true;
		return;
	}
	if (sample->evaluate || sample->now >= state->raise_not_before)
		decision->target = reason == WALSIZER_BECAUSE_PLANNED ? most :
			walsizer_step_size(state, figures, most);
	if (decision->target < most)
		decision->bound = WALSIZER_BOUND_DISK;
	if (decision->target > figures->in_force)
		decision->action = WALSIZER_RAISE;
}

static void
decide_lower(WalsizerDecision *decision, WalsizerReason reason, int64_t size)
{
	decision->action = WALSIZER_LOWER;
	decision->reason = reason;
	decision->wanted = size;
	decision->target = size;
}

/*
 * A bound has come down below our own raise: follow it, down to the value that
 * was found.  A disk that fills up does not wait for a good moment, and the
 * checkpoint that lowering may force is what frees WAL; but a fifth may come
 * and go, free space is never still.
 */
static bool
must_follow_bound(const WalsizerState *state, const WalsizerSample *sample,
				  const WalsizerFigures *figures, int64_t allowed)
{
	if (!walsizer_is_own_raise(state, figures->in_force) || allowed >= figures->in_force)
		return false;
	if (figures->limit_by == WALSIZER_BOUND_DISK)
		return sample->looked && sample->has_disk &&
			(double) allowed <= LOWER_BELOW * (double) figures->in_force;
	return can_lower_to(figures, allowed, &sample->settings);
}

/*
 * A value that was decided and did not take effect is not decided again at once:
 * what cannot be applied now cannot be applied in a second either.  Another value is
 * another matter, but a prediction gives another one each time: only one that goes
 * four times as far.  What failed in one direction says nothing about the other, and a
 * lowering that is to save the disk waits for nothing but itself, and not for long.
 */
static bool
must_wait(const WalsizerState *state, const WalsizerSample *sample,
		  const WalsizerDecision *decision)
{
	int64_t		in_force = sample->settings.max_wal_size;
	int64_t		elapsed = sample->now - state->tried_at;
	bool		raise = decision->action == WALSIZER_RAISE;

	if (state->tried == 0 || sample->evaluate || decision->action == WALSIZER_NONE ||
		raise != (state->tried > in_force))
		return false;
	if (decision->reason == WALSIZER_BECAUSE_BOUND_FELL)
		return elapsed < SAFETY_RETRY;
	if (raise ? decision->target / 4 > state->tried : decision->target < state->tried / 4)
		return false;
	return elapsed < walsizer_patience(sample->settings.timeout);
}

/* Not now, see above. */
static void
decide_to_wait(WalsizerDecision *decision)
{
	decision->action = WALSIZER_NONE;
	decision->reason = WALSIZER_BECAUSE_WAITING;
	decision->bound = WALSIZER_UNBOUND;
	decision->limited = false;
	decision->target = decision->figures.in_force;
}

/*
 * Once we have followed the disk limit down nothing is raised for one timeout after
 * it was last found as low: free space that comes and goes is not followed up and
 * down, which would cost more checkpoints than it saves.
 */
static void
note_low_disk(WalsizerState *state, const WalsizerSample *sample,
			  const WalsizerDecision *decision)
{
	const WalsizerFigures *figures = &decision->figures;
	bool		followed = decision->reason == WALSIZER_BECAUSE_BOUND_FELL &&
		decision->bound == WALSIZER_BOUND_DISK;
	bool		still = sample->looked && sample->now < state->raise_not_before &&
		!walsizer_disk_is_worth_raising(figures);

	if (followed || still)
		state->raise_not_before = sample->now + sample->settings.timeout;
}

/* The rules, in order of urgency. */
static void
apply_rules(const WalsizerConfig *config, WalsizerState *state,
			const WalsizerSample *sample, WalsizerDecision *decision)
{
	const WalsizerFigures *figures = &decision->figures;
	bool		cycle = decision->cycle || sample->evaluate;
	int64_t		allowed = least_size(state, &sample->settings, figures->limit);
	int64_t		size;

	if ((size = boost_rule(state, sample, figures)) > 0)
		decide_raise(state, sample, decision, WALSIZER_BECAUSE_PLANNED, size);
	else if (sample->standby &&
			 (size = standby_rule(config, state, sample, figures, cycle)) > 0)
		decide_raise(state, sample, decision, WALSIZER_BECAUSE_PRIMARY, size);
	else if (!sample->standby && cycle &&
			 (size = forced_rule(config, state, sample, figures)) > 0)
		decide_raise(state, sample, decision, WALSIZER_BECAUSE_FORCED, size);
	else if (!sample->standby && (size = predict_rule(config, sample, figures)) > 0)
		decide_raise(state, sample, decision, WALSIZER_BECAUSE_PREDICTED, size);
	else if (!sample->standby && cycle && (size = pace_rule(state, figures)) > 0)
		decide_raise(state, sample, decision, WALSIZER_BECAUSE_PACED, size);
	else if ((size = boost_over_rule(config, state, sample, figures)) > 0)
		decide_lower(decision, WALSIZER_BECAUSE_PLAN_OVER, walsizer_min(size, allowed));
	else if ((size = lower_rule(config, state, sample, figures, cycle)) > 0)
		decide_lower(decision, WALSIZER_BECAUSE_DEMAND_FELL, walsizer_min(size, allowed));

	if (must_wait(state, sample, decision))
		decide_to_wait(decision);

	if (decision->action == WALSIZER_NONE &&
		must_follow_bound(state, sample, figures, allowed))
	{
		decide_lower(decision, WALSIZER_BECAUSE_BOUND_FELL, allowed);
		decision->bound = figures->limit_by;
		if (must_wait(state, sample, decision))
			decide_to_wait(decision);
	}
	note_low_disk(state, sample, decision);
}

/* Making way for an edit that failed is not tried again at once; another edit is. */
static bool
edit_must_wait(const WalsizerState *state, const WalsizerSample *sample)
{
	return state->edit_tried == sample->configured && !sample->evaluate &&
		sample->now - state->edit_tried_at < walsizer_patience(sample->settings.timeout);
}

/*
 * A change by an administrator is left alone for a while.  But a load that is
 * announced meanwhile gets what it asks for.
 */
static bool
must_settle(const WalsizerState *state, const WalsizerSample *sample,
			const WalsizerFigures *figures)
{
	return sample->now < state->settle_until &&
		boost_rule(state, sample, figures) == 0 &&
		!walsizer_is_own_raise(state, figures->in_force);
}

/*
 * Bring the state up to date with a sample.  The answer is the decision if there
 * is nothing to decide by rules, and the figures for them.
 */
static WalsizerDecision
take_in(const WalsizerConfig *config, WalsizerState *state, const WalsizerSample *sample)
{
	WalsizerDecision decision = {0};
	bool		first = !state->primed;
	bool		foreign;
	bool		edited;

	walsizer_observe(state, sample, &decision.figures);
	foreign = walsizer_note_owner(state, sample);
	edited = walsizer_note_edit(state, sample);
	walsizer_note_boost(state, sample);
	walsizer_follow_up(state, sample, &decision);
	decision.cycle = cycle_ends(state, sample);
	decision.target = decision.wanted = sample->settings.max_wal_size;
	decision.reason = first ? WALSIZER_BECAUSE_STARTED : WALSIZER_BECAUSE_ENOUGH;

	if (foreign)
	{
		decision.action = WALSIZER_EXTERNAL;
		decision.reason = WALSIZER_BECAUSE_CHANGED;
	}
	else if (edited && !config->enable)
		decision.reason = WALSIZER_BECAUSE_HIDDEN;
	else if (edited && edit_must_wait(state, sample))
		decision.reason = WALSIZER_BECAUSE_WAITING;
	else if (edited)
	{
		decision.action = WALSIZER_REVERT;
		decision.reason = WALSIZER_BECAUSE_EDITED;
		decision.target = decision.wanted = sample->configured;
		state->edit_tried = sample->configured;
		state->edit_tried_at = sample->now;
	}
	return decision;
}

/* The same sample again, now with the disk figures? */
static bool
is_pending(const WalsizerState *state, const WalsizerSample *sample)
{
	return state->pending && sample->now == state->last_ms &&
		sample->write_lsn == state->last_lsn;
}

/*
 * Take in one sample and decide.
 *
 * Any input gives a defined answer; a sample that makes no sense changes
 * nothing.  The disk need not be looked at for each sample: if the answer is
 * wants_disk, look (sample->looked) and call again with the same sample.  The
 * caller applies the decision; the next sample shows what came of it.  Costs O(1).
 */
WalsizerDecision
walsizer_step(const WalsizerConfig *given, WalsizerState *state,
			  const WalsizerSample *sample)
{
	WalsizerConfig config = sane_config(given);
	WalsizerDecision decision = {0};
	WalsizerDecision observed;

	if (!walsizer_sample_valid(sample))
		return decision;
	if (!sample->looked && (is_pending(state, sample) ||
							walsizer_look_is_due(&config, state, sample)))
	{
		decision.wants_disk = true;
		return decision;
	}

	observed = is_pending(state, sample) ? state->observed : take_in(&config, state, sample);
	state->pending = false;
	decision = observed;
	walsizer_note_disk(state, sample);
	judge(&config, state, sample, &decision.figures);

	if (decision.reason != WALSIZER_BECAUSE_STARTED && decision.reason != WALSIZER_BECAUSE_ENOUGH)
		return decision;
	if (!config.enable)
		decision.reason = WALSIZER_BECAUSE_DISABLED;
	else if (must_settle(state, sample, &decision.figures))
		decision.reason = WALSIZER_BECAUSE_SETTLING;
	else
		apply_rules(&config, state, sample, &decision);

	if (!sample->looked &&
		(decision.action == WALSIZER_RAISE || decision.bound == WALSIZER_BOUND_DISK))
	{
		state->pending = true;
		state->observed = observed;
		decision = (WalsizerDecision) {.wants_disk = true};
	}
	if (decision.action == WALSIZER_RAISE || decision.action == WALSIZER_LOWER)
	{
		state->tried = decision.target;
		state->tried_at = sample->now;
	}
	return decision;
}
