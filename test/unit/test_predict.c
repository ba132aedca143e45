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
#include "policy/internal.h"

/* Capacity at 1GB, c = 0.9: 33 segments. */
#define CAPACITY	(33 * SEGMENT)

TEST(predicted_before_it_is_forced)
{
	Driver	   *d = driver_new();

	driver_run(d, 3600, 4 * MB);	/* 1200MB in T */
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_FORCED], 0);
	assert_in_range(d->raises, 1, 3);
	assert_in_range(d->sample.settings.max_wal_size_mb,
					walsizer_size_for(1200 * MB, &d->sample.settings),
					walsizer_size_for(1200 * MB * 135 / 100, &d->sample.settings));
}

TEST(prediction_waits_until_it_is_near)
{
	Driver	   *d = driver_new();

	driver_step(d, 0, 0);
	for (int64_t used = 0; used < CAPACITY * 70 / 100; used += 4 * MB)
		assert_int_equal(driver_step(d, SECOND, 4 * MB), WALSIZER_NONE);
	driver_run(d, 25, 4 * MB);
	assert_int_equal(d->raises, 1);
}

TEST(prediction_goes_to_twice_at_most)
{
	Driver	   *d = driver_new();

	driver_step(d, 0, 0);
	while (d->raises == 0)
		driver_step(d, SECOND, 10 * MB);	/* 3GB in T */
	assert_in_range(d->sample.settings.max_wal_size_mb, 1025, 2048);
	assert_true(d->last.wanted_mb == d->last.target_mb);
}

TEST(a_known_load_is_not_taken_for_more)
{
	Driver	   *d = driver_new();
	int			raises;

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

/*
 * 480MB once, half of them before a timed checkpoint, do not make 100 s of another
 * load a known one: 45MB/s pass from 495 to 540MB, beyond the trigger point, in a second.
 */
TEST(a_load_that_outgrows_what_is_known_is_predicted_in_time)
{
	Driver	   *d = driver_new();

	driver_run(d, 290, 0);
	driver_run(d, 20, 24 * MB);
	driver_run(d, 890, 0);
	assert_int_equal(d->raises, 0);
	assert_in_range(d->last.figures.learned, 470 * MB, 486 * MB);
	driver_run(d, 100, 45 * MB);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_FORCED], 0);
	assert_in_range(d->raises, 1, 6);
}

/*
 * While a checkpoint outlasts the timeout, the next one starts at its end, whatever
 * the size is: 450MB in T fit, 750MB until that end force nothing that would not start.
 */
TEST(nothing_is_predicted_while_a_checkpoint_outlasts_the_timeout)
{
	Driver	   *d = driver_new();

	driver_step(d, 0, 0);
	d->sample.checkpoint_running = true;
	for (int i = 0; i < 500; i++)
		driver_step(d, SECOND, 3 * MB / 2);
	assert_in_range(d->last.figures.used, d->last.figures.trigger_point, 750 * MB);
	assert_int_equal(d->raises, 0);
}

/*
 * The rule itself, with figures by hand: 1GB in effect, so that 528MB force a
 * checkpoint, of which 300MB are used.  20MB/s will reach that in 11.4 s, the
 * timer fires after 100 s.
 */
static WalsizerFigures
about_to_be_forced(const Driver *d)
{
	return (WalsizerFigures) {
		.in_effect_mb = 1024,
		.trigger_point = walsizer_trigger_point(1024, &d->sample.settings),
		.used = 300 * MB,
		.demand = 300 * MB,
		.rate = 20 * MB,
		.projected = 2300 * MB,
		.until_timed_ms = 100 * SECOND,
		.until_forced_ms = 5 * SECOND,
	};
}

static int64_t
predicted(Driver *d, const WalsizerFigures *figures)
{
	return walsizer_predict_rule(&d->config, driver_seen(d), figures);
}

static int64_t
with_headroom(const Driver *d, int64_t bytes)
{
	return walsizer_size_with_headroom(&d->config, &d->sample.settings, bytes);
}

/* The server forces a checkpoint as soon as the trigger point is reached. */
TEST(reaching_the_trigger_point_is_enough)
{
	Driver	   *d = driver_new();
	WalsizerFigures figures = about_to_be_forced(d);

	figures.projected = figures.trigger_point;
	assert_int_equal(predicted(d, &figures), with_headroom(d, figures.trigger_point));
	figures.projected--;
	assert_int_equal(predicted(d, &figures), 0);
}

/* Without a load nothing will be forced, however much is used. */
TEST(without_a_load_nothing_is_predicted)
{
	Driver	   *d = driver_new();
	WalsizerFigures figures = about_to_be_forced(d);

	figures.used = figures.projected = figures.trigger_point + 100 * MB;
	figures.until_forced_ms = 0;
	figures.rate = 1;
	assert_true(predicted(d, &figures) > 0);
	d->config.predict = false;
	assert_int_equal(predicted(d, &figures), 0);
	d->config.predict = true;
	figures.rate = 0;
	figures.until_forced_ms = -1;
	assert_int_equal(predicted(d, &figures), 0);
}

/* Nor while a checkpoint runs and the next one is due. */
TEST(a_checkpoint_that_is_late_ends_prediction)
{
	Driver	   *d = driver_new();
	WalsizerFigures figures = about_to_be_forced(d);

	d->sample.checkpoint_running = true;
	figures.until_timed_ms = 1;
	assert_true(predicted(d, &figures) > 0);
	figures.until_timed_ms = 0;
	assert_int_equal(predicted(d, &figures), 0);
	d->sample.checkpoint_running = false;
	assert_true(predicted(d, &figures) > 0);
}

/* Five samples ahead, at least two seconds: before that the estimate may improve. */
TEST(prediction_acts_five_samples_ahead)
{
	Driver	   *d = driver_new();
	WalsizerFigures figures = about_to_be_forced(d);
	const int64_t leads[][2] = {{100, 2000}, {400, 2000}, {401, 2005}, {1000, 5000}, {60000, 300000}};

	for (size_t i = 0; i < sizeof(leads) / sizeof(leads[0]); i++)
	{
		d->config.sample_interval_ms = leads[i][0];
		figures.until_forced_ms = leads[i][1];
		assert_true(predicted(d, &figures) > 0);
		figures.until_forced_ms++;
		assert_int_equal(predicted(d, &figures), 0);
	}
}

/* However slow the load is: 85 % of the trigger point are as near. */
TEST(prediction_acts_near_the_trigger_point)
{
	Driver	   *d = driver_new();
	WalsizerFigures figures = about_to_be_forced(d);

	figures.until_forced_ms = 60 * SECOND;
	figures.trigger_point = 100 * MB;
	figures.used = 85 * MB;
	assert_true(predicted(d, &figures) > 0);
	figures.used--;
	assert_int_equal(predicted(d, &figures), 0);
}

/* Demand that will be within what was learned, and 5 %, within half the lead. */
TEST(a_known_load_is_expected_to_be_as_large_as_it_was)
{
	Driver	   *d = driver_new();
	WalsizerFigures figures = about_to_be_forced(d);

	figures.learned = 600 * MB;
	figures.demand = 580 * MB;	/* and 50MB more */
	assert_int_equal(predicted(d, &figures), with_headroom(d, 630 * MB));
	figures.projected = 610 * MB;	/* or less, if walsizer expects less */
	assert_int_equal(predicted(d, &figures), with_headroom(d, 610 * MB));

	/* it will be larger than that: then it is what it will be ... */
	figures.projected = 2300 * MB;
	figures.demand = 590 * MB;
	assert_int_equal(predicted(d, &figures), with_headroom(d, 640 * MB));
	figures.demand = 630 * MB;
	assert_int_equal(predicted(d, &figures), with_headroom(d, 680 * MB));

	/* ... until it is: then nobody knows */
	figures.demand++;
	assert_int_equal(predicted(d, &figures), 2048);
}

/* If the value suffices for what a known load was, nothing is raised for it. */
TEST(a_known_load_that_fits_raises_nothing)
{
	Driver	   *d = driver_new();
	WalsizerFigures figures = about_to_be_forced(d);

	figures.learned = 487 * MB;
	figures.in_effect_mb = walsizer_size_for(512 * MB, &d->sample.settings);
	assert_int_equal(walsizer_size_for(487 * MB * 105 / 100, &d->sample.settings),
					 figures.in_effect_mb);
	assert_int_equal(predicted(d, &figures), 0);
	figures.in_effect_mb--;
	assert_true(predicted(d, &figures) > 0);
	figures.learned = 100 * MB;
	figures.demand = 5 * MB;
	assert_int_equal(predicted(d, &figures), 0);
}

/* An estimate goes to twice the value, in whole segments, and not further ... */
TEST(an_estimate_is_trusted_up_to_twice_the_value)
{
	Driver	   *d = driver_new();
	WalsizerFigures figures = about_to_be_forced(d);

	assert_int_equal(predicted(d, &figures), 2048);
	figures.in_effect_mb = 1023;
	assert_int_equal(predicted(d, &figures), 2032);

	/* ... unless demand needs more already */
	figures.demand = 1500 * MB;
	assert_int_equal(predicted(d, &figures), with_headroom(d, 1500 * MB));

	/* ... or it would be used up within five samples again */
	figures.rate = 300 * MB;
	assert_int_equal(predicted(d, &figures), with_headroom(d, 300 * MB + 5 * 300 * MB));

	/* to the byte: 1808MB are 113 segments, and there is one byte more */
	d->config.headroom = 1.0;
	figures.used += 8 * MB + 1;
	assert_int_equal(predicted(d, &figures),
					 walsizer_size_for(1808 * MB + 1, &d->sample.settings));
	assert_int_not_equal(predicted(d, &figures),
						 walsizer_size_for(1808 * MB, &d->sample.settings));

	/* what is expected is the most in any case */
	figures.projected = 700 * MB;
	assert_int_equal(predicted(d, &figures), with_headroom(d, 700 * MB));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(predicted_before_it_is_forced),
		cmocka_unit_test(prediction_waits_until_it_is_near),
		cmocka_unit_test(prediction_goes_to_twice_at_most),
		cmocka_unit_test(a_known_load_is_not_taken_for_more),
		cmocka_unit_test(a_load_that_outgrows_what_is_known_is_predicted_in_time),
		cmocka_unit_test(nothing_is_predicted_while_a_checkpoint_outlasts_the_timeout),
		cmocka_unit_test(reaching_the_trigger_point_is_enough),
		cmocka_unit_test(without_a_load_nothing_is_predicted),
		cmocka_unit_test(a_checkpoint_that_is_late_ends_prediction),
		cmocka_unit_test(prediction_acts_five_samples_ahead),
		cmocka_unit_test(prediction_acts_near_the_trigger_point),
		cmocka_unit_test(a_known_load_is_expected_to_be_as_large_as_it_was),
		cmocka_unit_test(a_known_load_that_fits_raises_nothing),
		cmocka_unit_test(an_estimate_is_trusted_up_to_twice_the_value),
	};

	return cmocka_run_group_tests_name("policy, prediction", tests, NULL, NULL);
}
