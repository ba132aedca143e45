/*-------------------------------------------------------------------------
 *
 * fuzz_conf.c
 *	  The reader and writer of postgresql.auto.conf, with any text.
 *
 * This is server/config.c itself, with the server's headers, and with what it
 * calls of the server replaced: no files, locks or signals, and a model of the
 * server's parser (guc-file.l).
 *
 * Whatever the file says, what walsizer writes must be a file that the server
 * can read: with our value and note, with all other settings as they were, and
 * no others.  A note is taken for one only if walsizer would have written it.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>
#include <unistd.h>

#include "storage/fd.h"

#include "server/compat.h"

static int	fuzz_access(const char *path, int mode);
static int	fuzz_lstat(const char *path, struct stat *st);
static const struct config_generic *no_setting(const char *name);

#define access fuzz_access
#undef lstat
#define lstat fuzz_lstat
#define walsizer_find_setting no_setting
#undef AllowAlterSystem
#define AllowAlterSystem true
#include "server/config.c"
#undef access
#undef lstat

#include "fuzz/input.h"

#define MAX_TEXT		4096

static char file[MAX_TEXT + 1]; /* postgresql.auto.conf */
static bool file_exists;
static char *written;			/* what replaces it, or NULL */

static WalsizerShared shared;

/*-------------------------------------------------------------------------
 * Memory, all of which is freed after each input
 *-------------------------------------------------------------------------
 */
typedef union Chunk
{
	struct
	{
		union Chunk *next;
		Size		size;
	}			head;
	long double align;
} Chunk;

static Chunk *chunks;

void *
palloc(Size size)
{
	Chunk	   *chunk = malloc(sizeof(Chunk) + size);

	CHECK(chunk != NULL);
	chunk->head.next = chunks;
	chunk->head.size = size;
	chunks = chunk;
	return chunk + 1;
}

void *
repalloc(void *pointer, Size size)
{
	Chunk	   *old = (Chunk *) pointer - 1;
	void	   *new = palloc(size);

	memcpy(new, pointer, Min(old->head.size, size));
	return new;
}

void
pfree(void *pointer)
{
	CHECK(pointer != NULL);
}

char *
pnstrdup(const char *text, Size length)
{
	char	   *copy = palloc(length + 1);

	length = strnlen(text, length);
	memcpy(copy, text, length);
	copy[length] = '\0';
	return copy;
}

static void
free_all(void)
{
	while (chunks != NULL)
	{
		Chunk	   *next = chunks->head.next;

		free(chunks);
		chunks = next;
	}
}

/*-------------------------------------------------------------------------
 * The server
 *-------------------------------------------------------------------------
 */
WalsizerShared *walsizer_shared = &shared;
char	   *walsizer_last_written = "";
bool		walsizer_enable = true;
bool		walsizer_dry_run = false;
int			max_wal_size_mb = 1024;
int			wal_segment_size = 16 * 1024 * 1024;
char	   *ConfigFileName = "postgresql.conf";
bool		IsUnderPostmaster;
volatile sig_atomic_t ConfigReloadPending;
TimestampTz PgReloadTime;
static LWLockPadded locks[NUM_INDIVIDUAL_LWLOCKS];
LWLockPadded *MainLWLockArray = locks;

TimestampTz
time_t_to_timestamptz(pg_time_t seconds)
{
	return (TimestampTz) seconds;
}

static int
fuzz_access(const char *path, int mode)
{
	(void) path;
	(void) mode;
	errno = ENOENT;
	return file_exists ? 0 : -1;
}

static int
fuzz_lstat(const char *path, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_mode = S_IFREG;
	return fuzz_access(path, F_OK);
}

FILE *
AllocateFile(const char *name, const char *mode)
{
	(void) name;
	return fmemopen(file, strlen(file), mode);
}

int
FreeFile(FILE *stream)
{
	return fclose(stream);
}

bool
LWLockAcquire(LWLock *lock, LWLockMode mode)
{
	(void) lock;
	(void) mode;
	return true;
}

bool
LWLockConditionalAcquire(LWLock *lock, LWLockMode mode)
{
	return LWLockAcquire(lock, mode);
}

void
LWLockRelease(LWLock *lock)
{
	(void) lock;
}

void
ProcessConfigFile(GucContext context)
{
	(void) context;
}

/* None comes from a file, so nothing of ours is in effect. */
static const struct config_generic *
no_setting(const char *name)
{
	(void) name;
	return NULL;
}

char *
walsizer_replace_file(const char *name, const char *text, size_t length)
{
	(void) name;
	written = pnstrdup(text, length);
	return NULL;
}

/* An integer and a unit; the server's function also knows fractions and hints. */
bool
parse_int(const char *value, int *result, int flags, const char **hintmsg)
{
	char	   *end;
	long		number = strtol(value, &end, 10);

	(void) flags;
	(void) hintmsg;
	if (end == value || number < 0 || number > 2000000)
		return false;
	*result = (int) (strcmp(end, "GB") == 0 ? number * 1024 : number);
	return *end == '\0' || strcmp(end, "MB") == 0 || strcmp(end, "GB") == 0;
}

/*-------------------------------------------------------------------------
 * The server's parser of configuration files
 *-------------------------------------------------------------------------
 */
static bool
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char) c >= 0x80;
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *
skip_blanks(const char *s)
{
	while (*s == ' ' || *s == '\t' || *s == '\r')
		s++;
	if (*s == '#')
		while (*s != '\0' && *s != '\n')
			s++;
	return s;
}

/* A name, with at most one dot; NULL if there is none. */
static const char *
skip_name(const char *s)
{
	for (int part = 0; part < 2; part++)
	{
		if (!is_letter(*s))
			return NULL;
		while (is_letter(*s) || is_digit(*s))
			s++;
		if (*s != '.' || part == 1)
			return s;
		s++;
	}
	return NULL;
}

/* What an escape stands for; *s is behind the backslash, and moved on. */
static char
unescape(const char **s)
{
	const char	from[] = "bfnrt";
	const char	to[] = "\b\f\n\r\t";
	const char *known = strchr(from, **s);
	int			value = 0;

	if (**s >= '0' && **s <= '7')
	{
		for (int i = 0; i < 3 && **s >= '0' && **s <= '7'; i++)
			value = value * 8 + *(*s)++ - '0';
		return (char) value;
	}
	return known != NULL ? (*s)++, to[known - from] : *(*s)++;
}

/* A value in quotes, without them, into *value; NULL if it does not end. */
static const char *
take_quoted(const char *s, char **value)
{
	char	   *to = *value = palloc(strlen(s) + 1);

	for (;;)
	{
		if (*s == '\0' || *s == '\n')
			return NULL;
		if (*s == '\'' && s[1] != '\'')
			break;
		if (*s == '\\' && (s[1] == '\n' || s[1] == '\0'))
			return NULL;
		if (*s == '\\')
		{
			s++;
			*to++ = unescape(&s);
		}
		else
		{
			s += *s == '\'' ? 2 : 1;
			*to++ = s[-1];
		}
	}
	*to = '\0';
	return s + 1;
}

static const char *
take_plain(const char *s, char **value)
{
	const char *end = s;

	while (is_letter(*end) || is_digit(*end) || (*end != '\0' && strchr("-+._:/", *end)))
		end++;
	*value = pnstrdup(s, (Size) (end - s));
	return end > s ? end : NULL;
}

/* One line's setting, or none; the rest of the text, or NULL if it is wrong. */
static const char *
parse_line(const char *s, char **name, char **value)
{
	const char *end;

	*name = *value = NULL;
	s = skip_blanks(s);
	if (*s != '\n' && *s != '\0')
	{
		end = skip_name(s);
		if (end == NULL)
			return NULL;
		*name = pnstrdup(s, (Size) (end - s));
		s = skip_blanks(end);
		if (*s == '=')
			s = skip_blanks(s + 1);
		s = *s == '\'' ? take_quoted(s + 1, value) : take_plain(s, value);
		if (s == NULL)
			return NULL;
		s = skip_blanks(s);
	}
	if (*s == '\n')
		return s + 1;
	return *s == '\0' ? s : NULL;
}

static bool
parse_text(const char *text, ConfigVariable **head)
{
	ConfigVariable **next = head;

	*head = NULL;
	while (*text != '\0')
	{
		char	   *name;
		char	   *value;

		text = parse_line(text, &name, &value);
		if (text == NULL || name == NULL)
		{
			if (text == NULL)
				return false;
			continue;
		}
		*next = palloc(sizeof(ConfigVariable));
		memset(*next, 0, sizeof(ConfigVariable));
		(*next)->name = name;
		(*next)->value = value;
		next = &(*next)->next;
	}
	return true;
}

bool
ParseConfigFile(const char *config_file, bool strict, const char *calling_file,
				int calling_lineno, int depth, int elevel,
				ConfigVariable **head_p, ConfigVariable **tail_p)
{
	(void) config_file;
	(void) strict;
	(void) calling_file;
	(void) calling_lineno;
	(void) depth;
	(void) elevel;
	(void) tail_p;
	return parse_text(file, head_p);
}

void
FreeConfigVariables(ConfigVariable *list)
{
	(void) list;
}

/*-------------------------------------------------------------------------
 * What must hold
 *-------------------------------------------------------------------------
 */
static bool
is_ours(const ConfigVariable *item)
{
	return pg_strcasecmp(item->name, SIZE) == 0 || pg_strcasecmp(item->name, NOTE) == 0;
}

static const ConfigVariable *
next_of_others(const ConfigVariable *item)
{
	while (item != NULL && is_ours(item))
		item = item->next;
	return item;
}

/* The same settings, but for ours, in the same order? */
static void
check_others(const ConfigVariable *before, const ConfigVariable *after)
{
	before = next_of_others(before);
	after = next_of_others(after);
	for (; before != NULL && after != NULL;
		 before = next_of_others(before->next), after = next_of_others(after->next))
		CHECK(strcmp(before->name, after->name) == 0 && strcmp(before->value, after->value) == 0);
	CHECK(before == NULL && after == NULL);
}

static bool
same_note(const WalsizerNote *a, const WalsizerNote *b)
{
	return a->kind == b->kind && a->written_mb == b->written_mb && a->original_mb == b->original_mb &&
		a->original_by_alter_system == b->original_by_alter_system;
}

/* Write our note into the file, and read what the server would read. */
static void
check_write(const WalsizerNote *note, const WalsizerNote *noted, const ConfigVariable *before,
			bool parsed)
{
	WalsizerNote expected = *note;
	WalsizerAutoConf conf;
	ConfigVariable *after;
	WalsizerResult result = walsizer_write_note(note);
	WalsizerOutcome outcome = result.outcome;

	CHECK((outcome == WALSIZER_APPLIED) == (written != NULL));
	CHECK((outcome == WALSIZER_APPLIED) == (result.message[0] == '\0'));
	CHECK(parsed || outcome == WALSIZER_FAILED || outcome == WALSIZER_FORBIDDEN);
	CHECK((outcome == WALSIZER_FORBIDDEN) == (file_exists && includes_files()));
	if (written == NULL)
		return;
	CHECK(strlen(written) <= 2 * MAX_TEXT + 512);
	CHECK(parse_text(written, &after));
	check_others(before, after);

	/* our own reader finds line and note */
	if (strlen(written) <= MAX_TEXT)
	{
		strcpy(file, written);
		file_exists = true;
		CHECK(read_file(PG_AUTOCONF_FILENAME, &conf, NULL));
		if (note->kind == WALSIZER_NOTE_WRITTEN && noted->kind != WALSIZER_NO_NOTE)
		{
			expected.original_mb = noted->original_mb;
			expected.original_by_alter_system = noted->original_by_alter_system;
		}
		CHECK(conf.size_mb == line_of(&expected) && same_note(&conf.note, &expected));
	}
}

/* Remove a note that tells nothing: an administrator's line stays. */
static void
check_drop(const WalsizerAutoConf *conf, const ConfigVariable *before, bool parsed)
{
	ConfigVariable *after;
	WalsizerAutoConf now;
	bool		may_write = parsed && !includes_files() && !is_pending(conf);

	CHECK(walsizer_drop_note() == may_write);
	CHECK((written != NULL) == (may_write && conf->note.kind == WALSIZER_NO_NOTE));
	if (written == NULL)
		return;
	CHECK(parse_text(written, &after));
	check_others(before, after);
	if (strlen(written) <= MAX_TEXT)
	{
		strcpy(file, written);
		file_exists = true;
		CHECK(read_file(PG_AUTOCONF_FILENAME, &now, NULL));
		CHECK(now.size_mb == conf->size_mb && now.note.kind == WALSIZER_NO_NOTE);
	}
}

static void
check_text_of_note(const char *value)
{
	WalsizerNote note = walsizer_note_parse(value);
	char		again[WALSIZER_NOTE_SIZE];

	if (note.kind == WALSIZER_NO_NOTE)
		return;
	walsizer_note_format(&note, again);
	CHECK(strcmp(value, again) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input		in = {data, size};
	uint64_t	flags = take(&in, 1);
	int64		mb = 32 + (int64) take(&in, 2);
	WalsizerNote note = {flags & 32 ? WALSIZER_NOTE_RESTORED : WALSIZER_NOTE_WRITTEN,
		mb, 1 + (int64) take(&in, 2), flags & 1};
	WalsizerAutoConf conf;
	ConfigVariable *before = NULL;
	bool		parsed;

	if (in.left > MAX_TEXT)
		return 0;
	memcpy(file, in.data, in.left);
	file[in.left] = '\0';
	file_exists = flags & 2;
	if (!file_exists)
		file[0] = '\0';
	IsUnderPostmaster = flags & 4;

	parsed = read_file(PG_AUTOCONF_FILENAME, &conf, NULL);
	CHECK(parsed == parse_text(file, &before) || !file_exists);
	CHECK(!parsed || conf.note.kind == WALSIZER_NO_NOTE ||
		  (conf.note.written_mb > 0 && conf.note.original_mb > 0 &&
		   line_of(&conf.note) == conf.size_mb));
	for (const ConfigVariable *item = before; item != NULL; item = item->next)
		check_text_of_note(item->value);
	(void) walsizer_note_waiting(flags & 8);
	if (flags & 16)
		check_drop(&conf, before, parsed);
	else
		check_write(&note, &conf.note, before, parsed);
	written = NULL;
	free_all();
	return 0;
}
