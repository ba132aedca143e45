/*-------------------------------------------------------------------------
 *
 * sqlapi/rows.c
 *	  What all SQL functions need: a copy of shared memory, and rows that are
 *	  filled from left to right.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "sqlapi/rows.h"

/* Each of these fills the next column. */
void
walsizer_put_null(WalsizerRow *row)
{
	Assert(row->next < (int) lengthof(row->values));
	row->values[row->next] = (Datum) 0;
	row->nulls[row->next++] = true;
}

void
walsizer_put_datum(WalsizerRow *row, Datum value)
{
	Assert(row->next < (int) lengthof(row->values));
	row->values[row->next] = value;
	row->nulls[row->next++] = false;
}

void
walsizer_put_int64(WalsizerRow *row, int64 value)
{
	walsizer_put_datum(row, Int64GetDatum(value));
}

/* A size in MB, as bytes; 0 is none. */
void
walsizer_put_size(WalsizerRow *row, int64 mb)
{
	if (mb > 0)
		walsizer_put_int64(row, mb * WALSIZER_MB);
	else
		walsizer_put_null(row);
}

/* Text; NULL or empty is none. */
void
walsizer_put_text(WalsizerRow *row, const char *text)
{
	if (text != NULL && text[0] != '\0')
		walsizer_put_datum(row, CStringGetTextDatum(text));
	else
		walsizer_put_null(row);
}

/*
 * A message of the server that the worker kept.  The worker has no database and
 * so no encoding: what is not valid in this one's, a translation perhaps, is
 * shown without its letters beyond ASCII.
 */
char *
walsizer_printable(const char *message)
{
	char	   *copy = pstrdup(message);

	if (!pg_verifymbstr(copy, (int) strlen(copy), true))
	{
		for (char *c = copy; *c != '\0'; c++)
		{
			if (IS_HIGHBIT_SET(*c))
				*c = '?';
		}
	}
	return copy;
}

/* A time; 0 is never. */
void
walsizer_put_time(WalsizerRow *row, TimestampTz time)
{
	if (time != 0)
		walsizer_put_datum(row, TimestampTzGetDatum(time));
	else
		walsizer_put_null(row);
}

/* Milliseconds as an interval; negative is none. */
void
walsizer_put_interval(WalsizerRow *row, int64 ms)
{
	Interval   *interval;

	if (ms < 0)
	{
		walsizer_put_null(row);
		return;
	}
	interval = palloc0(sizeof(Interval));
	interval->time = Min(ms, INT64_C(1) << 50) * 1000;
	walsizer_put_datum(row, IntervalPGetDatum(interval));
}

/* The role of a server. */
void
walsizer_put_role(WalsizerRow *row, bool standby)
{
	walsizer_put_text(row, standby ? "standby" : "primary");
}

/* The name of a bound; unbounded is none. */
void
walsizer_put_bound(WalsizerRow *row, WalsizerBound bound)
{
	walsizer_put_text(row, bound == WALSIZER_UNBOUND ? NULL : walsizer_bound_name(bound));
}

/*
 * Raise an error unless the row has the columns of the SQL function.  It has
 * not if library and SQL objects are of different versions: between an upgrade
 * of the files and the restart of the server, or before ALTER EXTENSION UPDATE.
 */
void
walsizer_check_columns(const WalsizerRow *row, TupleDesc desc)
{
	if (row->next != desc->natts)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the library of walsizer is of another version than its SQL objects"),
				 errhint("Restart the server if walsizer was upgraded since its start, then run \"ALTER EXTENSION walsizer UPDATE\" in each database that has the extension.")));
}

/* Return a row of a set.  Errors: see walsizer_check_columns(). */
void
walsizer_store_row(FunctionCallInfo fcinfo, WalsizerRow *row)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	walsizer_check_columns(row, result->setDesc);
	tuplestore_putvalues(result->setResult, result->setDesc,
						 row->values, row->nulls);
}

/* Raise an error if the library was not preloaded: then there is no worker. */
void
walsizer_check_preloaded(void)
{
	if (walsizer_shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("walsizer must be loaded via \"shared_preload_libraries\""),
				 errhint("Add walsizer to \"shared_preload_libraries\" in the server's configuration and restart the server. If it is there already, it names another file than \"$libdir/walsizer\", which the SQL functions use.")));
}

/*
 * All of shared memory but the history, for which no memory is allocated: nothing
 * may look there.  Raises an error if the library was not preloaded; takes the lock.
 */
WalsizerShared *
walsizer_copy_shared(void)
{
	WalsizerShared *copy;

	walsizer_check_preloaded();
	copy = palloc(offsetof(WalsizerShared, events));
	LWLockAcquire(walsizer_shared->lock, LW_SHARED);
	memcpy(copy, walsizer_shared, offsetof(WalsizerShared, events));
	LWLockRelease(walsizer_shared->lock);
	return copy;
}

/* What walsizer is doing, in one word or two. */
const char *
walsizer_state_name(const WalsizerShared *shared)
{
	WalsizerOutcome obstacle;

	if (shared->worker_pid == 0)
		return "not running";
	if (!walsizer_enable)
		return "disabled";
	if (walsizer_dry_run)
		return "dry run";
	if (shared->trouble.outcome != WALSIZER_NOTED || walsizer_apply_obstacle(&obstacle) != NULL)
		return "advising";
	return "watching";
}

/* The bound that keeps max_wal_size from what is wanted, if one does. */
WalsizerBound
walsizer_limited_by(const WalsizerFigures *figures)
{
	return figures->wanted > Max(figures->limit, figures->in_force) ?
		figures->limit_by : WALSIZER_UNBOUND;
}

/* Where the replay rate comes from that estimates of recovery use. */
const char *
walsizer_replay_rate_source(const WalsizerShared *shared)
{
	if (walsizer_replay_rate > 0)
		return "configured";
	return walsizer_measured_replay_rate(shared) > 0 ? "measured" : "assumed";
}

/*
 * What a larger max_wal_size would not help against, NULL if there is nothing
 * of that kind.  The one that explains forced checkpoints comes first.
 */
const char *
walsizer_remark(const WalsizerShared *shared)
{
	const WalsizerSample *sample = &shared->sample;
	const WalsizerState *state = &shared->state;
	int64		in_force = sample->settings.max_wal_size * WALSIZER_MB;

	if (shared->decision.figures.stale > 0 && !sample->standby)
		return "checkpoints are forced by a statement that began before max_wal_size was raised; it keeps the old value until it ends";
	if (sample->checkpoint_running &&
		sample->now - state->timer_start > sample->settings.timeout)
		return sample->standby ?
			"a restartpoint takes longer than checkpoint_timeout; the storage is too slow for it" :
			"a checkpoint takes longer than checkpoint_timeout; the storage is too slow for it";
	if (state->disk_held > in_force)
		return psprintf("%lld MB of WAL are held back by replication slots, wal_keep_size or the archiver, which max_wal_size does not limit",
						(long long) (state->disk_held / WALSIZER_MB));
	return NULL;
}
