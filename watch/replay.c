/*-------------------------------------------------------------------------
 *
 * watch/replay.c
 *	  Read a trace, which test/sim/README.md describes.
 *
 * The file is read whole and its checksum is compared before any of it counts.
 * One that ends too early is used as far as it goes: a watch that was killed
 * leaves it like that.
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

#define MOST_BYTES			(256 * 1024 * 1024)	/* of a file */
#define MOST_SEGMENT_MB		1024	/* of any server */

/* More than any server has; what is calculated with them fits into 64 bits. */
#define MOST_UNITS			(INT64_C(1) << 36)
#define MOST_SECONDS		(INT64_C(1) << 40)	/* or samples */
#define MOST_IMAGES			(INT64_C(1) << 44)

struct TraceReader
{
	const char *path;
	char	   *text;			/* lines end with zero bytes */
	size_t		length;
	char	   *next;			/* line */
	int			line;			/* of which this is the number */
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

static void
read_file(TraceReader *reader)
{
	FILE	   *file = fopen(reader->path, "r");
	size_t		room = 1024 * 1024;

	if (file == NULL)
		watch_die("could not open \"%s\": %s", reader->path, strerror(errno));
	reader->text = malloc(room + 1);
	while (reader->text != NULL)
	{
		reader->length += fread(reader->text + reader->length, 1, room - reader->length, file);
		if (reader->length < room || room >= MOST_BYTES)
			break;
		room *= 2;
		reader->text = realloc(reader->text, room + 1);
	}
	if (reader->text == NULL)
		watch_die("out of memory");
	if (ferror(file))
		watch_die("could not read \"%s\": %s", reader->path, strerror(errno));
	if (reader->length >= MOST_BYTES)
		watch_die("\"%s\" is too large", reader->path);
	reader->text[reader->length] = '\0';
	fclose(file);
}

/* The last line has a checksum of all before it. */
static void
check_sum(TraceReader *reader)
{
	const char *end = strstr(reader->text, "\nend ");
	long long	samples;
	uint64_t	sum;
	char		rest;

	if (strlen(reader->text) != reader->length)
		watch_die("\"%s\" is not a trace", reader->path);
	if (end == NULL)
	{
		watch_complain("\"%s\" ends too early; its complete lines are used", reader->path);
		/* the last line may be half of one */
		while (reader->length > 0 && reader->text[reader->length - 1] != '\n')
			reader->length--;
		reader->text[reader->length] = '\0';
		return;
	}
	end++;
	if (sscanf(end, "end %lld %" SCNx64 "%c", &samples, &sum, &rest) != 3 || rest != '\n' ||
		strchr(end, '\n')[1] != '\0' ||
		watch_checksum(WATCH_CHECKSUM_START, reader->text, (size_t) (end - reader->text)) != sum)
		watch_die("\"%s\" is damaged: its checksum is wrong", reader->path);
}

/* The next line, or NULL. */
static char *
next_line(TraceReader *reader)
{
	char	   *line = reader->next;
	char	   *end;

	if (line == NULL || *line == '\0')
		return NULL;
	end = strchr(line, '\n');
	reader->next = end != NULL ? end + 1 : NULL;
	if (end != NULL)
		*end = '\0';
	reader->line++;
	return line;
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
	read_file(reader);
	if (sscanf(reader->text, "walsizer-trace %d\n", &version) != 1)
		watch_die("\"%s\" is not a trace", path);
	if (version != 1)
		watch_die("\"%s\" is a trace of version %d, this program reads version 1", path, version);
	check_sum(reader);
	reader->next = reader->text;
	(void) next_line(reader);
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
	reader->seen.tick = -1;
	reader->seen.busy = WATCH_UNKNOWN;
	reader->seen.completed = reader->seen.primary = WATCH_UNKNOWN;
	reader->seen.requested = reader->seen.timed = WATCH_UNKNOWN;
	reader->seen.images = reader->seen.image_bytes = WATCH_UNKNOWN;
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

static bool
read_setting(TraceReader *reader, const char *key, double value)
{
	WalsizerSettings *settings = &reader->seen.settings;

	if (!(value >= 0 && value <= 2147483647))
		return false;
	if (strcmp(key, "segment") == 0 && value <= MOST_SEGMENT_MB)
		settings->segment_bytes = (int64_t) value * WALSIZER_MB;
	else if (strcmp(key, "max_wal_size") == 0)
		settings->max_wal_size_mb = (int64_t) value;
	else if (strcmp(key, "completion_target") == 0)
		settings->completion_target = value;
	else if (strcmp(key, "timeout") == 0)
		settings->timeout_ms = (int64_t) (value * 1000 + 0.5);
	else
		return false;
	return true;
}

/* "begin": another server, or restarted. */
static bool
read_begin(TraceReader *reader, const char *line)
{
	Observation *seen = &reader->seen;
	char		role[16];
	long long	timer;
	long long	position;

	if (sscanf(line, "begin %15s %lld %lld", role, &timer, &position) != 3 || position < 0 ||
		!is_within(timer, MOST_SECONDS) ||
		(strcmp(role, "primary") != 0 && strcmp(role, "standby") != 0))
		return false;
	seen->begins = reader->begun = true;
	seen->standby = strcmp(role, "standby") == 0;
	seen->timer_s = timer;
	seen->position = position_of(reader, position);
	return true;
}

/* A line with something that changed; false if it is none. */
static bool
read_change(TraceReader *reader, const char *line)
{
	Observation *seen = &reader->seen;
	char		key[32];
	double		value;
	long long	a;
	long long	b;

	if (sscanf(line, "set %31s %lf", key, &value) == 2)
		return read_setting(reader, key, value);
	if (strncmp(line, "begin ", 6) == 0)
		return read_begin(reader, line);
	if (strncmp(line, "source ", 7) == 0)
		seen->source = watch_source_of(line + 7);
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
	const char *line;

	while (reader->repeated == 0 && !read_token(reader))
	{
		line = next_line(reader);
		reader->token = NULL;
		if (line == NULL || strncmp(line, "end ", 4) == 0)
			return false;
		if (strncmp(line, "wal", 3) == 0)
			reader->token = (char *) line + 3;
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
	free(reader->text);
	free(reader);
}
