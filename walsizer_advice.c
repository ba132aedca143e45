/*-------------------------------------------------------------------------
 *
 * walsizer_advice.c
 *	  What if max_wal_size were another, and which other setting is the real
 *	  cause: the functions walsizer_advice() and walsizer_companions().
 *
 * Only advice: nothing here changes anything.
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

/* Candidates, in eighths of the value in force. */
static const int eighths[] = {4, 8, 12, 16, 24, 32, 48, 64};

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

/*
 * Time between two checkpoints, ms, when so much WAL is written in a timeout:
 * the timeout, or the time in which WAL fills the capacity less the part of a
 * segment that may lie before the redo pointer.
 */
static int64
spacing(int64 mb, int64 demand, const WalsizerSettings *settings)
{
	int64		capacity = walsizer_capacity(mb, settings);

	if (walsizer_size_for(demand, settings) <= mb)
		return settings->timeout;
	return (int64) ((double) settings->timeout *
					((double) capacity - (double) settings->segment_size / 2) /
					(double) demand);
}

/* Share of the remembered hours in which this size (MB) was too small. */
static double
forced_share(const WalsizerState *state, int64 hour, int64 lookback, int64 mb,
			 const WalsizerSettings *settings)
{
	int			hours = 0;
	int			forced = 0;

	for (int i = 0; i < WALSIZER_PEAK_SLOTS; i++)
	{
		const WalsizerPeak *peak = &state->peaks[i];
		int64		demand = walsizer_scale_demand(peak->demand, peak->timeout,
												   settings->timeout);

		if (peak->hour <= 0 || peak->hour > hour || peak->hour <= hour - lookback)
			continue;
		hours++;
		if (walsizer_size_for(demand, settings) > mb)
			forced++;
	}
	return hours > 0 ? (double) forced / hours : 0;
}

/* Which bound forbids this size (MB)? */
static WalsizerBound
forbidding(const WalsizerFigures *figures, const WalsizerConfig *config, int64 mb)
{
	if (figures->disk_limit > 0 && mb > figures->disk_limit)
		return WALSIZER_BOUND_DISK;
	if (figures->recovery_limit > 0 && mb > figures->recovery_limit)
		return WALSIZER_BOUND_RECOVERY;
	if (mb > config->max)
		return WALSIZER_BOUND_MAX;
	return WALSIZER_UNBOUND;
}

static void
store_candidate(FunctionCallInfo fcinfo, WalsizerShared *shared, int64 mb)
{
	const WalsizerSettings *settings = &shared->sample.settings;
	const WalsizerFigures *figures = &shared->decision.figures;
	WalsizerConfig config = walsizer_config(walsizer_measured_replay_rate(shared));
	int64		learned = walsizer_learned_demand(&shared->state, shared->sample.hour,
												  config.lookback, settings->timeout);
	WalsizerBound bound = forbidding(figures, &config, mb);
	WalsizerRow row = {0};

	walsizer_put_size(&row, mb);
	walsizer_put_text(&row, mb == figures->in_force ? "in force" :
					  mb == figures->wanted ? "wanted" : NULL);
	walsizer_put_int64(&row, walsizer_capacity(mb, settings));
	walsizer_put_interval(&row, spacing(mb, figures->demand, settings));
	walsizer_put_interval(&row, spacing(mb, Max(learned, figures->demand), settings));
	walsizer_put_datum(&row, Float8GetDatum(forced_share(&shared->state, shared->sample.hour,
														 config.lookback, mb, settings)));
	walsizer_put_size(&row, mb);
	walsizer_put_interval(&row, (int64) ((double) mb * WALSIZER_MB * 1000.0 / config.replay_rate));
	walsizer_put_datum(&row, BoolGetDatum(bound == WALSIZER_UNBOUND));
	walsizer_put_bound(&row, bound);
	walsizer_store_row(fcinfo, &row);
}

/*
 * One row per candidate, smallest first: parts and multiples of the value in
 * force, and the wanted size.  A size is said to suffice exactly when the
 * policy would not raise it.
 */
Datum
walsizer_advice(PG_FUNCTION_ARGS)
{
	WalsizerShared *shared = walsizer_copy_shared();
	const WalsizerSettings *settings = &shared->sample.settings;
	int64		wanted = shared->decision.figures.wanted;
	int64		segment_mb;
	int64		before = 0;

	InitMaterializedSRF(fcinfo, 0);
	if (shared->sampled_at == 0)
		return (Datum) 0;

	walsizer_settle(&shared->state);
	segment_mb = settings->segment_size / WALSIZER_MB;
	for (int i = 0; i < (int) lengthof(eighths); i++)
	{
		int64		mb = settings->max_wal_size * eighths[i] / 8;

		if (eighths[i] != 8)
			mb -= mb % segment_mb;
		if (mb < 2 * segment_mb || mb > MAX_KILOBYTES)
			continue;
		if (wanted > before && wanted < mb)
			store_candidate(fcinfo, shared, wanted);
		store_candidate(fcinfo, shared, mb);
		before = mb;
	}
	if (wanted > before)
		store_candidate(fcinfo, shared, wanted);
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

/*
 * Other settings that cost more than max_wal_size can mend, each with its
 * value, a proposal and the figures.  No row: nothing to say.
 */
Datum
walsizer_companions(PG_FUNCTION_ARGS)
{
	WalsizerShared *shared = walsizer_copy_shared();

	InitMaterializedSRF(fcinfo, 0);
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
