/*-------------------------------------------------------------------------
 *
 * server/server.h
 *	  Types and prototypes of this room, grouped by the file that owns them.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#ifndef WALSIZER_SERVER_H
#define WALSIZER_SERVER_H

#include <time.h>

#include "access/xlog.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/condition_variable.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/timestamp.h"

#include "policy/policy.h"
#include "server/compat.h"
#include "server/statetext.h"

/* Milliseconds of a clock that cannot be set. */
static inline int64
walsizer_monotonic_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* With a smaller max_wal_size (MB) the server does not start (xlog.c). */
static inline int64
walsizer_least_valid_mb(void)
{
	return 2 * (wal_segment_size / WALSIZER_MB);
}

static inline WalsizerResult
walsizer_result(WalsizerOutcome outcome, const char *message)
{
	WalsizerResult result = {.outcome = outcome};

	strlcpy(result.message, message, sizeof(result.message));
	return result;
}

/* A sentence about a verdict with its numbers, palloc'd. */
static inline char *
walsizer_sentence(const WalsizerVerdict *verdict, const char *sentence)
{
	char	   *text = palloc(WALSIZER_SENTENCE_SIZE);

	walsizer_verdict_text(verdict, sentence, text);
	return text;
}

/* What SQL functions can ask of the worker. */
typedef enum WalsizerAsk
{
	WALSIZER_ASK_NOTHING = 0,
	WALSIZER_ASK_ADJUST,
	WALSIZER_ASK_REVERT,
	WALSIZER_ASK_BOOST,
	WALSIZER_ASK_FORGET,
	WALSIZER_ASK_START,			/* only to look: the worker was started */
	WALSIZER_ASK_LOOK,			/* the same: it was running */
	WALSIZER_ASK_STOP,			/* answered by its end */
} WalsizerAsk;

/* The worker's answer: what its pass led to. */
typedef struct WalsizerAnswer
{
	WalsizerEvent event;
	bool		refused;		/* no load can be planned: walsizer.enable is off */
	bool		acts;			/* may the worker change max_wal_size again? */
} WalsizerAnswer;

/* A request and its answer: see server/shmem.c. */
typedef enum WalsizerSlotState
{
	WALSIZER_SLOT_FREE = 0,		/* also if the worker has ended */
	WALSIZER_SLOT_ASKED,
	WALSIZER_SLOT_TAKEN,		/* the worker carries it out */
	WALSIZER_SLOT_ANSWERED,
} WalsizerSlotState;

typedef struct WalsizerRequest
{
	WalsizerSlotState state;
	WalsizerAsk what;
	int64		boost_mb;		/* 0: end the planned load */
	TimestampTz boost_until;
	WalsizerAnswer answer;
} WalsizerRequest;

/* Contents of postgresql.auto.conf. */
#define WALSIZER_NO_LINE			0		/* size_mb: not set */
#define WALSIZER_BAD_LINE			(-1)	/* size_mb: set to an invalid value */
typedef struct WalsizerAutoConf
{
	int64		size_mb;		/* or one of the above */
	WalsizerNote note;			/* no note unless it fits size_mb */
} WalsizerAutoConf;

#define WALSIZER_BOOST_MOST_DAYS	31	/* longest planned load */

/*
 * Shared memory.  "lock" protects all of it except "answered" and what only the worker uses,
 * and is never held over I/O.  Only the worker writes, so it reads without the lock; but
 * sessions write the request, what walsizer_reset_stats() sets, and recoveries.pages_written, and
 * the startup process recoveries before there is a worker.  Others copy under the shared lock.
 */
typedef struct WalsizerShared
{
	LWLock		lock[1];		/* an array: each process maps it elsewhere */

	/* the worker; NULL and 0 while there is none */
	PGPROC	   *worker_proc;
	int			worker_pid;

	/* what the worker knows; it resumes from here after an error */
	WalsizerState state;
	WalsizerSample sample;
	WalsizerDecision decision;	/* of the last pass */
	TimestampTz sampled_at;		/* 0: never */

	/* walsizer_stats counts from here: totals in state at that time */
	TimestampTz stats_reset;
	int64		checkpoints_at_reset[WALSIZER_CAUSES];

	/* the planned load */
	int64		boost_mb;		/* 0: none */
	TimestampTz boost_until;

	/* the last crash recoveries, newest first */
	WalsizerRecovery recoveries[WALSIZER_RECOVERIES];
	int64		replayed_at;	/* ms of the monotonic clock; 0: not measured at this start */

	/* the last attempt that did not succeed; no outcome: none */
	WalsizerResult trouble;
	TimestampTz trouble_reload; /* PgReloadTime of the worker then */
	int			taken_back;		/* raises in a row */

	/* what only the worker uses, and the next one needs, too */
	bool		loaded;			/* the state file has been read */
	int64		configured_mb;	/* see walsizer_configured_mb() */
	int64		dry_run_mb;		/* size of the last dry run; 0: none */

	/* what a session asks, and the answer */
	WalsizerRequest request;
	ConditionVariable answered;

	WalsizerHistory history;	/* last: most copies end before it */
} WalsizerShared;

/* server/settings.c */
extern bool walsizer_enable;
extern bool walsizer_dry_run;
extern int	walsizer_interval;	/* ms */
extern int	walsizer_max_disk_percent;
extern char *walsizer_last_written; /* a WalsizerNote; NULL: another copy of the
									 * library has defined the settings */

extern bool walsizer_define_settings(void);
extern WalsizerConfig walsizer_config(const WalsizerShared *shared);

/* server/worker.c */
extern PGDLLEXPORT void walsizer_main(Datum main_arg);
extern bool walsizer_register_worker(BackgroundWorkerHandle **handle);
extern bool walsizer_start_worker(void);
extern bool walsizer_reload(void);

/* server/act.c */
extern void walsizer_act(WalsizerEvent *event, bool asked);
extern void walsizer_record_change(const WalsizerEvent *event, int64 old_mb);
extern WalsizerVerdict walsizer_verdict(const WalsizerShared *shared,
										const WalsizerResult *trouble);
extern WalsizerResult walsizer_trouble_now(const WalsizerShared *shared);
extern void walsizer_report_verdict(const WalsizerEvent *event);

/* server/sample.c */
extern void walsizer_take_sample(WalsizerSample *sample, bool first);
extern void walsizer_take_disk(WalsizerSample *sample);
extern WalsizerHolder walsizer_holder(const WalsizerSample *sample, XLogRecPtr before,
									  int64 held, char *name);

/* server/config.c */
extern WalsizerAutoConf walsizer_auto_conf_in_effect(void);
extern bool walsizer_files_changed(void);
extern int64 walsizer_configured_mb(void);
extern WalsizerNote walsizer_note_waiting(bool kept);
extern WalsizerNote walsizer_restoring(const WalsizerNote *ours, int64 configured_mb,
									   WalsizerNoteKind kind);
extern WalsizerResult walsizer_obstacle(void);
extern bool walsizer_may_write(void);
extern WalsizerResult walsizer_write_note(const WalsizerNote *note);
extern bool walsizer_note_is_left(void);
extern bool walsizer_drop_note(void);
extern void walsizer_reread_configuration(void);

/* server/start.c */
extern void walsizer_check_at_start(void);
extern void walsizer_recovery_install_hook(void);
extern bool walsizer_recovery_ended(void);

/* server/shmem.c */
extern WalsizerShared *walsizer_shared;
extern void walsizer_shmem_install_hooks(void);
extern void walsizer_attach_shared(void);
extern void walsizer_add_event(const WalsizerEvent *event);
extern void walsizer_follow_events(const WalsizerSample *sample);
extern bool walsizer_attach_worker(void);
extern const WalsizerRequest *walsizer_take_request(void);
extern void walsizer_give_answer(const WalsizerAnswer *answer);
extern WalsizerAnswer walsizer_ask(WalsizerAsk what, int64 boost_mb, TimestampTz boost_until);

/* server/statefile.c */
extern void walsizer_state_load(void);
extern bool walsizer_state_save(void);
extern void walsizer_check_for_interrupts(void);
extern char *walsizer_replace_file(const char *file, const char *text, size_t length);

#endif							/* WALSIZER_SERVER_H */
