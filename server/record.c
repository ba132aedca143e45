/*-------------------------------------------------------------------------
 *
 * server/record.c
 *	  Record what the worker did in the history and in the log.
 *
 * Each change is logged; a trouble is logged once, even if it is met again.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "server/server.h"

#define NOTICE_AGAIN_MS		(3600 * 1000)	/* without what was logged */

/* An event for a decision; the caller fills in what came of it. */
WalsizerEvent
walsizer_make_event(const WalsizerDecision *decision, const WalsizerSample *sample, int64 old_mb)
{
	const WalsizerFigures *figures = &decision->figures;
	WalsizerEvent event = {0};

	event.at = GetCurrentTimestamp();
	event.action = decision->action;
	event.reason = decision->reason;
	event.limited_by = decision->limited_by;
	event.old_mb = old_mb;
	event.wanted_mb = decision->wanted_mb;
	event.new_mb = decision->target_mb;
	event.demand = figures->demand;
	event.rate = figures->rate;
	event.forced = figures->forced;
	event.requested = figures->requested;
	event.timed = figures->timed;
	event.timeout_ms = sample->settings.timeout_ms;
	event.completion_target = sample->settings.completion_target;
	event.standby = sample->standby;
	event.forced_after = -1;
	event.made_at = sample->now;
	event.forced_before = walsizer_forced_total(&walsizer_shared->state);
	return event;
}

/* The figures of a decision, for DETAIL. */
static const char *
figures_text(const WalsizerFigures *figures, bool standby)
{
	const WalsizerLastResort *resort = &walsizer_shared->state.last_resort;

	if (resort->fills)
		return psprintf("Room for %lld MB of new WAL, which lasts %lld s. WAL now: %.1f MB/s; since the last checkpoint: %lld MB of the %lld MB that force one.",
						(long long) (resort->room / WALSIZER_MB),
						(long long) (resort->until_full_ms / 1000),
						(double) figures->rate / WALSIZER_MB,
						(long long) (figures->used / WALSIZER_MB),
						(long long) (figures->trigger_point / WALSIZER_MB));
	if (standby)
		return psprintf("WAL that the primary writes between two checkpoints: %lld MB.",
						(long long) (figures->demand / WALSIZER_MB));
	return psprintf("WAL written within \"checkpoint_timeout\": %lld MB, now %.1f MB/s; since the last checkpoint: %lld MB of the %lld MB that force one. Forced checkpoints in that time: %lld; the next timed one is due in %lld s.",
					(long long) (figures->demand / WALSIZER_MB),
					(double) figures->rate / WALSIZER_MB,
					(long long) (figures->used / WALSIZER_MB),
					(long long) (figures->trigger_point / WALSIZER_MB),
					(long long) figures->forced,
					(long long) (figures->until_timed_ms / 1000));
}

static int
detail_of(const WalsizerEvent *event, const WalsizerFigures *figures)
{
	if (event->outcome == WALSIZER_NO_OUTCOME)
		return errdetail("walsizer takes this as the original value, and leaves it alone for one \"checkpoint_timeout\", but for five minutes at most.");
	return errdetail("Reason: %s. %s", walsizer_reason_text(event->reason),
					 figures_text(figures, event->standby));
}

/* What was done, or could not be.  An administrator may set the value in effect. */
static int
message_of(const WalsizerEvent *event)
{
	long long	from = event->old_mb;
	long long	to = event->new_mb;

	if (event->outcome == WALSIZER_DRY_RUN)
		return errmsg("walsizer would change \"max_wal_size\" from %lld MB to %lld MB", from, to);
	if (event->outcome > WALSIZER_APPLIED)
		return errmsg("walsizer could not change \"max_wal_size\" from %lld MB to %lld MB: %s",
					  from, to, event->message);
	if (event->action == WALSIZER_EXTERNAL && from == to)
		return errmsg("an administrator took over \"max_wal_size\" of %lld MB", to);
	if (event->outcome == WALSIZER_APPLIED)
		return errmsg("walsizer changed \"max_wal_size\" from %lld MB to %lld MB", from, to);
	return errmsg("an administrator changed \"max_wal_size\" from %lld MB to %lld MB", from, to);
}

static int
hint_of(const WalsizerEvent *event)
{
	if (event->outcome == WALSIZER_DRY_RUN)
		return errhint("Turn off \"walsizer.dry_run\" to have walsizer change it.");
	if (event->outcome <= WALSIZER_APPLIED)
		return 0;
	if (event->reason == WALSIZER_BECAUSE_REVERT)
		return errhint("If the cause does not pass by itself, remove it, and call walsizer_revert() again unless the original value has come back.");
	return errhint("If the cause does not pass by itself, remove it. walsizer tries again once per \"checkpoint_timeout\", but at least every five minutes, and does not repeat this message.");
}

/* Add to the history, on disk, too, and to the log. */
static void
record(const WalsizerEvent *event, const WalsizerFigures *figures)
{
	const WalsizerEvent *before = walsizer_event(walsizer_shared, Max(walsizer_shared->last_event, 1));
	bool		back = before->action == WALSIZER_RAISE && before->outcome == WALSIZER_APPLIED &&
		event->new_mb <= before->old_mb;

	/* only the worker counts, and a copy may be one behind */
	if (event->action == WALSIZER_EXTERNAL)
		walsizer_shared->taken_back = back ? walsizer_shared->taken_back + 1 : 0;
	walsizer_add_event(event);
	walsizer_state_save();
	ereport(LOG, (message_of(event), detail_of(event, figures), hint_of(event)));
}

/* Publish this as the present trouble. */
static void
set_trouble(const WalsizerApplied *trouble)
{
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->trouble = *trouble;
	walsizer_shared->trouble_reloads = walsizer_shared->unlocked.reloads;
	LWLockRelease(walsizer_shared->lock);
}

/*
 * Record and log the result of an attempt to set event->new_mb, if it is news.  An
 * attempt that fails is repeated every timeout, but is news only if it fails in
 * another way than the last one, or if it was asked for; a dry run, if its size
 * differs by more than a quarter.  Takes the lock briefly and writes the state
 * file.
 */
void
walsizer_record_attempt(WalsizerEvent *event, const WalsizerApplied *applied,
						const WalsizerFigures *figures, bool asked)
{
	const WalsizerApplied *trouble = &walsizer_shared->trouble;
	const WalsizerApplied none = {0};

	if (applied->outcome == WALSIZER_DRY_RUN)
	{
		if (!walsizer_is_news(event->new_mb, &walsizer_shared->unlocked.dry_run_mb))
			return;
	}
	else if (applied->outcome == WALSIZER_APPLIED)
		set_trouble(&none);
	else if (applied->outcome != trouble->outcome || strcmp(applied->message, trouble->message) != 0)
		set_trouble(applied);
	else if (!asked && event->reason != WALSIZER_BECAUSE_REVERT)
		return;
	event->outcome = applied->outcome;
	strlcpy(event->message, applied->message, sizeof(event->message));
	record(event, figures);
}

/*
 * Is what made the last attempt fail over?  An obstacle may be gone; files may
 * be fixed and reloaded; and a failed or forbidden change does not matter when
 * there is nothing to do; a forbidden raise, only if no remembered demand needs
 * it either.
 */
static bool
trouble_is_over(const WalsizerDecision *decision)
{
	const WalsizerFigures *figures = &decision->figures;
	const WalsizerState *state = &walsizer_shared->state;
	WalsizerOutcome obstacle;
	/* as the last attempt did: until there is room for it, the size seems sufficient */
	bool		will_lower = state->pacing.tried_mb != 0 &&
		state->pacing.tried_mb < figures->in_effect_mb &&
		(state->pacing.lower_due || state->boost.return_mb != 0 ||
		 figures->limit_mb < figures->in_effect_mb);
	bool		nothing_to_do = decision->action == WALSIZER_EXTERNAL ||
		decision->reason == WALSIZER_BECAUSE_DISABLED ||
		(decision->cycle && decision->reason == WALSIZER_BECAUSE_SUFFICIENT && !will_lower);

	switch (walsizer_shared->trouble.outcome)
	{
		case WALSIZER_FORBIDDEN:
		case WALSIZER_OVERRIDDEN:
			return walsizer_obstacle_now(&obstacle) == NULL ||
				(nothing_to_do && figures->wanted_mb <= figures->in_effect_mb);
		case WALSIZER_REFUSED:
			return walsizer_shared->unlocked.reloads > walsizer_shared->trouble_reloads;
		case WALSIZER_FAILED:
			return nothing_to_do || walsizer_dry_run;
		default:
			return false;
	}
}

/* What we wrote took effect late, or the start of the server restored it. */
static void
complete_late(WalsizerEvent *event, const WalsizerSample *sample)
{
	const char *message = "took effect with a later reload or a restart";

	event->action = sample->note.kind == WALSIZER_NOTE_RESTORED ? WALSIZER_REVERT :
		sample->settings.max_wal_size_mb > event->old_mb ? WALSIZER_RAISE : WALSIZER_LOWER;
	event->reason = WALSIZER_BECAUSE_LATE;
	event->outcome = WALSIZER_APPLIED;
	event->new_mb = event->wanted_mb = sample->settings.max_wal_size_mb;
	if (sample->note.kind == WALSIZER_NOTE_NO_ROOM)
	{
		event->at = PgStartTime;
		event->reason = WALSIZER_BECAUSE_LIMIT_FELL;
		event->limited_by = WALSIZER_LIMIT_DISK;
		event->wanted_mb = event->old_mb;
		message = "at the start of the server";
	}
	strlcpy(event->message, message, sizeof(event->message));
}

/*
 * Record a change that no attempt of this pass made: an administrator's; or ours,
 * with a later reload or a restart, because the reload was refused or the worker
 * ended before it; or what the start of the server restored.  old_mb was in effect
 * before.  Clear the trouble if it is over.  Locks as above.
 */
void
walsizer_record_change(const WalsizerDecision *decision, const WalsizerSample *sample,
					   int64 old_mb)
{
	const WalsizerApplied none = {0};
	bool		external = decision->action == WALSIZER_EXTERNAL;
	bool		late = !external && old_mb != 0 && sample->settings.max_wal_size_mb != old_mb;
	WalsizerEvent event;

	if (late || trouble_is_over(decision))
		set_trouble(&none);
	if (!late && !external)
		return;
	event = walsizer_make_event(decision, sample, old_mb);
	if (late)
		complete_late(&event, sample);
	record(&event, &decision->figures);
}

/*
 * Judge this copy of shared memory, or, in the worker, shared memory itself, with
 * the trouble that an attempt has met, or would meet now.  The texts are valid
 * until the next call.  Takes locks of the server.
 */
WalsizerVerdict
walsizer_verdict(const WalsizerShared *shared, const WalsizerApplied *trouble)
{
	static char holder[NAMEDATALEN];
	const WalsizerState *state = &shared->state;
	WalsizerConfig config = walsizer_config(shared);
	WalsizerSituation situation = {
		.config = &config,
		.state = state,
		.decision = &shared->decision,
		.running = shared->worker_pid != 0,
		.early = shared->decision.figures.learned == 0 &&
			shared->sample.now - state->window.marks[state->window.first].ms <
			shared->sample.settings.timeout_ms,
		.dry_run = walsizer_dry_run,
		.taken_back = shared->taken_back > 1 && state->owner.own_mb == 0,
		.outcome = trouble->outcome,
		.message = trouble->message,
		.holder = holder,
	};

	if (state->last_resort.kept > state->disk.held)
		situation.held_by = walsizer_holder(&shared->sample, shared->sample.write_lsn,
											state->last_resort.kept, holder);
	else if (state->disk.held > 0)
		situation.held_by = walsizer_holder(&shared->sample, shared->sample.needed_lsn,
											state->disk.held, holder);
	return walsizer_judge(&situation);
}

/* The last trouble, or if there is none, what an attempt would meet now. */
WalsizerApplied
walsizer_trouble_now(const WalsizerShared *shared)
{
	WalsizerApplied trouble = shared->trouble;
	const char *obstacle;

	if (trouble.outcome == WALSIZER_NO_OUTCOME && shared->worker_pid != 0 &&
		walsizer_enable && !walsizer_dry_run &&
		(obstacle = walsizer_obstacle(&trouble.outcome)) != NULL)
		strlcpy(trouble.message, obstacle, sizeof(trouble.message));
	return trouble;
}

/*
 * Record a checkpoint that was requested: of a series, the first one.  Takes the lock
 * briefly and writes the state file.  The log has its line from the verdict.
 */
void
walsizer_record_request(const WalsizerDecision *decision, const WalsizerSample *sample)
{
	int64	   *before = &walsizer_shared->unlocked.requested_at;
	WalsizerEvent event = walsizer_make_event(decision, sample, decision->target_mb);

	event.outcome = WALSIZER_APPLIED;
	if (*before == 0 || sample->now - *before > NOTICE_AGAIN_MS)
	{
		walsizer_add_event(&event);
		(void) walsizer_state_save();
	}
	*before = sample->now;
}

/*
 * Log that the worker has begun; and after a pass, once, a limit that matters, or
 * what a size does not help against: again after an hour without it, or a promotion.
 */
void
walsizer_report_verdict(const WalsizerDecision *decision, const WalsizerSample *sample)
{
	static bool begun = false;
	WalsizerUnlocked *logged = &walsizer_shared->unlocked;
	WalsizerApplied trouble = begun ? walsizer_shared->trouble : walsizer_trouble_now(walsizer_shared);
	WalsizerVerdict verdict = walsizer_verdict(walsizer_shared, &trouble);
	int64	   *noticed = &logged->noticed_at[verdict.found.notice];

	if (!begun)
		ereport(LOG,
				(errmsg("walsizer started: %s, \"max_wal_size\" %lld MB, limit %lld MB", verdict.state,
						(long long) decision->figures.in_effect_mb,
						(long long) decision->figures.limit_mb)));
	begun = true;
	if (logged->noticed_standby != sample->standby)
		memset(logged->noticed_at, 0, sizeof(logged->noticed_at));
	logged->noticed_standby = sample->standby;
	if (verdict.found.notice != 0 &&
		(*noticed == 0 || sample->now - *noticed > NOTICE_AGAIN_MS))
	{
		char		finding[WALSIZER_SENTENCE_SIZE];
		char		remedy[WALSIZER_SENTENCE_SIZE];

		walsizer_verdict_text(&verdict, verdict.found.text, finding);
		walsizer_verdict_text(&verdict, verdict.found.remedy, remedy);
		ereport(LOG,
				(errmsg_internal("%s", finding),
				 errdetail_internal("%s", figures_text(&decision->figures, sample->standby)),
				 errhint("%s", remedy)));
	}
	*noticed = sample->now;
}
