/*-------------------------------------------------------------------------
 *
 * policy/step.c
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
 * This file includes no server header and calls nothing but policy/rules.c,
 * policy/observe.c, policy/demand.c, policy/owner.c and policy/limits.c.  See
 * policy/policy.h for the units.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "policy/internal.h"

/* A lowering to save the disk that failed is tried again after this time. */
#define SAFETY_RETRY		10000	/* ms */

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

/*
 * Follow a limit that has come down below our own raise, unless the rules have
 * something to do already.
 */
static void
follow_limit(WalsizerState *state, const WalsizerSample *sample, WalsizerDecision *decision)
{
	const WalsizerFigures *figures = &decision->figures;
	int64_t		allowed = walsizer_least_size(state, &sample->settings, figures->limit);

	if (decision->action == WALSIZER_NONE &&
		walsizer_must_follow_bound(state, sample, figures, allowed))
	{
		decide_lower(decision, WALSIZER_BECAUSE_BOUND_FELL, allowed);
		decision->bound = figures->limit_by;
		if (must_wait(state, sample, decision))
			decide_to_wait(decision);
	}
	note_low_disk(state, sample, decision);
}

/* The rules, in order of urgency. */
static void
apply_rules(const WalsizerConfig *config, WalsizerState *state,
			const WalsizerSample *sample, WalsizerDecision *decision)
{
	const WalsizerFigures *figures = &decision->figures;
	bool		cycle = decision->cycle || sample->evaluate;
	int64_t		allowed = walsizer_least_size(state, &sample->settings, figures->limit);
	int64_t		size;

	if ((size = walsizer_boost_rule(state, sample, figures)) > 0)
		decide_raise(state, sample, decision, WALSIZER_BECAUSE_PLANNED, size);
	else if (sample->standby &&
			 (size = walsizer_standby_rule(config, state, sample, figures, cycle)) > 0)
		decide_raise(state, sample, decision, WALSIZER_BECAUSE_PRIMARY, size);
	else if (!sample->standby && cycle &&
			 (size = walsizer_forced_rule(config, state, sample, figures)) > 0)
		decide_raise(state, sample, decision, WALSIZER_BECAUSE_FORCED, size);
	else if (!sample->standby && (size = walsizer_predict_rule(config, sample, figures)) > 0)
		decide_raise(state, sample, decision, WALSIZER_BECAUSE_PREDICTED, size);
	else if (!sample->standby && cycle && (size = walsizer_pace_rule(state, figures)) > 0)
		decide_raise(state, sample, decision, WALSIZER_BECAUSE_PACED, size);
	else if ((size = walsizer_boost_over_rule(config, state, sample, figures)) > 0)
		decide_lower(decision, WALSIZER_BECAUSE_PLAN_OVER, walsizer_min(size, allowed));
	else if ((size = walsizer_lower_rule(config, state, sample, figures, cycle)) > 0)
		decide_lower(decision, WALSIZER_BECAUSE_DEMAND_FELL, walsizer_min(size, allowed));

	if (must_wait(state, sample, decision))
		decide_to_wait(decision);
	follow_limit(state, sample, decision);
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
		walsizer_boost_rule(state, sample, figures) == 0 &&
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
	walsizer_judge(&config, state, sample, &decision.figures);

	/* whatever an edit waits for, the disk does not */
	if (decision.reason == WALSIZER_BECAUSE_WAITING)
		follow_limit(state, sample, &decision);
	else if (decision.reason != WALSIZER_BECAUSE_STARTED &&
			 decision.reason != WALSIZER_BECAUSE_ENOUGH)
		return decision;
	else if (!config.enable)
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
