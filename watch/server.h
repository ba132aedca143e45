/*-------------------------------------------------------------------------
 *
 * watch/server.h
 *	  What connect.c and sample.c share: the connection to a server.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#ifndef WATCH_SERVER_H
#define WATCH_SERVER_H

#include <libpq-fe.h>

#include "watch/watch.h"

/* What a server may not show, or not to this role. */
typedef enum Part
{
	PART_CHECKPOINT,			/* the control file */
	PART_CHECKPOINTER,			/* its wait event */
	PART_COUNTERS,
	PART_WAL,					/* full-page images */
	PART_RECEIVER,				/* standby: the primary's position */
	PARTS,
} Part;

struct Server
{
	const Options *options;
	PGconn	   *connection;		/* NULL: none */
	char		notice[256];	/* its last one; see keep_notice() */
	int			version;		/* as PQserverVersion() */
	bool		has[PARTS];
	bool		said[PARTS];	/* that it is missing */

	/* which server it is, and since when */
	char		identity[64];
	int64_t		server_time;	/* s since 1970, when connected first */
	char		checkpointer[16];	/* its pid, or empty */
	char		source[24];		/* of max_wal_size */
	int64_t		postmaster_s;	/* start, s since 1970 */
	bool		begins;			/* the next sample is its first */
	int64_t		base;			/* position from which to count */
	bool		standby;		/* at the last sample */
	int64_t		samples;
	bool		said_why;		/* why it cannot be connected again */
	bool		failed;			/* there was none last time, and that was said */
	Observation counted;		/* the last one with the counters */

	/* the WAL receiver, as in server/sample.c */
	int64_t		receiver;
	int64_t		first_seen;
};

/* watch/connect.c; sample.c calls it, and not the other way */
extern bool watch_open(Server *server);
extern PGresult *watch_query(Server *server, const char *sql, int num_parameters,
							 const char *const *parameters);
extern bool watch_prepare_statement(Server *server, const char *sql);
extern PGresult *watch_run(Server *server, int num_parameters, const char *const *parameters);

#define STATEMENT			"sample"
#define STATEMENT_TIMEOUT	5000	/* ms, by the server; ours is twice that */

#endif							/* WATCH_SERVER_H */
