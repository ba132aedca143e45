/*-------------------------------------------------------------------------
 *
 * sqlapi/rows.h
 *	  What the SQL functions share: a copy of shared memory, and rows that are
 *	  filled from left to right.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#ifndef WALSIZER_ROWS_H
#define WALSIZER_ROWS_H

#include "fmgr.h"

#include "server/server.h"

#define WALSIZER_MOST_COLUMNS	32	/* one more is an error, in any build */

typedef struct WalsizerRow
{
	int			next;
	Datum		values[WALSIZER_MOST_COLUMNS];
	bool		nulls[WALSIZER_MOST_COLUMNS];
} WalsizerRow;

extern void walsizer_put(WalsizerRow *row, Datum value, bool isnull);
extern void walsizer_put_int64(WalsizerRow *row, int64 value);
extern void walsizer_put_size(WalsizerRow *row, int64 mb);
extern void walsizer_put_text(WalsizerRow *row, const char *text);
extern void walsizer_put_time(WalsizerRow *row, TimestampTz time);
extern void walsizer_put_interval(WalsizerRow *row, int64 ms);
extern Datum walsizer_return_row(FunctionCallInfo fcinfo, WalsizerRow *row);
extern void walsizer_store_row(FunctionCallInfo fcinfo, WalsizerRow *row);
extern WalsizerShared *walsizer_copy_shared(void);

#endif							/* WALSIZER_ROWS_H */
