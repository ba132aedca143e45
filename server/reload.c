/*-------------------------------------------------------------------------
 *
 * server/reload.c
 *	  Did the server reload its configuration while the worker was starting?
 *
 * A background worker begins with the configuration of its fork, and ignores
 * SIGHUP until walsizer_main() handles it.  It would not see a reload in
 * between, until the next one: a walsizer.enable that an administrator has just
 * turned off, say.  So the postmaster counts its reloads, as it logs each
 * before it begins.  The worker inherits the count by the fork, and compares it
 * with the one in shared memory.  A server that does not log at level LOG counts
 * nothing.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/elog.h"

#include "server/walsizer.h"

#define RELOAD_MESSAGE		"received SIGHUP, reloading configuration files"

static emit_log_hook_type prev_emit_log_hook = NULL;

/* Reloads of the postmaster; in its children, those before the fork. */
static uint32 reloads = 0;

/* emit_log_hook, for each message to the log in any process. */
static void
see_message(ErrorData *message)
{
	if (!IsUnderPostmaster && walsizer_shared != NULL && message->message_id != NULL &&
		strcmp(message->message_id, RELOAD_MESSAGE) == 0)
		pg_atomic_write_u32(&walsizer_shared->server_reloads, ++reloads);
	if (prev_emit_log_hook)
		prev_emit_log_hook(message);
}

/*
 * Has the server reloaded since the fork of this process?  Less is not more:
 * the count in shared memory begins anew after a crash.
 */
bool
walsizer_reload_missed(void)
{
	return pg_atomic_read_u32(&walsizer_shared->server_reloads) > reloads;
}

/* Called by _PG_init(). */
void
walsizer_reload_install_hook(void)
{
	prev_emit_log_hook = emit_log_hook;
	emit_log_hook = see_message;
}
