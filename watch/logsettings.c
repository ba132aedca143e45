/*-------------------------------------------------------------------------
 *
 * watch/logsettings.c
 *	  The server's settings, as they follow from its checkpoints.
 *
 * A setting that was given, or that the log names, is not inferred.  What does not
 * follow is assumed, and the page says so.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stdlib.h>

#include "watch/log.h"

#define DEFAULT_TIMEOUT	300000
#define DEFAULT_MB		1024

static int
by_value(const void *a, const void *b)
{
	return watch_log_compare(*(const int64_t *) a, *(const int64_t *) b);
}

/*
 * The smallest frequent value: the mean of the first tenth of all within "apart"; 0 if there is none.
 * Of usual times, a hundredth: the checkpoints of an idle server are as far apart as its writes.
 */
static int64_t
smallest_frequent(int64_t *values, int number, int64_t apart)
{
	qsort(values, (size_t) number, sizeof(int64_t), by_value);
	for (int i = 0; i < number; i++)
	{
		double		sum = 0;
		int			j = i;

		for (; j < number && values[j] - values[i] <= apart; j++)
			sum += (double) values[j];
		if ((j - i) * (apart > 0 && values[i] % 30000 < 2000 ? 100 : 10) >= number)
			return (int64_t) (sum / (j - i) + 0.5);
	}
	return 0;
}

/* Round ms to a time that people set, if one is near: 30 s, 5 s, or 1 s. */
static int64_t
usual_timeout(int64_t ms)
{
	static const int64_t steps[] = {30000, 5000, 1000};
	int			i = 0;

	while (i < 2 && llabs((long long) ((ms + steps[i] / 2) / steps[i] * steps[i] - ms)) > 2000)
		i++;
	ms = (ms + steps[i] / 2) / steps[i] * steps[i];
	return walsizer_max(LOG_LEAST_TIMEOUT, walsizer_min(ms, LOG_MOST_TIMEOUT));
}

/*
 * checkpoint_timeout: the time between a timed checkpoint and the one before.  Without timed
 * ones, at least the longest interval between forced ones, and longer than any was written.
 * If a forced one came later than a timed one would have, a restart has changed it.
 */
static void
infer_timeout(Log *log, int64_t *values)
{
	int64_t		writing = 0;
	int64_t		longest = 0;
	int64_t		ms;
	int			number = 0;
	bool		forced = false; /* the one before; after others, an idle server waits */

	for (int i = 0; i < log->kept; i++)
	{
		const LogRecord *record = &log->records[i];
		int64_t		spacing = record->from_ms != 0 ? record->ms - record->from_ms : 0;

		if (record->kind != LOG_COMPLETE || record->settings.timeout_ms != 0)
			continue;
		if (spacing > 0 && record->flags & LOG_TIME && !record->waited)
			values[number++] = spacing;
		else if (record->flags & LOG_WAL && forced && !record->waited)
			longest = walsizer_max(longest, spacing);
		forced = record->flags & LOG_WAL;
		writing = walsizer_max(writing, record->flags & LOG_FAST ? 0 : record->write_ms);
	}
	ms = smallest_frequent(values, number, 2000);
	writing = (int64_t) ((double) writing / 0.9);
	if (ms == 0 || (number < 3 && (ms + 2000 < writing || ms > 3602000)) ||
		(number > 1 && number < 4 && (values[1] + 2000) % ms > 4000))	/* idle times are multiples */
	{
		log->assumed |= WATCH_ASSUMED_TIMEOUT;
		ms = walsizer_max(DEFAULT_TIMEOUT, (walsizer_max(longest, writing) + 29000) / 30000 * 30000);
	}
	log->assumed |= longest > ms + 30000 ? WATCH_ASSUMED_TIMEOUT : 0u;
	log->settings.timeout_ms = usual_timeout(ms);
}

/* The part of checkpoint_timeout that the longest timed checkpoint wrote for. */
static void
infer_target(Log *log)
{
	double		most = 0;
	int			number = 0;

	for (int i = 0; i < log->kept; i++)
	{
		const LogRecord *record = &log->records[i];
		int64_t		timeout = record->settings.timeout_ms != 0 ? record->settings.timeout_ms : log->settings.timeout_ms;
		double		part = (double) record->write_ms / (double) timeout;

		/* the server pauses for 100 ms between two pages at most; WAL, or a new timeout, paced the last before it */
		if (!(record->flags & LOG_TIME) || record->settings.completion_target >= 0 || part > 1 ||
			record->write_ms > 90 * record->buffers ||
			(i + 1 < log->kept && (record[1].flags & LOG_WAL || record[1].settings.timeout_ms != record->settings.timeout_ms)))
			continue;
		most = part > most ? part : most;
		number++;
	}
	log->settings.completion_target = 0.9;
	if (number >= 3 && most > 0.45)
		log->settings.completion_target = (double) (int) (most * 20 + 0.9) / 20;
	else
		log->assumed |= WATCH_ASSUMED_TARGET;
}

/* WAL segments: a checkpoint removes or recycles what it no longer needs. */
static void
infer_segment(Log *log, int64_t *values)
{
	int64_t		power = 4;		/* of two, MB: the median, if half of all agree */
	int			number = 0;
	int			votes = 0;

	for (int i = 0; i < log->kept; i++)
	{
		const LogRecord *record = &log->records[i];

		if (record->kind == LOG_COMPLETE && record->files >= 4)
			values[number++] = lrint(log2((double) walsizer_max(record->distance, 1) /
										  (double) record->files / WALSIZER_MB));
	}
	qsort(values, (size_t) number, sizeof(int64_t), by_value);
	for (int i = 0; i < number; i++)
		votes += values[i] == values[number / 2];
	if (votes >= 3 && votes * 2 >= number && values[number / 2] >= 0)
		power = walsizer_min(values[number / 2], 10);
	log->settings.segment_bytes = WALSIZER_MB << power;
}

/* The roundest size (MB) whose trigger point is this number of segments, and how round it is. */
static int64_t
roundest(const Log *log, int64_t segments, double target, int64_t *step)
{
	static const int64_t steps[] = {10240, 1024, 512, 256, 100, 64, 50, 32, 16, 8, 4, 2, 1};
	WalsizerSettings settings = log->settings;
	int64_t		segment_mb = settings.segment_bytes / WALSIZER_MB;
	int64_t		least = (int64_t) ((double) segments * (1 + target));
	int64_t		most;
	int			i = 0;

	settings.completion_target = target;
	while (walsizer_checkpoint_segments(least * segment_mb, &settings) < segments)
		least++;
	for (most = least; walsizer_checkpoint_segments((most + 1) * segment_mb, &settings) == segments;)
		most++;
	most = (most + 1) * segment_mb - 1;
	least *= segment_mb;
	while (most / steps[i] * steps[i] < least)	/* 1 is never too large a step */
		i++;
	*step = steps[i];
	return most / steps[i] * steps[i];
}

/*
 * Segments up to the trigger point, as a forced checkpoint shows it.  Where the redo
 * pointers are not known: a forced one has its own near the start of a segment.
 */
static int64_t
segments_of(const LogRecord *record, bool after_forced, int64_t segment)
{
	if (record->redo != 0)
		return (record->distance + (int64_t) (record->redo - (uint64_t) record->distance) % segment +
				segment / 64) / segment;
	return (record->distance + (after_forced ? segment / 2 : segment - 1)) / segment;
}

/*
 * max_wal_size from the trigger point, which forced checkpoints show, surely if they did not
 * wait for the one before to end.  The last three or more that are alike count, for it may
 * have been changed.  Several sizes have the same trigger point: people set round ones.
 * Without forced ones, it is at least what the longest distance needed.
 */
static void
infer_size(Log *log, int64_t *values)
{
	static const double usual_targets[] = {0.9, 0.5};	/* from 14 on, and before */
	int64_t		segment = log->settings.segment_bytes;
	int64_t		longest = 0;
	int64_t		other_step;
	int64_t		step;
	int64_t		segments;
	int64_t		mb;
	int			number = 0;
	int			run = 0;		/* where the last values that are alike begin */

	/* first those that surely did not wait, then those of which nobody knows */
	for (int pass = 0; pass < 3 && number == 0; pass++)
	{
		bool		after_forced = false;

		for (int i = 0; i < log->kept; i++)
		{
			const LogRecord *record = &log->records[i];

			if (record->kind != LOG_COMPLETE || record->settings.max_wal_size_mb != 0)
				continue;
			if (!(record->flags & LOG_WAL))
			{
				longest = walsizer_max(longest, record->distance);
				if (number > 0 && record->flags & LOG_TIME && !record->waited &&
					record->distance > (values[number - 1] + 2) * segment)
					number = run = 0;	/* it was raised */
			}
			else if (pass == 2 || (!record->waited && (pass == 1 || record->from_ms != 0)))
			{
				values[number] = segments_of(record, after_forced, segment);
				if (number > run &&
					llabs((long long) (values[number] - values[number - 1])) > 1 + values[number] / 10)
					run = number;
				number++;
			}
			after_forced = record->flags & LOG_WAL && !record->waited;
		}
		if (pass > 0)
			log->assumed |= WATCH_ASSUMED_SIZE;
	}
	run = number - run < 3 ? 0 : run;
	segments = smallest_frequent(values + run, number - run, 0);
	log->found.size_shown = segments > 0;
	if (segments == 0)
	{
		log->assumed |= WATCH_ASSUMED_SIZE;
		log->settings.max_wal_size_mb = walsizer_max(DEFAULT_MB, walsizer_size_for(longest, &log->settings));
		return;
	}
	log->settings.max_wal_size_mb = roundest(log, segments, log->settings.completion_target, &step);
	for (int i = 0; i < 2 && log->options->given.completion_target < 0; i++)
	{
		mb = roundest(log, segments, usual_targets[i], &other_step);
		if (other_step <= step || other_step < 256 || !(log->assumed & WATCH_ASSUMED_TARGET))
			continue;
		step = other_step;
		log->settings.max_wal_size_mb = mb;
		log->settings.completion_target = usual_targets[i];
	}
}

/* Replace what is known of others. */
void
watch_log_update(WalsizerSettings *settings, const WalsizerSettings *others)
{
	if (others->segment_bytes != 0)
		settings->segment_bytes = others->segment_bytes;
	if (others->max_wal_size_mb != 0)
		settings->max_wal_size_mb = others->max_wal_size_mb;
	if (others->timeout_ms != 0)
		settings->timeout_ms = others->timeout_ms;
	if (others->completion_target >= 0)
		settings->completion_target = others->completion_target;
}

/* Give each checkpoint its settings: as given, as the log says, else as inferred. */
void
watch_log_settle(Log *log)
{
	const WalsizerSettings *given = &log->options->given;
	int64_t    *values = watch_allocate((size_t) (log->kept + 1) * sizeof(int64_t));

	for (int i = 0; i <= log->kept; i++)
		watch_log_update(&log->records[i].settings, given);
	infer_segment(log, values);
	watch_log_update(&log->settings, given);
	infer_timeout(log, values);
	watch_log_update(&log->settings, given);
	infer_target(log);
	watch_log_update(&log->settings, given);
	infer_size(log, values);
	free(values);
	for (int i = 0; i <= log->kept; i++)
	{
		WalsizerSettings known = log->records[i].settings;
		unsigned int not_known = (known.max_wal_size_mb == 0 ? WATCH_ASSUMED_SIZE : 0u) |
			(known.timeout_ms == 0 ? WATCH_ASSUMED_TIMEOUT : 0u) |
			(known.completion_target < 0 ? WATCH_ASSUMED_TARGET : 0u);

		log->records[i].assumed = log->assumed & not_known;
		log->records[i].settings = log->settings;
		watch_log_update(&log->records[i].settings, &known);
	}
}
