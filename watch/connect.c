/*-------------------------------------------------------------------------
 *
 * watch/connect.c
 *	  The connection: to make it, to notice its end, to make it again.
 *
 * Nothing is written on the server.  Each statement has two time limits, the
 * server's and ours, in case the server or the network no longer answers.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "watch/server.h"

/* libpq's messages end with a newline, and may have several lines. */
static const char *
first_line(const char *message)
{
	static char text[256];

	snprintf(text, sizeof(text), "%.*s", (int) strcspn(message, "\n"), message);
	return text;
}

/*
 * The server ends a connection with an error.  If that comes between two
 * statements libpq takes it for a notice, and the next statement fails because
 * "server closed the connection unexpectedly".
 */
static void
keep_notice(void *server, const char *message)
{
	snprintf(((Server *) server)->notice, sizeof(((Server *) server)->notice), "%s", first_line(message));
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
	server->notice[0] = '\0';
}

/* Say why the connection ended; "last" is the last result, or NULL. */
static void
say_lost(const Server *server, const PGresult *last)
{
	const char *why = "the server does not answer";

	if (last != NULL && PQresultStatus(last) == PGRES_FATAL_ERROR)
		why = first_line(PQresultErrorMessage(last));
	else if (PQerrorMessage(server->connection)[0] != '\0')
		why = first_line(PQerrorMessage(server->connection));
	watch_complain("lost the connection: %s", server->notice[0] != '\0' ? server->notice : why);
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

		if (left <= 0 || watch_interrupted())
			return false;
		if (poll(&descriptor, 1, (int) left) < 0 && errno != EINTR)
			return false;
		if (!PQconsumeInput(connection))
			return false;
	}
	return true;
}

/* The last result of what was sent; NULL, and no connection, if none comes. */
static PGresult *
receive(Server *server, bool sent)
{
	PGresult   *last = NULL;
	PGresult   *result;

	while (sent && wait_for_result(server->connection))
	{
		result = PQgetResult(server->connection);
		if (result == NULL)
		{
			if (last != NULL && PQstatus(server->connection) == CONNECTION_OK)
				return last;
			break;
		}
		/* the first error is the one that matters */
		if (last != NULL && PQresultStatus(last) == PGRES_FATAL_ERROR)
			PQclear(result);
		else
		{
			PQclear(last);
			last = result;
		}
	}
	if (!watch_interrupted())
		say_lost(server, last);
	PQclear(last);
	close_connection(server);
	return NULL;
}

/* Parameters of our statements: a process ID and a truth value. */
static const Oid parameter_types[] = {23, 16};

/*
 * Run a statement, or without parameters also several.  NULL if the connection
 * ended.
 */
PGresult *
watch_query(Server *server, const char *sql, int num_parameters, const char *const *parameters)
{
	return receive(server, num_parameters == 0 ? PQsendQuery(server->connection, sql) == 1 :
				   PQsendQueryParams(server->connection, sql, num_parameters, parameter_types,
									 parameters, NULL, NULL, 0) == 1);
}

/* Prepare the statement of each sample.  False if that fails, having said why. */
bool
watch_prepare_statement(Server *server, const char *sql)
{
	PGresult   *result = receive(server, PQsendPrepare(server->connection, STATEMENT, sql, 2,
													   parameter_types) == 1);
	bool		good = PQresultStatus(result) == PGRES_COMMAND_OK;

	if (result != NULL && !good)
	{
		watch_complain("could not prepare the statement: %s", first_line(PQresultErrorMessage(result)));
		close_connection(server);
	}
	PQclear(result);
	return good;
}

/* Run the prepared statement, in one round trip.  As above. */
PGresult *
watch_run(Server *server, int num_parameters, const char *const *parameters)
{
	return receive(server, PQsendQueryPrepared(server->connection, STATEMENT, num_parameters,
											   parameters, NULL, NULL, 0) == 1);
}

/*
 * Which server is it?  A restart, or another server behind the same name,
 * begins anew.  So does a promotion, which a sample shows.
 */
static bool
identify(Server *server)
{
	static const char *const sql =
		"SELECT extract(epoch FROM pg_postmaster_start_time()),"
		" floor(extract(epoch FROM clock_timestamp()))::bigint,"
		" (SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'),"
		" (SELECT source FROM pg_settings WHERE name = 'max_wal_size')";
	PGresult   *result = watch_query(server, sql, 0, NULL);
	const char *identity;

	if (PQresultStatus(result) != PGRES_TUPLES_OK)
	{
		if (result != NULL)
		{
			watch_complain("could not identify the server: %s", first_line(PQresultErrorMessage(result)));
			close_connection(server);
		}
		PQclear(result);
		return false;
	}
	identity = PQgetvalue(result, 0, 0);
	server->begins = server->begins || strcmp(identity, server->identity) != 0;
	snprintf(server->identity, sizeof(server->identity), "%s", identity);
	server->postmaster_s = strtoll(identity, NULL, 10);
	if (server->server_time == 0)
		server->server_time = strtoll(PQgetvalue(result, 0, 1), NULL, 10);
	snprintf(server->checkpointer, sizeof(server->checkpointer), "%s", PQgetvalue(result, 0, 2));
	snprintf(server->source, sizeof(server->source), "%.23s", PQgetvalue(result, 0, 3));
	PQclear(result);
	return true;
}

#define SETTINGS \
	"SET statement_timeout = 5000; SET default_transaction_read_only = on;" \
	" SET search_path = ''; SET jit = off"

/* Our side of a new connection: limits, and a promise to write nothing. */
static bool
set_up(Server *server)
{
	PGresult   *result = watch_query(server, server->version >= 140000 ?
									 SETTINGS "; SET idle_session_timeout = 0" : SETTINGS, 0, NULL);

	if (result == NULL)
		return false;
	PQclear(result);
	return identify(server);
}

/*
 * Is there a pooler in between?  Then the process that answers is not the one that
 * the connection named.  What we set would stay on the pooler's connection, and
 * break its other clients.
 */
static bool
is_pooled(Server *server)
{
	PGresult   *result = watch_query(server, "SELECT pg_backend_pid()", 0, NULL);
	bool		pooled = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1 &&
		strtol(PQgetvalue(result, 0, 0), NULL, 10) != PQbackendPID(server->connection);

	PQclear(result);
	return pooled;
}

/*
 * Connect, and set up our side.  False if that fails, having said why, of several times
 * once.  Ends the program if it is the first time, or if trying again does not help.
 */
bool
watch_open(Server *server)
{
	char		why[300];
	size_t		size = sizeof(why);
	bool		final = server->identity[0] == '\0';

	server->connection = open_connection(server->options);
	server->version = PQserverVersion(server->connection);
	(void) PQsetNoticeProcessor(server->connection, keep_notice, server);
	if (PQstatus(server->connection) != CONNECTION_OK && PQconnectionNeedsPassword(server->connection))
		snprintf(why, size, "the server asks for a password: put it into ~/.pgpass or PGPASSWORD");
	else if (PQstatus(server->connection) != CONNECTION_OK)
		snprintf(why, size, "could not connect: %s", first_line(PQerrorMessage(server->connection)));
	else if (server->version < WATCH_OLDEST_SERVER)
		snprintf(why, size, "the server is PostgreSQL %s; version %d or later is needed",
				 watch_server_version(server), WATCH_OLDEST_SERVER / 10000);
	else if (is_pooled(server))
		snprintf(why, size, "this is a connection pooler: connect to the server itself");
	else
	{
		server->said_why = false;
		return server->connection != NULL && set_up(server);
	}
	final |= PQstatus(server->connection) == CONNECTION_OK;
	close_connection(server);
	if (final)
		watch_die("%s", why);
	if (!server->said_why)
		watch_complain("%s; trying again", why);
	server->said_why = true;
	return false;
}

bool
watch_connected(const Server *server)
{
	return server->connection != NULL;
}

void
watch_disconnect(Server *server)
{
	if (server->connection != NULL)
		close_connection(server);
	free(server);
}

/* The server's clock when we first connected, s since 1970. */
int64_t
watch_server_time(const Server *server)
{
	return server->server_time;
}

/* "15.20", without what a packager added. */
const char *
watch_server_version(const Server *server)
{
	static char text[32];
	const char *version = PQparameterStatus(server->connection, "server_version");

	if (version == NULL)
		return "of unknown version";
	snprintf(text, sizeof(text), "%.*s", (int) strcspn(version, " "), version);
	return text;
}
