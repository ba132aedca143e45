/*-------------------------------------------------------------------------
 *
 * test_arithmetic.c
 *	  The server's arithmetic, against a brute-force table.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"
#include "policy/internal.h"

/* CalculateCheckpointSegments() of xlog.c, as it stands there. */
static int
server_segments(int max_wal_size_mb, int segment_size, double completion_target)
{
	double		target;
	int			segments;

	target = (double) (max_wal_size_mb / (segment_size / (1024 * 1024))) /
		(1.0 + completion_target);
	segments = (int) target;
	if (segments < 1)
		segments = 1;
	return segments;
}

TEST(segments_are_the_servers)
{
	for (int64_t s = 1; s <= 1024; s *= 2)
		for (int c = 0; c <= 100; c++)
			for (int64_t mb = s; mb < 2 * s + 400 * s; mb += s > 4 ? s / 4 + 1 : 1)
			{
				WalsizerSettings settings = {s * MB, mb, c / 100.0, 1000};

				assert_int_equal(walsizer_checkpoint_segments(mb, &settings),
								 server_segments((int) mb, (int) (s * MB), c / 100.0));
			}
}

/*
 * Is a checkpoint forced with wal bytes after a redo pointer at this offset?
 * XLogCheckpointNeeded() asks it when a segment has been filled.
 */
static bool
forces(int64_t mb, int64_t wal, int64_t offset, const WalsizerSettings *settings)
{
	int64_t		s = settings->segment_bytes;
	int64_t		filled = (offset + wal) / s - 1;	/* the last one, from 0 */

	return filled >= server_segments((int) mb, (int) s, settings->completion_target) - 1;
}

static void
check_size(int64_t wal, const WalsizerSettings *settings)
{
	int64_t		s = settings->segment_bytes;
	int64_t		mb = walsizer_size_for(wal, settings);
	const int64_t offsets[] = {0, 1, s / 2, s - 8192, s - 1};
	bool		less_forces = false;

	assert_int_equal(mb % (s / MB), 0);
	assert_true(mb >= 2 * s / MB);
	for (int i = 0; i < 5; i++)
	{
		assert_false(forces(mb, wal, offsets[i], settings));
		less_forces |= forces(mb - 2 * s / MB, wal, offsets[i], settings);
	}
	/* two segments less would not do: at most one too many */
	if (mb > 3 * s / MB)
		assert_true(less_forces);
}

TEST(size_suffices_and_is_small)
{
	for (int64_t s = 1; s <= 1024; s *= 2)
		for (int c = 0; c <= 100; c++)
			for (int64_t n = 0; n < 400; n += n < 40 ? 1 : 9)
			{
				WalsizerSettings settings = {s * MB, 2 * s, c / 100.0, 1000};

				check_size(n * s * MB, &settings);
				check_size(n * s * MB + 1, &settings);
				check_size(n * s * MB + s * MB - 1, &settings);
			}
}

TEST(examples_of_the_manual)
{
	WalsizerSettings settings = {16 * MB, 1024, 0.9, 300000};

	assert_int_equal(walsizer_checkpoint_segments(1024, &settings), 33);
	assert_int_equal(walsizer_trigger_point(1024, &settings), 528 * MB);
	assert_int_equal(walsizer_checkpoint_segments(320, &settings), 10);
	assert_int_equal(walsizer_size_for(500 * MB, &settings), 1008);
	assert_int_equal(walsizer_size_for(0, &settings), 32);
}

TEST(the_largest_sizes_do_not_overflow)
{
	for (int64_t s = 1; s <= 1024; s *= 2)
	{
		WalsizerSettings settings = {s * MB, INT32_MAX, 1.0, 1000};
		int64_t		most = INT32_MAX / s * s;

		assert_int_equal(walsizer_size_for(INT64_MAX, &settings), most);
		assert_int_equal(walsizer_size_for(INT64_MIN, &settings), 2 * s);
		assert_true(walsizer_trigger_point(INT32_MAX, &settings) > 0);
		assert_true(walsizer_trigger_point(INT32_MAX, &settings) <= INT32_MAX * MB);
	}
}

/* More than a quarter of the size said last is news, and then it is said. */
TEST(a_size_is_news_beyond_a_quarter)
{
	static const struct
	{
		int64_t		mb;
		int64_t		said_mb;
		bool		is_news;
	}			cases[] = {
		{1000, 1000, false}, {1250, 1000, false}, {1251, 1000, true}, {750, 1000, false},
		{749, 1000, true}, {1, 0, true}, {0, 0, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		int64_t		said_mb = cases[i].said_mb;

		assert_int_equal(walsizer_is_news(cases[i].mb, &said_mb), cases[i].is_news);
		assert_int_equal(said_mb, cases[i].is_news ? cases[i].mb : cases[i].said_mb);
	}
}

/* A size for demand with headroom, to the byte. */
TEST(headroom_is_a_factor_on_demand)
{
	WalsizerSettings settings = {16 * MB, 1024, 0.9, 300000};
	WalsizerConfig config = {.headroom = 1.5};

	assert_int_equal(walsizer_size_with_headroom(&config, &settings, 320 * MB),
					 walsizer_size_for(480 * MB, &settings));
	assert_int_equal(walsizer_size_with_headroom(&config, &settings, 320 * MB + 2),
					 walsizer_size_for(480 * MB + 1, &settings));
	assert_true(walsizer_size_for(480 * MB, &settings) < walsizer_size_for(480 * MB + 1, &settings));
}

/* What the other files share: defined for every value. */
TEST(sums_cannot_overflow)
{
	assert_int_equal(walsizer_to_int64(-1.0), 0);
	assert_int_equal(walsizer_to_int64(0.0 / 1.0), 0);
	assert_int_equal(walsizer_to_int64(0.5), 0);
	assert_int_equal(walsizer_to_int64(1.0), 1);
	assert_int_equal(walsizer_to_int64(7.9), 7);
	assert_int_equal(walsizer_to_int64(1e30), INT64_C(1) << 60);
	assert_int_equal(walsizer_to_int64((double) ((INT64_C(1) << 60) - 1024)), (INT64_C(1) << 60) - 1024);
	assert_int_equal(walsizer_distance(5, 5), 0);
	assert_int_equal(walsizer_distance(5, 4), 0);
	assert_int_equal(walsizer_distance(5, 6), 1);
	assert_int_equal(walsizer_distance(0, UINT64_MAX), INT64_C(1) << 60);
	assert_int_equal(walsizer_distance(1, (UINT64_C(1) << 60)), (INT64_C(1) << 60) - 1);
	assert_int_equal(walsizer_patience(299999), 299999);
	assert_int_equal(walsizer_patience(300001), 300000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_are_the_servers),
		cmocka_unit_test(size_suffices_and_is_small),
		cmocka_unit_test(examples_of_the_manual),
		cmocka_unit_test(the_largest_sizes_do_not_overflow),
		cmocka_unit_test(a_size_is_news_beyond_a_quarter),
		cmocka_unit_test(headroom_is_a_factor_on_demand),
		cmocka_unit_test(sums_cannot_overflow),
	};

	return cmocka_run_group_tests_name("policy, the server's arithmetic", tests, NULL, NULL);
}
