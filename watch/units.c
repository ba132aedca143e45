/*-------------------------------------------------------------------------
 *
 * watch/units.c
 *	  Sizes, times and sources as PostgreSQL writes them, and as people do.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE				/* timegm() */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "watch/watch.h"

#define TEXT_SIZE		64

typedef struct Unit
{
	const char *name;
	double		factor;
} Unit;

/* in MB; names as in the server's configuration, case counts */
static const Unit size_units[] = {
	{"B", 1.0 / 1024 / 1024}, {"kB", 1.0 / 1024}, {"MB", 1}, {"GB", 1024}, {"TB", 1024.0 * 1024}, {NULL, 0},
};

/* in ms */
static const Unit time_units[] = {
	{"us", 0.001}, {"ms", 1}, {"s", 1000}, {"min", 60000}, {"h", 3600000}, {"d", 86400000}, {NULL, 0},
};

/* A number, and a unit unless it is the default one.  Rounds as the server. */
static bool
parse(const char *text, const Unit *units, double factor, int64_t *value)
{
	char	   *end;
	double		number = strtod(text, &end);

	if (end == text || !isfinite(number) || number < 0)
		return false;
	while (isspace((unsigned char) *end))
		end++;
	if (*end != '\0')
	{
		while (units->name != NULL && strcmp(units->name, end) != 0)
			units++;
		if (units->name == NULL)
			return false;
		factor = units->factor;
	}
	number = rint(number * factor);
	if (number > 1e15)
		return false;
	*value = (int64_t) number;
	return true;
}

/* "32GB", or "512" for 512 MB.  False if it is no size. */
bool
watch_parse_size(const char *text, int64_t *mb)
{
	return parse(text, size_units, 1, mb);
}

/* "7d"; a number alone counts default units.  False if it is no time. */
bool
watch_parse_time(const char *text, int64_t default_unit_ms, int64_t *ms)
{
	return parse(text, time_units, (double) default_unit_ms, ms);
}

/*
 * 2025-02-03 11:41:11.588, or with T or _, or seconds since 1970 with a fraction, in ms
 * since 1970.  What follows, a zone for example, does not count.  -1 if it is none.
 */
int64_t
watch_parse_timestamp(const char *text)
{
	struct tm	parts = {0};
	char		between;
	int			used = 10;
	int64_t		ms;

	if (strspn(text, "0123456789") == 10 && text[10] == '.')
		ms = strtoll(text, NULL, 10) * 1000;
	else if (strspn(text, "0123456789") == 4 &&
			 sscanf(text, "%4d-%2d-%2d%c%2d:%2d:%2d%n", &parts.tm_year, &parts.tm_mon,
					&parts.tm_mday, &between, &parts.tm_hour, &parts.tm_min, &parts.tm_sec,
					&used) == 7 && used == 19 && parts.tm_year > 1970 && parts.tm_mon >= 1 &&
			 parts.tm_mon <= 12 && parts.tm_mday >= 1 && parts.tm_mday <= 31 && strchr(" T_", between) != NULL)
	{
		parts.tm_year -= 1900;
		parts.tm_mon--;
		ms = (int64_t) timegm(&parts) * 1000;
	}
	else
		return -1;
	text += used;
	if (*text != '.' && *text != ',')
		return ms;
	for (int factor = 100; isdigit((unsigned char) *++text) && factor > 0; factor /= 10)
		ms += (*text - '0') * factor;
	return ms;
}

/* Room for a text, which is valid until eight others are made. */
static char *
next_text(void)
{
	static char texts[8][TEXT_SIZE];
	static unsigned int next = 0;

	return texts[next++ % 8];
}

/* "512 MB", as pg_size_pretty() rounds. */
const char *
watch_size_text(int64_t bytes)
{
	static const char *const names[] = {"kB", "MB", "GB", "TB", "PB"};
	double		value = (double) bytes / 1024;
	char	   *text = next_text();
	int			i = 0;

	for (; value >= 10240 && i < 4; i++)
		value /= 1024;
	snprintf(text, TEXT_SIZE, "%.0f %s", value, names[i]);
	return text;
}

/* "3 d 4 h", "5 min 20 s": the two largest units. */
const char *
watch_duration_text(int64_t ms)
{
	long long	s = (ms + 500) / 1000;
	char	   *text = next_text();

	if (s >= 86400)
		snprintf(text, TEXT_SIZE, "%lld d %lld h", s / 86400, s / 3600 % 24);
	else if (s >= 3600)
		snprintf(text, TEXT_SIZE, "%lld h %lld min", s / 3600, s / 60 % 60);
	else if (s >= 60)
		snprintf(text, TEXT_SIZE, "%lld min %lld s", s / 60, s % 60);
	else
		snprintf(text, TEXT_SIZE, "%lld s", s);
	return text;
}

/* Local time in a format of strftime(). */
const char *
watch_time_text(int64_t epoch_s, const char *format)
{
	time_t		when = (time_t) epoch_s;
	char	   *text = next_text();
	struct tm	parts;

	return localtime_r(&when, &parts) == NULL || strftime(text, TEXT_SIZE, format, &parts) == 0 ? "?" : text;
}
