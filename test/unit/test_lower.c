/*-------------------------------------------------------------------------
 *
 * test_lower.c
 *	  When our own raise is lowered, and when it stays.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"
#include "policy/internal.h"

TEST(lowers_what_it_raised_after_the_lookback)
{
	Driver	   *d = driver_new();
	int64_t		raised;

	d->config.lookback_hours = 3;
	driver_run(d, 1800, 8 * MB);
	raised = d->sample.settings.max_wal_size_mb;
	driver_run(d, 2 * 3600, MB);
	assert_int_equal(d->sample.settings.max_wal_size_mb, raised);
	driver_run(d, 3 * 3600, MB);
	assert_int_equal(d->lowers, 1);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 1024);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_FORCED], 0);
	driver_run(d, 3 * 3600, MB);
	assert_int_equal(d->lowers, 1);
}

TEST(lowers_to_min)
{
	Driver	   *d = driver_new();

	d->config.lookback_hours = 1;
	d->config.min_mb = 2000;
	driver_run(d, 1800, 8 * MB);
	driver_run(d, 5 * 3600, MB);
	assert_int_equal(d->lowers, 1);
	assert_in_range(d->sample.settings.max_wal_size_mb, 2000, 2016);
}

TEST(lowering_waits_for_little_wal)
{
	Driver	   *d = driver_new();

	d->config.lookback_hours = 1;
	driver_run(d, 1800, 8 * MB);

	/* no checkpoint for hours, as if they were skipped: WAL stays used */
	for (int i = 0; i < 1000; i++)
		driver_step(d, SECOND, MB);
	for (int i = 0; i < 5 * 3600; i++)
		driver_step(d, SECOND, 0);
	assert_int_equal(d->lowers, 0);
	driver_checkpoint(d, false);
	driver_run(d, 600, 0);
	assert_int_equal(d->lowers, 1);
}

TEST(a_raise_is_kept_for_an_hour)
{
	Driver	   *d = driver_new();
	int64_t		raised;

	/* a burst of a second, once taken for a lasting load */
	d->sample.settings.timeout_ms = 30 * SECOND;
	driver_run(d, 10, 0);
	driver_run(d, 8, 60 * MB);
	raised = d->sample.settings.max_wal_size_mb;
	assert_true(raised >= 2000);
	driver_run(d, 3500, MB / 10);
	assert_int_equal(d->sample.settings.max_wal_size_mb, raised);
	driver_run(d, 200, MB / 10);
	assert_int_equal(d->lowers, 1);
	assert_in_range(d->sample.settings.max_wal_size_mb, 1024, 1200);
}

TEST(forgetting_lets_a_raise_go_after_two_windows)
{
	Driver	   *d = driver_new();

	driver_run(d, 1000, 8 * MB);
	walsizer_forget(&d->state);
	driver_run(d, 590, MB);
	assert_int_equal(d->lowers, 0);
	driver_run(d, 320, MB);
	assert_int_equal(d->lowers, 1);
}

/* A raise that is "quiet" seconds old outlives a clock that is set and set back. */
static void
clock_takes_nothing_at_once(int quiet, int hours)
{
	Driver	   *d = driver_new();
	int64_t		raised;

	driver_run(d, 1200, 8 * MB);
	raised = d->sample.settings.max_wal_size_mb;
	driver_run(d, quiet, MB);
	d->clock_set = hours;
	driver_run(d, 3000, MB);
	assert_int_equal(d->sample.settings.max_wal_size_mb, raised);
	d->clock_set = 0;
	driver_run(d, 4000, MB);
	assert_int_equal(d->sample.settings.max_wal_size_mb, raised);
}

TEST(a_clock_set_forward_takes_nothing_at_once)
{
	clock_takes_nothing_at_once(4000, 40 * 24);
}

TEST(a_clock_set_back_takes_nothing_at_once)
{
	clock_takes_nothing_at_once(9600, -40 * 24);
}

/*
 * Our own raise from 1GB to 4000MB; the largest demand needs 3200MB, 80 % of it.
 * It is as old as it must be: two timeouts.
 */
static Driver *
lowerable(WalsizerFigures *figures)
{
	Driver	   *d = driver_new();

	d->state.owner.original_mb = 1024;
	d->state.owner.own_mb = 4000;
	d->state.pacing.changed_at = d->sample.now - 600 * SECOND;
	d->state.pacing.kept_since = d->sample.now - 3600 * SECOND;
	d->state.pacing.keep_ms = 3600 * SECOND;
	*figures = (WalsizerFigures) {.in_effect_mb = 4000, .wanted_mb = 3200, .limit_mb = 16384};
	return d;
}

static int64_t
lowered(Driver *d, const WalsizerFigures *figures, bool cycle)
{
	int64_t		size;

	d->sample.settings.max_wal_size_mb = figures->in_effect_mb;
	size = walsizer_lower_rule(&d->config, driver_seen(d), figures, cycle);
	return size == 0 ? 0 : walsizer_lowered_size(driver_seen(d), figures, size);
}

TEST(each_condition_of_a_lowering_counts)
{
	WalsizerFigures figures;
	Driver	   *d = lowerable(&figures);

	assert_int_equal(lowered(d, &figures, true), 3200);

	d = lowerable(&figures);
	d->state.pacing.changed_at++;	/* not two timeouts since the last change */
	assert_int_equal(lowered(d, &figures, true), 0);

	d = lowerable(&figures);
	d->state.pacing.kept_since++;	/* not an hour since the raise */
	assert_int_equal(lowered(d, &figures, true), 0);

	d->state.pacing.kept_since--;
	d->state.pacing.keep_ms++;	/* not two hours, kept for two */
	assert_int_equal(lowered(d, &figures, true), 0);
	d->config.lookback_hours = 1;	/* so long are loads remembered */
	assert_int_equal(lowered(d, &figures, true), 3200);

	d = lowerable(&figures);
	figures.wanted_mb++;		/* more than 80 % */
	assert_int_equal(lowered(d, &figures, true), 0);

	d = lowerable(&figures);
	d->state.owner.own_mb = 3000;	/* an administrator's 4000MB */
	assert_int_equal(lowered(d, &figures, true), 0);
}

/* The end of a cycle makes it due; room may come later, and conditions may end. */
TEST(a_lowering_that_is_due_waits_for_room)
{
	WalsizerFigures figures;
	Driver	   *d = lowerable(&figures);
	int64_t		half = walsizer_trigger_point(3200, &d->sample.settings) / 2;

	assert_int_equal(lowered(d, &figures, false), 0);
	figures.used = half + 1;
	assert_int_equal(lowered(d, &figures, true), 0);
	assert_int_equal(lowered(d, &figures, false), 0);
	figures.used = half;
	assert_int_equal(lowered(d, &figures, false), 3200);

	/* more demand in between: it is not due any more */
	figures.wanted_mb = 3500;
	assert_int_equal(lowered(d, &figures, false), 0);
	figures.wanted_mb = 3200;
	assert_int_equal(lowered(d, &figures, false), 0);
	assert_int_equal(lowered(d, &figures, true), 3200);
}

/* Nothing is lowered below what was found, walsizer.min, or a planned load. */
TEST(a_lowering_has_a_floor)
{
	WalsizerFigures figures;
	Driver	   *d = lowerable(&figures);

	figures.wanted_mb = 100;
	assert_int_equal(lowered(d, &figures, true), 1024);
	d->config.min_mb = 2000;
	assert_int_equal(lowered(d, &figures, true), 2000);
	d->state.boost.size_mb = 2500;
	assert_int_equal(lowered(d, &figures, true), 2500);
}

/* A limit lowers further; the room must suffice for what it leaves. */
TEST(a_lowering_stays_within_the_limits)
{
	WalsizerFigures figures;
	Driver	   *d = lowerable(&figures);

	figures.limit_mb = 2048;
	figures.used = walsizer_trigger_point(2048, &d->sample.settings) / 2;
	assert_int_equal(lowered(d, &figures, true), 2048);
	figures.used++;
	assert_int_equal(lowered(d, &figures, true), 0);
	figures.used = 0;
	figures.limit_mb = 16;
	assert_int_equal(lowered(d, &figures, true), 1024);
}

/* It names the limit, and what it would have been without. */
TEST(a_lowering_to_a_limit_names_it)
{
	for (int over = 0; over <= 1; over++)
		for (int limited = 0; limited <= 1; limited++)
		{
			Driver	   *d = driver_quiet_raise(4000);

			d->config.min_mb = 3000;
			if (limited)
				d->config.max_mb = 2000;
			d->state.pacing.lower_due = true;
			d->state.boost.return_mb = over ? 1200 : 0;
			d->state.boost.planned_until = d->sample.now;
			assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_LOWER);
			assert_int_equal(d->last.reason,
							 over ? WALSIZER_BECAUSE_BOOST_OVER : WALSIZER_BECAUSE_DEMAND_FELL);
			assert_int_equal(d->last.limited_by, limited ? WALSIZER_LIMIT_MAX : WALSIZER_UNLIMITED);
			assert_int_equal(d->last.wanted_mb, 3000);
			assert_int_equal(d->last.target_mb, limited ? 2000 : 3000);
			assert_false(d->last.limited);
		}
}

/* Where one segment forces a checkpoint, its end may be used: what is expected counts. */
TEST(an_idle_server_is_lowered_to_one_segment)
{
	WalsizerFigures figures;
	Driver	   *d = lowerable(&figures);

	d->state.owner.original_mb = 48;
	figures.wanted_mb = 48;
	figures.used = SEGMENT - 1;
	figures.projected = SEGMENT;
	assert_int_equal(lowered(d, &figures, true), 0);
	figures.projected--;
	assert_int_equal(lowered(d, &figures, true), 48);
	figures.wanted_mb = d->state.owner.original_mb = 64;	/* two segments */
	figures.used = SEGMENT + 1;
	assert_int_equal(lowered(d, &figures, true), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lowers_what_it_raised_after_the_lookback),
		cmocka_unit_test(lowers_to_min),
		cmocka_unit_test(lowering_waits_for_little_wal),
		cmocka_unit_test(a_raise_is_kept_for_an_hour),
		cmocka_unit_test(forgetting_lets_a_raise_go_after_two_windows),
		cmocka_unit_test(a_clock_set_forward_takes_nothing_at_once),
		cmocka_unit_test(a_clock_set_back_takes_nothing_at_once),
		cmocka_unit_test(each_condition_of_a_lowering_counts),
		cmocka_unit_test(a_lowering_that_is_due_waits_for_room),
		cmocka_unit_test(a_lowering_has_a_floor),
		cmocka_unit_test(a_lowering_stays_within_the_limits),
		cmocka_unit_test(a_lowering_to_a_limit_names_it),
		cmocka_unit_test(an_idle_server_is_lowered_to_one_segment),
	};

	return cmocka_run_group_tests_name("policy, lowering", tests, NULL, NULL);
}
