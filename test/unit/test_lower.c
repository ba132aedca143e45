/*-------------------------------------------------------------------------
 *
 * test_lower.c
 *	  When our own raise is lowered, and when it stays.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"

static void
lowers_what_it_raised_after_the_lookback(void **unused)
{
	Driver	   *d = driver_new();
	int64_t		raised;

	(void) unused;
	d->config.lookback_hours = 3;
	driver_run(d, 1800, 8 * MB);
	raised = d->sample.settings.max_wal_size_mb;
	driver_run(d, 2 * 3600, MB);
	assert_int_equal(d->sample.settings.max_wal_size_mb, raised);
	driver_run(d, 3 * 3600, MB);
	assert_int_equal(d->lowers, 1);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 1024);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_FORCED], 0);
	driver_run(d, 3 * 3600, MB);
	assert_int_equal(d->lowers, 1);
}

static void
lowers_to_min(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	d->config.lookback_hours = 1;
	d->config.min_mb = 2000;
	driver_run(d, 1800, 8 * MB);
	driver_run(d, 5 * 3600, MB);
	assert_int_equal(d->lowers, 1);
	assert_in_range(d->sample.settings.max_wal_size_mb, 2000, 2016);
}

static void
lowering_waits_for_little_wal(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	d->config.lookback_hours = 1;
	driver_run(d, 1800, 8 * MB);

	/* no checkpoint for hours, as if they were skipped: WAL stays used */
	for (int i = 0; i < 1000; i++)
		driver_step(d, SECOND, MB);
	for (int i = 0; i < 5 * 3600; i++)
		driver_step(d, SECOND, 0);
	assert_int_equal(d->lowers, 0);
	driver_checkpoint(d, false);
	driver_run(d, 600, 0);
	assert_int_equal(d->lowers, 1);
}

static void
a_raise_is_kept_for_an_hour(void **unused)
{
	Driver	   *d = driver_new();
	int64_t		raised;

	(void) unused;
	/* a burst of a second, once taken for a lasting load */
	d->sample.settings.timeout_ms = 30 * SECOND;
	driver_run(d, 10, 0);
	driver_run(d, 8, 60 * MB);
	raised = d->sample.settings.max_wal_size_mb;
	assert_true(raised >= 2000);
	driver_run(d, 3500, MB / 10);
	assert_int_equal(d->sample.settings.max_wal_size_mb, raised);
	driver_run(d, 200, MB / 10);
	assert_int_equal(d->lowers, 1);
	assert_in_range(d->sample.settings.max_wal_size_mb, 1024, 1200);
}

static void
forgetting_lets_a_raise_go_after_two_windows(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	driver_run(d, 1000, 8 * MB);
	walsizer_forget(&d->state);
	driver_run(d, 590, MB);
	assert_int_equal(d->lowers, 0);
	driver_run(d, 320, MB);
	assert_int_equal(d->lowers, 1);
}

/* A raise that is "quiet" seconds old outlives a clock that is set and set back. */
static void
clock_takes_nothing_at_once(int quiet, int hours)
{
	Driver	   *d = driver_new();
	int64_t		raised;

	driver_run(d, 1200, 8 * MB);
	raised = d->sample.settings.max_wal_size_mb;
	driver_run(d, quiet, MB);
	d->clock_set = hours;
	driver_run(d, 3000, MB);
	assert_int_equal(d->sample.settings.max_wal_size_mb, raised);
	d->clock_set = 0;
	driver_run(d, 4000, MB);
	assert_int_equal(d->sample.settings.max_wal_size_mb, raised);
}

static void
a_clock_set_forward_takes_nothing_at_once(void **unused)
{
	(void) unused;
	clock_takes_nothing_at_once(4000, 40 * 24);
}

static void
a_clock_set_back_takes_nothing_at_once(void **unused)
{
	(void) unused;
	clock_takes_nothing_at_once(9600, -40 * 24);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lowers_what_it_raised_after_the_lookback),
		cmocka_unit_test(lowers_to_min),
		cmocka_unit_test(lowering_waits_for_little_wal),
		cmocka_unit_test(a_raise_is_kept_for_an_hour),
		cmocka_unit_test(forgetting_lets_a_raise_go_after_two_windows),
		cmocka_unit_test(a_clock_set_forward_takes_nothing_at_once),
		cmocka_unit_test(a_clock_set_back_takes_nothing_at_once),
	};

	return cmocka_run_group_tests_name("policy, lowering", tests, NULL, NULL);
}
