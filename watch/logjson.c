/*-------------------------------------------------------------------------
 *
 * watch/logjson.c
 *	  Lines of JSON: jsonlog, and what operators, container runtimes and clouds
 *	  wrap around a message or around a line of text.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "watch/log.h"

/* Members that we want; the server's own names first. */
static const char *const severities[] = {"error_severity", "errorLevel", NULL};
static const char *const pids[] = {"pid", "process_id", "processId", NULL};
static const char *const times[] = {
	"timestamp", "log_time", "time", "ts", "@timestamp", "receiveTimestamp", NULL,
};
static const char *const lines[] = {"log", "textPayload", "MESSAGE", "message", "msg", "line", NULL};

static bool
is_one_of(const char *text, const char *const *list)
{
	while (*list != NULL && strcmp(text, *list) != 0)
		list++;
	return *list != NULL;
}

/* The server's time has a space, a wrapper's does not: the first counts more. */
static void
take_member(LogJson *json, const char *key, char *value, bool *own_time)
{
	bool		is_line = strstr(value, ":  ") != NULL || value[0] == '{';

	if (strcmp(key, "message") == 0)
		json->message = value;
	if (is_one_of(key, lines) && is_line)
		json->line = value;
	else if (is_one_of(key, severities))
		json->severity = value;
	else if (strcmp(key, "backend_type") == 0)
		json->backend = value;
	else if (is_one_of(key, pids))
		json->pid = strtol(value, NULL, 10);
	else if (is_one_of(key, times) && !*own_time && watch_parse_timestamp(value) >= 0)
	{
		json->ms = watch_parse_timestamp(value);
		*own_time = strlen(value) > 10 && value[10] == ' ';
	}
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

/*
 * Read a string in place, from after its first quote.  Returns what follows it,
 * or NULL if it does not end.
 */
static char *
read_string(char *from)
{
	static const char *const escapes = "b\bf\fn\nr\rt\t";
	char	   *to = from;

	for (; *from != '"' && *from != '\0'; from++)
	{
		unsigned int c;
		const char *escape;

		if (*from != '\\')
			*to++ = *from;
		else if (from[1] == 'u' && strspn(from + 2, "0123456789abcdefABCDEF") >= 4 &&
				 sscanf(from + 2, "%4x", &c) == 1)
		{
			to = put_character(to, c);
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
 * Read an object in place: its members, and those of the objects in it.  False
 * if it is no JSON as far as we look.
 */
bool
watch_log_json(char *text, LogJson *json)
{
	static const char *const between = "{}[]:, \t\r\n";
	char	   *key = NULL;
	bool		own_time = false;

	*json = (LogJson) {"", "", "", NULL, -1, 0};
	for (text += strspn(text, between); *text != '\0'; text += strspn(text, between))
	{
		char	   *value = text;
		bool		string = *text == '"';

		text = string ? read_string(++value) : text + strcspn(text, "{}[]:, \t\r\n\"");
		if (text == NULL)
			return false;
		if (string && *text == ':')
			key = value;
		else if (key != NULL)
		{
			char		after = *text;

			*text = '\0';
			take_member(json, key, value, &own_time);
			*text = after;
			key = NULL;
		}
	}
	return true;
}
