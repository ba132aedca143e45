/*-------------------------------------------------------------------------
 *
 * policy/owner.c
 *	  Whose value is it: an administrator's, or ours.
 *
 * A value that an administrator has set is adopted and never lowered.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "policy/internal.h"

#define WEEK		(168 * WALSIZER_HOUR)	/* ms */

/* The value in effect (MB) is not ours: it is the original one. */
static void
adopt(WalsizerState *state, int64_t in_effect_mb, bool by_alter_system)
{
	state->owner = (WalsizerOwner) {in_effect_mb, by_alter_system, 0};
	state->pacing.tried_mb = 0;
	state->pacing.edit_tried_mb = 0;
	state->boost.return_mb = 0;
}

/* Leave the value alone for walsizer_patience(), from now on. */
static void
leave_alone(WalsizerState *state)
{
	state->pacing.leave_alone_until =
		state->last.now + walsizer_patience(state->last.settings.timeout_ms);
	state->pacing.changed_at = state->last.now;
}

/*
 * A value (MB) that we wrote is in effect now (ms).  Call this as soon as that is known,
 * so that an administrator's change before the next sample is seen as one.
 *
 * Demand does not lower a raise for WALSIZER_KEEP_RAISE, or for a week if it takes back a
 * lowering: a size that comes and goes saves nothing.  Planned loads come and go as planned.
 */
void
walsizer_took_effect(WalsizerState *state, int64_t now, int64_t in_effect_mb)
{
	WalsizerPacing *pacing = &state->pacing;
	bool		again = pacing->lowered_at != 0 && now - pacing->lowered_at < WEEK;

	if (in_effect_mb == pacing->tried_mb)
		pacing->tried_mb = 0;
	if (state->owner.own_mb == in_effect_mb)
		return;
	if (in_effect_mb > walsizer_max(state->owner.own_mb, state->boost.size_mb))
		walsizer_keep(pacing, now, again ? WEEK : WALSIZER_KEEP_RAISE);
	else if (in_effect_mb < state->owner.own_mb &&
			 (state->boost.size_mb != 0 || state->boost.return_mb == 0))
		pacing->lowered_at = now;
	pacing->changed_at = now;
	state->owner.own_mb = in_effect_mb;
}

/* We have restored the original value (MB). */
void
walsizer_original_is_back(WalsizerState *state, int64_t in_effect_mb)
{
	adopt(state, in_effect_mb, state->owner.original_by_alter_system);
	leave_alone(state);
}

/*
 * Compare the value in effect with what we know.  If an administrator changed
 * it, adopt it, leave it alone for a while and return true.
 *
 * The note is right where memory may not be: in a backup or after pg_rewind,
 * which copy the two files at different times, or after a crash between writing
 * the value and remembering it.  An administrator may also set the very value
 * that we wrote, to keep it: then no note is about it.
 */
bool
walsizer_observe_owner(WalsizerState *state)
{
	const WalsizerSample *sample = &state->last;
	WalsizerOwner *owner = &state->owner;
	const WalsizerNote *note = &sample->note;
	int64_t		in_effect_mb = sample->settings.max_wal_size_mb;

	if (note->kind == WALSIZER_NOTE_WRITTEN && note->written_mb == in_effect_mb)
	{
		owner->original_mb = note->original_mb;
		owner->original_by_alter_system = note->original_by_alter_system;
		walsizer_took_effect(state, sample->now, in_effect_mb);
	}
	else if (note->kind >= WALSIZER_NOTE_RESTORED && owner->own_mb != 0 &&
			 note->original_mb == in_effect_mb)
	{
		/* a worker or a server ended before it knew that we restored the value */
		adopt(state, in_effect_mb, sample->in_auto_conf);
		/* what the start of the server restored may be raised at once */
		if (note->kind == WALSIZER_NOTE_RESTORED)
			leave_alone(state);
	}
	else if (owner->original_mb == 0)
		adopt(state, in_effect_mb, sample->in_auto_conf);
	else if (in_effect_mb == owner->original_mb && owner->own_mb == 0)
		/* it may have moved from one file to another */
		owner->original_by_alter_system = sample->in_auto_conf;
	else
	{
		adopt(state, in_effect_mb, sample->in_auto_conf);
		leave_alone(state);
		return true;
	}
	return false;
}

/*
 * Has an administrator edited the configuration file while our value keeps the edit
 * from taking effect?  True until our value is removed.  Not if the original value is
 * an administrator's ALTER SYSTEM: that hides the edit just as well.
 */
bool
walsizer_observe_edit(const WalsizerState *state)
{
	const WalsizerOwner *owner = &state->owner;
	int64_t		configured_mb = state->last.configured_mb;

	return owner->own_mb != 0 && !owner->original_by_alter_system &&
		configured_mb != 0 && configured_mb != owner->original_mb;
}

/* Is the value in effect ours, and more than the original one? */
bool
walsizer_is_own_raise(const WalsizerState *state)
{
	int64_t		own_mb = state->owner.own_mb;

	return own_mb == state->last.settings.max_wal_size_mb && own_mb > state->owner.original_mb;
}
