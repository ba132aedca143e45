/*-------------------------------------------------------------------------
 *
 * trace.c
 *	  Loads that were saved: written by hand, or recorded by walsizer-watch.
 *
 * By hand, there is one line for each piece:
 *
 *		set KEY NUMBER
 *		SECONDS BYTES [MARK]
 *
 * BYTES of logical WAL have been written since the line before, evenly, when
 * SECONDS have passed since the start; then MARK happens: CHECKPOINT, RESTART,
 * CRASH, BEGIN and END (of a statement that keeps its max_wal_size), RESET
 * (of the statistics).  KEY is timeout (s), max_wal_size (MB), segment (MB),
 * completion_target, hot_pages, touch_bytes or image_bytes.  The rest of a
 * line after # is a comment.
 *
 * What walsizer-watch records is in test/sim/README.md.  Here only its settings at
 * the start and its WAL count: the model makes its own checkpoints.  The WAL
 * includes the page images of the checkpoints that there were.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define UNITS_PER_SEGMENT	64

typedef struct Reading
{
	double		time;			/* ms, of the last piece's end */
	double		interval;		/* ms between recorded samples */
	bool		recorded;		/* by walsizer-watch */
	double		gap;			/* ms without samples before the next piece */
} Reading;

static bool
set(SimLoad *load, const char *key, double value)
{
	if (strcmp(key, "timeout") == 0)
		load->settings.timeout_ms = (int64_t) (value * 1000);
	else if (strcmp(key, "max_wal_size") == 0)
		load->settings.max_wal_size_mb = (int64_t) value;
	else if (strcmp(key, "segment") == 0)
		load->settings.segment_bytes = (int64_t) value * WALSIZER_MB;
	else if (strcmp(key, "completion_target") == 0)
		load->settings.completion_target = value;
	else if (strcmp(key, "hot_pages") == 0)
		load->hot_pages = value;
	else if (strcmp(key, "touch_bytes") == 0)
		load->touch_bytes = value;
	else if (strcmp(key, "image_bytes") == 0)
		load->image_bytes = value;
	else
		return false;
	return true;
}

static bool
mark_of(const char *word, SimMark *mark)
{
	static const char *const names[] = {
		"", "CHECKPOINT", "RESTART", "CRASH", "BEGIN", "END", "RESET",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(word, names[i]) == 0)
		{
			*mark = (SimMark) i;
			return true;
		}
	return false;
}

/* For SimLoad.next: the pieces that are kept in the load, one after the other. */
bool
sim_next_kept_piece(SimLoad *load, double at, SimPiece *piece)
{
	(void) at;
	if (load->number >= load->num_pieces)
		return false;
	*piece = load->pieces[load->number++];
	return true;
}

static bool
add_piece(SimLoad *load, Reading *reading, SimPiece piece)
{
	if ((load->num_pieces & (load->num_pieces - 1)) == 0)
		load->pieces = realloc(load->pieces,
							   (size_t) (load->num_pieces * 2 + 1) * sizeof(SimPiece));
	if (load->pieces == NULL)
		return false;
	load->pieces[load->num_pieces++] = piece;
	reading->time += piece.ms;
	return true;
}

static bool
read_piece(SimLoad *load, Reading *reading, const char *line)
{
	char		word[32] = "";
	double		seconds;
	double		bytes;
	SimPiece	piece = {0};

	if (sscanf(line, "%lf %lf %31s", &seconds, &bytes, word) < 2 ||
		seconds * 1000 < reading->time || bytes < 0 || !mark_of(word, &piece.mark))
		return false;
	piece.ms = seconds * 1000 - reading->time;
	piece.bytes = bytes;
	return add_piece(load, reading, piece);
}

/* UNITS[/UNITS][*TIMES] ...: the WAL of recorded samples. */
static bool
read_samples(SimLoad *load, Reading *reading, const char *tokens)
{
	double		unit = (double) load->settings.segment_bytes / UNITS_PER_SEGMENT;
	char	   *end;

	while (*(tokens += strspn(tokens, " ")) != '\0')
	{
		long		units = strtol(tokens, &end, 10);
		long		times = 1;
		SimPiece	piece = {0};

		if (end == tokens || units < 0)
			return false;
		if (*end == '/')
			(void) strtol(end + 1, &end, 10);
		if (*end == '*')
			times = strtol(end + 1, &end, 10);
		if ((*end != ' ' && *end != '\0') || times < 1)
			return false;
		piece.ms = (double) times * reading->interval + reading->gap;
		piece.bytes = (double) (units * times) * unit;
		reading->gap = 0;
		if (!add_piece(load, reading, piece))
			return false;
		tokens = end;
	}
	return true;
}

/* A line of a recorded trace. */
static bool
read_recorded(SimLoad *load, Reading *reading, const char *line)
{
	static const char *const ignored[] = {"redo", "counters", "source", "primary", "busy", "images", "end"};
	char		word[32] = "";
	double		value = 0;

	if (sscanf(line, "set %31s %lf", word, &value) == 2)
	{
		if (strcmp(word, "interval") == 0)
			reading->interval = value * 1000;
		return strcmp(word, "interval") == 0 || strcmp(word, "start") == 0 ||
			load->num_pieces > 0 || set(load, word, value);
	}
	if (strncmp(line, "wal ", 4) == 0)
		return read_samples(load, reading, line + 4);
	if (sscanf(line, "gap %lf", &value) == 1)
	{
		reading->gap += value * reading->interval;
		return true;
	}
	if (strncmp(line, "begin ", 6) == 0)
	{
		if (load->num_pieces > 0)
			load->pieces[load->num_pieces - 1].mark = SIM_RESTART;
		return true;
	}
	(void) sscanf(line, "%31s", word);
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		if (strcmp(word, ignored[i]) == 0)
			return true;
	return false;
}

static bool
read_line(SimLoad *load, Reading *reading, char *line)
{
	char		word[32] = "";
	double		value;

	line[strcspn(line, "#\n")] = '\0';
	if (line[strspn(line, " \t")] == '\0')
		return true;
	if (strcmp(line, "walsizer-trace 1") == 0)
	{
		reading->recorded = true;
		return true;
	}
	if (reading->recorded)
		return read_recorded(load, reading, line);
	if (sscanf(line, "set %31s %lf", word, &value) == 2)
		return set(load, word, value);
	return read_piece(load, reading, line);
}

bool
sim_load_read(SimLoad *load, const char *path)
{
	FILE	   *file = fopen(path, "r");
	const char *base = strrchr(path, '/');
	char		line[256];
	Reading		reading = {0};
	int			number = 0;

	if (file == NULL)
	{
		perror(path);
		return false;
	}
	memset(load, 0, sizeof(*load));
	snprintf(load->name, sizeof(load->name), "%s", base ? base + 1 : path);
	load->settings = (WalsizerSettings) {16 * WALSIZER_MB, 1024, 0.9, 300000};
	load->touch_bytes = 200;
	load->image_bytes = 6000;
	load->next = sim_next_kept_piece;
	while (fgets(line, sizeof(line), file) != NULL)
	{
		number++;
		if (!read_line(load, &reading, line))
		{
			fprintf(stderr, "%s:%d: not understood\n", path, number);
			fclose(file);
			return false;
		}
	}
	fclose(file);
	load->duration = reading.time;
	return true;
}
