/*-------------------------------------------------------------------------
 *
 * policy/policy.h
 *	  The decision: what max_wal_size should be, and why.
 *
 * Nothing in this room knows the server.  Everything that the decision depends
 * on is an argument, so that the worker, the SQL functions, the unit tests, the
 * fuzzers and the simulator all run the same code.
 *
 * Units, unless a name says otherwise: WAL is counted in bytes, rates are bytes
 * per second, times are milliseconds of a monotonic clock, and an LSN is a byte
 * position.  Names that end in _mb are values of max_wal_size, in megabytes as in
 * the server.
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

/* The window is cut into this many steps. */
#define WALSIZER_WINDOW_STEPS		120
#define WALSIZER_WINDOW_SLOTS		(WALSIZER_WINDOW_STEPS + 4)

/* Samples kept for the recent rate of WAL. */
#define WALSIZER_RATE_SLOTS			6

/* So many timed intervals in a row must agree that WAL hurried them. */
#define WALSIZER_PACE_SLOTS			3

/* Changes whose first checkpoint_timeout may run at the same time. */
#define WALSIZER_CHANGE_SLOTS		8

/* One slot an hour for the longest walsizer.lookback, 31 days, and the hour
 * that has just begun. */
#define WALSIZER_PEAK_SLOTS			(31 * 24 + 1)

/*
 * The values of these four stand in state files: add new ones at the end, and
 * their names in policy/names.c.
 */
typedef enum WalsizerAction
{
	WALSIZER_NONE = 0,
	WALSIZER_RAISE,
	WALSIZER_LOWER,
	WALSIZER_EXTERNAL,			/* an administrator changed the setting */
	WALSIZER_REVERT,			/* our value gives way to the original one */
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
	WALSIZER_BECAUSE_HURRIED,
	WALSIZER_BECAUSE_REVERT,
	WALSIZER_BECAUSE_EDITED,
	WALSIZER_BECAUSE_BOOST,
	WALSIZER_BECAUSE_BOOST_OVER,
	WALSIZER_BECAUSE_LATE,
} WalsizerReason;
#define WALSIZER_LAST_REASON		WALSIZER_BECAUSE_LATE

typedef enum WalsizerLimit
{
	WALSIZER_UNLIMITED = 0,
	WALSIZER_LIMIT_MAX,			/* walsizer.max */
	WALSIZER_LIMIT_DISK,		/* walsizer.max_disk_percent */
	WALSIZER_LIMIT_RECOVERY,	/* walsizer.max_recovery_time */
} WalsizerLimit;
#define WALSIZER_LIMITS				4

/* What came of a decision. */
typedef enum WalsizerOutcome
{
	WALSIZER_NO_OUTCOME = 0,	/* nothing was to be applied */
	WALSIZER_APPLIED,
	WALSIZER_DRY_RUN,			/* walsizer.dry_run = on */
	WALSIZER_FORBIDDEN,			/* not tried: not allowed to write */
	WALSIZER_OVERRIDDEN,		/* something outranks our value */
	WALSIZER_REFUSED,			/* written; the reload was refused, or is late */
	WALSIZER_FAILED,			/* writing failed */
} WalsizerOutcome;
#define WALSIZER_LAST_OUTCOME		WALSIZER_FAILED

/* What made the redo pointer move, judged by the distance it moved. */
typedef enum WalsizerCause
{
	WALSIZER_CAUSE_FORCED = 0,	/* WAL volume, at the trigger point in effect */
	WALSIZER_CAUSE_OLD_VALUE,	/* WAL volume, at one replaced since */
	WALSIZER_CAUSE_TIMED,		/* checkpoint_timeout */
	WALSIZER_CAUSE_OTHER,		/* CHECKPOINT, backup, DDL, ... */
} WalsizerCause;
#define WALSIZER_CAUSES				4

/* The server's settings that decide when a checkpoint starts. */
typedef struct WalsizerSettings
{
	int64_t		segment_bytes;	/* a power of two, 1MB .. 1GB */
	int64_t		max_wal_size_mb;	/* as in effect */
	double		completion_target;	/* 0 .. 1 */
	int64_t		timeout_ms;		/* checkpoint_timeout */
} WalsizerSettings;

/* Whose value is it?  Sizes in MB, 0: none. */
typedef struct WalsizerOwner
{
	int64_t		original_mb;	/* the value that was here before us */
	bool		original_by_alter_system;	/* it stood in postgresql.auto.conf */
	int64_t		own_mb;			/* the value we wrote and saw in effect */
	int64_t		configured_mb;	/* what the other files said when original_mb
								 * was adopted; -1: not known */
	int64_t		returning_mb;	/* our line is going, and this takes effect
								 * with the next reload */
} WalsizerOwner;

/*
 * What stands beside a value of ours, in the same file and written with it: whose
 * the value is.
 */
typedef struct WalsizerNote
{
	int64_t		written_mb;		/* 0: there is no note */
	int64_t		original_mb;	/* what it replaced */
	bool		original_by_alter_system;
} WalsizerNote;

/* walsizer's own settings, by value, each within its range (see walsizer.c). */
typedef struct WalsizerConfig
{
	bool		enable;
	bool		predict;
	int64_t		max_mb;
	int64_t		min_mb;			/* 0: the original value */
	int			threshold;		/* forced checkpoints per timeout */
	double		headroom;		/* factor on measured demand */
	int64_t		sample_interval_ms;
	int64_t		lookback_hours;
	int			max_disk_percent;
	int64_t		max_recovery_ms;	/* 0: no limit */
	double		replay_rate;	/* at least 1 */
} WalsizerConfig;

/* One observation of the server. */
typedef struct WalsizerSample
{
	int64_t		now;
	int64_t		hour;			/* wall clock, hours since 1970 */
	uint64_t	write_lsn;		/* WAL written (standby: replayed) */
	uint64_t	redo_lsn;		/* redo pointer of the last started checkpoint */
	uint64_t	completed_lsn;	/* redo pointer of the last completed one */
	uint64_t	needed_lsn;		/* what is older is held back */
	bool		checkpoint_running; /* the two differ */
	int64_t		checkpoint_age; /* since the timer for checkpoints was set; -1:
								 * not known */
	int64_t		requested;		/* the server's counters */
	int64_t		timed;
	bool		counters_reset; /* since the sample before */
	bool		standby;
	bool		alter_system;	/* the value stands in postgresql.auto.conf */
	WalsizerNote note;			/* that speaks of the value in effect */
	int64_t		configured_mb;	/* in effect if it did not; -1: not known */
	int64_t		boost_mb;		/* for a planned load under way; 0: none */
	bool		adjust;			/* run the cycle's rules now */
	bool		looked;			/* the disk was looked at for this sample */
	bool		has_disk;		/* successfully: the next four are filled */
	int64_t		disk_free;		/* bytes available to the server */
	int64_t		disk_wal;		/* bytes of pg_wal that max_wal_size covers */
	int64_t		disk_held;		/* and those that something else holds back */
	bool		disk_alone;		/* nothing else is on the volume */

	/*
	 * Standby: the checkpoint of the primary that the last restartpoint used,
	 * and when it began, in seconds of the primary's clock; 0: none.
	 */
	uint64_t	primary_redo;
	int64_t		primary_time;
	uint64_t	primary_lsn;	/* how far the primary has written; 0: not known */
	WalsizerSettings settings;
} WalsizerSample;

/* The numbers behind a decision, for messages and views. */
typedef struct WalsizerFigures
{
	int64_t		in_effect_mb;
	int64_t		wanted_mb;		/* size that demand and memory ask for */
	int64_t		limit_mb;		/* the smallest limit */
	WalsizerLimit limit_kind;	/* and which one that is */
	int64_t		disk_limit_mb;	/* 0: not known */
	int64_t		step_limit_mb;	/* the largest size that one raise may claim of
								 * the disk now */
	int64_t		recovery_limit_mb;	/* 0: none set */
	int64_t		demand;			/* W */
	int64_t		window_ms;		/* time that W really covers */
	int64_t		learned;		/* largest remembered W */
	int64_t		rate;			/* recent WAL, bytes per second */
	int64_t		used;			/* WAL since the redo pointer's segment began */
	int64_t		trigger_point;	/* WAL at which a checkpoint is forced */
	int64_t		pace;			/* trigger point at which time paces
								 * checkpoints, 0: not known, or nothing to be
								 * gained */
	int64_t		projected;		/* WAL expected up to the timed checkpoint */
	int64_t		until_timed_ms;
	int64_t		until_forced_ms;	/* at the recent rate, -1: not before */
	int64_t		forced;			/* forced checkpoints in the window */
	int64_t		forced_old_value;	/* those of them that no raise could
									 * prevent */
	int64_t		requested;		/* the server's counters in the window */
	int64_t		timed;
} WalsizerFigures;

typedef struct WalsizerDecision
{
	/*
	 * Nothing is decided yet.  Look at the disk, enter what it shows into the
	 * same sample, and call again.
	 */
	bool		wants_disk;

	WalsizerAction action;
	WalsizerReason reason;
	WalsizerLimit limited_by;	/* the one that made target_mb < wanted_mb */
	bool		limited;		/* and so far that nothing was worth doing, for
								 * whatever reason it was wanted */
	bool		cycle;			/* this step ended a cycle */
	int64_t		target_mb;		/* to set (external: the value met) */
	int64_t		wanted_mb;		/* before the limits */

	/*
	 * One whole timeout has passed since a change took effect: how many
	 * checkpoints WAL forced in it, at whatever trigger point.  Each change is
	 * reported once, in order, with the size it brought; one that is too many
	 * at a time, or that a restart cuts off, never.
	 */
	bool		followed;
	int64_t		followed_mb;
	int64_t		followed_forced;

	WalsizerFigures figures;
} WalsizerDecision;

/*-------------------------------------------------------------------------
 * State: what is remembered from one step to the next.  Plain data; all zeroes
 * mean that nothing was observed.  Each struct belongs to one file.
 *-------------------------------------------------------------------------
 */

/* policy/demand.c: one step of the window; totals since the server started. */
typedef struct WalsizerMark
{
	int64_t		ms;
	uint64_t	lsn;
	int64_t		demand;			/* largest W since the mark before */
	int64_t		timeout_ms;		/* and the timeout it was measured with */
	int64_t		hour;
	int64_t		forced;			/* forced checkpoints, old values included */
	int64_t		forced_old_value;
	int64_t		requested;
	int64_t		timed;
} WalsizerMark;

/* The window, a ring with the oldest first. */
typedef struct WalsizerWindow
{
	WalsizerMark marks[WALSIZER_WINDOW_SLOTS];
	int			first;
	int			number;
	int64_t		step_demand;	/* largest W since the last mark */
	uint64_t	lsn;			/* where it ends */
} WalsizerWindow;

/* The largest W of one hour, and the timeout it was measured with. */
typedef struct WalsizerPeak
{
	int64_t		hour;			/* hours since 1970, 0: free */
	int64_t		demand;
	int64_t		timeout_ms;
} WalsizerPeak;

/* Memory of peaks (slot: hour % slots), and their maximum while it holds. */
typedef struct WalsizerLearned
{
	WalsizerPeak peaks[WALSIZER_PEAK_SLOTS];
	int64_t		demand;
	int64_t		hour;
	int64_t		lookback_hours;
} WalsizerLearned;

/* The last samples, a ring. */
typedef struct WalsizerRate
{
	int64_t		ms[WALSIZER_RATE_SLOTS];
	uint64_t	lsn[WALSIZER_RATE_SLOTS];
	int			next;
	int			number;
} WalsizerRate;

/* The checkpoint of a standby's primary from which its W is counted. */
typedef struct WalsizerPrimary
{
	uint64_t	redo;
	int64_t		time;			/* s of the primary's clock, 0: none */
	int64_t		demand;			/* W of the primary */
} WalsizerPrimary;

/* policy/observe.c: the sample before */
typedef struct WalsizerLast
{
	int64_t		ms;
	int64_t		hour;
	uint64_t	lsn;
	uint64_t	redo;
	int64_t		requested;
	int64_t		timed;
	bool		standby;
	WalsizerSettings settings;
} WalsizerLast;

/* The timer for checkpoints, and totals since the server started. */
typedef struct WalsizerCheckpoints
{
	int64_t		timer_start;	/* when it was last reset, as far as seen */
	int64_t		redo_moved;		/* when the redo pointer last moved */
	int64_t		old_trigger_point;	/* a statement may still use this one, 0: no */
	int			quiet_intervals;	/* whole ones without a sign of it */
	int64_t		total[WALSIZER_CAUSES];
	int64_t		requested;
	int64_t		timed;
} WalsizerCheckpoints;

/*
 * What it takes that time and not WAL paces a timed checkpoint: of the interval
 * that runs, and of the last timed ones (a ring).
 */
typedef struct WalsizerPace
{
	int64_t		running;
	int64_t		last[WALSIZER_PACE_SLOTS];
	int			next;
} WalsizerPace;

/* A change of max_wal_size that took effect, ours or not. */
typedef struct WalsizerChange
{
	int64_t		ms;
	int64_t		size_mb;
	int64_t		forced;			/* forced checkpoints up to then */
} WalsizerChange;

typedef struct WalsizerChanges
{
	WalsizerChange list[WALSIZER_CHANGE_SLOTS]; /* oldest first */
	int			number;
} WalsizerChanges;

/* policy/boost.c: the planned load */
typedef struct WalsizerBoost
{
	int64_t		size_mb;		/* for the one under way; 0: none */
	int64_t		return_mb;		/* in effect before it; 0: none */
	int64_t		planned_until;	/* so long W contains its WAL */
} WalsizerBoost;

/* policy/limits.c: the last disk figures read, for steps that read none */
typedef struct WalsizerDisk
{
	bool		known;
	int64_t		free;
	int64_t		wal;			/* bytes of WAL that max_wal_size covers */
	int64_t		held;			/* bytes of WAL that are not ours to free */
	bool		alone;
	int64_t		taken[2];		/* bytes per second that others took between
								 * the last two looks, and the two before */
	bool		looked;			/* at the disk, and when: */
	int64_t		looked_at;
	uint64_t	looked_lsn;
} WalsizerDisk;

/* policy/step.c: the cycle, one timeout */
typedef struct WalsizerCycle
{
	int64_t		start;
	bool		over;			/* the last sample ended one */
	int64_t		demand;			/* largest W in it, but for planned loads */
	int64_t		forced;			/* most checkpoints forced in one such window */
} WalsizerCycle;

/* What is not to be done again, or not yet. */
typedef struct WalsizerPacing
{
	int64_t		tried_mb;		/* value decided last and not in effect */
	int64_t		tried_at;
	int64_t		edit_tried_mb;	/* edit that we could not make way for */
	int64_t		edit_tried_at;
	int64_t		changed_at;		/* when the last change took effect */
	int64_t		leave_alone_until;	/* an administrator changed the value */
	int64_t		raise_not_before;	/* free space may be gone again until then */
	int64_t		keep_until;		/* our last raise is not taken back before */
	bool		lower_due;		/* a cycle found that demand allows a lowering */
} WalsizerPacing;

/* owner, boost.return_mb and learned.peaks outlive the server in the state file. */
typedef struct WalsizerState
{
	bool		primed;			/* there is a sample before */
	WalsizerLast last;
	WalsizerOwner owner;
	WalsizerBoost boost;
	WalsizerLearned learned;
	WalsizerWindow window;
	WalsizerRate rate;
	WalsizerPrimary primary;
	WalsizerCheckpoints checkpoints;
	WalsizerPace pace;
	WalsizerChanges changes;
	WalsizerDisk disk;
	WalsizerCycle cycle;
	WalsizerPacing pacing;

	/* taken in and not decided: the step wants the disk figures first */
	bool		pending;
	WalsizerDecision observed;
} WalsizerState;

/* What another value of max_wal_size would mean. */
typedef struct WalsizerWhatIf
{
	int64_t		size_mb;		/* the candidate */
	int64_t		trigger_point;
	int64_t		spacing_now_ms; /* between checkpoints, at the demand of now */
	int64_t		spacing_peak_ms;	/* and at the largest demand known */
	double		forced_fraction;	/* of the remembered hours */
	int64_t		recovery_ms;	/* at worst */
	WalsizerLimit limited_by;
} WalsizerWhatIf;

/* No more candidates than this are worth a look. */
#define WALSIZER_CANDIDATES		9

/* policy/arithmetic.c */
extern int64_t walsizer_checkpoint_segments(int64_t max_wal_size_mb,
											const WalsizerSettings *settings);
extern int64_t walsizer_trigger_point(int64_t max_wal_size_mb,
									  const WalsizerSettings *settings);
extern int64_t walsizer_size_for(int64_t wal_bytes, const WalsizerSettings *settings);
extern int64_t walsizer_roomy_size(const WalsizerConfig *config,
								   const WalsizerSettings *settings, int64_t wal_bytes);

/* policy/step.c */
extern WalsizerDecision walsizer_step(const WalsizerConfig *config, WalsizerState *state,
									  const WalsizerSample *sample);

/* policy/demand.c */
extern int64_t walsizer_learned_demand(const WalsizerState *state,
									   int64_t hour, int64_t lookback_hours);
extern const WalsizerPeak *walsizer_peak_of(const WalsizerState *state, int64_t hour);
extern void walsizer_remember(WalsizerState *state, int64_t hour,
							  int64_t demand, int64_t timeout_ms);
extern void walsizer_remember_window(WalsizerState *state);
extern void walsizer_forget(WalsizerState *state);

/* policy/limits.c, policy/whatif.c */
extern int64_t walsizer_recovery_time(const WalsizerConfig *config, int64_t mb);
extern WalsizerWhatIf walsizer_what_if(const WalsizerConfig *config,
									   const WalsizerState *state,
									   const WalsizerSample *sample,
									   const WalsizerFigures *figures, int64_t mb);
extern int	walsizer_candidates(const WalsizerSettings *settings, int64_t wanted_mb,
								int64_t *sizes);

/* policy/owner.c: what became of a decision */
extern void walsizer_took_effect(WalsizerState *state, int64_t now, int64_t in_effect_mb);
extern void walsizer_original_is_back(WalsizerState *state, int64_t in_effect_mb);

/* policy/names.c */
extern const char *walsizer_action_name(WalsizerAction action);
extern const char *walsizer_reason_code(WalsizerReason reason);
extern const char *walsizer_reason_text(WalsizerReason reason);
extern const char *walsizer_limit_name(WalsizerLimit limit);
extern const char *walsizer_outcome_name(WalsizerOutcome outcome);

#endif							/* WALSIZER_POLICY_H */
