/*-------------------------------------------------------------------------
 *
 * walsizer_sim.c
 *	  The simulator: loads, policies, one table.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim.h"

static const char *const usage =
"Usage: walsizer_sim [OPTION]... [LOAD | FILE]...\n"
"Run loads on a model of the server's checkpointing, with several policies.\n"
"Without a LOAD: all that end soon.  A FILE is a trace, see trace.c.\n"
"\n"
"  -l, --list                 name the loads\n"
"  -p, --policy=NAME          only this one; may be repeated (walsizer, classic,\n"
"                             shrinking, static, oracle)\n"
"      --static=MB            a static size, may be repeated\n"
"      --csv=FILE             write the series, one line per second and policy\n"
"      --check=FILE           compare with limits: LOAD MEASURE LIMIT in each line\n"
"      --total                one line for all loads together\n"
"      --scenes               the scenes instead of the loads\n"
"      --random=RUNS          random loads instead, from --seed on: what the worst have\n"
"      --any                  with any settings, and slow storage\n"
"      --swing                with a limit by disk or recovery time that swings\n"
"      --changes              what walsizer changed, and what it missed\n"
"      --seed=NUMBER          of the random numbers (1)\n"
"      --from=MB              max_wal_size at the beginning\n"
"      --timeout=S            checkpoint_timeout\n"
"      --segment=MB           wal_segment_size\n"
"      --completion-target=C  checkpoint_completion_target\n"
"      --hot-pages=N          pages that get images after each checkpoint\n"
"      --rate=MB              what the load's rate is, per second\n"
"      --duration=S           how long the load lasts\n"
"      --max=MB --headroom=F --threshold=N --lookback=H --interval=MS\n"
"      --no-predict           walsizer's settings\n"
"      --speed                print how many samples a second were run\n";

#define MAX_STATIC	8

typedef struct Args
{
	SimOptions	options;
	bool		policies[SIM_ORACLE + 1];
	bool		chosen;
	int64_t		statics[MAX_STATIC];
	int			num_statics;
	const char *check;
	bool		total;
	bool		scenes;
	int			random;
	SimSearch	search;
	bool		speed;
	uint64_t	seed;
	double		from;
	double		timeout;
	double		segment;
	double		completion_target;	/* -1: the load's */
	double		hot_pages;		/* -1: the load's */
	double		rate;
	double		duration;
} Args;

typedef struct Total
{
	int64_t		forced;
	int64_t		raises;
	int64_t		lowers;
	double		ratio;			/* sum of mean / oracle */
	double		worst;
	int			loads;
} Total;

static void
print_heading(void)
{
	printf("%-10s %-12s %6s %7s %6s %6s %6s %7s %6s %6s %8s %6s %8s %6s %9s %9s %6s\n",
		   "load", "policy", "forced", "old val", "timed", "other", "share", "hurried", "raises", "lowers",
		   "mean MB", "/orcl", "final MB", "/orcl", "WAL MB", "pg_wal MB", "paced");
}

static void
print_result(const SimLoad *load, const char *policy, const SimResult *r, int64_t oracle)
{
	char		paced[16] = "-";
	double		hurried = r->lasted > 0 ? 100 * r->hurried_time / r->lasted : 0;

	if (r->time_paced >= 0)
		snprintf(paced, sizeof(paced), "%.0f%%", 100 * r->time_paced);
	printf("%-10s %-12s %6lld %7lld %6lld %6lld %5.1f%% %6.1f%% %6lld %6lld %8.0f %6.2f %8lld %6.2f %9.0f %9.0f %6s\n",
		   load->name, policy, (long long) r->forced, (long long) r->forced_old_value,
		   (long long) r->timed, (long long) r->other, 100 * r->forced_share, hurried,
		   (long long) r->raises, (long long) r->lowers, r->mean, r->mean / (double) oracle,
		   (long long) r->final, (double) r->final / (double) oracle, r->wal / SIM_MB,
		   r->peak_files / SIM_MB, paced);
	fflush(stdout);
}

static void
add_total(Total *total, const SimResult *r, int64_t oracle)
{
	double		ratio = r->mean / (double) oracle;

	total->forced += r->forced;
	total->raises += r->raises;
	total->lowers += r->lowers;
	total->ratio += ratio;
	total->worst = ratio > total->worst ? ratio : total->worst;
	total->loads++;
}

/*
 * Does walsizer keep the limits of this load?  mean, final and peak are in parts
 * of the oracle's size, classic and hurried shares.
 */
static bool
check_limits(const char *path, const SimLoad *load, const SimResult *r, int64_t oracle)
{
	const SimMeasure measures[] = {
		{"forced", (double) r->forced, false},
		{"preventable", (double) r->preventable, false},
		{"misjudged", (double) r->misjudged, false},
		{"raises", (double) r->raises, false},
		{"commanded", (double) r->commanded, false},
		{"lowers", (double) r->lowers, false},
		{"returns", (double) r->returns, false},
		{"mean", r->mean / (double) oracle, false},
		{"final", (double) r->final / (double) oracle, false},
		{"peak", (double) r->peak / (double) oracle, false},
		{"classic", r->forced_share, false},
		{"hurried", r->lasted > 0 ? r->hurried_time / r->lasted : 0, false},
		{"paced", r->time_paced, true},
		{NULL, 0, false}
	};

	return sim_keeps_limits(path, load->name, measures);
}

static void
change_load(SimLoad *load, const Args *args)
{
	if (args->from > 0)
		load->settings.max_wal_size_mb = (int64_t) args->from;
	if (args->timeout > 0)
		load->settings.timeout_ms = (int64_t) (args->timeout * 1000);
	if (args->segment > 0)
		load->settings.segment_bytes = (int64_t) args->segment * WALSIZER_MB;
	if (args->completion_target >= 0)
		load->settings.completion_target = args->completion_target;
	if (args->hot_pages >= 0)
		load->hot_pages = args->hot_pages;
	if (args->rate > 0)
		load->rate = args->rate * SIM_MB;
	if (args->duration > 0)
		load->duration = args->duration * 1000;
}

static bool
run_load(const char *name, const Args *args, Total *totals)
{
	SimLoad		load;
	SimResult	r;
	int64_t		oracle;
	bool		kept = true;

	if (!sim_load_find(&load, name, args->seed) && !sim_load_read(&load, name))
		return false;
	change_load(&load, args);
	oracle = sim_oracle(&load, &args->options);

	for (int p = SIM_WALSIZER; p <= SIM_ORACLE; p++)
	{
		clock_t		start = clock();

		if (!args->policies[p] || p == SIM_STATIC)
			continue;
		sim_run(&load, (SimPolicy) p, oracle, &args->options, &r);
		print_result(&load, sim_policy_name((SimPolicy) p), &r, oracle);
		add_total(&totals[p], &r, oracle);
		if (p == SIM_WALSIZER && args->check != NULL)
			kept = check_limits(args->check, &load, &r, oracle);
		if (args->speed && r.samples > 0)
			printf("%lld samples in %.2f s of processor time, %.2f million a second\n",
				   (long long) r.samples, (double) (clock() - start) / CLOCKS_PER_SEC,
				   (double) r.samples / ((double) (clock() - start) / CLOCKS_PER_SEC) / 1e6);
	}
	for (int i = 0; i < args->num_statics; i++)
	{
		char		policy[32];

		snprintf(policy, sizeof(policy), "%lldMB", (long long) args->statics[i]);
		sim_run(&load, SIM_STATIC, args->statics[i], &args->options, &r);
		print_result(&load, policy, &r, oracle);
	}
	free(load.pieces);
	return kept;
}

static void
choose_policy(Args *args, const char *name)
{
	for (int p = SIM_WALSIZER; p <= SIM_ORACLE; p++)
		if (strcmp(name, sim_policy_name((SimPolicy) p)) == 0)
		{
			args->policies[p] = args->chosen = true;
			return;
		}
	fprintf(stderr, "there is no policy \"%s\"\n", name);
	exit(2);
}

enum
{
	OPT_STATIC = 256, OPT_CSV, OPT_CHECK, OPT_TOTAL, OPT_SEED, OPT_FROM, OPT_TIMEOUT,
	OPT_SEGMENT, OPT_COMPLETION, OPT_HOT, OPT_RATE, OPT_DURATION, OPT_MAX, OPT_HEADROOM,
	OPT_THRESHOLD, OPT_LOOKBACK, OPT_INTERVAL, OPT_NO_PREDICT, OPT_SPEED, OPT_SCENES, OPT_CHANGES,
	OPT_RANDOM, OPT_ANY, OPT_SWING,
};

static const struct option long_options[] = {
	{"list", no_argument, NULL, 'l'}, {"policy", required_argument, NULL, 'p'},
	{"help", no_argument, NULL, 'h'}, {"static", required_argument, NULL, OPT_STATIC},
	{"csv", required_argument, NULL, OPT_CSV}, {"check", required_argument, NULL, OPT_CHECK},
	{"total", no_argument, NULL, OPT_TOTAL}, {"seed", required_argument, NULL, OPT_SEED},
	{"from", required_argument, NULL, OPT_FROM}, {"timeout", required_argument, NULL, OPT_TIMEOUT},
	{"segment", required_argument, NULL, OPT_SEGMENT},
	{"completion-target", required_argument, NULL, OPT_COMPLETION},
	{"hot-pages", required_argument, NULL, OPT_HOT}, {"rate", required_argument, NULL, OPT_RATE},
	{"duration", required_argument, NULL, OPT_DURATION}, {"max", required_argument, NULL, OPT_MAX},
	{"headroom", required_argument, NULL, OPT_HEADROOM},
	{"threshold", required_argument, NULL, OPT_THRESHOLD},
	{"lookback", required_argument, NULL, OPT_LOOKBACK},
	{"interval", required_argument, NULL, OPT_INTERVAL},
	{"no-predict", no_argument, NULL, OPT_NO_PREDICT}, {"speed", no_argument, NULL, OPT_SPEED},
	{"scenes", no_argument, NULL, OPT_SCENES}, {"changes", no_argument, NULL, OPT_CHANGES},
	{"random", required_argument, NULL, OPT_RANDOM}, {"any", no_argument, NULL, OPT_ANY},
	{"swing", no_argument, NULL, OPT_SWING},
	{NULL, 0, NULL, 0},
};

static void
open_csv(Args *args, const char *path)
{
	args->options.csv = fopen(path, "w");
	if (args->options.csv == NULL)
	{
		perror(path);
		exit(2);
	}
	fprintf(args->options.csv,
			"second,policy,max_wal_size,lsn,used,demand,rate,forced,timed,action,reason\n");
}

static void
list_loads(void)
{
	for (int i = 0; sim_load_name(i) != NULL; i++)
		printf("%s\n", sim_load_name(i));
	exit(0);
}

static void
parse_option(Args *args, int c)
{
	WalsizerConfig *config = &args->options.config;
	double		number = optarg ? atof(optarg) : 0;

	switch (c)
	{
		case 'l': list_loads(); break;
		case 'p': choose_policy(args, optarg); break;
		case OPT_CSV: open_csv(args, optarg); break;
		case OPT_CHECK: args->check = optarg; break;
		case OPT_TOTAL: args->total = true; break;
		case OPT_SPEED: args->speed = true; break;
		case OPT_SCENES: args->scenes = true; break;
		case OPT_RANDOM: args->random = (int) number; break;
		case OPT_ANY: args->search = SIM_SEARCH_ANY; break;
		case OPT_SWING: args->search = SIM_SEARCH_SWING; break;
		case OPT_CHANGES: args->options.changes = stdout; break;
		case OPT_SEED: args->seed = strtoull(optarg, NULL, 0); break;
		case OPT_FROM: args->from = number; break;
		case OPT_TIMEOUT: args->timeout = number; break;
		case OPT_SEGMENT: args->segment = number; break;
		case OPT_COMPLETION: args->completion_target = number; break;
		case OPT_HOT: args->hot_pages = number; break;
		case OPT_RATE: args->rate = number; break;
		case OPT_DURATION: args->duration = number; break;
		case OPT_MAX: config->max_mb = (int64_t) number; break;
		case OPT_HEADROOM: config->headroom = number; break;
		case OPT_THRESHOLD: config->threshold = (int) number; break;
		case OPT_LOOKBACK: config->lookback_hours = (int64_t) number; break;
		case OPT_INTERVAL: config->sample_interval_ms = (int64_t) number; break;
		case OPT_NO_PREDICT: config->predict = false; break;
		case OPT_STATIC:
			if (args->num_statics < MAX_STATIC)
				args->statics[args->num_statics++] = (int64_t) number;
			break;
		default:
			fputs(usage, c == 'h' ? stdout : stderr);
			exit(c == 'h' ? 0 : 2);
	}
}

static void
print_totals(const Total *totals)
{
	printf("\n%-12s %6s %6s %6s %10s %10s\n", "all loads", "forced", "raises", "lowers",
		   "mean/orcl", "worst");
	for (int p = SIM_WALSIZER; p <= SIM_ORACLE; p++)
		if (totals[p].loads > 0)
			printf("%-12s %6lld %6lld %6lld %10.2f %10.2f\n", sim_policy_name((SimPolicy) p),
				   (long long) totals[p].forced, (long long) totals[p].raises,
				   (long long) totals[p].lowers, totals[p].ratio / totals[p].loads,
				   totals[p].worst);
}

/* All loads together: "all classic SHARE" limits the share of its forced. */
static bool
check_totals(const char *path, const Total *totals)
{
	SimLoad		all = {.name = "all"};
	SimResult	r = {0};

	if (totals[SIM_CLASSIC].loads == 0 || totals[SIM_CLASSIC].forced == 0)
		return true;
	r.forced_share = (double) totals[SIM_WALSIZER].forced / (double) totals[SIM_CLASSIC].forced;
	return check_limits(path, &all, &r, 1);
}

int
main(int argc, char **argv)
{
	Args		args = {.seed = 1, .completion_target = -1, .hot_pages = -1};
	Total		totals[SIM_ORACLE + 1] = {{0}};
	bool		good = true;
	int			c;

	sim_default_options(&args.options);
	while ((c = getopt_long(argc, argv, "lp:h", long_options, NULL)) != -1)
		parse_option(&args, c);
	for (int p = SIM_WALSIZER; p <= SIM_ORACLE && !args.chosen; p++)
		args.policies[p] = true;

	if (args.random > 0)
		return sim_search(args.search, args.random, args.seed, &args.options, args.check) ? 0 : 1;
	print_heading();
	for (int i = optind; i < argc; i++)
		good &= run_load(argv[i], &args, totals);
	for (int i = 0; optind == argc && sim_load_name(i) != NULL; i++)
		if (args.scenes ? sim_load_is_scene(i) : sim_load_counts(i))
			good &= run_load(sim_load_name(i), &args, totals);
	if (args.total)
		print_totals(totals);
	if (args.check != NULL && optind == argc)
		good &= check_totals(args.check, totals);
	if (args.options.csv != NULL && fclose(args.options.csv) != 0)
		good = false;
	return good ? 0 : 1;
}
