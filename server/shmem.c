/*-------------------------------------------------------------------------
 *
 * server/shmem.c
 *	  Shared memory, the history in it, and the file that outlives both.
 *
 * The file is written after each adjustment and crash recovery, before walsizer
 * removes its line from postgresql.auto.conf, for a planned load and
 * walsizer_reset(), each hour and at the end, and while a value of ours is in
 * effect, at the start and after each reload; to a temporary name first.  It is
 * kept while the server runs: unlike statistics it must survive a crash.
 * Trouble with the file is logged and costs memory at worst, never the worker.
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
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#include "server/walsizer.h"

#define STATE_FILE			"pg_stat/walsizer.state"
#define STATE_FILE_TMP		STATE_FILE ".tmp"
#define STATE_FILE_BAD		STATE_FILE ".bad"

#define STATE_FILE_MOST		((size_t) WALSIZER_MEMORY_LINES * WALSIZER_LINE_SIZE)

WalsizerShared *walsizer_shared = NULL;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

/*-------------------------------------------------------------------------
 * Shared memory
 *-------------------------------------------------------------------------
 */

static void
request_shared_memory(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	RequestAddinShmemSpace(MAXALIGN(sizeof(WalsizerShared)));
	RequestNamedLWLockTranche("walsizer", 1);
}

static void
start_shared_memory(void)
{
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	walsizer_shared = ShmemInitStruct("walsizer", sizeof(WalsizerShared), &found);
	if (!found)
	{
		memset(walsizer_shared, 0, sizeof(WalsizerShared));
		walsizer_shared->lock = &(GetNamedLWLockTranche("walsizer"))->lock;
		ConditionVariableInit(&walsizer_shared->answered);
	}
	LWLockRelease(AddinShmemInitLock);
}

/* To be called while shared_preload_libraries is processed. */
void
walsizer_state_install_hooks(void)
{
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shared_memory;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = start_shared_memory;
}

/*-------------------------------------------------------------------------
 * History; the caller holds the lock
 *-------------------------------------------------------------------------
 */

/* Number of the oldest event that is kept; last_event + 1 if there is none. */
int64
walsizer_state_first_event(const WalsizerShared *shared)
{
	return Max(shared->forgotten, shared->last_event - WALSIZER_HISTORY_SLOTS) + 1;
}

WalsizerEvent *
walsizer_state_event(WalsizerShared *shared, int64 number)
{
	return &shared->events[(number - 1) % WALSIZER_HISTORY_SLOTS];
}

/* Add an event and number it.  Takes the lock itself. */
void
walsizer_state_add_event(const WalsizerEvent *event)
{
	WalsizerEvent *slot;

	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->last_event++;
	slot = walsizer_state_event(walsizer_shared, walsizer_shared->last_event);
	*slot = *event;
	slot->number = walsizer_shared->last_event;
	LWLockRelease(walsizer_shared->lock);
}

/*
 * Note what came of the newest change to that size (MB): so many checkpoints
 * were forced in the timeout after it.  Takes the lock itself.
 */
void
walsizer_state_follow_up(int64 size, int64 forced)
{
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	for (int64 number = walsizer_shared->last_event;
		 number >= walsizer_state_first_event(walsizer_shared); number--)
	{
		WalsizerEvent *event = walsizer_state_event(walsizer_shared, number);

		if (event->new_size == size && event->followed < 0 &&
			(event->outcome == WALSIZER_APPLIED || event->outcome == WALSIZER_NOTED))
		{
			event->followed = forced;
			break;
		}
	}
	LWLockRelease(walsizer_shared->lock);
}

/* Bytes per second of the last crash recovery; 0: there was none. */
double
walsizer_measured_replay_rate(const WalsizerShared *shared)
{
	if (shared->replay_ms <= 0)
		return 0;
	return (double) shared->replay_bytes * 1000.0 / (double) shared->replay_ms;
}

const char *
walsizer_outcome_name(WalsizerOutcome outcome)
{
	switch (outcome)
	{
		case WALSIZER_NOTED:
			return "noted";
		case WALSIZER_APPLIED:
			return "applied";
		case WALSIZER_DRY_RUN:
			return "dry run";
		case WALSIZER_FORBIDDEN:
			return "forbidden";
		case WALSIZER_OVERRIDDEN:
			return "overridden";
		case WALSIZER_REFUSED:
			return "refused";
		case WALSIZER_FAILED:
			return "failed";
	}
	return "unknown";
}

/*-------------------------------------------------------------------------
 * The file
 *-------------------------------------------------------------------------
 */

/*
 * What is to be remembered, copied out of shared memory, with the demand of the
 * window under way.
 */
static WalsizerMemory *
copy_memory(void)
{
	WalsizerMemory *memory = palloc0(sizeof(WalsizerMemory));
	WalsizerState *state = palloc(sizeof(WalsizerState));

	LWLockAcquire(walsizer_shared->lock, LW_SHARED);
	*state = walsizer_shared->state;
	memory->boost = walsizer_shared->boost;
	memory->boost_until = walsizer_shared->boost_until;
	memory->server_started = PgStartTime;
	memory->files_reloaded = walsizer_shared->files_reloaded;
	memory->files_configured = walsizer_shared->configured;
	memory->files_valid = walsizer_shared->configured_valid;
	memory->replay_bytes = walsizer_shared->replay_bytes;
	memory->replay_ms = walsizer_shared->replay_ms;
	memory->last_event = walsizer_shared->last_event;
	for (int64 number = walsizer_state_first_event(walsizer_shared);
		 number <= walsizer_shared->last_event; number++)
		memory->events[memory->num_events++] = *walsizer_state_event(walsizer_shared, number);
	LWLockRelease(walsizer_shared->lock);

	walsizer_settle(state);
	memory->system_identifier = GetSystemIdentifier();
	memory->found = state->found;
	memory->found_by_alter_system = state->found_by_alter_system;
	memory->own = state->own;
	memory->configured = state->configured;
	memory->returning = state->returning;
	memory->boost_return = state->boost_return;
	memcpy(memory->peaks, state->peaks, sizeof(memory->peaks));
	pfree(state);
	return memory;
}

/*
 * How long the planned load still lasts, ms: by the clock on the wall, which is
 * all that is known after a start of the machine.  Nobody could have asked for
 * more than the longest duration.
 */
static int64
boost_left(const WalsizerMemory *memory)
{
	int64		left = (memory->boost_until - GetCurrentTimestamp()) / 1000;

	return left <= (WALSIZER_BOOST_MOST_DAYS + 1) * (USECS_PER_DAY / 1000) ? left : 0;
}

static void
put_memory(const WalsizerMemory *memory)
{
	WalsizerState *state = &walsizer_shared->state;

	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	state->found = memory->found;
	state->found_by_alter_system = memory->found_by_alter_system;
	state->own = memory->own;
	state->configured = memory->configured;
	state->returning = memory->returning;
	state->boost_return = memory->boost_return;
	walsizer_shared->boost = memory->boost;
	walsizer_shared->boost_until = memory->boost_until;
	walsizer_shared->boost_end = walsizer_monotonic_ms() + boost_left(memory);
	if (memory->server_started == PgStartTime)
	{
		walsizer_shared->files_reloaded = memory->files_reloaded;
		walsizer_shared->configured = memory->files_configured;
		walsizer_shared->configured_valid = memory->files_valid;
	}
	if (walsizer_shared->replay_ms == 0)	/* none measured at this start */
	{
		walsizer_shared->replay_bytes = memory->replay_bytes;
		walsizer_shared->replay_ms = memory->replay_ms;
	}
	memcpy(state->peaks, memory->peaks, sizeof(state->peaks));
	for (int i = 0; i < memory->num_events; i++)
	{
		const WalsizerEvent *event = &memory->events[i];

		/* Numbers missing in between were cleared by walsizer_reset(). */
		if (event->number != walsizer_shared->last_event + 1)
			walsizer_shared->forgotten = event->number - 1;
		walsizer_shared->last_event = event->number;
		*walsizer_state_event(walsizer_shared, event->number) = *event;
	}
	if (walsizer_shared->last_event != memory->last_event)
		walsizer_shared->last_event = walsizer_shared->forgotten = memory->last_event;
	LWLockRelease(walsizer_shared->lock);
}

/* Write all of buf to a file.  False, with errno, if that fails. */
bool
walsizer_write_all(int fd, const char *buf, size_t length)
{
	while (length > 0)
	{
		ssize_t		written = write(fd, buf, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
		{
			if (written == 0)
				errno = ENOSPC;
			return false;
		}
		buf += written;
		length -= (size_t) written;
	}
	return true;
}

static bool
write_file(const char *text, size_t length)
{
	int			fd = OpenTransientFile(STATE_FILE_TMP,
									   O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | PG_BINARY);
	bool		written;

	if (fd < 0)
		return false;
	written = walsizer_write_all(fd, text, length);
	if (!written)
	{
		int			save_errno = errno;

		CloseTransientFile(fd);
		unlink(STATE_FILE_TMP);
		errno = save_errno;
		return false;
	}
	return CloseTransientFile(fd) == 0;
}

/*
 * Write the state file.  A failure is logged, once until it works again, and
 * otherwise ignored: the next write tries anew.
 */
void
walsizer_state_save(void)
{
	static bool failing = false;
	WalsizerMemory *memory = copy_memory();
	char	   *text = palloc(STATE_FILE_MOST);
	size_t		length = walsizer_memory_format(memory, text, STATE_FILE_MOST);

	if (length > 0 && write_file(text, length))
		failing = durable_rename(STATE_FILE_TMP, STATE_FILE, failing ? DEBUG1 : LOG) != 0;
	else
	{
		ereport(failing ? DEBUG1 : LOG,
				(errcode_for_file_access(),
				 errmsg("could not write walsizer's state file \"%s\": %m", STATE_FILE_TMP)));
		failing = true;
	}
	pfree(text);
	pfree(memory);
}

/*
 * The whole file as a palloc'd string, or NULL; *reason says why if logged.
 * A pipe of that name must not keep anybody waiting, hence O_NONBLOCK.
 */
static char *
read_file(size_t *length, const char **reason)
{
	int			fd = OpenTransientFile(STATE_FILE, O_RDONLY | O_NONBLOCK | PG_BINARY);
	struct stat st;
	char	   *text = NULL;

	*reason = NULL;
	if (fd < 0)
	{
		if (errno != ENOENT)
			*reason = "it could not be opened";
		return NULL;
	}
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		*reason = "it is not a regular file";
	else if (st.st_size < 0 || (uint64) st.st_size > STATE_FILE_MOST)
		*reason = "it is too large";
	else
	{
		text = palloc((Size) st.st_size + 1);
		*length = (size_t) st.st_size;
		if (read(fd, text, *length) != (ssize_t) *length)
		{
			*reason = "it could not be read";
			pfree(text);
			text = NULL;
		}
	}
	CloseTransientFile(fd);
	return text;
}

/* Move a file that cannot be used out of the way, for a person to look at. */
static void
set_aside(const char *reason, int line)
{
	bool		moved = rename(STATE_FILE, STATE_FILE_BAD) == 0;

	ereport(LOG,
			(errmsg("walsizer starts with an empty memory: its state file \"%s\" cannot be used",
					STATE_FILE),
			 line > 0 ? errdetail("Line %d: %s.", line, reason) : errdetail("The reason: %s.", reason),
			 moved ? errhint("The file was renamed to \"%s\".", STATE_FILE_BAD) : 0));
}

/*
 * Read the state file into shared memory, once in the life of the server.
 * Whatever is wrong with the file, walsizer starts, with empty memory then.
 */
void
walsizer_state_load(void)
{
	WalsizerMemory *memory;
	WalsizerMemoryError error;
	const char *reason;
	size_t		length = 0;
	char	   *text;

	if (walsizer_shared->loaded)
		return;

	unlink(STATE_FILE_TMP);
	text = read_file(&length, &reason);
	memory = palloc(sizeof(WalsizerMemory));
	if (text == NULL)
	{
		if (reason != NULL)
			set_aside(reason, 0);
	}
	else if (!walsizer_memory_parse(text, length, memory, &error))
		set_aside(error.what, error.line);
	else if (memory->system_identifier != GetSystemIdentifier())
		set_aside("it belongs to another database system", 0);
	else
		put_memory(memory);

	walsizer_shared->loaded = true;
	pfree(memory);
	if (text != NULL)
		pfree(text);
}
