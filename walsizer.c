/*-------------------------------------------------------------------------
 *
 * walsizer.c
 *	  Module initialization: registers settings, hooks and the worker.
 *
 * What needs shared_preload_libraries is left out if a session or a worker loads
 * the library: then its functions attach to shared memory when they are called.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "server/server.h"

WALSIZER_MODULE_MAGIC;

void		_PG_init(void);

void
_PG_init(void)
{
	/* the servers that pg_upgrade starts have no load to size for */
	if (!walsizer_define_settings() || !process_shared_preload_libraries_in_progress ||
		IsBinaryUpgrade)
		return;
	walsizer_shmem_install_hooks();
	walsizer_recovery_install_hook();
	walsizer_register_worker(NULL);
}
