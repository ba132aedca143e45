/*-------------------------------------------------------------------------
 *
 * test_recovery.c
 *	  How long a crash recovery takes, and the size that a limit to it allows.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"
#include "policy/internal.h"

#define PAGE		INT64_C(8192)

/* A load: records per second, their size, and the pages that they change. */
typedef struct Load
{
	int64_t		records;
	int64_t		record_bytes;
	int64_t		pages;
	int64_t		imaged;			/* of them since the redo pointer */
} Load;

/* One second of it, as the server counts it. */
static void
load_step(Driver *d, Load *load)
{
	int64_t		images = (load->pages - load->imaged) / 20;
	int64_t		bytes = load->records * load->record_bytes + images * PAGE;

	load->imaged += images;
	d->sample.wal.bytes += bytes;
	d->sample.wal.records += load->records;
	d->sample.wal.images += images;
	driver_step(d, SECOND, bytes);
}

static void
start_checkpoint(Driver *d, Load *load, bool requested)
{
	driver_checkpoint(d, requested);
	d->timer = d->sample.now;
	load->imaged = 0;
}

static void
load_run(Driver *d, Load *load, int64_t seconds)
{
	for (int64_t i = 0; i < seconds; i++)
	{
		load_step(d, load);
		if (driver_forced_due(d))
			start_checkpoint(d, load, true);
		else if (d->sample.now - d->timer >= d->sample.settings.timeout_ms)
			start_checkpoint(d, load, false);
	}
}

static int64_t
time_of(const Driver *d, int64_t mb)
{
	return walsizer_recovery_time(&d->config, &d->state, &d->sample, mb);
}

/* A server, and a recovery of 1000 MB in 2 s, which used a million pages. */
static Driver *
measured_server(void)
{
	Driver	   *d = driver_new();

	d->sample.buffers = 1000 * MB / PAGE;
	d->config.recoveries[0] = (WalsizerRecovery) {
		.bytes = 1000 * MB, .replay_ms = 2000, .pages_used = 1000 * 1000,
		.pages_written = 10000, .writing_ms = 500,
	};
	return d;
}

/* Give the state an interval between two checkpoints. */
static void
interval_was(Driver *d, int64_t mb, int64_t records, int64_t images)
{
	d->state.wal_contents.interval = (WalsizerWal) {mb * MB, records, images, 0, 0};
}

TEST(the_configured_rate_counts_alone)
{
	Driver	   *d = measured_server();

	d->config.replay_rate = 40.0 * MB;
	assert_int_equal(time_of(d, 2000), 50 * SECOND);
}

/*
 * The same bytes and records again take the same time, then the pages are
 * written.  What was in the cache may be read from storage, a second for each
 * 450 MB or so, but not twice.
 */
TEST(what_was_measured_is_expected_again)
{
	Driver	   *d = measured_server();

	interval_was(d, 1000, 1000 * 1000, 0);
	d->sample.settings.completion_target = 0;
	d->sample.buffers = 10000;
	assert_in_range(time_of(d, 1000), 2000 + 2200 + 500 - 1, 2000 + 2200 + 500 + 1);
	d->config.recoveries[0].replay_ms *= 3;
	assert_in_range(time_of(d, 1000), 6000 + 2200 + 500 - 1, 6000 + 2200 + 500 + 1);
	d->config.recoveries[0].bytes_read = 1000 * MB;
	assert_in_range(time_of(d, 1000), 6000 + 500 - 1, 6000 + 500 + 1);
	/* at most half of the time is that of reading */
	d->config.recoveries[0].bytes_read = 2000 * MB;
	assert_in_range(time_of(d, 1000), 6000 / 2 + 2200 + 500 - 1, 6000 / 2 + 2200 + 500 + 1);
	d->config.recoveries[0].bytes_read = 100 * 1000 * MB;
	assert_in_range(time_of(d, 1000), 6000 / 2 + 2200 + 500 - 1, 6000 / 2 + 2200 + 500 + 1);
}

/* With nothing behind it, so that reading on is seen. */
TEST(no_more_recoveries_are_read_than_there_are)
{
	Driver	   *d = measured_server();
	WalsizerConfig *exact = malloc(sizeof(WalsizerConfig));

	*exact = d->config;
	assert_int_equal(walsizer_recovery_time(exact, &d->state, &d->sample, 1000), time_of(d, 1000));
	free(exact);
}

TEST(records_take_longer_than_images)
{
	Driver	   *d = measured_server();
	int64_t		images;

	d->sample.buffers = 0;
	d->config.recoveries[0].bytes_read = 1000 * MB;	/* slow enough that reading is a small part */
	d->config.recoveries[0].replay_ms = 20000;
	interval_was(d, 1000, 130 * 1000, 126 * 1000);
	images = time_of(d, 1000);
	interval_was(d, 1000, 10 * 1000 * 1000, 1000);
	assert_true(time_of(d, 1000) > 3 * images);
}

/* Beyond what was seen there are no images, which is the slowest there is. */
TEST(a_longer_interval_is_not_underestimated)
{
	Driver	   *d = measured_server();
	Load		load = {20000, 100, 50000, 0};
	int64_t		expected;

	d->config.enable = false;
	d->sample.settings.max_wal_size_mb = 512;
	load_run(d, &load, 1000);
	assert_true(d->state.wal_contents.interval.bytes > 200 * MB);
	expected = time_of(d, 4096);
	d->sample.settings.max_wal_size_mb = 4096;
	d->sample.settings.timeout_ms = 3600 * SECOND;
	load_run(d, &load, 7200);
	assert_true(d->state.wal_contents.interval.bytes > 2000 * MB);
	assert_true(time_of(d, 4096) <= expected);
	assert_true(time_of(d, 4096) > expected / 2);
}

/* Nothing known: 60 bytes a record, at an assumed speed of about 40MB/s. */
TEST(without_a_measurement_the_slowest_is_assumed)
{
	Driver	   *d = driver_new();

	d->sample.buffers = 1000 * MB / PAGE;
	assert_in_range(time_of(d, 4000), 75 * SECOND, 120 * SECOND);
	interval_was(d, 2000, 250 * 1000, 240 * 1000);
	assert_true(time_of(d, 4000) < 30 * SECOND);
}

/* At most what shared_buffers hold is written at the end. */
TEST(pages_are_written_as_far_as_buffers_hold_them)
{
	Driver	   *d = measured_server();
	int64_t		few;

	d->config.recoveries[0].replay_ms = 1;
	d->config.recoveries[0].writing_ms = 10000;	/* 1 ms a page */
	interval_was(d, 8000, 1, 0);
	d->sample.buffers = 1000;
	few = time_of(d, 8000);
	d->sample.buffers = 100 * 1000;
	assert_in_range(time_of(d, 8000) - few, 98990, 99010);
	assert_in_range(time_of(d, 8), 1024, 1044); /* that has 1024 pages */
}

/* What CHECKPOINT cut short, or was not counted, says nothing of whole intervals. */
TEST(only_whole_intervals_count)
{
	Driver	   *d = measured_server();
	Load		load = {20000, 100, 50000, 0};
	WalsizerWal before;

	load_run(d, &load, 900);
	before = d->state.wal_contents.interval;
	assert_true(before.bytes > 0);

	load_run(d, &load, 20);
	start_checkpoint(d, &load, true);
	load_step(d, &load);
	assert_memory_equal(&d->state.wal_contents.interval, &before, sizeof(before));

	/* a statement that still runs is not counted yet */
	d->timer = d->sample.now;
	driver_run(d, 301, 8 * MB);
	assert_memory_equal(&d->state.wal_contents.interval, &before, sizeof(before));

	/* statistics that were reset */
	d->sample.wal = (WalsizerWal) {0};
	load_run(d, &load, 100);
	assert_memory_equal(&d->state.wal_contents.interval, &before, sizeof(before));
	load.records *= 8;
	load_run(d, &load, 900);
	assert_memory_not_equal(&d->state.wal_contents.interval, &before, sizeof(before));
}

TEST(the_limit_is_the_largest_size_within_the_time)
{
	Driver	   *d = measured_server();

	interval_was(d, 1000, 1000 * 1000, 100 * 1000);
	for (int64_t seconds = 1; seconds < 100000; seconds *= 3)
	{
		int64_t		limit;

		d->config.max_recovery_ms = seconds * SECOND;
		driver_step(d, SECOND, 0);
		limit = d->last.figures.limits_mb[WALSIZER_LIMIT_RECOVERY];
		assert_true(limit == 32 || time_of(d, limit) <= seconds * SECOND);
		assert_true(time_of(d, limit + 16) > seconds * SECOND);
	}
}

/*
 * The larger the size, the fewer images and the slower the replay.  The limit
 * is approached from below, and not passed back and forth.
 */
TEST(a_steady_load_comes_to_rest_at_the_limit)
{
	Driver	   *d = measured_server();
	Load		load = {100 * 1000, 100, 200 * 1000, 0};

	d->sample.settings.timeout_ms = 3600 * SECOND;
	d->config.max_recovery_ms = 30 * SECOND;
	load_run(d, &load, 4 * 3600);
	assert_int_equal(d->lowers, 0);
	assert_in_range(d->raises, 1, 8);
	assert_int_equal(d->last.figures.limit_kind, WALSIZER_LIMIT_RECOVERY);
	assert_true(d->sample.settings.max_wal_size_mb > 1024);
	assert_in_range(time_of(d, d->sample.settings.max_wal_size_mb), 20 * SECOND, 30 * SECOND);
}

/* What WAL consists of varies from interval to interval; that is no reason to follow. */
TEST(a_limit_that_trembles_changes_nothing)
{
	Driver	   *d = measured_server();
	Load		load = {100 * 1000, 100, 200 * 1000, 0};
	int			raises;

	d->sample.settings.timeout_ms = 3600 * SECOND;
	d->config.max_recovery_ms = 30 * SECOND;
	load_run(d, &load, 4 * 3600);
	raises = d->raises;
	for (int i = 0; i < 100; i++)
	{
		load.record_bytes = 100 + i % 2 * 3;
		load_run(d, &load, 400);
		assert_true(time_of(d, d->sample.settings.max_wal_size_mb) < 33 * SECOND);
	}
	assert_int_equal(d->raises, raises);
	assert_int_equal(d->lowers, 0);

	load.record_bytes = 40;
	load.records *= 4;
	load_run(d, &load, 3600);
	assert_int_equal(d->lowers, 1);
	assert_int_equal(d->last.figures.limit_kind, WALSIZER_LIMIT_RECOVERY);
}

/* Each of the last recoveries had WAL of its own kind: the slowest counts. */
TEST(the_slowest_of_the_last_recoveries_counts)
{
	Driver	   *d = measured_server();
	int64_t		one;

	interval_was(d, 1000, 1000 * 1000, 0);
	one = time_of(d, 1000);
	d->config.recoveries[3] = d->config.recoveries[0];
	d->config.recoveries[0].replay_ms /= 10;
	assert_int_equal(time_of(d, 1000), one);
	d->config.recoveries[3].replay_ms = 0;
	assert_true(time_of(d, 1000) < one);
}

/* Just before a checkpoint completes, a crash now is the worst there is. */
TEST(now_comes_to_the_worst_case)
{
	Driver	   *d = measured_server();
	int64_t		worst;
	int64_t		now;

	d->sample.buffers = 0;
	interval_was(d, 1000, 1000 * 1000, 100 * 1000);
	d->sample.completed_lsn = d->sample.redo_lsn;
	d->sample.redo_lsn += 1000 * MB;
	d->sample.write_lsn += 1900 * MB;
	worst = time_of(d, 1900);
	now = walsizer_recovery_time_now(&d->config, &d->state, &d->sample);
	assert_in_range(now, worst - 2, worst + 2);
	d->sample.completed_lsn = d->sample.redo_lsn;
	assert_true(walsizer_recovery_time_now(&d->config, &d->state, &d->sample) < worst / 2 + 1);
}

/* After a bulk load comes one of small records: now is what is replayed, not a full interval. */
TEST(now_is_of_the_last_interval)
{
	Driver	   *d = measured_server();
	int64_t		now;

	d->sample.buffers = 0;
	interval_was(d, 1000, 10 * 1000, 100 * 1000);
	d->sample.completed_lsn = d->sample.redo_lsn;
	d->sample.write_lsn += 100 * MB;
	/* one of less than half as much WAL tells too little of it */
	d->state.wal_contents.last = (WalsizerWal) {.bytes = 50 * MB - 1, .records = 500 * 1000};
	now = walsizer_recovery_time_now(&d->config, &d->state, &d->sample);
	assert_int_equal(now, time_of(d, 100));
	for (int mb = 51; mb >= 50; mb--)
	{
		d->state.wal_contents.last = (WalsizerWal) {.bytes = mb * MB, .records = 500 * 1000};
		assert_true(walsizer_recovery_time_now(&d->config, &d->state, &d->sample) > 2 * now);
	}
	assert_int_equal(time_of(d, 100), now);
	/* also of what was written before the checkpoint that runs */
	d->sample.completed_lsn -= 101 * MB;
	d->sample.write_lsn -= 99 * MB;
	assert_in_range(walsizer_recovery_time_now(&d->config, &d->state, &d->sample), now, now + 20);
	d->sample.completed_lsn += 101 * MB;
	d->sample.write_lsn += 99 * MB;
	/* counters that began anew */
	d->state.wal_contents.last.images = -1;
	assert_int_equal(walsizer_recovery_time_now(&d->config, &d->state, &d->sample), now);
	d->state.wal_contents.last = (WalsizerWal) {.bytes = 100 * MB};
	assert_int_equal(walsizer_recovery_time_now(&d->config, &d->state, &d->sample), now);
}

/* A measurement that cannot be is no trap. */
TEST(any_measurement_gives_an_answer)
{
	Driver	   *d = measured_server();

	d->config.recoveries[0] = (WalsizerRecovery) {.replay_ms = 1000};
	assert_true(time_of(d, 1000) > 0);
	d->config.recoveries[0] = (WalsizerRecovery) {
		INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX
	};
	interval_was(d, 1, INT64_MAX, INT64_MAX);
	assert_true(time_of(d, INT32_MAX) > 0);
}

/* The slowest server, with records of 60 bytes: 40MB/s, then 0.02 ms for a page. */
TEST(what_is_assumed_of_a_server)
{
	Driver	   *d = driver_new();

	d->sample.settings.completion_target = 0;
	assert_int_equal(time_of(d, 1000 * 1000), 24716520);
	d->sample.buffers = 128000;
	assert_int_equal(time_of(d, 1000 * 1000), 24716520 + 2560);
	d->sample.buffers = INT32_MAX;
	assert_int_equal(time_of(d, 1000 * 1000), 24716520 + 2560000);
	assert_int_equal(time_of(d, 0), 0);
}

/*
 * A server on which a record takes 0.0008 ms, a MB 1.03 ms, and 2.2 ms to be read,
 * after an interval of 1GB with these numbers of records and images.
 */
static int64_t
time_after(int64_t mb, int64_t records, int64_t images)
{
	Driver	   *d = driver_new();

	d->sample.settings.completion_target = 0;
	d->config.recoveries[0] = (WalsizerRecovery) {
		.bytes = 1000 * MB, .replay_ms = 1830, .pages_used = 1000 * 1000,
	};
	interval_was(d, 1024, records, images);
	return time_of(d, mb);
}

/* What is not page images is records, and all of it where more is asked than was seen. */
TEST(records_follow_from_the_last_interval)
{
	assert_int_equal(time_after(512, 100000, 0), 1653 + 40);
	assert_int_equal(time_after(1024, 100000, 0), 3307 + 80);
	assert_int_equal(time_after(2048, 100000, 0), 6615 + 160);
	assert_int_equal(time_after(2048, 100000, 65536), 6615 + 240);

	/* the fewer they are beside the images, up to where they are the smallest */
	assert_int_equal(time_after(2048, 100000, 114687), 7335);
	assert_int_equal(time_after(2048, 100000, 114688), 7335);
	assert_int_equal(time_after(2048, 100000, 130339), 21000);
	assert_int_equal(time_after(2048, 100000, 131072), 21011);

	/* none is smaller than 60 bytes */
	assert_int_equal(time_after(2048, 20 * 1000 * 1000, 0), 36931);
	assert_int_equal(time_after(2048, 10 * 1000 * 1000, 0), 6615 + 16000);
}

static bool
counts(WalsizerCause cause, int64_t bytes, int64_t distance, int64_t records, int64_t images)
{
	Driver	   *d = driver_new();
	bool		kept;

	d->state.wal_contents.at_redo = (WalsizerWal) {1000, 100, 10, 0, 0};
	d->state.last.redo_lsn = d->sample.redo_lsn;
	d->sample.redo_lsn += (uint64_t) distance;
	d->sample.wal = (WalsizerWal) {1000 + bytes, 100 + records, 10 + images, 0, 0};
	walsizer_observe_wal_contents(&d->config, &d->state, &d->sample, cause);
	assert_memory_equal(&d->state.wal_contents.at_redo, &d->sample.wal, sizeof(d->sample.wal));
	kept = d->state.wal_contents.interval.bytes > 0;
	if (kept)
	{
		assert_int_equal(d->state.wal_contents.interval.bytes, bytes);
		assert_int_equal(d->state.wal_contents.interval.records, records);
		assert_int_equal(d->state.wal_contents.interval.images, images);
	}
	return kept;
}

/* At least a segment of WAL, half of which was counted, between two whole checkpoints. */
TEST(which_intervals_count)
{
	assert_true(counts(WALSIZER_CAUSE_TIMED, 16 * MB, 16 * MB, 1, 0));
	assert_true(counts(WALSIZER_CAUSE_FORCED, 16 * MB, 16 * MB, 1, 0));
	assert_true(counts(WALSIZER_CAUSE_OLD_VALUE, 16 * MB, 16 * MB, 1, 0));
	assert_false(counts(WALSIZER_CAUSE_OTHER, 16 * MB, 16 * MB, 1, 0));
	assert_false(counts(WALSIZER_CAUSE_TIMED, 16 * MB - 1, 16 * MB, 1, 0));
	assert_true(counts(WALSIZER_CAUSE_TIMED, 16 * MB, 32 * MB, 1, 0));
	assert_true(counts(WALSIZER_CAUSE_TIMED, 16 * MB, 32 * MB + 1, 1, 0));
	assert_false(counts(WALSIZER_CAUSE_TIMED, 16 * MB, 32 * MB + 2, 1, 0));
	assert_false(counts(WALSIZER_CAUSE_TIMED, 16 * MB, 16 * MB, 0, 0));
	assert_false(counts(WALSIZER_CAUSE_TIMED, 16 * MB, 16 * MB, -1, 0));
	assert_false(counts(WALSIZER_CAUSE_TIMED, 16 * MB, 16 * MB, 1, -1));
	assert_true(counts(WALSIZER_CAUSE_TIMED, 16 * MB, 16 * MB, 5, 6));
}

/* An interval with so much more, over this distance, ends after the last one. */
static void
next_interval(Driver *d, int64_t distance, WalsizerWal more)
{
	d->state.last = d->sample;
	d->sample.redo_lsn += (uint64_t) distance;
	d->sample.wal.bytes += more.bytes;
	d->sample.wal.records += more.records;
	d->sample.wal.images += more.images;
	d->sample.wal.written += more.written;
	walsizer_observe_wal_contents(&d->config, &d->state, &d->sample, WALSIZER_CAUSE_FORCED);
}

/*
 * Two intervals of this WAL, for which these pages were written: is that WAL
 * of a few pages?
 */
static bool
changes_few(int64_t bytes, int64_t records, int64_t images, int64_t written)
{
	Driver	   *d = driver_new();

	for (int i = 0; i < 2; i++)
	{
		d->sample.wal.written += written;
		next_interval(d, bytes, (WalsizerWal) {.bytes = bytes, .records = records, .images = images});
		/* the pages of the first one are not written yet */
		assert_false(i == 0 && d->state.wal_contents.few_pages);
	}
	return d->state.wal_contents.few_pages;
}

TEST(a_runaway_writer_is_known_by_what_it_does_not_change)
{
	/* a loop that updates the same rows, by records of 100 bytes: 5 to 962 pages written */
	assert_true(changes_few(530 * MB, 5500000, 5, 5));
	assert_true(changes_few(530 * MB, 5500000, 962, 962));
	assert_true(changes_few(530 * MB, 5500000, 0, 0));
	/* exactly 64 pages of WAL for each */
	assert_false(changes_few(512 * MB, 5500000, 1, 1024));
	assert_true(changes_few(512 * MB, 5500000, 1, 1023));
	assert_false(changes_few(512 * MB, 5500000, 1024, 1));
	/* pgbench of the smallest scale, in 5.5 million records, and of a larger one */
	assert_false(changes_few(530 * MB, 5500000, 2000, 9000));
	assert_false(changes_few(530 * MB, 1000000, 50000, 52000));
	/* a bulk load through ring buffers, which changes new pages only */
	assert_false(changes_few(530 * MB, 60000, 0, 60000));
	/* an index build writes pages without buffers, and logs them whole */
	assert_false(changes_few(530 * MB, 60000, 60000, 0));
	/* logical messages of a program are larger than a page */
	assert_true(changes_few(512 * MB, 65537, 0, 0));
	assert_false(changes_few(512 * MB, 65536, 0, 0));
	/* too little to tell */
	assert_false(changes_few(16 * MB - 1, 160000, 0, 0));
	/* the statistics of writes were reset */
	assert_false(changes_few(530 * MB, 5500000, 5, -5));
}

/* An interval of which nothing can be told ends it. */
TEST(a_runaway_writer_is_over_with_the_next_interval)
{
	Driver	   *d = driver_new();

	for (int i = 0; i < 2; i++)
		next_interval(d, 530 * MB, (WalsizerWal) {.bytes = 530 * MB, .records = 5500000});
	assert_true(d->state.wal_contents.few_pages);
	next_interval(d, 1000, (WalsizerWal) {.bytes = 1000, .records = 10});
	assert_false(d->state.wal_contents.few_pages);
}

/* Messages of a program are that, however little WAL was counted before. */
TEST(messages_after_little_wal_change_no_pages)
{
	Driver	   *d = driver_new();

	next_interval(d, 1000, (WalsizerWal) {.bytes = 1000, .records = 10});
	next_interval(d, 24 * MB, (WalsizerWal) {.bytes = 24 * MB, .records = 100});
	assert_false(d->state.wal_contents.few_pages);
}

/* A checkpoint that writes within a second has written when its redo pointer is seen. */
TEST(what_a_checkpoint_writes_at_once_counts)
{
	Driver	   *d = driver_new();

	for (int i = 0; i < 3; i++)
		next_interval(d, 530 * MB, (WalsizerWal) {
			.bytes = 530 * MB, .records = 5500000, .written = i == 2 ? 0 : 9000,
		});
	assert_false(d->state.wal_contents.few_pages);
}

/* Padding, of which the server counts nothing, is no WAL of a few pages. */
TEST(padding_changes_no_pages)
{
	Driver	   *d = driver_new();

	for (int i = 0; i < 3; i++)
		next_interval(d, 530 * MB, (WalsizerWal) {.bytes = 100 * MB, .records = 1000000});
	assert_false(d->state.wal_contents.few_pages);
}

/* An interval of this WAL ends. */
static void
end_interval(Driver *d, int64_t bytes, int64_t records)
{
	d->state.last = d->sample;
	d->state.wal_contents.at_redo = (WalsizerWal) {0};
	d->sample.wal = (WalsizerWal) {bytes, records, 0, 0, 0};
	walsizer_observe_wal_contents(&d->config, &d->state, &d->sample, WALSIZER_CAUSE_FORCED);
}

static bool
stands_for_a_full_one(Driver *d, int64_t bytes, int64_t records)
{
	d->state.wal_contents.interval = (WalsizerWal) {1, 1, 1, 0, 0};
	end_interval(d, bytes, records);
	return d->state.wal_contents.interval.bytes == bytes;
}

/* Half of the 528MB that 1GB allows, or what takes too long already. */
TEST(a_small_interval_says_nothing_of_a_full_one)
{
	Driver	   *d = measured_server();
	int64_t		half = TRIGGER_POINT / 2;

	d->sample.buffers = 0;
	assert_true(stands_for_a_full_one(d, half, 1));
	assert_false(stands_for_a_full_one(d, half - 1, 1));
	assert_false(stands_for_a_full_one(d, half - 1, 100 * 1000 * 1000));

	d->config.max_recovery_ms = 30 * SECOND;
	d->config.replay_rate = (double) MB;
	d->sample.settings.completion_target = 0.5;
	assert_false(stands_for_a_full_one(d, 20 * MB, 1));
	assert_true(stands_for_a_full_one(d, 21 * MB, 1));

	/* by the measured speed: 1.83 million records take 2 s, and it has two thirds of them */
	d->config.replay_rate = 0;
	assert_false(stands_for_a_full_one(d, 16 * MB, 22700 * 1000));
	assert_true(stands_for_a_full_one(d, 16 * MB, 22900 * 1000));

	/* the first one does, whatever it is */
	d = measured_server();
	d->state.wal_contents.interval.bytes = 0;
	end_interval(d, 16 * MB, 1);
	assert_int_equal(d->state.wal_contents.interval.bytes, 16 * MB);
	end_interval(d, 17 * MB, 1);
	assert_int_equal(d->state.wal_contents.interval.bytes, 16 * MB);
}

/*
 * By turns much WAL of images and less of small records, each for an hour.  The
 * limit that follows from the records must not take from the images what they
 * need.
 */
TEST(small_loads_between_large_ones_change_nothing)
{
	Driver	   *d = measured_server();
	Load		large = {3000, 100, 1000 * 1000 * 1000, 0};
	Load		small = {20 * 1000, 100, 0, 0};
	int			changes;

	d->config.max_recovery_ms = 60 * SECOND;
	large.pages = 20 * 1200;
	for (int i = 0; i < 7200; i++)
	{
		large.imaged = 0;
		load_run(d, &large, 1);
	}
	changes = d->raises + d->lowers;
	assert_true(changes > 0);
	d->state.checkpoints.total[WALSIZER_CAUSE_FORCED] = 0;
	for (int turn = 0; turn < 12; turn++)
	{
		for (int i = 0; i < 3600; i++)
		{
			large.imaged = 0;
			load_run(d, turn % 2 == 0 ? &small : &large, 1);
		}
	}
	assert_int_equal(d->state.checkpoints.total[WALSIZER_CAUSE_FORCED], 0);
	assert_int_equal(d->raises + d->lowers, changes);
	d->state.wal_contents.interval.bytes = 0;
	end_interval(d, 600 * MB, 6 * 1000 * 1000);
	assert_true(time_of(d, d->sample.settings.max_wal_size_mb) > 60 * SECOND);
}

/* What is not a recovery is assumed; one of a single byte or millisecond is one. */
TEST(the_least_recovery_counts)
{
	Driver	   *d = driver_new();
	int64_t		assumed;

	interval_was(d, 1000, 1, 0);
	assumed = time_of(d, 1000);
	d->config.recoveries[0] = (WalsizerRecovery) {.bytes = 0, .replay_ms = 1};
	assert_int_equal(time_of(d, 1000), assumed);
	d->config.recoveries[0] = (WalsizerRecovery) {.bytes = -1, .replay_ms = 1};
	assert_int_equal(time_of(d, 1000), assumed);
	d->config.recoveries[0] = (WalsizerRecovery) {.bytes = 1000 * MB, .replay_ms = 0};
	assert_int_equal(time_of(d, 1000), assumed);
	d->config.recoveries[0] = (WalsizerRecovery) {.bytes = 1000 * MB, .replay_ms = -1};
	assert_int_equal(time_of(d, 1000), assumed);
	d->config.recoveries[0] = (WalsizerRecovery) {.bytes = 1000 * MB, .replay_ms = 1};
	assert_int_equal(time_of(d, 1000), 2200 + 1);
	d->config.recoveries[0] = (WalsizerRecovery) {.bytes = 1, .replay_ms = 1};
	assert_true(time_of(d, 1000) > 1000 * MB);

	/* the second one, too, if it is one */
	d->config.recoveries[0] = d->config.recoveries[1] =
		(WalsizerRecovery) {.bytes = 1000 * MB, .replay_ms = 1};
	d->config.recoveries[1].replay_ms = 1000;
	assert_int_equal(time_of(d, 1000), 2200 + 1000);
	d->config.recoveries[0].replay_ms = 2000;
	assert_int_equal(time_of(d, 1000), 2200 + 2000);
	d->config.recoveries[0].replay_ms = 1;
	d->config.recoveries[1].replay_ms = 0;
	assert_int_equal(time_of(d, 1000), 2200 + 1);

	/* pages that were written tell how long a page takes, few of them only if it is long */
	d->sample.buffers = 1000;
	d->config.recoveries[0].pages_written = 20000;
	d->config.recoveries[0].writing_ms = 1400;
	assert_int_equal(time_of(d, 1000), 2200 + 1 + 70);
	d->config.recoveries[0].pages_written = 75;
	assert_int_equal(time_of(d, 1000), 2200 + 1 + 140);
	d->config.recoveries[0].writing_ms = 150;
	assert_int_equal(time_of(d, 1000), 2200 + 1 + 20);
	d->config.recoveries[0].pages_written = 10000;
	assert_int_equal(time_of(d, 1000), 2200 + 1 + 15);
}

/* Before the first interval is known, all WAL counts as the smallest records. */
TEST(now_is_estimated_without_an_interval)
{
	Driver	   *d = driver_new();

	d->sample.completed_lsn = d->sample.redo_lsn;
	d->sample.write_lsn += 1000 * MB;
	assert_int_equal(walsizer_recovery_time_now(&d->config, &d->state, &d->sample), 24716);
	d->sample.completed_lsn = d->sample.redo_lsn - 1000 * MB;
	assert_int_equal(walsizer_recovery_time_now(&d->config, &d->state, &d->sample), 2 * 24716 + 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_configured_rate_counts_alone),
		cmocka_unit_test(what_was_measured_is_expected_again),
		cmocka_unit_test(no_more_recoveries_are_read_than_there_are),
		cmocka_unit_test(records_take_longer_than_images),
		cmocka_unit_test(a_longer_interval_is_not_underestimated),
		cmocka_unit_test(without_a_measurement_the_slowest_is_assumed),
		cmocka_unit_test(pages_are_written_as_far_as_buffers_hold_them),
		cmocka_unit_test(only_whole_intervals_count),
		cmocka_unit_test(the_limit_is_the_largest_size_within_the_time),
		cmocka_unit_test(a_steady_load_comes_to_rest_at_the_limit),
		cmocka_unit_test(a_limit_that_trembles_changes_nothing),
		cmocka_unit_test(the_slowest_of_the_last_recoveries_counts),
		cmocka_unit_test(now_comes_to_the_worst_case),
		cmocka_unit_test(now_is_of_the_last_interval),
		cmocka_unit_test(any_measurement_gives_an_answer),
		cmocka_unit_test(what_is_assumed_of_a_server),
		cmocka_unit_test(records_follow_from_the_last_interval),
		cmocka_unit_test(which_intervals_count),
		cmocka_unit_test(a_runaway_writer_is_known_by_what_it_does_not_change),
		cmocka_unit_test(a_runaway_writer_is_over_with_the_next_interval),
		cmocka_unit_test(messages_after_little_wal_change_no_pages),
		cmocka_unit_test(what_a_checkpoint_writes_at_once_counts),
		cmocka_unit_test(padding_changes_no_pages),
		cmocka_unit_test(a_small_interval_says_nothing_of_a_full_one),
		cmocka_unit_test(small_loads_between_large_ones_change_nothing),
		cmocka_unit_test(the_least_recovery_counts),
		cmocka_unit_test(now_is_estimated_without_an_interval),
	};

	return cmocka_run_group_tests_name("policy, recovery", tests, NULL, NULL);
}
