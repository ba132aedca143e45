/*-------------------------------------------------------------------------
 *
 * watch/watcher.c
 *	  Decide on each observation, and keep what the page at the end says.
 *
 * Nothing is ever applied, so this does what the worker does with walsizer.dry_run = on.
 *
 * The worker reads the redo pointer of the last checkpoint from the server's memory.  SQL
 * shows it only once the checkpoint is complete, which is most of checkpoint_timeout later.
 * But SQL shows that the checkpointer works, and a checkpoint starts when its timer is
 * over, or WAL fills the trigger point.  So the start is noticed in time, and its position
 * is known to within one sample, or exactly if WAL forced it.  When the checkpoint is
 * complete, the estimate is corrected.  Where SQL shows less, that rule has to do.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "watch/watch.h"

/* Where WAL forces the next checkpoint. */
static int64_t
trigger_position(const RedoTracker *tracker, const Observation *seen)
{
	const WalsizerSettings *settings = &seen->settings;

	return tracker->redo - tracker->redo % settings->segment_bytes +
		walsizer_trigger_point(settings->max_wal_size_mb, settings);
}

/*
 * The first observation of this server.  A checkpoint that runs already began
 * somewhere before; until it is complete, it counts from here.
 */
static void
begin_redo(RedoTracker *tracker, const Observation *seen, int64_t now)
{
	*tracker = (RedoTracker) {
		.redo = seen->busy == 1 || seen->completed == WATCH_UNKNOWN ? seen->position : seen->completed,
		.seen = *seen, .now = now, .position_before = seen->position, .now_before = now,
		.timer_start = WATCH_CLOCK_START + seen->timer_s * 1000,
		.running = seen->busy == 1, .idle_seen = seen->busy == 0,
	};
}

/*
 * A checkpoint is complete: its redo pointer is known now.  If its start was
 * noticed, only the estimate is corrected; else the policy sees it move.
 */
static void
complete(RedoTracker *tracker, const Observation *seen, WalsizerState *state)
{
	tracker->redo = seen->completed;
	tracker->timer_start = WATCH_CLOCK_START + seen->started_s * 1000;
	if (tracker->running)
		state->last.redo_lsn = (uint64_t) seen->completed;
	tracker->running = tracker->busy = tracker->idle_seen = false;
}

/*
 * Did a checkpoint start?  Work of the checkpointer without a reason that we know counts
 * only if it lasts, or if the counters moved: it also works for a moment to take in
 * requests, and for a while after a checkpoint is complete, to remove WAL.
 */
static bool
starts(const RedoTracker *tracker, const Observation *seen, int64_t now)
{
	int64_t		timeout = seen->settings.timeout_ms;
	int64_t		runs = now - tracker->timer_start;	/* the timer */
	bool		filled = seen->position >= trigger_position(tracker, seen);
	bool		due = runs + WALSIZER_TIMER_SLACK >= timeout;
	bool		ended = runs / timeout > (tracker->now - tracker->timer_start) / timeout;
	bool		counted = seen->requested != tracker->seen.requested || seen->timed != tracker->seen.timed;

	if (seen->busy == WATCH_UNKNOWN)
		return filled || (ended && seen->position - tracker->redo >= WALSIZER_NOTHING_WRITTEN);
	return seen->busy == 1 && (filled || due || (tracker->idle_seen && (counted || tracker->busy)));
}

/*
 * A checkpoint starts, in the middle of the interval as far as we know.  Much
 * of the WAL after it may be full-page images, so up to it the rate is at most
 * that of the interval before.  These images may also pass the trigger point:
 * then the counters tell what started the checkpoint.  The server requests one before
 * it shows the position it writes up to, so the checkpointer may be busy a sample early.
 */
static void
start(RedoTracker *tracker, const Observation *seen, int64_t now)
{
	int64_t		forced_at = trigger_position(tracker, seen);
	const Observation *before = &tracker->seen;
	bool		timed = seen->timed != before->timed && seen->requested == before->requested;
	int64_t		from = tracker->busy ? tracker->position_before : before->position;
	int64_t		to = tracker->busy ? before->position : seen->position;
	int64_t		from_ms = tracker->busy ? tracker->now_before : tracker->now;
	int64_t		to_ms = tracker->busy ? tracker->now : now;
	int64_t		usual = before->position - tracker->position_before;
	int64_t		redo = from + walsizer_min(to - from, usual) / 2;

	if (timed && redo >= forced_at)
		redo = forced_at - 1;
	else if (!timed && forced_at > from &&
			 forced_at <= walsizer_min(seen->position, to + seen->settings.segment_bytes))
		redo = forced_at;
	tracker->redo = walsizer_max(tracker->redo, redo);
	tracker->timer_start = from_ms + (to_ms - from_ms) / 2;

	/* without the control file nobody tells when it is complete */
	tracker->running = seen->completed != WATCH_UNKNOWN;
}

/* Follow the redo pointer.  May correct what the policy knows of it. */
static void
track_redo(RedoTracker *tracker, const Observation *seen, int64_t now, WalsizerState *state)
{
	if (seen->completed != WATCH_UNKNOWN && seen->completed != tracker->seen.completed)
		complete(tracker, seen, state);
	else if (tracker->running && tracker->seen.busy == 0 && seen->busy == 0)
	{
		/* a completion shows at once, so this was none, but other work, as at the server's start */
		tracker->redo = tracker->seen.completed;
		state->last.redo_lsn = (uint64_t) tracker->redo;
		tracker->running = false;
	}
	if (!tracker->running && starts(tracker, seen, now))
	{
		start(tracker, seen, now);
		tracker->busy = false;
	}
	else
		tracker->busy = seen->busy == 1 && !tracker->running;
	tracker->idle_seen |= seen->busy == 0;
	tracker->position_before = tracker->seen.position;
	tracker->now_before = tracker->now;
	tracker->seen = *seen;
	tracker->now = now;
}

/* Begin with the first observation at the time start (s since 1970). */
void
watch_begin(Watcher *watcher, const Options *options, int64_t interval_ms, int64_t start)
{
	memset(watcher, 0, sizeof(*watcher));
	watcher->config = options->config;
	watcher->config.sample_interval_ms = interval_ms;
	watcher->live = !options->log && options->replay == NULL;
	/* the policy takes a percentage of hundreds of bytes */
	watcher->disk_limit = (options->disk_limit + 99) / 100 * 100;
	watcher->zero = start - WATCH_CLOCK_START / 1000;
	watcher->began = watcher->now = WATCH_CLOCK_START;
	watcher->images = watcher->image_bytes = WATCH_UNKNOWN;
}

/* The observation as the policy wants it. */
static void
make_sample(Watcher *watcher, const Observation *seen)
{
	WalsizerSample *sample = &watcher->sample;
	const RedoTracker *tracker = &watcher->tracker;
	int64_t		completed = seen->completed != WATCH_UNKNOWN ? seen->completed : tracker->redo;
	int64_t		on_disk = walsizer_min(walsizer_max(0, seen->position - completed), watcher->disk_limit);
	bool		since_known = seen->begins && watcher->now > tracker->timer_start;

	*sample = (WalsizerSample) {
		.now = watcher->now, .hour = (watcher->zero + watcher->now / 1000) / 3600,
		.write_lsn = (uint64_t) seen->position, .redo_lsn = (uint64_t) tracker->redo,
		.completed_lsn = (uint64_t) completed, .needed_lsn = (uint64_t) completed,
		.checkpoint_running = tracker->running,
		.checkpoint_age = since_known ? watcher->now - tracker->timer_start : -1,
		.standby = seen->standby, .requested = seen->requested != WATCH_UNKNOWN ? seen->requested : 0,
		.timed = seen->timed != WATCH_UNKNOWN ? seen->timed : 0, .settings = seen->settings,

		/* the disk is "read" each time: WAL since the last complete checkpoint is on it */
		.disk_tried = true, .disk_read = watcher->disk_limit > 0, .disk_alone = true,
		.disk_wal = on_disk, .disk_removable = on_disk, .disk_free = watcher->disk_limit - on_disk,
	};
	if (seen->standby)
	{
		sample->primary_redo = sample->completed_lsn;
		sample->primary_time = seen->completed != WATCH_UNKNOWN ?
			watcher->zero + WATCH_CLOCK_START / 1000 + seen->started_s : 0;
		sample->primary_lsn = seen->primary != WATCH_UNKNOWN ? (uint64_t) seen->primary : 0;
	}
	if (seen->wal.bytes != WATCH_UNKNOWN)
		sample->wal = seen->wal;

	/* a client does not count pages that are written: as many as there is WAL for */
	sample->wal.written = sample->wal.bytes / 8192;
}

/* Count the checkpoint that ended an interval, if one did. */
static void
count_intervals(Watcher *watcher, const WalsizerCheckpoints *before)
{
	const WalsizerCheckpoints *after = &watcher->state.checkpoints;
	int64_t		from = walsizer_max(before->redo_moved, watcher->began);

	for (int cause = 0; cause < WALSIZER_CAUSES; cause++)
	{
		if (after->total[cause] == before->total[cause])
			continue;
		watcher->intervals[cause].number += after->total[cause] - before->total[cause];
		watcher->intervals[cause].ms += walsizer_max(0, after->redo_moved - from);
	}
}

/* Add a counter's progress, unless it is not known, or was reset.  An unknown sum begins with it. */
static void
add(int64_t *sum, int64_t before, int64_t now)
{
	if (now != WATCH_UNKNOWN && *sum == WATCH_UNKNOWN)
		*sum = 0;
	if (before != WATCH_UNKNOWN && now > before)
		*sum = walsizer_min(*sum + (now - before), WATCH_MOST_SUM);
}

static void
count_wal(Watcher *watcher, const Observation *seen)
{
	const Observation *before = &watcher->seen;
	int64_t		missed = (seen->tick - before->tick - 1) * watcher->config.sample_interval_ms;

	if (watcher->samples > 0)
		watcher->unseen_ms += walsizer_max(0, missed);
	add(&watcher->wal, seen->begins ? WATCH_UNKNOWN : before->position, seen->position);
	add(&watcher->images, seen->begins ? WATCH_UNKNOWN : before->images, seen->images);
	add(&watcher->image_bytes, seen->begins ? WATCH_UNKNOWN : before->image_bytes, seen->image_bytes);
}

/* Keep the decision if it is news, else NULL.  old_mb was in effect before an administrator's change. */
static const WatchChange *
note_change(Watcher *watcher, int64_t old_mb)
{
	const WalsizerDecision *decision = &watcher->decision;
	bool		external = decision->action == WALSIZER_EXTERNAL;
	WatchChange *change;

	if (!external && ((decision->action != WALSIZER_RAISE && decision->action != WALSIZER_LOWER) ||
					  !walsizer_is_news(decision->target_mb, &watcher->said_mb)))
		return NULL;
	change = &watcher->changes[watcher->num_changes++ % WATCH_CHANGES];
	*change = (WatchChange) {.at = watcher->zero + watcher->now / 1000,
		.old_mb = external ? old_mb : decision->figures.in_effect_mb, .decision = *decision};
	return change;
}

/* Take in one observation.  Returns the change to report, valid until the next, or NULL. */
const WatchChange *
watch_observe(Watcher *watcher, const Observation *seen)
{
	WalsizerCheckpoints before;
	int64_t		old_mb = watcher->state.owner.original_mb;

	watcher->now = WATCH_CLOCK_START + seen->tick * watcher->config.sample_interval_ms;
	if (watcher->samples == 0)
		watcher->began = watcher->now;
	if (seen->begins)
	{
		watcher->restarts += watcher->samples > 0;
		watcher->state.primed = false;
		begin_redo(&watcher->tracker, seen, watcher->now);
	}
	else
		track_redo(&watcher->tracker, seen, watcher->now, &watcher->state);
	count_wal(watcher, seen);

	make_sample(watcher, seen);
	before = watcher->state.checkpoints;
	watcher->decision = walsizer_step(&watcher->config, &watcher->state, &watcher->sample);
	if (!seen->begins)
		count_intervals(watcher, &before);
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
		.running = true, .client = true, .early = found->status == WATCH_COULD_NOT_TELL, .message = "", .holder = "",
	};

	decision.figures.learned = found->demand;
	decision.figures.wanted_mb = walsizer_max(decision.figures.wanted_mb, found->needed_mb);
	if (watcher->log != NULL && found->status == WATCH_TOO_SMALL)	/* of a range */
		decision.figures.wanted_mb = found->wanted_mb;
	decision.limited = false;	/* by options, which have other names than settings */
	return walsizer_judge(&situation);
}

/* The watch is over, at the time of this tick: what was not seen since the last observation counts. */
void
watch_end(Watcher *watcher, int64_t tick)
{
	int64_t		missed = (tick - watcher->seen.tick - 1) * watcher->config.sample_interval_ms;

	if (watcher->samples == 0 || missed <= 0)
		return;
	watcher->unseen_ms += missed;
	watcher->now += missed;
}

/* Is there enough to say that the size suffices?  One timeout, most of it seen, and no warning alone. */
static bool
saw_enough(const Watcher *watcher)
{
	int64_t		lasted = watcher->now - watcher->began;
	int64_t		timeout = watcher->sample.settings.timeout_ms;

	if (watcher->log != NULL)
		return watcher->log->warnings + watcher->log->unfinished == 0 && watcher->log->lasted_ms + WALSIZER_TIMER_SLACK >= timeout;
	return lasted - watcher->unseen_ms >= timeout && watcher->unseen_ms <= lasted / 2;
}

/*
 * The exit status.  What was assumed must not decide.  Forced checkpoints show that the
 * value is too small, whatever it is; else both it and the timeout must be known.
 */
static int
status_of(const Watcher *watcher, bool too_small)
{
	unsigned int assumed = watcher->log != NULL ? watcher->log->assumed : 0;

	if (too_small)
		return (assumed & WATCH_ASSUMED_SIZE && !watcher->log->size_shown) ||
			(assumed & (WATCH_ASSUMED_TARGET | WATCH_ASSUMED_TIMEOUT) && watcher->intervals[WALSIZER_CAUSE_FORCED].number == 0) ?
			WATCH_COULD_NOT_TELL : WATCH_TOO_SMALL;
	return assumed & WATCH_ASSUMED_TIMEOUT || (assumed & WATCH_ASSUMED_SIZE && watcher->intervals[WALSIZER_CAUSES].ms + watcher->intervals[WALSIZER_CAUSE_FORCED].number > 0) ||
		!saw_enough(watcher) ? WATCH_COULD_NOT_TELL : WATCH_SUFFICIENT;
}

/* What it means.  The value in effect is too small if the largest demand would force a checkpoint. */
WatchVerdict
watch_judge(const Watcher *watcher)
{
	WalsizerState state = watcher->state;
	const WalsizerSettings *settings = &watcher->sample.settings;
	const WalsizerFigures *figures = &watcher->decision.figures;
	int64_t		in_effect = settings->max_wal_size_mb;
	WatchVerdict verdict = {.status = WATCH_COULD_NOT_TELL};
	const WatchLog *log = watcher->log;

	if (watcher->samples < 2)
		return verdict;
	walsizer_remember_window(&state);
	verdict.demand = walsizer_largest_peak(&state, watcher->sample.hour, watcher->config.lookback_hours).demand;
	verdict.demand = log != NULL ? log->about : walsizer_max(verdict.demand, figures->demand);
	verdict.needed_mb = walsizer_size_for(verdict.demand, settings);
	verdict.wanted_mb = walsizer_size_with_headroom(&watcher->config, settings,
													log != NULL ? log->sized : verdict.demand);
	verdict.status = status_of(watcher, verdict.needed_mb > in_effect);

	verdict.set_mb = in_effect;
	if (verdict.needed_mb > in_effect)
	{
		if (verdict.wanted_mb > figures->limit_mb)
			verdict.limited_by = figures->limit_kind;
		verdict.set_mb = verdict.limited_by == WALSIZER_UNLIMITED ? verdict.wanted_mb :
			walsizer_max(figures->limit_mb, in_effect);
	}
	verdict.verdict = policy_verdict(watcher, &verdict);
	return verdict;
}
