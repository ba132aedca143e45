/*-------------------------------------------------------------------------
 *
 * policy/memory.c
 *	  The text of the state file, and of the note: writing and reading them.
 *
 *		walsizer 1
 *		system <system identifier>
 *		state <whose value it is> <planned load> <last interval>
 *			<number of the newest event ever>
 *		recovery <WAL> <time> <read> <pages used> <written> <time>	(newest first)
 *		peak <hour> <demand> <timeout>						(any number)
 *		event <number> <at> ... <forced after> <message>	(any number)
 *		end <number of the lines above> <checksum of them>
 *
 * Every line is checked before any is used; a file without its last line is
 * incomplete.  Nobody edits this file: any deviation from this form is damage.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "policy/internal.h"
#include "policy/memory.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_MS				(INT64_C(1) << 40)	/* longer than any time measured */

typedef struct Reader
{
	const char *next;			/* unread text */
	const char *end;
	int			line;			/* of the line in buf, from 1 */
	char		buf[WALSIZER_LINE_SIZE];
	char	   *field;			/* unread part of buf */
} Reader;

/* FNV-1a: it detects damage, not forgery. */
static uint64_t
checksum(const char *text, size_t length)
{
	uint64_t	sum = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < length; i++)
	{
		sum ^= (unsigned char) text[i];
		sum *= UINT64_C(0x100000001b3);
	}
	return sum;
}

/* Take the next line, without newline.  False at the end or if too long. */
static bool
next_line(Reader *reader)
{
	size_t		left = (size_t) (reader->end - reader->next);
	const char *newline = left > 0 ? memchr(reader->next, '\n', left) : NULL;
	size_t		length;

	if (newline == NULL)
		return false;
	length = (size_t) (newline - reader->next);
	if (length >= sizeof(reader->buf) || memchr(reader->next, '\0', length) != NULL)
		return false;
	memcpy(reader->buf, reader->next, length);
	reader->buf[length] = '\0';
	reader->next = newline + 1;
	reader->line++;
	reader->field = reader->buf;
	return true;
}

/* Does the line begin with this word?  If so, skip it. */
static bool
take_word(Reader *reader, const char *word)
{
	size_t		length = strlen(word);

	if (strncmp(reader->field, word, length) != 0 || reader->field[length] != ' ')
		return false;
	reader->field += length + 1;
	return true;
}

/* Take one number and the single space after it, if the line continues. */
static bool
take_number(Reader *reader, int64_t least, int64_t most, int64_t *number)
{
	char	   *end;
	long long	value;

	if (strchr("-0123456789", *reader->field) == NULL)
		return false;
	value = strtoll(reader->field, &end, 10);
	if (end == reader->field || value < least || value > most)
		return false;
	if (*end == ' ')
		end++;
	else if (*end != '\0')
		return false;
	reader->field = end;
	*number = value;
	return true;
}

static bool
take_time(Reader *reader, int64_t *time)
{
	return take_number(reader, WALSIZER_LEAST_TIME, WALSIZER_MOST_TIME, time);
}

static bool
take_flag(Reader *reader, bool *flag)
{
	int64_t		number;

	if (!take_number(reader, 0, 1, &number))
		return false;
	*flag = number == 1;
	return true;
}

/* A number without a sign, the last of its line. */
static bool
take_unsigned(Reader *reader, int base, uint64_t *number)
{
	char	   *end;

	if (strchr("0123456789abcdef", *reader->field) == NULL)
		return false;
	*number = strtoull(reader->field, &end, base);
	return end != reader->field && *end == '\0';
}

/* All but peaks and events, in one line. */
static bool
read_state(Reader *reader, WalsizerMemory *memory)
{
	return take_number(reader, 0, INT32_MAX, &memory->owner.original_mb) &&
		take_flag(reader, &memory->owner.original_by_alter_system) &&
		take_number(reader, 0, INT32_MAX, &memory->owner.own_mb) &&
		take_number(reader, 0, INT32_MAX, &memory->boost_mb) &&
		take_time(reader, &memory->boost_until) &&
		take_number(reader, 0, INT32_MAX, &memory->boost_return_mb) &&
		take_number(reader, 0, WALSIZER_MOST_BYTES, &memory->interval.bytes) &&
		take_number(reader, 0, WALSIZER_MOST_BYTES, &memory->interval.records) &&
		take_number(reader, 0, WALSIZER_MOST_BYTES, &memory->interval.images) &&
		take_number(reader, 0, WALSIZER_MOST_BYTES, &memory->last_event) &&
		*reader->field == '\0';
}

static bool
read_recovery(Reader *reader, WalsizerMemory *memory)
{
	WalsizerRecovery recovery;

	if (!take_number(reader, 1, WALSIZER_MOST_BYTES, &recovery.bytes) ||
		!take_number(reader, 1, MOST_MS, &recovery.replay_ms) ||
		!take_number(reader, 0, WALSIZER_MOST_BYTES, &recovery.bytes_read) ||
		!take_number(reader, 0, WALSIZER_MOST_BYTES, &recovery.pages_used) ||
		!take_number(reader, 0, WALSIZER_MOST_BYTES, &recovery.pages_written) ||
		!take_number(reader, 0, MOST_MS, &recovery.writing_ms) ||
		*reader->field != '\0' || memory->num_recoveries >= WALSIZER_RECOVERIES)
		return false;
	memory->recoveries[memory->num_recoveries++] = recovery;
	return true;
}

static bool
read_peak(Reader *reader, WalsizerMemory *memory)
{
	WalsizerPeak peak;

	if (!take_number(reader, 1, INT32_MAX, &peak.hour) ||
		!take_number(reader, 1, WALSIZER_MOST_BYTES, &peak.demand) ||
		!take_number(reader, 1, MOST_MS, &peak.timeout_ms) ||
		*reader->field != '\0')
		return false;
	memory->peaks[peak.hour % WALSIZER_PEAK_SLOTS] = peak;
	return true;
}

/* The enumerations of an event. */
static bool
read_kind(Reader *reader, WalsizerEvent *event)
{
	int64_t		action;
	int64_t		reason;
	int64_t		limit;
	int64_t		outcome;

	if (!take_number(reader, 0, WALSIZER_LAST_ACTION, &action) ||
		!take_number(reader, 0, WALSIZER_LAST_REASON, &reason) ||
		!take_number(reader, 0, WALSIZER_LIMITS - 1, &limit) ||
		!take_number(reader, 0, WALSIZER_LAST_OUTCOME, &outcome))
		return false;
	event->action = (WalsizerAction) action;
	event->reason = (WalsizerReason) reason;
	event->limited_by = (WalsizerLimit) limit;
	event->outcome = (WalsizerOutcome) outcome;
	return true;
}

static bool
read_event(Reader *reader, WalsizerMemory *memory)
{
	WalsizerEvent event;
	int64_t		millionths;

	memset(&event, 0, sizeof(event));
	if (memory->num_events >= WALSIZER_HISTORY_SLOTS ||
		!take_number(reader, 1, memory->last_event, &event.number) ||
		!take_time(reader, &event.at) ||
		!read_kind(reader, &event) ||
		!take_number(reader, 0, INT32_MAX, &event.old_mb) ||
		!take_number(reader, 0, INT32_MAX, &event.wanted_mb) ||
		!take_number(reader, 0, INT32_MAX, &event.new_mb) ||
		!take_number(reader, 0, INT64_MAX, &event.demand) ||
		!take_number(reader, 0, INT64_MAX, &event.rate) ||
		!take_number(reader, 0, INT64_MAX, &event.forced) ||
		!take_number(reader, 0, INT64_MAX, &event.requested) ||
		!take_number(reader, 0, INT64_MAX, &event.timed) ||
		!take_number(reader, 0, MOST_MS, &event.timeout_ms) ||
		!take_number(reader, 0, 1000000, &millionths) ||
		!take_flag(reader, &event.standby) ||
		!take_number(reader, -1, INT64_MAX, &event.forced_after) ||
		strlen(reader->field) >= sizeof(event.message))
		return false;
	if (memory->num_events > 0 &&
		memory->events[memory->num_events - 1].number >= event.number)
		return false;

	event.completion_target = (double) millionths / 1e6;
	memcpy(event.message, reader->field, strlen(reader->field));
	memory->events[memory->num_events++] = event;
	return true;
}

/* The last line confirms all before it. */
static bool
read_end(Reader *reader, const char *text, size_t length)
{
	int64_t		lines = reader->line - 1;
	uint64_t	sum;

	return take_number(reader, lines, lines, &lines) &&
		take_unsigned(reader, 16, &sum) &&
		sum == checksum(text, length) && reader->next == reader->end;
}

static bool
fail(WalsizerMemoryError *error, const Reader *reader, const char *what)
{
	error->line = reader->line;
	error->what = what;
	return false;
}

/* The lines that every file begins with. */
static bool
read_heading(Reader *reader, WalsizerMemory *memory, WalsizerMemoryError *error)
{
	int64_t		version;

	if (!next_line(reader) || !take_word(reader, "walsizer") ||
		!take_number(reader, 1, INT32_MAX, &version) || *reader->field != '\0')
		return fail(error, reader, "not a walsizer state file");
	if (version != WALSIZER_MEMORY_VERSION)
		return fail(error, reader, "written by another version of walsizer");
	if (!next_line(reader) || !take_word(reader, "system") ||
		!take_unsigned(reader, 10, &memory->system_identifier))
		return fail(error, reader, "no system identifier");
	if (!next_line(reader) || !take_word(reader, "state") || !read_state(reader, memory))
		return fail(error, reader, "no valid line of values");
	return true;
}

/*
 * Read the text of a state file into *memory.  Returns false, with line and
 * reason in *error, if anything differs from what walsizer writes; *memory
 * must not be used then.
 */
bool
walsizer_memory_parse(const char *text, size_t length, WalsizerMemory *memory,
					  WalsizerMemoryError *error)
{
	Reader		reader = {0};

	memset(memory, 0, sizeof(*memory));
	reader.next = text;
	reader.end = text + length;
	if (!read_heading(&reader, memory, error))
		return false;

	for (;;)
	{
		size_t		so_far = (size_t) (reader.next - text);

		if (!next_line(&reader))
			return fail(error, &reader, "cut short");
		if (take_word(&reader, "end"))
		{
			if (read_end(&reader, text, so_far))
				return true;
			return fail(error, &reader, "wrong number of lines or checksum");
		}
		if (!(take_word(&reader, "recovery") && read_recovery(&reader, memory)) &&
			!(take_word(&reader, "peak") && read_peak(&reader, memory)) &&
			!(take_word(&reader, "event") && read_event(&reader, memory)))
			return fail(error, &reader, "not a valid line");
	}
}

/* The text so far; full when something did not fit. */
typedef struct Writer
{
	char	   *text;
	size_t		size;
	size_t		length;
	bool		full;
} Writer;

static void __attribute__((format(printf, 2, 3)))
append(Writer *writer, const char *format,...)
{
	size_t		left = writer->size - writer->length;
	va_list		args;
	int			added;

	va_start(args, format);
	added = vsnprintf(writer->text + writer->length, left, format, args);
	va_end(args);
	if ((size_t) added >= left) /* or an error, which is negative */
		writer->full = true;
	else
		writer->length += (size_t) added;
}

static void
append_event(Writer *writer, const WalsizerEvent *event)
{
	append(writer, "event %" PRId64 " %" PRId64 " %d %d %d %d %" PRId64 " %" PRId64 " %" PRId64,
		   event->number, event->at, (int) event->action, (int) event->reason,
		   (int) event->limited_by, (int) event->outcome, event->old_mb, event->wanted_mb,
		   event->new_mb);
	append(writer, " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %d %d %" PRId64 " ",
		   event->demand, event->rate, event->forced, event->requested, event->timed,
		   event->timeout_ms, (int) (event->completion_target * 1e6 + 0.5), event->standby,
		   event->forced_after);

	/* A message of the server may have several lines. */
	for (const char *c = event->message; *c != '\0'; c++)
		append(writer, "%c", (unsigned char) *c < ' ' ? ' ' : *c);
	append(writer, "\n");
}

/*
 * Write memory as text.  Returns the length, or 0 if size is too small:
 * WALSIZER_MEMORY_LINES * WALSIZER_LINE_SIZE always suffices.
 */
size_t
walsizer_memory_format(const WalsizerMemory *memory, char *text, size_t size)
{
	const WalsizerOwner *owner = &memory->owner;
	Writer		writer = {text, size, 0, false};
	int			lines = 3 + memory->num_recoveries + memory->num_events;

	append(&writer, "walsizer %d\nsystem %" PRIu64 "\n",
		   WALSIZER_MEMORY_VERSION, memory->system_identifier);
	append(&writer, "state %" PRId64 " %d %" PRId64,
		   owner->original_mb, owner->original_by_alter_system, owner->own_mb);
	append(&writer, " %" PRId64 " %" PRId64 " %" PRId64,
		   memory->boost_mb, memory->boost_until, memory->boost_return_mb);
	append(&writer, " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n",
		   memory->interval.bytes, memory->interval.records, memory->interval.images,
		   memory->last_event);
	for (int i = 0; i < memory->num_recoveries; i++)
	{
		const WalsizerRecovery *recovery = &memory->recoveries[i];

		append(&writer, "recovery %" PRId64 " %" PRId64 " %" PRId64,
			   recovery->bytes, recovery->replay_ms, recovery->bytes_read);
		append(&writer, " %" PRId64 " %" PRId64 " %" PRId64 "\n",
			   recovery->pages_used, recovery->pages_written, recovery->writing_ms);
	}
	for (int i = 0; i < WALSIZER_PEAK_SLOTS; i++)
	{
		const WalsizerPeak *peak = &memory->peaks[i];

		if (peak->hour <= 0)
			continue;
		append(&writer, "peak %" PRId64 " %" PRId64 " %" PRId64 "\n",
			   peak->hour, peak->demand, peak->timeout_ms);
		lines++;
	}
	for (int i = 0; i < memory->num_events; i++)
		append_event(&writer, &memory->events[i]);
	append(&writer, "end %d %" PRIx64 "\n", lines, checksum(text, writer.length));
	return writer.full ? 0 : writer.length;
}

/* What stands between the value in effect and the one before, by kind. */
static const char *const note_words[] = {
	[WALSIZER_NOTE_WRITTEN] = " instead of ",
	[WALSIZER_NOTE_RESTORED] = " restored, was ",
	[WALSIZER_NOTE_NO_ROOM] = " restored for lack of room, was ",
};

/* Write a note as text, into WALSIZER_NOTE_SIZE bytes; no note is empty. */
void
walsizer_note_format(const WalsizerNote *note, char *text)
{
	bool		written = note->kind == WALSIZER_NOTE_WRITTEN;

	text[0] = '\0';
	if (note->kind != WALSIZER_NO_NOTE)
		snprintf(text, WALSIZER_NOTE_SIZE, "%" PRId64 "MB%s%" PRId64 "MB%s",
				 written ? note->written_mb : note->original_mb, note_words[note->kind],
				 written ? note->original_mb : note->written_mb,
				 note->original_by_alter_system ? " by ALTER SYSTEM" : "");
}

/* Read a note of this kind; no note if the text is none. */
static WalsizerNote
parse_note(const char *text, WalsizerNoteKind kind)
{
	const char *words = strstr(text, note_words[kind]);
	WalsizerNote note = {.kind = kind};
	const WalsizerNote none = {0};
	char		again[WALSIZER_NOTE_SIZE];

	if (words == NULL || sscanf(text, "%10" SCNd64, &note.original_mb) != 1 ||
		sscanf(words + strlen(note_words[kind]), "%10" SCNd64, &note.written_mb) != 1 ||
		note.original_mb <= 0 || note.original_mb > INT32_MAX ||
		note.written_mb <= 0 || note.written_mb > INT32_MAX)
		return none;
	if (kind == WALSIZER_NOTE_WRITTEN)
	{
		int64_t		first = note.original_mb;

		note.original_mb = note.written_mb;
		note.written_mb = first;
	}
	note.original_by_alter_system = strstr(text, " by ") != NULL;
	walsizer_note_format(&note, again);
	return strcmp(text, again) == 0 ? note : none;
}

/* Read a note.  A text that walsizer would not have written gives none. */
WalsizerNote
walsizer_note_parse(const char *text)
{
	WalsizerNote note = {0};

	for (int kind = WALSIZER_NOTE_WRITTEN;
		 kind <= WALSIZER_NOTE_NO_ROOM && note.kind == WALSIZER_NO_NOTE; kind++)
		note = parse_note(text, (WalsizerNoteKind) kind);
	return note;
}
