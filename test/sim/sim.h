/*-------------------------------------------------------------------------
 *
 * sim.h
 *	  A model of the server's checkpointing, loads to put on it, and policies
 *	  to run it with.
 *
 * Times are milliseconds, WAL is bytes, max_wal_size is megabytes.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "policy/policy.h"

#define SIM_MB		((double) WALSIZER_MB)

/*-------------------------------------------------------------------------
 * server.c: segments, trigger, timer, pacing, page images, statements that keep
 * an old value
 *-------------------------------------------------------------------------
 */

/* The checkpoints of one cause. */
typedef struct SimCheckpoints
{
	int64_t		number;
	double		intervals;		/* ms, sum of the intervals that they ended */
	double		shortest;		/* ms, of these; 0: none */

	/*
	 * Those whose writing WAL paced and not time: it took less than
	 * checkpoint_completion_target * checkpoint_timeout.  Unpaced ones, as of
	 * CHECKPOINT, are not meant.
	 */
	int64_t		hurried;
	double		hurried_time;	/* ms, that this writing took */
} SimCheckpoints;

typedef struct SimServer
{
	WalsizerSettings settings;
	WalsizerNote note;			/* on the value that walsizer wrote last */

	/* full-page images */
	double		hot_pages;		/* pages that the load touches at random */
	double		touch_bytes;	/* logical WAL per touch of a page */
	double		image_bytes;	/* WAL of one image */

	double		now;			/* since the server's first start */
	double		pos;			/* WAL written */
	double		redo;			/* redo pointer of the last started checkpoint */
	double		completed;		/* redo pointer of the last complete one */
	double		padding;		/* by switches, since the last sample */
	double		padded;			/* and since redo */
	double		touches;		/* since redo */
	double		timer;			/* when the timer was last reset */
	double		redo_time;		/* when the redo pointer last moved */

	/* the checkpoint that runs */
	bool		running;
	WalsizerCause running_cause;
	double		fast_until;		/* unpaced: ends then; 0: paced */
	double		fast_ms;		/* that an unpaced one takes */
	bool		asked;			/* walsizer asked for one meanwhile */
	double		written;		/* share of its buffers written, 0 .. 1 */
	bool		wal_request;	/* asked for meanwhile */
	bool		old_value_request;

	/* storage, and the clock on the wall */
	double		least_writing;	/* ms that a checkpoint's writing takes at least */
	bool		failing;		/* no checkpoint completes */
	double		room;			/* bytes free or in pg_wal; 0: not looked at */
	int64_t		hours_ahead;	/* that the clock was set */

	/* a statement that keeps its old value */
	int			statements;
	double		old_mb;

	/* a value written by ALTER SYSTEM that is under way */
	double		apply_at;		/* 0: none */
	int64_t		apply_mb;

	/* counters, and what they will show when the checkpoint ends */
	bool		late_counters;
	int64_t		requested;
	int64_t		timed;
	int64_t		late_requested;
	int64_t		late_timed;

	/* truth, for the table */
	SimCheckpoints checkpoints[WALSIZER_CAUSES];
	double		written_by_time;	/* of timed checkpoints' writing */
	double		written_by_wal;
	double		files_from;		/* pg_wal holds this range of WAL */
	double		files_to;
	double		min_wal;		/* min_wal_size, bytes */
	double		estimate;		/* CheckPointDistanceEstimate */
	double		peak_files;
	double		page_images;	/* bytes of WAL that were images */
	double		changes;		/* bytes of WAL that were not */
	double		records;		/* number */
	int64_t		prompt_forced;	/* at the value in effect, within the timeout */
} SimServer;

extern void sim_server_init(SimServer *s, const WalsizerSettings *settings);
extern void sim_server_advance(SimServer *s, double until, double bytes_per_ms);
extern void sim_server_checkpoint(SimServer *s);
extern void sim_server_request(SimServer *s);
extern void sim_server_switch(SimServer *s);
extern void sim_server_restart(SimServer *s, bool crash);
extern void sim_server_begin(SimServer *s);
extern void sim_server_end(SimServer *s);
extern void sim_server_apply(SimServer *s, int64_t mb, double delay);
extern double sim_segment_start(const SimServer *s, double pos);
extern void sim_server_sample(const SimServer *s, WalsizerSample *sample);

/*-------------------------------------------------------------------------
 * trace.c and families.c: loads
 *-------------------------------------------------------------------------
 */
typedef enum SimMark
{
	SIM_NOTHING = 0,
	SIM_CHECKPOINT,
	SIM_RESTART,
	SIM_CRASH,
	SIM_BEGIN,					/* a statement that lasts */
	SIM_END,
	SIM_RESET_STATISTICS,
	SIM_SWITCH,					/* pg_switch_wal() */
	SIM_BACKUP,					/* one begins: a switch and a checkpoint */

	/* these take a value */
	SIM_SIZE,					/* an administrator sets max_wal_size, MB */
	SIM_MAX,					/* walsizer.max, MB */
	SIM_PREDICT,				/* walsizer.predict */
	SIM_RECOVERY,				/* walsizer.max_recovery_time, ms */
	SIM_LOOKBACK,				/* walsizer.lookback, hours */
	SIM_TIMEOUT,				/* checkpoint_timeout, ms */
	SIM_CLOCK,					/* the clock is set ahead, by hours */
	SIM_SLOW,					/* writing a checkpoint takes so long, ms */
	SIM_FAILING,				/* checkpoints fail */
	SIM_ROOM,					/* MB that are free or in pg_wal */
	SIM_TOUCH,					/* bytes of WAL per touch of a page */
} SimMark;

typedef struct SimPiece
{
	double		ms;				/* lasts that long */
	double		bytes;			/* logical WAL in it, evenly */
	SimMark		mark;			/* happens at its end */
	double		value;			/* of the mark */
} SimPiece;

/* Part of a mixed load; times in ms from the beginning. */
typedef struct SimJob
{
	double		first;
	double		every;			/* 0: once */
	double		lasts;			/* 0: the list ends */
	double		rate;			/* times the load's */
	bool		ramp;			/* the rate grows from 0 */
} SimJob;

/* What happens at the end of the second that begins then. */
typedef struct SimEvent
{
	double		first;
	double		every;			/* 0: once */
	SimMark		mark;			/* SIM_NOTHING: the list ends */
	double		value;
} SimEvent;

typedef struct SimRandom
{
	uint64_t	state;
} SimRandom;

/*
 * The same seed gives the same numbers everywhere, if no call has two of these among
 * its arguments: compilers evaluate arguments in different orders.
 */
extern uint64_t sim_random(SimRandom *r);
extern double sim_uniform(SimRandom *r, double from, double to);
extern bool sim_chance(SimRandom *r, double probability);
extern double sim_any(SimRandom *r, double from, double to);

typedef struct SimLoad SimLoad;

/* Gives the piece that begins at this time; false at the end. */
typedef bool (*SimNext) (SimLoad *load, double at, SimPiece *piece);

struct SimLoad
{
	char		name[64];
	WalsizerSettings settings;	/* max_wal_size: where it begins */
	double		hot_pages;
	double		touch_bytes;
	double		image_bytes;
	double		duration;
	double		rate;			/* bytes per second, what it means is the
								 * family's */
	uint64_t	seed;
	SimNext		next;
	const SimEvent *events;		/* of several at once the first; or NULL */
	const SimJob *jobs;			/* of sim_mixture() */
	double		noise;			/* of sim_mixture() */

	/* of the family */
	SimRandom	random;
	double		level;
	double		level_until;
	int64_t		number;			/* of the piece */

	const void *data;			/* whatever next() wants */

	/* of a trace, or of a server of a fleet */
	SimPiece   *pieces;
	int64_t		num_pieces;
};

extern void sim_load_rewind(SimLoad *load);
extern bool sim_next_piece(SimLoad *load, double at, SimPiece *piece);
extern bool sim_next_kept_piece(SimLoad *load, double at, SimPiece *piece);
extern bool sim_mixture(SimLoad *load, double at, SimPiece *piece);
extern bool sim_load_find(SimLoad *load, const char *name, uint64_t seed);
extern const char *sim_load_name(int i);	/* NULL: no more */
extern bool sim_load_counts(int i); /* does the default table show it? */
extern bool sim_load_is_scene(int i);	/* one thing that can go wrong */
extern bool sim_load_read(SimLoad *load, const char *path);

/*-------------------------------------------------------------------------
 * run.c: a load, a server, a policy
 *-------------------------------------------------------------------------
 */
typedef enum SimPolicy
{
	SIM_WALSIZER = 0,
	SIM_CLASSIC,				/* current * (n + 1) from 2 requested on */
	SIM_SHRINKING,				/* the same, * 0.75 after 5 quiet intervals */
	SIM_STATIC,
	SIM_ORACLE,
} SimPolicy;

typedef struct SimResult
{
	int64_t		forced;			/* at an old value, too */
	int64_t		forced_old_value;
	int64_t		timed;
	int64_t		other;
	double		lasted;			/* ms */
	double		forced_share;	/* of the time, in intervals that WAL ended */
	int64_t		raises;
	int64_t		lowers;
	int64_t		returns;		/* raises after a lowering */
	int64_t		externals;

	/*
	 * Forced checkpoints that walsizer could have prevented: visible in the last
	 * sample but one, in a linear projection; not while no raise was allowed, and
	 * not at an old value or while a checkpoint outlasts checkpoint_timeout.
	 */
	int64_t		preventable;
	double		preventable_at; /* s, the first; 0: none */
	int64_t		misjudged;		/* checkpoints taken for forced */
	int64_t		commanded;		/* raises for these alone */
	double		mean;			/* MB, over time */
	int64_t		peak;			/* MB */
	int64_t		final;			/* MB */
	double		wal;			/* bytes */
	double		peak_files;		/* bytes in pg_wal */
	double		time_paced;		/* share of timed checkpoints' writing, -1: none */
	SimCheckpoints checkpoints[WALSIZER_CAUSES];
	double		hurried_time;	/* ms, of all causes */
	double		shortest;		/* ms, interval that WAL ended; 0: none */
	double		largest_window; /* largest WAL of any T, bytes */
	int64_t		samples;
	int64_t		late_raises;	/* after SimOptions.quiet_from */
	int64_t		late_lowers;
	int64_t		late_forced;
	int64_t		early_size;		/* MB, in effect then */
	double		lowered_at;		/* ms, the last time; 0: never */
	const char *broken;			/* an invariant that was, NULL: none */
	double		broken_at;
} SimResult;

/* What a run has seen, for tests that look closer. */
typedef struct SimStart
{
	double		at;				/* ms, to the sample */
	bool		forced;
} SimStart;

typedef struct SimWitness
{
	SimStart   *starts;			/* of all checkpoints; to be freed */
	int64_t		num_starts;

	/* of SIM_WALSIZER, when the run ended */
	WalsizerState state;
	WalsizerSample sample;
	WalsizerFigures figures;
} SimWitness;

typedef struct SimOptions
{
	WalsizerConfig config;		/* of SIM_WALSIZER, at the beginning */
	double		apply_delay;	/* ms */
	bool		late_counters;
	FILE	   *csv;			/* the series, or NULL */
	FILE	   *changes;		/* what walsizer changed, and missed, or NULL */
	double		quiet_from;		/* ms: count what happens later on its own */
	bool		check;			/* look at the invariants at each step */
	int64_t		oracle_interval;	/* ms between two looks of sim_oracle() */
	SimWitness *witness;		/* to be filled, or NULL */
} SimOptions;

extern void sim_default_options(SimOptions *options);
extern const char *sim_policy_name(SimPolicy policy);
extern void sim_run(SimLoad *load, SimPolicy policy, int64_t static_mb,
					const SimOptions *options, SimResult *result);
extern int64_t sim_oracle(SimLoad *load, const SimOptions *options);

/*-------------------------------------------------------------------------
 * check.c: what must hold, whatever the load
 *-------------------------------------------------------------------------
 */
extern const char *sim_broken_rule(const WalsizerConfig *config,
								   const WalsizerSettings *settings,
								   const WalsizerState *state, const WalsizerDecision *d);
extern const char *sim_out_of_range(const WalsizerState *state);

/* A figure of a run, and whether its limit is the least and not the most. */
typedef struct SimMeasure
{
	const char *name;
	double		value;
	bool		least;
} SimMeasure;

extern bool sim_keeps_limits(const char *path, const char *name, const SimMeasure *measures);

/*-------------------------------------------------------------------------
 * search.c: many random loads
 *-------------------------------------------------------------------------
 */
typedef enum SimSearch
{
	SIM_SEARCH_DEFAULTS = 0,
	SIM_SEARCH_ANY,				/* any settings, and slow storage */
	SIM_SEARCH_SWING,			/* a limit by disk space or recovery time swings */
} SimSearch;

extern bool sim_search(SimSearch search, int runs, uint64_t seed, const SimOptions *options,
					   const char *limits);

#endif							/* SIM_H */
