/*-------------------------------------------------------------------------
 *
 * policy/owner.c
 *	  Whose value is it: the administrator's, or ours, or lent for a while.
 *
 * A value that an administrator has set is adopted and never lowered.  Part of
 * the policy: this file includes no server header.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "policy/internal.h"

/* Take the value in force for the administrator's. */
static void
adopt(WalsizerState *state, const WalsizerSample *sample)
{
	state->found = sample->settings.max_wal_size;
	state->found_by_alter_system = sample->alter_system;
	state->configured = sample->configured;
	state->own = 0;
	state->tried = 0;
	state->returning = 0;
	state->boost_return = 0;
}

/*
 * A value that we wrote is in effect, as sample->settings says.  To be called as
 * soon as that is known: a change by an administrator that comes before the next
 * sample is to be seen as one.
 */
void
walsizer_took_effect(WalsizerState *state, const WalsizerSample *sample)
{
	int64_t		in_force = sample->settings.max_wal_size;

	if (in_force == state->tried)
		state->tried = 0;
	if (state->own == in_force)
		return;
	if (in_force > state->own)
		state->keep_until = sample->now + WALSIZER_KEEP_RAISE;
	state->changed_at = sample->now;
	walsizer_note_change(state, sample);
	state->own = in_force;
	state->returning = 0;
}

/*
 * The note says that the value in effect is ours, and what it replaced.  It was
 * written together with the value, so it is right where memory is not: in a
 * backup or after pg_rewind, which copy the two files at different moments, or
 * after a crash between writing the value and remembering it.
 */
static void
recognize(WalsizerState *state, const WalsizerSample *sample)
{
	if (state->found == 0)
		state->configured = sample->configured;
	state->found = sample->note.found;
	state->found_by_alter_system = sample->note.found_by_alter_system;
	walsizer_took_effect(state, sample);
}

/*
 * Compare the value in effect with what we know.  Returns true if an administrator
 * changed it: then it is adopted and left alone for a while.
 *
 * An administrator may also set the very value that we wrote, to keep it: then
 * there is no note that speaks of it.
 */
bool
walsizer_note_owner(WalsizerState *state, const WalsizerSample *sample)
{
	int64_t		in_force = sample->settings.max_wal_size;

	if (in_force == state->tried)
		state->tried = 0;
	if (sample->note.found > 0 && sample->note.written == in_force)
	{
		recognize(state, sample);
		return false;
	}
	if (state->found == 0)
	{
		adopt(state, sample);
		return false;
	}
	if (state->returning != 0 && in_force == state->returning)
	{
		walsizer_given_back(state, in_force);
		return false;
	}
	if (in_force == state->found && state->own == 0)
	{
		/* The value may have moved from one file to another. */
		state->found_by_alter_system = sample->alter_system;
		return false;
	}

	adopt(state, sample);
	state->settle_until = sample->now + walsizer_patience(sample->settings.timeout);
	state->changed_at = sample->now;
	walsizer_note_change(state, sample);
	return true;
}

/*
 * Has somebody edited the configuration file underneath our value, which keeps
 * the edit from taking effect?  So it remains until our value has given way.
 *
 * Not if there is an ALTER SYSTEM of the administrator's underneath: that would
 * hide the edit just as well.
 */
bool
walsizer_note_edit(WalsizerState *state, const WalsizerSample *sample)
{
	if (sample->configured < 0 || sample->configured == state->configured)
		return false;
	if (state->configured >= 0 && state->own != 0 && !state->found_by_alter_system)
		return true;
	state->configured = sample->configured;
	return false;
}

/* Our value stands alone: raised by us, and nobody touched it since. */
bool
walsizer_is_own_raise(const WalsizerState *state, int64_t in_force)
{
	return state->own != 0 && in_force == state->own && in_force > state->found;
}

/*
 * Our line is about to go, or gone: this value (MB) takes effect with the next
 * reload that the server does not refuse.  0: nothing of that kind any more.
 */
void
walsizer_returns(WalsizerState *state, int64_t max_wal_size_mb)
{
	state->returning = max_wal_size_mb;
}

/* Our value is gone by request; this one (MB) is in force and not ours. */
void
walsizer_given_back(WalsizerState *state, int64_t in_force)
{
	state->found = in_force;
	state->own = 0;
	state->tried = 0;
	state->edit_tried = 0;
	state->returning = 0;
	state->boost_return = 0;
	state->settle_until = state->last_ms + walsizer_patience(state->last_settings.timeout);
	state->changed_at = state->last_ms;
}

/*-------------------------------------------------------------------------
 * Planned loads
 *-------------------------------------------------------------------------
 */

/*
 * Begin and end of a planned load, which sample->boost (MB) tells.
 *
 * What was in force at the beginning is to come back at the end.  The windows
 * that contain WAL of the planned load are not remembered: it was planned, the
 * next one will be too.  One timeout after its end no window does so any more;
 * another timeout is left for coming back.  Demand that has not gone by then is
 * no longer that of the plan, and what it needs is up to the other rules.
 */
void
walsizer_note_boost(WalsizerState *state, const WalsizerSample *sample)
{
	int64_t		timeout = sample->settings.timeout;

	state->boost = walsizer_max(0, walsizer_min(sample->boost, WALSIZER_LIMIT_MB));
	if (state->boost > 0 && state->boost_return == 0)
		state->boost_return = sample->settings.max_wal_size;
	if (state->boost_return == 0)
		return;

	if (state->boost > 0 || state->planned_until == 0 ||
		state->planned_until > sample->now + timeout)
		state->planned_until = sample->now + timeout;
	else if (sample->now > state->planned_until + timeout ||
			 sample->settings.max_wal_size <= state->boost_return)
		state->boost_return = 0;
}

/* Is a planned load over, and its size not given back yet? */
bool
walsizer_boost_is_over(const WalsizerState *state)
{
	return state->boost == 0 && state->boost_return != 0;
}
