/*-------------------------------------------------------------------------
 *
 * test_checkpoints.c
 *	  What started a checkpoint, and what is known of the timer.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"

#define CAPACITY	(33 * SEGMENT)

static int64_t
count(const Driver *d, WalsizerCause cause)
{
	return d->state.checkpoints.total[cause];
}

TEST(forced_at_the_trigger_point_and_not_before)
{
	Driver	   *d;

	/* the redo pointer lies inside its segment, which counts from its start */
	for (int64_t offset = 0; offset < SEGMENT; offset += SEGMENT / 4)
	{
		d = driver_new();
		d->config.enable = false;
		d->sample.write_lsn += (uint64_t) offset;
		d->sample.redo_lsn = d->sample.write_lsn;
		driver_step(d, 0, 0);
		d->sample.write_lsn += CAPACITY - offset;
		driver_checkpoint(d, true);
		driver_step(d, 100 * SECOND, 0);
		assert_int_equal(count(d, WALSIZER_CAUSE_FORCED), 1);

		d = driver_new();
		d->config.enable = false;
		d->sample.write_lsn += (uint64_t) offset;
		d->sample.redo_lsn = d->sample.write_lsn;
		driver_step(d, 0, 0);
		d->sample.write_lsn += CAPACITY - offset - 1;
		driver_checkpoint(d, true);
		driver_step(d, 100 * SECOND, 0);
		assert_int_equal(count(d, WALSIZER_CAUSE_FORCED), 0);
		assert_int_equal(count(d, WALSIZER_CAUSE_OTHER), 1);
	}
}

TEST(timed_by_the_clock)
{
	Driver	   *d = driver_new();

	driver_run(d, 3001, MB / 2);
	assert_int_equal(count(d, WALSIZER_CAUSE_TIMED), 10);
	assert_int_equal(count(d, WALSIZER_CAUSE_OTHER), 0);
	assert_int_equal(count(d, WALSIZER_CAUSE_FORCED), 0);
}

TEST(manual_ones_are_others_and_raise_nothing)
{
	Driver	   *d = driver_new();

	d->sample.settings.max_wal_size_mb = 128;
	d->sample.settings.timeout_ms = 30 * SECOND;
	for (int i = 0; i < 3600; i++)
	{
		driver_step(d, SECOND, 2000);
		if (i % 5 == 4)
			driver_checkpoint(d, true);
	}
	assert_int_equal(d->raises, 0);
	assert_int_equal(count(d, WALSIZER_CAUSE_FORCED), 0);
	assert_int_equal(count(d, WALSIZER_CAUSE_TIMED), 0);
	assert_true(count(d, WALSIZER_CAUSE_OTHER) > 700);
	assert_true(d->last.figures.requested >= 5);
}

static void
one_timed_interval(Driver *d)
{
	driver_step(d, 300 * SECOND, CAPACITY);
	driver_checkpoint(d, false);
	driver_step(d, SECOND, 0);
}

/* A server where 8GB have just replaced 1GB. */
static Driver *
just_raised(void)
{
	Driver	   *d = driver_new();

	d->config.enable = false;
	driver_step(d, 0, 0);
	d->sample.settings.max_wal_size_mb = 8192;
	driver_step(d, SECOND, 0);
	return d;
}

TEST(stale_ones_are_forced_at_the_old_trigger_point)
{
	Driver	   *d = just_raised();

	driver_step(d, 50 * SECOND, CAPACITY);
	driver_checkpoint(d, true);
	driver_step(d, SECOND, 0);
	assert_int_equal(count(d, WALSIZER_CAUSE_OLD_VALUE), 1);
	assert_int_equal(d->last.figures.forced, 1);

	/* an interval that ran to its end with more WAL is chance */
	one_timed_interval(d);
	driver_step(d, 50 * SECOND, CAPACITY);
	driver_checkpoint(d, true);
	driver_step(d, SECOND, 0);
	assert_int_equal(count(d, WALSIZER_CAUSE_OLD_VALUE), 2);
}

/* An hour and three intervals after its last sign, if less is written than it allows. */
TEST(an_old_trigger_point_is_forgotten)
{
	Driver	   *d = just_raised();

	driver_step(d, (3600 + 900) * SECOND, SEGMENT);
	assert_int_equal(d->state.checkpoints.old.points[0], CAPACITY);

	d = just_raised();
	driver_step(d, (3600 + 700) * SECOND, SEGMENT);
	driver_checkpoint(d, false);
	driver_step(d, 0, CAPACITY);
	driver_checkpoint(d, true);
	d->sample.checkpoint_running = true;
	driver_step(d, 0, 0);
	d->sample.checkpoint_running = false;
	driver_step(d, 200 * SECOND, 0);	/* it took its time: a sign */
	assert_int_equal(count(d, WALSIZER_CAUSE_OLD_VALUE), 1);
	driver_step(d, (3600 + 900) * SECOND, 0);
	assert_int_equal(d->state.checkpoints.old.points[0], CAPACITY);
	driver_step(d, 1, 0);
	assert_int_equal(d->state.checkpoints.old.points[0], 0);
}

TEST(the_timer_starts_with_the_checkpoint)
{
	Driver	   *d = driver_new();

	d->sample.checkpoint_age = 100 * SECOND;
	driver_step(d, 0, 0);
	assert_int_equal(d->last.figures.until_timed_ms, 200 * SECOND);
	driver_step(d, 50 * SECOND, MB);
	assert_int_equal(d->last.figures.until_timed_ms, 150 * SECOND);
	driver_checkpoint(d, true);
	driver_step(d, SECOND, 10); /* it began a second ago, before this WAL */
	assert_int_equal(d->last.figures.until_timed_ms, 299 * SECOND);
}

TEST(the_first_interval_is_known_from_the_control_file)
{
	Driver	   *d = driver_new();

	/* 400 of 528MB were written in the 100 s before we came */
	d->sample.write_lsn += 400 * MB;
	d->sample.checkpoint_age = 100 * SECOND;
	driver_step(d, 0, 0);
	assert_int_equal(d->last.figures.used, 400 * MB);
	driver_run(d, 15, 4 * MB);
	assert_int_equal(d->raises, 1);
}

TEST(a_skipped_checkpoint_resets_the_timer)
{
	Driver	   *d = driver_new();

	driver_run(d, 900, MB / 10);
	for (int i = 0; i < 200; i++)
		driver_step(d, SECOND, 0);
	driver_checkpoint(d, false);
	driver_step(d, SECOND, 0);
	driver_step(d, 299 * SECOND, 0);
	d->sample.timed++;			/* nothing was written: the pointer stays */
	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.figures.until_timed_ms, 300 * SECOND);
	driver_step(d, 100 * SECOND, 0);
	assert_int_equal(d->last.figures.until_timed_ms, 200 * SECOND);
}

TEST(late_counters_reset_no_timer)
{
	Driver	   *d = driver_new();

	driver_run(d, 10, MB);
	d->sample.redo_lsn = d->sample.write_lsn;	/* starts now, counted later */
	driver_step(d, SECOND, MB);
	driver_step(d, 40 * SECOND, MB);
	d->sample.requested++;
	driver_step(d, SECOND, MB);
	assert_int_equal(d->last.figures.until_timed_ms, 258 * SECOND);
}

TEST(a_statistics_reset_changes_nothing)
{
	static Driver with;
	Driver	   *without = driver_new();

	driver_run(without, 3600, 4 * MB);
	with = *without;

	without = driver_new();
	for (int i = 0; i < 180; i++)
	{
		driver_run(without, 20, 4 * MB);
		without->sample.requested = without->sample.timed = 0;
		without->sample.counters_reset = true;
	}
	assert_int_equal(without->raises, with.raises);
	assert_int_equal(without->sample.settings.max_wal_size_mb,
					 with.sample.settings.max_wal_size_mb);
	for (int i = 0; i < WALSIZER_CAUSES; i++)
		assert_int_equal(without->state.checkpoints.total[i], with.state.checkpoints.total[i]);
}

TEST(requests_are_counted_over_resets)
{
	Driver	   *d = driver_new();

	d->sample.requested = 1000000;
	driver_step(d, 0, 0);
	assert_int_equal(d->state.checkpoints.requested, 0);
	d->sample.requested += 3;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->state.checkpoints.requested, 3);
	d->sample.requested = 2;	/* went back without being told */
	driver_step(d, SECOND, 0);
	assert_int_equal(d->state.checkpoints.requested, 5);
	d->sample.requested = 4;
	d->sample.counters_reset = true;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->state.checkpoints.requested, 9);
}

TEST(windows_are_of_one_timeout)
{
	Driver	   *d = driver_new();

	d->config.enable = false;
	driver_run(d, 3600, MB);
	assert_in_range(d->last.figures.demand, 299 * MB, 301 * MB);
	driver_run(d, 150, 0);
	assert_in_range(d->last.figures.demand, 149 * MB, 151 * MB);
	driver_run(d, 150, 0);
	assert_in_range(d->last.figures.demand, 0, MB);

	/* missed ticks: the position between is interpolated */
	driver_step(d, 450 * SECOND, 900 * MB);
	assert_in_range(d->last.figures.demand, 594 * MB, 601 * MB);
}

/* As for a client that sees the redo pointer only when a checkpoint is complete. */
TEST(an_estimate_is_corrected_without_a_checkpoint)
{
	Driver	   *d = driver_new();
	int64_t		timer;

	d->config.enable = false;
	driver_step(d, 0, 0);
	d->sample.write_lsn += 100 * MB;
	driver_checkpoint(d, true);
	d->sample.redo_lsn -= 40 * MB;	/* an estimate, too early */
	driver_step(d, 100 * SECOND, 0);
	assert_int_equal(count(d, WALSIZER_CAUSE_OTHER), 1);
	timer = d->state.checkpoints.timer_start;

	d->sample.redo_lsn += 40 * MB;
	d->state.last.redo_lsn = d->sample.redo_lsn;
	driver_step(d, SECOND, 0);
	assert_int_equal(count(d, WALSIZER_CAUSE_OTHER), 1);
	assert_int_equal(d->state.checkpoints.timer_start, timer);

	/* the next distance counts from the true one, also if it is before it */
	d->state.last.redo_lsn = d->sample.redo_lsn -= 8 * MB;
	d->sample.write_lsn += CAPACITY - 8 * MB;
	driver_checkpoint(d, true);
	driver_step(d, SECOND, 0);
	assert_int_equal(count(d, WALSIZER_CAUSE_FORCED), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forced_at_the_trigger_point_and_not_before),
		cmocka_unit_test(timed_by_the_clock),
		cmocka_unit_test(manual_ones_are_others_and_raise_nothing),
		cmocka_unit_test(stale_ones_are_forced_at_the_old_trigger_point),
		cmocka_unit_test(an_old_trigger_point_is_forgotten),
		cmocka_unit_test(the_timer_starts_with_the_checkpoint),
		cmocka_unit_test(the_first_interval_is_known_from_the_control_file),
		cmocka_unit_test(a_skipped_checkpoint_resets_the_timer),
		cmocka_unit_test(late_counters_reset_no_timer),
		cmocka_unit_test(a_statistics_reset_changes_nothing),
		cmocka_unit_test(requests_are_counted_over_resets),
		cmocka_unit_test(windows_are_of_one_timeout),
		cmocka_unit_test(an_estimate_is_corrected_without_a_checkpoint),
	};

	return cmocka_run_group_tests_name("policy, checkpoints and timer", tests, NULL, NULL);
}
