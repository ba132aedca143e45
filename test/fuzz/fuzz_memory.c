/*-------------------------------------------------------------------------
 *
 * fuzz_memory.c
 *	  The reader of the state file, with any text.
 *
 * An input that begins with '+' gets the last line that it needs, so that what
 * is behind the checksum is reached too.  What is accepted must survive being
 * written and read again.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "walsizer_memory.h"

#define CHECK(condition) \
	do { \
		if (!(condition)) \
			abort(); \
	} while (0)

#define TEXT_SIZE	((size_t) WALSIZER_MEMORY_LINES * WALSIZER_LINE_SIZE)

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The number of lines and their FNV-1a sum, as walsizer_memory.c writes them. */
static size_t
add_end(char *text, size_t length)
{
	uint64_t	sum = UINT64_C(0xcbf29ce484222325);
	int			lines = 0;

	for (size_t i = 0; i < length; i++)
	{
		sum = (sum ^ (unsigned char) text[i]) * UINT64_C(0x100000001b3);
		lines += text[i] == '\n';
	}
	return length + (size_t) sprintf(text + length, "end %d %" PRIx64 "\n", lines, sum);
}

static void
check(const WalsizerMemory *memory)
{
	CHECK(memory->found >= 0 && memory->found <= INT32_MAX);
	CHECK(memory->written >= 0 && memory->own >= 0);
	CHECK(memory->num_events >= 0 && memory->num_events <= WALSIZER_HISTORY_SLOTS);
	for (int i = 0; i < WALSIZER_PEAK_SLOTS; i++)
		CHECK(memory->peaks[i].hour == 0 ||
			  (memory->peaks[i].hour % WALSIZER_PEAK_SLOTS == i && memory->peaks[i].demand > 0));
	for (int i = 0; i < memory->num_events; i++)
	{
		const WalsizerEvent *event = &memory->events[i];

		CHECK(i == 0 || event->number > event[-1].number);
		CHECK(memchr(event->message, '\0', sizeof(event->message)) != NULL);
		CHECK(strcmp(walsizer_action_name(event->action), "unknown") != 0);
		CHECK(strcmp(walsizer_reason_name(event->reason), "unknown") != 0);
		CHECK(strcmp(walsizer_bound_name(event->bound), "unknown") != 0);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static WalsizerMemory memory;
	static WalsizerMemory again;
	WalsizerMemoryError error = {0};
	bool		whole = size > 0 && data[0] == '+';
	char	   *text = malloc(size + 64);
	char	   *written;
	size_t		length = size - whole;

	CHECK(text != NULL);
	memcpy(text, data + whole, length);
	if (whole)
		length = add_end(text, length);
	/* exactly as large as it is, so that reading on is seen */
	text = realloc(text, length > 0 ? length : 1);
	if (walsizer_memory_parse(text, length, &memory, &error))
	{
		size_t		size_written;

		check(&memory);
		written = malloc(TEXT_SIZE);
		CHECK(written != NULL);
		size_written = walsizer_memory_format(&memory, written, TEXT_SIZE);
		CHECK(size_written > 0);
		CHECK(walsizer_memory_parse(written, size_written, &again, &error));
		check(&again);
		CHECK(memory.num_events == again.num_events);
		CHECK(memcmp(memory.peaks, again.peaks, sizeof(memory.peaks)) == 0);
		free(written);
	}
	else
		CHECK(error.what != NULL && error.line >= 0);
	free(text);
	return 0;
}
