/*-------------------------------------------------------------------------
 *
 * watch/logmessage.c
 *	  The server's messages about checkpoints, in any of its languages.
 *
 * Translated messages have the same numbers in the same order, and the words after
 * "checkpoint starting:" are not translated.  A text counts only if it is such a message
 * from its beginning to its end: a statement or a name may contain one.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE				/* memmem() */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "watch/log.h"

#define DIGITS			"0123456789"
#define MOST_WORDS		200		/* bytes before the first number */
#define MOST_TEXT		1000	/* of a message of ours */
#define MOST_UNIT		5		/* " kB" in Cyrillic letters */
#define MOST_QUOTE		30		/* after the value of a setting */
#define NUMBERS			19		/* in "checkpoint complete" before 18 */

static const char *const severities[] = {
	"LOG", "LOGG", "СООБЩЕНИЕ", "ЗАПИСУВАННЯ", "日志", "日誌", "로그", "DZIENNIK", "ჟურნალი", NULL,
};

static const char *const checkpoint_words[] = {
	"heckpoint", "контрольн", "チェックポイント", "체크포인트", "检查点", "檢查點",
	"საკონტროლო წერტილ", "puntos de control", "punkty kontrolne", "pontos de controle", NULL,
};

static const char *const restartpoint_words[] = {
	"estart", "punto di riavvio", "точка перезапуск", "リスタート", "重启点", "重啟點", "გადატვირთვ", NULL,
};

static const struct
{
	const char *word;
	unsigned int flag;
}			words[] = {
	{"time", LOG_TIME}, {"wal", LOG_WAL}, {"xlog", LOG_WAL},
	{"immediate", LOG_FAST}, {"fast", LOG_FAST}, {"shutdown", LOG_FAST | LOG_SHUTDOWN},
	{"end-of-recovery", LOG_FAST | LOG_RECOVERY}, {"force", LOG_ASKED}, {"wait", LOG_ASKED | LOG_WAIT},
	{"flush-all", LOG_ASKED}, {"flush-unlogged", LOG_ASKED}, {NULL, 0},
};

/* Is a text the name of the level LOG, or does it end with it after no letter? */
bool
watch_log_is_severity(const char *text, size_t length)
{
	for (int i = 0; severities[i] != NULL; i++)
	{
		size_t		of_name = strlen(severities[i]);

		if (length >= of_name && memcmp(text + length - of_name, severities[i], of_name) == 0 &&
			(length == of_name || strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZ", text[length - of_name - 1]) == NULL))
			return true;
	}
	return false;
}

/*
 * Where the level of a line ends: at the first colon that follows a capital letter, or one
 * of another script, and has two spaces after it, or else one.  NULL if there is none.
 */
const char *
watch_log_level(const char *line)
{
	static const char *const ends[] = {":  ", ": "};

	for (int i = 0; i < 2; i++)
		for (const char *p = line; (p = strstr(p, ends[i])) != NULL; p++)
			if (p > line && (isupper((unsigned char) p[-1]) || (unsigned char) p[-1] >= 0x80))
				return p;
	return NULL;
}

/* Is one of the words among the first bytes, of which there may be MOST_WORDS? */
static bool
contains(const char *text, size_t length, const char *const *list)
{
	while (*list != NULL && memmem(text, length, *list, strlen(*list)) == NULL)
		list++;
	return length <= MOST_WORDS && *list != NULL;
}

/* Is one of the words at the beginning, after one letter at most? */
static bool
begins(const char *text, const char *const *list)
{
	while (*list != NULL && strncmp(text, *list, strlen(*list)) != 0 &&
		   (text[0] == '\0' || strncmp(text + 1, *list, strlen(*list)) != 0))
		list++;
	return *list != NULL;
}

/* The flags up to one of "ends" or the end, at least one; false if there are other words. */
static bool
read_flags(const char *text, const char *ends, unsigned int *flags)
{
	*flags = LOG_CAUSE_KNOWN;
	for (text += strspn(text, " "); strchr(ends, *text) == NULL; text += strspn(text, " "))
	{
		size_t		length = strcspn(text, " :\",");
		int			i = 0;

		while (words[i].word != NULL && (strlen(words[i].word) != length || memcmp(words[i].word, text, length) != 0))
			i++;
		if (words[i].word == NULL)
			return false;
		*flags |= words[i].flag;
		text += length;
	}
	return *flags != LOG_CAUSE_KNOWN;
}

/* "checkpoint starting: FLAGS" */
static bool
is_starting(const char *text, size_t before, LogRecord *message)
{
	message->kind = LOG_STARTING;
	return text[before] == ':' && contains(text, before, checkpoint_words) &&
		!contains(text, before, restartpoint_words) && read_flags(text + before + 1, "\",", &message->flags);
}

/* "; lsn=C/9E64A98, redo lsn=B/EB002FD8", or other words for that, and nothing after it */
static bool
read_positions(const char *text, LogRecord *message)
{
	unsigned int part[4];
	char		rest;

	if (sscanf(text, "; %*3c=%8X/%8X, %*[^=]=%8X/%8X%c", &part[0], &part[1], &part[2], &part[3], &rest) != 4)
		return false;
	message->lsn = (uint64_t) part[0] << 32 | part[1];
	message->redo = (uint64_t) part[2] << 32 | part[3];
	return message->lsn >= message->redo;
}

/* The runs of digits up to "end"; NUMBERS + 2 if there are more, or what follows the last is no unit. */
static int
read_numbers(const char *text, const char *end, int64_t *numbers)
{
	int			number = 0;

	for (text += strcspn(text, DIGITS); text < end; text += strcspn(text, DIGITS))
	{
		if (number > NUMBERS || strspn(text, DIGITS) > 12)
			return NUMBERS + 2;
		numbers[number++] = strtoll(text, NULL, 10);
		text += strspn(text, DIGITS);
		if (text + strcspn(text, DIGITS) >= end &&
			(end - text > MOST_UNIT || end - text < 3 || memchr(text, ',', (size_t) (end - text)) != NULL))
			return NUMBERS + 2;
	}
	return number;
}

/*
 * "checkpoint complete: wrote 1827 buffers (11.2%); 0 WAL file(s) added, 0 removed,
 * 33 recycled; write=19.679 s, sync=0.961 s, total=20.755 s; sync files=9,
 * longest=0.010 s, average=0.002 s; distance=526432 kB, estimate=526432 kB"; from 18
 * on also SLRU buffers, from 19 on the flags before "wrote".
 */
static bool
is_complete(const char *text, size_t before, LogRecord *message)
{
	bool		restartpoint = begins(text, restartpoint_words);
	const char *lsn = strcasestr(text, "; lsn=");
	const char *percent = strchr(text, '%');
	int64_t		numbers[NUMBERS + 1];
	const int64_t *n = numbers + 3; /* after the percentage */
	unsigned int flags;
	int			count;

	if (text[before] != ':' || !(restartpoint || begins(text, checkpoint_words)) ||
		percent == NULL || percent - text > 2 * MOST_WORDS || (lsn != NULL && !read_positions(lsn, message)))
		return false;
	count = read_numbers(text + before, lsn != NULL ? lsn : text + strlen(text), numbers);
	if (count != NUMBERS && count != NUMBERS + 1)
		return false;
	message->flags = read_flags(text + before + 1, ":", &flags) ? flags : 0;
	n += count - NUMBERS;
	message->kind = restartpoint ? LOG_RESTARTPOINT : LOG_COMPLETE;
	message->old = strstr(text, "transaction log file") != NULL;
	message->buffers = numbers[0];
	message->files = n[1] + n[2];
	message->write_ms = n[3] * 1000 + n[4];
	message->total_ms = n[7] * 1000 + n[8];
	message->distance = n[14] * 1024;
	message->estimate = n[15] * 1024;
	return n[7] < LOG_MOST_MS / 2000 && message->distance < LOG_MOST_BYTES;
}

/* "checkpoints are occurring too frequently (28 seconds apart)" */
static bool
is_frequent(const char *text, LogRecord *message)
{
	size_t		before = strcspn(text, DIGITS);
	size_t		after = before + strspn(text + before, DIGITS);
	size_t		length = strlen(text);

	message->kind = LOG_FREQUENT;
	message->flags = LOG_WAL | LOG_CAUSE_KNOWN;
	message->write_ms = strtoll(text + before, NULL, 10) % 100000 * 1000;
	return after > before && after - before < 6 && strcspn(text + after, DIGITS) == length - after &&
		strpbrk(text, ";=") == NULL && strstr(text, ": ") == NULL && contains(text, before, checkpoint_words) &&
		(text[length - 1] == ')' || (length > 3 && strcmp(text + length - 3, "）") == 0));
}

/* Read a setting of ours, which is named in a text; false if it is another, or not possible. */
static bool
read_setting(const char *text, const char *value, WalsizerSettings *changed)
{
	char	   *end;

	changed->completion_target = -1;
	if (strstr(text, "max_wal_size") != NULL)
		return watch_parse_size(value, &changed->max_wal_size_mb) &&
			changed->max_wal_size_mb >= 2 && changed->max_wal_size_mb <= WALSIZER_MOST_MB;
	if (strstr(text, "checkpoint_timeout") != NULL)
		return watch_parse_time(value, 1000, &changed->timeout_ms) &&
			changed->timeout_ms >= LOG_LEAST_TIMEOUT && changed->timeout_ms <= LOG_MOST_TIMEOUT;
	changed->completion_target = strtod(value, &end);
	return strstr(text, "checkpoint_completion_target") != NULL && end > value && *end == '\0' &&
		changed->completion_target >= 0 && changed->completion_target <= 1;
}

/*
 * 'parameter "max_wal_size" changed to "4GB"', or reset to the default.  In all languages the name
 * comes first, and then the value, which has all digits.  A message with a colon is another.
 */
static bool
is_parameter(const char *text, LogRecord *message)
{
	const char *rest = text + strcspn(text, ":" DIGITS);
	int			length = 0;
	char		value[32];

	message->kind = LOG_PARAMETER;
	if (*rest == '\0')			/* no value: the default */
		return read_setting(text, "1GB", &message->settings) || read_setting(text, "5min", &message->settings) ||
			read_setting(text, "0.9", &message->settings);
	(void) sscanf(rest, "%*[0-9.]%n %*[kMGTBmsinhd]%n", &length, &length);
	if (strchr(text, ':') != NULL || length == 0 || rest[length] == '\0' || rest - text > MOST_WORDS ||
		strlen(rest + length) > MOST_QUOTE || strpbrk(rest + length, DIGITS "_") != NULL)
		return false;
	snprintf(value, sizeof(value), "%.*s", length, rest);
	return read_setting(text, value, &message->settings);
}

/* Is this text, which ends with a zero byte, a message of ours?  Fills it in if so. */
bool
watch_log_message(const char *text, LogRecord *message)
{
	size_t		before;

	*message = (LogRecord) {.kind = strcmp(text, "database system is ready to accept connections") == 0 ? LOG_READY : LOG_NOTHING};
	if (message->kind == LOG_READY || strnlen(text, MOST_TEXT) == MOST_TEXT)
		return message->kind == LOG_READY;
	before = strcspn(text, ":" DIGITS);
	if (is_starting(text, before, message) || is_complete(text, before, message))
		return true;
	*message = (LogRecord) {0};
	return is_frequent(text, message) || is_parameter(text, message);
}
