/*-------------------------------------------------------------------------
 *
 * policy/policy.h
 *	  The decision: what max_wal_size should be, and why.
 *
 * Nothing in here or in policy/step.c knows the server.  Everything the
 * decision depends on is an argument, so that the worker, the SQL functions,
 * the unit tests, the fuzzer and the simulator all run the same code.
 *
 * Units, unless a name says otherwise: sizes of WAL are bytes, values of
 * max_wal_size are megabytes (as in the server), times are milliseconds of a
 * monotonic clock, and an LSN is a byte position.
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

/* The window is cut into this many steps; a power of two would buy nothing. */
#define WALSIZER_WINDOW_STEPS		120
#define WALSIZER_WINDOW_SLOTS		(WALSIZER_WINDOW_STEPS + 4)

/* Samples kept for the recent rate of WAL. */
#define WALSIZER_RECENT_SLOTS		6

/* So many timed intervals in a row must agree before pacing counts. */
#define WALSIZER_PACED_INTERVALS	3

/* Changes whose first checkpoint_timeout may run at the same time. */
#define WALSIZER_CHANGE_SLOTS		8

/* One slot an hour for the longest walsizer.lookback, 31 days, and the hour
 * that has just begun. */
#define WALSIZER_PEAK_SLOTS			(31 * 24 + 1)

/*
 * The values of these three, and of WalsizerOutcome, stand in state files: add new
 * ones at the end, and their names in policy/names.c.
 */
typedef enum WalsizerAction
{
	WALSIZER_NONE = 0,
	WALSIZER_RAISE,
	WALSIZER_LOWER,
	WALSIZER_EXTERNAL,			/* somebody else changed the setting */
	WALSIZER_REVERT,			/* our value gives way to the one underneath */
} WalsizerAction;

typedef enum WalsizerReason
{
	WALSIZER_BECAUSE_INVALID = 0,	/* the sample makes no sense */
	WALSIZER_BECAUSE_STARTED,	/* first sample: nothing to compare with */
	WALSIZER_BECAUSE_ENOUGH,	/* the value in force suffices */
	WALSIZER_BECAUSE_FORCED,	/* checkpoints were forced by WAL volume */
	WALSIZER_BECAUSE_PREDICTED, /* one is about to be forced */
	WALSIZER_BECAUSE_DEMAND_FELL,	/* own raise no longer needed */
	WALSIZER_BECAUSE_BOUND_FELL,	/* own raise no longer allowed */
	WALSIZER_BECAUSE_CHANGED,	/* somebody else set the value */
	WALSIZER_BECAUSE_SETTLING,	/* leaving a foreign change alone for now */
	WALSIZER_BECAUSE_WAITING,	/* an earlier change has not taken effect */
	WALSIZER_BECAUSE_HIDDEN,	/* our value hides an edit, walsizer.enable is
								 * off */
	WALSIZER_BECAUSE_DISABLED,	/* walsizer.enable = off */
	WALSIZER_BECAUSE_PRIMARY,	/* what the primary writes needs it */
	WALSIZER_BECAUSE_PACED,		/* WAL hurries the timed checkpoints */
	WALSIZER_BECAUSE_ASKED,		/* an SQL function asked for it */
	WALSIZER_BECAUSE_EDITED,	/* the file underneath our value was edited */
	WALSIZER_BECAUSE_PLANNED,	/* walsizer_boost() asked for it */
	WALSIZER_BECAUSE_PLAN_OVER, /* and its time is over */
	WALSIZER_BECAUSE_LATE,		/* a value that waited is in force now */
} WalsizerReason;
#define WALSIZER_LAST_REASON		WALSIZER_BECAUSE_LATE

typedef enum WalsizerBound
{
	WALSIZER_UNBOUND = 0,
	WALSIZER_BOUND_MAX,			/* walsizer.max */
	WALSIZER_BOUND_DISK,		/* walsizer.max_disk_percent */
	WALSIZER_BOUND_RECOVERY,	/* walsizer.max_recovery_time */
} WalsizerBound;
#define WALSIZER_BOUNDS				4

/* What made the redo pointer move, judged by the distance it moved. */
typedef enum WalsizerCause
{
	WALSIZER_CAUSE_FORCED = 0,	/* WAL volume, at the capacity in force */
	WALSIZER_CAUSE_STALE,		/* WAL volume, at a capacity replaced since */
	WALSIZER_CAUSE_TIMED,		/* checkpoint_timeout */
	WALSIZER_CAUSE_OTHER,		/* CHECKPOINT, backup, DDL, ... */
} WalsizerCause;
#define WALSIZER_CAUSES				4

/* The server's settings that decide when a checkpoint starts. */
typedef struct WalsizerSettings
{
	int64_t		segment_size;	/* bytes, a power of two, 1MB .. 1GB */
	int64_t		max_wal_size;	/* MB, as in force */
	double		completion_target;	/* 0 .. 1 */
	int64_t		timeout;		/* checkpoint_timeout, ms */
} WalsizerSettings;

/*
 * What stands beside a value of ours, in the same file and written with it: whose
 * the value is.
 */
typedef struct WalsizerNote
{
	int64_t		written;		/* MB, 0: there is no note */
	int64_t		found;			/* MB, what it replaced */
	bool		found_by_alter_system;
} WalsizerNote;

/* walsizer's own settings, by value. */
typedef struct WalsizerConfig
{
	bool		enable;
	bool		predict;
	int64_t		max;			/* MB */
	int64_t		min;			/* MB, 0: the value found */
	int			threshold;		/* forced checkpoints per timeout */
	double		headroom;		/* factor on measured demand */
	int64_t		sample_interval;	/* ms */
	int64_t		lookback;		/* hours */
	int			max_disk_percent;
	int64_t		max_recovery_time;	/* ms, 0: no bound */
	double		replay_rate;	/* bytes per second */
} WalsizerConfig;

/* One observation of the server. */
typedef struct WalsizerSample
{
	int64_t		now;			/* monotonic, ms */
	int64_t		hour;			/* wall clock, hours since 1970 */
	uint64_t	write_lsn;		/* WAL written (standby: replayed) */
	uint64_t	redo_lsn;		/* redo pointer of the last started checkpoint */
	uint64_t	completed_lsn;	/* redo pointer of the last completed one */
	uint64_t	needed_lsn;		/* what is older is held back */
	bool		checkpoint_running; /* the two differ */
	int64_t		checkpoint_age; /* ms since the timer for checkpoints was set,
								 * -1: not known */
	int64_t		requested;		/* the server's counters */
	int64_t		timed;
	bool		counters_reset; /* since the sample before */
	bool		standby;
	bool		alter_system;	/* the value stands in postgresql.auto.conf */
	WalsizerNote note;			/* that speaks of the value in effect */
	int64_t		configured;		/* MB, in force if it did not; -1: not known */
	int64_t		boost;			/* MB, for a planned load under way; 0: none */
	bool		evaluate;		/* run the cycle's rules now */
	bool		looked;			/* the disk was looked at for this sample */
	bool		has_disk;		/* successfully: the next three are filled */
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

/* One step of the window; totals count since the server was started. */
typedef struct WalsizerMark
{
	int64_t		ms;
	uint64_t	lsn;
	int64_t		demand;			/* largest W since the mark before */
	int64_t		timeout;		/* and the timeout it was measured with, ms */
	int64_t		hour;
	int64_t		forced;			/* WAL-forced checkpoints, stale ones too */
	int64_t		stale;			/* the stale ones of them */
	int64_t		requested;
} WalsizerMark;

/* A change of max_wal_size that took effect, ours or not. */
typedef struct WalsizerChange
{
	int64_t		ms;
	int64_t		size;			/* MB */
	int64_t		forced;			/* WAL-forced checkpoints up to then */
} WalsizerChange;

/* The largest W of one hour, and the timeout it was measured with. */
typedef struct WalsizerPeak
{
	int64_t		hour;			/* hours since 1970, 0: free */
	int64_t		demand;			/* bytes */
	int64_t		timeout;		/* ms */
} WalsizerPeak;

/* The numbers behind a decision, for messages and views. */
typedef struct WalsizerFigures
{
	int64_t		in_force;		/* MB */
	int64_t		wanted;			/* size that demand and memory ask for, MB */
	int64_t		limit;			/* smallest bound, MB */
	WalsizerBound limit_by;		/* and which one that is */
	int64_t		disk_limit;		/* MB, 0: not known */
	int64_t		step_limit;		/* the largest size that one raise may claim of
								 * the disk now, MB */
	int64_t		recovery_limit; /* MB, 0: none set */
	int64_t		demand;			/* W */
	int64_t		window;			/* ms that W really covers */
	int64_t		learned;		/* largest remembered W */
	int64_t		rate;			/* recent WAL, bytes per second */
	int64_t		used;			/* WAL since the redo pointer's segment began */
	int64_t		capacity;		/* WAL at which a checkpoint is forced */
	int64_t		pace;			/* capacity at which time paces checkpoints,
								 * 0: not known, or nothing to be gained */
	int64_t		projected;		/* WAL expected up to the timed checkpoint */
	int64_t		until_timed;	/* ms */
	int64_t		until_forced;	/* ms at the recent rate, -1: not before */
	int64_t		forced;			/* WAL-forced checkpoints in the window */
	int64_t		stale;			/* those of them that no raise could prevent */
	int64_t		requested;		/* requested checkpoints in the window */
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
	WalsizerBound bound;		/* the one that made target < wanted */
	bool		limited;		/* and so far that nothing was worth doing, for
								 * whatever reason it was wanted */
	bool		cycle;			/* this step ended a cycle */
	int64_t		target;			/* MB to set (external: the value met) */
	int64_t		wanted;			/* MB before the bounds */

	/*
	 * One whole timeout has passed since a change took effect: how many
	 * checkpoints WAL forced in it, at whatever capacity.  Each change is
	 * reported once, in order, with the size (MB) it brought; one that is too
	 * many at a time, or that a restart cuts off, never.
	 */
	bool		followed;
	int64_t		followed_size;
	int64_t		followed_forced;

	WalsizerFigures figures;
} WalsizerDecision;

/*
 * Everything remembered from one step to the next.  Plain data, all zeroes
 * means unprimed; "found" to "boost_return" and "peaks" outlive the server in the state
 * file, the rest does not.
 */
typedef struct WalsizerState
{
	/* whose value is it, MB; 0: none */
	int64_t		found;			/* the value that was here before us */
	bool		found_by_alter_system;	/* it stood in postgresql.auto.conf */
	int64_t		own;			/* the value we wrote and saw in effect */
	int64_t		configured;		/* what the other files said when it was found */
	int64_t		returning;		/* our line is going, and this takes effect
								 * with the next reload; 0: no */
	int64_t		boost_return;	/* in force before a planned load; 0: none */
	int64_t		boost;			/* the size for the planned load under way */
	int64_t		planned_until;	/* so long W contains WAL of a planned load,
								 * ms */

	WalsizerPeak peaks[WALSIZER_PEAK_SLOTS];	/* slot: hour % slots */

	/* the sample before */
	bool		primed;
	int64_t		last_ms;
	int64_t		last_hour;
	uint64_t	last_lsn;
	uint64_t	last_redo;
	int64_t		last_requested;
	int64_t		last_timed;
	bool		was_standby;
	WalsizerSettings last_settings;

	/* learned demand, computed anew when the hour or a peak changes */
	int64_t		learned;
	int64_t		learned_hour;
	int64_t		learned_lookback;

	/* the checkpoint timer */
	int64_t		timer_start;	/* when it was last reset, as far as seen */
	int64_t		redo_moved;		/* when the redo pointer last moved */
	int64_t		stale_capacity; /* a statement may still use this one, 0: no */
	int			stale_quiet;	/* whole intervals without a sign of it */

	/* totals since the server was started */
	int64_t		checkpoints[WALSIZER_CAUSES];
	int64_t		requested_total;

	/*
	 * What it takes that time and not WAL paces a timed checkpoint, bytes: of
	 * the interval that runs, and of the last timed ones (a ring).
	 */
	int64_t		pace;
	int64_t		paces[WALSIZER_PACED_INTERVALS];
	int			next_pace;

	/* the window: ring of marks, oldest first */
	WalsizerMark marks[WALSIZER_WINDOW_SLOTS];
	int			first_mark;
	int			num_marks;
	int64_t		step_demand;	/* largest W since the last mark */
	uint64_t	window_lsn;		/* where it ends */

	/* the recent rate: ring of the last samples */
	int64_t		recent_ms[WALSIZER_RECENT_SLOTS];
	uint64_t	recent_lsn[WALSIZER_RECENT_SLOTS];
	int			next_recent;
	int			num_recent;

	/* pacing of decisions */
	int64_t		cycle_start;
	bool		cycle_over;		/* the last sample ended one */
	int64_t		cycle_demand;	/* largest W since it began, but for planned loads */
	int64_t		cycle_forced;	/* most checkpoints forced in one such window */
	int64_t		settle_until;	/* leave an administrator's change alone until then */
	int64_t		tried;			/* value decided last and not in force, MB */
	int64_t		tried_at;
	int64_t		edit_tried;		/* edit that we could not make way for, MB */
	int64_t		edit_tried_at;
	int64_t		changed_at;		/* when our last change took effect */
	int64_t		raise_not_before;	/* free space may be gone again until then */
	int64_t		keep_until;		/* our last raise is not taken back before */
	bool		lower_due;		/* a cycle found that demand allows a lowering */
	WalsizerChange changes[WALSIZER_CHANGE_SLOTS];	/* oldest first */
	int			num_changes;

	/* the last disk figures read, for the steps that read none */
	bool		has_disk;
	int64_t		disk_free;		/* bytes */
	int64_t		disk_wal;		/* bytes of WAL that max_wal_size covers */
	int64_t		disk_held;		/* bytes of WAL that are not ours to free */
	bool		disk_alone;
	int64_t		disk_taken[2];	/* bytes per second that others took between the
								 * last two looks, and the two before */
	bool		looked;			/* at the disk, and when: */
	int64_t		looked_at;
	uint64_t	looked_lsn;

	/* taken in and not decided: the step wants the disk figures first */
	bool		pending;
	WalsizerDecision observed;

	/* standby: the primary's checkpoint from which W is counted */
	uint64_t	primary_redo;
	int64_t		primary_time;	/* s of the primary's clock, 0: none */
	int64_t		primary_demand; /* W of the primary */
} WalsizerState;

/* What another value of max_wal_size would mean. */
typedef struct WalsizerWhatIf
{
	int64_t		size;			/* MB, the candidate */
	int64_t		capacity;		/* bytes at which a checkpoint is forced */
	int64_t		spacing_now;	/* ms between checkpoints, at the demand of
								 * now */
	int64_t		spacing_peak;	/* and at the largest demand known */
	double		forced_hours;	/* share of the remembered hours */
	int64_t		recovery_time;	/* ms, at worst */
	WalsizerBound forbidden_by;
} WalsizerWhatIf;

/* No more candidates than this are worth a look. */
#define WALSIZER_CANDIDATES		9

/* the server's arithmetic */
extern int64_t walsizer_checkpoint_segments(int64_t max_wal_size_mb,
											const WalsizerSettings *settings);
extern int64_t walsizer_capacity(int64_t max_wal_size_mb,
								 const WalsizerSettings *settings);
extern int64_t walsizer_size_for(int64_t wal_bytes,
								 const WalsizerSettings *settings);

/* the decision */
extern int64_t walsizer_roomy_size(const WalsizerConfig *config,
								   const WalsizerSettings *settings, int64_t wal_bytes);
extern WalsizerDecision walsizer_step(const WalsizerConfig *config,
									  WalsizerState *state,
									  const WalsizerSample *sample);

/* memory */
extern int64_t walsizer_learned_demand(const WalsizerState *state,
									   int64_t hour, int64_t lookback);
extern const WalsizerPeak *walsizer_peak_of(const WalsizerState *state, int64_t hour);
extern void walsizer_remember(WalsizerState *state, int64_t hour,
							  int64_t demand, int64_t timeout);
extern void walsizer_settle(WalsizerState *state);
extern void walsizer_forget(WalsizerState *state);

/* what if */
extern int64_t walsizer_recovery_time(const WalsizerConfig *config, int64_t mb);
extern WalsizerWhatIf walsizer_what_if(const WalsizerConfig *config,
									   const WalsizerState *state,
									   const WalsizerSample *sample,
									   const WalsizerFigures *figures, int64_t mb);
extern int	walsizer_candidates(const WalsizerSettings *settings, int64_t wanted,
								int64_t *sizes);

/* what became of a decision */
extern void walsizer_took_effect(WalsizerState *state, const WalsizerSample *sample);
extern void walsizer_returns(WalsizerState *state, int64_t max_wal_size_mb);
extern void walsizer_given_back(WalsizerState *state, int64_t in_force);

/* names for people */
extern const char *walsizer_action_name(WalsizerAction action);
extern const char *walsizer_reason_name(WalsizerReason reason);
extern const char *walsizer_bound_name(WalsizerBound bound);

#endif							/* WALSIZER_POLICY_H */
