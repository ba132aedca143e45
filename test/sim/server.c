/*-------------------------------------------------------------------------
 *
 * server.c
 *	  A model of the server's checkpointing.
 *
 * What it follows, with the places in the server's sources:
 *
 * - The process that fills segment redo + CheckPointSegments - 1 asks for a
 *	 checkpoint (XLogWrite, XLogCheckpointNeeded), by the value that it has.
 *	 While a long statement runs, it is the one that fills segments.
 * - checkpoint_timeout counts from the start of the last checkpoint; when
 *	 nothing was written it is skipped, which moves no redo pointer
 *	 (CheckpointerMain, CreateCheckPoint).
 * - A checkpoint writes as fast as the larger of WAL's and time's share of the
 *	 way to the next one demands, divided by checkpoint_completion_target
 *	 (IsCheckpointOnSchedule), and WAL's share is that of the checkpointer's
 *	 value, which is the new one soon after a raise, whichever process asked
 *	 for the checkpoint.  Asked for meanwhile, the next follows at once.
 *	 CHECKPOINT answers such a request, too.  The storage always keeps up, so the
 *	 checkpointer sees a new value at once; a real one that is behind does not
 *	 read it before it has caught up.
 * - After a checkpoint the first touch of each page logs the whole page.  The
 *	 load touches hot_pages at random, so of the images a share
 *	 1 - exp(-touches / hot_pages) has been written.
 * - When a checkpoint fails, which moves the redo pointer, the checkpointer tries
 *	 again after a second.
 * - Files below the redo pointer are recycled up to the estimated distance of
 *	 checkpoints, at most max_wal_size (XLOGfileslop).
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <string.h>

#include "sim.h"

#define FAST_CHECKPOINT		300.0	/* ms */
#define RECOVERY			5000.0	/* ms, a restart takes as long */
#define RETRY				1000.0	/* ms, after a checkpoint that failed */
#define BUFFERS				16384
#define SMALL_RECORD		100.0	/* bytes */
#define MIN_WAL_SIZE		(80 * SIM_MB)

/* The clocks of the machine at the beginning; the hour is one since 1970. */
#define FIRST_HOUR			490000
#define MONOTONIC_START		INT64_C(5000000)

double
sim_segment_start(const SimServer *s, double pos)
{
	double		size = (double) s->settings.segment_bytes;

	return floor(pos / size) * size;
}

static double
trigger_point(const SimServer *s)
{
	return (double) walsizer_trigger_point(s->settings.max_wal_size_mb, &s->settings);
}

void
sim_server_init(SimServer *s, const WalsizerSettings *settings)
{
	memset(s, 0, sizeof(*s));
	s->settings = *settings;
	s->touch_bytes = 200;
	s->image_bytes = 6000;
	s->min_wal = MIN_WAL_SIZE;
	s->fast_ms = FAST_CHECKPOINT;
	s->pos = s->redo = s->completed = s->files_from = s->files_to = 16 * SIM_MB * 64;
}

static void
start_checkpoint(SimServer *s, WalsizerCause cause)
{
	bool		timed = cause == WALSIZER_CAUSE_TIMED;
	double		interval = s->now - s->redo_time;
	SimCheckpoints *same = &s->checkpoints[cause];

	if (s->late_counters)
	{
		s->late_timed += timed;
		s->late_requested += !timed;
	}
	else
	{
		s->timed += timed;
		s->requested += !timed;
	}
	s->touches = s->padded = 0;
	s->wal_request = s->old_value_request = false;
	if (s->failing)
	{
		s->redo = s->pos;
		s->redo_time = s->now;
		s->timer = s->now + RETRY - (double) s->settings.timeout_ms;
		return;
	}
	s->prompt_forced += cause == WALSIZER_CAUSE_FORCED &&
		interval < (double) s->settings.timeout_ms;
	same->intervals += interval;
	if (same->number++ == 0 || interval < same->shortest)
		same->shortest = interval;
	s->estimate = s->pos - s->redo > s->estimate ? s->pos - s->redo :
		0.9 * s->estimate + 0.1 * (s->pos - s->redo);
	s->redo = s->pos;
	s->redo_time = s->timer = s->now;
	s->running = true;
	s->running_cause = cause;
	s->written = 0;
	s->fast_until = cause == WALSIZER_CAUSE_OTHER || cause == WALSIZER_CAUSE_DISK_FULL ?
		s->now + s->fast_ms : 0;
}

static void
end_checkpoint(SimServer *s)
{
	double		freed = s->redo - s->files_from;
	double		room = s->estimate * (1 + s->settings.completion_target) * 1.1;
	double		most = (double) s->settings.max_wal_size_mb * SIM_MB;

	room = fmax(fmin(room, most), s->min_wal);
	s->files_from = s->redo;
	s->files_to = fmax(fmax(s->files_to, s->pos), fmin(s->files_to + freed, s->redo + room));
	s->requested += s->late_requested;
	s->timed += s->late_timed;
	s->late_requested = s->late_timed = 0;
	s->running = false;
	s->completed = s->redo;
	if (s->asked)
	{
		s->asked = false;
		start_checkpoint(s, WALSIZER_CAUSE_DISK_FULL);
	}
	else if (s->wal_request)
		start_checkpoint(s, s->old_value_request ? WALSIZER_CAUSE_OLD_VALUE : WALSIZER_CAUSE_FORCED);
}

/* The end of the segment: the process that fills it asks for a checkpoint. */
static double
trigger(const SimServer *s)
{
	double		size = (double) s->settings.segment_bytes;
	double		filled = s->pos - sim_segment_start(s, s->pos);
	double		next = filled > 0 ? s->pos - filled + size : s->pos + size;
	double		room = trigger_point(s);

	if (s->wal_request)
		return INFINITY;
	if (s->statements > 0)
		room = (double) walsizer_trigger_point((int64_t) s->old_mb, &s->settings);
	return fmax(next, sim_segment_start(s, s->redo) + room);
}

/* A segment was filled: does it ask for a checkpoint? */
static void
segment_filled(SimServer *s)
{
	bool		old_value = s->pos < sim_segment_start(s, s->redo) + trigger_point(s);

	if (s->running)
	{
		s->wal_request = true;
		s->old_value_request = old_value;
	}
	else
		start_checkpoint(s, old_value ? WALSIZER_CAUSE_OLD_VALUE : WALSIZER_CAUSE_FORCED);
}

/* Follow the running checkpoint's writing up to now. */
static void
note_progress(SimServer *s)
{
	double		c = fmax(s->settings.completion_target, 0.001);
	double		by_wal = (s->pos - s->redo) / trigger_point(s) / c;
	double		by_time = (s->now - s->redo_time) / (double) s->settings.timeout_ms / c;
	double		progress = fmin(1, fmax(by_wal, by_time));

	if (s->fast_until > 0 || progress <= s->written)
		return;
	if (s->running_cause == WALSIZER_CAUSE_TIMED)
	{
		if (by_time >= by_wal)
			s->written_by_time += progress - s->written;
		else
			s->written_by_wal += progress - s->written;
	}
	s->written = progress;
}

/* When the running checkpoint will have been written if time decides. */
static double
end_by_time(const SimServer *s)
{
	if (s->fast_until > 0)
		return s->fast_until;
	return s->redo_time + fmax(s->settings.completion_target * (double) s->settings.timeout_ms,
							   s->least_writing);
}

static double
end_by_wal(const SimServer *s)
{
	if (!s->running || s->fast_until > 0 || s->now < s->redo_time + s->least_writing)
		return INFINITY;
	return s->redo + s->settings.completion_target * trigger_point(s);
}

/* All of the running checkpoint is written; WAL demanded it before time did? */
static void
note_written(SimServer *s)
{
	SimCheckpoints *same = &s->checkpoints[s->running_cause];

	if (s->now >= end_by_time(s))
		return;
	same->hurried++;
	same->hurried_time += s->now - s->redo_time;
}

/* The timer fired and nothing runs. */
static void
timer_fired(SimServer *s)
{
	if (s->pos > s->redo)
		start_checkpoint(s, WALSIZER_CAUSE_TIMED);
	else
	{
		s->timer = s->now;
		s->timed++;
	}
}

/* Write WAL up to the next event or this time, whichever is first. */
static void
write_wal(SimServer *s, double until, double rate)
{
	double		logical = rate * (until - s->now);
	double		after = s->touches;
	double		images = 0;
	double		event = fmin(trigger(s), end_by_wal(s));
	double		part;

	if (s->hot_pages > 0 && logical > 0)
	{
		after += logical / s->touch_bytes;
		images = s->image_bytes * s->hot_pages *
			(exp(-s->touches / s->hot_pages) - exp(-after / s->hot_pages));
	}
	if (logical > 0 && s->pos + logical + images >= event)
	{
		part = fmax(0, event - s->pos) / (logical + images);
		s->now += part * (until - s->now);
		s->touches += part * (after - s->touches);
		s->pos = fmax(s->pos, event);
		s->page_images += part * images;
		s->changes += part * logical;
		s->records += part * logical / s->touch_bytes;
		return;
	}
	s->now = until;
	s->touches = after;
	s->pos += logical + images;
	s->page_images += images;
	s->changes += logical;
	s->records += logical / s->touch_bytes;
}

/* Let time pass at this rate of logical WAL. */
void
sim_server_advance(SimServer *s, double until, double rate)
{
	while (s->now < until)
	{
		double		next = until;
		double		fires = s->timer + (double) s->settings.timeout_ms;
		double		asks = trigger(s);

		if (s->running)
			next = fmin(next, end_by_time(s));
		else
			next = fmin(next, fires);
		if (s->apply_at > 0)
			next = fmin(next, s->apply_at);
		if (next > s->now)
			write_wal(s, next, rate);

		if (s->apply_at > 0 && s->now >= s->apply_at)
		{
			s->settings.max_wal_size_mb = s->apply_mb;
			s->apply_at = 0;
		}
		if (s->running)
			note_progress(s);
		if (s->pos >= asks)
			segment_filled(s);
		if (s->running && (s->now >= end_by_time(s) || s->pos >= end_by_wal(s)))
		{
			note_written(s);
			end_checkpoint(s);
		}
		if (!s->running && s->now >= s->timer + (double) s->settings.timeout_ms)
			timer_fired(s);

		s->files_to = fmax(s->files_to, s->pos);
		s->peak_files = fmax(s->peak_files, s->files_to - s->files_from);
	}
}

/*
 * CHECKPOINT, or anything else that asks for one at once.  What WAL has asked
 * for meanwhile is the same checkpoint.
 */
void
sim_server_checkpoint(SimServer *s)
{
	s->wal_request = false;
	if (s->running)
		end_checkpoint(s);
	start_checkpoint(s, WALSIZER_CAUSE_OTHER);
}

/* walsizer's request: the one that runs is hurried, and another one follows. */
void
sim_server_request(SimServer *s)
{
	if (!s->running)
	{
		start_checkpoint(s, WALSIZER_CAUSE_DISK_FULL);
		return;
	}
	s->asked = true;
	if (s->fast_until == 0)
		s->fast_until = s->now + s->fast_ms;
}

/* Anything written since the segment began, and a small record: the next begins. */
void
sim_server_switch(SimServer *s)
{
	double		asks = trigger(s);
	double		before = s->pos + SMALL_RECORD;

	s->pos = sim_segment_start(s, before) + (double) s->settings.segment_bytes;
	s->padding += s->pos - before;
	s->padded += s->pos - before;
	s->changes += SMALL_RECORD;
	s->records++;
	s->files_to = fmax(s->files_to, s->pos);
	if (s->pos >= asks)
		segment_filled(s);
}

/* A value comes into force after delay; a later one replaces it. */
void
sim_server_apply(SimServer *s, int64_t mb, double delay)
{
	s->apply_mb = mb;
	s->apply_at = s->now + delay;
}

/*
 * A statement begins; it keeps the value it begins with.  Those that overlap
 * with it are taken to keep the same: too many forced rather than too few.
 */
void
sim_server_begin(SimServer *s)
{
	if (s->statements++ == 0)
		s->old_mb = (double) s->settings.max_wal_size_mb;
}

void
sim_server_end(SimServer *s)
{
	if (s->statements > 0)
		s->statements--;
}

/* Both ways of going down end in a checkpoint that starts a new interval. */
void
sim_server_restart(SimServer *s, bool crash)
{
	if (s->apply_at > 0)
		s->settings.max_wal_size_mb = s->apply_mb;
	s->apply_at = 0;
	s->statements = 0;
	s->now += RECOVERY;
	if (crash)
		s->requested = s->timed = s->late_requested = s->late_timed = 0;
	s->wal_request = false;
	if (s->running)
		end_checkpoint(s);
	start_checkpoint(s, WALSIZER_CAUSE_OTHER);
	end_checkpoint(s);
}

/* What walsizer would see of this server now, at the first sample. */
void
sim_server_sample(const SimServer *s, WalsizerSample *sample)
{
	sample->now = MONOTONIC_START + (int64_t) s->now;
	sample->hour = FIRST_HOUR + (int64_t) (s->now / 3600000) + s->hours_ahead;
	sample->write_lsn = (uint64_t) s->pos;
	sample->redo_lsn = (uint64_t) s->redo;
	sample->completed_lsn = (uint64_t) s->completed;
	sample->checkpoint_running = s->completed < s->redo;
	sample->checkpoint_age = (int64_t) (s->now - s->redo_time);
	sample->requested = s->requested;
	sample->timed = s->timed;
	sample->buffers = BUFFERS;
	sample->wal.bytes = (int64_t) (s->page_images + s->changes);
	sample->wal.records = (int64_t) s->records;
	sample->wal.images = (int64_t) (s->page_images / s->image_bytes);
	sample->settings = s->settings;
	if (s->note.written_mb == s->settings.max_wal_size_mb)
		sample->note = s->note;
}
