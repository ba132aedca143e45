/*-------------------------------------------------------------------------
 *
 * test_transitions.c
 *	  What each change of ownership keeps, and what it forgets.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"
#include "policy/internal.h"

/* Our raise from 1GB to 4000MB, with all that may be pending beside it. */
static Driver *
ours(void)
{
	Driver	   *d = driver_new();

	d->state.owner = (WalsizerOwner) {
		.original_mb = 1024, .own_mb = 4000,
	};
	d->state.pacing.tried_mb = 5000;
	d->state.pacing.edit_tried_mb = 3000;
	d->state.boost.return_mb = 1200;
	d->sample.settings.max_wal_size_mb = 4000;
	d->sample.configured_mb = 1024;
	d->sample.in_auto_conf = true;
	d->sample.note = (WalsizerNote) {
		.kind = WALSIZER_NOTE_WRITTEN, .written_mb = 4000, .original_mb = 1024,
	};
	return d;
}

static bool
observe(Driver *d)
{
	return walsizer_observe_owner(driver_seen(d));
}

TEST(our_value_in_effect_is_nothing_new)
{
	Driver	   *d = ours();

	assert_false(observe(d));
	assert_int_equal(d->state.owner.original_mb, 1024);
	assert_int_equal(d->state.owner.own_mb, 4000);
	assert_int_equal(d->state.pacing.tried_mb, 5000);
	assert_int_equal(d->state.pacing.changed_at, 0);
	assert_int_equal(d->state.boost.return_mb, 1200);
}

/* An administrator's value ends all that was ours, and is left alone for a while. */
TEST(a_change_by_hand_ends_all_that_was_ours)
{
	Driver	   *d = ours();

	d->sample.settings.max_wal_size_mb = 3000;
	d->sample.in_auto_conf = true;
	d->sample.configured_mb = 2000;
	assert_true(observe(d));
	assert_int_equal(d->state.owner.original_mb, 3000);
	assert_true(d->state.owner.original_by_alter_system);
	assert_int_equal(d->state.owner.own_mb, 0);
	assert_int_equal(d->state.pacing.tried_mb, 0);
	assert_int_equal(d->state.pacing.edit_tried_mb, 0);
	assert_int_equal(d->state.boost.return_mb, 0);
	assert_int_equal(d->state.pacing.leave_alone_until, d->sample.now + 300 * SECOND);
	assert_int_equal(d->state.pacing.changed_at, d->sample.now);
	assert_false(observe(d));

	/* for one timeout, but at most five minutes */
	d = ours();
	d->sample.settings.max_wal_size_mb = 3000;
	d->sample.settings.timeout_ms = 30 * SECOND;
	assert_true(observe(d));
	assert_int_equal(d->state.pacing.leave_alone_until, d->sample.now + 30 * SECOND);
	d = ours();
	d->sample.settings.max_wal_size_mb = 3000;
	d->sample.settings.timeout_ms = 86400 * SECOND;
	assert_true(observe(d));
	assert_int_equal(d->state.pacing.leave_alone_until, d->sample.now + 300 * SECOND);
}

/* What is found at first is no change. */
TEST(the_first_value_is_adopted_silently)
{
	Driver	   *d = driver_new();

	d->sample.configured_mb = 1024;
	assert_false(observe(d));
	assert_int_equal(d->state.owner.original_mb, 1024);
	assert_int_equal(d->state.owner.own_mb, 0);
	assert_int_equal(d->state.pacing.leave_alone_until, 0);

	/* it may move from one file to another */
	d->sample.in_auto_conf = true;
	assert_false(observe(d));
	assert_true(d->state.owner.original_by_alter_system);
	d->sample.in_auto_conf = false;
	assert_false(observe(d));
	assert_false(d->state.owner.original_by_alter_system);

	/* another one is a change, larger or smaller */
	d->sample.settings.max_wal_size_mb = 1023;
	assert_true(observe(d));
	d->sample.settings.max_wal_size_mb = 1024;
	assert_true(observe(d));
}

/* We restored the original value, and did not see it in effect. */
static Driver *
restored(WalsizerNoteKind kind)
{
	Driver	   *d = ours();

	d->sample.note.kind = kind;
	d->sample.in_auto_conf = false;
	d->sample.settings.max_wal_size_mb = 1024;
	d->sample.settings.timeout_ms = 60 * SECOND;
	return d;
}

/* The original value in effect, while ours should be, is an administrator's doing. */
TEST(the_original_value_is_ours_to_expect_only_if_we_restored_it)
{
	Driver	   *d = restored(WALSIZER_NOTE_RESTORED);

	assert_false(observe(d));
	assert_int_equal(d->state.owner.own_mb, 0);
	assert_int_equal(d->state.owner.original_mb, 1024);
	assert_int_equal(d->state.pacing.tried_mb, 0);
	assert_int_equal(d->state.pacing.edit_tried_mb, 0);
	assert_int_equal(d->state.boost.return_mb, 0);
	assert_int_equal(d->state.pacing.leave_alone_until, d->sample.now + 60 * SECOND);
	assert_int_equal(d->state.pacing.changed_at, d->sample.now);

	/* the start of a server without room does not keep walsizer from raising */
	d = restored(WALSIZER_NOTE_NO_ROOM);
	assert_false(observe(d));
	assert_int_equal(d->state.owner.own_mb, 0);
	assert_int_equal(d->state.owner.original_mb, 1024);
	assert_int_equal(d->state.pacing.leave_alone_until, 0);

	/* without memory */
	d = restored(WALSIZER_NOTE_NO_ROOM);
	d->state.owner = (WalsizerOwner) {0};
	assert_false(observe(d));
	assert_int_equal(d->state.owner.own_mb, 0);
	assert_int_equal(d->state.owner.original_mb, 1024);

	/* another value than the note is about */
	d = restored(WALSIZER_NOTE_RESTORED);
	d->sample.settings.max_wal_size_mb = 1025;
	assert_true(observe(d));

	/* a note that was left over, after an administrator's change and back */
	d = restored(WALSIZER_NOTE_RESTORED);
	d->state.owner = (WalsizerOwner) {.original_mb = 2000};
	assert_true(observe(d));

	/* no note of ours */
	d = restored(WALSIZER_NO_NOTE);
	assert_true(observe(d));

	/* the value that we replaced is in effect again, by hand */
	for (int kind = WALSIZER_NO_NOTE; kind <= WALSIZER_NOTE_NO_ROOM; kind++)
	{
		d = ours();
		d->sample.note.kind = (WalsizerNoteKind) kind;
		assert_int_equal(observe(d), kind != WALSIZER_NOTE_WRITTEN);
	}
}

/* As soon as a value of ours is in effect. */
TEST(a_value_that_took_effect)
{
	Driver	   *d = ours();
	const int64_t now = d->sample.now;

	walsizer_took_effect(&d->state, now, 5000);
	assert_int_equal(d->state.owner.own_mb, 5000);
	assert_int_equal(d->state.owner.original_mb, 1024);
	assert_int_equal(d->state.pacing.tried_mb, 0);
	assert_int_equal(d->state.pacing.changed_at, now);
	assert_int_equal(d->state.pacing.kept_since, now);

	/* said again, or seen in the next sample */
	walsizer_took_effect(&d->state, now + 1, 5000);
	assert_int_equal(d->state.pacing.changed_at, now);

	/* a lowering need not be kept; another value may still be tried */
	d->state.pacing.tried_mb = 6000;
	walsizer_took_effect(&d->state, now + 2, 3000);
	assert_int_equal(d->state.pacing.kept_since, now);
	assert_int_equal(d->state.pacing.changed_at, now + 2);
	assert_int_equal(d->state.pacing.tried_mb, 6000);
}

/* What was tried is in effect, no matter who set it. */
TEST(what_is_in_effect_is_not_tried_any_more)
{
	Driver	   *d = ours();

	d->state.pacing.tried_mb = 4000;
	assert_false(observe(d));
	assert_int_equal(d->state.pacing.tried_mb, 0);
}

/* The note counts if it is about the value in effect, and says what that replaced. */
TEST(a_note_tells_more_than_memory)
{
	Driver	   *d = ours();

	d->state.owner.original_mb = 900;
	d->state.owner.own_mb = 2000;
	d->sample.configured_mb = 1500;
	d->sample.note.original_by_alter_system = true;
	assert_false(observe(d));
	assert_int_equal(d->state.owner.own_mb, 4000);
	assert_int_equal(d->state.owner.original_mb, 1024);
	assert_true(d->state.owner.original_by_alter_system);
	assert_int_equal(d->state.pacing.changed_at, d->sample.now);

	/* the smallest original value that there can be */
	d = ours();
	d->state.owner = (WalsizerOwner) {0};
	d->sample.note.original_mb = 1;
	assert_false(observe(d));
	assert_int_equal(d->state.owner.own_mb, 4000);
}

static bool
edited(Driver *d, int64_t mb)
{
	d->sample.configured_mb = mb;
	return walsizer_observe_edit(driver_seen(d));
}

/* An edit that our value hides, until our value is removed. */
TEST(only_an_edit_that_our_value_hides_counts)
{
	Driver	   *d = ours();

	assert_false(edited(d, 1024));
	assert_false(edited(d, 0));
	assert_true(edited(d, 3000));
	assert_true(edited(d, 3000));
	assert_true(edited(d, 500));

	d = ours();
	d->state.owner.own_mb = 0;
	assert_false(edited(d, 3000));

	d = ours();
	d->state.owner.original_by_alter_system = true; /* that hides it as well */
	assert_false(edited(d, 3000));
}

static bool
is_own_raise(Driver *d, int64_t in_effect_mb)
{
	d->sample.settings.max_wal_size_mb = in_effect_mb;
	return walsizer_is_own_raise(driver_seen(d));
}

TEST(only_more_than_the_original_value_is_our_raise)
{
	Driver	   *d = ours();

	assert_true(is_own_raise(d, 4000));
	assert_false(is_own_raise(d, 4001));
	assert_false(is_own_raise(d, 3999));
	/* after an edit to more than our value, which hides it */
	d->state.owner.original_mb = 4001;
	assert_false(is_own_raise(d, 4000));
	d->state.owner.original_mb = 3999;
	assert_true(is_own_raise(d, 4000));
	d->state.owner.original_mb = 4000;
	assert_false(is_own_raise(d, 4000));
	d->state.owner = (WalsizerOwner) {0};
	assert_false(is_own_raise(d, 4000));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(our_value_in_effect_is_nothing_new),
		cmocka_unit_test(a_change_by_hand_ends_all_that_was_ours),
		cmocka_unit_test(the_first_value_is_adopted_silently),
		cmocka_unit_test(the_original_value_is_ours_to_expect_only_if_we_restored_it),
		cmocka_unit_test(a_value_that_took_effect),
		cmocka_unit_test(what_is_in_effect_is_not_tried_any_more),
		cmocka_unit_test(a_note_tells_more_than_memory),
		cmocka_unit_test(only_an_edit_that_our_value_hides_counts),
		cmocka_unit_test(only_more_than_the_original_value_is_our_raise),
	};

	return cmocka_run_group_tests_name("policy, changes of ownership", tests, NULL, NULL);
}
