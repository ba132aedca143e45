/*-------------------------------------------------------------------------
 *
 * policy/internal.h
 *	  What the files of policy/ share with each other only.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#ifndef WALSIZER_INTERNAL_H
#define WALSIZER_INTERNAL_H

#include "policy/policy.h"

#define WALSIZER_PAGE			8192.0	/* bytes, of PostgreSQL as packaged */
#define WALSIZER_HOUR			(INT64_C(3600) * 1000)	/* ms */

/* At most this long, because a timeout may be a day: walsizer_patience(). */
#define WALSIZER_MOST_PATIENCE	(INT64_C(300) * 1000)	/* ms */

/* The longest wait with raises, ms.  A limit that falls later than this falls anew. */
#define WALSIZER_MOST_HOLD		(12 * WALSIZER_HOUR)

/* Demand never lowers a raise this soon after it, or after a start. */
#define WALSIZER_KEEP_RAISE		WALSIZER_HOUR	/* ms */

/* Convert bytes or ms, limited to 0 .. WALSIZER_MOST_BYTES. */
static inline int64_t
walsizer_to_int64(double value)
{
	if (!(value > 0))
		return 0;
	return value < (double) WALSIZER_MOST_BYTES ? (int64_t) value : WALSIZER_MOST_BYTES;
}

/* Bytes that a sample says, within what can be calculated with. */
static inline int64_t
walsizer_clamp_bytes(int64_t bytes)
{
	return walsizer_max(0, walsizer_min(bytes, WALSIZER_MOST_BYTES));
}

/* WAL between two positions, bytes; 0 if they are not in that order. */
static inline int64_t
walsizer_distance(uint64_t from, uint64_t to)
{
	if (to <= from)
		return 0;
	return to - from < (uint64_t) WALSIZER_MOST_BYTES ?
		(int64_t) (to - from) : WALSIZER_MOST_BYTES;
}

/*
 * That much WAL, of which so much is padding by switches of segments.  Padding
 * forces checkpoints as well, but these have little to write, so it counts for no
 * more than the records: at least half of what a raise makes room for is of use.
 */
static inline int64_t
walsizer_without_padding(int64_t wal_bytes, int64_t padding)
{
	return walsizer_min(wal_bytes, 2 * walsizer_max(0, wal_bytes - padding));
}

/* How long to wait after a failure or an administrator's change, ms. */
static inline int64_t
walsizer_patience(int64_t timeout)
{
	return walsizer_min(timeout, WALSIZER_MOST_PATIENCE);
}

/* Was a measured limit followed down more than once, and not long ago?  Then raises need more room. */
static inline bool
walsizer_limit_swings(const WalsizerState *state)
{
	return state->pacing.hold_ms > state->last.settings.timeout_ms &&
		state->last.now - state->pacing.raise_not_before < WALSIZER_MOST_HOLD;
}

/* How early a forced checkpoint is predicted, ms: five samples, and two seconds at least. */
static inline int64_t
walsizer_lead(const WalsizerConfig *config)
{
	return walsizer_max(5 * config->sample_interval_ms, 2000);
}

/*
 * Does this peak count, at this hour?  An hour longer than the lookback, because a
 * job that comes later each time would find none, but only a day if it was
 * measured with a longer timeout than that of now.  Future hours, after the system
 * clock was set back, count like past ones: a forgotten demand costs forced
 * checkpoints, a remembered one costs only space.
 */
static inline bool
walsizer_is_remembered(const WalsizerState *state, const WalsizerPeak *peak,
					   int64_t hour, int64_t lookback)
{
	if (peak->timeout_ms > state->last.settings.timeout_ms)
		lookback = walsizer_min(lookback, 24);
	return peak->hour > 0 &&
		walsizer_max(hour - peak->hour, peak->hour - hour) <= lookback + 1;
}

/* Let demand lower nothing for this time (ms), unless it must wait longer in any case. */
static inline void
walsizer_keep(WalsizerPacing *pacing, int64_t now, int64_t ms)
{
	if (now - pacing->kept_since < pacing->keep_ms - ms)
		return;
	pacing->kept_since = now;
	pacing->keep_ms = ms;
}

/* policy/demand.c */
extern void walsizer_add_mark(WalsizerState *state);
extern void walsizer_move_peaks(WalsizerState *state, int64_t before, int64_t now);
extern void walsizer_observe_primary(WalsizerState *state, const WalsizerSample *sample);
extern void walsizer_observe_window(WalsizerState *state, WalsizerFigures *figures);
extern void walsizer_begin_rate(WalsizerState *state, const WalsizerSample *sample);
extern int64_t walsizer_observe_rate(WalsizerState *state, const WalsizerSample *sample);
extern const WalsizerPeak *walsizer_learned_now(WalsizerState *state, int64_t lookback_hours);

/* policy/observe.c */
extern bool walsizer_sample_valid(const WalsizerSample *sample);
extern void walsizer_observe(const WalsizerConfig *config, WalsizerState *state,
							 const WalsizerSample *sample, WalsizerFigures *figures);
extern void walsizer_observe_boost(WalsizerState *state);

/* policy/owner.c */
extern bool walsizer_observe_owner(WalsizerState *state);
extern bool walsizer_observe_edit(const WalsizerState *state);
extern bool walsizer_is_own_raise(const WalsizerState *state);

/* policy/limits.c */
extern int64_t walsizer_whole_segments(int64_t mb, const WalsizerSettings *settings);
extern void walsizer_observe_disk(WalsizerState *state, const WalsizerSample *sample);
extern int64_t walsizer_step_size(const WalsizerState *state, const WalsizerFigures *figures, int64_t size);
extern void walsizer_find_limit(const WalsizerConfig *config, const WalsizerState *state,
								WalsizerFigures *figures);
extern bool walsizer_worth_raising(const WalsizerFigures *figures, int64_t size);
extern int64_t walsizer_least_size(const WalsizerState *state, int64_t mb);
extern int64_t walsizer_lowered_size(const WalsizerState *state, const WalsizerFigures *figures,
									 int64_t size);
extern int64_t walsizer_limit_to_follow(const WalsizerConfig *config, const WalsizerState *state,
										const WalsizerFigures *figures, WalsizerLimit *kind);

/* policy/lastresort.c */
extern void walsizer_observe_room(const WalsizerConfig *config, WalsizerState *state,
								  const WalsizerFigures *figures);
extern bool walsizer_has_requested(const WalsizerState *state, const WalsizerSample *sample);
extern void walsizer_request_rule(const WalsizerConfig *config, WalsizerState *state,
								  WalsizerDecision *decision);

/* policy/recovery.c */
extern void walsizer_observe_wal_contents(const WalsizerConfig *config, WalsizerState *state,
										  const WalsizerSample *sample, WalsizerCause cause);
extern int64_t walsizer_recovery_limit(const WalsizerConfig *config, const WalsizerState *state);

/* policy/whatif.c */
extern WalsizerLimit walsizer_forbidding(const WalsizerFigures *figures, int64_t mb);
extern void walsizer_begin_curve(WalsizerState *state, const WalsizerSample *sample);
extern void walsizer_observe_curve(WalsizerState *state, const WalsizerSample *sample,
								   WalsizerCause cause);

/* policy/rules.c */
extern int64_t walsizer_forced_rule(const WalsizerConfig *config, const WalsizerState *state,
									const WalsizerFigures *figures);
extern int64_t walsizer_predict_rule(const WalsizerConfig *config, const WalsizerState *state,
									 const WalsizerFigures *figures);
extern int64_t walsizer_standby_rule(const WalsizerConfig *config, const WalsizerState *state,
									 const WalsizerFigures *figures, bool cycle);
extern int64_t walsizer_boost_over_rule(const WalsizerConfig *config, const WalsizerState *state,
										const WalsizerFigures *figures);
extern int64_t walsizer_lower_rule(const WalsizerConfig *config, WalsizerState *state,
								   const WalsizerFigures *figures, bool cycle);

#endif							/* WALSIZER_INTERNAL_H */
