/*-------------------------------------------------------------------------
 *
 * walsizer_apply.c
 *	  Changing max_wal_size: ALTER SYSTEM, reload, and a look at what came of
 *	  it.  The only writer of configuration; it is handed a number.
 *
 * ALTER SYSTEM merely writes postgresql.auto.conf.  Whether the value takes
 * effect is seen after a reload only: an error anywhere in the configuration
 * refuses the reload as a whole, a value on the command line outranks every
 * file.  So each attempt ends with a comparison.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "postmaster/interrupt.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include "walsizer.h"
#include "walsizer_compat.h"

/* How long to wait for our own reload after asking for it. */
#define RELOAD_WAIT_MS		10000

/* The setting that tells whose the value beside it is. */
#define NOTE				"walsizer.last_written"

/* A message that is cut ends before the character that was cut, in any encoding. */
static void
set_message(WalsizerApplied *applied, const char *message)
{
	size_t		length = strlcpy(applied->message, message, sizeof(applied->message));

	if (length < sizeof(applied->message))
		return;
	length = sizeof(applied->message) - 1;
	while (length > 0 && IS_HIGHBIT_SET(applied->message[length - 1]))
		length--;
	applied->message[length] = '\0';
}

/*
 * What stands in the way of changing the setting, NULL if nothing is seen.
 * The outcome that an attempt would have goes to *outcome.
 */
const char *
walsizer_apply_obstacle(WalsizerOutcome *outcome)
{
	const struct config_generic *setting = walsizer_find_setting("max_wal_size");
	struct stat st;

	*outcome = WALSIZER_FORBIDDEN;
	if (!walsizer_alter_system_allowed())
		return "allow_alter_system is off";
	if (setting != NULL && setting->source > PGC_S_FILE)
	{
		*outcome = WALSIZER_OVERRIDDEN;
		return "max_wal_size is set on the command line of the server";
	}
	if (lstat(PG_AUTOCONF_FILENAME, &st) == 0)
	{
		if (S_ISLNK(st.st_mode))
			return "\"" PG_AUTOCONF_FILENAME "\" is a symbolic link";
		if (access(PG_AUTOCONF_FILENAME, W_OK) != 0)
			return "\"" PG_AUTOCONF_FILENAME "\" is not writable";
	}
	*outcome = WALSIZER_NOTED;
	return NULL;
}

/*
 * The same, for the worker that is about to write: an ALTER SYSTEM that was not
 * reloaded yet is not to be overwritten.
 */
const char *
walsizer_apply_obstacle_now(WalsizerOutcome *outcome)
{
	const char *obstacle = walsizer_apply_obstacle(outcome);

	if (obstacle != NULL || !walsizer_change_is_pending())
		return obstacle;
	*outcome = WALSIZER_OVERRIDDEN;
	return "a change of max_wal_size in \"" PG_AUTOCONF_FILENAME "\" awaits a reload";
}

/* ALTER SYSTEM SET of that setting, or RESET if value is NULL. */
static AlterSystemStmt *
make_statement(const char *name, const char *value)
{
	AlterSystemStmt *statement = makeNode(AlterSystemStmt);
	VariableSetStmt *set = makeNode(VariableSetStmt);

	set->kind = VAR_RESET;
	set->name = pstrdup(name);
	if (value != NULL)
	{
		A_Const    *constant = makeNode(A_Const);

		constant->val.sval.type = T_String;
		constant->val.sval.sval = pstrdup(value);
		constant->location = -1;
		set->kind = VAR_SET_VALUE;
		set->args = list_make1(constant);
	}
	statement->setstmt = set;
	return statement;
}

/*
 * Write postgresql.auto.conf.  Needs a transaction for the check of privileges
 * only.  An error may leave the server's lock on the file held: aborting the
 * transaction releases it.
 */
static bool
write_setting(const char *name, const char *value, WalsizerApplied *applied)
{
	MemoryContext context = CurrentMemoryContext;
	volatile bool written = false;

	PG_TRY();
	{
		StartTransactionCommand();
		AlterSystemSetConfigFile(make_statement(name, value));
		CommitTransactionCommand();
		written = true;
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		AbortCurrentTransaction();
		set_message(applied, error->message);
		FreeErrorData(error);
	}
	PG_END_TRY();

	MemoryContextSwitchTo(context);
	return written;
}

/*
 * Write the value (MB, 0: remove the line) and the note on it (NULL: remove
 * that).  The note comes first and goes last: whoever copies the file in between
 * has a note without its value, which says nothing, and not the contrary.  A
 * note that stays behind does no harm either.
 */
static bool
write_value_and_note(int64 mb, const char *note, WalsizerApplied *applied)
{
	const char *value = mb > 0 ? psprintf(INT64_FORMAT "MB", mb) : NULL;
	bool		written;

	if (note != NULL && !write_setting(NOTE, note, applied))
		return false;
	written = write_setting("max_wal_size", value, applied);
	/* whatever the answer: an error may come when the file is there already */
	walsizer_note_line();
	if (!written)
		return false;
	if (note == NULL && walsizer_last_written[0] != '\0')
	{
		WalsizerApplied ignored;

		(void) write_setting(NOTE, NULL, &ignored);
	}
	return true;
}

/* This process was told to reread the configuration: do so. */
void
walsizer_reread_configuration(void)
{
	TimestampTz reloaded_before = PgReloadTime;

	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
	if (PgReloadTime != reloaded_before)	/* it was not refused */
		walsizer_read_files();
}

/*
 * Have the whole server reread its configuration, and wait until this process
 * was told to do so.  False if that did not happen in time.
 */
static bool
reload(void)
{
	int64		deadline = walsizer_monotonic_ms() + RELOAD_WAIT_MS;

	if (ConfigReloadPending)
		walsizer_reread_configuration();
	if (kill(PostmasterPid, SIGHUP) != 0)
		return false;

	while (!ConfigReloadPending)
	{
		int64		left = deadline - walsizer_monotonic_ms();

		if (left <= 0)
		{
			SetLatch(MyLatch);
			return false;
		}
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 (long) left, walsizer_wait_event());
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	walsizer_reread_configuration();

	/* whatever else the latch was set for is still to be done */
	SetLatch(MyLatch);
	return true;
}

/* Write, reload, compare.  mb is 0 for "remove the line". */
static void
apply(int64 mb, const char *note, WalsizerApplied *applied)
{
	TimestampTz reloaded_before = PgReloadTime;
	const char *obstacle = walsizer_apply_obstacle_now(&applied->outcome);

	applied->message[0] = '\0';
	applied->in_force = max_wal_size_mb;
	if (obstacle != NULL)
	{
		set_message(applied, obstacle);
		return;
	}

	applied->outcome = WALSIZER_FAILED;
	if (!write_value_and_note(mb, note, applied))
		return;
	if (!reload())
	{
		/* it is in the file, and comes into force when the server gets to it */
		applied->outcome = WALSIZER_REFUSED;
		set_message(applied, "the server has not reloaded its configuration");
		return;
	}

	applied->in_force = max_wal_size_mb;
	if (mb == 0 ? PgReloadTime != reloaded_before : max_wal_size_mb == mb)
		applied->outcome = WALSIZER_APPLIED;
	else if (PgReloadTime == reloaded_before)
	{
		applied->outcome = WALSIZER_REFUSED;
		set_message(applied, "an error in the configuration files keeps the reload from taking effect");
	}
	else
	{
		applied->outcome = WALSIZER_OVERRIDDEN;
		set_message(applied, "somebody else changed max_wal_size at the same moment");
	}
}

/*
 * Set max_wal_size to mb (MB, at least two segments) for the whole server, with
 * a note beside it, or none if note is NULL.
 *
 * Waits up to 10 seconds, with interrupts.  Never raises an error for what can
 * go wrong with the setting: see applied->outcome and its message.
 */
void
walsizer_apply_set(int64 mb, const char *note, WalsizerApplied *applied)
{
	Assert(mb > 0);
	apply(mb, note, applied);
}

/* Remove max_wal_size and the note from postgresql.auto.conf; otherwise as above. */
void
walsizer_apply_reset(WalsizerApplied *applied)
{
	apply(0, NULL, applied);
}
