/*-------------------------------------------------------------------------
 *
 * ranges.h
 *	  In which ranges the fields of configuration and state are.
 *
 * The configuration's are the ranges of the settings (policy.h).  The
 * state's hold for a new state, and walsizer_step() and what else changes a
 * state keep them, for any sample: test/prove/eva.c proves that, and the
 * fuzzers check it as they run.  What is not listed may be anything.
 *
 * The one assumption: the server has started fewer than 2 ^ 60 checkpoints.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#ifndef PROVE_RANGES_H
#define PROVE_RANGES_H

#include "policy/internal.h"

#define LATEST			((INT64_C(1) << 61) - 1)	/* ms, or an hour */
#define MOST_TIMEOUT	(WALSIZER_MOST_MB * 1000)	/* ms */
#define MOST_WAL		WALSIZER_MOST_BYTES
#define MOST_CHECKPOINTS	((INT64_C(1) << 60) - 1)

/* A sum of checkpoints of two causes. */
#define MOST_FORCED		(2 * MOST_CHECKPOINTS + 2)

/*
 * Each gives RANGE(field, least, most) for integers, REAL(...) for doubles, and
 * FLAG(field) for truth values.
 */
#define RECOVERY_RANGES(r, RANGE) \
	do { \
		RANGE((r)->bytes, 0, INT64_MAX); \
		RANGE((r)->replay_ms, 0, INT64_MAX); \
		RANGE((r)->bytes_read, 0, INT64_MAX); \
		RANGE((r)->pages_used, 0, INT64_MAX); \
		RANGE((r)->pages_written, 0, INT64_MAX); \
		RANGE((r)->writing_ms, 0, INT64_MAX); \
	} while (0)

#define WAL_RANGES(w, RANGE) \
	do { \
		RANGE((w)->bytes, 0, INT64_MAX); \
		RANGE((w)->records, 0, INT64_MAX); \
		RANGE((w)->images, 0, INT64_MAX); \
	} while (0)

#define CONFIG_RANGES(c, RANGE, REAL, FLAG) \
	do { \
		FLAG((c)->enable); \
		FLAG((c)->predict); \
		FLAG((c)->prevent_disk_full); \
		RANGE((c)->max_mb, walsizer_least.max_mb, walsizer_most.max_mb); \
		RANGE((c)->min_mb, walsizer_least.min_mb, walsizer_most.min_mb); \
		RANGE((c)->threshold, walsizer_least.threshold, walsizer_most.threshold); \
		REAL((c)->headroom, walsizer_least.headroom, walsizer_most.headroom); \
		RANGE((c)->sample_interval_ms, walsizer_least.sample_interval_ms, walsizer_most.sample_interval_ms); \
		RANGE((c)->lookback_hours, walsizer_least.lookback_hours, walsizer_most.lookback_hours); \
		RANGE((c)->max_disk_percent, walsizer_least.max_disk_percent, walsizer_most.max_disk_percent); \
		RANGE((c)->max_recovery_ms, walsizer_least.max_recovery_ms, walsizer_most.max_recovery_ms); \
		REAL((c)->replay_rate, walsizer_least.replay_rate, walsizer_most.replay_rate); \
		for (int i = 0; i < WALSIZER_RECOVERIES; i++) \
			RECOVERY_RANGES(&(c)->recoveries[i], RANGE); \
	} while (0)

/* Of a state that has seen no sample, all are 0. */
#define SETTINGS_RANGES(s, RANGE, REAL) \
	do { \
		RANGE((s)->segment_bytes, 0, 1024 * WALSIZER_MB); \
		RANGE((s)->max_wal_size_mb, 0, WALSIZER_MOST_MB); \
		REAL((s)->completion_target, 0.0, 1.0); \
		RANGE((s)->timeout_ms, 0, MOST_TIMEOUT); \
	} while (0)

#define PEAK_RANGES(p, RANGE) \
	do { \
		RANGE((p)->hour, 0, LATEST); \
		RANGE((p)->demand, 0, MOST_WAL); \
		RANGE((p)->timeout_ms, 0, MOST_TIMEOUT); \
		RANGE((p)->inflated_at, 0, INT64_MAX); \
	} while (0)

#define MARK_RANGES(m, RANGE) \
	do { \
		RANGE((m)->ms, 0, LATEST); \
		RANGE((m)->padding, 0, MOST_WAL); \
		PEAK_RANGES(&(m)->peak, RANGE); \
		RANGE((m)->forced, 0, MOST_FORCED); \
		RANGE((m)->forced_old_value, 0, MOST_CHECKPOINTS + 1); \
		RANGE((m)->requested, 0, LATEST + 1); \
		RANGE((m)->timed, 0, LATEST + 1); \
	} while (0)

#define MEASURED_RANGES(s, RANGE) \
	do { \
		RANGE((s)->window.first, 0, WALSIZER_WINDOW_SLOTS - 1); \
		RANGE((s)->window.number, 0, WALSIZER_WINDOW_SLOTS); \
		PEAK_RANGES(&(s)->window.step, RANGE); \
		RANGE((s)->window.padding, 0, MOST_WAL); \
		PEAK_RANGES(&(s)->learned.largest, RANGE); \
		RANGE((s)->learned.hour, 0, LATEST); \
		for (int i = 0; i < WALSIZER_RATE_SLOTS; i++) \
			RANGE((s)->rate.ms[i], 0, LATEST); \
		RANGE((s)->rate.next, 0, WALSIZER_RATE_SLOTS - 1); \
		RANGE((s)->primary.time, 0, MOST_WAL / 1000); \
		RANGE((s)->primary.demand, 0, MOST_WAL); \
		RANGE((s)->primary.measured_at, 0, LATEST); \
		RANGE((s)->primary.inflated_at, 0, INT64_MAX); \
		RANGE((s)->primary.checkpoints, 0, 1000); \
		WAL_RANGES(&(s)->wal_contents.at_redo, RANGE); \
		WAL_RANGES(&(s)->wal_contents.interval, RANGE); \
		RANGE((s)->wal_contents.at_redo.written, 0, INT64_MAX); \
		RANGE((s)->wal_contents.last.bytes, INT64_MIN, INT64_MAX); \
		RANGE((s)->wal_contents.last.records, INT64_MIN, INT64_MAX); \
		RANGE((s)->wal_contents.last.images, INT64_MIN, INT64_MAX); \
	} while (0)

#define CHECKPOINTS_RANGES(c, RANGE, FLAG) \
	do { \
		RANGE((c)->timer_start, 0, LATEST); \
		RANGE((c)->redo_moved, 0, LATEST); \
		for (int i = 0; i < WALSIZER_OLD_VALUES; i++) \
			RANGE((c)->old.points[i], 0, INT64_MAX); \
		RANGE((c)->old.seen, 0, LATEST); \
		RANGE((c)->old.asked_at, 0, INT64_MAX); \
		FLAG((c)->old.counted); \
		for (int i = 0; i < WALSIZER_CAUSES; i++) \
			RANGE((c)->total[i], 0, MOST_CHECKPOINTS + 1); \
		RANGE((c)->forced_before, 0, MOST_CHECKPOINTS + 1); \
		RANGE((c)->padding_at_redo, 0, MOST_WAL); \
		RANGE((c)->forced_at, 0, INT64_MAX); \
		RANGE((c)->completed_at, 0, LATEST); \
		RANGE((c)->failures, 0, MOST_CHECKPOINTS + 1); \
		RANGE((c)->requested, 0, LATEST + 1); \
		RANGE((c)->timed, 0, LATEST + 1); \
	} while (0)

#define CURVE_RANGES(c, RANGE, FLAG) \
	do { \
		RANGE((c)->steps, 0, WALSIZER_CURVE_STEPS); \
		FLAG((c)->whole); \
		RANGE((c)->intervals, 0, MOST_CHECKPOINTS + 1); \
		RANGE((c)->said.before_ms, 0, MOST_TIMEOUT); \
	} while (0)

#define DISK_RANGES(d, RANGE, FLAG) \
	do { \
		FLAG((d)->known); \
		RANGE((d)->free, 0, MOST_WAL); \
		RANGE((d)->wal, 0, MOST_WAL); \
		RANGE((d)->held, 0, MOST_WAL); \
		FLAG((d)->alone); \
		RANGE((d)->others_rate, 0, MOST_WAL); \
		RANGE((d)->looked_at, 0, LATEST); \
		RANGE((d)->look_ms, 0, 300000); \
		RANGE((d)->failures, 0, 4); \
	} while (0)

/*
 * took_ms, space and room are not negative, but no range shows that a request is
 * earlier than its checkpoint, or that what is used of a segment is less than one.
 */
#define LAST_RESORT_RANGES(r, RANGE, FLAG) \
	do { \
		RANGE((r)->space, -1024 * WALSIZER_MB, 2 * MOST_WAL + 1024 * WALSIZER_MB); \
		RANGE((r)->space_at, 0, LATEST); \
		RANGE((r)->loss, 0, MOST_WAL); \
		RANGE((r)->peak_rate, 0, MOST_WAL); \
		RANGE((r)->room, -2048 * WALSIZER_MB, 2 * MOST_WAL + 1024 * WALSIZER_MB); \
		RANGE((r)->until_full_ms, 0, MOST_WAL); \
		FLAG((r)->fills); \
		RANGE((r)->removable, 0, MOST_WAL); \
		RANGE((r)->kept, 0, 2 * MOST_WAL); \
		RANGE((r)->asked_at, 0, LATEST); \
		RANGE((r)->asked_removable, 0, MOST_WAL); \
		RANGE((r)->took_ms, -LATEST, LATEST); \
		FLAG((r)->complete); \
	} while (0)

#define PACING_RANGES(p, RANGE, FLAG) \
	do { \
		RANGE((p)->tried_at, 0, LATEST); \
		RANGE((p)->edit_tried_at, 0, LATEST); \
		RANGE((p)->changed_at, 0, LATEST); \
		RANGE((p)->leave_alone_until, 0, LATEST + WALSIZER_MOST_PATIENCE); \
		RANGE((p)->raise_not_before, 0, LATEST + MOST_TIMEOUT + 43200000); \
		RANGE((p)->hold_ms, 0, MOST_TIMEOUT + 43200000); \
		RANGE((p)->kept_since, 0, LATEST); \
		RANGE((p)->keep_ms, 0, 604800000); \
		RANGE((p)->lowered_at, 0, LATEST); \
		FLAG((p)->lower_due); \
	} while (0)

/* Those of a decision. */
#define FIGURES_RANGES(f, RANGE) \
	do { \
		RANGE((f)->in_effect_mb, 0, WALSIZER_MOST_MB); \
		RANGE((f)->demand, 0, MOST_WAL); \
		RANGE((f)->rate, 0, MOST_WAL); \
		RANGE((f)->used, 0, MOST_WAL); \
		RANGE((f)->trigger_point, 0, LATEST); \
		RANGE((f)->projected, 0, MOST_WAL); \
		RANGE((f)->until_timed_ms, -MOST_TIMEOUT, LATEST + MOST_TIMEOUT); \
		RANGE((f)->until_forced_ms, -1, MOST_WAL); \
	} while (0)

#define STATE_RANGES(s, RANGE, REAL, FLAG) \
	do { \
		FLAG((s)->primed); \
		RANGE((s)->last.now, 0, LATEST); \
		RANGE((s)->last.hour, 0, LATEST); \
		RANGE((s)->last.requested, 0, LATEST); \
		RANGE((s)->last.timed, 0, LATEST); \
		RANGE((s)->last.wal.written, 0, INT64_MAX); \
		FLAG((s)->last.standby); \
		FLAG((s)->last.checkpoint_running); \
		SETTINGS_RANGES(&(s)->last.settings, RANGE, REAL); \
		FLAG((s)->owner.original_by_alter_system); \
		RANGE((s)->boost.size_mb, 0, WALSIZER_MOST_MB); \
		RANGE((s)->boost.planned_until, 0, LATEST + MOST_TIMEOUT); \
		for (int i = 0; i < WALSIZER_PEAK_SLOTS; i++) \
			PEAK_RANGES(&(s)->learned.peaks[i], RANGE); \
		for (int i = 0; i < WALSIZER_WINDOW_SLOTS; i++) \
			MARK_RANGES(&(s)->window.marks[i], RANGE); \
		MEASURED_RANGES(s, RANGE); \
		FLAG((s)->wal_contents.few_pages); \
		CHECKPOINTS_RANGES(&(s)->checkpoints, RANGE, FLAG); \
		CURVE_RANGES(&(s)->curve, RANGE, FLAG); \
		DISK_RANGES(&(s)->disk, RANGE, FLAG); \
		LAST_RESORT_RANGES(&(s)->last_resort, RANGE, FLAG); \
		RANGE((s)->cycle.start, -MOST_TIMEOUT, LATEST); \
		FLAG((s)->cycle.over); \
		RANGE((s)->cycle.demand, 0, MOST_WAL); \
		RANGE((s)->cycle.forced, -MOST_FORCED - MOST_CHECKPOINTS - 1, MOST_FORCED + MOST_CHECKPOINTS + 1); \
		RANGE((s)->cycle.old_value, 0, MOST_CHECKPOINTS + 1); \
		PACING_RANGES(&(s)->pacing, RANGE, FLAG); \
		REAL((s)->pacing.replay_rate, 0, walsizer_most.replay_rate); \
	} while (0)

#endif							/* PROVE_RANGES_H */
