/*-------------------------------------------------------------------------
 *
 * watch/replay.c
 *	  Read a trace, which test/sim/README.md describes.
 *
 * The checksum is known to be right only at the end, so nothing is said of the
 * trace before.  One that ends too early is used as far as it goes: a watch that was
 * killed leaves it like that.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "watch/watch.h"

#define MOST_SEGMENT_MB		1024	/* of any server */

/* More than any server has; what is calculated with them fits into 64 bits. */
#define MOST_UNITS			(INT64_C(1) << 36)
#define MOST_SECONDS		(INT64_C(1) << 40)	/* or samples */
#define MOST_IMAGES			(INT64_C(1) << 44)

struct TraceReader
{
	const char *path;
	FILE	   *file;
	uint64_t	sum;			/* of the lines up to now */
	char	   *text;			/* of the line */
	size_t		room;
	int			line;			/* its number */
	char	   *token;			/* next one of a line of tokens, or NULL */
	int64_t		repeated;		/* samples left of the last token */
	int64_t		wal;			/* of that, in units; like the next */
	int64_t		primary;
	bool		has_primary;
	bool		begun;			/* there was a line "begin" */
	Observation seen;			/* the last */
};

static void damaged(const TraceReader *reader, const char *what)
			__attribute__((noreturn));

static void
damaged(const TraceReader *reader, const char *what)
{
	watch_die("\"%s\" is damaged in line %d: %s", reader->path, reader->line, what);
}

/* The last line has a checksum of all before it. */
static void
check_sum(TraceReader *reader)
{
	long long	samples;
	uint64_t	sum;
	char		rest;

	if (sscanf(reader->text, "end %lld %" SCNx64 "%c", &samples, &sum, &rest) != 2 ||
		sum != reader->sum || getc(reader->file) != EOF)
		watch_die("\"%s\" is damaged: its checksum is wrong", reader->path);
}

/* The next line, or NULL at the end.  The last may be half of one. */
static char *
next_line(TraceReader *reader)
{
	ssize_t		length = getline(&reader->text, &reader->room, reader->file);

	if (ferror(reader->file))
		watch_die("could not read \"%s\": %s", reader->path, strerror(errno));
	if (length <= 0 || reader->text[length - 1] != '\n')
	{
		if (reader->line > 0)
			watch_complain("\"%s\" ends too early; its complete lines are used", reader->path);
		return NULL;
	}
	if (reader->line++ > 0 && strncmp(reader->text, "end ", 4) == 0)
	{
		reader->text[length - 1] = '\0';
		check_sum(reader);
		return NULL;
	}
	reader->sum = watch_checksum(reader->sum, reader->text, (size_t) length);
	reader->text[length - 1] = '\0';
	if (strlen(reader->text) != (size_t) length - 1)
		watch_die("\"%s\" is not a trace", reader->path);
	return reader->text;
}

/* Ends the program if there is no such file or it is no trace of ours. */
TraceReader *
watch_trace_open(const char *path, int64_t *interval_ms, int64_t *start)
{
	TraceReader *reader = watch_allocate(sizeof(TraceReader));
	const char *line;
	int			version;
	double		interval;
	long long	began;

	reader->path = path;
	reader->sum = WATCH_CHECKSUM_START;
	reader->file = fopen(path, "r");
	if (reader->file == NULL)
		watch_die("could not open \"%s\": %s", path, strerror(errno));
	line = next_line(reader);
	if (line == NULL || sscanf(line, "walsizer-trace %d", &version) != 1)
		watch_die("\"%s\" is not a trace", path);
	if (version != 1)
		watch_die("\"%s\" is a trace of version %d, this program reads version 1", path, version);
	line = next_line(reader);
	if (line == NULL || sscanf(line, "set interval %lf", &interval) != 1 ||
		!(interval >= 0.1 && interval <= 60))
		damaged(reader, "no interval");
	line = next_line(reader);
	if (line == NULL || sscanf(line, "set start %lld", &began) != 1 || began < 0 ||
		began > MOST_SECONDS)
		damaged(reader, "no time of the start");
	*interval_ms = (int64_t) (interval * 1000 + 0.5);
	*start = began;
	reader->seen = WATCH_NOTHING_SEEN;
	reader->seen.tick = -1;
	return reader;
}

static bool
is_within(long long number, int64_t most)
{
	return number >= -most && number <= most;
}

/* A position from one in units; -1: not known. */
static int64_t
position_of(const TraceReader *reader, int64_t units)
{
	int64_t		segment = reader->seen.settings.segment_bytes;

	if (units < WATCH_UNKNOWN || units > MOST_UNITS || segment == 0)
		damaged(reader, "not a position");
	return units == WATCH_UNKNOWN ? WATCH_UNKNOWN : units * (segment / WATCH_UNITS_PER_SEGMENT);
}

/* A line with something that changed; false if it is none. */
static bool
read_change(TraceReader *reader, const char *line)
{
	Observation *seen = &reader->seen;
	WalsizerSettings *settings = &seen->settings;
	double		value;
	long long	a;
	long long	b;

	if (sscanf(line, "set segment %lf", &value) == 1 && value >= 1 && value <= MOST_SEGMENT_MB)
		settings->segment_bytes = (int64_t) value * WALSIZER_MB;
	else if (sscanf(line, "set max_wal_size %lf", &value) == 1 && value >= 1 && value <= WALSIZER_MOST_MB)
		settings->max_wal_size_mb = (int64_t) value;
	else if (sscanf(line, "set completion_target %lf", &value) == 1 && value >= 0 && value <= 1)
		settings->completion_target = value;
	else if (sscanf(line, "set timeout %lf", &value) == 1 && value > 0 && value <= INT32_MAX)
		settings->timeout_ms = (int64_t) (value * 1000 + 0.5);
	else if ((sscanf(line, "begin primary %lld %lld", &a, &b) == 2 ||
			  sscanf(line, "begin standby %lld %lld", &a, &b) == 2) &&
			 is_within(a, MOST_SECONDS) && b >= 0)
	{
		/* another server, or restarted */
		seen->begins = reader->begun = true;
		seen->standby = line[6] == 's';
		seen->timer_s = a;
		seen->position = position_of(reader, b);
	}
	else if (sscanf(line, "source %23[a-z ]", seen->source) == 1)
		return true;
	else if (sscanf(line, "gap %lld", &a) == 1 && a > 0 && a <= INT32_MAX)
		seen->tick += a;
	else if (sscanf(line, "redo %lld %lld", &a, &b) == 2 && is_within(b, MOST_SECONDS))
	{
		seen->completed = position_of(reader, a);
		seen->started_s = b;
	}
	else if (sscanf(line, "counters %lld %lld", &a, &b) == 2 && a >= -1 && b >= -1)
	{
		seen->requested = a;
		seen->timed = b;
	}
	else if (sscanf(line, "images %lld %lld", &a, &b) == 2 && a >= -1 && b >= -1 &&
			 is_within(a, MOST_IMAGES) && is_within(b, WATCH_MOST_SUM))
	{
		seen->images = a;
		seen->image_bytes = b;
	}
	else if (sscanf(line, "primary %lld", &a) == 1)
		seen->primary = position_of(reader, a);
	else if (sscanf(line, "busy %lld", &a) == 1 && a >= -1 && a <= 1)
		seen->busy = (int) a;
	else
		return line[0] == '#' || line[0] == '\0';
	return true;
}

static long long
read_number(TraceReader *reader, char **text)
{
	char	   *end;
	long long	number = strtoll(*text, &end, 10);

	if (end == *text || !is_within(number, MOST_UNITS))
		damaged(reader, "not a number");
	*text = end;
	return number;
}

/* The next token of the line, WAL[/PRIMARY][*TIMES]; false at its end. */
static bool
read_token(TraceReader *reader)
{
	char	   *text = reader->token;

	while (text != NULL && *text == ' ')
		text++;
	if (text == NULL || *text == '\0')
		return false;
	reader->wal = read_number(reader, &text);
	reader->has_primary = *text == '/';
	reader->repeated = 1;
	if (reader->has_primary)
	{
		text++;
		reader->primary = read_number(reader, &text);
	}
	if (*text == '*')
	{
		text++;
		reader->repeated = read_number(reader, &text);
	}
	if ((*text != ' ' && *text != '\0') || reader->repeated < 1 ||
		reader->repeated > WATCH_MOST_REPEATED)
		damaged(reader, "not a number of units");
	reader->token = text;
	return true;
}

/* Go on to the next sample; false at the end of the trace. */
static bool
find_sample(TraceReader *reader)
{
	char	   *line;

	while (reader->repeated == 0 && !read_token(reader))
	{
		line = next_line(reader);
		reader->token = NULL;
		if (line == NULL)
			return false;
		if (strncmp(line, "wal", 3) == 0)
			reader->token = line + 3;
		else if (!read_change(reader, line))
			damaged(reader, "not understood");
	}
	return true;
}

/* The next observation, if there is one.  Ends the program if the trace is damaged. */
bool
watch_trace_next(TraceReader *reader, Observation *seen)
{
	int64_t		segment;

	reader->seen.begins = false;
	if (!find_sample(reader))
	{
		seen->tick = reader->seen.tick;
		return false;
	}
	if (!reader->begun)
		damaged(reader, "it has not begun");
	reader->repeated--;
	segment = reader->seen.settings.segment_bytes;
	reader->seen.tick++;
	reader->seen.position += reader->wal * (segment / WATCH_UNITS_PER_SEGMENT);
	if (reader->has_primary && reader->seen.primary != WATCH_UNKNOWN)
		reader->seen.primary += reader->primary * (segment / WATCH_UNITS_PER_SEGMENT);
	if (reader->seen.position < 0 || reader->seen.position > MOST_UNITS * WALSIZER_MB ||
		reader->seen.primary < WATCH_UNKNOWN || reader->seen.primary > MOST_UNITS * WALSIZER_MB ||
		reader->seen.settings.timeout_ms <= 0 || reader->seen.settings.max_wal_size_mb <= 0 ||
		segment < WALSIZER_MB || reader->seen.tick > MOST_SECONDS)
		damaged(reader, "not a possible sample");
	*seen = reader->seen;
	return true;
}

void
watch_trace_free(TraceReader *reader)
{
	fclose(reader->file);
	free(reader->text);
	free(reader);
}
