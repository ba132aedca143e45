/*-------------------------------------------------------------------------
 *
 * fuzz_log.c
 *	  The reader of the server's log, with any text.
 *
 * What is judged must be within its ranges, and the range of demand in order.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE				/* memmem() */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "watch/log.h"

static jmp_buf ended;

/* What system.c has in the program; an end of it is the end of an input. */
void
watch_complain(const char *format, ...)
{
	(void) format;
}

void
watch_die(const char *format, ...)
{
	(void) format;
	longjmp(ended, 1);
}

void *
watch_allocate(size_t size)
{
	void	   *memory = calloc(1, size);

	CHECK(memory != NULL);
	return memory;
}

static void
check(Log *log, Watcher *watcher)
{
	const WatchLog *found = &log->found;
	WatchVerdict verdict;

	watch_log_judge(log, watcher);
	verdict = watch_judge(watcher);
	CHECK(verdict.status >= WATCH_SUFFICIENT && verdict.status <= WATCH_COULD_NOT_TELL);
	CHECK(found->least >= 0 && found->least <= found->about && found->about <= found->sized);
	CHECK(found->most >= WATCH_UNKNOWN && found->lasted_ms >= 0);
	CHECK(watcher->wal >= 0 && watcher->unseen_ms >= 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static Watcher watcher;		/* large */
	static Options options;
	static Log *log;
	static FILE *file;

	/* what is not text ends the program at once */
	for (int i = 0; i < LOG_NOT_TEXT; i++)
		if (size < 2 || memmem(data, size, watch_log_not_text[i][0], strlen(watch_log_not_text[i][0])) != NULL)
			return 0;
	options = (Options) {.log = true, .year = 2025, .config = walsizer_default};
	options.record = data[0] & 2 ? "/dev/null" : NULL;
	options.given = (WalsizerSettings) {.max_wal_size_mb = data[0] & 1 ? 1024 : 0,
		.completion_target = -1};
	log = watch_log_begin(&options);
	file = fmemopen((void *) (data + 1), size - 1, "r");
	CHECK(file != NULL);
	watch_log_read(log, file);
	fclose(file);
	if (setjmp(ended) == 0)
	{
		watch_log_end(log);
		if (log->kept > 0)
			check(log, &watcher);
	}
	free(log->records);
	free(log);
	return 0;
}
