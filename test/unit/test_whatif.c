/*-------------------------------------------------------------------------
 *
 * test_whatif.c
 *	  What other sizes would mean, and what everything is called.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"

/* 600MB per timeout now; 400, 800 and 1600MB in three hours that are remembered. */
static Driver *
remembering(WalsizerFigures *figures)
{
	Driver	   *d = driver_new();

	d->sample.hour = 671 * WALSIZER_PEAK_SLOTS; /* the first slot */
	remember(d, d->sample.hour, 400 * MB, 1);
	remember(d, d->sample.hour - 1, 800 * MB, 1);
	remember(d, d->sample.hour - 2, 1600 * MB, 1);
	remember(d, d->sample.hour - 7 * 24 - 2, 9000 * MB, 1);	/* too old */
	d->config.replay_rate = 40.0 * MB;
	*figures = (WalsizerFigures) {
		.in_effect_mb = 1024, .demand = 600 * MB, .limits_mb = {
			[WALSIZER_LIMIT_MAX] = 1500, [WALSIZER_LIMIT_DISK] = 3000, [WALSIZER_LIMIT_RECOVERY] = 2000,
		},
	};
	return d;
}

static WalsizerWhatIf
what_if(const Driver *d, const WalsizerFigures *figures, int64_t mb)
{
	return walsizer_what_if(&d->config, &d->state, &d->sample, figures, mb);
}

/* Checkpoints are as far apart as the trigger point is filled, at most one timeout. */
TEST(a_size_is_judged_by_demand)
{
	WalsizerFigures figures;
	Driver	   *d = remembering(&figures);
	WalsizerWhatIf what = what_if(d, &figures, 608);	/* 20 segments, 320MB */
	int64_t		enough = walsizer_size_for(600 * MB, &d->sample.settings);

	assert_int_equal(what.size_mb, 608);
	assert_int_equal(what.trigger_point, 320 * MB);
	assert_int_equal(what.every_now_ms, 160 * SECOND);
	assert_int_equal(what.every_at_peak_ms, 60 * SECOND);
	assert_true(what.forced_fraction == 1.0);
	assert_int_equal(what.recovery_ms, 15200);

	what = what_if(d, &figures, walsizer_size_for(800 * MB, &d->sample.settings));
	assert_int_equal(what.every_now_ms, 300 * SECOND);
	assert_true(what.forced_fraction == 1.0 / 3);
	what = what_if(d, &figures, walsizer_size_for(800 * MB, &d->sample.settings) - 16);
	assert_true(what.forced_fraction == 2.0 / 3);
	what = what_if(d, &figures, 8000);
	assert_true(what.forced_fraction == 0.0);
	assert_int_equal(what.every_at_peak_ms, 300 * SECOND);

	/* just enough, and not any more: WAL that lasts for a timeout is timed all the same */
	assert_int_equal(what_if(d, &figures, enough).every_now_ms, 300 * SECOND);
	assert_int_equal(what_if(d, &figures, enough - 16).every_now_ms, 300 * SECOND);
	assert_int_equal(what_if(d, &figures, enough - 48).every_now_ms, 592 * SECOND / 2);
	figures.demand = 3200 * MB;
	assert_int_equal(what_if(d, &figures, 608).every_at_peak_ms, 30 * SECOND);

	/* nothing is remembered, or a single hour, or nothing is written */
	d = driver_new();
	assert_true(what_if(d, &figures, 608).forced_fraction == 0.0);
	remember(d, d->sample.hour, 400 * MB, 1);
	assert_true(what_if(d, &figures, 608).forced_fraction == 1.0);
	figures.demand = 0;
	assert_int_equal(what_if(d, &figures, 608).every_now_ms, 300 * SECOND);
	figures.demand = 1;
	assert_int_equal(what_if(d, &figures, INT32_MAX).every_now_ms, 300 * SECOND);
}

TEST(the_limit_that_forbids_a_size_is_named)
{
	WalsizerFigures figures;
	Driver	   *d = remembering(&figures);

	assert_int_equal(what_if(d, &figures, 1499).limited_by, WALSIZER_UNLIMITED);
	assert_int_equal(what_if(d, &figures, 1500).limited_by, WALSIZER_UNLIMITED);
	assert_int_equal(what_if(d, &figures, 1501).limited_by, WALSIZER_LIMIT_MAX);
	assert_int_equal(what_if(d, &figures, 2000).limited_by, WALSIZER_LIMIT_MAX);
	assert_int_equal(what_if(d, &figures, 2001).limited_by, WALSIZER_LIMIT_RECOVERY);
	assert_int_equal(what_if(d, &figures, 3000).limited_by, WALSIZER_LIMIT_RECOVERY);
	assert_int_equal(what_if(d, &figures, 3001).limited_by, WALSIZER_LIMIT_DISK);
	figures.limits_mb[WALSIZER_LIMIT_DISK] = figures.limits_mb[WALSIZER_LIMIT_RECOVERY] = 0;	/* there are none */
	assert_int_equal(what_if(d, &figures, 1500).limited_by, WALSIZER_UNLIMITED);
	assert_int_equal(what_if(d, &figures, 3001).limited_by, WALSIZER_LIMIT_MAX);
	figures.limits_mb[WALSIZER_LIMIT_DISK] = figures.limits_mb[WALSIZER_LIMIT_RECOVERY] = 1;
	assert_int_equal(what_if(d, &figures, 2).limited_by, WALSIZER_LIMIT_DISK);
	figures.limits_mb[WALSIZER_LIMIT_DISK] = 0;
	assert_int_equal(what_if(d, &figures, 2).limited_by, WALSIZER_LIMIT_RECOVERY);
}

static void
candidates_are(int64_t in_effect_mb, int64_t segment_mb, int64_t wanted, const int64_t *expected)
{
	WalsizerSettings settings = {segment_mb * MB, in_effect_mb, 0.9, 300000};
	int64_t		sizes[WALSIZER_CANDIDATES];
	int			number = walsizer_candidates(&settings, wanted, sizes);

	for (int i = 0; i < number; i++)
		assert_int_equal(sizes[i], expected[i]);
	assert_int_equal(expected[number], 0);
}

/* From half to eight times the value, and the wanted size where it belongs. */
TEST(candidates_are_parts_and_multiples)
{
	candidates_are(1024, 16, 1024, (int64_t[]) {512, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 0});
	candidates_are(1024, 16, 1504, (int64_t[]) {512, 1024, 1504, 1536, 2048, 3072, 4096, 6144, 8192, 0});
	candidates_are(1024, 16, 496, (int64_t[]) {496, 512, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 0});
	candidates_are(1024, 16, 9600, (int64_t[]) {512, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 9600, 0});
	candidates_are(1024, 16, 8192, (int64_t[]) {512, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 0});

	/* whole segments, except the value itself; at least two of them */
	candidates_are(100, 16, 100, (int64_t[]) {48, 100, 144, 192, 288, 400, 592, 800, 0});
	candidates_are(80, 64, 128, (int64_t[]) {128, 192, 320, 448, 640, 0});

	/* one and a half times and twice of it are the same segments */
	candidates_are(11, 8, 11, (int64_t[]) {11, 16, 32, 40, 64, 88, 0});

	/* half of it is two segments */
	candidates_are(64, 16, 64, (int64_t[]) {32, 64, 96, 128, 192, 256, 384, 512, 0});

	/* less than that, and more than the server accepts */
	candidates_are(2, 1, 2, (int64_t[]) {2, 3, 4, 6, 8, 12, 16, 0});
	candidates_are(INT32_MAX, 1024, 2000, (int64_t[]) {2000, 1073740800, INT32_MAX, 0});
}

/* Monitoring matches the codes; each value has its own, and none is without. */
TEST(everything_has_a_name_of_its_own)
{
	const char *names[5][WALSIZER_BECAUSE_DISK_FULL + 1] = {{NULL}};
	const int	last[5] = {
		WALSIZER_CHECKPOINT, WALSIZER_BECAUSE_DISK_FULL, WALSIZER_BECAUSE_DISK_FULL, WALSIZER_LIMITS - 1,
		WALSIZER_FAILED,
	};

	for (int i = 0; i <= WALSIZER_BECAUSE_DISK_FULL; i++)
	{
		names[0][i] = walsizer_action_name((WalsizerAction) i);
		names[1][i] = walsizer_reason_code((WalsizerReason) i);
		names[2][i] = walsizer_reason_text((WalsizerReason) i);
		names[3][i] = walsizer_limit_name((WalsizerLimit) i);
		names[4][i] = walsizer_outcome_name((WalsizerOutcome) i);
	}
	for (int kind = 0; kind < 5; kind++)
		for (int i = 0; i <= WALSIZER_BECAUSE_DISK_FULL; i++)
		{
			assert_int_equal(strcmp(names[kind][i], "unknown") == 0, i > last[kind]);
			assert_int_equal(names[kind][i][0] == '\0', kind == 3 && i == WALSIZER_UNLIMITED);
			for (int j = 0; j < i && i <= last[kind]; j++)
				assert_string_not_equal(names[kind][i], names[kind][j]);
		}
	assert_string_equal(walsizer_action_name((WalsizerAction) -1), "unknown");
	assert_string_equal(walsizer_reason_code((WalsizerReason) -1), "unknown");
	assert_string_equal(walsizer_reason_code((WalsizerReason) (WALSIZER_BECAUSE_DISK_FULL + 1)), "unknown");
	assert_string_equal(walsizer_reason_text((WalsizerReason) (WALSIZER_BECAUSE_DISK_FULL + 1)), "unknown");
	assert_string_equal(walsizer_limit_name((WalsizerLimit) -1), "unknown");
	assert_string_equal(walsizer_outcome_name((WalsizerOutcome) -1), "unknown");
}

/* The codes that state files and monitoring rely on: they never change. */
TEST(codes_never_change)
{
	const char *const codes[] = {
		"invalid_sample", "started", "sufficient", "forced", "predicted", "demand_fell",
		"limit_fell", "changed", "recently_changed", "waiting", "edit_hidden", "disabled",
		"primary", "revert", "edited", "boost", "boost_over", "late", "disk_full",
	};
	const char *const actions[] = {"none", "raise", "lower", "external", "revert", "checkpoint"};
	const char *const limits[] = {"", "max", "disk", "recovery"};
	const char *const outcomes[] = {
		"none", "applied", "dry run", "forbidden", "overridden", "refused", "failed"
	};

	for (int i = 0; i <= WALSIZER_BECAUSE_DISK_FULL; i++)
		assert_string_equal(walsizer_reason_code((WalsizerReason) i), codes[i]);
	for (int i = 0; i <= WALSIZER_CHECKPOINT; i++)
		assert_string_equal(walsizer_action_name((WalsizerAction) i), actions[i]);
	for (int i = 0; i < WALSIZER_LIMITS; i++)
		assert_string_equal(walsizer_limit_name((WalsizerLimit) i), limits[i]);
	for (int i = 0; i <= WALSIZER_FAILED; i++)
		assert_string_equal(walsizer_outcome_name((WalsizerOutcome) i), outcomes[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_size_is_judged_by_demand),
		cmocka_unit_test(the_limit_that_forbids_a_size_is_named),
		cmocka_unit_test(candidates_are_parts_and_multiples),
		cmocka_unit_test(everything_has_a_name_of_its_own),
		cmocka_unit_test(codes_never_change),
	};

	return cmocka_run_group_tests_name("policy, what if, and names", tests, NULL, NULL);
}
