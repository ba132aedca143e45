/*-------------------------------------------------------------------------
 *
 * server/config.c
 *	  The only reader of configuration files, and writer of
 *	  postgresql.auto.conf.
 *
 * A value of ours is written together with a note on the next line, which says
 * what we wrote and what it replaced.  ALTER SYSTEM sets one setting at a time
 * and takes its lock for each, so a crash, or an administrator's ALTER SYSTEM
 * in between, could separate value and note.  Here one durable write replaces
 * both under that lock, at the cost of one ALTER SYSTEM.  ALTER SYSTEM appends
 * what it sets at the end of the file.  So a value after the note is an
 * administrator's, even if it equals ours.
 *
 * The price: no ALTER SYSTEM is executed, so hooks on utility commands and on
 * access to objects see nothing of it.  The server log does.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>
#include <unistd.h>

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "storage/lwlock.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include "server/walsizer.h"
#include "server/compat.h"

#ifdef __APPLE__
#define st_mtim				st_mtimespec
#endif

#define SIZE				"max_wal_size"
#define NOTE				"walsizer.last_written"

/* The record of a setting whose value comes from ALTER SYSTEM, else NULL. */
static const struct config_generic *
from_auto_conf(const char *setting_name)
{
	const struct config_generic *setting = walsizer_find_setting(setting_name);
	const char *name;

	if (setting == NULL || setting->source != PGC_S_FILE || setting->sourcefile == NULL)
		return NULL;
	name = last_dir_separator(setting->sourcefile);
	name = name ? name + 1 : setting->sourcefile;
	return strcmp(name, PG_AUTOCONF_FILENAME) == 0 ? setting : NULL;
}

/*
 * What postgresql.auto.conf said when this process last read its
 * configuration, as far as it is in effect.  Reads no file.
 */
WalsizerAutoConf
walsizer_auto_conf_in_effect(void)
{
	const struct config_generic *size = from_auto_conf(SIZE);
	const struct config_generic *note = from_auto_conf(NOTE);
	WalsizerAutoConf conf = {0};

	if (size == NULL)
		return conf;
	conf.size_mb = max_wal_size_mb;
	if (note != NULL && note->sourceline > size->sourceline)
		conf.note = walsizer_note_parse(walsizer_last_written);
	if (conf.note.written_mb != conf.size_mb)
		memset(&conf.note, 0, sizeof(conf.note));
	return conf;
}

/*
 * Was postgresql.auto.conf written since this process last read it?  Then a
 * reload may be under way.  False if that cannot be told.
 */
bool
walsizer_auto_conf_is_newer(void)
{
	struct stat st;

	return stat(PG_AUTOCONF_FILENAME, &st) == 0 &&
		time_t_to_timestamptz(st.st_mtim.tv_sec) + st.st_mtim.tv_nsec / 1000 > PgReloadTime;
}

/* MB that a line of max_wal_size sets, or WALSIZER_BAD_LINE. */
static int64
parse_size(const char *value)
{
	int			mb;

	return parse_int(value, &mb, GUC_UNIT_MB, NULL) && mb > 0 ? mb : WALSIZER_BAD_LINE;
}

/*
 * Read max_wal_size and its note from a configuration file and those it
 * includes.  Returns false if the file does not exist or cannot be parsed.
 * *items, if not NULL, receives all settings, to be freed by the caller.
 */
static bool
read_file(const char *file, WalsizerAutoConf *conf, ConfigVariable **items)
{
	ConfigVariable *head = NULL;
	ConfigVariable *tail = NULL;
	bool		parsed = ParseConfigFile(file, true, NULL, 0, 0, DEBUG2, &head, &tail);

	memset(conf, 0, sizeof(*conf));
	/* items that could not be parsed have no name */
	for (ConfigVariable *item = head; parsed && item != NULL; item = item->next)
	{
		if (pg_strcasecmp(item->name, SIZE) == 0)
		{
			conf->size_mb = parse_size(item->value);
			memset(&conf->note, 0, sizeof(conf->note));
		}
		else if (pg_strcasecmp(item->name, NOTE) == 0)
			conf->note = walsizer_note_parse(item->value);
	}
	if (conf->note.written_mb != conf->size_mb)
		memset(&conf->note, 0, sizeof(conf->note));
	if (items != NULL && parsed)
		*items = head;
	else
		FreeConfigVariables(head);
	return parsed;
}

/*
 * The value (MB) that takes effect if postgresql.auto.conf sets none, or
 * WALSIZER_BAD_LINE; 0 if the files cannot be read.  *valid: can the server
 * start with it (ReadControlFile in xlog.c)?  Needs no shared memory.
 */
int64
walsizer_configured_value(bool *valid)
{
	WalsizerAutoConf conf;

	*valid = false;
	if (!read_file(ConfigFileName, &conf, NULL))
		return 0;
	if (conf.size_mb == WALSIZER_NO_LINE)
		conf.size_mb = DEFAULT_MAX_WAL_SEGS * (DEFAULT_XLOG_SEG_SIZE / WALSIZER_MB);
	*valid = conf.size_mb >= walsizer_least_mb();
	return conf.size_mb;
}

/*
 * The same when the server last read its files, as far as that can be seen.
 * After the crash of a process they may have been edited since: the server does
 * not read them again.
 */
static int64
configured_as_read(bool *valid)
{
	const struct config_generic *setting = walsizer_find_setting(SIZE);

	if (setting == NULL || setting->source > PGC_S_FILE || from_auto_conf(SIZE) != NULL)
		return walsizer_configured_value(valid);
	*valid = max_wal_size_mb >= walsizer_least_mb();
	return max_wal_size_mb;
}

/*
 * Learn what postgresql.conf and the files it includes set underneath our
 * line, which would keep an administrator's edit from taking effect.
 *
 * Call it after a reload that took effect and at the start of a server, but
 * not for a worker that replaces another: an edit counts once it is reloaded.
 *
 * A value with which the server would not start does not replace the last
 * valid one: our line continues to hide it.  Takes the lock briefly.
 */
void
walsizer_read_files(void)
{
	bool		valid;
	int64		configured = configured_as_read(&valid);

	if (configured == 0)
		return;
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->files_reloaded = PgReloadTime;
	walsizer_shared->configured_valid = valid;
	if (valid)
		walsizer_shared->configured_mb = configured;
	LWLockRelease(walsizer_shared->lock);
}

/* Reread the configuration, as this process was told to. */
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

/* Like read_file() for postgresql.auto.conf, which need not exist. */
static bool
read_auto_conf(WalsizerAutoConf *conf, ConfigVariable **items)
{
	memset(conf, 0, sizeof(*conf));
	if (items != NULL)
		*items = NULL;
	if (access(PG_AUTOCONF_FILENAME, F_OK) != 0 && errno == ENOENT)
		return true;
	return read_file(PG_AUTOCONF_FILENAME, conf, items);
}

/*
 * The line (MB, or WALSIZER_NO_LINE) that replaces ours when the original value
 * comes back: the administrator's, if ours replaced one, or one that hides a
 * value with which the server would not start, of at least two segments.
 */
int64
walsizer_original_line(void)
{
	const WalsizerOwner *owner = &walsizer_shared->state.owner;

	if (owner->original_by_alter_system || !walsizer_shared->configured_valid)
		return Max(owner->original_mb, walsizer_least_mb());
	return WALSIZER_NO_LINE;
}

/*
 * Did an administrator change the file to this without a reload?  Not if the
 * value is ours and awaits a good reload, or if this is how we return to the
 * original value.  A line without a note in place of ours is a change, even to
 * the same value.
 */
static bool
is_pending(const WalsizerAutoConf *conf)
{
	WalsizerAutoConf now = walsizer_auto_conf_in_effect();

	if (conf->note.written_mb != 0 ||
		(conf->size_mb == now.size_mb && now.note.written_mb == 0))
		return false;
	return walsizer_shared->state.owner.returning_mb == 0 ||
		conf->size_mb != walsizer_original_line();
}

/*
 * What prevents a change of the setting, as far as can be seen, or NULL.
 * *outcome: what an attempt would lead to.
 */
const char *
walsizer_obstacle(WalsizerOutcome *outcome)
{
	const struct config_generic *setting = walsizer_find_setting(SIZE);
	struct stat st;

	*outcome = WALSIZER_FORBIDDEN;
	if (!walsizer_alter_system_allowed())
		return "\"allow_alter_system\" is off";
	if (setting != NULL && setting->source > PGC_S_FILE)
	{
		*outcome = WALSIZER_OVERRIDDEN;
		return "\"max_wal_size\" is set on the command line of the server";
	}
	if (lstat(PG_AUTOCONF_FILENAME, &st) == 0)
	{
		if (S_ISLNK(st.st_mode))
			return "\"" PG_AUTOCONF_FILENAME "\" is a symbolic link";
		if (access(PG_AUTOCONF_FILENAME, W_OK) != 0)
			return "\"" PG_AUTOCONF_FILENAME "\" is not writable";
	}
	*outcome = WALSIZER_NO_OUTCOME;
	return NULL;
}

/*
 * The same for the worker that is about to write, which must not overwrite an
 * ALTER SYSTEM that awaits a reload.  A file that cannot be parsed is no
 * obstacle here: writing it fails.
 */
const char *
walsizer_obstacle_now(WalsizerOutcome *outcome)
{
	const char *obstacle = walsizer_obstacle(outcome);
	WalsizerAutoConf conf;

	if (obstacle != NULL || !read_auto_conf(&conf, NULL) || !is_pending(&conf))
		return obstacle;
	*outcome = WALSIZER_OVERRIDDEN;
	return WALSIZER_PENDING;
}

/* Is the value in the file no longer ours?  True if there is none. */
bool
walsizer_own_line_is_gone(void)
{
	WalsizerAutoConf conf;

	return read_auto_conf(&conf, NULL) && conf.note.written_mb == 0;
}

/* Does the file contain a value of ours that is not in effect yet? */
bool
walsizer_own_line_waits(void)
{
	WalsizerAutoConf conf;

	return read_auto_conf(&conf, NULL) && conf.note.written_mb != 0 &&
		conf.size_mb != walsizer_auto_conf_in_effect().size_mb;
}

/*
 * A value may contain a newline if the file was edited by hand.  It is written
 * as an escape, because the server cannot read a quoted value with a newline,
 * and would not start again.
 */
static void
append_line(StringInfo text, const char *name, const char *value)
{
	appendStringInfo(text, "%s = '", name);
	for (const char *c = value; *c != '\0'; c++)
	{
		if (*c == '\n')
			appendStringInfoString(text, "\\n");
		else if (SQL_STR_DOUBLE(*c, true))
			appendStringInfo(text, "%c%c", *c, *c);
		else
			appendStringInfoChar(text, *c);
	}
	appendStringInfoString(text, "'\n");
}

/* The text of the file with these settings, and our two lines at its end. */
static char *
new_text(const ConfigVariable *items, int64 mb, const WalsizerNote *note)
{
	StringInfoData text;

	initStringInfo(&text);
	appendStringInfoString(&text, "# Do not edit this file manually!\n"
						   "# It will be overwritten by the ALTER SYSTEM command.\n");
	for (const ConfigVariable *item = items; item != NULL; item = item->next)
	{
		if (pg_strcasecmp(item->name, SIZE) != 0 && pg_strcasecmp(item->name, NOTE) != 0)
			append_line(&text, item->name, item->value);
	}
	if (mb > 0)
		append_line(&text, SIZE, psprintf(INT64_FORMAT "MB", mb));
	if (note != NULL)
	{
		char		value[WALSIZER_NOTE_SIZE];

		walsizer_note_format(note, value);
		append_line(&text, NOTE, value);
	}
	return text.data;
}

/*
 * Write max_wal_size (MB; 0: remove the line) and its note (NULL: remove it)
 * to postgresql.auto.conf in one durable step.  Returns "applied";
 * "overridden" if an administrator's change awaits a reload there, which is
 * left as it is; or "failed".  *message says why.  Holds AutoFileLock as ALTER
 * SYSTEM does, except in the postmaster, where no other process runs yet.
 */
WalsizerOutcome
walsizer_write_auto_conf(int64 mb, const WalsizerNote *note, const char **message)
{
	WalsizerOutcome outcome = WALSIZER_FAILED;
	WalsizerAutoConf conf;
	ConfigVariable *items;

	if (IsUnderPostmaster)
		LWLockAcquire(AutoFileLock, LW_EXCLUSIVE);
	if (!read_auto_conf(&conf, &items))
		*message = "could not parse contents of file \"" PG_AUTOCONF_FILENAME "\"";
	else
	{
		if (IsUnderPostmaster && is_pending(&conf))
		{
			outcome = WALSIZER_OVERRIDDEN;
			*message = WALSIZER_PENDING;
		}
		else
		{
			char	   *text = new_text(items, mb, note);

			*message = walsizer_replace_file(PG_AUTOCONF_FILENAME, text, strlen(text));
			if (*message == NULL)
				outcome = WALSIZER_APPLIED;
		}
		FreeConfigVariables(items);
	}
	if (IsUnderPostmaster)
		LWLockRelease(AutoFileLock);
	return outcome;
}
