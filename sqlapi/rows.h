/*-------------------------------------------------------------------------
 *
 * sqlapi/rows.h
 *	  What the SQL functions share: rows, filled from left to right, and words.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#ifndef WALSIZER_ROWS_H
#define WALSIZER_ROWS_H

#include "fmgr.h"

#include "server/walsizer.h"

/* A row that is filled from left to right. */
typedef struct WalsizerRow
{
	int			next;
	Datum		values[48];
	bool		nulls[48];
} WalsizerRow;

/* A setting that is the real cause; nothing needs more than one remark. */
typedef struct WalsizerCompanion
{
	const char *setting;
	const char *value;			/* in force */
	const char *proposal;
	const char *reason;			/* a sentence, with figures */
} WalsizerCompanion;

#define WALSIZER_COMPANIONS	6

extern void walsizer_put_null(WalsizerRow *row);
extern void walsizer_put_datum(WalsizerRow *row, Datum value);
extern void walsizer_put_int64(WalsizerRow *row, int64 value);
extern void walsizer_put_size(WalsizerRow *row, int64 mb);
extern void walsizer_put_text(WalsizerRow *row, const char *text);
extern char *walsizer_printable(const char *message);
extern void walsizer_put_time(WalsizerRow *row, TimestampTz time);
extern void walsizer_put_interval(WalsizerRow *row, int64 ms);
extern void walsizer_put_role(WalsizerRow *row, bool standby);
extern void walsizer_put_bound(WalsizerRow *row, WalsizerBound bound);
extern void walsizer_check_columns(const WalsizerRow *row, TupleDesc desc);
extern void walsizer_store_row(FunctionCallInfo fcinfo, WalsizerRow *row);
extern void walsizer_check_preloaded(void);
extern WalsizerShared *walsizer_copy_shared(void);
extern const char *walsizer_state_name(const WalsizerShared *shared);
extern WalsizerBound walsizer_limited_by(const WalsizerFigures *figures);
extern const char *walsizer_remark(const WalsizerShared *shared);
extern int	walsizer_find_companions(const WalsizerShared *shared, WalsizerCompanion *list);
extern const char *walsizer_replay_rate_source(const WalsizerShared *shared);

#endif							/* WALSIZER_ROWS_H */
