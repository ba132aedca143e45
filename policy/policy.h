/*-------------------------------------------------------------------------
 *
 * policy/policy.h
 *	  The decision: what max_wal_size should be, and why.
 *
 * No file of policy/ includes a server header or knows the server: everything that the
 * decision depends on is an argument, so that the worker, the SQL functions, the unit
 * tests, the fuzzers and the simulator all run the same code.
 *
 * Units, unless a name says otherwise: WAL in bytes, rates in bytes per second, times in
 * milliseconds of a monotonic clock, an LSN as a byte position.  Names that end in _mb
 * are sizes in megabytes, as in the server.  "Timeout" is checkpoint_timeout, the window
 * is the trailing timeout, and demand is the WAL written in a window, a distance of LSNs.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#ifndef WALSIZER_POLICY_H
#define WALSIZER_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WALSIZER_MB					(INT64_C(1024) * 1024)
#define WALSIZER_MOST_MB			INT64_C(2147483647) /* of max_wal_size, on any platform */

/* WAL figures are cut off here, so that their sums cannot overflow. */
#define WALSIZER_MOST_BYTES			(INT64_C(1) << 60)

#define WALSIZER_WINDOW_STEPS		120 /* marks per window */
#define WALSIZER_WINDOW_SLOTS		(WALSIZER_WINDOW_STEPS + 4)
#define WALSIZER_RATE_SLOTS			6	/* samples kept for the recent rate */
#define WALSIZER_PEAK_SLOTS			(31 * 24 + 2)	/* longest lookback, an hour, now */

static inline int64_t
walsizer_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t
walsizer_max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Each value of the next four enums has a name in names.c. */
typedef enum WalsizerAction
{
	WALSIZER_NONE = 0,
	WALSIZER_RAISE,
	WALSIZER_LOWER,
	WALSIZER_EXTERNAL,			/* an administrator changed the setting */
	WALSIZER_REVERT,			/* our value is removed */
	WALSIZER_CHECKPOINT,		/* one is requested; the setting stays */
} WalsizerAction;

typedef enum WalsizerReason
{
	WALSIZER_BECAUSE_INVALID = 0,
	WALSIZER_BECAUSE_STARTED,
	WALSIZER_BECAUSE_SUFFICIENT,
	WALSIZER_BECAUSE_FORCED,
	WALSIZER_BECAUSE_PREDICTED,
	WALSIZER_BECAUSE_DEMAND_FELL,
	WALSIZER_BECAUSE_LIMIT_FELL,
	WALSIZER_BECAUSE_CHANGED,
	WALSIZER_BECAUSE_RECENTLY_CHANGED,
	WALSIZER_BECAUSE_WAITING,
	WALSIZER_BECAUSE_EDIT_HIDDEN,
	WALSIZER_BECAUSE_DISABLED,
	WALSIZER_BECAUSE_PRIMARY,
	WALSIZER_BECAUSE_REVERT,
	WALSIZER_BECAUSE_EDITED,
	WALSIZER_BECAUSE_BOOST,
	WALSIZER_BECAUSE_BOOST_OVER,
	WALSIZER_BECAUSE_LATE,
	WALSIZER_BECAUSE_DISK_FULL,
} WalsizerReason;

typedef enum WalsizerLimit
{
	WALSIZER_UNLIMITED = 0,
	WALSIZER_LIMIT_MAX,			/* walsizer.max */
	WALSIZER_LIMIT_DISK,		/* walsizer.max_disk_percent */
	WALSIZER_LIMIT_RECOVERY,	/* walsizer.max_recovery_time */
} WalsizerLimit;
#define WALSIZER_LIMITS				(WALSIZER_LIMIT_RECOVERY + 1)

/* What came of a decision. */
typedef enum WalsizerOutcome
{
	WALSIZER_NO_OUTCOME = 0,	/* nothing was to be applied */
	WALSIZER_APPLIED,
	WALSIZER_DRY_RUN,			/* walsizer.dry_run = on */
	WALSIZER_FORBIDDEN,			/* not tried: walsizer may not write */
	WALSIZER_OVERRIDDEN,		/* another source outranks our value */
	WALSIZER_REFUSED,			/* written; the reload was refused or is late */
	WALSIZER_FAILED,			/* writing failed, or the disk is not known */
} WalsizerOutcome;

/* The cause of a checkpoint, judged by the distance the redo pointer moved. */
typedef enum WalsizerCause
{
	WALSIZER_CAUSE_FORCED = 0,	/* WAL volume, at the value in effect */
	WALSIZER_CAUSE_OLD_VALUE,	/* WAL volume, at a smaller previous value */
	WALSIZER_CAUSE_TIMED,		/* checkpoint_timeout */
	WALSIZER_CAUSE_OTHER,		/* CHECKPOINT, backup, DDL, ... */
	WALSIZER_CAUSE_DISK_FULL,	/* walsizer's request */
} WalsizerCause;
#define WALSIZER_CAUSES				(WALSIZER_CAUSE_DISK_FULL + 1)

#define WALSIZER_TIMER_SLACK		2000	/* ms: both ends count whole seconds */
#define WALSIZER_NOTHING_WRITTEN	65536	/* bytes: an idle server logs less */

/* The server's settings that decide when a checkpoint starts. */
typedef struct WalsizerSettings
{
	int64_t		segment_bytes;	/* a power of two, 1MB .. 1GB */
	int64_t		max_wal_size_mb;	/* in effect */
	double		completion_target;	/* 0 .. 1 */
	int64_t		timeout_ms;		/* checkpoint_timeout */
} WalsizerSettings;

/* Whose value is in effect.  Sizes: 0 means none. */
typedef struct WalsizerOwner
{
	int64_t		original_mb;	/* in effect before our first change */
	bool		original_by_alter_system;	/* in postgresql.auto.conf */
	int64_t		own_mb;			/* the value we wrote and saw in effect */
} WalsizerOwner;

/* What we did to max_wal_size in postgresql.auto.conf. */
typedef enum WalsizerNoteKind
{
	WALSIZER_NO_NOTE = 0,
	WALSIZER_NOTE_WRITTEN,		/* our value replaced the original one */
	WALSIZER_NOTE_RESTORED,		/* the original value is back */
	WALSIZER_NOTE_NO_ROOM,		/* the same, as the disk had no room for ours at a start */
} WalsizerNoteKind;

/*
 * The note in postgresql.auto.conf, written together with the line that it is
 * about.  It is the only proof of ownership: memory may be lost or outdated.
 */
typedef struct WalsizerNote
{
	WalsizerNoteKind kind;
	int64_t		written_mb;		/* our value, now or before */
	int64_t		original_mb;
	bool		original_by_alter_system;	/* it is, or was, a line there */
} WalsizerNote;

#define WALSIZER_RECOVERIES		4	/* that are remembered */

/* A crash recovery, as measured; replay_ms 0: there was none. */
typedef struct WalsizerRecovery
{
	int64_t		bytes;			/* of WAL replayed */
	int64_t		replay_ms;
	int64_t		bytes_read;		/* from storage, because they were not cached */
	int64_t		pages_used;		/* by the records: about one each */
	int64_t		pages_written;	/* after replay */
	int64_t		writing_ms;		/* until connections were accepted */
} WalsizerRecovery;

/* What the server counted of the WAL that it wrote. */
typedef struct WalsizerWal
{
	int64_t		bytes;
	int64_t		records;
	int64_t		images;			/* of pages */
	int64_t		written;		/* pages, by any process, meanwhile */
	int64_t		image_bytes;	/* 0: not counted */
} WalsizerWal;

/* walsizer's own settings, each within the range below. */
typedef struct WalsizerConfig
{
	bool		enable;
	bool		predict;
	bool		prevent_disk_full;	/* may request checkpoints; false in a dry run */
	int64_t		max_mb;
	int64_t		min_mb;			/* 0: the original value */
	int			threshold;		/* forced checkpoints per timeout */
	double		headroom;		/* factor on measured demand */
	int64_t		sample_interval_ms;
	int64_t		lookback_hours;
	int			max_disk_percent;
	int64_t		max_recovery_ms;	/* 0: no limit */
	double		replay_rate;	/* bytes per second; 0: as measured */
	WalsizerRecovery recoveries[WALSIZER_RECOVERIES];	/* newest first */
} WalsizerConfig;

/* The settings' defaults, and the least and the most of each. */
static const WalsizerConfig walsizer_default = {
	.enable = true, .predict = true, .prevent_disk_full = true, .max_mb = 16 * 1024, .min_mb = 0,
	.threshold = 1, .headroom = 1.2, .sample_interval_ms = 1000, .lookback_hours = 7 * 24,
	.max_disk_percent = 50, .max_recovery_ms = 0, .replay_rate = 0,
};
static const WalsizerConfig walsizer_least = {
	.max_mb = 2, .min_mb = 0, .threshold = 1, .headroom = 1.0, .sample_interval_ms = 100,
	.lookback_hours = 1, .max_disk_percent = 1, .max_recovery_ms = 0, .replay_rate = 0,
};
static const WalsizerConfig walsizer_most = {
	.max_mb = WALSIZER_MOST_MB, .min_mb = WALSIZER_MOST_MB, .threshold = 1000,
	.headroom = 4.0, .sample_interval_ms = 60 * 1000,
	.lookback_hours = WALSIZER_PEAK_SLOTS - 2, .max_disk_percent = 100,
	.max_recovery_ms = 24 * 60 * 60 * 1000, .replay_rate = 1024.0 * 1024 * WALSIZER_MB,
};

/* One observation of the server. */
typedef struct WalsizerSample
{
	int64_t		now;
	int64_t		hour;			/* system clock, hours since 1970 */
	uint64_t	write_lsn;		/* WAL written (standby: replayed) */
	int64_t		padding;		/* of that since the sample before, by switches of segments */
	uint64_t	redo_lsn;		/* of the last checkpoint that was started */
	uint64_t	completed_lsn;	/* of the last checkpoint completed */
	uint64_t	needed_lsn;		/* older WAL is held back by something else */
	bool		checkpoint_running; /* redo_lsn and completed_lsn differ */
	int64_t		checkpoint_age; /* since the checkpoint timer was set; -1: not known */
	int64_t		requested;		/* the server's counters */
	int64_t		timed;
	bool		counters_reset; /* since the sample before */
	WalsizerWal wal;			/* since its own last reset */
	int64_t		buffers;		/* pages in shared_buffers */
	bool		standby;
	bool		in_auto_conf;	/* the value is in postgresql.auto.conf */
	WalsizerNote note;			/* as last reloaded, if the file bears it out */
	int64_t		configured_mb;	/* value of the other files; 0: not known */
	int64_t		boost_mb;		/* of a planned load in progress; 0: none */
	bool		act_now;		/* apply all rules now, on request */
	bool		revert;			/* restore the original value, on request */
	bool		disk_tried;		/* reading the disk was tried */
	int64_t		look_ms;		/* that took so long */
	bool		disk_read;		/* successfully: the next six are filled */
	int64_t		disk_free;		/* bytes available to the server */
	int64_t		disk_wal;		/* bytes of pg_wal that max_wal_size covers */
	int64_t		disk_held;		/* bytes of pg_wal held back (slots, ...) */
	int64_t		disk_ahead;		/* bytes of disk_wal for WAL still to be written */
	int64_t		disk_removable; /* of pg_wal, that a checkpoint now would remove or recycle */
	bool		disk_alone;		/* nothing else is on the file system */
	uint64_t	primary_redo;	/* standby: of the last restartpoint */
	int64_t		primary_time;	/* its time, s of the primary; 0: none */
	uint64_t	primary_lsn;	/* position of the primary; 0: not known */
	WalsizerSettings settings;
} WalsizerSample;

/* The figures behind a decision, for messages and views. */
typedef struct WalsizerFigures
{
	int64_t		in_effect_mb;
	int64_t		wanted_mb;		/* what demand needs, with headroom */
	int64_t		limits_mb[WALSIZER_LIMITS];	/* 0: none set, or not known */
	int64_t		limit_mb;		/* the smallest limit */
	WalsizerLimit limit_kind;	/* which one that is */
	int64_t		step_limit_mb;	/* largest that one raise may reach now */
	int64_t		demand;			/* in the window */
	int			padding_percent;	/* of the window's WAL, by switches of segments */
	int64_t		learned;		/* largest remembered demand */
	bool		inflated;		/* the larger of both, by checkpoints that were not timed */
	int64_t		rate;			/* recent WAL, bytes per second */
	int64_t		used;			/* WAL since the start of redo's segment */
	int64_t		trigger_point;	/* WAL at which a checkpoint is forced */
	int64_t		projected;		/* WAL expected up to the timed checkpoint */
	int64_t		until_timed_ms;
	int64_t		until_forced_ms;	/* at the recent rate; -1: never */
	int64_t		forced;			/* forced checkpoints in the window */
	int64_t		forced_old_value;	/* those of them at a previous value */
	int64_t		requested;		/* the server's counters in the window */
	int64_t		timed;
	bool		checkpoints_fail;	/* none has completed for two timeouts */
} WalsizerFigures;

typedef struct WalsizerDecision
{
	WalsizerAction action;
	WalsizerReason reason;
	WalsizerLimit limited_by;	/* the one that made target_mb < wanted_mb */
	bool		limited;		/* so far that no raise was worth it */
	bool		cycle;			/* this step ended a cycle */
	int64_t		target_mb;		/* to set; EXTERNAL: the new value */
	int64_t		wanted_mb;		/* before the limits */
	WalsizerFigures figures;
} WalsizerDecision;

/* State: plain data; zero means unprimed.  Each struct belongs to one file. */

/*
 * policy/demand.c: the largest demand of one hour.  Each checkpoint repeats full-page images:
 * where several were forced within one timeout, the load writes less without them.
 */
typedef struct WalsizerPeak
{
	int64_t		hour;			/* hours since 1970, 0: free */
	int64_t		demand;
	int64_t		timeout_ms;		/* it was measured with */
	int64_t		inflated_at;	/* the trigger point of several forced
								 * checkpoints in its window; 0: none */
} WalsizerPeak;

/* One step of the window; totals since the server started. */
typedef struct WalsizerMark
{
	int64_t		ms;
	uint64_t	lsn;
	int64_t		padding;
	WalsizerPeak peak;			/* largest demand since the mark before */
	int64_t		forced;			/* at previous values, too */
	int64_t		forced_old_value;
	int64_t		requested;
	int64_t		timed;
} WalsizerMark;

/* The window: a ring, oldest mark at first. */
typedef struct WalsizerWindow
{
	WalsizerMark marks[WALSIZER_WINDOW_SLOTS];
	int			first;
	int			number;
	WalsizerPeak step;			/* largest demand since the last mark */
	uint64_t	lsn;			/* where it ends */
	int64_t		padding;		/* of all WAL since the window began */
} WalsizerWindow;

/* Hourly peaks (slot: hour % slots), and the largest, cached for hour. */
typedef struct WalsizerLearned
{
	WalsizerPeak peaks[WALSIZER_PEAK_SLOTS];
	WalsizerPeak largest;
	int64_t		hour;
	int64_t		lookback_hours;
} WalsizerLearned;

/* The last samples, a ring: the oldest is at next. */
typedef struct WalsizerRate
{
	int64_t		ms[WALSIZER_RATE_SLOTS];
	uint64_t	lsn[WALSIZER_RATE_SLOTS];	/* without padding */
	int			next;
} WalsizerRate;

/* The primary's checkpoint from which its demand is counted. */
typedef struct WalsizerPrimary
{
	uint64_t	redo;
	int64_t		time;			/* s of the primary's clock, 0: none */
	int64_t		demand;			/* of the primary */
	int64_t		measured_at;	/* when it was */
	int64_t		inflated_at;	/* see WalsizerPeak */
	int			checkpoints;	/* that were seen since that one */
} WalsizerPrimary;

#define WALSIZER_OLD_VALUES			8

/* Trigger points that statements may still use, the newest first. */
typedef struct WalsizerOldValues
{
	int64_t		points[WALSIZER_OLD_VALUES];	/* 0: none */
	int64_t		seen;			/* the last sign of one, or when it was replaced */
	int64_t		asked_at;		/* the one at which the checkpoint being written began; 0: none */
	bool		counted;		/* that checkpoint is in the totals */
} WalsizerOldValues;

/* policy/observe.c: the checkpoint timer, and totals since the server started */
typedef struct WalsizerCheckpoints
{
	int64_t		timer_start;	/* when it was last reset, as far as known */
	int64_t		redo_moved;		/* when the redo pointer last moved */
	WalsizerOldValues old;
	int64_t		total[WALSIZER_CAUSES];
	int64_t		forced_before;	/* forced of these before the value last changed */
	int64_t		padding_at_redo;	/* window.padding when redo_moved */
	int64_t		forced_at;		/* trigger point of the last of them */
	int64_t		completed_at;	/* when one last completed */
	int64_t		failures;		/* since then */
	int64_t		requested;
	int64_t		timed;
} WalsizerCheckpoints;

/* policy/recovery.c: what WAL consists of */
typedef struct WalsizerWalContents
{
	WalsizerWal at_redo;		/* counted when the redo pointer moved */
	WalsizerWal interval;		/* that stands for a full one; 0: not known */
	WalsizerWal last;			/* interval of any kind */
	bool		few_pages;		/* are changed by the WAL of that one */
} WalsizerWalContents;

/* What was said when checkpoint_timeout was changed, to be compared with what came. */
typedef struct WalsizerSaid
{
	int64_t		before_ms;		/* the timeout before; 0: nothing was said */
	double		least;			/* part of the WAL that would be saved */
	double		most;
	double		record_bytes;	/* WAL for each record, before */
} WalsizerSaid;

#define WALSIZER_CURVE_STEPS		30
#define WALSIZER_CURVE_INTERVALS	12

/* policy/whatif.c: images within a time after a checkpoint; of timed intervals only */
typedef struct WalsizerCurve
{
	WalsizerWal begin;			/* counted when this interval began */
	WalsizerWal step_begin;		/* counted at the last step of it */
	double		images[WALSIZER_CURVE_STEPS];	/* of this interval up to each step */
	double		sums[5];		/* over these steps, of rr, ri, ii, rb, ib: records,
								 * images, bytes */
	int			steps;			/* that are filled */
	bool		whole;			/* seen from its beginning */
	int64_t		intervals;		/* with this timeout; the next are their means */
	double		mean[WALSIZER_CURVE_STEPS];
	double		mean_sums[5];
	double		bytes;
	double		records;
	double		image_bytes;
	double		totals[WALSIZER_CURVE_INTERVALS];	/* images of the last ones */
	WalsizerSaid said;
} WalsizerCurve;

/* The planned load */
typedef struct WalsizerBoost
{
	int64_t		size_mb;		/* of the load in progress; 0: none */
	int64_t		return_mb;		/* in effect before it; 0: none */
	int64_t		planned_until;	/* until then the window has its WAL */
} WalsizerBoost;

/* policy/limits.c: the last disk figures read */
typedef struct WalsizerDisk
{
	bool		known;
	int64_t		free;
	int64_t		wal;			/* bytes of WAL that max_wal_size covers */
	int64_t		held;			/* bytes of WAL held back */
	bool		alone;
	int64_t		others_rate;	/* by others, bytes per second, between the last two readings */
	int64_t		looked_at;		/* when it was read */
	uint64_t	looked_lsn;
	int64_t		look_ms;		/* that took so long */
	int			failures;		/* to read it since, or ever */
} WalsizerDisk;

/* policy/lastresort.c: checkpoints that walsizer requests */
typedef struct WalsizerLastResort
{
	int64_t		space;			/* for new WAL when the disk was last read; -1: never */
	int64_t		space_at;		/* when that was */
	int64_t		loss;			/* of it, bytes per second, between the last two readings */
	int64_t		peak_rate;		/* largest rate of WAL lately; what was seen fades */
	int64_t		room;			/* space in whole segments */
	int64_t		until_full_ms;	/* it lasts so long at the recent rates */
	bool		fills;			/* too short for the server's own next checkpoint, and
								 * soon for one that is requested */
	int64_t		removable;		/* disk_removable of the last reading */
	int64_t		kept;			/* WAL that a checkpoint would keep, if that is most; else 0 */
	uint64_t	asked_lsn;		/* position of a request that has not helped yet; 0: none */
	uint64_t	asked_completed;	/* completed_lsn then */
	int64_t		asked_at;		/* the last request; 0: none */
	int64_t		asked_removable;	/* removable then */
	int64_t		took_ms;		/* until that checkpoint was complete */
	bool		complete;		/* it is */
} WalsizerLastResort;

/* policy/step.c: the cycle, one timeout */
typedef struct WalsizerCycle
{
	int64_t		start;
	bool		over;			/* the next window begins another */
	int64_t		demand;			/* largest in it, planned loads excluded */
	int64_t		forced;			/* most in one window, at the value in effect */
	int64_t		old_value;		/* in all of it, by statements at an old value */
} WalsizerCycle;

/* What must not be repeated, or must wait. */
typedef struct WalsizerPacing
{
	int64_t		tried_mb;		/* decided last, not in effect yet */
	int64_t		tried_at;
	int64_t		edit_tried_mb;	/* edit for which we tried to give way */
	int64_t		edit_tried_at;
	int64_t		changed_at;		/* when the last change took effect */
	int64_t		leave_alone_until;	/* an administrator changed the value */
	int64_t		raise_not_before;	/* a measured limit was low */
	int64_t		hold_ms;		/* so long the last time */
	int			max_disk_percent;	/* these settings at that time */
	int64_t		max_recovery_ms;
	double		replay_rate;
	int64_t		kept_since;		/* the last raise, or start: demand does not lower */
	int64_t		keep_ms;		/* for so long, or the lookback if that is shorter */
	int64_t		lowered_at;		/* 0: not yet */
	bool		lower_due;		/* a cycle found a lowering justified */
} WalsizerPacing;

/* The state file keeps owner, boost.return_mb, learned.peaks and wal_contents.interval. */
typedef struct WalsizerState
{
	bool		primed;			/* last is filled */
	WalsizerSample last;		/* in walsizer_observe() the one before, then this one */
	WalsizerOwner owner;
	WalsizerBoost boost;
	WalsizerLearned learned;
	WalsizerWindow window;
	WalsizerRate rate;
	WalsizerPrimary primary;
	WalsizerCheckpoints checkpoints;
	WalsizerWalContents wal_contents;
	WalsizerCurve curve;
	WalsizerDisk disk;
	WalsizerLastResort last_resort;
	WalsizerCycle cycle;
	WalsizerPacing pacing;
} WalsizerState;

/* Forced checkpoints since the server started, at previous values, too. */
static inline int64_t
walsizer_forced_total(const WalsizerState *state)
{
	return state->checkpoints.total[WALSIZER_CAUSE_FORCED] +
		state->checkpoints.total[WALSIZER_CAUSE_OLD_VALUE];
}

/* What holds WAL back. */
typedef enum WalsizerHolder
{
	WALSIZER_HELD_BY_UNKNOWN = 0,
	WALSIZER_HELD_BY_SLOT,
	WALSIZER_HELD_BY_SETTING,	/* wal_keep_size */
	WALSIZER_HELD_BY_ARCHIVER,	/* it fails */
} WalsizerHolder;

/* What a verdict depends on. */
typedef struct WalsizerSituation
{
	const WalsizerConfig *config;
	const WalsizerState *state; /* after the decision */
	const WalsizerDecision *decision;	/* zero: none yet */
	bool		running;		/* there is a worker, or a client */
	bool		client;			/* that only advises */
	bool		early;			/* to say that the value suffices */
	bool		dry_run;
	bool		taken_back;		/* one raise after the other */
	WalsizerOutcome outcome;	/* of an attempt that failed, or would fail now */
	WalsizerHolder held_by;
	const char *message;		/* why it fails; not NULL, as the next */
	const char *holder;			/* name of the slot, or when archiving last failed */
} WalsizerSituation;

/* Constant texts; the first two sentences are for walsizer_verdict_text(). */
typedef struct WalsizerFinding
{
	const char *code;			/* for monitoring, never changes */
	const char *text;			/* what is true */
	const char *remedy;			/* what helps */
	int			notice;			/* its number among those worth a line in the log; 0: none */
} WalsizerFinding;

#define WALSIZER_NOTICE_DISK_FULL	(9 + WALSIZER_LIMITS)
#define WALSIZER_NOTICES			(WALSIZER_NOTICE_DISK_FULL + 1)	/* more than the largest number */
#define WALSIZER_VERDICT_NUMBERS	8
#define WALSIZER_SENTENCE_SIZE		512 /* with terminating zero */

typedef struct WalsizerVerdict
{
	const char *state;			/* what walsizer does */
	WalsizerLimit limited_by;
	WalsizerFinding found;
	int64_t		numbers[WALSIZER_VERDICT_NUMBERS];	/* in its sentences */
	const char *texts[5];
} WalsizerVerdict;

/* What another value of max_wal_size would mean. */
typedef struct WalsizerWhatIf
{
	int64_t		size_mb;		/* the candidate */
	int64_t		trigger_point;
	int64_t		every_now_ms;	/* between checkpoints, at demand */
	int64_t		every_at_peak_ms;	/* and at the largest known demand */
	double		forced_fraction;	/* of the remembered hours */
	int64_t		recovery_ms;	/* at worst */
	WalsizerLimit limited_by;
} WalsizerWhatIf;

#define WALSIZER_CANDIDATES		9	/* most of walsizer_candidates() */

/* What another checkpoint_timeout would mean. */
typedef struct WalsizerTimeoutAdvice
{
	const char *basis;			/* a constant text */
	bool		known;			/* or the rest is 0 */
	double		saved_least;	/* part of the WAL that would be saved; negative: more */
	double		saved_most;
	int64_t		needed_mb;		/* with headroom, for the least */
	int64_t		recovery_ms;	/* at worst, with that size */
	WalsizerLimit limited_by;
} WalsizerTimeoutAdvice;

#define WALSIZER_TIMEOUTS		5	/* most of walsizer_timeouts() */

/* policy/arithmetic.c */
extern int64_t walsizer_checkpoint_segments(int64_t max_wal_size_mb, const WalsizerSettings *settings);
extern int64_t walsizer_trigger_point(int64_t max_wal_size_mb, const WalsizerSettings *settings);
extern int64_t walsizer_size_for(int64_t wal_bytes, const WalsizerSettings *settings);
extern int64_t walsizer_size_with_headroom(const WalsizerConfig *config,
										   const WalsizerSettings *settings, int64_t wal_bytes);
extern bool walsizer_is_news(int64_t mb, int64_t *said_mb);

/* policy/step.c */
extern WalsizerDecision walsizer_step(const WalsizerConfig *config, WalsizerState *state,
									  const WalsizerSample *sample);

/* policy/limits.c */
extern bool walsizer_look_is_due(const WalsizerConfig *config, const WalsizerState *state,
								 const WalsizerSample *sample);

/* policy/demand.c */
extern WalsizerPeak walsizer_largest_peak(const WalsizerState *state, int64_t hour, int64_t lookback);
extern const WalsizerPeak *walsizer_peak_of(const WalsizerState *state, int64_t hour);
extern void walsizer_remember(WalsizerState *state, const WalsizerPeak *peak);
extern void walsizer_remember_window(WalsizerState *state);
extern void walsizer_forget(WalsizerState *state);

/* policy/recovery.c */
extern int64_t walsizer_recovery_time(const WalsizerConfig *config, const WalsizerState *state,
									  const WalsizerSample *sample, int64_t mb);
extern int64_t walsizer_recovery_time_now(const WalsizerConfig *config, const WalsizerState *state,
										  const WalsizerSample *sample);

/* policy/whatif.c */
extern WalsizerWhatIf walsizer_what_if(const WalsizerConfig *config, const WalsizerState *state,
									   const WalsizerSample *sample,
									   const WalsizerFigures *figures, int64_t mb);
extern int	walsizer_candidates(const WalsizerSettings *settings, int64_t wanted_mb, int64_t *sizes);
extern WalsizerTimeoutAdvice walsizer_advise_timeout(const WalsizerConfig *config,
													 const WalsizerState *state,
													 const WalsizerSample *sample,
													 const WalsizerFigures *figures,
													 int64_t timeout_ms);
extern bool walsizer_timeout_saved(const WalsizerState *state, double *saved);
extern int	walsizer_timeouts(const WalsizerSettings *settings, int64_t *timeouts);

/* policy/verdict.c */
extern WalsizerVerdict walsizer_judge(const WalsizerSituation *situation);
extern void walsizer_verdict_text(const WalsizerVerdict *verdict, const char *sentence, char *text);

/* policy/owner.c: what became of a decision */
extern void walsizer_took_effect(WalsizerState *state, int64_t now, int64_t in_effect_mb);
extern void walsizer_original_is_back(WalsizerState *state, int64_t in_effect_mb);

/* policy/names.c */
extern const char *walsizer_action_name(unsigned int action);
extern const char *walsizer_reason_code(unsigned int reason);
extern const char *walsizer_reason_text(unsigned int reason);
extern const char *walsizer_limit_name(unsigned int limit);
extern const char *walsizer_outcome_name(unsigned int outcome);

typedef struct WalsizerInstruction
{
	const char *place;
	const char *text;
} WalsizerInstruction;

extern const WalsizerInstruction walsizer_instructions[];	/* up to a NULL */

#endif							/* WALSIZER_POLICY_H */
