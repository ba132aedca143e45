/*-------------------------------------------------------------------------
 *
 * watch/sample.c
 *	  The only reader of the server: one statement, one round trip a sample.
 *
 * What a server or a role does not allow is found out once for each
 * connection, and done without.  All that is asked is listed in the manual
 * page.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "watch/server.h"

#define STATEMENT_SIZE		4096

/*
 * Before 15 the statistics collector writes files for who asks, so it is not
 * asked each time.
 */
#define COUNT_EVERY			10

/* The columns of the statement. */
typedef enum Column
{
	IN_RECOVERY, POSITION, MAX_WAL_SIZE, TIMEOUT, COMPLETION_TARGET, SEGMENT,
	REDO, STARTED,				/* PART_CHECKPOINT */
	BUSY,						/* PART_CHECKPOINTER */
	REQUESTED, TIMED,			/* PART_COUNTERS */
	IMAGES, IMAGE_BYTES,		/* PART_WAL */
	RECEIVER, RECEIVED_AT, PRIMARY, /* PART_RECEIVER */
	COLUMNS,
} Column;

/* What no server may refuse. */
static const char *const needed =
	"SELECT pg_is_in_recovery()::int,"
	" (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()"
	" ELSE pg_current_wal_lsn() END - '0/0')::bigint,"
	" pg_size_bytes(current_setting('max_wal_size')) / 1048576,"
	" (extract(epoch FROM current_setting('checkpoint_timeout')::interval) * 1000)::bigint,"
	" current_setting('checkpoint_completion_target')::float8,"
	" pg_size_bytes(current_setting('wal_segment_size'))";

/* What not every server shows, or not to every role. */
static const struct
{
	int			columns;
	int			since;			/* version; 0: any */
	const char *sql;
	int			later;			/* version from which there is another text; 0: none */
	const char *later_sql;
	const char *missing;		/* what it is, and what follows from its absence */
}			parts[PARTS] = {
	[PART_CHECKPOINT] = {2, 0,
		"SELECT (redo_lsn - '0/0')::bigint,"
		" extract(epoch FROM checkpoint_time)::bigint FROM pg_control_checkpoint()", 0, NULL,
		"pg_control_checkpoint(): causes of checkpoints are inferred from WAL volume and time"},
	[PART_CHECKPOINTER] = {1, 0,
		"SELECT (wait_event IS DISTINCT FROM 'CheckpointerMain')::int"
		" FROM pg_stat_get_activity($1) WHERE backend_type = 'checkpointer'", 0, NULL,
		"the checkpointer in pg_stat_activity, which pg_monitor may read: starts of checkpoints are inferred from WAL volume and time"},
	[PART_COUNTERS] = {2, 0,
		"SELECT pg_stat_get_bgwriter_requested_checkpoints(),"
		" pg_stat_get_bgwriter_timed_checkpoints() WHERE $2", 170000,
		"SELECT CASE WHEN pg_is_in_recovery()"
		" THEN pg_stat_get_checkpointer_restartpoints_requested()"
		" ELSE pg_stat_get_checkpointer_num_requested() END,"
		" CASE WHEN pg_is_in_recovery()"
		" THEN pg_stat_get_checkpointer_restartpoints_timed()"
		" ELSE pg_stat_get_checkpointer_num_timed() END WHERE $2",
		"the server's counters of checkpoints"},
	[PART_WAL] = {2, 140000,
		"SELECT wal_fpi, NULL::bigint FROM pg_stat_wal WHERE $2", 190000,
		"SELECT wal_fpi, wal_fpi_bytes::bigint FROM pg_stat_wal WHERE $2",
		"pg_stat_wal: full-page images are not counted"},
	[PART_RECEIVER] = {3, 0,
		"SELECT pid, (extract(epoch FROM last_msg_receipt_time) * 1000000)::bigint,"
		" (latest_end_lsn - '0/0')::bigint FROM pg_stat_wal_receiver", 0, NULL,
		"pg_stat_wal_receiver: the primary's position is not known"},
};

static const char *
sql_of(const Server *server, Part part)
{
	return parts[part].later != 0 && server->version >= parts[part].later ?
		parts[part].later_sql : parts[part].sql;
}

/*
 * Does the server answer for this part?  A row may be missing where there is
 * nothing to show, but not that of the checkpointer.  Of a WAL receiver, a role
 * without the right to see it is shown the pid alone.
 */
static bool
probe(Server *server, Part part, const char *sql, bool *lost)
{
	const char *parameters[] = {server->checkpointer[0] != '\0' ? server->checkpointer : NULL, "t"};
	PGresult   *result;
	bool		answers;

	if (part == PART_CHECKPOINTER && parameters[0] == NULL)
		return false;
	result = watch_query(server, sql, 2, parameters);
	*lost = result == NULL;
	if (*lost)
		return false;
	answers = PQresultStatus(result) == PGRES_TUPLES_OK &&
		(part != PART_CHECKPOINTER || PQntuples(result) == 1) &&
		(part != PART_RECEIVER || PQntuples(result) == 0 ||
		 PQgetisnull(result, 0, 0) || !PQgetisnull(result, 0, 1));
	PQclear(result);
	return answers;
}

/* Find out what the server shows us, and say what it does not. */
static bool
probe_all(Server *server)
{
	for (Part part = 0; part < PARTS; part++)
	{
		bool		lost = false;

		server->has[part] = server->version >= parts[part].since &&
			probe(server, part, sql_of(server, part), &lost);
		if (lost)
			return false;
		if (!server->has[part] && !server->said[part])
			watch_complain("the server does not show %s", parts[part].missing);
		server->said[part] = !server->has[part];
	}
	return true;
}

/* Add to the statement; what does not fit is a mistake of ours. */
static void
append(char *sql, const char *text)
{
	if (strlen(sql) + strlen(text) >= STATEMENT_SIZE)
		watch_die("the statement is too long");
	strcat(sql, text);
}

/* All in one statement, with nulls for what the server does not show. */
static void
compose(const Server *server, char *sql)
{
	char		text[64];

	sql[0] = '\0';
	append(sql, needed);
	for (Part part = 0; part < PARTS; part++)
		for (int column = 0; column < parts[part].columns; column++)
		{
			snprintf(text, sizeof(text), server->has[part] ? ", p%d.c%d" : ", NULL", part, column);
			append(sql, text);
		}
	append(sql, " FROM (SELECT 1) AS one");
	for (Part part = 0; part < PARTS; part++)
	{
		if (!server->has[part])
			continue;
		append(sql, " LEFT JOIN LATERAL (");
		append(sql, sql_of(server, part));
		snprintf(text, sizeof(text), ") AS p%d (c0", part);
		append(sql, text);
		for (int column = 1; column < parts[part].columns; column++)
		{
			snprintf(text, sizeof(text), ", c%d", column);
			append(sql, text);
		}
		append(sql, ") ON true");
	}
}

/* Prepare the statement for a new connection.  False if that ended. */
static bool
prepare(Server *server)
{
	char		sql[STATEMENT_SIZE];

	if (!probe_all(server))
		return false;
	compose(server, sql);
	return watch_prepare_statement(server, sql);
}

/* Try once to connect again; false, having said why, if that fails. */
bool
watch_reconnect(Server *server)
{
	return watch_open(server) && prepare(server);
}

/*
 * Connect; ends the program if that fails, because then something is wrong
 * that does not pass.
 */
Server *
watch_connect(const Options *options)
{
	Server	   *server = watch_allocate(sizeof(Server));

	server->options = options;
	if (!watch_reconnect(server))
		exit(WATCH_COULD_NOT_TELL);
	return server;
}

static int64_t
value_of(const PGresult *row, Column column)
{
	return PQgetisnull(row, 0, column) ? WATCH_UNKNOWN :
		strtoll(PQgetvalue(row, 0, column), NULL, 10);
}

static void
read_settings(const PGresult *row, WalsizerSettings *settings)
{
	settings->max_wal_size_mb = value_of(row, MAX_WAL_SIZE);
	settings->timeout_ms = value_of(row, TIMEOUT);
	settings->completion_target = strtod(PQgetvalue(row, 0, COMPLETION_TARGET), NULL);
	settings->segment_bytes = value_of(row, SEGMENT);
}

/* A position as it is kept: from our base on, in units. */
static int64_t
position_from(const Server *server, int64_t lsn, int64_t segment_bytes)
{
	int64_t		unit = segment_bytes / WATCH_UNITS_PER_SEGMENT;

	if (lsn == WATCH_UNKNOWN)
		return WATCH_UNKNOWN;
	return lsn > server->base ? (lsn - server->base) / unit * unit : 0;
}

/* How far the primary has written; see primary_position() in server/sample.c. */
static int64_t
primary_position(Server *server, const PGresult *row)
{
	int64_t		receiver = value_of(row, RECEIVER);
	int64_t		received_at = value_of(row, RECEIVED_AT);

	if (receiver != server->receiver)
	{
		server->receiver = receiver;
		server->first_seen = received_at;
	}
	return receiver != WATCH_UNKNOWN && received_at != server->first_seen ?
		value_of(row, PRIMARY) : WATCH_UNKNOWN;
}

/* The first sample of a server: positions count from its redo pointer on. */
static void
begin(Server *server, const PGresult *row, int64_t start, Observation *seen)
{
	int64_t		base = value_of(row, POSITION);
	int64_t		timer = server->postmaster_s;

	if (seen->completed != WATCH_UNKNOWN && seen->completed < base)
		base = seen->completed;
	if (value_of(row, STARTED) > timer)
		timer = value_of(row, STARTED);
	server->base = base - base % seen->settings.segment_bytes;
	server->begins = false;
	seen->begins = true;
	seen->timer_s = timer - start;
}

static void
fill(Server *server, const PGresult *row, int64_t start, Observation *seen)
{
	int64_t		segment;

	*seen = (Observation) {0};
	read_settings(row, &seen->settings);
	memcpy(seen->source, server->source, sizeof(seen->source));
	segment = seen->settings.segment_bytes;
	seen->standby = value_of(row, IN_RECOVERY) != 0;
	seen->completed = value_of(row, REDO);
	seen->started_s = seen->completed != WATCH_UNKNOWN ? value_of(row, STARTED) - start : 0;
	if (server->begins || seen->standby != server->standby)
		begin(server, row, start, seen);
	server->standby = seen->standby;
	seen->completed = position_from(server, seen->completed, segment);
	seen->position = position_from(server, value_of(row, POSITION), segment);
	seen->primary = position_from(server, primary_position(server, row), segment);
	seen->busy = (int) value_of(row, BUSY);
	seen->requested = value_of(row, REQUESTED);
	seen->timed = value_of(row, TIMED);
	seen->images = value_of(row, IMAGES);
	seen->image_bytes = value_of(row, IMAGE_BYTES);
}

/*
 * Counters that were not asked for are as they were.  Images count with the
 * checkpoints only, because they move with each sample.
 */
static void
keep_counters(Server *server, Observation *seen, bool asked)
{
	Observation *counted = &server->counted;

	if (!asked)
	{
		seen->requested = counted->requested;
		seen->timed = counted->timed;
	}
	if (!asked || (!seen->begins && seen->completed == counted->completed &&
				   seen->requested == counted->requested && seen->timed == counted->timed))
	{
		seen->images = counted->images;
		seen->image_bytes = counted->image_bytes;
	}
	if (asked)
		*counted = *seen;
}

/*
 * Observe the server; times in the observation count from start, s since
 * 1970, and the caller fills in the tick.  False, having said why, if there is
 * none this time; then the connection may have ended.
 */
bool
watch_sample(Server *server, int64_t start, Observation *seen)
{
	bool		count = server->version >= 150000 || server->samples % COUNT_EVERY == 0 ||
		server->begins;
	const char *parameters[] = {server->checkpointer[0] != '\0' ? server->checkpointer : NULL,
	count ? "t" : "f"};
	PGresult   *row = watch_run(server, 2, parameters);
	bool		good;

	if (row == NULL)
		return false;
	good = PQresultStatus(row) == PGRES_TUPLES_OK && PQntuples(row) == 1 &&
		PQnfields(row) == COLUMNS && !PQgetisnull(row, 0, POSITION);
	if (good)
	{
		fill(server, row, start, seen);
		keep_counters(server, seen, count);
		server->samples++;
	}
	else if (!server->failed)
		watch_complain("could not take a sample: %s", PQresultStatus(row) == PGRES_TUPLES_OK ?
					   "the server has no WAL position yet" : PQresultErrorField(row, PG_DIAG_MESSAGE_PRIMARY));
	server->failed = !good;
	PQclear(row);
	return good;
}
