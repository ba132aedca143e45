/*-------------------------------------------------------------------------
 *
 * test_timeouts.c
 *	  What another checkpoint_timeout would save.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"
#include "policy/internal.h"

/* Beside images: 100 records of 100 bytes a second.  An image takes 8000 bytes. */
#define RECORDS			100
#define RECORD_BYTES	100
#define IMAGE_BYTES		8000

/* A load: of these pages, half are changed within "half" seconds after a checkpoint. */
typedef struct Load
{
	double		pages;
	double		half;
	int			records;		/* a second */
	bool		counted;		/* the server counts the bytes of images, as from 19 on */
	int			job;			/* images of a job that begins in this second, if not 0 */
	int			job_begins;
} Load;

static const Load usual = {.pages = 10000, .half = 300, .records = RECORDS};

static double
images_within(const Load *load, double seconds)
{
	return load->pages * seconds / (seconds + load->half);
}

/* WAL of an interval, in bytes. */
static double
wal_within(const Load *load, double seconds)
{
	return seconds * load->records * RECORD_BYTES + IMAGE_BYTES * images_within(load, seconds);
}

/* The second after this one since the checkpoint, as the server counts it; returns its bytes. */
static int64_t
count_second(Driver *d, const Load *load, int second)
{
	int64_t		images = (int64_t) images_within(load, second + 1) - (int64_t) images_within(load, second);
	int64_t		bytes;

	if (second == load->job_begins)
		images += load->job;
	bytes = load->records * RECORD_BYTES + images * IMAGE_BYTES;
	d->sample.wal.records += load->records;
	d->sample.wal.images += images;
	d->sample.wal.image_bytes += load->counted ? images * IMAGE_BYTES : 0;
	d->sample.wal.bytes += bytes;
	return bytes;
}

static void
run_second(Driver *d, const Load *load, int second)
{
	driver_observe(d, SECOND, count_second(d, load, second));
}

/* So long an interval, and its checkpoint, which the next sample sees. */
static void
run_interval(Driver *d, const Load *load, int seconds)
{
	for (int i = 0; i < seconds; i++)
		run_second(d, load, i);
	driver_observe_redo(d, 1, 0);
}

/* Intervals of checkpoint_timeout; the first was not seen from its beginning. */
static Driver *
running(const Load *load, int64_t timeout, int intervals)
{
	Driver	   *d = driver_new();

	d->sample.settings.timeout_ms = timeout * SECOND;
	driver_observe(d, 0, 0);
	for (int i = 0; i <= intervals; i++)
		run_interval(d, load, (int) timeout);
	return d;
}

static WalsizerTimeoutAdvice
advise(const Driver *d, int64_t seconds)
{
	static const WalsizerFigures figures = {.demand = 100 * MB, .learned = 50 * MB};

	return walsizer_advise_timeout(&d->config, &d->state, &d->sample, &figures, seconds * SECOND);
}

static void
is_near(double value, double expected, double slack)
{
	if (!(value > expected - slack && value < expected + slack))
		fail_msg("%f is not %f, with %f more or less", value, expected, slack);
}

/* Does it say why it cannot tell? */
static void
cannot_tell(const Driver *d, const char *why)
{
	WalsizerTimeoutAdvice advice = advise(d, 900);

	assert_string_equal(advice.basis, why);
	assert_false(advice.known);
	assert_int_equal(advice.needed_mb, 0);
}

TEST(what_is_really_saved_lies_between_the_bounds)
{
	static const double halves[] = {1, 20, 300, 3000, 100000};

	for (int i = 0; i < 5; i++)
	{
		for (int counted = 0; counted < 2; counted++)
		{
			const Load	load = {.pages = 10000, .half = halves[i], .records = RECORDS, .counted = counted};
			const Driver *d = running(&load, 300, 4);

			for (int times = 2; times <= 12; times++)
			{
				WalsizerTimeoutAdvice advice = advise(d, 300 * times);
				double		saved = 1 - wal_within(&load, 300 * times) / (times * wal_within(&load, 300));

				assert_string_equal(advice.basis, "bounds");
				assert_true(advice.known);
				assert_true(advice.saved_least <= saved + 0.01);
				assert_true(advice.saved_most >= saved - 0.01);
			}
		}
	}
}

TEST(the_bounds_are_those_of_the_curve)
{
	const Driver *d = running(&usual, 300, 3);
	double		now = wal_within(&usual, 300);
	double		base = 300.0 * RECORDS * RECORD_BYTES;
	double		slope = 300 * (images_within(&usual, 300) - images_within(&usual, 240)) / 60;

	/* as many images again, or the line from the last fifth */
	is_near(advise(d, 900).saved_most, 1 - (3 * base + IMAGE_BYTES * images_within(&usual, 300)) / (3 * now), 0.01);
	is_near(advise(d, 900).saved_least,
			1 - (3 * base + IMAGE_BYTES * (images_within(&usual, 300) + 2 * slope)) / (3 * now), 0.01);
	is_near(advise(d, 300).saved_least, 0, 1e-9);
	is_near(advise(d, 300).saved_most, 0, 1e-9);
	assert_string_equal(advise(d, 300).basis, "measured");
}

/* The curve has been measured up to the timeout; between its steps it is straight. */
TEST(a_shorter_timeout_is_measured)
{
	const Driver *d = running(&usual, 900, 3);

	for (int seconds = 30; seconds < 900; seconds += 15)
	{
		WalsizerTimeoutAdvice advice = advise(d, seconds);
		double		written = wal_within(&usual, seconds) / seconds / (wal_within(&usual, 900) / 900);

		assert_string_equal(advice.basis, "measured");
		is_near(advice.saved_least, 1 - written, 0.03 * written);
		assert_true(advice.saved_least == advice.saved_most);
	}
	assert_true(advise(d, 1).saved_least < 0);
}

/* The largest demand grows as the WAL does; the limits and recovery are as for any size. */
TEST(the_size_is_for_the_largest_demand)
{
	Driver	   *d = running(&usual, 300, 3);
	WalsizerFigures figures = {.demand = 50 * MB, .learned = 200 * MB};
	WalsizerTimeoutAdvice advice =
		walsizer_advise_timeout(&d->config, &d->state, &d->sample, &figures, 900 * SECOND);
	int64_t		wal = (int64_t) ((1 - advice.saved_least) * 3 * 200 * MB);

	assert_int_equal(advice.needed_mb, walsizer_size_with_headroom(&d->config, &d->sample.settings, wal));
	assert_int_equal(advice.recovery_ms,
					 walsizer_recovery_time(&d->config, &d->state, &d->sample, advice.needed_mb));
	assert_int_equal(advice.limited_by, WALSIZER_UNLIMITED);
	figures.limits_mb[WALSIZER_LIMIT_DISK] = 100;
	advice = walsizer_advise_timeout(&d->config, &d->state, &d->sample, &figures, 900 * SECOND);
	assert_int_equal(advice.limited_by, WALSIZER_LIMIT_DISK);
}

/* What was long ago is forgotten: the sums are means of the last intervals. */
TEST(the_regression_forgets)
{
	const Load	before = {.pages = 10000, .half = 300, .records = 2 * RECORDS};
	Driver	   *d = running(&before, 30, 12);

	is_near(d->state.curve.mean_sums[0], 4 * 30.0 * RECORDS * RECORDS, 1);
	for (int i = 0; i < 200; i++)
		run_interval(d, &usual, 30);
	is_near(d->state.curve.mean_sums[0], 30.0 * RECORDS * RECORDS, 1);
}

TEST(images_take_no_more_than_all_wal)
{
	Driver	   *d = running(&usual, 300, 3);

	d->state.curve.image_bytes = 10 * d->state.curve.bytes;
	is_near(advise(d, 900).saved_most, 2.0 / 3, 1e-9);
}

TEST(it_takes_three_timed_intervals)
{
	const char *few = "cannot tell: fewer than three timed checkpoints in a row";
	Driver	   *d = running(&usual, 300, 2);

	cannot_tell(d, few);
	run_interval(d, &usual, 100);	/* a CHECKPOINT */
	cannot_tell(d, few);
	run_interval(d, &usual, 400);	/* a pause, in which the timer began anew */
	cannot_tell(d, few);
	for (int i = 0; i < 300; i++)	/* the counters are reset */
	{
		if (i == 150)
			d->sample.wal = (WalsizerWal) {0};
		run_second(d, &usual, i);
	}
	driver_observe_redo(d, 1, 0);
	cannot_tell(d, few);
	run_interval(d, &usual, 331);	/* a checkpointer that came late */
	assert_true(advise(d, 900).known);

	walsizer_forget(&d->state);
	cannot_tell(d, few);
	d->sample.write_lsn -= 1000;	/* samples that do not continue */
	d->sample.redo_lsn = d->sample.write_lsn;
	driver_observe(d, SECOND, 0);
	cannot_tell(d, few);
}

/* Each counter may begin anew by itself, and a late sample fills several steps. */
TEST(a_counter_that_goes_back_ends_the_curve)
{
	for (int counter = 0; counter < 3; counter++)
	{
		Driver	   *d = running(&usual, 300, 2);

		run_second(d, &usual, 0);
		if (counter == 0)
			d->sample.wal.records = d->state.curve.step_begin.records - 1;
		else if (counter == 1)
			d->sample.wal.images = d->state.curve.step_begin.images - 1;
		else
			d->sample.wal.bytes = d->state.curve.step_begin.bytes - 1;
		driver_observe(d, 298 * SECOND, 0);
		assert_int_equal(d->state.curve.steps, 29);
		driver_observe(d, 1 * SECOND, 0);
		assert_int_equal(d->state.curve.steps, 30);
		driver_observe_redo(d, 1, 0);
		assert_int_equal(d->state.curve.intervals, 2);
	}
}

/* Between two samples that are far apart the curve is straight: one that does not change is none. */
TEST(a_late_sample_makes_no_curve)
{
	const Load	load = {.pages = 100000, .half = 1e5, .records = RECORDS, .counted = true};

	for (int from = 0; from < 200; from += 10)
	{
		Driver	   *d = running(&load, 300, 0);

		for (int i = 0; i < 4; i++)
		{
			for (int second = 0; second < 300; second++)
			{
				/* nothing is seen for 100 seconds */
				if (second >= from && second < from + 100)
				{
					d->sample.write_lsn += (uint64_t) count_second(d, &load, second);
					d->sample.now += SECOND;
				}
				else
					run_second(d, &load, second);
			}
			driver_observe_redo(d, 1, 0);
		}
		assert_string_equal(advise(d, 900).basis, "bounds");
	}
}

/* Of the regression, too: other WAL before a CHECKPOINT, and counters that begin anew. */
TEST(an_interval_that_does_not_count_is_no_part_of_anything)
{
	Driver	   *d = running(&usual, 300, 3);
	WalsizerTimeoutAdvice before = advise(d, 900);

	for (int i = 0; i < 60; i++)
	{
		d->sample.wal.bytes += i * MB;
		run_second(d, &usual, i);
	}
	driver_observe_redo(d, 1, 0);
	d->sample.wal = (WalsizerWal) {0};
	run_interval(d, &usual, 300);
	run_interval(d, &usual, 300);
	assert_int_equal(d->state.curve.intervals, 4);
	assert_true(advise(d, 900).known);
	is_near(advise(d, 900).saved_least, before.saved_least, 0.001);
	is_near(advise(d, 900).saved_most, before.saved_most, 0.001);
}

/* Also the last one. */
TEST(all_steps_of_an_interval_count_for_its_change)
{
	const Driver *d = running(&usual, 300, 1);

	is_near(d->state.curve.totals[0], images_within(&usual, 300), 1);
}

TEST(a_load_that_changes_is_no_base)
{
	Load		load = usual;
	Driver	   *d = running(&load, 300, 0);

	for (int i = 0; i < 12; i++)
	{
		run_interval(d, &load, 300);
		load.pages *= 1.02;
	}
	cannot_tell(d, "cannot tell: the load changes");
	for (int i = 0; i < 12; i++)
		run_interval(d, &load, 300);
	assert_true(advise(d, 900).known);
	for (int i = 0; i < 12; i++)
	{
		run_interval(d, &load, 300);
		load.pages *= 0.98;
	}
	cannot_tell(d, "cannot tell: the load changes");
}

/*
 * Another timeout has not as many jobs less.  One of less than a tenth of the images is no
 * change, nor is one that begins with the interval: its pages may be those that change often.
 */
TEST(a_job_in_each_interval_is_no_base)
{
	Load		load = {.pages = 100000, .half = 1e5, .records = RECORDS, .counted = true};

	for (load.job_begins = 0; load.job_begins < 300; load.job_begins += 10)
	{
		load.job = 25;
		assert_string_equal(advise(running(&load, 300, 3), 900).basis, "bounds");
		load.job = 45;
		if (load.job_begins < 60)
			assert_string_equal(advise(running(&load, 300, 3), 900).basis, "bounds");
		else
			cannot_tell(running(&load, 300, 3), "cannot tell: the load changes");
	}
}

TEST(the_size_of_images_must_be_known)
{
	Load		load = usual;
	Driver	   *d;

	/* images come as evenly as records: nothing tells the two apart */
	load.half = 1e12;
	load.pages = 10.000001e12;
	d = running(&load, 300, 3);
	cannot_tell(d, "cannot tell: the size of images is not known");
	/* nor does one image more in three thousand */
	load.pages = 150.03e12;
	d = running(&load, 300, 3);
	cannot_tell(d, "cannot tell: the size of images is not known");
	load.pages = 10.000001e12;
	load.counted = true;
	d = running(&load, 300, 3);
	is_near(advise(d, 900).saved_least, 0, 0.01);
	/* no page image takes 20 bytes; one that takes 60 may be */
	d->state.curve.image_bytes = 20 * d->state.curve.mean[WALSIZER_CURVE_STEPS - 1];
	cannot_tell(d, "cannot tell: the size of images is not known");
	d->state.curve.image_bytes *= 3;
	assert_true(advise(d, 900).known);
	/* a single one in each interval has a size, too */
	for (int i = 0; i < WALSIZER_CURVE_STEPS; i++)
		d->state.curve.mean[i] = 1;
	for (int i = 0; i < WALSIZER_CURVE_INTERVALS; i++)
		d->state.curve.totals[i] = 1;
	d->state.curve.image_bytes = IMAGE_BYTES;
	assert_true(advise(d, 900).known);
	/* from 10 to 11 in 30 is a tenth, which is not too much */
	memcpy(d->state.curve.totals, (double[]) {10, 9, 11}, 3 * sizeof(double));
	assert_true(advise(d, 900).known);

	/* no images: nothing can be saved */
	load = (Load) {.half = 1, .records = RECORDS};
	d = running(&load, 300, 3);
	is_near(advise(d, 900).saved_most, 0, 1e-9);
	/* never more than there is */
	d->state.curve.image_bytes = 1e9;
	for (int i = 0; i < WALSIZER_CURVE_STEPS; i++)
		d->state.curve.mean[i] = 10;
	is_near(advise(d, 900).saved_most, 2.0 / 3, 1e-9);

	d->state.curve.records = 0;
	cannot_tell(d, "cannot tell: no WAL is written");
	d->state.curve.bytes = 0;
	cannot_tell(d, "cannot tell: no WAL is written");
}

TEST(nothing_is_said_while_checkpoints_are_forced_or_on_a_standby)
{
	Driver	   *d = running(&usual, 300, 3);
	WalsizerFigures figures = {.forced = 1};

	assert_string_equal(walsizer_advise_timeout(&d->config, &d->state, &d->sample, &figures, 900 * SECOND).basis,
						"cannot tell: checkpoints are forced");
	d->sample.standby = true;
	assert_string_equal(walsizer_advise_timeout(&d->config, &d->state, &d->sample, &figures, 900 * SECOND).basis,
						"cannot tell: a standby writes no WAL");
}

/* After a change, a record takes as much less WAL as was said, whatever the load is. */
TEST(what_was_said_is_compared_with_what_came)
{
	Load		load = usual;
	Driver	   *d = running(&load, 300, 3);
	WalsizerTimeoutAdvice said = advise(d, 900);
	double		saved;

	assert_false(walsizer_timeout_saved(&d->state, &saved));
	d->sample.settings.timeout_ms = 900 * SECOND;
	run_interval(d, &load, 900);
	assert_true(d->state.curve.said.before_ms == 300 * SECOND);
	assert_true(d->state.curve.said.least == said.saved_least);
	assert_true(d->state.curve.said.most == said.saved_most);
	for (int i = 0; i < 3; i++)
	{
		assert_false(walsizer_timeout_saved(&d->state, &saved));
		run_interval(d, &load, 900);
	}
	assert_true(walsizer_timeout_saved(&d->state, &saved));
	is_near(saved, 1 - wal_within(&load, 900) / (3 * wal_within(&load, 300)), 0.01);
	assert_true(saved > said.saved_least - 0.01 && saved < said.saved_most + 0.01);
	d->state.curve.records = 1;
	assert_true(walsizer_timeout_saved(&d->state, &saved));
	d->state.curve.records = 0;
	assert_false(walsizer_timeout_saved(&d->state, &saved));

	/* nothing is known yet of this one, so nothing is said of the next */
	d->sample.settings.timeout_ms = 1800 * SECOND;
	run_second(d, &load, 0);
	assert_true(d->state.curve.said.before_ms == 0);
}

static void
timeouts_are(int64_t present, const int64_t *expected)
{
	WalsizerSettings settings = {.timeout_ms = present * SECOND};
	int64_t		timeouts[WALSIZER_TIMEOUTS];
	int			number = walsizer_timeouts(&settings, timeouts);

	for (int i = 0; i < number; i++)
		assert_int_equal(timeouts[i], expected[i] * SECOND);
	assert_int_equal(expected[number], 0);
}

TEST(the_present_timeout_is_among_them)
{
	timeouts_are(30, (int64_t[]) {30, 300, 900, 1800, 3600, 0});
	timeouts_are(300, (int64_t[]) {300, 900, 1800, 3600, 0});
	timeouts_are(600, (int64_t[]) {300, 600, 900, 1800, 3600, 0});
	timeouts_are(3600, (int64_t[]) {300, 900, 1800, 3600, 0});
	timeouts_are(86400, (int64_t[]) {300, 900, 1800, 3600, 86400, 0});
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_really_saved_lies_between_the_bounds),
		cmocka_unit_test(the_bounds_are_those_of_the_curve),
		cmocka_unit_test(a_shorter_timeout_is_measured),
		cmocka_unit_test(the_size_is_for_the_largest_demand),
		cmocka_unit_test(the_regression_forgets),
		cmocka_unit_test(images_take_no_more_than_all_wal),
		cmocka_unit_test(it_takes_three_timed_intervals),
		cmocka_unit_test(a_counter_that_goes_back_ends_the_curve),
		cmocka_unit_test(a_late_sample_makes_no_curve),
		cmocka_unit_test(an_interval_that_does_not_count_is_no_part_of_anything),
		cmocka_unit_test(all_steps_of_an_interval_count_for_its_change),
		cmocka_unit_test(a_load_that_changes_is_no_base),
		cmocka_unit_test(a_job_in_each_interval_is_no_base),
		cmocka_unit_test(the_size_of_images_must_be_known),
		cmocka_unit_test(nothing_is_said_while_checkpoints_are_forced_or_on_a_standby),
		cmocka_unit_test(what_was_said_is_compared_with_what_came),
		cmocka_unit_test(the_present_timeout_is_among_them),
	};

	return cmocka_run_group_tests_name("policy, other timeouts", tests, NULL, NULL);
}
