/*-------------------------------------------------------------------------
 *
 * test_statetext.c
 *	  The text of the state file and of the note: what is written is read as
 *	  it was, and anything else is refused.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"
#include "end_line.h"
#include "server/statetext.h"

#define TEXT_SIZE	((size_t) WALSIZER_MEMORY_LINES * WALSIZER_LINE_SIZE)

/* The form of the file, which later versions must be able to read. */
#define HEADING		"walsizer 1\n"
#define STATE \
	"state system_identifier -1 original_mb 1024 original_by_alter_system 1 own_mb 4000 " \
	"boost_mb 4096 boost_until -9 boost_return_mb 1200 " \
	"interval_bytes 10 interval_records 11 interval_images 12 last_event 99\n"
#define RECOVERIES \
	"recovery bytes 21 replay_ms 22 bytes_read 23 pages_used 24 pages_written 25 writing_ms 26\n" \
	"recovery bytes 31 replay_ms 32 bytes_read 33 pages_used 34 pages_written 35 writing_ms 36\n"
#define PEAKS \
	"peak hour 746 demand 41 timeout_ms 42 inflated_at 0\n" \
	"peak hour 1 demand 43 timeout_ms 44 inflated_at 47\n" \
	"peak hour 1491 demand 45 timeout_ms 46 inflated_at 0\n"
#define EVENTS \
	"event number 5 at -50 action raise reason predicted limited_by disk outcome applied " \
	"old_mb 1000 wanted_mb 3000 new_mb 2000 demand 60 rate 61 forced 62 requested 63 timed 64 " \
	"timeout_ms 65 completion_target_millionths 900000 standby 1 forced_after -1 " \
	"message two  words \n" \
	"event number 99 at 51 action lower reason demand_fell limited_by none outcome dry_run " \
	"old_mb 2000 wanted_mb 1000 new_mb 1001 demand 70 rate 71 forced 72 requested 73 timed 74 " \
	"timeout_ms 75 completion_target_millionths 123457 standby 0 forced_after 3 message \n"

static char text[TEXT_SIZE + 64];
static WalsizerMemory memory;
static const char *damage;
static int	line_read;

static bool
parses(const char *from, size_t length)
{
	damage = walsizer_memory_parse(from, length, &memory, &line_read);
	return damage == NULL;
}

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
	good = parses(exact, length);
	free(exact);
	return good;
}

static void
refused(const char *lines, int line, const char *what)
{
	assert_false(reads(lines));
	assert_int_equal(line_read, line);
	assert_string_equal(damage, what);
}

/* The memory that the text above is about; slots 0, 1 and 743 of the peaks. */
static void
remember_all(void)
{
	memset(&memory, 0, sizeof(memory));
	memory.system_identifier = UINT64_MAX;
	memory.state.owner = (WalsizerOwner) {
		.original_mb = 1024, .original_by_alter_system = true, .own_mb = 4000,
	};
	memory.boost_mb = 4096;
	memory.boost_until = -9;
	memory.state.boost.return_mb = 1200;
	memory.state.wal_contents.interval = (WalsizerWal) {10, 11, 12, 0, 0};
	memory.history.last_number = 99;
	memory.num_recoveries = 2;
	memory.recoveries[0] = (WalsizerRecovery) {21, 22, 23, 24, 25, 26};
	memory.recoveries[1] = (WalsizerRecovery) {31, 32, 33, 34, 35, 36};
	memory.state.learned.peaks[746 % WALSIZER_PEAK_SLOTS] = (WalsizerPeak) {746, 41, 42, 0};
	memory.state.learned.peaks[1] = (WalsizerPeak) {1, 43, 44, 47};
	memory.state.learned.peaks[1491 % WALSIZER_PEAK_SLOTS] = (WalsizerPeak) {1491, 45, 46, 0};
	memory.history.length = 2;
	memory.history.events[0] = (WalsizerEvent) {
		.number = 5, .at = -50, .old_mb = 1000, .decision = {
			.action = WALSIZER_RAISE, .reason = WALSIZER_BECAUSE_PREDICTED,
			.limited_by = WALSIZER_LIMIT_DISK, .wanted_mb = 3000, .target_mb = 2000,
			.figures = {.demand = 60, .rate = 61, .forced = 62, .requested = 63, .timed = 64},
		}, .settings = {.timeout_ms = 65, .completion_target = 0.9}, .standby = true,
		.forced_after = -1, .result = {WALSIZER_APPLIED, "two\n\twords\x1f"},
	};
	memory.history.events[1] = (WalsizerEvent) {
		.number = 99, .at = 51, .old_mb = 2000, .decision = {
			.action = WALSIZER_LOWER, .reason = WALSIZER_BECAUSE_DEMAND_FELL,
			.wanted_mb = 1000, .target_mb = 1001,
			.figures = {.demand = 70, .rate = 71, .forced = 72, .requested = 73, .timed = 74},
		}, .settings = {.timeout_ms = 75, .completion_target = 0.1234567},
		.forced_after = 3, .result = {WALSIZER_DRY_RUN},
	};
}

TEST(the_form_of_the_file)
{
	static char expected[TEXT_SIZE];
	size_t		length;

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

TEST(what_is_written_is_read_as_it_was)
{
	static WalsizerMemory before;

	remember_all();
	before = memory;
	assert_true(reads(HEADING STATE RECOVERIES PEAKS EVENTS));
	assert_true(memory.history.events[0].settings.completion_target == 0.9);
	assert_true(memory.history.events[1].settings.completion_target == 0.123457);
	assert_string_equal(memory.history.events[0].result.message, "two  words ");
	memory.history.events[1].settings = before.history.events[1].settings;
	memory.history.events[0].result = before.history.events[0].result;
	assert_memory_equal(&memory, &before, sizeof(before));
}

/* One key of a line, and the range of its value. */
typedef struct Range
{
	const char *key;
	int64_t		least;
	int64_t		most;
} Range;

/* Is a file good with a line of these keys, all 1, but this one with that value? */
static bool
reads_with(const char *kind, const Range *ranges, const Range *changed, const char *value)
{
	char		lines[4 * WALSIZER_LINE_SIZE];
	char	   *end = lines + sprintf(lines, "%s%s%s", HEADING,
									  strcmp(kind, "state") == 0 ? "" : STATE, kind);

	for (const Range *range = ranges; range->key != NULL; range++)
		end += sprintf(end, " %s %s", range->key, range == changed ? value : "1");
	strcpy(end, strcmp(kind, "event") == 0 ? " message \n" : "\n");
	return reads(lines);
}

static bool
reads_with_number(const char *kind, const Range *ranges, const Range *changed, int64_t value)
{
	char		digits[32];

	sprintf(digits, "%" PRId64, value);
	return reads_with(kind, ranges, changed, digits);
}

/* Each value of a line, at both ends of its range and beyond them, and what is no number. */
static void
check_numbers(const char *kind, const Range *ranges)
{
	const char *const wrong[] = {
		"", "x", "1x", "+1", "1.0", " 1", "--1", "-", "0x1", "1\t", "\t1", "1\xff", "/", ":", "1 ",
	};

	for (const Range *range = ranges; range->key != NULL; range++)
	{
		assert_true(reads_with_number(kind, ranges, range, range->least));
		assert_true(reads_with_number(kind, ranges, range, range->most));
		if (range->least > INT64_MIN)
			assert_false(reads_with_number(kind, ranges, range, range->least - 1));
		if (range->most < INT64_MAX)
			assert_false(reads_with_number(kind, ranges, range, range->most + 1));
		for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
			assert_false(reads_with(kind, ranges, range, wrong[i]));
	}
}

#define MOST_SIZE	0, INT32_MAX
#define MOST_WAL	(INT64_C(1) << 60)
#define MOST_TIME	(INT64_C(1) << 40)
#define ANY_COUNT	0, INT64_MAX
#define TIMESTAMP	-INT64_C(211813488000000000), INT64_C(9223371331199999999)

TEST(each_number_has_its_range)
{
	const Range state[] = {
		{"system_identifier", INT64_MIN, INT64_MAX}, {"original_mb", MOST_SIZE},
		{"original_by_alter_system", 0, 1}, {"own_mb", MOST_SIZE}, {"boost_mb", MOST_SIZE},
		{"boost_until", TIMESTAMP}, {"boost_return_mb", MOST_SIZE}, {"interval_bytes", 0, MOST_WAL},
		{"interval_records", 0, MOST_WAL}, {"interval_images", 0, MOST_WAL},
		{"last_event", 0, MOST_WAL}, {0},
	};
	const Range recovery[] = {
		{"bytes", 1, MOST_WAL}, {"replay_ms", 1, MOST_TIME}, {"bytes_read", 0, MOST_WAL},
		{"pages_used", 0, MOST_WAL}, {"pages_written", 0, MOST_WAL}, {"writing_ms", 0, MOST_TIME}, {0},
	};
	const Range peak[] = {
		{"hour", 1, INT32_MAX}, {"demand", 1, MOST_WAL}, {"timeout_ms", 1, MOST_TIME},
		{"inflated_at", 0, MOST_WAL}, {0},
	};
	const Range event[] = {
		{"number", 1, 99}, {"at", TIMESTAMP}, {"old_mb", MOST_SIZE}, {"wanted_mb", MOST_SIZE},
		{"new_mb", MOST_SIZE}, {"demand", ANY_COUNT}, {"rate", ANY_COUNT}, {"forced", ANY_COUNT},
		{"requested", ANY_COUNT}, {"timed", ANY_COUNT}, {"timeout_ms", 0, MOST_TIME},
		{"completion_target_millionths", 0, 1000000}, {"standby", 0, 1},
		{"forced_after", -1, INT64_MAX}, {0},
	};

	check_numbers("state", state);
	check_numbers("recovery", recovery);
	check_numbers("peak", peak);
	check_numbers("event", event);
}

/* Each name of a code is read as it is written. */
TEST(codes_are_kept_by_name)
{
	static WalsizerMemory before;
	size_t		length;

	memset(&memory, 0, sizeof(memory));
	for (int i = 0; strcmp(walsizer_reason_code((WalsizerReason) i), "unknown") != 0; i++)
	{
		WalsizerEvent *event = &memory.history.events[memory.history.length++];

		event->number = memory.history.last_number = i + 1;
		event->decision.reason = (WalsizerReason) i;
		event->decision.action = (WalsizerAction) (i % (WALSIZER_CHECKPOINT + 1));
		event->decision.limited_by = (WalsizerLimit) (i % WALSIZER_LIMITS);
		event->result.outcome = (WalsizerOutcome) (i % (WALSIZER_FAILED + 1));
	}
	assert_true(memory.history.length > WALSIZER_BECAUSE_DISK_FULL);
	before = memory;
	length = walsizer_memory_format(&memory, text, TEXT_SIZE);
	assert_null(strstr(text, "unknown"));
	assert_true(parses(text, length));
	assert_memory_equal(&memory, &before, sizeof(before));
}

/* What a newer version has written, and what an older one has not. */
TEST(the_form_can_grow)
{
	const WalsizerEvent *event = memory.history.events;

	/* kinds of lines and keys that are not known, wherever they are */
	assert_true(reads(HEADING "volume bytes 1 text x=y\n" STATE "volume\n" RECOVERIES PEAKS EVENTS "tail a b\n"));
	assert_int_equal(memory.state.owner.original_mb, 1024);
	assert_int_equal(memory.num_recoveries, 2);
	assert_int_equal(memory.history.length, 2);
	assert_true(reads(HEADING "state mode fast original_mb 7 shape - own_mb 8 own_mb_text x last_event 1\n"
					  "peak hour 5 colour red demand 6 timeout_ms 7\n"
					  "event depth 3 number 1 old_mb 9 weight 4 message key value old_mb 10\n"));
	assert_int_equal(memory.state.owner.original_mb, 7);
	assert_int_equal(memory.state.owner.own_mb, 8);
	assert_int_equal(memory.state.learned.peaks[5].demand, 6);
	assert_int_equal(event->old_mb, 9);
	assert_string_equal(event->result.message, "key value old_mb 10");

	assert_true(reads(HEADING "z a 1 z 2\n"));

	/* a key that is missing is 0, whatever the line before had in its place */
	assert_true(reads(HEADING "state colour 1 old_mb 7 last_event 1\nevent number 1\n"));
	assert_int_equal(event->old_mb, 0);

	/* and damage only where that is no value */
	assert_true(reads(HEADING "state\n"));
	assert_int_equal(memory.state.owner.original_mb, 0);
	assert_true(reads(HEADING));
	assert_true(reads(HEADING "state last_event 3\nevent number 3\nrecovery replay_ms 2 bytes 1\n"));
	assert_int_equal(event->at, 0);
	assert_int_equal(event->decision.action, WALSIZER_NONE);
	assert_int_equal(event->decision.limited_by, WALSIZER_UNLIMITED);
	assert_int_equal(event->forced_after, 0);
	assert_string_equal(event->result.message, "");
	assert_int_equal(memory.recoveries[0].writing_ms, 0);
	refused(HEADING STATE "event at 3\n", 3, "not a valid line");
	refused(HEADING "state last_event 3\nevent number 3\nstate last_event 3\n", 4, "not a valid line");
	refused(HEADING STATE "recovery bytes 1\n", 3, "not a valid line");
	refused(HEADING STATE "peak hour 1 demand 1\n", 3, "not a valid line");

	/* a name that is not known: all else of the event is kept */
	assert_true(reads(HEADING "state last_event 2\n"
					  "event number 1 action dance reason because limited_by moon outcome fine old_mb 5\n"
					  "event number 2 action unknown reason forced_ limited_by none_ outcome dry new_mb 6\n"));
	for (int i = 0; i < 2; i++)
	{
		assert_string_equal(walsizer_action_name(event[i].decision.action), "unknown");
		assert_string_equal(walsizer_reason_code(event[i].decision.reason), "unknown");
		assert_string_equal(walsizer_limit_name(event[i].decision.limited_by), "unknown");
		assert_string_equal(walsizer_outcome_name(event[i].result.outcome), "unknown");
	}
	assert_int_equal(event[0].old_mb, 5);
	assert_int_equal(event[1].decision.target_mb, 6);
}

TEST(a_file_of_another_form_is_refused)
{
	const char *not_ours = "not a walsizer state file";
	const char *bad_line = "not a valid line";

	assert_true(reads(HEADING STATE));
	refused("", 1, not_ours);
	refused("walsizer\n", 1, not_ours);
	refused("walsize 1\n", 1, not_ours);
	refused("walsizers 1\n", 1, not_ours);
	refused("walsizer 2\n", 1, "written by another version of walsizer");
	refused("walsizer 1 \n", 1, "written by another version of walsizer");

	/* words are separated by one blank, and each key begins with a letter and has a value */
	refused(HEADING STATE PEAKS "\n", 6, bad_line);
	refused(HEADING STATE "peak hour 1 demand 1 timeout_ms 1 \n", 3, bad_line);
	refused(HEADING STATE "peak hour 1 demand 1 timeout_ms 1 more\n", 3, bad_line);
	refused(HEADING STATE "peak hour 1 demand 1  timeout_ms 1\n", 3, bad_line);
	refused(HEADING STATE "volume 1 2\n", 3, bad_line);
	refused(HEADING STATE "volume { 2\n", 3, bad_line);
	refused(HEADING STATE "volume A 2\n", 3, bad_line);
	refused(HEADING STATE "volume a\n", 3, bad_line);
	refused(HEADING STATE "1 a 2\n", 3, bad_line);
	refused(HEADING STATE "ending\nend 4 0\n", 4, "wrong number of lines or checksum");

	/* before the first release: values without keys */
	refused(HEADING "system 7\nstate 1024 1 4000 1025 1026 -7 8 2048 1 4096 -9 1200 10 11 12 99\n", 2, bad_line);
	refused(HEADING "state 1024 1 4000 1025 1026 -7 8 2048 1 4096 -9 1200 10 11 12 99\n", 2, bad_line);
}

/* The last line says how many lines there are, and their sum; nothing follows it. */
TEST(a_file_without_its_end_is_refused)
{
	const char *wrong = "wrong number of lines or checksum";
	size_t		length;
	size_t		whole;

	strcpy(text, HEADING STATE PEAKS);
	length = strlen(text);
	text[length] = '\n';		/* an empty line is a line */
	assert_false(parses(text, length + 1));
	assert_string_equal(damage, "not a valid line");
	whole = add_end(text, length);
	for (size_t cut = 0; cut < whole; cut++)
		assert_false(parses(text, cut));
	assert_int_equal(line_read, 5);
	assert_string_equal(damage, "cut short");
	assert_true(parses(text, whole));

	/* any bit that flipped, and one line more or less */
	for (size_t i = 0; i < whole; i++)
		for (int bit = 0; bit < 8; bit++)
		{
			text[i] ^= (char) (1 << bit);
			assert_false(parses(text, whole));
			text[i] ^= (char) (1 << bit);
		}
	text[whole] = '\n';
	assert_false(parses(text, whole + 1));
	assert_int_equal(line_read, 6);
	assert_string_equal(damage, wrong);
	text[length + 4] = '4';		/* lines, not 5 */
	assert_false(parses(text, whole));
	text[length + 4] = '6';
	assert_false(parses(text, whole));
	assert_string_equal(damage, wrong);
}

/* A line has at most 1023 characters, and no zero byte. */
TEST(a_line_has_a_longest_length)
{
	char		lines[4 * WALSIZER_LINE_SIZE];
	size_t		begin = strlen(HEADING);
	size_t		length;

	for (int longer = 0; longer <= 1200; longer += longer < 3 ? 1 : 399)
	{
		memset(lines, 'x', sizeof(lines));
		memcpy(lines, HEADING, begin);
		strcpy(lines + begin + WALSIZER_LINE_SIZE - 1 + longer, "\n");
		if (longer == 0)
			assert_true(reads(lines));
		else
			refused(lines, 1, "cut short");
	}
	strcpy(text, HEADING STATE "peak hour 1 demand 1 timeout_ms 1?\n");
	length = strlen(text);
	text[length - 2] = '\0';
	length = add_end(text, length);
	assert_false(parses(text, length));
	assert_string_equal(damage, "cut short");
}

/* As many as are kept, and in their order. */
TEST(no_more_is_read_than_is_kept)
{
	static char lines[TEXT_SIZE];
	char	   *end;

	assert_true(reads(HEADING STATE RECOVERIES RECOVERIES));
	assert_int_equal(memory.num_recoveries, WALSIZER_RECOVERIES);
	refused(HEADING STATE RECOVERIES RECOVERIES "recovery bytes 1 replay_ms 1\n", 7, "not a valid line");
	for (int more = 0; more <= 1; more++)
	{
		end = lines + sprintf(lines, HEADING "state last_event 5000\n");
		for (int i = 1; i <= WALSIZER_HISTORY_SLOTS + more; i++)
			end += sprintf(end, "event number %d\n", i);
		assert_int_equal(reads(lines), !more);
		assert_int_equal(memory.history.length, WALSIZER_HISTORY_SLOTS);
	}
	assert_false(reads(HEADING STATE EVENTS EVENTS));
	assert_false(reads(HEADING STATE "event number 9\nevent number 9\n"));
	assert_true(reads(HEADING STATE "event number 9\nevent number 10\n"));

	/* the longest message, and two that are longer */
	for (int more = 0; more <= 2; more++)
	{
		end = lines + sprintf(lines, HEADING STATE "event number 1 message ");
		memset(end, 'm', WALSIZER_MESSAGE_SIZE + 1);
		strcpy(end + WALSIZER_MESSAGE_SIZE - 1 + more, "\n");
		assert_int_equal(reads(lines), !more);
	}
}

/* The largest memory that there can be fits into the size that the header names. */
TEST(the_largest_memory_fits)
{
	size_t		length;

	remember_all();
	memory.num_recoveries = WALSIZER_RECOVERIES;
	for (int i = 0; i < WALSIZER_RECOVERIES; i++)
		memory.recoveries[i] = (WalsizerRecovery) {MOST_WAL, MOST_TIME, MOST_WAL, MOST_WAL, MOST_WAL, MOST_TIME};
	for (int i = 0; i < WALSIZER_PEAK_SLOTS; i++)
		memory.state.learned.peaks[i] = (WalsizerPeak) {
			i == 0 ? WALSIZER_PEAK_SLOTS : i, MOST_WAL, MOST_TIME, MOST_WAL,
		};
	memory.history.length = WALSIZER_HISTORY_SLOTS;
	memory.history.last_number = MOST_WAL;
	for (int i = 0; i < WALSIZER_HISTORY_SLOTS; i++)
	{
		memory.history.events[i] = (WalsizerEvent) {
			.number = MOST_WAL - WALSIZER_HISTORY_SLOTS + i, .at = INT64_C(9223371331199999999),
			.old_mb = INT32_MAX, .decision = {
				.action = WALSIZER_EXTERNAL, .reason = WALSIZER_BECAUSE_RECENTLY_CHANGED,
				.limited_by = WALSIZER_LIMIT_RECOVERY, .wanted_mb = INT32_MAX,
				.target_mb = INT32_MAX, .figures = {
					.demand = INT64_MAX, .rate = INT64_MAX, .forced = INT64_MAX,
					.requested = INT64_MAX, .timed = INT64_MAX,
				},
			}, .settings = {.timeout_ms = MOST_TIME, .completion_target = 1}, .standby = true,
			.forced_after = INT64_MAX, .result = {.outcome = WALSIZER_OVERRIDDEN},
		};
		memset(memory.history.events[i].result.message, 'm', WALSIZER_MESSAGE_SIZE - 1);
	}
	length = walsizer_memory_format(&memory, text, TEXT_SIZE);
	assert_true(length > 0);
	assert_true(parses(text, length));
	assert_int_equal(memory.history.length, WALSIZER_HISTORY_SLOTS);
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

TEST(the_form_of_the_note)
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
		cmocka_unit_test(codes_are_kept_by_name),
		cmocka_unit_test(the_form_can_grow),
		cmocka_unit_test(a_file_of_another_form_is_refused),
		cmocka_unit_test(a_file_without_its_end_is_refused),
		cmocka_unit_test(a_line_has_a_longest_length),
		cmocka_unit_test(no_more_is_read_than_is_kept),
		cmocka_unit_test(the_largest_memory_fits),
		cmocka_unit_test(the_form_of_the_note),
	};

	return cmocka_run_group_tests_name("the text of the state file", tests, NULL, NULL);
}
