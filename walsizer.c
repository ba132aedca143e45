/*-------------------------------------------------------------------------
 *
 * walsizer.c
 *	  Module initialization: registers settings, hooks and the worker.
 *
 * Unless it is loaded through shared_preload_libraries, the library defines
 * nothing, and its SQL functions raise an error that says so.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"

#include "server/compat.h"
#include "server/server.h"

WALSIZER_MODULE_MAGIC;

void		_PG_init(void);

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;

	walsizer_define_settings();
	walsizer_shmem_install_hooks();

	/* The servers that pg_upgrade starts have no load to size for. */
	if (IsBinaryUpgrade)
		return;
	walsizer_startcheck_install_hook();
	walsizer_recovery_install_hook();
	walsizer_register_worker();
}
