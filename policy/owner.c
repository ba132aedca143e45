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

/* The value in effect (MB) is not ours. */
static void
disown(WalsizerState *state, int64_t in_effect_mb)
{
	state->owner.original_mb = in_effect_mb;
	state->owner.own_mb = 0;
	state->owner.returning_mb = 0;
	state->pacing.tried_mb = 0;
	state->boost.return_mb = 0;
}

/* Leave the value alone for walsizer_patience(), from now on (ms). */
static void
leave_alone(WalsizerState *state, int64_t now, int64_t timeout_ms)
{
	state->pacing.leave_alone_until = now + walsizer_patience(timeout_ms);
	state->pacing.changed_at = now;
}

/* Adopt the value in effect as the original one. */
static void
adopt(WalsizerState *state, const WalsizerSample *sample)
{
	disown(state, sample->settings.max_wal_size_mb);
	state->owner.original_by_alter_system = sample->alter_system;
	state->owner.configured_mb = sample->configured_mb;
}

/*
 * A value (MB) that we wrote is in effect now (ms).  Call this as soon as that
 * is known, so that an administrator's change before the next sample is seen
 * as one.
 */
void
walsizer_took_effect(WalsizerState *state, int64_t now, int64_t in_effect_mb)
{
	if (in_effect_mb == state->pacing.tried_mb)
		state->pacing.tried_mb = 0;
	if (state->owner.own_mb == in_effect_mb)
		return;
	if (in_effect_mb > state->owner.own_mb)
		state->pacing.keep_until = now + WALSIZER_KEEP_RAISE;
	state->pacing.changed_at = now;
	walsizer_record_change(state, now, in_effect_mb);
	state->owner.own_mb = in_effect_mb;
	state->owner.returning_mb = 0;
}

/* We have restored the original value (MB). */
void
walsizer_original_is_back(WalsizerState *state, int64_t in_effect_mb)
{
	disown(state, in_effect_mb);
	state->pacing.edit_tried_mb = 0;
	leave_alone(state, state->last.ms, state->last.settings.timeout_ms);
}

/*
 * The note says that the value in effect is ours, and what it replaced.  It
 * was written together with the value, so it is right where memory may not be:
 * in a backup or after pg_rewind, which copy the two files at different times,
 * or after a crash between writing the value and remembering it.
 *
 * Without memory, files that say now something else than the note have been
 * edited since, unless they did not set the original value.
 */
static void
recognize(WalsizerState *state, const WalsizerSample *sample)
{
	if (state->owner.original_mb == 0)
		state->owner.configured_mb = sample->note.original_by_alter_system ?
			sample->configured_mb : sample->note.original_mb;
	state->owner.original_mb = sample->note.original_mb;
	state->owner.original_by_alter_system = sample->note.original_by_alter_system;
	walsizer_took_effect(state, sample->now, sample->settings.max_wal_size_mb);
}

/*
 * Compare the value in effect with what we know.  If an administrator changed
 * it, adopt it, leave it alone for a while and return true.  An administrator
 * may also set the very value that we wrote, to keep it: then no note is about
 * it.
 */
bool
walsizer_observe_owner(WalsizerState *state, const WalsizerSample *sample)
{
	const WalsizerOwner *owner = &state->owner;
	int64_t		in_effect_mb = sample->settings.max_wal_size_mb;

	if (sample->note.original_mb > 0 && sample->note.written_mb == in_effect_mb)
		recognize(state, sample);
	else if (owner->original_mb == 0)
		adopt(state, sample);
	else if (in_effect_mb == owner->returning_mb)
		walsizer_original_is_back(state, in_effect_mb);
	else if (in_effect_mb == owner->original_mb && owner->own_mb == 0)
		/* it may have moved from one file to another */
		state->owner.original_by_alter_system = sample->alter_system;
	else
	{
		adopt(state, sample);
		leave_alone(state, sample->now, sample->settings.timeout_ms);
		walsizer_record_change(state, sample->now, in_effect_mb);
		return true;
	}
	return false;
}

/*
 * Has an administrator edited the configuration file while our value keeps the
 * edit from taking effect?  True until our value is removed.  Not if the
 * original value is an administrator's ALTER SYSTEM: that hides the edit just
 * as well.
 */
bool
walsizer_observe_edit(WalsizerState *state, const WalsizerSample *sample)
{
	WalsizerOwner *owner = &state->owner;

	if (sample->configured_mb == 0 || sample->configured_mb == owner->configured_mb)
		return false;
	if (owner->configured_mb != 0 && owner->own_mb != 0 && !owner->original_by_alter_system)
		return true;
	owner->configured_mb = sample->configured_mb;
	return false;
}

/* Is the value in effect ours, and more than the original one? */
bool
walsizer_is_own_raise(const WalsizerState *state, int64_t in_effect_mb)
{
	const WalsizerOwner *owner = &state->owner;

	return in_effect_mb == owner->own_mb && in_effect_mb > owner->original_mb;
}
