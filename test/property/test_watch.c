/*-------------------------------------------------------------------------
 *
 * test_watch.c
 *	  walsizer-watch sees less than the worker, and later: does it decide the
 *	  same?
 *
 * Both look at the same model of a server, at the same moments: the worker at
 * its memory, the watcher at what SQL would show.  Nothing is applied.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "watch/watch.h"

#define LOADS			200
#define SAMPLES			2400
#define MB_PER_SEGMENT	16

/* What the server shows. */
typedef enum View
{
	VIEW_ALL,					/* as to a member of pg_monitor */
	VIEW_SLOW,					/* the same, from a busy server */
	VIEW_NO_PROCESS,			/* not what the checkpointer does */
	VIEW_POSITION,				/* nothing but the position and settings */
	VIEWS,
} View;

static const char *const view_names[VIEWS] = {"all", "all, slowly", "no process", "position only"};

/* ms between what a busy server looks at first and last, at most */
#define SLOW			200

typedef struct Both
{
	SimServer	server;
	WalsizerConfig config;

	/* the worker */
	WalsizerState worker;
	WalsizerDecision decision;
	int			raises;

	/* the watcher, and what SQL shows it */
	View		view;
	Watcher		watcher;
	Observation checkpoints;	/* but for the position, which is read last */
	int			watcher_raises;
	WalsizerWal wal;
	double		completed;
	double		started;		/* ms, when that checkpoint started */
	double		last;			/* redo pointer of the last one started */
	double		last_started;
} Both;

typedef struct Difference
{
	int64_t		forced;			/* checkpoints that only one of them saw */
	int64_t		wanted;			/* segments, the largest */
	int			raises;			/* runs in which only one of them raised */
	int			number;
	int			advised;		/* runs in which both say what a longer timeout saves */
	double		saved;			/* the largest difference, a part of the WAL */
	int			few_pages;		/* runs in which the watcher claims to know pages */
} Difference;

static void
work(Both *b)
{
	WalsizerSample sample = {0};

	sim_server_sample(&b->server, &sample);
	b->wal = sample.wal;
	if (b->worker.primed)
		sample.checkpoint_age = -1;
	sample.disk_tried = true;
	b->decision = walsizer_step(&b->config, &b->worker, &sample);
	b->raises += b->decision.action == WALSIZER_RAISE;
}

/* Note what SQL shows of checkpoints. */
static void
look_at_checkpoints(Both *b)
{
	const SimServer *s = &b->server;
	Observation seen = WATCH_NOTHING_SEEN;
	int64_t		unit = s->settings.segment_bytes / WATCH_UNITS_PER_SEGMENT;

	/* the control file has the last complete one; none starts before that */
	if (b->last != s->redo || !s->running)
	{
		b->completed = s->running ? b->last : s->redo;
		b->started = s->running ? b->last_started : s->redo_time;
		b->last = s->redo;
		b->last_started = s->redo_time;
	}
	seen.settings = s->settings;
	seen.completed = (int64_t) b->completed / unit * unit;
	seen.started_s = (int64_t) (b->started / 1000);
	seen.timer_s = seen.started_s;
	seen.busy = s->running;
	seen.requested = s->requested;
	seen.timed = s->timed;
	if (b->view >= VIEW_NO_PROCESS)
		seen.busy = WATCH_UNKNOWN;
	if (b->view >= VIEW_POSITION)
		seen.completed = seen.requested = seen.timed = WATCH_UNKNOWN;
	b->checkpoints = seen;
}

static void
look(Both *b, int64_t tick)
{
	const SimServer *s = &b->server;
	Observation seen = b->checkpoints;
	int64_t		unit = s->settings.segment_bytes / WATCH_UNITS_PER_SEGMENT;

	seen.tick = tick;
	seen.begins = tick == 0;
	if (b->view == VIEW_SLOW && tick == 0)
		seen.busy = 1;			/* with something else than a checkpoint */
	seen.position = (int64_t) s->pos / unit * unit;
	if (b->view < VIEW_POSITION)
		seen.wal = b->wal;
	(void) watch_observe(&b->watcher, &seen);
	b->watcher_raises += b->watcher.decision.action == WALSIZER_RAISE;
}

/* The watcher's statement reads the position last, a little after the rest. */
static void
advance(Both *b, double until, double rate, SimRandom *random)
{
	double		late = b->view == VIEW_SLOW ? sim_uniform(random, 0, SLOW) : 0;

	sim_server_advance(&b->server, until - late, rate);
	look_at_checkpoints(b);
	sim_server_advance(&b->server, until, rate);
}

/* A load that changes every few minutes, and now and then a CHECKPOINT. */
static void
run(Both *b, uint64_t seed)
{
	SimRandom	random = {seed};
	double		rate = 0;
	int64_t		until = 0;
	bool		commands = seed % 3 == 0;

	for (int64_t tick = 0; tick < SAMPLES; tick++)
	{
		if (tick >= until)
		{
			rate = sim_uniform(&random, 0, 1) < 0.3 ? 0 :
				sim_uniform(&random, 0.1, 12) * SIM_MB / 1000;
			until = tick + (int64_t) sim_uniform(&random, 5, 400);
		}
		if (commands && sim_uniform(&random, 0, 1) < 0.002)
			sim_server_checkpoint(&b->server);
		work(b);
		look(b, tick);
		advance(b, (double) (tick + 1) * 1000, rate * sim_uniform(&random, 0.7, 1.3), &random);
	}
}

static int64_t
forced(const WalsizerState *state)
{
	return state->checkpoints.total[WALSIZER_CAUSE_FORCED];
}

/* What both say of a timeout five times as long. */
static void
compare_advice(Both *b, Difference *all)
{
	WalsizerSample sample = {0};
	WalsizerTimeoutAdvice of_worker;
	WalsizerTimeoutAdvice of_watcher;

	sim_server_sample(&b->server, &sample);
	of_worker = walsizer_advise_timeout(&b->config, &b->worker, &sample,
										&b->decision.figures, 300000);
	of_watcher = walsizer_advise_timeout(&b->watcher.config, &b->watcher.state,
										 &b->watcher.sample,
										 &b->watcher.decision.figures, 300000);
	if (!of_worker.known || !of_watcher.known)
		return;
	all->advised++;
	all->saved = fmax(all->saved, fabs(of_worker.saved_least - of_watcher.saved_least));
	all->saved = fmax(all->saved, fabs(of_worker.saved_most - of_watcher.saved_most));
}

static void
compare(Both *b, Difference *all)
{
	int64_t		segment = b->server.settings.segment_bytes / WALSIZER_MB;
	int64_t		wanted = llabs((long long) (b->decision.figures.wanted_mb -
											b->watcher.decision.figures.wanted_mb)) / segment;

	all->number++;
	all->forced += llabs((long long) (forced(&b->worker) - forced(&b->watcher.state)));
	all->wanted = wanted > all->wanted ? wanted : all->wanted;
	all->raises += (b->raises > 0) != (b->watcher_raises > 0);
	all->few_pages += b->watcher.state.wal_contents.few_pages;
	compare_advice(b, all);
}

int
main(void)
{
	/* rounded positions may make a difference of one segment of WAL */
	const int64_t most_wanted[VIEWS] = {2, 6, 4, 12};
	const double most_missed[VIEWS] = {0, 0, 0.01, 0.03};
	/* a prediction depends on the moment */
	const int	most_raises[VIEWS] = {0, 1, 0, 0};
	const int	least_advised[VIEWS] = {90, 90, 90, 0};
	bool		good = true;

	for (View view = 0; view < VIEWS; view++)
	{
		Difference	all = {0};
		int64_t		forced_in_all = 0;

		for (int i = 0; i < LOADS; i++)
		{
			static Both b;		/* large */
			WalsizerSettings settings = {MB_PER_SEGMENT * WALSIZER_MB, 256 << i % 3, 0.9, 60000};
			Options		options = {0};
			SimOptions	defaults;

			memset(&b, 0, sizeof(b));
			sim_default_options(&defaults);
			b.config = options.config = defaults.config;
			b.config.replay_rate = options.config.replay_rate = 40.0 * SIM_MB;
			b.view = view;
			sim_server_init(&b.server, &settings);
			b.server.hot_pages = i % 2 * 5000;
			b.completed = b.last = b.server.redo;
			look_at_checkpoints(&b);
			watch_begin(&b.watcher, &options, 1000, 490000 * 3600);
			run(&b, (uint64_t) i + 1);
			compare(&b, &all);
			forced_in_all += forced(&b.worker);
		}
		printf("walsizer-watch, sees %s: of %lld forced checkpoints %lld differ, wanted sizes by at most %lld segments, raises in %d of %d runs, savings by %.2f in %d\n",
			   view_names[view], (long long) forced_in_all, (long long) all.forced,
			   (long long) all.wanted, all.raises, all.number, all.saved, all.advised);
		good &= forced_in_all > 1000 && all.wanted <= most_wanted[view] &&
			(double) all.forced <= most_missed[view] * (double) forced_in_all &&
			all.raises <= most_raises[view] && all.advised >= least_advised[view] &&
			all.saved <= 0.02 && all.few_pages == 0;
	}
	return good ? 0 : 1;
}
