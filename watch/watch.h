/*-------------------------------------------------------------------------
 *
 * watch/watch.h
 *	  walsizer-watch: what the worker would decide, seen by a client.
 *
 * A server, or a trace of one, gives observations, and the watcher decides on them.  A log
 * gives its demand.  report.c and output.c say what came of it.  Of our other sources only
 * policy/ is used, whose units are those here: bytes, milliseconds, and _mb for megabytes.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#ifndef WATCH_H
#define WATCH_H

#include <stdio.h>

#include "policy/policy.h"

#define WATCH_NAME				"walsizer-watch"
#define WATCH_VERSION			"1.0"
#define WATCH_OLDEST_SERVER		130000
#define WATCH_COLUMNS			80

/* Exit statuses. */
#define WATCH_SUFFICIENT		0
#define WATCH_TOO_SMALL			1
#define WATCH_COULD_NOT_TELL	2

/* Positions are rounded down to this part of a segment: see test/sim/README.md. */
#define WATCH_UNITS_PER_SEGMENT	64

/* The policy's clock at the start, ms; the last checkpoint, for example, is before it, not before 0. */
#define WATCH_CLOCK_START		(INT64_C(2) * 24 * 3600 * 1000)

#define WATCH_MOST_SUM			(INT64_C(1) << 60)	/* counts stay below it */

/* A figure that the server did not give. */
#define WATCH_UNKNOWN			(-1)

/* watch/options.c */
typedef struct Options
{
	const char *dbname;			/* or a connection string; like the next */
	const char *host;			/* three: NULL if not given */
	const char *port;
	const char *user;
	WalsizerConfig config;
	int64_t		disk_limit;		/* bytes, 0: none given */
	int64_t		duration_ms;	/* 0: until a signal comes */
	const char *record;			/* files; NULL if not given */
	const char *replay;
	bool		log;			/* the rest is about the server's log */
	char	  **files;			/* "-" is standard input */
	int			num_files;
	WalsizerSettings given;		/* not in the log; 0, or a negative target: none */
	int64_t		year;			/* of syslog; 0: this one */
	int64_t		pid;			/* 0: any */
	const char *prometheus;
	bool		quiet;
	bool		json;
} Options;

extern void watch_parse_options(Options *options, int argc, char **argv);

/* watch/units.c */
extern bool watch_parse_size(const char *text, int64_t *mb);
extern bool watch_parse_time(const char *text, int64_t default_unit_ms, int64_t *ms);
extern int64_t watch_parse_timestamp(const char *text);
extern const char *watch_size_text(int64_t bytes);
extern const char *watch_duration_text(int64_t ms);
extern const char *watch_time_text(int64_t epoch_s, const char *format);

#define WATCH_COMMAND_LINE		"command line"	/* as pg_settings.source has it */

/*
 * One look at the server.  Positions count from the start of a segment that is
 * chosen when the observations begin, so they tell nothing about the server.
 */
typedef struct Observation
{
	int64_t		tick;			/* number of intervals since the start */
	bool		begins;			/* another or restarted server: nothing before it continues */
	int64_t		timer_s;		/* begins: when the checkpoint timer was set; as started_s */
	bool		standby;
	char		source[24];		/* of max_wal_size, at the last connection; or empty */
	WalsizerSettings settings;
	int64_t		position;		/* written; standby: replayed */
	int64_t		primary;		/* standby: the primary's, or WATCH_UNKNOWN */
	int64_t		completed;		/* redo pointer of the last complete checkpoint, or WATCH_UNKNOWN */
	int64_t		started_s;		/* when that one started, s after the start; negative: before */
	int64_t		busy;			/* does the checkpointer work? 0, 1, or WATCH_UNKNOWN */
	int64_t		requested;		/* the server's counters, or WATCH_UNKNOWN */
	int64_t		timed;
	int64_t		images;			/* full-page images, and their bytes (19), up */
	int64_t		image_bytes;	/* to the last checkpoint, or WATCH_UNKNOWN */
	WalsizerWal wal;			/* as counted now; bytes: or WATCH_UNKNOWN; not in a trace */
} Observation;

/* What no source knows at first. */
static const Observation WATCH_NOTHING_SEEN = {
	.completed = WATCH_UNKNOWN, .busy = WATCH_UNKNOWN, .requested = WATCH_UNKNOWN,
	.timed = WATCH_UNKNOWN, .images = WATCH_UNKNOWN, .image_bytes = WATCH_UNKNOWN,
	.primary = WATCH_UNKNOWN, .wal = {.bytes = WATCH_UNKNOWN},
};

/* The redo pointer, which SQL shows only late. */
typedef struct RedoTracker
{
	int64_t		redo;			/* of the last checkpoint started */
	Observation seen;			/* the last, and when */
	int64_t		now;
	int64_t		position_before;	/* of the observation before that */
	int64_t		now_before;
	int64_t		timer_start;
	bool		running;		/* redo is that of a checkpoint not complete */
	bool		busy;			/* seen last, without a checkpoint to explain it */
	bool		idle_seen;		/* since the last one was complete */
} RedoTracker;

/* watch/watcher.c */
#define WATCH_CHANGES			1000	/* the newest ones are kept */

typedef struct WatchChange
{
	int64_t		at;				/* s since 1970 */
	int64_t		old_mb;
	WalsizerDecision decision;
} WatchChange;

/* Intervals between checkpoints, by what ended them. */
typedef struct WatchIntervals
{
	int64_t		number;
	int64_t		ms;
} WatchIntervals;

/* Not in the log, and not given. */
#define WATCH_ASSUMED_SIZE		1
#define WATCH_ASSUMED_TIMEOUT	2
#define WATCH_ASSUMED_TARGET	4

/* The verdict at the end. */
typedef struct WatchVerdict
{
	int			status;			/* an exit status */
	int64_t		demand;			/* largest measured */
	int64_t		needed_mb;		/* what it needs without headroom */
	int64_t		wanted_mb;		/* and with it */
	int64_t		set_mb;			/* within the limits, and at least the value in effect */
	WalsizerLimit limited_by;
	WalsizerVerdict verdict;	/* the sentences, as the extension has them */
} WatchVerdict;

#define WATCH_STRETCHES			5	/* the last ones are kept */

/* Part of a log with the same settings. */
typedef struct WatchStretch
{
	int64_t		from;			/* s since 1970 */
	int64_t		to;
	int64_t		max_wal_size_mb;
	bool		assumed;		/* the log does not tell max_wal_size */
	WatchVerdict verdict;
} WatchStretch;

/* What a log tells of its last stretch, and of all of it. */
typedef struct WatchLog
{
	int64_t		from;			/* first and last checkpoint, s since 1970 */
	int64_t		to;
	int64_t		least;			/* demand, bytes */
	int64_t		about;
	int64_t		most;			/* WATCH_UNKNOWN: it is too short for that */
	int64_t		sized;			/* the size is for this much */
	int64_t		lasted_ms;		/* between checkpoints whose WAL is known */
	int64_t		unfinished;		/* forced, and not seen complete */
	unsigned int assumed;
	bool		size_shown;		/* by forced checkpoints */
	bool		old;			/* the server is 9.6 or older */
	int64_t		checkpoints;	/* all of the log, like the rest */
	int64_t		restartpoints;
	int64_t		warnings;		/* of checkpoints that are not in the log */
	int64_t		warnings_before;	/* likewise, before max_wal_size was changed */
	int64_t		missing;		/* places where checkpoints are missing */
	int64_t		restarts;
	int64_t		before_mb;		/* needed by the load before the settings were changed, at most; 0: nothing */
	int64_t		num_stretches;
	WatchStretch stretches[WATCH_STRETCHES];	/* a ring, without the last */
} WatchLog;

typedef struct Watcher
{
	WalsizerConfig config;
	bool		live;			/* the source is a server */
	const WatchLog *log;		/* NULL: the source is none */
	int64_t		disk_limit;		/* bytes, 0: none */
	int64_t		zero;			/* of the policy's clock, s since 1970 */

	WalsizerState state;
	WalsizerSample sample;		/* the last, like the next three */
	WalsizerDecision decision;
	Observation seen;
	int64_t		now;
	RedoTracker tracker;
	int64_t		said_mb;		/* so not said again; 0: nothing */

	/* what came of it */
	int64_t		samples;
	int64_t		began;			/* ms, the first sample */
	int64_t		unseen_ms;		/* no sample for more than one interval */
	int64_t		restarts;
	int64_t		wal;			/* bytes written */
	int64_t		images;			/* WATCH_UNKNOWN: the server does not say */
	int64_t		image_bytes;	/* likewise */
	WatchIntervals intervals[WALSIZER_CAUSES + 1];	/* the last: a log does not tell */
	int64_t		num_changes;	/* all, also those no longer kept */
	WatchChange changes[WATCH_CHANGES]; /* a ring */
} Watcher;

extern void watch_begin(Watcher *watcher, const Options *options, int64_t interval_ms, int64_t start);
extern const WatchChange *watch_observe(Watcher *watcher, const Observation *seen);
extern void watch_end(Watcher *watcher, int64_t tick);
extern WatchVerdict watch_judge(const Watcher *watcher);

/* watch/server.c: only this includes libpq */
typedef struct Server Server;

extern Server *watch_connect(const Options *options, int64_t *now);
extern bool watch_connected(const Server *server);
extern bool watch_reconnect(Server *server);
extern void watch_disconnect(Server *server);
extern bool watch_sample(Server *server, int64_t start, Observation *seen);

/* watch/trace.c */
typedef struct TraceWriter TraceWriter;
typedef struct TraceReader TraceReader;

extern TraceWriter *watch_trace_create(const char *path, int64_t interval_ms, int64_t start);
extern bool watch_trace_write(TraceWriter *writer, const Observation *seen);
extern bool watch_trace_close(TraceWriter *writer, int64_t tick);
extern TraceReader *watch_trace_open(const char *path, int64_t *interval_ms, int64_t *start);
extern bool watch_trace_next(TraceReader *reader, Observation *seen);

/* watch/logrange.c */
extern bool watch_log(const Options *options, Watcher *watcher);

/* watch/report.c */
extern void watch_say_change(const WatchChange *change);
extern void watch_report(const Watcher *watcher);

/* watch/output.c */
extern void watch_json(const Watcher *watcher);
extern bool watch_write_prometheus(const Watcher *watcher, const char *path, bool connected);

/* watch/system.c */
extern void watch_catch_signals(void);
extern bool watch_interrupted(void);
extern void watch_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern void watch_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
extern void *watch_allocate(size_t size);
extern int64_t watch_clock_ms(void);
extern bool watch_sleep_until(int64_t ms);

#endif							/* WATCH_H */
