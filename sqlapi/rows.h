/*-------------------------------------------------------------------------
 *
 * sqlapi/rows.h
 *	  Rows of SQL functions.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#ifndef WALSIZER_ROWS_H
#define WALSIZER_ROWS_H

#include "access/htup_details.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "server/server.h"

#define MOST_COLUMNS		32		/* more do not compile */

/* The next functions make a column. */
static inline NullableDatum
column(Datum value, bool isnull)
{
	return (NullableDatum) {value, isnull};
}

static inline NullableDatum
number(int64 value)
{
	return column(Int64GetDatum(value), false);
}

/* A size in MB, as bytes; 0 is none. */
static inline NullableDatum
size(int64 mb)
{
	return column(Int64GetDatum(mb * WALSIZER_MB), mb <= 0);
}

/*
 * Text; NULL or empty is none.  The worker has no database and so no encoding: of a message
 * that is not valid in this one's, letters beyond ASCII are not shown.
 */
static inline NullableDatum
text_of(const char *text)
{
	char	   *copy = pstrdup(text != NULL ? text : "");
	bool		valid = pg_verifymbstr(copy, (int) strlen(copy), true);

	for (char *c = copy; *c != '\0'; c++)
		if (!valid && IS_HIGHBIT_SET(*c))
			*c = '?';
	return column(CStringGetTextDatum(copy), copy[0] == '\0');
}

/* A time; 0 is never. */
static inline NullableDatum
time_of(TimestampTz time)
{
	return column(TimestampTzGetDatum(time), time == 0);
}

/* Milliseconds as an interval; negative is none.  Estimates are not more exact than this. */
static inline NullableDatum
interval_of(int64 ms)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->time = Min(ms - ms % (ms < 10000 ? 100 : 1000), INT64_C(1) << 50) * 1000;
	return column(IntervalPGetDatum(interval), ms < 0);
}

/* Return the one row of a function, or add a row to its set. */
static inline Datum
put_row(FunctionCallInfo fcinfo, const NullableDatum *columns, size_t number_of_columns)
{
	ReturnSetInfo *set = (ReturnSetInfo *) fcinfo->resultinfo;
	Datum		values[MOST_COLUMNS];
	bool		nulls[MOST_COLUMNS];
	bool		in_set = set != NULL && set->setResult != NULL;
	TupleDesc	desc = in_set ? set->setDesc : NULL;

	/* only a function that was declared by hand can be wrong here */
	if (!in_set && get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (desc->natts != (int) number_of_columns)
		elog(ERROR, "function returns %d columns, but is declared with %d",
			 (int) number_of_columns, desc->natts);
	for (size_t i = 0; i < number_of_columns; i++)
	{
		values[i] = columns[i].value;
		nulls[i] = columns[i].isnull;
	}
	if (!in_set)
		return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
	tuplestore_putvalues(set->setResult, desc, values, nulls);
	return (Datum) 0;
}

#define PUT_ROW(...) \
	(StaticAssertExpr(lengthof(((NullableDatum[]) {__VA_ARGS__})) <= MOST_COLUMNS, "columns"), \
	 put_row(fcinfo, (NullableDatum[]) {__VA_ARGS__}, lengthof(((NullableDatum[]) {__VA_ARGS__}))))

#endif							/* WALSIZER_ROWS_H */
