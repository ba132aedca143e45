/*-------------------------------------------------------------------------
 *
 * walsizer_worker.c
 *	  The background worker: wake, observe, decide, apply, record, sleep.
 *
 * All that the worker knows between two passes is in shared memory, so after
 * an error it simply exits, is started again by the postmaster and resumes.
 * Status 1 asks for that; with status 0 it would be gone for good.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "walsizer.h"
#include "walsizer_compat.h"

#define RESTART_SECONDS		10

/* Without WAL for that long the server is idle, and looked at less often. */
#define IDLE_AFTER_MS		60000
#define IDLE_FACTOR			5

/* Every so many ticks the disk is looked at. */
#define DISK_TICKS			10

/* How often peaks that changed are saved. */
#define SAVE_MS				(3600 * 1000)

/* Deadlines, all on the monotonic clock. */
typedef struct Clockwork
{
	int64		next_tick;
	int64		next_save;
	int64		next_disk;
	int64		saved_replay_ms;	/* of the crash recovery already on disk */
	int64		last_write;		/* when WAL was last seen to be written */
	uint64		last_lsn;
	bool		first;			/* no sample taken by this process yet */
} Clockwork;

/* What SQL functions ask for, taken over at the start of a pass. */
typedef struct Request
{
	int			asked;			/* WALSIZER_ASK_* */
	uint64		ticket;
	WalsizerApplied answer;
	WalsizerDecision decision;
} Request;

/*-------------------------------------------------------------------------
 * Registration, start and end
 *-------------------------------------------------------------------------
 */

void
walsizer_register_worker(void)
{
	BackgroundWorker worker;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = RESTART_SECONDS;
	strlcpy(worker.bgw_library_name, "walsizer", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "walsizer_main", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "walsizer", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "walsizer", BGW_MAXLEN);
	RegisterBackgroundWorker(&worker);
}

/*
 * Leave: nobody is to wait for us or wake us any more.  An error may bring us
 * here with locks held, ours among them.
 */
static void
detach(int code pg_attribute_unused(), Datum arg pg_attribute_unused())
{
	LWLockReleaseAll();
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->worker_proc = NULL;
	walsizer_shared->worker_pid = 0;
	LWLockRelease(walsizer_shared->lock);
	ConditionVariableBroadcast(&walsizer_shared->answered);
}

static void
attach(void)
{
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->worker_proc = MyProc;
	walsizer_shared->worker_pid = MyProcPid;
	if (walsizer_shared->started_at == 0)
		walsizer_shared->started_at = GetCurrentTimestamp();
	LWLockRelease(walsizer_shared->lock);
	before_shmem_exit(detach, (Datum) 0);
}

/*-------------------------------------------------------------------------
 * One pass
 *-------------------------------------------------------------------------
 */

/* What the SQL functions have asked for since the last pass. */
static Request
take_request(void)
{
	Request		request = {0};

	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	request.asked = walsizer_shared->asked;
	request.ticket = walsizer_shared->asked_ticket;
	walsizer_shared->asked = 0;
	LWLockRelease(walsizer_shared->lock);
	return request;
}

static void
answer(const Request *request)
{
	if (request->asked == 0)
		return;
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->answer = request->answer;
	walsizer_shared->answer_decision = request->decision;
	walsizer_shared->answered_ticket = request->ticket;
	LWLockRelease(walsizer_shared->lock);
	ConditionVariableBroadcast(&walsizer_shared->answered);
}

/* Note whose value we are about to write, or that we could not. */
static void
note_written(int64 mb)
{
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_wrote(&walsizer_shared->state, mb);
	LWLockRelease(walsizer_shared->lock);
}

/*
 * Try to put mb into force (dry run: only say so).
 *
 * That the value is ours is on disk before the value itself is: if the server
 * crashes in between, the next start finds an intention without effect, and
 * not an effect that nobody owns.
 */
static void
try_change(int64 mb, WalsizerApplied *applied)
{
	const WalsizerState *state = &walsizer_shared->state;
	int64		written_before = state->written;
	WalsizerNote note = {mb, state->found, state->found_by_alter_system};
	char		text[WALSIZER_NOTE_SIZE];
	const char *obstacle = walsizer_apply_obstacle(&applied->outcome);

	if (walsizer_dry_run)
	{
		applied->outcome = WALSIZER_DRY_RUN;
		return;
	}
	if (obstacle != NULL)
	{
		strlcpy(applied->message, obstacle, sizeof(applied->message));
		return;
	}
	note_written(mb);
	walsizer_state_save();
	walsizer_note_format(&note, text);
	walsizer_apply_set(mb, text, applied);
	if (applied->outcome == WALSIZER_FAILED)
		note_written(written_before);
}

/*
 * Another value is in force than when the sample was taken: let the views show
 * it now, and not with the next sample.  The caller holds the lock.
 */
static void
publish_in_force(int64 in_force)
{
	WalsizerSettings *settings = &walsizer_shared->sample.settings;
	WalsizerFigures *figures = &walsizer_shared->decision.figures;

	settings->max_wal_size = in_force;
	figures->in_force = in_force;
	figures->capacity = walsizer_capacity(in_force, settings);
}

/* Our value is in force: it is ours from now on, not from the next sample. */
static void
note_effect(const WalsizerSample *sample, int64 in_force)
{
	WalsizerSample now = *sample;

	now.settings.max_wal_size = in_force;
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_took_effect(&walsizer_shared->state, &now);
	publish_in_force(in_force);
	LWLockRelease(walsizer_shared->lock);
}

/* Carry out a decision to raise or lower, and record what came of it. */
static void
change_setting(const WalsizerDecision *decision, const WalsizerSample *sample,
			   WalsizerApplied *applied)
{
	WalsizerEvent event = walsizer_make_event(decision, sample, sample->settings.max_wal_size);

	try_change(decision->target, applied);
	if (applied->outcome == WALSIZER_APPLIED)
		note_effect(sample, applied->in_force);
	walsizer_read_files();
	walsizer_record_attempt(&event, applied, &decision->figures);
}

/*
 * Remove our line, or put back the line that was there: because
 * walsizer_revert() asks for it, or to make way for an administrator's edit.
 * Where nothing is ours, nothing is done, and the answer says so.
 */
static void
give_back(const WalsizerDecision *decision, const WalsizerSample *sample,
		  WalsizerApplied *applied)
{
	WalsizerState *state = &walsizer_shared->state;
	WalsizerEvent event = walsizer_make_event(decision, sample, sample->settings.max_wal_size);

	if (decision->reason == WALSIZER_BECAUSE_EDITED)
		event.action = WALSIZER_EXTERNAL;
	memset(applied, 0, sizeof(*applied));
	applied->in_force = sample->settings.max_wal_size;
	if (state->own == 0 && state->written == 0)
		return;

	if (state->found_by_alter_system)
		walsizer_apply_set(state->found, NULL, applied);
	else
		walsizer_apply_reset(applied);
	walsizer_read_files();

	if (applied->outcome == WALSIZER_APPLIED)
	{
		LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
		walsizer_given_back(state, applied->in_force);
		publish_in_force(applied->in_force);
		LWLockRelease(walsizer_shared->lock);
		event.new_size = applied->in_force;
	}
	walsizer_record_attempt(&event, applied, &decision->figures);
}

/* What walsizer_revert() asks for, in the form of a decision. */
static WalsizerDecision
reverting(const WalsizerDecision *decision)
{
	WalsizerDecision revert = *decision;

	revert.action = WALSIZER_REVERT;
	revert.reason = WALSIZER_BECAUSE_ASKED;
	revert.bound = WALSIZER_UNBOUND;
	revert.wanted = revert.target = walsizer_shared->state.found;
	return revert;
}

/* walsizer_reset(): forget demand and history, not whose value it is. */
static void
reset(void)
{
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_forget(&walsizer_shared->state);
	walsizer_shared->forgotten = walsizer_shared->last_event;
	LWLockRelease(walsizer_shared->lock);
	walsizer_state_save();
}

/*
 * Add the disk figures if they are wanted: every few ticks, at the end of a
 * cycle, and before each raise.  Whether a raise is near is asked of the policy
 * itself, with a copy of its state.
 */
static void
add_disk(Clockwork *clockwork, WalsizerSample *sample)
{
	bool		wanted = sample->evaluate || sample->now >= clockwork->next_disk;

	if (!wanted)
	{
		WalsizerConfig config = walsizer_config(walsizer_measured_replay_rate(walsizer_shared));
		WalsizerState *copy = palloc(sizeof(WalsizerState));
		WalsizerDecision decision;

		*copy = walsizer_shared->state;
		decision = walsizer_step(&config, copy, sample);
		wanted = decision.cycle || decision.action == WALSIZER_RAISE;
	}
	if (wanted)
	{
		walsizer_take_disk(sample);
		clockwork->next_disk = sample->now + DISK_TICKS * walsizer_interval;
	}
}

/* Take over a new planned load, or the end of one, and keep it over a crash. */
static void
set_boost(void)
{
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->boost = walsizer_shared->asked_boost;
	walsizer_shared->boost_until = walsizer_shared->asked_boost_until;
	LWLockRelease(walsizer_shared->lock);
	walsizer_state_save();
}

/* The administrator has changed his mind about the size: so much for plans. */
static void
end_boost(void)
{
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->boost = 0;
	LWLockRelease(walsizer_shared->lock);
}

/* The size for the planned load under way, MB; 0 if there is none. */
static int64
boost_now(void)
{
	if (walsizer_shared->boost != 0 && GetCurrentTimestamp() >= walsizer_shared->boost_until)
	{
		LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
		walsizer_shared->boost = 0;
		LWLockRelease(walsizer_shared->lock);
	}
	return walsizer_shared->boost;
}

/* Let the policy see the sample, and show both to the SQL functions. */
static WalsizerDecision
decide(const WalsizerSample *sample)
{
	WalsizerConfig config = walsizer_config(walsizer_measured_replay_rate(walsizer_shared));
	WalsizerDecision decision;

	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	decision = walsizer_step(&config, &walsizer_shared->state, sample);
	walsizer_shared->sample = *sample;
	walsizer_shared->decision = decision;
	walsizer_shared->sampled_at = GetCurrentTimestamp();
	if (!walsizer_dry_run)
		walsizer_shared->dry_run_size = 0;
	LWLockRelease(walsizer_shared->lock);
	return decision;
}

static void
pass(Clockwork *clockwork)
{
	Request		request = take_request();
	int64		old_size = walsizer_shared->state.own != 0 ?
		walsizer_shared->state.own : walsizer_shared->state.found;
	WalsizerSample sample;
	WalsizerDecision decision;

	walsizer_take_sample(&sample, clockwork->first);
	clockwork->first = false;
	sample.evaluate = (request.asked & (WALSIZER_ASK_EVALUATE | WALSIZER_ASK_BOOST)) != 0;

	if (request.asked & WALSIZER_ASK_RESET)
		reset();
	if (request.asked & WALSIZER_ASK_BOOST)
		set_boost();
	sample.boost = boost_now();
	add_disk(clockwork, &sample);
	decision = decide(&sample);
	if (decision.followed)
		walsizer_state_follow_up(decision.followed_size, decision.followed_forced);
	if (decision.action == WALSIZER_EXTERNAL || decision.action == WALSIZER_REVERT)
		end_boost();
	if (decision.action == WALSIZER_EXTERNAL)
		walsizer_record_external(&decision, &sample, old_size);
	if (walsizer_shared->trouble.outcome != WALSIZER_NOTED)
		walsizer_note_end_of_trouble(&decision, &sample, old_size);
	request.answer.in_force = sample.settings.max_wal_size;
	if (decision.action == WALSIZER_RAISE || decision.action == WALSIZER_LOWER)
		change_setting(&decision, &sample, &request.answer);
	else if (decision.action == WALSIZER_REVERT)
		give_back(&decision, &sample, &request.answer);
	walsizer_warn_of_bound(&decision, sample.standby);
	if (request.asked & WALSIZER_ASK_REVERT)
	{
		WalsizerDecision revert = reverting(&decision);

		end_boost();
		give_back(&revert, &sample, &request.answer);
	}

	request.decision = decision;
	answer(&request);

	if (sample.write_lsn != clockwork->last_lsn)
		clockwork->last_write = sample.now;
	clockwork->last_lsn = sample.write_lsn;
}

/*-------------------------------------------------------------------------
 * The loop
 *-------------------------------------------------------------------------
 */

/*
 * The next deadline, counted from the last one and not from the end of the
 * work, so that ticks do not drift; those that were missed are left out.
 */
static void
set_next_tick(Clockwork *clockwork)
{
	int64		now = walsizer_monotonic_ms();
	int64		interval = walsizer_interval;

	if (now - clockwork->last_write >= IDLE_AFTER_MS)
		interval *= IDLE_FACTOR;
	clockwork->next_tick += interval;
	if (clockwork->next_tick <= now || clockwork->next_tick > now + interval)
		clockwork->next_tick = now + interval;
}

static bool
something_asked(void)
{
	bool		asked;

	LWLockAcquire(walsizer_shared->lock, LW_SHARED);
	asked = walsizer_shared->asked != 0;
	LWLockRelease(walsizer_shared->lock);
	return asked;
}

/* Do what is due.  A latch set early finds nothing due and changes nothing. */
static void
work(Clockwork *clockwork)
{
	int64		now = walsizer_monotonic_ms();
	bool		tick = now >= clockwork->next_tick;

	if (!tick && !something_asked())
		return;
	pass(clockwork);
	if (tick)
		set_next_tick(clockwork);
	if (now >= clockwork->next_save || walsizer_shared->replay_ms != clockwork->saved_replay_ms)
	{
		clockwork->next_save = now + SAVE_MS;
		clockwork->saved_replay_ms = walsizer_shared->replay_ms;
		walsizer_state_save();
	}
}

static void
handle_interrupts(void)
{
	/*
	 * Asked to end: keep the last minutes, then ask to be started again in
	 * case it was not the whole server that ends.  Quietly: this is no error.
	 */
	if (ProcDiePending)
	{
		walsizer_state_save();
		proc_exit(1);
	}
	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
		walsizer_read_files();
	}
}

/* There is no statement to cancel. */
static void
ignore_cancel(SIGNAL_ARGS)
{
}

/* Entry point of the background worker. */
void
walsizer_main(Datum main_arg pg_attribute_unused())
{
	MemoryContext pass_context;
	Clockwork	clockwork = {0};

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	pqsignal(SIGINT, ignore_cancel);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);

	attach();
	walsizer_state_load();
	walsizer_read_files();
	pgstat_report_activity(STATE_IDLE, "watching max_wal_size");

	pass_context = AllocSetContextCreate(TopMemoryContext, "walsizer pass",
										 ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(pass_context);
	clockwork.first = true;
	clockwork.next_tick = clockwork.last_write = walsizer_monotonic_ms();
	clockwork.next_save = clockwork.next_tick + SAVE_MS;

	for (;;)
	{
		int64		left;

		handle_interrupts();
		work(&clockwork);
		MemoryContextReset(pass_context);

		left = clockwork.next_tick - walsizer_monotonic_ms();
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 (long) Max(left, 1), walsizer_wait_event());
		ResetLatch(MyLatch);
	}
}
