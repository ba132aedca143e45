/*-------------------------------------------------------------------------
 *
 * test_step.c
 *	  One step: which rule comes first, what must wait, when the disk is read.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"

TEST(a_raise_that_nothing_limits_names_no_limit)
{
	Driver	   *d = driver_quiet();

	d->sample.boost_mb = 4096;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_RAISE);
	assert_int_equal(d->last.target_mb, 4096);
	assert_int_equal(d->last.wanted_mb, 4096);
	assert_int_equal(d->last.limited_by, WALSIZER_UNLIMITED);
	assert_false(d->last.limited);
	assert_int_equal(d->state.pacing.tried_mb, 4096);
	assert_int_equal(d->state.pacing.tried_at, d->sample.now);

	d = driver_quiet();
	d->config.max_mb = 4096;
	d->sample.boost_mb = 4096;	/* just within the limit */
	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.limited_by, WALSIZER_UNLIMITED);
	d = driver_quiet();
	d->config.max_mb = 4080;
	d->sample.boost_mb = 4096;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.target_mb, 4080);
	assert_int_equal(d->last.limited_by, WALSIZER_LIMIT_MAX);
}

/* A raise that the disk allows in steps says so at the first of them. */
TEST(a_step_towards_the_size_names_the_disk)
{
	Driver	   *d = driver_new();

	d->sample.disk_read = true;
	d->sample.disk_free = 9000 * MB;
	d->sample.disk_wal = 600 * MB;
	driver_step(d, 0, 0);
	while (d->raises == 0)
		driver_step(d, SECOND, 8 * MB);
	assert_in_range(d->last.target_mb, 1500, 1520);
	assert_int_equal(d->last.wanted_mb, 2048);
	assert_int_equal(d->last.limited_by, WALSIZER_LIMIT_DISK);
}

/* The first matching rule applies: a raise comes before any lowering. */
TEST(a_raise_comes_before_a_lowering)
{
	Driver	   *d = driver_quiet_raise(4000);

	/* a planned load is over, and demand needs less, when 500MB/s begin */
	d->state.boost.return_mb = 1024;
	d->state.boost.planned_until = d->sample.now - SECOND;
	d->state.pacing.lower_due = true;
	driver_step(d, SECOND / 2, 250 * MB);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_PREDICTED);
	assert_int_equal(d->last.action, WALSIZER_RAISE);
}

/* A lowering that demand allows anyway is not the limit's. */
TEST(a_limit_changes_nothing_that_is_lowered_already)
{
	Driver	   *d = driver_quiet_raise(4000);

	d->config.max_mb = 2000;
	d->state.pacing.lower_due = true;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_LOWER);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_DEMAND_FELL);
	assert_int_equal(d->last.target_mb, 1024);
	assert_int_equal(d->last.limited_by, WALSIZER_UNLIMITED);

	/* nor does walsizer.min keep more than a limit allows */
	d = driver_quiet_raise(4000);
	d->config.max_mb = 2000;
	d->config.min_mb = 3000;
	d->state.pacing.lower_due = true;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_LOWER);
	assert_int_equal(d->last.target_mb, 2000);

	/* after a planned load, too */
	d = driver_quiet_raise(4000);
	d->config.max_mb = 2000;
	d->config.min_mb = 3000;
	d->state.boost.return_mb = 1200;
	d->state.boost.planned_until = d->sample.now;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_LOWER);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_BOOST_OVER);
	assert_int_equal(d->last.target_mb, 2000);
}

/* What a limit keeps from being raised is limited at each sample, until T has none forced. */
TEST(a_limit_holds_between_cycles_too)
{
	Driver	   *d = driver_new();

	d->config.max_mb = 1024;
	driver_run(d, 400, 8 * MB);
	for (int i = 0; i < 400; i++)
	{
		driver_run(d, 1, 8 * MB);
		assert_true(d->last.limited);
		assert_int_equal(d->last.limited_by, WALSIZER_LIMIT_MAX);
		assert_int_not_equal(d->last.reason, WALSIZER_BECAUSE_SUFFICIENT);
	}
	driver_run(d, 100, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_FORCED);
	assert_true(d->last.limited);
	assert_int_equal(d->last.action, WALSIZER_NONE);
	driver_run(d, 510, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_SUFFICIENT);
	assert_false(d->last.limited);

	/* a planned load that is held back says so, and forces nothing on a standby */
	driver_run(d, 100, 8 * MB);
	d->sample.boost_mb = 2048;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_BOOST);
	d->sample.boost_mb = 0;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_FORCED);
	d->sample.standby = true;
	driver_step(d, SECOND, 0);
	d->state.cycle.forced = d->state.checkpoints.total[WALSIZER_CAUSE_OLD_VALUE] = 5;
	d->state.cycle.demand = 2000 * MB;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_SUFFICIENT);
}

/* A copy of a server on a full disk need not wait for a second sample. */
TEST(the_first_sample_may_act)
{
	Driver	   *d = driver_new();

	driver_write(d, 4000);
	d->sample.note.original_mb = 1024;
	d->sample.disk_read = true;
	d->sample.disk_free = 2000 * MB;
	assert_int_equal(driver_step(d, 0, 0), WALSIZER_LOWER);
	assert_int_equal(d->last.target_mb, 1024);

	/* unless it must not */
	d = driver_new();
	d->config.enable = false;
	driver_step(d, 0, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_DISABLED);
}

/* A server whose disk is read when that is due, was read just now and has room. */
static Driver *
asking(Driver *d)
{
	d->sample.disk_read = d->ask_for_disk = true;
	d->sample.disk_free = 100000 * MB;
	driver_step(d, SECOND, 0);
	driver_step(d, SECOND, 0);
	d->looks = 0;
	return d;
}

/* The last look is good for a raise, too, except where a session asks for it. */
TEST(a_raise_needs_no_look_of_its_own)
{
	Driver	   *d = asking(driver_quiet());

	d->sample.boost_mb = 4096;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_RAISE);
	assert_int_equal(d->last.target_mb, 4096);
	assert_int_equal(d->looks, 0);
	d->sample.act_now = true;
	d->sample.disk_free = 6000 * MB;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_RAISE);
	assert_int_equal(d->last.target_mb, 2992);
	assert_int_equal(d->last.limited_by, WALSIZER_LIMIT_DISK);
	assert_int_equal(d->looks, 1);
}

/* A cycle is one timeout, and the next begins where it ended. */
TEST(a_cycle_ends_after_a_timeout)
{
	Driver	   *d = driver_new();

	driver_step(d, 0, 0);
	assert_false(d->last.cycle);
	driver_step(d, 299999, 0);
	assert_false(d->last.cycle);
	driver_step(d, 1, 0);
	assert_true(d->last.cycle);
	assert_true(d->state.cycle.over);
	driver_step(d, 300100, 0);
	assert_true(d->last.cycle);
	driver_step(d, 299899, 0);
	assert_false(d->last.cycle);
	driver_step(d, 1, 0);
	assert_true(d->last.cycle);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_raise_that_nothing_limits_names_no_limit),
		cmocka_unit_test(a_step_towards_the_size_names_the_disk),
		cmocka_unit_test(a_raise_comes_before_a_lowering),
		cmocka_unit_test(a_limit_changes_nothing_that_is_lowered_already),
		cmocka_unit_test(a_limit_holds_between_cycles_too),
		cmocka_unit_test(the_first_sample_may_act),
		cmocka_unit_test(a_raise_needs_no_look_of_its_own),
		cmocka_unit_test(a_cycle_ends_after_a_timeout),
	};

	return cmocka_run_group_tests_name("policy, one step", tests, NULL, NULL);
}
