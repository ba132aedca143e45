/*-------------------------------------------------------------------------
 *
 * watch/logfile.c
 *	  Files of a server's log: lines, times, processes, and the formats stderr,
 *	  csvlog and jsonlog, with what syslog, journald and containers add.
 *
 * A line counts only if the server wrote it as a message of level LOG.  What a statement
 * contains follows another message, a tab, or lies in another field.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE				/* memmem() */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "watch/log.h"

#define LINE_SIZE		65536	/* of csvlog: a longer one has no message of ours */
#define MOST_PREFIX		1000	/* bytes before a message */

/* Columns of csvlog; the last from 13 on. */
enum
{
	CSV_PID = 3, CSV_NUMBER = 6, CSV_SEVERITY = 11, CSV_MESSAGE = 13, CSV_BACKEND = 23, CSV_MOST = 26,
};

typedef struct Reader
{
	Log		   *log;			/* what is read goes into it */
	bool		quoted;			/* csvlog: the next line continues a field */
	int			year;			/* syslog: of the last line, like the next */
	int			month;
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
	/* a file that begins with a month to come is of the year before */
	if (reader->month == 0 && reader->log->options->year == 0 &&
		(month - months) / 3 + 1 > atoi(watch_time_text(time(NULL), "%m")))
		reader->year--;
	if (reader->month == 12 && month == months)
		reader->year++;
	reader->month = (int) (month - months) / 3 + 1;
	snprintf(full, sizeof(full), "%04d-%02d-%02d %.12s", reader->year, reader->month, day, text + used);
	return watch_parse_timestamp(full);
}

/*
 * The time of a line whose prefix goes up to "end": the server's own, which has
 * a space, or else that of a wrapper, given or found; -1 if there is none.  Syslog may
 * have a priority or a file's name before it, and a container's name may have a colour.
 */
static int64_t
find_time(Reader *reader, const char *line, const char *end, int64_t wrapper)
{
	bool		in_word = false;

	for (const char *p = line; p < end; p++)
	{
		int64_t		ms = in_word ? -1 : isupper((unsigned char) *p) ? syslog_time(reader, p) :
			watch_parse_timestamp(p);

		if (ms >= 0 && p[10] == ' ')
			return ms;
		if (ms >= 0 && wrapper < 0)
			wrapper = ms;
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

/* Does the line continue a message, and begin with a tab?  A tab after a word divides a wrapper's columns. */
static bool
continues(const char *line, const char *end)
{
	for (const char *p = line; (p = memchr(p, '\t', (size_t) (end - p))) != NULL; p++)
		if (p == line || !isalnum((unsigned char) p[-1]))
			return true;
	return memmem(line, (size_t) (end - line), "#011", 4) != NULL;
}

/* Hand on a message of level LOG, unless it has no time. */
static void
take(Reader *reader, const char *text, int64_t ms, int64_t pid, int64_t number)
{
	LogRecord	message;

	if (ms < 0 || ms >= LOG_MOST_MS || !watch_log_message(text, &message))
		return;
	message.ms = ms;
	message.pid = pid;
	message.number = number;
	watch_log_take(reader->log, &message);
}

/* A line of text, whose level ends here.  With log_error_verbosity = verbose an SQLSTATE follows. */
static void
take_text(Reader *reader, const char *line, const char *level, int64_t wrapper)
{
	size_t		length = (size_t) (level - line);
	const char *text = level + 1 + strspn(level + 1, " ");
	LogRecord	message;

	if (length > MOST_PREFIX || continues(line, level) || !watch_log_is_severity(line, length) ||
		memmem(line, length, "client backend", 14) != NULL)	/* %b */
		return;
	text += strncmp(text, "00000: ", 7) == 0 ? 7 : 0;
	if (watch_log_message(text, &message))	/* it is fast, times are not */
		take(reader, text, find_time(reader, line, level, wrapper), find_pid(line, level), 0);
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

/* A record of csvlog; false if it is none.  With an odd number of quotes it continues in the next line. */
static bool
take_csv(Reader *reader, char *line, bool odd_quotes)
{
	int64_t		ms = memchr(line, ',', strnlen(line, 40)) != NULL ? watch_parse_timestamp(line + (line[0] == '"')) : -1;
	char	   *fields[CSV_MOST];
	char		copy[LINE_SIZE + 1];
	int			number;

	if (ms < 0 || strlen(line) > LINE_SIZE)
		return false;
	number = split_csv(strcpy(copy, line), fields);
	if (number <= CSV_SEVERITY || strspn(fields[CSV_PID], "0123456789") == 0 || strpbrk(fields[CSV_SEVERITY], " =") != NULL)
		return false;
	reader->quoted = odd_quotes;
	if (number > CSV_MESSAGE && !odd_quotes &&
			 watch_log_is_severity(fields[CSV_SEVERITY], strlen(fields[CSV_SEVERITY])) &&
			 may_write(number > CSV_BACKEND ? fields[CSV_BACKEND] : ""))
		take(reader, fields[CSV_MESSAGE], ms, strtol(fields[CSV_PID], NULL, 10),
			 strtol(fields[CSV_NUMBER], NULL, 10));
	return true;
}

typedef enum Member
{
	MEMBER_NONE = 0, MEMBER_MESSAGE, MEMBER_LINE, MEMBER_SEVERITY, MEMBER_LEVEL, MEMBER_BACKEND,
	MEMBER_PID, MEMBER_NUMBER, MEMBER_TIME, MEMBERS,
} Member;

/* Members that we want: the server's own names, and what others call them. */
static const struct
{
	const char *key;
	Member		member;
}			members[] = {
	{"message", MEMBER_MESSAGE}, {"event_message", MEMBER_MESSAGE}, {"Message", MEMBER_MESSAGE},
	{"log", MEMBER_LINE}, {"textPayload", MEMBER_LINE}, {"MESSAGE", MEMBER_LINE},
	{"msg", MEMBER_LINE}, {"line", MEMBER_LINE}, {"@message", MEMBER_LINE},
	{"_raw", MEMBER_LINE}, {"stringValue", MEMBER_LINE}, {"value", MEMBER_LINE}, {"short_message", MEMBER_LINE},
	{"error_severity", MEMBER_SEVERITY}, {"errorLevel", MEMBER_SEVERITY},
	{"level", MEMBER_LEVEL}, {"severity", MEMBER_LEVEL}, {"log.level", MEMBER_LEVEL}, {"backend_type", MEMBER_BACKEND},
	{"pid", MEMBER_PID}, {"process_id", MEMBER_PID}, {"processId", MEMBER_PID},
	{"tid", MEMBER_PID}, {"_PID", MEMBER_PID}, {"process.pid", MEMBER_PID},
	{"line_num", MEMBER_NUMBER}, {"session_line_num", MEMBER_NUMBER},
	{"timestamp", MEMBER_TIME}, {"log_time", MEMBER_TIME}, {"time", MEMBER_TIME},
	{"ts", MEMBER_TIME}, {"date", MEMBER_TIME}, {"@timestamp", MEMBER_TIME},
	{"receiveTimestamp", MEMBER_TIME}, {"__REALTIME_TIMESTAMP", MEMBER_TIME}, {"TimeGenerated", MEMBER_TIME},
};

/* What an object says; texts are "" if missing. */
typedef struct LogJson
{
	char	   *values[MEMBERS];
	char	   *line;			/* of text, or an object, in a wrapper; or NULL */
} LogJson;

/* A time in ms since 1970, also one in whole s, ms, us or ns since then; or -1. */
static int64_t
time_of(const char *value)
{
	size_t		digits = strspn(value, "0123456789");
	char		ms[24];

	if (value[digits] != '\0' || digits < 10 || digits > 19 || digits % 3 != 1)
		return watch_parse_timestamp(value);
	snprintf(ms, sizeof(ms), "%.13s000", value);
	ms[13] = '\0';
	return strtoll(ms, NULL, 10);
}

/*
 * The server's time has a space, a wrapper's does not: the first counts more, and the receipt
 * less.  What others call a level is the server's only if it is LOG.
 */
static void
take_member(LogJson *json, const char *key, char *value)
{
	Member		member = MEMBER_NONE;
	const char *time = json->values[MEMBER_TIME];
	const char *level;

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (strcmp(key, members[i].key) == 0)
			member = members[i].member;
	if ((member == MEMBER_MESSAGE || member == MEMBER_LINE) &&
		(value[0] == '{' || ((level = watch_log_level(value)) != NULL &&
							 watch_log_is_severity(value, (size_t) (level - value)))))
		json->line = value;
	if (member == MEMBER_LEVEL)
		member = watch_log_is_severity(value, strlen(value)) ? MEMBER_SEVERITY : MEMBER_NONE;
	if (member == MEMBER_TIME && (time_of(value) < 0 || (strlen(time) > 10 && time[10] == ' ') ||
								  (time[0] != '\0' && strcmp(key, "receiveTimestamp") == 0)))
		return;
	json->values[member] = value;
}

/* A character as UTF-8; one of more than three bytes becomes two. */
static char *
put_character(char *to, unsigned int c)
{
	if (c >= 0x800)
		*to++ = (char) (0xe0 | c >> 12);
	if (c >= 0x80)
		*to++ = (char) (c >= 0x800 ? 0x80 | (c >> 6 & 0x3f) : 0xc0 | c >> 6);
	*to++ = (char) (c >= 0x80 ? 0x80 | (c & 0x3f) : c > 0 ? c : ' ');
	return to;
}

/* Read a string in place, from after its first quote.  Returns what follows, or NULL if it does not end. */
static char *
read_string(char *from)
{
	static const char *const escapes = "b\bf\fn\nr\rt\t";
	char	   *to = from;

	for (; *from != '"' && *from != '\0'; from++)
	{
		char		digits[5] = "";
		const char *escape;

		if (*from != '\\')
			*to++ = *from;
		else if (from[1] == 'u' && strspn(from + 2, "0123456789abcdefABCDEF") >= 4)
		{
			to = put_character(to, (unsigned int) strtoul(memcpy(digits, from + 2, 4), NULL, 16));
			from += 5;
		}
		else if (*++from == '\0')
			return NULL;
		else
		{
			escape = strchr(escapes, *from);
			*to++ = escape != NULL && (escape - escapes) % 2 == 0 ? escape[1] : *from;
		}
	}
	if (*from == '\0')
		return NULL;
	*to = '\0';
	return from + 1;
}

/*
 * Read an object in place, with those in it and those after it, until there is a message
 * and its time.  Returns what follows, or NULL if it is no JSON as far as we look.
 */
static char *
read_json(char *text, LogJson *json)
{
	static const char *const between = "{}[]:, \t\r\n";
	char	   *key = NULL;
	bool		complete = false;

	json->line = NULL;
	for (int i = 0; i < MEMBERS; i++)
		json->values[i] = "";
	for (text += strspn(text, between); *text != '\0' && !complete;)
	{
		char	   *value = text;
		bool		string = *text == '"';
		const char *end;
		size_t		skip;

		text = string ? read_string(++value) : text + strcspn(text, "{}[]:, \t\r\n\"");
		if (text == NULL)
			return NULL;
		skip = strspn(text, between);
		end = memchr(text, '}', skip);
		if (end != NULL)		/* and another object begins */
			end = memchr(end, '{', (size_t) (text + skip - end));
		if (string && text[strspn(text, " ")] == ':')
			key = value;
		else if (key != NULL)
		{
			*text = '\0';
			take_member(json, key, value);
			key = NULL;
		}
		complete = end != NULL &&
			(json->values[MEMBER_TIME][0] != '\0' || (json->line != NULL && watch_parse_timestamp(json->line) >= 0)) &&
			(json->values[MEMBER_MESSAGE][0] != '\0' || json->values[MEMBER_LINE][0] != '\0');
		text += skip;
	}
	return text;
}

/*
 * The objects of a line: messages of the server, or wrappers around lines.  Some have
 * both; then the line begins with its time.
 */
static void
take_json(Reader *reader, char *line, int64_t wrapper)
{
	LogJson		json;

	while (*line != '\0' && (line = read_json(line, &json)) != NULL)
	{
		const char *severity = json.values[MEMBER_SEVERITY];
		int64_t		ms = time_of(json.values[MEMBER_TIME]);
		const char *level;

		if (ms < 0)
			ms = wrapper;
		if (severity[0] != '\0' && (json.line == NULL || watch_parse_timestamp(json.line) < 0))
		{
			if (watch_log_is_severity(severity, strlen(severity)) && may_write(json.values[MEMBER_BACKEND]))
				take(reader, json.values[MEMBER_MESSAGE], ms, strtol(json.values[MEMBER_PID], NULL, 10),
					 strtol(json.values[MEMBER_NUMBER], NULL, 10));
		}
		else if (json.line != NULL && json.line[0] == '{')
			take_json(reader, json.line, ms);	/* each level doubles the backslashes */
		else if (json.line != NULL)
		{
			json.line[strcspn(json.line, "\r\n")] = '\0';
			level = watch_log_level(json.line);
			if (level != NULL)
				take_text(reader, json.line, level, ms);
		}
	}
}

/* A line in a field of a CSV file ends at the quotation mark that is not doubled. */
static void
end_field(char *line, size_t level)
{
	char	   *quote = memrchr(line, '"', level);

	if (quote == NULL || (quote > line && quote[-1] != ','))
		return;
	for (quote = strchr(line + level, '"'); quote != NULL && quote[1] == '"';)
		quote = strchr(quote + 2, '"');
	if (quote != NULL)
		*quote = '\0';
}

/* A line.  JSON may have a prefix, but no level before it: then it is part of a message. */
static void
take_line(Reader *reader, char *line, size_t length, bool odd_quotes)
{
	char	   *csv = strstr(line, ".csv:");	/* the name of a file, as grep shows it */
	const char *message;
	const char *level;
	char	   *object;
	char		colon[2];

	/* csvlog, unless a record begins because the one before was cut off: in a field no quote is alone */
	if (reader->quoted && ((message = strstr(line, ",00000,\"")) == NULL || message[8] == '"' || watch_parse_timestamp(line) < 0))
	{
		reader->quoted = !odd_quotes;
		return;
	}
	/* YAML and Markdown have marks around it, psql a plus, a window a line of U+2502 at the end */
	while (length > 0 && memchr(" \t\r\n'`|+\342\224\202", line[length - 1], 11) != NULL)
		length--;
	line[length] = '\0';
	for (char *p = line; (p = strstr(p, "\302\240")) != NULL;)	/* a space that browsers and mail do not break at */
		memcpy(p, "  ", 2);
	if (strlen(line) != length ||
		take_csv(reader, csv != NULL && csv < line + strcspn(line, ",") ? csv + 5 : line, odd_quotes))
		return;
	if (line[0] == '"' && strstr(line, "\\\"") != NULL && read_string(line + 1) != NULL)	/* a string of JSON */
		line++;
	level = watch_log_level(line);
	object = strchr(line, '{');
	if (sscanf(line + strspn(line, " "), "\"%*[^\"]\" %1[:]", colon) == 1)	/* an object of several lines */
		take_json(reader, line, -1);
	else if (object != NULL && object - line < MOST_PREFIX && object[1] == '"' && (level == NULL || object < level))
	{
		if (!continues(line, object))
			take_json(reader, object, find_time(reader, line, object, -1));
	}
	else if (level != NULL)
	{
		line[level - line + (ptrdiff_t) strcspn(level, "\t")] = '\0';	/* columns of others */
		end_field(line, (size_t) (level - line));
		take_text(reader, line, level, -1);
	}
}

/* What begins a file that is not text, and what makes it one; zcat -f passes on what gzip has not compressed. */
const char *const watch_log_not_text[LOG_NOT_TEXT][2] = {
	{"\037\213", "zcat -f"}, {"\3757zXZ", "xzcat -f"}, {"(\265/\375", "zstdcat -f"}, {"BZh", "bzcat -f"},
	{"\377\376", "iconv -f UTF-16 -t UTF-8"},
};

/* Read any file as a log, and hand on each message of ours. */
void
watch_log_read(Log *log, FILE *file)
{
	Reader		reader = {.log = log, .year = log->options->year != 0 ? (int) log->options->year : atoi(watch_time_text(time(NULL), "%Y"))};
	char	   *line = NULL;
	size_t		room = 0;
	ssize_t		length;
	bool		first = true;
	int			end = '\n';

	while ((length = getdelim(&line, &room, end, file)) > 0)
	{
		bool		odd_quotes = false;

		for (int i = 0; i < LOG_NOT_TEXT; i++)
			if (!reader.quoted && strncmp(line, watch_log_not_text[i][0], strlen(watch_log_not_text[i][0])) == 0)
				watch_die("the log is not text: use \"%s FILE... | walsizer-watch --log -\"", watch_log_not_text[i][1]);
		/* JSON with a line for each member: all of it counts as one.  A tab continues a message */
		first = first && line[0] != '\t' && strspn(line, "[{ \t\r\n") == (size_t) length;
		if (first && strchr(line, '{') != NULL)
			end = '\0';
		for (const char *q = line; (q = memchr(q, '"', (size_t) (line + length - q))) != NULL; q++)
			odd_quotes = !odd_quotes;
		if (end == '\0')
			take_json(&reader, line, -1);
		else
			take_line(&reader, line, (size_t) length, odd_quotes);
	}
	free(line);
}

/* Read all files, in any order.  Ends the program if one cannot be read. */
void
watch_log_read_all(Log *log)
{
	const Options *options = log->options;

	for (int i = 0; i < options->num_files; i++)
	{
		const char *path = options->files[i];
		FILE	   *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");

		if (file == NULL)
			watch_die("could not open \"%s\": %s", path, strerror(errno));
		watch_log_read(log, file);
		if (ferror(file))
			watch_die("could not read \"%s\": %s", path, strerror(errno));
		fclose(file);
	}
}
