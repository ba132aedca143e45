/*-------------------------------------------------------------------------
 *
 * test_rules.c
 *	  When walsizer raises, when it lowers, when it leaves things alone.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"

/* Capacity at 1GB, c = 0.9: 33 segments. */
#define CAPACITY	(33 * SEGMENT)

static void
first_sample_decides_nothing(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	assert_int_equal(driver_step(d, 0, 0), WALSIZER_NONE);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_STARTED);
	assert_int_equal(d->state.found, 1024);
}

static void
enough_stays(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	driver_run(d, 3600, CAPACITY * 95 / 100 / 300);
	assert_int_equal(d->raises + d->lowers, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_ENOUGH);
	assert_int_equal(d->state.checkpoints[WALSIZER_CAUSE_FORCED], 0);
}

static void
predicted_before_it_is_forced(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	driver_run(d, 3600, 4 * MB);	/* 1200MB in T */
	assert_int_equal(d->state.checkpoints[WALSIZER_CAUSE_FORCED], 0);
	assert_in_range(d->raises, 1, 3);
	assert_in_range(d->sample.settings.max_wal_size,
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
	driver_run(d, 15, 4 * MB);
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
	assert_in_range(d->sample.settings.max_wal_size, 1025, 2048);
	assert_true(d->last.wanted == d->last.target);
}

static void
prediction_off_waits_for_the_cycle(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	d->config.predict = false;
	driver_step(d, 0, 0);
	driver_run(d, 299, 4 * MB);
	assert_int_equal(d->raises, 0);
	driver_run(d, 2, 4 * MB);
	assert_int_equal(d->raises, 1);
	assert_int_equal(d->last.cycle || d->raises == 1, true);
	assert_in_range(d->sample.settings.max_wal_size,
					walsizer_size_for(1200 * MB, &d->sample.settings),
					walsizer_size_for(1200 * MB * 135 / 100, &d->sample.settings));
}

static void
forced_rule_waits_for_the_threshold(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	d->config.predict = false;
	d->config.threshold = 3;
	driver_run(d, 901, 4 * MB);		/* two forced in each T */
	assert_int_equal(d->raises, 0);
	driver_run(d, 600, 8 * MB);		/* four in each */
	assert_int_equal(d->raises, 1);
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

static void
a_statement_with_the_old_value_raises_once(void **unused)
{
	Driver	   *d = driver_new();
	int64_t		size;

	(void) unused;
	/* known demand of 800MB, so the size is right from the first raise on */
	d->sample.checkpoint_age = 0;
	driver_step(d, 0, 0);
	while (d->raises == 0)
		driver_step(d, SECOND, 3 * MB);
	size = d->sample.settings.max_wal_size;

	/* the statement goes on forcing at the old capacity */
	for (int i = 0; i < 3600; i++)
	{
		driver_step(d, SECOND, 3 * MB);
		if ((int64_t) (d->sample.write_lsn - d->sample.redo_lsn) > CAPACITY)
			driver_checkpoint(d, true);
	}
	assert_true(d->state.checkpoints[WALSIZER_CAUSE_STALE] > 0);
	assert_int_equal(d->state.checkpoints[WALSIZER_CAUSE_FORCED], 0);
	assert_int_equal(d->sample.settings.max_wal_size, size);
	assert_int_equal(d->raises, 1);
}

static void
max_binds_and_is_named(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	d->config.max = 1500;
	driver_step(d, 0, 0);
	while (d->raises == 0)
		driver_step(d, SECOND, 8 * MB);
	assert_int_equal(d->last.target, 1488);	/* whole segments */
	assert_int_equal(d->last.bound, WALSIZER_BOUND_MAX);
	assert_true(d->last.wanted > d->last.target);
	driver_run(d, 3600, 8 * MB);
	assert_int_equal(d->raises, 1);
	assert_int_equal(d->sample.settings.max_wal_size, 1488);
}

static void
a_bound_below_never_lowers_what_is_not_ours(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	d->config.max = 512;
	driver_run(d, 3600, 8 * MB);
	assert_int_equal(d->raises + d->lowers, 0);
	assert_int_equal(d->sample.settings.max_wal_size, 1024);
	d->sample.evaluate = true;
	driver_step(d, SECOND, 8 * MB);
	assert_int_equal(d->lowers, 0);
}

static void
a_bound_that_comes_down_lowers_our_raise(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	driver_run(d, 1800, 8 * MB);
	assert_true(d->sample.settings.max_wal_size > 4000);
	d->config.max = 2048;
	driver_run(d, 1200, 1 * MB);
	assert_int_equal(d->lowers, 1);
	assert_int_equal(d->sample.settings.max_wal_size, 2048);

	/* not below what was found */
	d->config.max = 2;
	driver_run(d, 1200, 1 * MB);
	assert_int_equal(d->sample.settings.max_wal_size, 1024);
	driver_run(d, 1200, 1 * MB);
	assert_int_equal(d->sample.settings.max_wal_size, 1024);
}

static void
never_below_two_segments(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	d->sample.settings.segment_size = 1024 * MB;
	d->config.max = 2;
	driver_run(d, 1200, 30 * MB);
	assert_true(d->sample.settings.max_wal_size == 1024 ||
				d->sample.settings.max_wal_size >= 2048);
}

static void
lowers_what_it_raised_after_the_lookback(void **unused)
{
	Driver	   *d = driver_new();
	int64_t		raised;

	(void) unused;
	d->config.lookback = 3;
	driver_run(d, 1800, 8 * MB);
	raised = d->sample.settings.max_wal_size;
	driver_run(d, 2 * 3600, MB);
	assert_int_equal(d->sample.settings.max_wal_size, raised);
	driver_run(d, 3 * 3600, MB);
	assert_int_equal(d->lowers, 1);
	assert_int_equal(d->sample.settings.max_wal_size, 1024);
	assert_int_equal(d->state.checkpoints[WALSIZER_CAUSE_FORCED], 0);
	driver_run(d, 3 * 3600, MB);
	assert_int_equal(d->lowers, 1);
}

static void
lowers_to_min(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	d->config.lookback = 1;
	d->config.min = 2000;
	driver_run(d, 1800, 8 * MB);
	driver_run(d, 5 * 3600, MB);
	assert_int_equal(d->lowers, 1);
	assert_in_range(d->sample.settings.max_wal_size, 2000, 2016);
}

static void
lowering_waits_for_little_wal(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	d->config.lookback = 1;
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
disabled_watches_only(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	d->config.enable = false;
	driver_run(d, 1800, 8 * MB);
	assert_int_equal(d->raises, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_DISABLED);
	assert_true(d->last.figures.wanted > 4000);
	d->config.enable = true;
	driver_run(d, 400, 8 * MB);
	assert_true(d->raises > 0);
}

static void
a_standby_ignores_its_own_restartpoints(void **unused)
{
	Driver	   *d = driver_new();
	int64_t		forced;

	(void) unused;
	d->sample.standby = true;
	driver_run(d, 1800, 8 * MB);
	assert_int_equal(d->raises, 0);
	forced = d->state.checkpoints[WALSIZER_CAUSE_FORCED];
	d->sample.standby = false;	/* promoted */
	driver_run(d, 900, 8 * MB);
	assert_true(d->raises > 0);
	assert_true(d->state.checkpoints[WALSIZER_CAUSE_FORCED] <= forced + 1);
}

static void
not_applied_is_retried_once_a_timeout(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	d->apply = false;
	driver_run(d, 3000, 8 * MB);
	assert_in_range(d->raises, 5, 10);
	for (int i = 0; i < 10; i++)
	{
		d->sample.evaluate = true;	/* being asked is another matter */
		driver_step(d, SECOND, 8 * MB);
		d->sample.evaluate = false;
	}
	assert_true(d->last.reason == WALSIZER_BECAUSE_PREDICTED ||
				d->last.reason == WALSIZER_BECAUSE_FORCED);
}

static void
evaluate_runs_the_cycles_rules(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	d->config.predict = false;
	driver_run(d, 150, 10 * MB);
	assert_int_equal(d->raises, 0);
	d->sample.evaluate = true;
	driver_step(d, SECOND, 10 * MB);
	assert_int_equal(d->raises, 1);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_FORCED);
}

static void
early_wakes_shorten_no_cycle(void **unused)
{
	Driver	   *d = driver_new();
	int			cycles = 0;

	(void) unused;
	driver_step(d, 0, 0);
	for (int i = 0; i < 30000; i++)
	{
		driver_step(d, 100, MB / 10);
		cycles += d->last.cycle;
	}
	assert_int_equal(cycles, 10);
	/* a long gap is one cycle, and the next ends in time again */
	driver_step(d, 1000 * SECOND, 0);
	assert_true(d->last.cycle);
	driver_step(d, 199 * SECOND, 0);
	assert_false(d->last.cycle);
	driver_step(d, SECOND, 0);
	assert_true(d->last.cycle);
}

static void
what_was_seen_is_remembered(void **unused)
{
	Driver	   *d = driver_new();
	int64_t		hour;

	(void) unused;
	driver_run(d, 1800, 4 * MB);
	hour = d->sample.hour;
	assert_in_range(walsizer_learned_demand(&d->state, hour, 1, 300 * SECOND),
					1199 * MB, 1205 * MB);
	/* a longer timeout needs more, a shorter one no less */
	assert_in_range(walsizer_learned_demand(&d->state, hour, 1, 600 * SECOND),
					2398 * MB, 2410 * MB);
	assert_in_range(walsizer_learned_demand(&d->state, hour, 1, 30 * SECOND),
					1199 * MB, 1205 * MB);
	/* all of the lookback counts, and one hour more has none of it left */
	assert_true(walsizer_learned_demand(&d->state, hour + 5, 5, 300 * SECOND) > 0);
	assert_true(walsizer_learned_demand(&d->state, hour + 7, 5, 300 * SECOND) == 0);
	/* a wall clock that was set back forgets nothing */
	assert_true(walsizer_learned_demand(&d->state, hour - 3, 5, 300 * SECOND) > 0);

	walsizer_forget(&d->state);
	assert_int_equal(walsizer_learned_demand(&d->state, hour, 100, 300 * SECOND), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_sample_decides_nothing),
		cmocka_unit_test(enough_stays),
		cmocka_unit_test(predicted_before_it_is_forced),
		cmocka_unit_test(prediction_waits_until_it_is_near),
		cmocka_unit_test(prediction_goes_to_twice_at_most),
		cmocka_unit_test(prediction_off_waits_for_the_cycle),
		cmocka_unit_test(forced_rule_waits_for_the_threshold),
		cmocka_unit_test(a_known_load_is_not_taken_for_more),
		cmocka_unit_test(a_statement_with_the_old_value_raises_once),
		cmocka_unit_test(max_binds_and_is_named),
		cmocka_unit_test(a_bound_below_never_lowers_what_is_not_ours),
		cmocka_unit_test(a_bound_that_comes_down_lowers_our_raise),
		cmocka_unit_test(never_below_two_segments),
		cmocka_unit_test(lowers_what_it_raised_after_the_lookback),
		cmocka_unit_test(lowers_to_min),
		cmocka_unit_test(lowering_waits_for_little_wal),
		cmocka_unit_test(disabled_watches_only),
		cmocka_unit_test(a_standby_ignores_its_own_restartpoints),
		cmocka_unit_test(not_applied_is_retried_once_a_timeout),
		cmocka_unit_test(evaluate_runs_the_cycles_rules),
		cmocka_unit_test(early_wakes_shorten_no_cycle),
		cmocka_unit_test(what_was_seen_is_remembered),
	};

	return cmocka_run_group_tests_name("policy, rules", tests, NULL, NULL);
}
