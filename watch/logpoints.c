/*-------------------------------------------------------------------------
 *
 * watch/logpoints.c
 *	  From messages to checkpoints: pairs of lines, and what is missing.
 *
 * A checkpoint has a start, a distance from the redo pointer of the one before, and from
 * 16 on positions.  Lines are missing where these do not agree or, without positions,
 * the server's estimate does not follow from the distance.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "watch/log.h"

#ifndef MOST_RECORDS			/* a test has fewer */
#define MOST_RECORDS	262144	/* two for a checkpoint: a year at 5 min */
#endif
#define RESOLUTION		1500	/* ms: many logs have whole seconds */
#define MOST_NEAR		8		/* records kept before one that are compared with it */

Log *
watch_log_begin(const Options *options)
{
	Log		   *log = watch_allocate(sizeof(Log));

	log->options = options;
	log->records = watch_allocate((MOST_RECORDS + 1) * sizeof(LogRecord));
	return log;
}

/* Take in one message of the log.  If there are too many, it is kept in place of the oldest. */
void
watch_log_take(Log *log, const LogRecord *message)
{
	LogRecord  *record = &log->records[log->number % MOST_RECORDS];
	bool		other = log->options->pid != 0 && message->pid != log->options->pid;

	/* the postmaster says that a setting was changed: it is not known, which one's */
	if (other && message->kind == LOG_PARAMETER)
		log->assumed |= WATCH_ASSUMED_SIZE | WATCH_ASSUMED_TIMEOUT | WATCH_ASSUMED_TARGET;
	if (other)
		return;
	log->found.restartpoints += message->kind == LOG_RESTARTPOINT;
	log->found.old |= message->old;
	*record = *message;
	log->number++;
	if (message->kind == LOG_COMPLETE)
	{
		record->end_ms = message->ms;
		record->ms = walsizer_max(0, record->ms - message->total_ms);
	}
}

int
watch_log_compare(int64_t first, int64_t second)
{
	return (first > second) - (first < second);
}

static int
by_start(const void *a, const void *b)
{
	const LogRecord *first = a;
	const LogRecord *second = b;

	if (first->ms == second->ms && first->end_ms == second->end_ms)
		return watch_log_compare(first->kind, second->kind);
	return first->ms != second->ms ? watch_log_compare(first->ms, second->ms) :
		watch_log_compare(first->end_ms, second->end_ms);
}

/* Is it the same message?  In text, which does not number them, the time may be whole seconds. */
static bool
is_same(const LogRecord *a, const LogRecord *b)
{
	return a->kind == b->kind && a->flags == b->flags && a->distance == b->distance && a->pid == b->pid &&
		a->total_ms == b->total_ms && a->redo == b->redo &&
		llabs((long long) (a->ms - b->ms)) < ((a->number == 0) != (b->number == 0) ? 1010 : 1);
}

/* Sort the records, and leave out what comes twice. */
static void
sort_records(Log *log)
{
	int			number = (int) walsizer_min(log->number, MOST_RECORDS);

	qsort(log->records, (size_t) number, sizeof(LogRecord), by_start);
	for (int i = 0; i < number; i++)
	{
		const LogRecord *record = &log->records[i];
		bool		twice = false;

		for (int j = 1; j <= MOST_NEAR && j <= log->kept && record->kind < LOG_PARAMETER; j++)
			twice |= is_same(&log->records[log->kept - j], record);
		log->found.checkpoints += !twice && record->kind == LOG_COMPLETE;
		if (!twice)
			log->records[log->kept++] = *record;
	}
}

/*
 * Give each complete checkpoint its start, if it is in the log and agrees with how
 * long it took: that has the cause, and the better time.  A warning has the cause.
 */
static void
pair_records(Log *log)
{
	int			first = 0;

	for (int i = 0; i < log->kept; i++)
	{
		LogRecord  *start = &log->records[i];
		bool		warns = start->kind == LOG_FREQUENT && log->found.checkpoints > 0;

		log->found.warnings += start->kind == LOG_FREQUENT;
		if (start->kind == LOG_PARAMETER && start->settings.max_wal_size_mb != 0 && log->found.checkpoints > 0)
			log->found.warnings_before = log->found.warnings;
		if (start->kind != LOG_STARTING && !warns)
			continue;
		while (log->records[first].ms < start->ms - RESOLUTION)
			first++;
		for (int j = first; j < log->kept && log->records[j].ms <= start->ms + RESOLUTION; j++)
		{
			LogRecord  *record = &log->records[j];

			/* its warning tells more, if there is nothing else */
			if (record->kind == LOG_FREQUENT && log->found.checkpoints == 0)
				start->kind = LOG_NOTHING;
			if (record->kind != LOG_COMPLETE || (record->started && !warns))
				continue;
			record->started |= !warns;
			record->ms = warns ? record->ms : start->ms;
			record->flags |= start->flags;
			log->found.warnings -= warns;
			start->kind = LOG_NOTHING;
			break;
		}
		if (warns)
			start->kind = LOG_NOTHING;
	}
	log->found.warnings -= log->found.warnings_before;
}

/*
 * Two servers in one log: a checkpointer writes again after another one has, and none was
 * started in between.  Ends the program then.  Numbers that change with most lines are no PIDs.
 */
static void
check_pids(Log *log)
{
	int64_t		last = 0;		/* since a server was started; 0: none, like the next */
	int64_t		other = 0;		/* before the last */
	int			changes = 0;
	int			all = 0;

	for (int i = 0; i < log->kept; i++)
	{
		const LogRecord *record = &log->records[i];

		if (record->kind == LOG_READY || record->flags & (LOG_SHUTDOWN | LOG_RECOVERY))
			last = other = 0;
		if (record->pid == 0 || record->kind == LOG_NOTHING || record->kind == LOG_RESTARTPOINT || record->kind >= LOG_PARAMETER)
			continue;
		all++;
		if (record->pid == last)
			continue;
		if (record->pid == other)
			watch_die("the log is of several servers, two of their checkpointers are %lld and %lld: choose one with --pid",
					  (long long) other, (long long) last);
		other = last;
		last = record->pid;
		changes++;
	}
	log->pids_wrong = changes * 2 > all;
}

/*
 * Does nothing lie between two checkpoints?  kB are rounded down.  Of each there are
 * two messages, and one warning that they are too frequent.
 */
static bool
follows(const LogRecord *before, const LogRecord *record)
{
	int64_t		expected = record->distance;

	if (before->redo != 0 && record->redo != 0)
		return llabs((long long) (record->redo - before->redo) - record->distance) <= 2048;
	if (before->number != 0 && record->number != 0)
		return record->number - before->number <= 3;
	if (before->estimate >= record->distance)
		expected = (int64_t) (0.9 * (double) before->estimate + 0.1 * (double) record->distance);
	return llabs((long long) (expected - record->estimate)) <= 3 * 1024;
}

/* Has a restart changed max_wal_size, which no message tells?  A checkpoint that did not wait shows it. */
static bool
contradicts(const LogRecord *record)
{
	int64_t		beyond = record->distance -	/* the trigger point, with the usual target */
		(int64_t) ((double) (record->settings.max_wal_size_mb * WALSIZER_MB) / 1.9);

	return (record->flags & (LOG_WAL | LOG_TIME) && beyond > 32 * WALSIZER_MB) ||
		(record->flags & LOG_WAL && beyond < -32 * WALSIZER_MB);
}

/*
 * Find where each interval began, which lines are missing, and which settings the
 * log names.  After a restart, or a crash, WAL continues; estimate and timer begin anew.
 */
static void
link_records(Log *log)
{
	LogRecord  *before = NULL;
	WalsizerSettings known = {.completion_target = -1};	/* none */
	int64_t		since = 0;		/* start of the server, or of a checkpoint without an end */
	bool		lost = false;
	bool		inherited = false;	/* are the settings from before a restart */
	int64_t		replayed = -1;	/* by this process, up to the restartpoint before; -1: none */
	int			number = 0;		/* kept: checkpoints, or warnings */

	for (int i = 0; i < log->kept; i++)
	{
		LogRecord  *record = &log->records[number];
		bool		crashed;
		bool		restarted;

		*record = log->records[i];
		if (record->kind == LOG_RESTARTPOINT)
			replayed = record->pid;
		else if (record->pid == replayed && record->flags & (LOG_TIME | LOG_WAL) && !(record->flags & LOG_ASKED))
			replayed = -1;		/* of a primary: the first after a promotion is asked for */
		if (record->kind == LOG_NOTHING || record->kind == LOG_RESTARTPOINT)
			continue;
		number += record->kind < LOG_PARAMETER;
		if (record->kind == LOG_PARAMETER)
		{
			watch_log_update(&known, &record->settings);
			inherited &= record->settings.max_wal_size_mb == 0;
			continue;
		}
		record->settings = known;
		inherited |= record->kind == LOG_READY;
		/* a recovery or a promotion has ended with the checkpoint before */
		if (record->kind == LOG_READY && before != NULL && before->begins && record->ms < before->end_ms + 1000)
			before->flags |= LOG_RECOVERY;
		if (record->kind == LOG_READY && before != NULL && before->flags & LOG_RECOVERY)
			continue;
		if (record->kind != LOG_COMPLETE)
		{
			since = record->ms;
			lost = record->kind == LOG_STARTING;
			continue;
		}
		if (before != NULL && record->ms < before->end_ms - 10 * RESOLUTION)
			watch_die("two checkpoints overlap, at %s: the log is of several servers, or its clock was set back; read each server, or each part, by itself",
					  watch_time_text(record->ms / 1000, "%Y-%m-%d %H:%M:%S"));
		/* from a restartpoint, or from before a crash or a restored backup: nobody knows how long ago */
		if (record->pid == replayed ||
			(before != NULL && before->flags & LOG_SHUTDOWN && record->flags & LOG_RECOVERY && since == 0))
			before = NULL;
		if (record->pid == replayed || (before == NULL && record->flags & LOG_RECOVERY))
			record->distance = 0;
		if (record->pid == replayed)
			replayed = -1;
		crashed = before != NULL && record->flags & LOG_RECOVERY;
		restarted = crashed || (before != NULL && !(before->flags & LOG_RECOVERY) &&
								((before->pid != record->pid && !log->pids_wrong) || before->flags & LOG_SHUTDOWN));
		inherited |= restarted;
		if (record->flags == (LOG_CAUSE_KNOWN | LOG_ASKED) && (restarted || before == NULL || since != 0))
			record->distance = 0;
		else if (since != 0 && !crashed)
			record->from_ms = since;
		else if (before != NULL && (crashed || before->flags & LOG_RECOVERY || (!restarted && follows(before, record))))
			record->from_ms = before->ms;
		/* the start before may be dated later by its line */
		record->from_ms = walsizer_min(record->from_ms, record->ms);
		if (record->redo == 0 && since == 0 && record->from_ms != 0 && before->redo != 0)
			record->redo = before->redo + (uint64_t) record->distance;
		record->begins = record->from_ms == 0 || (since != 0 && !crashed);
		log->found.missing += before != NULL && !restarted && (lost || (since == 0 && record->begins));
		log->found.restarts += before != NULL && (restarted || (!lost && since != 0));
		/* many logs have whole seconds */
		record->waited = crashed ||
			(before != NULL && record->ms - before->end_ms <= (before->end_ms % 1000 == 0 ? 1000 : 100));
		if (inherited && !record->waited && contradicts(record))
			known.max_wal_size_mb = record->settings.max_wal_size_mb = 0;
		before = record;
		since = 0;
		lost = false;
	}
	log->kept = number;
	if (inherited)
		known.max_wal_size_mb = number > 0 ? log->records[number - 1].settings.max_wal_size_mb : 0;
	log->records[number] = (LogRecord) {.settings = known};
}

/*
 * Without log_checkpoints there are only warnings.  Each is a forced checkpoint;
 * with a known max_wal_size its distance is the trigger point.
 */
static void
use_warnings(Log *log)
{
	for (int i = 0; i < log->kept; i++)
	{
		LogRecord  *record = &log->records[i];

		if (record->kind != LOG_FREQUENT)
			continue;
		record->from_ms = record->ms - record->write_ms;
		if (!(record->assumed & WATCH_ASSUMED_SIZE))
			record->distance = walsizer_trigger_point(record->settings.max_wal_size_mb, &record->settings);
	}
}

/* The log is at its end: order the records, and find what follows from them. */
void
watch_log_end(Log *log)
{
	sort_records(log);
	pair_records(log);
	check_pids(log);
	link_records(log);
	watch_log_settle(log);
	use_warnings(log);
}
