/*-------------------------------------------------------------------------
 *
 * server/library.c
 *	  Which file is this library?  The worker has to run in the copy that was
 *	  preloaded, because only that one has settings and shared memory.
 *
 * The server looks for a worker's library by its name, in the worker.  It does
 * not load a library again that is in its list already, and that list is by
 * path.  So the worker is given the path from which this library was loaded: it
 * is found in the list, wherever "walsizer" leads by then, and even if a package
 * upgrade has replaced or removed the file.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <dlfcn.h>

#include "postmaster/bgworker.h"
#include "storage/ipc.h"

#include "server/walsizer.h"

/* The name to use where the path is not known or does not fit. */
#define LIBRARY				"walsizer"

/* For _PG_init(): the name by which the worker is to find its library. */
void
walsizer_library_name(char *name, size_t size)
{
	static const char here = 0;
	Dl_info		info;

	if (dladdr(&here, &info) == 0 || info.dli_fname == NULL ||
		strlcpy(name, info.dli_fname, size) >= size)
		strlcpy(name, LIBRARY, size);
}

/*
 * For the worker, if it runs in another copy: end for good.  Status 0 keeps the
 * postmaster from starting it again, which would lead to the same copy.
 */
void
walsizer_end_in_other_copy(void)
{
	ereport(LOG,
			(errmsg("the walsizer worker ends, because it has loaded another library than the server has preloaded"),
			 errdetail("The worker looked for its library as \"%s\".", MyBgworkerEntry->bgw_library_name),
			 errhint("Set \"shared_preload_libraries\" to a name that is found through \"dynamic_library_path\", or to a shorter path, and restart the server.")));
	proc_exit(0);
}
