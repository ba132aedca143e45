/*-------------------------------------------------------------------------
 *
 * server/act.c
 *	  Carry out a decision: write, reload, compare; and record in the history and
 *	  in the log what came of it.
 *
 * Only a reload shows whether a value in postgresql.auto.conf takes effect: an
 * error anywhere in the configuration refuses the whole reload, and a value on
 * the command line overrides every file.  Each change is logged; a trouble is
 * logged once, even if it is met again.  Sessions, too, ask for the verdict.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "postmaster/bgwriter.h"

#include "server/server.h"

#define NOTICE_AGAIN_MS		(3600 * 1000)	/* without what was logged */

/* Write this note with its line, and reload.  Waits up to 10 seconds, with interrupts. */
static WalsizerResult
apply(const WalsizerNote *note)
{
	TimestampTz reloaded_before = PgReloadTime;
	WalsizerResult result = walsizer_write_note(note);

	if (result.outcome != WALSIZER_APPLIED)
		return result;
	/* then the value takes effect when the server handles the signal */
	if (!walsizer_reload())
		return walsizer_result(WALSIZER_REFUSED, "the server has not reloaded its configuration");
	if (PgReloadTime == reloaded_before)
		return walsizer_result(WALSIZER_REFUSED,
							   "an error in the configuration files keeps the reload from taking effect");
	if (walsizer_auto_conf_in_effect().note.kind != note->kind)
		return walsizer_result(WALSIZER_OVERRIDDEN,
							   "an administrator changed \"max_wal_size\" at the same moment");
	return result;
}

/*
 * The note for a decision to raise, to lower or to restore the original value; no
 * note if there is no value of ours to replace, not even one that a reload would bring back.
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
		note = walsizer_note_waiting(true);
	return note.kind != WALSIZER_NOTE_WRITTEN ? (WalsizerNote) {0} :
		walsizer_restoring(&note, walsizer_shared->configured_mb, WALSIZER_NOTE_RESTORED);
}

/* The figures of a decision, for DETAIL. */
static const char *
figures_text(const WalsizerEvent *event)
{
	const WalsizerFigures *figures = &event->decision.figures;
	const WalsizerLastResort *resort = &walsizer_shared->state.last_resort;
	long long	demand_mb = figures->demand / WALSIZER_MB;
	long long	used_mb = figures->used / WALSIZER_MB;
	long long	trigger_mb = figures->trigger_point / WALSIZER_MB;
	double		rate_mb = (double) figures->rate / WALSIZER_MB;

	if (resort->fills)
		return psprintf("Room for %lld MB of new WAL, which lasts %lld s. WAL now: %.1f MB/s; since the last checkpoint: %lld MB of the %lld MB that force one.",
						(long long) (resort->room / WALSIZER_MB),
						(long long) (resort->until_full_ms / 1000), rate_mb, used_mb, trigger_mb);
	if (event->standby)
		return psprintf("WAL that the primary writes within \"checkpoint_timeout\": %lld MB.", demand_mb);
	return psprintf("WAL written within \"checkpoint_timeout\": %lld MB, now %.1f MB/s; since the last checkpoint: %lld MB of the %lld MB that force one. Forced checkpoints in that time: %lld; the next timed one is due in %lld s.",
					demand_mb, rate_mb, used_mb, trigger_mb, (long long) figures->forced,
					(long long) (figures->until_timed_ms / 1000));
}

/* Log what was done, or could not be.  An administrator may set the value in effect. */
static void
log_event(const WalsizerEvent *event)
{
	WalsizerOutcome outcome = event->result.outcome;
	long long	from = event->old_mb;
	long long	to = event->decision.target_mb;

	ereport(LOG,
			(outcome == WALSIZER_DRY_RUN ?
			 errmsg("walsizer would change \"max_wal_size\" from %lld MB to %lld MB", from, to) :
			 outcome > WALSIZER_APPLIED ?
			 errmsg("walsizer could not change \"max_wal_size\" from %lld MB to %lld MB: %s",
					from, to, event->result.message) :
			 event->decision.action == WALSIZER_EXTERNAL && from == to ?
			 errmsg("an administrator took over \"max_wal_size\" of %lld MB", to) :
			 outcome == WALSIZER_APPLIED ?
			 errmsg("walsizer changed \"max_wal_size\" from %lld MB to %lld MB", from, to) :
			 errmsg("an administrator changed \"max_wal_size\" from %lld MB to %lld MB", from, to),
			 outcome == WALSIZER_NO_OUTCOME && (walsizer_dry_run || !walsizer_enable) ?
			 errdetail("walsizer takes this as the original value.") :
			 outcome == WALSIZER_NO_OUTCOME ?
			 errdetail("walsizer takes this as the original value, and leaves it alone for one \"checkpoint_timeout\", but for five minutes at most.") :
			 errdetail("Reason: %s. %s", walsizer_reason_text(event->decision.reason), figures_text(event)),
			 outcome == WALSIZER_DRY_RUN ?
			 errhint("Turn off \"walsizer.dry_run\" to have walsizer change it.") :
			 outcome <= WALSIZER_APPLIED ? 0 :
			 event->decision.reason == WALSIZER_BECAUSE_REVERT ?
			 errhint("If the cause does not pass by itself, remove it, and call walsizer_revert() again unless the original value has come back.") :
			 errhint("If the cause does not pass by itself, remove it. walsizer tries again once per \"checkpoint_timeout\", but at least every five minutes, and does not repeat this message.")));
}

/* Add to the history, on disk, too, and to the log. */
static void
record(const WalsizerEvent *event)
{
	const WalsizerHistory *history = &walsizer_shared->history;
	const WalsizerEvent *before = &history->events[Max(history->length, 1) - 1];
	bool		back = history->length > 0 && before->decision.action == WALSIZER_RAISE &&
		before->result.outcome == WALSIZER_APPLIED &&
		event->decision.target_mb <= before->old_mb;

	/* no lock: only the worker writes this */
	if (event->decision.action == WALSIZER_EXTERNAL)
		walsizer_shared->taken_back = back ? walsizer_shared->taken_back + 1 : 0;
	walsizer_add_event(event);
	walsizer_state_save();
	log_event(event);
}

/* Publish this as the present trouble. */
static void
set_trouble(const WalsizerResult *trouble)
{
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->trouble = *trouble;
	walsizer_shared->trouble_reload = PgReloadTime;
	LWLockRelease(walsizer_shared->lock);
}

/*
 * Record and log an attempt to change the value, if it is news: one that fails, and is
 * repeated every timeout, if it fails in another way than the last one, or if it was
 * asked for; a dry run, if its size differs by more than a quarter.
 */
static void
record_attempt(const WalsizerEvent *event, bool asked)
{
	const WalsizerResult *trouble = &walsizer_shared->trouble;
	const WalsizerResult *result = &event->result;
	WalsizerEvent recorded = *event;

	if (result->outcome == WALSIZER_DRY_RUN)
	{
		if (!walsizer_is_news(event->decision.target_mb, &walsizer_shared->dry_run_mb))
			return;
	}
	else if (result->outcome == WALSIZER_APPLIED)
		set_trouble(&(WalsizerResult) {0});
	else if (result->outcome != trouble->outcome || strcmp(result->message, trouble->message) != 0)
		set_trouble(result);
	else if (!asked && event->decision.reason != WALSIZER_BECAUSE_REVERT)
		return;
	if (event->decision.reason == WALSIZER_BECAUSE_EDITED)
		recorded.decision.action = WALSIZER_EXTERNAL;
	record(&recorded);
}

/* Is this, at this time (ms), the first of a series?  *last_at: the one before; 0: none. */
static bool
begins_series(int64 *last_at, int64 now)
{
	bool		begins = *last_at == 0 || now - *last_at > NOTICE_AGAIN_MS;

	*last_at = now;
	return begins;
}

/* The value (MB) is in effect: it counts, and is shown, from now on, not from the next sample. */
static void
publish(const WalsizerEvent *event, WalsizerNoteKind kind, int64 mb)
{
	WalsizerSettings *settings = &walsizer_shared->sample.settings;
	WalsizerFigures *figures = &walsizer_shared->decision.figures;

	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	if (kind == WALSIZER_NOTE_WRITTEN)
		walsizer_took_effect(&walsizer_shared->state, event->made_at, mb);
	else
		walsizer_original_is_back(&walsizer_shared->state, mb);
	settings->max_wal_size_mb = figures->in_effect_mb = mb;
	figures->trigger_point = walsizer_trigger_point(mb, settings);
	LWLockRelease(walsizer_shared->lock);
}

/*
 * Carry out the decision of an event, without waiting for a checkpoint, and record it with
 * the result: no outcome if there is nothing to restore.  A dry run only says what it would
 * do, except for a revert on request.  Waits up to 10 seconds for the reload; takes the lock.
 *
 * The note is on disk together with the value, so the state file can wait until the value is
 * in effect.  A raise needs room that was seen, or walsizer.max_disk_percent limits nothing.
 */
void
walsizer_act(WalsizerEvent *event, bool asked)
{
	static int64 requested_at = 0;
	WalsizerDecision *decision = &event->decision;
	WalsizerResult *result = &event->result;
	WalsizerNote note = note_for(decision);

	if (decision->action == WALSIZER_CHECKPOINT)
	{
		/* as CHECKPOINT does; a standby may have nothing to do */
		RequestCheckpoint(CHECKPOINT_IMMEDIATE | (event->standby ? 0 : CHECKPOINT_FORCE));
		result->outcome = WALSIZER_APPLIED;
		/* the log has its line from the verdict */
		if (begins_series(&requested_at, event->made_at))
		{
			walsizer_add_event(event);
			(void) walsizer_state_save();
		}
		return;
	}
	if (note.kind == WALSIZER_NO_NOTE)
		return;

	if (walsizer_dry_run && decision->reason != WALSIZER_BECAUSE_REVERT)
		result->outcome = WALSIZER_DRY_RUN;
	else if (decision->action == WALSIZER_RAISE && !walsizer_shared->state.disk.known)
		*result = walsizer_result(WALSIZER_FAILED,
								  "the free space for \"pg_wal\" could not be determined");
	else
		*result = apply(&note);

	if (result->outcome == WALSIZER_APPLIED)
	{
		decision->target_mb = max_wal_size_mb;
		publish(event, note.kind, max_wal_size_mb);
	}
	record_attempt(event, asked);
}

/*
 * Is what made the last attempt fail over?  An obstacle may be gone; files may be fixed and
 * reloaded; a failed or forbidden change does not matter when there is nothing to do; a
 * forbidden raise, only if no remembered demand needs it either.
 */
static bool
trouble_is_over(const WalsizerDecision *decision)
{
	const WalsizerFigures *figures = &decision->figures;
	const WalsizerPacing *pacing = &walsizer_shared->state.pacing;
	/* as the last attempt did: until there is room for it, the size seems sufficient */
	bool		will_lower = pacing->tried_mb != 0 && pacing->tried_mb < figures->in_effect_mb &&
		(pacing->lower_due || walsizer_shared->state.boost.return_mb != 0 ||
		 figures->limit_mb < figures->in_effect_mb);
	bool		nothing_to_do = decision->action == WALSIZER_EXTERNAL ||
		decision->reason == WALSIZER_BECAUSE_DISABLED ||
		(decision->cycle && decision->reason == WALSIZER_BECAUSE_SUFFICIENT && !will_lower);

	switch (walsizer_shared->trouble.outcome)
	{
		case WALSIZER_FORBIDDEN:
		case WALSIZER_OVERRIDDEN:
			return walsizer_may_write() ||
				(nothing_to_do && figures->wanted_mb <= figures->in_effect_mb);
		case WALSIZER_REFUSED:
			return PgReloadTime > walsizer_shared->trouble_reload;
		case WALSIZER_FAILED:
			return nothing_to_do || walsizer_dry_run;
		default:
			return false;
	}
}

/* What we wrote took effect late, or the start of the server restored it. */
static void
complete_late(WalsizerEvent *event)
{
	WalsizerDecision *decision = &event->decision;
	WalsizerNoteKind note = walsizer_shared->sample.note.kind;
	const char *message = "took effect with a later reload or a restart";

	decision->target_mb = decision->wanted_mb = event->settings.max_wal_size_mb;
	decision->action = note == WALSIZER_NOTE_RESTORED ? WALSIZER_REVERT :
		decision->target_mb > event->old_mb ? WALSIZER_RAISE : WALSIZER_LOWER;
	decision->reason = WALSIZER_BECAUSE_LATE;
	if (note == WALSIZER_NOTE_NO_ROOM)
	{
		decision->reason = WALSIZER_BECAUSE_LIMIT_FELL;
		decision->limited_by = WALSIZER_LIMIT_DISK;
		decision->wanted_mb = event->old_mb;
		message = "at the start of the server";
	}
	event->result = walsizer_result(WALSIZER_APPLIED, message);
}

/*
 * Record a change that no attempt of this pass made: an administrator's; or ours, with a
 * later reload or a restart, because the reload was refused or the worker ended before it; or
 * what the start of the server restored.  "pass" is the event of the pass, old_mb was in
 * effect before.  Clear the trouble if it is over.  Takes the lock.
 */
void
walsizer_record_change(const WalsizerEvent *pass, int64 old_mb)
{
	WalsizerEvent event = *pass;
	bool		external = event.decision.action == WALSIZER_EXTERNAL;
	bool		late = !external && old_mb != 0 && event.settings.max_wal_size_mb != old_mb;

	if (late || trouble_is_over(&event.decision))
		set_trouble(&(WalsizerResult) {0});
	if (!late && !external)
		return;
	event.old_mb = old_mb;
	if (late)
		complete_late(&event);
	record(&event);
}

/*
 * Judge this copy of shared memory, or the worker's, with the trouble that an attempt has
 * met, or would.  The texts are valid until the next call.  Takes locks of the server.
 */
WalsizerVerdict
walsizer_verdict(const WalsizerShared *shared, const WalsizerResult *trouble)
{
	static char holder[NAMEDATALEN];
	const WalsizerState *state = &shared->state;
	bool		kept_most = state->last_resort.kept > state->disk.held;
	int64		held = Max(state->last_resort.kept, state->disk.held);
	WalsizerConfig config = walsizer_config(shared);
	WalsizerSituation situation = {
		.config = &config, .state = state, .decision = &shared->decision,
		.running = shared->worker_pid != 0,
		.early = state->learned.largest.timeout_ms < shared->sample.settings.timeout_ms &&
			shared->sample.now - state->window.marks[state->window.first].ms <
			shared->sample.settings.timeout_ms,
		.dry_run = walsizer_dry_run,
		.taken_back = shared->taken_back > 1 && state->owner.own_mb == 0,
		.outcome = trouble->outcome, .message = trouble->message, .holder = holder,
	};

	if (held > 0)
		situation.held_by = walsizer_holder(&shared->sample, kept_most ? shared->sample.write_lsn :
											shared->sample.needed_lsn, held, holder);
	return walsizer_judge(&situation);
}

/* The last trouble, or if there is none, what an attempt would meet now. */
WalsizerResult
walsizer_trouble_now(const WalsizerShared *shared)
{
	return shared->trouble.outcome == WALSIZER_NO_OUTCOME && shared->worker_pid != 0 ?
		walsizer_obstacle() : shared->trouble;
}

/*
 * Log that the worker has begun; and after a pass, once, a limit that matters, or
 * what a size does not help against: again after an hour without it, or a promotion.
 */
void
walsizer_report_verdict(const WalsizerEvent *event)
{
	static bool begun = false;
	static bool standby = false;
	static int64 noticed_at[WALSIZER_NOTICES];
	const WalsizerFigures *figures = &walsizer_shared->decision.figures;
	WalsizerResult trouble = begun ? walsizer_shared->trouble :
		walsizer_trouble_now(walsizer_shared);
	WalsizerVerdict verdict = walsizer_verdict(walsizer_shared, &trouble);

	if (!begun)
		ereport(LOG,
				(errmsg("walsizer started: %s, \"max_wal_size\" %lld MB, limit %lld MB", verdict.state,
						(long long) figures->in_effect_mb, (long long) figures->limit_mb)));
	begun = true;
	if (standby != event->standby)
		memset(noticed_at, 0, sizeof(noticed_at));
	standby = event->standby;
	if (verdict.found.notice != 0 && begins_series(&noticed_at[verdict.found.notice], event->made_at))
		ereport(LOG,
				(errmsg_internal("%s", walsizer_sentence(&verdict, verdict.found.text)),
				 errdetail_internal("%s", figures_text(event)),
				 errhint("%s", walsizer_sentence(&verdict, verdict.found.remedy))));
}
