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
#define FIRST_PAUSE			1000	/* ms, before it connects again: as long as it was lost */
#define LONGEST_PAUSE		60000

/* A watch of a server.  Times are ms of watch_clock_ms(). */
typedef struct Live
{
	const Options *options;
	Server	   *server;
	TraceWriter *trace;			/* or NULL */
	int64_t		start;			/* of tick 0, s since 1970 */
	int64_t		began;			/* the same */
	int64_t		tick;			/* the last */
	int64_t		lost;			/* when the connection was */
	int64_t		retry_at;
	int64_t		prometheus_at;
	bool		failed;			/* a file could not be written */
} Live;

static bool
is_over(const Live *live)
{
	return watch_interrupted() || live->failed ||
		(live->options->duration_ms > 0 && watch_clock_ms() - live->began >= live->options->duration_ms);
}

static void
write_prometheus(Live *live, const Watcher *watcher, bool last)
{
	const char *path = live->options->prometheus;
	int64_t		now = watch_clock_ms();

	if (path == NULL || (!last && now < live->prometheus_at))
		return;
	live->prometheus_at = now + PROMETHEUS_MS;
	live->failed |= !watch_write_prometheus(watcher, path, watch_connected(live->server) && !is_over(live));
}

/* The tick that it is time for, and not the last one again. */
static int64_t
next_tick(const Live *live, int64_t interval)
{
	return walsizer_max(live->tick + 1, (watch_clock_ms() - live->began + interval / 2) / interval);
}

static void
connect_again(Live *live)
{
	if (watch_clock_ms() < live->retry_at)
		return;
	if (watch_reconnect(live->server))
		watch_complain("connected again after %s", watch_duration_text(watch_clock_ms() - live->lost));
	live->retry_at = watch_clock_ms() + walsizer_min(walsizer_max(watch_clock_ms() - live->lost, FIRST_PAUSE), LONGEST_PAUSE);
}

static void
observe(const Options *options, Watcher *watcher, const Observation *seen)
{
	const WatchChange *change = watch_observe(watcher, seen);

	if (change != NULL && !options->quiet && !options->json)
		watch_say_change(change);
}

/* Take one sample, record it and decide. */
static void
take_sample(Live *live, Watcher *watcher)
{
	Observation seen;
	bool		good = watch_sample(live->server, live->start, &seen);

	live->tick = next_tick(live, watcher->config.sample_interval_ms);
	if (good)
	{
		seen.tick = live->tick;
		live->failed = live->trace != NULL && !watch_trace_write(live->trace, &seen);
		observe(live->options, watcher, &seen);
	}
	else if (!watch_connected(live->server))
	{
		live->lost = watch_clock_ms();
		live->retry_at = live->lost + FIRST_PAUSE;
	}
	write_prometheus(live, watcher, !watch_connected(live->server));
}

/* Watch a server.  False if a file could not be written. */
static bool
watch_live(const Options *options, Watcher *watcher)
{
	Live		live = {.options = options, .tick = -1};
	int64_t		interval = options->config.sample_interval_ms;
	int64_t		end;

	/* until it is connected, a signal ends the program: there is nothing to say */
	live.server = watch_connect(options, &live.start);
	watch_catch_signals();
	watch_begin(watcher, options, interval, live.start);
	if (options->record != NULL)
		live.trace = watch_trace_create(options->record, interval, live.start);
	if (!options->quiet && !options->json)
		printf("Watching%s.\n", options->duration_ms > 0 ? "" : "; Ctrl-C ends it");
	fflush(stdout);
	live.began = watch_clock_ms();
	while (!is_over(&live) && watch_sleep_until(live.began + (live.tick + 1) * interval))
	{
		if (!watch_connected(live.server))
			connect_again(&live);
		if (watch_connected(live.server))
			take_sample(&live, watcher);
		else
			live.tick = next_tick(&live, interval);
	}
	end = next_tick(&live, interval);
	watch_end(watcher, end);
	live.failed |= live.trace != NULL && !watch_trace_close(live.trace, end);
	write_prometheus(&live, watcher, true);
	watch_disconnect(live.server);
	return !live.failed;
}

/* Watch a trace.  Ends the program if it is damaged. */
static void
watch_replay(const Options *options, Watcher *watcher)
{
	int64_t		interval;
	int64_t		start;
	TraceReader *reader = watch_trace_open(options->replay, &interval, &start);
	Observation seen;

	watch_begin(watcher, options, interval, start);
	while (watch_trace_next(reader, &seen))
		observe(options, watcher, &seen);
	watch_end(watcher, seen.tick + 1);
}

int
main(int argc, char **argv)
{
	static Watcher watcher;		/* large */
	Options		options;
	bool		complete = true;

	watch_parse_options(&options, argc, argv);
	if (options.log)
		complete = watch_log(&options, &watcher);
	else if (options.replay != NULL)
		watch_replay(&options, &watcher);
	else
		complete = watch_live(&options, &watcher);
	if (options.json)
		watch_json(&watcher);
	else if (!options.quiet)
		watch_report(&watcher);
	if (fflush(stdout) != 0 || ferror(stdout))
		watch_die("could not write to standard output: %s", strerror(errno));
	return complete ? watch_judge(&watcher).status : WATCH_COULD_NOT_TELL;
}
