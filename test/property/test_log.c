/*-------------------------------------------------------------------------
 *
 * test_log.c
 *	  walsizer-watch --log sees only checkpoints: does it find the settings, and a
 *	  size that is right?
 *
 * A model of a server writes its log.  The same load, on a server whose
 * max_wal_size is never too small, tells which size is needed.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stdlib.h>

#include "sim.h"
#include "watch/log.h"

#define LOADS		24
#define STEP		50			/* ms */
#define LATE		1.5			/* s: a timed checkpoint may be so much later */
#define FASTEST		6			/* MB per second */
#define LASTS		2400000		/* ms */
#define START		1700000000000
#define MOST_TIMEOUT 300000

/* The rate changes every few minutes; bytes for each ms. */
static double
rate_at(uint64_t seed, int64_t ms)
{
	SimRandom	random = {seed * 1000003 + (uint64_t) (ms / 200000)};

	(void) sim_random(&random);
	return sim_uniform(&random, 0, 1) < 0.2 ? 0.001 : sim_uniform(&random, 0.5, FASTEST) * SIM_MB / 1000;
}

/* Run the load and give what the server logs to "log", unless it is NULL. */
static double
run(SimServer *s, uint64_t seed, Log *log, bool positions, bool milliseconds)
{
	static double ring[MOST_TIMEOUT / STEP + 1];
	int			window = (int) (s->settings.timeout_ms / STEP);
	double		most = 0;
	double		redo = s->redo;
	double		completed = s->redo;
	double		started = 0;
	double		estimate = 0;
	bool		running = false;
	int64_t		timed = 0;

	for (int64_t tick = 0; tick * STEP < LASTS; tick++)
	{
		LogRecord	message;
		int64_t		ms;
		double		ended = completed;

		ring[tick % (window + 1)] = s->pos;
		if (tick >= window)
			most = fmax(most, s->pos - ring[(tick + 1) % (window + 1)]);
		sim_server_advance(s, (double) ((tick + 1) * STEP), rate_at(seed, tick * STEP));
		if (log == NULL)
			continue;
		ms = START + (int64_t) s->now;
		if (!milliseconds)
			ms -= ms % 1000;
		if (running && (!s->running || s->redo != redo))
		{
			double		distance = redo - completed;

			estimate = distance > estimate ? distance : 0.9 * estimate + 0.1 * distance;
			message = (LogRecord) {.kind = LOG_COMPLETE, .ms = ms, .pid = 77,
				.total_ms = (int64_t) (s->now - started), .write_ms = (int64_t) (s->now - started),
				.distance = (int64_t) (distance / 1024) * 1024,
				.estimate = (int64_t) (estimate / 1024) * 1024,
				.lsn = positions ? (uint64_t) s->pos : 0, .redo = positions ? (uint64_t) redo : 0};
			watch_log_take(log, &message);
			ended = redo;
		}
		if (s->redo != redo)
		{
			message = (LogRecord) {.kind = LOG_STARTING, .ms = ms, .pid = 77,
				.flags = LOG_CAUSE_KNOWN | (s->timed + s->late_timed != timed ? LOG_TIME : LOG_WAL)};
			watch_log_take(log, &message);
			redo = s->redo;
			started = s->now;
		}
		timed = s->timed + s->late_timed;
		completed = ended;
		running = s->running;
	}
	return most;
}

typedef struct Results
{
	int			number;
	int			too_small;		/* sizes */
	double		least;			/* size, divided by the one needed */
	double		most;
	int			wrong;			/* settings */
	int			outside;		/* true demand outside of the range */
} Results;

static void
compare(uint64_t seed, bool positions, bool milliseconds, Results *all)
{
	static Watcher watcher;		/* large */
	static const int64_t timeouts[] = {60000, 120000, 300000};
	WalsizerSettings settings = {16 * WALSIZER_MB, 256 << seed % 4, 0.9, timeouts[seed % 3]};
	WalsizerSettings ample = settings;
	Options		options = {.log = true, .config = walsizer_default, .given = {.completion_target = -1}};
	Log		   *log = watch_log_begin(&options);
	SimServer	server;
	double		hot_pages = (double) (seed % 2) * 5000;
	double		seen;
	double		ratio;
	int64_t		needed;

	sim_server_init(&server, &settings);
	server.hot_pages = hot_pages;
	seen = run(&server, seed, log, positions, milliseconds);
	ample.max_wal_size_mb = 65536;
	sim_server_init(&server, &ample);
	server.hot_pages = hot_pages;
	needed = walsizer_size_for((int64_t) run(&server, seed, NULL, false, false), &settings);

	watch_log_end(log);
	watch_log_judge(log, &watcher);
	ratio = (double) watch_judge(&watcher).wanted_mb / (double) needed;
	all->number++;
	all->too_small += ratio < 1;
	all->least = all->number == 1 ? ratio : fmin(all->least, ratio);
	all->most = fmax(all->most, ratio);
	all->wrong += watcher.sample.settings.timeout_ms != settings.timeout_ms ||
		(!(log->found.assumed & WATCH_ASSUMED_SIZE) &&
		 watcher.sample.settings.max_wal_size_mb != settings.max_wal_size_mb);
	all->outside += (double) log->found.least > seen + LATE * FASTEST * SIM_MB;
	free(log->records);
	free(log);
}

int
main(void)
{
	bool		good = true;

	for (int kind = 0; kind < 3; kind++)
	{
		static const char *const names[] = {"whole seconds", "milliseconds", "positions"};
		Results		all = {0};

		for (int i = 0; i < LOADS; i++)
			compare((uint64_t) i + 1, kind == 2, kind > 0, &all);
		printf("walsizer-watch --log, %s: of %d sizes %d too small, %.2f to %.2f times what was needed; %d with wrong settings, %d least demands too large\n",
			   names[kind], all.number, all.too_small, all.least, all.most, all.wrong, all.outside);
		good &= all.wrong == 0 && all.outside == 0 && all.least >= 0.75;
	}
	return good ? 0 : 1;
}
