/*-------------------------------------------------------------------------
 *
 * fuzz_life.c
 *	  The whole life of a walsizer, on a simulated server.
 *
 * An input is a list of what happens: loads, checkpoints, restarts and crashes
 * with the state file, edits by an administrator, reloads that are refused,
 * planned loads, standby and promotion, a filling disk, jumps of the clock,
 * changed settings.  What walsizer decides is carried out as server/act.c does
 * it.  The input also knows what walsizer can only conclude: whose value is in
 * effect.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "fuzz/input.h"
#include "server/statetext.h"
#include "sim.h"

#define MAX_TICKS		1500
#define TEXT_SIZE		((size_t) WALSIZER_MEMORY_LINES * WALSIZER_LINE_SIZE)
#define PRIMARY_START	INT64_C(1764000000) /* s of the primary's clock */

/* max_wal_size (MB) and its note in postgresql.auto.conf; 0: no line */
typedef struct Line
{
	int64_t		mb;
	WalsizerNote note;
} Line;

typedef struct Life
{
	Input		in;
	SimServer	server;
	WalsizerConfig config;
	WalsizerState state;
	WalsizerSample sample;		/* what the server alone does not tell */

	Line		line;			/* in the file */
	Line		line_read;		/* by the last reload */
	int64_t		file_mb;		/* in postgresql.conf */
	int64_t		file_read;
	bool		broken_file;	/* an error keeps reloads from taking effect */

	bool		first;			/* sample of this worker */
	int64_t		hours_ahead;	/* of the clock on the wall */
	int64_t		unexplained;	/* changes by an administrator, not noticed */
	int64_t		admin_mb;		/* last in effect that was not walsizer's */
	int64_t		ticks;
} Life;

static char text[TEXT_SIZE];	/* the state file; empty: there is none */
static size_t length;

/* Does the note fit its line? */
static bool
is_noted(const Line *line)
{
	const WalsizerNote *note = &line->note;

	if (note->kind == WALSIZER_NOTE_WRITTEN)
		return line->mb == note->written_mb;
	return note->kind != WALSIZER_NO_NOTE &&
		line->mb == (note->original_by_alter_system ? note->original_mb : 0);
}

/* walsizer's value, and not an administrator's? */
static bool
is_own(const Line *line)
{
	return is_noted(line) && line->note.kind == WALSIZER_NOTE_WRITTEN;
}

/* All processes read the configuration.  False if that is refused. */
static bool
reload(Life *life)
{
	if (life->broken_file)
		return false;
	life->line_read = life->line;
	life->file_read = life->file_mb;
	life->server.settings.max_wal_size_mb = life->line.mb != 0 ? life->line.mb : life->file_mb;
	if (!is_own(&life->line))
		life->admin_mb = life->server.settings.max_wal_size_mb;
	return true;
}

/* An administrator's line that awaits a reload is not overwritten. */
static bool
is_pending(const Life *life)
{
	return !is_noted(&life->line) &&
		(life->line.mb != life->line_read.mb || is_own(&life->line_read));
}

/*-------------------------------------------------------------------------
 * The state file: what server/statefile.c keeps of a state
 *-------------------------------------------------------------------------
 */
static void
save(const Life *life)
{
	static WalsizerMemory memory;

	memset(&memory, 0, sizeof(memory));
	memory.system_identifier = 1;
	memory.state = life->state;
	walsizer_remember_window(&memory.state);
	length = walsizer_memory_format(&memory, text, sizeof(text));
	CHECK(length > 0);
}

static void
load(Life *life)
{
	static WalsizerMemory memory;
	int			line;

	memset(&life->state, 0, sizeof(life->state));
	if (length == 0)
		return;
	CHECK(walsizer_memory_parse(text, length, &memory, &line) == NULL);
	life->state = memory.state;
}

/*-------------------------------------------------------------------------
 * One sample, and what comes of it
 *-------------------------------------------------------------------------
 */
static void
take_sample(const Life *life, WalsizerSample *sample)
{
	*sample = life->sample;
	sim_server_sample(&life->server, sample);
	if (!life->first)
		sample->checkpoint_age = -1;
	sample->hour += life->hours_ahead;
	sample->in_auto_conf = life->line_read.mb != 0;
	memset(&sample->note, 0, sizeof(sample->note));
	if (is_noted(&life->line_read))
		sample->note = life->line_read.note;
	sample->configured_mb = life->file_read;
	if (sample->standby)
	{
		sample->primary_redo = sample->redo_lsn;
		sample->primary_time = PRIMARY_START + (int64_t) (life->server.redo_time / 1000);
		sample->primary_lsn = sample->write_lsn;
	}
}

/* A value is written with its note, and takes effect, or later, or never. */
static void
change(Life *life, const WalsizerDecision *decision, int64_t now)
{
	uint64_t	fate = take(&life->in, 1);

	if (fate >= 250 || is_pending(life))
		return;					/* could not be written */
	life->line.mb = decision->target_mb;
	life->line.note = (WalsizerNote) {
		WALSIZER_NOTE_WRITTEN, decision->target_mb, life->state.owner.original_mb,
		life->state.owner.original_by_alter_system,
	};
	if (fate < 240 && reload(life))
		walsizer_took_effect(&life->state, now, life->server.settings.max_wal_size_mb);
	save(life);
}

/* Our line is removed, or the administrator's restored. */
static void
restore(Life *life)
{
	const WalsizerOwner *owner = &life->state.owner;
	bool		by_alter_system = owner->original_by_alter_system;

	if ((owner->own_mb == 0 && !is_own(&life->line)) || is_pending(life))
		return;
	life->line = (Line) {
		.mb = by_alter_system ? owner->original_mb : 0,
		.note = {
			WALSIZER_NOTE_RESTORED, owner->own_mb,
			by_alter_system ? owner->original_mb : life->file_read, by_alter_system,
		},
	};
	/* the server may crash before it is told; an edit takes effect along with it */
	if (take(&life->in, 1) < 240 && reload(life))
	{
		walsizer_original_is_back(&life->state, life->server.settings.max_wal_size_mb);
		save(life);
		life->line.note = (WalsizerNote) {0};
	}
}

/* What the simulator checks, and what only this input can know. */
static void
check(Life *life, const WalsizerSample *sample, const WalsizerDecision *d)
{
	CHECK(d->reason != WALSIZER_BECAUSE_INVALID);
	CHECK(sim_broken_rule(&life->config, &sample->settings, &life->state, d) == NULL);
	CHECK(life->ticks % 32 != 0 || sim_out_of_range(&life->state) == NULL);
	if (d->action == WALSIZER_RAISE || d->action == WALSIZER_LOWER)
		CHECK(life->config.enable);
	if (d->action == WALSIZER_LOWER)
		CHECK(is_own(&life->line_read) && d->target_mb >= life->admin_mb);
	if (d->action == WALSIZER_EXTERNAL)
	{
		CHECK(!is_own(&life->line_read));
		CHECK(life->unexplained-- > 0);
		CHECK(life->state.owner.original_mb == sample->settings.max_wal_size_mb);
	}
	if (life->state.owner.own_mb != 0)
		CHECK(is_own(&life->line_read) && life->state.owner.own_mb == life->line_read.mb);
	else
		CHECK(!is_own(&life->line_read));
}

static void
tick(Life *life)
{
	WalsizerSample sample;
	WalsizerDecision decision;

	take_sample(life, &sample);
	sample.disk_tried = walsizer_look_is_due(&life->config, &life->state, &sample);
	decision = walsizer_step(&life->config, &life->state, &sample);
	life->ticks++;
	life->sample.counters_reset = false;
	life->sample.act_now = false;
	check(life, &sample, &decision);
	if (decision.action == WALSIZER_RAISE || decision.action == WALSIZER_LOWER)
		change(life, &decision, sample.now);
	else if (decision.action == WALSIZER_REVERT)
		restore(life);
	else if (decision.action == WALSIZER_EXTERNAL)
	{
		life->sample.boost_mb = 0;
		save(life);
	}
	life->first = false;
}

/*-------------------------------------------------------------------------
 * What happens
 *-------------------------------------------------------------------------
 */

/* Ticks with a load, from nothing to 1 GB/s. */
static void
run(Life *life)
{
	uint64_t	ticks = 1 + take(&life->in, 1) % 48;
	double		rate = (double) take(&life->in, 1);

	rate = rate * rate * 16 * 1024; /* bytes per second */
	for (; ticks > 0 && life->ticks < MAX_TICKS; ticks--)
	{
		sim_server_advance(&life->server,
						   life->server.now + (double) life->config.sample_interval_ms,
						   rate / 1000);
		tick(life);
	}
}

/* An administrator's size (MB), at least two segments. */
static int64_t
take_size(Life *life)
{
	return life->server.settings.segment_bytes / WALSIZER_MB *
		(int64_t) (2 + take(&life->in, 2) % 4096);
}

/* An administrator changes the files, and reloads them or does not. */
static void
edit(Life *life)
{
	switch (take(&life->in, 1) % 5)
	{
		case 0:
			life->line = (Line) {.mb = take_size(life)};
			break;
		case 1:
			life->line = (Line) {0};
			break;
		case 2:
			life->file_mb = take_size(life);
			break;
		case 3:					/* the very value in effect, to keep it */
			life->line = (Line) {.mb = life->server.settings.max_wal_size_mb};
			break;
		default:
			life->broken_file = !life->broken_file;
			break;
	}
	life->unexplained++;
	if (take(&life->in, 1) & 3)
		reload(life);
}

/* The server goes down, and comes up with the state file, or without. */
static void
restart(Life *life)
{
	uint64_t	how = take(&life->in, 1);

	if (how & 1)
		save(life);
	sim_server_restart(&life->server, !(how & 1));
	if ((how & 14) == 14)
		length = 0;
	life->broken_file = false;	/* else it would not start */
	reload(life);
	load(life);
	life->first = true;
	if (how & 16)
		life->sample.standby = !life->sample.standby;
}

static void
change_disk(Life *life)
{
	life->sample.disk_read = take(&life->in, 1) & 7;
	life->sample.disk_free = (int64_t) take(&life->in, 2) * 64 * WALSIZER_MB;
	life->sample.disk_wal = life->server.settings.max_wal_size_mb * WALSIZER_MB;
	life->sample.disk_alone = life->sample.disk_free % 3 == 0;
}

static void
change_config(Life *life)
{
	life->config.enable = (take(&life->in, 1) & 7) != 0;
	life->config.predict = (take(&life->in, 1) & 3) != 0;
	life->config.prevent_disk_full = life->config.predict;
	life->config.max_mb = 2048 + (int64_t) take(&life->in, 2) * 16;
	life->config.lookback_hours = 1 + (int64_t) take(&life->in, 1);
	life->config.max_recovery_ms = (int64_t) (take(&life->in, 1) & 3) * 60000;
	life->config.min_mb = (int64_t) (take(&life->in, 1) & 1) * 4096;
}

/* Requests by SQL, and what else the worker is told. */
static void
ask(Life *life)
{
	switch (take(&life->in, 1) % 5)
	{
		case 0:
			life->sample.boost_mb = take_size(life);
			life->sample.act_now = true;
			break;
		case 1:
			life->sample.boost_mb = 0;
			break;
		case 2:
			walsizer_forget(&life->state);
			break;
		case 3:
			life->sample.act_now = true;
			break;
		default:
			life->sample.boost_mb = 0;
			tick(life);
			restore(life);
			break;
	}
}

static void
happen(Life *life, uint64_t what)
{
	SimServer  *s = &life->server;

	switch (what % 16)
	{
		case 8: sim_server_checkpoint(s); break;
		case 9: edit(life); break;
		case 10: restart(life); break;
		case 11: change_disk(life); break;
		case 12: change_config(life); break;
		case 13: ask(life); break;
		case 14:
			if (what & 16)
				sim_server_begin(s);
			else
				sim_server_end(s);
			break;
		case 15:
			if (what & 16)
				life->hours_ahead = (int64_t) take(&life->in, 2) - 2000;
			else if (what & 32)
			{
				s->requested = s->timed = 0;
				life->sample.counters_reset = true;
			}
			else
				life->sample.standby = false;	/* promotion */
			break;
		default: run(life); break;
	}
}

static void
be_born(Life *life)
{
	WalsizerSettings settings = {
		.segment_bytes = WALSIZER_MB << (take(&life->in, 1) % 8),
		.completion_target = (double) (take(&life->in, 2) % 1001) / 1000,
		.timeout_ms = 30000 + (int64_t) (take(&life->in, 1) & 3) * 30000,
	};

	settings.max_wal_size_mb = settings.segment_bytes / WALSIZER_MB *
		(int64_t) (2 + take(&life->in, 1));
	sim_server_init(&life->server, &settings);
	life->config = walsizer_default;
	life->config.max_mb = 65536;
	life->config.lookback_hours = 1;
	life->file_mb = life->file_read = settings.max_wal_size_mb;
	life->admin_mb = settings.max_wal_size_mb;
	life->first = true;
	length = 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static Life life;

	memset(&life, 0, sizeof(life));
	life.in = (Input) {data, size};
	be_born(&life);
	while (life.in.left > 0 && life.ticks < MAX_TICKS)
		happen(&life, take(&life.in, 1));
	CHECK(sim_out_of_range(&life.state) == NULL);
	return 0;
}
