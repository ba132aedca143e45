/*-------------------------------------------------------------------------
 *
 * policy/boost.c
 *	  Planned loads: their begin and end, and what size they ask for.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "policy/internal.h"

/*
 * Begin and end of a planned load, which sample->boost_mb tells.
 *
 * What was in effect at the beginning is to come back at the end.  The windows
 * that contain WAL of the planned load are not remembered: it was planned, the
 * next one will be too.  One timeout after its end no window does so any more;
 * another timeout is left for coming back.  Demand that has not gone by then is
 * no longer that of the plan, and what it needs is up to the other rules.
 */
void
walsizer_observe_boost(WalsizerState *state, const WalsizerSample *sample)
{
	WalsizerBoost *boost = &state->boost;
	int64_t		timeout = sample->settings.timeout_ms;

	boost->size_mb = walsizer_max(0, walsizer_min(sample->boost_mb, WALSIZER_MOST_MB));
	if (boost->size_mb > 0 && boost->return_mb == 0)
		boost->return_mb = sample->settings.max_wal_size_mb;
	if (boost->return_mb == 0)
		return;

	if (boost->size_mb > 0 || boost->planned_until == 0 ||
		boost->planned_until > sample->now + timeout)
		boost->planned_until = sample->now + timeout;
	else if (sample->now > boost->planned_until + timeout ||
			 sample->settings.max_wal_size_mb <= boost->return_mb)
		boost->return_mb = 0;
}

/*
 * A load was planned that needs more: the size (MB), or 0.  Whoever planned it was
 * told what the limits make of it; a limit that comes and goes changes the size no
 * more often than once in a timeout.
 */
int64_t
walsizer_boost_rule(const WalsizerState *state, const WalsizerSample *sample,
					const WalsizerFigures *figures)
{
	int64_t		size = walsizer_whole_segments(state->boost.size_mb, &sample->settings);

	if (state->boost.size_mb == 0 || !walsizer_worth_raising(figures, size) ||
		(!sample->adjust && sample->now - state->pacing.changed_at < sample->settings.timeout_ms))
		return 0;
	return size;
}

/*
 * A planned load is over: the size (MB) that was in effect before, or that demand
 * asks for by now, in one step, once no window contains WAL of the planned load any
 * more; or 0.  There is nothing else to wait for: the raise was for a time from the
 * beginning.
 */
int64_t
walsizer_boost_over_rule(const WalsizerConfig *config, const WalsizerState *state,
						 const WalsizerSample *sample, const WalsizerFigures *figures)
{
	int64_t		size = walsizer_max(walsizer_max(figures->wanted_mb, state->boost.return_mb),
									walsizer_least_size(state, &sample->settings, config->min_mb));

	if (state->boost.size_mb != 0 || state->boost.return_mb == 0 ||
		sample->now < state->boost.planned_until ||
		!walsizer_is_own_raise(state, figures->in_effect_mb) ||
		size >= figures->in_effect_mb ||
		!walsizer_can_lower_to(figures, size, &sample->settings))
		return 0;
	return size;
}
