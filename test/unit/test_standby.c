/*-------------------------------------------------------------------------
 *
 * test_standby.c
 *	  A standby is as large as its primary must be.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"
#include "policy/internal.h"

TEST(a_standby_ignores_its_own_restartpoints)
{
	Driver	   *d = driver_new();
	int64_t		forced;

	d->sample.standby = true;
	driver_run(d, 1800, 8 * MB);
	assert_int_equal(d->raises, 0);
	forced = d->state.checkpoints.total[WALSIZER_CAUSE_FORCED];
	d->sample.standby = false;	/* promoted */
	driver_run(d, 900, 8 * MB);
	assert_true(d->raises > 0);
	assert_true(d->state.checkpoints.total[WALSIZER_CAUSE_FORCED] <= forced + 1);
}

/* An administrator's change and a full disk are the same after a promotion. */
TEST(a_promotion_does_not_end_a_wait)
{
	Driver	   *d = driver_new();
	int64_t		until;

	d->sample.standby = true;
	driver_step(d, SECOND, 0);
	until = d->sample.now + 60 * SECOND;
	d->state.pacing.leave_alone_until = until;
	d->state.pacing.raise_not_before = until + 1;
	d->state.pacing.tried_mb = 7;
	d->sample.standby = false;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_RECENTLY_CHANGED);
	assert_int_equal(d->state.pacing.leave_alone_until, until);
	assert_true(d->state.pacing.raise_not_before > until);

	/* but time that runs backwards would never reach its end */
	d->sample.now -= SECOND;
	driver_step(d, 0, 0);
	assert_int_equal(d->state.pacing.leave_alone_until, 0);
	assert_int_equal(d->state.pacing.raise_not_before, 0);
	assert_int_equal(d->state.pacing.tried_mb, 0);
}

TEST(a_standby_follows_its_primary)
{
	Driver	   *d = driver_new();

	d->sample.standby = true;
	d->sample.primary_time = 1700000000;
	d->sample.primary_redo = d->sample.write_lsn;
	for (int i = 0; i < 1000; i++)
	{
		if (i % 300 == 299)
		{
			d->sample.primary_time += 300;
			d->sample.primary_redo += 1200 * MB;
		}
		driver_step(d, SECOND, 50 * MB);	/* catching up, much faster */
		if (i % 20 == 0)
			driver_checkpoint(d, true);
	}
	assert_int_equal(d->raises, 1);
	assert_int_equal(d->sample.settings.max_wal_size_mb,
					 walsizer_size_for(1440 * MB, &d->sample.settings));
}

/* A primary's 300 s with these checkpoints of 240MB each, as its standby sees them. */
static void
primary_timeout(Driver *d, int checkpoints, int64_t bytes)
{
	for (int i = 0; i < checkpoints; i++)
	{
		d->sample.primary_time += 300 / checkpoints;
		d->sample.primary_redo += (uint64_t) bytes;
		driver_step(d, SECOND, 0);
		driver_step(d, (300 / checkpoints - 1) * SECOND, 0);
	}
}

/*
 * Several checkpoints of the primary within one timeout inflate its demand: what is
 * remembered of it gives way to what it writes when none is forced.
 */
TEST(what_a_primary_forces_is_inflated)
{
	Driver	   *d = driver_new();

	d->apply = false;
	d->sample.standby = true;
	d->sample.primary_time = 1700000000;
	d->sample.primary_redo = d->sample.write_lsn;
	driver_step(d, SECOND, 0);
	/* two at most may be a command's */
	primary_timeout(d, 2, 240 * MB);
	assert_int_equal(d->last.figures.demand, 480 * MB);
	assert_false(d->last.figures.inflated);

	primary_timeout(d, 10, 240 * MB);
	assert_int_equal(d->last.figures.demand, 2400 * MB);
	assert_true(d->last.figures.inflated);
	assert_int_equal(d->state.primary.inflated_at, 240 * MB + SEGMENT);
	/* which is headroom enough */
	assert_int_equal(d->last.wanted_mb, walsizer_size_for(2400 * MB, &d->sample.settings));

	/* remembered, until a larger value shows what is clean */
	primary_timeout(d, 1, 200 * MB);
	primary_timeout(d, 1, 200 * MB);
	primary_timeout(d, 1, 200 * MB);
	assert_int_equal(d->last.figures.learned, 2400 * MB);
	assert_true(d->last.figures.inflated);
	primary_timeout(d, 1, 500 * MB);
	primary_timeout(d, 1, 200 * MB);
	primary_timeout(d, 1, 200 * MB);
	assert_int_equal(d->last.figures.learned, 500 * MB);
	assert_false(d->last.figures.inflated);
}

TEST(an_idle_primary_teaches_its_standby_nothing_new)
{
	Driver	   *d = driver_new();
	int64_t		hour;

	d->sample.standby = true;
	d->sample.primary_time = 1700000000;
	d->sample.primary_redo = d->sample.write_lsn;
	driver_run(d, 300, MB);
	d->sample.primary_time += 300;
	d->sample.primary_redo += 1200 * MB;
	driver_run(d, 600, MB);
	hour = d->sample.hour;
	driver_run(d, 4 * 3600, 0);
	walsizer_remember_window(&d->state);
	for (int64_t later = hour + 1; later <= d->sample.hour; later++)
		assert_null(walsizer_peak_of(&d->state, later));
	assert_in_range(walsizer_largest_peak(&d->state, d->sample.hour, 24).demand,
					1199 * MB, 1201 * MB);

	walsizer_forget(&d->state);
	driver_run(d, 600, 0);
	assert_int_equal(d->last.figures.wanted_mb, 32);
}

/* A primary as a standby sees it, with a timer for checkpoints of its own. */
typedef struct Primary
{
	int64_t		timer;			/* s since its last checkpoint, or a skipped one */
	uint64_t	lsn;
	uint64_t	redo;			/* of its last checkpoint */
	int64_t		redo_time;		/* s */
} Primary;

/* A second: it writes so much, and makes a checkpoint unless there is nothing to write. */
static void
primary_second(Primary *p, int64_t now, int64_t bytes)
{
	p->lsn += (uint64_t) bytes;
	if (++p->timer < 300)
		return;
	p->timer = 0;
	if (p->lsn == p->redo)
		return;
	p->redo = p->lsn;
	p->redo_time = now;
}

/*
 * 6000MB in four minutes of each hour, and nothing in the others, beginning so many
 * seconds after the timer.  The standby makes its restartpoints a minute later.
 */
static int64_t
size_for_hourly_bursts(int phase)
{
	Driver	   *d = driver_new();
	Primary		p = {.timer = phase, .lsn = d->sample.write_lsn, .redo = d->sample.write_lsn,
	.redo_time = 1700000000};

	d->sample.standby = true;
	for (int64_t i = 0; i < 3 * 3600; i++)
	{
		int64_t		bytes = i % 3600 >= 1800 && i % 3600 < 2040 ? 25 * MB : 0;

		primary_second(&p, 1700000000 + i, bytes);
		if (1700000000 + i == p.redo_time + 60)
		{
			d->sample.primary_redo = p.redo;
			d->sample.primary_time = p.redo_time;
			d->sample.redo_lsn = p.redo;
		}
		d->sample.primary_lsn = p.lsn;
		driver_step(d, SECOND, bytes);
	}
	return d->sample.settings.max_wal_size_mb;
}

TEST(bursts_after_idleness_are_seen_whole)
{
	WalsizerSettings settings = driver_new()->sample.settings;
	int64_t		needed = walsizer_size_for(6000 * MB, &settings);

	for (int phase = 0; phase < 300; phase += 20)
	{
		int64_t		size = size_for_hourly_bursts(phase);

		assert_in_range(size, needed, needed * 135 / 100);
	}
}

/* It grows with the load in a few steps, not with each sample. */
TEST(a_window_that_fills_raises_once_in_a_cycle)
{
	Driver	   *d = driver_new();

	d->sample.standby = true;
	for (int i = 0; i < 1500; i++)
	{
		d->sample.primary_lsn = d->sample.write_lsn + 8 * MB;
		driver_step(d, SECOND, 8 * MB);
	}
	assert_in_range(d->raises, 1, 2);
	assert_in_range(d->sample.settings.max_wal_size_mb,
					walsizer_size_for(2400 * MB, &d->sample.settings),
					walsizer_size_for(2400 * MB * 125 / 100, &d->sample.settings));
}

/* Replay catches up ten times as fast as the primary wrote; so may the receiver. */
TEST(catching_up_is_no_demand)
{
	Driver	   *d = driver_new();
	uint64_t	primary = d->sample.write_lsn + 100000 * MB;

	d->sample.standby = true;
	for (int i = 0; i < 3500; i++)
	{
		/* the connection is lost from time to time, for a minute */
		primary += MB;
		d->sample.primary_lsn = i % 500 < 60 ? 0 : primary;
		driver_step(d, SECOND, 10 * MB);
	}
	assert_int_equal(d->raises, 0);
	assert_in_range(d->last.figures.demand, 299 * MB, 301 * MB);

	/* another primary, whose log is shorter */
	d->sample.primary_lsn = 1000 * MB;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.figures.demand, 0);
}

/* The primary's checkpoints count at once, the window at the end of a cycle. */
TEST(the_larger_demand_of_the_primary_counts)
{
	Driver	   *d = driver_new();
	const WalsizerSettings *settings = &d->sample.settings;
	WalsizerFigures figures = {.in_effect_mb = walsizer_size_for(512 * MB, settings)};

	d->state.primary.demand = 512 * MB;
	d->state.cycle.demand = 900 * MB;
	assert_int_equal(walsizer_standby_rule(&d->config, driver_seen(d), &figures, false), 0);
	d->state.primary.demand = 100 * MB;
	assert_int_equal(walsizer_standby_rule(&d->config, driver_seen(d), &figures, false), 0);
	assert_int_equal(walsizer_standby_rule(&d->config, driver_seen(d), &figures, true),
					 walsizer_size_with_headroom(&d->config, settings, 900 * MB));
	d->state.primary.demand = 1000 * MB;
	assert_int_equal(walsizer_standby_rule(&d->config, driver_seen(d), &figures, false),
					 walsizer_size_with_headroom(&d->config, settings, 1000 * MB));
	assert_int_equal(walsizer_standby_rule(&d->config, driver_seen(d), &figures, true),
					 walsizer_size_with_headroom(&d->config, settings, 1000 * MB));
}

/* Replay is always far from the redo pointer, and to lower does no harm. */
TEST(a_standby_lowers_wherever_its_redo_pointer_is)
{
	Driver	   *d = driver_quiet_raise(4000);

	driver_step(d, SECOND, 900 * MB);
	d->config.max_mb = 2048;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_NONE);
	d->sample.standby = true;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_LOWER);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_LIMIT_FELL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_standby_ignores_its_own_restartpoints),
		cmocka_unit_test(a_promotion_does_not_end_a_wait),
		cmocka_unit_test(a_standby_follows_its_primary),
		cmocka_unit_test(what_a_primary_forces_is_inflated),
		cmocka_unit_test(an_idle_primary_teaches_its_standby_nothing_new),
		cmocka_unit_test(bursts_after_idleness_are_seen_whole),
		cmocka_unit_test(a_window_that_fills_raises_once_in_a_cycle),
		cmocka_unit_test(catching_up_is_no_demand),
		cmocka_unit_test(the_larger_demand_of_the_primary_counts),
		cmocka_unit_test(a_standby_lowers_wherever_its_redo_pointer_is),
	};

	return cmocka_run_group_tests_name("policy, standby", tests, NULL, NULL);
}
