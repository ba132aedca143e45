/*-------------------------------------------------------------------------
 *
 * test_properties.c
 *	  The policy's invariants in closed loop, with loads at random.
 *
 * Each case follows from its seed alone:
 *
 *		test_properties [--cases=N] [--seed=FIRST]
 *		test_properties --replay=SEED [--csv=FILE]
 *
 * A case that fails is made simpler while it still fails, and printed with the
 * seed that makes it.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define MAX_LEVELS	8

typedef enum Kind
{
	CONSTANT = 0,
	STEP,
	PERIODIC,
	ANYTHING,
	IDLE_WITH_CHECKPOINTS,
	KINDS,
} Kind;

static const char *const kind_names[] = {
	"constant", "step", "periodic", "anything", "idle with checkpoints",
};

typedef struct Case
{
	Kind		kind;
	int64_t		segment_mb;
	int64_t		timeout;		/* s */
	double		completion_target;
	int64_t		from;			/* MB */
	int64_t		max;			/* MB, walsizer.max of ANYTHING */
	int64_t		interval;		/* ms */
	int			num_levels;
	double		rates[MAX_LEVELS];	/* bytes per second */
	double		lengths[MAX_LEVELS];	/* s */
	double		duration;		/* s */
	double		noise;
	double		hot_pages;
	int			marks;			/* one in so many seconds, 0: none */
	bool		late_counters;
	uint64_t	seed;			/* of the noise and the marks */
} Case;

static WalsizerSettings
settings_of(const Case *c)
{
	return (WalsizerSettings) {
		c->segment_mb * WALSIZER_MB, c->from, c->completion_target, c->timeout * 1000
	};
}

/* From when on (s) nothing must change or be forced any more. */
static double
quiet_from(const Case *c)
{
	double		period = 0;

	switch (c->kind)
	{
		case CONSTANT:
			return (double) c->timeout + 2;
		case STEP:
			/* the first whole interval begins at most a window later */
			return c->lengths[0] + 2 * (double) c->timeout + 2;
		default:
			for (int i = 0; i < c->num_levels; i++)
				period += c->lengths[i];
			return fmax(period, (double) c->timeout) * 2;
	}
}

/*-------------------------------------------------------------------------
 * A case from a seed
 *-------------------------------------------------------------------------
 */

static double
log_uniform(SimRandom *r, double from, double to)
{
	return exp(sim_uniform(r, log(from), log(to)));
}

/* A rate that writes a multiple of the trigger point in a timeout. */
static double
rate_of(SimRandom *r, const Case *c, double least, double most)
{
	WalsizerSettings settings = settings_of(c);
	double		trigger_point = (double) walsizer_trigger_point(c->from, &settings);
	double		rate = trigger_point * log_uniform(r, least, most) / (double) c->timeout;

	return fmin(rate, 150 * SIM_MB);
}

static void
make_levels(SimRandom *r, Case *c)
{
	switch (c->kind)
	{
		case CONSTANT:
			c->num_levels = 1;
			c->rates[0] = rate_of(r, c, 0.1, 30);
			c->lengths[0] = c->duration;
			break;
		case STEP:
			c->num_levels = 2;
			c->rates[0] = rate_of(r, c, 0.01, 0.5);
			c->rates[1] = rate_of(r, c, 2, 30);
			c->lengths[0] = (double) c->timeout * sim_uniform(r, 0, 3);
			c->lengths[1] = c->duration;
			break;
		case PERIODIC:
			c->num_levels = 2 + (int) (sim_random(r) % (MAX_LEVELS - 2));
			for (int i = 0; i < c->num_levels; i++)
			{
				c->rates[i] = i % 2 ? rate_of(r, c, 0.5, 30) : rate_of(r, c, 0.001, 0.1);
				c->lengths[i] = floor((double) c->timeout * log_uniform(r, 0.1, 2)) + 1;
			}
			break;
		default:
			c->num_levels = MAX_LEVELS;
			for (int i = 0; i < c->num_levels; i++)
			{
				c->rates[i] = c->kind == ANYTHING ? rate_of(r, c, 0.001, 40) : 5000;
				c->lengths[i] = floor((double) c->timeout * log_uniform(r, 0.05, 3)) + 1;
			}
			break;
	}
}

static void
make_case(Case *c, uint64_t seed)
{
	SimRandom	r = {seed * UINT64_C(0x2545F4914F6CDD1D) + 1};
	const int64_t timeouts[] = {30, 30, 60, 120, 300, 300, 600};
	const int64_t intervals[] = {1000, 1000, 1000, 500, 200, 2000};
	const double targets[] = {0.9, 0.9, 0.9, 0.5, 0, 1, 0.75};

	memset(c, 0, sizeof(*c));
	c->seed = sim_random(&r);
	c->kind = (Kind) (sim_random(&r) % KINDS);
	c->segment_mb = INT64_C(1) << (sim_random(&r) % 3 ? 4 : sim_random(&r) % 8);
	c->timeout = timeouts[sim_random(&r) % 7];
	c->completion_target = targets[sim_random(&r) % 7];
	c->from = (int64_t) log_uniform(&r, 2, 256) * c->segment_mb;
	c->interval = intervals[sim_random(&r) % 6];
	c->duration = (double) c->timeout * sim_uniform(&r, 8, 30);
	make_levels(&r, c);
	c->duration = fmax(c->duration, quiet_from(c) + (double) c->timeout);
	c->late_counters = sim_random(&r) % 2;
	if (c->kind == ANYTHING)
	{
		c->max = (int64_t) log_uniform(&r, 2, 1000000);
		c->noise = sim_uniform(&r, 0, 1.5);
		c->hot_pages = sim_random(&r) % 2 ? log_uniform(&r, 100, 200000) : 0;
		c->marks = sim_random(&r) % 2 ? 20 + (int) (sim_random(&r) % 1000) : 0;
	}
	if (c->kind == IDLE_WITH_CHECKPOINTS)
		c->marks = 5;
}

static bool
next_piece(SimLoad *load, double at, SimPiece *piece)
{
	const Case *c = load->data;
	double		t = at / 1000;
	double		period = 0;
	int			level = 0;

	if (t >= c->duration)
		return false;
	for (int i = 0; i < c->num_levels; i++)
		period += c->lengths[i];
	if (c->kind != STEP)
		t = fmod(t, period);
	while (level < c->num_levels - 1 && t >= c->lengths[level])
		t -= c->lengths[level++];

	piece->ms = 1000;
	piece->bytes = c->rates[level];
	if (c->noise > 0)
		piece->bytes *= exp(sim_uniform(&load->random, -c->noise, c->noise));
	piece->mark = SIM_NOTHING;
	if (c->kind == IDLE_WITH_CHECKPOINTS)
		piece->mark = fmod(at / 1000, 5) == 4 ? SIM_CHECKPOINT : SIM_NOTHING;
	else if (c->marks > 0 && sim_random(&load->random) % (uint64_t) c->marks == 0)
		piece->mark = (SimMark) (1 + sim_random(&load->random) % 6);
	return true;
}

/*-------------------------------------------------------------------------
 * What must hold
 *-------------------------------------------------------------------------
 */

static char why[256];
static FILE *series;			/* of the case that is replayed, or NULL */

#define MUST(condition, ...) \
	do { \
		if (!(condition)) \
		{ \
			snprintf(why, sizeof(why), __VA_ARGS__); \
			return false; \
		} \
	} while (0)

/*
 * So many may be forced before the first sample has even seen the load: what
 * fits into a tick, the way to the server, and the one that is asked for while
 * another runs.  Where the redo pointer stands may cost a segment: if one is
 * all there is, the interval may end as soon as it has begun.
 */
static int64_t
unavoidable(const Case *c)
{
	WalsizerSettings settings = settings_of(c);
	double		fastest = 0;

	for (int i = 0; i < c->num_levels; i++)
		fastest = fmax(fastest, c->rates[i]);
	return (walsizer_checkpoint_segments(c->from, &settings) == 1) +
		(int64_t) (fastest * 2 * ((double) c->interval + 100) / 1000 /
				   fmax((double) (walsizer_trigger_point(c->from, &settings) - settings.segment_bytes),
						(double) settings.segment_bytes / 4));
}

/* The largest WAL of any T for a steady rate. */
static double
window_of(const Case *c, int level)
{
	return c->rates[level] * (double) c->timeout;
}

static bool
holds_for_steady(const Case *c, const SimResult *r, int level)
{
	WalsizerSettings settings = settings_of(c);
	int64_t		need = walsizer_size_for((int64_t) window_of(c, level), &settings);
	double		most = fmax((double) c->from, 1.35 * (double) need);
	double		doublings = fmax(0, log2((double) need / (double) c->from));

	/* the ticks and whole segments of small sizes */
	most += 2 * (double) c->segment_mb * (1 + c->completion_target);
	MUST((double) r->final <= most, "final size %lld, needed %lld",
		 (long long) r->final, (long long) need);
	MUST(r->final >= walsizer_size_for((int64_t) window_of(c, level) - settings.segment_bytes,
									   &settings) || r->final == c->from,
		 "final size %lld is less than the %lld needed",
		 (long long) r->final, (long long) need);
	MUST((double) r->raises <= ceil(doublings) + 2, "%lld raises from %lld to %lld",
		 (long long) r->raises, (long long) c->from, (long long) need);

	MUST(r->forced <= unavoidable(c), "%lld forced, unavoidable are %lld",
		 (long long) r->forced, (long long) unavoidable(c));
	MUST(need > c->from || r->raises == 0, "raised although %lld suffices", (long long) need);
	/*
	 * Where the size reached is enough for most positions of the redo pointer
	 * in its segment, the first that needs more may come late.
	 */
	MUST(r->late_forced == 0 || walsizer_checkpoint_segments(r->early_size, &settings) == 1,
		 "%lld forced after one window", (long long) r->late_forced);
	if (walsizer_size_for((int64_t) window_of(c, level) - settings.segment_bytes,
						  &settings) <= r->early_size)
		return true;
	MUST(r->late_raises + r->late_lowers == 0, "%lld raises, %lld lowers after one window",
		 (long long) r->late_raises, (long long) r->late_lowers);
	return true;
}

/* Is it long enough for what must hold after a while? */
static bool
long_enough(const Case *c)
{
	return c->duration >= quiet_from(c) + (double) c->timeout;
}

static bool
holds(const Case *c)
{
	SimLoad		load;
	SimOptions	options;
	SimResult	r;

	memset(&load, 0, sizeof(load));
	load.settings = settings_of(c);
	load.hot_pages = c->hot_pages;
	load.touch_bytes = 300;
	load.image_bytes = 6000;
	load.seed = c->seed;
	load.next = next_piece;
	load.data = c;
	sim_default_options(&options);
	options.config.sample_interval_ms = c->interval;
	options.config.max_mb = c->kind == ANYTHING ? c->max : INT32_MAX;
	options.late_counters = c->late_counters;
	options.check = true;
	options.csv = series;
	options.quiet_from = quiet_from(c) * 1000;
	sim_run(&load, SIM_WALSIZER, 0, &options, &r);

	MUST(r.broken == NULL, "%s at %.0f s", r.broken, r.broken_at);
	MUST(r.externals == 0, "took its own change for an administrator's");
	switch (c->kind)
	{
		case CONSTANT:
			return holds_for_steady(c, &r, 0);
		case STEP:
			return holds_for_steady(c, &r, 1);
		case PERIODIC:
			MUST(r.returns == 0 && r.lowers <= 1, "%lld lowers, %lld raises after one",
				 (long long) r.lowers, (long long) r.returns);
			MUST(r.late_forced == 0, "%lld forced from the second period on",
				 (long long) r.late_forced);
			break;
		case IDLE_WITH_CHECKPOINTS:
			/* with a trigger point of one segment, any log ends it one day */
			MUST(r.raises + r.lowers == 0 ||
				 walsizer_size_for(5000 * c->timeout, &load.settings) > c->from,
				 "changed an idle server's size");
			break;
		default:
			MUST((double) r.lowers <= c->duration / 3600, "%lld lowers", (long long) r.lowers);
			break;
	}
	return true;
}

/*-------------------------------------------------------------------------
 * Running, shrinking, printing
 *-------------------------------------------------------------------------
 */

static void
print_case(const Case *c)
{
	printf("  %s, from %lldMB, segments of %lldMB, T = %lld s, c = %g, tick %lld ms, %.0f s%s\n",
		   kind_names[c->kind], (long long) c->from, (long long) c->segment_mb,
		   (long long) c->timeout, c->completion_target, (long long) c->interval, c->duration,
		   c->late_counters ? ", late counters" : "");
	printf("  noise %g, hot pages %.0f, a mark in %d s\n", c->noise, c->hot_pages, c->marks);
	for (int i = 0; i < c->num_levels; i++)
		printf("  %.0f s at %.3fMB/s\n", c->lengths[i], c->rates[i] / SIM_MB);
}

/* The n-th way of making a case simpler; false: there are no more. */
static bool
simplify(Case *c, int n)
{
	switch (n)
	{
		case 0: c->duration = floor(c->duration / 2); return true;
		case 1: c->noise = 0; return true;
		case 2: c->hot_pages = 0; return true;
		case 3: c->marks = c->kind == IDLE_WITH_CHECKPOINTS ? c->marks : 0; return true;
		case 4: c->late_counters = false; return true;
		case 5: c->interval = 1000; return true;
		case 6: c->completion_target = 0.9; return true;
		case 7: c->duration = floor(c->duration * 0.9); return true;
		default: break;
	}
	n -= 8;
	if (n >= c->num_levels || c->num_levels <= 2)
		return false;
	for (int i = n; i < c->num_levels - 1; i++)
	{
		c->rates[i] = c->rates[i + 1];
		c->lengths[i] = c->lengths[i + 1];
	}
	c->num_levels--;
	return true;
}

static void
shrink(Case *c)
{
	for (int n = 0, tries = 0; tries < 300; tries++)
	{
		Case		simpler = *c;

		if (!simplify(&simpler, n))
			break;
		if (memcmp(&simpler, c, sizeof(*c)) != 0 && long_enough(&simpler) && !holds(&simpler))
		{
			*c = simpler;
			n = 0;
		}
		else
			n++;
	}
	holds(c);					/* for its reason */
}

static bool
run_seed(uint64_t seed)
{
	Case		c;

	make_case(&c, seed);
	if (holds(&c))
		return true;
	series = NULL;
	printf("case --replay=%llu fails: %s\n", (unsigned long long) seed, why);
	print_case(&c);
	shrink(&c);
	printf("  made simpler: %s\n", why);
	print_case(&c);
	return false;
}

int
main(int argc, char **argv)
{
	uint64_t	seed = 1;
	long		cases = 2000;
	long		failed = 0;

	for (int i = 1; i < argc; i++)
	{
		if (strncmp(argv[i], "--cases=", 8) == 0)
			cases = atol(argv[i] + 8);
		else if (strncmp(argv[i], "--seed=", 7) == 0)
			seed = strtoull(argv[i] + 7, NULL, 0);
		else if (strncmp(argv[i], "--replay=", 9) == 0)
		{
			seed = strtoull(argv[i] + 9, NULL, 0);
			cases = 1;
		}
		else if (strncmp(argv[i], "--csv=", 6) == 0)
			series = fopen(argv[i] + 6, "w");
		else
		{
			fprintf(stderr, "usage: test_properties [--cases=N] [--seed=FIRST] [--replay=SEED] [--csv=FILE]\n");
			return 2;
		}
	}
	for (long i = 0; i < cases && failed < 5; i++)
		failed += !run_seed(seed + (uint64_t) i);
	printf("properties of the policy: %ld cases from seed %llu, %ld failed\n", cases,
		   (unsigned long long) seed, failed);
	return failed > 0;
}
