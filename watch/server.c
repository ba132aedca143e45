/*-------------------------------------------------------------------------
 *
 * watch/server.c
 *	  The only reader of the server: the connection, and one statement, one round trip
 *	  a sample.
 *
 * Nothing is written on the server.  Each statement has two time limits, the
 * server's and ours, in case the server or the network no longer answers.  All that
 * is asked is listed in the manual page.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "watch/watch.h"

#define STATEMENT			"sample"
#define STATEMENT_TIMEOUT	5000	/* ms, by the server; ours is twice that */

struct Server
{
	const Options *options;
	PGconn	   *connection;		/* NULL: none */
	int			version;		/* as PQserverVersion() */
	bool		said_why;		/* why it cannot be connected again */
	bool		said_hidden;	/* what the server does not show */
	bool		failed;			/* there was no sample last time, and that was said */

	char		identity[64];	/* which server it is: its start, s since 1970 */
	int64_t		server_time;	/* s since 1970, when connected last */
	char		checkpointer[16];	/* its pid, or empty */
	char		source[24];		/* of max_wal_size */
	bool		begins;			/* the next sample is its first */
	int64_t		base;			/* position from which to count */
	bool		standby;		/* at the last sample, like the next */
	int64_t		receiver;		/* pid of the WAL receiver */
	int64_t		first_seen;		/* what it had received last when it was seen first */
	Observation counted;		/* the last one: its images count up to the last checkpoint */
};

/* The columns of the statement. */
typedef enum Column
{
	IN_RECOVERY, POSITION, MAX_WAL_SIZE, TIMEOUT, COMPLETION_TARGET, SEGMENT,
	REDO, STARTED, BUSY, REQUESTED, TIMED, RECORDS, BYTES, IMAGES, IMAGE_BYTES,
	RECEIVER, RECEIVED_AT, PRIMARY,
	COLUMNS,
} Column;

/* What no server may refuse.  The position is read after what FROM has. */
#define NEEDED \
	"SELECT pg_is_in_recovery()::int," \
	" (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()" \
	" ELSE pg_current_wal_lsn() END - '0/0')::bigint," \
	" pg_size_bytes(current_setting('max_wal_size')) / 1048576," \
	" (extract(epoch FROM current_setting('checkpoint_timeout')::interval) * 1000)::bigint," \
	" current_setting('checkpoint_completion_target')::float8," \
	" pg_size_bytes(current_setting('wal_segment_size'))"

/* The rest, if nothing of it is shown, and if all is. */
#define HIDDEN \
	", NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL"
#define SHOWN \
	", checkpoint.*, process.*, counters.*, wal.*, receiver.* FROM (SELECT (redo_lsn - '0/0')::bigint," \
	" extract(epoch FROM checkpoint_time)::bigint FROM pg_control_checkpoint()) AS checkpoint" \
	" LEFT JOIN LATERAL (SELECT (wait_event IS DISTINCT FROM 'CheckpointerMain')::int" \
	" FROM pg_stat_get_activity($1) WHERE backend_type = 'checkpointer') AS process ON true" \
	" LEFT JOIN LATERAL (SELECT %s) AS counters ON true" \
	" LEFT JOIN LATERAL (SELECT %s) AS wal ON true" \
	" LEFT JOIN (SELECT pid, (extract(epoch FROM last_msg_receipt_time) * 1000000)::bigint," \
	" (latest_end_lsn - '0/0')::bigint FROM pg_stat_wal_receiver) AS receiver ON true"

/* That of restartpoints, or of checkpoints. */
#define COUNTER(name) \
	"CASE WHEN pg_is_in_recovery() THEN pg_stat_get_checkpointer_restartpoints_" name "()" \
	" ELSE pg_stat_get_checkpointer_num_" name "() END"

/* libpq's messages end with a newline, and may have several lines. */
static const char *
first_line(const char *message)
{
	static char text[256];

	snprintf(text, sizeof(text), "%.*s", (int) strcspn(message, "\n"), message);
	return text;
}

/*
 * Like psql, except that the default database is postgres and not the role's.  A
 * connection string may be given as its name, and its parts count more than options.
 */
static PGconn *
open_connection(const Options *options)
{
	static const char *const keywords[] = {"fallback_application_name", "connect_timeout", "host",
	"port", "user", "dbname", NULL};
	const char *timeout = getenv("PGCONNECT_TIMEOUT");
	const char *const values[] = {WATCH_NAME, timeout != NULL ? timeout : "10", options->host,
	options->port, options->user, options->dbname, NULL};

	setenv("PGDATABASE", "postgres", 0);
	return PQconnectdbParams(keywords, values, 1);
}

static void
close_connection(Server *server)
{
	PQfinish(server->connection);
	server->connection = NULL;
}

/* Wait for a result; false if it does not come in time or a signal does. */
static bool
wait_for_result(PGconn *connection)
{
	int64_t		end = watch_clock_ms() + 2 * STATEMENT_TIMEOUT;

	while (PQisBusy(connection))
	{
		struct pollfd descriptor = {.fd = PQsocket(connection), .events = POLLIN};
		int64_t		left = end - watch_clock_ms();

		if (left <= 0 || watch_interrupted() ||
			(poll(&descriptor, 1, (int) left) < 0 && errno != EINTR) || !PQconsumeInput(connection))
			return false;
	}
	return true;
}

/* The last result of what was sent, or the first error; NULL, and no connection, if none comes. */
static PGresult *
receive(Server *server, int sent)
{
	PGresult   *last = NULL;
	PGresult   *result;
	const char *why;

	while (sent == 1 && wait_for_result(server->connection))
	{
		result = PQgetResult(server->connection);
		if (result == NULL)
		{
			if (last != NULL && PQstatus(server->connection) == CONNECTION_OK)
				return last;
			break;
		}
		if (last == NULL || PQresultStatus(last) != PGRES_FATAL_ERROR)
		{
			PQclear(last);
			last = result;
		}
		else
			PQclear(result);
	}
	why = last != NULL && PQresultStatus(last) == PGRES_FATAL_ERROR ? PQresultErrorMessage(last) :
		PQerrorMessage(server->connection);
	if (!watch_interrupted())
		watch_complain("lost the connection: %s", why[0] != '\0' ? first_line(why) : "the server does not answer");
	PQclear(last);
	close_connection(server);
	return NULL;
}

/* Is it a result?  Else the connection is closed, and why is said. */
static bool
is_accepted(Server *server, const PGresult *result)
{
	if (PQresultStatus(result) == PGRES_TUPLES_OK || PQresultStatus(result) == PGRES_COMMAND_OK)
		return true;
	if (result != NULL)
	{
		watch_complain("the server refuses a statement: %s", first_line(PQresultErrorMessage(result)));
		close_connection(server);
	}
	return false;
}

/*
 * Which server is it?  A restart, or another server behind the same name, begins anew.
 * False, and the reason, if the process that answers is not the one that the connection
 * named: what we set would stay on the connection of a pooler, and break other clients.
 */
static bool
identify(Server *server, char *why, size_t size)
{
	static const char *const sql =
		"SELECT pg_backend_pid(), extract(epoch FROM pg_postmaster_start_time()),"
		" floor(extract(epoch FROM clock_timestamp()))::bigint,"
		" (SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'),"
		" (SELECT source FROM pg_settings WHERE name = 'max_wal_size')";
	PGresult   *result = receive(server, PQsendQuery(server->connection, sql));
	bool		good = is_accepted(server, result);

	if (good && strtol(PQgetvalue(result, 0, 0), NULL, 10) != PQbackendPID(server->connection))
		snprintf(why, size, "this is a connection pooler: connect to the server itself");
	else if (good)
	{
		const char *identity = PQgetvalue(result, 0, 1);

		server->begins = server->begins || strcmp(identity, server->identity) != 0;
		snprintf(server->identity, sizeof(server->identity), "%s", identity);
		server->server_time = strtoll(PQgetvalue(result, 0, 2), NULL, 10);
		snprintf(server->checkpointer, sizeof(server->checkpointer), "%s", PQgetvalue(result, 0, 3));
		snprintf(server->source, sizeof(server->source), "%.23s", PQgetvalue(result, 0, 4));
	}
	PQclear(result);
	return good && why[0] == '\0';
}

/* Run the prepared statement.  NULL if the connection ended. */
static PGresult *
run(Server *server)
{
	const char *parameter = server->checkpointer[0] != '\0' ? server->checkpointer : NULL;

	return receive(server, PQsendQueryPrepared(server->connection, STATEMENT, 1, &parameter, NULL, NULL, 0));
}

/* Prepare the statement of each sample.  False if the connection ended, having said why. */
static bool
prepare(Server *server, const char *sql)
{
	static const Oid type = 23;	/* integer */
	PGresult   *result = receive(server, PQsendPrepare(server->connection, STATEMENT, sql, 1, &type));
	bool		good = is_accepted(server, result);

	PQclear(result);
	return good;
}

#define SETTINGS \
	"SET statement_timeout = 5000; SET default_transaction_read_only = on;" \
	" SET search_path = ''; SET jit = off"

/*
 * Our side of a new connection: limits, a promise to write nothing, and the statement,
 * with all that this version shows, or if the role may not see that, with the least.
 * False if the connection ended, having said why.
 */
static bool
set_up(Server *server)
{
	char		sql[4096];
	PGresult   *result = receive(server, PQsendQuery(server->connection, server->version >= 140000 ?
													 SETTINGS "; SET idle_session_timeout = 0" : SETTINGS));
	bool		good;

	PQclear(result);
	snprintf(sql, sizeof(sql), NEEDED SHOWN, server->version >= 170000 ?
			 COUNTER("requested") ", " COUNTER("timed") :
			 "pg_stat_get_bgwriter_requested_checkpoints(), pg_stat_get_bgwriter_timed_checkpoints()",
			 server->version >= 190000 ? "wal_records, wal_bytes::bigint, wal_fpi, wal_fpi_bytes::bigint FROM pg_stat_wal" :
			 server->version >= 140000 ? "wal_records, wal_bytes::bigint, wal_fpi, NULL FROM pg_stat_wal" :
			 "NULL, NULL, NULL, NULL");
	if (result == NULL || !prepare(server, sql))
		return false;
	result = run(server);
	good = PQresultStatus(result) == PGRES_TUPLES_OK;
	if (result != NULL && !server->said_hidden && (!good || PQgetisnull(result, 0, BUSY)))
	{
		watch_complain("the server does not show all of its checkpoints: %s; some is inferred from WAL volume and time",
					   good ? "the role is not a member of pg_monitor" : PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY));
		server->said_hidden = true;
	}
	PQclear(result);
	if (good || result == NULL)
		return good;
	result = receive(server, PQsendQuery(server->connection, "DEALLOCATE " STATEMENT));
	PQclear(result);
	return result != NULL && prepare(server, NEEDED HIDDEN);
}

/*
 * Try once to connect, and set up our side.  False if that fails, having said why, of several
 * times once.  Ends the program if it is the first time: then it does not pass.
 */
bool
watch_reconnect(Server *server)
{
	char		why[300] = "";
	size_t		size = sizeof(why);

	server->connection = open_connection(server->options);
	server->version = PQserverVersion(server->connection);
	if (PQstatus(server->connection) != CONNECTION_OK && PQconnectionNeedsPassword(server->connection))
		snprintf(why, size, "the server asks for a password: put it into ~/.pgpass or PGPASSWORD");
	else if (PQstatus(server->connection) != CONNECTION_OK)
		snprintf(why, size, "could not connect: %s", first_line(PQerrorMessage(server->connection)));
	else if (server->version < WATCH_OLDEST_SERVER)
		snprintf(why, size, "the server is PostgreSQL %d; version %d or later is needed",
				 server->version / 10000, WATCH_OLDEST_SERVER / 10000);
	else if (identify(server, why, size) && set_up(server))
	{
		server->said_why = false;
		return true;
	}
	close_connection(server);
	if (why[0] != '\0' && server->identity[0] == '\0')
		watch_die("%s", why);
	if (why[0] != '\0' && !server->said_why)
		watch_complain("%s; trying again", why);
	server->said_why |= why[0] != '\0';
	return false;
}

/* Connect; ends the program if that fails.  *now: the server's clock, s since 1970. */
Server *
watch_connect(const Options *options, int64_t *now)
{
	Server	   *server = watch_allocate(sizeof(Server));

	server->options = options;
	if (!watch_reconnect(server))
		exit(WATCH_COULD_NOT_TELL);
	*now = server->server_time;
	return server;
}

bool
watch_connected(const Server *server)
{
	return server->connection != NULL;
}

void
watch_disconnect(Server *server)
{
	close_connection(server);
	free(server);
}

static int64_t
value_of(const PGresult *row, Column column)
{
	return PQgetisnull(row, 0, column) ? WATCH_UNKNOWN : strtoll(PQgetvalue(row, 0, column), NULL, 10);
}

/* A position as it is kept: from our base on, in units. */
static int64_t
position_from(const Server *server, int64_t lsn, int64_t segment_bytes)
{
	int64_t		unit = segment_bytes / WATCH_UNITS_PER_SEGMENT;

	return lsn == WATCH_UNKNOWN ? lsn : lsn > server->base ? (lsn - server->base) / unit * unit : 0;
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
	return receiver != WATCH_UNKNOWN && received_at != server->first_seen ? value_of(row, PRIMARY) : WATCH_UNKNOWN;
}

/* The first sample of a server: positions count from its redo pointer on. */
static void
begin(Server *server, const PGresult *row, int64_t start, Observation *seen)
{
	int64_t		base = value_of(row, POSITION);

	if (seen->completed != WATCH_UNKNOWN && seen->completed < base)
		base = seen->completed;
	server->base = base - base % seen->settings.segment_bytes;
	server->begins = false;
	seen->begins = true;
	seen->timer_s = walsizer_max(strtoll(server->identity, NULL, 10), value_of(row, STARTED)) - start;
}

static void
fill(Server *server, const PGresult *row, int64_t start, Observation *seen)
{
	int64_t		segment = value_of(row, SEGMENT);

	*seen = (Observation) {
		.settings = {
			.segment_bytes = segment, .max_wal_size_mb = value_of(row, MAX_WAL_SIZE),
			.completion_target = strtod(PQgetvalue(row, 0, COMPLETION_TARGET), NULL), .timeout_ms = value_of(row, TIMEOUT),
		},
		.standby = value_of(row, IN_RECOVERY) == 1, .busy = value_of(row, BUSY),
		.requested = value_of(row, REQUESTED), .timed = value_of(row, TIMED),
		.images = value_of(row, IMAGES), .image_bytes = value_of(row, IMAGE_BYTES),
		.wal = {
			.bytes = value_of(row, BYTES), .records = value_of(row, RECORDS), .images = value_of(row, IMAGES),
			.image_bytes = PQgetisnull(row, 0, IMAGE_BYTES) ? 0 : value_of(row, IMAGE_BYTES),
		},
	};
	memcpy(seen->source, server->source, sizeof(seen->source));
	seen->completed = value_of(row, REDO);
	seen->started_s = seen->completed != WATCH_UNKNOWN ? value_of(row, STARTED) - start : 0;
	if (server->begins || seen->standby != server->standby)
		begin(server, row, start, seen);
	seen->completed = position_from(server, seen->completed, segment);
	seen->position = position_from(server, value_of(row, POSITION), segment);
	seen->primary = position_from(server, primary_position(server, row), segment);
	server->standby = seen->standby;
}

/* Images count with the checkpoints only, because they move with each sample. */
static void
keep_images(Server *server, Observation *seen)
{
	Observation *counted = &server->counted;

	if (!seen->begins && seen->completed == counted->completed &&
		seen->requested == counted->requested && seen->timed == counted->timed)
	{
		seen->images = counted->images;
		seen->image_bytes = counted->image_bytes;
	}
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
	PGresult   *row = run(server);
	bool		good;

	if (row == NULL)
		return false;
	good = PQresultStatus(row) == PGRES_TUPLES_OK && PQntuples(row) == 1 &&
		PQnfields(row) == COLUMNS && !PQgetisnull(row, 0, POSITION);
	if (good)
	{
		fill(server, row, start, seen);
		keep_images(server, seen);
	}
	else if (!server->failed)
		watch_complain("could not take a sample: %s", PQresultStatus(row) == PGRES_TUPLES_OK ?
					   "the server has no WAL position yet" : PQresultErrorField(row, PG_DIAG_MESSAGE_PRIMARY));
	server->failed = !good;
	PQclear(row);
	return good;
}
