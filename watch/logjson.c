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

typedef enum Member
{
	MEMBER_NONE = 0, MEMBER_MESSAGE, MEMBER_LINE, MEMBER_SEVERITY, MEMBER_LEVEL, MEMBER_BACKEND,
	MEMBER_PID, MEMBER_NUMBER, MEMBER_TIME,
} Member;

/* Members that we want: the server's own names, and what others call them. */
static const struct
{
	const char *key;
	Member		member;
}			members[] = {
	{"message", MEMBER_MESSAGE}, {"event_message", MEMBER_MESSAGE},
	{"log", MEMBER_LINE}, {"textPayload", MEMBER_LINE}, {"MESSAGE", MEMBER_LINE},
	{"msg", MEMBER_LINE}, {"line", MEMBER_LINE},
	{"error_severity", MEMBER_SEVERITY}, {"errorLevel", MEMBER_SEVERITY},
	{"level", MEMBER_LEVEL}, {"severity", MEMBER_LEVEL},
	{"backend_type", MEMBER_BACKEND},
	{"pid", MEMBER_PID}, {"process_id", MEMBER_PID}, {"processId", MEMBER_PID},
	{"tid", MEMBER_PID}, {"_PID", MEMBER_PID},
	{"line_num", MEMBER_NUMBER}, {"session_line_num", MEMBER_NUMBER},
	{"timestamp", MEMBER_TIME}, {"log_time", MEMBER_TIME}, {"time", MEMBER_TIME},
	{"ts", MEMBER_TIME}, {"date", MEMBER_TIME}, {"@timestamp", MEMBER_TIME},
	{"receiveTimestamp", MEMBER_TIME}, {"__REALTIME_TIMESTAMP", MEMBER_TIME},
};

static Member
member_of(const char *key)
{
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
	{
		if (strcmp(key, members[i].key) == 0)
			return members[i].member;
	}
	return MEMBER_NONE;
}

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
 * The server's time has a space, a wrapper's does not: the first counts more.  What
 * others call a level is the server's only if it is LOG.
 */
static void
take_member(LogJson *json, const char *key, char *value, bool *own_time)
{
	Member		member = member_of(key);

	if (member == MEMBER_MESSAGE)
		json->message = value;
	if ((member == MEMBER_MESSAGE || member == MEMBER_LINE) &&
		(watch_log_level(value) != NULL || value[0] == '{'))
		json->line = value;
	if (member == MEMBER_SEVERITY ||
		(member == MEMBER_LEVEL && watch_log_is_severity(value, strlen(value))))
		json->severity = value;
	else if (member == MEMBER_BACKEND)
		json->backend = value;
	else if (member == MEMBER_PID)
		json->pid = strtol(value, NULL, 10);
	else if (member == MEMBER_NUMBER)
		json->number = strtol(value, NULL, 10);
	else if (member == MEMBER_TIME && !*own_time && time_of(value) >= 0)
	{
		json->ms = time_of(value);
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

	*json = (LogJson) {"", "", "", NULL, -1, 0, 0};
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
