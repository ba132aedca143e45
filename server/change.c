/*-------------------------------------------------------------------------
 *
 * server/change.c
 *	  Carrying out a decision: apply it, remember whose value it is, record it.
 *
 * For the worker only, which alone writes what it needs of shared memory and so
 * reads it without the lock.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"

#include "server/walsizer.h"
#include "policy/memory.h"

/*
 * Try to give max_wal_size this value (MB; dry run: only say so).
 *
 * Whose value it is, and what it replaced, is on disk with the value itself: in
 * the note beside it.  So the state file can wait until the value is in effect.
 */
static void
try_change(int64 mb, WalsizerApplied *applied)
{
	const WalsizerState *state = &walsizer_shared->state;
	WalsizerNote note = {mb, state->found, state->found_by_alter_system};

	if (walsizer_dry_run)
		applied->outcome = WALSIZER_DRY_RUN;
	else
		walsizer_apply(mb, &note, applied);
}

/*
 * Another value is in force than when the sample was taken: let the views show
 * it now, and not with the next sample.  The caller holds the lock.
 */
static void
publish_in_force(int64 in_force)
{
	WalsizerSettings *settings = &walsizer_shared->sample.settings;
	WalsizerFigures *figures = &walsizer_shared->decision.figures;

	settings->max_wal_size = in_force;
	figures->in_force = in_force;
	figures->capacity = walsizer_capacity(in_force, settings);
}

/* Our value is in force: it is ours from now on, not from the next sample. */
static void
note_effect(const WalsizerSample *sample, int64 in_force)
{
	WalsizerSample now = *sample;

	now.settings.max_wal_size = in_force;
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_took_effect(&walsizer_shared->state, &now);
	publish_in_force(in_force);
	LWLockRelease(walsizer_shared->lock);
}

/*
 * Carry out a decision to raise or lower, and record what came of it, which goes
 * to *applied as well.  Waits as long as walsizer_apply_set() does; takes the lock
 * for an instant only.
 */
void
walsizer_change_setting(const WalsizerDecision *decision, const WalsizerSample *sample,
						WalsizerApplied *applied)
{
	WalsizerEvent event = walsizer_make_event(decision, sample, sample->settings.max_wal_size);

	try_change(decision->target, applied);
	if (applied->outcome == WALSIZER_APPLIED)
		note_effect(sample, applied->in_force);
	walsizer_record_attempt(&event, applied, &decision->figures);
}

/* Remember what will be in effect when our line is gone, or 0, on disk too. */
static void
remember_return(int64 mb)
{
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_returns(&walsizer_shared->state, mb);
	LWLockRelease(walsizer_shared->lock);
	walsizer_state_save();
}

/*
 * Remove our line, or put back the line that was there before it.  A value with
 * which the server would not start stays hidden: then a line with the original
 * value remains, or with two segments if that was less.
 *
 * What will be in effect is written to the state file before the line goes.  If
 * this process or the server dies in between, the next worker knows that it was us
 * who removed the line, and finishes what was begun.  Where the state file cannot be
 * written, which is logged, the line goes nevertheless: it was asked for.
 */
static void
try_return(int64 target, WalsizerApplied *applied)
{
	const WalsizerState *state = &walsizer_shared->state;
	int64		least = 2 * (wal_segment_size / WALSIZER_MB);
	int64		line = 0;

	if (state->found_by_alter_system || !walsizer_shared->configured_valid)
		line = target = Max(state->found, least);
	else if (walsizer_shared->configured > 0)
		target = walsizer_shared->configured;
	remember_return(target);
	walsizer_apply(line, NULL, applied);
	/* a refused line comes into effect with a later reload */
	if (applied->outcome != WALSIZER_APPLIED && applied->outcome != WALSIZER_REFUSED)
		remember_return(0);
}

/*
 * Return to the administrator's value: because walsizer_revert() asks for it, to
 * make way for an edit, or to finish what an earlier worker began.  Where nothing
 * is ours, nothing is done: the outcome is "noted".  A dry run makes way for no
 * edit.  Waits as long as walsizer_apply() does; takes the lock for an instant
 * only.
 */
void
walsizer_give_back(const WalsizerDecision *decision, const WalsizerSample *sample,
				   WalsizerApplied *applied)
{
	WalsizerState *state = &walsizer_shared->state;
	int64		in_force = walsizer_shared->sample.settings.max_wal_size;
	WalsizerEvent event = walsizer_make_event(decision, sample, in_force);

	if (decision->reason == WALSIZER_BECAUSE_EDITED)
		event.action = WALSIZER_EXTERNAL;
	memset(applied, 0, sizeof(*applied));
	applied->in_force = in_force;
	if (state->own == 0 && !walsizer_own_line_waits())
		return;

	if (walsizer_dry_run && decision->reason == WALSIZER_BECAUSE_EDITED)
		applied->outcome = WALSIZER_DRY_RUN;
	else
		try_return(decision->target, applied);

	if (applied->outcome == WALSIZER_APPLIED)
	{
		LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
		walsizer_given_back(state, applied->in_force);
		publish_in_force(applied->in_force);
		LWLockRelease(walsizer_shared->lock);
		event.new_size = applied->in_force;
	}
	walsizer_record_attempt(&event, applied, &decision->figures);
}
