/*-------------------------------------------------------------------------
 *
 * watch/system.c
 *	  What all files need of the system: messages, memory, clock, signals.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include "watch/watch.h"

static volatile sig_atomic_t interrupted = 0;

static void
handle_signal(int signal_number __attribute__((unused)))
{
	interrupted = 1;
}

/* Has a signal asked us to come to an end? */
bool
watch_interrupted(void)
{
	return interrupted != 0;
}

/* The first signal ends the watch, the second one the program.  nohup ignores SIGHUP for us. */
void
watch_catch_signals(void)
{
	struct sigaction action = {.sa_handler = handle_signal, .sa_flags = SA_RESETHAND};
	struct sigaction inherited;

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (sigaction(SIGHUP, NULL, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void __attribute__((format(printf, 2, 0)))
complain(const char *kind, const char *format, va_list args)
{
	fflush(stdout);
	fprintf(stderr, WATCH_NAME ": %s", kind);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

/* Say something on standard error. */
void
watch_complain(const char *format, ...)
{
	va_list		args;

	va_start(args, format);
	complain("", format, args);
	va_end(args);
}

/* Say why nothing can be told, and end with the status for that. */
void
watch_die(const char *format, ...)
{
	va_list		args;

	va_start(args, format);
	complain("error: ", format, args);
	va_end(args);
	exit(WATCH_COULD_NOT_TELL);
}

/* Zeroed memory; ends the program if there is none. */
void *
watch_allocate(size_t size)
{
	void	   *memory = calloc(1, size);

	if (memory == NULL)
		watch_die("out of memory");
	return memory;
}

/* Milliseconds of a clock that cannot be set, and that runs while we are suspended. */
int64_t
watch_clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Sleep until this time of watch_clock_ms(); false if a signal came. */
bool
watch_sleep_until(int64_t ms)
{
	int64_t		left;

	while (!interrupted && (left = ms - watch_clock_ms()) > 0)
	{
		struct timespec pause = {left / 1000, left % 1000 * 1000000};

		nanosleep(&pause, NULL);
	}
	return !interrupted;
}
