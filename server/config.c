/*-------------------------------------------------------------------------
 *
 * server/config.c
 *	  The only reader of configuration files, and writer of postgresql.auto.conf.
 *
 * What we do to the line of max_wal_size is written together with a note behind
 * it, which says what we wrote and what it replaced, or what we restored.  ALTER
 * SYSTEM sets one setting at a time and takes its lock for each, so a crash, or
 * an administrator's ALTER SYSTEM in between, could separate the two.  Here one
 * durable write replaces both under that lock, at the cost of one ALTER SYSTEM.
 * ALTER SYSTEM appends what it sets at the end of the file.  So a value after
 * the note is an administrator's, even if it equals ours.
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

#include "access/xlog_internal.h"
#include "common/string.h"
#include "lib/stringinfo.h"
#include "postmaster/interrupt.h"
#include "storage/fd.h"

#include "server/server.h"

#ifdef __APPLE__
#define st_ctim				st_ctimespec
#endif

#define SIZE				"max_wal_size"
#define NOTE				"walsizer.last_written"

/* The reload whose note has been removed from the file since. */
static TimestampTz note_dropped = 0;

#define LOCK_WAIT_MS		10000	/* longest wait for another ALTER SYSTEM */
#define LOCK_NAP_MS			20

/* The record of a setting whose value comes from ALTER SYSTEM, else NULL. */
static const struct config_generic *
from_auto_conf(const char *setting_name)
{
	const struct config_generic *setting = walsizer_find_setting(setting_name);

	return setting != NULL && setting->source == PGC_S_FILE && setting->sourcefile != NULL &&
		pg_str_endswith(setting->sourcefile, "/" PG_AUTOCONF_FILENAME) ? setting : NULL;
}

/*
 * The line (MB, or WALSIZER_NO_LINE) that walsizer writes with this note.  For
 * the original value it needs one if that is, or was, an administrator's there.
 */
static int64
line_of(const WalsizerNote *note)
{
	if (note->kind == WALSIZER_NOTE_WRITTEN)
		return note->written_mb;
	return note->original_by_alter_system ? note->original_mb : WALSIZER_NO_LINE;
}

/* A note that does not fit the line before it tells nothing. */
static void
check_note(WalsizerAutoConf *conf)
{
	if (conf->size_mb != line_of(&conf->note))
		memset(&conf->note, 0, sizeof(conf->note));
}

/* What postgresql.auto.conf says, as far as this process has it in effect.  Reads no file. */
WalsizerAutoConf
walsizer_auto_conf_in_effect(void)
{
	const struct config_generic *size = from_auto_conf(SIZE);
	const struct config_generic *note = from_auto_conf(NOTE);
	WalsizerAutoConf conf = {0};

	if (size != NULL)
		conf.size_mb = max_wal_size_mb;
	if (note != NULL && (size == NULL || note->sourceline > size->sourceline))
		conf.note = walsizer_note_parse(walsizer_last_written);
	check_note(&conf);
	return conf;
}

/*
 * Was a configuration file written or replaced since the last call?  Then a reload may be
 * under way, unless this process reread it since.  PgReloadTime would not tell: it is the end
 * of a reread that may have missed it, by another clock.  Included files are not looked at.
 */
bool
walsizer_files_changed(void)
{
	static struct stat seen[2];
	const char *const files[] = {ConfigFileName, PG_AUTOCONF_FILENAME};
	bool		changed = false;

	for (int i = 0; i < (int) lengthof(files); i++)
	{
		struct stat before = seen[i];

		(void) stat(files[i], &seen[i]);
		changed |= seen[i].st_ino != before.st_ino ||
			memcmp(&seen[i].st_ctim, &before.st_ctim, sizeof(before.st_ctim)) != 0;
	}
	return changed;
}

/*
 * Read max_wal_size and its note from a configuration file and those it includes.  False if
 * it cannot be parsed; postgresql.auto.conf need not exist.  *items, if not NULL, receives
 * all settings, in the current memory context.
 */
static bool
read_file(const char *file, WalsizerAutoConf *conf, ConfigVariable **items)
{
	ConfigVariable *head = NULL;
	ConfigVariable *tail = NULL;
	bool		missing = file != ConfigFileName && access(file, F_OK) != 0 && errno == ENOENT;
	bool		parsed = missing || ParseConfigFile(file, true, NULL, 0, 0, DEBUG2, &head, &tail);

	memset(conf, 0, sizeof(*conf));
	/* items that could not be parsed have no name */
	for (ConfigVariable *item = head; parsed && item != NULL; item = item->next)
	{
		if (pg_strcasecmp(item->name, SIZE) == 0)
		{
			int			mb;

			conf->size_mb = parse_int(item->value, &mb, GUC_UNIT_MB, NULL) && mb > 0 ?
				mb : WALSIZER_BAD_LINE;
			memset(&conf->note, 0, sizeof(conf->note));
		}
		else if (pg_strcasecmp(item->name, NOTE) == 0)
			conf->note = walsizer_note_parse(item->value);
	}
	check_note(conf);
	if (items != NULL)
		*items = head;
	return parsed;
}

/*
 * The value (MB) that takes effect if postgresql.auto.conf sets none; 0 if that is not known,
 * or if the server would not start with it (ReadControlFile in xlog.c): then our line must
 * stay, or the original value take its place.  The worker reads it after each reload, too: a
 * value of ours would keep an administrator's edit from taking effect.
 */
int64
walsizer_configured_mb(void)
{
	WalsizerAutoConf conf;

	if (!read_file(ConfigFileName, &conf, NULL))
		return 0;
	if (conf.size_mb == WALSIZER_NO_LINE)
		conf.size_mb = DEFAULT_MAX_WAL_SEGS * (DEFAULT_XLOG_SEG_SIZE / WALSIZER_MB);
	return conf.size_mb >= walsizer_least_valid_mb() ? conf.size_mb : 0;
}

/* Reread the configuration, as this process was told to. */
void
walsizer_reread_configuration(void)
{
	TimestampTz reloaded_before = PgReloadTime;

	ConfigReloadPending = false;
	(void) walsizer_files_changed();	/* what is written by now is read */
	ProcessConfigFile(PGC_SIGHUP);
	if (PgReloadTime != reloaded_before)	/* else it was refused */
		walsizer_shared->configured_mb = walsizer_configured_mb();
}

/*
 * The note for restoring the original value instead of ours (MB): the administrator's line,
 * if ours replaced one, else what the other files set, or if the server would not start with
 * that (0 MB), a line that hides it.
 */
WalsizerNote
walsizer_restoring(const WalsizerNote *ours, int64 configured_mb, WalsizerNoteKind kind)
{
	WalsizerNote note = *ours;

	note.kind = kind;
	note.original_by_alter_system = ours->original_by_alter_system || configured_mb == 0;
	note.original_mb = note.original_by_alter_system ?
		Max(ours->original_mb, walsizer_least_valid_mb()) : configured_mb;
	return note;
}

/*
 * Did an administrator change the file to this without a reload?  A line without
 * a note in place of ours is a change, even to the same value.
 */
static bool
is_pending(const WalsizerAutoConf *conf)
{
	WalsizerAutoConf now = walsizer_auto_conf_in_effect();

	return conf->note.kind == WALSIZER_NO_NOTE &&
		(conf->size_mb != now.size_mb || now.note.kind == WALSIZER_NOTE_WRITTEN);
}

/* Does the file include others?  ALTER SYSTEM would put their content in place. */
static bool
includes_files(void)
{
	FILE	   *file = AllocateFile(PG_AUTOCONF_FILENAME, "r");
	StringInfoData line;
	bool		found = false;

	if (file == NULL)
		return false;
	initStringInfo(&line);
	/* no setting's name begins like this */
	while (!found && pg_get_line_buf(file, &line))
		found = pg_strncasecmp(line.data + strspn(line.data, " \t\r\f\v"),
							   "include", strlen("include")) == 0;
	FreeFile(file);
	return found;
}

/* What prevents a change of the setting, as far as can be seen: the result of an attempt. */
WalsizerResult
walsizer_obstacle(void)
{
	const struct config_generic *setting = walsizer_find_setting(SIZE);
	struct stat st;

	if (!AllowAlterSystem)
		return walsizer_result(WALSIZER_FORBIDDEN, "\"allow_alter_system\" is off");
	if (setting != NULL && setting->source > PGC_S_FILE)
		return walsizer_result(WALSIZER_OVERRIDDEN,
							   "\"max_wal_size\" is set on the command line of the server");
	if (lstat(PG_AUTOCONF_FILENAME, &st) != 0)
		return walsizer_result(WALSIZER_NO_OUTCOME, "");
	if (S_ISLNK(st.st_mode))
		return walsizer_result(WALSIZER_FORBIDDEN, "\"" PG_AUTOCONF_FILENAME "\" is a symbolic link");
	if (access(PG_AUTOCONF_FILENAME, W_OK) != 0)
		return walsizer_result(WALSIZER_FORBIDDEN, "\"" PG_AUTOCONF_FILENAME "\" is not writable");
	if (includes_files())
		return walsizer_result(WALSIZER_FORBIDDEN, "\"" PG_AUTOCONF_FILENAME "\" includes other files");
	return walsizer_result(WALSIZER_NO_OUTCOME, "");
}

/* May the worker write?  A file that cannot be parsed is no obstacle: writing it fails. */
bool
walsizer_may_write(void)
{
	WalsizerAutoConf conf;

	return walsizer_obstacle().outcome == WALSIZER_NO_OUTCOME &&
		(!read_file(PG_AUTOCONF_FILENAME, &conf, NULL) || !is_pending(&conf));
}

/*
 * Has a reload yet to bring this note of the file into effect?  Not if there is none.  A line that
 * the start of the server could not replace when it restored the original value counts if "kept".
 */
static bool
is_waiting(const WalsizerNote *note, bool kept)
{
	WalsizerNote now = walsizer_auto_conf_in_effect().note;

	return note->kind != WALSIZER_NO_NOTE &&
		(note->written_mb != now.written_mb ||
		 (note->kind != now.kind && (kept || now.kind != WALSIZER_NOTE_NO_ROOM)));
}

/* The note that waits for a reload, as above; no note if none does, or if the file cannot be read. */
WalsizerNote
walsizer_note_waiting(bool kept)
{
	WalsizerAutoConf conf;

	return read_file(PG_AUTOCONF_FILENAME, &conf, NULL) && is_waiting(&conf.note, kept) ?
		conf.note : (WalsizerNote) {0};
}

/*
 * A newline, from an edit by hand, is written as an escape: the server cannot read a quoted
 * value with one, and would not start again.
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

/* The text of the file with these settings, our note, and its line (MB). */
static char *
new_text(const ConfigVariable *items, int64 line_mb, const WalsizerNote *note)
{
	char		value[WALSIZER_NOTE_SIZE];
	StringInfoData text;

	initStringInfo(&text);
	appendStringInfoString(&text, "# Do not edit this file manually!\n"
						   "# It will be overwritten by the ALTER SYSTEM command.\n");
	for (const ConfigVariable *item = items; item != NULL; item = item->next)
		if (pg_strcasecmp(item->name, SIZE) != 0 && pg_strcasecmp(item->name, NOTE) != 0)
			append_line(&text, item->name, item->value);
	if (line_mb != WALSIZER_NO_LINE)
		append_line(&text, SIZE, psprintf(INT64_FORMAT "MB", line_mb));
	walsizer_note_format(note, value);
	if (value[0] != '\0')
		append_line(&text, NOTE, value);
	return text.data;
}

/*
 * Take AutoFileLock, as ALTER SYSTEM does, for at most LOCK_WAIT_MS.  Its holder
 * may hang in a system call, so this waits with interrupts, in naps.
 */
static bool
lock_file(void)
{
	int64		deadline = walsizer_monotonic_ms() + LOCK_WAIT_MS;

	while (!LWLockConditionalAcquire(AutoFileLock, LW_EXCLUSIVE))
	{
		if (walsizer_monotonic_ms() >= deadline)
			return false;
		(void) WaitLatch(MyLatch, WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, LOCK_NAP_MS,
						 walsizer_wait_event("WalsizerReload"));
		walsizer_check_for_interrupts();
	}
	return true;
}

/* See below.  The caller holds the lock, or is the postmaster. */
static WalsizerResult
write_note(const WalsizerNote *note)
{
	WalsizerResult obstacle = walsizer_obstacle();
	WalsizerNote noted = *note;
	WalsizerAutoConf conf;
	ConfigVariable *items;
	const char *trouble;
	char	   *text;

	if (obstacle.outcome != WALSIZER_NO_OUTCOME)
		return obstacle;
	if (!read_file(PG_AUTOCONF_FILENAME, &conf, &items))
		return walsizer_result(WALSIZER_FAILED,
							   "could not parse contents of file \"" PG_AUTOCONF_FILENAME "\"");
	if (is_pending(&conf))
		return walsizer_result(WALSIZER_OVERRIDDEN,
							   "a change of \"max_wal_size\" in \"postgresql.auto.conf\" awaits a reload");
	if (note->kind == WALSIZER_NO_NOTE &&
		(conf.note.kind == WALSIZER_NOTE_WRITTEN || is_waiting(&conf.note, false)))
		return walsizer_result(WALSIZER_APPLIED, "");
	if (note->kind == WALSIZER_NOTE_WRITTEN && conf.note.kind != WALSIZER_NO_NOTE)
	{
		/* a note that no reload has brought yet knows more than this process */
		noted.original_mb = conf.note.original_mb;
		noted.original_by_alter_system = conf.note.original_by_alter_system;
	}
	text = new_text(items, note->kind == WALSIZER_NO_NOTE ? conf.size_mb : line_of(&noted), &noted);
	trouble = walsizer_replace_file(PG_AUTOCONF_FILENAME, text, strlen(text));
	return trouble == NULL ? walsizer_result(WALSIZER_APPLIED, "") :
		walsizer_result(WALSIZER_FAILED, trouble);
}

/*
 * Write a note and the line of max_wal_size that it is about to postgresql.auto.conf in one
 * durable step; no note: remove it, leave the line.  Returns "applied"; "forbidden" or
 * "overridden" if something prevents a change, such as an administrator's that awaits a
 * reload there, which is left as it is; or "failed".
 *
 * Holds AutoFileLock, except in the postmaster, where no other process runs yet.
 */
WalsizerResult
walsizer_write_note(const WalsizerNote *note)
{
	WalsizerResult result;

	if (IsUnderPostmaster && !lock_file())
		return walsizer_result(WALSIZER_FAILED,
							   "another session has locked \"" PG_AUTOCONF_FILENAME "\"");
	result = write_note(note);
	if (IsUnderPostmaster)
		LWLockRelease(AutoFileLock);
	return result;
}

/*
 * Does the note of the last reload no longer tell anything?  The original value has come back,
 * or an administrator has reset ours.  The latter is left alone unless walsizer may act.
 */
bool
walsizer_note_is_left(void)
{
	WalsizerNote note = walsizer_auto_conf_in_effect().note;

	return walsizer_last_written[0] != '\0' && note_dropped != PgReloadTime &&
		walsizer_shared->state.owner.own_mb == 0 && note.kind != WALSIZER_NOTE_WRITTEN &&
		(note.kind != WALSIZER_NO_NOTE || (walsizer_enable && !walsizer_dry_run));
}

/*
 * Remove it from the file.  The line stays as it is, so there is nothing to reload.  False if
 * it must be tried again.  Locks and waits as above.
 *
 * Only when the state file knows, and the postmaster has read the file: until then, only the
 * note tells a worker that replaces this one who restored the original value.
 */
bool
walsizer_drop_note(void)
{
	if (walsizer_write_note(&(WalsizerNote) {0}).outcome != WALSIZER_APPLIED)
		return false;
	note_dropped = PgReloadTime;
	return true;
}
