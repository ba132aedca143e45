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
#include "postmaster/interrupt.h"
#include "storage/latch.h"

#include "server/compat.h"
#include "server/walsizer.h"

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
 * Try to raise or lower, or only say so in a dry run.  The note is on disk
 * together with the value and proves that it is ours, so the state file can
 * wait until the value is in effect.  A raise needs room that was seen: without
 * it, walsizer.max_disk_percent would limit nothing.
 */
static void
try_change(const WalsizerDecision *decision, WalsizerApplied *applied)
{
	const WalsizerState *state = &walsizer_shared->state;
	WalsizerNote note = {WALSIZER_NOTE_WRITTEN, decision->target_mb, state->owner.original_mb,
		state->owner.original_by_alter_system};

	if (walsizer_dry_run)
		applied->outcome = WALSIZER_DRY_RUN;
	else if (decision->action == WALSIZER_RAISE && !state->disk.known)
	{
		applied->outcome = WALSIZER_FAILED;
		applied->in_effect_mb = max_wal_size_mb;
		strlcpy(applied->message, "the free space for \"pg_wal\" could not be determined",
				sizeof(applied->message));
	}
	else
		apply(&note, applied);
}

/* Show the views the value now in effect.  The caller holds the lock. */
static void
publish_in_effect(int64 in_effect_mb)
{
	WalsizerSettings *settings = &walsizer_shared->sample.settings;
	WalsizerFigures *figures = &walsizer_shared->decision.figures;

	settings->max_wal_size_mb = in_effect_mb;
	figures->in_effect_mb = in_effect_mb;
	figures->trigger_point = walsizer_trigger_point(in_effect_mb, settings);
}

/*
 * Carry out a decision to raise or lower, and record the result, also in
 * *applied.  Waits up to 10 seconds for the reload; takes the lock briefly.
 */
void
walsizer_change_setting(const WalsizerDecision *decision, const WalsizerSample *sample,
						WalsizerApplied *applied)
{
	WalsizerEvent event = walsizer_make_event(decision, sample, sample->settings.max_wal_size_mb);

	try_change(decision, applied);
	if (applied->outcome == WALSIZER_APPLIED)
	{
		/* it is ours from now on, not from the next sample */
		LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
		walsizer_took_effect(&walsizer_shared->state, sample->now, applied->in_effect_mb);
		publish_in_effect(applied->in_effect_mb);
		LWLockRelease(walsizer_shared->lock);
	}
	walsizer_record_attempt(&event, applied, &decision->figures, sample->adjust);
}

/*
 * Restore the administrator's value: for walsizer_revert(), or to make way for an
 * edit.  Does nothing, without an outcome, if there is no value of ours, not even
 * one that awaits a reload.  A dry run makes way for no edit.  Waits and locks as
 * walsizer_change_setting() does.
 */
void
walsizer_restore_original(const WalsizerDecision *decision, const WalsizerSample *sample,
						  WalsizerApplied *applied)
{
	WalsizerState *state = &walsizer_shared->state;
	int64		in_effect_mb = walsizer_shared->sample.settings.max_wal_size_mb;
	WalsizerEvent event = walsizer_make_event(decision, sample, in_effect_mb);
	WalsizerNote ours = {WALSIZER_NOTE_WRITTEN, state->owner.own_mb, state->owner.original_mb,
		state->owner.original_by_alter_system};

	if (decision->reason == WALSIZER_BECAUSE_EDITED)
		event.action = WALSIZER_EXTERNAL;
	memset(applied, 0, sizeof(*applied));
	applied->in_effect_mb = in_effect_mb;
	if (state->owner.own_mb == 0)
		ours = walsizer_note_waiting();
	if (ours.kind != WALSIZER_NOTE_WRITTEN)
		return;				/* without an outcome: there is nothing of ours */

	if (walsizer_dry_run && decision->reason == WALSIZER_BECAUSE_EDITED)
		applied->outcome = WALSIZER_DRY_RUN;
	else
	{
		WalsizerNote note = walsizer_restoring(&ours, walsizer_shared->unlocked.configured_mb,
											   WALSIZER_NOTE_RESTORED);

		apply(&note, applied);
	}

	if (applied->outcome == WALSIZER_APPLIED)
	{
		LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
		walsizer_original_is_back(state, applied->in_effect_mb);
		publish_in_effect(applied->in_effect_mb);
		LWLockRelease(walsizer_shared->lock);
		event.new_mb = applied->in_effect_mb;
	}
	walsizer_record_attempt(&event, applied, &decision->figures, sample->adjust);
}
