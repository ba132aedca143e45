/*-------------------------------------------------------------------------
 *
 * test_advice.c
 *	  What walsizer_advice() says of a size must hold when that size is set.
 *
 * For each load: watch it with one size in effect, ask what other sizes would
 * mean, then run the same load with each of them and see.
 *
 *		test_advice [--verbose]
 *
 * Page images depend on how often checkpoints come: what was written with one
 * size is more than the same load writes with a larger one.  So of such loads
 * only larger sizes are judged, and only that they are not worse than said.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define HOUR		3600000.0		/* ms */

/* Positions are known to the sample and the step of the window. */
#define SLACK		6000.0			/* ms */

/* What the simulated server keeps in any case (its min_wal_size). */
#define LEAST_FILES	(80 * SIM_MB)

typedef struct Watched
{
	const char *load;
	int64_t		from;			/* MB, in effect while watched */
	int64_t		segment_mb;
	double		completion_target;
	double		duration;		/* h */
	bool		steady;			/* the same at all times */
} Watched;

static const Watched watched[] = {
	{"above", 256, 16, 0.9, 2, true},
	{"above", 1024, 1, 0.5, 2, true},
	{"steady", 1024, 16, 0.9, 4, true},
	{"steady", 128, 16, 0.9, 4, true},
	{"steady", 4096, 64, 0, 4, true},
	{"steady", 2048, 1, 1, 4, true},
	{"noisy", 1024, 16, 0.9, 12, false},
	{"gusts", 1024, 16, 0.5, 12, false},
	{"step", 2048, 16, 0.9, 4, false},
	{"ramp", 1024, 16, 0.9, 6, false},
	{"bursts", 512, 16, 0.9, 6, false},
	{"sawtooth", 1024, 4, 0.9, 12, false},
	{"random", 2048, 16, 0.9, 24, false},
	{"diurnal", 1024, 16, 0.9, 48, false},
	{"diurnal", 8192, 128, 0.9, 48, false},
	{"pages", 512, 16, 0.9, 6, false},
	{"hot", 1024, 16, 0.9, 6, false},
	{"hot", 256, 16, 0.5, 6, false},
};

#define NUM_WATCHED		((int) (sizeof(watched) / sizeof(watched[0])))

static bool verbose;
static int	candidates;
static int	failed;

#define MUST(condition, ...) \
	do { \
		if (!(condition)) \
		{ \
			printf("%s from %lldMB, %lldMB: ", w->load, (long long) w->from, (long long) what->size_mb); \
			printf(__VA_ARGS__); \
			printf("\n"); \
			failed++; \
		} \
	} while (0)

/*-------------------------------------------------------------------------
 * What is said
 *-------------------------------------------------------------------------
 */

static void
set_load(SimLoad *load, const Watched *w)
{
	if (!sim_load_find(load, w->load, 1))
		abort();
	load->settings.segment_bytes = w->segment_mb * WALSIZER_MB;
	load->settings.completion_target = w->completion_target;
	load->settings.max_wal_size_mb = w->from;
	load->duration = w->duration * HOUR;
}

/* Watch without changing anything. */
static void
watch(SimLoad *load, SimOptions *options, SimWitness *seen)
{
	SimResult	r;

	options->witness = seen;
	options->config.enable = false;
	sim_run(load, SIM_WALSIZER, 0, options, &r);
	free(seen->starts);
	seen->starts = NULL;
	walsizer_remember_window(&seen->state);
	options->config.enable = true;
	options->witness = NULL;
}

static WalsizerWhatIf
ask(const SimOptions *options, const SimWitness *seen, int64_t mb)
{
	return walsizer_what_if(&options->config, &seen->state, &seen->sample, &seen->figures, mb);
}

/*-------------------------------------------------------------------------
 * What is
 *-------------------------------------------------------------------------
 */

/*
 * Hours in which a checkpoint was forced; with before, also those that began at
 * most so long (ms) after one was.
 */
static int
forced_hours(const SimWitness *run, double before)
{
	int			hours = 0;
	int64_t		last = -1;

	for (int64_t i = 0; i < run->num_starts; i++)
	{
		int64_t		first = (int64_t) (run->starts[i].at / HOUR);
		int64_t		end = (int64_t) ((run->starts[i].at + before) / HOUR);

		if (!run->starts[i].forced)
			continue;
		for (int64_t hour = first; hour <= end; hour++)
		{
			hours += hour > last;
			last = hour > last ? hour : last;
		}
	}
	return hours;
}

/* The most checkpoints that started within one timeout (ms). */
static int64_t
most_starts(const SimWitness *run, double timeout)
{
	int64_t		most = 0;

	for (int64_t first = 0, i = 0; i < run->num_starts; i++)
	{
		while (run->starts[i].at - run->starts[first].at >= timeout)
			first++;
		if (i - first + 1 > most)
			most = i - first + 1;
	}
	return most;
}

/* Mean time between checkpoints in the second half of a run (ms). */
static double
mean_spacing(const SimWitness *run, double duration)
{
	int64_t		first = -1;

	for (int64_t i = 0; i < run->num_starts && first < 0; i++)
	{
		if (run->starts[i].at >= duration / 2)
			first = i;
	}
	if (first < 0 || run->num_starts - first < 2)
		return 0;
	return (run->starts[run->num_starts - 1].at - run->starts[first].at) /
		(double) (run->num_starts - 1 - first);
}

/*-------------------------------------------------------------------------
 * Both
 *-------------------------------------------------------------------------
 */

/* One hour of slack: peaks and checkpoints may be on two sides of its end. */
static void
compare_hours(const Watched *w, const SimLoad *load, const SimOptions *options,
			  const SimWitness *seen, const WalsizerWhatIf *what, const SimWitness *run)
{
	double		hours = ceil(w->duration);
	double		timeout = (double) load->settings.timeout_ms;
	int64_t		twice = walsizer_size_for(2 * what->trigger_point, &load->settings);

	MUST(forced_hours(run, 0) <= what->forced_fraction * hours + 1,
		 "forced in %d hours, said was %.0f", forced_hours(run, 0), what->forced_fraction * hours);
	if (load->hot_pages > 0)
		return;

	/*
	 * A peak may be cut in two by the clock, so that neither half forces a
	 * checkpoint; one that is twice as large may not.
	 */
	MUST(forced_hours(run, timeout + SLACK) + 1 >= ask(options, seen, twice).forced_fraction * hours,
		 "forced in %d hours, for twice the size said was %.0f",
		 forced_hours(run, timeout + SLACK), ask(options, seen, twice).forced_fraction * hours);
}

static void
compare_spacing(const Watched *w, const SimLoad *load, const WalsizerWhatIf *what,
				const SimWitness *run)
{
	double		timeout = (double) load->settings.timeout_ms;
	double		said = timeout / (double) what->every_at_peak_ms;
	double		most = (double) most_starts(run, timeout);
	double		mean = mean_spacing(run, load->duration);

	MUST(what->every_at_peak_ms > 0 && what->every_at_peak_ms <= timeout &&
		 what->every_now_ms <= timeout, "a spacing beyond checkpoint_timeout");
	MUST(most <= 1.05 * said + 2, "%.0f checkpoints in one timeout, said were %.1f", most, said);
	if (load->hot_pages > 0)
		return;
	MUST(most >= 0.95 * said - 2, "only %.0f checkpoints in one timeout, said were %.1f", most, said);
	if (w->steady)
		MUST(fabs(mean / (double) what->every_now_ms - 1) < 0.05 + 1000.0 / mean,
			 "%.1f s between checkpoints, said were %.1f s", mean / 1000,
			 (double) what->every_now_ms / 1000);
}

/* Does walsizer itself think so?  It raises what does not suffice. */
static void
compare_policy(const Watched *w, SimLoad *load, const SimOptions *options,
			   const WalsizerWhatIf *what)
{
	SimResult	r;

	if (!w->steady || what->limited_by != WALSIZER_UNLIMITED)
		return;
	load->settings.max_wal_size_mb = what->size_mb;
	sim_run(load, SIM_WALSIZER, 0, options, &r);
	load->settings.max_wal_size_mb = w->from;
	if (what->every_at_peak_ms == load->settings.timeout_ms && what->forced_fraction == 0)
		MUST(r.raises == 0, "said to suffice, but walsizer raised it to %lldMB", (long long) r.final);
	if ((double) what->every_now_ms < 0.9 * (double) load->settings.timeout_ms)
		MUST(r.raises > 0, "said not to suffice, but walsizer left it");
}

static void
compare(const Watched *w, SimLoad *load, const SimOptions *options, const SimWitness *seen,
		const WalsizerWhatIf *what)
{
	SimOptions	alone = *options;
	SimWitness	run;
	SimResult	r;

	candidates++;
	alone.witness = &run;
	sim_run(load, SIM_STATIC, what->size_mb, &alone, &r);
	if (verbose)
		printf("%-9s %6lldMB: spacing %4.0f s, at peak %4.0f s, forced %3.0f %%; %lld forced, %lld timed, in %d hours\n",
			   w->load, (long long) what->size_mb, (double) what->every_now_ms / 1000,
			   (double) what->every_at_peak_ms / 1000, 100 * what->forced_fraction,
			   (long long) r.forced, (long long) r.timed, forced_hours(&run, 0));

	if (what->forced_fraction == 0 && what->every_at_peak_ms == load->settings.timeout_ms)
		MUST(r.forced == 0, "said to suffice, but %lld checkpoints were forced", (long long) r.forced);
	MUST(r.peak_files <= fmax((double) what->size_mb * SIM_MB, LEAST_FILES) +
		 2 * (double) load->settings.segment_bytes,
		 "%.0fMB of files", r.peak_files / SIM_MB);
	compare_hours(w, load, options, seen, what, &run);
	compare_spacing(w, load, what, &run);
	compare_policy(w, load, options, what);
	free(run.starts);
}

/* What is forbidden, and only that, walsizer never sets. */
static void
compare_limits(const Watched *w, SimLoad *load, const SimOptions *given)
{
	SimOptions	options = *given;
	SimWitness	seen;
	SimResult	r;
	int64_t		largest = 0;
	int64_t		sizes[WALSIZER_CANDIDATES];
	WalsizerWhatIf wanted;
	const WalsizerWhatIf *what = &wanted;
	int			number;

	/* limited by one of the two, whichever is smaller for this load */
	options.config.max_mb = 3 * w->from;
	options.config.replay_rate = 40 * SIM_MB;
	options.config.max_recovery_ms = w->segment_mb == 16 ? 50 * 1000 : 0;
	watch(load, &options, &seen);
	sim_run(load, SIM_WALSIZER, 0, &options, &r);
	wanted = ask(&options, &seen, r.peak);
	MUST(r.peak == w->from || what->limited_by == WALSIZER_UNLIMITED,
		 "walsizer set it, but it was said to be forbidden");

	number = walsizer_candidates(&load->settings, seen.figures.wanted_mb, sizes);
	for (int i = 0; i < number; i++)
	{
		wanted = ask(&options, &seen, sizes[i]);
		MUST(sizes[i] % w->segment_mb == 0 && sizes[i] > largest, "not a candidate");
		MUST(fabs((double) what->recovery_ms - (double) sizes[i] * 1000 / 40) <= 1,
			 "%lld ms for recovery", (long long) what->recovery_ms);
		MUST((what->limited_by == WALSIZER_UNLIMITED) ==
			 (sizes[i] <= options.config.max_mb &&
			  (options.config.max_recovery_ms == 0 ||
			   what->recovery_ms <= options.config.max_recovery_ms)),
			 "forbidden by %s", walsizer_limit_name(what->limited_by));
		largest = sizes[i];
	}
}

int
main(int argc, char **argv)
{
	verbose = argc > 1 && strcmp(argv[1], "--verbose") == 0;
	for (int i = 0; i < NUM_WATCHED; i++)
	{
		const Watched *w = &watched[i];
		SimLoad		load;
		SimOptions	options;
		SimWitness	seen;
		int64_t		sizes[WALSIZER_CANDIDATES];
		int			number;

		set_load(&load, w);
		sim_default_options(&options);
		options.config.max_mb = INT32_MAX;
		options.config.replay_rate = 40 * SIM_MB;
		watch(&load, &options, &seen);
		number = walsizer_candidates(&load.settings, seen.figures.wanted_mb, sizes);
		for (int j = 0; j < number; j++)
		{
			WalsizerWhatIf what = ask(&options, &seen, sizes[j]);

			if (load.hot_pages == 0 || sizes[j] >= w->from)
				compare(w, &load, &options, &seen, &what);
		}
		compare_limits(w, &load, &options);
	}
	printf("the advice against the simulator: %d candidates of %d loads, %d failed\n",
		   candidates, NUM_WATCHED, failed);
	return failed > 0;
}
