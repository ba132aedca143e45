/*-------------------------------------------------------------------------
 *
 * search.c
 *	  A random search for the worst that walsizer does: mixtures of jobs, page
 *	  images and commands, each made from a seed.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define SECOND		1000.0
#define MINUTE		(60 * SECOND)
#define HOUR		(60 * MINUTE)
#define DAY			(24 * HOUR)

#define NUM_JOBS	9
#define NUM_EVENTS	12

#define FASTEST		(300 * SIM_MB)	/* images that a server writes in a second */

/* One load, and what walsizer runs with. */
typedef struct Trial
{
	SimRandom	r;
	SimLoad		load;
	SimOptions	options;
	SimJob		jobs[NUM_JOBS + 1];
	SimEvent	events[NUM_EVENTS + 1];
	int			num_jobs;
	int			num_events;
} Trial;

/*
 * What is measured of each trial; more is worse.  The limit is for the 99th
 * percentile, or for the worst.
 */
enum
{
	PREVENTABLE, COMMANDED, MISJUDGED, FINAL, CHANGES, SWINGS, NUM_FIGURES,
};

static const struct
{
	const char *name;
	const char *limit;
	bool		p99;
	double		fine;			/* no seeds are shown up to this */
}			figures[NUM_FIGURES] = {
	[PREVENTABLE] = {"preventable forced checkpoints", "preventable", false, 0},
	[COMMANDED] = {"raises for a command", "commanded", false, 0},
	[MISJUDGED] = {"commands taken for forced", "misjudged", true, 0},
	[FINAL] = {"final size over oracle's", "final", true, 1.3},
	[CHANGES] = {"changes a day after the first", "changes", true, 4},
	[SWINGS] = {"changes a day", "swings", true, 12},
};

typedef struct Outcome
{
	uint64_t	seed;
	double		figures[NUM_FIGURES];	/* -1: not known */
} Outcome;

static void
add_job(Trial *t, double first, double every, double lasts, double rate, bool ramp)
{
	t->jobs[t->num_jobs++] = (SimJob) {first, every, lasts, rate, ramp};
}

/* At a whole second, so that it happens in one. */
static void
add_event(Trial *t, double first, double every, SimMark mark, double value)
{
	t->events[t->num_events++] = (SimEvent) {
		rint(first / SECOND) * SECOND, rint(every / SECOND) * SECOND, mark, value
	};
}

/* The WAL per touch with which all jobs together cause no more images than that. */
static double
least_touch(const Trial *t)
{
	double		rate = 0;

	for (int i = 0; i < t->num_jobs; i++)
		rate += t->jobs[i].rate;
	return t->load.image_bytes * rate * t->load.rate / FASTEST;
}

static void
add_jobs(Trial *t)
{
	SimRandom  *r = &t->r;
	double		duration = t->load.duration;
	double		timeout = (double) t->load.settings.timeout_ms;
	double		trigger = (double) walsizer_trigger_point(t->load.settings.max_wal_size_mb,
														  &t->load.settings);
	bool		quiet = false;
	double		every;
	double		first;
	double		lasts;
	double		rate;

	add_job(t, 0, 0, duration, 0, false);
	for (int i = 0; i < 2; i++)
		if (sim_chance(r, 0.4))	/* bursts */
		{
			every = sim_any(r, 30 * SECOND, 3 * HOUR);
			rate = sim_any(r, 0.5, 25);
			lasts = every * sim_uniform(r, 0.02, 0.6);
			first = sim_uniform(r, 0, every);
			add_job(t, first, every, lasts, rate, false);
		}
	if (sim_chance(r, 0.25))	/* ramps */
	{
		every = sim_any(r, 10 * MINUTE, duration);
		add_job(t, 0, every, every, sim_any(r, 1, 20), true);
	}
	if (sim_chance(r, 0.4))		/* nightly */
	{
		rate = sim_any(r, 2, 25);
		lasts = sim_any(r, MINUTE, 3 * HOUR);
		first = sim_uniform(r, 0, DAY / 2);
		add_job(t, first, DAY, lasts, rate, false);
	}
	for (int i = 0; i < 2; i++)
		if (sim_chance(r, 0.3))	/* once */
		{
			rate = sim_any(r, 2, 40);
			lasts = sim_any(r, 5 * SECOND, HOUR);
			first = sim_uniform(r, 0, duration);
			add_job(t, first, 0, lasts, rate, false);
		}
	if (sim_chance(r, 0.2))		/* nearly too much is known, then comes more */
	{
		lasts = sim_any(r, 3 * SECOND, MINUTE);
		rate = sim_uniform(r, 0.7, 1) * trigger / SIM_MB / (lasts / SECOND);
		add_job(t, 3 * timeout - lasts, 0, lasts, rate, false);
		rate = sim_any(r, 5, 40);
		lasts = sim_any(r, 0.3, 1) * timeout;
		first = sim_uniform(r, 4 * timeout, duration);
		add_job(t, first, 0, lasts, rate, false);
		quiet = true;
	}
	t->jobs[0].rate = sim_any(r, 0.001, quiet ? 0.1 : 8);
	t->load.noise = sim_uniform(r, 0.02, quiet ? 0.3 : 1.2);
	if (sim_chance(r, quiet ? 0.2 : 0.6))
		t->load.hot_pages = sim_any(r, 1000, 500000);
	t->load.image_bytes = sim_uniform(r, 3000, 8000);
	t->load.touch_bytes = fmax(sim_any(r, 100, 1000), least_touch(t));
}

/* The ends come first: none of them may be lost to another event. */
static void
add_commands(Trial *t)
{
	SimRandom  *r = &t->r;
	double		first = sim_uniform(r, 0, HOUR);
	double		every;

	if (sim_chance(r, 0.2))		/* statements that keep their value */
	{
		every = sim_any(r, 10 * MINUTE, 6 * HOUR);
		add_event(t, first + every * sim_uniform(r, 0.1, 0.9), every, SIM_END, 0);
		add_event(t, first, every, SIM_BEGIN, 0);
	}
	if (sim_chance(r, 0.25))	/* base backups */
	{
		every = sim_any(r, 20 * MINUTE, DAY / 2);
		add_event(t, first + sim_any(r, 2 * SECOND, 15 * MINUTE), every, SIM_SWITCH, 0);
		add_event(t, first, every, SIM_BACKUP, 0);
	}
	if (sim_chance(r, 0.25))
		add_event(t, 0, sim_any(r, 10 * SECOND, HOUR), SIM_SWITCH, 0);
	if (sim_chance(r, 0.4))
		add_event(t, first, sim_any(r, 20 * SECOND, 3 * HOUR), SIM_CHECKPOINT, 0);
}

static void
choose_settings(Trial *t)
{
	SimRandom  *r = &t->r;
	WalsizerSettings *s = &t->load.settings;
	WalsizerConfig *config = &t->options.config;
	int64_t		segment = INT64_C(1) << (int) sim_uniform(r, 0, 8);

	s->segment_bytes = segment * WALSIZER_MB;
	s->max_wal_size_mb = (int64_t) sim_any(r, 2, 64) * (segment > 16 ? segment : 16);
	s->timeout_ms = (int64_t) sim_any(r, 30, 3600) * 1000;
	s->completion_target = sim_chance(r, 0.5) ? 0.9 : sim_uniform(r, 0, 1);
	config->predict = sim_chance(r, 0.85);
	config->headroom = sim_chance(r, 0.5) ? 1.2 : sim_uniform(r, 1, 2);
	config->threshold = (int) sim_any(r, 1, 4);
	config->lookback_hours = (int64_t) sim_any(r, 1, 300);
	config->sample_interval_ms = (int64_t) sim_any(r, 500, 20000);
	config->max_mb = (int64_t) sim_any(r, 512, 262144);
	if (sim_chance(r, 0.15))
	{
		double		lasts = sim_uniform(r, 0.5, 2) * (double) s->timeout_ms;
		double		first = sim_uniform(r, 0, t->load.duration);

		add_event(t, first, 0, SIM_SLOW, lasts);
	}
}

/* Free space, or what WAL consists of, between two levels. */
static void
swing(Trial *t)
{
	SimRandom  *r = &t->r;
	double		every = sim_any(r, MINUTE, 6 * HOUR);
	bool		disk = sim_chance(r, 0.5);

	if (!disk)
	{
		add_event(t, 0, 0, SIM_RECOVERY, sim_any(r, 10, 600) * SECOND);
		t->load.hot_pages = sim_any(r, 10000, 1e9);
		t->load.image_bytes = sim_uniform(r, 6000, 8100);
	}
	for (int i = 0; i < 2; i++)
	{
		double		value = disk ? sim_any(r, 2 * 1024, 64 * 1024) :
			fmax(sim_any(r, 200, 3000), least_touch(t));
		double		first = SECOND + i * every * sim_uniform(r, 0.1, 0.9);

		add_event(t, first, every, disk ? SIM_ROOM : SIM_TOUCH, value);
	}
}

static void
make_trial(Trial *t, const SimOptions *options, uint64_t seed, SimSearch search)
{
	memset(t, 0, sizeof(*t));
	t->r.state = seed * 7919 + 1;
	t->options = *options;
	t->options.config.max_mb = walsizer_default.max_mb;
	t->options.check = true;
	t->options.quiet_from = DAY;
	t->load.settings = (WalsizerSettings) {16 * WALSIZER_MB, 1024, 0.9, 300 * 1000};
	t->load.duration = rint(sim_uniform(&t->r, 0.6, 0.7) * DAY / SECOND) * SECOND;
	if (seed % 4 == 0)			/* one in four has a second whole day */
		t->load.duration = 2 * DAY;
	t->load.rate = SIM_MB;
	t->load.seed = seed;
	t->load.next = sim_mixture;
	t->load.jobs = t->jobs;
	t->load.events = t->events;
	if (search == SIM_SEARCH_ANY)
		choose_settings(t);
	add_jobs(t);
	if (search == SIM_SEARCH_SWING)
	{
		t->load.duration = fmax(t->load.duration, DAY);
		swing(t);
	}
	add_commands(t);
}

static Outcome
run_trial(Trial *t)
{
	const WalsizerConfig *config = &t->options.config;
	double		days = t->load.duration / DAY;
	double		least;
	SimResult	r;

	least = fmin((double) sim_oracle(&t->load, &t->options), (double) config->max_mb);
	least = fmax(least, (double) t->load.settings.max_wal_size_mb);
	sim_run(&t->load, SIM_WALSIZER, 0, &t->options, &r);
	if (r.broken != NULL)
		printf("seed %llu: %s\n", (unsigned long long) t->load.seed, r.broken);
	return (Outcome) {t->load.seed, {
			[PREVENTABLE] = (double) r.preventable,
			[COMMANDED] = (double) r.commanded,
			[MISJUDGED] = (double) r.misjudged,
			[FINAL] = (double) r.final / least,
			[CHANGES] = days > 1 ? (double) (r.late_raises + r.late_lowers) / (days - 1) : -1,
			[SWINGS] = (double) (r.raises + r.lowers) / days,
	}};
}

/* The load and the settings of one trial. */
static void
describe(const Trial *t)
{
	const WalsizerSettings *s = &t->load.settings;
	const WalsizerConfig *config = &t->options.config;

	printf("%lldMB, T = %.0f s, target %.2f, segments of %lldMB, %.0f hot pages, %.0f/%.0f bytes, "
		   "noise %.2f\n", (long long) s->max_wal_size_mb, (double) s->timeout_ms / SECOND,
		   s->completion_target, (long long) (s->segment_bytes / WALSIZER_MB), t->load.hot_pages,
		   t->load.touch_bytes, t->load.image_bytes, t->load.noise);
	printf("max %lldMB, headroom %.2f, threshold %d, lookback %lldh, a sample in %lld ms%s\n",
		   (long long) config->max_mb, config->headroom, config->threshold,
		   (long long) config->lookback_hours, (long long) config->sample_interval_ms,
		   config->predict ? "" : ", no prediction");
	for (const SimJob *job = t->jobs; job->lasts > 0; job++)
		printf("from %.0f s, every %.0f s, for %.0f s: %s%.3fMB/s\n", job->first / SECOND,
			   job->every / SECOND, job->lasts / SECOND, job->ramp ? "up to " : "", job->rate);
	for (const SimEvent *event = t->events; event->mark != SIM_NOTHING; event++)
		printf("at %.0f s, every %.0f s: mark %d, %.0f\n", event->first / SECOND,
			   event->every / SECOND, (int) event->mark, event->value);
}

static int	sorted_by;

static int
worse_first(const void *a, const void *b)
{
	double		x = ((const Outcome *) a)->figures[sorted_by];
	double		y = ((const Outcome *) b)->figures[sorted_by];

	return (x < y) - (x > y);
}

#define SHOWN	6

/* Print a figure's distribution and the seeds of its worst; return what is limited. */
static double
report(int which, Outcome *outcomes, int runs)
{
	int			known = 0;
	int			bad = 0;
	double		limited;

	sorted_by = which;
	qsort(outcomes, (size_t) runs, sizeof(Outcome), worse_first);
	while (known < runs && outcomes[known].figures[which] >= 0)
		bad += outcomes[known++].figures[which] > figures[which].fine;
	if (known == 0)
		return 0;
	limited = outcomes[figures[which].p99 ? known / 100 : 0].figures[which];
	printf("%-31s %7.2f %7.2f %7.2f %8.2f %6.2f%%", figures[which].name,
		   outcomes[known / 2].figures[which], outcomes[known / 10].figures[which],
		   outcomes[known / 100].figures[which], outcomes[0].figures[which], 100.0 * bad / known);
	for (int i = 0; i < SHOWN && i < bad; i++)
		printf(" %llu", (unsigned long long) outcomes[i].seed);
	putchar('\n');
	return limited;
}

/*
 * Run this number of trials, the first with this seed, print their figures, and compare
 * them with the limits in the file, if there is one.
 */
bool
sim_search(SimSearch search, int runs, uint64_t seed, const SimOptions *options,
		   const char *limits)
{
	static const char *const names[] = {"search", "search-any", "search-swing"};
	Outcome    *outcomes = calloc((size_t) runs, sizeof(Outcome));
	SimMeasure	measures[NUM_FIGURES + 1] = {{NULL, 0, false}};
	Trial		trial;
	bool		good;

	if (outcomes == NULL)
		abort();
	for (int i = 0; i < runs; i++)
	{
		make_trial(&trial, options, seed + (uint64_t) i, search);
		if (options->changes != NULL)
			describe(&trial);
		outcomes[i] = run_trial(&trial);
	}
	printf("%-31s %7s %7s %7s %8s %7s worst seeds\n", names[search], "median", "p90", "p99",
		   "worst", "bad");
	for (int i = 0; i < NUM_FIGURES; i++)
		measures[i] = (SimMeasure) {figures[i].limit, report(i, outcomes, runs), false};
	good = limits == NULL || sim_keeps_limits(limits, names[search], measures);
	free(outcomes);
	return good;
}
