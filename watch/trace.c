/*-------------------------------------------------------------------------
 *
 * watch/trace.c
 *	  Write observations as a trace, which test/sim/README.md describes.
 *
 * A week must fit into about a megabyte, so only what changes is written, and
 * most samples are one small number.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "watch/watch.h"

#define LINE_WIDTH		76
#define FLUSH_MS		300000	/* what a kill may lose of equal samples */

struct TraceWriter
{
	FILE	   *file;
	const char *path;
	uint64_t	sum;
	int64_t		samples;
	Observation before;
	char		token[64];		/* the last, not written yet */
	int			repeated;		/* how often it came; 0: there is none */
	int			width;			/* of the line of tokens; 0: none is open */
	int64_t		flush_at;		/* the tick at which to end it, and how often */
	int64_t		flush_every;
	bool		failed;
};

/* FNV-1a, continued from sum. */
uint64_t
watch_checksum(uint64_t sum, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
	{
		sum ^= (unsigned char) text[i];
		sum *= UINT64_C(1099511628211);
	}
	return sum;
}

static void
put(TraceWriter *writer, const char *text)
{
	size_t		length = strlen(text);

	writer->sum = watch_checksum(writer->sum, text, length);
	if (fwrite(text, 1, length, writer->file) != length)
		writer->failed = true;
}

/* End a line of tokens.  If we are killed, the file is complete up to here. */
static void
end_line(TraceWriter *writer)
{
	if (writer->width > 0)
		put(writer, "\n");
	writer->width = 0;
	if (fflush(writer->file) != 0)
		writer->failed = true;
}

/* Write out the last token. */
static void
end_token(TraceWriter *writer)
{
	char		text[96];

	if (writer->repeated == 0)
		return;
	if (writer->repeated > 1)
		snprintf(text, sizeof(text), " %s*%d", writer->token, writer->repeated);
	else
		snprintf(text, sizeof(text), " %s", writer->token);
	writer->repeated = 0;
	if (writer->width > 0 && writer->width + (int) strlen(text) > LINE_WIDTH)
		end_line(writer);
	if (writer->width == 0)
	{
		put(writer, "wal");
		writer->width = 3;
	}
	put(writer, text);
	writer->width += (int) strlen(text);
}

static void put_line(TraceWriter *writer, const char *format, ...)
			__attribute__((format(printf, 2, 3)));

/* A line of its own. */
static void
put_line(TraceWriter *writer, const char *format, ...)
{
	char		text[160];
	va_list		args;

	end_token(writer);
	end_line(writer);
	va_start(args, format);
	vsnprintf(text, sizeof(text) - 1, format, args);
	va_end(args);
	strcat(text, "\n");
	put(writer, text);
}

static void
put_token(TraceWriter *writer, const char *token)
{
	if (writer->repeated > 0 && writer->repeated < WATCH_MOST_REPEATED &&
		strcmp(token, writer->token) == 0)
	{
		writer->repeated++;
		return;
	}
	end_token(writer);
	snprintf(writer->token, sizeof(writer->token), "%s", token);
	writer->repeated = 1;
}

/* Ends the program if the file cannot be written: nothing is lost yet. */
TraceWriter *
watch_trace_create(const char *path, int64_t interval_ms, int64_t start)
{
	TraceWriter *writer = watch_allocate(sizeof(TraceWriter));
	struct stat existing;

	writer->path = path;
	writer->sum = WATCH_CHECKSUM_START;
	writer->before.tick = -1;
	writer->flush_every = FLUSH_MS / interval_ms;
	if (stat(path, &existing) == 0 && S_ISREG(existing.st_mode) && existing.st_size > 0)
		watch_die("\"%s\" exists already, and is not replaced", path);
	writer->file = fopen(path, "w");
	if (writer->file == NULL)
		watch_die("could not create \"%s\": %s", path, strerror(errno));
	put_line(writer, "walsizer-trace 1");
	put_line(writer, "set interval %g", (double) interval_ms / 1000);
	put_line(writer, "set start %lld", (long long) start);
	end_line(writer);
	if (writer->failed)
		watch_die("could not write \"%s\": %s", path, strerror(errno));
	return writer;
}

static void
put_settings(TraceWriter *writer, const Observation *seen)
{
	const WalsizerSettings *now = &seen->settings;
	const WalsizerSettings *before = &writer->before.settings;

	if (now->segment_bytes != before->segment_bytes)
		put_line(writer, "set segment %lld", (long long) (now->segment_bytes / WALSIZER_MB));
	if (now->max_wal_size_mb != before->max_wal_size_mb)
		put_line(writer, "set max_wal_size %lld", (long long) now->max_wal_size_mb);
	if (now->completion_target != before->completion_target)
		put_line(writer, "set completion_target %.17g", now->completion_target);
	if (now->timeout_ms != before->timeout_ms)
		put_line(writer, "set timeout %g", (double) now->timeout_ms / 1000);
}

/* A position in units; negative if it is not known. */
static long long
units(const Observation *seen, int64_t position)
{
	return position == WATCH_UNKNOWN ? WATCH_UNKNOWN :
		position / (seen->settings.segment_bytes / WATCH_UNITS_PER_SEGMENT);
}

/* The lines for what changed since the observation before. */
static void
put_changes(TraceWriter *writer, const Observation *seen)
{
	const Observation *before = &writer->before;
	bool		all = seen->begins;
	int64_t		gap = seen->tick - before->tick - 1;

	if (gap > 0)
		put_line(writer, "gap %lld", (long long) gap);
	put_settings(writer, seen);
	if (seen->begins)
		put_line(writer, "begin %s %lld %lld", seen->standby ? "standby" : "primary",
				 (long long) seen->timer_s, units(seen, seen->position));
	if (strcmp(seen->source, before->source) != 0)
		put_line(writer, "source %s", seen->source);
	if (all || seen->completed != before->completed || seen->started_s != before->started_s)
		put_line(writer, "redo %lld %lld", units(seen, seen->completed),
				 (long long) seen->started_s);
	if (all || seen->requested != before->requested || seen->timed != before->timed)
		put_line(writer, "counters %lld %lld", (long long) seen->requested,
				 (long long) seen->timed);
	if (all || (seen->primary == WATCH_UNKNOWN) != (before->primary == WATCH_UNKNOWN))
		put_line(writer, "primary %lld", units(seen, seen->primary));
	if (all || seen->busy != before->busy)
		put_line(writer, "busy %d", seen->busy);
	if (all || seen->images != before->images || seen->image_bytes != before->image_bytes)
		put_line(writer, "images %lld %lld", (long long) seen->images,
				 (long long) seen->image_bytes);
}

/* Write one observation.  False, having said why, if that fails. */
bool
watch_trace_write(TraceWriter *writer, const Observation *seen)
{
	char		token[64];
	long long	wal;

	put_changes(writer, seen);
	if (seen->tick >= writer->flush_at)
	{
		end_token(writer);
		end_line(writer);
		writer->flush_at = seen->tick + writer->flush_every;
	}
	wal = seen->begins ? 0 : units(seen, seen->position) - units(seen, writer->before.position);
	if (!seen->begins && seen->primary != WATCH_UNKNOWN && writer->before.primary != WATCH_UNKNOWN)
		snprintf(token, sizeof(token), "%lld/%lld", wal,
				 units(seen, seen->primary) - units(seen, writer->before.primary));
	else
		snprintf(token, sizeof(token), "%lld", wal);
	put_token(writer, token);
	writer->before = *seen;
	writer->samples++;
	if (writer->failed)
		watch_complain("could not write \"%s\": %s", writer->path, strerror(errno));
	return !writer->failed;
}

/*
 * End the trace, at the time of this tick, and free the writer.  False, having said
 * why, if that fails.
 */
bool
watch_trace_close(TraceWriter *writer, int64_t tick)
{
	bool		said = writer->failed;
	bool		good;

	end_token(writer);
	end_line(writer);
	if (writer->samples > 0 && tick > writer->before.tick + 1)
		put_line(writer, "gap %lld", (long long) (tick - writer->before.tick - 1));
	put_line(writer, "end %lld %llx", (long long) writer->samples,
			 (unsigned long long) writer->sum);
	end_line(writer);
	good = !writer->failed;
	if (fclose(writer->file) != 0)
		good = false;
	if (!good && !said)
		watch_complain("could not write \"%s\": %s", writer->path, strerror(errno));
	free(writer);
	return good;
}
