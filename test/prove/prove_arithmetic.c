/*-------------------------------------------------------------------------
 *
 * prove_arithmetic.c
 *	  walsizer_trigger_point() equals the server's arithmetic, and
 *	  walsizer_size_for() is sufficient and minimal.  walsizer_candidates() gives
 *	  at most WALSIZER_CANDIDATES sizes.
 *
 *		prove_arithmetic			what takes seconds
 *		prove_arithmetic --all		all sizes whose quotient is an integer
 *		prove_arithmetic --target=K ...	every size, with the targets K / 1000
 *
 * What is checked: all segment sizes (1MB to 1024MB), the 1001 completion
 * targets of three digits, and sizes up to the largest that the server
 * accepts.  There are 2 ^ 31 sizes of one segment size and target.  Why fewer
 * suffice:
 *
 * 1. A segment size counts only as the number m of segments that fit into a
 * size, so all sizes with segments of 1MB include the others.
 *
 * 2. Let d be the double 1 + c, D the exact (1000 + k) / 1000, and f(m) the
 * server's CheckPointSegments.  f never falls, because rounding, division by d
 * and truncation keep the order.  So m is the smallest number of segments with
 * f(m) >= n if f(m) >= n and f(m - 1) < n: two values of f are enough.
 *
 * 3. c is at most 2 ^ -54 from k / 1000 and 1 + c is rounded by at most
 * 2 ^ -53, so n * d is at most 2 ^ -21 from n * D for n < 2 ^ 31, and a
 * quotient or a product is rounded by less than 2 ^ -21.  If n * D is not an
 * integer, it is 1/1000 or more from one, and no rounding matters: the
 * smallest m is the n * D rounded up, and the n * d that walsizer_size_for()
 * begins with is one less, truncated.  Rounding decides only where n * D is an
 * integer: --all checks all of these.
 *
 * 4. If d is exact (c is a multiple of 1/8), f(n * D) is exactly n there.
 * Twice m and twice n give twice the quotient, with the same bits, so --all
 * need not check both n and 2n: the n from half of the largest on include all.
 *
 * The program stops at the first deviation.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policy.h"

#define MB			WALSIZER_MB
#define MOST_MB		INT64_C(2147483647) /* MAX_KILOBYTES of 64-bit servers */
#define LEAST_SEGMENTS	2		/* the server does not start with less */

#define EACH_UP_TO	8000		/* segments: all sizes up to that */

static int64_t checked;			/* sizes or demands */

#define MUST(condition, ...) \
	do { \
		if (!(condition)) \
		{ \
			printf(__VA_ARGS__); \
			exit(1); \
		} \
	} while (0)

/*
 * The server's CheckPointSegments, in the types that it uses: max_wal_size in
 * whole segments (ConvertToXSegs, an integer division), divided by 1 plus the
 * completion target, truncated, at least 1.  See CalculateCheckpointSegments()
 * in src/backend/access/transam/xlog.c, the same in 15 to 19.
 */
static inline int
server_segments(int size_mb, int segment_bytes, double completion_target)
{
	double		quotient = (double) (size_mb / (segment_bytes / 1048576)) /
		(1.0 + completion_target);

	return (int) quotient > 1 ? (int) quotient : 1;
}

/*
 * Does WAL force a checkpoint, when it ends this far behind a redo pointer at
 * this offset in its segment?  The server compares each segment that it has filled
 * with that of the redo pointer: XLogCheckpointNeeded() in xlog.c.
 */
static bool
server_forces(int segments, int64_t segment_bytes, int64_t offset, int64_t wal)
{
	int64_t		last_filled = (offset + wal) / segment_bytes - 1;

	return last_filled >= segments - 1;
}

static WalsizerSettings
settings_with(int64_t segment_mb, int target)
{
	return (WalsizerSettings) {segment_mb * MB, 1024, target / 1000.0, 300000};
}

/* The server reads "0.123" with strtod(): is that the quotient used here? */
static void
check_parsing(void)
{
	for (int k = 0; k <= 1000; k++)
	{
		char		text[16];
		volatile double quotient = k / 1000.0;

		snprintf(text, sizeof(text), "%d.%03d", k / 1000, k % 1000);
		MUST(strtod(text, NULL) == quotient, "strtod(\"%s\") is not %d / 1000.0\n", text, k);
	}
}

/* One size: equal to the server's, and not less than that of the size before. */
static int64_t
check_one_size(int64_t mb, const WalsizerSettings *settings, int64_t before)
{
	int			server = server_segments((int) mb, (int) settings->segment_bytes,
										 settings->completion_target);

	MUST(walsizer_checkpoint_segments(mb, settings) == server &&
		 walsizer_trigger_point(mb, settings) == server * settings->segment_bytes,
		 "%" PRId64 "MB, segments of %" PRId64 " bytes, target %.3f: %" PRId64 ", but the server has %d\n",
		 mb, settings->segment_bytes, settings->completion_target,
		 walsizer_checkpoint_segments(mb, settings), server);
	MUST(server >= before, "%" PRId64 "MB, target %.3f: less than one segment less\n",
		 mb, settings->completion_target);
	checked++;
	return server;
}

/* Each size (MB) in this range of segments, with what does not fill one. */
static void
check_sizes(int64_t from, int64_t to, const WalsizerSettings *settings)
{
	int64_t		segment_mb = settings->segment_bytes / MB;
	int64_t		before = 1;

	for (int64_t segments = from; segments <= to; segments++)
	{
		before = check_one_size(segments * segment_mb, settings, before);
		if (segment_mb > 1 && segments * segment_mb + segment_mb - 1 <= MOST_MB)
			before = check_one_size(segments * segment_mb + segment_mb - 1, settings, before);
	}
}

/*
 * The size for WAL that needs this number of CheckPointSegments, with the
 * fewest and with the most bytes that need it.  Sufficient: the server
 * forces nothing, at the worst offset of the redo pointer.  Minimal: with one
 * segment less it would, for positions that are multiples of 8 as those of
 * WAL records are.  If no size suffices that the server accepts, it is the
 * largest.
 */
static void
check_one_demand(int64_t needed, const WalsizerSettings *settings)
{
	int64_t		bytes = settings->segment_bytes;
	int64_t		segment_mb = bytes / MB;
	int64_t		most = MOST_MB / segment_mb;
	int64_t		largest = (needed - 1) * bytes;
	int64_t		mb = walsizer_size_for(largest, settings);
	int64_t		segments = mb / segment_mb;
	int64_t		fewest = needed > 1 ? largest - bytes + 8 : 0;
	int			server;
	int			less;

	MUST(mb % segment_mb == 0 && segments >= LEAST_SEGMENTS && segments <= most,
		 "%" PRId64 " segments of WAL: %" PRId64 "MB\n", needed - 1, mb);
	MUST(walsizer_size_for(fewest, settings) == mb && walsizer_size_for(largest - 1, settings) == mb,
		 "%" PRId64 " segments of WAL: not the same size for all that need as many\n", needed - 1);
	server = server_segments((int) mb, (int) bytes, settings->completion_target);
	MUST(segments == most || !server_forces(server, bytes, bytes - 1, largest),
		 "%" PRId64 " segments of WAL, target %.3f: %" PRId64 "MB force a checkpoint\n",
		 needed - 1, settings->completion_target, mb);
	less = server_segments((int) (mb - segment_mb), (int) bytes, settings->completion_target);
	MUST(segments == LEAST_SEGMENTS || server_forces(less, bytes, bytes - 8, fewest),
		 "%" PRId64 " segments of WAL, target %.3f: less than %" PRId64 "MB suffices\n",
		 needed - 1, settings->completion_target, mb);
	checked++;
}

/* The last sizes that the server accepts, and demands that need more. */
static void
check_largest(const WalsizerSettings *settings)
{
	int64_t		segment_mb = settings->segment_bytes / MB;
	int64_t		most = MOST_MB / segment_mb;
	int64_t		beyond = walsizer_checkpoint_segments(MOST_MB, settings);

	check_sizes(most - 100, most, settings);
	check_one_size(MOST_MB, settings, 1);
	for (int64_t needed = beyond - 100; needed <= beyond + 100; needed++)
		check_one_demand(needed, settings);
	for (int64_t needed = most - 2; needed <= most + 2; needed++)
		check_one_demand(needed, settings);
	MUST(walsizer_size_for(INT64_MAX, settings) == most * segment_mb,
		 "any more WAL does not have the largest size\n");
	MUST(walsizer_size_for(INT64_MIN, settings) == LEAST_SEGMENTS * segment_mb,
		 "no WAL does not have the smallest size\n");
}

/* All segment sizes and targets, with all small sizes and the largest. */
static void
check_small_and_largest(void)
{
	for (int64_t segment_mb = 1; segment_mb <= 1024; segment_mb *= 2)
		for (int k = 0; k <= 1000; k++)
		{
			WalsizerSettings settings = settings_with(segment_mb, k);

			check_sizes(0, EACH_UP_TO, &settings);
			for (int64_t needed = 1; needed <= EACH_UP_TO / 2; needed++)
				check_one_demand(needed, &settings);
			check_largest(&settings);
		}
}

/* Sizes to compare: ascending, not too many, and the wanted one among them. */
static void
check_some_candidates(const WalsizerSettings *settings, int64_t wanted)
{
	int64_t		sizes[2 * WALSIZER_CANDIDATES];
	int			number = walsizer_candidates(settings, wanted, sizes);
	bool		has_wanted = wanted <= 0;

	MUST(number <= WALSIZER_CANDIDATES, "%d candidates for %" PRId64 "MB\n", number,
		 settings->max_wal_size_mb);
	for (int i = 0; i < number; i++)
	{
		has_wanted |= sizes[i] == wanted;
		MUST(i == 0 || sizes[i] > sizes[i - 1], "candidates of %" PRId64 "MB do not ascend\n",
			 settings->max_wal_size_mb);
	}
	MUST(has_wanted, "%" PRId64 "MB is not among the candidates\n", wanted);
	checked++;
}

/* From 64 segments on, an eighth of the size is several segments. */
static void
check_candidates(void)
{
	for (int64_t segment_mb = 1; segment_mb <= 1024; segment_mb *= 2)
		for (int64_t mb = 1; mb <= 64 * segment_mb; mb++)
		{
			WalsizerSettings settings = settings_with(segment_mb, 900);
			int64_t		sizes[2 * WALSIZER_CANDIDATES];
			int			number;

			settings.max_wal_size_mb = mb;
			number = walsizer_candidates(&settings, 0, sizes);
			check_some_candidates(&settings, 0);
			check_some_candidates(&settings, MOST_MB);
			for (int i = 0; i < number; i++)
				for (int64_t wanted = sizes[i] - 1; wanted <= sizes[i] + 1; wanted++)
					check_some_candidates(&settings, wanted);
		}
}

static int
common_divisor(int a, int b)
{
	return b == 0 ? a : common_divisor(b, a % b);
}

/*
 * Demands that need a whole number of segments, times 1 + c: see 3. and 4.
 * above.  Their sizes are checked, too, as the demands' own and the one below.
 */
static void
check_integer_quotients(int k)
{
	int			each = 1000 / common_divisor(1000, k);
	WalsizerSettings settings = settings_with(1, k);
	int64_t		largest = walsizer_checkpoint_segments(MOST_MB, &settings);

	if (each <= 8)
		return;					/* 1 + c is exact */
	for (int64_t n = (largest / 2 / each) * each; n <= largest; n += each)
		if (n > 0)
		{
			int64_t		mb = n * (1000 + k) / 1000;

			check_one_size(mb, &settings, check_one_size(mb - 1, &settings, 1));
			check_one_demand(n, &settings);
		}
}

/* Every size and every demand with this target. */
static void
check_every_size(int k)
{
	WalsizerSettings settings = settings_with(1, k);
	int64_t		largest = walsizer_checkpoint_segments(MOST_MB, &settings);

	check_sizes(0, MOST_MB, &settings);
	for (int64_t needed = 1; needed <= largest + 1; needed++)
		check_one_demand(needed, &settings);
}

int
main(int argc, char **argv)
{
	if (FLT_EVAL_METHOD != 0)
	{
		printf("proof of the arithmetic: not here, doubles have excess precision\n");
		return 0;
	}
	check_parsing();
	if (argc == 1)
	{
		check_small_and_largest();
		check_candidates();
	}
	for (int i = 1; i < argc; i++)
	{
		if (strcmp(argv[i], "--all") == 0)
			for (int k = 0; k <= 1000; k++)
				check_integer_quotients(k);
		else if (strncmp(argv[i], "--target=", 9) == 0)
			check_every_size(atoi(argv[i] + 9));
		else
		{
			fprintf(stderr, "usage: prove_arithmetic [--all] [--target=THOUSANDTHS]...\n");
			return 2;
		}
	}
	printf("proof of the arithmetic: %" PRId64 " sizes and demands, all as the server's\n", checked);
	return 0;
}
