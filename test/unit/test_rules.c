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
	assert_int_equal(d->state.owner.original_mb, 1024);
}

static void
enough_stays(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	driver_run(d, 3600, CAPACITY * 95 / 100 / 300);
	assert_int_equal(d->raises + d->lowers, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_SUFFICIENT);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_FORCED], 0);
}

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
	assert_in_range(d->sample.settings.max_wal_size_mb,
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
	driver_run(d, 901, 4 * MB); /* two forced in each T */
	assert_int_equal(d->raises, 0);
	driver_run(d, 600, 8 * MB); /* four in each */
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
disabled_watches_only(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	d->config.enable = false;
	driver_run(d, 1800, 8 * MB);
	assert_int_equal(d->raises, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_DISABLED);
	assert_true(d->last.figures.wanted_mb > 4000);
	d->config.enable = true;
	driver_run(d, 400, 8 * MB);
	assert_true(d->raises > 0);
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
		d->sample.adjust = true;	/* being asked is another matter */
		driver_step(d, SECOND, 8 * MB);
		d->sample.adjust = false;
	}
	assert_true(d->last.reason == WALSIZER_BECAUSE_PREDICTED ||
				d->last.reason == WALSIZER_BECAUSE_FORCED);
}

/* A day without any change because one attempt failed would be too long. */
static void
what_failed_waits_minutes_at_most(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
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

static void
evaluate_runs_the_cycles_rules(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	d->config.predict = false;
	driver_run(d, 150, 10 * MB);
	assert_int_equal(d->raises, 0);
	d->sample.adjust = true;
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
what_follows_a_change_is_reported_once(void **unused)
{
	Driver	   *d = driver_new();
	int			reports = 0;
	int64_t		forced = 0;
	int64_t		size = 0;
	int64_t		at = 0;

	(void) unused;
	d->config.predict = false;
	while (d->raises == 0)
		driver_run(d, 1, 8 * MB);
	for (int i = 1; i <= 400; i++)
	{
		driver_step(d, SECOND, MB);
		if (i == 100 || i == 200)
		{
			/* a statement with the value of before continues */
			d->sample.write_lsn += 33 * SEGMENT;
			driver_checkpoint(d, true);
		}
		if (d->last.followed)
		{
			reports++;
			forced = d->last.followed_forced;
			size = d->last.followed_mb;
			at = i;
		}
	}
	assert_int_equal(reports, 1);
	assert_int_equal(forced, 2);
	assert_int_equal(size, d->sample.settings.max_wal_size_mb);
	assert_in_range(at, 300, 302);
}

static void
changes_on_the_heels_of_another_are_all_reported(void **unused)
{
	Driver	   *d = driver_new();
	int64_t		sizes[4] = {0};
	int			reports = 0;
	int			changes = 0;

	(void) unused;
	driver_step(d, 0, 0);
	for (int i = 0; i < 1000; i++)
	{
		if (i % 100 == 50 && changes < 3)
			d->sample.settings.max_wal_size_mb = 2000 + 16 * changes++;
		driver_step(d, SECOND, 0);
		if (d->last.followed && reports < 4)
			sizes[reports++] = d->last.followed_mb;
	}
	assert_int_equal(reports, 3);
	assert_int_equal(sizes[0], 2000);
	assert_int_equal(sizes[2], 2032);
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
		cmocka_unit_test(first_sample_decides_nothing),
		cmocka_unit_test(enough_stays),
		cmocka_unit_test(predicted_before_it_is_forced),
		cmocka_unit_test(prediction_waits_until_it_is_near),
		cmocka_unit_test(prediction_goes_to_twice_at_most),
		cmocka_unit_test(prediction_off_waits_for_the_cycle),
		cmocka_unit_test(forced_rule_waits_for_the_threshold),
		cmocka_unit_test(a_known_load_is_not_taken_for_more),
		cmocka_unit_test(a_statement_with_the_old_value_raises_once),
		cmocka_unit_test(lowers_what_it_raised_after_the_lookback),
		cmocka_unit_test(lowers_to_min),
		cmocka_unit_test(lowering_waits_for_little_wal),
		cmocka_unit_test(disabled_watches_only),
		cmocka_unit_test(not_applied_is_retried_once_a_timeout),
		cmocka_unit_test(what_failed_waits_minutes_at_most),
		cmocka_unit_test(evaluate_runs_the_cycles_rules),
		cmocka_unit_test(early_wakes_shorten_no_cycle),
		cmocka_unit_test(what_was_seen_is_remembered),
		cmocka_unit_test(page_images_enlarge_our_raise),
		cmocka_unit_test(page_images_alone_change_nothing),
		cmocka_unit_test(what_follows_a_change_is_reported_once),
		cmocka_unit_test(changes_on_the_heels_of_another_are_all_reported),
		cmocka_unit_test(a_raise_is_kept_for_an_hour),
		cmocka_unit_test(forgetting_lets_a_raise_go_after_two_windows),
		cmocka_unit_test(smooth_checkpoints_are_nothing_to_warn_of),
		cmocka_unit_test(a_peak_is_not_stretched_with_the_timeout),
		cmocka_unit_test(demand_belongs_to_the_timeout_it_was_measured_with),
		cmocka_unit_test(a_clock_set_forward_takes_nothing_at_once),
		cmocka_unit_test(a_clock_set_back_takes_nothing_at_once),
	};

	return cmocka_run_group_tests_name("policy, rules", tests, NULL, NULL);
}
