/*-------------------------------------------------------------------------
 *
 * driver.h
 *	  A server of one variable, for the unit tests of the policy: samples are
 *	  written by hand, and nothing happens that a test did not ask for.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#ifndef DRIVER_H
#define DRIVER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/policy.h"

#define MB			WALSIZER_MB
#define SEGMENT		(16 * MB)
#define SECOND		INT64_C(1000)

/* A unit test; none needs what cmocka passes. */
#define TEST(name)	static void name(void **unused __attribute__((unused)))

/* 528MB force a checkpoint at 1GB. */
#define TRIGGER_POINT	(33 * SEGMENT)

typedef struct Driver
{
	WalsizerConfig config;
	WalsizerState state;
	WalsizerSample sample;
	WalsizerDecision last;		/* the last decision */
	int			raises;
	int			lowers;
	int			externals;
	int			looks;			/* at the disk */
	int64_t		timer;			/* when the last checkpoint started */
	int64_t		clock_set;		/* hours that the clock on the wall is ahead */
	bool		apply;			/* do raises and lowers take effect? */
	bool		ask_for_disk;	/* disk figures only when a look is due */
} Driver;

/* A peak: hour, demand and timeout. */
#define remember(d, ...)	walsizer_remember(&(d)->state, &(WalsizerPeak) {__VA_ARGS__, 0})

/* T = 300 s, c = 0.9, 16MB segments, max_wal_size = 1GB, defaults of walsizer. */
extern Driver *driver_new(void);

/* A value of ours (MB) takes effect, with the note on it. */
extern void driver_write(Driver *d, int64_t mb);

/* The state once the sample is observed. */
extern WalsizerState *driver_seen(Driver *d);

/* Let ms pass and bytes of WAL be written, then take one step. */
extern WalsizerAction driver_step(Driver *d, int64_t ms, int64_t bytes);

/* The same without a decision: what this sample says. */
extern WalsizerFigures driver_observe(Driver *d, int64_t ms, int64_t bytes);

/* The same, and the redo pointer moves to where these bytes begin. */
extern WalsizerFigures driver_observe_redo(Driver *d, int64_t ms, int64_t bytes);

/* A server with one sample observed, whose last checkpoint started with it. */
extern Driver *driver_begun(void);

/*
 * A server that was started an hour ago and has been idle since, with 1GB or
 * with our own raise to that size (MB); nothing is applied.
 */
extern Driver *driver_quiet(void);
extern Driver *driver_quiet_raise(int64_t mb);

/* The sample after the next second ends a cycle. */
extern void driver_end_cycle(Driver *d);

/* One step a second at bytes per second; checkpoints happen as in the server. */
extern void driver_run(Driver *d, int64_t seconds, int64_t rate);

/* A checkpoint starts now; the counters show it at once. */
extern void driver_checkpoint(Driver *d, bool requested);

/* What the server would do at this point of the WAL. */
extern bool driver_forced_due(const Driver *d);

#endif							/* DRIVER_H */
