/*-------------------------------------------------------------------------
 *
 * watch/options.c
 *	  The command line: a table of all options, which is also the usage.
 *
 * Settings of walsizer have their names, units, defaults and ranges, unless
 * a client cannot see what they need.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <getopt.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "watch/watch.h"

#define SECOND		INT64_C(1000)	/* ms */
#define MINUTE		(60 * SECOND)
#define DAY			(24 * 60 * MINUTE)

/* Kinds of options, by the type of the field. */
typedef enum Kind
{
	TEXT,						/* const char * */
	FLAG,						/* bool, without an argument */
	SIZE,						/* int64_t, in parts of "unit" MB */
	RATE,						/* double, likewise */
	TIME,						/* int64_t, in parts of "unit" ms */
	WHOLE,						/* int64_t */
	NUMBER,						/* double */
	VERSION, HELP,
} Kind;

typedef struct Option
{
	const char *name;			/* without help: a heading */
	const char *argument;		/* in the usage */
	int			letter;			/* 0: none */
	Kind		kind;
	size_t		field;			/* of Options */
	const char *help;
	double		unit;			/* 0: one MB or ms */
	double		default_unit;	/* of times, ms; 0: one */
	double		least;			/* in MB, ms, or as it is */
	double		most;			/* 0: both are those of walsizer's setting */
} Option;

#define FIELD(field)	offsetof(Options, field)
#define CONFIG(field)	offsetof(Options, config.field)
#define IN_BYTES		(1.0 / WALSIZER_MB)
#define MOST_MB			(double) WALSIZER_MOST_MB

static const Option table[] = {
	{.name = "Connection:"},
	{"dbname", "=NAME", 'd', TEXT, FIELD(dbname), .help = "database, connection string or URI (postgres)"},
	{"host", "=NAME", 'h', TEXT, FIELD(host), .help = "host, or directory of the socket"},
	{"port", "=NUMBER", 'p', TEXT, FIELD(port), .help = "port"},
	{"username", "=NAME", 'U', TEXT, FIELD(user), .help = "role; pg_monitor is enough"},
	{.name = "What to do:"},
	{"duration", "=TIME", 0, TIME, FIELD(duration_ms), .default_unit = SECOND, .least = SECOND,
		.most = 366 * DAY, .help = "end after this time, such as 1d; else Ctrl-C ends it"},
	{"interval", "=TIME", 0, TIME, CONFIG(sample_interval_ms), .help = "time between two samples (1s)"},
	{"record", "=FILE", 0, TEXT, FIELD(record), .help = "write a trace"},
	{"replay", "=FILE", 0, TEXT, FIELD(replay), .help = "decide on a trace, without a server"},
	{"log", " FILE...", 0, FLAG, FIELD(log), .help = "decide on the server's log; - is standard input"},
	{"json", "", 0, FLAG, FIELD(json), .help = "print the result as JSON"},
	{"prometheus", "=FILE", 0, TEXT, FIELD(prometheus), .help = "keep a file for the textfile collector"},
	{"quiet", "", 'q', FLAG, FIELD(quiet), .help = "print problems only: the exit status tells"},
	{.name = "Settings of walsizer:"},
	{"max", "=SIZE", 0, SIZE, CONFIG(max_mb), .help = "largest size"},
	{"headroom", "=FACTOR", 0, NUMBER, CONFIG(headroom), .help = "on measured demand (1.2)"},
	{"disk-limit", "=SIZE", 0, SIZE, FIELD(disk_limit), .unit = IN_BYTES, .least = 2, .most = MOST_MB,
		.help = "what the disk allows; a client cannot see it"},
	{"max-recovery-time", "=TIME", 0, TIME, CONFIG(max_recovery_ms), .default_unit = SECOND,
		.help = "how long recovery may take at worst (no limit)"},
	{"replay-rate", "=SIZE", 0, RATE, CONFIG(replay_rate), .unit = IN_BYTES, .least = 1, .most = 1024 * 1024,
		.help = "WAL replayed per second in recovery (40MB)"},
	{.name = "What the log does not show:"},
	{"max-wal-size", "=SIZE", 0, SIZE, FIELD(given.max_wal_size_mb), .least = 2, .most = MOST_MB,
		.help = "max_wal_size of the server"},
	{"checkpoint-timeout", "=TIME", 0, TIME, FIELD(given.timeout_ms), .default_unit = SECOND,
		.least = MINUTE / 2, .most = DAY, .help = "its checkpoint_timeout"},
	{"completion-target", "=PART", 0, NUMBER, FIELD(given.completion_target), .most = 1,
		.help = "its checkpoint_completion_target"},
	{"segment-size", "=SIZE", 0, SIZE, FIELD(given.segment_bytes), .unit = IN_BYTES, .least = 1, .most = 1024,
		.help = "size of its WAL segments"},
	{"year", "=YEAR", 0, WHOLE, FIELD(year), .least = 1971, .most = 9999,
		.help = "of its first line, if it is of syslog (this one)"},
	{"pid", "=NUMBER", 0, WHOLE, FIELD(pid), .least = 1, .most = INT32_MAX,
		.help = "the checkpointer, if it is of several servers"},
	{.name = "Other:"},
	{"version", "", 'V', VERSION, .help = "print the version"},
	{"help", "", 0, HELP, .help = "print this"},
};
#define OPTIONS			(int) (sizeof(table) / sizeof(table[0]))

static void
print_usage(void)
{
	printf("Usage: " WATCH_NAME " [OPTION]... [DBNAME | CONNECTION-STRING]\n"
		   "       " WATCH_NAME " --log [OPTION]... FILE...\n"
		   "Watch a PostgreSQL server and say what its max_wal_size should be.\n"
		   "Nothing is loaded into the server or written to it.\n");
	for (const Option *o = table; o < table + OPTIONS; o++)
	{
		char		text[64];

		snprintf(text, sizeof(text), "--%s%s", o->name, o->argument != NULL ? o->argument : "");
		if (o->help == NULL)
			printf("\n%s\n", o->name);
		else if (o->letter != 0)
			printf("  -%c, %-22s%s\n", o->letter, text, o->help);
		else
			printf("      %-22s%s%*s%s\n", text, strlen(text) < 22 ? "" : "\n",
				   strlen(text) < 22 ? 0 : 28, "", o->help);
	}
	printf("\nExit status: 0 if max_wal_size suffices, 1 if it is too small, 2 if unknown.\n");
}

/* A field of Options or of a WalsizerConfig, as a number. */
static double
number_in(Kind kind, const void *field)
{
	return kind == NUMBER ? *(const double *) field : (double) *(const int64_t *) field;
}

/* Set a field with a number within its range.  Ends the program if it is outside. */
static void
set_number(Options *options, const Option *o, const char *text)
{
	static const char *const kinds[] = {
		[SIZE] = "size; units are B, kB, MB, GB and TB", [RATE] = "size; units are B, kB, MB, GB and TB",
		[TIME] = "time; units are ms, s, min, h and d", [WHOLE] = "whole number", [NUMBER] = "number",
	};
	char	   *field = (char *) options + o->field;
	double		least = o->least;
	double		most = o->most;
	double		unit = o->unit != 0 ? o->unit : 1;
	double		number;
	int64_t		whole = 0;
	char	   *end;
	bool		good;

	if (most == 0)
	{
		size_t		setting = o->field - offsetof(Options, config);

		least = number_in(o->kind, (const char *) &walsizer_least + setting) * unit;
		most = number_in(o->kind, (const char *) &walsizer_most + setting) * unit;
	}
	if (o->kind == WHOLE || o->kind == NUMBER)
	{
		number = strtod(text, &end);
		good = end > text && *end == '\0' && isfinite(number) && (o->kind == NUMBER || number == rint(number));
	}
	else
	{
		good = o->kind == TIME ?
			watch_parse_time(text, o->default_unit != 0 ? (int64_t) o->default_unit : 1, &whole) :
			watch_parse_size(text, &whole);
		number = (double) whole;
	}
	if (!good)
		watch_die("--%s: \"%s\" is not a %s", o->name, text, kinds[o->kind]);
	if (number < least || number > most)
		watch_die("--%s: %s is outside the valid range (%lld .. %lld%s)", o->name, text,
				  (long long) least, (long long) most,
				  o->kind == TIME ? "ms" : o->kind == SIZE || o->kind == RATE ? "MB" : "");
	if (o->kind == RATE || o->kind == NUMBER)
		*(double *) field = number / unit;
	else
		*(int64_t *) field = (int64_t) ceil(number / unit);
}

/* Take an option, or print what it asks for and end the program. */
static void
take(Options *options, const Option *o)
{
	char	   *field = (char *) options + o->field;

	switch (o->kind)
	{
		case TEXT:
			*(const char **) field = optarg;
			break;
		case FLAG:
			*(bool *) field = true;
			break;
		case VERSION:
			printf(WATCH_NAME " (walsizer) " WATCH_VERSION "\n");
			exit(0);
		case HELP:
			print_usage();
			exit(0);
		default:
			set_number(options, o, optarg);
	}
}

/* What is given twice or does not fit together. */
static void
check(const Options *options)
{
	const WalsizerSettings *given = &options->given;
	bool		connection = options->dbname != NULL || options->host != NULL ||
		options->port != NULL || options->user != NULL;
	bool		live = options->duration_ms > 0 || options->config.sample_interval_ms != 0;

	if (!options->log && (given->max_wal_size_mb != 0 || given->timeout_ms != 0 ||
						  given->completion_target >= 0 || given->segment_bytes != 0 ||
						  options->year != 0 || options->pid != 0))
		watch_die("an option for what the log does not show needs --log");
	if ((given->segment_bytes & (given->segment_bytes - 1)) != 0)
		watch_die("--segment-size: %lld is no power of two", (long long) given->segment_bytes);
	if (options->log && options->num_files == 0)
		watch_die("--log needs files, or - for standard input");
	if ((options->log || options->replay != NULL) &&
		(connection || live || options->prometheus != NULL ||
		 (options->replay != NULL && (options->log || options->record != NULL))))
		watch_die("--%s cannot be combined with a connection,%s --prometheus, --duration, --interval or another source",
				  options->log ? "log" : "replay", options->log ? "" : " --record,");
}

/* Ends the program if the command line is wrong, or asks only for a text. */
void
watch_parse_options(Options *options, int argc, char **argv)
{
	struct option long_options[OPTIONS + 1] = {{0}};
	int			number = 0;
	int			c;

	*options = (Options) {.config = walsizer_default, .given.completion_target = -1};
	options->config.max_disk_percent = 100;
	options->config.max_mb = walsizer_most.max_mb;
	options->config.lookback_hours = walsizer_most.lookback_hours;
	options->config.prevent_disk_full = false;	/* a client requests nothing */
	options->config.replay_rate = 40.0 * WALSIZER_MB;
	options->config.sample_interval_ms = 0;
	for (int i = 0; i < OPTIONS; i++)
		if (table[i].help != NULL)
			long_options[number++] = (struct option) {
				table[i].name, table[i].argument[0] == '=' ? required_argument : no_argument, NULL, 256 + i
			};
	while ((c = getopt_long(argc, argv, "d:h:p:U:qV", long_options, NULL)) != -1)
	{
		int			i = c >= 256 ? c - 256 : 0;

		while (c < 256 && i < OPTIONS && table[i].letter != c)
			i++;
		if (i == OPTIONS)
		{
			fprintf(stderr, "Try \"" WATCH_NAME " --help\".\n");
			exit(WATCH_COULD_NOT_TELL);
		}
		take(options, &table[i]);
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
	check(options);
	if (options->config.sample_interval_ms == 0)
		options->config.sample_interval_ms = walsizer_default.sample_interval_ms;
}
