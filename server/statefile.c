/*-------------------------------------------------------------------------
 *
 * server/statefile.c
 *	  The file in which walsizer's memory outlives the server.
 *
 * Written after each change and crash recovery, for a planned load and
 * walsizer_forget(), each hour and at the end.  Unlike statistics it is kept
 * while the server runs: it must survive a crash.  Trouble with it is logged and
 * costs memory at worst, never the worker.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/xlog.h"
#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "utils/timestamp.h"

#include "server/statetext.h"
#include "server/walsizer.h"

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
	WalsizerState *state = palloc(sizeof(WalsizerState));

	LWLockAcquire(walsizer_shared->lock, LW_SHARED);
	*state = walsizer_shared->state;
	memory->boost_mb = walsizer_shared->boost_mb;
	memory->boost_until = walsizer_boost_until(walsizer_shared);
	for (int i = 0; i < WALSIZER_RECOVERIES && walsizer_shared->recoveries[i].replay_ms > 0; i++)
		memory->recoveries[memory->num_recoveries++] = walsizer_shared->recoveries[i];
	memory->last_event = walsizer_shared->last_event;
	for (int64 number = walsizer_first_event(walsizer_shared);
		 number <= walsizer_shared->last_event; number++)
		memory->events[memory->num_events++] = *walsizer_event(walsizer_shared, number);
	LWLockRelease(walsizer_shared->lock);

	walsizer_remember_window(state);
	memory->system_identifier = GetSystemIdentifier();
	memory->owner = state->owner;
	memory->boost_return_mb = state->boost.return_mb;
	memory->interval = state->mix.interval;
	memcpy(memory->peaks, state->learned.peaks, sizeof(memory->peaks));
	pfree(state);
	return memory;
}

/*
 * Milliseconds that the planned load still lasts by the system clock, the only
 * one that survives a restart of the machine; 0 if implausible.
 */
static int64
boost_left(const WalsizerMemory *memory)
{
	int64		left = (memory->boost_until - GetCurrentTimestamp()) / 1000;

	return left <= (WALSIZER_BOOST_MOST_DAYS + 1) * (USECS_PER_DAY / 1000) ? left : 0;
}

/*
 * Remember.  If the file could not be read before, the worker knows by now whose
 * value it is, and its planned load and its history come after those of the file.
 */
static void
put_memory(const WalsizerMemory *memory)
{
	WalsizerState *state = &walsizer_shared->state;
	int64		first = walsizer_first_event(walsizer_shared);
	int			num_later = (int) (walsizer_shared->last_event + 1 - first);
	WalsizerEvent *later = palloc(sizeof(WalsizerEvent) * (Size) num_later);

	for (int i = 0; i < num_later; i++)
		later[i] = *walsizer_event(walsizer_shared, first + i);

	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	if (state->owner.original_mb == 0)
		state->owner = memory->owner;
	state->mix.interval = memory->interval;
	if (walsizer_shared->boost_mb == 0)
	{
		state->boost.return_mb = memory->boost_return_mb;
		walsizer_shared->boost_mb = memory->boost_mb;
		walsizer_shared->boost_end = walsizer_monotonic_ms() + boost_left(memory);
	}
	/* behind the one of this start */
	for (int from = 0, to = walsizer_shared->recoveries[0].replay_ms > 0 ? 1 : 0;
		 from < memory->num_recoveries && to < WALSIZER_RECOVERIES; from++, to++)
		walsizer_shared->recoveries[to] = memory->recoveries[from];
	for (int i = 0; i < WALSIZER_PEAK_SLOTS; i++)
		walsizer_remember(state, memory->peaks[i].hour, memory->peaks[i].demand,
						  memory->peaks[i].timeout_ms);
	walsizer_shared->last_event = walsizer_shared->forgotten = 0;
	for (int i = 0; i < memory->num_events; i++)
	{
		const WalsizerEvent *event = &memory->events[i];

		/* Numbers missing in between were cleared by walsizer_forget(). */
		if (event->number != walsizer_shared->last_event + 1)
			walsizer_shared->forgotten = event->number - 1;
		walsizer_shared->last_event = event->number;
		*walsizer_event(walsizer_shared, event->number) = *event;
	}
	if (walsizer_shared->last_event != memory->last_event)
		walsizer_shared->last_event = walsizer_shared->forgotten = memory->last_event;
	LWLockRelease(walsizer_shared->lock);

	for (int i = 0; i < num_later; i++)
		walsizer_add_event(&later[i]);
	pfree(later);
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
 * Write the state file, unless the one that is there was not read yet.  Logs a
 * failure, once until it works again; the next write tries anew.  False if it was
 * not written.  Takes the lock briefly.
 */
bool
walsizer_state_save(void)
{
	static bool failing = false;
	WalsizerMemory *memory;
	char	   *text;
	size_t		length;
	char	   *trouble = NULL;

	if (!walsizer_shared->unlocked.loaded)
		return false;
	memory = copy_memory();
	text = palloc(STATE_FILE_MOST);
	length = walsizer_memory_format(memory, text, STATE_FILE_MOST);

	/* the text always fits; if not, the file that is there must stay */
	Assert(length > 0);
	if (length > 0)
		trouble = walsizer_replace_file(STATE_FILE, text, length);
	if (trouble != NULL)
		ereport(failing ? DEBUG1 : LOG,
				(errmsg("could not write walsizer's state file: %s", trouble)));
	failing = trouble != NULL;
	pfree(text);
	pfree(memory);
	return !failing;
}

/*
 * CHECK_FOR_INTERRUPTS() for the worker.  If it was told to end, it does so,
 * and saves the last minutes first.  Status 1, because maybe only this process
 * is to end.
 */
void
walsizer_check_for_interrupts(void)
{
	if (ShutdownRequestPending)
	{
		(void) walsizer_state_save();
		proc_exit(1);
	}
	CHECK_FOR_INTERRUPTS();
}

/*
 * The file as a palloc'd string.  NULL if there is none, with ENOENT in errno; if
 * it is of no use, with the *reason; or if it cannot be read for now, with errno.
 */
static char *
read_state_file(size_t *length, const char **reason)
{
	int			fd = OpenTransientFile(STATE_FILE, O_RDONLY | O_NONBLOCK | PG_BINARY);
	struct stat st;
	char	   *text = NULL;
	ssize_t		got;
	int			error = 0;

	*reason = NULL;
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) != 0)
		error = errno;
	else if (!S_ISREG(st.st_mode))
		*reason = "it is not a regular file";
	else if (st.st_size < 0 || (uint64) st.st_size > STATE_FILE_MOST)
		*reason = "it is too large";
	else
	{
		text = palloc((Size) st.st_size + 1);
		*length = (size_t) st.st_size;
		got = read(fd, text, *length);
		if (got != (ssize_t) *length)
		{
			error = got < 0 ? errno : EIO;
			pfree(text);
			text = NULL;
		}
	}
	CloseTransientFile(fd);
	errno = error;
	return text;
}

/*
 * Move an unusable file out of the way, for an administrator to look at, but
 * not over an earlier one.
 */
static void
set_aside(const char *reason, int line)
{
	const char *name = STATE_FILE_BAD;
	const char *why = line > 0 ? psprintf("Line %d: %s", line, reason) :
		psprintf("Reason: %s", reason);
	struct stat st;
	bool		moved;

	for (int number = 1; lstat(name, &st) == 0; number++)
		name = psprintf("%s.%d", STATE_FILE_BAD, number);
	moved = rename(STATE_FILE, name) == 0;
	ereport(LOG,
			(errmsg("walsizer starts with an empty memory: its state file \"%s\" cannot be used",
					STATE_FILE),
			 moved ? errdetail("%s. The file was renamed to \"%s\".", why, name) :
			 errdetail("%s.", why)));
}

/*
 * Read the state file into shared memory, unless that was done.  If it cannot be
 * used, walsizer starts with an empty memory.  If it cannot be read for now, that
 * is logged once, and the next call tries again.  Takes the lock briefly.
 */
void
walsizer_state_load(void)
{
	static bool failing = false;
	WalsizerMemory *memory;
	WalsizerMemoryError error;
	const char *reason;
	size_t		length = 0;
	char	   *text;

	if (walsizer_shared->unlocked.loaded)
		return;

	unlink(STATE_FILE ".tmp");
	text = read_state_file(&length, &reason);
	if (text == NULL && reason == NULL && errno != ENOENT)
	{
		ereport(failing ? DEBUG1 : LOG,
				(errmsg("could not read walsizer's state file \"%s\": %m", STATE_FILE),
				 errdetail("walsizer tries again, and writes no state file until then.")));
		failing = true;
		return;
	}
	memory = palloc(sizeof(WalsizerMemory));
	if (reason != NULL)
		set_aside(reason, 0);
	else if (text != NULL && !walsizer_memory_parse(text, length, memory, &error))
		set_aside(error.what, error.line);
	else if (text != NULL && memory->system_identifier != GetSystemIdentifier())
		set_aside("it belongs to another database system", 0);
	else if (text != NULL)
		put_memory(memory);

	walsizer_shared->unlocked.loaded = true;
	pfree(memory);
	if (text != NULL)
		pfree(text);
}
