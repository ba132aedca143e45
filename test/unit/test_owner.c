/*-------------------------------------------------------------------------
 *
 * test_owner.c
 *	  Whose value it is, in all transitions.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"

static void
set_by_hand(Driver *d, int64_t mb)
{
	d->sample.settings.max_wal_size_mb = mb;
}

/* One raise of our own, in effect; returns it. */
static int64_t
raised(Driver *d)
{
	driver_run(d, 1500, 4 * MB);
	assert_true(d->raises > 0);
	assert_int_equal(d->state.owner.own_mb, d->sample.settings.max_wal_size_mb);
	assert_int_equal(d->state.owner.original_mb, 1024);
	return d->sample.settings.max_wal_size_mb;
}

TEST(found_at_first)
{
	Driver	   *d = driver_new();

	d->sample.in_auto_conf = true;
	driver_step(d, 0, 0);
	assert_int_equal(d->state.owner.original_mb, 1024);
	assert_true(d->state.owner.original_by_alter_system);
	assert_int_equal(d->state.owner.own_mb, 0);
	assert_int_equal(d->externals, 0);
}

TEST(a_larger_value_by_hand_is_adopted_and_kept)
{
	Driver	   *d = driver_new();

	d->config.lookback_hours = 1;
	raised(d);
	set_by_hand(d, 20000);
	driver_step(d, SECOND, 0);
	assert_int_equal(d->externals, 1);
	assert_int_equal(d->last.action, WALSIZER_EXTERNAL);
	assert_int_equal(d->last.target_mb, 20000);
	assert_int_equal(d->state.owner.original_mb, 20000);
	assert_int_equal(d->state.owner.own_mb, 0);
	driver_run(d, 10 * 3600, 0);
	assert_int_equal(d->lowers, 0);
	assert_int_equal(d->externals, 1);
}

TEST(a_smaller_value_by_hand_is_left_alone_for_one_timeout)
{
	Driver	   *d = driver_new();
	int			raises;

	raised(d);
	raises = d->raises;
	set_by_hand(d, 512);
	driver_step(d, SECOND, 4 * MB);
	assert_int_equal(d->externals, 1);
	for (int i = 0; i < 299; i++)
	{
		driver_run(d, 1, 4 * MB);
		assert_int_equal(d->last.reason, WALSIZER_BECAUSE_RECENTLY_CHANGED);
	}
	assert_int_equal(d->raises, raises);
	driver_run(d, 400, 4 * MB);
	assert_true(d->raises > raises);
	assert_int_equal(d->state.owner.original_mb, 512);
}

TEST(found_set_again_is_somebody_elses_doing)
{
	Driver	   *d = driver_new();

	raised(d);
	set_by_hand(d, 1024);
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_EXTERNAL);
	assert_int_equal(d->state.owner.own_mb, 0);
	assert_int_equal(d->state.owner.original_mb, 1024);
}

/* The very value that we wrote, set by an administrator to keep it. */
TEST(a_pinned_value_is_the_administrators)
{
	Driver	   *d = driver_new();
	int64_t		size;

	d->config.lookback_hours = 1;
	size = raised(d);
	memset(&d->sample.note, 0, sizeof(d->sample.note));
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_EXTERNAL);
	assert_int_equal(d->state.owner.original_mb, size);
	assert_int_equal(d->state.owner.own_mb, 0);
	driver_run(d, 10 * 3600, 0);
	assert_int_equal(d->lowers, 0);
	assert_int_equal(d->externals, 1);
}

TEST(set_by_hand_before_we_wrote_anything)
{
	Driver	   *d = driver_new();

	driver_step(d, 0, 0);
	set_by_hand(d, 2048);
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_EXTERNAL);
	assert_int_equal(d->state.owner.original_mb, 2048);
}

TEST(a_value_that_waited_is_still_ours)
{
	Driver	   *d = driver_new();
	int64_t		wanted;

	d->apply = false;
	driver_run(d, 400, 4 * MB);
	assert_true(d->raises > 0);
	driver_run(d, 100, 0);
	wanted = d->state.pacing.tried_mb;
	assert_int_equal(d->externals, 0);	/* the original value is in effect */
	driver_write(d, wanted);	/* a later reload puts ours into effect */
	driver_step(d, SECOND, 0);
	assert_int_equal(d->externals, 0);
	assert_int_equal(d->state.owner.own_mb, wanted);
	assert_int_equal(d->state.owner.original_mb, 1024);
	assert_int_equal(d->state.pacing.tried_mb, 0);
}

TEST(a_second_write_that_failed_keeps_the_first)
{
	Driver	   *d = driver_new();
	int64_t		first;

	first = raised(d);
	d->apply = false;			/* what follows never takes effect */
	driver_run(d, 600, 8 * MB);
	assert_int_equal(d->externals, 0);
	assert_int_equal(d->state.owner.own_mb, first);
}

TEST(given_back)
{
	Driver	   *d = driver_new();
	int			raises;

	raised(d);
	raises = d->raises;
	walsizer_original_is_back(&d->state, 1024);
	set_by_hand(d, 1024);
	for (int i = 0; i < 299; i++)
	{
		driver_run(d, 1, 4 * MB);
		assert_int_equal(d->raises, raises);
	}
	assert_int_equal(d->externals, 0);
	assert_int_equal(d->state.owner.original_mb, 1024);
	assert_int_equal(d->state.owner.own_mb, 0);
	driver_run(d, 600, 4 * MB); /* it may raise again, as after any change */
	assert_true(d->raises > raises);
}

TEST(ownership_outlives_a_restart)
{
	Driver	   *d = driver_new();
	WalsizerState before;
	int64_t		size;

	d->config.lookback_hours = 1;
	size = raised(d);
	walsizer_remember_window(&d->state);
	before = d->state;

	/* what the state file keeps */
	memset(&d->state, 0, sizeof(d->state));
	d->state.owner.original_mb = before.owner.original_mb;
	d->state.owner.own_mb = before.owner.own_mb;
	memcpy(d->state.learned.peaks, before.learned.peaks, sizeof(before.learned.peaks));
	d->sample.redo_lsn = d->sample.write_lsn;
	driver_step(d, 10 * SECOND, 0);
	assert_int_equal(d->externals, 0);
	assert_int_equal(d->state.owner.own_mb, size);
	assert_true(d->last.figures.learned > 1000 * MB);

	/* so that it can be lowered again */
	driver_run(d, 5 * 3600, 0);
	assert_int_equal(d->lowers, 1);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 1024);
}

TEST(changed_while_the_server_was_down)
{
	Driver	   *d = driver_new();

	raised(d);
	d->state.primed = false;
	set_by_hand(d, 3000);
	assert_int_equal(driver_step(d, 10 * SECOND, 0), WALSIZER_EXTERNAL);
	assert_int_equal(d->state.owner.original_mb, 3000);
}

TEST(our_value_reset_to_ours_by_a_standby_clone)
{
	Driver	   *d = driver_new();
	int64_t		size;

	size = raised(d);
	d->sample.standby = true;
	driver_step(d, SECOND, 0);
	d->sample.standby = false;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->externals, 0);
	assert_int_equal(d->state.owner.own_mb, size);
}

TEST(an_edit_underneath_makes_our_value_give_way)
{
	Driver	   *d = driver_new();

	d->sample.configured_mb = 1024;
	raised(d);
	d->sample.configured_mb = 0;	/* not read this time: nothing to conclude */
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_NONE);
	d->state.pacing.tried_mb = 5000;		/* nor does it matter what else could not be
								 * done */
	d->state.pacing.tried_at = d->sample.now;
	d->sample.configured_mb = 3000;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_REVERT);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_EDITED);
	assert_int_equal(d->last.target_mb, 3000);

	/* it could not be done: tried again, but not at each sample */
	for (int i = 0; i < 299; i++)
		assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_NONE);
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_REVERT);

	/* meanwhile the disk fills up: that does not wait */
	d->sample.disk_read = true;
	d->sample.disk_free = 100 * MB;
	d->sample.disk_wal = 100 * MB;
	assert_int_equal(driver_step(d, 10 * SECOND, 0), WALSIZER_LOWER);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_LIMIT_FELL);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 1024);
	d->sample.disk_read = false;
	walsizer_original_is_back(&d->state, 3000);
	set_by_hand(d, 3000);
	driver_run(d, 1000, 0);
	assert_int_equal(d->last.action, WALSIZER_NONE);
	assert_int_equal(d->externals, 0);
}

TEST(an_edit_that_makes_our_value_permanent)
{
	Driver	   *d = driver_new();

	d->sample.configured_mb = 1024;
	d->sample.configured_mb = raised(d);
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_REVERT);
	for (int i = 0; i < 299; i++)
		assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_NONE);
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_REVERT);
}

TEST(a_value_that_comes_back_late_is_no_change)
{
	Driver	   *d = driver_new();

	raised(d);
	driver_run(d, 20, 0);
	d->sample.note.kind = WALSIZER_NOTE_RESTORED;
	set_by_hand(d, 1024);
	driver_run(d, 1000, 0);
	assert_int_equal(d->externals, 0);
	assert_int_equal(d->state.owner.own_mb, 0);
	assert_int_equal(d->state.owner.original_mb, 1024);

	/* an administrator may be quicker */
	d = driver_new();
	raised(d);
	d->sample.note.kind = WALSIZER_NOTE_RESTORED;
	set_by_hand(d, 512);
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_EXTERNAL);
	assert_int_equal(d->state.owner.original_mb, 512);
}

TEST(a_load_announced_after_a_change_by_hand)
{
	Driver	   *d = driver_new();

	raised(d);
	set_by_hand(d, 512);
	assert_int_equal(driver_step(d, SECOND, 4 * MB), WALSIZER_EXTERNAL);
	d->sample.boost_mb = 256;		/* less than there is: left alone as ever */
	d->sample.act_now = true;
	driver_step(d, SECOND, 4 * MB);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_RECENTLY_CHANGED);
	d->sample.boost_mb = 900;
	assert_int_equal(driver_step(d, SECOND, 4 * MB), WALSIZER_RAISE);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_BOOST);
	assert_int_equal(d->state.boost.return_mb, 512);
}

/* What the files say is compared with the original value, whenever it is read. */
TEST(an_edit_while_nobody_knew_the_files)
{
	Driver	   *d = driver_new();

	raised(d);
	d->sample.configured_mb = 1024;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_NONE);
	d->sample.configured_mb = 3000;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_REVERT);
}

TEST(an_edit_before_we_wrote_is_nothing_to_us)
{
	Driver	   *d = driver_new();

	d->sample.configured_mb = 1024;
	driver_step(d, 0, 0);
	d->sample.configured_mb = 3000;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_NONE);
}

TEST(a_planned_load_borrows_a_size)
{
	Driver	   *d = driver_new();

	driver_run(d, 700, MB);
	d->sample.boost_mb = 8192;
	driver_run(d, 2, MB);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 8192);
	assert_int_equal(d->raises, 1);
	driver_run(d, 200, 10 * MB);
	d->sample.boost_mb = 0;
	driver_run(d, 900, MB);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 1024);
	assert_int_equal(d->lowers, 1);
	/* what was planned is not remembered */
	assert_true(d->last.figures.learned < 1000 * MB);
}

/* A copy of a server on which walsizer had raised from 1024 MB to size. */
static Driver *
copied(int64_t size)
{
	Driver	   *d = driver_new();

	d->sample.settings.max_wal_size_mb = size;
	d->sample.in_auto_conf = true;
	d->sample.configured_mb = 1024;
	d->sample.note = (WalsizerNote) {
		.kind = WALSIZER_NOTE_WRITTEN, .written_mb = size, .original_mb = 1024,
	};
	return d;
}

static void
recognized(Driver *d, int64_t size)
{
	assert_int_equal(driver_step(d, 0, 0), WALSIZER_NONE);
	assert_int_equal(d->externals, 0);
	assert_int_equal(d->state.owner.own_mb, size);
	assert_int_equal(d->state.owner.original_mb, 1024);
	assert_false(d->state.owner.original_by_alter_system);
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_NONE);
}

TEST(a_copy_with_no_memory_or_one_that_does_not_fit)
{
	Driver	   *d = copied(3000);

	recognized(d, 3000);

	/* memory from before the raise, and from after the next one */
	for (int64_t remembered = 2000; remembered <= 4000; remembered += 2000)
	{
		d = copied(3000);
		d->state.owner.original_mb = 1024;
		d->state.owner.own_mb = remembered;
		recognized(d, 3000);
	}
	d = copied(3000);
	d->state.owner.original_mb = 1024;
	recognized(d, 3000);
}

TEST(a_copy_within_its_own_limits)
{
	Driver	   *d = copied(3000);

	d->sample.disk_read = true;
	d->sample.disk_free = 4000 * MB;
	driver_run(d, 2, 0);
	assert_int_equal(d->lowers, 1);
	assert_int_equal(d->sample.settings.max_wal_size_mb, 2000);
}

TEST(a_note_on_an_alter_system_is_believed_whole)
{
	Driver	   *d = copied(3000);

	d->sample.note.original_by_alter_system = true;
	driver_step(d, 0, 0);
	assert_int_equal(d->state.owner.own_mb, 3000);
	assert_int_equal(d->state.owner.original_mb, 1024);
	assert_true(d->state.owner.original_by_alter_system);
}

/* The note tells what the files said when the value was written. */
TEST(a_copy_with_files_of_its_own_follows_them)
{
	Driver	   *d = copied(3000);

	d->sample.configured_mb = 8192;
	assert_int_equal(driver_step(d, 0, 0), WALSIZER_REVERT);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_EDITED);
	assert_int_equal(d->last.target_mb, 8192);

	/* unless they did not set the original value: ALTER SYSTEM hides them */
	d = copied(3000);
	d->sample.configured_mb = 8192;
	d->sample.note.original_by_alter_system = true;
	assert_int_equal(driver_step(d, 0, 0), WALSIZER_NONE);
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_NONE);
}

TEST(a_note_on_another_value_says_nothing)
{
	Driver	   *d = copied(3000);

	/* by hand, after we had written another */
	d->sample.note.written_mb = 2999;
	driver_step(d, 0, 0);
	assert_int_equal(d->state.owner.own_mb, 0);
	assert_int_equal(d->state.owner.original_mb, 3000);

	/* in a file of the administrator's */
	d = copied(3000);
	d->sample.in_auto_conf = false;
	memset(&d->sample.note, 0, sizeof(d->sample.note));
	driver_step(d, 0, 0);
	assert_int_equal(d->state.owner.own_mb, 0);

	/* an administrator has set it since: the note is not read with it */
	d = copied(3000);
	d->state.owner.original_mb = 3000;
	memset(&d->sample.note, 0, sizeof(d->sample.note));
	driver_step(d, 0, 0);
	assert_int_equal(d->state.owner.own_mb, 0);
	assert_int_equal(d->state.owner.original_mb, 3000);
}

/* A crash between writing a value and remembering it. */
TEST(a_value_that_took_effect_with_a_restart_is_ours)
{
	Driver	   *d = driver_new();
	int64_t		size;

	size = raised(d);
	d->state.primed = false;
	driver_write(d, 2 * size);
	driver_step(d, SECOND, 0);
	assert_int_equal(d->externals, 0);
	assert_int_equal(d->state.owner.own_mb, 2 * size);
	assert_int_equal(d->state.owner.original_mb, 1024);
}

TEST(switched_off_it_makes_way_for_no_edit)
{
	Driver	   *d = driver_new();

	d->sample.configured_mb = 1024;
	raised(d);
	d->config.enable = false;
	d->sample.configured_mb = 3000;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_NONE);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_EDIT_HIDDEN);
	d->config.enable = true;
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_REVERT);
}

/* walsizer_revert() comes before all rules, and before an edit, also if walsizer is off. */
TEST(a_revert_on_request)
{
	Driver	   *d = driver_new();

	d->sample.configured_mb = 1024;
	raised(d);
	d->config.enable = false;
	d->sample.revert = true;
	d->sample.boost_mb = 8192;
	assert_int_equal(driver_step(d, SECOND, 100 * MB), WALSIZER_REVERT);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_REVERT);
	assert_int_equal(d->last.target_mb, 1024);
	assert_int_equal(d->last.wanted_mb, 1024);
	assert_int_equal(d->state.pacing.tried_mb, 0);
	d->config.enable = true;
	d->sample.configured_mb = 3000;
	assert_int_equal(driver_step(d, SECOND, 100 * MB), WALSIZER_REVERT);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_REVERT);
	assert_int_equal(d->last.target_mb, 3000);

	/* what an administrator has just set is known first */
	set_by_hand(d, 512);
	assert_int_equal(driver_step(d, SECOND, 0), WALSIZER_EXTERNAL);
}

/* A raise that takes back a lowering of the last week is kept for a week. */
TEST(a_size_that_comes_and_goes_stays_longer)
{
	const int64_t hour = 3600 * SECOND;
	const int64_t kept[] = {1, 168, 168};
	Driver	   *d = driver_quiet();
	int64_t		now = d->sample.now;

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
	{
		walsizer_took_effect(&d->state, now, 4000);
		assert_int_equal(d->state.pacing.kept_since, now);
		assert_int_equal(d->state.pacing.keep_ms, kept[i] * hour);
		walsizer_took_effect(&d->state, now, 2000);
		now += 168 * hour - 1;
	}
	walsizer_took_effect(&d->state, now += 1, 4000);
	assert_int_equal(d->state.pacing.keep_ms, hour);

	/* neither a further raise nor a clock that is set shortens that */
	walsizer_took_effect(&d->state, now, 2000);
	walsizer_took_effect(&d->state, now + 144 * hour, 4000);
	walsizer_took_effect(&d->state, now + 168 * hour, 8000);
	d->sample.hour -= 2;
	d->sample.settings.max_wal_size_mb = 8000;
	d->sample.now = d->state.last.now;
	driver_observe(d, 0, 0);
	assert_int_equal(d->state.pacing.kept_since, now + 144 * hour);
	assert_int_equal(d->state.pacing.keep_ms, 168 * hour);
}

/* A planned load each night is no size that comes and goes, but what exceeds it is. */
TEST(planned_loads_do_not_keep_a_raise_longer)
{
	const int64_t hour = 3600 * SECOND;
	Driver	   *d = driver_quiet();
	int64_t		now = d->sample.now;

	walsizer_took_effect(&d->state, now, 2000);
	for (int night = 0; night < 3; night++)
	{
		d->state.boost = (WalsizerBoost) {.size_mb = 8000, .return_mb = 2000};
		walsizer_took_effect(&d->state, now += 20 * hour, 8000);
		assert_int_equal(d->state.pacing.keep_ms, hour);
		d->state.boost.size_mb = 0;
		walsizer_took_effect(&d->state, now += 4 * hour, 2000);
		d->state.boost.return_mb = 0;
	}
	walsizer_took_effect(&d->state, ++now, 4000);
	assert_int_equal(d->state.pacing.keep_ms, hour);

	d->state.boost = (WalsizerBoost) {.size_mb = 8000, .return_mb = 4000};
	walsizer_took_effect(&d->state, ++now, 9000);
	walsizer_took_effect(&d->state, ++now, 8000);
	walsizer_took_effect(&d->state, ++now, 9000);
	assert_int_equal(d->state.pacing.keep_ms, 168 * hour);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found_at_first),
		cmocka_unit_test(a_larger_value_by_hand_is_adopted_and_kept),
		cmocka_unit_test(a_smaller_value_by_hand_is_left_alone_for_one_timeout),
		cmocka_unit_test(found_set_again_is_somebody_elses_doing),
		cmocka_unit_test(a_pinned_value_is_the_administrators),
		cmocka_unit_test(set_by_hand_before_we_wrote_anything),
		cmocka_unit_test(a_value_that_waited_is_still_ours),
		cmocka_unit_test(a_second_write_that_failed_keeps_the_first),
		cmocka_unit_test(given_back),
		cmocka_unit_test(ownership_outlives_a_restart),
		cmocka_unit_test(changed_while_the_server_was_down),
		cmocka_unit_test(an_edit_underneath_makes_our_value_give_way),
		cmocka_unit_test(an_edit_that_makes_our_value_permanent),
		cmocka_unit_test(a_value_that_comes_back_late_is_no_change),
		cmocka_unit_test(a_load_announced_after_a_change_by_hand),
		cmocka_unit_test(an_edit_while_nobody_knew_the_files),
		cmocka_unit_test(an_edit_before_we_wrote_is_nothing_to_us),
		cmocka_unit_test(a_planned_load_borrows_a_size),
		cmocka_unit_test(our_value_reset_to_ours_by_a_standby_clone),
		cmocka_unit_test(a_copy_with_no_memory_or_one_that_does_not_fit),
		cmocka_unit_test(a_copy_within_its_own_limits),
		cmocka_unit_test(a_note_on_an_alter_system_is_believed_whole),
		cmocka_unit_test(a_copy_with_files_of_its_own_follows_them),
		cmocka_unit_test(a_note_on_another_value_says_nothing),
		cmocka_unit_test(a_value_that_took_effect_with_a_restart_is_ours),
		cmocka_unit_test(switched_off_it_makes_way_for_no_edit),
		cmocka_unit_test(a_revert_on_request),
		cmocka_unit_test(a_size_that_comes_and_goes_stays_longer),
		cmocka_unit_test(planned_loads_do_not_keep_a_raise_longer),
	};

	return cmocka_run_group_tests_name("policy, ownership", tests, NULL, NULL);
}
