/*-------------------------------------------------------------------------
 *
 * server/statetext.c
 *	  The text of the state file, and of the note: writing and reading them.
 *
 *		walsizer 1
 *		state <key> <value> ...
 *		recovery <key> <value> ...		(newest first)
 *		peak <key> <value> ...			(any number)
 *		event <key> <value> ... message <rest of the line>	(oldest first)
 *		end <number of the lines above> <checksum of them>
 *
 * The form can grow: kinds of lines and keys that are not known are ignored, a
 * key that is missing is 0, and a name that is not known becomes "unknown".
 * Anything else is damage.  Every line is checked before any is used; a file
 * without its last line is incomplete.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "server/statetext.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ranges of numbers */
#define MB				0, INT32_MAX
#define BYTES			0, WALSIZER_MOST_BYTES
#define COUNT			0, INT64_MAX
#define TIME			WALSIZER_LEAST_TIME, WALSIZER_MOST_TIME
#define MOST_MS			(INT64_C(1) << 40)	/* longer than any time measured */

/* The text that is written or read, and the line under way. */
typedef struct Text
{
	bool		writing;
	bool		failed;			/* something does not fit; or a bad line */
	int			lines;			/* so far */

	char	   *to;				/* writing */
	size_t		size;
	size_t		length;

	const char *from;			/* reading: what is not read yet */
	const char *end;
	char		line[WALSIZER_LINE_SIZE];
	const char *words[WALSIZER_LINE_SIZE];	/* of it: kind, key, value, ... */
	int			num_words;
} Text;

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

static void __attribute__((format(printf, 2, 3)))
append(Text *text, const char *format,...)
{
	size_t		left = text->size - text->length;
	va_list		args;
	int			added;

	va_start(args, format);
	added = vsnprintf(text->to + text->length, left, format, args);
	va_end(args);
	if ((size_t) added >= left) /* or an error, which is negative */
		text->failed = true;
	else
		text->length += (size_t) added;
}

static void
begin_line(Text *text, const char *kind)
{
	if (text->writing)
	{
		append(text, "\n%s", kind);
		text->lines++;
	}
}

/* Take the next line, without newline.  False at the end, or if it is too long. */
static bool
next_line(Text *text)
{
	size_t		left = (size_t) (text->end - text->from);
	char	   *behind = memccpy(text->line, text->from, '\n',
								 left < sizeof(text->line) ? left : sizeof(text->line));

	if (behind == NULL || memchr(text->line, '\0', (size_t) (behind - text->line)) != NULL)
		return false;
	behind[-1] = '\0';
	text->from += behind - text->line;
	text->lines++;
	return true;
}

/* Split the line into its kind, keys and values.  False if it has another form, as before 1.0. */
static bool
split_line(Text *text)
{
	bool		is_value = false;
	char	   *word = text->line;

	for (text->num_words = 0; word != NULL; is_value = !is_value && text->num_words > 1)
	{
		bool		rest = is_value && strcmp(text->words[text->num_words - 1], "message") == 0;

		if (!is_value && (word[0] < 'a' || word[0] > 'z'))
			return false;
		text->words[text->num_words++] = word;
		word = rest ? NULL : strchr(word, ' ');
		if (word != NULL)
			*word++ = '\0';
	}
	return text->num_words % 2 == 1;
}

/* The value of a key in the line, or NULL. */
static const char *
value_of(const Text *text, const char *key)
{
	for (int i = 1; i < text->num_words; i += 2)
		if (strcmp(text->words[i], key) == 0)
			return text->words[i + 1];
	return NULL;
}

/* A number within its range. */
static void
number(Text *text, const char *key, int64_t *value, int64_t least, int64_t most)
{
	const char *digits;
	char	   *end;

	if (text->writing)
	{
		append(text, " %s %" PRId64, key, *value);
		return;
	}
	digits = value_of(text, key) != NULL ? value_of(text, key) : "0";
	*value = strtoll(digits, &end, 10);
	if (strchr("-0123456789", digits[0]) == NULL || end == digits || *end != '\0' ||
		*value < least || *value > most)
		text->failed = true;
}

static void
flag(Text *text, const char *key, bool *value)
{
	int64_t		as_number = *value;

	number(text, key, &as_number, 0, 1);
	*value = as_number == 1;
}

/* A function of policy/names.c */
typedef const char *(*NameOf) (unsigned int code);

/* The name of a code, with '_' for a blank, or "none". */
static void
write_name(NameOf name_of, unsigned int code, char *name, size_t size)
{
	snprintf(name, size, "%s", name_of(code)[0] != '\0' ? name_of(code) : "none");
	while ((name = strchr(name, ' ')) != NULL)
		*name = '_';
}

/* A code by its name.  One that is not known gets the first that has none. */
static unsigned int
code(Text *text, const char *key, NameOf name_of, unsigned int value)
{
	const char *wanted = value_of(text, key);	/* NULL while writing */
	char		name[WALSIZER_MESSAGE_SIZE];

	write_name(name_of, value, name, sizeof(name));
	if (text->writing)
		append(text, " %s %s", key, name);
	while (wanted != NULL && strcmp(name, wanted) != 0 && strcmp(name, "unknown") != 0)
		write_name(name_of, ++value, name, sizeof(name));
	return value;
}

/* A message of the server may have several lines. */
static void
message(Text *text, char *value)
{
	size_t		begin = text->length;
	const char *read = value_of(text, "message");

	if (text->writing)
		append(text, " message %s", value);
	else if (read != NULL && strlen(read) < WALSIZER_MESSAGE_SIZE)
		strcpy(value, read);
	else
		text->failed |= read != NULL;
	for (; begin < text->length; begin++)
		if ((unsigned char) text->to[begin] < ' ')
			text->to[begin] = ' ';
}

/* Each line, written or, if it was zero before, read. */
static void
state_line(Text *text, WalsizerMemory *memory)
{
	WalsizerOwner *owner = &memory->state.owner;
	WalsizerWal *interval = &memory->state.wal_contents.interval;

	begin_line(text, "state");
	number(text, "system_identifier", (int64_t *) &memory->system_identifier, INT64_MIN, INT64_MAX);
	number(text, "original_mb", &owner->original_mb, MB);
	flag(text, "original_by_alter_system", &owner->original_by_alter_system);
	number(text, "own_mb", &owner->own_mb, MB);
	number(text, "boost_mb", &memory->boost_mb, MB);
	number(text, "boost_until", &memory->boost_until, TIME);
	number(text, "boost_return_mb", &memory->state.boost.return_mb, MB);
	number(text, "interval_bytes", &interval->bytes, BYTES);
	number(text, "interval_records", &interval->records, BYTES);
	number(text, "interval_images", &interval->images, BYTES);
	number(text, "last_event", &memory->history.last_number, BYTES);
}

static void
recovery_line(Text *text, WalsizerRecovery *recovery)
{
	begin_line(text, "recovery");
	number(text, "bytes", &recovery->bytes, 1, WALSIZER_MOST_BYTES);
	number(text, "replay_ms", &recovery->replay_ms, 1, MOST_MS);
	number(text, "bytes_read", &recovery->bytes_read, BYTES);
	number(text, "pages_used", &recovery->pages_used, BYTES);
	number(text, "pages_written", &recovery->pages_written, BYTES);
	number(text, "writing_ms", &recovery->writing_ms, 0, MOST_MS);
}

static void
peak_line(Text *text, WalsizerPeak *peak)
{
	begin_line(text, "peak");
	number(text, "hour", &peak->hour, 1, INT32_MAX);
	number(text, "demand", &peak->demand, 1, WALSIZER_MOST_BYTES);
	number(text, "timeout_ms", &peak->timeout_ms, 1, MOST_MS);
	number(text, "inflated_at", &peak->inflated_at, BYTES);
}

static void
event_line(Text *text, WalsizerEvent *event)
{
	WalsizerDecision *decision = &event->decision;
	WalsizerFigures *figures = &decision->figures;
	int64_t		millionths = (int64_t) (event->settings.completion_target * 1e6 + 0.5);

	begin_line(text, "event");
	number(text, "number", &event->number, 1, WALSIZER_MOST_BYTES);
	number(text, "at", &event->at, TIME);
	decision->action = (WalsizerAction)
		code(text, "action", walsizer_action_name, decision->action);
	decision->reason = (WalsizerReason)
		code(text, "reason", walsizer_reason_code, decision->reason);
	decision->limited_by = (WalsizerLimit)
		code(text, "limited_by", walsizer_limit_name, decision->limited_by);
	event->result.outcome = (WalsizerOutcome)
		code(text, "outcome", walsizer_outcome_name, event->result.outcome);
	number(text, "old_mb", &event->old_mb, MB);
	number(text, "wanted_mb", &decision->wanted_mb, MB);
	number(text, "new_mb", &decision->target_mb, MB);
	number(text, "demand", &figures->demand, COUNT);
	number(text, "rate", &figures->rate, COUNT);
	number(text, "forced", &figures->forced, COUNT);
	number(text, "requested", &figures->requested, COUNT);
	number(text, "timed", &figures->timed, COUNT);
	number(text, "timeout_ms", &event->settings.timeout_ms, 0, MOST_MS);
	number(text, "completion_target_millionths", &millionths, 0, 1000000);
	event->settings.completion_target = (double) millionths / 1e6;
	flag(text, "standby", &event->standby);
	number(text, "forced_after", &event->forced_after, -1, INT64_MAX);
	message(text, event->result.message);
}

/* Read a line between the heading and the end.  False if it is damaged. */
static bool
read_line(Text *text, WalsizerMemory *memory)
{
	const char *kind = text->line;
	WalsizerHistory *history = &memory->history;

	if (!split_line(text))
		return false;
	if (strcmp(kind, "state") == 0)
	{
		state_line(text, memory);
		text->failed |= history->length > 0;	/* their numbers were compared with it */
	}
	else if (strcmp(kind, "recovery") == 0)
	{
		if (memory->num_recoveries >= WALSIZER_RECOVERIES)
			return false;
		recovery_line(text, &memory->recoveries[memory->num_recoveries++]);
	}
	else if (strcmp(kind, "peak") == 0)
	{
		WalsizerPeak peak = {0};

		peak_line(text, &peak);
		memory->state.learned.peaks[text->failed ? 0 : peak.hour % WALSIZER_PEAK_SLOTS] = peak;
	}
	else if (strcmp(kind, "event") == 0)
	{
		WalsizerEvent *event = &history->events[history->length];

		if (history->length >= WALSIZER_HISTORY_SLOTS)
			return false;
		event_line(text, event);
		text->failed |= event->number > history->last_number ||
			(history->length++ > 0 && event->number <= event[-1].number);
	}
	return !text->failed;
}

/*
 * Read the text of a state file into *memory.  Returns NULL, or how it is damaged, with the
 * line (from 1) in *line; *memory must not be used then.
 */
const char *
walsizer_memory_parse(const char *from, size_t length, WalsizerMemory *memory, int *line)
{
	Text		text = {.from = from,.end = from + length};
	const char *what = NULL;

	memset(memory, 0, sizeof(*memory));
	if (!next_line(&text) || strncmp(text.line, "walsizer ", strlen("walsizer ")) != 0)
		what = "not a walsizer state file";
	else if (strcmp(text.line, "walsizer " WALSIZER_MEMORY_VERSION) != 0)
		what = "written by another version of walsizer";
	while (what == NULL)
	{
		size_t		so_far = (size_t) (text.from - from);
		char		last[WALSIZER_LINE_SIZE];

		if (!next_line(&text))
			what = "cut short";
		else if (strncmp(text.line, "end ", strlen("end ")) == 0)
		{
			snprintf(last, sizeof(last), "end %d %" PRIx64, text.lines - 1, checksum(from, so_far));
			if (strcmp(text.line, last) == 0 && text.from == text.end)
				return NULL;
			what = "wrong number of lines or checksum";
		}
		else if (!read_line(&text, memory))
			what = "not a valid line";
	}
	*line = text.lines;
	return what;
}

/*
 * Write memory as text.  Returns the length, or 0 if size is too small:
 * WALSIZER_MEMORY_LINES * WALSIZER_LINE_SIZE always suffices.
 */
size_t
walsizer_memory_format(WalsizerMemory *memory, char *to, size_t size)
{
	Text		text = {.writing = true,.to = to,.size = size,.lines = 1};

	append(&text, "walsizer " WALSIZER_MEMORY_VERSION);
	state_line(&text, memory);
	for (int i = 0; i < memory->num_recoveries; i++)
		recovery_line(&text, &memory->recoveries[i]);
	for (int i = 0; i < WALSIZER_PEAK_SLOTS; i++)
		if (memory->state.learned.peaks[i].hour > 0)
			peak_line(&text, &memory->state.learned.peaks[i]);
	for (int i = 0; i < memory->history.length; i++)
		event_line(&text, &memory->history.events[i]);
	append(&text, "\n");
	append(&text, "end %d %" PRIx64 "\n", text.lines, checksum(to, text.length));
	return text.failed ? 0 : text.length;
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

/* Read a note.  A text that walsizer would not have written gives none. */
WalsizerNote
walsizer_note_parse(const char *text)
{
	for (int kind = WALSIZER_NOTE_WRITTEN; kind <= WALSIZER_NOTE_NO_ROOM; kind++)
	{
		const char *words = strstr(text, note_words[kind]);
		int64_t		first = strtoll(text, NULL, 10);
		int64_t		second = words == NULL ? 0 :
			strtoll(words + strlen(note_words[kind]), NULL, 10);
		bool		written = kind == WALSIZER_NOTE_WRITTEN;
		WalsizerNote note = {(WalsizerNoteKind) kind, written ? first : second,
			written ? second : first, strstr(text, " by ") != NULL};
		char		again[WALSIZER_NOTE_SIZE];

		walsizer_note_format(&note, again);
		if (first > 0 && first <= INT32_MAX && second > 0 && second <= INT32_MAX &&
			strcmp(text, again) == 0)
			return note;
	}
	return (WalsizerNote) {0};
}
