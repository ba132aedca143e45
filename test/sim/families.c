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

/* A second at this rate (bytes per second), with some noise. */
static bool
a_second(SimLoad *load, double at, double rate, double noise, SimPiece *piece)
{
	if (at >= load->duration)
		return false;
	piece->ms = SECOND;
	piece->bytes = rate;
	if (noise > 0)
		piece->bytes *= exp(sim_uniform(&load->random, -noise, noise));
	piece->mark = SIM_NOTHING;
	return true;
}

static bool
steady(SimLoad *load, double at, SimPiece *piece)
{
	return a_second(load, at, load->rate, 0.05, piece);
}

static bool
constant(SimLoad *load, double at, SimPiece *piece)
{
	return a_second(load, at, load->rate, 0, piece);
}

static bool
noisy(SimLoad *load, double at, SimPiece *piece)
{
	return a_second(load, at, load->rate, 1.5, piece);
}

static bool
step(SimLoad *load, double at, SimPiece *piece)
{
	return a_second(load, at, at < load->duration / 5 ? load->rate / 20 : load->rate,
					0.05, piece);
}

static bool
ramp(SimLoad *load, double at, SimPiece *piece)
{
	return a_second(load, at, load->rate * at / load->duration, 0.05, piece);
}

static bool
sawtooth(SimLoad *load, double at, SimPiece *piece)
{
	return a_second(load, at, load->rate * fmod(at, 40 * MINUTE) / (40 * MINUTE), 0.1, piece);
}

static bool
bursts(SimLoad *load, double at, SimPiece *piece)
{
	bool		on = fmod(at, 90 * SECOND) >= 30 * SECOND && fmod(at, 90 * SECOND) < 50 * SECOND;

	return a_second(load, at, on ? load->rate : 1000, 0.05, piece);
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
	return a_second(load, at, of_the_day(at, load->rate), 0.3, piece);
}

static bool
growth(SimLoad *load, double at, SimPiece *piece)
{
	return a_second(load, at, of_the_day(at, load->rate * pow(10, at / load->duration)),
					0.3, piece);
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
	return a_second(load, at, load->level, 0.2, piece);
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
	return a_second(load, at, load->level, 0.1, piece);
}

/*
 * pgbench -i, twice: half a minute of rest, a COPY of 2GB that keeps its value,
 * the primary keys, a minute's rest.
 */
static bool
copies(SimLoad *load, double at, SimPiece *piece)
{
	double		t = fmod(at, 150 * SECOND);
	bool		copy = t >= 30 * SECOND && t < (30 + 34) * SECOND;
	bool		keys = t >= 65 * SECOND && t < 75 * SECOND;

	if (!a_second(load, at, copy || keys ? load->rate : 1000, 0.1, piece))
		return false;
	if (t == 29 * SECOND)
		piece->mark = SIM_BEGIN;
	if (t == (30 + 34) * SECOND)
		piece->mark = SIM_END;
	return true;
}

static bool
doubling(SimLoad *load, double at, SimPiece *piece)
{
	return a_second(load, at, load->rate / 8 * pow(2, floor(at / MINUTE)), 0.05, piece);
}

static bool
returning(SimLoad *load, double at, SimPiece *piece)
{
	bool		low = at >= 2 * MINUTE && at < 4 * MINUTE;

	return a_second(load, at, low ? load->rate / 40 : load->rate, 0.05, piece);
}

static bool
manual(SimLoad *load, double at, SimPiece *piece)
{
	if (!a_second(load, at, load->rate, 0, piece))
		return false;
	if (fmod(at, 5 * SECOND) == 4 * SECOND)
		piece->mark = SIM_CHECKPOINT;
	return true;
}

static bool
resets(SimLoad *load, double at, SimPiece *piece)
{
	if (!steady(load, at, piece))
		return false;
	if (fmod(at, 20 * SECOND) == 19 * SECOND)
		piece->mark = SIM_RESET_STATISTICS;
	return true;
}

/* A steady load over restarts, every fifth of them a crash. */
static bool
restarts(SimLoad *load, double at, SimPiece *piece)
{
	if (!steady(load, at, piece))
		return false;
	if (++load->number % 1700 == 0)
		piece->mark = load->number % 8500 == 0 ? SIM_CRASH : SIM_RESTART;
	return true;
}

typedef struct Family
{
	const char *name;
	SimNext		next;
	double		rate;			/* MB per second of logical WAL */
	double		duration;
	int64_t		timeout;		/* s */
	int64_t		max_wal_size;
	double		hot_pages;
	double		touch_bytes;
	bool		counts;			/* shown by default */
} Family;

/*
 * pgbench, TPC-B at scale 50: 85,000 pages, touched once in each transaction,
 * which logs 700 bytes beside the image.
 */
#define TPCB		85000, 700

static const Family families[] = {
	{"steady", steady, 4, 4 * HOUR, 300, 1024, 0, 0, true},
	{"step", step, 20, 4 * HOUR, 300, 1024, 0, 0, true},
	{"ramp", ramp, 20, 6 * HOUR, 300, 1024, 0, 0, true},
	{"diurnal", diurnal, 30, 14 * DAY, 300, 1024, 0, 0, true},
	{"bursts", bursts, 60, 6 * HOUR, 300, 1024, 0, 0, true},
	{"sawtooth", sawtooth, 20, 12 * HOUR, 300, 1024, 0, 0, true},
	{"random", random_levels, 40, 4 * DAY, 300, 1024, 0, 0, true},
	{"noisy", noisy, 5, 12 * HOUR, 300, 1024, 0, 0, true},
	{"gusts", gusts, 5, 12 * HOUR, 300, 1024, 0, 0, true},
	{"pages", steady, 1.3, 6 * HOUR, 300, 1024, 600000, 700, true},
	{"hot", steady, 2, 6 * HOUR, 300, 1024, 150000, 200, true},
	{"restarts", restarts, 10, 12 * HOUR, 300, 1024, 20000, 200, true},
	{"growth", growth, 4, 365 * DAY, 300, 1024, 20000, 200, false},

	/* the loads of the benchmarks, checkpoint_timeout = 30s */
	{"tpcb", steady, 3, 4 * MINUTE, 30, 128, TPCB, true},
	{"copies", copies, 60, 5 * MINUTE, 30, 256, 0, 0, true},
	{"bulk", bursts, 30, 6 * MINUTE, 30, 128, 0, 0, true},
	{"bulkfast", bursts, 130, 6 * MINUTE, 30, 128, 0, 0, true},
	{"tps", doubling, 0.56, 4 * MINUTE, 30, 128, TPCB, true},
	{"resets", resets, 3, 4 * MINUTE, 30, 128, TPCB, true},
	{"above", constant, 0.6, 5 * MINUTE, 30, 32, 0, 0, true},
	{"manual", manual, 0.002, 10 * MINUTE, 30, 128, 0, 0, true},
	{"return", returning, 0.56, 6 * MINUTE, 30, 128, TPCB, true},
};

#define NUM_FAMILIES	((int) (sizeof(families) / sizeof(families[0])))

const char *
sim_load_name(int i)
{
	return i >= 0 && i < NUM_FAMILIES ? families[i].name : NULL;
}

bool
sim_load_counts(int i)
{
	return i >= 0 && i < NUM_FAMILIES && families[i].counts;
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
	for (int i = 0; i < NUM_FAMILIES; i++)
	{
		const Family *f = &families[i];

		if (strcmp(f->name, name) != 0)
			continue;
		memset(load, 0, sizeof(*load));
		snprintf(load->name, sizeof(load->name), "%s", name);
		load->settings.segment_bytes = 16 * WALSIZER_MB;
		load->settings.max_wal_size_mb = f->max_wal_size;
		load->settings.completion_target = 0.9;
		load->settings.timeout_ms = f->timeout * 1000;
		load->hot_pages = f->hot_pages;
		load->touch_bytes = f->touch_bytes > 0 ? f->touch_bytes : 200;
		load->image_bytes = f->touch_bytes == 700 ? 8000 : 6000;
		load->duration = f->duration;
		load->rate = f->rate * SIM_MB;
		load->seed = seed;
		load->next = f->next;
		return true;
	}
	return false;
}
