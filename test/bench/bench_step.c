/*-------------------------------------------------------------------------
 *
 * bench_step.c
 *	  What one step of the policy costs.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "sim.h"

#define STEPS		2000000
#define BUDGET		5000.0		/* ns */

static double
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double) ts.tv_sec * 1e9 + (double) ts.tv_nsec;
}

/* One step a second, a new largest hour and a new record each time, or not. */
static double
cost(bool worst)
{
	static WalsizerState state;
	SimOptions	options;
	WalsizerSample sample;
	int64_t		actions = 0;
	double		start;

	memset(&state, 0, sizeof(state));
	memset(&sample, 0, sizeof(sample));
	sim_default_options(&options);
	sample.hour = 490000;
	sample.settings = (WalsizerSettings) {16 * WALSIZER_MB, 1024, 0.9, 300000};
	start = now_ns();
	for (int i = 0; i < STEPS; i++)
	{
		/* so far apart that each step begins a new one of the window */
		sample.now += worst ? 2500 : 1000;
		sample.hour += worst ? 1 : (i % 3600 == 0);
		sample.write_lsn += worst ? 1000000 + (uint64_t) i : 1500000;
		if (i % 300 == 0)
			sample.redo_lsn = sample.write_lsn;
		sample.disk_tried = true;
		actions += walsizer_step(&options.config, &state, &sample).action != WALSIZER_NONE;
	}
	return (now_ns() - start) / STEPS + 0 * (double) actions;
}

int
main(void)
{
	double		usual = cost(false);
	double		worst = cost(true);

	printf("one step: %.0f ns, %.0f ns if all memory is read each time; the budget is %.0f ns\n",
		   usual, worst, BUDGET);
	return worst < BUDGET ? 0 : 1;
}
