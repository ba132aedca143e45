/*-------------------------------------------------------------------------
 *
 * test_total.c
 *	  Any input gives a defined answer.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "driver.h"

TEST(senseless_samples_change_nothing)
{
	Driver	   *d = driver_new();
	static WalsizerState before;
	WalsizerSample good;

	driver_run(d, 100, MB);
	before = d->state;
	good = d->sample;

#define SENSELESS(field, value) \
	do { \
		d->sample = good; \
		d->sample.field = (value); \
		d->last = walsizer_step(&d->config, &d->state, &d->sample); \
		assert_int_equal(d->last.action, WALSIZER_NONE); \
		assert_int_equal(d->last.reason, WALSIZER_BECAUSE_INVALID); \
		assert_memory_equal(&before, &d->state, sizeof(before)); \
	} while (0)

	SENSELESS(settings.segment_bytes, 0);
	SENSELESS(settings.segment_bytes, -MB);
	SENSELESS(settings.segment_bytes, 3 * MB);
	SENSELESS(settings.segment_bytes, 2048 * MB);
	SENSELESS(settings.max_wal_size_mb, 0);
	SENSELESS(settings.max_wal_size_mb, -1);
	SENSELESS(settings.max_wal_size_mb, INT64_MAX);
	SENSELESS(settings.completion_target, NAN);
	SENSELESS(settings.completion_target, -0.1);
	SENSELESS(settings.completion_target, INFINITY);
	SENSELESS(settings.timeout_ms, 0);
	SENSELESS(settings.timeout_ms, -1);
	SENSELESS(settings.timeout_ms, INT64_MAX);
	SENSELESS(now, -1);
	SENSELESS(now, INT64_MAX);
	SENSELESS(hour, -1);
	SENSELESS(requested, -1);
	SENSELESS(timed, INT64_MAX);
}

TEST(the_ends_of_the_settings_ranges_work)
{
	const double headrooms[] = {1.0, 4.0};

	for (size_t i = 0; i < sizeof(headrooms) / sizeof(headrooms[0]); i++)
	{
		Driver	   *d = driver_new();

		d->config.headroom = headrooms[i];
		d->config.max_mb = INT32_MAX;
		d->config.min_mb = INT32_MAX;
		d->config.threshold = 1000;
		d->config.sample_interval_ms = i == 0 ? 100 : 60000;
		d->config.lookback_hours = i == 0 ? 1 : walsizer_most.lookback_hours;
		driver_run(d, 3600, 10 * MB);
		assert_true(d->raises > 0);
		assert_in_range(d->sample.settings.max_wal_size_mb, 1024, 4 * 6400);
		assert_int_equal(d->sample.settings.max_wal_size_mb % 16, 0);
	}
}

TEST(the_log_position_goes_back)
{
	Driver	   *d = driver_new();

	driver_run(d, 1000, MB);
	d->sample.write_lsn = d->sample.redo_lsn = 4096;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.figures.demand, 0);
	assert_int_equal(d->last.figures.rate, 0);
	driver_run(d, 300, MB);
	assert_in_range(d->last.figures.demand, 299 * MB, 301 * MB);
	assert_int_equal(d->raises, 0);

	/* a redo pointer ahead of what was written */
	d->sample.redo_lsn = d->sample.write_lsn + 100 * MB;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.figures.used, 0);
}

TEST(the_clock_steps)
{
	Driver	   *d = driver_new();

	driver_run(d, 1000, MB);
	driver_step(d, -500 * SECOND, 0);
	assert_int_equal(d->last.action, WALSIZER_NONE);
	driver_run(d, 300, MB);
	assert_in_range(d->last.figures.demand, 299 * MB, 301 * MB);
	driver_step(d, INT64_C(1000000000) * SECOND, 0);
	assert_int_equal(d->last.action, WALSIZER_NONE);
	driver_run(d, 300, MB);
	assert_int_equal(d->raises, 0);
	driver_step(d, 0, 0);		/* twice at the same time */
	driver_step(d, 0, 10 * MB);
	assert_int_equal(d->raises, 0);
}

TEST(the_servers_settings_change)
{
	Driver	   *d = driver_new();
	int64_t		trigger_point;

	driver_run(d, 1000, 3 * MB / 2);	/* 450 of 528MB */
	assert_int_equal(d->raises, 0);

	/* twice the timeout: the same load needs more, and that shows in time */
	d->sample.settings.timeout_ms = 600 * SECOND;
	driver_run(d, 1500, 3 * MB / 2);
	assert_true(d->raises > 0);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_FORCED], 0);
	d->sample.settings.timeout_ms = 30 * SECOND;
	driver_run(d, 100, 3 * MB / 2);
	assert_in_range(d->last.figures.demand, 44 * MB, 46 * MB);

	trigger_point = d->last.figures.trigger_point;
	d->sample.settings.completion_target = 0.0;
	driver_step(d, SECOND, 0);
	assert_true(d->last.figures.trigger_point > trigger_point);
	d->sample.settings.segment_bytes = 64 * MB;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.figures.trigger_point % (64 * MB), 0);
	driver_run(d, 100, MB);
	assert_int_equal(d->externals, 0);
}

TEST(the_largest_values)
{
	Driver	   *d = driver_new();

	d->sample.settings.max_wal_size_mb = INT32_MAX;
	d->config.max_mb = INT32_MAX;
	driver_run(d, 700, INT64_C(1) << 50);
	assert_int_equal(d->raises, 0);
	assert_true(d->last.figures.wanted_mb > 0 && d->last.figures.wanted_mb <= INT32_MAX);

	d = driver_new();
	d->sample.settings.max_wal_size_mb = 2000000;
	d->config.max_mb = INT32_MAX;
	d->sample.requested = 1817;
	driver_run(d, 700, INT64_C(1) << 50);
	assert_true(d->sample.settings.max_wal_size_mb > 2000000);
	assert_true(d->sample.settings.max_wal_size_mb <= INT32_MAX);

	d = driver_new();
	driver_step(d, 0, 0);
	d->sample.write_lsn = UINT64_MAX;
	driver_step(d, SECOND, 0);
	assert_true(d->last.figures.projected > 0);
}

/* A size that the server would not start with, and no demand to divide by. */
TEST(a_size_below_all_candidates)
{
	Driver	   *d = driver_new();
	WalsizerFigures none = {0};
	WalsizerWhatIf what;

	driver_step(d, 0, 0);
	what = walsizer_what_if(&d->config, &d->state, &d->sample, &none, 1);
	assert_int_equal(what.every_now_ms, d->sample.settings.timeout_ms);
	assert_int_equal(what.trigger_point, SEGMENT);
}

/* What counts each timed checkpoint would overflow one day. */
TEST(timed_checkpoints_without_end)
{
	Driver	   *d = driver_new();

	driver_step(d, 0, 0);
	for (int i = 0; i < 100; i++)
	{
		driver_step(d, 300 * SECOND, MB);
		driver_checkpoint(d, false);
		driver_step(d, SECOND, 0);
	}
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_TIMED], 100);
}

TEST(missed_ticks)
{
	Driver	   *d = driver_new();

	driver_step(d, 0, 0);
	for (int i = 0; i < 50; i++)
	{
		driver_step(d, 97 * SECOND, 97 * 4 * MB);
		if (driver_forced_due(d))
			driver_checkpoint(d, true);
		else if (i % 3 == 0)
			driver_checkpoint(d, false);
	}
	assert_in_range(d->raises, 1, 5);
	assert_in_range(d->sample.settings.max_wal_size_mb, 2000, 3400);
}

/* A disk that does not change need not be read for each sample. */
TEST(looking_when_it_is_due_makes_no_difference)
{
	static Driver asking;
	Driver	   *d = driver_new();
	uint64_t	random = 1;

	d->sample.settings.timeout_ms = 30 * SECOND;
	d->sample.settings.max_wal_size_mb = 64;
	d->sample.disk_read = true;
	d->sample.disk_free = 40000 * MB;
	d->sample.disk_wal = 1000 * MB;
	d->config.lookback_hours = 1;
	asking = *d;
	asking.ask_for_disk = true;
	for (int i = 0; i < 40000; i++)
	{
		int64_t		bytes;

		random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
		bytes = (int64_t) (random >> 40) * (i / 500 % 7) / (i < 10000 ? 1 : 20);
		d->sample.counters_reset = asking.sample.counters_reset = i % 97 == 0;
		driver_step(d, SECOND, bytes);
		driver_step(&asking, SECOND, bytes);
		assert_int_equal(asking.last.action, d->last.action);
		assert_int_equal(asking.last.reason, d->last.reason);
		assert_int_equal(asking.last.target_mb, d->last.target_mb);
		assert_int_equal(asking.last.wanted_mb, d->last.wanted_mb);
		assert_int_equal(asking.last.cycle, d->last.cycle);
		assert_memory_equal(&asking.last.figures, &d->last.figures, sizeof(d->last.figures));
		if (driver_forced_due(d) || i % 30 == 0)
		{
			driver_checkpoint(&asking, driver_forced_due(d));
			driver_checkpoint(d, driver_forced_due(d));
		}
	}
	assert_true(d->raises > 3 && d->lowers > 0);
	assert_true(asking.looks >= 4000 && asking.looks < 12000);
}

TEST(names_of_everything)
{
	int			instructions = 0;

	assert_string_equal(walsizer_action_name(WALSIZER_RAISE), "raise");
	assert_string_equal(walsizer_action_name((WalsizerAction) 77), "unknown");
	for (int i = 0; i <= WALSIZER_BECAUSE_REVERT; i++)
		assert_string_not_equal(walsizer_reason_text((WalsizerReason) i), "unknown");
	assert_string_equal(walsizer_reason_text((WalsizerReason) -1), "unknown");
	assert_string_equal(walsizer_limit_name(WALSIZER_LIMIT_RECOVERY), "recovery");
	while (walsizer_instructions[instructions].place != NULL)
		instructions++;
	assert_int_equal(instructions, 10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(senseless_samples_change_nothing),
		cmocka_unit_test(the_ends_of_the_settings_ranges_work),
		cmocka_unit_test(the_log_position_goes_back),
		cmocka_unit_test(the_clock_steps),
		cmocka_unit_test(the_servers_settings_change),
		cmocka_unit_test(the_largest_values),
		cmocka_unit_test(a_size_below_all_candidates),
		cmocka_unit_test(timed_checkpoints_without_end),
		cmocka_unit_test(missed_ticks),
		cmocka_unit_test(looking_when_it_is_due_makes_no_difference),
		cmocka_unit_test(names_of_everything),
	};

	return cmocka_run_group_tests_name("policy, any input", tests, NULL, NULL);
}
