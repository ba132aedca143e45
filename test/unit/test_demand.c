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
	assert_in_range(walsizer_learned_demand(&d->state, hour, 1),
					1199 * MB, 1205 * MB);
	/* all of the lookback counts, and one hour more has none of it left */
	assert_true(walsizer_learned_demand(&d->state, hour + 5, 5) > 0);
	assert_true(walsizer_learned_demand(&d->state, hour + 7, 5) == 0);
	/* a wall clock that was set back forgets nothing */
	assert_true(walsizer_learned_demand(&d->state, hour - 3, 5) > 0);

	walsizer_forget(&d->state);
	assert_int_equal(walsizer_learned_demand(&d->state, hour, 100), 0);
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
	assert_in_range(walsizer_learned_demand(&d->state, hour, 1), 1490 * MB, 1900 * MB);
}

/* The largest of an hour, as measured. */
TEST(an_hour_keeps_its_largest_demand)
{
	Driver	   *d = driver_new();
	const WalsizerPeak *peak;

	walsizer_remember(&d->state, 500000, 100 * MB, 300000);
	walsizer_remember(&d->state, 500000, 99 * MB, 60000);
	walsizer_remember(&d->state, 500000, 100 * MB, 60000);
	peak = walsizer_peak_of(&d->state, 500000);
	assert_non_null(peak);
	assert_int_equal(peak->demand, 100 * MB);
	assert_int_equal(peak->timeout_ms, 300000);
	walsizer_remember(&d->state, 500000, 100 * MB + 1, 60000);
	assert_int_equal(peak->demand, 100 * MB + 1);
	assert_int_equal(peak->timeout_ms, 60000);
	walsizer_remember(&d->state, 500000, INT64_MAX, 60000);
	assert_int_equal(peak->demand, INT64_C(1) << 60);

	/* an hour that is older than any lookback gives its place away */
	walsizer_remember(&d->state, 500000 + WALSIZER_PEAK_SLOTS, MB, 60000);
	assert_null(walsizer_peak_of(&d->state, 500000));
	assert_int_equal(walsizer_peak_of(&d->state, 500000 + WALSIZER_PEAK_SLOTS)->demand, MB);
	walsizer_remember(&d->state, 500000, MB / 2, 60000);	/* the clock was set back */
	assert_int_equal(walsizer_peak_of(&d->state, 500000)->demand, MB / 2);
}

/* A job that comes half an hour later each week still finds its peak, whatever the lookback. */
TEST(the_hour_of_the_longest_lookback_has_a_slot_of_its_own)
{
	Driver	   *d = driver_new();
	int64_t		hours = walsizer_most.lookback_hours;

	assert_int_equal(hours, 31 * 24);
	walsizer_remember(&d->state, 500000, 7 * MB, 1);
	walsizer_remember(&d->state, 500000 + hours + 1, MB, 1);
	assert_int_equal(walsizer_learned_demand(&d->state, 500000 + hours + 1, hours), 7 * MB);
	assert_int_equal(walsizer_learned_demand(&d->state, 500000 + hours + 2, hours), MB);
}

TEST(what_is_no_demand_is_not_remembered)
{
	Driver	   *d = driver_new();
	static const WalsizerState nothing;

	walsizer_remember(&d->state, 0, MB, 1);
	walsizer_remember(&d->state, -1, MB, 1);
	walsizer_remember(&d->state, 5, 0, 1);
	walsizer_remember(&d->state, 5, -1, 1);
	walsizer_remember(&d->state, 5, MB, 0);
	walsizer_remember(&d->state, 5, MB, -1);
	assert_memory_equal(&d->state, &nothing, sizeof(nothing));
	assert_null(walsizer_peak_of(&d->state, 5));
	assert_null(walsizer_peak_of(&d->state, 0));
	assert_null(walsizer_peak_of(&d->state, -1));
	assert_int_equal(walsizer_learned_demand(&d->state, 5, 100), 0);
	walsizer_remember(&d->state, 1, 1, 1);
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

			walsizer_remember(&d->state, now + off, 7 * MB, 1);
			assert_int_equal(walsizer_learned_demand(&d->state, now, lookback),
							 counts ? 7 * MB : 0);
		}
}

/* The maximum of all hours is computed when it may have changed, not at each sample. */
TEST(what_was_learned_is_kept_until_it_may_change)
{
	Driver	   *d = driver_new();
	WalsizerLearned *learned = &d->state.learned;

	walsizer_remember(&d->state, d->sample.hour, 7 * MB, 1);
	assert_int_equal(walsizer_learned_now(&d->state, &d->sample, 24), 7 * MB);
	learned->demand = 1;
	assert_int_equal(walsizer_learned_now(&d->state, &d->sample, 24), 1);
	assert_int_equal(walsizer_learned_now(&d->state, &d->sample, 25), 7 * MB);
	learned->demand = 1;
	assert_int_equal(walsizer_learned_now(&d->state, &d->sample, 25), 1);
	d->sample.hour++;
	assert_int_equal(walsizer_learned_now(&d->state, &d->sample, 25), 7 * MB);
	learned->demand = 1;
	assert_int_equal(walsizer_learned_now(&d->state, &d->sample, 25), 1);
	assert_int_equal(walsizer_learned_now(&d->state, &d->sample, 24), 7 * MB);
	d->sample.hour -= 2;
	learned->demand = 1;
	assert_int_equal(walsizer_learned_now(&d->state, &d->sample, 24), 7 * MB);
	d->sample.hour += 2;
	assert_int_equal(walsizer_learned_now(&d->state, &d->sample, 25), 7 * MB);
	learned->demand = 1;
	walsizer_remember(&d->state, d->sample.hour, 3 * MB, 1);
	assert_int_equal(walsizer_learned_now(&d->state, &d->sample, 25), 7 * MB);
	learned->demand = 1;
	walsizer_remember(&d->state, d->sample.hour, 3 * MB, 1);	/* known already */
	assert_int_equal(walsizer_learned_now(&d->state, &d->sample, 25), 1);
	walsizer_forget(&d->state);
	assert_int_equal(walsizer_learned_now(&d->state, &d->sample, 25), 0);
	d->sample.hour = 1;
	assert_int_equal(walsizer_learned_now(&d->state, &d->sample, 25), 0);
	walsizer_remember(&d->state, 1, MB, 1);
	assert_int_equal(walsizer_learned_now(&d->state, &d->sample, 25), MB);
	walsizer_forget(&d->state);
	assert_int_equal(walsizer_learned_now(&d->state, &d->sample, 25), 0);
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
	};

	return cmocka_run_group_tests_name("policy, demand", tests, NULL, NULL);
}
