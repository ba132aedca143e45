/*-------------------------------------------------------------------------
 *
 * watch/trace.c
 *	  Write observations as a trace, and read them; test/sim/README.md describes it.
 *
 * A week must fit into a few megabytes, so only what changes is written, and most samples
 * are one small number.  A trace is used as far as it goes: a kill leaves it without an end.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "watch/watch.h"

#define FLUSH_MS		300000	/* what a kill may lose of equal samples, at most */
#define MOST_REPEATED	3600	/* an idle hour is seen in the file */

/* More than any server has; what is calculated with them fits into 64 bits. */
#define MOST_UNITS		(INT64_C(1) << 36)
#define MOST_SECONDS	(INT64_C(1) << 40)	/* or samples */
#define MOST_IMAGES		(INT64_C(1) << 44)

/* A number of a line, which is an int64_t of an Observation. */
typedef struct Number
{
	size_t		field;
	int64_t		unit;			/* 0: a position, which has units of its own */
	int64_t		least;			/* in units, like the next */
	int64_t		most;
} Number;

/* A line that is written when one of its numbers has changed. */
typedef struct Line
{
	const char *name;
	int			count;
	Number		numbers[2];
} Line;

#define FIELD(field)	offsetof(Observation, field)

static const Line lines[] = {
	{"set segment", 1, {{FIELD(settings.segment_bytes), WALSIZER_MB, 1, 1024}}},
	{"set max_wal_size", 1, {{FIELD(settings.max_wal_size_mb), 1, 1, WALSIZER_MOST_MB}}},
	{"set timeout", 1, {{FIELD(settings.timeout_ms), 1000, 1, INT32_MAX}}},
	{"redo", 2, {{FIELD(completed), 0, WATCH_UNKNOWN, MOST_UNITS},
	{FIELD(started_s), 1, -MOST_SECONDS, MOST_SECONDS}}},
	{"counters", 2, {{FIELD(requested), 1, WATCH_UNKNOWN, INT64_MAX},
	{FIELD(timed), 1, WATCH_UNKNOWN, INT64_MAX}}},
	{"primary", 1, {{FIELD(primary), 0, WATCH_UNKNOWN, MOST_UNITS}}},
	{"busy", 1, {{FIELD(busy), 1, WATCH_UNKNOWN, 1}}},
	{"images", 2, {{FIELD(images), 1, WATCH_UNKNOWN, MOST_IMAGES},
	{FIELD(image_bytes), 1, WATCH_UNKNOWN, WATCH_MOST_SUM}}},
};
#define LINES			(int) (sizeof(lines) / sizeof(lines[0]))

static int64_t
value_of(const Observation *seen, const Number *number)
{
	return *(const int64_t *) ((const char *) seen + number->field);
}

/* What a number counts; 0: what it does is not known yet. */
static int64_t
unit_of(const Observation *seen, const Number *number)
{
	return number->unit != 0 ? number->unit : seen->settings.segment_bytes / WATCH_UNITS_PER_SEGMENT;
}

/* A number as it is written. */
static int64_t
units(const Observation *seen, const Number *number)
{
	int64_t		value = value_of(seen, number);

	return value == WATCH_UNKNOWN ? value : value / unit_of(seen, number);
}

static const Number position = {FIELD(position), 0, 0, MOST_UNITS};

struct TraceWriter
{
	FILE	   *file;			/* its error indicator tells whether writing failed */
	const char *path;
	Observation before;
	char		token[48];		/* of the last sample, not written yet */
	int64_t		repeated;		/* how often it came; 0: there is none */
	int64_t		most_repeated;
};

/* Write out the last sample.  If we are killed, the file is complete up to here. */
static FILE *
end_samples(TraceWriter *writer)
{
	if (writer->repeated > 1)
		fprintf(writer->file, "wal %s*%lld\n", writer->token, (long long) writer->repeated);
	else if (writer->repeated == 1)
		fprintf(writer->file, "wal %s\n", writer->token);
	writer->repeated = 0;
	fflush(writer->file);
	return writer->file;
}

/* Ends the program if the file cannot be written: nothing is lost yet. */
TraceWriter *
watch_trace_create(const char *path, int64_t interval_ms, int64_t start)
{
	TraceWriter *writer = watch_allocate(sizeof(TraceWriter));
	struct stat existing;

	writer->path = path;
	writer->before.tick = -1;
	writer->most_repeated = FLUSH_MS / interval_ms;
	if (stat(path, &existing) == 0 && S_ISREG(existing.st_mode) && existing.st_size > 0)
		watch_die("\"%s\" exists already, and is not replaced", path);
	writer->file = fopen(path, "w");
	if (writer->file == NULL)
		watch_die("could not create \"%s\": %s", path, strerror(errno));
	fprintf(writer->file, "walsizer-trace 1\nset interval %g\nset start %lld\n",
			(double) interval_ms / 1000, (long long) start);
	if (fflush(writer->file) != 0)
		watch_die("could not write \"%s\": %s", path, strerror(errno));
	return writer;
}

/* The lines for what changed since the observation before. */
static void
put_changes(TraceWriter *writer, const Observation *seen)
{
	const Observation *before = &writer->before;

	if (seen->tick > before->tick + 1)
		fprintf(end_samples(writer), "gap %lld\n", (long long) (seen->tick - before->tick - 1));
	if (seen->settings.completion_target != before->settings.completion_target)
		fprintf(end_samples(writer), "set completion_target %.17g\n", seen->settings.completion_target);
	for (const Line *line = lines; line < lines + LINES; line++)
	{
		bool		changed = seen->begins && strncmp(line->name, "set", 3) != 0;

		for (int i = 0; i < line->count; i++)
		{
			int64_t		now = value_of(seen, &line->numbers[i]);
			int64_t		then = value_of(before, &line->numbers[i]);

			/* tokens have what the primary writes */
			changed |= line->numbers[i].field == FIELD(primary) ?
				(now == WATCH_UNKNOWN) != (then == WATCH_UNKNOWN) : now != then;
		}
		if (!changed)
			continue;
		fputs(line->name, end_samples(writer));
		for (int i = 0; i < line->count; i++)
			fprintf(writer->file, " %lld", (long long) units(seen, &line->numbers[i]));
		putc('\n', writer->file);
	}
	if (strcmp(seen->source, before->source) != 0)
		fprintf(end_samples(writer), "source %s\n", seen->source);
	if (seen->begins)
		fprintf(end_samples(writer), "begin %s %lld %lld\n", seen->standby ? "standby" : "primary",
				(long long) seen->timer_s, (long long) units(seen, &position));
}

/* Write one observation.  False, having said why, if that fails. */
bool
watch_trace_write(TraceWriter *writer, const Observation *seen)
{
	Observation *before = &writer->before;
	long long	wal = seen->begins ? 0 : units(seen, &position) - units(before, &position);
	char		token[48];
	int			length = snprintf(token, sizeof(token), "%lld", wal);

	if (!seen->begins && seen->primary != WATCH_UNKNOWN && before->primary != WATCH_UNKNOWN)
		snprintf(token + length, sizeof(token) - (size_t) length, "/%lld",
				 (long long) ((seen->primary - before->primary) / unit_of(seen, &position)));
	put_changes(writer, seen);
	if (strcmp(token, writer->token) != 0 || writer->repeated >= writer->most_repeated)
		(void) end_samples(writer);
	memcpy(writer->token, token, sizeof(token));
	writer->repeated++;
	*before = *seen;
	if (ferror(writer->file))
		watch_complain("could not write \"%s\": %s", writer->path, strerror(errno));
	return !ferror(writer->file);
}

/* End the trace at the time of this tick, and free the writer.  False, having said why, if that fails. */
bool
watch_trace_close(TraceWriter *writer, int64_t tick)
{
	bool		said = ferror(writer->file);
	int64_t		gap = tick - writer->before.tick - 1;
	bool		good;

	if (gap > 0 && writer->before.tick >= 0)
		fprintf(end_samples(writer), "gap %lld\n", (long long) gap);
	fputs("end\n", end_samples(writer));
	good = !ferror(writer->file);
	good = fclose(writer->file) == 0 && good;
	if (!good && !said)
		watch_complain("could not write \"%s\": %s", writer->path, strerror(errno));
	free(writer);
	return good;
}

struct TraceReader
{
	const char *path;
	FILE	   *file;
	char	   *text;			/* of the line */
	size_t		room;
	int			line;			/* its number */
	const char *token;			/* rest of a line of tokens */
	long long	repeated;		/* samples left of the last token */
	long long	wal;			/* of that, in units; like the next */
	long long	received;
	bool		begun;			/* there was a line "begin" */
	Observation seen;			/* the last */
};

static void __attribute__((noreturn))
damaged(const TraceReader *reader, const char *what)
{
	watch_die("\"%s\" is damaged in line %d: %s", reader->path, reader->line, what);
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
		watch_complain("\"%s\" ends too early; its complete lines are used", reader->path);
		return NULL;
	}
	reader->line++;
	reader->text[length - 1] = '\0';
	return strcmp(reader->text, "end") == 0 ? NULL : reader->text;
}

/* Ends the program if there is no such file or it is no trace of ours. */
TraceReader *
watch_trace_open(const char *path, int64_t *interval_ms, int64_t *start)
{
	TraceReader *reader = watch_allocate(sizeof(TraceReader));
	int			version;
	double		interval;
	long long	began;
	int			number;

	reader->path = path;
	reader->line = 3;
	reader->token = "";
	reader->file = fopen(path, "r");
	if (reader->file == NULL)
		watch_die("could not open \"%s\": %s", path, strerror(errno));
	number = fscanf(reader->file, "walsizer-trace %d set interval %lf set start %lld%*[\n]",
					&version, &interval, &began);
	if (number < 1)
		watch_die("\"%s\" is not a trace", path);
	if (version != 1)
		watch_die("\"%s\" is a trace of version %d, this program reads version 1", path, version);
	if (number < 3 || !(interval >= 0.1 && interval <= 60) || began < 0 || began > MOST_SECONDS)
		damaged(reader, "no interval, or no time of the start");
	*interval_ms = (int64_t) (interval * 1000 + 0.5);
	*start = began;
	reader->seen = WATCH_NOTHING_SEEN;
	reader->seen.tick = -1;
	return reader;
}

/* Read a number of a line; false if it is none, or outside of its range. */
static bool
read_number(Observation *seen, const Number *number, char **text)
{
	char	   *end;
	long long	value = strtoll(*text, &end, 10);
	bool		good = end > *text && value >= number->least && value <= number->most && unit_of(seen, number) > 0;

	if (good)
		*(int64_t *) ((char *) seen + number->field) = number->unit == 0 && value == WATCH_UNKNOWN ?
			WATCH_UNKNOWN : value * unit_of(seen, number);
	*text = end;
	return good;
}

/* A line with numbers; false if it is none. */
static bool
read_numbers(TraceReader *reader, char *text)
{
	for (const Line *line = lines; line < lines + LINES; line++)
	{
		size_t		length = strlen(line->name);
		char	   *rest = text + length;
		int			i = 0;

		if (strncmp(text, line->name, length) != 0 || *rest != ' ')
			continue;
		while (i < line->count && read_number(&reader->seen, &line->numbers[i], &rest))
			i++;
		return i == line->count && *rest == '\0';
	}
	return false;
}

/* A line with something that changed; false if it is none. */
static bool
read_change(TraceReader *reader, char *line)
{
	static const Number timer = {FIELD(timer_s), 1, -MOST_SECONDS, MOST_SECONDS};
	Observation *seen = &reader->seen;
	double		target;
	long long	gap;

	if (strncmp(line, "begin primary ", 14) == 0 || strncmp(line, "begin standby ", 14) == 0)
	{
		seen->begins = reader->begun = true;
		seen->standby = line[6] == 's';
		line += 14;
		return read_number(seen, &timer, &line) && read_number(seen, &position, &line);
	}
	if (sscanf(line, "set completion_target %lf", &target) == 1 && target >= 0 && target <= 1)
		seen->settings.completion_target = target;
	else if (sscanf(line, "gap %lld", &gap) == 1 && gap > 0 && gap <= INT32_MAX)
		seen->tick += gap;
	else if (sscanf(line, "source %23[a-z ]", seen->source) != 1)
		return read_numbers(reader, line) || line[0] == '#' || line[0] == '\0';
	return true;
}

/* The next token of the line, WAL[/RECEIVED][*TIMES]; false at its end. */
static bool
read_token(TraceReader *reader)
{
	int			used = 0;
	int			more = 0;
	char		after;

	reader->token += strspn(reader->token, " ");
	if (*reader->token == '\0')
		return false;
	reader->repeated = 1;
	reader->received = 0;
	(void) sscanf(reader->token, "%lld%n/%lld%n", &reader->wal, &used, &reader->received, &used);
	if (reader->token[used] == '*')
		(void) sscanf(reader->token + used, "*%lld%n", &reader->repeated, &more);
	used += more;
	after = reader->token[used];
	if (used == 0 || (after != ' ' && after != '\0') || reader->wal < 0 || reader->wal > MOST_UNITS ||
		reader->received < -MOST_UNITS || reader->received > MOST_UNITS ||
		reader->repeated < 1 || reader->repeated > MOST_REPEATED)
		damaged(reader, "not a number of units");
	reader->token += used;
	return true;
}

/* Go on to the next sample; false at the end of the trace. */
static bool
find_sample(TraceReader *reader)
{
	while (reader->repeated == 0 && !read_token(reader))
	{
		char	   *line = next_line(reader);

		reader->token = "";
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
	Observation *now = &reader->seen;
	int64_t		unit;

	now->begins = false;
	if (!find_sample(reader))
	{
		seen->tick = now->tick;
		return false;
	}
	if (!reader->begun)
		damaged(reader, "it has not begun");
	unit = unit_of(now, &position);
	reader->repeated--;
	now->tick++;
	now->position += reader->wal * unit;
	if (now->primary != WATCH_UNKNOWN)
		now->primary += reader->received * unit;
	if (now->position > MOST_UNITS * WALSIZER_MB || now->primary > MOST_UNITS * WALSIZER_MB ||
		now->primary < WATCH_UNKNOWN || now->settings.timeout_ms <= 0 || now->settings.max_wal_size_mb <= 0 ||
		now->settings.segment_bytes <= 0 || now->tick > MOST_SECONDS)
		damaged(reader, "not a possible sample");
	*seen = *now;
	return true;
}
