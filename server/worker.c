/*-------------------------------------------------------------------------
 *
 * server/worker.c
 *	  The background worker: wake, observe, decide, apply, record, sleep.
 *
 * What the worker learned is in shared memory; its own variables are deadlines
 * and what it can read again.  So after an error it exits with status 1, and
 * the postmaster starts it again to resume; after status 0 it would not.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <dlfcn.h>
#include <signal.h>

#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "utils/memutils.h"

#include "server/server.h"

#define RESTART_SECONDS		10
#define START_WAIT_MS		30000	/* longest wait for a worker that a session starts */
#define START_NAP_MS		50
#define RELOAD_WAIT_MS		10000	/* longest wait for our own reload */
#define RELOAD_UNDER_WAY_MS	1000	/* longest that a reload takes to come here */
#define SAVE_MS				(3600 * 1000)	/* between writes of the state file */
#define REMOVAL_MS			(60 * 1000)		/* between attempts to remove a note */

/* Deadlines of the worker, all on the monotonic clock. */
static int64 next_tick;
static int64 next_save;
static int64 next_removal;		/* of a note that is left over */

static bool sampled = false;	/* by this process */

/* Has this copy of the library registered the worker?  Another copy may see our globals. */
static bool registered = false;

/*
 * The library that the worker loads.  If one was preloaded, the worker has to run in that copy,
 * which alone has settings and shared memory.  The server does not load a path twice: so the
 * path of this copy finds it, even if a package upgrade has replaced or removed the file.
 */
static void
set_library_name(char *name, size_t size)
{
	Dl_info		info;

	if (dladdr(&registered, &info) == 0 || info.dli_fname == NULL ||
		strlcpy(name, info.dli_fname, size) >= size)
		strlcpy(name, "walsizer", size);
}

/*
 * Register the worker, which runs on a hot standby, too: called by _PG_init(), with
 * NULL, or for a session.  False if "max_worker_processes" leaves no room for that.
 */
bool
walsizer_register_worker(BackgroundWorkerHandle **handle)
{
	BackgroundWorker worker = {0};

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = RESTART_SECONDS;
	set_library_name(worker.bgw_library_name, sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "walsizer_main", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "walsizer", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "walsizer", BGW_MAXLEN);
	if (handle != NULL)
		return RegisterDynamicBackgroundWorker(&worker, handle);
	RegisterBackgroundWorker(&worker);
	registered = true;
	return true;
}

/*
 * For a session: start the worker, unless it runs, and wait until it does.  False if it did.
 * Raises an error if there is no shared memory or no room for it, or if it has not started
 * within 30 seconds.  One that finds another ends by itself.
 */
bool
walsizer_start_worker(void)
{
	int64		deadline = walsizer_monotonic_ms() + START_WAIT_MS;
	BackgroundWorkerHandle *handle;
	pid_t		pid;

	walsizer_attach_shared();
	if (walsizer_shared->worker_pid != 0)
		return false;
	/* after a crash, maybe hours ago: it is not known how long writing the pages took */
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	if (walsizer_shared->replayed_at != 0)
		walsizer_shared->recoveries[0].pages_written = 0;
	LWLockRelease(walsizer_shared->lock);
	if (!walsizer_register_worker(&handle))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("could not start the walsizer worker"),
				 errdetail("All %d slots of \"max_worker_processes\" are taken.", max_worker_processes),
				 errhint("Raise \"max_worker_processes\" and restart the server.")));
	while (walsizer_shared->worker_pid == 0)
	{
		if (GetBackgroundWorkerPid(handle, &pid) == BGWH_STOPPED ||
			walsizer_monotonic_ms() >= deadline)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("the walsizer worker has not started"),
					 errhint("See the server log for the reason.")));
		(void) ConditionVariableTimedSleep(&walsizer_shared->answered, START_NAP_MS,
										   walsizer_wait_event("WalsizerAnswer"));
	}
	ConditionVariableCancelSleep();
	return true;
}

/* Wait (ms) until the server tells this process to reread its configuration. */
static bool
await_reload(int64 wait)
{
	int64		deadline = walsizer_monotonic_ms() + wait;
	int64		left;

	while (!ConfigReloadPending && (left = deadline - walsizer_monotonic_ms()) > 0)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 (long) left, walsizer_wait_event("WalsizerReload"));
		ResetLatch(MyLatch);
		walsizer_check_for_interrupts();
	}
	/* the latch may also have been set for something else */
	SetLatch(MyLatch);
	return ConfigReloadPending;
}

/* Make the server reread its configuration, and this process.  False after RELOAD_WAIT_MS. */
bool
walsizer_reload(void)
{
	if (ConfigReloadPending)
		walsizer_reread_configuration();
	if (kill(PostmasterPid, SIGHUP) != 0 || !await_reload(RELOAD_WAIT_MS))
		return false;
	walsizer_reread_configuration();
	return true;
}

/* Set the planned load (0: none).  The caller writes the state file. */
static void
set_boost(int64 mb, TimestampTz until)
{
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	walsizer_shared->boost_mb = mb;
	walsizer_shared->boost_until = until;
	LWLockRelease(walsizer_shared->lock);
}

static void
end_boost(void)
{
	if (walsizer_shared->boost_mb == 0)
		return;
	set_boost(0, 0);
	walsizer_state_save();
}

/*
 * Is the planned load over at this time (ms, monotonic)?  From when this process
 * first sees its end, the system clock may be set without moving it.
 */
static bool
boost_is_over(int64 now)
{
	static TimestampTz until = 0;
	static int64 end = 0;

	if (until != walsizer_shared->boost_until)
	{
		int64		left = (walsizer_shared->boost_until - GetCurrentTimestamp()) / 1000;

		until = walsizer_shared->boost_until;
		/* longer than any: the clock was set since it was saved */
		end = left > (WALSIZER_BOOST_MOST_DAYS + 1) * (USECS_PER_DAY / 1000) ? now : now + left;
	}
	return now >= end;
}

/* Decide, and publish it.  Reads the disk without a lock.  The caller adds the result. */
static WalsizerEvent
decide_and_publish(WalsizerSample *sample)
{
	WalsizerConfig config = walsizer_config(walsizer_shared);
	WalsizerDecision decision;

	if (walsizer_look_is_due(&config, &walsizer_shared->state, sample))
		walsizer_take_disk(sample);
	LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
	if (!walsizer_dry_run && walsizer_shared->dry_run_mb != 0)
	{
		/* a dry run has ended, so what it did not do need not wait */
		walsizer_shared->dry_run_mb = 0;
		walsizer_shared->state.pacing.tried_mb = 0;
		walsizer_shared->state.pacing.edit_tried_mb = 0;
	}
	decision = walsizer_step(&config, &walsizer_shared->state, sample);
	walsizer_shared->sample = *sample;
	walsizer_shared->decision = decision;
	walsizer_shared->sampled_at = GetCurrentTimestamp();
	LWLockRelease(walsizer_shared->lock);
	return (WalsizerEvent) {
		.at = walsizer_shared->sampled_at, .made_at = sample->now,
		.old_mb = sample->settings.max_wal_size_mb, .decision = decision,
		.settings = sample->settings, .standby = sample->standby, .forced_after = -1,
		.forced_before = walsizer_forced_total(&walsizer_shared->state),
	};
}

/*
 * Observe, decide and carry out, for a request or none; *event tells the result.  False if an
 * administrator's change had to be handled first: then a planned load needs another pass.
 */
static bool
run_pass(WalsizerAsk asked, WalsizerEvent *event)
{
	int64		edit_before = walsizer_shared->state.pacing.edit_tried_mb;
	int64		old_mb = walsizer_shared->state.owner.own_mb != 0 ?
		walsizer_shared->state.owner.own_mb : walsizer_shared->state.owner.original_mb;
	WalsizerDecision *decision = &event->decision;
	WalsizerSample sample;
	bool		edited;
	bool		superseded;

	walsizer_take_sample(&sample, !sampled);
	sampled = true;
	sample.act_now = asked == WALSIZER_ASK_BOOST || asked == WALSIZER_ASK_ADJUST;
	sample.revert = asked == WALSIZER_ASK_REVERT;
	if (boost_is_over(sample.now))
		end_boost();
	sample.boost_mb = walsizer_shared->boost_mb;
	*event = decide_and_publish(&sample);

	/* else a start after a crash would take the size for the value before it */
	if (asked == WALSIZER_ASK_BOOST)
		walsizer_state_save();

	walsizer_follow_events(&sample);
	/* not an administrator's change, as long as one of ours awaits its reload */
	if (decision->action == WALSIZER_EXTERNAL && walsizer_note_waiting(false).kind != WALSIZER_NO_NOTE)
	{
		decision->action = WALSIZER_NONE;
		old_mb = event->old_mb;
	}
	edited = decision->reason == WALSIZER_BECAUSE_EDITED;
	superseded = decision->action == WALSIZER_EXTERNAL || edited;

	/* an administrator's change ends a planned load, but once, however often we make way for it */
	if (superseded && asked != WALSIZER_ASK_BOOST &&
		!(edited && sample.configured_mb == edit_before))
		end_boost();
	walsizer_record_change(event, old_mb);
	if (decision->action != WALSIZER_NONE && decision->action != WALSIZER_EXTERNAL)
		walsizer_act(event, sample.act_now);
	walsizer_report_verdict(event);

	/* so does a revert, also if it takes effect with a later reload, not if the value stays */
	if (sample.revert && (event->result.outcome <= WALSIZER_APPLIED ||
						  event->result.outcome == WALSIZER_REFUSED))
		end_boost();
	if (sample.revert && event->result.outcome == WALSIZER_NO_OUTCOME)
		decision->action = WALSIZER_NONE;	/* nothing was ours */
	return !superseded || event->result.outcome > WALSIZER_APPLIED;
}

static void
handle_interrupts(void)
{
	walsizer_check_for_interrupts();
	if (ConfigReloadPending)
	{
		walsizer_reread_configuration();
		/* walsizer.sample_interval may be shorter now */
		next_tick = Min(next_tick, walsizer_monotonic_ms() + walsizer_interval);
	}
}

/* Serve the request of a session.  False if there is none. */
static bool
serve_request(void)
{
	const WalsizerRequest *request = walsizer_take_request();
	WalsizerAnswer answer;
	bool		boost;

	if (request == NULL)
		return false;

	/*
	 * The session may have changed a setting and called pg_reload_conf(): its
	 * signal to the postmaster, and that to us, may be slower than the request.
	 */
	if (walsizer_files_changed())
		(void) await_reload(RELOAD_UNDER_WAY_MS);
	handle_interrupts();
	if (request->what == WALSIZER_ASK_STOP)
	{
		(void) walsizer_state_save();
		proc_exit(0);
	}
	boost = request->what == WALSIZER_ASK_BOOST;
	answer.refused = boost && request->boost_mb > 0 && !walsizer_enable;
	if (request->what == WALSIZER_ASK_FORGET)
	{
		LWLockAcquire(walsizer_shared->lock, LW_EXCLUSIVE);
		walsizer_forget(&walsizer_shared->state);
		walsizer_shared->history.length = 0;
		walsizer_shared->loaded = true;
		LWLockRelease(walsizer_shared->lock);
		walsizer_state_save();
	}
	if (boost && !answer.refused)
		set_boost(request->boost_mb, request->boost_until);
	if (!run_pass(request->what, &answer.event) && boost)
		(void) run_pass(request->what, &answer.event);
	answer.acts = walsizer_enable && !walsizer_dry_run;
	walsizer_give_answer(&answer);
	return true;
}

/* Do what is due; nothing, if the latch was set early. */
static void
do_what_is_due(void)
{
	int64		now = walsizer_monotonic_ms();
	bool		tick = now >= next_tick;
	WalsizerEvent event;

	if (tick)
		walsizer_state_load();
	/* a note that an earlier pass found to tell nothing any more */
	if (tick && sampled && now >= next_removal && walsizer_note_is_left() &&
		!(walsizer_state_save() && walsizer_drop_note()))
		next_removal = now + REMOVAL_MS;
	if (!serve_request())
	{
		if (!tick)
			return;
		(void) run_pass(WALSIZER_ASK_NOTHING, &event);
	}

	/*
	 * Count from the last deadline, so that ticks do not drift; skip missed ones.  An
	 * idle server is sampled as often as any: a burst is over in seconds.
	 */
	if (tick)
		next_tick += walsizer_interval *
			((walsizer_monotonic_ms() - next_tick) / walsizer_interval + 1);
	if (now >= next_save)
	{
		next_save = now + SAVE_MS;
		walsizer_state_save();
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
	bool		measured;

	/* that copy has the settings, and has registered us if it has shared memory already */
	if (walsizer_last_written == NULL || (walsizer_shared != NULL && !registered))
	{
		ereport(LOG,
				(errmsg("the walsizer worker ends, because it has loaded another library than the server has preloaded"),
				 errdetail("The worker looked for its library as \"%s\".", MyBgworkerEntry->bgw_library_name),
				 errhint("Set \"shared_preload_libraries\" to a name that is found through \"dynamic_library_path\", or to a shorter path, and restart the server.")));
		proc_exit(0);			/* a restart would load it again */
	}
	walsizer_attach_shared();

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	/* not die(), with which any message would end the process without saving */
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGINT, ignore_cancel);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	/* a process that is never in a transaction would see its first snapshot forever */
	SetConfigOption("stats_fetch_consistency", "none", PGC_USERSET, PGC_S_OVERRIDE);

	if (!walsizer_attach_worker())
	{
		ereport(LOG, (errmsg("the walsizer worker ends, because another one is running")));
		proc_exit(0);
	}
	/* not on disk yet */
	measured = walsizer_recovery_ended();
	walsizer_shared->configured_mb = walsizer_configured_mb();
	(void) walsizer_files_changed();	/* from now on */

	pass_context = AllocSetContextCreate(TopMemoryContext, "walsizer pass", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(pass_context);
	/* finish what the worker before has written, if it ended before the reload */
	if (walsizer_note_waiting(false).kind != WALSIZER_NO_NOTE)
		(void) walsizer_reload();
	next_tick = walsizer_monotonic_ms();
	next_save = next_tick + (measured ? 0 : SAVE_MS);

	for (;;)
	{
		int64		left;

		handle_interrupts();
		do_what_is_due();
		MemoryContextReset(pass_context);

		left = next_tick - walsizer_monotonic_ms();
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 (long) Max(left, 1), walsizer_wait_event("WalsizerMain"));
		ResetLatch(MyLatch);
	}
}
