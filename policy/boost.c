/*-------------------------------------------------------------------------
 *
 * policy/boost.c
 *	  Planned loads: their beginning and end, and the size they ask for.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "policy/internal.h"

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
walsizer_observe_boost(WalsizerState *state, const WalsizerSample *sample)
{
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
		walsizer_add_mark(state, sample->now, state->window.lsn, sample->hour);
	if (sample->now > boost->planned_until + timeout ||
		sample->settings.max_wal_size_mb <= boost->return_mb)
		boost->return_mb = 0;
}

/*
 * The size (MB) to lower to once no window has WAL of the planned load any
 * more, or 0: what was in effect before if that suffices for the demand since,
 * else what demand needs, in one step.  It does not wait for keep_until: the
 * raise was meant to be temporary.
 */
int64_t
walsizer_boost_over_rule(const WalsizerConfig *config, const WalsizerState *state,
						 const WalsizerSample *sample, const WalsizerFigures *figures)
{
	const WalsizerSettings *settings = &sample->settings;
	int64_t		size;

	if (state->boost.size_mb != 0 || state->boost.return_mb == 0 ||
		sample->now < state->boost.planned_until ||
		!walsizer_is_own_raise(state, figures->in_effect_mb))
		return 0;

	size = walsizer_max(state->boost.return_mb,
						walsizer_least_size(state, settings, config->min_mb));
	if (walsizer_size_for(figures->demand, settings) > size)
		size = walsizer_max(size, figures->wanted_mb);
	return size < figures->in_effect_mb &&
		walsizer_lowered_size(state, sample, figures, size) != 0 ? size : 0;
}
