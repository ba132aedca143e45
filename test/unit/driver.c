/*-------------------------------------------------------------------------
 *
 * driver.c
 *	  A server of one variable, for the unit tests of the policy.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "driver.h"
#include "policy/internal.h"

#define LSN_AT_START	(UINT64_C(1) << 32)

Driver *
driver_new(void)
{
	static Driver driver;
	Driver	   *d = &driver;

	memset(d, 0, sizeof(*d));
	d->apply = true;

	d->config = walsizer_default;

	d->sample.now = 1000 * SECOND;
	d->timer = d->sample.now;
	d->sample.hour = 500000;
	d->sample.write_lsn = LSN_AT_START;
	d->sample.redo_lsn = LSN_AT_START;
	d->sample.checkpoint_age = 0;
	d->sample.settings.segment_bytes = SEGMENT;
	d->sample.settings.max_wal_size_mb = 1024;
	d->sample.settings.completion_target = 0.9;
	d->sample.settings.timeout_ms = 300 * SECOND;
	return d;
}

void
driver_write(Driver *d, int64_t mb)
{
	d->sample.settings.max_wal_size_mb = mb;
	d->sample.in_auto_conf = true;
	d->sample.note.kind = WALSIZER_NOTE_WRITTEN;
	d->sample.note.written_mb = mb;
	d->sample.note.original_mb = d->state.owner.original_mb;
	d->sample.note.original_by_alter_system = d->state.owner.original_by_alter_system;
}

WalsizerState *
driver_seen(Driver *d)
{
	d->state.last = d->sample;
	return &d->state;
}

WalsizerAction
driver_step(Driver *d, int64_t ms, int64_t bytes)
{
	d->sample.now += ms;
	d->sample.hour = 500000 + d->clock_set + (d->sample.now / SECOND) / 3600;
	d->sample.write_lsn += (uint64_t) bytes;
	d->sample.disk_tried = (d->sample.disk_read && !d->ask_for_disk) ||
		walsizer_look_is_due(&d->config, &d->state, &d->sample);
	d->looks += d->sample.disk_tried;
	d->last = walsizer_step(&d->config, &d->state, &d->sample);
	d->sample.counters_reset = false;
	d->sample.checkpoint_age = -1;

	switch (d->last.action)
	{
		case WALSIZER_RAISE:
			d->raises++;
			break;
		case WALSIZER_LOWER:
			d->lowers++;
			break;
		case WALSIZER_EXTERNAL:
			d->externals++;
			break;
		default:
			break;
	}
	if (d->apply &&
		(d->last.action == WALSIZER_RAISE || d->last.action == WALSIZER_LOWER))
	{
		driver_write(d, d->last.target_mb);
	}
	return d->last.action;
}

WalsizerFigures
driver_observe(Driver *d, int64_t ms, int64_t bytes)
{
	WalsizerFigures figures = {0};

	d->sample.now += ms;
	d->sample.write_lsn += (uint64_t) bytes;
	walsizer_observe(&d->config, &d->state, &d->sample, &figures);
	d->sample.checkpoint_age = -1;
	return figures;
}

WalsizerFigures
driver_observe_redo(Driver *d, int64_t ms, int64_t bytes)
{
	d->sample.completed_lsn = d->sample.redo_lsn;
	d->sample.redo_lsn = d->sample.write_lsn;
	return driver_observe(d, ms, bytes);
}

Driver *
driver_begun(void)
{
	Driver	   *d = driver_new();

	driver_observe(d, 0, 0);
	return d;
}

Driver *
driver_quiet(void)
{
	Driver	   *d = driver_new();

	d->apply = false;
	driver_step(d, 0, 0);
	d->sample.now += 3600 * SECOND;
	d->state.pacing.changed_at = d->state.pacing.kept_since = d->state.pacing.keep_ms = 0;
	driver_step(d, 0, 0);
	driver_step(d, SECOND, 0);
	return d;
}

Driver *
driver_quiet_raise(int64_t mb)
{
	Driver	   *d = driver_quiet();

	driver_write(d, mb);
	driver_step(d, SECOND, 0);
	d->state.pacing.changed_at = d->state.pacing.kept_since = d->state.pacing.keep_ms = 0;
	driver_step(d, SECOND, 0);
	assert_int_equal(d->last.reason, WALSIZER_BECAUSE_SUFFICIENT);
	return d;
}

void
driver_end_cycle(Driver *d)
{
	d->state.cycle.start = d->sample.now - 299 * SECOND;
}

void
driver_checkpoint(Driver *d, bool requested)
{
	d->sample.redo_lsn = d->sample.write_lsn;
	if (requested)
		d->sample.requested++;
	else
		d->sample.timed++;
}

bool
driver_forced_due(const Driver *d)
{
	const WalsizerSettings *settings = &d->sample.settings;
	uint64_t	segment = (uint64_t) settings->segment_bytes;
	uint64_t	start = d->sample.redo_lsn - d->sample.redo_lsn % segment;

	return (int64_t) (d->sample.write_lsn - start) >=
		walsizer_trigger_point(settings->max_wal_size_mb, settings);
}

void
driver_run(Driver *d, int64_t seconds, int64_t rate)
{
	if (!d->state.primed || d->sample.now < d->timer)
		d->timer = d->sample.now;
	for (int64_t i = 0; i < seconds; i++)
	{
		driver_step(d, SECOND, rate);
		if (driver_forced_due(d))
		{
			driver_checkpoint(d, true);
			d->timer = d->sample.now;
		}
		else if (d->sample.now - d->timer >= d->sample.settings.timeout_ms)
		{
			driver_checkpoint(d, false);
			d->timer = d->sample.now;
		}
	}
}
