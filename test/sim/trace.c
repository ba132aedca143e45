/*-------------------------------------------------------------------------
 *
 * trace.c
 *	  Loads that were saved, one line for each piece:
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
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

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
read_line(SimLoad *load, char *line, double *time)
{
	char		word[32] = "";
	double		seconds;
	double		bytes;
	SimPiece	piece = {0};

	line[strcspn(line, "#\n")] = '\0';
	if (line[strspn(line, " \t")] == '\0')
		return true;
	if (sscanf(line, "set %31s %lf", word, &seconds) == 2)
		return set(load, word, seconds);
	if (sscanf(line, "%lf %lf %31s", &seconds, &bytes, word) < 2 ||
		seconds * 1000 < *time || bytes < 0 || !mark_of(word, &piece.mark))
		return false;

	piece.ms = seconds * 1000 - *time;
	piece.bytes = bytes;
	*time = seconds * 1000;
	if ((load->num_pieces & (load->num_pieces - 1)) == 0)
		load->pieces = realloc(load->pieces,
							   (size_t) (load->num_pieces * 2 + 1) * sizeof(SimPiece));
	if (load->pieces == NULL)
		return false;
	load->pieces[load->num_pieces++] = piece;
	return true;
}

bool
sim_load_read(SimLoad *load, const char *path)
{
	FILE	   *file = fopen(path, "r");
	const char *base = strrchr(path, '/');
	char		line[256];
	double		time = 0;
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
		if (!read_line(load, line, &time))
		{
			fprintf(stderr, "%s:%d: not understood\n", path, number);
			fclose(file);
			return false;
		}
	}
	fclose(file);
	load->duration = time;
	return true;
}
