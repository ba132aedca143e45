/*-------------------------------------------------------------------------
 *
 * watch/log.h
 *	  What the files that read a server's log share.
 *
 * logmessage.c knows messages, logfile.c formats of files, logpoints.c what
 * checkpoints follow from them, logsettings.c what settings, and logrange.c what demand.
 * Times are ms since 1970 of the clock that the log shows, whatever its zone.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#ifndef WATCH_LOG_H
#define WATCH_LOG_H

#include "watch/watch.h"

#define LOG_MOST_BYTES		(INT64_C(1) << 45)	/* of one distance, so that sums are possible */
#define LOG_MOST_MS			(INT64_C(1) << 48)	/* of a time */
#define LOG_LEAST_TIMEOUT	(INT64_C(30) * 1000)	/* of checkpoint_timeout, ms */
#define LOG_MOST_TIMEOUT	(INT64_C(86400) * 1000)
#define LOG_NOT_TEXT		5		/* kinds of files */

typedef enum LogKind
{
	LOG_NOTHING = 0,
	LOG_STARTING,				/* a checkpoint */
	LOG_COMPLETE,
	LOG_RESTARTPOINT,			/* complete */
	LOG_FREQUENT,				/* "checkpoints are occurring too frequently" */
	LOG_PARAMETER,				/* a setting was changed by a reload */
	LOG_READY,					/* the server has started */
} LogKind;

/* Words of "checkpoint starting". */
#define LOG_TIME			1
#define LOG_WAL				2
#define LOG_FAST			4	/* not spread over time */
#define LOG_ASKED			8	/* any other */
#define LOG_CAUSE_KNOWN		16	/* also if there was no word */
#define LOG_SHUTDOWN		32
#define LOG_RECOVERY		64	/* ends with it */
#define LOG_WAIT			128	/* for its end; without it, LOG_ASKED is a promotion */

/* A message; then a checkpoint, or what happened between two of them. */
typedef struct LogRecord
{
	LogKind		kind;			/* LOG_STARTING: never seen complete, in the end */
	int64_t		ms;				/* of the message, then of the checkpoint's start */
	int64_t		pid;			/* of the process; 0: not known, like the next */
	int64_t		number;			/* of the message among those of the process */
	unsigned int flags;			/* also of LOG_COMPLETE, from 19 on */
	bool		old;			/* its words are those of 9.6 or older */
	int64_t		buffers;		/* written */
	int64_t		files;			/* removed and recycled */
	int64_t		write_ms;		/* LOG_FREQUENT: between the last two */
	int64_t		total_ms;
	int64_t		distance;		/* bytes, like the next */
	int64_t		estimate;
	uint64_t	lsn;			/* of the checkpoint; 0: not in the log */
	uint64_t	redo;
	WalsizerSettings settings;	/* LOG_PARAMETER: what is not 0, or for the
								 * target not negative; then what was in effect */

	/* what logpoints.c finds out */
	int64_t		end_ms;			/* 0: not known */
	int64_t		from_ms;		/* when the WAL up to it began; 0: not known */
	bool		started;		/* its start is in the log, too */
	bool		begins;			/* what was before does not continue */
	bool		waited;			/* for the one before to end */
	unsigned int assumed;		/* settings: WATCH_ASSUMED_SIZE, ... */
} LogRecord;

typedef struct Log
{
	const Options *options;
	LogRecord  *records;		/* a ring, then sorted; after those kept, one with the settings at the end */
	int64_t		number;			/* of all, also those no longer kept */
	int			kept;
	bool		pids_wrong;		/* what looks like a process ID is none */
	WalsizerSettings settings;	/* inferred or assumed */
	unsigned int assumed;		/* which of these */
	WatchLog	found;
} Log;

/* watch/logmessage.c */
extern bool watch_log_is_severity(const char *text, size_t length);
extern const char *watch_log_level(const char *line);
extern bool watch_log_message(const char *text, LogRecord *message);

/* watch/logfile.c */
extern const char *const watch_log_not_text[LOG_NOT_TEXT][2];
extern void watch_log_read(Log *log, FILE *file);
extern void watch_log_read_all(Log *log);

/* watch/logpoints.c */
extern Log *watch_log_begin(const Options *options);
extern void watch_log_take(Log *log, const LogRecord *message);
extern void watch_log_end(Log *log);
extern int	watch_log_compare(int64_t first, int64_t second);

/* watch/logsettings.c */
extern void watch_log_settle(Log *log);
extern void watch_log_update(WalsizerSettings *settings, const WalsizerSettings *others);

/* watch/logrange.c */
extern bool watch_log_judge(Log *log, Watcher *watcher);

#endif							/* WATCH_LOG_H */
