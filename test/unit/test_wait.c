/*-------------------------------------------------------------------------
 *
 * test_wait.c
 *	  What did not take effect, what an edit hides, what the disk forbids: who waits.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"

/* What did not take effect is tried again after a timeout, or five minutes. */
TEST(a_raise_that_failed_waits)
{
	Driver	   *d = driver_quiet();

	d->config.max_mb = 4080;
	d->sample.boost_mb = 4096;
	driver_step(d, SECOND, 0);
	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.action, WALSIZER_NONE);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_WAITING);
	assert_int_equal(d->last.limited_by, WALSIZER_UNLIMITED);
	assert_int_equal(d->last.target_mb, 1024);
	assert_false(d->last.limited);
	assert_int_equal(driver_step(d, 298999, 0), WALSIZER_NONE);
	assert_int_equal(driver_step(d, 1, 0), WALSIZER_RAISE);

	/* asked for, it is tried at once */
	d->sample.act_now = true;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_RAISE);
}

/* However long checkpoint_timeout is, and just after a change or a start. */
TEST(a_planned_load_that_failed_waits_five_minutes)
{
	Driver	   *d = driver_new();

	d->apply = false;
	d->sample.settings.timeout_ms = 3600 * SECOND;
	driver_step(d, 0, 0);
	driver_step(d, SECOND, 0);
	d->sample.boost_mb = 8192;
	d->sample.act_now = true;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_RAISE);
	d->sample.act_now = false;
	assert_int_equal(driver_step(d, 299999, 0), WALSIZER_NONE);
	assert_int_equal(driver_step(d, 1, 0), WALSIZER_RAISE);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_BOOST);
}

/* Not until the end of the next cycle, if that is later. */
TEST(a_raise_that_failed_does_not_wait_for_a_cycle)
{
	for (int standby = 0; standby <= 1; standby++)
	{
		Driver	   *d = driver_new();

		d->apply = false;
		d->config.predict = false;
		d->sample.standby = standby;
		d->sample.settings.timeout_ms = 3600 * SECOND;
		for (int i = 1; i < 3600 + 302; i++)
		{
			d->sample.primary_lsn = d->sample.write_lsn + 4 * MB;
			driver_run(d, 1, 4 * MB);
			if (i == 3599)
				assert_int_equal(d->raises, 0);
			if (i == 3601 || i == 3899)
				assert_int_equal(d->raises, 1);
		}
		assert_int_equal(d->raises, 2);
	}
}

/* A raise to the same value is what failed, and not one from beyond it. */
TEST(a_failure_counts_in_its_own_direction)
{
	Driver	   *d = driver_quiet();

	d->sample.boost_mb = 4096;
	d->state.pacing.tried_at = d->sample.now;
	d->state.pacing.tried_mb = 1024;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_RAISE);
	d->state.pacing.tried_mb = 500; /* a lowering that failed */
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_RAISE);

	/* a decision to do nothing does not wait */
	d = driver_quiet_raise(4000);
	d->state.pacing.tried_at = d->sample.now;
	d->state.pacing.tried_mb = 3000;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_SUFFICIENT);

	d = driver_quiet_raise(4000);
	d->state.pacing.tried_at = d->sample.now;
	d->state.pacing.tried_mb = 4096;	/* a raise that failed */
	driver_end_cycle(d);
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_LOWER);
	assert_int_equal(d->last.target_mb, 1024);
	assert_int_equal(d->last.wanted_mb, 1024);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_DEMAND_FELL);
}

/* A raise that a limit forbids is not reported where following the limit waits. */
TEST(what_waits_is_not_limited)
{
	Driver	   *d = driver_quiet_raise(4000);

	d->config.max_mb = 2000;
	d->state.pacing.tried_mb = 2000;
	d->state.pacing.tried_at = d->sample.now;
	driver_step(d, SECOND, 400 * MB);
	assert_int_equal(d->last.action, WALSIZER_NONE);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_WAITING);
	assert_int_equal(d->last.limited_by, WALSIZER_UNLIMITED);
	assert_false(d->last.limited);
}

/* What saves the disk waits ten seconds. */
TEST(a_lowering_for_a_limit_is_retried_after_ten_seconds)
{
	Driver	   *d = driver_quiet_raise(4000);

	d->config.max_mb = 2000;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_LOWER);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_LIMIT_FELL);
	assert_int_equal(d->last.limited_by, WALSIZER_LIMIT_MAX);
	assert_int_equal(driver_step(d, 9999, 0), WALSIZER_NONE);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_WAITING);
	assert_int_equal(driver_step(d, 1, 0), WALSIZER_LOWER);
	assert_int_equal(driver_step(d, 10001, 0), WALSIZER_LOWER);
}

/* Only a measured limit that was followed keeps raises back, for one timeout. */
TEST(a_measured_limit_keeps_raises_back)
{
	for (int kind = WALSIZER_LIMIT_MAX; kind <= WALSIZER_LIMIT_RECOVERY; kind++)
	{
		Driver	   *d = driver_quiet_raise(4000);

		d->apply = true;
		d->sample.disk_read = true;
		d->sample.disk_free = (kind == WALSIZER_LIMIT_DISK ? 4000 : 100000) * MB;
		if (kind == WALSIZER_LIMIT_MAX)
			d->config.max_mb = 2000;
		if (kind == WALSIZER_LIMIT_RECOVERY)
		{
			d->config.max_recovery_ms = 50 * SECOND;
			d->config.replay_rate = 40.0 * MB;
		}
		assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_LOWER);
		assert_int_equal(d->last.limited_by, kind);
		assert_int_equal(d->state.pacing.raise_not_before,
						 kind == WALSIZER_LIMIT_MAX ? 0 : d->sample.now + 300 * SECOND);
	}
}

/* The disk is full, and our raise goes down: how long nothing is raised. */
static int64_t
held_for(Driver *d)
{
	driver_write(d, 4000);
	d->state.pacing.tried_mb = 0;
	d->state.pacing.kept_since = INT64_MAX;	/* demand does not lower it */
	d->sample.disk_free = 100000 * MB;
	driver_step(d, SECOND, 0);
	d->sample.disk_free = 4000 * MB;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_LOWER);
	return d->state.pacing.raise_not_before - d->sample.now;
}

/*
 * Six times as long as it took to fall again, up to half a day, and for half a day.
 * held_for() takes two seconds.
 */
TEST(a_limit_that_swings_is_followed_less_and_less)
{
	const int64_t half_a_day = 12 * 3600 * SECOND;
	Driver	   *d = driver_quiet();

	d->sample.disk_read = true;
	for (int64_t held = 300 * SECOND; held < half_a_day; held = 6 * (held + 2 * SECOND))
	{
		assert_int_equal(held_for(d), held);
		assert_int_equal(held_for(d), held);	/* it still falls */
		d->sample.now += held;
	}
	assert_int_equal(held_for(d), half_a_day);
	d->sample.now += half_a_day + half_a_day - 3 * SECOND;
	assert_int_equal(held_for(d), half_a_day);
	d->sample.now += half_a_day + half_a_day;
	assert_int_equal(held_for(d), 300 * SECOND);

	/* once an hour */
	d->sample.now += 3598 * SECOND;
	assert_int_equal(held_for(d), 6 * 3600 * SECOND);
}

/* What an administrator sets ends the wait for a limit that swings. */
TEST(a_measured_limit_set_anew_ends_the_wait)
{
	for (int setting = 0; setting < 4; setting++)
	{
		Driver	   *d = driver_quiet();

		d->sample.disk_read = true;
		held_for(d);
		d->sample.disk_free = 100000 * MB;
		d->sample.boost_mb = 16 * 1024;
		d->state.pacing.changed_at = 0;
		assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_NONE);
		if (setting == 1)
			d->config.max_disk_percent++;
		if (setting == 2)
			d->config.max_recovery_ms = 86400 * SECOND;
		if (setting == 3)
			d->config.replay_rate = 40.0 * MB;
		driver_step(d, SECOND, 0);
		assert_int_equal(d->last.action, setting == 0 ? WALSIZER_NONE : WALSIZER_RAISE);
		assert_int_equal(d->state.pacing.hold_ms, setting == 0 ? 300 * SECOND : 0);
	}
}

/* With this much free on the disk (MB). */
static Driver *
quiet_with_free(int64_t mb)
{
	Driver	   *d = driver_quiet();

	d->sample.disk_read = true;
	d->sample.disk_free = mb * MB;
	return d;
}

/* From the moment on that it was kept back until, and not before. */
TEST(raises_come_back_after_one_timeout)
{
	Driver	   *d = quiet_with_free(100000);

	d->sample.boost_mb = 4096;
	d->state.pacing.raise_not_before = d->sample.now + SECOND;
	assert_int_equal(driver_step(d, 999, 0), WALSIZER_NONE);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_BOOST);
	assert_int_equal(d->last.limited_by, WALSIZER_LIMIT_DISK);
	assert_int_equal(driver_step(d, 1, 0), WALSIZER_RAISE);

	/* while the disk is low it is prolonged, but not once it is over */
	for (int over = 0; over <= 1; over++)
	{
		d = quiet_with_free(2000);
		d->state.pacing.raise_not_before = d->sample.now + 2 * SECOND - over;
		driver_step(d, 2 * SECOND - 1, 0);
		assert_int_equal(d->state.pacing.raise_not_before,
						 over ? d->sample.now : d->sample.now + 300 * SECOND);
	}

	/* nor by walsizer.max */
	d = quiet_with_free(100000);
	d->config.max_mb = d->sample.settings.max_wal_size_mb;
	d->state.pacing.raise_not_before = d->sample.now + 2 * SECOND;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.figures.limit_kind, WALSIZER_LIMIT_MAX);
	assert_int_equal(d->state.pacing.raise_not_before, d->sample.now + SECOND);

	/* nor by what was read earlier */
	d = quiet_with_free(2240);
	d->ask_for_disk = true;
	driver_step(d, SECOND, 0);
	d->looks = 0;
	d->state.pacing.raise_not_before = d->sample.now + 5 * SECOND;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->looks, 0);
	assert_int_equal(d->state.pacing.raise_not_before, d->sample.now + 4 * SECOND);
}

/* Our raise to 4000MB, over an edit of the file from 1GB to 3000MB. */
static Driver *
edited(void)
{
	Driver	   *d = driver_new();

	d->apply = false;
	d->sample.configured_mb = 1024;
	driver_step(d, 0, 0);
	driver_write(d, 4000);
	driver_step(d, SECOND, 0);
	d->sample.configured_mb = 3000;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_REVERT);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_EDITED);
	assert_int_equal(d->last.wanted_mb, 3000);
	return d;
}

TEST(an_edit_that_could_not_be_followed_waits)
{
	Driver	   *d = edited();

	assert_int_equal(driver_step(d, 299999, 0), WALSIZER_NONE);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_WAITING);
	assert_int_equal(driver_step(d, 1, 0), WALSIZER_REVERT);
	assert_int_equal(driver_step(d, 300001, 0), WALSIZER_REVERT);

	/* another edit, larger or smaller, or a request does not wait */
	d->sample.configured_mb = 3001;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_REVERT);
	d->sample.configured_mb = 2999;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_REVERT);
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_NONE);
	d->sample.act_now = true;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_REVERT);

	/* however long the server has been running */
	d->sample.act_now = false;
	assert_int_equal(driver_step(d, d->sample.now, 0), WALSIZER_REVERT);
}

/* Nothing is raised over an edit; an administrator may set the value instead. */
TEST(while_an_edit_waits_no_rule_applies)
{
	Driver	   *d = edited();

	d->state.pacing.changed_at = 0;
	d->sample.boost_mb = 8192;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_NONE);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_WAITING);

	d->sample.boost_mb = 0;
	d->sample.note = (WalsizerNote) {0};
	d->sample.settings.max_wal_size_mb = 5000;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_EXTERNAL);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_CHANGED);
	assert_int_equal(d->last.target_mb, 5000);
	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_RECENTLY_CHANGED);
}

/* The disk does not wait for it, but for its own last attempt. */
TEST(while_an_edit_waits_the_disk_is_saved)
{
	Driver	   *d = edited();

	d->sample.disk_read = true;
	d->sample.disk_free = 100 * MB;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_LOWER);
	assert_int_equal(driver_step(d, 9999, 0), WALSIZER_NONE);
	assert_int_equal(driver_step(d, 1, 0), WALSIZER_LOWER);
}

/* Nothing is lowered, not even for the disk, while walsizer.enable is off. */
TEST(a_hidden_edit_lowers_nothing)
{
	Driver	   *d = edited();

	d->config.enable = false;
	d->sample.disk_read = true;
	d->sample.disk_free = 100 * MB;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_NONE);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_EDIT_HIDDEN);
}

TEST(an_administrators_value_is_left_alone_until_then)
{
	Driver	   *d = driver_quiet();

	d->state.pacing.leave_alone_until = d->sample.now + SECOND;
	driver_step(d, 999, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_RECENTLY_CHANGED);
	driver_step(d, 1, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_SUFFICIENT);

	/* what a planned load has raised since is not the administrator's */
	d = driver_quiet_raise(4000);
	d->state.pacing.leave_alone_until = d->sample.now + 300 * SECOND;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_SUFFICIENT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_raise_that_failed_waits),
		cmocka_unit_test(a_planned_load_that_failed_waits_five_minutes),
		cmocka_unit_test(a_raise_that_failed_does_not_wait_for_a_cycle),
		cmocka_unit_test(a_failure_counts_in_its_own_direction),
		cmocka_unit_test(what_waits_is_not_limited),
		cmocka_unit_test(a_lowering_for_a_limit_is_retried_after_ten_seconds),
		cmocka_unit_test(a_measured_limit_keeps_raises_back),
		cmocka_unit_test(raises_come_back_after_one_timeout),
		cmocka_unit_test(an_edit_that_could_not_be_followed_waits),
		cmocka_unit_test(while_an_edit_waits_no_rule_applies),
		cmocka_unit_test(while_an_edit_waits_the_disk_is_saved),
		cmocka_unit_test(a_hidden_edit_lowers_nothing),
		cmocka_unit_test(an_administrators_value_is_left_alone_until_then),
		cmocka_unit_test(a_limit_that_swings_is_followed_less_and_less),
		cmocka_unit_test(a_measured_limit_set_anew_ends_the_wait),
	};

	return cmocka_run_group_tests_name("policy, waiting", tests, NULL, NULL);
}
