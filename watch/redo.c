/*-------------------------------------------------------------------------
 *
 * watch/redo.c
 *	  The redo pointer of the last checkpoint that was started.
 *
 * The worker reads it from the server's memory.  SQL shows it only once the
 * checkpoint is complete (pg_control_checkpoint()), which is most of
 * checkpoint_timeout later.  But SQL shows that the checkpointer works, and
 * the server's rule for a checkpoint is known: when its timer is over, or WAL
 * fills the trigger point.  So the start is noticed in time, and its position
 * is known to within one sample, or exactly if WAL forced it.  When the
 * checkpoint is complete the estimate is corrected.
 *
 * Where SQL does not show all of this, the rule alone has to do.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
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
void
watch_begin_redo(RedoTracker *tracker, const Observation *seen, int64_t now)
{
	*tracker = (RedoTracker) {0};
	tracker->completed = seen->completed;
	tracker->running = seen->busy == 1;
	tracker->redo = tracker->running || seen->completed == WATCH_UNKNOWN ?
		seen->position : seen->completed;
	tracker->position = tracker->position_before = seen->position;
	tracker->now = tracker->now_before = now;
	tracker->requested = seen->requested;
	tracker->timed = seen->timed;
	tracker->timer_start = WATCH_CLOCK_START + seen->timer_s * 1000;
	tracker->idle = tracker->idle_seen = seen->busy == 0;
}

/*
 * A checkpoint is complete: its redo pointer is known now.  If its start was
 * noticed, only the estimate is corrected; else the policy sees it move.
 */
static void
complete(RedoTracker *tracker, const Observation *seen, WalsizerState *state)
{
	tracker->redo = tracker->completed = seen->completed;
	tracker->timer_start = WATCH_CLOCK_START + seen->started_s * 1000;
	if (tracker->running)
		walsizer_correct_redo(state, (uint64_t) seen->completed);
	tracker->running = tracker->busy = tracker->idle_seen = false;
}

/*
 * What looked like a checkpoint was none: the checkpointer had other work, at
 * the start of the server for example.  Nothing is judged again.
 */
static void
take_back(RedoTracker *tracker, WalsizerState *state)
{
	tracker->redo = tracker->completed;
	walsizer_correct_redo(state, (uint64_t) tracker->redo);
	tracker->running = false;
}

/* Did the timer run out since the last observation? */
static bool
timer_ended(const RedoTracker *tracker, const Observation *seen, int64_t now)
{
	int64_t		timeout = seen->settings.timeout_ms;

	return (now - tracker->timer_start) / timeout >
		(tracker->now - tracker->timer_start) / timeout;
}

/*
 * Did a checkpoint start?  Work of the checkpointer without a reason that we
 * know counts only if it lasts, or if the counters moved: it also works for a
 * moment to take in requests, and for a while after a checkpoint is complete,
 * to remove WAL.
 */
static bool
starts(const RedoTracker *tracker, const Observation *seen, int64_t now)
{
	bool		filled = seen->position >= trigger_position(tracker, seen);
	bool		due = now - tracker->timer_start + WALSIZER_TIMER_SLACK >= seen->settings.timeout_ms;
	bool		counted = seen->requested != tracker->requested || seen->timed != tracker->timed;

	if (seen->busy == WATCH_UNKNOWN)
		return filled || (timer_ended(tracker, seen, now) &&
						  seen->position - tracker->redo >= WALSIZER_NOTHING_WRITTEN);
	return seen->busy == 1 &&
		(filled || due || (tracker->idle_seen && (counted || tracker->busy)));
}

/*
 * A checkpoint starts, in the middle of the interval as far as we know.  Much
 * of the WAL after it may be full-page images, so up to it the rate is at most
 * that of the interval before.  These images may also pass the trigger point:
 * then the counters tell what started the checkpoint.
 */
static void
start(RedoTracker *tracker, const Observation *seen, int64_t now)
{
	int64_t		forced_at = trigger_position(tracker, seen);
	bool		timed = seen->timed != tracker->timed && seen->requested == tracker->requested;
	int64_t		from = tracker->busy ? tracker->position_before : tracker->position;
	int64_t		to = tracker->busy ? tracker->position : seen->position;
	int64_t		from_ms = tracker->busy ? tracker->now_before : tracker->now;
	int64_t		to_ms = tracker->busy ? tracker->now : now;
	int64_t		usual = tracker->position - tracker->position_before;
	int64_t		redo = from + (to - from < usual ? to - from : usual) / 2;

	if (timed && redo >= forced_at)
		redo = forced_at - 1;
	else if (!timed && forced_at > from && forced_at <= to)
		redo = forced_at;
	tracker->redo = redo > tracker->redo ? redo : tracker->redo;
	tracker->timer_start = from_ms + (to_ms - from_ms) / 2;

	/* without the control file nobody tells when it is complete */
	tracker->running = seen->completed != WATCH_UNKNOWN;
}

/* Follow the redo pointer.  May correct what the policy knows of it. */
void
watch_track_redo(RedoTracker *tracker, const Observation *seen, int64_t now, WalsizerState *state)
{
	bool		completed = seen->completed != WATCH_UNKNOWN &&
		seen->completed != tracker->completed;

	if (completed)
		complete(tracker, seen, state);
	else if (tracker->running && tracker->idle && seen->busy == 0)
		take_back(tracker, state);	/* the completion is shown at once */
	if (!tracker->running && starts(tracker, seen, now))
	{
		start(tracker, seen, now);
		tracker->busy = false;
	}
	else
		tracker->busy = seen->busy == 1 && !tracker->running;
	tracker->idle = seen->busy == 0;
	tracker->idle_seen = tracker->idle_seen || tracker->idle;
	tracker->position_before = tracker->position;
	tracker->now_before = tracker->now;
	tracker->position = seen->position;
	tracker->now = now;
	tracker->requested = seen->requested;
	tracker->timed = seen->timed;
}
