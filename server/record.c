/*-------------------------------------------------------------------------
 *
 * server/record.c
 *	  What the worker did and met: into the history, and into the log.
 *
 * Each change is logged; each trouble once, however often it is met again.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "server/walsizer.h"

/* An event from a decision; what came of it is still to be filled in. */
WalsizerEvent
walsizer_make_event(const WalsizerDecision *decision, const WalsizerSample *sample, int64 old_size)
{
	const WalsizerFigures *figures = &decision->figures;
	WalsizerEvent event = {0};

	event.at = GetCurrentTimestamp();
	event.action = decision->action;
	event.reason = decision->reason;
	event.bound = decision->bound;
	event.old_size = old_size;
	event.wanted = decision->wanted;
	event.new_size = decision->target;
	event.demand = figures->demand;
	event.rate = figures->rate;
	event.forced = figures->forced;
	event.requested = figures->requested;
	event.timeout = sample->settings.timeout;
	event.completion_target = sample->settings.completion_target;
	event.standby = sample->standby;
	event.followed = -1;
	return event;
}

/* Add to the history, on disk too. */
static void
record(const WalsizerEvent *event)
{
	walsizer_state_add_event(event);
	walsizer_state_save();
}

/* The figures that led to a change, for the DETAIL of a message. */
static int
detail_of(const WalsizerEvent *event, const WalsizerFigures *figures)
{
	if (event->reason == WALSIZER_BECAUSE_PREDICTED)
		return errdetail("Reason: %s. WAL since the last checkpoint: %lld MB of the %lld MB that force one, at %.1f MB/s; the next is due by the clock in %lld s.",
						 walsizer_reason_name(event->reason),
						 (long long) (figures->used / WALSIZER_MB),
						 (long long) (figures->capacity / WALSIZER_MB),
						 (double) event->rate / WALSIZER_MB,
						 (long long) (figures->until_timed / 1000));
	if (event->standby)
		return errdetail("Reason: %s. WAL that the primary writes between two checkpoints: %lld MB.",
						 walsizer_reason_name(event->reason),
						 (long long) (event->demand / WALSIZER_MB));
	return errdetail("Reason: %s. WAL written within checkpoint_timeout: %lld MB, now %.1f MB/s. Checkpoints forced by WAL volume in that time: %lld.",
					 walsizer_reason_name(event->reason),
					 (long long) (event->demand / WALSIZER_MB),
					 (double) event->rate / WALSIZER_MB,
					 (long long) event->forced);
}

static void
log_change(const WalsizerEvent *event, const WalsizerFigures *figures)
{
	if (event->outcome == WALSIZER_APPLIED)
		ereport(LOG,
				(errmsg("walsizer changed max_wal_size from %lld MB to %lld MB",
						(long long) event->old_size, (long long) event->new_size),
				 detail_of(event, figures)));
	else if (event->outcome == WALSIZER_DRY_RUN)
		ereport(LOG,
				(errmsg("walsizer would change max_wal_size from %lld MB to %lld MB",
						(long long) event->old_size, (long long) event->new_size),
				 detail_of(event, figures),
				 errhint("Turn walsizer.dry_run off to have it done.")));
	else
		ereport(WARNING,
				(errmsg("walsizer could not change max_wal_size from %lld MB to %lld MB: %s",
						(long long) event->old_size, (long long) event->new_size,
						event->message),
				 detail_of(event, figures),
				 event->reason == WALSIZER_BECAUSE_ASKED ?
				 errhint("When that is mended, call walsizer_revert() again if the value has not come back by itself.") :
				 errhint("walsizer keeps watching and tries again every checkpoint_timeout, or every five minutes if that is less; this message is not repeated.")));
}

/*
 * Is this outcome news?  An attempt that fails is repeated every timeout, but
 * recorded and logged only when it fails in another way than the last one
 * did; a dry run, when it comes to a size that differs by more than a quarter.
 */
static bool
is_news(const WalsizerApplied *applied, int64 mb)
{
	WalsizerShared *shared = walsizer_shared;
	bool		news;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	if (applied->outcome == WALSIZER_APPLIED)
		news = true;
	else if (applied->outcome == WALSIZER_DRY_RUN)
		news = (Max(mb, shared->dry_run_size) - Min(mb, shared->dry_run_size)) * 4 >
			shared->dry_run_size;
	else
		news = applied->outcome != shared->trouble.outcome ||
			strcmp(applied->message, shared->trouble.message) != 0;

	if (news && applied->outcome == WALSIZER_DRY_RUN)
		shared->dry_run_size = mb;
	else if (applied->outcome == WALSIZER_APPLIED)
		memset(&shared->trouble, 0, sizeof(shared->trouble));
	else if (news && applied->outcome != WALSIZER_DRY_RUN)
	{
		shared->trouble = *applied;
		shared->trouble_at = GetCurrentTimestamp();
		shared->trouble_reloads = shared->reloads;
	}
	LWLockRelease(shared->lock);
	return news;
}

/*
 * Record what an attempt to change the setting to event->new_size came to, and
 * log it, if that is news.
 */
void
walsizer_record_attempt(WalsizerEvent *event, const WalsizerApplied *applied,
						const WalsizerFigures *figures)
{
	event->outcome = applied->outcome;
	strlcpy(event->message, applied->message, sizeof(event->message));
	if (!is_news(applied, event->new_size))
		return;
	record(event);
	log_change(event, figures);
}

/*
 * Is what kept the last attempt from succeeding no more?  An obstacle may have
 * been cleared away; files may have been mended, and reloaded; and what failed or
 * was forbidden is of no interest any more when there is nothing to do: a forbidden
 * raise, when memory does not ask for it either.
 */
static bool
trouble_is_over(const WalsizerDecision *decision)
{
	const WalsizerFigures *figures = &decision->figures;
	WalsizerOutcome obstacle;
	bool		nothing_to_do = decision->action == WALSIZER_EXTERNAL ||
		decision->reason == WALSIZER_BECAUSE_DISABLED ||
		(decision->cycle && decision->reason == WALSIZER_BECAUSE_ENOUGH);

	switch (walsizer_shared->trouble.outcome)
	{
		case WALSIZER_FORBIDDEN:
		case WALSIZER_OVERRIDDEN:
			return walsizer_apply_obstacle_now(&obstacle) == NULL ||
				(nothing_to_do && figures->wanted <= figures->in_force);
		case WALSIZER_REFUSED:
			return walsizer_shared->reloads > walsizer_shared->trouble_reloads;
		case WALSIZER_FAILED:
			return nothing_to_do || walsizer_dry_run;
		default:
			return false;
	}
}

/*
 * Has the trouble gone by itself?  A refused value comes into force with the
 * first reload after the files were mended, whoever asks for it: that is our
 * change, only late.  old_size is the value in force (MB) before this sample.
 */
void
walsizer_note_end_of_trouble(const WalsizerDecision *decision, const WalsizerSample *sample,
							 int64 old_size)
{
	WalsizerShared *shared = walsizer_shared;
	int64		in_force = sample->settings.max_wal_size;
	bool		late = shared->trouble.outcome == WALSIZER_REFUSED &&
		decision->action != WALSIZER_EXTERNAL && in_force != old_size;

	if (!late && !trouble_is_over(decision))
		return;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	memset(&shared->trouble, 0, sizeof(shared->trouble));
	LWLockRelease(shared->lock);

	if (late)
	{
		WalsizerEvent event = walsizer_make_event(decision, sample, old_size);

		event.action = in_force > old_size ? WALSIZER_RAISE : WALSIZER_LOWER;
		event.reason = WALSIZER_BECAUSE_LATE;
		event.outcome = WALSIZER_APPLIED;
		event.new_size = event.wanted = in_force;
		strlcpy(event.message, "took effect with a later reload", sizeof(event.message));
		record(&event);
		log_change(&event, &decision->figures);
	}
}

/* Somebody else changed the setting, now or while we were not looking. */
void
walsizer_record_external(const WalsizerDecision *decision, const WalsizerSample *sample,
						 int64 old_size)
{
	WalsizerEvent event = walsizer_make_event(decision, sample, old_size);

	event.outcome = WALSIZER_NOTED;
	record(&event);
	ereport(LOG,
			(errmsg("max_wal_size was changed from %lld MB to %lld MB, but not by walsizer",
					(long long) event.old_size, (long long) event.new_size),
			 errdetail("walsizer takes the new value for the administrator's and leaves it alone for one checkpoint_timeout, but for five minutes at most.")));
}

/*
 * Has a bound moved so far that it is worth saying?  Free space is never still,
 * and a replay rate is measured anew at each crash.
 */
static bool
bound_moved(int64 before, int64 now)
{
	return Max(before, now) - Min(before, now) > Min(before, now) / 2;
}

/*
 * What it is that a limit makes unavoidable.  It may be still to come: on a standby,
 * where restartpoints that WAL forces do no harm, and where it was predicted.
 */
static int
bound_message(const WalsizerDecision *decision, bool standby, const char *setting)
{
	long long	in_force = decision->figures.in_force;

	if (standby)
		return errmsg("the primary writes more WAL between two checkpoints than max_wal_size allows here, and %s keeps walsizer from raising it above %lld MB",
					  setting, in_force);
	if (decision->figures.forced == 0)
		return errmsg("checkpoints would be forced by WAL volume, and %s keeps walsizer from raising max_wal_size above %lld MB",
					  setting, in_force);
	return errmsg("checkpoints are forced by WAL volume, and %s keeps walsizer from raising max_wal_size above %lld MB",
				  setting, in_force);
}

/* What was measured, and nothing else. */
static int
bound_detail(const WalsizerDecision *decision, bool standby)
{
	const WalsizerFigures *figures = &decision->figures;

	if (standby)
		return errdetail("After a promotion, checkpoints would be forced by WAL volume. The measured demand needs %lld MB.",
						 (long long) figures->wanted);
	return errdetail("The measured demand needs %lld MB. WAL written within checkpoint_timeout: %lld MB, now %.1f MB/s; since the last checkpoint: %lld MB of the %lld MB that force one. Checkpoints forced by WAL volume in that time: %lld.",
					 (long long) figures->wanted,
					 (long long) (figures->demand / WALSIZER_MB),
					 (double) figures->rate / WALSIZER_MB,
					 (long long) (figures->used / WALSIZER_MB),
					 (long long) (figures->capacity / WALSIZER_MB),
					 (long long) figures->forced);
}

/*
 * More is needed than a limit allows, by what was measured: what a prediction asks
 * for may never come.  Said once for each limit; said again only after it was
 * enough for a while, or after the limit has moved far.
 */
void
walsizer_warn_of_bound(const WalsizerDecision *decision, bool standby)
{
	static const char *const settings[] = {
		[WALSIZER_UNBOUND] = "",
		[WALSIZER_BOUND_MAX] = "walsizer.max",
		[WALSIZER_BOUND_DISK] = "walsizer.max_disk_percent",
		[WALSIZER_BOUND_RECOVERY] = "walsizer.max_recovery_time",
	};
	const WalsizerFigures *figures = &decision->figures;
	bool		bounded = decision->limited && figures->wanted > figures->in_force;
	bool		news;

	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	news = bounded && (walsizer_shared->warned_limit[decision->bound] == 0 ||
					   bound_moved(walsizer_shared->warned_limit[decision->bound], figures->limit));
	if (news)
		walsizer_shared->warned_limit[decision->bound] = figures->limit;
	else if (decision->cycle && decision->reason == WALSIZER_BECAUSE_ENOUGH &&
			 figures->wanted <= figures->in_force)
		memset(walsizer_shared->warned_limit, 0, sizeof(walsizer_shared->warned_limit));
	LWLockRelease(walsizer_shared->lock);

	if (news)
		ereport(WARNING,
				(bound_message(decision, standby, settings[decision->bound]),
				 bound_detail(decision, standby),
				 errhint("Raise %s so that it allows %lld MB, if the server can bear it.",
						 settings[decision->bound], (long long) figures->wanted)));
}
