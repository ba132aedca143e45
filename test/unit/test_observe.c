/*-------------------------------------------------------------------------
 *
 * test_observe.c
 *	  What is taken in of a sample, and what a start or a step back forgets.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"
#include "policy/internal.h"

static bool
valid(void (*change) (WalsizerSample *, int64_t), int64_t value)
{
	Driver	   *d = driver_new();

	change(&d->sample, value);
	return walsizer_sample_valid(&d->sample);
}

#define CHANGES(name, assignment) \
	static void name(WalsizerSample *s, int64_t value) { assignment; }

CHANGES(segment, s->settings.segment_bytes = value)
CHANGES(size, s->settings.max_wal_size_mb = value)
CHANGES(timeout, s->settings.timeout_ms = value)
CHANGES(target, s->settings.completion_target = (double) value / 1000)
CHANGES(now, s->now = value)
CHANGES(hour, s->hour = value)
CHANGES(requested, s->requested = value)
CHANGES(timed, s->timed = value)
CHANGES(wal_bytes, s->wal.bytes = value)
CHANGES(wal_records, s->wal.records = value)
CHANGES(wal_images, s->wal.images = value)
CHANGES(written, s->wal.written = value)

/* Any value that a server can have, and no other. */
TEST(what_a_sample_may_be)
{
	void		(*const counts[]) (WalsizerSample *, int64_t) = {now, hour, requested, timed};
	void		(*const wal[]) (WalsizerSample *, int64_t) = {wal_bytes, wal_records, wal_images, written};

	for (int64_t mb = 1; mb <= 1024; mb *= 2)
		assert_true(valid(segment, mb * MB));
	assert_false(valid(segment, MB / 2));
	assert_false(valid(segment, 2048 * MB));
	assert_false(valid(segment, 3 * MB));
	assert_true(valid(size, 1));
	assert_true(valid(size, INT32_MAX));
	assert_false(valid(size, 0));
	assert_false(valid(size, INT64_C(1) << 31));
	assert_true(valid(target, 0));
	assert_true(valid(target, 1000));
	assert_false(valid(target, -1));
	assert_false(valid(target, 1001));
	assert_true(valid(timeout, 1));
	assert_true(valid(timeout, INT64_C(1000) * INT32_MAX));
	assert_false(valid(timeout, 0));
	assert_false(valid(timeout, INT64_C(1000) * INT32_MAX + 1));
	for (int i = 0; i < 4; i++)
	{
		assert_true(valid(counts[i], 0));
		assert_true(valid(counts[i], (INT64_C(1) << 61) - 1));
		assert_false(valid(counts[i], -1));
		assert_false(valid(counts[i], INT64_C(1) << 61));
		assert_false(valid(counts[i], INT64_MAX));
	}
	for (int i = 0; i < 4; i++)
	{
		assert_true(valid(wal[i], 0));
		assert_true(valid(wal[i], INT64_MAX));
		assert_false(valid(wal[i], -1));
	}
}

/* After a step back nothing is known of the time before; without one all is. */
TEST(what_runs_backwards_starts_over)
{
	Driver	   *d;

	for (int what = 0; what < 8; what++)
	{
		d = driver_new();
		d->sample.standby = what == 6;
		d->sample.primary_lsn = d->sample.write_lsn;
		driver_observe(d, 0, 0);
		driver_observe(d, 100 * SECOND, 50 * MB);
		driver_observe_redo(d, SECOND, MB);
		if (what == 1)
			d->sample.now--;
		else if (what == 2)
			d->sample.write_lsn--;
		else if (what == 3)
			d->sample.redo_lsn--;
		else if (what == 4)
			d->sample.standby = true;
		else if (what == 5)
			d->sample.settings.segment_bytes *= 2;
		else if (what == 6)
			d->sample.standby = false;
		else if (what == 7)
			d->sample.settings.segment_bytes /= 2;
		driver_observe(d, 0, 0);
		if (what == 0)
			assert_true(d->state.window.number > 1);
		else
		{
			assert_in_range(d->state.window.number, 0, 1);
			assert_int_equal(d->state.pacing.changed_at, d->sample.now);
			assert_int_equal(d->state.pacing.kept_since, d->sample.now);
			assert_int_equal(d->state.pacing.keep_ms, 3600 * SECOND);
			assert_int_equal(d->state.cycle.start, d->sample.now);
		}
	}
}

/* The timer runs since the checkpoint of the control file, whole timeouts left out. */
TEST(a_start_knows_the_age_of_the_checkpoint)
{
	Driver	   *d = driver_new();

	d->sample.write_lsn += 100 * MB;
	d->sample.checkpoint_age = 299 * SECOND;
	assert_int_equal(driver_observe(d, 0, 0).until_timed_ms, SECOND);

	/* older than that: whole ones were skipped */
	d = driver_new();
	d->sample.write_lsn += 100 * MB;
	d->sample.checkpoint_age = 310 * SECOND;
	assert_int_equal(driver_observe(d, 0, 0).until_timed_ms, 290 * SECOND);

	/* not known, or older than the clock */
	d = driver_new();
	d->sample.checkpoint_age = -1;
	assert_int_equal(driver_observe(d, 0, 0).until_timed_ms, 300 * SECOND);
	d = driver_new();
	d->sample.now = 10 * SECOND;
	d->sample.checkpoint_age = 20 * SECOND;
	assert_int_equal(driver_observe(d, 0, 0).until_timed_ms, 290 * SECOND);
	assert_int_equal(d->state.checkpoints.timer_start, 0);
}

/* What a start must not keep of the time before. */
TEST(a_start_forgets_what_was_pending)
{
	Driver	   *d = driver_begun();

	d->state.checkpoints.old.points[0] = 1;
	d->state.boost.planned_until = 5;
	d->state.cycle.over = true;
	d->state.curve.intervals = 3;
	d->state.checkpoints.redo_moved = 1;
	d->state.window.step.demand = 77 * MB;
	d->sample.wal.bytes = 88;
	d->state.primed = false;
	driver_observe(d, SECOND, 0);
	assert_true(d->state.primed);
	assert_int_equal(d->state.checkpoints.old.points[0], 0);
	assert_int_equal(d->last.figures.rate, 0);
	assert_int_equal(d->state.boost.planned_until, 0);
	assert_false(d->state.cycle.over);
	assert_int_equal(d->state.curve.intervals, 0);
	assert_int_equal(d->state.checkpoints.redo_moved, d->state.checkpoints.timer_start);
	assert_int_equal(d->state.wal_contents.at_redo.bytes, 88);
	/* demand is remembered */
	assert_int_equal(walsizer_largest_peak(&d->state, d->sample.hour, 1).demand, 77 * MB);
}

static int64_t
kept_for(int64_t ms, int64_t hours)
{
	Driver	   *d = driver_begun();

	d->state.pacing.kept_since = 0;
	d->state.pacing.keep_ms = 3600 * SECOND;
	d->sample.hour += hours;
	driver_observe(d, ms, 0);
	return d->state.pacing.kept_since == d->sample.now ? d->state.pacing.keep_ms : 0;
}

/* The hour may change once more than time has passed, but not go back. */
TEST(a_clock_that_was_set_is_noticed)
{
	assert_int_equal(kept_for(SECOND, 0), 0);
	assert_int_equal(kept_for(SECOND, 1), 0);
	assert_int_equal(kept_for(SECOND, 2), 3600 * SECOND);
	assert_int_equal(kept_for(SECOND, -1), 3600 * SECOND);
	assert_int_equal(kept_for(3600 * SECOND, 2), 0);
	assert_int_equal(kept_for(3600 * SECOND - 1, 2), 3600 * SECOND);
	assert_int_equal(kept_for(3600 * SECOND, 3), 3600 * SECOND);
}

/* What was measured with another timeout is kept apart from what comes. */
TEST(another_timeout_begins_a_step_of_the_window)
{
	for (int64_t timeout = 299; timeout <= 301; timeout++)
	{
		Driver	   *d = driver_begun();

		driver_observe(d, SECOND, MB);
		d->sample.settings.timeout_ms = timeout * SECOND;
		driver_observe(d, SECOND, MB);
		assert_int_equal(d->state.window.number, timeout == 300 ? 1 : 2);
		if (timeout != 300)
		{
			assert_int_equal(d->state.window.marks[1].ms, d->sample.now - SECOND);
			assert_int_equal(d->state.window.marks[1].peak.demand, MB);
			assert_int_equal(d->state.window.marks[1].peak.timeout_ms, 300 * SECOND);
		}
	}
}

/* Monotonic clocks may begin anywhere, and so may hours. */
TEST(a_clock_may_begin_at_zero)
{
	Driver	   *d = driver_new();

	d->sample.now = d->sample.hour = 0;
	driver_observe(d, 0, 0);
	d->sample.redo_lsn += 3000;
	assert_int_equal(driver_observe(d, 40 * SECOND, 12000).until_timed_ms, 270 * SECOND);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OTHER], 1);
	assert_int_equal(d->state.pacing.kept_since, 0);
	assert_int_equal(d->state.pacing.keep_ms, 3600 * SECOND);
}

/* Forced checkpoints count anew when the trigger point changes, up or down. */
TEST(forced_checkpoints_are_those_before_a_change)
{
	Driver	   *d = driver_begun();
	const int64_t sizes[] = {1024, 1025, 1040, 1040, 1024};
	const int64_t before[] = {0, 0, 3, 3, 7};

	d->state.checkpoints.total[WALSIZER_CAUSE_OLD_VALUE] = 2;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
	{
		d->state.checkpoints.total[WALSIZER_CAUSE_FORCED] = (int64_t) i * 2 + (i > 1 ? -1 : 0);
		d->sample.settings.max_wal_size_mb = sizes[i];
		driver_observe(d, SECOND, 0);
		assert_int_equal(d->state.checkpoints.forced_before, before[i]);
	}
}

/* Both counters, over resets. */
TEST(the_servers_counters_are_added_up)
{
	Driver	   *d = driver_begun();

	for (int i = 1; i <= 2; i++)
	{
		d->sample.requested += 3;
		d->sample.timed += 5;
		driver_observe(d, SECOND, 0);
		assert_int_equal(d->state.checkpoints.requested, 3 * i);
		assert_int_equal(d->state.checkpoints.timed, 5 * i);
	}
	d->sample.timed = 2;
	driver_observe(d, SECOND, 0);
	assert_int_equal(d->state.checkpoints.timed, 12);

	/* sums are cut off */
	d->sample.requested = d->sample.timed = (INT64_C(1) << 61) - 1;
	driver_observe(d, SECOND, 0);
	d->sample.counters_reset = true;
	driver_observe(d, SECOND, 0);
	assert_int_equal(d->state.checkpoints.requested, INT64_C(1) << 61);
	assert_int_equal(d->state.checkpoints.timed, INT64_C(1) << 61);
}

/* 60MB/s now: 300MB of 528MB used are 3.8 s from a forced checkpoint. */
TEST(the_figures_of_a_prediction)
{
	Driver	   *d = driver_begun();
	WalsizerFigures figures = driver_observe(d, 5 * SECOND, 300 * MB);

	assert_int_equal(figures.in_effect_mb, 1024);
	assert_int_equal(figures.trigger_point, TRIGGER_POINT);
	assert_int_equal(figures.used, 300 * MB);
	assert_int_equal(figures.rate, 60 * MB);
	assert_int_equal(figures.until_timed_ms, 295 * SECOND);
	assert_int_equal(figures.projected, 300 * MB + 60 * 295 * MB);
	assert_int_equal(figures.until_forced_ms, 228 * 1000 / 60);
	figures = driver_observe(d, 5 * SECOND, 300 * MB);
	assert_int_equal(figures.until_forced_ms, 0);
	assert_int_equal(driver_begun()->state.last.redo_lsn, d->sample.redo_lsn);
	d = driver_new();
	assert_int_equal(driver_observe(d, 0, 0).until_forced_ms, -1);

	/* slowly: 527MB are left */
	assert_int_equal(driver_observe(driver_begun(), SECOND, MB).until_forced_ms, 527 * SECOND);
	d = driver_begun();
	assert_int_equal(driver_observe(d, SECOND, 1).until_forced_ms, (528 * MB - 1) * SECOND);
	d = driver_begun();
	assert_int_equal(driver_observe(d, 528 * MB * SECOND, 528 * MB).until_forced_ms, 0);

	/* from the start of the segment that the redo pointer is in */
	d = driver_new();
	d->sample.redo_lsn += 3 * MB;
	d->sample.write_lsn += 5 * MB;
	assert_int_equal(driver_observe(d, 0, 0).used, 5 * MB);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_sample_may_be),
		cmocka_unit_test(what_runs_backwards_starts_over),
		cmocka_unit_test(a_start_knows_the_age_of_the_checkpoint),
		cmocka_unit_test(a_start_forgets_what_was_pending),
		cmocka_unit_test(a_clock_that_was_set_is_noticed),
		cmocka_unit_test(another_timeout_begins_a_step_of_the_window),
		cmocka_unit_test(a_clock_may_begin_at_zero),
		cmocka_unit_test(forced_checkpoints_are_those_before_a_change),
		cmocka_unit_test(the_servers_counters_are_added_up),
		cmocka_unit_test(the_figures_of_a_prediction),
	};

	return cmocka_run_group_tests_name("policy, observation", tests, NULL, NULL);
}
