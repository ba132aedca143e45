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

#define PACED_AT_MOST		1.5 /* most for pace, times the size for demand */
#define PACED_MARGIN		1.1 /* times the measured pace, lest it creep up */
#define PACED_WORTH			1.06	/* least factor of a raise for pace */

/* Lowering is worth it if the new size is at most this part of the old. */
#define LOWER_BELOW			0.8

/*
 * Checkpoints were forced, and demand shows that the value is too small.
 *
 * Those forced by a statement that still runs with a smaller value count, too:
 * only demand, which the next statement will have as well, tells whether a
 * raise helps.
 *
 * Each checkpoint causes full-page images, so demand with several of them
 * exceeds what the same load writes when none is forced (1.3 to 1.6 times was
 * seen).  That is headroom enough.
 *
 * A burst across the end of a cycle may be too small at both ends, and the
 * checkpoints that it forced may lie in two windows.  So the largest figures of
 * the cycle count, but nothing raises again for those before the last change,
 * except on request: a limit may have kept that change small.
 */
int64_t
walsizer_forced_rule(const WalsizerConfig *config, const WalsizerState *state,
					 const WalsizerSample *sample, const WalsizerFigures *figures)
{
	int64_t		demand = walsizer_max(figures->demand, state->cycle.demand);
	int64_t		forced = state->cycle.forced;
	int64_t		since = walsizer_forced_total(state) - state->checkpoints.forced_before;

	if ((sample->act_now ? forced : walsizer_min(forced, since)) < config->threshold ||
		walsizer_size_for(demand, &sample->settings) <= figures->in_effect_mb)
		return 0;
	return forced > 1 ? walsizer_size_for(demand, &sample->settings) :
		walsizer_size_with_headroom(config, &sample->settings, demand);
}

/*
 * A checkpoint is about to be forced.
 *
 * The estimate improves with time, so act only within walsizer_lead() or when
 * most of the trigger point is used.  A load that was seen before is not taken
 * for more than it was, unless it will be more within the lead.  The estimate
 * may be wrong, so one raise goes to at most twice the value in effect, unless
 * demand already asks for more, or twice would only last for another lead.
 */
int64_t
walsizer_predict_rule(const WalsizerConfig *config, const WalsizerSample *sample,
					  const WalsizerFigures *figures)
{
	const WalsizerSettings *settings = &sample->settings;
	int64_t		lead = walsizer_lead(config);
	int64_t		ahead = walsizer_to_int64((double) figures->rate * (double) lead / 1000.0);
	int64_t		projected = figures->projected;
	int64_t		known;
	int64_t		soon;
	int64_t		most;

	/*
	 * Without any load, no raise is urgent.  While a checkpoint outlasts the
	 * timeout, the next one starts at its end in any case.
	 */
	if (!config->predict || projected < figures->trigger_point || figures->rate == 0 ||
		(sample->checkpoint_running && figures->until_timed_ms == 0) ||
		(figures->until_forced_ms > lead &&
		 (double) figures->used < NEAR_TRIGGER_POINT * (double) figures->trigger_point))
		return 0;
	known = walsizer_to_int64((double) figures->learned * KNOWN_LOAD);
	if (figures->demand + ahead <= known)
		projected = walsizer_min(projected, known);
	if (walsizer_size_for(projected, settings) <= figures->in_effect_mb)
		return 0;

	soon = walsizer_min(WALSIZER_MOST_BYTES, figures->used + ahead);
	most = walsizer_max(walsizer_whole_segments(2 * figures->in_effect_mb, settings),
						walsizer_size_with_headroom(config, settings,
													walsizer_max(figures->demand, soon)));
	return walsizer_min(walsizer_size_with_headroom(config, settings, projected), most);
}

/*
 * A standby is sized for the primary, for the day on which it is promoted.
 * Its own restartpoints are no guide: WAL forces them when replay is fast or
 * finds no checkpoint to use.  Nothing is urgent: demand in the window counts
 * only at the end of a cycle.
 */
int64_t
walsizer_standby_rule(const WalsizerConfig *config, const WalsizerState *state,
					  const WalsizerSample *sample, const WalsizerFigures *figures, bool due)
{
	int64_t		demand = due ? walsizer_max(state->cycle.demand, state->primary.demand) :
		state->primary.demand;

	if (walsizer_size_for(demand, &sample->settings) <= figures->in_effect_mb)
		return 0;
	return walsizer_size_with_headroom(config, &sample->settings, demand);
}

/*
 * The largest size (MB) that pacing by time may cost, given that demand.  For a
 * raise it is that of the load whose pace was measured: the largest known may
 * be of another load, or come from checkpoints that were forced.
 */
static int64_t
most_for_pace(const WalsizerSettings *settings, int64_t wal_bytes)
{
	double		most = PACED_AT_MOST * (double) walsizer_size_for(wal_bytes, settings);

	return walsizer_whole_segments(walsizer_min((int64_t) most, WALSIZER_MOST_MB), settings);
}

/*
 * No checkpoint is forced any more, but full-page images make timed
 * checkpoints run too fast.  Raise only what is our own already, because a
 * value that was never too small needs no change, only as far as pace asks, and
 * only within the limits, without a warning.
 */
int64_t
walsizer_pace_rule(const WalsizerState *state, const WalsizerFigures *figures)
{
	if (!walsizer_is_own_raise(state, figures->in_effect_mb) ||
		figures->pace <= figures->trigger_point ||
		(double) figures->paced_mb < PACED_WORTH * (double) figures->in_effect_mb ||
		!walsizer_worth_raising(figures, figures->paced_mb))
		return 0;
	return figures->paced_mb;
}

/*
 * The largest demand of the whole lookback needs much less than our own raise
 * provides, and less than pacing by time may cost: otherwise what was raised
 * for pace by day would be lowered every night.
 *
 * Two whole windows must have passed since the last change, and an hour since
 * the last raise: a load that comes and goes within minutes and was
 * overestimated at first would lose its size between two bursts.
 *
 * The end of a cycle makes the lowering due, and the first sample with room
 * for it carries it out.  Cycle and checkpoint timer have the same period and
 * keep their phase, so at the end of a cycle itself there may never be room.
 */
int64_t
walsizer_lower_rule(const WalsizerConfig *config, WalsizerState *state,
					const WalsizerSample *sample, const WalsizerFigures *figures, bool cycle)
{
	int64_t		size = walsizer_max(walsizer_max(figures->wanted_mb, state->boost.size_mb),
									walsizer_least_size(state, &sample->settings, config->min_mb));
	bool		lower = walsizer_is_own_raise(state, figures->in_effect_mb) &&
		sample->now - state->pacing.changed_at >= 2 * sample->settings.timeout_ms &&
		sample->now >= state->pacing.keep_until &&
		(double) size <= LOWER_BELOW * (double) figures->in_effect_mb &&
		most_for_pace(&sample->settings, walsizer_max(figures->demand, figures->learned)) <
		figures->in_effect_mb;

	state->pacing.lower_due = lower && (state->pacing.lower_due || cycle);
	return state->pacing.lower_due &&
		walsizer_lowered_size(state, sample, figures, size) != 0 ? size : 0;
}

/* Fill the figures that depend on walsizer's settings. */
void
walsizer_fill_figures(const WalsizerConfig *config, WalsizerState *state,
					  const WalsizerSample *sample, WalsizerFigures *figures)
{
	const WalsizerSettings *settings = &sample->settings;
	int64_t		paced = walsizer_to_int64((double) figures->pace * PACED_MARGIN);
	int64_t		demand;

	figures->learned = walsizer_learned_now(state, sample, config->lookback_hours);
	demand = walsizer_max(figures->demand, figures->learned);
	figures->paced_mb = walsizer_min(walsizer_size_for(paced, settings),
									 most_for_pace(settings, figures->demand));
	figures->wanted_mb = walsizer_max(walsizer_size_with_headroom(config, settings, demand),
									  figures->paced_mb);
	walsizer_keep_full_interval(config, state, sample);
	walsizer_find_limit(config, state, sample, figures);
}
