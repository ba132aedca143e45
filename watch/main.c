/*-------------------------------------------------------------------------
 *
 * watch/main.c
 *	  walsizer-watch: observe until the end, and say what came of it.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <string.h>

#include "watch/watch.h"

#define PROMETHEUS_MS		15000	/* between two writes of the file */
#define LONGEST_BACK_OFF	60000	/* ms */

/* A watch of a server. */
typedef struct Live
{
	const Options *options;
	Server	   *server;
	TraceWriter *trace;
	int64_t		start;			/* of tick 0, s since 1970 */
	int64_t		began;			/* the same, ms of watch_clock_ms() */
	int64_t		last_tick;
	int64_t		prometheus_at;
	bool		failed;			/* a file could not be written */
} Live;

static bool
is_over(const Live *live)
{
	return watch_interrupted() || live->failed ||
		(live->options->duration_ms > 0 &&
		 watch_clock_ms() - live->began >= live->options->duration_ms);
}

/*
 * Connect again, with growing pauses, until it succeeds or the watch is over.
 */
static void
wait_for_server(Live *live)
{
	int64_t		lost = watch_clock_ms();
	int64_t		pause = 1000;

	while (!is_over(live))
	{
		int64_t		until = watch_clock_ms() + pause;
		int64_t		end = live->began + live->options->duration_ms;

		if (live->options->duration_ms > 0 && until > end)
			until = end;
		if (!watch_sleep_until(until) || is_over(live))
			return;
		if (watch_reconnect(live->server))
		{
			watch_complain("connected again after %s", watch_duration_text(watch_clock_ms() - lost));
			return;
		}
		pause = pause * 2 < LONGEST_BACK_OFF ? pause * 2 : LONGEST_BACK_OFF;
	}
}

static void
write_prometheus(Live *live, const Watcher *watcher, bool last)
{
	const char *path = live->options->prometheus;
	int64_t		now = watch_clock_ms();

	if (path == NULL || (!last && now < live->prometheus_at))
		return;
	live->prometheus_at = now + PROMETHEUS_MS;
	if (!watch_write_prometheus(watcher, path, watch_connected(live->server) && !is_over(live)))
		live->failed = true;
}

/* The tick that it is time for, and not the last one again. */
static int64_t
next_tick(const Live *live, int64_t interval)
{
	int64_t		tick = (watch_clock_ms() - live->began + interval / 2) / interval;

	return tick > live->last_tick ? tick : live->last_tick + 1;
}

/* Take one sample, record it and decide. */
static void
take_sample(Live *live, Watcher *watcher)
{
	int64_t		interval = watcher->interval_ms;
	Observation seen;
	const WatchChange *change;

	if (!watch_sample(live->server, live->start, &seen))
	{
		/* a statement may time out without an end of the connection */
		if (!watch_interrupted() && !watch_connected(live->server))
		{
			write_prometheus(live, watcher, true);
			wait_for_server(live);
		}
		else
			live->last_tick = next_tick(live, interval);
		return;
	}
	live->last_tick = seen.tick = next_tick(live, interval);

	if (live->trace != NULL && !watch_trace_write(live->trace, &seen))
		live->failed = true;
	change = watch_observe(watcher, &seen);
	if (change != NULL && !live->options->quiet && !live->options->json)
		watch_say_change(change);
	write_prometheus(live, watcher, false);
}

static void
say_hello(const Live *live, const Options *options)
{
	if (options->quiet || options->json)
		return;
	printf("Watching PostgreSQL %s every %lld ms", watch_server_version(live->server),
		   (long long) options->config.sample_interval_ms);
	if (options->duration_ms > 0)
		printf(" for %s.\n", watch_duration_text(options->duration_ms));
	else
		printf("; Ctrl-C ends it.\n");
	fflush(stdout);
}

/* Watch a server.  False if a file could not be written. */
static bool
watch_live(const Options *options, Watcher *watcher)
{
	Live		live = {.options = options, .last_tick = -1};
	int64_t		interval = options->config.sample_interval_ms;

	/* until it is connected, a signal ends the program: there is nothing to say */
	live.server = watch_connect(options);
	watch_catch_signals();
	live.start = watch_server_time(live.server);
	watch_begin(watcher, options, interval, live.start);
	if (options->record != NULL)
		live.trace = watch_trace_create(options->record, interval, live.start);
	say_hello(&live, options);
	live.began = watch_clock_ms();
	while (!is_over(&live))
	{
		take_sample(&live, watcher);
		if (!watch_sleep_until(live.began + (live.last_tick + 1) * interval))
			break;
		/* skip the ticks that were missed */
		while (live.began + (live.last_tick + 1) * interval + interval / 2 <= watch_clock_ms())
			live.last_tick++;
	}
	watch_end(watcher, next_tick(&live, interval));
	if (live.trace != NULL && !watch_trace_close(live.trace, next_tick(&live, interval)))
		live.failed = true;
	write_prometheus(&live, watcher, true);
	watch_disconnect(live.server);
	return !live.failed;
}

/* Watch a trace; exit if it is damaged.  False if that was not done to the end. */
static bool
watch_replay(const Options *options, Watcher *watcher)
{
	int64_t		interval;
	int64_t		start;
	TraceReader *reader = watch_trace_open(options->replay, &interval, &start);
	Observation seen = {0};
	bool		more = false;

	watch_begin(watcher, options, interval, start);
	while (!watch_interrupted() && (more = watch_trace_next(reader, &seen)))
	{
		const WatchChange *change = watch_observe(watcher, &seen);

		if (change != NULL && !options->quiet && !options->json)
			watch_say_change(change);
	}
	watch_end(watcher, seen.tick + 1);
	watch_trace_free(reader);
	if (options->prometheus != NULL &&
		!watch_write_prometheus(watcher, options->prometheus, false))
		return false;
	return !more;
}

int
main(int argc, char **argv)
{
	static Watcher watcher;		/* large */
	Options		options;
	bool		complete;
	int			status;

	watch_parse_options(&options, argc, argv);
	if (options.log || options.replay != NULL)
		watch_catch_signals();
	if (options.log)
		complete = watch_log(&options, &watcher);
	else
		complete = options.replay != NULL ?
			watch_replay(&options, &watcher) : watch_live(&options, &watcher);
	if (options.json)
		watch_json(&watcher);
	else if (!options.quiet)
		watch_report(&watcher);
	status = complete ? watch_judge(&watcher).status : WATCH_COULD_NOT_TELL;
	if (fflush(stdout) != 0 || ferror(stdout))
		watch_die("could not write to standard output: %s", strerror(errno));
	return status;
}
