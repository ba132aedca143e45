/*-------------------------------------------------------------------------
 *
 * walsizer_files.c
 *	  What the configuration files say of max_wal_size.
 *
 * The value in force is not all: an edit may be hidden underneath our line, and
 * an ALTER SYSTEM may await its reload.  What was read is kept in shared memory,
 * for this worker and for one that takes its place.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include "walsizer.h"
#include "walsizer_compat.h"

/* Does the value in force come from ALTER SYSTEM? */
bool
walsizer_stands_in_auto_conf(void)
{
	const struct config_generic *setting = walsizer_find_setting("max_wal_size");
	const char *name;

	if (setting == NULL || setting->source != PGC_S_FILE || setting->sourcefile == NULL)
		return false;
	name = last_dir_separator(setting->sourcefile);
	name = name ? name + 1 : setting->sourcefile;
	return strcmp(name, PG_AUTOCONF_FILENAME) == 0;
}

/*
 * What a file and those it includes say of max_wal_size: MB, or one of
 * WALSIZER_*_LINE.  False if it is not there or cannot be parsed.
 */
static bool
read_line(const char *file, int64 *found)
{
	ConfigVariable *head = NULL;
	ConfigVariable *tail = NULL;
	bool		parsed = ParseConfigFile(file, true, NULL, 0, 0, DEBUG2, &head, &tail);

	*found = WALSIZER_NO_LINE;
	/* what cannot be parsed leaves items without a name */
	for (ConfigVariable *item = head; parsed && item != NULL; item = item->next)
	{
		int			mb;

		if (pg_strcasecmp(item->name, "max_wal_size") == 0)
			*found = parse_int(item->value, &mb, GUC_UNIT_MB, NULL) && mb > 0 ?
				mb : WALSIZER_BAD_LINE;
	}
	FreeConfigVariables(head);
	return parsed;
}

/* The same of postgresql.auto.conf, which need not be there. */
static bool
read_auto_conf(int64 *line)
{
	*line = WALSIZER_NO_LINE;
	if (access(PG_AUTOCONF_FILENAME, F_OK) != 0 && errno == ENOENT)
		return true;
	return read_line(PG_AUTOCONF_FILENAME, line);
}

static void
remember_auto_conf(int64 line)
{
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->auto_conf = line;
	LWLockRelease(walsizer_shared->lock);
}

/*
 * Read again what the files say: postgresql.conf and those it includes,
 * underneath a value in postgresql.auto.conf, and that one.  An administrator
 * who edits the former expects an effect, which our line would deny him.
 *
 * An edit counts when it was reloaded: to be called after each reload that took
 * effect, and not in between.  The last answer stays where the value makes no
 * sense, or is one with which the server would not start: that is to remain
 * hidden.  (After a crash of another process all is read anew, also what was
 * not reloaded.)  Takes the lock for an instant.
 */
void
walsizer_read_files(void)
{
	int64		found;
	int64		line;

	if (!read_line(ConfigFileName, &found) || !read_auto_conf(&line))
		return;
	if (found == WALSIZER_NO_LINE)
		found = DEFAULT_MAX_WAL_SEGS * (DEFAULT_XLOG_SEG_SIZE / WALSIZER_MB);

	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->files_reloaded = PgReloadTime;
	walsizer_shared->auto_conf = line;
	walsizer_shared->configured_valid = found >= 2 * (wal_segment_size / WALSIZER_MB);
	if (walsizer_shared->configured_valid)
		walsizer_shared->configured = found;
	LWLockRelease(walsizer_shared->lock);
}

/*
 * The same for a worker that begins: the server may have read its files long ago,
 * or again while there was no worker.  What counts of postgresql.auto.conf is what
 * is in force.  But for a line that makes no sense, and for one of ours that awaits
 * a good reload.
 */
void
walsizer_read_files_late(void)
{
	int64		written = walsizer_shared->state.written;
	int64		line;

	if (!read_auto_conf(&line) ||
		!(line == WALSIZER_BAD_LINE || (line != WALSIZER_NO_LINE && line == written)))
		line = walsizer_stands_in_auto_conf() ? max_wal_size_mb : WALSIZER_NO_LINE;

	walsizer_read_files();
	remember_auto_conf(line);
}

/* We wrote to postgresql.auto.conf; note what stands there now. */
void
walsizer_note_line(void)
{
	int64		line;

	if (read_auto_conf(&line))
		remember_auto_conf(line);
}

/*
 * Has somebody changed max_wal_size in postgresql.auto.conf, as ALTER SYSTEM
 * does, and not reloaded it yet?  A file that cannot be parsed is no answer.
 * Catches up on walsizer_read_files() if need be.
 */
bool
walsizer_change_is_pending(void)
{
	int64		line;

	/* if that did not succeed right after the reload */
	if (PgReloadTime > walsizer_shared->files_reloaded)
		walsizer_read_files();
	return read_auto_conf(&line) && line != walsizer_shared->auto_conf;
}

/*
 * The value that counts if postgresql.auto.conf has none (MB); 0 if that cannot
 * be known, or if the server would not start with it.  Needs no shared memory.
 */
int64
walsizer_configured_value(void)
{
	int64		found;

	if (!read_line(ConfigFileName, &found))
		return 0;
	if (found == WALSIZER_NO_LINE)
		found = DEFAULT_MAX_WAL_SEGS * (DEFAULT_XLOG_SEG_SIZE / WALSIZER_MB);
	return found >= 2 * (wal_segment_size / WALSIZER_MB) ? found : 0;
}
