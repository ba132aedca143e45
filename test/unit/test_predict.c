/*-------------------------------------------------------------------------
 *
 * test_predict.c
 *	  A forced checkpoint is seen before it comes, and a raise goes far enough.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"

/* Capacity at 1GB, c = 0.9: 33 segments. */
#define CAPACITY	(33 * SEGMENT)

static void
predicted_before_it_is_forced(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	driver_run(d, 3600, 4 * MB);	/* 1200MB in T */
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_FORCED], 0);
	assert_in_range(d->raises, 1, 3);
	assert_in_range(d->sample.settings.max_wal_size_mb,
					walsizer_size_for(1200 * MB, &d->sample.settings),
					walsizer_size_for(1200 * MB * 135 / 100, &d->sample.settings));
}

static void
prediction_waits_until_it_is_near(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	driver_step(d, 0, 0);
	for (int64_t used = 0; used < CAPACITY * 70 / 100; used += 4 * MB)
		assert_int_equal(driver_step(d, SECOND, 4 * MB), WALSIZER_NONE);
	driver_run(d, 25, 4 * MB);
	assert_int_equal(d->raises, 1);
}

static void
prediction_goes_to_twice_at_most(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	driver_step(d, 0, 0);
	while (d->raises == 0)
		driver_step(d, SECOND, 10 * MB);	/* 3GB in T */
	assert_in_range(d->sample.settings.max_wal_size_mb, 1025, 2048);
	assert_true(d->last.wanted_mb == d->last.target_mb);
}

static void
a_known_load_is_not_taken_for_more(void **unused)
{
	Driver	   *d = driver_new();
	int			raises;

	(void) unused;
	/* bursts of 20 s at 40MB/s every ten minutes: W = 800MB */
	for (int i = 0; i < 3; i++)
	{
		driver_run(d, 20, 40 * MB);
		driver_run(d, 580, 0);
	}
	raises = d->raises;
	for (int i = 0; i < 20; i++)
	{
		driver_run(d, 20, 40 * MB);
		driver_run(d, 580, 0);
	}
	assert_int_equal(d->raises, raises);
	assert_int_equal(d->lowers, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(predicted_before_it_is_forced),
		cmocka_unit_test(prediction_waits_until_it_is_near),
		cmocka_unit_test(prediction_goes_to_twice_at_most),
		cmocka_unit_test(a_known_load_is_not_taken_for_more),
	};

	return cmocka_run_group_tests_name("policy, prediction", tests, NULL, NULL);
}
