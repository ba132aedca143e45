/*-------------------------------------------------------------------------
 *
 * policy/recovery.c
 *	  How long a crash recovery takes.
 *
 * Replay costs time for each record, for each byte, and for each byte that is not
 * cached.  WAL that consists of page images has few records, so a megabyte of it takes a
 * tenth of the time of a megabyte of small changes, and a longer interval between
 * checkpoints has fewer images.  So the server's counters over the last interval tell how
 * many bytes and records a recovery replays, and the last few recoveries how fast.  After
 * that, the server writes each page that replay changed, before it accepts connections.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "policy/internal.h"

/*
 * What a record and a byte cost (ms) on a server with slowness 1.  In recoveries
 * of pgbench, bulk loads and index builds a record took 0.00025 where many
 * change the same page, and 0.0004; it took twice that where pages did not fit
 * into shared_buffers.  Reading a byte that is not cached is storage's part.
 */
#define RECORD_COST			0.00080
#define BYTE_COST			(1.03 / WALSIZER_MB)
#define READ_COST			(2.2 / WALSIZER_MB)

/* Of the time of a recovery, at most this part was spent on reading. */
#define MOST_READING		0.5

/* A server on which no recovery was measured yet: about 40MB/s of small records. */
#define ASSUMED_SLOWNESS	1.5
#define ASSUMED_PAGE_MS		0.02	/* to write a page at the end */
#define LEAST_PAGES			10000	/* fewer measure the 0.2 s of any start, not pages */

#define LEAST_RECORD		60.0	/* bytes: a mean below that was never seen */
#define LEAST_BYTES			(16 * WALSIZER_MB)	/* of an interval that counts */

/*
 * A page that changes is logged whole after each checkpoint, or is new, and is
 * written once until the next.  OLTP and bulk loads log 1 to 10 pages for each; so
 * much WAL is thousands of changes of the same page.
 */
#define MANY_CHANGES		(64 * WALSIZER_PAGE)	/* bytes for each page */

/*
 * Does the WAL of this interval, and of the one before, whose pages were written in
 * this one, change few pages?  Records larger than a page are messages of programs.
 */
static bool
changes_few_pages(const WalsizerWal *interval, const WalsizerWal *before)
{
	return interval->written >= 0 &&
		(double) interval->bytes < WALSIZER_PAGE * (double) interval->records &&
		(double) walsizer_min(interval->bytes, before->bytes) >
		MANY_CHANGES * (double) walsizer_max(interval->written, interval->images);
}

/*
 * Records in the first bytes of WAL after a checkpoint.  Where more is asked
 * than was seen, there are no images left, which is the slowest that it can be.
 * Images may be smaller than a page, so where there is little beside them the
 * records seem smaller than they are, but never smaller than any record is.
 */
static double
records_in(const WalsizerWal *interval, double bytes)
{
	double		seen = (double) interval->bytes;
	double		records = (double) interval->records;
	double		changes = seen - (double) interval->images * WALSIZER_PAGE;

	if (bytes < seen)
		return records * bytes / seen;
	if (changes > LEAST_RECORD * records)
		return records + (bytes - seen) * records / changes;
	return records + (bytes - seen) / LEAST_RECORD;
}

/* How slow a recovery was, without the reading of what was not cached. */
static double
slowness(const WalsizerRecovery *last)
{
	double		all = (double) last->replay_ms;
	double		reading = READ_COST * (double) last->bytes_read;

	if (last->replay_ms <= 0 || last->bytes <= 0)
		return ASSUMED_SLOWNESS;
	if (reading > MOST_READING * all)
		reading = MOST_READING * all;
	return (all - reading) /
		(RECORD_COST * (double) last->pages_used + BYTE_COST * (double) last->bytes);
}

/*
 * Time (ms) to write the changed pages of that WAL: one for each page of WAL,
 * and no more than shared_buffers hold.
 */
static double
writing_time(const WalsizerRecovery *last, const WalsizerSample *sample, double bytes)
{
	double		pages = (double) walsizer_min(walsizer_to_int64(bytes / WALSIZER_PAGE), sample->buffers);
	double		each = (double) last->writing_ms / (double) walsizer_max(last->pages_written, LEAST_PAGES);

	if (last->pages_written < LEAST_PAGES && each < ASSUMED_PAGE_MS)
		each = ASSUMED_PAGE_MS;
	return each * pages;
}

/*
 * Time (ms) of the recovery of so much WAL: the longest that any remembered recovery, each of
 * its own kind of WAL, lets expect.  After a failure of power nothing is cached.
 */
static int64_t
recovery_time(const WalsizerConfig *config, const WalsizerSample *sample,
			  double bytes, double records)
{
	int64_t		longest = 0;

	if (config->replay_rate > 0)
		return walsizer_to_int64(bytes * 1000.0 / config->replay_rate);
	for (int i = 0; i < WALSIZER_RECOVERIES; i++)
	{
		const WalsizerRecovery *one = &config->recoveries[i];
		double		time;

		/* without any, the first stands for what is assumed */
		if (i > 0 && one->replay_ms <= 0)
			continue;
		time = slowness(one) * (RECORD_COST * records + BYTE_COST * bytes) +
			READ_COST * bytes + writing_time(one, sample, bytes);
		longest = walsizer_max(longest, walsizer_to_int64(time));
	}
	return longest;
}

/*
 * Does this interval stand for a full one?  Yes, if it is at least half of one.  A
 * load that is too small to fill max_wal_size says nothing of one that does: between
 * the bursts of a load the limit would fall below what it needs.  But if its little
 * WAL already takes longer to recover than is allowed, it counts.
 */
static bool
is_full(const WalsizerConfig *config, const WalsizerSample *sample, const WalsizerWal *interval)
{
	double		intervals = 1.0 + sample->settings.completion_target;

	return interval->bytes >= walsizer_trigger_point(sample->settings.max_wal_size_mb, &sample->settings) / 2 ||
		(config->max_recovery_ms > 0 &&
		 recovery_time(config, sample, intervals * (double) interval->bytes,
					   intervals * (double) interval->records) > config->max_recovery_ms);
}

/*
 * An interval between two checkpoints ends with this sample.  Keep what it
 * consists of, if it stands for a full one, and the server has counted most of
 * it: a statement is counted when it ends.  An interval that CHECKPOINT or a
 * backup cut short has more images than one that max_wal_size ends.
 */
void
walsizer_observe_wal_contents(const WalsizerConfig *config, WalsizerState *state,
							  const WalsizerSample *sample, WalsizerCause cause)
{
	WalsizerWal interval = {
		.bytes = sample->wal.bytes - state->wal_contents.at_redo.bytes,
		.records = sample->wal.records - state->wal_contents.at_redo.records,
		.images = sample->wal.images - state->wal_contents.at_redo.images,
		.written = sample->wal.written - state->wal_contents.at_redo.written,
	};
	WalsizerWal before = state->wal_contents.last;

	state->wal_contents.at_redo = sample->wal;
	/* the checkpoint may have written some since it began */
	state->wal_contents.at_redo.written = state->last.wal.written;
	state->wal_contents.last = interval;
	state->wal_contents.few_pages = false;
	if (cause == WALSIZER_CAUSE_OTHER || interval.bytes < LEAST_BYTES ||
		interval.bytes < walsizer_distance(state->last.redo_lsn, sample->redo_lsn) / 2 ||
		interval.records <= 0 || interval.images < 0)
		return;
	if (state->wal_contents.interval.bytes == 0 || is_full(config, sample, &interval))
		state->wal_contents.interval = interval;
	state->wal_contents.few_pages = changes_few_pages(&interval, &before);
}

/*
 * Time (ms) that a crash recovery takes at worst with a size (MB): a crash just before a
 * checkpoint completes leaves about max_wal_size of WAL to replay: one interval, and
 * completion_target of the next (see CheckPointSegments).  Monotonic in the size.
 */
int64_t
walsizer_recovery_time(const WalsizerConfig *config, const WalsizerState *state,
					   const WalsizerSample *sample, int64_t mb)
{
	double		bytes = (double) mb * (double) WALSIZER_MB;
	double		intervals = 1.0 + sample->settings.completion_target;
	double		records = intervals * records_in(&state->wal_contents.interval, bytes / intervals);

	return recovery_time(config, sample, bytes, records);
}

/*
 * Time (ms) for a crash at this sample: WAL since the last complete checkpoint.
 * While another one runs, that is a whole interval and the one in progress.  The last
 * interval tells more of it than a full one, which may be of another load.
 */
int64_t
walsizer_recovery_time_now(const WalsizerConfig *config, const WalsizerState *state,
						   const WalsizerSample *sample)
{
	double		before = (double) walsizer_distance(sample->completed_lsn, sample->redo_lsn);
	double		since = (double) walsizer_distance(sample->redo_lsn, sample->write_lsn);
	const WalsizerWal *contents = &state->wal_contents.last;

	if ((double) contents->bytes < (before > since ? before : since) / 2 ||
		contents->records <= 0 || contents->images < 0)
		contents = &state->wal_contents.interval;
	return recovery_time(config, sample, before + since,
						 records_in(contents, before) + records_in(contents, since));
}

/*
 * The largest size (MB) with which recovery takes at most max_recovery_ms at
 * worst: the inverse of walsizer_recovery_time(), by bisection.
 */
int64_t
walsizer_recovery_limit(const WalsizerConfig *config, const WalsizerState *state)
{
	int64_t		low = 0;
	int64_t		high = WALSIZER_MOST_MB;

	while (low < high)
	{
		int64_t		middle = low + (high - low + 1) / 2;

		if (walsizer_recovery_time(config, state, &state->last, middle) <= config->max_recovery_ms)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}
