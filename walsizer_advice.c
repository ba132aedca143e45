/*-------------------------------------------------------------------------
 *
 * walsizer_advice.c
 *	  What if max_wal_size were another, and which other setting is the real
 *	  cause: the functions walsizer_advice() and walsizer_companions().
 *
 * Only advice: nothing here changes anything.  The figures of the first are
 * walsizer_whatif.c's.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgwriter.h"
#include "utils/builtins.h"
#include "utils/guc.h"

#include "walsizer.h"
#include "walsizer_compat.h"
#include "walsizer_rows.h"

/* Shorter timeouts than this multiply full-page images for little gain. */
#define SHORT_TIMEOUT_S		300
#define GOOD_TIMEOUT_S		900

/* What a long checkpoint should leave of the timeout, to end in time. */
#define SPARE_S				120

/* From this share on full-page images are worth compressing. */
#define MANY_FPI			0.3

/* On average so much of a page is left in its image, without the hole. */
#define FPI_BYTES			6000

PG_FUNCTION_INFO_V1(walsizer_advice);
PG_FUNCTION_INFO_V1(walsizer_companions);

/*-------------------------------------------------------------------------
 * walsizer_advice()
 *-------------------------------------------------------------------------
 */

static void
store_candidate(FunctionCallInfo fcinfo, const WalsizerShared *shared, const WalsizerWhatIf *what)
{
	const WalsizerFigures *figures = &shared->decision.figures;
	WalsizerRow row = {0};

	walsizer_put_size(&row, what->size);
	walsizer_put_text(&row, what->size == figures->in_force ? "in force" :
					  what->size == figures->wanted ? "wanted" : NULL);
	walsizer_put_int64(&row, what->capacity);
	walsizer_put_interval(&row, what->spacing_now);
	walsizer_put_interval(&row, what->spacing_peak);
	walsizer_put_datum(&row, Float8GetDatum(what->forced_hours));
	walsizer_put_size(&row, what->size);
	walsizer_put_interval(&row, what->recovery_time);
	walsizer_put_datum(&row, BoolGetDatum(what->forbidden_by == WALSIZER_UNBOUND));
	walsizer_put_bound(&row, what->forbidden_by);
	walsizer_store_row(fcinfo, &row);
}

/*
 * One row per candidate, smallest first.  A size is said to suffice exactly
 * when the policy would not raise it.
 */
Datum
walsizer_advice(PG_FUNCTION_ARGS)
{
	WalsizerShared *shared = walsizer_copy_shared();
	WalsizerConfig config = walsizer_config(walsizer_measured_replay_rate(shared));
	const WalsizerFigures *figures = &shared->decision.figures;
	int64		sizes[WALSIZER_CANDIDATES];
	int			number;

	InitMaterializedSRF(fcinfo, 0);
	if (shared->sampled_at == 0)
		return (Datum) 0;

	walsizer_settle(&shared->state);
	number = walsizer_candidates(&shared->sample.settings, figures->wanted, sizes);
	for (int i = 0; i < number; i++)
	{
		WalsizerWhatIf what = walsizer_what_if(&config, &shared->state, &shared->sample,
											   figures, sizes[i]);

		store_candidate(fcinfo, shared, &what);
	}
	return (Datum) 0;
}

/*-------------------------------------------------------------------------
 * walsizer_companions()
 *-------------------------------------------------------------------------
 */

static void
store_companion(FunctionCallInfo fcinfo, const char *setting, const char *proposal,
				const char *reason)
{
	WalsizerRow row = {0};

	walsizer_put_text(&row, setting);
	walsizer_put_text(&row, GetConfigOptionByName(setting, NULL, true));
	walsizer_put_text(&row, proposal);
	walsizer_put_text(&row, reason);
	walsizer_store_row(fcinfo, &row);
}

static void
judge_timeout(FunctionCallInfo fcinfo, const WalsizerShared *shared)
{
	int64		mb = walsizer_size_for(shared->decision.figures.demand *
									   GOOD_TIMEOUT_S / Max(CheckPointTimeout, 1),
									   &shared->sample.settings);

	if (CheckPointTimeout >= SHORT_TIMEOUT_S ||
		shared->decision.figures.demand < 16 * shared->sample.settings.segment_size)
		return;
	store_companion(fcinfo, "checkpoint_timeout", psprintf("%ds", GOOD_TIMEOUT_S),
					psprintf("Each checkpoint makes the first change of every page log the whole page. At %d s between checkpoints that happens %d times as often as at %d s, which would need a max_wal_size of at most %lld MB.",
							 CheckPointTimeout, GOOD_TIMEOUT_S / Max(CheckPointTimeout, 1),
							 GOOD_TIMEOUT_S, (long long) mb));
}

/* (T - 2 min) / T is the published rule for long timeouts. */
static void
judge_completion_target(FunctionCallInfo fcinfo)
{
	double		good = Max(0.9, (double) (CheckPointTimeout - SPARE_S) / CheckPointTimeout);

	if (CheckPointCompletionTarget >= 0.9 - 1e-6)
		return;
	store_companion(fcinfo, "checkpoint_completion_target", psprintf("%.2f", good),
					psprintf("A checkpoint is written within %.0f %% of checkpoint_timeout; more time makes the same writes gentler.",
							 CheckPointCompletionTarget * 100));
}

static void
judge_compression(FunctionCallInfo fcinfo)
{
	WalsizerWalCounters wal = walsizer_fetch_wal_counters();
	double		fpi_bytes = wal.fpi_bytes >= 0 ? (double) wal.fpi_bytes :
		(double) wal.fpi * FPI_BYTES;
	double		share = wal.bytes > 0 ? Min(1.0, fpi_bytes / (double) wal.bytes) : 0;

	if (wal_compression != 0 || share < MANY_FPI)
		return;
	store_companion(fcinfo, "wal_compression", "on",
					psprintf("About %.0f %% of the WAL written since its statistics were reset is images of whole pages (%lld of them).",
							 share * 100, (long long) wal.fpi));
}

static void
judge_min_wal_size(FunctionCallInfo fcinfo, const WalsizerShared *shared)
{
	int64		in_force = shared->sample.settings.max_wal_size;

	if (min_wal_size_mb > in_force)
		store_companion(fcinfo, "min_wal_size", psprintf("%lldMB", (long long) in_force),
						"It is larger than max_wal_size: so many segments are kept even when idle.");
	else if (min_wal_size_mb < in_force / 16 && in_force >= 1024)
		store_companion(fcinfo, "min_wal_size", psprintf("%lldMB", (long long) in_force / 8),
						"After a quiet time nearly all segments are removed, and the next load must create them again.");
}

/* It needs a place when the server starts; later one may be free again. */
static void
judge_worker_processes(FunctionCallInfo fcinfo, const WalsizerShared *shared)
{
	if (shared->worker_pid != 0)
		return;
	store_companion(fcinfo, "max_worker_processes", psprintf("%d", max_worker_processes + 2),
					"The worker of walsizer is not running. If the server log says \"too many background workers\", there was no place for it.");
}

/*
 * Other settings that cost more than max_wal_size can mend, each with its
 * value, a proposal and the figures.  No row: nothing to say.
 */
Datum
walsizer_companions(PG_FUNCTION_ARGS)
{
	WalsizerShared *shared = walsizer_copy_shared();

	InitMaterializedSRF(fcinfo, 0);
	judge_worker_processes(fcinfo, shared);
	if (shared->sampled_at == 0)
		return (Datum) 0;

	judge_timeout(fcinfo, shared);
	judge_completion_target(fcinfo);
	judge_compression(fcinfo);
	judge_min_wal_size(fcinfo, shared);
	if (!log_checkpoints)
		store_companion(fcinfo, "log_checkpoints", "on",
						"The server log does not say when and why checkpoints start.");
	return (Datum) 0;
}
