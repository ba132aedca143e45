/*-------------------------------------------------------------------------
 *
 * test_observe.c
 *	  What a sequence of samples says about timer, checkpoints and pace.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"
#include "policy/internal.h"

/* 528MB force a checkpoint at 1GB. */
#define TRIGGER_POINT	(33 * SEGMENT)

static WalsizerFigures
after(Driver *d, int64_t ms, int64_t bytes)
{
	WalsizerFigures figures = {0};

	d->sample.now += ms;
	d->sample.write_lsn += (uint64_t) bytes;
	walsizer_observe(&d->state, &d->sample, &figures);
	d->sample.checkpoint_age = -1;
	return figures;
}

/* A server with a sample, whose last checkpoint started with it. */
static Driver *
begun(void)
{
	Driver	   *d = driver_new();

	after(d, 0, 0);
	return d;
}

/* The redo pointer moves to here, and so much is written after it within ms. */
static WalsizerFigures
checkpoint(Driver *d, int64_t ms, int64_t bytes)
{
	d->sample.redo_lsn = d->sample.write_lsn;
	return after(d, ms, bytes);
}

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

/* Any value that a server can have, and no other. */
static void
what_a_sample_may_be(void **unused)
{
	void		(*const counts[]) (WalsizerSample *, int64_t) = {now, hour, requested, timed};
	void		(*const wal[]) (WalsizerSample *, int64_t) = {wal_bytes, wal_records, wal_images};

	(void) unused;
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
	}
	for (int i = 0; i < 3; i++)
	{
		assert_true(valid(wal[i], 0));
		assert_true(valid(wal[i], INT64_MAX));
		assert_false(valid(wal[i], -1));
	}
}

/* After a step back nothing is known of the time before; without one all is. */
static void
what_runs_backwards_starts_over(void **unused)
{
	Driver	   *d;

	(void) unused;
	for (int what = 0; what < 6; what++)
	{
		d = begun();
		after(d, 100 * SECOND, 50 * MB);
		checkpoint(d, SECOND, MB);
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
		after(d, 0, 0);
		if (what == 0)
			assert_true(d->state.window.number > 1);
		else
		{
			assert_in_range(d->state.window.number, 0, 1);
			assert_int_equal(d->state.pacing.changed_at, d->sample.now);
			assert_int_equal(d->state.pacing.keep_until, d->sample.now + 3600 * SECOND);
			assert_int_equal(d->state.cycle.start, d->sample.now);
		}
	}
}

/* The timer runs since the checkpoint of the control file, whole timeouts left out. */
static void
a_start_knows_the_age_of_the_checkpoint(void **unused)
{
	Driver	   *d = driver_new();

	(void) unused;
	d->sample.write_lsn += 100 * MB;
	d->sample.checkpoint_age = 299 * SECOND;
	assert_int_equal(after(d, 0, 0).until_timed_ms, SECOND);
	assert_int_equal(d->state.window.number, 2);

	/* one that is older than that says nothing of when WAL was written */
	d = driver_new();
	d->sample.write_lsn += 100 * MB;
	d->sample.checkpoint_age = 310 * SECOND;
	assert_int_equal(after(d, 0, 0).until_timed_ms, 290 * SECOND);
	assert_int_equal(d->state.window.number, 1);
	d = driver_new();
	d->sample.checkpoint_age = 300 * SECOND;
	after(d, 0, 0);
	assert_int_equal(d->state.window.number, 1);

	/* not known, or older than the clock */
	d = driver_new();
	d->sample.checkpoint_age = -1;
	assert_int_equal(after(d, 0, 0).until_timed_ms, 300 * SECOND);
	d = driver_new();
	d->sample.now = 10 * SECOND;
	d->sample.checkpoint_age = 20 * SECOND;
	assert_int_equal(after(d, 0, 0).until_timed_ms, 290 * SECOND);
	assert_int_equal(d->state.checkpoints.timer_start, 0);

	/* a standby counts the primary's WAL, and a redo pointer ahead is none */
	d = driver_new();
	d->sample.checkpoint_age = 10 * SECOND;
	d->sample.standby = true;
	d->sample.primary_lsn = d->sample.write_lsn;
	after(d, 0, 0);
	assert_int_equal(d->state.window.number, 1);
	d = driver_new();
	d->sample.checkpoint_age = 10 * SECOND;
	d->sample.redo_lsn++;
	after(d, 0, 0);
	assert_int_equal(d->state.window.number, 1);
}

/* What a start must not keep of the time before. */
static void
a_start_forgets_what_was_pending(void **unused)
{
	Driver	   *d = begun();

	(void) unused;
	d->state.checkpoints.old_trigger_point = 1;
	d->state.checkpoints.quiet_intervals = 2;
	d->state.rate.number = WALSIZER_RATE_SLOTS;
	d->state.pace.running = d->state.pace.last[0] = d->state.pace.last[1] = d->state.pace.last[2] = MB;
	d->state.changes.number = 3;
	d->state.boost.planned_until = 5;
	d->state.cycle.over = true;
	d->state.pacing.tried_mb = 7;
	d->state.pacing.lower_due = true;
	d->state.window.step_demand = 77 * MB;
	d->sample.wal.bytes = 88;
	d->state.primed = false;
	after(d, SECOND, 0);
	assert_true(d->state.primed);
	assert_int_equal(d->state.checkpoints.old_trigger_point, 0);
	assert_int_equal(d->state.checkpoints.quiet_intervals, 0);
	assert_int_equal(d->state.rate.number, 1);
	assert_int_equal(d->state.pace.running, 0);
	assert_int_equal(d->state.pace.last[0], 0);
	assert_int_equal(d->state.changes.number, 0);
	assert_int_equal(d->state.boost.planned_until, 0);
	assert_false(d->state.cycle.over);
	assert_int_equal(d->state.pacing.tried_mb, 0);
	assert_false(d->state.pacing.lower_due);
	assert_int_equal(d->state.mix.at_redo.bytes, 88);
	/* demand is remembered */
	assert_int_equal(walsizer_learned_demand(&d->state, d->sample.hour, 1), 77 * MB);
}

static int64_t
kept_for(int64_t ms, int64_t hours)
{
	Driver	   *d = begun();

	d->state.pacing.keep_until = 0;
	d->sample.hour += hours;
	after(d, ms, 0);
	return d->state.pacing.keep_until == 0 ? 0 : d->state.pacing.keep_until - d->sample.now;
}

/* The hour may change once more than time has passed, but not go back. */
static void
a_clock_that_was_set_is_noticed(void **unused)
{
	(void) unused;
	assert_int_equal(kept_for(SECOND, 0), 0);
	assert_int_equal(kept_for(SECOND, 1), 0);
	assert_int_equal(kept_for(SECOND, 2), 3600 * SECOND);
	assert_int_equal(kept_for(SECOND, -1), 3600 * SECOND);
	assert_int_equal(kept_for(3600 * SECOND, 2), 0);
	assert_int_equal(kept_for(3600 * SECOND - 1, 2), 3600 * SECOND);
	assert_int_equal(kept_for(3600 * SECOND, 3), 3600 * SECOND);
}

static int64_t
old_trigger_point(Driver *d, int64_t mb)
{
	d->sample.settings.max_wal_size_mb = mb;
	after(d, SECOND, 0);
	return d->state.checkpoints.old_trigger_point;
}

/* The smallest value that a statement may still have. */
static void
raises_leave_the_smallest_trigger_point(void **unused)
{
	Driver	   *d = begun();
	const WalsizerSettings *settings = &d->sample.settings;

	(void) unused;
	assert_int_equal(old_trigger_point(d, 1024), 0);
	d->state.checkpoints.quiet_intervals = 2;
	assert_int_equal(old_trigger_point(d, 2048), TRIGGER_POINT);
	assert_int_equal(d->state.checkpoints.quiet_intervals, 0);
	assert_int_equal(old_trigger_point(d, 4096), TRIGGER_POINT);
	d->state.checkpoints.quiet_intervals = 2;
	assert_int_equal(old_trigger_point(d, 4096), TRIGGER_POINT);
	assert_int_equal(old_trigger_point(d, 2048), TRIGGER_POINT);
	assert_int_equal(d->state.checkpoints.quiet_intervals, 2);

	/* a value that is as small explains all of it */
	assert_int_equal(old_trigger_point(d, 1024), 0);
	assert_int_equal(old_trigger_point(d, 2048), TRIGGER_POINT);
	assert_int_equal(old_trigger_point(d, 512), 0);
	assert_int_equal(old_trigger_point(d, 4096), walsizer_trigger_point(512, settings));
	assert_int_equal(old_trigger_point(d, 512 + 16), walsizer_trigger_point(512, settings) == walsizer_trigger_point(528, settings) ? 0 : walsizer_trigger_point(512, settings));
}

/* A lowering leaves a larger trigger point, which explains nothing; a raise the smaller. */
static void
across_a_change_the_smaller_trigger_point_counts(void **unused)
{
	Driver	   *d = begun();

	(void) unused;
	after(d, SECOND, TRIGGER_POINT);
	d->sample.settings.max_wal_size_mb = 2048;
	checkpoint(d, SECOND, 0);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_FORCED], 1);
	after(d, SECOND, TRIGGER_POINT);
	d->sample.settings.max_wal_size_mb = 1024;
	checkpoint(d, SECOND, 0);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_FORCED], 2);
}

/* Two seconds, because both ends are whole seconds, and the time between two samples. */
static void
a_timed_checkpoint_may_come_a_little_early(void **unused)
{
	for (int early = 0; early <= 1; early++)
	{
		Driver	   *d = begun();

		(void) unused;
		after(d, 290 * SECOND, MB);
		checkpoint(d, 4 * SECOND - early, 0);
		assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_TIMED], 1 - early);
		assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OTHER], early);
	}
}

/* At exactly the old trigger point it is the old value's; a byte less is nobody's. */
static void
the_old_value_explains_what_it_forces(void **unused)
{
	for (int less = 0; less <= 1; less++)
	{
		Driver	   *d = begun();

		(void) unused;
		d->sample.settings.max_wal_size_mb = 2048;
		after(d, SECOND, TRIGGER_POINT - less);
		d->state.checkpoints.quiet_intervals = 1;
		checkpoint(d, SECOND, 0);
		assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_OLD_VALUE], 1 - less);
		assert_int_equal(d->state.checkpoints.quiet_intervals, less);
	}
}

/* Intervals with less WAL than the old trigger point show nothing. */
static void
only_full_intervals_are_quiet(void **unused)
{
	Driver	   *d = begun();

	(void) unused;
	d->sample.settings.max_wal_size_mb = 2048;
	after(d, SECOND, 0);
	for (int i = 0; i < 5; i++)
	{
		after(d, 299 * SECOND, TRIGGER_POINT - 1);
		checkpoint(d, SECOND, 0);
	}
	assert_int_equal(d->state.checkpoints.quiet_intervals, 0);
	for (int i = 0; i < 3; i++)
	{
		assert_int_equal(d->state.checkpoints.quiet_intervals, i);
		assert_int_equal(d->state.checkpoints.old_trigger_point, TRIGGER_POINT);
		after(d, 299 * SECOND, TRIGGER_POINT);
		checkpoint(d, SECOND, 0);
	}
	assert_int_equal(d->state.checkpoints.old_trigger_point, 0);
}

/* A checkpoint began when its redo pointer was written. */
static void
the_moment_of_a_checkpoint_is_interpolated(void **unused)
{
	Driver	   *d = begun();

	(void) unused;
	d->sample.redo_lsn += 30 * MB;
	after(d, 40 * SECOND, 120 * MB);
	assert_int_equal(d->state.checkpoints.redo_moved, d->sample.now - 30 * SECOND);
	assert_int_equal(d->state.checkpoints.timer_start, d->sample.now - 30 * SECOND);

	/* where nothing was written since, it began just now */
	checkpoint(d, SECOND, 0);
	assert_int_equal(d->state.checkpoints.redo_moved, d->sample.now);
	d->sample.redo_lsn += 10 * MB;
	after(d, SECOND, 10 * MB);
	assert_int_equal(d->state.checkpoints.redo_moved, d->sample.now);
}

static int64_t
timer_after_a_timed_one(int64_t bytes)
{
	Driver	   *d = begun();

	after(d, 100 * SECOND, bytes);
	d->sample.timed++;
	after(d, SECOND, 0);
	return d->sample.now - d->state.checkpoints.timer_start;
}

/* A timed checkpoint that is skipped shows in the counter, where nothing was written. */
static void
only_an_idle_server_skips_checkpoints(void **unused)
{
	(void) unused;
	assert_int_equal(timer_after_a_timed_one(0), 0);
	assert_int_equal(timer_after_a_timed_one(65535), 0);
	assert_int_equal(timer_after_a_timed_one(65536), 101 * SECOND);
}

/* Just past its time a checkpoint is about to start; later the timer restarted unseen. */
static void
time_until_the_timed_checkpoint(void **unused)
{
	Driver	   *d = begun();

	(void) unused;
	assert_int_equal(after(d, 299999, 0).until_timed_ms, 1);
	assert_int_equal(after(d, 1, 0).until_timed_ms, 0);
	assert_int_equal(after(d, 2000, 0).until_timed_ms, 0);
	assert_int_equal(after(d, 1, 0).until_timed_ms, 297999);
	d->sample.checkpoint_running = true;
	assert_int_equal(after(d, 100 * SECOND, 0).until_timed_ms, 0);
	d->sample.checkpoint_running = false;
	assert_int_equal(after(d, SECOND, 0).until_timed_ms, 300000 - 2001 - 101 * SECOND);
	after(d, 300000 - 2001 - 101 * SECOND - 1, 0);
	assert_int_equal(after(d, 1, 0).until_timed_ms, 0);
}

/* 60MB/s now: 300MB of 528MB used are 3.8 s from a forced checkpoint. */
static void
the_figures_of_a_prediction(void **unused)
{
	Driver	   *d = begun();
	WalsizerFigures figures = after(d, 5 * SECOND, 300 * MB);

	(void) unused;
	assert_int_equal(figures.in_effect_mb, 1024);
	assert_int_equal(figures.trigger_point, TRIGGER_POINT);
	assert_int_equal(figures.used, 300 * MB);
	assert_int_equal(figures.rate, 60 * MB);
	assert_int_equal(figures.until_timed_ms, 295 * SECOND);
	assert_int_equal(figures.projected, 300 * MB + 60 * 295 * MB);
	assert_int_equal(figures.until_forced_ms, 228 * 1000 / 60);
	figures = after(d, 5 * SECOND, 300 * MB);
	assert_int_equal(figures.until_forced_ms, 0);
	assert_int_equal(begun()->state.last.redo, d->sample.redo_lsn);
	d = driver_new();
	assert_int_equal(after(d, 0, 0).until_forced_ms, -1);

	/* from the start of the segment that the redo pointer is in */
	d = driver_new();
	d->sample.redo_lsn += 3 * MB;
	d->sample.write_lsn += 5 * MB;
	assert_int_equal(after(d, 0, 0).used, 5 * MB);
}

/* WAL that came fast after the redo pointer, as if it went on like that. */
static void
pace_is_that_of_the_writing(void **unused)
{
	Driver	   *d = begun();
	const WalsizerPace *pace = &d->state.pace;

	(void) unused;
	/* the first tenth of the 270 s of writing is left out */
	after(d, 27 * SECOND - 1, 200 * MB);
	assert_int_equal(pace->running, 0);
	after(d, 1, 70 * MB);
	assert_int_equal(pace->running, 270 * MB * 300 / 27);
	after(d, 27 * SECOND, 0);	/* slower: the largest counts */
	assert_int_equal(pace->running, 270 * MB * 300 / 27);
	after(d, 270 * SECOND - 54 * SECOND, 3000 * MB);
	assert_int_equal(pace->running, walsizer_to_int64((double) (3270 * MB) * (300.0 / 270.0)));
	after(d, 1, 3000 * MB);		/* the writing is over */
	assert_int_equal(pace->running, walsizer_to_int64((double) (3270 * MB) * (300.0 / 270.0)));
}

/* So much WAL within the first minute of a timed interval; what pace says after it. */
static int64_t
interval(Driver *d, int64_t bytes, int64_t seconds)
{
	after(d, 60 * SECOND, bytes);
	after(d, (seconds - 61) * SECOND, 0);
	d->sample.redo_lsn = d->sample.write_lsn;
	return after(d, SECOND, 0).pace;
}

/* What happens in each of three timed intervals is the nature of the load. */
static void
pace_is_the_smallest_of_three_intervals(void **unused)
{
	Driver	   *d = begun();

	(void) unused;
	assert_int_equal(interval(d, 50 * MB, 300), 0);
	assert_int_equal(interval(d, 30 * MB, 300), 0);
	assert_int_equal(interval(d, 40 * MB, 300), 150 * MB);
	/* one that was cut short says nothing, and is not part of the next */
	assert_int_equal(interval(d, 10 * MB, 200), 150 * MB);
	assert_int_equal(d->state.pace.running, 0);
	assert_int_equal(interval(d, 70 * MB, 300), 150 * MB);
	assert_int_equal(interval(d, 60 * MB, 300), 200 * MB);
	assert_int_equal(interval(d, 20 * MB, 300), 100 * MB);
}

/* Eight changes are followed up at a time; of nine the oldest is not. */
static void
the_last_eight_changes_are_followed_up(void **unused)
{
	Driver	   *d = begun();

	(void) unused;
	for (int i = 1; i <= 9; i++)
	{
		d->state.checkpoints.total[WALSIZER_CAUSE_FORCED] = i;
		walsizer_record_change(&d->state, d->sample.now + i, 100 * i);
	}
	assert_int_equal(d->state.changes.number, 8);
	for (int i = 2; i <= 9; i++)
	{
		WalsizerDecision decision = {0};
		WalsizerSample sample = d->sample;

		sample.now += i + 300 * SECOND - 1;
		walsizer_follow_up(&d->state, &sample, &decision);
		assert_false(decision.followed);
		sample.now++;
		walsizer_follow_up(&d->state, &sample, &decision);
		assert_true(decision.followed);
		assert_int_equal(decision.followed_mb, 100 * i);
		assert_int_equal(decision.followed_forced, 9 - i);
	}
	assert_int_equal(d->state.changes.number, 0);
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
		cmocka_unit_test(raises_leave_the_smallest_trigger_point),
		cmocka_unit_test(across_a_change_the_smaller_trigger_point_counts),
		cmocka_unit_test(a_timed_checkpoint_may_come_a_little_early),
		cmocka_unit_test(the_old_value_explains_what_it_forces),
		cmocka_unit_test(only_full_intervals_are_quiet),
		cmocka_unit_test(the_moment_of_a_checkpoint_is_interpolated),
		cmocka_unit_test(only_an_idle_server_skips_checkpoints),
		cmocka_unit_test(time_until_the_timed_checkpoint),
		cmocka_unit_test(the_figures_of_a_prediction),
		cmocka_unit_test(pace_is_that_of_the_writing),
		cmocka_unit_test(pace_is_the_smallest_of_three_intervals),
		cmocka_unit_test(the_last_eight_changes_are_followed_up),
	};

	return cmocka_run_group_tests_name("policy, observation", tests, NULL, NULL);
}
