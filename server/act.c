/*-------------------------------------------------------------------------
 *
 * server/act.c
 *	  Carry out a decision: write, reload, compare, record.
 *
 * Only a reload shows whether a value in postgresql.auto.conf takes effect: an
 * error anywhere in the configuration refuses the whole reload, and a value on
 * the command line overrides every file.  Only the worker runs this, so it
 * reads shared memory without the lock.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>

#include "access/xlog.h"
#include "miscadmin.h"
#include "postmaster/bgwriter.h"
#include "postmaster/interrupt.h"
#include "storage/latch.h"

#include "server/compat.h"
#include "server/server.h"

#define RELOAD_WAIT_MS		10000	/* longest wait for our own reload */

/*
 * Wait until the server tells this process to reread its configuration, at most
 * so long (ms).  Returns false if it does not.
 */
bool
walsizer_await_reload(int64 wait)
{
	int64		deadline = walsizer_monotonic_ms() + wait;
	int64		left = wait;

	while (!ConfigReloadPending && left > 0)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 (long) left, walsizer_wait_event(WALSIZER_WAIT_RELOAD));
		ResetLatch(MyLatch);
		walsizer_check_for_interrupts();
		left = deadline - walsizer_monotonic_ms();
	}
	/* the latch may also have been set for something else */
	SetLatch(MyLatch);
	return ConfigReloadPending;
}

/*
 * Make the server reread its configuration, and wait until this process has
 * done so.  Returns false if that takes longer than RELOAD_WAIT_MS.
 */
bool
walsizer_reload(void)
{
	if (ConfigReloadPending)
		walsizer_reread_configuration();
	if (kill(PostmasterPid, SIGHUP) != 0 || !walsizer_await_reload(RELOAD_WAIT_MS))
		return false;
	walsizer_reread_configuration();
	return true;
}

/*
 * Write this note with its line, and bring it into effect for the whole server.
 * Waits up to RELOAD_WAIT_MS for the reload, with interrupts.  Reports failures
 * in *applied and raises no error for them.
 */
static void
apply(const WalsizerNote *note, WalsizerApplied *applied)
{
	int64		reloads = walsizer_shared->unlocked.reloads;
	const char *message;

	applied->outcome = walsizer_write_note(note, &message);
	if (applied->outcome == WALSIZER_APPLIED)
	{
		if (!walsizer_reload())
		{
			/* the value takes effect when the server handles the signal */
			applied->outcome = WALSIZER_REFUSED;
			message = "the server has not reloaded its configuration";
		}
		else if (walsizer_shared->unlocked.reloads == reloads)
		{
			applied->outcome = WALSIZER_REFUSED;
			message = "an error in the configuration files keeps the reload from taking effect";
		}
		else if (walsizer_auto_conf_in_effect().note.kind != note->kind)
		{
			applied->outcome = WALSIZER_OVERRIDDEN;
			message = "an administrator changed \"max_wal_size\" at the same moment";
		}
	}
	applied->in_effect_mb = max_wal_size_mb;
	strlcpy(applied->message, message != NULL ? message : "", sizeof(applied->message));
}

/*
 * The note for a decision to raise, to lower or to restore the original value; no
 * note if there is no value of ours to replace, not even one that awaits a reload.
 */
static WalsizerNote
note_for(const WalsizerDecision *decision)
{
	const WalsizerOwner *owner = &walsizer_shared->state.owner;
	WalsizerNote note = {WALSIZER_NOTE_WRITTEN, owner->own_mb, owner->original_mb,
		owner->original_by_alter_system};

	if (decision->action != WALSIZER_REVERT)
	{
		note.written_mb = decision->target_mb;
		return note;
	}
	if (owner->own_mb == 0)
		note = walsizer_note_waiting();
	return note.kind != WALSIZER_NOTE_WRITTEN ? (WalsizerNote) {0} :
		walsizer_restoring(&note, walsizer_shared->unlocked.configured_mb, WALSIZER_NOTE_RESTORED);
}

/*
 * Carry out a decision to raise, to lower, to restore the original value or to
 * request a checkpoint, without waiting for that, and record the result, also in
 * *applied: no outcome if there is nothing to restore.
 * A dry run only says what it would do, except for a revert on request.  Waits
 * up to 10 seconds for the reload; takes the lock briefly.
 *
 * The note is on disk together with the value, so the state file can wait until
 * the value is in effect.  A raise needs room that was seen: without it,
 * walsizer.max_disk_percent would limit nothing.
 */
void
walsizer_act(const WalsizerDecision *decision, const WalsizerSample *sample,
			 WalsizerApplied *applied)
{
	WalsizerState *state = &walsizer_shared->state;
	WalsizerSettings *settings = &walsizer_shared->sample.settings;
	WalsizerFigures *figures = &walsizer_shared->decision.figures;
	WalsizerEvent event = walsizer_make_event(decision, sample, sample->settings.max_wal_size_mb);
	WalsizerNote note = note_for(decision);

	memset(applied, 0, sizeof(*applied));
	applied->in_effect_mb = max_wal_size_mb;
	if (decision->action == WALSIZER_CHECKPOINT)
	{
		/* as CHECKPOINT does; a standby may have nothing to do */
		RequestCheckpoint(CHECKPOINT_IMMEDIATE | (sample->standby ? 0 : CHECKPOINT_FORCE));
		applied->outcome = WALSIZER_APPLIED;
		walsizer_record_request(decision, sample);
		return;
	}
	if (note.kind == WALSIZER_NO_NOTE)
		return;

	if (decision->reason == WALSIZER_BECAUSE_EDITED)
		event.action = WALSIZER_EXTERNAL;
	if (walsizer_dry_run && decision->reason != WALSIZER_BECAUSE_REVERT)
		applied->outcome = WALSIZER_DRY_RUN;
	else if (decision->action == WALSIZER_RAISE && !state->disk.known)
	{
		applied->outcome = WALSIZER_FAILED;
		strlcpy(applied->message, "the free space for \"pg_wal\" could not be determined",
				sizeof(applied->message));
	}
	else
		apply(&note, applied);

	if (applied->outcome == WALSIZER_APPLIED)
	{
		/* it counts, and is shown, from now on, not from the next sample */
		LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
		if (note.kind == WALSIZER_NOTE_WRITTEN)
			walsizer_took_effect(state, sample->now, applied->in_effect_mb);
		else
			walsizer_original_is_back(state, applied->in_effect_mb);
		settings->max_wal_size_mb = figures->in_effect_mb = applied->in_effect_mb;
		figures->trigger_point = walsizer_trigger_point(applied->in_effect_mb, settings);
		LWLockRelease(walsizer_shared->lock);
		event.new_mb = applied->in_effect_mb;
	}
	walsizer_record_attempt(&event, applied, &decision->figures, sample->act_now);
}
