/*-------------------------------------------------------------------------
 *
 * test_statements.c
 *	  What the simulator's server makes of a statement that keeps the
 *	  max_wal_size with which it began.
 *
 *		test_statements [--verbose]
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <string.h>

#include "sim.h"

#define TIMEOUT		300000.0	/* ms */
#define SECOND		1000.0
#define OLD_MB		1024
#define NEW_MB		16384

static bool verbose;
static int	servers;
static int	failed;

/* Run a server from OLD_MB at this rate (MB per second) for 20 timeouts. */
typedef struct Case
{
	double		rate;
	double		target;			/* checkpoint_completion_target */
	bool		raised;			/* soon after the statement began */
	bool		keeps;			/* the statement the value of its begin */
} Case;

static void
check(const Case *c, const char *what, bool holds)
{
	if (holds)
		return;
	failed++;
	printf("%.0f MB/s, completion target %.1f, %s, %s: not so: %s\n", c->rate, c->target,
		   c->raised ? "raised" : "not raised", c->keeps ? "old value kept" : "no old value", what);
}

static void
run(const Case *c, SimServer *s)
{
	WalsizerSettings settings = {16 * WALSIZER_MB, OLD_MB, c->target, (int64_t) TIMEOUT};

	sim_server_init(s, &settings);
	if (c->keeps)
		sim_server_begin(s);
	if (c->raised)
		sim_server_apply(s, NEW_MB, SECOND);
	for (double at = SECOND; at <= 20 * TIMEOUT; at += SECOND)
		sim_server_advance(s, at, c->rate * SIM_MB / 1000);
	servers++;
	for (int cause = 0; verbose && cause < WALSIZER_CAUSES; cause++)
	{
		const SimCheckpoints *these = &s->checkpoints[cause];

		if (these->number > 0)
			printf("%.0f MB/s, completion target %.1f, %s, %s, cause %d: %lld in %.0f s, "
				   "shortest interval %.1f s, %lld hurried for %.0f s\n",
				   c->rate, c->target, c->raised ? "raised" : "not raised",
				   c->keeps ? "old value kept" : "no old value", cause,
				   (long long) these->number, these->intervals / SECOND,
				   these->shortest / SECOND, (long long) these->hurried,
				   these->hurried_time / SECOND);
	}
}

/*
 * Without a raise WAL forces all checkpoints and hurries them: the share
 * completion_target of the time they are being written.
 */
static void
without_a_raise_all_are_hurried(double rate, double target)
{
	Case		c = {rate, target, false, true};
	SimServer	s;
	const SimCheckpoints *forced = &s.checkpoints[WALSIZER_CAUSE_FORCED];
	double		part;

	run(&c, &s);
	part = forced->hurried_time / (20 * TIMEOUT);
	check(&c, "all are forced at the value in effect",
		  forced->number > 20 && s.checkpoints[WALSIZER_CAUSE_TIMED].number == 0 &&
		  s.checkpoints[WALSIZER_CAUSE_OLD_VALUE].number == 0);
	check(&c, "but for the one that runs all are hurried", forced->hurried >= forced->number - 1);
	check(&c, "for that share of the time", fabs(part - target) < 0.1);
}

/*
 * After a raise the same statement forces checkpoints that time paces.  One that
 * is asked for meanwhile waits for it, so the next comes completion_target *
 * checkpoint_timeout after it at the earliest; the first comes at the old
 * trigger point.
 */
static void
an_old_value_hurries_none(double rate, double target)
{
	Case		c = {rate, target, true, true};
	SimServer	s;
	const SimCheckpoints *forced = &s.checkpoints[WALSIZER_CAUSE_OLD_VALUE];
	double		reached;		/* ms, the old trigger point */

	run(&c, &s);
	reached = (double) walsizer_trigger_point(OLD_MB, &s.settings) / (rate * SIM_MB) * SECOND;
	check(&c, "all are forced at the old value",
		  forced->number > 0 && s.checkpoints[WALSIZER_CAUSE_FORCED].number == 0);
	check(&c, "none is hurried", forced->hurried == 0);
	check(&c, "at most one in completion_target * checkpoint_timeout, after the first",
		  (double) (forced->number - 1) <= 20 / target);
	check(&c, "all the others have that distance at least",
		  (forced->intervals - forced->shortest) / (double) (forced->number - 1) >=
		  0.999 * fmax(target * TIMEOUT, reached - 10 * SECOND));
}

/* A statement that began after the raise, or none, forces nothing. */
static void
the_new_value_forces_none(double rate, double target)
{
	Case		c = {rate, target, true, false};
	SimServer	s;

	run(&c, &s);
	check(&c, "all are timed", s.checkpoints[WALSIZER_CAUSE_FORCED].number == 0 &&
		  s.checkpoints[WALSIZER_CAUSE_OLD_VALUE].number == 0 &&
		  s.checkpoints[WALSIZER_CAUSE_TIMED].number >= 19);
	check(&c, "none is hurried", s.checkpoints[WALSIZER_CAUSE_TIMED].hurried == 0);
}

/* The end of the statement ends it: the checkpoints are timed again. */
static void
the_end_of_the_statement_ends_it(double rate, double target)
{
	Case		c = {rate, target, true, true};
	SimServer	s;
	int64_t		forced;

	run(&c, &s);
	sim_server_end(&s);
	forced = s.checkpoints[WALSIZER_CAUSE_OLD_VALUE].number + s.wal_request;
	for (double at = s.now + SECOND; at <= 30 * TIMEOUT; at += SECOND)
		sim_server_advance(&s, at, rate * SIM_MB / 1000);
	check(&c, "none is forced after its end",
		  s.checkpoints[WALSIZER_CAUSE_OLD_VALUE].number == forced &&
		  s.checkpoints[WALSIZER_CAUSE_FORCED].number == 0);
	check(&c, "the others are timed", s.checkpoints[WALSIZER_CAUSE_TIMED].number >= 8);
}

/* WAL has asked for a checkpoint while one runs; CHECKPOINT is that one. */
static void
checkpoint_answers_a_pending_request(double rate, double target)
{
	Case		c = {rate, target, true, true};
	SimServer	s;
	int64_t		before;

	run(&c, &s);
	for (double at = s.now + SECOND; !s.wal_request && at <= 40 * TIMEOUT; at += SECOND)
		sim_server_advance(&s, at, rate * SIM_MB / 1000);
	before = s.checkpoints[WALSIZER_CAUSE_OLD_VALUE].number;
	check(&c, "a request waits", s.wal_request && s.running);
	sim_server_checkpoint(&s);
	check(&c, "one checkpoint, which is not forced",
		  s.checkpoints[WALSIZER_CAUSE_OTHER].number == 1 && !s.wal_request &&
		  s.checkpoints[WALSIZER_CAUSE_OLD_VALUE].number == before);
}

int
main(int argc, char **argv)
{
	static const double rates[] = {4, 10, 20};	/* NEW_MB holds the largest */
	static const double targets[] = {0.5, 0.9};

	verbose = argc > 1 && strcmp(argv[1], "--verbose") == 0;
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 2; j++)
		{
			without_a_raise_all_are_hurried(rates[i], targets[j]);
			an_old_value_hurries_none(rates[i], targets[j]);
			the_new_value_forces_none(rates[i], targets[j]);
			the_end_of_the_statement_ends_it(rates[i], targets[j]);
			if (rates[i] > 4 || targets[j] > 0.5)
				checkpoint_answers_a_pending_request(rates[i], targets[j]);
		}
	if (failed > 0)
	{
		printf("%d expectations of statements with an old value failed\n", failed);
		return 1;
	}
	printf("statements with an old value: %d servers did what they must\n", servers);
	return 0;
}
