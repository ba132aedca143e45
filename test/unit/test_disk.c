/*-------------------------------------------------------------------------
 *
 * test_disk.c
 *	  The disk limit and the other limits by themselves, with figures by hand.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"
#include "policy/internal.h"

/* The server does not start with less than two segments. */
TEST(sizes_are_whole_segments_and_at_least_two)
{
	WalsizerSettings settings = driver_new()->sample.settings;

	assert_int_equal(walsizer_whole_segments(1003, &settings), 992);
	assert_int_equal(walsizer_whole_segments(1008, &settings), 1008);
	assert_int_equal(walsizer_whole_segments(47, &settings), 32);
	assert_int_equal(walsizer_whole_segments(31, &settings), 32);
	assert_int_equal(walsizer_whole_segments(0, &settings), 32);
}

/* A server whose disk was read a second ago, with so much free. */
static Driver *
looked_a_second_ago(int64_t free)
{
	Driver	   *d = driver_new();

	d->state.disk = (WalsizerDisk) {
		.known = true, .free = free,
		.looked_at = d->sample.now - SECOND, .looked_lsn = d->sample.write_lsn,
	};
	return d;
}

static bool
look_is_due(const Driver *d)
{
	return walsizer_look_is_due(&d->config, &d->state, &d->sample);
}

/* Ten samples at most, and none of them between which the clock went back. */
TEST(the_disk_is_read_after_ten_samples)
{
	Driver	   *d = looked_a_second_ago(INT64_C(1) << 50);

	assert_false(look_is_due(d));
	d->state.disk.looked_at = d->sample.now - 9999;
	assert_false(look_is_due(d));
	d->state.disk.looked_at--;
	assert_true(look_is_due(d));
	d->state.disk.looked_at = d->sample.now / 2;	/* long ago */
	assert_true(look_is_due(d));
	d->state.disk.looked_at = d->sample.now;
	assert_false(look_is_due(d));
	d->state.disk.looked_at++;
	assert_true(look_is_due(d));

	/* nor if it was never read, or if a session asks */
	d = looked_a_second_ago(INT64_C(1) << 50);
	d->state.disk.known = false;
	assert_true(look_is_due(d));
	d = looked_a_second_ago(INT64_C(1) << 50);
	d->sample.act_now = true;
	assert_true(look_is_due(d));

	/* but never for a sample that makes no sense */
	d->sample.now = INT64_MIN;
	assert_false(look_is_due(d));
}

static void
read_disk(Driver *d, int64_t ms, int64_t free, int64_t wal, int64_t held)
{
	d->sample.now += ms;
	d->sample.disk_tried = d->sample.disk_read = true;
	d->sample.disk_free = free;
	d->sample.disk_wal = wal;
	d->sample.disk_held = held;
	walsizer_observe_disk(&d->state, &d->sample);
}

/* Where that takes long, it is to cost no more than a thousandth of the time. */
TEST(a_disk_that_is_dear_to_read_is_read_less_often)
{
	Driver	   *d = driver_new();
	const int64_t took[] = {0, 10, 11, 40, 300, 301, INT64_MAX, -1};
	const int64_t after[] = {10, 10, 11, 40, 300, 300, 300, 10};

	for (int i = 0; i < 8; i++)
	{
		d->sample.look_ms = took[i];
		read_disk(d, 0, INT64_C(1) << 50, 0, 0);
		d->sample.now += after[i] * SECOND - 1;
		assert_false(look_is_due(d));
		d->sample.now++;
		assert_true(look_is_due(d));
	}

	/* unless space may be gone: 64MB/s, for 11 seconds until the next sample */
	d->sample.look_ms = 40;
	read_disk(d, 0, 16 * 11 * 64 * MB, 0, 0);
	d->state.disk.others_rate = 0;
	d->sample.now += 9 * SECOND;
	assert_false(look_is_due(d));
	d->sample.now += SECOND;
	assert_true(look_is_due(d));
	d->config.sample_interval_ms = 60 * SECOND;
	read_disk(d, 0, INT64_C(1) << 50, 0, 0);
	d->sample.now += 599 * SECOND;
	assert_false(look_is_due(d));
}

/*
 * A sixteenth of the free space could be gone until the next sample: two
 * seconds of our own WAL, of what others take, and of 64MB/s that may begin.
 */
TEST(the_disk_is_read_before_a_sixteenth_can_be_gone)
{
	Driver	   *d = looked_a_second_ago(16 * (200 + 100 + 128) * MB);

	d->sample.write_lsn += 100 * MB;
	d->state.disk.others_rate = 50 * MB;
	assert_true(look_is_due(d));
	d->state.disk.free += 16;
	assert_false(look_is_due(d));

	/* twice in a moment: one second until the next */
	d = looked_a_second_ago(16 * 64 * MB);
	d->state.disk.looked_at = d->sample.now;
	assert_true(look_is_due(d));
	d->state.disk.free += 16;
	assert_false(look_is_due(d));
	d->state.disk.looked_lsn--;	/* a byte in less than a millisecond: 1000 in a second */
	assert_true(look_is_due(d));
	d->state.disk.free = 16 * (64 * MB + 1000);
	assert_true(look_is_due(d));
	d->state.disk.free += 16;
	assert_false(look_is_due(d));
}

/* What others take is what is missing and is not our WAL. */
TEST(what_others_take_is_measured)
{
	Driver	   *d = driver_new();
	const WalsizerDisk *disk = &d->state.disk;

	read_disk(d, 0, 9000 * MB, 600 * MB, 400 * MB);
	assert_true(disk->known);
	assert_int_equal(disk->looked_at, d->sample.now);
	assert_int_equal(disk->looked_lsn, d->sample.write_lsn);
	assert_int_equal(disk->others_rate, 0);

	/* our own WAL moves from free to ours to held back */
	read_disk(d, 2000, 8500 * MB, 1000 * MB, 500 * MB);
	assert_int_equal(disk->others_rate, 0);
	read_disk(d, 2000, 8400 * MB, 990 * MB, 410 * MB);
	assert_int_equal(disk->others_rate, 100 * MB);

	/* the same sample again, and one soon after */
	read_disk(d, 0, 8400 * MB, 990 * MB, 410 * MB);
	assert_int_equal(disk->others_rate, 100 * MB);
	read_disk(d, 500, 8370 * MB, 990 * MB, 410 * MB);
	assert_int_equal(disk->others_rate, 30 * MB);
	read_disk(d, 1001, 9000 * MB, 990 * MB, 410 * MB);
	assert_int_equal(disk->others_rate, 0);
	read_disk(d, 1, 8990 * MB, 990 * MB, 410 * MB);
	assert_int_equal(disk->others_rate, 10 * MB);
	read_disk(d, -5000, 8000 * MB, 990 * MB, 410 * MB); /* nor if the clock went back */
	assert_int_equal(disk->others_rate, 10 * MB);
}

/* If it cannot be read, what is known stays, but not for long. */
TEST(a_disk_that_cannot_be_read_is_not_known)
{
	Driver	   *d = looked_a_second_ago(INT64_C(1) << 50);
	WalsizerDisk before;

	d->sample.disk_alone = true;
	read_disk(d, 0, 900000 * MB, 600 * MB, 400 * MB);
	before = d->state.disk;
	assert_true(before.alone);
	d->sample.now += 500;
	d->sample.disk_tried = false;
	walsizer_observe_disk(&d->state, &d->sample);
	assert_memory_equal(&d->state.disk, &before, sizeof(before));
	d->sample.disk_tried = true;
	d->sample.disk_read = false;
	d->sample.disk_free = 1;
	d->sample.write_lsn += MB;
	for (before.failures = 1; before.failures < 5; before.failures++)
	{
		walsizer_observe_disk(&d->state, &d->sample);
		assert_memory_equal(&d->state.disk, &before, sizeof(before));
		assert_true(look_is_due(d));
	}

	/* once more */
	read_disk(d, 500, 899900 * MB, 600 * MB, 400 * MB);
	assert_int_equal(d->state.disk.others_rate, 100 * MB);
	assert_false(look_is_due(d));
	d->sample.disk_read = false;
	for (int i = 1; i <= 12; i++)
	{
		walsizer_observe_disk(&d->state, &d->sample);
		assert_int_equal(d->state.disk.known, i < 5);
		assert_true(look_is_due(d));
	}
	before = (WalsizerDisk) {.failures = 2};
	assert_memory_equal(&d->state.disk, &before, sizeof(before));
}

TEST(impossible_disk_figures_are_cut_off)
{
	Driver	   *d = driver_new();

	read_disk(d, 0, -1, -1, -1);
	assert_int_equal(d->state.disk.free, 0);
	assert_int_equal(d->state.disk.wal, 0);
	assert_int_equal(d->state.disk.held, 0);
	read_disk(d, 0, INT64_MAX, INT64_MAX, INT64_MAX);
	assert_int_equal(d->state.disk.free, INT64_C(1) << 60);
	assert_int_equal(d->state.disk.wal, INT64_C(1) << 60);
	assert_int_equal(d->state.disk.held, INT64_C(1) << 60);
}

static WalsizerFigures
find_limit(Driver *d)
{
	WalsizerFigures figures = {.in_effect_mb = 1024};

	walsizer_find_limit(&d->config, driver_seen(d), &figures);
	return figures;
}

TEST(the_smallest_limit_counts_and_is_named)
{
	Driver	   *d = driver_new();
	WalsizerFigures figures;

	d->config.max_mb = 2001;
	figures = find_limit(d);
	assert_int_equal(figures.limit_mb, 2000);
	assert_int_equal(figures.limit_kind, WALSIZER_LIMIT_MAX);
	assert_int_equal(figures.limits_mb[WALSIZER_LIMIT_DISK], 0);
	assert_int_equal(figures.limits_mb[WALSIZER_LIMIT_RECOVERY], 0);
	assert_int_equal(figures.step_limit_mb, INT32_MAX);

	d->state.disk = (WalsizerDisk) {.known = true, .free = 9000 * MB};
	figures = find_limit(d);
	assert_int_equal(figures.limits_mb[WALSIZER_LIMIT_DISK], 4496);
	assert_int_equal(figures.limit_mb, 2000);
	assert_int_equal(figures.limit_kind, WALSIZER_LIMIT_MAX);

	/* half of what is free or ours; of equal limits the setting is named */
	d->config.max_mb = 2000;
	d->state.disk = (WalsizerDisk) {.known = true, .free = 3000 * MB, .wal = 1000 * MB, .held = 500 * MB};
	figures = find_limit(d);
	assert_int_equal(figures.limits_mb[WALSIZER_LIMIT_DISK], 2000);
	assert_int_equal(figures.limit_kind, WALSIZER_LIMIT_MAX);
	d->config.max_disk_percent = 49;
	figures = find_limit(d);
	assert_int_equal(figures.limit_mb, 1952);
	assert_int_equal(figures.limits_mb[WALSIZER_LIMIT_DISK], 1952);
	assert_int_equal(figures.limit_kind, WALSIZER_LIMIT_DISK);

	/* 20 s at 40MB/s, whole segments; no limit unless it is set */
	d->config.replay_rate = 40.0 * MB;
	d->config.max_recovery_ms = 20 * SECOND;
	figures = find_limit(d);
	assert_int_equal(figures.limits_mb[WALSIZER_LIMIT_RECOVERY], 800);
	assert_int_equal(figures.limit_mb, 800);
	assert_int_equal(figures.limit_kind, WALSIZER_LIMIT_RECOVERY);
	d->config.max_recovery_ms = 1;
	assert_int_equal(find_limit(d).limits_mb[WALSIZER_LIMIT_RECOVERY], 32);
}

/*
 * One raise may fill a tenth of the free space beyond the WAL that exists, or
 * one segment if that is within an eighth, and not more: a size is filled by
 * (1 + c) times its trigger point.
 */
static void
check_step_limit(Driver *d, int64_t claim)
{
	const WalsizerSettings *settings = &d->sample.settings;
	int64_t		step = find_limit(d).step_limit_mb;
	int64_t		segment_mb = settings->segment_bytes / MB;
	double		spread = 1.0 + settings->completion_target;
	double		most = (double) (d->state.disk.wal + claim);

	assert_int_equal(step % segment_mb, 0);
	assert_true(step >= 2 * segment_mb);
	if (step > 2 * segment_mb)
		assert_true((double) walsizer_trigger_point(step, settings) * spread <= most);
	assert_true((double) walsizer_trigger_point(step + segment_mb, settings) * spread > most);
}

TEST(a_raise_fills_a_tenth_of_the_free_space)
{
	Driver	   *d = driver_new();

	for (int c = 0; c <= 100; c += 5)
		for (int64_t free = 10000 * MB; free < 10500 * MB; free += 7 * MB)
			for (int64_t wal = 0; wal < 300 * MB; wal += 30 * MB)
			{
				d->sample.settings.completion_target = c / 100.0;
				d->state.disk = (WalsizerDisk) {.known = true, .free = free, .wal = wal};
				check_step_limit(d, free / 10);
			}
}

TEST(a_raise_fills_one_segment_if_that_is_an_eighth)
{
	Driver	   *d = driver_new();
	int64_t		one = SEGMENT * 19 / 10 + 1;

	for (int64_t wal = 0; wal < 900 * MB; wal += 3 * MB)
	{
		/* within an eighth, more than an eighth, and less than a tenth */
		d->state.disk = (WalsizerDisk) {.known = true, .free = 8 * one + 8, .wal = wal};
		check_step_limit(d, one);
		d->state.disk.free = 8 * one - 8 * MB;
		check_step_limit(d, one - MB);
		d->state.disk.free = 10 * one + 10 * MB;
		check_step_limit(d, one + MB);
	}

	/* a byte less than it takes to fill two, and nothing at all */
	d->state.disk = (WalsizerDisk) {.known = true, .free = 9 * one, .wal = one - 2};
	check_step_limit(d, one);
	d->state.disk = (WalsizerDisk) {.known = true};
	assert_int_equal(find_limit(d).step_limit_mb, 32);
}

/* Less what others take in five samples. */
/* The WAL of a short load does not fill the size: after an hour without a change it counts as if. */
TEST(an_hour_after_a_claim_the_size_counts_as_filled)
{
	Driver	   *d = driver_new();
	int64_t		filled;

	d->sample.now = 7200 * SECOND;
	d->state.disk = (WalsizerDisk) {.known = true, .free = 10000 * MB, .wal = 1024 * MB};
	d->state.pacing.changed_at = 3600 * SECOND + 1;
	filled = find_limit(d).step_limit_mb;
	d->state.disk.wal = 100 * MB;
	check_step_limit(d, 1000 * MB);
	d->state.pacing.changed_at--;
	assert_int_equal(find_limit(d).step_limit_mb, filled);

	/* there may be more */
	d->state.disk.wal = 1200 * MB;
	check_step_limit(d, 1000 * MB);
}

TEST(a_raise_leaves_what_others_take)
{
	Driver	   *d = driver_new();

	for (int64_t rate = 0; rate < 900 * MB; rate += 11 * MB)
	{
		d->state.disk = (WalsizerDisk) {.known = true, .free = 10000 * MB, .wal = 1000 * MB,
		.others_rate = rate};
		check_step_limit(d, (10000 * MB - 5 * rate) / 10);
	}
	/* to the byte, where both are large */
	d->state.disk = (WalsizerDisk) {.known = true, .free = INT64_C(6) << 40,
	.others_rate = INT64_C(1) << 40};
	check_step_limit(d, (INT64_C(1) << 40) / 10);
	d->state.disk.alone = true;
	assert_int_equal(find_limit(d).step_limit_mb, INT32_MAX);
}

/* A step of less than a tenth waits, except on a disk that is nearly full. */
TEST(a_step_must_be_worth_a_change)
{
	Driver	   *d = driver_new();
	WalsizerFigures figures = {.in_effect_mb = 1000, .step_limit_mb = 1100};

	d->state.disk.free = 100000 * MB;
	assert_int_equal(walsizer_step_size(&d->state, &figures, 1100), 1100);
	assert_int_equal(walsizer_step_size(&d->state, &figures, 1050), 1050);
	assert_int_equal(walsizer_step_size(&d->state, &figures, 1101), 1100);
	figures.step_limit_mb = 1099;
	assert_int_equal(walsizer_step_size(&d->state, &figures, 1100), 1000);
	assert_int_equal(walsizer_step_size(&d->state, &figures, 1099), 1099);

	/* half of the claim: a twentieth of what is free */
	d->state.disk.free = 1000 * MB;
	figures.step_limit_mb = 1050;
	assert_int_equal(walsizer_step_size(&d->state, &figures, 1100), 1050);
	figures.step_limit_mb = 1049;
	assert_int_equal(walsizer_step_size(&d->state, &figures, 1100), 1000);
	d->state.disk.free = 0;
	assert_int_equal(walsizer_step_size(&d->state, &figures, 1100), 1049);
	figures.step_limit_mb = 1001;
	assert_int_equal(walsizer_step_size(&d->state, &figures, 1100), 1001);
	figures.step_limit_mb = 900;
	assert_int_equal(walsizer_step_size(&d->state, &figures, 1100), 1000);
}

/* While a limit swings, a step must be worth more, however little is free. */
TEST(a_step_towards_a_limit_that_swings_is_large)
{
	Driver	   *d = driver_new();
	WalsizerFigures figures = {.in_effect_mb = 1000, .step_limit_mb = 1300};
	WalsizerPacing *pacing = &d->state.pacing;

	d->state.last = d->sample;
	pacing->hold_ms = d->sample.settings.timeout_ms + 1;
	pacing->raise_not_before = d->sample.now - 12 * 3600 * SECOND + 1;
	assert_int_equal(walsizer_step_size(&d->state, &figures, 1400), 1300);
	figures.step_limit_mb = 1299;
	assert_int_equal(walsizer_step_size(&d->state, &figures, 1400), 1000);
	assert_int_equal(walsizer_step_size(&d->state, &figures, 1299), 1299);

	/* half a day later, or after one fall only, it does not */
	pacing->raise_not_before--;
	assert_int_equal(walsizer_step_size(&d->state, &figures, 1400), 1299);
	pacing->raise_not_before++;
	pacing->hold_ms--;
	assert_int_equal(walsizer_step_size(&d->state, &figures, 1400), 1299);
}

TEST(a_raise_to_a_measured_limit_must_be_worth_a_change)
{
	WalsizerFigures figures = {.in_effect_mb = 1000, .limit_mb = 1099,
	.limit_kind = WALSIZER_LIMIT_DISK};

	assert_true(walsizer_worth_raising(&figures, 1001));
	assert_true(walsizer_worth_raising(&figures, 1099));
	assert_false(walsizer_worth_raising(&figures, 1100));
	assert_false(walsizer_worth_raising(&figures, 1000));
	figures.limit_mb = 1100;
	assert_true(walsizer_worth_raising(&figures, 2000));
	figures.limit_kind = WALSIZER_LIMIT_RECOVERY;
	figures.limit_mb = 1249;
	assert_true(walsizer_worth_raising(&figures, 1249));
	assert_false(walsizer_worth_raising(&figures, 1250));
	figures.limit_mb = 1250;
	assert_true(walsizer_worth_raising(&figures, 2000));

	/* walsizer.max does not move by itself */
	figures.limit_kind = WALSIZER_LIMIT_MAX;
	figures.limit_mb = 1001;
	assert_true(walsizer_worth_raising(&figures, 1100));
	figures.limit_mb = 1000;
	assert_false(walsizer_worth_raising(&figures, 1100));
}

/* Our own raise from 1GB to 4000MB, of which little is used; no limit is below. */
static Driver *
our_raise(WalsizerFigures *figures)
{
	Driver	   *d = driver_new();

	d->state.owner.original_mb = 1024;
	d->state.owner.own_mb = 4000;
	d->sample.disk_tried = d->sample.disk_read = true;
	*figures = (WalsizerFigures) {.in_effect_mb = 4000, .limits_mb[WALSIZER_LIMIT_MAX] = 8000};
	return d;
}

/* The size to follow, if this limit is the reason for it; 0: none. */
static int64_t
followed(Driver *d, const WalsizerFigures *figures, WalsizerLimit limit)
{
	WalsizerLimit kind;
	int64_t		size;

	d->sample.settings.max_wal_size_mb = figures->in_effect_mb;
	size = walsizer_limit_to_follow(&d->config, driver_seen(d), figures, &kind);
	assert_int_equal(kind, size > 0 ? limit : WALSIZER_UNLIMITED);
	return size;
}

/* A fifth less on the disk, just read, is followed at once, whatever is used. */
TEST(a_disk_limit_is_followed_by_a_fifth)
{
	WalsizerFigures figures;
	Driver	   *d = our_raise(&figures);

	assert_int_equal(followed(d, &figures, WALSIZER_UNLIMITED), 0);
	figures.used = 9000 * MB;
	figures.limits_mb[WALSIZER_LIMIT_DISK] = 3200;
	assert_int_equal(followed(d, &figures, WALSIZER_LIMIT_DISK), 3200);
	figures.limits_mb[WALSIZER_LIMIT_DISK] = 3216;
	assert_int_equal(followed(d, &figures, WALSIZER_UNLIMITED), 0);
	figures.limits_mb[WALSIZER_LIMIT_DISK] = 500;	/* not below the original value */
	assert_int_equal(followed(d, &figures, WALSIZER_LIMIT_DISK), 1024);
	d->sample.disk_read = false;
	assert_int_equal(followed(d, &figures, WALSIZER_UNLIMITED), 0);
	d->sample.disk_read = true;
	d->sample.disk_tried = false;
	assert_int_equal(followed(d, &figures, WALSIZER_UNLIMITED), 0);
	d->sample.disk_tried = true;
	d->state.owner.own_mb = 0;	/* an administrator's value */
	assert_int_equal(followed(d, &figures, WALSIZER_UNLIMITED), 0);
}

/* The other limits wait until half of the new trigger point is free. */
TEST(other_limits_are_followed_when_there_is_room)
{
	WalsizerFigures figures;
	Driver	   *d = our_raise(&figures);

	d->config.replay_rate = MB; /* 4000 s */
	d->config.max_recovery_ms = 3636363;
	figures.limits_mb[WALSIZER_LIMIT_RECOVERY] = 3600;	/* by a fifth at least */
	assert_int_equal(followed(d, &figures, WALSIZER_LIMIT_RECOVERY), 3200);
	figures.limits_mb[WALSIZER_LIMIT_RECOVERY] = 3184;
	assert_int_equal(followed(d, &figures, WALSIZER_LIMIT_RECOVERY), 3184);
	figures.used = walsizer_trigger_point(3184, &d->sample.settings) / 2;
	assert_int_equal(followed(d, &figures, WALSIZER_LIMIT_RECOVERY), 3184);
	figures.used++;
	assert_int_equal(followed(d, &figures, WALSIZER_UNLIMITED), 0);
	figures.used = 0;
	d->config.max_recovery_ms++;	/* a tenth longer than that, and no more */
	assert_int_equal(followed(d, &figures, WALSIZER_UNLIMITED), 0);

	d = our_raise(&figures);
	figures.limits_mb[WALSIZER_LIMIT_MAX] = 3999;	/* whole segments */
	assert_int_equal(followed(d, &figures, WALSIZER_LIMIT_MAX), 3984);
	figures.used = walsizer_trigger_point(3984, &d->sample.settings) / 2 + 1;
	assert_int_equal(followed(d, &figures, WALSIZER_UNLIMITED), 0);
	figures.used = 0;
	figures.limits_mb[WALSIZER_LIMIT_MAX] = 4000;
	assert_int_equal(followed(d, &figures, WALSIZER_UNLIMITED), 0);
}

/* One that is not followed yet hides no other. */
TEST(each_limit_is_followed_for_itself)
{
	WalsizerFigures figures;
	Driver	   *d = our_raise(&figures);

	figures.limits_mb[WALSIZER_LIMIT_DISK] = 3216;	/* lower, but not by a fifth */
	d->config.replay_rate = MB;
	d->config.max_recovery_ms = 3640 * SECOND;
	figures.limits_mb[WALSIZER_LIMIT_RECOVERY] = 3616;
	figures.limits_mb[WALSIZER_LIMIT_MAX] = 3904;
	assert_int_equal(followed(d, &figures, WALSIZER_LIMIT_MAX), 3904);
	d->config.max_recovery_ms = 3408 * SECOND;
	figures.limits_mb[WALSIZER_LIMIT_RECOVERY] = 3408;
	assert_int_equal(followed(d, &figures, WALSIZER_LIMIT_RECOVERY), 3200);
	figures.limits_mb[WALSIZER_LIMIT_DISK] = 3184;
	assert_int_equal(followed(d, &figures, WALSIZER_LIMIT_DISK), 3184);
	figures.limits_mb[WALSIZER_LIMIT_RECOVERY] = 2000;
	assert_int_equal(followed(d, &figures, WALSIZER_LIMIT_RECOVERY), 2000);
	figures.used = 3000 * MB;	/* no room: but the disk cannot wait */
	assert_int_equal(followed(d, &figures, WALSIZER_LIMIT_DISK), 3184);

	/* of equal ones the first */
	figures.used = 0;
	figures.limits_mb[WALSIZER_LIMIT_DISK] = figures.limits_mb[WALSIZER_LIMIT_RECOVERY] =
		figures.limits_mb[WALSIZER_LIMIT_MAX] = 3200;
	assert_int_equal(followed(d, &figures, WALSIZER_LIMIT_MAX), 3200);
}

TEST(nothing_lowers_below_the_original_value_or_two_segments)
{
	Driver	   *d = driver_new();

	d->state.owner.original_mb = 1024;
	assert_int_equal(walsizer_least_size(driver_seen(d), 500), 1024);
	assert_int_equal(walsizer_least_size(driver_seen(d), 2000), 2000);
	d->state.owner.original_mb = 20;
	assert_int_equal(walsizer_least_size(driver_seen(d), 10), 32);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_whole_segments_and_at_least_two),
		cmocka_unit_test(the_disk_is_read_after_ten_samples),
		cmocka_unit_test(a_disk_that_is_dear_to_read_is_read_less_often),
		cmocka_unit_test(the_disk_is_read_before_a_sixteenth_can_be_gone),
		cmocka_unit_test(what_others_take_is_measured),
		cmocka_unit_test(a_disk_that_cannot_be_read_is_not_known),
		cmocka_unit_test(impossible_disk_figures_are_cut_off),
		cmocka_unit_test(the_smallest_limit_counts_and_is_named),
		cmocka_unit_test(a_raise_fills_a_tenth_of_the_free_space),
		cmocka_unit_test(a_raise_fills_one_segment_if_that_is_an_eighth),
		cmocka_unit_test(an_hour_after_a_claim_the_size_counts_as_filled),
		cmocka_unit_test(a_raise_leaves_what_others_take),
		cmocka_unit_test(a_step_must_be_worth_a_change),
		cmocka_unit_test(a_step_towards_a_limit_that_swings_is_large),
		cmocka_unit_test(a_raise_to_a_measured_limit_must_be_worth_a_change),
		cmocka_unit_test(a_disk_limit_is_followed_by_a_fifth),
		cmocka_unit_test(other_limits_are_followed_when_there_is_room),
		cmocka_unit_test(each_limit_is_followed_for_itself),
		cmocka_unit_test(nothing_lowers_below_the_original_value_or_two_segments),
	};

	return cmocka_run_group_tests_name("policy, limits by themselves", tests, NULL, NULL);
}
