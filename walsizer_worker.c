/*-------------------------------------------------------------------------
 *
 * walsizer_worker.c
 *	  The background worker: wake, observe, decide, apply, record, sleep.
 *
 * All that the worker learned is in shared memory; what it keeps for itself are
 * deadlines and what it can read again.  So after an error it simply exits, is
 * started again by the postmaster and resumes.  Status 1 asks for that; with
 * status 0 it would be gone for good.
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

/* How often the state file is written, whatever happens. */
#define SAVE_MS				(3600 * 1000)

/* Deadlines, all on the monotonic clock. */
typedef struct Clockwork
{
	int64		next_tick;
	int64		next_save;
	int64		saved_replay_ms;	/* of the crash recovery already on disk */
	bool		first;			/* no sample taken by this process yet */
} Clockwork;

/* What SQL functions ask for, taken over at the start of a pass. */
typedef struct Request
{
	int			asked;			/* WALSIZER_ASK_* */
	WalsizerAnswer answer;
} Request;

/*-------------------------------------------------------------------------
 * Registration, start and end
 *-------------------------------------------------------------------------
 */

/* For _PG_init(): the worker runs from the moment when hot standbys answer. */
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
	walsizer_shared->asked = 0; /* who asked the last worker was told of its
								 * end */
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
	request.answer.ticket = walsizer_shared->asked_ticket;
	walsizer_shared->asked = 0;
	LWLockRelease(walsizer_shared->lock);
	return request;
}

/* The rates and bounds that count now. */
static WalsizerConfig
config_now(void)
{
	double		replay_rate;

	LWLockAcquire(walsizer_shared->lock, LW_SHARED);
	replay_rate = walsizer_measured_replay_rate(walsizer_shared);
	LWLockRelease(walsizer_shared->lock);
	return walsizer_config(replay_rate);
}

/* Do it in the next pass instead, at once. */
static void
put_back(const Request *request)
{
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->asked |= request->asked;
	LWLockRelease(walsizer_shared->lock);
	SetLatch(MyLatch);
}

static void
give_answer(const Request *request)
{
	if (request->asked == 0)
		return;
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->answers[walsizer_shared->next_answer] = request->answer;
	walsizer_shared->next_answer = (walsizer_shared->next_answer + 1) % WALSIZER_ANSWER_SLOTS;
	LWLockRelease(walsizer_shared->lock);
	ConditionVariableBroadcast(&walsizer_shared->answered);
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

/* So much for plans, over a crash, too. */
static void
end_boost(void)
{
	if (walsizer_shared->boost == 0)
		return;
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->boost = 0;
	LWLockRelease(walsizer_shared->lock);
	walsizer_state_save();
}

/*
 * The size for the planned load under way, MB; 0 if there is none.  Nobody could
 * have asked for more than the longest duration from now: then the clock was set
 * back.
 */
static int64
boost_now(void)
{
	TimestampTz now = GetCurrentTimestamp();

	if (walsizer_shared->boost != 0 &&
		(now >= walsizer_shared->boost_until ||
		 walsizer_shared->boost_until - now > (WALSIZER_BOOST_MOST_DAYS + 1) * USECS_PER_DAY))
		end_boost();
	return walsizer_shared->boost;
}

/*
 * Let the policy see the sample, with the disk figures if it wants them, and show
 * both to the SQL functions.  The disk is looked at without the lock.
 */
static WalsizerDecision
decide(WalsizerSample *sample)
{
	WalsizerConfig config = config_now();
	WalsizerDecision decision;

	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	decision = walsizer_step(&config, &walsizer_shared->state, sample);
	if (decision.wants_disk)
	{
		LWLockRelease(walsizer_shared->lock);
		walsizer_take_disk(sample);
		LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
		decision = walsizer_step(&config, &walsizer_shared->state, sample);
	}
	walsizer_shared->sample = *sample;
	walsizer_shared->decision = decision;
	walsizer_shared->sampled_at = GetCurrentTimestamp();
	if (!walsizer_dry_run)
		walsizer_shared->dry_run_size = 0;
	LWLockRelease(walsizer_shared->lock);
	return decision;
}

/* Take a sample, with all that was asked for and concerns it. */
static void
observe(Clockwork *clockwork, const Request *request, WalsizerSample *sample)
{
	walsizer_take_sample(sample, clockwork->first);
	clockwork->first = false;

	sample->evaluate = (request->asked & (WALSIZER_ASK_EVALUATE | WALSIZER_ASK_BOOST)) != 0;
	if (request->asked & WALSIZER_ASK_RESET)
		reset();
	if (request->asked & WALSIZER_ASK_BOOST)
		set_boost();
	sample->boost = boost_now();
}

/* Record and apply what was decided.  "old_size" is what we took for in force. */
static void
carry_out(const WalsizerDecision *decision, const WalsizerSample *sample,
		  int64 old_size, WalsizerApplied *applied)
{
	if (decision->action == WALSIZER_EXTERNAL)
		walsizer_record_external(decision, sample, old_size);
	if (walsizer_shared->trouble.outcome != WALSIZER_NOTED)
		walsizer_note_end_of_trouble(decision, sample, old_size);
	if (decision->action == WALSIZER_RAISE || decision->action == WALSIZER_LOWER)
		walsizer_change_setting(decision, sample, applied);
	else if (decision->action == WALSIZER_REVERT)
		walsizer_give_back(decision, sample, applied);
	walsizer_warn_of_bound(decision, sample->standby);
}

/* walsizer_revert(), unless the value has just been given back anyway. */
static void
revert(const WalsizerDecision *decision, const WalsizerSample *sample, WalsizerAnswer *answer)
{
	WalsizerDecision asked = reverting(decision);

	end_boost();
	if (decision->action == WALSIZER_REVERT && answer->applied.outcome == WALSIZER_APPLIED)
		answer->reverted = answer->applied;
	else
		walsizer_give_back(&asked, sample, &answer->reverted);
}

static void
pass(Clockwork *clockwork)
{
	Request		request = take_request();
	int64		edit_before = walsizer_shared->state.edit_tried;
	int64		old_size = walsizer_shared->state.own != 0 ?
		walsizer_shared->state.own : walsizer_shared->state.found;
	WalsizerAnswer *answer = &request.answer;
	WalsizerSample sample;
	bool		superseded;

	observe(clockwork, &request, &sample);
	answer->decision = decide(&sample);
	if (answer->decision.followed)
		walsizer_state_follow_up(answer->decision.followed_size, answer->decision.followed_forced);
	superseded = answer->decision.action == WALSIZER_EXTERNAL ||
		answer->decision.action == WALSIZER_REVERT;

	/*
	 * The administrator has changed his mind about the size.  Not each time
	 * that it is tried again to give way to the same edit.
	 */
	if (superseded && !(request.asked & WALSIZER_ASK_BOOST) &&
		(answer->decision.action == WALSIZER_EXTERNAL || sample.configured != edit_before))
		end_boost();
	carry_out(&answer->decision, &sample, old_size, &answer->applied);

	/* A load that was announced after all this is for the next pass. */
	if (superseded && answer->applied.outcome <= WALSIZER_APPLIED &&
		(request.asked & WALSIZER_ASK_BOOST))
	{
		put_back(&request);
		return;
	}
	if (request.asked & WALSIZER_ASK_REVERT)
		revert(&answer->decision, &sample, answer);
	give_answer(&request);
}

/*-------------------------------------------------------------------------
 * The loop
 *-------------------------------------------------------------------------
 */

/*
 * The next deadline, counted from the last one and not from the end of the
 * work, so that ticks do not drift; those that were missed are left out.  A server
 * without load is sampled as often as any: a burst is over in seconds.
 */
static void
set_next_tick(Clockwork *clockwork)
{
	int64		now = walsizer_monotonic_ms();

	clockwork->next_tick += walsizer_interval;
	if (clockwork->next_tick <= now || clockwork->next_tick > now + walsizer_interval)
		clockwork->next_tick = now + walsizer_interval;
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

/* How long the last crash recovery took, which another process may just measure. */
static int64
measured_replay_ms(void)
{
	int64		ms;

	LWLockAcquire(walsizer_shared->lock, LW_SHARED);
	ms = walsizer_shared->replay_ms;
	LWLockRelease(walsizer_shared->lock);
	return ms;
}

/* Do what is due.  A latch set early finds nothing due and changes nothing. */
static void
work(Clockwork *clockwork)
{
	int64		now = walsizer_monotonic_ms();
	bool		tick = now >= clockwork->next_tick;
	int64		replay_ms;

	if (!tick && !something_asked())
		return;
	pass(clockwork);
	if (tick)
		set_next_tick(clockwork);
	replay_ms = measured_replay_ms();
	if (now >= clockwork->next_save || replay_ms != clockwork->saved_replay_ms)
	{
		clockwork->next_save = now + SAVE_MS;
		clockwork->saved_replay_ms = replay_ms;
		walsizer_state_save();
	}
}

static void
handle_interrupts(Clockwork *clockwork)
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
		walsizer_reread_configuration();
		/* walsizer.sample_interval may be shorter now */
		clockwork->next_tick = Min(clockwork->next_tick,
								   walsizer_monotonic_ms() + walsizer_interval);
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
	walsizer_ignore_transaction_timeout();

	attach();
	walsizer_state_load();

	/*
	 * Not if this worker takes the place of another, and nothing was reloaded
	 * since.
	 */
	if (PgReloadTime > walsizer_shared->files_reloaded)
		walsizer_read_files_late();
	pgstat_report_activity(STATE_IDLE, "watching max_wal_size");

	pass_context = AllocSetContextCreate(TopMemoryContext, "walsizer pass",
										 ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(pass_context);
	clockwork.first = true;
	clockwork.next_tick = walsizer_monotonic_ms();
	clockwork.next_save = clockwork.next_tick + SAVE_MS;

	for (;;)
	{
		int64		left;

		handle_interrupts(&clockwork);
		work(&clockwork);
		MemoryContextReset(pass_context);

		left = clockwork.next_tick - walsizer_monotonic_ms();
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 (long) Max(left, 1), walsizer_wait_event());
		ResetLatch(MyLatch);
	}
}
