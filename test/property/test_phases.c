/*-------------------------------------------------------------------------
 *
 * test_phases.c
 *	  What must come out the same wherever the worker's cycle, the checkpoint timer
 *	  and the load stand to each other.
 *
 *		test_phases [--verbose]
 *		test_phases --reach
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define TIMEOUT		300.0		/* s */

static bool verbose;
static int	runs;
static int	failed;

/* Seconds at a rate (MB per second), then perhaps something else. */
typedef struct Part
{
	double		seconds;
	double		rate;
	SimMark		mark;
} Part;

/* For SimLoad.next: load->data is a list of parts, ended by one of no length. */
static bool
next_second(SimLoad *load, double at, SimPiece *piece)
{
	const Part *part = load->data;
	double		t = at / 1000;

	while (part->seconds > 0 && t >= part->seconds)
		t -= (part++)->seconds;
	if (part->seconds <= 0)
		return false;
	piece->ms = fmin(1000, (part->seconds - t) * 1000);
	piece->bytes = part->rate * SIM_MB * piece->ms / 1000;
	piece->mark = t + 1 >= part->seconds ? part->mark : SIM_NOTHING;
	return true;
}

/* From this size (MB) on. */
static void
run_from(int64_t size, const Part *parts, const SimOptions *options, SimResult *r)
{
	SimLoad		load;

	memset(&load, 0, sizeof(load));
	load.settings = (WalsizerSettings) {16 * WALSIZER_MB, size, 0.9, (int64_t) TIMEOUT * 1000};
	load.touch_bytes = 200;
	load.image_bytes = 6000;
	load.next = next_second;
	load.data = parts;
	sim_run(&load, SIM_WALSIZER, 0, options, r);
	runs++;
}

static void
run_parts(const Part *parts, const SimOptions *options, SimResult *r)
{
	run_from(1024, parts, options, r);
}

/*
 * A bulk load raised 1GB to 16GB; then 5MB per second, which needs 3.4GB.  Once the
 * bulk load is forgotten the size comes down, in each of 20 phases between cycle
 * and checkpoint timer, and within two timeouts of each other.
 */
static void
comes_down_in_all_phases(void)
{
	double		first = INFINITY;
	double		last = 0;
	int			stayed = 0;

	for (int phase = 0; phase < 20; phase++)
	{
		SimOptions	options;
		SimResult	r;
		Part		parts[] = {
			{600, 5, SIM_NOTHING}, {600, 60, SIM_NOTHING}, {600 + 15 * phase, 5, SIM_CHECKPOINT},
			{5 * 3600, 5, SIM_NOTHING}, {0, 0, SIM_NOTHING},
		};

		sim_default_options(&options);
		options.config.max_mb = 16 * 1024;
		options.config.lookback_hours = 2;
		run_parts(parts, &options, &r);
		if (verbose)
			printf("phase %3d s: %lldMB at most, %lldMB at last, lowered at %.0f s, %lld forced\n",
				   15 * phase, (long long) r.peak, (long long) r.final, r.lowered_at / 1000,
				   (long long) r.forced);
		if (r.peak < 16000 || r.final > 3600 || r.lowers != 1)
		{
			stayed++;
			continue;
		}
		first = fmin(first, r.lowered_at / 1000);
		last = fmax(last, r.lowered_at / 1000);
	}
	if (stayed > 0 || last - first > 2 * TIMEOUT)
	{
		failed++;
		printf("the size of a forgotten load: stays in %d of 20 phases, comes down within %.0f s\n",
			   stayed, last - first);
	}
}

/*
 * walsizer.predict = off, and a burst of a minute that a checkpoint is forced in,
 * at 15 moments of the cycle: it is answered at the end of the cycle in which it
 * ends, or of the one before.
 */
static void
bursts_are_answered_in_all_phases(void)
{
	int			forced = 0;
	int			missed = 0;

	for (int phase = 0; phase < 15; phase++)
	{
		SimOptions	options;
		SimResult	r;
		Part		parts[] = {
			{450, 0.1, SIM_CHECKPOINT}, {150 + 20 * phase, 0.1, SIM_NOTHING},
			{60, 12, SIM_NOTHING}, {600, 0.1, SIM_NOTHING},
			{0, 0, SIM_NOTHING},
		};

		sim_default_options(&options);
		options.config.predict = false;
		run_parts(parts, &options, &r);
		if (verbose)
			printf("burst %3d s after the beginning of a cycle: %lldMB, %lld forced\n", 20 * phase,
				   (long long) r.final, (long long) r.forced);
		forced += r.forced > 0;
		missed += r.forced > 0 && r.final < 1400;
	}
	if (missed > 0 || forced < 10)
	{
		failed++;
		printf("a burst that forced a checkpoint was not answered in %d of %d phases\n", missed,
			   forced);
	}
}

/*
 * Idle for ten minutes, then so many MB per second for two: in how many of 50 start
 * offsets, over five samples, is a checkpoint forced?  A raise takes effect after
 * delay (ms).  Stops at most.
 */
static int
forced_after_idleness(int64_t size, double rate, int64_t interval, double delay, int most)
{
	int			forced = 0;

	for (int i = 0; i < 50 && forced < most; i++)
	{
		double		offset = 5 * (double) interval / 1000 * i / 50;
		SimOptions	options;
		SimResult	r;
		Part		parts[] = {
			{600 + offset, 0, SIM_NOTHING}, {120, rate, SIM_NOTHING}, {0, 0, SIM_NOTHING},
		};

		sim_default_options(&options);
		options.config.max_mb = INT32_MAX;
		options.config.sample_interval_ms = interval;
		options.apply_delay = delay;
		run_from(size, parts, &options, &r);
		forced += r.forced > 0;
	}
	return forced;
}

static void
idleness_costs_no_checkpoint(void)
{
	static const double rates[] = {125, 150, 200};

	for (int i = 0; i < 3; i++)
	{
		int			forced = forced_after_idleness(1024, rates[i], 1000, 50, 50);

		if (verbose)
			printf("%.0fMB/s after idleness: forced in %d of 50\n", rates[i], forced);
		failed += forced > 0;
	}
}

/* For the manual: up to which rates prediction comes in time, from which size on. */
static void
print_reach(void)
{
	static const int64_t sizes[] = {64, 256, 1024, 4096, 16384};
	static const int64_t intervals[] = {200, 1000, 1000, 10000};
	static const double delays[] = {50, 50, 1000, 50};

	printf("| `max_wal_size` | trigger point | 200ms | 1s | 1s, a raise takes 1s | 10s |\n|---|---|---|---|---|---|\n");
	for (int s = 0; s < 5; s++)
	{
		WalsizerSettings settings = {16 * WALSIZER_MB, sizes[s], 0.9, (int64_t) TIMEOUT * 1000};

		printf("| %lldMB | %lldMB |", (long long) sizes[s],
			   (long long) (walsizer_trigger_point(sizes[s], &settings) / WALSIZER_MB));
		for (int i = 0; i < 4; i++)
		{
			double		rate = (double) sizes[s] * 25 / (double) intervals[i];
			double		unit;

			while (forced_after_idleness(sizes[s], rate * 1.05, intervals[i], delays[i], 1) == 0)
				rate *= 1.05;
			unit = pow(10, floor(log10(rate)) - 1);
			printf(" %g |", round(rate / unit) * unit);
		}
		printf("\n");
	}
}

int
main(int argc, char **argv)
{
	verbose = argc > 1 && strcmp(argv[1], "--verbose") == 0;
	if (argc > 1 && strcmp(argv[1], "--reach") == 0)
	{
		print_reach();
		return 0;
	}
	comes_down_in_all_phases();
	idleness_costs_no_checkpoint();
	bursts_are_answered_in_all_phases();
	printf("cycles and timers in all phases: %d runs, %d failed\n", runs, failed);
	return failed > 0;
}
