/*-------------------------------------------------------------------------
 *
 * policy/whatif.c
 *	  What if max_wal_size were another value?  For walsizer_advice.
 *
 * test/property compares these figures with the simulator.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "policy/internal.h"

/* Candidates, in eighths of the value in effect. */
static const int eighths[] = {4, 8, 12, 16, 24, 32, 48, 64};

#define NUM_EIGHTHS		((int) (sizeof(eighths) / sizeof(eighths[0])))

/*
 * Time between two checkpoints (ms) if this much WAL (bytes) is written per
 * timeout: the timeout, or the time in which WAL fills the trigger point.  A
 * forced checkpoint begins where a segment does, so the next interval has all
 * of it.
 */
static int64_t
spacing(int64_t mb, int64_t demand, const WalsizerSettings *settings)
{
	double		fills;

	if (demand <= 0)
		return settings->timeout_ms;
	fills = (double) settings->timeout_ms *
		((double) walsizer_trigger_point(mb, settings) / (double) demand);
	return walsizer_min(walsizer_to_int64(fills), settings->timeout_ms);
}

/* Share of the remembered hours in which this size (MB) was too small. */
static double
forced_share(const WalsizerState *state, int64_t hour, int64_t lookback, int64_t mb,
			 const WalsizerSettings *settings)
{
	int			hours = 0;
	int			forced = 0;

	for (int i = 0; i < WALSIZER_PEAK_SLOTS; i++)
	{
		const WalsizerPeak *peak = &state->learned.peaks[i];

		if (!walsizer_is_remembered(state, peak, hour, lookback))
			continue;
		hours++;
		if (walsizer_size_for(peak->demand, settings) > mb)
			forced++;
	}
	return hours > 0 ? (double) forced / hours : 0;
}

/* Which limit forbids this size (MB)?  Of several, the one that is hardest to move. */
WalsizerLimit
walsizer_forbidding(const WalsizerFigures *figures, const WalsizerConfig *config, int64_t mb)
{
	if (figures->disk_limit_mb > 0 && mb > figures->disk_limit_mb)
		return WALSIZER_LIMIT_DISK;
	if (figures->recovery_limit_mb > 0 && mb > figures->recovery_limit_mb)
		return WALSIZER_LIMIT_RECOVERY;
	if (mb > config->max_mb)
		return WALSIZER_LIMIT_MAX;
	return WALSIZER_UNLIMITED;
}

/*
 * What this size (MB) would mean, given the last sample, the figures of the
 * last decision, and a state after walsizer_remember_window().
 */
WalsizerWhatIf
walsizer_what_if(const WalsizerConfig *config, const WalsizerState *state,
				 const WalsizerSample *sample, const WalsizerFigures *figures, int64_t mb)
{
	const WalsizerSettings *settings = &sample->settings;
	int64_t		learned = walsizer_learned_demand(state, sample->hour, config->lookback_hours);

	return (WalsizerWhatIf) {
		.size_mb = mb,
		.trigger_point = walsizer_trigger_point(mb, settings),
		.every_now_ms = spacing(mb, figures->demand, settings),
		.every_at_peak_ms = spacing(mb, walsizer_max(learned, figures->demand), settings),
		.forced_fraction = forced_share(state, sample->hour, config->lookback_hours, mb, settings),
		.recovery_ms = walsizer_recovery_time(config, state, sample, mb),
		.limited_by = walsizer_forbidding(figures, config, mb),
	};
}

/*
 * The sizes worth comparing (MB), smallest first: parts and multiples of the
 * value in effect, in whole segments, and the wanted size.  Returns their
 * number, at most WALSIZER_CANDIDATES.
 */
int
walsizer_candidates(const WalsizerSettings *settings, int64_t wanted, int64_t *sizes)
{
	int64_t		segment_mb = settings->segment_bytes / WALSIZER_MB;
	int64_t		before = 0;
	int			number = 0;

	for (int i = 0; i < NUM_EIGHTHS; i++)
	{
		int64_t		mb = settings->max_wal_size_mb * eighths[i] / 8;

		if (eighths[i] != 8)
			mb -= mb % segment_mb;
		if (mb < 2 * segment_mb || mb > WALSIZER_MOST_MB)
			continue;
		if (wanted > before && wanted < mb)
			sizes[number++] = wanted;
		if (mb > before)
			sizes[number++] = mb;
		before = mb;
	}
	if (wanted > before)
		sizes[number++] = wanted;
	return number;
}
