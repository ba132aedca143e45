/*-------------------------------------------------------------------------
 *
 * server/sample.c
 *	  The only reader of a running server's state, but for its configuration files.
 *
 * Settings are this process's copies, as of its last reload.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#ifdef __linux__
#include <sys/vfs.h>
#endif

#include "access/xlog_internal.h"
#include "access/xlogrecovery.h"
#include "common/controldata_utils.h"
#include "postmaster/bgwriter.h"
#include "replication/slot.h"
#include "replication/walreceiver.h"
#include "storage/fd.h"
#include "storage/spin.h"

#include "server/server.h"

/* f_type of ZFS, for which there is no header, and of btrfs (linux/magic.h) */
#define ZFS_MAGIC			0x2fc12fc1
#define BTRFS_MAGIC			0x9123683e

#define MOST_FILLED			8	/* segments between two samples */

/*
 * Positions.  The server's own trigger looks at what is written, not inserted
 * (XLogWrite in xlog.c).  redo_lsn is that of the last checkpoint (standby:
 * restartpoint) started; one is running if the last completed one has another.
 *
 * A checkpoint completes before it removes older segments, and thousands take time.  So
 * those between the last two that completed are needed until the next one.
 */
static void
read_positions(WalsizerSample *sample)
{
	static XLogRecPtr before = InvalidXLogRecPtr;
	static XLogRecPtr last = InvalidXLogRecPtr;
	XLogRecPtr	completed;
	TimeLineID	tli;

	sample->standby = RecoveryInProgress();
	sample->write_lsn = sample->standby ? GetXLogReplayRecPtr(NULL) : GetXLogWriteRecPtr();
	sample->redo_lsn = GetRedoRecPtr();
	GetOldestRestartPoint(&completed, &tli);
	if (completed != last)
	{
		before = XLogRecPtrIsInvalid(last) ? completed : last;
		last = completed;
	}
	sample->completed_lsn = completed;
	sample->needed_lsn = before;
	sample->checkpoint_running = completed != sample->redo_lsn;
}

static int
open_segment(const char *name)
{
	char		path[MAXPGPATH];

	snprintf(path, sizeof(path), XLOGDIR "/%s", name);
	return OpenTransientFile(path, O_RDONLY | PG_BINARY);
}

/*
 * How much of this segment's first pages (bytes) is padding?  A switch of segments
 * fills the rest with zeros, without page headers (CopyXLogRecordToWAL in xlog.c).
 * What cannot be read is none.
 */
static int64
padding_in(XLogSegNo segno, int64 pages)
{
	int64		written = 1;	/* the first page always has a header */
	int64		end = pages;
	char		name[MAXFNAMELEN];
	int			fd;

	XLogFileName(name, GetWALInsertionTimeLine(), segno, wal_segment_size);
	fd = open_segment(name);
	if (fd < 0)
		return 0;
	/* the last page first: it decides where there is no padding */
	for (int64 page = pages - 1; written < end; page = (written + end) / 2)
	{
		uint16		magic;

		if (pg_pread(fd, &magic, sizeof(magic), (off_t) page * XLOG_BLCKSZ) !=
			(ssize_t) sizeof(magic) || magic != 0)
			written = page + 1;
		else
			end = page;
	}
	CloseTransientFile(fd);
	return Max(pages - written, 0) * XLOG_BLCKSZ;
}

/*
 * Padding that was written since the sample before, in the segments that were filled since
 * then and in the one that is being written: the zeros of a switch are written in several
 * pieces.  Each segment costs a file: if more than MOST_FILLED were filled, nothing is counted.
 */
static int64
read_padding(const WalsizerSample *sample)
{
	static XLogRecPtr before = InvalidXLogRecPtr;
	static int64 counted = 0;	/* of the segment that was written then */
	int64		padding = -counted;
	XLogSegNo	segno;
	XLogSegNo	writing;

	if (sample->standby || sample->write_lsn == before)
		return 0;
	XLByteToSeg(before, segno, wal_segment_size);
	XLByteToSeg(sample->write_lsn, writing, wal_segment_size);
	if (XLogRecPtrIsInvalid(before) || writing < segno || writing - segno > MOST_FILLED)
	{
		segno = writing;
		padding = 0;
	}
	before = sample->write_lsn;
	for (; segno <= writing; segno++)
	{
		int64		written = segno < writing ? wal_segment_size :
			(int64) XLogSegmentOffset(sample->write_lsn, wal_segment_size);

		counted = padding_in(segno, written / XLOG_BLCKSZ);
		padding += counted;
	}
	return padding;
}

/*
 * How far the primary has written, by its last message; 0: not known.  The WAL receiver's
 * shared memory outlives a connection: until the first message of the next one, the time of
 * its start is both that of sending and that of receipt (WalReceiverMain).
 */
static XLogRecPtr
primary_position(void)
{
	XLogRecPtr	position = InvalidXLogRecPtr;

	SpinLockAcquire(&WalRcv->mutex);
	if (WalRcv->pid != 0 && WalRcv->lastMsgSendTime != WalRcv->lastMsgReceiptTime)
		position = WalRcv->latestWalEnd;
	SpinLockRelease(&WalRcv->mutex);
	return position;
}

/*
 * The last checkpoint that was completed, from the control file; the lock keeps the
 * checkpointer from writing it meanwhile.
 *
 * At first, it tells how long ago, by the system clock, the timer of checkpoints was set: at
 * its start, or at the server's (CheckpointerMain).  Not on a standby: there it is the primary's
 * of the last restartpoint, and the checkpointer may be younger than the postmaster.
 */
static void
read_checkpoint(WalsizerSample *sample, bool first)
{
	static XLogRecPtr completed_before = InvalidXLogRecPtr;
	static CheckPoint checkpoint;	/* zero: not known */

	if (first || (sample->standby && sample->completed_lsn != completed_before))
	{
		ControlFileData *control;
		bool		crc_ok;

		LWLockAcquire(ControlFileLock, LW_SHARED);
		control = get_controlfile(DataDir, &crc_ok);
		LWLockRelease(ControlFileLock);
		if (crc_ok)
		{
			checkpoint = control->checkPointCopy;
			completed_before = sample->completed_lsn;
		}
	}
	sample->checkpoint_age = -1;
	if (first && checkpoint.time != 0 && !sample->standby)
		sample->checkpoint_age = Max(-1, ((int64) time(NULL) -
										  Max((int64) checkpoint.time,
											  (int64) timestamptz_to_time_t(PgStartTime))) * 1000);
	if (!sample->standby)
		return;
	sample->primary_redo = checkpoint.redo;
	sample->primary_time = (int64) checkpoint.time;
	sample->primary_lsn = primary_position();
}

/*
 * Standby: does this segment, beyond the replay position, wait for replay?  It does up to the
 * position that the WAL receiver has flushed.  That is not known before the server first asks
 * for streaming, after it has replayed all WAL in pg_wal: with recovery_min_apply_delay that
 * may be hours after its start, and with an archive alone never.  Until then the first page
 * tells: a recycled one still has the address of the WAL it contained before.  If it cannot be
 * read the answer is yes: then too little is taken for ours.
 */
static bool
awaits_replay(const char *name, XLogSegNo segno)
{
	XLogRecPtr	flushed = GetWalRcvFlushRecPtr(NULL, NULL);
	XLogPageHeaderData header;
	XLogRecPtr	start;
	bool		awaits;
	int			fd;

	XLogSegNoOffsetToRecPtr(segno, 0, wal_segment_size, start);
	if (!XLogRecPtrIsInvalid(flushed))
		return start < flushed;
	fd = open_segment(name);
	if (fd < 0)
		return true;
	awaits = read(fd, &header, sizeof(header)) != (ssize_t) sizeof(header) ||
		header.xlp_pageaddr == start;
	CloseTransientFile(fd);
	return awaits;
}

/* The oldest position up to this one that a slot keeps, and its name, unless that is NULL. */
static XLogRecPtr
read_slots(XLogRecPtr oldest, char *name)
{
	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	for (int i = 0; i < max_replication_slots + max_repack_replication_slots; i++)
	{
		ReplicationSlot *slot = &ReplicationSlotCtl->replication_slots[i];
		XLogRecPtr	restart;

		SpinLockAcquire(&slot->mutex);
		restart = WALSIZER_IS_VALID_SLOT(slot) ? slot->data.restart_lsn : InvalidXLogRecPtr;
		SpinLockRelease(&slot->mutex);
		if (XLogRecPtrIsInvalid(restart) || restart >= oldest)
			continue;
		oldest = restart;
		if (name != NULL)
			strlcpy(name, NameStr(slot->data.name), NAMEDATALEN);
	}
	LWLockRelease(ReplicationSlotControlLock);
	return oldest;
}

/*
 * The first segment that a checkpoint that starts now would keep, for recovery, slots,
 * wal_keep_size or the archiver (KeepLogSeg in xlog.c; summarize_wal is not known).  A standby
 * removes no more than its last checkpoint record allows, which is not known.  At the start
 * of the server there are no positions, and no slots and statistics to read.
 */
static XLogSegNo
read_first_kept(const WalsizerSample *sample)
{
	bool		archives = sample->standby ? XLogArchivingAlways() : XLogArchivingActive();
	XLogRecPtr	end = sample->write_lsn;
	XLogRecPtr	oldest;
	XLogSegNo	first;

	if (XLogRecPtrIsInvalid(end))
		return 0;
	oldest = read_slots(end, NULL);
	if (max_slot_wal_keep_size_mb >= 0)
		oldest = Max(oldest, end - Min(end, (uint64) max_slot_wal_keep_size_mb * WALSIZER_MB));
	oldest = Min(oldest, end - Min(end, (uint64) wal_keep_size_mb * WALSIZER_MB));
	XLByteToSeg(oldest, first, wal_segment_size);
	if (archives)
	{
		PgStat_ArchiverStats *archiver = pgstat_fetch_stat_archiver();
		XLogSegNo	archived = 0;
		TimeLineID	tli;

		if (IsXLogFileName(archiver->last_archived_wal))
			XLogFromFileName(archiver->last_archived_wal, &tli, &archived, wal_segment_size);
		first = Min(first, archived + 1);
	}
	return first;
}

/*
 * Fill in disk_wal, what max_wal_size covers: the segments that recovery needs, recycled ones
 * and those being created; disk_ahead, those of them for WAL still to be written; disk_held,
 * older ones, which no max_wal_size includes; and disk_removable.  What a standby has received
 * and not replayed is in none.  False, with errno, if the directory cannot be read to its end.
 */
static bool
read_wal_files(WalsizerSample *sample)
{
	TimeLineID	tli;
	XLogSegNo	oldest;
	XLogSegNo	newest;
	XLogSegNo	kept = read_first_kept(sample);
	DIR		   *dir = AllocateDir(XLOGDIR);
	struct dirent *entry;
	int			error;

	if (dir == NULL)
		return false;
	XLByteToSeg(sample->needed_lsn, oldest, wal_segment_size);
	XLByteToSeg(sample->write_lsn, newest, wal_segment_size);
	while (errno = 0, (entry = readdir(dir)) != NULL)
	{
		XLogSegNo	segno;

		/* a segment being created (XLogFileInitInternal in xlog.c) */
		if (strncmp(entry->d_name, "xlogtemp.", strlen("xlogtemp.")) == 0)
			sample->disk_wal += wal_segment_size;
		if (!IsXLogFileName(entry->d_name))
			continue;
		XLogFromFileName(entry->d_name, &tli, &segno, wal_segment_size);
		if (segno < kept)
			sample->disk_removable += wal_segment_size;
		if (segno < oldest)
			sample->disk_held += wal_segment_size;
		else if (segno <= newest)
			sample->disk_wal += wal_segment_size;
		else if (!sample->standby || !awaits_replay(entry->d_name, segno))
		{
			sample->disk_wal += wal_segment_size;
			sample->disk_ahead += wal_segment_size;
		}
	}
	error = errno;
	FreeDir(dir);
	errno = error;
	return error == 0;
}

/* Can others use this space unseen?  Datasets of a ZFS pool do, and what btrfs has compressed. */
static bool
free_space_is_shared(void)
{
#ifdef __linux__
	struct statfs st;

	return statfs(XLOGDIR, &st) != 0 || (uint32) st.f_type == ZFS_MAGIC ||
		(uint32) st.f_type == BTRFS_MAGIC;
#else
	return true;
#endif
}

/*
 * Add the figures of the file system that really holds pg_wal (statvfs() follows symbolic
 * links), in bytes; disk_read tells if it could be read.  An error is logged, once until it can
 * be read again.  May hang for as long as the file system does: call it without a lock.
 */
void
walsizer_take_disk(WalsizerSample *sample)
{
	static bool failing = false;
	int64		began = walsizer_monotonic_ms();
	struct statvfs volume;

	/* in this order, so that what a checkpoint removes meanwhile counts as neither */
	sample->disk_tried = true;
	sample->disk_read = statvfs(XLOGDIR, &volume) == 0 && read_wal_files(sample);
	sample->look_ms = walsizer_monotonic_ms() - began;
	if (!sample->disk_read && !failing)
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not determine the free space for \"pg_wal\": %m")));
	failing = !sample->disk_read;
	if (failing)
		return;
	sample->disk_free = (int64) volume.f_bavail * (int64) volume.f_frsize;
	/* another cluster there has at least one smallest segment */
	sample->disk_alone = !free_space_is_shared() &&
		(int64) (volume.f_blocks - volume.f_bfree) * (int64) volume.f_frsize -
		sample->disk_wal - sample->disk_held < WALSIZER_MB;
}

/*
 * What holds back most of the "held" bytes of WAL before this position; its name, or when it
 * last failed, as text into NAMEDATALEN bytes.  Takes a lock of the server.
 */
WalsizerHolder
walsizer_holder(const WalsizerSample *sample, XLogRecPtr before, int64 held, char *name)
{
	PgStat_ArchiverStats *archiver = pgstat_fetch_stat_archiver();
	TimestampTz failed = archiver->last_failed_timestamp;
	int64		kept = wal_keep_size_mb * WALSIZER_MB - (int64) (sample->write_lsn - before);

	name[0] = '\0';
	if ((int64) (before - read_slots(before, name)) > held / 2)
		return WALSIZER_HELD_BY_SLOT;
	if (kept > held / 2)
		return WALSIZER_HELD_BY_SETTING;
	if (failed <= archiver->last_archived_timestamp)
		return WALSIZER_HELD_BY_UNKNOWN;
	strlcpy(name, timestamptz_to_str(failed - failed % USECS_PER_SEC), NAMEDATALEN);
	return WALSIZER_HELD_BY_ARCHIVER;
}

/*
 * Observe the server.  "first": the first sample of this process.  Takes spinlocks of the
 * server, and ControlFileLock, for which it may wait while the checkpointer syncs the control
 * file.  Raises an error if it cannot read that, at first or after a restartpoint.
 */
void
walsizer_take_sample(WalsizerSample *sample, bool first)
{
	static TimestampTz last_reset = 0;
	WalsizerAutoConf conf = walsizer_auto_conf_in_effect();
	TimestampTz reset;

	memset(sample, 0, sizeof(*sample));
	sample->now = walsizer_monotonic_ms();
	sample->hour = (int64) time(NULL) / SECS_PER_HOUR;
	sample->settings.segment_bytes = wal_segment_size;
	sample->settings.max_wal_size_mb = max_wal_size_mb;
	sample->settings.completion_target = CheckPointCompletionTarget;
	sample->settings.timeout_ms = (int64) CheckPointTimeout * 1000;
	read_positions(sample);
	sample->padding = read_padding(sample);
	read_checkpoint(sample, first);
	/* as they are now: see walsizer_main() */
	reset = walsizer_fetch_counters(sample);
	sample->counters_reset = last_reset != 0 && reset != last_reset;
	last_reset = reset;
	sample->wal = walsizer_fetch_wal();
	sample->buffers = NBuffers;
	sample->in_auto_conf = conf.size_mb != WALSIZER_NO_LINE;
	sample->note = conf.note;
	sample->configured_mb = walsizer_shared->configured_mb;
}
