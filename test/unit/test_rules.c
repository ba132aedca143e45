/*-------------------------------------------------------------------------
 *
 * test_rules.c
 *	  When walsizer raises, and when it leaves things alone.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"
#include "policy/internal.h"

/* Capacity at 1GB, c = 0.9: 33 segments. */
#define CAPACITY	(33 * SEGMENT)

TEST(first_sample_decides_nothing)
{
	Driver	   *d = driver_new();

	assert_int_equal(driver_step(d, 0, 0), WALSIZER_NONE);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_STARTED);
	assert_int_equal(d->state.owner.original_mb, 1024);
}

TEST(enough_stays)
{
	Driver	   *d = driver_new();

	driver_run(d, 3600, CAPACITY * 95 / 100 / 300);
	assert_int_equal(d->raises + d->lowers, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_SUFFICIENT);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_FORCED], 0);
}

TEST(prediction_off_waits_for_the_cycle)
{
	Driver	   *d = driver_new();

	d->config.predict = false;
	driver_step(d, 0, 0);
	driver_run(d, 299, 4 * MB);
	assert_int_equal(d->raises, 0);
	driver_run(d, 2, 4 * MB);
	assert_int_equal(d->raises, 1);
	assert_in_range(d->sample.settings.max_wal_size_mb,
					walsizer_size_for(1200 * MB, &d->sample.settings),
					walsizer_size_for(1200 * MB * 135 / 100, &d->sample.settings));
}

/* Four are forced and raise; the next T has more WAL, and none of them. */
TEST(what_raised_once_does_not_raise_again)
{
	Driver	   *d = driver_new();

	d->config.predict = false;
	driver_run(d, 301, 8 * MB);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_FORCED], 4);
	assert_int_equal(d->raises, 1);
	driver_run(d, 263, 5 * MB);
	driver_run(d, 40, 40 * MB);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_FORCED], 4);
	assert_true(walsizer_size_for(d->last.figures.demand, &d->sample.settings) >
				d->sample.settings.max_wal_size_mb);
	assert_int_equal(d->raises, 1);

	/* except on request: a limit may have kept it small */
	d = driver_new();
	d->config.predict = false;
	d->config.max_mb = 1200;
	driver_run(d, 301, 8 * MB);
	assert_int_equal(d->raises, 1);
	d->config.max_mb = 16384;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->raises, 1);
	d->sample.act_now = true;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->raises, 2);
}

TEST(forced_rule_waits_for_the_threshold)
{
	Driver	   *d = driver_new();

	d->config.predict = false;
	d->config.threshold = 3;
	driver_run(d, 901, 35 * MB / 10);	/* one forced each 150 s, two in each T */
	assert_int_equal(d->raises, 0);
	driver_run(d, 600, 8 * MB); /* four in each */
	assert_int_equal(d->raises, 1);
}

TEST(a_statement_with_the_old_value_raises_once)
{
	Driver	   *d = driver_new();
	int64_t		size;

	/* known demand of 800MB, so the size is right from the first raise on */
	d->sample.checkpoint_age = 0;
	driver_step(d, 0, 0);
	while (d->raises == 0)
		driver_step(d, SECOND, 3 * MB);
	size = d->sample.settings.max_wal_size_mb;

	/* the statement continues forcing at the old trigger point */
	for (int i = 0; i < 3600; i++)
	{
		driver_step(d, SECOND, 3 * MB);
		if ((int64_t) (d->sample.write_lsn - d->sample.redo_lsn) > CAPACITY)
			driver_checkpoint(d, true);
	}
	assert_true(d->state.checkpoints.total[WALSIZER_CAUSE_OLD_VALUE] > 0);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_FORCED], 0);
	assert_int_equal(d->sample.settings.max_wal_size_mb, size);
	assert_int_equal(d->raises, 1);
}

TEST(disabled_watches_only)
{
	Driver	   *d = driver_new();

	d->config.enable = false;
	driver_run(d, 1800, 8 * MB);
	assert_int_equal(d->raises, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_DISABLED);
	assert_true(d->last.figures.wanted_mb > 4000);
	d->config.enable = true;
	driver_run(d, 400, 8 * MB);
	assert_true(d->raises > 0);
}

TEST(not_applied_is_retried_once_a_timeout)
{
	Driver	   *d = driver_new();

	d->apply = false;
	driver_run(d, 3000, 8 * MB);
	assert_in_range(d->raises, 5, 10);
	/* only the time since then counts, also if it is as long as the time before */
	d->state.pacing.tried_at = (d->sample.now + SECOND) / 2;
	driver_step(d, SECOND, 8 * MB);
	assert_int_not_equal(d->last.reason, WALSIZER_BECAUSE_WAITING);
	for (int i = 0; i < 10; i++)
	{
		d->sample.act_now = true;	/* being asked is another matter */
		driver_step(d, SECOND, 8 * MB);
		d->sample.act_now = false;
	}
	assert_true(d->last.reason == WALSIZER_BECAUSE_PREDICTED ||
				d->last.reason == WALSIZER_BECAUSE_FORCED);
}

/* A day without any change because one attempt failed would be too long. */
TEST(what_failed_waits_minutes_at_most)
{
	Driver	   *d = driver_new();

	d->sample.settings.timeout_ms = 86400 * SECOND;
	d->apply = false;
	driver_run(d, 300, 8 * MB);
	assert_int_equal(d->raises, 1);
	driver_run(d, 800, 8 * MB);
	assert_in_range(d->raises, 3, 6);
	d->apply = true;
	driver_run(d, 310, 8 * MB);
	assert_true(d->sample.settings.max_wal_size_mb > 1024);

	/* nor is a change by an administrator left alone for a day */
	d->sample.settings.max_wal_size_mb = 1040;
	driver_run(d, 200, 8 * MB);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 1040);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_RECENTLY_CHANGED);
	driver_run(d, 200, 8 * MB);
	assert_true(d->sample.settings.max_wal_size_mb > 1040);
}

/* Samples do not come exactly when the waiting is over. */
TEST(what_failed_waits_no_longer_where_samples_are_rare)
{
	Driver	   *d = driver_new();

	d->apply = false;
	for (int i = 0; i < 300; i++)
		(void) driver_step(d, 7 * SECOND, 56 * MB);
	assert_in_range(d->raises, 6, 8);
}

TEST(evaluate_runs_the_cycles_rules)
{
	Driver	   *d = driver_new();

	d->config.predict = false;
	driver_run(d, 150, 10 * MB);
	assert_int_equal(d->raises, 0);
	d->sample.act_now = true;
	driver_step(d, SECOND, 10 * MB);
	assert_int_equal(d->raises, 1);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_FORCED);
}

TEST(early_wakes_shorten_no_cycle)
{
	Driver	   *d = driver_new();
	int			cycles = 0;

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

/* With 1GB, of which 528MB force a checkpoint, and this demand. */
static int64_t
forced_size(Driver *d, int64_t demand)
{
	WalsizerFigures figures = {.in_effect_mb = 1024, .demand = demand};

	d->state.checkpoints.total[WALSIZER_CAUSE_FORCED] = d->state.cycle.forced;
	return walsizer_forced_rule(&d->config, driver_seen(d), &figures);
}

/* Several forced checkpoints wrote page images, which is headroom enough. */
TEST(headroom_is_added_to_one_forced_checkpoint_only)
{
	Driver	   *d = driver_new();

	d->state.cycle.forced = 1;
	assert_int_equal(forced_size(d, 700 * MB),
					 walsizer_size_with_headroom(&d->config, &d->sample.settings, 700 * MB));
	d->state.cycle.forced = 2;
	assert_int_equal(forced_size(d, 700 * MB),
					 walsizer_size_for(700 * MB, &d->sample.settings));
}

/* They inflate demand: where prediction follows, a raise goes to twice the value. */
TEST(inflated_demand_is_approached_in_steps)
{
	for (int predict = 0; predict <= 1; predict++)
	{
		Driver	   *d = driver_new();
		WalsizerFigures figures = {.in_effect_mb = 1024, .demand = 5000 * MB, .forced = 2};

		d->config.predict = predict;
		d->state.cycle.forced = d->state.checkpoints.total[WALSIZER_CAUSE_FORCED] = 2;
		assert_int_equal(walsizer_forced_rule(&d->config, driver_seen(d), &figures),
						 predict ? 2048 : walsizer_size_for(5000 * MB, &d->sample.settings));
		figures.rate = 400 * MB;	/* or to what is written within the lead */
		assert_int_equal(walsizer_forced_rule(&d->config, driver_seen(d), &figures),
						 predict ? walsizer_size_with_headroom(&d->config, &d->sample.settings, 2000 * MB) :
						 walsizer_size_for(5000 * MB, &d->sample.settings));
		figures.forced = 1;		/* if only one lies in this window, they do not inflate its demand */
		assert_int_equal(walsizer_forced_rule(&d->config, driver_seen(d), &figures),
						 walsizer_size_for(5000 * MB, &d->sample.settings));
	}
}

/* Nothing is raised for a checkpoint that a command may have asked for. */
TEST(an_old_value_raises_nothing)
{
	Driver	   *d = driver_new();
	WalsizerFigures figures = {.in_effect_mb = 1024, .demand = 5000 * MB, .forced = 2,
							   .forced_old_value = 2};

	d->state.cycle.forced = d->state.checkpoints.total[WALSIZER_CAUSE_OLD_VALUE] = 2;
	assert_int_equal(walsizer_forced_rule(&d->config, driver_seen(d), &figures), 0);
}

/* But for one that WAL did force, and for as many as the threshold says. */
TEST(a_statement_raises_for_the_next_one)
{
	Driver	   *d = driver_new();
	WalsizerFigures figures = {.in_effect_mb = 1024, .demand = 1000 * MB, .forced = 2,
							   .forced_old_value = 2};

	d->state.cycle.old_value = 1;
	assert_int_equal(walsizer_forced_rule(&d->config, driver_seen(d), &figures),
					 walsizer_size_with_headroom(&d->config, &d->sample.settings, 1000 * MB));
	d->config.threshold = 2;
	assert_int_equal(walsizer_forced_rule(&d->config, driver_seen(d), &figures), 0);
	d->state.cycle.forced = d->state.checkpoints.total[WALSIZER_CAUSE_FORCED] = 1;
	assert_int_equal(walsizer_forced_rule(&d->config, driver_seen(d), &figures),
					 walsizer_size_for(1000 * MB, &d->sample.settings));
}

/* What just suffices is enough, without headroom. */
TEST(a_size_that_just_suffices_is_not_raised)
{
	Driver	   *d = driver_new();
	int64_t		enough = walsizer_size_for(700 * MB, &d->sample.settings);
	WalsizerFigures figures = {.in_effect_mb = enough, .demand = 700 * MB};

	d->state.cycle.forced = d->state.checkpoints.total[WALSIZER_CAUSE_FORCED] = 1;
	assert_int_equal(walsizer_forced_rule(&d->config, driver_seen(d), &figures), 0);
	figures.in_effect_mb--;
	assert_true(walsizer_forced_rule(&d->config, driver_seen(d), &figures) > enough);
}

TEST(as_many_must_be_forced_as_the_threshold_says)
{
	Driver	   *d = driver_new();

	assert_int_equal(forced_size(d, 700 * MB), 0);
	d->config.threshold = 4;
	d->state.cycle.forced = 4;
	assert_true(forced_size(d, 700 * MB) > 0);
	d->state.cycle.forced = 3;
	assert_int_equal(forced_size(d, 700 * MB), 0);
}

/* The largest window of the cycle counts, or that at its end with a planned load. */
TEST(the_largest_window_of_the_cycle_counts)
{
	Driver	   *d = driver_new();
	int64_t		fits = 512 * MB;	/* and a segment more for the redo pointer */

	d->state.cycle.forced = 2;
	assert_true(walsizer_size_for(fits, &d->sample.settings) <= 1024);
	assert_int_equal(forced_size(d, fits), 0);
	d->state.cycle.demand = fits;
	assert_int_equal(forced_size(d, 100 * MB), 0);
	d->state.cycle.demand = 900 * MB;
	assert_int_equal(forced_size(d, 100 * MB),
					 walsizer_size_for(900 * MB, &d->sample.settings));
	assert_int_equal(forced_size(d, 600 * MB),
					 walsizer_size_for(900 * MB, &d->sample.settings));
	assert_int_equal(forced_size(d, 901 * MB),
					 walsizer_size_for(901 * MB, &d->sample.settings));
}

/*
 * One is forced every 285 s: two lie in one window for 15 s only, which the end
 * of a cycle may not see for an hour and a half.
 */
TEST(two_in_a_window_count_whenever_that_was)
{
	for (int phase = 0; phase < 285; phase += 19)
	{
		Driver	   *d = driver_new();

		d->config.predict = false;
		d->config.threshold = 2;
		driver_run(d, 1 + phase, 0);
		d->state.cycle.start = d->sample.now;
		driver_run(d, 900, CAPACITY / 285 + 1);
		assert_int_equal(d->raises, 1);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_sample_decides_nothing),
		cmocka_unit_test(enough_stays),
		cmocka_unit_test(prediction_off_waits_for_the_cycle),
		cmocka_unit_test(what_raised_once_does_not_raise_again),
		cmocka_unit_test(forced_rule_waits_for_the_threshold),
		cmocka_unit_test(a_statement_with_the_old_value_raises_once),
		cmocka_unit_test(disabled_watches_only),
		cmocka_unit_test(not_applied_is_retried_once_a_timeout),
		cmocka_unit_test(what_failed_waits_minutes_at_most),
		cmocka_unit_test(what_failed_waits_no_longer_where_samples_are_rare),
		cmocka_unit_test(evaluate_runs_the_cycles_rules),
		cmocka_unit_test(early_wakes_shorten_no_cycle),
		cmocka_unit_test(headroom_is_added_to_one_forced_checkpoint_only),
		cmocka_unit_test(a_size_that_just_suffices_is_not_raised),
		cmocka_unit_test(as_many_must_be_forced_as_the_threshold_says),
		cmocka_unit_test(the_largest_window_of_the_cycle_counts),
		cmocka_unit_test(two_in_a_window_count_whenever_that_was),
		cmocka_unit_test(inflated_demand_is_approached_in_steps),
		cmocka_unit_test(an_old_value_raises_nothing),
		cmocka_unit_test(a_statement_raises_for_the_next_one),
	};

	return cmocka_run_group_tests_name("policy, rules", tests, NULL, NULL);
}
