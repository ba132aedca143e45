/*-------------------------------------------------------------------------
 *
 * watch/logfile.c
 *	  Files of a server's log: lines, times, processes, and the formats stderr,
 *	  csvlog and jsonlog, with what syslog, journald and containers add.
 *
 * One pass with one buffer: a line that does not fit into it has no message of
 * ours.  A line counts only if the server wrote it as a message of level LOG.
 * What a statement contains follows another message, a tab, or lies in another
 * field.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "watch/log.h"

#define LINE_SIZE		65536
#define MOST_PREFIX		1000	/* bytes before a message */

/* Columns of csvlog; the last from 13 on. */
enum
{
	CSV_PID = 3, CSV_NUMBER = 6, CSV_SEVERITY = 11, CSV_MESSAGE = 13, CSV_BACKEND = 23, CSV_MOST = 26,
};

typedef struct Reader
{
	LogTaker	take;
	void	   *state;
	bool		quoted;			/* csvlog: the next line continues a field */
	int			year;			/* syslog: of the last line, like the next */
	int			month;
	bool		only_time;		/* stop at the first line with a time */
	int64_t		time;			/* of that line, or -1 */
} Reader;

/* "Jun  7 04:00:03", which has no year: after December comes the next. */
static int64_t
syslog_time(Reader *reader, const char *text)
{
	static const char *const months = "JanFebMarAprMayJunJulAugSepOctNovDec";
	char		name[4];
	char		full[48];
	int			day;
	int			used = 0;
	const char *month;

	if (sscanf(text, "%3[A-Za-z] %2d %n", name, &day, &used) != 2 || used != 7 ||
		(month = strstr(months, name)) == NULL || (month - months) % 3 != 0)
		return -1;
	if (reader->month == 12 && month == months)
		reader->year++;
	reader->month = (int) (month - months) / 3 + 1;
	snprintf(full, sizeof(full), "%04d-%02d-%02d %.12s", reader->year, reader->month, day, text + used);
	return watch_parse_timestamp(full);
}

/*
 * The time of a line whose prefix goes up to "end": the server's own, which has
 * a space, or else that of a wrapper, given or found; -1 if there is none.  Syslog
 * may begin with a priority, and a container's name may have a colour.
 */
static int64_t
find_time(Reader *reader, const char *line, const char *end, int64_t wrapper)
{
	bool		in_word = false;
	const char *date = *line == '<' ? line + strcspn(line, ">") + 1 : line;

	if (date < end && isupper((unsigned char) *date) && syslog_time(reader, date) >= 0)
		wrapper = syslog_time(reader, date);
	for (const char *p = line; p < end; p++)
	{
		if (!in_word && isdigit((unsigned char) *p) && watch_parse_timestamp(p) >= 0)
		{
			if (p[10] == ' ')
				return watch_parse_timestamp(p);
			if (wrapper < 0)
				wrapper = watch_parse_timestamp(p);
		}
		if (*p == '\033')
			p += strcspn(p, "m");
		else
			in_word = isalnum((unsigned char) *p) != 0;
	}
	return wrapper;
}

/* The process that a prefix names, [123] or pid=123; 0 if none. */
static int64_t
find_pid(const char *line, const char *end)
{
	for (const char *p = line; p < end; p++)
	{
		size_t		skip = *p == '[' ? 1 : strncmp(p, "pid=", 4) == 0 ? 4 : 0;
		size_t		length = skip > 0 ? strspn(p + skip, "0123456789") : 0;

		if (length > 0 && length < 10 && (skip == 4 || p[1 + length] == ']'))
			return strtol(p + skip, NULL, 10);
	}
	return 0;
}

/* Does the line continue a message?  Then it has a tab before what looks like another. */
static bool
continues(const char *line, const char *end)
{
	const char *syslog = strstr(line, "#011");

	return memchr(line, '\t', (size_t) (end - line)) != NULL || (syslog != NULL && syslog < end);
}

/* Hand on a message of level LOG, unless it has no time. */
static void
take(Reader *reader, const char *text, int64_t ms, int64_t pid, int64_t number)
{
	LogEntry	entry = {ms, pid, number, {0}};

	if (ms >= 0 && ms < LOG_MOST_MS && watch_log_message(text, &entry.message))
		reader->take(reader->state, &entry);
}

/*
 * A line of text, whose level ends here.  With log_error_verbosity = verbose an
 * SQLSTATE follows.
 */
static void
take_text(Reader *reader, const char *line, const char *level, int64_t wrapper)
{
	const char *client = strstr(line, "client backend");	/* %b */
	const char *text = level + 1 + strspn(level + 1, " ");
	LogMessage	message;

	if (level - line > MOST_PREFIX || continues(line, level))
		return;
	if (reader->only_time)
		reader->time = find_time(reader, line, level, wrapper);
	else if (watch_log_is_severity(line, (size_t) (level - line)) &&
			 (client == NULL || client > level))
	{
		text += strncmp(text, "00000: ", 7) == 0 ? 7 : 0;
		if (watch_log_message(text, &message))	/* it is fast, times are not */
			take(reader, text, find_time(reader, line, level, wrapper), find_pid(line, level), 0);
	}
}

/* May a process of this kind write our messages?  Others only imitate them. */
static bool
may_write(const char *backend)
{
	return backend[0] == '\0' || strcmp(backend, "checkpointer") == 0 ||
		strcmp(backend, "postmaster") == 0 || strcmp(backend, "startup") == 0;
}

/* Divide a line of csvlog into fields, in place; returns their number. */
static int
split_csv(char *from, char **fields)
{
	int			number = 0;
	bool		more = true;

	while (more && number < CSV_MOST)
	{
		char	   *to = from;
		bool		quoted = *from == '"';

		fields[number++] = to;
		from += quoted;
		while (*from != '\0' && (quoted || *from != ','))
		{
			if (quoted && *from == '"' && *++from != '"')
				quoted = false;
			else
				*to++ = *from++;
		}
		more = *from == ',';
		from++;
		*to = '\0';
	}
	return number;
}

/*
 * A record of csvlog; false if it is none.  If its first line has an odd number
 * of quotes, a field continues in the next.
 */
static bool
take_csv(Reader *reader, char *line, bool odd_quotes)
{
	const char *comma = memchr(line, ',', strnlen(line, 40));
	int64_t		ms = comma != NULL && isdigit((unsigned char) *line) ? watch_parse_timestamp(line) : -1;
	char	   *fields[CSV_MOST];
	char		copy[LINE_SIZE + 1];
	int			number;

	if (ms < 0)
		return false;
	number = split_csv(strcpy(copy, line), fields);
	if (number <= CSV_SEVERITY || strspn(fields[CSV_PID], "0123456789") == 0)
		return false;
	reader->quoted = odd_quotes;
	if (reader->only_time)
		reader->time = ms;
	else if (number > CSV_MESSAGE && !odd_quotes &&
			 watch_log_is_severity(fields[CSV_SEVERITY], strlen(fields[CSV_SEVERITY])) &&
			 may_write(number > CSV_BACKEND ? fields[CSV_BACKEND] : ""))
		take(reader, fields[CSV_MESSAGE], ms, strtol(fields[CSV_PID], NULL, 10),
			 strtol(fields[CSV_NUMBER], NULL, 10));
	return true;
}

/*
 * A line of JSON: a message of the server, or a wrapper around a line.  Some have
 * both; then the line begins with its time.
 */
static void
take_json(Reader *reader, char *line, int64_t wrapper, int depth)
{
	LogJson		json;

	if (!watch_log_json(line, &json))
		return;
	if (json.ms < 0)
		json.ms = wrapper;
	if (reader->only_time && json.ms >= 0)
		reader->time = json.ms;
	else if (json.severity[0] != '\0' && (json.line == NULL || watch_parse_timestamp(json.line) < 0))
	{
		if (watch_log_is_severity(json.severity, strlen(json.severity)) && may_write(json.backend))
			take(reader, json.message, json.ms, json.pid, json.number);
	}
	else if (json.line != NULL && json.line[0] == '{')
	{
		if (depth == 0)
			take_json(reader, json.line, json.ms, 1);
	}
	else if (json.line != NULL)
	{
		json.line[strcspn(json.line, "\r\n")] = '\0';
		take_text(reader, json.line, watch_log_level(json.line), json.ms);
	}
}

/*
 * A line, which ends with a zero byte; longer ones are cut.  JSON may have a prefix,
 * but no level before it: then it is part of a message.
 */
static void
take_line(Reader *reader, char *line, size_t length, bool odd_quotes)
{
	const char *level;
	char	   *object;

	if (reader->quoted)			/* csvlog */
	{
		reader->quoted = !odd_quotes;
		return;
	}
	/* YAML has quotation marks around it */
	while (length > 0 && (isspace((unsigned char) line[length - 1]) || line[length - 1] == '\''))
		length--;
	line[length] = '\0';
	if (strlen(line) != length || take_csv(reader, line, odd_quotes) || length == LINE_SIZE)
		return;
	level = watch_log_level(line);
	object = strchr(line, '{');
	if (line[strspn(line, " ")] == '"')	/* an object of several lines */
		take_json(reader, line, -1, 0);
	else if (object != NULL && object - line < 100 && object[1] == '"' && (level == NULL || object < level))
	{
		if (!continues(line, object))
			take_json(reader, object, find_time(reader, line, object, -1), 0);
	}
	else if (level != NULL)
		take_text(reader, line, level, -1);
}

/* Read to the end, or to the first line with a time if that is all we want. */
static void
read_lines(FILE *file, Reader *reader)
{
	static char line[LINE_SIZE + 1];
	static char block[LINE_SIZE];
	size_t		length = 0;
	size_t		got;
	bool		odd_quotes = false;

	while ((got = fread(block, 1, sizeof(block), file)) > 0 && reader->time < 0 &&
		   !watch_interrupted())
	{
		for (const char *from = block, *end = block; end != NULL && from < block + got && reader->time < 0;
			 from = end + 1)
		{
			size_t		left = (size_t) (block + got - from);
			size_t		part;

			end = memchr(from, '\n', left);
			part = end != NULL ? (size_t) (end - from) : left;
			for (const char *q = from; (q = memchr(q, '"', (size_t) (from + part - q))) != NULL; q++)
				odd_quotes = !odd_quotes;
			if (part > LINE_SIZE - length)
				part = LINE_SIZE - length;
			memcpy(line + length, from, part);
			length += part;
			if (end == NULL)
				break;
			take_line(reader, line, length, odd_quotes);
			length = 0;
			odd_quotes = false;
		}
	}
	if (length > 0 && reader->time < 0)
		take_line(reader, line, length, odd_quotes);
}

/*
 * Read any file as a log and hand on each message of ours; syslog's times begin in
 * this year.
 */
void
watch_log_read(FILE *file, int year, LogTaker taker, void *state)
{
	Reader		reader = {.take = taker, .state = state, .year = year, .time = -1};

	read_lines(file, &reader);
}

typedef struct LogFile
{
	const char *path;
	int64_t		time;			/* of its first line that has one, or -1 */
} LogFile;

static int
by_time(const void *a, const void *b)
{
	int64_t		first = ((const LogFile *) a)->time;
	int64_t		second = ((const LogFile *) b)->time;

	return (first > second) - (first < second);
}

/* Read all files, oldest first.  Ends the program if one cannot be read. */
void
watch_log_read_all(const Options *options, LogTaker taker, void *state)
{
	LogFile    *files = watch_allocate((size_t) options->num_files * sizeof(LogFile));
	char		this_year[WATCH_TEXT_SIZE];
	int			year = options->year;

	if (year == 0)
		year = atoi(watch_time_text(time(NULL), "%Y", this_year, sizeof(this_year)));
	for (int pass = 0; pass < 2; pass++)
	{
		for (int i = 0; i < options->num_files && !watch_interrupted(); i++)
		{
			Reader		first = {.only_time = true, .year = year, .time = -1};
			const char *path = pass == 0 ? options->files[i] : files[i].path;
			bool		is_stdin = strcmp(path, "-") == 0;
			FILE	   *file = is_stdin ? stdin : fopen(path, "r");

			if (file == NULL)
				watch_die("could not open \"%s\": %s", path, strerror(errno));
			if (pass == 1)
				watch_log_read(file, year, taker, state);
			else if (!is_stdin)
				read_lines(file, &first);
			if (ferror(file))
				watch_die("could not read \"%s\": %s", path, strerror(errno));
			if (!is_stdin)
				fclose(file);
			if (pass == 0)
				files[i] = (LogFile) {path, first.time};
		}
		qsort(files, (size_t) options->num_files, sizeof(LogFile), by_time);
	}
	free(files);
}
