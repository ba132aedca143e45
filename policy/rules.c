/*-------------------------------------------------------------------------
 *
 * policy/rules.c
 *	  The rules: the size (MB) that each asks for, before the limits.
 *
 * A rule that does not apply answers 0.  policy/step.c decides which rule comes
 * first, and how far the limits let it go.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "policy/internal.h"

/* A forced checkpoint is near once this part of the trigger point is used. */
#define NEAR_TRIGGER_POINT		0.85

/* A load of at most this many times the learned demand is a known one. */
#define KNOWN_LOAD			1.05

/* Lowering is worth it if the new size is at most this part of the old. */
#define LOWER_BELOW			0.8

/* WAL (bytes) that the recent rate writes within walsizer_lead(). */
static int64_t
written_soon(const WalsizerConfig *config, const WalsizerFigures *figures)
{
	return walsizer_to_int64((double) figures->rate * (double) walsizer_lead(config) / 1000.0);
}

/*
 * The most (MB) that one raise may reach on a figure that may be wrong: twice the
 * value in effect, or what demand already asks for, unless several forced
 * checkpoints inflate it, or what will be written within the lead, as a smaller
 * size would only last for another lead.
 */
static int64_t
most_at_once(const WalsizerConfig *config, const WalsizerState *state, const WalsizerFigures *figures)
{
	const WalsizerSettings *settings = &state->last.settings;
	int64_t		soon = walsizer_min(WALSIZER_MOST_BYTES, figures->used + written_soon(config, figures));
	int64_t		demand = figures->forced > 1 ? 0 : figures->demand;

	return walsizer_max(walsizer_whole_segments(2 * figures->in_effect_mb, settings),
						walsizer_size_with_headroom(config, settings, walsizer_max(demand, soon)));
}

/*
 * Checkpoints were forced, maybe by a statement that keeps a smaller value, and
 * demand shows that the value is too small: for the next such statement, too.
 *
 * Each checkpoint causes full-page images, so demand with several of them exceeds what
 * the same load writes when none is forced (1.3 to 12 times was seen).  That is headroom
 * enough, and where prediction raises again in time, the way there goes in steps.
 *
 * A burst across the end of a cycle may be too small at both ends, and the
 * checkpoints that it forced may lie in two windows.  So the largest figures of
 * the cycle count, but nothing raises again for those before the last change,
 * except on request: a limit may have kept that change small.
 */
int64_t
walsizer_forced_rule(const WalsizerConfig *config, const WalsizerState *state,
					 const WalsizerFigures *figures)
{
	const WalsizerSettings *settings = &state->last.settings;
	int64_t		demand = walsizer_max(figures->demand, state->cycle.demand);
	int64_t		since = state->checkpoints.total[WALSIZER_CAUSE_FORCED] -
		state->checkpoints.forced_before;
	int64_t		forced = state->cycle.old_value +
		(state->last.act_now ? state->cycle.forced : walsizer_min(state->cycle.forced, since));

	if (forced < config->threshold || walsizer_size_for(demand, settings) <= figures->in_effect_mb)
		return 0;
	if (forced <= 1)
		return walsizer_size_with_headroom(config, settings, demand);
	return walsizer_min(walsizer_size_for(demand, settings),
						config->predict ? most_at_once(config, state, figures) : WALSIZER_MOST_MB);
}

/*
 * A checkpoint is about to be forced.
 *
 * The estimate improves with time, so act only within walsizer_lead() or when
 * most of the trigger point is used.  While a load is no more than was seen before,
 * it is not taken for more than that, or than it will be within half the lead.
 */
int64_t
walsizer_predict_rule(const WalsizerConfig *config, const WalsizerState *state,
					  const WalsizerFigures *figures)
{
	const WalsizerSettings *settings = &state->last.settings;
	int64_t		projected = figures->projected;
	int64_t		known;

	/*
	 * Without any load, no raise is urgent.  While a checkpoint outlasts the
	 * timeout, the next one starts at its end in any case.
	 */
	if (!config->predict || projected < figures->trigger_point || figures->rate == 0 ||
		(state->last.checkpoint_running && figures->until_timed_ms == 0) ||
		(figures->until_forced_ms > walsizer_lead(config) &&
		 (double) figures->used < NEAR_TRIGGER_POINT * (double) figures->trigger_point))
		return 0;
	known = walsizer_to_int64((double) figures->learned * KNOWN_LOAD);
	if (figures->demand <= known)
		projected = walsizer_min(projected, walsizer_max(known, figures->demand +
														 written_soon(config, figures) / 2));
	if (walsizer_size_for(projected, settings) <= figures->in_effect_mb)
		return 0;

	return walsizer_min(walsizer_size_with_headroom(config, settings, projected),
						most_at_once(config, state, figures));
}

/*
 * A standby is sized for the primary, for the day on which it is promoted.  Its own
 * restartpoints are no guide: WAL forces them when replay is fast or finds no checkpoint
 * to use.  Nothing is urgent: demand in the window counts only at the end of a cycle.
 */
int64_t
walsizer_standby_rule(const WalsizerConfig *config, const WalsizerState *state,
					  const WalsizerFigures *figures, bool due)
{
	const WalsizerSettings *settings = &state->last.settings;
	int64_t		demand = walsizer_max(state->primary.demand, due ? state->cycle.demand : 0);

	if (walsizer_size_for(demand, settings) <= figures->in_effect_mb)
		return 0;
	return figures->inflated ? walsizer_size_for(demand, settings) :
		walsizer_size_with_headroom(config, settings, demand);
}

/*
 * The size (MB) to lower to once no window has WAL of the planned load any more, or 0:
 * what was in effect before if that suffices for the demand since, else what demand needs,
 * in one step.  It does not wait for keep_ms: the raise was meant to be temporary.
 */
int64_t
walsizer_boost_over_rule(const WalsizerConfig *config, const WalsizerState *state,
						 const WalsizerFigures *figures)
{
	int64_t		size;

	if (state->boost.size_mb != 0 || state->boost.return_mb == 0 ||
		state->last.now < state->boost.planned_until || !walsizer_is_own_raise(state))
		return 0;

	size = walsizer_least_size(state, walsizer_max(state->boost.return_mb, config->min_mb));
	if (walsizer_size_for(figures->demand, &state->last.settings) > size)
		size = walsizer_max(size, figures->wanted_mb);
	return size < figures->in_effect_mb && walsizer_lowered_size(state, figures, size) != 0 ? size : 0;
}

/*
 * The largest demand of the whole lookback needs much less than our own raise provides.
 *
 * Two whole windows must have passed since the last change, and an hour since the last
 * raise, or more, but no more than the lookback: a load that comes and goes within minutes
 * and was overestimated at first would lose its size between two bursts.
 *
 * The end of a cycle makes the lowering due, and the first sample with room
 * for it carries it out.  Cycle and checkpoint timer have the same period and
 * keep their phase, so at the end of a cycle itself there may never be room.
 */
int64_t
walsizer_lower_rule(const WalsizerConfig *config, WalsizerState *state,
					const WalsizerFigures *figures, bool cycle)
{
	int64_t		now = state->last.now;
	int64_t		size = walsizer_max(walsizer_max(figures->wanted_mb, state->boost.size_mb),
									walsizer_least_size(state, config->min_mb));
	bool		lower = walsizer_is_own_raise(state) &&
		now - state->pacing.changed_at >= 2 * state->last.settings.timeout_ms &&
		now - state->pacing.kept_since >=
		walsizer_min(state->pacing.keep_ms, config->lookback_hours * WALSIZER_HOUR) &&
		(double) size <= LOWER_BELOW * (double) figures->in_effect_mb;

	state->pacing.lower_due = lower && (state->pacing.lower_due || cycle);
	return state->pacing.lower_due && walsizer_lowered_size(state, figures, size) != 0 ? size : 0;
}
