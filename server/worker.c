/*-------------------------------------------------------------------------
 *
 * server/worker.c
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

#include "server/walsizer.h"
#include "server/compat.h"

#define RESTART_SECONDS		10

/* How often the state file is written, whatever happens. */
#define SAVE_MS				(3600 * 1000)

/* Deadlines, all on the monotonic clock. */
typedef struct Clockwork
{
	int64		next_tick;
	int64		next_save;
	bool		first;			/* no sample taken by this process yet */
} Clockwork;

/*-------------------------------------------------------------------------
 * Registration, start and end
 *-------------------------------------------------------------------------
 */

/*
 * Has this copy of the library registered the worker?  Static, because another
 * copy may see the global variables of this one.
 */
static bool registered = false;

/* For _PG_init(): the worker runs from the moment when hot standbys answer. */
void
walsizer_register_worker(void)
{
	BackgroundWorker worker;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = RESTART_SECONDS;
	walsizer_library_name(worker.bgw_library_name, sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "walsizer_main", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "walsizer", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "walsizer", BGW_MAXLEN);
	RegisterBackgroundWorker(&worker);
	registered = true;
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
set_boost(int64 mb, int64 ms)
{
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->boost = mb;
	walsizer_shared->boost_end = walsizer_monotonic_ms() + ms;
	walsizer_shared->boost_until = GetCurrentTimestamp() + ms * 1000;
	LWLockRelease(walsizer_shared->lock);
	walsizer_state_save();
}

/* So much for plans, over a crash, too. */
static void
end_boost(void)
{
	if (walsizer_shared->boost != 0)
		set_boost(0, 0);
}

/*
 * The size for the planned load under way, MB; 0 if there is none.  It lasts as
 * long as was asked for, whatever becomes of the clock on the wall; when that was
 * set, the end is shown by the new time.
 */
static int64
boost_now(void)
{
	int64		left = walsizer_shared->boost_end - walsizer_monotonic_ms();
	TimestampTz until = GetCurrentTimestamp() + left * 1000;

	if (walsizer_shared->boost == 0)
		return 0;
	if (left <= 0)
		end_boost();
	else if (Max(until, walsizer_shared->boost_until) -
			 Min(until, walsizer_shared->boost_until) > USECS_PER_SEC)
	{
		LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
		walsizer_shared->boost_until = until;
		LWLockRelease(walsizer_shared->lock);
	}
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

/*
 * Take a sample.  What was asked for (WalsizerAsk; request is NULL if nothing
 * was) counts for it already.
 */
static void
observe(Clockwork *clockwork, const WalsizerRequest *request, WalsizerSample *sample)
{
	walsizer_take_sample(sample, clockwork->first);
	clockwork->first = false;

	if (request != NULL)
	{
		sample->evaluate = request->what == WALSIZER_ASK_EVALUATE ||
			request->what == WALSIZER_ASK_BOOST;
		if (request->what == WALSIZER_ASK_RESET)
			reset();
		if (request->what == WALSIZER_ASK_BOOST)
			set_boost(request->boost, request->boost_ms);
	}
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

/*
 * Finish what a worker before this one began, and did not live to see: it was
 * about to remove our line, or had removed it, and the old value is still in
 * effect.
 */
static void
finish_return(const WalsizerDecision *decision, const WalsizerSample *sample)
{
	WalsizerDecision unfinished = reverting(decision);
	WalsizerApplied applied;

	unfinished.wanted = unfinished.target = walsizer_shared->state.returning;
	walsizer_give_back(&unfinished, sample, &applied);
}

/*
 * Observe, decide, and carry that out.  request is NULL, or what is asked for;
 * what came of it goes to *answer.  False if a change by an administrator had to be
 * dealt with first: then a planned load is for another pass.
 */
static bool
pass(Clockwork *clockwork, const WalsizerRequest *request, WalsizerAnswer *answer)
{
	bool		first = clockwork->first;
	bool		boost_asked = request != NULL && request->what == WALSIZER_ASK_BOOST;
	int64		edit_before = walsizer_shared->state.edit_tried;
	int64		old_size = walsizer_shared->state.own != 0 ?
		walsizer_shared->state.own : walsizer_shared->state.found;
	WalsizerDecision *decision = &answer->decision;
	WalsizerSample sample;
	bool		superseded;

	memset(answer, 0, sizeof(*answer));
	observe(clockwork, request, &sample);
	*decision = decide(&sample);
	if (decision->followed)
		walsizer_state_follow_up(decision->followed_size, decision->followed_forced);
	superseded = decision->action == WALSIZER_EXTERNAL || decision->action == WALSIZER_REVERT;

	/*
	 * The administrator has changed his mind about the size.  Not each time
	 * that it is tried again to give way to the same edit.
	 */
	if (superseded && !boost_asked &&
		(decision->action == WALSIZER_EXTERNAL || sample.configured != edit_before))
		end_boost();
	carry_out(decision, &sample, old_size, &answer->applied);

	if (first && !superseded && walsizer_shared->state.returning != 0)
		finish_return(decision, &sample);
	if (request != NULL && request->what == WALSIZER_ASK_REVERT)
		revert(decision, &sample, answer);
	return !superseded || answer->applied.outcome > WALSIZER_APPLIED;
}

/* Do what SQL functions ask for, one after the other. */
static void
serve(Clockwork *clockwork)
{
	WalsizerRequest *request;
	WalsizerAnswer answer;

	while ((request = walsizer_take_request()) != NULL)
	{
		if (!pass(clockwork, request, &answer) && request->what == WALSIZER_ASK_BOOST)
			(void) pass(clockwork, request, &answer);
		walsizer_give_answer(request, &answer);
	}
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

/*
 * Keep what the files said at the start and at the last reload: after a crash of
 * a process it still counts, whatever they say then.  It matters only where a
 * value of ours could hide an edit.
 */
static void
save_what_files_say(void)
{
	if (walsizer_shared->state.own != 0)
		walsizer_state_save();
}

/* Do what is due.  A latch set early finds nothing due and changes nothing. */
static void
work(Clockwork *clockwork)
{
	int64		now = walsizer_monotonic_ms();
	bool		tick = now >= clockwork->next_tick;
	bool		first = clockwork->first;
	WalsizerAnswer answer;

	if (walsizer_something_asked())
		serve(clockwork);
	else if (tick)
		(void) pass(clockwork, NULL, &answer);
	else
		return;
	if (tick)
		set_next_tick(clockwork);
	if (first)
		save_what_files_say();
	if (now >= clockwork->next_save)
	{
		clockwork->next_save = now + SAVE_MS;
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
		save_what_files_say();
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
	bool		measured;

	if (!registered || walsizer_shared == NULL)
		walsizer_end_in_other_copy();

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	pqsignal(SIGINT, ignore_cancel);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	/* each sample clears what it read: no copy of all statistics for that */
	SetConfigOption("stats_fetch_consistency", "none", PGC_USERSET, PGC_S_OVERRIDE);

	attach();
	/* a crash recovery before this first worker is not on disk yet */
	measured = !walsizer_shared->loaded && walsizer_shared->replay_ms != 0;
	walsizer_state_load();
	walsizer_note_restored();

	/*
	 * Not if this worker takes the place of another, and nothing was reloaded
	 * since.
	 */
	if (PgReloadTime > walsizer_shared->files_reloaded)
		walsizer_read_files();
	pgstat_report_activity(STATE_IDLE, "watching max_wal_size");

	pass_context = AllocSetContextCreate(TopMemoryContext, "walsizer pass",
										 ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(pass_context);
	clockwork.first = true;
	clockwork.next_tick = walsizer_monotonic_ms();
	clockwork.next_save = clockwork.next_tick + (measured ? 0 : SAVE_MS);

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
