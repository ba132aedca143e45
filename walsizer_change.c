/*-------------------------------------------------------------------------
 *
 * walsizer_change.c
 *	  Carrying out a decision: apply it, note whose value it is, record it.
 *
 * For the worker only, which alone writes what it needs of shared memory and so
 * reads it without the lock.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "walsizer.h"
#include "walsizer_memory.h"

/* Note which value we are about to write, or that we could not. */
static void
note_written(int64 mb, int64 returning)
{
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_wrote(&walsizer_shared->state, mb);
	walsizer_returns(&walsizer_shared->state, returning);
	LWLockRelease(walsizer_shared->lock);
}

/*
 * Try to put mb into force (dry run: only say so).
 *
 * That the value is ours is on disk before the value itself is: if the server
 * crashes in between, the next start finds an intention without effect, and
 * not an effect that nobody owns.
 */
static void
try_change(int64 mb, WalsizerApplied *applied)
{
	const WalsizerState *state = &walsizer_shared->state;
	int64		written_before = state->written;
	int64		returning_before = state->returning;
	WalsizerNote note = {mb, state->found, state->found_by_alter_system};
	char		text[WALSIZER_NOTE_SIZE];
	const char *obstacle;

	if (walsizer_dry_run)
	{
		applied->outcome = WALSIZER_DRY_RUN;
		return;
	}
	obstacle = walsizer_apply_obstacle_now(&applied->outcome);
	if (obstacle != NULL)
	{
		strlcpy(applied->message, obstacle, sizeof(applied->message));
		return;
	}
	note_written(mb, 0);
	walsizer_state_save();
	walsizer_note_format(&note, text);
	walsizer_apply_set(mb, text, applied);
	if (walsizer_shared->auto_conf != mb)	/* it was not written */
		note_written(written_before, returning_before);
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

/*
 * Remove our line, or put back the line that was there: because
 * walsizer_revert() asks for it, or to make way for an administrator's edit.  A
 * value with which the server would not start is not uncovered: then a line with
 * what was found stays, or with two segments if that was less.  Where nothing is
 * ours, nothing is done: the outcome is "noted".  Waits as long as
 * walsizer_apply_reset() does; takes the lock for an instant only.
 */
void
walsizer_give_back(const WalsizerDecision *decision, const WalsizerSample *sample,
				   WalsizerApplied *applied)
{
	WalsizerState *state = &walsizer_shared->state;
	int64		in_force = walsizer_shared->sample.settings.max_wal_size;
	int64		least = 2 * sample->settings.segment_size / WALSIZER_MB;
	WalsizerEvent event = walsizer_make_event(decision, sample, in_force);

	if (decision->reason == WALSIZER_BECAUSE_EDITED)
		event.action = WALSIZER_EXTERNAL;
	memset(applied, 0, sizeof(*applied));
	applied->in_force = in_force;
	if (state->own == 0 && state->written == 0)
		return;

	if (state->found_by_alter_system || !walsizer_shared->configured_valid)
		walsizer_apply_set(Max(state->found, least), NULL, applied);
	else
		walsizer_apply_reset(applied);

	if (applied->outcome == WALSIZER_APPLIED)
	{
		LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
		walsizer_given_back(state, applied->in_force);
		publish_in_force(applied->in_force);
		LWLockRelease(walsizer_shared->lock);
		event.new_size = applied->in_force;
	}
	else if (applied->outcome == WALSIZER_REFUSED)
	{
		LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
		walsizer_returns(state, decision->target);
		LWLockRelease(walsizer_shared->lock);
	}
	walsizer_record_attempt(&event, applied, &decision->figures);
}
