/*-------------------------------------------------------------------------
 *
 * server/statefile.c
 *	  The file in which walsizer's memory outlives the server.
 *
 * Written after each change and crash recovery, for a planned load and
 * walsizer_forget(), each hour and at the end: it must survive a crash.  Trouble
 * with it is logged and costs memory at worst, never the worker.  What is allocated
 * here is freed at the end of a pass.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "postmaster/interrupt.h"
#include "storage/fd.h"
#include "storage/ipc.h"

#include "server/server.h"

#define STATE_FILE			"pg_stat/walsizer.state"
#define STATE_FILE_BAD		STATE_FILE ".bad"
#define STATE_FILE_MOST		((size_t) WALSIZER_MEMORY_LINES * WALSIZER_LINE_SIZE)

StaticAssertDecl(WALSIZER_LEAST_TIME == MIN_TIMESTAMP && WALSIZER_MOST_TIME == END_TIMESTAMP - 1,
				 "timestamps");

/* Copy what is to be remembered, with the demand of the window under way. */
static WalsizerMemory *
copy_memory(void)
{
	WalsizerMemory *memory = palloc0(sizeof(WalsizerMemory));

	memory->system_identifier = GetSystemIdentifier();
	LWLockAcquire(walsizer_shared->lock, LW_SHARED);
	memory->state = walsizer_shared->state;
	memory->boost_mb = walsizer_shared->boost_mb;
	memory->boost_until = walsizer_shared->boost_until;
	for (int i = 0; i < WALSIZER_RECOVERIES && walsizer_shared->recoveries[i].replay_ms > 0; i++)
		memory->recoveries[memory->num_recoveries++] = walsizer_shared->recoveries[i];
	memory->history = walsizer_shared->history;
	LWLockRelease(walsizer_shared->lock);
	walsizer_remember_window(&memory->state);
	return memory;
}

/*
 * Remember.  If the file could not be read before, the worker knows by now whose
 * value it is, and its planned load and its history come after those of the file.
 */
static void
put_memory(const WalsizerMemory *memory)
{
	WalsizerState *state = &walsizer_shared->state;
	WalsizerNoteKind kind = walsizer_auto_conf_in_effect().note.kind;
	WalsizerHistory *later = palloc(sizeof(WalsizerHistory));

	*later = walsizer_shared->history;
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	if (state->owner.original_mb == 0)
		state->owner = memory->state.owner;
	state->wal_contents.interval = memory->state.wal_contents.interval;
	/* not if the value was ours when that was saved, and is not any more */
	if (walsizer_shared->boost_mb == 0 && (memory->state.owner.own_mb == 0 ||
			kind == WALSIZER_NOTE_WRITTEN || kind == WALSIZER_NOTE_NO_ROOM))
	{
		state->boost.return_mb = memory->state.boost.return_mb;
		walsizer_shared->boost_mb = memory->boost_mb;
		walsizer_shared->boost_until = memory->boost_until;
	}
	/* behind the one of this start */
	for (int from = 0, to = walsizer_shared->recoveries[0].replay_ms > 0 ? 1 : 0;
		 from < memory->num_recoveries && to < WALSIZER_RECOVERIES; from++, to++)
		walsizer_shared->recoveries[to] = memory->recoveries[from];
	for (int i = 0; i < WALSIZER_PEAK_SLOTS; i++)
		walsizer_remember(state, &memory->state.learned.peaks[i]);
	walsizer_shared->history = memory->history;
	LWLockRelease(walsizer_shared->lock);

	for (int i = 0; i < later->length; i++)
		walsizer_add_event(&later->events[i]);
}

/*
 * Replace a file durably, by way of a temporary one beside it.  NULL, or what
 * went wrong, palloc'd.  O_NONBLOCK: a pipe of that name must not block.
 */
char *
walsizer_replace_file(const char *file, const char *text, size_t length)
{
	char	   *temporary = psprintf("%s.tmp", file);
	int			fd = OpenTransientFile(temporary,
									   O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | PG_BINARY);
	char	   *trouble = NULL;

	if (fd < 0)
		return psprintf("could not open file \"%s\": %m", temporary);
	errno = 0;
	if (write(fd, text, length) != (ssize_t) length)
	{
		if (errno == 0)
			errno = ENOSPC;
		trouble = psprintf("could not write file \"%s\": %m", temporary);
	}
	if (CloseTransientFile(fd) != 0 && trouble == NULL)
		trouble = psprintf("could not close file \"%s\": %m", temporary);
	if (trouble == NULL && durable_rename(temporary, file, DEBUG1) != 0)
		trouble = psprintf("could not replace file \"%s\": %m", file);
	if (trouble != NULL)
		unlink(temporary);
	return trouble;
}

/*
 * Write the state file, unless the one that is there was not read yet.  Logs a failure, once
 * until it works again.  False if it was not written.  Takes the lock briefly.
 */
bool
walsizer_state_save(void)
{
	static bool failing = false;
	char	   *text;
	size_t		length;
	char	   *trouble = NULL;

	if (!walsizer_shared->loaded)
		return false;
	text = palloc(STATE_FILE_MOST);
	length = walsizer_memory_format(copy_memory(), text, STATE_FILE_MOST);

	/* the text always fits; if not, the file that is there must stay */
	Assert(length > 0);
	if (length > 0)
		trouble = walsizer_replace_file(STATE_FILE, text, length);
	if (trouble != NULL)
		ereport(failing ? DEBUG1 : LOG,
				(errmsg("could not write walsizer's state file: %s", trouble)));
	failing = trouble != NULL;
	return !failing;
}

/*
 * CHECK_FOR_INTERRUPTS() for the worker.  If it was told to end, it saves the last minutes
 * first.  Status 1, because maybe only this process is to end.
 */
void
walsizer_check_for_interrupts(void)
{
	if (ShutdownRequestPending)
	{
		(void) walsizer_state_save();
		ereport(LOG, (errmsg("walsizer stopped")));
		proc_exit(1);
	}
	CHECK_FOR_INTERRUPTS();
}

/* Read this many bytes of the file, if it has them.  -1, with errno, if it cannot be read. */
static ssize_t
read_state_file(char *text, size_t most)
{
	int			fd = OpenTransientFile(STATE_FILE, O_RDONLY | O_NONBLOCK | PG_BINARY);
	ssize_t		length = fd < 0 ? -1 : read(fd, text, most);
	int			error = errno;

	if (fd >= 0)
		CloseTransientFile(fd);
	errno = error;
	/* what is no file at all is damage, too */
	return length < 0 && error == EISDIR ? 0 : length;
}

/* Keep an unusable file for an administrator to look at, but not over an earlier one. */
static void
set_aside(const char *reason, int line)
{
	const char *name = STATE_FILE_BAD;
	struct stat st;
	bool		moved;

	for (int number = 1; lstat(name, &st) == 0; number++)
		name = psprintf("%s.%d", STATE_FILE_BAD, number);
	moved = rename(STATE_FILE, name) == 0;
	ereport(LOG,
			(errmsg("walsizer starts with an empty memory: its state file \"%s\" cannot be used",
					STATE_FILE),
			 moved ? errdetail("Line %d: %s. The file was renamed to \"%s\".", line, reason, name) :
			 errdetail("Line %d: %s.", line, reason)));
}

/*
 * Read the state file into shared memory, unless that was done.  If it cannot be used, walsizer
 * starts with an empty memory.  If it cannot be read for now, that is logged once, and the next
 * call tries again.  Takes the lock briefly.
 */
void
walsizer_state_load(void)
{
	static bool failing = false;
	ssize_t		length;
	char	   *text;

	if (walsizer_shared->loaded)
		return;

	unlink(STATE_FILE ".tmp");
	/* one byte more than a valid one can have */
	text = palloc(STATE_FILE_MOST + 1);
	length = read_state_file(text, STATE_FILE_MOST + 1);
	if (length < 0 && errno != ENOENT)
	{
		ereport(failing ? DEBUG1 : LOG,
				(errmsg("could not read walsizer's state file \"%s\": %m", STATE_FILE),
				 errdetail("walsizer tries again, and writes no state file until then.")));
		failing = true;
		return;
	}
	if (length >= 0)
	{
		WalsizerMemory *memory = palloc(sizeof(WalsizerMemory));
		int			line = 1;
		const char *damage = walsizer_memory_parse(text, (size_t) length, memory, &line);

		if (damage == NULL && memory->system_identifier == GetSystemIdentifier())
			put_memory(memory);
		else
			set_aside(damage != NULL ? damage : "it belongs to another database system", line);
	}
	walsizer_shared->loaded = true;
}
