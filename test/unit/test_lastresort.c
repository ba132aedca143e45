/*-------------------------------------------------------------------------
 *
 * test_lastresort.c
 *	  When walsizer requests a checkpoint, because WAL fills its file system.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"

#define RATE	SEGMENT			/* bytes per second */

/* A disk with this free (MB), and an administrator's max_wal_size of 4GB. */
static Driver *
with_free(int64_t mb)
{
	Driver	   *d = driver_new();

	d->apply = false;
	d->sample.settings.max_wal_size_mb = 4096;
	d->sample.disk_read = true;
	d->sample.disk_free = mb * MB;
	d->sample.completed_lsn = d->sample.redo_lsn;
	driver_step(d, 0, 0);
	driver_step(d, 0, 0);
	return d;
}

/* A second with this WAL, in new segments, and this of others. */
static WalsizerAction
write_both(Driver *d, int64_t wal, int64_t others)
{
	d->sample.disk_free -= wal + others;
	d->sample.disk_wal += wal;
	d->sample.disk_removable += wal;
	return driver_step(d, SECOND, wal);
}

/* How many of these seconds at RATE ended with a request? */
static int
fill(Driver *d, int seconds)
{
	int			requests = 0;

	for (int i = 0; i < seconds; i++)
		requests += write_both(d, RATE, 0) == WALSIZER_CHECKPOINT;
	return requests;
}

/* A checkpoint starts; when it is complete, all WAL before it is removed. */
static void
start(Driver *d)
{
	d->sample.redo_lsn = d->sample.write_lsn;
	d->sample.checkpoint_running = true;
}

static void
complete(Driver *d)
{
	d->sample.completed_lsn = d->sample.redo_lsn;
	d->sample.checkpoint_running = false;
	d->sample.disk_free += d->sample.disk_wal;
	d->sample.disk_wal = d->sample.disk_removable = 0;
}

TEST(it_is_requested_ten_seconds_and_two_samples_before)
{
	Driver	   *d = with_free(40 * 16);

	assert_int_equal(fill(d, 27), 0);
	assert_false(d->state.last_resort.fills);
	assert_int_equal(write_both(d, RATE, 0), WALSIZER_CHECKPOINT);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_DISK_FULL);
	assert_int_equal(d->last.target_mb, 4096);
	assert_int_equal(d->state.last_resort.room, 12 * SEGMENT);
	assert_int_equal(d->state.last_resort.until_full_ms, 12 * SECOND);
	assert_true(d->state.last_resort.fills);
}

/* Also if samples are two seconds apart: four segments, of which one is WAL. */
TEST(what_others_write_counts_by_the_second)
{
	Driver	   *d = with_free(100 * 16);

	for (int i = 0; i < 3; i++)
	{
		d->sample.disk_free -= 4 * SEGMENT;
		d->sample.disk_wal += SEGMENT;
		d->sample.disk_removable += SEGMENT;
		driver_step(d, 2 * SECOND, SEGMENT);
	}
	assert_int_equal(d->state.last_resort.room, 88 * SEGMENT);
	assert_int_equal(d->state.last_resort.until_full_ms, 44 * SECOND);
}

/* Of a file system that has no room for a segment, none can be used. */
TEST(what_is_less_than_a_segment_is_no_room)
{
	Driver	   *d = with_free(40 * 16 + 15);

	assert_int_equal(fill(d, 28), 1);
	assert_int_equal(d->state.last_resort.room, 12 * SEGMENT);
	d->sample.disk_ahead = 3 * SEGMENT;
	driver_step(d, SECOND, SEGMENT + MB);
	assert_int_equal(d->state.last_resort.room, (12 + 3) * SEGMENT + 15 * MB);
}

/* Not even the next record fits. */
TEST(no_room_is_too_little_for_an_idle_server)
{
	Driver	   *d = with_free(15);

	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.figures.rate, 0);
	assert_int_equal(d->state.last_resort.room, 0);
	assert_true(d->state.last_resort.fills);
}

TEST(one_at_a_time)
{
	Driver	   *d = with_free(40 * 16);

	assert_int_equal(fill(d, 28), 1);
	assert_int_equal(fill(d, 1), 0);
	start(d);
	assert_int_equal(fill(d, 3), 0);
	complete(d);
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_NONE);
	assert_int_equal(d->state.last_resort.asked_lsn, 0);
	assert_int_equal(d->state.last_resort.took_ms, 5 * SECOND);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_DISK_FULL], 1);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OTHER], 0);
	assert_int_equal(fill(d, 28), 1);
}

/* The one that is running is hurried, and is not the one requested. */
TEST(a_running_one_is_not_the_one_requested)
{
	Driver	   *d = with_free(40 * 16);

	fill(d, 10);
	start(d);
	fill(d, 10);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OTHER], 1);
	d->sample.settings.timeout_ms = 3600 * SECOND;
	assert_int_equal(fill(d, 8), 1);
	d->sample.completed_lsn = d->sample.redo_lsn;
	d->sample.checkpoint_running = false;
	driver_step(d, SECOND, 0);
	assert_false(d->state.last_resort.complete);
	start(d);
	driver_step(d, SECOND, 0);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_DISK_FULL], 1);
	complete(d);
	driver_step(d, SECOND, 0);
	assert_true(d->state.last_resort.complete);
}

/* A checkpoint begins after 16 segments, of which as many were free as this. */
static void
start_with(Driver *d, int segments)
{
	start(d);
	complete(d);
	d->sample.disk_free = segments * SEGMENT;
	driver_step(d, SECOND, 0);
	assert_int_equal(fill(d, 16), 0);
	start(d);
}

TEST(none_if_max_wal_size_keeps_wal_small_enough)
{
	Driver	   *d = with_free(40 * 16);

	d->sample.settings.max_wal_size_mb = 512;	/* 16 segments force a checkpoint */
	driver_step(d, SECOND, 0);
	for (int i = 0; i < 12; i++)
	{
		assert_int_equal(fill(d, 16), 0);
		start(d);
		assert_int_equal(fill(d, 14), 0);
		complete(d);
	}
	/* 16 + 14.4 segments are just enough, and two more */
	start_with(d, 33);
	assert_int_equal(fill(d, 14), 0);
	complete(d);
	start_with(d, 30);
	assert_int_equal(fill(d, 1), 0);
	assert_int_equal(fill(d, 1), 1);
}

TEST(none_if_a_checkpoint_that_runs_is_complete_before)
{
	Driver	   *d = with_free(40 * 16);

	d->sample.settings.timeout_ms = 30 * SECOND;	/* paced to end after 27 s */
	fill(d, 9);
	start(d);
	assert_int_equal(fill(d, 19), 0);
	assert_int_equal(fill(d, 7), 0);
	/* it is late, and may take as long again */
	assert_int_equal(fill(d, 1), 1);
}

TEST(late_by_wal)
{
	Driver	   *d = with_free(40 * 16);

	d->sample.settings.max_wal_size_mb = 256;	/* paced to end after 7.2 segments */
	fill(d, 21);
	start(d);
	assert_int_equal(fill(d, 7), 0);
	assert_int_equal(fill(d, 1), 0);
	assert_int_equal(fill(d, 5), 1);
}

/* A statement that began with a larger value fills WAL far beyond the trigger point of now. */
TEST(one_that_is_overdue_is_not_expected)
{
	Driver	   *d = with_free(60 * 16);

	d->sample.settings.max_wal_size_mb = 160;	/* paced to end after 4.5 segments */
	assert_int_equal(fill(d, 47), 0);
	assert_int_equal(fill(d, 1), 1);
}

TEST(a_slow_checkpoint_is_requested_earlier)
{
	Driver	   *d = with_free(60 * 16);

	d->state.last_resort.took_ms = 9 * SECOND;
	assert_int_equal(fill(d, 39), 0);
	assert_int_equal(fill(d, 1), 1);

	/* at 100 MB/s, what is dirty takes as long: no more than there are buffers */
	d = with_free(200 * 16);
	d->sample.buffers = 1000 * MB / 8192;
	assert_int_equal(fill(d, 177), 0);
	assert_int_equal(fill(d, 1), 1);
	assert_int_equal(d->state.last_resort.until_full_ms, 22 * SECOND);
}

TEST(what_a_checkpoint_does_not_remove_is_not_requested)
{
	Driver	   *d = with_free(40 * 16);

	for (int i = 0; i < 36; i++)
	{
		d->sample.disk_removable = -RATE;	/* nothing afterwards */
		assert_int_equal(write_both(d, RATE, 0), WALSIZER_NONE);
	}
	assert_true(d->state.last_resort.fills);
	assert_int_equal(d->state.last_resort.kept, 36 * SEGMENT);

	/* half of what is left is worth it */
	d->sample.disk_removable = 0;
	assert_int_equal(write_both(d, RATE, 0), WALSIZER_NONE);
	assert_int_equal(write_both(d, RATE, 0), WALSIZER_CHECKPOINT);
}

/* What is held back is said if it is more than what is removed, and two segments. */
TEST(what_a_checkpoint_keeps_is_told_if_it_is_most)
{
	for (int more = -1; more <= 1; more++)
	{
		Driver	   *d = with_free(40 * 16);

		d->sample.disk_wal = 6 * SEGMENT + more;
		d->sample.disk_removable = 2 * SEGMENT;
		driver_step(d, SECOND, 0);
		assert_int_equal(d->state.last_resort.kept, more > 0 ? 4 * SEGMENT + 1 : 0);
	}
}

TEST(it_is_only_said)
{
	Driver	   *d = with_free(40 * 16);

	d->config.prevent_disk_full = false;
	assert_int_equal(fill(d, 30), 0);
	assert_true(d->state.last_resort.fills);
	d->config.prevent_disk_full = true;
	d->config.enable = false;
	assert_int_equal(fill(d, 5), 0);
	assert_true(d->state.last_resort.fills);
	d->config.enable = true;
	assert_int_equal(fill(d, 1), 1);
}

TEST(others_take_space)
{
	Driver	   *d = with_free(100 * 16);

	for (int i = 0; i < 20; i++)
		assert_int_equal(write_both(d, RATE, RATE), WALSIZER_NONE);
	/* what one reading alone shows is no rate */
	assert_int_equal(write_both(d, RATE, 21 * RATE), WALSIZER_NONE);
	assert_int_equal(write_both(d, RATE, RATE), WALSIZER_NONE);
	for (int i = 0; i < 5; i++)
		assert_int_equal(write_both(d, RATE, RATE), WALSIZER_NONE);
	assert_int_equal(d->state.last_resort.room, 26 * SEGMENT);
	assert_int_equal(write_both(d, RATE, RATE), WALSIZER_CHECKPOINT);
}

/* When others have taken the last free space, WAL goes into segments that exist. */
TEST(segments_that_exist_cannot_be_taken)
{
	Driver	   *d = with_free(20 * 16);

	d->sample.disk_ahead = 40 * SEGMENT;
	for (int i = 0; i < 10; i++)
	{
		d->sample.disk_free -= 2 * SEGMENT;
		d->sample.disk_ahead -= SEGMENT;
		d->sample.disk_removable += SEGMENT;
		assert_int_equal(driver_step(d, SECOND, SEGMENT), WALSIZER_NONE);
	}
	assert_int_equal(d->state.last_resort.until_full_ms, 30 * SECOND);
	for (int i = 0; i < 17; i++)
	{
		d->sample.disk_ahead -= SEGMENT;
		d->sample.disk_removable += SEGMENT;
		assert_int_equal(driver_step(d, SECOND, SEGMENT), WALSIZER_NONE);
	}
	d->sample.disk_ahead -= SEGMENT;
	assert_int_equal(driver_step(d, SECOND, SEGMENT), WALSIZER_CHECKPOINT);
}

/* Not complete, or complete without having removed anything. */
TEST(what_does_not_help_is_not_repeated_for_a_while)
{
	for (int completes = 0; completes < 2; completes++)
	{
		Driver	   *d = with_free(40 * 16);

		fill(d, 28);
		assert_int_not_equal(d->state.last_resort.asked_lsn, 0);
		start(d);
		if (completes)
			d->sample.completed_lsn = d->sample.redo_lsn;
		for (int i = 0; i < 299; i++)
			assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_NONE);
		assert_int_equal(d->state.last_resort.complete, completes);
		assert_int_not_equal(d->state.last_resort.asked_lsn, 0);
		driver_step(d, (1 + completes) * SECOND, 0);	/* or later */
		assert_int_equal(d->state.last_resort.asked_lsn, 0);
		assert_int_equal(fill(d, 3), 1);
	}
}

/* New WAL may be removed as well, but does not show that this was not. */
TEST(it_has_helped_although_wal_was_written_meanwhile)
{
	Driver	   *d = with_free(40 * 16);

	fill(d, 28);
	start(d);
	fill(d, 5);
	complete(d);
	d->sample.disk_removable = 5 * SEGMENT + 14 * SEGMENT;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->state.last_resort.asked_lsn, 0);
}

/* Also if it was asked for within a segment: whole ones count. */
TEST(it_has_helped_although_it_was_asked_for_within_a_segment)
{
	Driver	   *d = with_free(40 * 16);

	driver_step(d, SECOND, 5 * MB);
	while (fill(d, 1) == 0)
		;
	assert_int_equal(d->state.last_resort.asked_lsn % SEGMENT, 5 * MB);
	start(d);
	fill(d, 5);
	complete(d);
	d->sample.disk_removable = 5 * SEGMENT + d->state.last_resort.asked_removable / 2;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->state.last_resort.asked_lsn, 0);
}

TEST(a_standby_asks_again_soon)
{
	Driver	   *d = with_free(40 * 16);

	d->sample.standby = true;
	driver_step(d, SECOND, 0);
	assert_int_equal(fill(d, 28), 1);
	for (int i = 0; i < 14; i++)
		assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_NONE);
	assert_false(d->state.last_resort.complete);
	driver_step(d, SECOND, 0);
	assert_int_equal(d->state.last_resort.asked_lsn, 0);
	assert_int_equal(fill(d, 3), 1);

	/* the restartpoint is as old as the primary's checkpoint */
	d->sample.redo_lsn += 100 * MB;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_DISK_FULL], 1);
	complete(d);
	driver_step(d, SECOND, 0);
	assert_int_equal(d->state.last_resort.asked_lsn, 0);
}

TEST(our_own_raise_is_lowered_first)
{
	Driver	   *d = driver_quiet_raise(4096);

	d->sample.completed_lsn = d->sample.redo_lsn;
	d->sample.disk_read = true;
	d->sample.disk_free = 60 * SEGMENT;
	fill(d, 3);
	d->state.pacing.tried_mb = 0;
	d->state.owner.original_mb = 64;
	d->sample.disk_free = 13 * SEGMENT;
	assert_int_equal(write_both(d, RATE, 0), WALSIZER_LOWER);
	assert_true(d->state.last_resort.fills);
	d->sample.disk_removable = 20 * SEGMENT;
	assert_int_equal(write_both(d, RATE, 0), WALSIZER_CHECKPOINT);
}

/* At RATE, and before at four times that: it may be so again. */
TEST(a_load_that_was_faster_may_be_so_again)
{
	Driver	   *d = with_free(100 * 16);

	assert_int_equal(write_both(d, 4 * RATE, 0), WALSIZER_NONE);
	for (int i = 0; i < 47; i++)
		assert_int_equal(write_both(d, RATE, 0), WALSIZER_NONE);
	assert_int_equal(d->state.last_resort.room, 49 * SEGMENT);
	assert_int_equal(fill(d, 6), 1);
	assert_true(d->state.last_resort.until_full_ms > 40 * SECOND);

	/* the peak fades within ten minutes */
	driver_step(d, 300 * SECOND, 0);
	assert_in_range(d->state.last_resort.peak_rate, 1.7 * RATE, 1.9 * RATE);
	driver_step(d, 600 * SECOND, 0);
	assert_int_equal(d->state.last_resort.peak_rate, d->last.figures.rate);
}

/* Others take what WAL does not write: the server's next checkpoint is the timed one. */
TEST(others_alone)
{
	Driver	   *d = with_free(40 * 16);

	fill(d, 10);
	for (int i = 0; i < 10; i++)
		assert_int_equal(write_both(d, 0, RATE), WALSIZER_NONE);
	assert_int_equal(d->last.figures.rate, 0);
	for (int i = 0; i < 7; i++)
		assert_int_equal(write_both(d, 0, RATE), WALSIZER_NONE);
	assert_int_equal(write_both(d, 0, RATE), WALSIZER_CHECKPOINT);
}

/* Of those that start after a request, the first whose redo pointer is not older. */
TEST(one_checkpoint_is_the_one_requested)
{
	Driver	   *d = with_free(40 * 16);

	fill(d, 28);
	d->sample.redo_lsn = d->sample.write_lsn - MB;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_DISK_FULL], 0);
	d->sample.redo_lsn += MB;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_DISK_FULL], 1);
	driver_step(d, SECOND, MB);
	d->sample.redo_lsn += MB;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_DISK_FULL], 1);
}

TEST(a_disk_that_is_not_read_is_not_full)
{
	Driver	   *d = with_free(40 * 16);

	d->config.prevent_disk_full = false;
	fill(d, 30);
	assert_true(d->state.last_resort.fills);
	d->ask_for_disk = true;
	d->sample.disk_read = false;
	d->state.disk.looked_at = 0;
	driver_step(d, SECOND, 0);
	assert_true(d->sample.disk_tried);
	assert_false(d->state.last_resort.fills);
}

/* Each of these checkpoints repeats the page images, as forced ones do. */
TEST(a_series_inflates_the_demand)
{
	Driver	   *d = with_free(40 * 16);

	fill(d, 27);
	assert_int_equal(d->state.window.step.inflated_at, 0);
	fill(d, 2);
	assert_int_equal(d->state.window.step.inflated_at, d->last.figures.trigger_point);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_requested_ten_seconds_and_two_samples_before),
		cmocka_unit_test(what_others_write_counts_by_the_second),
		cmocka_unit_test(what_is_less_than_a_segment_is_no_room),
		cmocka_unit_test(no_room_is_too_little_for_an_idle_server),
		cmocka_unit_test(one_at_a_time),
		cmocka_unit_test(a_running_one_is_not_the_one_requested),
		cmocka_unit_test(none_if_max_wal_size_keeps_wal_small_enough),
		cmocka_unit_test(none_if_a_checkpoint_that_runs_is_complete_before),
		cmocka_unit_test(late_by_wal),
		cmocka_unit_test(one_that_is_overdue_is_not_expected),
		cmocka_unit_test(a_slow_checkpoint_is_requested_earlier),
		cmocka_unit_test(what_a_checkpoint_does_not_remove_is_not_requested),
		cmocka_unit_test(what_a_checkpoint_keeps_is_told_if_it_is_most),
		cmocka_unit_test(it_is_only_said),
		cmocka_unit_test(others_take_space),
		cmocka_unit_test(segments_that_exist_cannot_be_taken),
		cmocka_unit_test(what_does_not_help_is_not_repeated_for_a_while),
		cmocka_unit_test(it_has_helped_although_wal_was_written_meanwhile),
		cmocka_unit_test(it_has_helped_although_it_was_asked_for_within_a_segment),
		cmocka_unit_test(a_standby_asks_again_soon),
		cmocka_unit_test(our_own_raise_is_lowered_first),
		cmocka_unit_test(a_load_that_was_faster_may_be_so_again),
		cmocka_unit_test(others_alone),
		cmocka_unit_test(one_checkpoint_is_the_one_requested),
		cmocka_unit_test(a_disk_that_is_not_read_is_not_full),
		cmocka_unit_test(a_series_inflates_the_demand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
