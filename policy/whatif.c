/*-------------------------------------------------------------------------
 *
 * policy/whatif.c
 *	  What if max_wal_size, or checkpoint_timeout, were another value?  For
 *	  walsizer_advice, whose figures test/property compares with the simulator,
 *	  and walsizer_timeout_advice.
 *
 * The images of pages that are written within t after a checkpoint are the
 * distinct pages that the load changes in t: a curve that only becomes flatter.
 * So a timeout k times as long has at least the images of this one, and at most
 * as many more as the end of the curve, continued as a straight line, has.  The
 * counters tell no more than that: curves of many forms erred by up to 400 %.
 * For a shorter timeout the curve itself has the number.
 *
 * Everything else in WAL grows with time.  What an image takes is found by
 * regression of the server's own counters, unless it counts the bytes.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "policy/internal.h"

#define STEPS				WALSIZER_CURVE_STEPS
#define KEPT				WALSIZER_CURVE_INTERVALS
#define LAST_STEPS			6	/* of the curve, for its end */
#define LEAST_INTERVALS		3
#define MOST_CHANGE			0.1 /* of the images; more is a load that changes */
#define LEAST_IMAGE			50.0	/* bytes; less is no result of a regression */

/*
 * Time between two checkpoints (ms) if this much WAL (bytes) is written per
 * timeout: the timeout, or the time in which WAL fills the trigger point.  A forced
 * checkpoint begins where a segment does, so the next interval has all of it.
 */
static int64_t
spacing(int64_t mb, int64_t demand, const WalsizerSettings *settings)
{
	double		fills = (double) settings->timeout_ms *
		((double) walsizer_trigger_point(mb, settings) / (double) walsizer_max(1, demand));

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
		forced += walsizer_size_for(peak->demand, settings) > mb;
	}
	return hours > 0 ? (double) forced / hours : 0;
}

/* Which limit forbids this size (MB)?  Of several, the one that is hardest to move. */
WalsizerLimit
walsizer_forbidding(const WalsizerFigures *figures, int64_t mb)
{
	static const WalsizerLimit hardest[] = {WALSIZER_LIMIT_DISK, WALSIZER_LIMIT_RECOVERY, WALSIZER_LIMIT_MAX};

	for (int i = 0; i < WALSIZER_LIMITS - 1; i++)
		if (figures->limits_mb[hardest[i]] > 0 && mb > figures->limits_mb[hardest[i]])
			return hardest[i];
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
	int64_t		learned = walsizer_largest_peak(state, sample->hour, config->lookback_hours).demand;

	return (WalsizerWhatIf) {
		.size_mb = mb, .trigger_point = walsizer_trigger_point(mb, settings),
		.every_now_ms = spacing(mb, figures->demand, settings),
		.every_at_peak_ms = spacing(mb, walsizer_max(learned, figures->demand), settings),
		.forced_fraction = forced_share(state, sample->hour, config->lookback_hours, mb, settings),
		.recovery_ms = walsizer_recovery_time(config, state, sample, mb),
		.limited_by = walsizer_forbidding(figures, mb),
	};
}

/*
 * Append a number that is not smaller than those before, each once, and the extra
 * one where its place is.  Returns how many there are.
 */
static int
append(int64_t *sorted, int number, int64_t next, int64_t extra)
{
	int64_t		last = number > 0 ? sorted[number - 1] : 0;

	if (extra > last && extra < next)
		sorted[number++] = last = extra;
	if (next > last)
		sorted[number++] = next;
	return number;
}

/*
 * The sizes worth comparing (MB), smallest first: parts and multiples of the value in effect,
 * and the wanted size.  Returns their number, at most WALSIZER_CANDIDATES.
 */
int
walsizer_candidates(const WalsizerSettings *settings, int64_t wanted, int64_t *sizes)
{
	static const int eighths[WALSIZER_CANDIDATES - 1] = {4, 8, 12, 16, 24, 32, 48, 64};
	int64_t		segment_mb = settings->segment_bytes / WALSIZER_MB;
	int			number = 0;

	for (int i = 0; i < WALSIZER_CANDIDATES - 1; i++)
	{
		int64_t		mb = settings->max_wal_size_mb * eighths[i] / 8;

		if (eighths[i] != 8)
			mb -= mb % segment_mb;
		if (mb >= 2 * segment_mb && mb <= WALSIZER_MOST_MB)
			number = append(sizes, number, mb, wanted);
	}
	return append(sizes, number, wanted, wanted);
}

/* How much a counter of the server grew; a negative number after its reset. */
static double
grown(int64_t from, int64_t to)
{
	return (double) to - (double) from;
}

/* Begin an interval; only one that is seen from its beginning counts. */
static void
begin_interval(WalsizerCurve *curve, const WalsizerWal *wal, bool whole)
{
	curve->begin = curve->step_begin = *wal;
	curve->steps = 0;
	for (int i = 0; i < 5; i++)
		curve->sums[i] = 0;
	curve->whole = whole;
}

/* Follow the curve up to this step, straight if there are several, and sum up for the regression. */
static void
take_steps(WalsizerCurve *curve, const WalsizerWal *wal, int due)
{
	double		steps = due - curve->steps;
	double		records = grown(curve->step_begin.records, wal->records) / steps;
	double		images = grown(curve->step_begin.images, wal->images) / steps;
	double		bytes = grown(curve->step_begin.bytes, wal->bytes) / steps;
	const double products[] = {records * records, records * images, images * images, records * bytes, images * bytes};

	if (records < 0 || images < 0 || bytes < 0)
		curve->whole = false;
	for (; curve->steps < due; curve->steps++)
		curve->images[curve->steps] = grown(curve->begin.images, wal->images) - (due - 1 - curve->steps) * images;
	for (int i = 0; i < 5; i++)
		curve->sums[i] += steps * products[i];
	curve->step_begin = *wal;
}

/* A whole timed interval has ended here: it counts for one of the last KEPT. */
static void
keep_interval(WalsizerCurve *curve, const WalsizerWal *wal)
{
	double		weight;

	if (curve->steps < STEPS)
		take_steps(curve, wal, STEPS);
	if (!curve->whole)
		return;
	curve->totals[curve->intervals % KEPT] = curve->images[STEPS - 1];
	curve->intervals++;
	weight = 1.0 / (double) walsizer_min(curve->intervals, KEPT);
	for (int i = 0; i < STEPS; i++)
		curve->mean[i] += weight * (curve->images[i] - curve->mean[i]);
	curve->bytes += weight * (grown(curve->begin.bytes, wal->bytes) - curve->bytes);
	curve->records += weight * (grown(curve->begin.records, wal->records) - curve->records);
	curve->image_bytes += weight * (grown(curve->begin.image_bytes, wal->image_bytes) - curve->image_bytes);
	for (int i = 0; i < 5; i++)
		curve->mean_sums[i] += weight * (curve->sums[i] - curve->mean_sums[i]);
}

/*
 * Follow the counters.  If the redo pointer has moved since the sample before, for this
 * cause, the interval ends with that, because the first images after it are the most.
 * One that lasted longer than the timeout had a pause in it.
 */
void
walsizer_observe_curve(WalsizerState *state, const WalsizerSample *sample, WalsizerCause cause)
{
	WalsizerCurve *curve = &state->curve;
	int64_t		timeout = sample->settings.timeout_ms;
	int64_t		elapsed = sample->now - state->checkpoints.redo_moved;
	int			due = curve->steps;

	if (sample->redo_lsn != state->last.redo_lsn)
	{
		if (cause == WALSIZER_CAUSE_TIMED && elapsed <= timeout + timeout / 10 + WALSIZER_TIMER_SLACK)
			keep_interval(curve, &state->last.wal);
		begin_interval(curve, &state->last.wal, true);
		return;
	}
	while (due < STEPS && elapsed / (due + 1) >= timeout / STEPS)
		due++;
	if (due > curve->steps)
		take_steps(curve, &sample->wal, due);
}

/* By how much the images per interval changed over the kept intervals, as a part of them. */
static double
change_of_images(const WalsizerCurve *curve)
{
	int			number = (int) walsizer_min(curve->intervals, KEPT);
	double		sum = 0;
	double		moment = 0;

	for (int i = 0; i < number; i++)
	{
		double		images = curve->totals[(curve->intervals - number + i) % KEPT];

		sum += images;
		moment += (2 * i - number + 1) * images;
	}
	return sum > 0 ? 6.0 * (moment < 0 ? -moment : moment) / ((number + 1) * sum) : 0;
}

/* What an image takes (bytes), 0 if that cannot be told. */
static double
image_size(const WalsizerCurve *curve)
{
	double		images = curve->mean[STEPS - 1];
	const double *sums = curve->mean_sums;
	double		determinant = sums[0] * sums[2] - sums[1] * sums[1];
	double		size = 0;

	if (images <= 0)
		return 0;
	if (curve->image_bytes > 0)
		size = curve->image_bytes / images;
	else if (determinant > 1e-6 * sums[0] * sums[2])
		size = (sums[0] * sums[4] - sums[1] * sums[3]) / determinant;
	return size < curve->bytes / images ? size : curve->bytes / images;
}

/*
 * Does the curve become steeper, by more than MOST_CHANGE?  That of distinct pages does not: a
 * job begins late in each interval, or transactions end in it, or a checkpoint slows the load.
 */
static bool
becomes_steeper(const double *mean)
{
	double		before = mean[LAST_STEPS - 1];

	for (int i = 2 * LAST_STEPS - 1; i < STEPS; i += LAST_STEPS)
	{
		double		images = mean[i] - mean[i - LAST_STEPS];

		if (images - before > MOST_CHANGE * mean[STEPS - 1])
			return true;
		before = images;
	}
	return false;
}

/* Why the curve does not tell what is saved; NULL if it does. */
static const char *
obstacle(const WalsizerCurve *curve)
{
	if (curve->intervals < LEAST_INTERVALS)
		return "cannot tell: fewer than three timed checkpoints in a row";
	if (curve->bytes <= 0 || curve->records <= 0)
		return "cannot tell: no WAL is written";
	if (change_of_images(curve) > MOST_CHANGE || becomes_steeper(curve->mean))
		return "cannot tell: the load changes";
	if (curve->mean[STEPS - 1] > 0 && image_size(curve) < LEAST_IMAGE)
		return "cannot tell: the size of images is not known";
	return NULL;
}

/*
 * The WAL of an interval "times" as long as the timeout, as a part of what is written
 * now in that time: with as few, or as many, images as are possible.
 */
static double
part_written(const WalsizerCurve *curve, double times, bool most)
{
	const double *mean = curve->mean;
	double		size = image_size(curve);
	double		base = curve->bytes - size * mean[STEPS - 1];
	double		images = mean[STEPS - 1];

	if (times < 1)
	{
		double		position = times * STEPS;
		int			step = (int) position;
		double		before = step > 0 ? mean[step - 1] : 0;

		images = before + (position - step) * (mean[step] - before);
	}
	else if (most)
		images += (times - 1) * STEPS * (images - mean[STEPS - 1 - LAST_STEPS]) / LAST_STEPS;
	return (times * base + size * images) / (times * curve->bytes);
}

/*
 * The curve begins anew: the timeout is another one, or samples do not continue.  With
 * another timeout, what was said of it is kept, to be compared with what comes.
 */
void
walsizer_begin_curve(WalsizerState *state, const WalsizerSample *sample)
{
	WalsizerCurve *curve = &state->curve;
	int64_t		before = state->last.settings.timeout_ms;
	WalsizerSaid said = {0};

	if (before == sample->settings.timeout_ms)
		said = curve->said;
	else if (obstacle(curve) == NULL)
	{
		double		times = (double) sample->settings.timeout_ms / (double) before;

		said = (WalsizerSaid) {before, 1 - part_written(curve, times, true),
			1 - part_written(curve, times, false), curve->bytes / curve->records};
	}
	*curve = (WalsizerCurve) {.said = said};
	begin_interval(curve, &sample->wal, false);
}

/*
 * What this checkpoint_timeout (ms, at least a second) would mean, given the last
 * sample, and the figures of the last decision.
 */
WalsizerTimeoutAdvice
walsizer_advise_timeout(const WalsizerConfig *config, const WalsizerState *state,
						const WalsizerSample *sample, const WalsizerFigures *figures,
						int64_t timeout_ms)
{
	const WalsizerCurve *curve = &state->curve;
	double		times = (double) timeout_ms / (double) sample->settings.timeout_ms;
	double		demand = (double) walsizer_max(figures->demand, figures->learned);
	WalsizerTimeoutAdvice advice = {.basis = obstacle(curve)};
	double		most;

	if (sample->standby)
		advice.basis = "cannot tell: a standby writes no WAL";
	else if (figures->forced > 0)
		advice.basis = "cannot tell: checkpoints are forced";
	if (advice.basis != NULL)
		return advice;

	most = part_written(curve, times, true);
	advice.known = true;
	advice.basis = times > 1 ? "bounds" : "measured";
	advice.saved_least = 1 - most;
	advice.saved_most = 1 - part_written(curve, times, false);
	advice.needed_mb = walsizer_size_with_headroom(config, &sample->settings,
												   walsizer_to_int64(demand * times * most));
	advice.recovery_ms = walsizer_recovery_time(config, state, sample, advice.needed_mb);
	advice.limited_by = walsizer_forbidding(figures, advice.needed_mb);
	return advice;
}

/*
 * How much less WAL a record takes since the timeout was changed, compared with what
 * was said; false if nothing was said, or it is too early.
 */
bool
walsizer_timeout_saved(const WalsizerState *state, double *saved)
{
	const WalsizerCurve *curve = &state->curve;

	if (curve->said.before_ms == 0 || curve->intervals < LEAST_INTERVALS || curve->records <= 0)
		return false;
	*saved = 1 - curve->bytes / curve->records / curve->said.record_bytes;
	return true;
}

/* The timeouts worth comparing (ms), shortest first; WALSIZER_TIMEOUTS at most. */
int
walsizer_timeouts(const WalsizerSettings *settings, int64_t *timeouts)
{
	static const int minutes[WALSIZER_TIMEOUTS - 1] = {5, 15, 30, 60};
	int64_t		present = settings->timeout_ms;
	int			number = 0;

	for (int i = 0; i < WALSIZER_TIMEOUTS - 1; i++)
		number = append(timeouts, number, minutes[i] * INT64_C(60000), present);
	return append(timeouts, number, present, present);
}
