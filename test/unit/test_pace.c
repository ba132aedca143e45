/*-------------------------------------------------------------------------
 *
 * test_pace.c
 *	  Full-page images that make timed checkpoints run too fast.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"
#include "policy/internal.h"

/*
 * An hour of intervals that write 400MB in their first 30 s and 400MB evenly in
 * the rest, or all of it evenly.
 */
static void
run_intervals(Driver *d, int hours, bool images)
{
	for (int i = 0; i < hours * 12; i++)
	{
		driver_run(d, 30, images ? 400 * MB / 30 : 800 * MB / 300);
		driver_run(d, 270, images ? 400 * MB / 270 : 800 * MB / 300);
	}
}

TEST(page_images_enlarge_our_raise)
{
	Driver	   *d = driver_new();
	int64_t		even;
	int64_t		images;

	run_intervals(d, 1, false);
	even = d->sample.settings.max_wal_size_mb;
	assert_int_equal(d->state.owner.original_mb, 1024);

	d = driver_new();
	run_intervals(d, 1, true);
	images = d->sample.settings.max_wal_size_mb;
	assert_true(images > even);
	assert_int_equal(images, walsizer_size_for(800 * MB, &d->sample.settings) * 3 / 2 / 16 * 16);

	/* and it stays, with them and without */
	run_intervals(d, 2, true);
	run_intervals(d, 5, false);
	assert_int_equal(d->sample.settings.max_wal_size_mb, images);
}

/* Nor is what pace took by day lowered by night, with little headroom as well. */
TEST(nights_without_page_images_lower_nothing)
{
	Driver	   *d = driver_new();

	d->config.headroom = 1.0;
	for (int day = 0; day < 3; day++)
	{
		run_intervals(d, 5, true);
		run_intervals(d, 5, false);
	}
	assert_int_equal(d->lowers, 0);
}

TEST(page_images_alone_change_nothing)
{
	Driver	   *d = driver_new();

	d->sample.settings.max_wal_size_mb = 2048;
	run_intervals(d, 3, true);
	assert_true(d->last.figures.pace > d->last.figures.trigger_point);
	assert_int_equal(d->raises, 0);
}

/* Two timeouts without a load, in which the server skips its checkpoints. */
static void
idle(Driver *d)
{
	for (int i = 0; i < 602; i++)
		driver_step(d, SECOND, 0);
}

/* No rule raises for what is over. */
TEST(an_idle_server_has_no_pace)
{
	Driver	   *d = driver_new();
	int64_t		images;

	run_intervals(d, 1, true);
	images = d->sample.settings.max_wal_size_mb;
	d->config.max_mb = images * 2 / 3;
	idle(d);
	assert_true(d->sample.settings.max_wal_size_mb < images);
	assert_int_equal(d->last.figures.pace, 0);
	d->config.max_mb = walsizer_default.max_mb;
	d->raises = 0;
	idle(d);
	assert_int_equal(d->raises, 0);
}

/* Nor does the pace of a planned load count after it. */
TEST(a_planned_load_has_no_pace)
{
	Driver	   *d = driver_new();
	int64_t		before;

	run_intervals(d, 1, false);
	before = d->sample.settings.max_wal_size_mb;
	assert_true(before > 1024);
	d->sample.boost_mb = 16384;
	d->sample.act_now = true;
	driver_step(d, SECOND, 0);
	d->sample.act_now = false;
	assert_int_equal(d->sample.settings.max_wal_size_mb, 16384);
	for (int i = 0; i < 5; i++)
	{
		driver_run(d, 30, 100 * MB);
		driver_run(d, 270, MB);
	}
	d->sample.boost_mb = 0;
	d->raises = 0;
	idle(d);
	assert_int_equal(d->raises, 0);
	assert_int_equal(d->sample.settings.max_wal_size_mb, before);
}

TEST(smooth_checkpoints_are_nothing_to_warn_of)
{
	Driver	   *d = driver_new();

	run_intervals(d, 1, false);
	d->config.max_mb = d->sample.settings.max_wal_size_mb;
	for (int i = 0; i < 36; i++)
	{
		run_intervals(d, 1, true);
		d->sample.act_now = true;
		driver_step(d, SECOND, 0);
		assert_int_equal(d->last.reason, WALSIZER_BECAUSE_SUFFICIENT);
		d->sample.act_now = false;
	}
	assert_true(d->last.figures.pace > d->last.figures.trigger_point);
	assert_true(d->last.figures.wanted_mb > d->config.max_mb);
}

/* Our own raise to 1600MB (832MB force), paced by WAL up to 900MB. */
static Driver *
hurried(WalsizerFigures *figures)
{
	Driver	   *d = driver_new();

	d->state.owner.original_mb = 1024;
	d->state.owner.own_mb = 1600;
	*figures = (WalsizerFigures) {
		.in_effect_mb = 1600, .wanted_mb = 3000, .paced_mb = 1696, .limit_mb = 4000,
		.trigger_point = 832 * MB, .pace = 832 * MB + 1,
	};
	return d;
}

TEST(pace_raises_what_is_ours_and_worth_it)
{
	WalsizerFigures figures;
	Driver	   *d = hurried(&figures);

	assert_int_equal(walsizer_pace_rule(&d->state, &figures), 1696);
	figures.pace--;				/* time paces them already */
	assert_int_equal(walsizer_pace_rule(&d->state, &figures), 0);
	figures.pace--;
	assert_int_equal(walsizer_pace_rule(&d->state, &figures), 0);

	d = hurried(&figures);
	figures.paced_mb--;			/* less than 6 % more */
	assert_int_equal(walsizer_pace_rule(&d->state, &figures), 0);

	d = hurried(&figures);
	figures.limit_mb = 1600;
	figures.limit_kind = WALSIZER_LIMIT_MAX;
	assert_int_equal(walsizer_pace_rule(&d->state, &figures), 0);

	d = hurried(&figures);
	d->state.owner.own_mb = 1000;	/* an administrator's 1600MB */
	assert_int_equal(walsizer_pace_rule(&d->state, &figures), 0);
}

static int64_t
wanted(int64_t demand, int64_t pace)
{
	Driver	   *d = driver_new();
	WalsizerFigures figures = {.in_effect_mb = 1024, .demand = demand, .pace = pace};

	walsizer_fill_figures(&d->config, &d->state, &d->sample, &figures);
	return figures.wanted_mb;
}

/* Pace and a tenth, but at most one and a half times what demand needs. */
TEST(pace_asks_for_a_limited_size)
{
	const WalsizerSettings *settings = &driver_new()->sample.settings;

	assert_int_equal(wanted(1000 * MB, 0), walsizer_size_for(1200 * MB, settings));
	assert_int_equal(wanted(1000 * MB, 1000 * MB), walsizer_size_for(1200 * MB, settings));
	assert_int_equal(wanted(1000 * MB, 1200 * MB), walsizer_size_for(1320 * MB, settings));
	/* 121 segments for 1000MB, and half of them again */
	assert_int_equal(walsizer_size_for(1000 * MB, settings), 122 * 16);
	assert_int_equal(wanted(1000 * MB, 9000 * MB), 183 * 16);
	assert_int_equal(wanted(INT64_C(1) << 60, INT64_C(1) << 60), INT32_MAX / 16 * 16);
}

/* That of the load whose pace it is, not the largest known. */
TEST(pace_counts_for_the_load_of_now)
{
	Driver	   *d = driver_new();
	const WalsizerSettings *settings = &d->sample.settings;
	WalsizerFigures figures = {.in_effect_mb = 1024, .demand = 800 * MB, .pace = 9000 * MB};

	walsizer_remember(&d->state, d->sample.hour - 1, 900 * MB, 1);
	walsizer_fill_figures(&d->config, &d->state, &d->sample, &figures);
	assert_int_equal(figures.wanted_mb, walsizer_size_for(800 * MB, settings) * 3 / 2 / 16 * 16);
	assert_true(figures.wanted_mb > walsizer_size_for(1080 * MB, settings));
	figures.demand = 0;
	walsizer_fill_figures(&d->config, &d->state, &d->sample, &figures);
	assert_int_equal(figures.wanted_mb, walsizer_size_for(1080 * MB, settings));
}

/* Demand is the largest known: now, and remembered. */
TEST(all_known_demand_is_wanted)
{
	Driver	   *d = driver_new();
	WalsizerFigures figures = {.in_effect_mb = 1024, .demand = 1000 * MB};

	walsizer_remember(&d->state, d->sample.hour - 1, 1400 * MB, 1);
	walsizer_fill_figures(&d->config, &d->state, &d->sample, &figures);
	assert_int_equal(figures.learned, 1400 * MB);
	assert_int_equal(figures.wanted_mb,
					 walsizer_size_with_headroom(&d->config, &d->sample.settings, 1400 * MB));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(page_images_enlarge_our_raise),
		cmocka_unit_test(nights_without_page_images_lower_nothing),
		cmocka_unit_test(page_images_alone_change_nothing),
		cmocka_unit_test(an_idle_server_has_no_pace),
		cmocka_unit_test(a_planned_load_has_no_pace),
		cmocka_unit_test(smooth_checkpoints_are_nothing_to_warn_of),
		cmocka_unit_test(pace_raises_what_is_ours_and_worth_it),
		cmocka_unit_test(pace_asks_for_a_limited_size),
		cmocka_unit_test(pace_counts_for_the_load_of_now),
		cmocka_unit_test(all_known_demand_is_wanted),
	};

	return cmocka_run_group_tests_name("policy, pace", tests, NULL, NULL);
}
