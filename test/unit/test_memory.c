/*-------------------------------------------------------------------------
 *
 * test_memory.c
 *	  The state file and the note, as text: the same on every architecture.
 *
 * The text below is part of the file format.  A server must read what another
 * one of the same version wrote, so a change of it needs a new
 * WALSIZER_MEMORY_VERSION.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>

#include "driver.h"
#include "policy/memory.h"

#define BODY \
	"walsizer 1\n" \
	"system 18446744073709551615\n" \
	"state 1024 1 4096 2048 512 845000000000000 845000000000001 3072 1 8192 " \
	"-845000000000002 2048 1152921504606846976 5000000000 6000000000 9000000000\n" \
	"recovery 7000000000 8000 9000000000 1000000 500000 2500\n" \
	"recovery 1 1 0 0 0 0\n" \
	"peak 495000 1152921504606846975 300000\n" \
	"event 8999999999 845000000000003 1 4 2 6 1024 5000 4096 6000000000 7000000000 " \
	"3 4 5 300000 900000 1 -1 could not write:  no space left\n" \
	"event 9000000000 -9223372036854775808 2 5 0 1 4096 1024 1024 1 2 " \
	"0 0 9223372036854775807 30000 123457 0 9223372036854775807 \n"

#define END			"end 8 87210383ca7ce65d\n"

static WalsizerMemory memory;
static WalsizerMemory again;
static char text[WALSIZER_MEMORY_LINES * WALSIZER_LINE_SIZE];

/* What the text says. */
static void
fill_memory(void)
{
	memset(&memory, 0, sizeof(memory));
	memory.system_identifier = UINT64_MAX;
	memory.owner = (WalsizerOwner) {1024, true, 4096, 2048, 512};
	memory.server_started = INT64_C(845000000000000);
	memory.files_reloaded = INT64_C(845000000000001);
	memory.files_configured_mb = 3072;
	memory.files_valid = true;
	memory.boost_mb = 8192;
	memory.boost_until = INT64_C(-845000000000002);
	memory.boost_return_mb = 2048;
	memory.interval = (WalsizerWal) {INT64_C(1) << 60, INT64_C(5000000000), INT64_C(6000000000)};
	memory.num_recoveries = 2;
	memory.recoveries[0] = (WalsizerRecovery) {INT64_C(7000000000), 8000, INT64_C(9000000000), 1000000, 500000, 2500};
	memory.recoveries[1] = (WalsizerRecovery) {1, 1, 0, 0, 0, 0};
	memory.peaks[495000 % WALSIZER_PEAK_SLOTS] = (WalsizerPeak) {495000, (INT64_C(1) << 60) - 1, 300000};
	memory.last_event = INT64_C(9000000000);
	memory.num_events = 2;
	memory.events[0] = (WalsizerEvent) {
		.number = INT64_C(8999999999), .at = INT64_C(845000000000003),
		.action = WALSIZER_RAISE, .reason = WALSIZER_BECAUSE_PREDICTED,
		.limited_by = WALSIZER_LIMIT_DISK, .outcome = WALSIZER_FAILED,
		.old_mb = 1024, .wanted_mb = 5000, .new_mb = 4096,
		.demand = INT64_C(6000000000), .rate = INT64_C(7000000000),
		.forced = 3, .requested = 4, .timed = 5, .timeout_ms = 300000,
		.completion_target = 0.9, .standby = true, .forced_after = -1,
		.message = "could not write:  no space left"
	};
	memory.events[1] = (WalsizerEvent) {
		.number = INT64_C(9000000000), .at = INT64_MIN,
		.action = WALSIZER_LOWER, .reason = WALSIZER_BECAUSE_DEMAND_FELL,
		.limited_by = WALSIZER_UNLIMITED, .outcome = WALSIZER_APPLIED,
		.old_mb = 4096, .wanted_mb = 1024, .new_mb = 1024, .demand = 1, .rate = 2,
		.timed = INT64_MAX, .timeout_ms = 30000, .completion_target = 0.123457,
		.forced_after = INT64_MAX
	};
}

static void
memory_becomes_this_text(void **unused)
{
	(void) unused;
	fill_memory();
	/* the message of a server may have several lines */
	memory.events[0].message[16] = '\n';
	assert_int_equal(walsizer_memory_format(&memory, text, sizeof(text)), strlen(BODY END));
	assert_string_equal(text, BODY END);
}

static void
this_text_becomes_memory(void **unused)
{
	WalsizerMemoryError error;

	(void) unused;
	fill_memory();
	assert_true(walsizer_memory_parse(BODY END, strlen(BODY END), &again, &error));
	assert_int_equal(again.system_identifier, memory.system_identifier);
	assert_int_equal(again.owner.original_mb, memory.owner.original_mb);
	assert_int_equal(again.owner.original_by_alter_system, memory.owner.original_by_alter_system);
	assert_int_equal(again.owner.own_mb, memory.owner.own_mb);
	assert_int_equal(again.owner.configured_mb, memory.owner.configured_mb);
	assert_int_equal(again.owner.returning_mb, memory.owner.returning_mb);
	assert_int_equal(again.server_started, memory.server_started);
	assert_int_equal(again.files_reloaded, memory.files_reloaded);
	assert_int_equal(again.files_configured_mb, memory.files_configured_mb);
	assert_int_equal(again.files_valid, memory.files_valid);
	assert_int_equal(again.boost_mb, memory.boost_mb);
	assert_int_equal(again.boost_until, memory.boost_until);
	assert_int_equal(again.boost_return_mb, memory.boost_return_mb);
	assert_memory_equal(&again.interval, &memory.interval, sizeof(memory.interval));
	assert_int_equal(again.num_recoveries, memory.num_recoveries);
	assert_memory_equal(again.recoveries, memory.recoveries, sizeof(memory.recoveries));
	assert_memory_equal(again.peaks, memory.peaks, sizeof(memory.peaks));
	assert_int_equal(again.last_event, memory.last_event);
	assert_int_equal(again.num_events, memory.num_events);
	assert_int_equal(again.events[0].reason, WALSIZER_BECAUSE_PREDICTED);
	assert_int_equal(again.events[0].outcome, WALSIZER_FAILED);
	assert_true(again.events[0].completion_target == 0.9);
	assert_string_equal(again.events[0].message, memory.events[0].message);
	assert_int_equal(again.events[1].at, INT64_MIN);
	assert_int_equal(again.events[1].forced_after, INT64_MAX);

	/* what was not compared is in the text that comes back */
	assert_int_equal(walsizer_memory_format(&again, text, sizeof(text)), strlen(BODY END));
	assert_string_equal(text, BODY END);
}

static void
assert_refused(const char *damaged, int line, const char *what)
{
	WalsizerMemoryError error;

	assert_false(walsizer_memory_parse(damaged, strlen(damaged), &again, &error));
	assert_int_equal(error.line, line);
	assert_string_equal(error.what, what);
}

/* doc/troubleshooting.md has these messages. */
static void
damage_is_named_with_its_line(void **unused)
{
	char	   *changed = strdup(BODY END);

	(void) unused;
	assert_refused("", 0, "not a walsizer state file");
	assert_refused("walsizer one\n", 1, "not a walsizer state file");
	assert_refused("walsizer 2\nsystem 1\n", 1, "written by another version of walsizer");
	assert_refused("walsizer 1\nsystem -1\n", 2, "no system identifier");
	assert_refused("walsizer 1\nsystem 1\nstate 1024 1 4096\n", 3, "no valid line of values");
	assert_refused(BODY, 8, "cut short");
	assert_refused(BODY "peak 0 1 1\n", 9, "not a valid line");
	assert_refused(BODY "end 7 87210383ca7ce65d\n", 9, "wrong number of lines or checksum");
	assert_refused(BODY END "\n", 9, "wrong number of lines or checksum");
	*strstr(changed, "4096") = '5';
	assert_refused(changed, 9, "wrong number of lines or checksum");
	free(changed);
}

static void
too_little_room_is_said(void **unused)
{
	(void) unused;
	fill_memory();
	assert_int_equal(walsizer_memory_format(&memory, text, strlen(BODY END)), 0);
	assert_int_equal(walsizer_memory_format(&memory, text, strlen(BODY END) + 1), strlen(BODY END));
}

static void
a_note_is_read_as_it_was_written(void **unused)
{
	const WalsizerNote by_hand = {4096, 1024, false};
	const WalsizerNote by_command = {INT32_MAX, 1, true};
	char		note[WALSIZER_NOTE_SIZE];

	(void) unused;
	walsizer_note_format(&by_hand, note);
	assert_string_equal(note, "4096MB instead of 1024MB");
	assert_int_equal(walsizer_note_parse(note).written_mb, 4096);
	assert_int_equal(walsizer_note_parse(note).original_mb, 1024);
	assert_false(walsizer_note_parse(note).original_by_alter_system);

	walsizer_note_format(&by_command, note);
	assert_string_equal(note, "2147483647MB instead of 1MB by ALTER SYSTEM");
	assert_int_equal(walsizer_note_parse(note).written_mb, INT32_MAX);
	assert_int_equal(walsizer_note_parse(note).original_mb, 1);
	assert_true(walsizer_note_parse(note).original_by_alter_system);
}

static void
another_text_is_no_note(void **unused)
{
	static const char *const others[] = {
		"", "4096MB", "4096 MB instead of 1024 MB", "04096MB instead of 1024MB",
		"4096MB instead of 1024MB ", "4096MB instead of 1024MB by hand",
		"0MB instead of 1024MB", "4096MB instead of 0MB", "-1MB instead of 1024MB",
		"2147483648MB instead of 1024MB", "4096MB instead of 2147483648MB",
	};

	(void) unused;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(walsizer_note_parse(others[i]).written_mb, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_becomes_this_text),
		cmocka_unit_test(this_text_becomes_memory),
		cmocka_unit_test(damage_is_named_with_its_line),
		cmocka_unit_test(too_little_room_is_said),
		cmocka_unit_test(a_note_is_read_as_it_was_written),
		cmocka_unit_test(another_text_is_no_note),
	};

	return cmocka_run_group_tests_name("policy, memory", tests, NULL, NULL);
}
