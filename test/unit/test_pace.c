/*-------------------------------------------------------------------------
 *
 * test_pace.c
 *	  Full-page images that make timed checkpoints run too fast.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"

/*
 * An hour of intervals that write 400MB in their first 30 s and 400MB evenly in
 * the rest, or all of it evenly.
 */
static void
run_intervals(Driver *d, int hours, bool images)
{
	for (int i = 0; i < hours * 12; i++)
	{
		driver_run(d, 30, images ? 400 * MB / 30 : 800 * MB / 300);
		driver_run(d, 270, images ? 400 * MB / 270 : 800 * MB / 300);
	}
}

static void
page_images_enlarge_our_raise(void **unused)
{
	Driver	   *d = driver_new();
	int64_t		even;
	int64_t		images;

	(void) unused;
	run_intervals(d, 1, false);
	even = d->sample.settings.max_wal_size_mb;
	assert_int_equal(d->state.owner.original_mb, 1024);

	d = driver_new();
	run_intervals(d, 1, true);
	images = d->sample.settings.max_wal_size_mb;
	assert_true(images > even);
	assert_in_range(images, walsizer_size_for(800 * MB, &d->sample.settings) * 3 / 2,
					walsizer_size_for(800 * MB, &d->sample.settings) * 33 / 20);

	/* and it stays, with them and without */
	run_intervals(d, 2, true);
	run_intervals(d, 5, false);
	assert_int_equal(d->sample.settings.max_wal_size_mb, images);
}

static void
page_images_alone_change_nothing(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	d->sample.settings.max_wal_size_mb = 2048;
	run_intervals(d, 3, true);
	assert_true(d->last.figures.pace > d->last.figures.trigger_point);
	assert_int_equal(d->raises, 0);
}

static void
smooth_checkpoints_are_nothing_to_warn_of(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	run_intervals(d, 1, false);
	d->config.max_mb = d->sample.settings.max_wal_size_mb;
	for (int i = 0; i < 36; i++)
	{
		run_intervals(d, 1, true);
		d->sample.adjust = true;
		driver_step(d, SECOND, 0);
		assert_int_equal(d->last.reason, WALSIZER_BECAUSE_SUFFICIENT);
		d->sample.adjust = false;
	}
	assert_true(d->last.figures.pace > d->last.figures.trigger_point);
	assert_true(d->last.figures.wanted_mb > d->config.max_mb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(page_images_enlarge_our_raise),
		cmocka_unit_test(page_images_alone_change_nothing),
		cmocka_unit_test(smooth_checkpoints_are_nothing_to_warn_of),
	};

	return cmocka_run_group_tests_name("policy, pace", tests, NULL, NULL);
}
