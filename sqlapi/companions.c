/*-------------------------------------------------------------------------
 *
 * sqlapi/companions.c
 *	  Other settings that are the real cause: the function
 *	  walsizer_companions(), and what the report says of them.
 *
 * Only advice: nothing here changes anything.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/xlog.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "postmaster/bgwriter.h"
#include "utils/guc.h"

#include "server/walsizer.h"
#include "server/compat.h"
#include "sqlapi/rows.h"

/* Shorter timeouts than this multiply full-page images for little gain. */
#define SHORT_TIMEOUT_S		300
#define GOOD_TIMEOUT_S		900

/* Segments within a timeout below which that does not matter. */
#define FEW_SEGMENTS		16

/*
 * A checkpoint is to leave this of the timeout, to end in time; with a timeout
 * for which that is less, the default of the server is good enough.  So is what
 * is nearly as good.
 */
#define SPARE_S				120
#define GOOD_TARGET			0.9
#define NEARLY				0.02

/* From this share on full-page images are worth compressing. */
#define MANY_FPI			0.3

/* On average so much of a page is left in its image, without the hole. */
#define FPI_BYTES			6000

/* min_wal_size: too small from this part of a large max_wal_size on; proposed. */
#define LARGE_MB			1024
#define SMALL_PART			16
#define GOOD_PART			8

PG_FUNCTION_INFO_V1(walsizer_companions);

/* The list that is being made. */
typedef struct Companions
{
	int			number;
	WalsizerCompanion *list;
} Companions;

static void
add_companion(Companions *found, const char *setting, const char *proposal, const char *reason)
{
	WalsizerCompanion *companion = &found->list[found->number++];

	Assert(found->number <= WALSIZER_COMPANIONS);
	companion->setting = setting;
	companion->value = GetConfigOptionByName(setting, NULL, true);
	companion->proposal = proposal;
	companion->reason = reason;
}

/* It needs a place when the server starts; later one may be free again. */
static void
judge_worker_processes(Companions *found, const WalsizerShared *shared)
{
	if (shared->worker_pid != 0)
		return;
	add_companion(found, "max_worker_processes", psprintf("%d", max_worker_processes + 2),
				  "The worker of walsizer is not running. If the server log says \"too many background workers\", there was no place for it.");
}

static void
judge_timeout(Companions *found, const WalsizerShared *shared)
{
	const WalsizerSettings *settings = &shared->sample.settings;
	int64		demand = shared->decision.figures.demand;
	int64		mb = walsizer_size_for(demand * GOOD_TIMEOUT_S / Max(CheckPointTimeout, 1), settings);

	if (CheckPointTimeout >= SHORT_TIMEOUT_S || demand < FEW_SEGMENTS * settings->segment_size)
		return;
	add_companion(found, "checkpoint_timeout", psprintf("%ds", GOOD_TIMEOUT_S),
				  psprintf("Each checkpoint makes the first change of every page log the whole page. At %d s between checkpoints that happens %d times as often as at %d s, which would need a max_wal_size of at most %lld MB.",
						   CheckPointTimeout, GOOD_TIMEOUT_S / Max(CheckPointTimeout, 1),
						   GOOD_TIMEOUT_S, (long long) mb));
}

/* (T - 2 min) / T is the published rule for long timeouts. */
static void
judge_completion_target(Companions *found)
{
	double		good = Max(GOOD_TARGET,
						   (double) (CheckPointTimeout - SPARE_S) / CheckPointTimeout);

	if (CheckPointCompletionTarget > good - NEARLY)
		return;
	/* rounded down: with 1 it would never end in time */
	add_companion(found, "checkpoint_completion_target", psprintf("%.2f", floor(good * 100) / 100),
				  psprintf("A checkpoint is written within %.0f %% of checkpoint_timeout, which is %d s; with more time the same writes are gentler.",
						   CheckPointCompletionTarget * 100, CheckPointTimeout));
}

static void
judge_compression(Companions *found)
{
	WalsizerWalCounters wal = walsizer_fetch_wal_counters();
	double		fpi_bytes = wal.fpi_bytes >= 0 ? (double) wal.fpi_bytes :
		(double) wal.fpi * FPI_BYTES;
	double		share = wal.bytes > 0 ? Min(1.0, fpi_bytes / (double) wal.bytes) : 0;

	if (wal_compression != 0 || share < MANY_FPI)
		return;
	add_companion(found, "wal_compression", "on",
				  psprintf("About %.0f %% of the WAL written since its statistics were reset is images of whole pages (%lld of them).",
						   share * 100, (long long) wal.fpi));
}

static void
judge_min_wal_size(Companions *found, const WalsizerShared *shared)
{
	int64		in_force = shared->sample.settings.max_wal_size;

	if (min_wal_size_mb > in_force)
		add_companion(found, "min_wal_size", psprintf("%lldMB", (long long) in_force),
					  psprintf("It is larger than max_wal_size, %lld MB: so many segments are kept even when idle.",
							   (long long) in_force));
	else if (min_wal_size_mb < in_force / SMALL_PART && in_force >= LARGE_MB)
		add_companion(found, "min_wal_size", psprintf("%lldMB", (long long) in_force / GOOD_PART),
					  psprintf("With max_wal_size at %lld MB, nearly all segments are removed after a quiet time, and the next load must create them again.",
							   (long long) in_force));
}

static void
judge_log_checkpoints(Companions *found)
{
	if (!log_checkpoints)
		add_companion(found, "log_checkpoints", "on",
					  "The server log does not say when and why checkpoints start.");
}

/*
 * Other settings that cost more than max_wal_size can mend, into a list with
 * room for WALSIZER_COMPANIONS.  Returns their number.  "shared" is a copy.
 */
int
walsizer_find_companions(const WalsizerShared *shared, WalsizerCompanion *list)
{
	Companions	found = {0, list};

	judge_worker_processes(&found, shared);
	if (shared->sampled_at == 0)
		return found.number;

	judge_timeout(&found, shared);
	judge_completion_target(&found);
	judge_compression(&found);
	judge_min_wal_size(&found, shared);
	judge_log_checkpoints(&found);
	return found.number;
}

/* One row for each.  No row: nothing to say. */
Datum
walsizer_companions(PG_FUNCTION_ARGS)
{
	WalsizerCompanion companions[WALSIZER_COMPANIONS];
	int			number;

	InitMaterializedSRF(fcinfo, 0);
	number = walsizer_find_companions(walsizer_copy_shared(), companions);
	for (int i = 0; i < number; i++)
	{
		WalsizerRow row = {0};

		walsizer_put_text(&row, companions[i].setting);
		walsizer_put_text(&row, companions[i].value);
		walsizer_put_text(&row, companions[i].proposal);
		walsizer_put_text(&row, companions[i].reason);
		walsizer_store_row(fcinfo, &row);
	}
	return (Datum) 0;
}
