/*-------------------------------------------------------------------------
 *
 * test_window.c
 *	  The window by itself, the rate, and the primary of a standby.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"
#include "policy/internal.h"

static WalsizerFigures
window(Driver *d, int64_t ms, int64_t bytes)
{
	WalsizerFigures figures = {0};

	d->sample.now += ms;
	d->sample.write_lsn += (uint64_t) bytes;
	walsizer_observe_window(driver_seen(d), &figures);
	return figures;
}

/* A mark each 120th of the timeout, 2.5 s here, and no window is longer than it. */
TEST(the_window_has_120_steps)
{
	Driver	   *d = driver_new();

	window(d, 0, 0);
	window(d, 2499, 0);
	assert_int_equal(d->state.window.number, 1);
	window(d, 1, 0);
	assert_int_equal(d->state.window.number, 2);
	for (int i = 0; i < 500; i++)
		assert_int_equal(window(d, 2500, MB).demand, MB * (i < 119 ? i + 1 : 120));
	assert_in_range(d->state.window.number, 120, 122);
}

/* Between two marks the position is interpolated: a steady load has a steady demand. */
TEST(the_start_of_the_window_is_interpolated)
{
	Driver	   *d = driver_new();

	window(d, 0, 0);
	window(d, 100 * SECOND, 100 * MB);
	window(d, 100 * SECOND, 0);
	assert_int_equal(window(d, 150 * SECOND, 50 * MB).demand, 50 * MB + 50 * MB);
	assert_int_equal(window(d, 25 * SECOND, 0).demand, 25 * MB + 50 * MB);
	d = driver_new();
	window(d, 0, 0);
	window(d, 100 * SECOND, 100 * MB);
	assert_int_equal(window(d, 250 * SECOND, 0).demand, 50 * MB);

	/* nor does it matter when the clock began */
	d = driver_new();
	d->sample.now = 100 * SECOND;
	window(d, 0, 0);
	window(d, 200 * SECOND, 200 * MB);
	assert_int_equal(window(d, 200 * SECOND, 0).demand, 100 * MB);

	/* after a gap the last mark is the oldest */
	assert_int_equal(window(d, 600 * SECOND, 600 * MB).demand, 300 * MB);
}

static void
add_mark(Driver *d, int64_t now, int64_t hour)
{
	d->state.last.now = now;
	d->state.last.hour = hour;
	walsizer_add_mark(&d->state);
}

/* The ring holds a few marks more than a window has; then the oldest gives way. */
TEST(a_full_ring_remembers_its_oldest_mark)
{
	Driver	   *d = driver_new();

	d->state.last.settings.timeout_ms = 1;
	d->state.window.step.demand = 9 * MB;
	for (int i = 0; i < WALSIZER_WINDOW_SLOTS; i++)
		add_mark(d, i, 500000);
	assert_int_equal(d->state.window.number, WALSIZER_WINDOW_SLOTS);
	assert_int_equal(d->state.window.marks[0].peak.demand, 9 * MB);
	assert_int_equal(d->state.window.marks[1].peak.demand, 0);
	assert_null(walsizer_peak_of(&d->state, 500000));
	add_mark(d, 1000, 500001);
	assert_int_equal(d->state.window.number, WALSIZER_WINDOW_SLOTS);
	assert_int_equal(d->state.window.first, 1);
	assert_int_equal(d->state.window.marks[0].ms, 1000);
	assert_int_equal(walsizer_peak_of(&d->state, 500000)->demand, 9 * MB);
}

/* What was counted in the window is what was counted since its oldest mark. */
TEST(the_window_counts_checkpoints)
{
	Driver	   *d = driver_new();
	WalsizerFigures figures;

	d->state.checkpoints.total[WALSIZER_CAUSE_FORCED] = 10;
	d->state.checkpoints.total[WALSIZER_CAUSE_OLD_VALUE] = 20;
	d->state.checkpoints.requested = 30;
	d->state.checkpoints.timed = 40;
	window(d, 0, 0);
	d->state.checkpoints.total[WALSIZER_CAUSE_FORCED] += 3;
	d->state.checkpoints.total[WALSIZER_CAUSE_OLD_VALUE] += 2;
	d->state.checkpoints.requested += 7;
	d->state.checkpoints.timed += 9;
	figures = window(d, 10 * SECOND, 0);
	assert_int_equal(figures.forced, 5);
	assert_int_equal(figures.forced_old_value, 2);
	assert_int_equal(figures.requested, 7);
	assert_int_equal(figures.timed, 9);
	figures = window(d, 300 * SECOND, 0);	/* since the mark before */
	assert_int_equal(figures.forced, 0);
	assert_int_equal(figures.requested, 0);
}

/* The largest demand in the window, which is not remembered yet. */
static int64_t
recent_peak(const WalsizerWindow *window)
{
	int64_t		peak = window->step.demand;

	for (int i = 0; i < window->number; i++)
		peak = walsizer_max(peak, window->marks[(window->first + i) % WALSIZER_WINDOW_SLOTS].peak.demand);
	return peak;
}

/* A cycle has the largest window in it. */
TEST(a_cycle_has_its_largest_window)
{
	Driver	   *d = driver_new();
	const WalsizerCycle *cycle = &d->state.cycle;

	window(d, 0, 0);
	d->state.checkpoints.total[WALSIZER_CAUSE_FORCED] = 2;
	window(d, 10 * SECOND, 100 * MB);
	window(d, 301 * SECOND, MB);
	assert_int_equal(cycle->demand, 100 * MB);
	assert_int_equal(cycle->forced, 2);
	d->state.cycle = (WalsizerCycle) {0};	/* the next */
	window(d, SECOND, 0);
	assert_in_range(cycle->demand, MB / 2, MB);
	assert_int_equal(cycle->forced, 0);

	/* the WAL of a planned load is no demand, but what it forces counts */
	d->state.boost.planned_until = d->sample.now + SECOND + 1;
	d->state.window.step.demand = 0;
	d->state.checkpoints.total[WALSIZER_CAUSE_FORCED] = 3;
	window(d, SECOND, 500 * MB);
	assert_true(cycle->demand < 2 * MB);
	assert_true(recent_peak(&d->state.window) < 200 * MB);
	assert_int_equal(cycle->forced, 1);
	window(d, 1, 0);
	assert_true(cycle->demand > 400 * MB);
	assert_true(recent_peak(&d->state.window) > 400 * MB);
}

/* A server whose first sample is at this time (ms). */
static Driver *
first_sample(int64_t now)
{
	Driver	   *d = driver_new();

	d->sample.now = now;
	walsizer_begin_rate(&d->state, &d->sample);
	return d;
}

static int64_t
rate(Driver *d, int64_t ms, int64_t bytes)
{
	d->sample.now += ms;
	d->sample.write_lsn += (uint64_t) bytes;
	return walsizer_observe_rate(&d->state, &d->sample);
}

/* The mean of six samples or the newest, whichever is larger. */
TEST(a_load_that_begins_counts_in_full)
{
	Driver	   *d = first_sample(1000 * SECOND);

	assert_int_equal(rate(d, 0, 0), 0);
	assert_int_equal(rate(d, 2000, 6 * MB), 3 * MB);
	assert_int_equal(rate(d, 2000, 20 * MB), 10 * MB);
	assert_int_equal(rate(d, 2000, 0), 26 * MB / 6);
	for (int i = 0; i < 3; i++)
		rate(d, 2000, 0);
	assert_int_equal(rate(d, 2000, 4 * MB), 2 * MB);
	assert_int_equal(rate(d, 8000, MB), 5 * MB / 18);
}

/* Samples in quick succession give no rate, and take no place. */
TEST(samples_in_quick_succession_give_no_rate)
{
	Driver	   *d = first_sample(1000 * SECOND);

	assert_int_equal(rate(d, 199, 10 * MB), 0);
	assert_int_equal(d->state.rate.next, 0);
	assert_int_equal(rate(d, 1, 0), 50 * MB);
	assert_int_equal(d->state.rate.next, 1);

	/* the clock may begin at zero */
	assert_int_equal(rate(first_sample(0), 2000, 6 * MB), 3 * MB);
}

static void
primary_checkpoint(Driver *d, int64_t seconds, int64_t bytes)
{
	d->sample.primary_time += seconds;
	d->sample.primary_redo += (uint64_t) bytes;
	walsizer_observe_primary(&d->state, &d->sample);
}

/* Two checkpoints of the primary about a timeout apart, scaled to one. */
TEST(the_primary_is_measured_between_checkpoints)
{
	Driver	   *d = driver_new();
	const WalsizerPrimary *primary = &d->state.primary;

	walsizer_observe_primary(&d->state, &d->sample);
	assert_int_equal(primary->time, 0);
	d->sample.primary_redo = d->sample.redo_lsn;
	primary_checkpoint(d, 1, 0);
	assert_int_equal(primary->time, 1);
	assert_int_equal(primary->demand, 0);
	primary_checkpoint(d, 0, 20 * MB);	/* within the same second */
	primary_checkpoint(d, 224, 70 * MB);	/* too soon */
	assert_int_equal(primary->demand, 0);
	assert_int_equal(primary->time, 1);
	primary_checkpoint(d, 1, 45 * MB);
	assert_int_equal(primary->time, 226);
	assert_int_equal(primary->demand, walsizer_to_int64((double) (135 * MB) * (300.0 / 225.0)));
	assert_int_equal(d->state.window.step.demand, primary->demand);
	primary_checkpoint(d, 600, 100 * MB);
	assert_int_equal(primary->demand, 50 * MB);
	assert_int_equal(d->state.window.step.demand, 180 * MB);

	/* another primary, or its clock was set back: the next distance counts from there */
	primary_checkpoint(d, 300, -600 * MB);
	assert_int_equal(primary->demand, 50 * MB);
	assert_true(primary->redo == d->sample.primary_redo);
	primary_checkpoint(d, -500, 60 * MB);
	assert_int_equal(primary->demand, 50 * MB);
	assert_int_equal(primary->time, d->sample.primary_time);
	primary_checkpoint(d, 300, 0);
	assert_int_equal(primary->demand, 0);

	/* nothing is known of it for a while */
	d->sample.primary_time = -d->sample.primary_time;
	primary_checkpoint(d, 0, 0);
	d->sample.primary_time = 0;
	primary_checkpoint(d, 0, 0);
	assert_int_equal(primary->time, 926);
	d->sample.primary_time = primary->time;

	/* a planned load is not remembered */
	d->state.window.step.demand = 0;
	d->state.boost.planned_until = d->sample.now + 1;
	primary_checkpoint(d, 300, 77 * MB);
	assert_int_equal(primary->demand, 77 * MB);
	assert_int_equal(d->state.window.step.demand, 0);
	d->sample.now++;
	primary_checkpoint(d, 300, 78 * MB);
	assert_int_equal(d->state.window.step.demand, 78 * MB);

	/* a time that no clock has */
	primary_checkpoint(d, INT64_C(1) << 59, 0);
	assert_int_equal(primary->demand, 78 * MB);
	d->sample.primary_time = (INT64_C(1) << 60) / 1000 - 1;
	primary_checkpoint(d, 0, 0);
	assert_int_equal(primary->time, d->sample.primary_time);
	d->sample.primary_time++;
	primary_checkpoint(d, 0, MB);
	assert_int_equal(primary->time, d->sample.primary_time - 1);
}

/* Of an idle primary that makes no more checkpoints. */
TEST(what_the_primary_needed_once_ends)
{
	Driver	   *d = driver_new();
	const WalsizerPrimary *primary = &d->state.primary;

	d->sample.primary_redo = d->sample.redo_lsn;
	primary_checkpoint(d, 1, 0);
	d->sample.now += 1000 * SECOND;
	primary_checkpoint(d, 300, 100 * MB);
	d->sample.now += 600 * SECOND;
	primary_checkpoint(d, 0, 0);
	assert_int_equal(primary->demand, 100 * MB);
	d->sample.now++;
	primary_checkpoint(d, 0, 0);
	assert_int_equal(primary->demand, 0);
	primary_checkpoint(d, 300, 50 * MB);
	assert_int_equal(primary->demand, 50 * MB);

	/* nor does it outlast the connection */
	d->sample.now += 600 * SECOND + 1;
	d->sample.primary_time = 0;
	walsizer_observe_primary(&d->state, &d->sample);
	assert_int_equal(primary->demand, 0);
}

/* What a cycle measured with another timeout says nothing of this one. */
TEST(a_cycle_begins_anew_with_another_timeout)
{
	Driver	   *d = driver_begun();

	driver_observe(d, 200 * SECOND, 3000 * MB);
	d->state.cycle.forced = 3;
	assert_int_equal(d->state.cycle.demand, 3000 * MB);
	d->sample.settings.timeout_ms = 50 * SECOND;
	driver_observe(d, SECOND, MB);
	assert_in_range(d->state.cycle.demand, 1, 1000 * MB);
	assert_int_equal(d->state.cycle.forced, 0);
}

/* Without the primary's position restartpoints are counted all the same. */
TEST(a_standby_that_does_not_know_the_position_counts)
{
	Driver	   *d = driver_new();

	d->sample.standby = true;
	(void) driver_observe(d, 0, 0);
	d->sample.timed++;
	assert_int_equal(driver_observe(d, 10 * SECOND, 0).timed, 1);
	assert_int_equal(driver_observe(d, 10 * SECOND, 0).timed, 1);
}

/* Nothing is measured while the primary's position is not known, nor across that. */
TEST(a_standby_measures_the_primarys_position)
{
	Driver	   *d = driver_new();

	d->sample.standby = true;
	window(d, 0, 0);
	assert_int_equal(window(d, 10 * SECOND, 50 * MB).demand, 0);
	d->sample.primary_lsn = 1000 * MB;
	assert_int_equal(window(d, 10 * SECOND, 50 * MB).demand, 0);
	d->sample.primary_lsn += 30 * MB;
	assert_int_equal(window(d, 10 * SECOND, 0).demand, 30 * MB);
	assert_int_equal(d->state.cycle.demand, 30 * MB);

	/* its last two checkpoints may say more */
	d->state.primary.demand = 40 * MB;
	assert_int_equal(window(d, SECOND, 0).demand, 40 * MB);
	assert_int_equal(d->state.cycle.demand, 40 * MB);
	assert_int_equal(d->state.window.step.demand, 30 * MB);
	assert_int_equal(recent_peak(&d->state.window), 30 * MB);
	d->sample.standby = false;
	d->sample.write_lsn = d->sample.primary_lsn;
	assert_int_equal(window(d, SECOND, 0).demand, 30 * MB);

	/* the position went back: what was measured before is remembered */
	d->sample.write_lsn--;
	assert_int_equal(window(d, SECOND, 0).demand, 0);
	assert_int_equal(walsizer_largest_peak(&d->state, d->sample.hour, 1).demand, 30 * MB);
}

/* Memory, and what would bring it back, are empty; whose value it is remains. */
TEST(forgetting_leaves_nothing_but_ownership)
{
	Driver	   *d = driver_new();

	remember(d, 744, MB, 1);
	remember(d, 745, MB, 1);
	window(d, 0, 0);
	window(d, SECOND, MB);
	d->state.owner.own_mb = 4000;
	d->state.last.now = d->sample.now;
	d->state.primary.demand = d->state.cycle.demand = MB;
	d->state.cycle.forced = d->state.cycle.old_value = 1;
	d->state.pacing.keep_ms = INT64_MAX;
	walsizer_forget(&d->state);
	assert_null(walsizer_peak_of(&d->state, 744));
	assert_null(walsizer_peak_of(&d->state, 745));
	assert_int_equal(d->state.window.number, 0);
	assert_int_equal(recent_peak(&d->state.window), 0);
	assert_int_equal(d->state.primary.demand, 0);
	assert_int_equal(d->state.cycle.demand, 0);
	assert_int_equal(d->state.cycle.forced, 0);
	assert_int_equal(d->state.cycle.old_value, 0);
	assert_int_equal(d->state.pacing.changed_at, d->sample.now);
	assert_int_equal(d->state.pacing.keep_ms, 0);
	assert_int_equal(d->state.owner.own_mb, 4000);
	assert_int_equal(walsizer_largest_peak(&d->state, 1, 744).demand, 0);

	/* and a new window begins */
	window(d, SECOND, 0);
	assert_int_equal(d->state.window.number, 1);
}

/* Before the server ends, what is still in the window is remembered, and once. */
TEST(the_window_can_be_remembered)
{
	Driver	   *d = driver_new();

	window(d, 0, 0);
	window(d, 3 * SECOND, 5 * MB);
	d->sample.hour++;
	window(d, 3 * SECOND, 2 * MB);
	d->sample.hour++;
	window(d, SECOND, MB);
	walsizer_remember_window(&d->state);
	assert_int_equal(walsizer_peak_of(&d->state, 500000)->demand, 5 * MB);
	assert_int_equal(walsizer_peak_of(&d->state, 500001)->demand, 7 * MB);
	assert_int_equal(walsizer_peak_of(&d->state, 500002)->demand, 8 * MB);
	assert_int_equal(walsizer_peak_of(&d->state, 500002)->timeout_ms, 300000);
	assert_int_equal(d->state.window.number, 0);
	assert_int_equal(d->state.window.step.demand, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_window_has_120_steps),
		cmocka_unit_test(the_start_of_the_window_is_interpolated),
		cmocka_unit_test(a_full_ring_remembers_its_oldest_mark),
		cmocka_unit_test(the_window_counts_checkpoints),
		cmocka_unit_test(a_cycle_has_its_largest_window),
		cmocka_unit_test(a_load_that_begins_counts_in_full),
		cmocka_unit_test(samples_in_quick_succession_give_no_rate),
		cmocka_unit_test(the_primary_is_measured_between_checkpoints),
		cmocka_unit_test(what_the_primary_needed_once_ends),
		cmocka_unit_test(a_cycle_begins_anew_with_another_timeout),
		cmocka_unit_test(a_standby_that_does_not_know_the_position_counts),
		cmocka_unit_test(a_standby_measures_the_primarys_position),
		cmocka_unit_test(forgetting_leaves_nothing_but_ownership),
		cmocka_unit_test(the_window_can_be_remembered),
	};

	return cmocka_run_group_tests_name("policy, the window", tests, NULL, NULL);
}
