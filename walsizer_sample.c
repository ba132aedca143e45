/*-------------------------------------------------------------------------
 *
 * walsizer_sample.c
 *	  One observation of the server.  The only reader of its state.
 *
 * The settings are this process's copies, which follow the configuration as
 * far as the caller has reread it.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogrecovery.h"
#include "catalog/pg_control.h"
#include "common/controldata_utils.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgwriter.h"
#include "storage/fd.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include "walsizer.h"
#include "walsizer_compat.h"

/* A checkpoint removes and recycles old WAL in less time than that, ms. */
#define REMOVAL_MS			5000

/* MB, what the files other than postgresql.auto.conf set; 0: nothing; -1: not
 * known. */
static int64 configured = -1;

/* Milliseconds of a clock that nobody sets. */
int64
walsizer_monotonic_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void
read_settings(WalsizerSettings *settings)
{
	settings->segment_size = wal_segment_size;
	settings->max_wal_size = max_wal_size_mb;
	settings->completion_target = CheckPointCompletionTarget;
	settings->timeout = (int64) CheckPointTimeout * 1000;
}

/*
 * Positions.  What has been written, not inserted, is what the server's own
 * trigger looks at.  The redo pointer is that of the last checkpoint that was
 * started (standby: restartpoint); when it is not the last completed one, a
 * checkpoint is under way.
 */
static void
read_positions(WalsizerSample *sample)
{
	XLogRecPtr	completed;
	TimeLineID	tli;

	sample->standby = RecoveryInProgress();
	sample->write_lsn = sample->standby ? GetXLogReplayRecPtr(NULL) : GetXLogWriteRecPtr();
	sample->redo_lsn = GetRedoRecPtr();
	GetOldestRestartPoint(&completed, &tli);
	sample->completed_lsn = completed;
	sample->checkpoint_running = completed != sample->redo_lsn;
}

/*
 * Counters.  The snapshot is dropped first: by default a process that is never
 * in a transaction would see its first one for ever.
 */
static void
read_counters(WalsizerSample *sample, bool first)
{
	static TimestampTz last_reset = 0;
	WalsizerCounters counters;

	pgstat_clear_snapshot();
	counters = walsizer_fetch_counters(sample->standby);
	sample->requested = Max(counters.requested, 0);
	sample->timed = Max(counters.timed, 0);
	sample->counters_reset = !first && counters.reset_at != last_reset;
	last_reset = counters.reset_at;
}

/*
 * Milliseconds since the server's timer for checkpoints was set, by the clock
 * on the wall, or -1.  Reads the control file, so it is for the first sample.
 *
 * The last completed checkpoint set it when it started; but a checkpointer that
 * has not made one yet counts from its own start, which is that of the server
 * (CheckpointerMain in checkpointer.c).
 */
static int64
read_checkpoint_age(void)
{
	bool		crc_ok;
	ControlFileData *control = get_controlfile(DataDir, &crc_ok);
	int64		age = -1;

	if (crc_ok)
		age = ((int64) time(NULL) - Max((int64) control->checkPointCopy.time,
										(int64) timestamptz_to_time_t(PgStartTime))) * 1000;
	pfree(control);
	return Max(age, -1);
}

/*
 * The checkpoint of the primary that the last restartpoint used.  The control
 * file is read again when a restartpoint has completed.
 */
static void
read_primary(WalsizerSample *sample)
{
	static XLogRecPtr completed_before = InvalidXLogRecPtr;
	static uint64 redo = 0;
	static int64 started = 0;
	XLogRecPtr	completed;
	TimeLineID	tli;

	GetOldestRestartPoint(&completed, &tli);
	if (completed != completed_before)
	{
		bool		crc_ok;
		ControlFileData *control = get_controlfile(DataDir, &crc_ok);

		if (crc_ok)
		{
			redo = control->checkPointCopy.redo;
			started = (int64) control->checkPointCopy.time;
			completed_before = completed;
		}
		pfree(control);
	}
	sample->primary_redo = redo;
	sample->primary_time = started;
}

/* Does the value in force come from ALTER SYSTEM? */
static bool
stands_in_auto_conf(void)
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
 * Read again what postgresql.conf and the files it includes say, underneath a
 * value in postgresql.auto.conf.  An administrator who edits them expects an
 * effect, which our line would deny him.  To be called at the start and after
 * each reload.  Files with errors tell nothing: the last answer stays.
 */
void
walsizer_read_files(void)
{
	ConfigVariable *head = NULL;
	ConfigVariable *tail = NULL;
	int64		found = 0;

	if (!ParseConfigFile(ConfigFileName, true, NULL, 0, 0, DEBUG2, &head, &tail))
	{
		FreeConfigVariables(head);
		return;
	}
	for (ConfigVariable *item = head; item != NULL; item = item->next)
	{
		int			mb;

		if (pg_strcasecmp(item->name, "max_wal_size") == 0 &&
			parse_int(item->value, &mb, GUC_UNIT_MB, NULL))
			found = mb;
	}
	FreeConfigVariables(head);
	configured = found;
}

/*
 * From where on is WAL needed for recovery, or was until just now?  A
 * checkpoint is complete before it removes what is older than its redo pointer:
 * for a while that is still to be removed, and not held back.
 */
static XLogRecPtr
oldest_needed(int64 now)
{
	static XLogRecPtr before = InvalidXLogRecPtr;
	static XLogRecPtr last = InvalidXLogRecPtr;
	static int64 changed_at = 0;
	XLogRecPtr	completed;
	TimeLineID	tli;

	GetOldestRestartPoint(&completed, &tli);
	if (completed != last)
	{
		before = XLogRecPtrIsInvalid(last) ? completed : last;
		last = completed;
		changed_at = now;
	}
	return now - changed_at < REMOVAL_MS ? before : last;
}

/*
 * Bytes of a segment that is being made, under a name of its own until it is
 * complete (server: XLogFileInitInternal in xlog.c); 0 for any other file.
 */
static int64
size_of_new_segment(const char *name)
{
	char		path[MAXPGPATH];
	struct stat st;

	if (strncmp(name, "xlogtemp.", strlen("xlogtemp.")) != 0)
		return 0;
	snprintf(path, sizeof(path), XLOGDIR "/%s", name);
	return stat(path, &st) == 0 ? (int64) st.st_size : 0;
}

/*
 * Bytes of pg_wal: those that max_wal_size accounts for, which are the segments
 * that recovery needs, those recycled for later and those being made; and older
 * ones.  These are held back by slots, wal_keep_size or a failing archiver; no
 * checkpoint would free them, and no value of max_wal_size includes them.
 */
static void
read_wal_files(XLogRecPtr needed, int64 *covered, int64 *held)
{
	TimeLineID	tli;
	XLogSegNo	oldest;
	DIR		   *dir = AllocateDir(XLOGDIR);
	struct dirent *entry;

	*covered = *held = 0;
	XLByteToSeg(needed, oldest, wal_segment_size);
	while ((entry = ReadDirExtended(dir, XLOGDIR, DEBUG1)) != NULL)
	{
		XLogSegNo	segno;

		if (!IsXLogFileName(entry->d_name))
		{
			*covered += size_of_new_segment(entry->d_name);
			continue;
		}
		XLogFromFileName(entry->d_name, &tli, &segno, wal_segment_size);
		*(segno >= oldest ? covered : held) += wal_segment_size;
	}
	FreeDir(dir);
}

/*
 * Add the figures of the file system that really holds pg_wal: symbolic links
 * are followed, and free is what is free for this user.  If it cannot be read
 * the sample says so.  The call may hang for as long as the file system does.
 */
void
walsizer_take_disk(WalsizerSample *sample)
{
	struct statvfs st;

	if (statvfs(XLOGDIR, &st) != 0)
		return;
	sample->has_disk = true;
	sample->disk_free = (int64) st.f_bavail * (int64) st.f_frsize;
	read_wal_files(oldest_needed(sample->now), &sample->disk_wal, &sample->disk_held);
}

/*
 * Observe the server.  "first" is the first sample of this process.
 *
 * Takes spinlocks and lightweight locks of the server for an instant each.
 * May raise an error if the control file cannot be read: the first time, and
 * on a standby after each restartpoint.
 */
void
walsizer_take_sample(WalsizerSample *sample, bool first)
{
	memset(sample, 0, sizeof(*sample));
	sample->now = walsizer_monotonic_ms();
	sample->hour = (int64) time(NULL) / SECS_PER_HOUR;
	read_settings(&sample->settings);
	read_positions(sample);
	if (sample->standby)
		read_primary(sample);
	read_counters(sample, first);
	sample->checkpoint_age = first ? read_checkpoint_age() : -1;
	(void) oldest_needed(sample->now);
	sample->alter_system = stands_in_auto_conf();
	sample->note = walsizer_note_parse(walsizer_last_written);
	sample->configured = configured;
}
