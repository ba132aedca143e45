/*-------------------------------------------------------------------------
 *
 * test_boost.c
 *	  Planned loads by themselves: beginning, end, and the sizes they ask for.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"
#include "policy/internal.h"

static void
observe(Driver *d, int64_t ms, int64_t boost_mb)
{
	d->sample.now += ms;
	d->sample.boost_mb = boost_mb;
	walsizer_observe_boost(driver_seen(d));
}

TEST(the_value_before_it_is_to_come_back)
{
	Driver	   *d = driver_new();
	const WalsizerBoost *boost = &d->state.boost;

	observe(d, 0, 0);
	assert_int_equal(boost->return_mb, 0);
	assert_int_equal(boost->planned_until, 0);

	observe(d, SECOND, 4096);
	assert_int_equal(boost->size_mb, 4096);
	assert_int_equal(boost->return_mb, 1024);
	assert_int_equal(boost->planned_until, d->sample.now + 300 * SECOND);

	/* it is in effect: the value before is still the same */
	d->sample.settings.max_wal_size_mb = 4096;
	observe(d, 10 * SECOND, 4096);
	assert_int_equal(boost->return_mb, 1024);
	assert_int_equal(boost->planned_until, d->sample.now + 300 * SECOND);
}

/* One timeout after it no window has its WAL; another is left for the lowering. */
TEST(it_ends_after_two_timeouts)
{
	Driver	   *d = driver_new();
	const WalsizerBoost *boost = &d->state.boost;
	int64_t		until;

	observe(d, 0, 4096);
	d->sample.settings.max_wal_size_mb = 4096;
	observe(d, SECOND, 4096);
	observe(d, SECOND, 0);
	until = d->sample.now + 300 * SECOND;
	assert_int_equal(boost->size_mb, 0);
	assert_int_equal(boost->planned_until, until);
	observe(d, 300 * SECOND, 0);
	assert_int_equal(boost->planned_until, until);
	observe(d, 300 * SECOND, 0);
	assert_int_equal(d->sample.now, until + 300 * SECOND);
	assert_int_equal(boost->return_mb, 1024);
	observe(d, 1, 0);
	assert_int_equal(boost->return_mb, 0);
}

/* Nothing is left to do once the value before is back, or less. */
TEST(it_ends_when_the_value_before_is_back)
{
	Driver	   *d = driver_new();

	observe(d, 0, 4096);
	d->sample.settings.max_wal_size_mb = 1025;
	observe(d, SECOND, 0);
	assert_int_equal(d->state.boost.return_mb, 1024);
	d->sample.settings.max_wal_size_mb = 1024;
	observe(d, SECOND, 0);
	assert_int_equal(d->state.boost.return_mb, 0);
	observe(d, SECOND, 4096);
	d->sample.settings.max_wal_size_mb = 1000;	/* by hand */
	observe(d, SECOND, 0);
	assert_int_equal(d->state.boost.return_mb, 0);

	/* nor if it ends in the moment in which it begins */
	observe(d, SECOND, 4096);
	assert_int_equal(d->state.boost.return_mb, 1000);
	observe(d, 0, 0);
	assert_int_equal(d->state.boost.return_mb, 0);
}

/* After a restart, or with another timeout, it ends a timeout from now. */
TEST(its_end_follows_the_timeout)
{
	Driver	   *d = driver_new();
	const WalsizerBoost *boost = &d->state.boost;

	d->state.boost.return_mb = 1024;
	d->sample.settings.max_wal_size_mb = 4096;
	driver_observe(d, 0, 0);
	observe(d, 0, 0);
	assert_int_equal(boost->planned_until, d->sample.now + 300 * SECOND);
	driver_observe(d, SECOND, MB);
	assert_int_equal(boost->planned_until, d->sample.now + 299 * SECOND);
	d->sample.settings.timeout_ms = 30 * SECOND;
	driver_observe(d, SECOND, MB);
	observe(d, 0, 0);
	assert_int_equal(boost->planned_until, d->sample.now + 30 * SECOND);
	driver_observe(d, SECOND, MB);
	observe(d, 0, 0);
	assert_int_equal(boost->planned_until, d->sample.now + 29 * SECOND);
	d->sample.settings.timeout_ms = 900 * SECOND;
	driver_observe(d, SECOND, MB);
	observe(d, 0, 0);
	assert_int_equal(boost->planned_until, d->sample.now + 900 * SECOND);

	/* what was over stays so */
	driver_observe(d, 900 * SECOND, MB);
	observe(d, 0, 0);
	assert_int_equal(boost->planned_until, d->sample.now);
	d->sample.settings.timeout_ms = 300 * SECOND;
	driver_observe(d, 0, 0);
	assert_int_equal(boost->planned_until, d->sample.now);
}

/* A mark separates its WAL from what follows.  One a sample would fill the ring. */
TEST(one_mark_is_made_at_its_end)
{
	Driver	   *d = driver_new();
	const WalsizerWindow *window = &d->state.window;

	d->state.window.lsn = 77;
	observe(d, 0, 4096);
	d->sample.settings.max_wal_size_mb = 4096;
	observe(d, SECOND, 4096);
	assert_int_equal(window->number, 0);
	observe(d, SECOND, 0);
	assert_int_equal(window->number, 1);
	assert_int_equal(window->marks[0].ms, d->sample.now);
	assert_int_equal(window->marks[0].lsn, 77);
	assert_int_equal(window->marks[0].peak.hour, d->sample.hour);
	observe(d, SECOND, 0);
	assert_int_equal(window->number, 1);
	assert_int_equal(d->state.boost.return_mb, 1024);
}

/*
 * A planned load of 200MB a second, with samples this far apart, that ends at
 * any phase of the window's steps, of 30 s here.  Then the server is idle.
 */
static void
run_planned(Driver *d, int64_t ms, int64_t samples)
{
	d->sample.boost_mb = 16384;
	d->sample.act_now = true;
	driver_step(d, ms, 0);
	d->sample.act_now = false;
	for (int64_t i = 0; i < samples; i++)
	{
		driver_step(d, ms, 200 * MB * ms / SECOND);
		if (i % 20 == 0)
			driver_checkpoint(d, false);
	}
	driver_checkpoint(d, false);
	/* it was written, and then walsizer_boost_end() was called */
	d->sample.boost_mb = 0;
	driver_step(d, ms, 200 * MB * ms / SECOND);
	driver_checkpoint(d, false);
}

/* Not even by the part of it that was written just before its end. */
TEST(nothing_of_it_is_learned)
{
	for (int64_t seconds = 1; seconds <= 60; seconds += 59)
	{
		for (int64_t phase = 0; phase < 30; phase++)
		{
			Driver	   *d = driver_new();

			d->sample.settings.timeout_ms = 3600 * SECOND;
			d->config.max_mb = 16384;
			driver_run(d, 7200, 0);
			run_planned(d, seconds * SECOND, 90 + phase);
			assert_int_equal(d->sample.settings.max_wal_size_mb, 16384);
			for (int64_t i = 0; i < 7500; i += seconds)
				driver_step(d, seconds * SECOND, 0);
			assert_int_equal(d->sample.settings.max_wal_size_mb, 1024);
			walsizer_remember_window(&d->state);
			assert_int_equal(walsizer_largest_peak(&d->state, d->sample.hour, 3).demand, 0);
		}
	}
}

/* Nor if the server is restarted while it lasts, or just after it. */
TEST(nor_after_a_restart)
{
	for (int lasts = 0; lasts <= 1; lasts++)
	{
		Driver	   *d = driver_new();

		d->state.owner.original_mb = 1024;
		d->state.owner.own_mb = 8192;
		driver_write(d, 8192);
		d->state.boost.return_mb = 1024;
		d->sample.boost_mb = lasts ? 8192 : 0;
		d->sample.checkpoint_age = 100 * SECOND;
		driver_step(d, 0, 900 * MB);
		assert_int_equal(d->last.figures.demand, 0);
		driver_step(d, SECOND, 0);
		d->sample.boost_mb = 0;
		for (int i = 0; i < 620; i++)
			driver_step(d, SECOND, 0);
		walsizer_remember_window(&d->state);
		assert_int_equal(walsizer_largest_peak(&d->state, d->sample.hour, 3).demand, 0);
		assert_int_equal(d->state.cycle.demand, 0);
	}
}

TEST(impossible_sizes_are_cut_off)
{
	Driver	   *d = driver_new();

	observe(d, 0, -5);
	assert_int_equal(d->state.boost.size_mb, 0);
	assert_int_equal(d->state.boost.return_mb, 0);
	observe(d, 0, INT64_MAX);
	assert_int_equal(d->state.boost.size_mb, INT32_MAX / 16 * 16);
	d = driver_new();
	observe(d, 0, 1);
	assert_int_equal(d->state.boost.size_mb, 32);
	assert_int_equal(d->state.boost.return_mb, 1024);
	assert_int_equal(d->state.boost.planned_until, d->sample.now + 300 * SECOND);
	observe(d, SECOND, 1);
	assert_int_equal(d->state.boost.planned_until, d->sample.now + 300 * SECOND);
	observe(d, SECOND, 0);
	assert_int_equal(d->state.boost.planned_until, d->sample.now + 300 * SECOND);
}

/* 4096MB for a load that is over, and 1200MB before it, which was ours, too. */
static Driver *
over(WalsizerFigures *figures)
{
	Driver	   *d = driver_new();

	d->state.owner.original_mb = 1024;
	d->state.owner.own_mb = 4096;
	d->state.boost.return_mb = 1200;
	d->state.boost.planned_until = d->sample.now;
	*figures = (WalsizerFigures) {.in_effect_mb = 4096, .wanted_mb = 2000, .limit_mb = 16384};
	return d;
}

static int64_t
lowered(Driver *d, const WalsizerFigures *figures)
{
	int64_t		size;
	int64_t		target;

	d->sample.settings.max_wal_size_mb = figures->in_effect_mb;
	size = walsizer_boost_over_rule(&d->config, driver_seen(d), figures);
	target = walsizer_lowered_size(&d->state, figures, size);
	if (size == 0)
		return 0;
	assert_int_not_equal(target, 0);	/* the rule knows whether there is room */
	return target;
}

TEST(after_it_the_value_before_comes_back)
{
	WalsizerFigures figures;
	Driver	   *d = over(&figures);
	int64_t		fits = walsizer_trigger_point(1200, &d->sample.settings) - SEGMENT;
	int64_t		half;

	assert_int_equal(walsizer_size_for(fits, &d->sample.settings), 1200);
	figures.demand = fits;		/* headroom and older peaks do not matter */
	assert_int_equal(lowered(d, &figures), 1200);
	figures.demand++;			/* or what demand needs by now */
	assert_int_equal(lowered(d, &figures), 2000);
	figures.wanted_mb = 1100;	/* less than before it */
	assert_int_equal(lowered(d, &figures), 1200);
	d->config.min_mb = 3000;	/* or what the administrator wants at least */
	assert_int_equal(lowered(d, &figures), 3000);
	half = walsizer_trigger_point(3000, &d->sample.settings) / 2;
	figures.used = half;
	assert_int_equal(lowered(d, &figures), 3000);
	figures.used++;				/* it would force a checkpoint */
	assert_int_equal(lowered(d, &figures), 0);

	/* a limit lowers further, and then there must be room for that */
	figures.limit_mb = 2048;
	figures.used = walsizer_trigger_point(2048, &d->sample.settings) / 2;
	assert_int_equal(lowered(d, &figures), 2048);
	figures.used++;
	assert_int_equal(lowered(d, &figures), 0);
	figures.used = 0;
	figures.limit_mb = 16;		/* but not below the original value */
	assert_int_equal(lowered(d, &figures), 1024);

	d = over(&figures);
	d->state.boost.planned_until = 1;
	assert_int_equal(lowered(d, &figures), 1200);
	figures.demand = fits + 1;
	figures.wanted_mb = 5000;	/* more than there is */
	assert_int_equal(lowered(d, &figures), 0);

	d = over(&figures);
	d->state.boost.size_mb = 1; /* it is not over */
	assert_int_equal(lowered(d, &figures), 0);
	d = over(&figures);
	d->state.boost.planned_until++; /* a window has its WAL */
	assert_int_equal(lowered(d, &figures), 0);
	d = over(&figures);
	d->state.boost.return_mb = 0;	/* there was none */
	assert_int_equal(lowered(d, &figures), 0);
	d = over(&figures);
	d->state.owner.own_mb = 4000;	/* an administrator changed it */
	assert_int_equal(lowered(d, &figures), 0);
	d = over(&figures);
	figures.demand = fits + 1;
	figures.wanted_mb = 4096;	/* all of it is needed */
	assert_int_equal(lowered(d, &figures), 0);
	figures.wanted_mb--;
	assert_int_equal(lowered(d, &figures), 4095);
}

static void
assert_held(const Driver *d, WalsizerLimit limit)
{
	assert_int_equal(d->last.action, WALSIZER_NONE);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_BOOST);
	assert_true(d->last.limited);
	assert_int_equal(d->last.limited_by, limit);
	assert_int_equal(d->last.wanted_mb, 4096);
}

/* One that a limit holds back says so, and follows walsizer.max at once. */
TEST(a_planned_load_follows_a_raised_max)
{
	Driver	   *d = driver_quiet();

	d->apply = true;
	d->sample.disk_read = true;
	d->sample.disk_free = 100000 * MB;
	d->config.max_mb = 1024;
	d->sample.boost_mb = 4100;
	driver_step(d, SECOND, 0);
	assert_held(d, WALSIZER_LIMIT_MAX);
	d->config.max_mb = 2000;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_RAISE);
	assert_int_equal(d->last.target_mb, 2000);
	assert_int_equal(d->last.limited_by, WALSIZER_LIMIT_MAX);
	driver_step(d, SECOND, 0);
	assert_held(d, WALSIZER_LIMIT_MAX);

	/* up to the disk limit, and further once that allows a raise worth a change */
	d->config.max_mb = 8000;
	d->sample.disk_free = 6000 * MB;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_RAISE);
	assert_int_equal(d->last.target_mb, 2992);
	assert_int_equal(d->last.limited_by, WALSIZER_LIMIT_DISK);
	driver_step(d, SECOND, 0);
	assert_held(d, WALSIZER_LIMIT_DISK);
	d->sample.disk_free = 6400 * MB;
	driver_step(d, 300 * SECOND, 0);
	assert_held(d, WALSIZER_LIMIT_DISK);
	d->sample.disk_free = 100000 * MB;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_RAISE);
	assert_int_equal(d->last.target_mb, 4096);
	assert_int_equal(d->last.limited_by, WALSIZER_UNLIMITED);
	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_SUFFICIENT);
	assert_false(d->last.limited);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_value_before_it_is_to_come_back),
		cmocka_unit_test(it_ends_after_two_timeouts),
		cmocka_unit_test(it_ends_when_the_value_before_is_back),
		cmocka_unit_test(its_end_follows_the_timeout),
		cmocka_unit_test(one_mark_is_made_at_its_end),
		cmocka_unit_test(nothing_of_it_is_learned),
		cmocka_unit_test(nor_after_a_restart),
		cmocka_unit_test(impossible_sizes_are_cut_off),
		cmocka_unit_test(a_planned_load_follows_a_raised_max),
		cmocka_unit_test(after_it_the_value_before_comes_back),
	};

	return cmocka_run_group_tests_name("policy, planned loads", tests, NULL, NULL);
}
