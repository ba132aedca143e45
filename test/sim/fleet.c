/*-------------------------------------------------------------------------
 *
 * fleet.c
 *	  Many servers, each with a random load of a month: what each policy would
 *	  have done, one line of figures for each server and policy.
 *
 * A load is looked at every ten seconds, and so is the server by walsizer
 * (walsizer.sample_interval = 10s): a month of ten thousand servers has 26
 * thousand million seconds.  With --interval=1000 it looks every second.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define PIECE		10.0		/* s */
#define MINUTE		60.0
#define HOUR		(60 * MINUTE)
#define DAY			(24 * HOUR)
#define FASTEST		(60 * SIM_MB)	/* that a server could write in a second */

static const char *const usage =
"Usage: walsizer_fleet [OPTION]...\n"
"Run random servers with several policies, and print a line for each.\n"
"\n"
"  --first=N --servers=N   which ones: a server's number is its seed (0, 100)\n"
"  --days=N                how long (30)\n"
"  --interval=MS           walsizer.sample_interval (10000)\n"
"  --only-walsizer         no other policies\n";

/* Something that comes again and again, or once: a batch, a backup, a burst. */
typedef struct Job
{
	double		every;			/* s; 0: never */
	double		first;			/* s from the beginning */
	double		lasts;			/* s */
	double		rate;			/* bytes per second */
	bool		statement;		/* one statement, which keeps its max_wal_size */
	bool		begun;			/* the statement has */
} Job;

#define NUM_JOBS	4

/* What a server's month is like; rates are bytes of logical WAL per second. */
typedef struct Plan
{
	double		base;
	double		by_day;			/* how much of it comes and goes with the day */
	double		weekend;		/* factor */
	double		growth;			/* factor, up to the end of the month */
	double		noise;
	Job			jobs[NUM_JOBS];
	double		bursts_per_day; /* at random */
	double		burst_lasts;
	double		burst_rate;
	double		checkpoint_every;	/* CHECKPOINT, backups */
	double		reset_every;	/* statistics */
	double		restart_every;
	double		days;

	double		burst_until;
} Plan;

static Job
a_job(SimRandom *r, double every, double shortest, double longest, double rate)
{
	Job			job;

	job.every = every;
	job.first = sim_uniform(r, 0, every - longest);
	job.lasts = sim_any(r, shortest, longest);
	job.rate = fmin(rate, FASTEST);
	job.statement = sim_chance(r, 0.3);
	return job;
}

static void
make_plan(Plan *plan, SimRandom *r, double days)
{
	memset(plan, 0, sizeof(*plan));
	plan->days = days;
	plan->base = sim_any(r, 0.003, 3) * SIM_MB;
	plan->by_day = sim_uniform(r, 0, 1);
	plan->weekend = sim_chance(r, 0.5) ? sim_uniform(r, 0.1, 1) : 1;
	plan->growth = sim_chance(r, 0.3) ? sim_any(r, 1, 4) : 1;
	plan->noise = sim_uniform(r, 0.05, 1.5);
	if (sim_chance(r, 0.6))			/* every night */
		plan->jobs[0] = a_job(r, DAY, 5 * MINUTE, 3 * HOUR, plan->base * sim_any(r, 3, 50));
	if (sim_chance(r, 0.4))			/* every week */
		plan->jobs[1] = a_job(r, 7 * DAY, 20 * MINUTE, 6 * HOUR, plan->base * sim_any(r, 5, 100));
	if (sim_chance(r, 0.3))			/* every hour or so */
	{
		double		rate = plan->base * sim_any(r, 2, 20);
		double		every = sim_any(r, 30 * MINUTE, 4 * HOUR);

		plan->jobs[2] = a_job(r, every, MINUTE, 15 * MINUTE, rate);
	}
	if (sim_chance(r, 0.3))			/* once: a migration, a restore */
		plan->jobs[3] = a_job(r, 60 * DAY, 10 * MINUTE, 4 * HOUR, sim_any(r, 3, 60) * SIM_MB);
	plan->jobs[3].first = sim_uniform(r, 0, days * DAY);
	if (sim_chance(r, 0.5))
	{
		plan->bursts_per_day = sim_any(r, 0.3, 50);
		plan->burst_lasts = sim_any(r, 20, 15 * MINUTE);
		plan->burst_rate = fmin(plan->base * sim_any(r, 3, 40), FASTEST);
	}
	if (sim_chance(r, 0.7))
		plan->checkpoint_every = sim_chance(r, 0.95) ? DAY : sim_any(r, MINUTE, 2 * HOUR);
	if (sim_chance(r, 0.2))
		plan->reset_every = sim_any(r, 10 * MINUTE, DAY);
	if (sim_chance(r, 0.4))
		plan->restart_every = sim_uniform(r, 5, 60) * DAY;
}

static bool
goes_on(const Job *job, double at)
{
	return job->every > 0 && at >= job->first && fmod(at - job->first, job->every) < job->lasts;
}

/* Does something that comes so often happen in the piece that begins here? */
static bool
due(double every, double at)
{
	return every > 0 && floor(at / every) != floor((at + PIECE) / every);
}

static double
rate_at(SimLoad *load, Plan *plan, double at)
{
	bool		weekend = fmod(at / DAY, 7) >= 5;
	double		rate = plan->base * (weekend ? plan->weekend : 1);

	rate *= 1 + plan->by_day * -cos(at / DAY * 2 * M_PI);
	rate *= exp(sim_uniform(&load->random, -plan->noise, plan->noise));
	for (int i = 0; i < NUM_JOBS; i++)
		if (goes_on(&plan->jobs[i], at))
			rate += plan->jobs[i].rate;
	if (at >= plan->burst_until && sim_chance(&load->random, plan->bursts_per_day * PIECE / DAY))
		plan->burst_until = at + plan->burst_lasts;
	if (at < plan->burst_until)
		rate += plan->burst_rate;
	return fmin(rate * pow(plan->growth, at / (plan->days * DAY)), FASTEST);
}

/*
 * One thing happens at the end of a piece.  A statement that had to wait for
 * another begins or ends one piece later: none may be left open.
 */
static SimMark
mark_at(Plan *plan, int64_t number, double at)
{
	for (int i = 0; i < NUM_JOBS; i++)
	{
		Job		   *job = &plan->jobs[i];

		if (job->statement && job->begun != goes_on(job, at + PIECE))
		{
			job->begun = !job->begun;
			return job->begun ? SIM_BEGIN : SIM_END;
		}
	}
	if (due(plan->restart_every, at))
		return number % 5 == 0 ? SIM_CRASH : SIM_RESTART;
	if (due(plan->checkpoint_every, at))
		return SIM_CHECKPOINT;
	if (due(plan->reset_every, at))
		return SIM_RESET_STATISTICS;
	return SIM_NOTHING;
}

/* All pieces of the month: they are needed for each policy. */
static void
make_pieces(SimLoad *load, Plan *plan)
{
	load->num_pieces = (int64_t) (plan->days * DAY / PIECE);
	load->pieces = malloc((size_t) load->num_pieces * sizeof(SimPiece));
	if (load->pieces == NULL)
		abort();
	sim_load_rewind(load);
	for (int64_t i = 0; i < load->num_pieces; i++)
	{
		double		at = (double) i * PIECE;

		load->pieces[i].ms = PIECE * 1000;
		load->pieces[i].bytes = rate_at(load, plan, at) * PIECE;
		load->pieces[i].mark = mark_at(plan, i, at);
	}
}

static int64_t
one_of(SimRandom *r, const int64_t *values, const double *chances)
{
	double		x = sim_uniform(r, 0, 1);

	while (*chances < x)
		x -= *chances++, values++;
	return *values;
}

/* The settings are mostly the defaults, as servers have them. */
static void
make_server(SimLoad *load, uint64_t seed, double days)
{
	static const int64_t timeouts[] = {300, 600, 900, 1800};
	static const double timeout_chances[] = {0.6, 0.1, 0.2, 1};
	static const int64_t sizes[] = {1024, 2048, 4096, 8192, 16384};
	static const double size_chances[] = {0.7, 0.1, 0.1, 0.05, 1};
	SimRandom	r = {seed * 7919 + 1};
	Plan		plan;

	memset(load, 0, sizeof(*load));
	snprintf(load->name, sizeof(load->name), "%llu", (unsigned long long) seed);
	make_plan(&plan, &r, days);
	load->settings.timeout_ms = one_of(&r, timeouts, timeout_chances) * 1000;
	load->settings.max_wal_size_mb = one_of(&r, sizes, size_chances);
	load->settings.segment_bytes = (sim_chance(&r, 0.95) ? 16 : 64) * WALSIZER_MB;
	load->settings.completion_target = sim_chance(&r, 0.9) ? 0.9 : 0.5;
	load->hot_pages = sim_chance(&r, 0.8) ? sim_any(&r, 1000, 1e6) : 0;
	load->touch_bytes = sim_any(&r, 100, 1000);
	load->image_bytes = sim_uniform(&r, 3000, 8000);
	load->duration = days * DAY * 1000;
	load->seed = seed;
	load->next = sim_next_kept_piece;
	make_pieces(load, &plan);
}

static const char *const heading =
"server,policy,timeout,completion_target,from,oracle,forced,forced_old_value,timed,share,raises,"
"lowers,late_raises,mean,final,peak,wal,paced,hurried_seconds,hurried_timed,hurried_old_value,"
"hurried_old_value_seconds,old_value_seconds,shortest,shortest_old_value,broken";

static void
print_line(const SimLoad *load, const char *policy, int64_t oracle, const SimResult *r)
{
	const SimCheckpoints *old_value = &r->checkpoints[WALSIZER_CAUSE_OLD_VALUE];

	printf("%s,%s,%lld,%g,%lld,%lld,", load->name, policy,
		   (long long) load->settings.timeout_ms / 1000, load->settings.completion_target,
		   (long long) load->settings.max_wal_size_mb, (long long) oracle);
	printf("%lld,%lld,%lld,%.5f,%lld,%lld,%lld,%.0f,%lld,%lld,%.0f,%.3f,",
		   (long long) r->forced, (long long) r->forced_old_value, (long long) r->timed,
		   r->forced_share, (long long) r->raises, (long long) r->lowers,
		   (long long) r->late_raises, r->mean, (long long) r->final, (long long) r->peak,
		   r->wal / SIM_MB, r->time_paced);
	printf("%.0f,%lld,%lld,%.0f,%.0f,%.1f,%.1f,%s\n", r->hurried_time / 1000,
		   (long long) r->checkpoints[WALSIZER_CAUSE_TIMED].hurried,
		   (long long) old_value->hurried, old_value->hurried_time / 1000,
		   old_value->intervals / 1000, r->shortest / 1000, old_value->shortest / 1000,
		   r->broken ? r->broken : "");
}

static void
run_server(uint64_t seed, double days, const SimOptions *options, bool only_walsizer)
{
	static const SimPolicy policies[] = {SIM_WALSIZER, SIM_CLASSIC, SIM_SHRINKING, SIM_STATIC};
	SimLoad		load;
	int64_t		oracle;
	SimResult	r;

	make_server(&load, seed, days);
	oracle = sim_oracle(&load, options);
	for (int i = 0; i < (only_walsizer ? 1 : 4); i++)
	{
		sim_run(&load, policies[i], load.settings.max_wal_size_mb, options, &r);
		print_line(&load, sim_policy_name(policies[i]), oracle, &r);
	}
	free(load.pieces);
	fflush(stdout);
}

enum
{
	OPT_FIRST = 256, OPT_SERVERS, OPT_DAYS, OPT_INTERVAL, OPT_ONLY,
};

static const struct option long_options[] = {
	{"first", required_argument, NULL, OPT_FIRST},
	{"servers", required_argument, NULL, OPT_SERVERS},
	{"days", required_argument, NULL, OPT_DAYS},
	{"interval", required_argument, NULL, OPT_INTERVAL},
	{"only-walsizer", no_argument, NULL, OPT_ONLY},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

int
main(int argc, char **argv)
{
	SimOptions	options;
	uint64_t	first = 0;
	uint64_t	servers = 100;
	double		days = 30;
	bool		only_walsizer = false;
	int			c;

	sim_default_options(&options);
	options.check = true;
	options.config.sample_interval_ms = options.oracle_interval = (int64_t) PIECE * 1000;
	while ((c = getopt_long(argc, argv, "h", long_options, NULL)) != -1)
		switch (c)
		{
			case OPT_FIRST: first = strtoull(optarg, NULL, 0); break;
			case OPT_SERVERS: servers = strtoull(optarg, NULL, 0); break;
			case OPT_DAYS: days = atof(optarg); break;
			case OPT_INTERVAL: options.config.sample_interval_ms = atoll(optarg); break;
			case OPT_ONLY: only_walsizer = true; break;
			default:
				fputs(usage, c == 'h' ? stdout : stderr);
				return c == 'h' ? 0 : 2;
		}
	options.quiet_from = 7 * DAY * 1000;	/* late: after the first week */

	puts(heading);
	for (uint64_t i = first; i < first + servers; i++)
		run_server(i, days, &options, only_walsizer);
	return 0;
}
