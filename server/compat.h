/*-------------------------------------------------------------------------
 *
 * server/compat.h
 *	  Differences between PostgreSQL 15 and 19.  No other file tests the version.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#ifndef WALSIZER_COMPAT_H
#define WALSIZER_COMPAT_H

#include "fmgr.h"
#include "pgstat.h"
#if PG_VERSION_NUM >= 170000
#include "storage/dsm_registry.h"
#endif
#include "storage/lwlock.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"
#include "utils/wait_event.h"

#include "policy/policy.h"

/* 15.0 has another name for InitMaterializedSRF() */
#if PG_VERSION_NUM < 150001
#error "walsizer needs PostgreSQL 15.1 or later"
#endif

#define WALSIZER_VERSION		"1.0.0"

/* 18: the module block can carry name and version */
#if PG_VERSION_NUM >= 180000
#define WALSIZER_MODULE_MAGIC \
	PG_MODULE_MAGIC_EXT(.name = "walsizer", .version = WALSIZER_VERSION)
#else
#define WALSIZER_MODULE_MAGIC	PG_MODULE_MAGIC
#endif

/*
 * Add the checkpointer's counters to a sample; returns when they were reset.  17 renamed
 * them and separated restartpoints; before, the background writer had that time.
 */
static inline TimestampTz
walsizer_fetch_counters(WalsizerSample *sample)
{
	PgStat_CheckpointerStats *stats = pgstat_fetch_stat_checkpointer();

#if PG_VERSION_NUM >= 170000
	sample->requested = sample->standby ? stats->restartpoints_requested : stats->num_requested;
	sample->timed = sample->standby ? stats->restartpoints_timed : stats->num_timed;
	return stats->stat_reset_timestamp;
#else
	sample->requested = stats->requested_checkpoints;
	sample->timed = stats->timed_checkpoints;
	return pgstat_fetch_stat_bgwriter()->stat_reset_timestamp;
#endif
}

/* Pages of relations that any process has written.  17: from pg_stat_io; 18: in bytes. */
static inline int64
walsizer_fetch_written(void)
{
#if PG_VERSION_NUM >= 170000
	const PgStat_IO *io = pgstat_fetch_stat_io();
	int64		written = 0;

	for (int type = 0; type < BACKEND_NUM_TYPES; type++)
		for (int context = 0; context < IOCONTEXT_NUM_TYPES; context++)
#if PG_VERSION_NUM >= 180000
			written += (int64) (io->stats[type].bytes[IOOBJECT_RELATION][context][IOOP_WRITE] / BLCKSZ);
#else
			written += io->stats[type].counts[IOOBJECT_RELATION][context][IOOP_WRITE];
#endif
	return written;
#else
	const PgStat_CheckpointerStats *stats = pgstat_fetch_stat_checkpointer();

	return stats->buf_written_checkpoints + stats->buf_written_backend +
		pgstat_fetch_stat_bgwriter()->buf_written_clean;
#endif
}

/* What the server counted of its WAL.  18 moved the counters, 19 counts bytes of images. */
static inline WalsizerWal
walsizer_fetch_wal(void)
{
#if PG_VERSION_NUM >= 180000
	PgStat_WalCounters *counted = &pgstat_fetch_stat_wal()->wal_counters;
#else
	PgStat_WalStats *counted = pgstat_fetch_stat_wal();
#endif

	return (WalsizerWal) {
		.bytes = (int64) counted->wal_bytes, .records = counted->wal_records,
		.images = counted->wal_fpi,
		.written = walsizer_fetch_written(),
#if PG_VERSION_NUM >= 190000
		.image_bytes = (int64) counted->wal_fpi_bytes,
#endif
	};
}

/* The record of a setting, or NULL.  16 exported find_option(). */
static inline const struct config_generic *
walsizer_find_setting(const char *name)
{
#if PG_VERSION_NUM >= 160000
	return find_option(name, false, true, DEBUG5);
#else
	struct config_generic **all = get_guc_variables();

	for (int i = 0; i < GetNumConfigOptions(); i++)
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	return NULL;
#endif
}

/* 17: it can be forbidden. */
#if PG_VERSION_NUM < 170000
#define AllowAlterSystem		true
#endif

/*
 * 17: shared memory that any process can make, or find by its name; NULL before
 * that.  19 hands an argument on to the function that fills it.
 */
#if PG_VERSION_NUM >= 190000
static inline void
walsizer_call_init(void *memory, void *init)
{
	(*(void (**) (void *)) init) (memory);
}
#endif

static inline void *
walsizer_named_memory(const char *name, size_t size, void (*init) (void *memory))
{
#if PG_VERSION_NUM >= 190000
	return GetNamedDSMSegment(name, size, walsizer_call_init, &(bool) {false}, &init);
#elif PG_VERSION_NUM >= 170000
	return GetNamedDSMSegment(name, size, init, &(bool) {false});
#else
	(void) name, (void) size, (void) init;
	return NULL;
#endif
}

/* A new lock.  Before 19, only this process and its children know the name. */
static inline void
walsizer_init_lock(LWLock *lock)
{
#if PG_VERSION_NUM >= 190000
	LWLockInitialize(lock, LWLockNewTrancheId("walsizer"));
#else
	LWLockInitialize(lock, LWLockNewTrancheId());
	LWLockRegisterTranche(lock->tranche, "walsizer");
#endif
}

/* 19 renamed the flag of a checkpoint that is not paced. */
#if PG_VERSION_NUM >= 190000
#define CHECKPOINT_IMMEDIATE	CHECKPOINT_FAST
#endif

/* 16: an invalidated slot can have a position, and keeps nothing.  19: REPACK has its own slots. */
#if PG_VERSION_NUM >= 160000
#define WALSIZER_IS_VALID_SLOT(slot) \
	((slot)->in_use && (slot)->data.invalidated == RS_INVAL_NONE)
#else
#define WALSIZER_IS_VALID_SLOT(slot) ((slot)->in_use)
#endif
#if PG_VERSION_NUM < 190000
#define max_repack_replication_slots 0
#endif

/* 17: wait events of extensions have names.  The server knows which it had. */
static inline uint32
walsizer_wait_event(const char *name)
{
#if PG_VERSION_NUM >= 170000
	return WaitEventExtensionNew(name);
#else
	(void) name;
	return PG_WAIT_EXTENSION;
#endif
}

#endif							/* WALSIZER_COMPAT_H */
