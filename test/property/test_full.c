/*-------------------------------------------------------------------------
 *
 * test_full.c
 *	  Random loads on a file system that they may fill, shared with others.
 *
 *		test_full [--cases=N] [--seed=N] [--verbose]
 *
 * The server must not end, unless the load becomes faster at the last moment than it
 * was.  A request is for nothing if without it, until the server's own next
 * checkpoint is complete, at least half of the room that there was would have been
 * left.  A load that becomes slow after the request makes one of these.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define STEP			100.0	/* ms between two looks at the truth */
#define DURATION		900000.0	/* ms */
#define PHASES			64

/*
 * Of the requests, with steady and with random loads; and of the servers that end
 * without: for this seed none, with twelve seeds 7 of 1480.  In six the load, or what
 * others take, became about twice as fast in the last seconds; in one others took a
 * part of the last segment of 16 MB.
 */
#define STEADY_FOR_NOTHING	0.001
#define RANDOM_FOR_NOTHING	0.02
#define RANDOM_FULL			0.005

typedef struct World
{
	SimServer	server;
	double		volume;			/* bytes */
	double		until[PHASES];	/* ms: this phase ends */
	double		rate[PHASES];	/* bytes per ms of WAL in it */
	double		others_from;	/* ms: others begin to take space */
	double		others_rate;	/* bytes per ms */
	double		others_most;	/* bytes */
	double		others;			/* bytes, now */
	bool		requests;		/* are they carried out? */
	bool		full;			/* there was no room for a segment */
	int64_t		number;			/* of requests */
	int64_t		for_nothing;
} World;

static bool verbose;

/* The end of pg_wal: the segment that is written, or the last one that was recycled. */
static double
end_of_files(const SimServer *s)
{
	double		size = (double) s->settings.segment_bytes;

	return fmax(ceil(s->pos / size) * size, sim_segment_start(s, s->files_to));
}

static double
occupied(const SimServer *s)
{
	return end_of_files(s) - sim_segment_start(s, s->files_from);
}

static double
ahead(const SimServer *s)
{
	return fmax(0, end_of_files(s) - sim_segment_start(s, s->pos) - (double) s->settings.segment_bytes);
}

/* What WAL has not taken others may take. */
static void
go_on(World *w)
{
	SimServer  *s = &w->server;
	int			phase = 0;

	while (phase < PHASES - 1 && w->until[phase] <= s->now)
		phase++;
	sim_server_advance(s, s->now + STEP, w->rate[phase]);
	/* the model may recycle a segment too many */
	w->full |= occupied(s) - ahead(s) + w->others > w->volume;
	w->others = fmax(w->others, fmin(fmin((s->now - w->others_from) * w->others_rate, w->others_most),
									 w->volume - occupied(s)));
}

/* For WAL. */
static double
room(const World *w)
{
	return w->volume - occupied(&w->server) - w->others + ahead(&w->server);
}

/*
 * Would the space have sufficed?  Go on without the request, until a checkpoint that
 * began later is complete.
 */
static bool
is_for_nothing(const World *w)
{
	World		without = *w;
	double		pos = w->server.pos;
	double		least = room(w);

	while (without.server.completed < pos && without.server.now < 2 * DURATION)
	{
		go_on(&without);
		least = fmin(least, room(&without));
	}
	return least >= room(w) / 2;
}

static void
tick(World *w, const WalsizerConfig *config, WalsizerState *state)
{
	WalsizerSample sample = {0};
	SimServer  *s = &w->server;

	sim_server_sample(s, &sample);
	sample.disk_tried = sample.disk_read = walsizer_look_is_due(config, state, &sample);
	sample.disk_free = (int64_t) fmax(0, w->volume - occupied(s) - w->others);
	sample.disk_wal = (int64_t) occupied(s);
	sample.disk_ahead = (int64_t) ahead(s);
	sample.disk_removable = (int64_t) (sim_segment_start(s, s->pos) - sim_segment_start(s, s->files_from));
	if (walsizer_step(config, state, &sample).action != WALSIZER_CHECKPOINT || !w->requests)
		return;
	w->number++;
	w->for_nothing += is_for_nothing(w);
	sim_server_request(s);
}

static void
run(World *w)
{
	static WalsizerState state;
	WalsizerConfig config = walsizer_default;
	double		next = STEP;

	memset(&state, 0, sizeof(state));
	config.max_mb = 2;			/* the value is an administrator's */
	while (w->server.now < DURATION && !w->full)
	{
		go_on(w);
		if (w->server.now < next)
			continue;
		tick(w, &config, &state);
		next += (double) config.sample_interval_ms;
	}
}

/*
 * A server whose max_wal_size may exceed its volume.  A checkpoint that is requested
 * is fast enough, and others leave enough, for one to help: it takes less than
 * what writes a tenth of the volume.
 */
static void
begin(World *w, SimRandom *random, bool steady)
{
	static const int64_t timeouts[] = {30, 300, 1800};
	int64_t		segment_mb = INT64_C(1) << (2 * (sim_random(random) % 4));
	double		volume_mb = fmax(exp(sim_uniform(random, log(300), log(20000))), 24 * (double) segment_mb);
	double		most = exp(sim_uniform(random, log(1), log(fmin(300, volume_mb / 30))));
	double		size_mb = volume_mb * exp(sim_uniform(random, log(0.2), log(8)));
	int64_t		timeout = timeouts[sim_random(random) % 3];
	WalsizerSettings settings = {segment_mb * WALSIZER_MB, (int64_t) size_mb, 0.9, timeout * 1000};
	double		at = 0;

	memset(w, 0, sizeof(*w));
	sim_server_init(&w->server, &settings);
	w->server.min_wal = 2.0 * (double) segment_mb * SIM_MB;
	w->server.fast_ms = sim_uniform(random, 100, fmin(10000, 100 * volume_mb / most));
	w->volume = volume_mb * SIM_MB;
	w->requests = true;
	for (int i = 0; i < PHASES; i++)
	{
		at += sim_uniform(random, 2000, 60000);
		w->until[i] = steady ? INFINITY : at;
		w->rate[i] = most * SIM_MB / 1000 * (steady ? 1 : sim_chance(random, 0.3) ? 0 : sim_uniform(random, 0.05, 1));
	}
	if (!sim_chance(random, 0.5))
		return;
	w->others_from = sim_uniform(random, 0, DURATION / 2);
	w->others_most = w->volume * sim_uniform(random, 0, 0.5);
	w->others_rate = steady ? 0 : most * SIM_MB / 1000 * sim_uniform(random, 0.1, 1);
}

int
main(int argc, char **argv)
{
	int			cases = 1000;
	SimRandom	random = {77};
	int64_t		number[2] = {0};
	int64_t		for_nothing[2] = {0};
	int			ended[2][2] = {{0}};	/* without, with requests */

	for (int i = 1; i < argc; i++)
	{
		if (strncmp(argv[i], "--cases=", 8) == 0)
			cases = atoi(argv[i] + 8);
		else if (strncmp(argv[i], "--seed=", 7) == 0)
			random.state = strtoull(argv[i] + 7, NULL, 10);
		else
			verbose = true;
	}
	for (int i = 0; i < cases; i++)
	{
		bool		steady = i % 2 == 0;
		World		w;
		World		without;

		begin(&w, &random, steady);
		without = w;
		without.requests = false;
		run(&without);
		run(&w);
		ended[steady][0] += without.full;
		ended[steady][1] += w.full;
		number[steady] += w.number;
		for_nothing[steady] += w.for_nothing;
		if (verbose)
			printf("%4d %s volume %6.0fMB, segments %2lldMB, max_wal_size %6lldMB, T %4lld s, fast %5.0f ms, at most %3.0f MB/s, others %5.0fMB: "
				   "%s, without requests %s, %lld requests, %lld for nothing\n", i, steady ? "steady" : "random",
				   w.volume / SIM_MB, (long long) (w.server.settings.segment_bytes / WALSIZER_MB),
				   (long long) w.server.settings.max_wal_size_mb, (long long) w.server.settings.timeout_ms / 1000,
				   w.server.fast_ms, w.rate[0] * 1000 / SIM_MB, w.others_most / SIM_MB,
				   w.full ? "FULL" : "lives", without.full ? "full" : "lives", (long long) w.number, (long long) w.for_nothing);
	}
	printf("full volumes: %d servers, requests for nothing: %lld of %lld (steady loads), %lld of %lld (random)\n"
		   "ended without requests, and with them: %d and %d (steady), %d and %d (random)\n",
		   cases, (long long) for_nothing[1], (long long) number[1], (long long) for_nothing[0], (long long) number[0],
		   ended[1][0], ended[1][1], ended[0][0], ended[0][1]);
	return ended[1][0] < cases / 20 || ended[1][1] > 0 ||
		ended[0][1] > RANDOM_FULL * ended[0][0] ||
		(double) for_nothing[1] > STEADY_FOR_NOTHING * (double) number[1] ||
		(double) for_nothing[0] > RANDOM_FOR_NOTHING * (double) number[0];
}
