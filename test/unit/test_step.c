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

/* A server that was started an hour ago and has been idle since; nothing is applied. */
static Driver *
quiet(void)
{
	Driver	   *d = driver_new();

	d->apply = false;
	driver_step(d, 0, 0);
	d->sample.now += 3600 * SECOND;
	d->state.pacing.changed_at = d->state.pacing.keep_until = 0;
	driver_step(d, 0, 0);
	driver_step(d, SECOND, 0);
	return d;
}

/* The same with our own raise from 1GB to this size. */
static Driver *
quiet_after_a_raise(int64_t mb)
{
	Driver	   *d = quiet();

	driver_write(d, mb);
	driver_step(d, SECOND, 0);
	d->state.pacing.changed_at = d->state.pacing.keep_until = 0;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_SUFFICIENT);
	return d;
}

/* The next sample ends a cycle. */
static void
end_cycle(Driver *d)
{
	d->state.cycle.start = d->sample.now - 299 * SECOND;
}

static void
a_raise_that_nothing_limits_names_no_limit(void **unused)
{
	Driver	   *d = quiet();

	(void) unused;
	d->sample.boost_mb = 4096;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_RAISE);
	assert_int_equal(d->last.target_mb, 4096);
	assert_int_equal(d->last.wanted_mb, 4096);
	assert_int_equal(d->last.limited_by, WALSIZER_UNLIMITED);
	assert_false(d->last.limited);
	assert_int_equal(d->state.pacing.tried_mb, 4096);
	assert_int_equal(d->state.pacing.tried_at, d->sample.now);

	d = quiet();
	d->config.max_mb = 4096;
	d->sample.boost_mb = 4096;	/* just within the limit */
	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.limited_by, WALSIZER_UNLIMITED);
	d = quiet();
	d->config.max_mb = 4080;
	d->sample.boost_mb = 4096;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.target_mb, 4080);
	assert_int_equal(d->last.limited_by, WALSIZER_LIMIT_MAX);
}

/* A raise that the disk allows in steps says so at the first of them. */
static void
a_step_towards_the_size_names_the_disk(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	d->sample.has_disk = true;
	d->sample.disk_free = 9000 * MB;
	d->sample.disk_wal = 600 * MB;
	driver_step(d, 0, 0);
	while (d->raises == 0)
		driver_step(d, SECOND, 8 * MB);
	assert_in_range(d->last.target_mb, 1500, 1520);
	assert_int_equal(d->last.wanted_mb, 2048);
	assert_int_equal(d->last.limited_by, WALSIZER_LIMIT_DISK);
}

/* What did not take effect is tried again after a timeout, or five minutes. */
static void
a_raise_that_failed_waits(void **unused)
{
	Driver	   *d = quiet();

	(void) unused;
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
	d->sample.adjust = true;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_RAISE);
}

/* A raise to the same value is what failed, and not one from beyond it. */
static void
a_failure_counts_in_its_own_direction(void **unused)
{
	Driver	   *d = quiet();

	(void) unused;
	d->sample.boost_mb = 4096;
	d->state.pacing.tried_at = d->sample.now;
	d->state.pacing.tried_mb = 1024;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_RAISE);
	d->state.pacing.tried_mb = 500; /* a lowering that failed */
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_RAISE);

	d = quiet_after_a_raise(4000);
	d->state.pacing.tried_at = d->sample.now;
	d->state.pacing.tried_mb = 5000;	/* a raise that failed */
	end_cycle(d);
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_LOWER);
	assert_int_equal(d->last.target_mb, 1024);
	assert_int_equal(d->last.wanted_mb, 1024);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_DEMAND_FELL);
}

/* More than four times as far is another matter. */
static void
a_change_four_times_as_far_does_not_wait(void **unused)
{
	Driver	   *d = quiet();

	(void) unused;
	d->state.pacing.tried_mb = 1100;
	d->state.pacing.tried_at = d->sample.now;
	d->sample.boost_mb = 4400;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_NONE);
	d->sample.boost_mb = 4416;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_RAISE);

	for (int64_t min = 2000; min >= 1999; min--)
	{
		d = quiet_after_a_raise(16000);
		d->config.min_mb = min;
		d->state.pacing.tried_mb = 8000;
		d->state.pacing.tried_at = d->sample.now;
		end_cycle(d);
		assert_int_equal(driver_step(d, SECOND, 0), min == 2000 ? WALSIZER_NONE : WALSIZER_LOWER);
	}
}

/* What saves the disk waits ten seconds. */
static void
a_lowering_for_a_limit_is_retried_after_ten_seconds(void **unused)
{
	Driver	   *d = quiet_after_a_raise(4000);

	(void) unused;
	d->config.max_mb = 2000;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_LOWER);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_LIMIT_FELL);
	assert_int_equal(d->last.limited_by, WALSIZER_LIMIT_MAX);
	assert_int_equal(driver_step(d, 9999, 0), WALSIZER_NONE);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_WAITING);
	assert_int_equal(driver_step(d, 1, 0), WALSIZER_LOWER);
	assert_int_equal(driver_step(d, 10001, 0), WALSIZER_LOWER);
}

/* Only a disk limit that was followed keeps raises back, for one timeout. */
static void
only_the_disk_keeps_raises_back(void **unused)
{
	for (int kind = WALSIZER_LIMIT_MAX; kind <= WALSIZER_LIMIT_RECOVERY; kind++)
	{
		Driver	   *d = quiet_after_a_raise(4000);

		(void) unused;
		d->apply = true;
		d->sample.has_disk = true;
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
						 kind == WALSIZER_LIMIT_DISK ? d->sample.now + 300 * SECOND : 0);
	}
}

/* From the moment on that it was kept back until, and not before. */
static void
raises_come_back_after_one_timeout(void **unused)
{
	Driver	   *d = quiet();

	(void) unused;
	d->sample.has_disk = true;
	d->sample.disk_free = 100000 * MB;
	d->sample.boost_mb = 4096;
	d->state.pacing.raise_not_before = d->sample.now + SECOND;
	assert_int_equal(driver_step(d, 999, 0), WALSIZER_NONE);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_BOOST);
	assert_int_equal(d->last.limited_by, WALSIZER_LIMIT_DISK);
	assert_int_equal(driver_step(d, 1, 0), WALSIZER_RAISE);

	/* while the disk is low it is prolonged, but not once it is over */
	for (int over = 0; over <= 1; over++)
	{
		d = quiet();
		d->sample.has_disk = true;
		d->sample.disk_free = 2000 * MB;
		d->state.pacing.raise_not_before = d->sample.now + 2 * SECOND - over;
		driver_step(d, 2 * SECOND - 1, 0);
		assert_int_equal(d->state.pacing.raise_not_before,
						 over ? d->sample.now : d->sample.now + 300 * SECOND);
	}
}

/* The first matching rule applies: a raise comes before any lowering. */
static void
a_raise_comes_before_a_lowering(void **unused)
{
	Driver	   *d = quiet_after_a_raise(4000);

	(void) unused;
	/* a planned load is over, and demand needs less, when 500MB/s begin */
	d->state.boost.return_mb = 1024;
	d->state.boost.planned_until = d->sample.now - SECOND;
	d->state.pacing.lower_due = true;
	driver_step(d, SECOND / 2, 250 * MB);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_PREDICTED);
	assert_int_equal(d->last.action, WALSIZER_RAISE);
}

/* Of two rules that raise, the more urgent one is the reason. */
static void
a_forced_checkpoint_comes_before_pace(void **unused)
{
	Driver	   *d = quiet_after_a_raise(4000);

	(void) unused;
	for (int i = 0; i < WALSIZER_PACE_SLOTS; i++)
		d->state.pace.last[i] = 9000 * MB;
	driver_step(d, SECOND, 2000 * MB);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_PREDICTED);
	d->state.pacing.tried_mb = 0;
	d->sample.adjust = true;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_PREDICTED);
}

/* Pace is no hurry: it is looked at where a cycle ends, and not on a standby. */
static void
pace_waits_for_the_cycle(void **unused)
{
	for (int standby = 0; standby <= 1; standby++)
	{
		Driver	   *d = quiet();

		(void) unused;
		d->sample.standby = standby;
		driver_step(d, SECOND, 0);
		driver_write(d, 1600);
		driver_step(d, SECOND, 0);
		for (int i = 0; i < WALSIZER_PACE_SLOTS; i++)
			d->state.pace.last[i] = 9000 * MB;
		d->state.learned.peaks[d->sample.hour % WALSIZER_PEAK_SLOTS] = (WalsizerPeak) {
			.hour = d->sample.hour, .demand = 800 * MB, .timeout_ms = 1,
		};
		d->state.learned.hour = 0;
		driver_step(d, SECOND, 0);
		assert_true(d->last.figures.wanted_mb > 2000);
		assert_int_equal(d->last.action, WALSIZER_NONE);
		end_cycle(d);
		driver_step(d, SECOND, 0);
		assert_int_equal(d->last.action, standby ? WALSIZER_NONE : WALSIZER_RAISE);
		assert_int_equal(d->last.reason,
						 standby ? WALSIZER_BECAUSE_SUFFICIENT : WALSIZER_BECAUSE_HURRIED);
	}
}

/* A lowering that demand allows anyway is not the limit's. */
static void
a_limit_changes_nothing_that_is_lowered_already(void **unused)
{
	Driver	   *d = quiet_after_a_raise(4000);

	(void) unused;
	d->config.max_mb = 2000;
	d->state.pacing.lower_due = true;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_LOWER);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_DEMAND_FELL);
	assert_int_equal(d->last.target_mb, 1024);
	assert_int_equal(d->last.limited_by, WALSIZER_UNLIMITED);

	/* nor does walsizer.min keep more than a limit allows */
	d = quiet_after_a_raise(4000);
	d->config.max_mb = 2000;
	d->config.min_mb = 3000;
	d->state.pacing.lower_due = true;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_LOWER);
	assert_int_equal(d->last.target_mb, 2000);
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

static void
an_edit_that_could_not_be_followed_waits(void **unused)
{
	Driver	   *d = edited();

	(void) unused;
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
	d->sample.adjust = true;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_REVERT);
}

/* Nothing is raised over an edit; an administrator may set the value instead. */
static void
while_an_edit_waits_no_rule_applies(void **unused)
{
	Driver	   *d = edited();

	(void) unused;
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
static void
while_an_edit_waits_the_disk_is_saved(void **unused)
{
	Driver	   *d = edited();

	(void) unused;
	d->sample.has_disk = true;
	d->sample.disk_free = 100 * MB;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_LOWER);
	assert_int_equal(driver_step(d, 9999, 0), WALSIZER_NONE);
	assert_int_equal(driver_step(d, 1, 0), WALSIZER_LOWER);
}

static void
an_administrators_value_is_left_alone_until_then(void **unused)
{
	Driver	   *d = quiet();

	(void) unused;
	d->state.pacing.leave_alone_until = d->sample.now + SECOND;
	driver_step(d, 999, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_RECENTLY_CHANGED);
	driver_step(d, 1, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_SUFFICIENT);
}

/* A copy of a server on a full disk need not wait for a second sample. */
static void
the_first_sample_may_act(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	driver_write(d, 4000);
	d->sample.note.original_mb = 1024;
	d->sample.has_disk = true;
	d->sample.disk_free = 2000 * MB;
	assert_int_equal(driver_step(d, 0, 0), WALSIZER_LOWER);
	assert_int_equal(d->last.target_mb, 1024);

	/* unless it must not */
	d = driver_new();
	d->config.enable = false;
	driver_step(d, 0, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_DISABLED);
}

/* A server that asks for the disk, which was read just now and has room. */
static Driver *
asking(Driver *d)
{
	d->sample.has_disk = d->ask_for_disk = true;
	d->sample.disk_free = 100000 * MB;
	driver_step(d, SECOND, 0);
	driver_step(d, SECOND, 0);
	d->looks = 0;
	return d;
}

/* Before each raise, and if the disk limits one; not for a lowering. */
static void
the_disk_is_read_before_a_raise(void **unused)
{
	Driver	   *d = asking(quiet());

	(void) unused;
	d->sample.boost_mb = 4096;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_RAISE);
	assert_int_equal(d->looks, 1);

	d = asking(quiet_after_a_raise(4000));
	d->state.pacing.lower_due = true;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_LOWER);
	assert_int_equal(d->looks, 0);

	/* a raise that the recovery time limits to what there is already */
	d = asking(quiet());
	d->config.max_recovery_ms = 20 * SECOND;
	d->config.replay_rate = 40.0 * MB;
	d->sample.redo_lsn = d->sample.write_lsn;
	driver_step(d, SECOND, 600 * MB);
	d->looks = 0;
	driver_step(d, SECOND, 0);
	assert_true(d->last.limited);
	assert_int_equal(d->last.limited_by, WALSIZER_LIMIT_RECOVERY);
	assert_int_equal(d->looks, 0);

	/* one that the disk limits may be possible by now */
	d = asking(quiet());
	d->state.disk.free = 2000 * MB;
	d->sample.boost_mb = 4096;
	d->sample.disk_free = 100000 * MB;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_RAISE);
	assert_int_equal(d->last.limited_by, WALSIZER_UNLIMITED);
}

/* One sample in two calls, or two samples: only the very same one is the same. */
static void
a_sample_is_taken_in_once(void **unused)
{
	for (int what = 0; what < 5; what++)
	{
		Driver	   *d = asking(quiet());
		WalsizerSample *s = &d->sample;

		(void) unused;
		s->now += SECOND;
		s->boost_mb = 4096;
		s->looked = false;
		assert_true(walsizer_step(&d->config, &d->state, s).wants_disk);

		/* what came with the sample is known; a change shows in the next one */
		s->looked = true;
		s->note = (WalsizerNote) {0};
		s->settings.max_wal_size_mb = 2000;
		if (what == 1)
			s->now++;
		else if (what == 2)
			s->now--;
		else if (what == 3)
			s->write_lsn++;
		else if (what == 4)
			s->write_lsn--;
		assert_int_equal(walsizer_step(&d->config, &d->state, s).action,
						 what == 0 ? WALSIZER_RAISE : WALSIZER_EXTERNAL);
		if (what == 0)			/* it was decided: this is the next one */
			assert_int_equal(walsizer_step(&d->config, &d->state, s).action, WALSIZER_EXTERNAL);
	}
}

/* A cycle is one timeout, and the next begins where it ended. */
static void
a_cycle_ends_after_a_timeout(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
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
		cmocka_unit_test(a_raise_that_failed_waits),
		cmocka_unit_test(a_failure_counts_in_its_own_direction),
		cmocka_unit_test(a_change_four_times_as_far_does_not_wait),
		cmocka_unit_test(a_lowering_for_a_limit_is_retried_after_ten_seconds),
		cmocka_unit_test(only_the_disk_keeps_raises_back),
		cmocka_unit_test(raises_come_back_after_one_timeout),
		cmocka_unit_test(a_raise_comes_before_a_lowering),
		cmocka_unit_test(a_forced_checkpoint_comes_before_pace),
		cmocka_unit_test(pace_waits_for_the_cycle),
		cmocka_unit_test(a_limit_changes_nothing_that_is_lowered_already),
		cmocka_unit_test(an_edit_that_could_not_be_followed_waits),
		cmocka_unit_test(while_an_edit_waits_no_rule_applies),
		cmocka_unit_test(while_an_edit_waits_the_disk_is_saved),
		cmocka_unit_test(an_administrators_value_is_left_alone_until_then),
		cmocka_unit_test(the_first_sample_may_act),
		cmocka_unit_test(the_disk_is_read_before_a_raise),
		cmocka_unit_test(a_sample_is_taken_in_once),
		cmocka_unit_test(a_cycle_ends_after_a_timeout),
	};

	return cmocka_run_group_tests_name("policy, one step", tests, NULL, NULL);
}
