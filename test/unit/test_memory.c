/*-------------------------------------------------------------------------
 *
 * test_memory.c
 *	  The text of the state file and of the note: what is written is read as
 *	  it was, and anything else is refused.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"
#include "end_line.h"
#include "policy/memory.h"

#define TEXT_SIZE	((size_t) WALSIZER_MEMORY_LINES * WALSIZER_LINE_SIZE)

/* The form of the file, which later versions must be able to read. */
#define HEADING		"walsizer 1\nsystem 18446744073709551615\n"
#define STATE		"state 1024 1 4000 4096 -9 1200 10 11 12 99\n"
#define RECOVERIES	"recovery 21 22 23 24 25 26\nrecovery 31 32 33 34 35 36\n"
#define PEAKS		"peak 745 41 42\npeak 1 43 44\npeak 1488 45 46\n"
#define EVENTS \
	"event 5 -50 1 4 2 1 1000 3000 2000 60 61 62 63 64 65 900000 1 -1 two  words \n" \
	"event 99 51 2 5 0 6 2000 1000 1001 70 71 72 73 74 75 123457 0 3 \n"

static char text[TEXT_SIZE + 64];
static WalsizerMemory memory;
static WalsizerMemoryError error;

/* Reads these lines as a whole file; exactly as long as it is, so that reading on is seen. */
static bool
reads(const char *lines)
{
	size_t		length = strlen(lines);
	char	   *exact;
	bool		good;

	memcpy(text, lines, length);
	length = add_end(text, length);
	exact = malloc(length);
	memcpy(exact, text, length);
	good = walsizer_memory_parse(exact, length, &memory, &error);
	free(exact);
	return good;
}

static void
refused(const char *lines, int line, const char *what)
{
	assert_false(reads(lines));
	assert_int_equal(error.line, line);
	assert_string_equal(error.what, what);
}

/* The memory that the text above is about; slots 0, 1 and 743 of the peaks. */
static void
remember_all(void)
{
	memset(&memory, 0, sizeof(memory));
	memory.system_identifier = UINT64_MAX;
	memory.owner = (WalsizerOwner) {
		.original_mb = 1024, .original_by_alter_system = true, .own_mb = 4000,
	};
	memory.boost_mb = 4096;
	memory.boost_until = -9;
	memory.boost_return_mb = 1200;
	memory.interval = (WalsizerWal) {10, 11, 12};
	memory.last_event = 99;
	memory.num_recoveries = 2;
	memory.recoveries[0] = (WalsizerRecovery) {21, 22, 23, 24, 25, 26};
	memory.recoveries[1] = (WalsizerRecovery) {31, 32, 33, 34, 35, 36};
	memory.peaks[745 % WALSIZER_PEAK_SLOTS] = (WalsizerPeak) {745, 41, 42};
	memory.peaks[1] = (WalsizerPeak) {1, 43, 44};
	memory.peaks[1488 % WALSIZER_PEAK_SLOTS] = (WalsizerPeak) {1488, 45, 46};
	memory.num_events = 2;
	memory.events[0] = (WalsizerEvent) {
		.number = 5, .at = -50, .action = WALSIZER_RAISE, .reason = WALSIZER_BECAUSE_PREDICTED,
		.limited_by = WALSIZER_LIMIT_DISK, .outcome = WALSIZER_APPLIED, .old_mb = 1000,
		.wanted_mb = 3000, .new_mb = 2000, .demand = 60, .rate = 61, .forced = 62,
		.requested = 63, .timed = 64, .timeout_ms = 65, .completion_target = 0.9,
		.standby = true, .forced_after = -1, .message = "two\n\twords\x1f",
	};
	memory.events[1] = (WalsizerEvent) {
		.number = 99, .at = 51, .action = WALSIZER_LOWER, .reason = WALSIZER_BECAUSE_DEMAND_FELL,
		.outcome = WALSIZER_FAILED, .old_mb = 2000, .wanted_mb = 1000, .new_mb = 1001,
		.demand = 70, .rate = 71, .forced = 72, .requested = 73, .timed = 74, .timeout_ms = 75,
		.completion_target = 0.1234567, .forced_after = 3,
	};
}

static void
the_form_of_the_file(void **unused)
{
	static char expected[TEXT_SIZE];
	size_t		length;

	(void) unused;
	remember_all();
	length = walsizer_memory_format(&memory, text, TEXT_SIZE);
	strcpy(expected, HEADING STATE RECOVERIES PEAKS EVENTS);
	expected[add_end(expected, strlen(expected))] = '\0';
	text[length] = '\0';
	assert_string_equal(text, expected);

	/* it fits with its end, or not at all */
	assert_int_equal(walsizer_memory_format(&memory, text, length + 1), length);
	assert_int_equal(walsizer_memory_format(&memory, text, length), 0);

	/* and nothing is written behind it */
	for (size_t size = 1; size < length; size++)
	{
		memset(text + size, 'X', length);
		assert_int_equal(walsizer_memory_format(&memory, text, size), 0);
		for (size_t i = size; i < size + length; i++)
			assert_int_equal(text[i], 'X');
	}
}

static void
what_is_written_is_read_as_it_was(void **unused)
{
	static WalsizerMemory before;

	(void) unused;
	remember_all();
	before = memory;
	assert_true(reads(HEADING STATE RECOVERIES PEAKS EVENTS));
	assert_true(memory.events[0].completion_target == 0.9);
	assert_true(memory.events[1].completion_target == 0.123457);
	assert_string_equal(memory.events[0].message, "two  words ");
	memory.events[1].completion_target = before.events[1].completion_target;
	memcpy(memory.events[0].message, before.events[0].message, WALSIZER_MESSAGE_SIZE);
	assert_memory_equal(&memory, &before, sizeof(before));
}

/* One line with a number of the given list replaced. */
static void
replaced(char *line, const char *word, const int64_t *numbers, int number, int changed, const char *by)
{
	line += sprintf(line, "%s", word);
	for (int i = 0; i < number; i++)
		line += i == changed ? sprintf(line, " %s", by) : sprintf(line, " %" PRId64, numbers[i]);
	sprintf(line, "%s\n", strcmp(word, "event") == 0 ? " " : "");
}

/* With that line in its place, is the file good? */
static bool
reads_with(const char *word, const int64_t *numbers, int number, int changed, const char *by)
{
	char		line[WALSIZER_LINE_SIZE];
	char		lines[4 * WALSIZER_LINE_SIZE];

	replaced(line, word, numbers, number, changed, by);
	sprintf(lines, "%s%s%s", HEADING, strcmp(word, "state") == 0 ? "" : STATE, line);
	return reads(lines);
}

static bool
reads_with_number(const char *word, const int64_t *numbers, int number, int changed, int64_t by)
{
	char		digits[32];

	sprintf(digits, "%" PRId64, by);
	return reads_with(word, numbers, number, changed, digits);
}

/* Each number of a line, at both ends of its range and beyond them, and what is no number. */
static void
check_numbers(const char *word, const int64_t *numbers, const int64_t (*ranges)[2], int number)
{
	const char *const wrong[] = {"", "x", "1x", "+1", "1.0", " 1", "--1", "0x1", "1\t", "1\xff", "/", ":"};

	for (int i = 0; i < number; i++)
	{
		assert_true(reads_with_number(word, numbers, number, i, ranges[i][0]));
		assert_true(reads_with_number(word, numbers, number, i, ranges[i][1]));
		if (ranges[i][0] > INT64_MIN)
			assert_false(reads_with_number(word, numbers, number, i, ranges[i][0] - 1));
		if (ranges[i][1] < INT64_MAX)
			assert_false(reads_with_number(word, numbers, number, i, ranges[i][1] + 1));
		for (size_t j = 0; j < sizeof(wrong) / sizeof(wrong[0]); j++)
			assert_false(reads_with(word, numbers, number, i, wrong[j]));
	}
	for (int fewer = 0; fewer < number; fewer++)
		assert_false(reads_with_number(word, numbers, fewer, -1, 0));
}

#define MOST_SIZE	INT32_MAX
#define MOST_WAL	(INT64_C(1) << 60)
#define MOST_TIME	(INT64_C(1) << 40)
#define TIMESTAMPS	{-INT64_C(211813488000000000), INT64_C(9223371331199999999)}

static void
each_number_has_its_range(void **unused)
{
	const int64_t state[][2] = {
		{0, MOST_SIZE}, {0, 1}, {0, MOST_SIZE}, {0, MOST_SIZE}, TIMESTAMPS, {0, MOST_SIZE},
		{0, MOST_WAL}, {0, MOST_WAL}, {0, MOST_WAL}, {0, INT64_C(1) << 60},
	};
	const int64_t recovery[][2] = {
		{1, MOST_WAL}, {1, MOST_TIME}, {0, MOST_WAL}, {0, MOST_WAL}, {0, MOST_WAL}, {0, MOST_TIME},
	};
	const int64_t peak[][2] = {{1, INT32_MAX}, {1, MOST_WAL}, {1, MOST_TIME}};
	const int64_t event[][2] = {
		{1, 99}, TIMESTAMPS, {0, WALSIZER_REVERT}, {0, WALSIZER_LAST_REASON},
		{0, WALSIZER_LIMIT_RECOVERY}, {0, WALSIZER_LAST_OUTCOME}, {0, MOST_SIZE}, {0, MOST_SIZE},
		{0, MOST_SIZE}, {0, INT64_MAX}, {0, INT64_MAX}, {0, INT64_MAX}, {0, INT64_MAX},
		{0, INT64_MAX}, {0, MOST_TIME}, {0, 1000000}, {0, 1}, {-1, INT64_MAX},
	};
	const int64_t ones[18] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

	(void) unused;
	check_numbers("state", ones, state, 10);
	check_numbers("recovery", ones, recovery, 6);
	check_numbers("peak", ones, peak, 3);
	check_numbers("event", ones, event, 18);

	/* nothing may follow the last one, except an event's message */
	assert_false(reads_with_number("state", ones, 11, -1, 0));
	assert_false(reads_with_number("recovery", ones, 7, -1, 0));
	assert_false(reads_with_number("peak", ones, 4, -1, 0));
	assert_true(reads_with("event", ones, 18, 17, "1 any - text 1"));

	/* whatever it is: this is not ASCII */
	assert_false(reads_with("state", ones, 10, 9, "1 \xff"));
	assert_false(reads_with("recovery", ones, 6, 5, "1 \xff"));
	assert_false(reads_with("peak", ones, 3, 2, "1 \xff"));
}

/* It begins with three lines, in this order, and has only lines of these kinds. */
static void
a_file_of_another_form_is_refused(void **unused)
{
	const char *not_ours = "not a walsizer state file";
	const char *no_system = "no system identifier";
	const char *no_values = "no valid line of values";

	(void) unused;
	assert_true(reads(HEADING STATE));
	refused("", 1, not_ours);
	refused("walsizer\n", 1, not_ours);
	refused("walsizer 1 \n", 2, no_system);
	refused("walsizer 1 2\n", 1, not_ours);
	refused("walsizer 1 \xff\n", 1, not_ours);
	refused("walsizer x\n", 1, not_ours);
	refused("walsizer 0\n", 1, not_ours);
	refused("walsize 1\n", 1, not_ours);
	refused("walsizers 1\n", 1, not_ours);
	refused("walsizer 2\n", 1, "written by another version of walsizer");
	refused("walsizer 1\n", 2, no_system);
	refused("walsizer 1\nsystem -1\n", 2, no_system);
	refused("walsizer 1\nsystem \n", 2, no_system);
	refused("walsizer 1\nsystem  1\n", 2, no_system);
	refused("walsizer 1\nsystem 1 1\n", 2, no_system);
	refused("walsizer 1\nsystem 1\xff\n", 2, no_system);
	refused("walsizer 1\nsystem a\n", 2, no_system);
	refused("walsizer 1\nsyste 1\n", 2, no_system);
	refused(HEADING, 3, no_values);
	refused(HEADING "stat 1\n", 3, no_values);
	refused(HEADING RECOVERIES STATE, 3, no_values);
	refused(HEADING STATE STATE, 4, "not a valid line");
	refused(HEADING STATE PEAKS "\n", 7, "not a valid line");
	refused(HEADING STATE "Peak 1 1 1\n", 4, "not a valid line");
	refused(HEADING STATE "ends 4 0\n", 4, "not a valid line");
}

/* The last line says how many lines there are, and their sum; nothing follows it. */
static void
a_file_without_its_end_is_refused(void **unused)
{
	const char *wrong = "wrong number of lines or checksum";
	size_t		length;
	size_t		whole;

	(void) unused;
	strcpy(text, HEADING STATE PEAKS);
	length = strlen(text);
	whole = add_end(text, length);
	text[length] = '\n';		/* an empty line is a line */
	assert_false(walsizer_memory_parse(text, length + 1, &memory, &error));
	assert_string_equal(error.what, "not a valid line");
	assert_int_equal(add_end(text, length), whole);
	for (size_t cut = 0; cut < whole; cut++)
		assert_false(walsizer_memory_parse(text, cut, &memory, &error));
	assert_int_equal(error.line, 6);
	assert_string_equal(error.what, "cut short");
	assert_true(walsizer_memory_parse(text, whole, &memory, &error));

	/* any bit that flipped, and one line more or less */
	for (size_t i = 0; i < whole; i++)
		for (int bit = 0; bit < 8; bit++)
		{
			text[i] ^= (char) (1 << bit);
			/* the case of a hexadecimal digit says nothing */
			if (!(i > length && bit == 5 && (text[i] | 0x20) >= 'a' && (text[i] | 0x20) <= 'f'))
				assert_false(walsizer_memory_parse(text, whole, &memory, &error));
			text[i] ^= (char) (1 << bit);
		}
	text[whole] = '\n';
	assert_false(walsizer_memory_parse(text, whole + 1, &memory, &error));
	assert_int_equal(error.line, 7);
	assert_string_equal(error.what, wrong);
	text[length + 4] = '5';		/* lines, not 6 */
	assert_false(walsizer_memory_parse(text, whole, &memory, &error));
	text[length + 4] = '7';
	assert_false(walsizer_memory_parse(text, whole, &memory, &error));
	assert_string_equal(error.what, wrong);
}

/* A line has at most 1023 characters, and no zero byte. */
static void
a_line_has_a_longest_length(void **unused)
{
	char		lines[4 * WALSIZER_LINE_SIZE];
	size_t		begin = strlen(HEADING STATE);
	size_t		length;

	(void) unused;
	for (int longer = 0; longer <= 1200; longer += longer < 3 ? 1 : 399)
	{
		/* the error tells the two apart: such a peak is wrong anyway */
		memset(lines, 'x', sizeof(lines));
		memcpy(lines, HEADING STATE, begin);
		strcpy(lines + begin + WALSIZER_LINE_SIZE - 1 + longer, "\n");
		refused(lines, longer ? 3 : 4, longer ? "cut short" : "not a valid line");
	}
	strcpy(text, HEADING STATE "peak 1 1 1?\n");
	length = strlen(text);
	text[length - 2] = '\0';
	length = add_end(text, length);
	assert_false(walsizer_memory_parse(text, length, &memory, &error));
	assert_string_equal(error.what, "cut short");
}

/* As many as are kept, and in their order. */
static void
no_more_is_read_than_is_kept(void **unused)
{
	static char lines[TEXT_SIZE];
	char	   *end;

	(void) unused;
	assert_true(reads(HEADING STATE RECOVERIES RECOVERIES));
	assert_int_equal(memory.num_recoveries, WALSIZER_RECOVERIES);
	refused(HEADING STATE RECOVERIES RECOVERIES "recovery 1 1 1 1 1 1\n", 8, "not a valid line");
	for (int more = 0; more <= 1; more++)
	{
		end = lines + sprintf(lines, HEADING "state 1 0 0 0 0 0 0 0 0 5000\n");
		for (int i = 1; i <= WALSIZER_HISTORY_SLOTS + more; i++)
			end += sprintf(end, "event %d 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \n", i);
		assert_int_equal(reads(lines), !more);
		assert_int_equal(memory.num_events, WALSIZER_HISTORY_SLOTS);
	}
	assert_false(reads(HEADING STATE EVENTS EVENTS));
	assert_false(reads(HEADING STATE
					   "event 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \n"
					   "event 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \n"));
	assert_true(reads(HEADING STATE
					  "event 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \n"
					  "event 10 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \n"));

	/* the longest message, and one that is longer */
	for (int more = 0; more <= 1; more++)
	{
		end = lines + sprintf(lines, HEADING STATE "event 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 ");
		memset(end, 'm', WALSIZER_MESSAGE_SIZE);
		strcpy(end + WALSIZER_MESSAGE_SIZE - 1 + more, "\n");
		assert_int_equal(reads(lines), !more);
	}
}

/* The largest memory that there can be fits into the size that the header names. */
static void
the_largest_memory_fits(void **unused)
{
	size_t		length;

	(void) unused;
	remember_all();
	memory.num_recoveries = WALSIZER_RECOVERIES;
	for (int i = 0; i < WALSIZER_RECOVERIES; i++)
		memory.recoveries[i] = (WalsizerRecovery) {MOST_WAL, MOST_TIME, MOST_WAL, MOST_WAL, MOST_WAL, MOST_TIME};
	for (int i = 0; i < WALSIZER_PEAK_SLOTS; i++)
		memory.peaks[i] = (WalsizerPeak) {i == 0 ? WALSIZER_PEAK_SLOTS : i, MOST_WAL, MOST_TIME};
	memory.num_events = WALSIZER_HISTORY_SLOTS;
	for (int i = 1; i < WALSIZER_HISTORY_SLOTS; i++)
	{
		memory.events[i] = memory.events[0];
		memory.events[i].number = 5 + i;
		memset(memory.events[i].message, 'm', WALSIZER_MESSAGE_SIZE - 1);
	}
	memory.last_event = 5000;
	length = walsizer_memory_format(&memory, text, TEXT_SIZE);
	assert_true(length > 0);
	assert_true(walsizer_memory_parse(text, length, &memory, &error));
	assert_int_equal(memory.num_events, WALSIZER_HISTORY_SLOTS);
}

static void
note_is(const char *expected, WalsizerNoteKind kind, int64_t written, int64_t original,
		bool by_alter_system)
{
	char		note[WALSIZER_NOTE_SIZE];
	WalsizerNote read = walsizer_note_parse(expected);

	walsizer_note_format(&(WalsizerNote) {kind, written, original, by_alter_system}, note);
	assert_string_equal(note, expected);
	assert_int_equal(read.kind, kind);
	assert_int_equal(read.written_mb, written);
	assert_int_equal(read.original_mb, original);
	assert_int_equal(read.original_by_alter_system, by_alter_system);
}

static void
the_form_of_the_note(void **unused)
{
	const char *const wrong[] = {
		"", "4000MB", "4000MB instead of", "4000MB instead of x", "4000MB instead of 1024",
		"4000MB instead of 1024MB ", " 4000MB instead of 1024MB", "4000MB instead of 01024MB",
		"+4000MB instead of 1024MB", "4000MB  instead of 1024MB", "4000MB instead of 1024MB by",
		"0MB instead of 1024MB", "4000MB instead of 0MB", "-1MB instead of 1024MB",
		"4000MB instead of -1MB", "2147483648MB instead of 1MB", "1MB instead of 2147483648MB",
		"99999999999MB instead of 1MB", "1MB instead of 1024MB by ALTER SYSTEMS",
		"MB instead of 1MB", "1024MB restored", "1024MB restored, was 4000", "1024MB restored,  was 4000MB",
		"0MB restored, was 4000MB", "1024MB restored, was 0MB",
		"1024MB restored for lack of room was 4000MB",
		"1024MB instead of 1MB restored, was 4000MB",
	};
	char		none[WALSIZER_NOTE_SIZE] = "x";

	(void) unused;
	note_is("4000MB instead of 1024MB", WALSIZER_NOTE_WRITTEN, 4000, 1024, false);
	note_is("4000MB instead of 1024MB by ALTER SYSTEM", WALSIZER_NOTE_WRITTEN, 4000, 1024, true);
	note_is("1MB instead of 1MB", WALSIZER_NOTE_WRITTEN, 1, 1, false);
	note_is("2147483647MB instead of 2147483647MB by ALTER SYSTEM", WALSIZER_NOTE_WRITTEN,
			INT32_MAX, INT32_MAX, true);
	note_is("1024MB restored, was 4000MB", WALSIZER_NOTE_RESTORED, 4000, 1024, false);
	note_is("1024MB restored, was 4000MB by ALTER SYSTEM", WALSIZER_NOTE_RESTORED, 4000, 1024, true);
	note_is("1024MB restored for lack of room, was 4000MB", WALSIZER_NOTE_NO_ROOM, 4000, 1024, false);
	note_is("2147483647MB restored for lack of room, was 2147483647MB by ALTER SYSTEM",
			WALSIZER_NOTE_NO_ROOM, INT32_MAX, INT32_MAX, true);
	walsizer_note_format(&(WalsizerNote) {0}, none);
	assert_string_equal(none, "");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
	{
		WalsizerNote note = walsizer_note_parse(wrong[i]);

		assert_int_equal(note.kind, WALSIZER_NO_NOTE);
		assert_int_equal(note.written_mb, 0);
		assert_int_equal(note.original_mb, 0);
		assert_false(note.original_by_alter_system);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_form_of_the_file),
		cmocka_unit_test(what_is_written_is_read_as_it_was),
		cmocka_unit_test(each_number_has_its_range),
		cmocka_unit_test(a_file_of_another_form_is_refused),
		cmocka_unit_test(a_file_without_its_end_is_refused),
		cmocka_unit_test(a_line_has_a_longest_length),
		cmocka_unit_test(no_more_is_read_than_is_kept),
		cmocka_unit_test(the_largest_memory_fits),
		cmocka_unit_test(the_form_of_the_note),
	};

	return cmocka_run_group_tests_name("policy, the state file", tests, NULL, NULL);
}
