/*-------------------------------------------------------------------------
 *
 * test_demand.c
 *	  What is known of demand: the window, the rate, the peaks remembered.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"

static void
what_was_seen_is_remembered(void **unused)
{
	Driver	   *d = driver_new();
	int64_t		hour;

	(void) unused;
	driver_run(d, 1800, 4 * MB);
	hour = d->sample.hour;
	assert_in_range(walsizer_learned_demand(&d->state, hour, 1),
					1199 * MB, 1205 * MB);
	/* all of the lookback counts, and one hour more has none of it left */
	assert_true(walsizer_learned_demand(&d->state, hour + 5, 5) > 0);
	assert_true(walsizer_learned_demand(&d->state, hour + 7, 5) == 0);
	/* a wall clock that was set back forgets nothing */
	assert_true(walsizer_learned_demand(&d->state, hour - 3, 5) > 0);

	walsizer_forget(&d->state);
	assert_int_equal(walsizer_learned_demand(&d->state, hour, 100), 0);
}

/*
 * A peak is what was measured.  A timeout that is twelve times as long needs what is
 * written then, not twelve times the minute that was remembered.
 */
static void
a_peak_is_not_stretched_with_the_timeout(void **unused)
{
	Driver	   *d = driver_new();
	int64_t		needed;

	(void) unused;
	d->config.max_mb = 16 * 1024;
	driver_run(d, 60, 80 * MB);
	driver_run(d, 4000, MB);
	needed = walsizer_roomy_size(&d->config, &d->sample.settings, 5040 * MB);
	d->sample.settings.timeout_ms = 3600 * SECOND;
	driver_run(d, 4000, MB);
	assert_in_range(d->last.figures.wanted_mb, needed * 9 / 10, needed);
	assert_in_range(d->sample.settings.max_wal_size_mb, needed * 9 / 10, needed * 11 / 10);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_FORCED], 0);
}

static void
demand_belongs_to_the_timeout_it_was_measured_with(void **unused)
{
	Driver	   *d = driver_new();
	int64_t		hour;

	(void) unused;
	d->sample.settings.timeout_ms = 1800 * SECOND;
	driver_run(d, 1500, MB);
	d->sample.settings.timeout_ms = 300 * SECOND;
	driver_run(d, 10, MB);
	d->sample.settings.timeout_ms = 1800 * SECOND;
	driver_run(d, 10, MB);
	hour = d->sample.hour;
	walsizer_remember_window(&d->state);
	assert_in_range(walsizer_learned_demand(&d->state, hour, 1), 1490 * MB, 1900 * MB);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_seen_is_remembered),
		cmocka_unit_test(a_peak_is_not_stretched_with_the_timeout),
		cmocka_unit_test(demand_belongs_to_the_timeout_it_was_measured_with),
	};

	return cmocka_run_group_tests_name("policy, demand", tests, NULL, NULL);
}
