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

/* Take the value in effect for the administrator's. */
static void
adopt(WalsizerState *state, const WalsizerSample *sample)
{
	state->owner.original_mb = sample->settings.max_wal_size_mb;
	state->owner.original_by_alter_system = sample->alter_system;
	state->owner.configured_mb = sample->configured_mb;
	state->owner.own_mb = 0;
	state->pacing.tried_mb = 0;
	state->owner.returning_mb = 0;
	state->boost.return_mb = 0;
}

/*
 * A value (MB) that we wrote is in effect now (ms).  To be called as soon as that
 * is known: a change by an administrator that comes before the next
 * sample is to be seen as one.
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

/*
 * The note says that the value in effect is ours, and what it replaced.  It was
 * written together with the value, so it is right where memory is not: in a
 * backup or after pg_rewind, which copy the two files at different moments, or
 * after a crash between writing the value and remembering it.
 */
static void
recognize(WalsizerState *state, const WalsizerSample *sample)
{
	if (state->owner.original_mb == 0)
		state->owner.configured_mb = sample->configured_mb;
	state->owner.original_mb = sample->note.original_mb;
	state->owner.original_by_alter_system = sample->note.original_by_alter_system;
	walsizer_took_effect(state, sample->now, sample->settings.max_wal_size_mb);
}

/*
 * Compare the value in effect with what we know.  Returns true if an administrator
 * changed it: then it is adopted and left alone for a while.
 *
 * An administrator may also set the very value that we wrote, to keep it: then
 * there is no note that speaks of it.
 */
bool
walsizer_observe_owner(WalsizerState *state, const WalsizerSample *sample)
{
	int64_t		in_effect_mb = sample->settings.max_wal_size_mb;

	if (in_effect_mb == state->pacing.tried_mb)
		state->pacing.tried_mb = 0;
	if (sample->note.original_mb > 0 && sample->note.written_mb == in_effect_mb)
	{
		recognize(state, sample);
		return false;
	}
	if (state->owner.original_mb == 0)
	{
		adopt(state, sample);
		return false;
	}
	if (state->owner.returning_mb != 0 && in_effect_mb == state->owner.returning_mb)
	{
		walsizer_original_is_back(state, in_effect_mb);
		return false;
	}
	if (in_effect_mb == state->owner.original_mb && state->owner.own_mb == 0)
	{
		/* The value may have moved from one file to another. */
		state->owner.original_by_alter_system = sample->alter_system;
		return false;
	}

	adopt(state, sample);
	state->pacing.leave_alone_until = sample->now + walsizer_patience(sample->settings.timeout_ms);
	state->pacing.changed_at = sample->now;
	walsizer_record_change(state, sample->now, in_effect_mb);
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
walsizer_observe_edit(WalsizerState *state, const WalsizerSample *sample)
{
	if (sample->configured_mb < 0 || sample->configured_mb == state->owner.configured_mb)
		return false;
	if (state->owner.configured_mb >= 0 && state->owner.own_mb != 0 && !state->owner.original_by_alter_system)
		return true;
	state->owner.configured_mb = sample->configured_mb;
	return false;
}

/* Our value stands alone: raised by us, and nobody touched it since. */
bool
walsizer_is_own_raise(const WalsizerState *state, int64_t in_effect_mb)
{
	return state->owner.own_mb != 0 && in_effect_mb == state->owner.own_mb && in_effect_mb > state->owner.original_mb;
}

/* Our value is gone by request; this one (MB) is in effect and not ours. */
void
walsizer_original_is_back(WalsizerState *state, int64_t in_effect_mb)
{
	state->owner.original_mb = in_effect_mb;
	state->owner.own_mb = 0;
	state->pacing.tried_mb = 0;
	state->pacing.edit_tried_mb = 0;
	state->owner.returning_mb = 0;
	state->boost.return_mb = 0;
	state->pacing.leave_alone_until = state->last.ms + walsizer_patience(state->last.settings.timeout_ms);
	state->pacing.changed_at = state->last.ms;
}

/*-------------------------------------------------------------------------
 * Planned loads
 *-------------------------------------------------------------------------
 */

/*
 * Begin and end of a planned load, which sample->boost_mb (MB) tells.
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
	int64_t		timeout = sample->settings.timeout_ms;

	state->boost.size_mb = walsizer_max(0, walsizer_min(sample->boost_mb, WALSIZER_MOST_MB));
	if (state->boost.size_mb > 0 && state->boost.return_mb == 0)
		state->boost.return_mb = sample->settings.max_wal_size_mb;
	if (state->boost.return_mb == 0)
		return;

	if (state->boost.size_mb > 0 || state->boost.planned_until == 0 ||
		state->boost.planned_until > sample->now + timeout)
		state->boost.planned_until = sample->now + timeout;
	else if (sample->now > state->boost.planned_until + timeout ||
			 sample->settings.max_wal_size_mb <= state->boost.return_mb)
		state->boost.return_mb = 0;
}

/* Is a planned load over, and its size not given back yet? */
bool
walsizer_boost_is_over(const WalsizerState *state)
{
	return state->boost.size_mb == 0 && state->boost.return_mb != 0;
}
