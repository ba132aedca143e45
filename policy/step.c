/*-------------------------------------------------------------------------
 *
 * policy/step.c
 *	  One step: walsizer_step() takes one sample and answers what to do.
 *
 * A checkpoint is forced when WAL fills CheckPointSegments segments, counted from the one
 * that holds the redo pointer.  So the size follows from demand alone, the WAL written
 * within checkpoint_timeout as a distance of LSNs.  The server's counter of requested
 * checkpoints also counts CHECKPOINT, backups and DDL, lags behind and can be reset: it
 * is reported, but no size is derived from it.  The absence of forced checkpoints only
 * shows that a value suffices, not that it is too large.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "policy/internal.h"

#define SAFETY_RETRY		10000	/* ms between two attempts */

/* Has a timeout passed since the last cycle?  Late samples shift nothing. */
static bool
cycle_ends(WalsizerState *state)
{
	int64_t		timeout = state->last.settings.timeout_ms;
	int64_t		elapsed = state->last.now - state->cycle.start;

	if (elapsed < timeout)
		return false;
	state->cycle.start = state->last.now - elapsed % timeout;
	state->cycle.over = true;
	return true;
}

/*
 * Raise to this size (MB), or as far as the limits allow.  A planned load gets at once what
 * they allow in the long run: the statement that it is for would not see later steps.
 */
static void
decide_raise(const WalsizerState *state, WalsizerDecision *decision,
			 WalsizerReason reason, int64_t size)
{
	const WalsizerFigures *figures = &decision->figures;
	int64_t		most = walsizer_min(size, figures->limit_mb);

	decision->wanted_mb = size;
	decision->reason = reason;
	if (most < size)
		decision->limited_by = figures->limit_kind;
	decision->limited = !walsizer_worth_raising(figures, size);
	if (decision->limited)
		return;
	if (state->last.act_now || state->last.now >= state->pacing.raise_not_before)
		decision->target_mb = reason == WALSIZER_BECAUSE_BOOST ? most : walsizer_step_size(state, figures, most);
	if (decision->target_mb < most)
		decision->limited_by = WALSIZER_LIMIT_DISK;
	if (decision->target_mb > figures->in_effect_mb)
		decision->action = WALSIZER_RAISE;
}

/* Lower to the target (MB): the size that a rule asks for, or less, to a limit. */
static void
decide_lower(WalsizerDecision *decision, WalsizerReason reason, int64_t size, int64_t target)
{
	decision->action = WALSIZER_LOWER;
	decision->reason = reason;
	decision->limited = false;
	decision->limited_by = target < size ? decision->figures.limit_kind : WALSIZER_UNLIMITED;
	decision->wanted_mb = size;
	decision->target_mb = target;
}

/*
 * After a value that did not take effect, none in the same direction is decided for
 * walsizer_patience(): it would fail as well.  One that saves the disk waits SAFETY_RETRY.
 */
static void
wait_if_tried(const WalsizerState *state, WalsizerDecision *decision)
{
	int64_t		tried_mb = state->pacing.tried_mb;
	int64_t		wait = decision->reason == WALSIZER_BECAUSE_LIMIT_FELL ? SAFETY_RETRY :
		walsizer_patience(state->last.settings.timeout_ms);
	bool		raise = decision->action == WALSIZER_RAISE;

	if (tried_mb == 0 || state->last.act_now || decision->action == WALSIZER_NONE ||
		raise != (tried_mb > decision->figures.in_effect_mb) ||
		state->last.now - state->pacing.tried_at >= wait)
		return;
	decision->action = WALSIZER_NONE;
	decision->reason = WALSIZER_BECAUSE_WAITING;
	decision->limited_by = WALSIZER_UNLIMITED;
	decision->target_mb = decision->figures.in_effect_mb;
}

/* What an administrator sets anew ends the wait for a measured limit. */
static void
observe_limit_settings(const WalsizerConfig *config, WalsizerPacing *pacing)
{
	if (pacing->max_disk_percent == config->max_disk_percent &&
		pacing->max_recovery_ms == config->max_recovery_ms &&
		pacing->replay_rate == config->replay_rate)
		return;
	pacing->max_disk_percent = config->max_disk_percent;
	pacing->max_recovery_ms = config->max_recovery_ms;
	pacing->replay_rate = config->replay_rate;
	pacing->raise_not_before = pacing->hold_ms = 0;
}

/*
 * Once we have followed a measured limit down, nothing is raised for one timeout after
 * it was last found as low; if it falls again, for six times as long as that took:
 * following a limit that swings, up and down, would cost more checkpoints than it saves.
 */
static void
hold_back(WalsizerState *state, const WalsizerDecision *decision)
{
	const WalsizerSample *sample = &state->last;
	const WalsizerFigures *figures = &decision->figures;
	WalsizerPacing *pacing = &state->pacing;
	int64_t		timeout = sample->settings.timeout_ms;
	int64_t		over = sample->now - pacing->raise_not_before;

	if (decision->reason == WALSIZER_BECAUSE_LIMIT_FELL &&
		decision->limited_by != WALSIZER_LIMIT_MAX)
	{
		if (over >= 0)
			pacing->hold_ms = pacing->hold_ms > 0 && over < WALSIZER_MOST_HOLD ?
				walsizer_min(6 * (over + pacing->hold_ms), WALSIZER_MOST_HOLD) : 0;
		pacing->hold_ms = walsizer_max(pacing->hold_ms, timeout);
		pacing->raise_not_before = sample->now + pacing->hold_ms;
	}
	else if (over < 0 && sample->disk_tried && figures->limit_kind != WALSIZER_LIMIT_MAX &&
			 !walsizer_worth_raising(figures, WALSIZER_MOST_MB))
		pacing->raise_not_before = walsizer_max(pacing->raise_not_before, sample->now + timeout);
}

/* Follow a limit that fell below our own raise, unless a rule already acts. */
static void
follow_limit(const WalsizerConfig *config, const WalsizerState *state, WalsizerDecision *decision)
{
	WalsizerLimit kind;
	int64_t		allowed = walsizer_limit_to_follow(config, state, &decision->figures, &kind);

	if (decision->action != WALSIZER_NONE || allowed == 0)
		return;
	decide_lower(decision, WALSIZER_BECAUSE_LIMIT_FELL, allowed, allowed);
	decision->limited_by = kind;
	wait_if_tried(state, decision);
}

/* The rules, in order of urgency.  The first matching rule applies. */
static void
apply_rules(const WalsizerConfig *config, WalsizerState *state, WalsizerDecision *decision)
{
	const WalsizerFigures *figures = &decision->figures;
	bool		standby = state->last.standby;
	bool		cycle = decision->cycle || state->last.act_now;
	/* a raise that failed is tried again before the next cycle ends */
	bool		due = cycle || state->pacing.tried_mb > figures->in_effect_mb;
	int64_t		size;

	if (state->boost.size_mb > figures->in_effect_mb)
		decide_raise(state, decision, WALSIZER_BECAUSE_BOOST, state->boost.size_mb);
	else if (standby && (size = walsizer_standby_rule(config, state, figures, due)) != 0)
		decide_raise(state, decision, WALSIZER_BECAUSE_PRIMARY, size);
	else if (!standby && due && (size = walsizer_forced_rule(config, state, figures)) != 0)
		decide_raise(state, decision, WALSIZER_BECAUSE_FORCED, size);
	else if (!standby && (size = walsizer_predict_rule(config, state, figures)) != 0)
		decide_raise(state, decision, WALSIZER_BECAUSE_PREDICTED, size);
	else if ((size = walsizer_boost_over_rule(config, state, figures)) != 0)
		decide_lower(decision, WALSIZER_BECAUSE_BOOST_OVER, size, walsizer_lowered_size(state, figures, size));
	else if ((size = walsizer_lower_rule(config, state, figures, cycle)) != 0)
		decide_lower(decision, WALSIZER_BECAUSE_DEMAND_FELL, size, walsizer_lowered_size(state, figures, size));
	else if (!standby && (size = walsizer_forced_rule(config, state, figures)) != 0 &&
			 !walsizer_worth_raising(figures, size))	/* limited, due or not */
		decide_raise(state, decision, WALSIZER_BECAUSE_FORCED, size);

	wait_if_tried(state, decision);
}

/*
 * Update the state with a sample.  Returns its figures, and the decision where
 * no rule is needed for it.
 */
static WalsizerDecision
take_in(const WalsizerConfig *config, WalsizerState *state, const WalsizerSample *sample)
{
	WalsizerDecision decision = {0};
	bool		first = !state->primed;
	bool		foreign;
	bool		edited;

	walsizer_observe(config, state, sample, &decision.figures);
	foreign = walsizer_observe_owner(state);
	edited = walsizer_observe_edit(state);
	walsizer_observe_boost(state);
	decision.cycle = cycle_ends(state);
	decision.target_mb = decision.wanted_mb = sample->settings.max_wal_size_mb;
	decision.reason = first ? WALSIZER_BECAUSE_STARTED : WALSIZER_BECAUSE_SUFFICIENT;

	if (foreign)
	{
		decision.action = WALSIZER_EXTERNAL;
		decision.reason = WALSIZER_BECAUSE_CHANGED;
	}
	else if (sample->revert)
	{
		decision.action = WALSIZER_REVERT;
		decision.reason = WALSIZER_BECAUSE_REVERT;
		decision.target_mb = decision.wanted_mb = edited ? sample->configured_mb : state->owner.original_mb;
	}
	else if (edited && !config->enable)
		decision.reason = WALSIZER_BECAUSE_EDIT_HIDDEN;
	else if (edited && state->pacing.edit_tried_mb == sample->configured_mb && !sample->act_now &&
			 sample->now - state->pacing.edit_tried_at < walsizer_patience(sample->settings.timeout_ms))
		decision.reason = WALSIZER_BECAUSE_WAITING; /* we have just tried to make way for it */
	else if (edited)
	{
		decision.action = WALSIZER_REVERT;
		decision.reason = WALSIZER_BECAUSE_EDITED;
		decision.target_mb = decision.wanted_mb = sample->configured_mb;
		state->pacing.edit_tried_mb = sample->configured_mb;
		state->pacing.edit_tried_at = sample->now;
	}
	return decision;
}

/* Fill the figures that depend on walsizer's settings. */
static void
fill_figures(const WalsizerConfig *config, WalsizerState *state, WalsizerFigures *figures)
{
	const WalsizerPeak *largest = walsizer_learned_now(state, config->lookback_hours);

	figures->learned = largest->demand;
	if (figures->learned > figures->demand)
		figures->inflated = largest->inflated_at != 0;
	figures->wanted_mb = walsizer_size_with_headroom(config, &state->last.settings,
													 walsizer_max(figures->demand, figures->learned));
	walsizer_find_limit(config, state, figures);
}

/*
 * Take in one sample and decide.  Costs O(1).
 *
 * Any sample gives a defined answer; an implausible one changes nothing.  The
 * disk need not be read for each sample: walsizer_look_is_due() tells when.  The
 * caller applies the decision; the next sample shows the result.
 */
WalsizerDecision
walsizer_step(const WalsizerConfig *config, WalsizerState *state, const WalsizerSample *sample)
{
	WalsizerDecision decision = {0};

	if (!walsizer_sample_valid(sample))
		return decision;
	decision = take_in(config, state, sample);
	walsizer_observe_disk(state, sample);
	fill_figures(config, state, &decision.figures);
	walsizer_observe_room(config, state, &decision.figures);
	observe_limit_settings(config, &state->pacing);

	/* an edit may wait, the disk may not */
	if (decision.reason == WALSIZER_BECAUSE_WAITING)
		follow_limit(config, state, &decision);
	else if (decision.reason != WALSIZER_BECAUSE_STARTED &&
			 decision.reason != WALSIZER_BECAUSE_SUFFICIENT)
		return decision;
	else if (!config->enable)
		decision.reason = WALSIZER_BECAUSE_DISABLED;
	else if (sample->now < state->pacing.leave_alone_until && !walsizer_is_own_raise(state) &&
			 state->boost.size_mb <= sample->settings.max_wal_size_mb)
		decision.reason = WALSIZER_BECAUSE_RECENTLY_CHANGED;
	else
	{
		apply_rules(config, state, &decision);
		follow_limit(config, state, &decision);
	}
	hold_back(state, &decision);
	walsizer_request_rule(config, state, &decision);

	if (decision.action == WALSIZER_RAISE || decision.action == WALSIZER_LOWER)
	{
		state->pacing.tried_mb = decision.target_mb;
		state->pacing.tried_at = sample->now;
	}
	return decision;
}
