/*-------------------------------------------------------------------------
 *
 * server/act.c
 *	  Changing max_wal_size: write, reload, and compare.
 *
 * Whether a value in postgresql.auto.conf takes effect is seen after a reload
 * only: an error anywhere in the configuration refuses the reload as a whole, a
 * value on the command line outranks every file.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/xlog.h"
#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include "server/walsizer.h"
#include "server/compat.h"

/* How long to wait for our own reload after asking for it. */
#define RELOAD_WAIT_MS		10000

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
	return WALSIZER_PENDING;
}

/* This process was told to reread the configuration: do so. */
void
walsizer_reread_configuration(void)
{
	TimestampTz reloaded_before = PgReloadTime;

	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
	if (PgReloadTime == reloaded_before)
		return;					/* it was refused */
	walsizer_shared->reloads++;
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

/*
 * Give max_wal_size this value (MB, at least two segments) for the whole server,
 * with a note beside it that says whose it is.  Without a note (NULL) the value is
 * the administrator's; 0 MB removes the line.
 *
 * Waits up to 10 seconds, with interrupts.  Never raises an error for what can
 * go wrong with the setting: see applied->outcome and its message.
 */
void
walsizer_apply(int64 mb, const WalsizerNote *note, WalsizerApplied *applied)
{
	int64		reloads = walsizer_shared->reloads;
	const char *message = walsizer_apply_obstacle_now(&applied->outcome);

	applied->message[0] = '\0';
	applied->in_force = max_wal_size_mb;
	if (message == NULL)
	{
		applied->outcome = walsizer_write_auto_conf(mb, note, &message);
		if (applied->outcome == WALSIZER_APPLIED && !reload())
		{
			/* the value takes effect when the server gets to it */
			applied->outcome = WALSIZER_REFUSED;
			message = "the server has not reloaded its configuration";
		}
	}
	if (message != NULL)
	{
		set_message(applied, message);
		return;
	}

	applied->in_force = max_wal_size_mb;
	if (walsizer_shared->reloads == reloads)
	{
		applied->outcome = WALSIZER_REFUSED;
		set_message(applied, "an error in the configuration files keeps the reload from taking effect");
	}
	else if (mb > 0 && max_wal_size_mb != mb)
	{
		applied->outcome = WALSIZER_OVERRIDDEN;
		set_message(applied, "an administrator changed max_wal_size at the same moment");
	}
}
