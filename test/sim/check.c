/*-------------------------------------------------------------------------
 *
 * check.c
 *	  What must hold for each decision and each state, whatever the load.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "sim.h"
#include "test/prove/ranges.h"

/* The rule that a decision about this value in effect (MB) breaks, or NULL. */
const char *
sim_broken_rule(const WalsizerConfig *config, const WalsizerSettings *settings,
				const WalsizerState *state, const WalsizerDecision *d)
{
	int64_t		in_effect_mb = settings->max_wal_size_mb;
	int64_t		segment = settings->segment_bytes / WALSIZER_MB;

	if (d->action != WALSIZER_RAISE && d->action != WALSIZER_LOWER)
		return NULL;
	if (d->target_mb % segment != 0 && d->target_mb != state->owner.original_mb)
		return "not in whole segments";
	if (d->target_mb < 2 * segment)
		return "less than two segments";
	if (d->action == WALSIZER_RAISE)
	{
		if (d->target_mb <= in_effect_mb)
			return "a raise that is none";
		if (d->target_mb > config->max_mb)
			return "raised beyond walsizer.max";
	}
	else
	{
		if (d->target_mb >= in_effect_mb)
			return "a lowering that is none";
		if (state->owner.own_mb != in_effect_mb || d->target_mb < state->owner.original_mb)
			return "lowered what was not raised by walsizer";
	}
	return NULL;
}

/* The field of a state that is not in its range, or NULL. */
const char *
sim_out_of_range(const WalsizerState *state)
{
#define MUST_BE_WITHIN(field, least, most) \
	if ((field) < (least) || (field) > (most)) \
		return #field
#define NOT_CHECKED(...)		/* the sanitizers do */

	STATE_RANGES(state, MUST_BE_WITHIN, MUST_BE_WITHIN, NOT_CHECKED);
	return NULL;
}
