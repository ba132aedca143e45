/*-------------------------------------------------------------------------
 *
 * test_demand.c
 *	  What is known of demand: the window, the rate, the peaks remembered.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"
#include "policy/internal.h"

TEST(what_was_seen_is_remembered)
{
	Driver	   *d = driver_new();
	int64_t		hour;

	driver_run(d, 1800, 4 * MB);
	hour = d->sample.hour;
	assert_in_range(walsizer_largest_peak(&d->state, hour, 1).demand,
					1199 * MB, 1205 * MB);
	/* all of the lookback counts, and one hour more has none of it left */
	assert_true(walsizer_largest_peak(&d->state, hour + 5, 5).demand > 0);
	assert_true(walsizer_largest_peak(&d->state, hour + 7, 5).demand == 0);
	/* a wall clock that was set back forgets nothing */
	assert_true(walsizer_largest_peak(&d->state, hour - 3, 5).demand > 0);

	walsizer_forget(&d->state);
	assert_int_equal(walsizer_largest_peak(&d->state, hour, 100).demand, 0);
}

/*
 * A peak is what was measured.  A timeout that is twelve times as long needs what is
 * written then, not twelve times the minute that was remembered.
 */
TEST(a_peak_is_not_stretched_with_the_timeout)
{
	Driver	   *d = driver_new();
	int64_t		needed;

	driver_run(d, 60, 80 * MB);
	driver_run(d, 4000, MB);
	needed = walsizer_size_with_headroom(&d->config, &d->sample.settings, 5040 * MB);
	d->sample.settings.timeout_ms = 3600 * SECOND;
	driver_run(d, 4000, MB);
	assert_in_range(d->last.figures.wanted_mb, needed * 9 / 10, needed);
	assert_in_range(d->sample.settings.max_wal_size_mb, needed * 9 / 10, needed * 11 / 10);
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_FORCED], 0);
}

TEST(demand_belongs_to_the_timeout_it_was_measured_with)
{
	Driver	   *d = driver_new();
	int64_t		hour;

	d->sample.settings.timeout_ms = 1800 * SECOND;
	driver_run(d, 1500, MB);
	d->sample.settings.timeout_ms = 300 * SECOND;
	driver_run(d, 10, MB);
	d->sample.settings.timeout_ms = 1800 * SECOND;
	driver_run(d, 10, MB);
	hour = d->sample.hour;
	walsizer_remember_window(&d->state);
	assert_in_range(walsizer_largest_peak(&d->state, hour, 1).demand, 1490 * MB, 1900 * MB);
}

/* The largest of an hour, as measured. */
TEST(an_hour_keeps_its_largest_demand)
{
	Driver	   *d = driver_new();
	const WalsizerPeak *peak;

	remember(d, 500000, 100 * MB, 300000);
	remember(d, 500000, 99 * MB, 60000);
	remember(d, 500000, 100 * MB, 60000);
	peak = walsizer_peak_of(&d->state, 500000);
	assert_non_null(peak);
	assert_int_equal(peak->demand, 100 * MB);
	assert_int_equal(peak->timeout_ms, 300000);
	remember(d, 500000, 100 * MB + 1, 60000);
	assert_int_equal(peak->demand, 100 * MB + 1);
	assert_int_equal(peak->timeout_ms, 60000);
	remember(d, 500000, INT64_MAX, 60000);
	assert_int_equal(peak->demand, INT64_C(1) << 60);

	/* an hour that is older than any lookback gives its place away */
	remember(d, 500000 + WALSIZER_PEAK_SLOTS, MB, 60000);
	assert_null(walsizer_peak_of(&d->state, 500000));
	assert_int_equal(walsizer_peak_of(&d->state, 500000 + WALSIZER_PEAK_SLOTS)->demand, MB);
	remember(d, 500000, MB / 2, 60000);	/* the clock was set back */
	assert_int_equal(walsizer_peak_of(&d->state, 500000)->demand, MB / 2);
}

/* A job that comes half an hour later each week still finds its peak, whatever the lookback. */
TEST(the_hour_of_the_longest_lookback_has_a_slot_of_its_own)
{
	Driver	   *d = driver_new();
	int64_t		hours = walsizer_most.lookback_hours;

	assert_int_equal(hours, 31 * 24);
	d->state.last.settings = d->sample.settings;
	remember(d, 500000, 7 * MB, 1);
	remember(d, 500000 + hours + 1, MB, 1);
	assert_int_equal(walsizer_largest_peak(&d->state, 500000 + hours + 1, hours).demand, 7 * MB);
	assert_int_equal(walsizer_largest_peak(&d->state, 500000 + hours + 2, hours).demand, MB);
}

TEST(what_is_no_demand_is_not_remembered)
{
	Driver	   *d = driver_new();
	static const WalsizerState nothing;

	remember(d, 0, MB, 1);
	remember(d, -1, MB, 1);
	remember(d, 5, 0, 1);
	remember(d, 5, -1, 1);
	remember(d, 5, MB, 0);
	remember(d, 5, MB, -1);
	assert_memory_equal(&d->state, &nothing, sizeof(nothing));
	assert_null(walsizer_peak_of(&d->state, 5));
	assert_null(walsizer_peak_of(&d->state, 0));
	assert_null(walsizer_peak_of(&d->state, -1));
	assert_int_equal(walsizer_largest_peak(&d->state, 5, 100).demand, 0);
	remember(d, 1, 1, 1);
	assert_int_equal(walsizer_peak_of(&d->state, 1)->demand, 1);
}

/* Each of the hours counts, from lookback before to lookback after this one, and one more. */
TEST(all_of_the_lookback_counts)
{
	const int64_t now = 500000;

	for (int64_t lookback = 1; lookback <= walsizer_most.lookback_hours + 1; lookback += 24)
		for (int64_t off = -lookback - 2; off <= lookback + 2; off++)
		{
			Driver	   *d = driver_new();
			bool		counts = off >= -lookback - 1 && off <= lookback + 1;

			d->state.last.settings = d->sample.settings;
			remember(d, now + off, 7 * MB, 1);
			assert_int_equal(walsizer_largest_peak(&d->state, now, lookback).demand,
							 counts ? 7 * MB : 0);
		}
}

/* The maximum of all hours is computed when it may have changed, not at each sample. */
TEST(what_was_learned_is_kept_until_it_may_change)
{
	Driver	   *d = driver_new();
	WalsizerLearned *learned = &d->state.learned;

	remember(d, d->sample.hour, 7 * MB, 1);
	assert_int_equal(walsizer_learned_now(driver_seen(d), 24)->demand, 7 * MB);
	learned->largest.demand = 1;
	assert_int_equal(walsizer_learned_now(driver_seen(d), 24)->demand, 1);
	assert_int_equal(walsizer_learned_now(driver_seen(d), 25)->demand, 7 * MB);
	learned->largest.demand = 1;
	assert_int_equal(walsizer_learned_now(driver_seen(d), 25)->demand, 1);
	d->sample.hour++;
	assert_int_equal(walsizer_learned_now(driver_seen(d), 25)->demand, 7 * MB);
	learned->largest.demand = 1;
	assert_int_equal(walsizer_learned_now(driver_seen(d), 25)->demand, 1);
	assert_int_equal(walsizer_learned_now(driver_seen(d), 24)->demand, 7 * MB);
	d->sample.hour -= 2;
	learned->largest.demand = 1;
	assert_int_equal(walsizer_learned_now(driver_seen(d), 24)->demand, 7 * MB);
	d->sample.hour += 2;
	assert_int_equal(walsizer_learned_now(driver_seen(d), 25)->demand, 7 * MB);
	learned->largest.demand = 1;
	remember(d, d->sample.hour, 3 * MB, 1);
	assert_int_equal(walsizer_learned_now(driver_seen(d), 25)->demand, 7 * MB);
	learned->largest.demand = 1;
	remember(d, d->sample.hour, 3 * MB, 1);	/* known already */
	assert_int_equal(walsizer_learned_now(driver_seen(d), 25)->demand, 1);
	walsizer_forget(&d->state);
	assert_int_equal(walsizer_learned_now(driver_seen(d), 25)->demand, 0);
	d->sample.hour = 1;
	assert_int_equal(walsizer_learned_now(driver_seen(d), 25)->demand, 0);
	remember(d, 1, MB, 1);
	assert_int_equal(walsizer_learned_now(driver_seen(d), 25)->demand, MB);
	walsizer_forget(&d->state);
	assert_int_equal(walsizer_learned_now(driver_seen(d), 25)->demand, 0);
}

/* A peak measured with a longer timeout is too much for this one: it counts for a day. */
TEST(a_longer_timeout_is_forgotten_after_a_day)
{
	Driver	   *d = driver_new();

	d->state.last.settings = d->sample.settings;
	remember(d, 500000, 9 * MB, 300001);
	remember(d, 499000, 7 * MB, 300000);
	assert_int_equal(walsizer_largest_peak(&d->state, 500025, 744).demand, 9 * MB);
	assert_int_equal(walsizer_largest_peak(&d->state, 500026, 744).demand, 0);
	assert_int_equal(walsizer_largest_peak(&d->state, 499744, 744).demand, 7 * MB);
}

/* The cached figure follows the timeout. */
TEST(a_shorter_timeout_counts_at_once)
{
	Driver	   *d = driver_begun();

	remember(d, d->sample.hour - 30, 9 * MB, 300000);
	assert_int_equal(walsizer_learned_now(driver_seen(d), 168)->demand, 9 * MB);
	d->sample.settings.timeout_ms = 60 * SECOND;
	driver_observe(d, SECOND, 0);
	assert_int_equal(walsizer_learned_now(driver_seen(d), 168)->demand, 0);
}

/* When the clock jumps, what was measured up to then moves with it. */
TEST(peaks_move_with_the_clock)
{
	for (int back = 0; back <= 1; back++)
	{
		Driver	   *d = driver_begun();
		int64_t		hour = d->sample.hour;
		int64_t		jump = back ? -9 * 24 : 9 * 24;

		remember(d, hour, 5 * MB, 300000);
		remember(d, hour - 24, 7 * MB, 300000);
		remember(d, hour - WALSIZER_PEAK_SLOTS + 1, 8 * MB, 300000);
		remember(d, hour - hour % WALSIZER_PEAK_SLOTS, 6 * MB, 300000);	/* in the first slot */
		remember(d, hour + 300, 9 * MB, 300000);	/* of another clock */
		remember(d, hour - 1000, 4 * MB, 300000);	/* of another, too */
		d->sample.hour += jump;
		driver_observe(d, SECOND, 0);
		assert_int_equal(walsizer_peak_of(&d->state, hour + jump)->demand, 5 * MB);
		assert_int_equal(walsizer_peak_of(&d->state, hour + jump - 24)->demand, 7 * MB);
		assert_int_equal(walsizer_peak_of(&d->state, hour + jump - WALSIZER_PEAK_SLOTS + 1)->demand, 8 * MB);
		assert_int_equal(walsizer_peak_of(&d->state, hour - hour % WALSIZER_PEAK_SLOTS + jump)->demand, 6 * MB);
		assert_int_equal(walsizer_peak_of(&d->state, hour + 300)->demand, 9 * MB);
		assert_non_null(walsizer_peak_of(&d->state, hour - 1000));
		assert_null(walsizer_peak_of(&d->state, hour - 24));
	}
}

/* An hour later is no jump. */
TEST(peaks_stay_where_the_clock_is_right)
{
	Driver	   *d = driver_begun();

	remember(d, d->sample.hour, 5 * MB, 300000);
	d->sample.hour++;
	driver_observe(d, SECOND, 0);
	assert_int_equal(walsizer_peak_of(&d->state, d->sample.hour - 1)->demand, 5 * MB);
}

static void
remember_inflated(Driver *d, int64_t hour, int64_t demand, int64_t trigger_point)
{
	walsizer_remember(&d->state, &(WalsizerPeak) {hour, demand, 300000, trigger_point});
}

#define FIRST	(INT64_C(670) * WALSIZER_PEAK_SLOTS)	/* an hour that has the first slot */

/*
 * A peak of 4000MB, inflated where 528MB force a checkpoint.  Then two marks, of which the
 * second is so much later: what is left of the peak?
 */
static int64_t
deflated(int64_t mb, double completion_target, WalsizerPeak first, WalsizerPeak second, int64_t ms)
{
	Driver	   *d = driver_new();

	d->state.last.settings = d->sample.settings;
	d->state.last.settings.max_wal_size_mb = mb;
	d->state.last.settings.completion_target = completion_target;
	remember_inflated(d, FIRST, 4000 * MB, TRIGGER_POINT);
	remember_inflated(d, FIRST + 1, 600 * MB, TRIGGER_POINT);
	d->state.window.marks[0] = (WalsizerMark) {.ms = SECOND, .peak = first};
	/* what was forced between them tells nothing of what a clean load writes */
	d->state.window.marks[1] = (WalsizerMark) {.ms = SECOND + ms, .peak = {FIRST + 2, 3000 * MB, 300000, TRIGGER_POINT}};
	d->state.window.marks[2] = (WalsizerMark) {.ms = SECOND + ms, .peak = second};
	d->state.window.number = 3;
	walsizer_remember_window(&d->state);
	assert_int_equal(d->state.window.number, 0);
	assert_int_equal(walsizer_peak_of(&d->state, FIRST + 1)->demand, 600 * MB);
	assert_int_equal(walsizer_peak_of(&d->state, FIRST)->inflated_at,
					 walsizer_peak_of(&d->state, FIRST)->demand < 4000 * MB ? 0 : TRIGGER_POINT);
	return walsizer_peak_of(&d->state, FIRST)->demand;
}

/* A clean demand of at least as much, with a larger value, shows what the load writes. */
TEST(a_clean_demand_deflates_peaks)
{
	WalsizerPeak clean = {500002, TRIGGER_POINT + 200 * MB, 300000, 0};
	WalsizerPeak just = {500002, TRIGGER_POINT, 300000, 0};
	WalsizerPeak less = {500002, TRIGGER_POINT - 1, 300000, 0};
	WalsizerPeak inflated = {500002, 900 * MB, 300000, TRIGGER_POINT + SEGMENT};

	assert_int_equal(deflated(1040, 0, clean, just, 100 * SECOND), clean.demand);
	/* the oldest mark may be of the beginning of the load */
	assert_int_equal(deflated(1040, 0, just, clean, 100 * SECOND), clean.demand);
	assert_int_equal(deflated(1024, 0.9, clean, just, 100 * SECOND), 4000 * MB);
	assert_int_equal(deflated(1040, 0, less, clean, 100 * SECOND), 4000 * MB);
	assert_int_equal(deflated(1040, 0, inflated, clean, 100 * SECOND), 4000 * MB);

	/* if it lasts: else it is the end of what was forced */
	assert_int_equal(deflated(1040, 0, clean, less, 100 * SECOND), 4000 * MB);
	assert_int_equal(deflated(1040, 0, clean, inflated, 100 * SECOND), 4000 * MB);
	assert_int_equal(deflated(1040, 0, clean, just, 100 * SECOND - 1), 4000 * MB);
}

/* Nor does one before the first sample, when no value is known. */
TEST(nothing_deflates_peaks_before_the_first_sample)
{
	Driver	   *d = driver_new();

	remember_inflated(d, 500000, 4000 * MB, TRIGGER_POINT);
	d->state.window.marks[0].peak = d->state.window.marks[1].peak =
		(WalsizerPeak) {500002, 900 * MB, 300000, 0};
	d->state.window.number = 2;
	walsizer_remember_window(&d->state);
	assert_int_equal(walsizer_peak_of(&d->state, 500000)->demand, 4000 * MB);
}

/* Two forced checkpoints in a window inflate its demand, one does not. */
TEST(several_forced_checkpoints_inflate_demand)
{
	for (int number = 1; number <= 2; number++)
	{
		Driver	   *d = driver_begun();

		for (int i = 0; i < number; i++)
		{
			driver_observe(d, SECOND, TRIGGER_POINT);
			driver_observe_redo(d, SECOND, 0);
		}
		assert_int_equal(driver_observe(d, SECOND, MB).inflated, number > 1);
		walsizer_remember_window(&d->state);
		assert_int_equal(walsizer_peak_of(&d->state, d->sample.hour)->demand,
						 number * TRIGGER_POINT + MB);
		assert_int_equal(walsizer_peak_of(&d->state, d->sample.hour)->inflated_at,
						 number == 1 ? 0 : TRIGGER_POINT);
	}
}

/*
 * A switch of segments pads the rest of one: no rate, and demand for no more than
 * the records.
 */
TEST(padding_counts_for_no_more_than_records)
{
	Driver	   *d = driver_begun();
	WalsizerFigures figures;

	d->sample.padding = 15 * MB;
	figures = driver_observe(d, SECOND, 16 * MB);
	assert_int_equal(figures.rate, MB);
	assert_int_equal(figures.used, 16 * MB);
	assert_int_equal(figures.demand, 2 * MB);
	assert_int_equal(figures.padding_percent, 93);
	assert_int_equal(figures.projected, 2 * MB + 299 * MB);

	/* what is half of it, or less, counts in full */
	d->sample.padding = MB;
	figures = driver_observe(d, SECOND, 20 * MB);
	assert_int_equal(figures.rate, 19 * MB);
	assert_int_equal(figures.demand, 36 * MB);
	assert_int_equal(figures.padding_percent, 44);

	/* that of the interval before does not count in this one */
	d->sample.padding = 0;
	figures = driver_observe_redo(d, SECOND, 16 * MB);
	assert_int_equal(figures.used, 20 * MB);	/* from the start of its segment */
	assert_int_equal(figures.projected, 20 * MB + figures.rate * 299);

	/* nonsense is limited to what was written */
	d->sample.padding = INT64_MAX;
	assert_true(driver_observe(d, 300 * SECOND, 10 * MB).rate < MB);
	d->sample.padding = -5;
	assert_int_equal(driver_observe(d, SECOND, 10 * MB).rate, 10 * MB);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_seen_is_remembered),
		cmocka_unit_test(a_peak_is_not_stretched_with_the_timeout),
		cmocka_unit_test(demand_belongs_to_the_timeout_it_was_measured_with),
		cmocka_unit_test(an_hour_keeps_its_largest_demand),
		cmocka_unit_test(the_hour_of_the_longest_lookback_has_a_slot_of_its_own),
		cmocka_unit_test(what_is_no_demand_is_not_remembered),
		cmocka_unit_test(all_of_the_lookback_counts),
		cmocka_unit_test(what_was_learned_is_kept_until_it_may_change),
		cmocka_unit_test(a_longer_timeout_is_forgotten_after_a_day),
		cmocka_unit_test(a_shorter_timeout_counts_at_once),
		cmocka_unit_test(peaks_move_with_the_clock),
		cmocka_unit_test(peaks_stay_where_the_clock_is_right),
		cmocka_unit_test(a_clean_demand_deflates_peaks),
		cmocka_unit_test(nothing_deflates_peaks_before_the_first_sample),
		cmocka_unit_test(several_forced_checkpoints_inflate_demand),
		cmocka_unit_test(padding_counts_for_no_more_than_records),
	};

	return cmocka_run_group_tests_name("policy, demand", tests, NULL, NULL);
}
