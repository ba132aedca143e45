/*-------------------------------------------------------------------------
 *
 * watch/watcher.c
 *	  Decide on each observation, and keep what the page at the end says.
 *
 * Nothing is ever applied, so this does what the worker does with
 * walsizer.dry_run = on: the policy finds the old value in effect at the next
 * sample, waits, and decides again.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "watch/watch.h"

/* Begin with the first observation at the time start (s since 1970). */
void
watch_begin(Watcher *watcher, const Options *options, int64_t interval_ms, int64_t start)
{
	memset(watcher, 0, sizeof(*watcher));
	watcher->config = options->config;
	watcher->config.sample_interval_ms = interval_ms;
	watcher->disk_limit = options->disk_limit;
	watcher->interval_ms = interval_ms;
	watcher->zero = start - WATCH_CLOCK_START / 1000;
	watcher->began = watcher->now = WATCH_CLOCK_START;
	watcher->forgets_nothing = options->replay != NULL;
	watcher->images = watcher->image_bytes = WATCH_UNKNOWN;
}

/* The observation as the policy wants it. */
static void
make_sample(Watcher *watcher, const Observation *seen)
{
	WalsizerSample *sample = &watcher->sample;
	const RedoTracker *tracker = &watcher->tracker;

	*sample = (WalsizerSample) {0};
	sample->now = watcher->now;
	sample->hour = (watcher->zero + watcher->now / 1000) / 3600;
	sample->write_lsn = (uint64_t) seen->position;
	sample->redo_lsn = (uint64_t) tracker->redo;
	sample->completed_lsn = (uint64_t) (seen->completed != WATCH_UNKNOWN ?
										seen->completed : tracker->redo);
	sample->needed_lsn = sample->completed_lsn;
	sample->checkpoint_running = tracker->running;
	sample->checkpoint_age = -1;
	if (seen->begins && watcher->now > tracker->timer_start)
		sample->checkpoint_age = watcher->now - tracker->timer_start;
	sample->standby = seen->standby;
	sample->requested = seen->requested != WATCH_UNKNOWN ? seen->requested : 0;
	sample->timed = seen->timed != WATCH_UNKNOWN ? seen->timed : 0;
	sample->settings = seen->settings;
	if (seen->standby)
	{
		sample->primary_redo = sample->completed_lsn;
		sample->primary_time = seen->completed != WATCH_UNKNOWN ?
			watcher->zero + WATCH_CLOCK_START / 1000 + seen->started_s : 0;
		sample->primary_lsn = seen->primary != WATCH_UNKNOWN ? (uint64_t) seen->primary : 0;
	}

	/* the disk is "read" each time: it costs nothing and never changes */
	sample->disk_tried = true;
	sample->disk_read = watcher->disk_limit > 0;
	sample->disk_free = watcher->disk_limit;
	sample->disk_alone = true;
}

/* Count the checkpoint that ended an interval, if one did. */
static void
count_intervals(Watcher *watcher, const WalsizerCheckpoints *before)
{
	const WalsizerCheckpoints *after = &watcher->state.checkpoints;
	int64_t		from = before->redo_moved > watcher->began ? before->redo_moved : watcher->began;

	for (int cause = 0; cause < WALSIZER_CAUSES; cause++)
	{
		if (after->total[cause] == before->total[cause])
			continue;
		watcher->intervals[cause].number += after->total[cause] - before->total[cause];
		if (after->redo_moved > from)
			watcher->intervals[cause].ms += after->redo_moved - from;
	}
}

/* Add a counter's progress, unless it is not known, or was reset.  Sums have a limit. */
static void
add(int64_t *sum, int64_t before, int64_t now)
{
	if (before != WATCH_UNKNOWN && now > before)
		*sum = *sum + (now - before) < WATCH_MOST_SUM ? *sum + (now - before) : WATCH_MOST_SUM;
}

static void
count_wal(Watcher *watcher, const Observation *seen)
{
	const Observation *before = &watcher->seen;
	int64_t		elapsed = (seen->tick - before->tick) * watcher->interval_ms;

	if (seen->images != WATCH_UNKNOWN && watcher->images == WATCH_UNKNOWN)
		watcher->images = 0;
	if (seen->image_bytes != WATCH_UNKNOWN && watcher->image_bytes == WATCH_UNKNOWN)
		watcher->image_bytes = 0;
	if (watcher->samples == 0)
		return;
	if (elapsed > watcher->interval_ms)
		watcher->unseen_ms += elapsed - watcher->interval_ms;
	if (seen->begins)
		return;
	add(&watcher->wal, before->position, seen->position);
	if (seen->images != WATCH_UNKNOWN)
		add(&watcher->images, before->images, seen->images);
	if (seen->image_bytes != WATCH_UNKNOWN)
		add(&watcher->image_bytes, before->image_bytes, seen->image_bytes);
}

/* Measured demand needs more than a limit allows: said once for each limit. */
static bool
limit_is_news(Watcher *watcher)
{
	const WalsizerDecision *decision = &watcher->decision;
	int64_t    *said = &watcher->said_limit_mb[decision->limited_by];

	if (!decision->limited || decision->figures.wanted_mb <= decision->figures.in_effect_mb ||
		*said == decision->figures.limit_mb)
		return false;
	*said = decision->figures.limit_mb;
	return true;
}

/*
 * Keep the decision if it is news; NULL if not.  old_mb was in effect before an
 * administrator's change.
 */
static const WatchChange *
note_change(Watcher *watcher, int64_t old_mb)
{
	const WalsizerDecision *decision = &watcher->decision;
	WatchChange *change;
	bool		news = decision->action == WALSIZER_EXTERNAL;

	if (decision->action == WALSIZER_RAISE || decision->action == WALSIZER_LOWER)
		news = walsizer_is_news(decision->target_mb, &watcher->said_mb);
	else if (!news)
		news = limit_is_news(watcher);
	if (!news)
		return NULL;

	change = &watcher->changes[watcher->num_changes++ % WATCH_CHANGES];
	change->at = watcher->zero + watcher->now / 1000;
	change->action = decision->action;
	change->reason = decision->reason;
	change->limited_by = decision->limited_by;
	change->old_mb = decision->action == WALSIZER_EXTERNAL ? old_mb :
		decision->figures.in_effect_mb;
	change->new_mb = decision->target_mb;
	change->wanted_mb = decision->wanted_mb;
	change->figures = decision->figures;
	return change;
}

/*
 * Take in one observation.  Returns the change to report, valid until the
 * next, or NULL.
 */
const WatchChange *
watch_observe(Watcher *watcher, const Observation *seen)
{
	WalsizerCheckpoints before;
	int64_t		old_mb = watcher->state.owner.original_mb;

	watcher->now = WATCH_CLOCK_START + seen->tick * watcher->interval_ms;
	if (watcher->samples == 0)
		watcher->began = watcher->now;
	if (seen->begins)
	{
		watcher->restarts += watcher->samples > 0;
		watcher->state.primed = false;
		watch_begin_redo(&watcher->tracker, seen, watcher->now);
	}
	else
		watch_track_redo(&watcher->tracker, seen, watcher->now, &watcher->state);
	count_wal(watcher, seen);

	make_sample(watcher, seen);
	before = watcher->state.checkpoints;
	watcher->decision = walsizer_step(&watcher->config, &watcher->state, &watcher->sample);
	if (!seen->begins)
		count_intervals(watcher, &before);
	if (watcher->decision.figures.demand > watcher->largest)
		watcher->largest = watcher->decision.figures.demand;
	watcher->samples++;
	watcher->seen = *seen;
	return note_change(watcher, old_mb);
}

/* The policy's verdict, given the largest demand and whether that is all there is. */
static WalsizerVerdict
policy_verdict(const Watcher *watcher, const WatchVerdict *found)
{
	WalsizerDecision decision = watcher->decision;
	const WalsizerSituation situation = {
		.config = &watcher->config, .state = &watcher->state, .decision = &decision,
		.running = true, .client = true,
		.early = found->status == WATCH_COULD_NOT_TELL, .message = "", .holder = "",
	};

	decision.figures.learned = found->demand;
	if (decision.figures.wanted_mb < found->needed_mb)
		decision.figures.wanted_mb = found->needed_mb;
	if (watcher->log != NULL && found->status == WATCH_TOO_SMALL)	/* of a range */
		decision.figures.wanted_mb = found->set_mb;
	decision.limited = false;	/* by options, which have other names than settings */
	return walsizer_judge(&situation);
}

/*
 * The watch is over, at the time of this tick: what was not seen since the last
 * observation counts.
 */
void
watch_end(Watcher *watcher, int64_t tick)
{
	int64_t		missed = tick - watcher->seen.tick - 1;

	if (watcher->samples == 0 || missed <= 0)
		return;
	watcher->unseen_ms += missed * watcher->interval_ms;
	watcher->now += missed * watcher->interval_ms;
}

/*
 * What was assumed must not decide.  That checkpoints were forced shows that the
 * value is too small, whatever it is; else both it and the timeout must be known.
 */
static int
judge_log(const Watcher *watcher, int status)
{
	const WatchLog *log = watcher->log;

	if (status == WATCH_TOO_SMALL)
		return log->assumed & WATCH_ASSUMED_SIZE &&
			watcher->intervals[WALSIZER_CAUSE_FORCED].number == 0 ? WATCH_COULD_NOT_TELL : status;
	return log->assumed & WATCH_ASSUMED_TIMEOUT ||
		log->lasted_ms + WALSIZER_TIMER_SLACK < watcher->sample.settings.timeout_ms ?
		WATCH_COULD_NOT_TELL : WATCH_SUFFICIENT;
}

/*
 * What all of it means.  The value in effect is too small if the largest
 * demand would force a checkpoint.  That it suffices can be said only after a
 * whole checkpoint_timeout, and if at least half of the time was seen.
 */
WatchVerdict
watch_judge(const Watcher *watcher)
{
	WalsizerState state = watcher->state;
	const WalsizerSettings *settings = &watcher->sample.settings;
	const WalsizerFigures *figures = &watcher->decision.figures;
	WatchVerdict verdict = {.status = WATCH_COULD_NOT_TELL};
	int64_t		lasted = watcher->now - watcher->began;
	int64_t		most;

	if (watcher->samples < 2)
		return verdict;
	walsizer_remember_window(&state);
	verdict.demand = walsizer_learned_demand(&state, watcher->sample.hour,
											 watcher->config.lookback_hours);
	if (figures->demand > verdict.demand)
		verdict.demand = figures->demand;
	verdict.wanted_mb = figures->wanted_mb;
	if (watcher->forgets_nothing && watcher->largest > verdict.demand)
	{
		verdict.demand = watcher->largest;
		verdict.wanted_mb = walsizer_size_with_headroom(&watcher->config, settings, verdict.demand);
	}
	verdict.needed_mb = walsizer_size_for(verdict.demand, settings);

	if (watcher->log != NULL)
	{
		verdict.demand = watcher->log->about;
		verdict.needed_mb = walsizer_size_for(verdict.demand, settings);
		verdict.wanted_mb = walsizer_size_with_headroom(&watcher->config, settings,
														watcher->log->sized);
	}

	most = figures->limit_mb;
	verdict.set_mb = settings->max_wal_size_mb;
	if (verdict.needed_mb > settings->max_wal_size_mb)
	{
		verdict.status = WATCH_TOO_SMALL;
		if (verdict.wanted_mb > most)
			verdict.limited_by = figures->limit_kind;
		if (verdict.wanted_mb <= most)
			verdict.set_mb = verdict.wanted_mb;
		else if (most > settings->max_wal_size_mb)
			verdict.set_mb = most;
	}
	else if (lasted - watcher->unseen_ms >= settings->timeout_ms &&
			 watcher->unseen_ms <= lasted / 2)
		verdict.status = WATCH_SUFFICIENT;
	if (watcher->log != NULL)
		verdict.status = judge_log(watcher, verdict.status);
	verdict.verdict = policy_verdict(watcher, &verdict);
	return verdict;
}

/* How long a crash recovery takes at worst with this size (MB), ms. */
int64_t
watch_recovery_time(const Watcher *watcher, int64_t mb)
{
	return walsizer_recovery_time(&watcher->config, &watcher->state, &watcher->sample, mb);
}
