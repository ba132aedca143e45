/*-------------------------------------------------------------------------
 *
 * sqlapi/rows.c
 *	  What the SQL functions share: a copy of shared memory, and rows that are
 *	  filled from left to right.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "sqlapi/rows.h"

/* Each of these fills the next column. */
void
walsizer_put(WalsizerRow *row, Datum value, bool isnull)
{
	if (row->next >= (int) lengthof(row->values))
		elog(ERROR, "too many columns");
	row->values[row->next] = value;
	row->nulls[row->next++] = isnull;
}

void
walsizer_put_int64(WalsizerRow *row, int64 value)
{
	walsizer_put(row, Int64GetDatum(value), false);
}

/* A size in MB, as bytes; 0 is none. */
void
walsizer_put_size(WalsizerRow *row, int64 mb)
{
	walsizer_put(row, Int64GetDatum(mb * WALSIZER_MB), mb <= 0);
}

/*
 * Text; NULL or empty is none.  The worker has no database and so no encoding: a
 * message that it kept, and that is not valid in this one's, is shown without
 * its letters beyond ASCII.
 */
void
walsizer_put_text(WalsizerRow *row, const char *text)
{
	char	   *copy = pstrdup(text != NULL ? text : "");
	bool		valid = pg_verifymbstr(copy, (int) strlen(copy), true);

	for (char *c = copy; *c != '\0'; c++)
	{
		if (!valid && IS_HIGHBIT_SET(*c))
			*c = '?';
	}
	walsizer_put(row, CStringGetTextDatum(copy), copy[0] == '\0');
}

/* A time; 0 is never. */
void
walsizer_put_time(WalsizerRow *row, TimestampTz time)
{
	walsizer_put(row, TimestampTzGetDatum(time), time == 0);
}

/* Milliseconds as an interval; negative is none.  Estimates are not more exact than this. */
void
walsizer_put_interval(WalsizerRow *row, int64 ms)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->time = Min(ms - ms % (ms < 10000 ? 100 : 1000), INT64_C(1) << 50) * 1000;
	walsizer_put(row, IntervalPGetDatum(interval), ms < 0);
}

/* Only a function that was declared by hand can be wrong here. */
static void
check_columns(const WalsizerRow *row, TupleDesc desc)
{
	if (row->next != desc->natts)
		elog(ERROR, "function returns %d columns, but is declared with %d", row->next, desc->natts);
}

/* Return the one row of a function. */
Datum
walsizer_return_row(FunctionCallInfo fcinfo, WalsizerRow *row)
{
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	check_columns(row, desc);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), row->values, row->nulls));
}

/* Return a row of a set. */
void
walsizer_store_row(FunctionCallInfo fcinfo, WalsizerRow *row)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	check_columns(row, result->setDesc);
	tuplestore_putvalues(result->setResult, result->setDesc, row->values, row->nulls);
}

/*
 * All of shared memory but the history, for which no memory is allocated: nothing
 * may look there.  Raises the errors of walsizer_attach_shared(); takes the lock.
 */
WalsizerShared *
walsizer_copy_shared(void)
{
	WalsizerShared *copy = palloc(offsetof(WalsizerShared, events));

	walsizer_attach_shared();
	LWLockAcquire(walsizer_shared->lock, LW_SHARED);
	memcpy(copy, walsizer_shared, offsetof(WalsizerShared, events));
	LWLockRelease(walsizer_shared->lock);
	return copy;
}
