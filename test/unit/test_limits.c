/*-------------------------------------------------------------------------
 *
 * test_limits.c
 *	  What limits a size: the ceiling, the disk, recovery, two segments.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"

TEST(max_binds_and_is_named)
{
	Driver	   *d = driver_new();

	d->config.max_mb = 1500;
	driver_step(d, 0, 0);
	while (d->raises == 0)
		driver_step(d, SECOND, 8 * MB);
	assert_int_equal(d->last.target_mb, 1488); /* whole segments */
	assert_int_equal(d->last.limited_by, WALSIZER_LIMIT_MAX);
	assert_true(d->last.wanted_mb > d->last.target_mb);
	driver_run(d, 3600, 8 * MB);
	assert_int_equal(d->raises, 1);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 1488);
}

/* Why more is wanted is told beside the limit, and what was measured is no guess. */
TEST(a_limit_does_not_hide_the_reason)
{
	Driver	   *d = driver_new();

	d->config.max_mb = 1024;
	driver_run(d, 30, 8 * MB);
	for (int i = 0; i < 60 && !d->last.limited; i++)
		driver_step(d, SECOND, 8 * MB);
	assert_int_equal(d->last.action, WALSIZER_NONE);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_PREDICTED);
	assert_int_equal(d->last.limited_by, WALSIZER_LIMIT_MAX);
	assert_int_equal(d->last.wanted_mb, 2048);
	assert_int_equal(d->last.figures.forced, 0);
	assert_int_equal(d->last.figures.wanted_mb,
					 walsizer_size_with_headroom(&d->config, &d->sample.settings,
												 d->last.figures.demand));

	driver_run(d, 600, 8 * MB);
	d->sample.act_now = true;
	driver_step(d, SECOND, 8 * MB);
	assert_true(d->last.limited);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_FORCED);
}

/* Of what is written between two samples, each sample sees more than half a trigger point. */
TEST(a_lower_max_is_followed_under_a_load_that_far_exceeds_it)
{
	Driver	   *d = driver_quiet_raise(16000);

	d->apply = true;
	d->config.sample_interval_ms = 10 * SECOND;
	d->config.max_mb = 1024;
	for (int i = 0; i < 60; i++)
	{
		driver_step(d, 10 * SECOND, 900 * MB);
		if (driver_forced_due(d))
			driver_checkpoint(d, true);
	}
	assert_int_equal(d->sample.settings.max_wal_size_mb, 1024);
	assert_int_equal(d->lowers, 1);
	assert_int_equal(d->raises, 0);
}

/* A lowering to a limit is not reported as a raise that the limit prevents. */
TEST(a_lowering_to_a_limit_is_not_limited)
{
	Driver	   *d = driver_quiet_raise(4000);

	d->state.cycle.forced = d->state.checkpoints.total[WALSIZER_CAUSE_FORCED] = 2;
	d->state.cycle.demand = 8000 * MB;
	d->sample.act_now = true;
	d->config.max_mb = 2000;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_LOWER);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_LIMIT_FELL);
	assert_false(d->last.limited);
}

TEST(a_limit_below_never_lowers_what_is_not_ours)
{
	Driver	   *d = driver_new();

	d->config.max_mb = 512;
	driver_run(d, 3600, 8 * MB);
	assert_int_equal(d->raises + d->lowers, 0);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 1024);
	d->sample.act_now = true;
	driver_step(d, SECOND, 8 * MB);
	assert_int_equal(d->lowers, 0);
}

TEST(a_limit_that_comes_down_lowers_our_raise)
{
	Driver	   *d = driver_new();

	driver_run(d, 1800, 8 * MB);
	assert_true(d->sample.settings.max_wal_size_mb > 4000);
	d->config.max_mb = 2048;
	driver_run(d, 1200, 1 * MB);
	assert_int_equal(d->lowers, 1);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 2048);

	/* not below what was found */
	d->config.max_mb = 2;
	driver_run(d, 1200, 1 * MB);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 1024);
	driver_run(d, 1200, 1 * MB);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 1024);
}

TEST(never_below_two_segments)
{
	Driver	   *d = driver_new();

	d->sample.settings.segment_bytes = 1024 * MB;
	d->config.max_mb = 2;
	driver_run(d, 1200, 30 * MB);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 2048);
}

TEST(disk_space_binds)
{
	Driver	   *d = driver_new();

	d->sample.disk_read = true;
	for (int i = 0; i < 1500; i++)
	{
		/* a volume of 4000MB, where what may be filled is */
		d->sample.disk_wal = d->sample.settings.max_wal_size_mb * MB;
		d->sample.disk_free = 4000 * MB - d->sample.disk_wal;
		driver_run(d, 1, 8 * MB);
	}
	/* in steps, the last of which is worth one */
	assert_in_range(d->sample.settings.max_wal_size_mb, 2000 * 10 / 11, 2000);
	assert_in_range(d->raises, 3, 6);
	assert_int_equal(d->last.figures.limits_mb[WALSIZER_LIMIT_DISK], 2000);
	assert_int_equal(d->last.figures.limit_kind, WALSIZER_LIMIT_DISK);

	/* filled by others: our raise goes, what was found stays */
	d->sample.disk_wal = 1000 * MB;
	d->sample.disk_free = 500 * MB;
	driver_step(d, SECOND, 8 * MB);
	assert_int_equal(d->last.action, WALSIZER_LOWER);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_LIMIT_FELL);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 1024);
}

TEST(the_disk_wins_over_min)
{
	Driver	   *d = driver_new();

	d->config.min_mb = 3000;
	driver_run(d, 900, 4 * MB);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 2800);
	d->sample.disk_read = true;
	d->sample.disk_wal = 2800 * MB;
	d->sample.disk_free = 500 * MB;
	driver_step(d, SECOND, MB);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_LIMIT_FELL);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 1648);

	/* the original value stays */
	d->sample.disk_wal = 1600 * MB;
	d->sample.disk_free = 0;
	driver_run(d, 10, 0);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 1024);
}

/* A raise that failed, at a checkpoint_timeout of a day, stands in no way of it. */
TEST(nothing_that_failed_keeps_the_disk_from_being_saved)
{
	Driver	   *d = driver_new();
	int			lowers = 0;

	d->sample.settings.timeout_ms = 86400 * SECOND;
	driver_run(d, 300, 8 * MB);
	assert_in_range(d->sample.settings.max_wal_size_mb, 4000, 8192);
	d->apply = false;
	driver_run(d, 600, 8 * MB);
	assert_true(d->raises > 3);
	assert_int_not_equal(d->state.pacing.tried_mb, 0);

	d->sample.disk_read = true;
	d->sample.disk_wal = 1500 * MB;
	d->sample.disk_free = 500 * MB;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.action, WALSIZER_LOWER);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_LIMIT_FELL);

	/* if that fails as well, it is tried again, but not each second */
	lowers = d->lowers;
	driver_run(d, 60, 0);
	assert_in_range(d->lowers - lowers, 5, 6);
	d->apply = true;
	driver_run(d, 10, 0);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 1024);
}

/* What one raise may claim of the disk: a part of what is free. */
TEST(a_raise_claims_a_part_of_what_is_free)
{
	Driver	   *d = driver_new();

	d->sample.disk_read = true;
	d->sample.disk_free = 9000 * MB;
	d->sample.disk_wal = 600 * MB;
	driver_run(d, 280, 8 * MB);

	/* what others may have claimed does not show, nor is ours filled */
	assert_in_range(d->sample.settings.max_wal_size_mb, 1500, 1520);
	assert_int_equal(d->last.action, WALSIZER_NONE);
	assert_int_equal(d->last.limited_by, WALSIZER_LIMIT_DISK);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_PREDICTED);
	assert_false(d->last.limited);
	d->sample.disk_wal = 1500 * MB;
	d->sample.disk_free = 8100 * MB;
	driver_run(d, 2, 8 * MB);
	assert_in_range(d->sample.settings.max_wal_size_mb, 2300, 2320);

	/* a planned load takes at once what it may have in the end */
	d->sample.boost_mb = 10000;
	d->sample.act_now = true;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 4800);
}

/* Nor need one be considerate where nothing but our own WAL is. */
TEST(alone_on_a_volume_one_raise_takes_all_that_is_needed)
{
	Driver	   *d = driver_new();

	d->sample.disk_read = d->sample.disk_alone = true;
	d->sample.disk_free = 9000 * MB;
	d->sample.disk_wal = 600 * MB;
	driver_run(d, 280, 6 * MB);
	assert_in_range(d->sample.settings.max_wal_size_mb, 3500, 4800);
	assert_in_range(d->raises, 1, 3);
	assert_int_equal(d->last.limited_by, WALSIZER_UNLIMITED);
}

/* After the disk limit was followed down, free space must last for one timeout. */
TEST(free_space_that_comes_and_goes_is_not_followed)
{
	Driver	   *d = driver_new();

	d->sample.settings.timeout_ms = 30 * SECOND;
	d->sample.disk_read = true;
	d->sample.disk_wal = 1000 * MB;
	d->sample.disk_free = 4000 * MB;
	driver_run(d, 60, 50 * MB);
	assert_in_range(d->sample.settings.max_wal_size_mb, 1300, 1450);
	d->raises = 0;
	for (int i = 0; i < 240; i++)
	{
		d->sample.disk_free = (i / 20 % 2 == 0 ? 1100 : 4000) * MB;
		driver_run(d, 1, 50 * MB);
	}
	assert_int_equal(d->lowers, 1);
	assert_int_equal(d->raises, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_PREDICTED);
	assert_int_equal(d->last.limited_by, WALSIZER_LIMIT_DISK);

	/* being asked is another matter */
	d->sample.act_now = true;
	driver_run(d, 1, 50 * MB);
	assert_int_equal(d->raises, 1);
}

/* For half a day after the wait for a limit that fell twice, small steps are not taken. */
TEST(steps_are_large_while_a_limit_swings)
{
	static const struct
	{
		int64_t		hold;		/* ms */
		int64_t		ago;		/* s since the wait was over */
		bool		small;
	}			cases[] = {
		{301 * SECOND, 12 * 3600 - 30, false},
		{301 * SECOND, 12 * 3600, true},
		{300 * SECOND, 12 * 3600 - 30, true},
	};

	for (int i = 0; i < 3; i++)
	{
		Driver	   *d = driver_new();

		d->sample.disk_read = true;
		d->sample.disk_wal = 1000 * MB;
		d->sample.disk_free = 2500 * MB;
		driver_run(d, 2, 0);
		d->state.pacing.hold_ms = cases[i].hold;
		d->state.pacing.raise_not_before = d->sample.now - cases[i].ago * SECOND;
		driver_run(d, 10, 50 * MB);
		assert_int_equal(d->raises, cases[i].small);
		if (!cases[i].small)
			assert_int_equal(d->last.limited_by, WALSIZER_LIMIT_DISK);
	}
}

/* What others are about to take is not free. */
TEST(a_raise_leaves_what_others_are_taking)
{
	Driver	   *d = driver_new();

	d->sample.disk_read = true;
	d->sample.disk_wal = 1000 * MB;
	d->sample.disk_free = 20000 * MB;
	for (int i = 0; i < 60; i++)
	{
		d->sample.disk_free -= 100 * MB;
		driver_run(d, 1, 8 * MB);
	}
	/* 100MB per second for the five until it shows */
	assert_int_equal(d->raises, 1);
	assert_in_range(d->last.figures.step_limit_mb, 1000 + (20000 - 6000 - 500) / 10 - 16,
					1000 + (20000 - 6000 - 500) / 10 + 32);
}

static int
looks_in_a_minute(int64_t free, int64_t rate)
{
	Driver	   *d = driver_new();

	d->config.enable = false;
	d->ask_for_disk = true;
	d->sample.disk_read = true;
	d->sample.disk_free = free;
	driver_run(d, 1, 0);
	d->looks = 0;
	driver_run(d, 60, rate);
	return d->looks;
}

/* The fuller the disk, and the faster WAL is written, the more often it is looked at. */
TEST(the_disk_is_looked_at_before_it_can_fill)
{
	assert_int_equal(looks_in_a_minute(100000 * MB, 8 * MB), 6);
	assert_int_equal(looks_in_a_minute(500 * MB, 0), 60);
	assert_int_equal(looks_in_a_minute(10000 * MB, 600 * MB), 60);
	assert_in_range(looks_in_a_minute(5000 * MB, 8 * MB), 12, 20);
}

TEST(recovery_time_binds)
{
	Driver	   *d = driver_new();

	d->config.max_recovery_ms = 50 * SECOND;
	d->config.replay_rate = 40.0 * MB;
	driver_run(d, 1500, 8 * MB);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 2000);
	assert_int_equal(d->last.figures.limit_kind, WALSIZER_LIMIT_RECOVERY);
}

/* A limit that moves a little must not make a change of every movement. */
TEST(a_limit_that_trembles_changes_little)
{
	Driver	   *d = driver_new();

	d->sample.disk_read = true;
	d->sample.disk_wal = 1000 * MB;
	for (int i = 0; i < 7200; i++)
	{
		d->sample.disk_free = (3000 + (i * 37) % 400) * MB;
		driver_run(d, 1, 8 * MB);
	}
	assert_in_range(d->raises + d->lowers, 1, 4);
}

TEST(a_planned_load_keeps_within_limits_that_come_down)
{
	Driver	   *d = driver_new();

	driver_run(d, 10, MB);
	d->sample.boost_mb = 8192;
	d->sample.act_now = true;	/* as the worker does for a request */
	driver_step(d, SECOND, MB);
	d->sample.act_now = false;
	assert_int_equal(d->sample.settings.max_wal_size_mb, 8192);

	/* the volume fills up: at once */
	d->sample.disk_read = true;
	d->sample.disk_free = 8000 * MB;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_LIMIT_FELL);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 4000);

	/* less room, and a little more again: which limit holds the plan back is said */
	d->sample.disk_free = 8200 * MB;
	driver_run(d, 20, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_BOOST);
	assert_true(d->last.limited);
	assert_int_equal(d->last.limited_by, WALSIZER_LIMIT_DISK);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 4000);

	/* the plan is kept where there has been room again for one timeout */
	d->sample.disk_free = 20000 * MB;
	driver_run(d, 290, 0);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 4000);
	driver_run(d, 20, 0);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 8192);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(max_binds_and_is_named),
		cmocka_unit_test(a_limit_does_not_hide_the_reason),
		cmocka_unit_test(a_lower_max_is_followed_under_a_load_that_far_exceeds_it),
		cmocka_unit_test(a_lowering_to_a_limit_is_not_limited),
		cmocka_unit_test(a_limit_below_never_lowers_what_is_not_ours),
		cmocka_unit_test(a_limit_that_comes_down_lowers_our_raise),
		cmocka_unit_test(never_below_two_segments),
		cmocka_unit_test(disk_space_binds),
		cmocka_unit_test(a_raise_claims_a_part_of_what_is_free),
		cmocka_unit_test(alone_on_a_volume_one_raise_takes_all_that_is_needed),
		cmocka_unit_test(free_space_that_comes_and_goes_is_not_followed),
		cmocka_unit_test(steps_are_large_while_a_limit_swings),
		cmocka_unit_test(a_raise_leaves_what_others_are_taking),
		cmocka_unit_test(the_disk_is_looked_at_before_it_can_fill),
		cmocka_unit_test(the_disk_wins_over_min),
		cmocka_unit_test(nothing_that_failed_keeps_the_disk_from_being_saved),
		cmocka_unit_test(recovery_time_binds),
		cmocka_unit_test(a_limit_that_trembles_changes_little),
		cmocka_unit_test(a_planned_load_keeps_within_limits_that_come_down),
	};

	return cmocka_run_group_tests_name("policy, limits", tests, NULL, NULL);
}
