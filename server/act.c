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
static bool
reload(void)
{
	if (ConfigReloadPending)
		walsizer_reread_configuration();
	if (kill(PostmasterPid, SIGHUP) != 0 || !walsizer_await_reload(RELOAD_WAIT_MS))
		return false;
	walsizer_reread_configuration();
	return true;
}

/*
 * Set max_wal_size to mb (at least two segments) for the whole server, with a
 * note that says that it is ours.  Without a note (NULL) the value is the
 * administrator's; 0 MB removes the line.  Waits up to RELOAD_WAIT_MS, with
 * interrupts.  Reports failures in *applied and raises no error for them.
 */
static void
apply(int64 mb, const WalsizerNote *note, WalsizerApplied *applied)
{
	int64		reloads = walsizer_shared->reloads;
	const char *message = walsizer_obstacle_now(&applied->outcome);

	if (message == NULL)
		applied->outcome = walsizer_write_auto_conf(mb, note, &message);
	if (applied->outcome == WALSIZER_APPLIED)
	{
		if (!reload())
		{
			/* the value takes effect when the server handles the signal */
			applied->outcome = WALSIZER_REFUSED;
			message = "the server has not reloaded its configuration";
		}
		else if (walsizer_shared->reloads == reloads)
		{
			applied->outcome = WALSIZER_REFUSED;
			message = "an error in the configuration files keeps the reload from taking effect";
		}
		else if (mb > 0 && max_wal_size_mb != mb)
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
	WalsizerNote note = {decision->target_mb, state->owner.original_mb,
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
		apply(decision->target_mb, &note, applied);
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
	walsizer_record_attempt(&event, applied, &decision->figures);
}

/* Remember what takes effect without our line (0: nothing), also on disk. */
static void
remember_return(int64 mb)
{
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->state.owner.returning_mb = mb;
	LWLockRelease(walsizer_shared->lock);
	walsizer_state_save();
}

/*
 * Remove our line, or replace it by walsizer_original_line().  The state file
 * tells what will be in effect before that is done.  If this process or the
 * server dies in between, the next worker knows that it was us who removed it,
 * and finishes.  If the state file cannot be written, which is logged, the
 * line is removed nevertheless.
 */
static void
try_return(int64 target, WalsizerApplied *applied)
{
	int64		line = walsizer_original_line();

	if (line != WALSIZER_NO_LINE)
		target = line;
	else if (walsizer_shared->configured_mb > 0)
		target = walsizer_shared->configured_mb;
	remember_return(target);
	apply(line, NULL, applied);
	/* what is in the file takes effect with a later reload, even if it failed to be durable */
	if (applied->outcome != WALSIZER_APPLIED && applied->outcome != WALSIZER_REFUSED &&
		!(applied->outcome == WALSIZER_FAILED && walsizer_own_line_is_gone()))
		remember_return(0);
}

/*
 * Restore the administrator's value: for walsizer_revert(), to make way for an
 * edit, or to finish what an earlier worker began.  Does nothing, without an
 * outcome, if there is no value of ours.  A dry run makes way for no edit.
 * Waits and locks as walsizer_change_setting() does.
 */
void
walsizer_restore_original(const WalsizerDecision *decision, const WalsizerSample *sample,
						  WalsizerApplied *applied)
{
	WalsizerState *state = &walsizer_shared->state;
	int64		in_effect_mb = walsizer_shared->sample.settings.max_wal_size_mb;
	WalsizerEvent event = walsizer_make_event(decision, sample, in_effect_mb);

	if (decision->reason == WALSIZER_BECAUSE_EDITED)
		event.action = WALSIZER_EXTERNAL;
	memset(applied, 0, sizeof(*applied));
	applied->in_effect_mb = in_effect_mb;
	if (state->owner.own_mb == 0 && !walsizer_own_line_waits())
		return;

	if (walsizer_dry_run && decision->reason == WALSIZER_BECAUSE_EDITED)
		applied->outcome = WALSIZER_DRY_RUN;
	else
		try_return(decision->target_mb, applied);

	if (applied->outcome == WALSIZER_APPLIED)
	{
		LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
		walsizer_original_is_back(state, applied->in_effect_mb);
		publish_in_effect(applied->in_effect_mb);
		LWLockRelease(walsizer_shared->lock);
		event.new_mb = applied->in_effect_mb;
	}
	walsizer_record_attempt(&event, applied, &decision->figures);
}
