/*-------------------------------------------------------------------------
 *
 * families.c
 *	  Loads that are made: the families, and the loads of the benchmarks.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <string.h>

#include "sim.h"

#define SECOND		1000.0
#define MINUTE		(60 * SECOND)
#define HOUR		(60 * MINUTE)
#define DAY			(24 * HOUR)

/* splitmix64: small, and the same everywhere */
uint64_t
sim_random(SimRandom *r)
{
	uint64_t	z = (r->state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

double
sim_uniform(SimRandom *r, double from, double to)
{
	return from + (to - from) * ((double) (sim_random(r) >> 11) / 9007199254740992.0);
}

bool
sim_chance(SimRandom *r, double probability)
{
	return sim_uniform(r, 0, 1) < probability;
}

/* Between the two, each order of magnitude as likely as the other. */
double
sim_any(SimRandom *r, double from, double to)
{
	return exp(sim_uniform(r, log(from), log(to)));
}

/* A second at this rate (bytes per second), with some noise. */
static bool
a_second(SimLoad *load, double at, double rate, SimPiece *piece)
{
	if (at >= load->duration)
		return false;
	*piece = (SimPiece) {SECOND, rate, SIM_NOTHING, 0};
	if (load->noise > 0)
		piece->bytes *= exp(sim_uniform(&load->random, -load->noise, load->noise));
	return true;
}

/* All jobs that go on. */
bool
sim_mixture(SimLoad *load, double at, SimPiece *piece)
{
	double		rate = 0;

	for (const SimJob *job = load->jobs; job->lasts > 0; job++)
	{
		double		since = at - job->first;

		if (since >= 0 && job->every > 0)
			since = fmod(since, job->every);
		if (since >= 0 && since < job->lasts)
			rate += job->rate * (job->ramp ? since / job->lasts : 1);
	}
	return a_second(load, at, rate * load->rate, piece);
}

/* Day and night, and an hour's load every night at three. */
static double
of_the_day(double at, double rate)
{
	double		hour = fmod(at / HOUR, 24);

	if (hour >= 3 && hour < 4)
		return rate;
	return rate / 15 * (1.1 - cos((hour - 3) / 24 * 2 * M_PI));
}

static bool
diurnal(SimLoad *load, double at, SimPiece *piece)
{
	return a_second(load, at, of_the_day(at, load->rate), piece);
}

static bool
growth(SimLoad *load, double at, SimPiece *piece)
{
	return a_second(load, at, of_the_day(at, load->rate * pow(10, at / load->duration)), piece);
}

/* Levels over two orders of magnitude, each for a while. */
static bool
random_levels(SimLoad *load, double at, SimPiece *piece)
{
	if (at >= load->level_until)
	{
		load->level = load->rate * exp(sim_uniform(&load->random, -4.6, 0));
		load->level_until = at + exp(sim_uniform(&load->random, log(10 * SECOND), log(30 * MINUTE)));
	}
	return a_second(load, at, load->level, piece);
}

/* One tenth of all seconds, at random, ten times the rate. */
static bool
gusts(SimLoad *load, double at, SimPiece *piece)
{
	if (at >= load->level_until)
	{
		load->level = sim_uniform(&load->random, 0, 1) < 0.1 ? load->rate * 10 : load->rate / 10;
		load->level_until = at + sim_uniform(&load->random, SECOND, 30 * SECOND);
	}
	return a_second(load, at, load->level, piece);
}

#define JOB(first, every, lasts, rate)	{first, every, lasts, rate, false}
#define RAMP(every)		{0, every, every, 1, true}
#define ALWAYS(rate)	JOB(0, 0, 1000 * DAY, rate)
#define NO_MORE			JOB(0, 0, 0, 0)

static const SimJob always[] = {ALWAYS(1), NO_MORE};
static const SimJob step[] = {ALWAYS(0.05), JOB(48 * MINUTE, 0, DAY, 0.95), NO_MORE};
static const SimJob ramp[] = {RAMP(6 * HOUR), NO_MORE};
static const SimJob sawtooth[] = {RAMP(40 * MINUTE), NO_MORE};
static const SimJob bursts[] = {
	JOB(30 * SECOND, 90 * SECOND, 20 * SECOND, 1), ALWAYS(0.00002), NO_MORE
};
static const SimJob doubling[] = {
	JOB(0, 0, MINUTE, 0.125), JOB(MINUTE, 0, MINUTE, 0.25), JOB(2 * MINUTE, 0, MINUTE, 0.5),
	JOB(3 * MINUTE, 0, MINUTE, 1), NO_MORE
};
static const SimJob returning[] = {
	JOB(0, 0, 2 * MINUTE, 1), JOB(2 * MINUTE, 0, 2 * MINUTE, 0.025),
	JOB(4 * MINUTE, 0, DAY, 1), NO_MORE
};

/* pgbench -i, twice: rest, a COPY of 2GB, the primary keys, a minute's rest. */
static const SimJob copies[] = {
	JOB(30 * SECOND, 150 * SECOND, 34 * SECOND, 1),
	JOB(65 * SECOND, 150 * SECOND, 10 * SECOND, 1), ALWAYS(0.00002), NO_MORE
};

/* A burst before a timed checkpoint is known, then comes a load that begins like it. */
static const SimJob known[] = {
	JOB(590 * SECOND, 0, 10 * SECOND, 47), JOB(2 * HOUR, 0, 250 * SECOND, 40), NO_MORE
};

/* Each of many bursts is known, and some begin as if they were more. */
static const SimJob gusty[] = {JOB(296 * SECOND, 308 * SECOND, 14 * SECOND, 1), NO_MORE};

/* A short burst, always the same, and one of gigabytes each hour. */
static const SimJob periodic[] = {ALWAYS(0.05), JOB(303 * SECOND, 607 * SECOND, 11 * SECOND, 109), NO_MORE};

/* One that is over before a raise helps, and needs none. */
static const SimJob brief[] = {ALWAYS(0.02), JOB(303 * SECOND, 20 * MINUTE, 4 * SECOND, 110), NO_MORE};
static const SimJob daily[] = {ALWAYS(0.02), JOB(303 * SECOND, DAY, 2 * SECOND, 235), NO_MORE};
static const SimJob hourly[] = {ALWAYS(0.05), JOB(2 * HOUR, 3667 * SECOND, 270 * SECOND, 11.4), NO_MORE};
static const SimJob nightly[] = {ALWAYS(0.1), JOB(3 * HOUR, DAY, HOUR, 20), NO_MORE};
static const SimJob waves[] = {
	ALWAYS(1), JOB(6 * MINUTE, 390 * SECOND, 156 * SECOND, 2), NO_MORE
};
static const SimJob drifting[] = {
	ALWAYS(0.1), JOB(3 * HOUR, DAY + 30 * MINUTE, HOUR, 20), NO_MORE
};

/* 45MB at 32MB, which is two segments, then nothing: the position stays in the second half. */
static const SimJob once[] = {JOB(10 * MINUTE, 0, MINUTE, 0.75), NO_MORE};

#define END				{0, 0, SIM_NOTHING, 0}

static const SimEvent manual[] = {{4 * SECOND, 5 * SECOND, SIM_CHECKPOINT, 0}, END};
static const SimEvent resets[] = {{19 * SECOND, 20 * SECOND, SIM_RESET_STATISTICS, 0}, END};

/* Every fifth restart is a crash. */
static const SimEvent restarts[] = {
	{8499 * SECOND, 8500 * SECOND, SIM_CRASH, 0},
	{1699 * SECOND, 1700 * SECOND, SIM_RESTART, 0}, END
};

/* The COPY keeps its value. */
static const SimEvent statements[] = {
	{29 * SECOND, 150 * SECOND, SIM_BEGIN, 0}, {64 * SECOND, 150 * SECOND, SIM_END, 0}, END
};

/* walsizer.max is too small, and is lifted. */
static const SimEvent lifted[] = {
	{0, 0, SIM_MAX, 1024}, {2 * HOUR, 0, SIM_MAX, 65536}, END
};

/* An administrator sets a value that was too small already. */
static const SimEvent smaller[] = {{2 * HOUR, 0, SIM_SIZE, 512}, END};
static const SimEvent reactive[] = {{0, 0, SIM_PREDICT, 0}, END};

/* Commands soon after a raise, farther apart than the old value allowed; then
 * as far apart, so that they look like a statement with an old value. */
static const SimEvent commands[] = {{20 * MINUTE, 150 * SECOND, SIM_CHECKPOINT, 0}, END};
static const SimEvent often[] = {{20 * MINUTE, 28 * SECOND, SIM_CHECKPOINT, 0}, END};
static const SimEvent outlasts[] = {{10 * MINUTE, 0, SIM_SLOW, 400 * SECOND}, END};

/* Others fill and free the disk. */
static const SimEvent swinging_disk[] = {
	{0, 25 * MINUTE, SIM_ROOM, 40 * 1024}, {12 * MINUTE, 25 * MINUTE, SIM_ROOM, 8 * 1024}, END
};

/* The file system has more than pg_wal, but not much more than that needs. */
static const SimEvent little_room[] = {{SECOND, 0, SIM_ROOM, 16 * 1024}, END};

/* Few records between page images, and then more. */
static const SimEvent swinging_share[] = {
	{0, 0, SIM_RECOVERY, 12 * SECOND},
	{SECOND, 23 * MINUTE, SIM_TOUCH, 600}, {11 * MINUTE, 23 * MINUTE, SIM_TOUCH, 1500}, END
};
static const SimEvent switches[] = {{20 * MINUTE, HOUR, SIM_SWITCH, 0}, END};
static const SimEvent backups[] = {
	{20 * MINUTE, HOUR, SIM_BACKUP, 0}, {20 * MINUTE + 2 * SECOND, HOUR, SIM_SWITCH, 0}, END
};
static const SimEvent padding[] = {{10 * MINUTE, SECOND, SIM_SWITCH, 0}, END};
static const SimEvent failing[] = {
	{2 * HOUR, 0, SIM_FAILING, 1}, {4 * HOUR, 0, SIM_FAILING, 0}, END
};
static const SimEvent clock_ahead[] = {{30 * HOUR, 0, SIM_CLOCK, 9 * 24}, END};
static const SimEvent shortened[] = {{12 * HOUR, 0, SIM_TIMEOUT, 300 * SECOND}, END};
static const SimEvent an_hour[] = {{0, 0, SIM_LOOKBACK, 1}, END};
static const SimEvent a_day[] = {{0, 0, SIM_LOOKBACK, 24}, END};

typedef struct Family
{
	const char *name;
	const SimJob *jobs;			/* for sim_mixture(), or */
	SimNext		next;
	const SimEvent *events;
	double		rate;			/* MB per second of logical WAL, times the jobs' */
	double		duration;
	double		noise;
	double		timeout;
	int64_t		max_wal_size;
	int64_t		segment;		/* MB */
	double		hot_pages;
	double		touch_bytes;
	double		image_bytes;
} Family;

#define DEFAULTS		300 * SECOND, 1024, 16
#define SMALL			300 * SECOND, 128, 16
#define QUICK(mb)		30 * SECOND, mb, 16
#define PAGES(number)	number, 200, 6000

/*
 * pgbench, TPC-B at scale 50: 85,000 pages, touched once in each transaction,
 * which logs 700 bytes beside the image.
 */
#define TPCB			85000, 700, 8000

static const Family families[] = {
	{"steady", always, NULL, NULL, 4, 4 * HOUR, 0.05, DEFAULTS, PAGES(0)},
	{"step", step, NULL, NULL, 20, 4 * HOUR, 0.05, DEFAULTS, PAGES(0)},
	{"ramp", ramp, NULL, NULL, 20, 6 * HOUR, 0.05, DEFAULTS, PAGES(0)},
	{"diurnal", NULL, diurnal, NULL, 30, 14 * DAY, 0.3, DEFAULTS, PAGES(0)},
	{"bursts", bursts, NULL, NULL, 60, 6 * HOUR, 0.05, DEFAULTS, PAGES(0)},
	{"sawtooth", sawtooth, NULL, NULL, 20, 12 * HOUR, 0.1, DEFAULTS, PAGES(0)},
	{"random", NULL, random_levels, NULL, 40, 4 * DAY, 0.2, DEFAULTS, PAGES(0)},
	{"noisy", always, NULL, NULL, 5, 12 * HOUR, 1.5, DEFAULTS, PAGES(0)},
	{"gusts", NULL, gusts, NULL, 5, 12 * HOUR, 0.1, DEFAULTS, PAGES(0)},
	{"pages", always, NULL, NULL, 1.3, 6 * HOUR, 0.05, DEFAULTS, 600000, 700, 8000},
	{"hot", always, NULL, NULL, 2, 6 * HOUR, 0.05, DEFAULTS, PAGES(150000)},
	{"restarts", always, NULL, restarts, 10, 12 * HOUR, 0.05, DEFAULTS, PAGES(20000)},
	{"growth", NULL, growth, NULL, 4, 365 * DAY, 0.3, DEFAULTS, PAGES(20000)},

	/* the loads of the benchmarks */
	{"tpcb", always, NULL, NULL, 3, 4 * MINUTE, 0.05, QUICK(128), TPCB},
	{"copies", copies, NULL, statements, 60, 5 * MINUTE, 0.1, QUICK(256), PAGES(0)},
	{"bulk", bursts, NULL, NULL, 30, 6 * MINUTE, 0.05, QUICK(128), PAGES(0)},
	{"bulkfast", bursts, NULL, NULL, 130, 6 * MINUTE, 0.05, QUICK(128), PAGES(0)},
	{"tps", doubling, NULL, NULL, 0.56, 4 * MINUTE, 0.05, QUICK(128), TPCB},
	{"resets", always, NULL, resets, 3, 4 * MINUTE, 0.05, QUICK(128), TPCB},
	{"above", always, NULL, NULL, 0.6, 5 * MINUTE, 0, QUICK(32), PAGES(0)},
	{"manual", always, NULL, manual, 0.002, 10 * MINUTE, 0, QUICK(128), PAGES(0)},
	{"return", returning, NULL, NULL, 0.56, 6 * MINUTE, 0.05, QUICK(128), TPCB},
};

#define NUM_FAMILIES	((int) (sizeof(families) / sizeof(families[0])))

/* Each for one thing that can go wrong. */
static const Family scenes[] = {
	{"lifted", always, NULL, lifted, 2, 6 * HOUR, 0.05, DEFAULTS, PAGES(100000)},
	{"smaller", always, NULL, smaller, 2, 6 * HOUR, 0.05, DEFAULTS, PAGES(100000)},
	{"reactive", always, NULL, reactive, 2, 6 * HOUR, 0.05, DEFAULTS, PAGES(100000)},
	{"commands", always, NULL, commands, 2, 6 * HOUR, 0.05, DEFAULTS, PAGES(100000)},
	{"often", ramp, NULL, often, 5, 6 * HOUR, 0.2, DEFAULTS, 120000, 800, 6000},
	{"known", known, NULL, NULL, 1, 3 * HOUR, 0, DEFAULTS, PAGES(0)},
	{"gusty", gusty, NULL, NULL, 20.5, 2 * DAY, 0.95, DEFAULTS, PAGES(0)},
	{"periodic", periodic, NULL, NULL, 1, 3 * DAY, 0.1, DEFAULTS, PAGES(0)},
	{"brief", brief, NULL, NULL, 1, 20 * DAY, 0.1, DEFAULTS, PAGES(0)},
	{"daily", daily, NULL, NULL, 1, 30 * DAY, 0.1, DEFAULTS, PAGES(0)},
	{"room", hourly, NULL, little_room, 1, 3 * DAY, 0.05, DEFAULTS, PAGES(0)},
	{"outlasts", always, NULL, outlasts, 4, 4 * HOUR, 0.3, DEFAULTS, PAGES(0)},
	{"disk", always, NULL, swinging_disk, 10, 2 * DAY, 0.3, DEFAULTS, PAGES(0)},
	{"share", waves, NULL, swinging_share, 8, 2 * DAY, 0.3, DEFAULTS, 1e9, 1100, 8000},
	{"switches", always, NULL, switches, 0.00001, 6 * HOUR, 0, SMALL, PAGES(0)},
	{"backups", always, NULL, backups, 0.00001, 6 * HOUR, 0, SMALL, PAGES(0)},
	{"backups64", always, NULL, backups, 0.00001, 6 * HOUR, 0, 300 * SECOND, 1024, 64, PAGES(0)},
	{"padding", always, NULL, padding, 0.1, 2 * HOUR, 0, SMALL, PAGES(0)},
	{"failing", always, NULL, failing, 4, 6 * HOUR, 0.05, DEFAULTS, PAGES(20000)},
	{"clock", nightly, NULL, clock_ahead, 1, 3 * DAY, 0.05, DEFAULTS, PAGES(0)},
	{"drifting", drifting, NULL, a_day, 1, 6 * DAY, 0.05, DEFAULTS, PAGES(0)},
	{"shortened", always, NULL, shortened, 4, 3 * DAY, 0.05, HOUR, 1024, 16, PAGES(0)},
	{"once", once, NULL, an_hour, 1, 8 * HOUR, 0, 300 * SECOND, 32, 16, PAGES(0)},
};

#define NUM_SCENES		((int) (sizeof(scenes) / sizeof(scenes[0])))

static const Family *
family(int i)
{
	if (i < NUM_FAMILIES)
		return &families[i];
	return i < NUM_FAMILIES + NUM_SCENES ? &scenes[i - NUM_FAMILIES] : NULL;
}

const char *
sim_load_name(int i)
{
	return family(i) != NULL ? family(i)->name : NULL;
}

bool
sim_load_is_scene(int i)
{
	return i >= NUM_FAMILIES;
}

bool
sim_load_counts(int i)
{
	return i < NUM_FAMILIES && families[i].duration < 30 * DAY;
}

/* Begin again, with the same random numbers. */
void
sim_load_rewind(SimLoad *load)
{
	load->random.state = load->seed;
	load->level = 0;
	load->level_until = 0;
	load->number = 0;
}

bool
sim_load_find(SimLoad *load, const char *name, uint64_t seed)
{
	const Family *f;

	for (int i = 0; (f = family(i)) != NULL; i++)
	{
		if (strcmp(f->name, name) != 0)
			continue;
		*load = (SimLoad) {
			.settings = {f->segment * WALSIZER_MB, f->max_wal_size, 0.9, (int64_t) f->timeout},
			.hot_pages = f->hot_pages, .touch_bytes = f->touch_bytes,
			.image_bytes = f->image_bytes, .duration = f->duration, .rate = f->rate * SIM_MB,
			.seed = seed, .next = f->next ? f->next : sim_mixture, .jobs = f->jobs,
			.events = f->events, .noise = f->noise,
		};
		snprintf(load->name, sizeof(load->name), "%s", name);
		return true;
	}
	return false;
}

static bool
is_due(const SimEvent *event, double at, double ms)
{
	double		since = at - event->first;

	if (event->every > 0 && since >= 0)
		since = fmod(since, event->every);
	return since > -ms / 2 && since < ms / 2;
}

/* The next piece, with what happens then. */
bool
sim_next_piece(SimLoad *load, double at, SimPiece *piece)
{
	if (!load->next(load, at, piece))
		return false;
	for (const SimEvent *event = load->events; event && event->mark != SIM_NOTHING; event++)
		if (is_due(event, at, piece->ms))
		{
			piece->mark = event->mark;
			piece->value = event->value;
			break;
		}
	return true;
}
