/*-------------------------------------------------------------------------
 *
 * walsizer_model.h
 *	  What walsizer_model.c offers to walsizer_policy.c only.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#ifndef WALSIZER_MODEL_H
#define WALSIZER_MODEL_H

#include "walsizer_policy.h"

/* No value of max_wal_size is larger, on any platform. */
#define WALSIZER_LIMIT_MB		INT64_C(2147483647)

/* More WAL than this is "very much"; leaves room for sums without overflow. */
#define WALSIZER_LIMIT_BYTES	(INT64_C(1) << 60)

static inline int64_t
walsizer_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t
walsizer_max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Bytes from a computed value: never negative, never beyond the limit. */
static inline int64_t
walsizer_to_bytes(double value)
{
	if (!(value > 0))
		return 0;
	return value < (double) WALSIZER_LIMIT_BYTES ? (int64_t) value : WALSIZER_LIMIT_BYTES;
}

extern bool walsizer_sample_valid(const WalsizerSample *sample);
extern void walsizer_observe(WalsizerState *state, const WalsizerSample *sample,
							 WalsizerFigures *figures);
extern int64_t walsizer_recent_peak(const WalsizerState *state);
extern void walsizer_note_change(WalsizerState *state, const WalsizerSample *sample);
extern void walsizer_follow_up(WalsizerState *state, const WalsizerSample *sample,
							   WalsizerDecision *decision);
extern int64_t walsizer_learned_now(WalsizerState *state, const WalsizerSample *sample,
									int64_t lookback);

#endif							/* WALSIZER_MODEL_H */
