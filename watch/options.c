/*-------------------------------------------------------------------------
 *
 * watch/options.c
 *	  The command line.
 *
 * Settings of walsizer have their names, units, defaults and ranges, unless
 * a client cannot see what they need.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "watch/watch.h"

#define MINUTE		(INT64_C(60) * 1000)
#define HOUR		(60 * MINUTE)
#define DAY			(24 * HOUR)

/* The range of a field of WalsizerConfig, or of "field * HOUR" for another unit. */
#define RANGE(field)	walsizer_least.field, walsizer_most.field

static const char *const usage =
"Usage: " WATCH_NAME " [OPTION]... [DBNAME | CONNECTION-STRING]\n"
"       " WATCH_NAME " --log [OPTION]... FILE...\n"
"Watch a PostgreSQL server and say what its max_wal_size should be.\n"
"Nothing is loaded into the server or written to it.\n"
"\n"
"Connection:\n"
"  -d, --dbname=NAME         database, connection string or URI (postgres)\n"
"  -h, --host=NAME           host, or directory of the socket\n"
"  -p, --port=NUMBER         port\n"
"  -U, --username=NAME       role; pg_monitor is enough\n"
"\n"
"What to do:\n"
"      --duration=TIME       end after this time, such as 1d; else Ctrl-C ends it\n"
"      --interval=TIME       time between two samples (1s)\n"
"      --record=FILE         write a trace\n"
"      --replay=FILE         decide on a trace, without a server\n"
"      --log FILE...         decide on the server's log; - is standard input\n"
"      --json                print the result as JSON\n"
"      --prometheus=FILE     keep a file for the textfile collector\n"
"  -q, --quiet               print nothing: the exit status tells\n"
"\n"
"Settings of walsizer:\n"
"      --max=SIZE            largest size (16GB)\n"
"      --min=SIZE            smallest size when lowering (the one in effect)\n"
"      --headroom=FACTOR     on measured demand (1.2)\n"
"      --threshold=NUMBER    forced checkpoints that trigger a raise (1)\n"
"      --no-predict          wait until checkpoints were forced\n"
"      --lookback=TIME       how long peaks are remembered (7d)\n"
"      --disk-limit=SIZE     what the disk allows; a client cannot see it\n"
"      --max-disk-percent=N  share of --disk-limit that may be used (100)\n"
"      --max-recovery-time=TIME\n"
"                            how long recovery may take at worst (no limit)\n"
"      --replay-rate=SIZE    WAL replayed per second in recovery (40MB)\n"
"\n"
"What is not to be inferred from the log:\n"
"      --max-wal-size=SIZE, --checkpoint-timeout=TIME, --completion-target=PART,\n"
"      --segment-size=SIZE   settings of the server\n"
"      --year=YEAR           of its first line, if it is of syslog (this one)\n"
"      --pid=NUMBER          the checkpointer, if it is of several servers\n"
"\n"
"  -V, --version             print the version\n"
"      --help                print this\n"
"\n"
"Exit status: 0 if max_wal_size suffices, 1 if it is too small, 2 if unknown.\n";

enum
{
	OPT_DURATION = 256, OPT_INTERVAL, OPT_RECORD, OPT_REPLAY, OPT_JSON, OPT_PROMETHEUS,
	OPT_MAX, OPT_MIN, OPT_HEADROOM, OPT_THRESHOLD, OPT_NO_PREDICT, OPT_LOOKBACK,
	OPT_DISK_LIMIT, OPT_MAX_DISK_PERCENT, OPT_MAX_RECOVERY_TIME, OPT_REPLAY_RATE, OPT_HELP,
	OPT_LOG, OPT_MAX_WAL_SIZE, OPT_TIMEOUT, OPT_TARGET, OPT_SEGMENT, OPT_YEAR, OPT_PID,
};

static const struct option long_options[] = {
	{"dbname", required_argument, NULL, 'd'},
	{"host", required_argument, NULL, 'h'},
	{"port", required_argument, NULL, 'p'},
	{"username", required_argument, NULL, 'U'},
	{"duration", required_argument, NULL, OPT_DURATION},
	{"interval", required_argument, NULL, OPT_INTERVAL},
	{"record", required_argument, NULL, OPT_RECORD},
	{"replay", required_argument, NULL, OPT_REPLAY},
	{"log", no_argument, NULL, OPT_LOG},
	{"max-wal-size", required_argument, NULL, OPT_MAX_WAL_SIZE},
	{"checkpoint-timeout", required_argument, NULL, OPT_TIMEOUT},
	{"completion-target", required_argument, NULL, OPT_TARGET},
	{"segment-size", required_argument, NULL, OPT_SEGMENT},
	{"year", required_argument, NULL, OPT_YEAR},
	{"pid", required_argument, NULL, OPT_PID},
	{"json", no_argument, NULL, OPT_JSON},
	{"prometheus", required_argument, NULL, OPT_PROMETHEUS},
	{"quiet", no_argument, NULL, 'q'},
	{"max", required_argument, NULL, OPT_MAX},
	{"min", required_argument, NULL, OPT_MIN},
	{"headroom", required_argument, NULL, OPT_HEADROOM},
	{"threshold", required_argument, NULL, OPT_THRESHOLD},
	{"no-predict", no_argument, NULL, OPT_NO_PREDICT},
	{"lookback", required_argument, NULL, OPT_LOOKBACK},
	{"disk-limit", required_argument, NULL, OPT_DISK_LIMIT},
	{"max-disk-percent", required_argument, NULL, OPT_MAX_DISK_PERCENT},
	{"max-recovery-time", required_argument, NULL, OPT_MAX_RECOVERY_TIME},
	{"replay-rate", required_argument, NULL, OPT_REPLAY_RATE},
	{"version", no_argument, NULL, 'V'},
	{"help", no_argument, NULL, OPT_HELP},
	{NULL, 0, NULL, 0},
};

static void
set_defaults(Options *options)
{
	memset(options, 0, sizeof(*options));
	options->config = walsizer_default;
	options->config.max_disk_percent = 100;
	options->config.replay_rate = 40.0 * WALSIZER_MB;
	options->given.completion_target = -1;
}

/* A size in MB within this range. */
static int64_t
size_of(const char *option, const char *text, int64_t least, int64_t most)
{
	int64_t		mb;

	if (!watch_parse_size(text, &mb))
		watch_die("--%s: \"%s\" is not a size; units are B, kB, MB, GB and TB", option, text);
	if (mb < least || mb > most)
		watch_die("--%s: %s is outside the valid range (%lldMB .. %lldMB)", option, text,
				  (long long) least, (long long) most);
	return mb;
}

/* A time in ms within this range. */
static int64_t
time_of(const char *option, const char *text, int64_t default_unit, int64_t least, int64_t most)
{
	int64_t		ms;

	if (!watch_parse_time(text, default_unit, &ms))
		watch_die("--%s: \"%s\" is not a time; units are ms, s, min, h and d", option, text);
	if (ms < least || ms > most)
		watch_die("--%s: %s is outside the valid range (%lldms .. %lldms)", option, text,
				  (long long) least, (long long) most);
	return ms;
}

static double
number_of(const char *option, const char *text, double least, double most)
{
	char	   *end;
	double		number = strtod(text, &end);

	if (end == text || *end != '\0' || !isfinite(number))
		watch_die("--%s: \"%s\" is not a number", option, text);
	if (number < least || number > most)
		watch_die("--%s: %s is outside the valid range (%g .. %g)", option, text, least, most);
	return number;
}

static int
integer_of(const char *option, const char *text, int least, int most)
{
	double		number = number_of(option, text, least, most);

	if (number != rint(number))
		watch_die("--%s: %s is not a whole number", option, text);
	return (int) number;
}

/* An option of the connection or of what to do; false if it is another. */
static bool
take_general(Options *options, int c)
{
	switch (c)
	{
		case 'd':
			options->dbname = optarg;
			break;
		case 'h':
			options->host = optarg;
			break;
		case 'p':
			options->port = optarg;
			break;
		case 'U':
			options->user = optarg;
			break;
		case 'q':
			options->quiet = true;
			break;
		case OPT_DURATION:
			options->duration_ms = time_of("duration", optarg, 1000, 1000, 366 * DAY);
			break;
		case OPT_RECORD:
			options->record = optarg;
			break;
		case OPT_REPLAY:
			options->replay = optarg;
			break;
		case OPT_JSON:
			options->json = true;
			break;
		case OPT_PROMETHEUS:
			options->prometheus = optarg;
			break;
		default:
			return false;
	}
	return true;
}

/* A setting of walsizer; false if it is something else. */
static bool
take_setting(Options *options, int c)
{
	WalsizerConfig *config = &options->config;

	switch (c)
	{
		case OPT_INTERVAL:
			config->sample_interval_ms = time_of("interval", optarg, 1, RANGE(sample_interval_ms));
			break;
		case OPT_MAX:
			config->max_mb = size_of("max", optarg, RANGE(max_mb));
			break;
		case OPT_MIN:
			config->min_mb = size_of("min", optarg, RANGE(min_mb));
			break;
		case OPT_HEADROOM:
			config->headroom = number_of("headroom", optarg, RANGE(headroom));
			break;
		case OPT_THRESHOLD:
			config->threshold = integer_of("threshold", optarg, RANGE(threshold));
			break;
		case OPT_NO_PREDICT:
			config->predict = false;
			break;
		case OPT_LOOKBACK:
			config->lookback_hours = (time_of("lookback", optarg, MINUTE, RANGE(lookback_hours * HOUR)) +
									  HOUR - 1) / HOUR;
			break;
		case OPT_DISK_LIMIT:
			options->disk_limit = size_of("disk-limit", optarg, 2, WALSIZER_MOST_MB) * WALSIZER_MB;
			break;
		case OPT_MAX_DISK_PERCENT:
			config->max_disk_percent = integer_of("max-disk-percent", optarg, RANGE(max_disk_percent));
			break;
		case OPT_MAX_RECOVERY_TIME:
			config->max_recovery_ms = time_of("max-recovery-time", optarg, 1000, RANGE(max_recovery_ms));
			break;
		case OPT_REPLAY_RATE:
			config->replay_rate = (double) size_of("replay-rate", optarg, 1,
												   walsizer_most.replay_rate / WALSIZER_MB) *
				WALSIZER_MB;
			break;
		default:
			return false;
	}
	return true;
}

/* What the log need not tell; false if it is something else. */
static bool
take_given(Options *options, int c)
{
	WalsizerSettings *given = &options->given;

	switch (c)
	{
		case OPT_LOG:
			options->log = true;
			break;
		case OPT_MAX_WAL_SIZE:
			given->max_wal_size_mb = size_of("max-wal-size", optarg, 2, WALSIZER_MOST_MB);
			break;
		case OPT_TIMEOUT:
			given->timeout_ms = time_of("checkpoint-timeout", optarg, 1000, MINUTE / 2, DAY);
			break;
		case OPT_TARGET:
			given->completion_target = number_of("completion-target", optarg, 0, 1);
			break;
		case OPT_SEGMENT:
			given->segment_bytes = size_of("segment-size", optarg, 1, 1024) * WALSIZER_MB;
			if ((given->segment_bytes & (given->segment_bytes - 1)) != 0)
				watch_die("--segment-size: %s is no power of two", optarg);
			break;
		case OPT_YEAR:
			options->year = integer_of("year", optarg, 1971, 9999);
			break;
		case OPT_PID:
			options->pid = integer_of("pid", optarg, 1, INT32_MAX);
			break;
		default:
			return false;
	}
	return true;
}

/* What is given twice or does not fit together. */
static void
check(const Options *options, bool interval_given)
{
	bool		given = options->given.max_wal_size_mb != 0 || options->given.timeout_ms != 0 ||
		options->given.completion_target >= 0 || options->given.segment_bytes != 0 ||
		options->year != 0 || options->pid != 0;

	if (given && !options->log)
		watch_die("what is not to be inferred needs --log");
	if (options->log && options->num_files == 0)
		watch_die("--log needs files, or - for standard input");
	if (options->log &&
		(options->dbname != NULL || options->host != NULL || options->port != NULL ||
		 options->user != NULL || options->replay != NULL || options->duration_ms > 0 ||
		 interval_given))
		watch_die("--log cannot be combined with a connection, --replay, --duration or --interval");
	if (options->replay == NULL)
		return;
	if (options->dbname != NULL || options->host != NULL || options->port != NULL ||
		options->user != NULL)
		watch_die("--replay cannot be combined with connection options");
	if (options->record != NULL || options->duration_ms > 0 || interval_given)
		watch_die("--replay cannot be combined with --record, --duration or --interval");
}

/* Ends the program if the command line is wrong, or asks only for a text. */
void
watch_parse_options(Options *options, int argc, char **argv)
{
	bool		interval_given = false;
	int			c;

	set_defaults(options);
	while ((c = getopt_long(argc, argv, "d:h:p:U:qV", long_options, NULL)) != -1)
	{
		interval_given |= c == OPT_INTERVAL;
		if (take_general(options, c) || take_setting(options, c) || take_given(options, c))
			continue;
		if (c == 'V')
		{
			printf(WATCH_NAME " (walsizer) " WATCH_VERSION "\n");
			exit(0);
		}
		if (c == OPT_HELP)
		{
			fputs(usage, stdout);
			exit(0);
		}
		fprintf(stderr, "Try \"" WATCH_NAME " --help\".\n");
		exit(WATCH_COULD_NOT_TELL);
	}
	if (options->log)
	{
		options->files = argv + optind;
		options->num_files = argc - optind;
		optind = argc;
	}
	if (optind < argc && options->dbname == NULL)
		options->dbname = argv[optind++];
	if (optind < argc)
		watch_die("too many arguments, the first is \"%s\"", argv[optind]);
	check(options, interval_given);
}
