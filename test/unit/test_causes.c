/*-------------------------------------------------------------------------
 *
 * test_causes.c
 *	  What started a checkpoint, and when, to the byte and the millisecond.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"
#include "policy/internal.h"

static void
set_size(Driver *d, int64_t mb)
{
	d->sample.settings.max_wal_size_mb = mb;
	driver_observe(d, SECOND, 0);
}

/* Those of the values that a statement may still have, each once; lowerings leave none. */
TEST(raises_leave_trigger_points)
{
	Driver	   *d = driver_begun();
	const int64_t *points = d->state.checkpoints.old.points;
	const WalsizerSettings *settings = &d->sample.settings;

	set_size(d, 1024);
	assert_int_equal(points[0], 0);
	set_size(d, 2048);
	set_size(d, 4096);
	set_size(d, 4096);
	assert_int_equal(points[0], walsizer_trigger_point(2048, settings));
	assert_int_equal(points[1], TRIGGER_POINT);
	assert_int_equal(points[2], 0);
	for (int again = 0; again < 2; again++)
	{
		set_size(d, 1024);
		set_size(d, 8192);
		assert_int_equal(points[0], TRIGGER_POINT);
		assert_int_equal(points[1], walsizer_trigger_point(2048, settings));
		assert_int_equal(points[2], 0);
	}
	for (int64_t mb = 9000; mb < 9000 + 100 * WALSIZER_OLD_VALUES; mb += 100)
		set_size(d, mb);
	assert_int_equal(points[0], walsizer_trigger_point(9600, settings));
	assert_int_equal(points[WALSIZER_OLD_VALUES - 1], walsizer_trigger_point(8192, settings));
}

/* A statement that began between two raises. */
TEST(any_value_that_was_replaced_counts)
{
	Driver	   *d = driver_begun();
	int64_t		between = walsizer_trigger_point(2048, &d->sample.settings);

	set_size(d, 2048);
	set_size(d, 8192);
	for (int less = 0; less <= 1; less++)
	{
		driver_observe(d, SECOND, between - less);
		driver_observe_redo(d, SECOND, 0);
		assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OLD_VALUE], 1);
		assert_int_equal(d->state.checkpoints.forced_at, between);
		d->sample.redo_lsn = d->sample.write_lsn;
	}
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OTHER], 1);
}

/* A lowering leaves a larger trigger point, which explains nothing; a raise the smaller. */
TEST(across_a_change_the_smaller_trigger_point_counts)
{
	Driver	   *d = driver_begun();

	driver_observe(d, SECOND, TRIGGER_POINT);
	d->sample.settings.max_wal_size_mb = 2048;
	driver_observe_redo(d, SECOND, 0);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OLD_VALUE], 1);
	driver_observe(d, SECOND, TRIGGER_POINT);
	d->sample.settings.max_wal_size_mb = 1024;
	driver_observe_redo(d, SECOND, 0);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_FORCED], 1);
}

/* Two seconds, because both ends are whole seconds, and the time between two samples. */
TEST(a_timed_checkpoint_may_come_a_little_early)
{
	for (int early = 0; early <= 1; early++)
	{
		Driver	   *d = driver_begun();

		driver_observe(d, 290 * SECOND, MB);
		driver_observe_redo(d, 4 * SECOND - early, 0);
		assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_TIMED], 1 - early);
		assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OTHER], early);
	}
}

/* At exactly the old trigger point it is the old value's; a byte less is nobody's. */
TEST(the_old_value_explains_what_it_forces)
{
	for (int less = 0; less <= 1; less++)
	{
		Driver	   *d = driver_begun();

		d->sample.settings.max_wal_size_mb = 2048;
		driver_observe(d, SECOND, TRIGGER_POINT - less);
		driver_observe_redo(d, SECOND, 0);
		assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OLD_VALUE], 1 - less);
	}
}

/*
 * A CHECKPOINT command comes at any distance: what lies more than two segments and the
 * WAL of a sample beyond the old trigger point is its doing.  If a checkpoint ran until
 * then, its own end tells.
 */
TEST(a_command_after_a_raise_is_no_old_value)
{
	for (int beyond = 0; beyond <= 1; beyond++)
	{
		for (int running = 0; running <= 1; running++)
		{
			Driver	   *d = driver_begun();
			int			forced = beyond == 0;

			d->sample.settings.max_wal_size_mb = 8192;
			d->sample.checkpoint_running = running;
			driver_observe(d, SECOND, TRIGGER_POINT + 2 * SEGMENT);
			driver_observe_redo(d, SECOND, 0);
			assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OLD_VALUE], 1);
			driver_observe(d, SECOND, TRIGGER_POINT + 2 * SEGMENT + beyond);
			d->sample.completed_lsn = d->sample.redo_lsn;
			d->sample.redo_lsn = d->sample.write_lsn;
			driver_observe(d, SECOND, 0);
			assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OLD_VALUE], 1 + forced);
			assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OTHER], (1 - forced) * (1 - running));

			/* the WAL of the sample itself may follow */
			driver_observe(d, SECOND, TRIGGER_POINT);
			d->sample.write_lsn += 3 * SEGMENT;
			d->sample.completed_lsn = d->sample.redo_lsn;
			d->sample.redo_lsn = d->sample.write_lsn;
			driver_observe(d, SECOND, 0);
			assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OLD_VALUE], 2 + forced);
			assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OTHER], 1 - forced);
		}
	}
}

/*
 * At an old trigger point, with completion_target = 0.5: the end of this checkpoint,
 * after that time and WAL.  Was it paced, so that no command asked for it?
 */
static int64_t
paced(int64_t ms, int64_t wal, bool next)
{
	Driver	   *d = driver_begun();
	int64_t		old;

	d->sample.settings.completion_target = 0.5;
	old = walsizer_trigger_point(1024, &d->sample.settings);
	set_size(d, 1024);
	set_size(d, 4096);
	driver_observe(d, SECOND, old);
	d->sample.checkpoint_running = true;
	driver_observe_redo(d, SECOND, 0);
	assert_true(d->state.checkpoints.old.asked_at > 0);
	assert_int_equal(d->state.cycle.old_value, 0);

	d->sample.completed_lsn = d->sample.redo_lsn;
	d->sample.redo_lsn += next; /* of a CHECKPOINT meanwhile */
	d->sample.checkpoint_running = next;
	d->state.cycle.over = true;	/* it counts in the next one */
	driver_observe(d, ms, wal);
	assert_false(d->state.cycle.over);
	driver_observe(d, 100 * SECOND, 0);
	assert_int_equal(d->state.checkpoints.old.asked_at, 0);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OLD_VALUE], 1);
	return d->state.cycle.old_value;
}

/* Half of what the checkpointer takes for WAL, in time or in WAL at the new value. */
TEST(a_command_is_written_at_once)
{
	int64_t		quarter = walsizer_trigger_point(4096, &(WalsizerSettings) {
		.segment_bytes = SEGMENT, .completion_target = 0.5}) / 4;

	for (int next = 0; next <= 1; next++)
	{
		assert_int_equal(paced(75 * SECOND, 1, next), 1);
		assert_int_equal(paced(75 * SECOND - 1, 1, next), 0);
		assert_int_equal(paced(SECOND, quarter, next), 1);
		assert_int_equal(paced(SECOND, quarter - 1, next), 0);
	}
}

/* A statement waits for the checkpoint that runs; a command that comes then is written at once. */
TEST(a_checkpoint_after_another_is_told_by_its_end)
{
	static const int slow_ones[] = {0, 1, 0};
	static const double targets[] = {0.9, 0.9, 0};	/* with 0, all are written at once */

	for (int i = 0; i < 3; i++)
	{
		int			slow = slow_ones[i];
		Driver	   *d = driver_begun();

		d->sample.settings.completion_target = targets[i];
		set_size(d, 8192);
		d->state.checkpoints.old.points[0] = TRIGGER_POINT;
		d->sample.checkpoint_running = true;
		driver_observe(d, SECOND, TRIGGER_POINT);
		driver_observe_redo(d, SECOND, 0);
		driver_observe(d, SECOND, TRIGGER_POINT + 9 * SEGMENT);
		d->sample.completed_lsn = d->sample.redo_lsn;
		d->sample.redo_lsn = d->sample.write_lsn;
		driver_observe(d, SECOND, 0);
		assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OLD_VALUE], 1);
		d->sample.completed_lsn = d->sample.redo_lsn;
		d->sample.checkpoint_running = false;
		assert_int_equal(driver_observe(d, i > 0 ? 150 * SECOND : SECOND, 0).inflated, slow);
		assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OLD_VALUE], 1 + slow);
		assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OTHER], 1 - slow);
		assert_int_equal(d->state.cycle.old_value, slow);
	}
}

/* Where none ran, the distance alone tells. */
TEST(a_command_that_is_written_slowly_is_no_old_value)
{
	Driver	   *d = driver_begun();

	set_size(d, 8192);
	d->state.checkpoints.old.points[0] = TRIGGER_POINT;
	driver_observe(d, SECOND, TRIGGER_POINT + 9 * SEGMENT);
	d->sample.checkpoint_running = true;
	driver_observe_redo(d, SECOND, 0);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OTHER], 1);
	d->sample.completed_lsn = d->sample.redo_lsn;
	d->sample.checkpoint_running = false;
	driver_observe(d, 150 * SECOND, 0);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OLD_VALUE], 0);
}

/* Between two samples it began and was complete; one that fails is tried again. */
TEST(the_end_of_a_checkpoint_at_an_old_value_is_seen)
{
	Driver	   *d = driver_begun();

	set_size(d, 4096);
	driver_observe(d, SECOND, TRIGGER_POINT);
	d->sample.redo_lsn = d->sample.completed_lsn = d->sample.write_lsn;
	driver_observe(d, SECOND, 0);
	assert_int_equal(d->state.checkpoints.old.asked_at, 0);
	assert_int_equal(d->state.cycle.old_value, 0);

	driver_observe(d, SECOND, TRIGGER_POINT);
	d->sample.checkpoint_running = true;
	driver_observe_redo(d, SECOND, 0);
	d->sample.redo_lsn = d->sample.write_lsn += SEGMENT;
	driver_observe(d, 150 * SECOND, 0);
	assert_int_equal(d->state.checkpoints.failures, 1);
	assert_true(d->state.checkpoints.old.asked_at > 0);
	assert_int_equal(d->state.cycle.old_value, 0);
}

/* An hour and three timeouts after its last sign. */
TEST(an_old_value_is_forgotten)
{
	Driver	   *d = driver_begun();

	d->sample.settings.max_wal_size_mb = 2048;
	driver_observe(d, SECOND, 0);
	driver_observe(d, (3600 + 3 * 300) * SECOND, 0);
	assert_int_equal(d->state.checkpoints.old.points[0], TRIGGER_POINT);
	driver_observe(d, 1, 0);
	assert_int_equal(d->state.checkpoints.old.points[0], 0);

	/* one that is written at once may be there by chance, and is no sign */
	d = driver_begun();
	d->sample.settings.max_wal_size_mb = 8192;
	driver_observe(d, SECOND, 0);
	driver_observe(d, 100 * SECOND, 0);
	driver_observe(d, SECOND, TRIGGER_POINT);
	driver_observe_redo(d, SECOND, 0);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OLD_VALUE], 1);
	driver_observe(d, (3600 + 3 * 300 - 102) * SECOND + 1, 0);
	assert_int_equal(d->state.checkpoints.old.points[0], 0);

	/* nor is one that the new value forces a sign of the old one */
	d = driver_begun();
	d->sample.settings.max_wal_size_mb = 2048;
	driver_observe(d, SECOND, 0);
	driver_observe(d, 600 * SECOND, 2 * TRIGGER_POINT + SEGMENT);
	driver_observe_redo(d, SECOND, 0);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_FORCED], 1);
	driver_observe(d, (3600 + 3 * 300 - 601) * SECOND + 1, 0);
	assert_int_equal(d->state.checkpoints.old.points[0], 0);
}

/* A checkpoint began when its redo pointer was written. */
TEST(the_moment_of_a_checkpoint_is_interpolated)
{
	Driver	   *d = driver_begun();

	d->sample.redo_lsn += 30 * MB;
	driver_observe(d, 40 * SECOND, 120 * MB);
	assert_int_equal(d->state.checkpoints.redo_moved, d->sample.now - 30 * SECOND);
	assert_int_equal(d->state.checkpoints.timer_start, d->sample.now - 30 * SECOND);

	/* the server counts it as timed: no reason to take it for one that was skipped */
	d->sample.redo_lsn = d->sample.write_lsn + 3000;
	d->sample.timed++;
	driver_observe(d, 40 * SECOND, 12000);
	assert_int_equal(d->state.checkpoints.timer_start, d->sample.now - 30 * SECOND);

	/* the first of a single byte */
	d->sample.redo_lsn = d->sample.write_lsn;
	driver_observe(d, SECOND, 1);
	assert_int_equal(d->state.checkpoints.redo_moved, d->sample.now - SECOND);

	/* one that is ahead of what was read as written */
	d->sample.redo_lsn = d->sample.write_lsn + 100;
	driver_observe(d, SECOND, 50);
	assert_int_equal(d->state.checkpoints.redo_moved, d->sample.now);
	driver_observe(d, SECOND, 100);

	/* by any distance, however long ago the last sample was */
	d->sample.redo_lsn = UINT64_MAX;
	driver_observe(d, INT64_C(1) << 60, 1);
	assert_int_equal(d->state.checkpoints.redo_moved, d->sample.now);

	/* where nothing was written since, it began just now */
	d = driver_begun();
	driver_observe(d, SECOND, 100);
	driver_observe_redo(d, SECOND, 0);
	assert_int_equal(d->state.checkpoints.redo_moved, d->sample.now);
	d->sample.redo_lsn += 10 * MB;
	driver_observe(d, SECOND, 10 * MB);
	assert_int_equal(d->state.checkpoints.redo_moved, d->sample.now);
}

static int64_t
timer_after_a_timed_one(int64_t ms, int64_t bytes)
{
	Driver	   *d = driver_begun();

	driver_observe(d, ms - SECOND, bytes);
	d->sample.timed++;
	driver_observe(d, SECOND, 0);
	return d->sample.now - d->state.checkpoints.timer_start;
}

/* A timed checkpoint that is skipped shows in the counter, where nothing was written. */
TEST(only_an_idle_server_skips_checkpoints)
{
	assert_int_equal(timer_after_a_timed_one(300 * SECOND, 0), 0);
	assert_int_equal(timer_after_a_timed_one(300 * SECOND, 65535), 0);
	assert_int_equal(timer_after_a_timed_one(300 * SECOND, 65536), 300 * SECOND);
	assert_int_equal(timer_after_a_timed_one(300 * SECOND, MB), 300 * SECOND);
}

/* One that was written is counted when it ends, which is before the next one is due. */
TEST(a_late_counter_moves_no_timer)
{
	assert_int_equal(timer_after_a_timed_one(270 * SECOND, 0), 270 * SECOND);
	assert_int_equal(timer_after_a_timed_one(297 * SECOND - 1, 0), 297 * SECOND - 1);
	assert_int_equal(timer_after_a_timed_one(297 * SECOND, 0), 0);
	assert_int_equal(timer_after_a_timed_one(450 * SECOND, 0), 0);
}

/* Just past its time a checkpoint is about to start; later the timer restarted unseen. */
TEST(time_until_the_timed_checkpoint)
{
	Driver	   *d = driver_begun();

	assert_int_equal(driver_observe(d, 299999, 0).until_timed_ms, 1);
	assert_int_equal(driver_observe(d, 1, 0).until_timed_ms, 0);
	assert_int_equal(driver_observe(d, 2000, 0).until_timed_ms, 0);
	assert_int_equal(driver_observe(d, 1, 0).until_timed_ms, 297999);
	d->sample.checkpoint_running = true;
	assert_int_equal(driver_observe(d, 100 * SECOND, 0).until_timed_ms, 0);
	d->sample.checkpoint_running = false;
	assert_int_equal(driver_observe(d, SECOND, 0).until_timed_ms, 300000 - 2001 - 101 * SECOND);
	driver_observe(d, 300000 - 2001 - 101 * SECOND - 1, 0);
	assert_int_equal(driver_observe(d, 1, 0).until_timed_ms, 0);
	driver_observe(d, 300 * SECOND + 100 * SECOND, 0);
	assert_int_equal(driver_observe(d, SECOND, 0).until_timed_ms, 199 * SECOND);
}

/* One that starts while the last has not completed is the same again. */
TEST(a_checkpoint_that_failed_is_counted_once)
{
	Driver	   *d = driver_begun();
	WalsizerFigures figures = driver_observe(d, SECOND, MB);

	d->sample.checkpoint_running = true;
	for (int i = 0; i < 599; i++)
	{
		d->sample.redo_lsn = d->sample.write_lsn;
		figures = driver_observe(d, SECOND, MB);
		assert_int_equal(figures.checkpoints_fail, false);
	}
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OTHER], 1);
	assert_int_equal(d->state.checkpoints.failures, 598);
	assert_true(driver_observe(d, 1, 0).checkpoints_fail);

	/* until one completes */
	d->sample.completed_lsn = d->sample.redo_lsn;
	d->sample.checkpoint_running = false;
	assert_false(driver_observe(d, SECOND, MB).checkpoints_fail);
	assert_int_equal(d->state.checkpoints.failures, 0);

	/* one failure is enough */
	d->sample.checkpoint_running = true;
	for (int i = 0; i < 2; i++)
	{
		d->sample.redo_lsn = d->sample.write_lsn;
		driver_observe(d, SECOND, MB);
	}
	assert_int_equal(d->state.checkpoints.failures, 1);
	assert_true(driver_observe(d, 601 * SECOND, MB).checkpoints_fail);
}

/* A long one that completes is none, nor is a standby or an idle server. */
TEST(a_long_checkpoint_has_not_failed)
{
	Driver	   *d = driver_begun();

	driver_observe(d, SECOND, MB);
	d->sample.checkpoint_running = true;
	driver_observe_redo(d, SECOND, MB);
	for (int i = 0; i < 3; i++)
		assert_false(driver_observe(d, 601 * SECOND, MB).checkpoints_fail);
	driver_observe_redo(d, SECOND, MB);		/* completed, and the next started */
	assert_int_equal(d->state.checkpoints.failures, 0);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OTHER] +
					 d->state.checkpoints.total[WALSIZER_CAUSE_TIMED], 2);
}

/* As many as the server counted, but no more than there was WAL for. */
TEST(several_are_forced_between_two_samples)
{
	Driver	   *d = driver_begun();
	const int64_t *forced = &d->state.checkpoints.total[WALSIZER_CAUSE_FORCED];
	int64_t		before;

	for (int counted = 0; counted <= 4; counted++)
	{
		before = *forced;

		driver_observe(d, SECOND, 3 * TRIGGER_POINT);
		d->sample.requested += counted;
		driver_observe_redo(d, SECOND, 0);
		assert_int_equal(*forced - before, counted < 1 ? 1 : counted > 3 ? 3 : counted);
		d->sample.redo_lsn = d->sample.write_lsn;
	}
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OTHER], 0);

	/* and no more than a thousand, with which sums cannot overflow */
	before = *forced;
	driver_observe(d, SECOND, 1001 * TRIGGER_POINT);
	d->sample.requested += 1001;
	driver_observe_redo(d, SECOND, 0);
	assert_int_equal(*forced - before, 1000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(raises_leave_trigger_points),
		cmocka_unit_test(any_value_that_was_replaced_counts),
		cmocka_unit_test(across_a_change_the_smaller_trigger_point_counts),
		cmocka_unit_test(a_timed_checkpoint_may_come_a_little_early),
		cmocka_unit_test(the_old_value_explains_what_it_forces),
		cmocka_unit_test(a_command_after_a_raise_is_no_old_value),
		cmocka_unit_test(a_command_is_written_at_once),
		cmocka_unit_test(a_checkpoint_after_another_is_told_by_its_end),
		cmocka_unit_test(a_command_that_is_written_slowly_is_no_old_value),
		cmocka_unit_test(the_end_of_a_checkpoint_at_an_old_value_is_seen),
		cmocka_unit_test(an_old_value_is_forgotten),
		cmocka_unit_test(the_moment_of_a_checkpoint_is_interpolated),
		cmocka_unit_test(only_an_idle_server_skips_checkpoints),
		cmocka_unit_test(a_late_counter_moves_no_timer),
		cmocka_unit_test(time_until_the_timed_checkpoint),
		cmocka_unit_test(a_checkpoint_that_failed_is_counted_once),
		cmocka_unit_test(a_long_checkpoint_has_not_failed),
		cmocka_unit_test(several_are_forced_between_two_samples),
	};

	return cmocka_run_group_tests_name("policy, causes", tests, NULL, NULL);
}
