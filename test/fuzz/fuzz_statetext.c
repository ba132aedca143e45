/*-------------------------------------------------------------------------
 *
 * fuzz_statetext.c
 *	  The reader of the state file, with any text.
 *
 * An input that begins with '+' gets the last line that it needs, so that what
 * is behind the checksum is reached too.  One that begins with '=' says what is
 * to be remembered: that must be written and read as it was.  Then some bytes of
 * the text are changed, and the last line is made to agree.  What is accepted
 * must survive being written and read again.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "end_line.h"
#include "server/statetext.h"

#define CHECK(condition) \
	do { \
		if (!(condition)) \
			abort(); \
	} while (0)

#define TEXT_SIZE	((size_t) WALSIZER_MEMORY_LINES * WALSIZER_LINE_SIZE)

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(const WalsizerMemory *memory)
{
	CHECK(memory->state.owner.original_mb >= 0 && memory->state.owner.original_mb <= INT32_MAX);
	CHECK(memory->state.owner.own_mb >= 0 && memory->state.owner.original_mb >= 0);
	CHECK(memory->history.length >= 0 && memory->history.length <= WALSIZER_HISTORY_SLOTS);
	CHECK(memory->history.last_number < INT64_MAX - WALSIZER_HISTORY_SLOTS);
	CHECK(memory->history.length == 0 ||
		  memory->history.events[memory->history.length - 1].number <= memory->history.last_number);
	for (int i = 0; i < WALSIZER_PEAK_SLOTS; i++)
	{
		const WalsizerPeak *peak = &memory->state.learned.peaks[i];

		CHECK(peak->hour == 0 || (peak->hour % WALSIZER_PEAK_SLOTS == i && peak->demand > 0));
	}
	for (int i = 0; i < memory->history.length; i++)
	{
		const WalsizerEvent *event = &memory->history.events[i];

		CHECK(i == 0 || event->number > event[-1].number);
		CHECK(memchr(event->result.message, '\0', sizeof(event->result.message)) != NULL);
		/* or the first that has none */
		CHECK((int) event->decision.action >= 0 && event->decision.action <= WALSIZER_CHECKPOINT + 1);
		CHECK((int) event->decision.limited_by >= 0 && event->decision.limited_by <= WALSIZER_LIMITS);
	}
}

static uint64_t
take(const uint8_t **data, size_t *left, int bytes)
{
	uint64_t	value = 0;

	for (; bytes > 0 && *left > 0; bytes--, (*left)--)
		value = value << 8 | *(*data)++;
	return value;
}

/* Within the server's timestamps. */
static int64_t
take_time(const uint8_t **data, size_t *left)
{
	return (int64_t) take(data, left, 8) / 64;
}

static void
take_event(const uint8_t **data, size_t *left, WalsizerEvent *event)
{
	size_t		length;

	event->number += 1 + (int64_t) take(data, left, 1);
	event->at = take_time(data, left);
	event->decision.action = (WalsizerAction) (take(data, left, 1) % (WALSIZER_CHECKPOINT + 1));
	event->decision.reason = (WalsizerReason) (take(data, left, 1) % (WALSIZER_BECAUSE_DISK_FULL + 1));
	event->decision.limited_by = (WalsizerLimit) (take(data, left, 1) % (WALSIZER_LIMIT_RECOVERY + 1));
	event->result.outcome = (WalsizerOutcome) (take(data, left, 1) % (WALSIZER_FAILED + 1));
	event->old_mb = (int64_t) take(data, left, 3);
	event->decision.wanted_mb = (int64_t) take(data, left, 3);
	event->decision.target_mb = (int64_t) take(data, left, 3);
	event->decision.figures.demand = (int64_t) take(data, left, 7);
	event->decision.figures.rate = (int64_t) take(data, left, 7);
	event->decision.figures.forced = (int64_t) take(data, left, 2);
	event->decision.figures.requested = (int64_t) take(data, left, 2);
	event->decision.figures.timed = (int64_t) take(data, left, 2);
	event->settings.timeout_ms = (int64_t) take(data, left, 4);
	event->settings.completion_target = (double) (take(data, left, 3) % 1000001) / 1e6;
	event->standby = take(data, left, 1) & 1;
	event->forced_after = (int64_t) take(data, left, 2) - 1;
	length = (size_t) take(data, left, 1);
	for (size_t i = 0; i < length && i < sizeof(event->result.message) - 1; i++)
		event->result.message[i] = (char) take(data, left, 1);
}

/* What an input says is to be remembered, all of it within its ranges. */
static void
take_memory(const uint8_t **data, size_t *left, WalsizerMemory *memory)
{
	WalsizerEvent event = {0};
	int			peaks;

	memset(memory, 0, sizeof(*memory));
	memory->system_identifier = take(data, left, 8);
	memory->state.owner.original_mb = (int64_t) take(data, left, 3);
	memory->state.owner.original_by_alter_system = take(data, left, 1) & 1;
	memory->state.owner.own_mb = (int64_t) take(data, left, 3);
	memory->num_recoveries = (int) (take(data, left, 1) % (WALSIZER_RECOVERIES + 1));
	for (int i = 0; i < memory->num_recoveries; i++)
		memory->recoveries[i] = (WalsizerRecovery) {
			.bytes = 1 + (int64_t) take(data, left, 7), .replay_ms = 1 + (int64_t) take(data, left, 4),
			.bytes_read = (int64_t) take(data, left, 7), .pages_used = (int64_t) take(data, left, 7),
			.pages_written = (int64_t) take(data, left, 4), .writing_ms = (int64_t) take(data, left, 4),
		};
	memory->state.wal_contents.interval = (WalsizerWal) {
		.bytes = (int64_t) take(data, left, 7), .records = (int64_t) take(data, left, 5),
		.images = (int64_t) take(data, left, 5),
	};
	for (peaks = (int) take(data, left, 1); peaks > 0; peaks--)
	{
		int64_t		hour = 1 + (int64_t) take(data, left, 3);
		WalsizerPeak *peak = &memory->state.learned.peaks[hour % WALSIZER_PEAK_SLOTS];

		peak->hour = hour;
		peak->demand = 1 + (int64_t) take(data, left, 7);
		peak->timeout_ms = 1 + (int64_t) take(data, left, 4);
		peak->inflated_at = (int64_t) take(data, left, 7);
	}
	memory->history.length = (int) take(data, left, 1) % 32;
	for (int i = 0; i < memory->history.length; i++)
	{
		take_event(data, left, &event);
		memory->history.events[i] = event;
	}
	memory->history.last_number = event.number + (int64_t) take(data, left, 1);
}

/* Write it, read it, then change some bytes for what follows. */
static char *
written_and_changed(const uint8_t *data, size_t left, size_t *length)
{
	static WalsizerMemory memory;
	static WalsizerMemory again;
	int			line = -1;
	char	   *text = malloc(TEXT_SIZE + 64);

	CHECK(text != NULL);
	take_memory(&data, &left, &memory);
	*length = walsizer_memory_format(&memory, text, TEXT_SIZE);
	CHECK(*length > 0);
	CHECK(walsizer_memory_parse(text, *length, &again, &line) == NULL);
	CHECK(memory.system_identifier == again.system_identifier);
	CHECK(memory.history.length == again.history.length);
	CHECK(memory.history.last_number == again.history.last_number);
	for (int i = 0; i < memory.history.length; i++)
		CHECK(memcmp(&memory.history.events[i], &again.history.events[i],
					 offsetof(WalsizerEvent, settings)) == 0);
	CHECK(memcmp(memory.recoveries, again.recoveries, sizeof(memory.recoveries)) == 0);
	CHECK(memcmp(&memory.state, &again.state, sizeof(memory.state)) == 0);

	/* without the last line, which has to agree with the change */
	while (--*length > 0 && text[*length - 1] != '\n')
		;
	while (left > 0 && *length > 0)
	{
		size_t		where = (size_t) take(&data, &left, 2) % *length;

		text[where] = (char) take(&data, &left, 1);
	}
	*length = add_end(text, *length);
	return text;
}

/* What is taken for a note is one that we would have written. */
static void
check_note(const char *text, size_t length)
{
	char		given[2 * WALSIZER_NOTE_SIZE] = "";
	char		again[WALSIZER_NOTE_SIZE];
	WalsizerNote note;

	memcpy(given, text, length < sizeof(given) - 1 ? length : sizeof(given) - 1);
	note = walsizer_note_parse(given);
	if (note.kind == WALSIZER_NO_NOTE)
		return;
	CHECK(note.written_mb > 0 && note.original_mb > 0);
	walsizer_note_format(&note, again);
	CHECK(strcmp(given, again) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static WalsizerMemory memory;
	static WalsizerMemory again;
	int			line = -1;
	bool		whole = size > 0 && data[0] == '+';
	char	   *text;
	char	   *written;
	size_t		length = size - whole;

	if (size > 0 && data[0] == '=')
		text = written_and_changed(data + 1, size - 1, &length);
	else
	{
		text = malloc(size + 64);
		CHECK(text != NULL);
		memcpy(text, data + whole, length);
		if (whole)
			length = add_end(text, length);
	}
	check_note(text, length);
	/* exactly as large as it is, so that reading on is seen */
	text = realloc(text, length > 0 ? length : 1);
	if (walsizer_memory_parse(text, length, &memory, &line) == NULL)
	{
		size_t		size_written;

		check(&memory);
		written = malloc(TEXT_SIZE);
		CHECK(written != NULL);
		size_written = walsizer_memory_format(&memory, written, TEXT_SIZE);
		CHECK(size_written > 0);
		CHECK(walsizer_memory_parse(written, size_written, &again, &line) == NULL);
		check(&again);
		CHECK(memory.history.length == again.history.length);
		CHECK(memcmp(&memory.state, &again.state, sizeof(memory.state)) == 0);
		free(written);
	}
	else
		CHECK(line >= 0);
	free(text);
	return 0;
}
