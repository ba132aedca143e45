/*-------------------------------------------------------------------------
 *
 * run.c
 *	  A load on a server, with a policy that watches and acts.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

/* The ceiling of all policies: more than the default, so that it hides nothing. */
#define MAX_MB				(64 * 1024)
#define CLASSIC_THRESHOLD	2
#define QUIET_INTERVALS		5
#define SHRINK				0.75

/* Over how many samples a rate can be seen. */
#define RATE_TICKS			6

/* How early a forced checkpoint must be seen. */
#define SOON_TICKS			5
#define SOON_AT_LEAST		2000.0	/* ms */

/* The largest WAL of any T, by positions one sample apart. */
#define WINDOW_SLOTS		4096

typedef struct Run
{
	SimServer	server;
	SimPolicy	policy;
	const SimOptions *options;
	WalsizerConfig config;		/* as marks change it */
	SimResult  *result;
	int64_t		first_size;

	/* the worker */
	double		next_sample;
	bool		reset;			/* the statistics were */
	bool		lowered;
	WalsizerState *state;

	/* the classics */
	double		cycle;
	int64_t		counted;
	int			quiet;

	/* what walsizer could see and do, newest first */
	double		seen_pos[RATE_TICKS];
	bool		warned[2];		/* a forced checkpoint was visible, and a raise allowed */
	int64_t		seen_prompt;
	int64_t		seen_size;		/* MB */
	int64_t		seen_true;		/* checkpoints that were forced */
	int64_t		true_before;	/* those before the value last changed */
	int64_t		judged;			/* checkpoints taken for forced */

	/* for the witness */
	int64_t		seen_forced;
	int64_t		seen_other;

	/* for the table */
	int64_t		early_forced;
	double		size_time;		/* MB * ms */
	double		since;
	double		positions[WINDOW_SLOTS];
	int64_t		num_positions;
} Run;

void
sim_default_options(SimOptions *options)
{
	memset(options, 0, sizeof(*options));
	options->config = walsizer_default;
	options->config.max_mb = MAX_MB;
	options->apply_delay = 50;
	options->oracle_interval = 1000;
}

const char *
sim_policy_name(SimPolicy policy)
{
	static const char *const names[] = {"walsizer", "classic", "shrinking", "static", "oracle"};

	return names[policy];
}

static int64_t
forced(const SimServer *s)
{
	return s->checkpoints[WALSIZER_CAUSE_FORCED].number +
		s->checkpoints[WALSIZER_CAUSE_OLD_VALUE].number;
}

static void
account_size(Run *run)
{
	run->size_time += (double) run->server.settings.max_wal_size_mb * (run->server.now - run->since);
	run->since = run->server.now;
}

/* Set a new size, as the worker does: it takes effect a moment later. */
static void
apply(Run *run, int64_t mb)
{
	int64_t		old = run->server.settings.max_wal_size_mb;

	if (mb == old)
		return;
	if (mb > old)
	{
		run->result->raises++;
		run->result->returns += run->lowered;
	}
	else
	{
		run->result->lowers++;
		run->result->lowered_at = run->server.now;
	}
	run->lowered = mb < old;
	if (run->server.now > run->options->quiet_from)
	{
		run->result->late_raises += mb > old;
		run->result->late_lowers += mb < old;
	}
	account_size(run);
	if (run->options->apply_delay > 0)
		sim_server_apply(&run->server, mb, run->options->apply_delay);
	else
		run->server.settings.max_wal_size_mb = mb;
	run->result->peak = mb > run->result->peak ? mb : run->result->peak;
}

static void
log_change(const Run *run, const WalsizerDecision *d)
{
	const WalsizerFigures *f = &d->figures;

	if (run->options->changes == NULL)
		return;
	fprintf(run->options->changes,
			"%8.0f s: %s %lld to %lldMB, %s (demand %.0f, learned %.0f, used %.0f, projected "
			"%.0fMB, %.1fMB/s, forced %lld, %lld at an old value)\n",
			run->server.now / 1000, walsizer_action_name(d->action), (long long) f->in_effect_mb,
			(long long) d->target_mb, walsizer_reason_code(d->reason),
			(double) f->demand / SIM_MB, (double) f->learned / SIM_MB, (double) f->used / SIM_MB,
			(double) f->projected / SIM_MB, (double) f->rate / SIM_MB,
			(long long) f->forced, (long long) f->forced_old_value);
}

/*
 * Does a linear projection show that a checkpoint will be forced soon?  The rate
 * is the larger of those over one sample and over several.  What will be forced
 * later is not meant: a burst that begins meanwhile is not visible.  Nor is what
 * mostly padding forces.
 */
static bool
is_visible(const Run *run)
{
	const SimServer *s = &run->server;
	double		interval = (double) run->config.sample_interval_ms;
	double		rate = fmax(s->pos - run->seen_pos[0],
							(s->pos - run->seen_pos[RATE_TICKS - 1]) / RATE_TICKS) / interval;
	double		rest = s->timer + (double) s->settings.timeout_ms - s->now;
	double		soon = fmax(SOON_TICKS * interval, SOON_AT_LEAST);

	return s->pos - s->redo > 2 * s->padded && s->pos + rate * fmin(fmax(rest, 0), soon) >= sim_segment_start(s, s->redo) +
		(double) walsizer_trigger_point(s->settings.max_wal_size_mb, &s->settings);
}

/* Compare what the policy made of the last checkpoints with what they were. */
static void
note_mistakes(Run *run, const WalsizerDecision *d)
{
	SimServer  *s = &run->server;
	int64_t		judged = walsizer_forced_total(run->state);
	int64_t		missed = s->prompt_forced - run->seen_prompt;
	int64_t		size = d->target_mb > s->settings.max_wal_size_mb ?
		d->target_mb : s->settings.max_wal_size_mb;
	bool		may_raise = run->config.predict && d->reason != WALSIZER_BECAUSE_RECENTLY_CHANGED &&
		(double) size * 1.1 < fmin((double) d->figures.limit_mb, (double) d->figures.step_limit_mb) &&
		(d->limited_by == WALSIZER_UNLIMITED || d->action == WALSIZER_RAISE);

	if (s->settings.max_wal_size_mb != run->seen_size)
		run->true_before = run->seen_true;
	if (judged - run->judged > forced(s) - run->seen_true)
		run->result->misjudged += judged - run->judged - (forced(s) - run->seen_true);
	if (d->action == WALSIZER_RAISE && d->reason == WALSIZER_BECAUSE_FORCED &&
		forced(s) - run->true_before < run->config.threshold)
		run->result->commanded++;
	if (missed > 0 && run->warned[1] && run->warned[0])
	{
		if (run->result->preventable == 0)
			run->result->preventable_at = s->now / 1000;
		if (run->options->changes != NULL)
			fprintf(run->options->changes, "%8.0f s: %lld forced at %lldMB, preventable\n",
					s->now / 1000, (long long) missed, (long long) s->settings.max_wal_size_mb);
		run->result->preventable += missed;
	}
	run->warned[1] = run->warned[0];
	run->warned[0] = may_raise && is_visible(run);
	run->seen_prompt = s->prompt_forced;
	run->seen_size = s->settings.max_wal_size_mb;
	run->seen_true = forced(s);
	run->judged = judged;
	memmove(run->seen_pos + 1, run->seen_pos, (RATE_TICKS - 1) * sizeof(double));
	run->seen_pos[0] = s->pos;
}

static void
broken(Run *run, const char *what)
{
	if (run->result->broken == NULL)
	{
		run->result->broken = what;
		run->result->broken_at = run->server.now / 1000;
	}
}

static void
check_decision(Run *run, const WalsizerDecision *d)
{
	const char *what = sim_broken_rule(&run->config, &run->server.settings,
									   run->state, d);

	if (what != NULL)
		broken(run, what);
}

static void
walsizer_tick(Run *run)
{
	const SimServer *s = &run->server;
	WalsizerSample sample = {0};
	WalsizerDecision decision;

	sim_server_sample(s, &sample);
	if (run->state->primed)
		sample.checkpoint_age = -1;
	sample.padding = (int64_t) s->padding;
	run->server.padding = 0;
	sample.counters_reset = run->reset;
	sample.in_auto_conf = run->result->raises > 0;
	run->reset = false;
	sample.disk_read = s->room > 0;
	sample.disk_wal = (int64_t) (s->files_to - s->files_from);
	sample.disk_free = (int64_t) s->room - sample.disk_wal;

	sample.disk_tried = walsizer_look_is_due(&run->config, run->state, &sample);
	decision = walsizer_step(&run->config, run->state, &sample);
	run->result->samples++;
	if (run->options->witness != NULL)
	{
		run->options->witness->sample = sample;
		run->options->witness->figures = decision.figures;
	}
	if (decision.action == WALSIZER_EXTERNAL)
		run->result->externals++;
	if (run->options->check)
		check_decision(run, &decision);
	note_mistakes(run, &decision);
	if (decision.action == WALSIZER_RAISE || decision.action == WALSIZER_LOWER)
	{
		run->server.note.kind = WALSIZER_NOTE_WRITTEN;
		run->server.note.written_mb = decision.target_mb;
		run->server.note.original_mb = run->state->owner.original_mb;
		log_change(run, &decision);
		apply(run, decision.target_mb);
	}
	if (run->options->csv != NULL)
		fprintf(run->options->csv, "%.0f,%s,%lld,%.0f,%lld,%lld,%lld,%lld,%lld,%s,%s\n",
				s->now / 1000, "walsizer", (long long) s->settings.max_wal_size_mb, s->pos,
				(long long) decision.figures.used, (long long) decision.figures.demand,
				(long long) decision.figures.rate,
				(long long) forced(s), (long long) s->checkpoints[WALSIZER_CAUSE_TIMED].number,
				walsizer_action_name(decision.action), walsizer_reason_text(decision.reason));
}

/* current * (n + 1) for n requested checkpoints in a checkpoint_timeout. */
static void
classic_tick(Run *run)
{
	SimServer  *s = &run->server;
	int64_t		size = s->settings.max_wal_size_mb;
	int64_t		requested = s->requested - run->counted;

	if (run->reset)
		requested = 0;
	run->reset = false;
	if (s->now - run->cycle < (double) s->settings.timeout_ms)
		return;
	run->cycle = s->now;
	run->counted = s->requested;
	if (requested >= CLASSIC_THRESHOLD)
	{
		run->quiet = 0;
		if (size < MAX_MB)
			apply(run, size * (requested + 1) < MAX_MB ? size * (requested + 1) : MAX_MB);
	}
	else if (requested == 0 && ++run->quiet >= QUIET_INTERVALS && run->policy == SIM_SHRINKING)
	{
		run->quiet = 0;
		size = (int64_t) ((double) size * SHRINK);
		apply(run, size > run->first_size ? size : run->first_size);
	}
}

static void
plain_csv(Run *run)
{
	const SimServer *s = &run->server;

	fprintf(run->options->csv, "%.0f,%s,%lld,%.0f,%.0f,,,%lld,%lld,,\n", s->now / 1000,
			sim_policy_name(run->policy), (long long) s->settings.max_wal_size_mb, s->pos,
			s->pos - s->redo,
			(long long) forced(s), (long long) s->checkpoints[WALSIZER_CAUSE_TIMED].number);
}

/* Keep the positions of the last T, so that the largest window is known. */
static void
note_window(Run *run)
{
	const SimServer *s = &run->server;
	int64_t		slots = s->settings.timeout_ms / run->config.sample_interval_ms;
	double	   *slot;

	if (slots < 1 || slots > WINDOW_SLOTS)
		slots = WINDOW_SLOTS;
	slot = &run->positions[run->num_positions % slots];
	if (run->num_positions < slots)
		run->result->largest_window = s->pos - run->positions[0];
	else
		run->result->largest_window = fmax(run->result->largest_window, s->pos - *slot);
	*slot = s->pos;
	if (run->num_positions == 0)
		run->result->largest_window = 0;
	run->num_positions++;
}

/* So many more checkpoints started since the sample before. */
static void
add_starts(Run *run, int64_t number, bool is_forced)
{
	SimWitness *witness = run->options->witness;

	for (int64_t i = 0; i < number; i++)
	{
		/* grow whenever a power of two is reached */
		if ((witness->num_starts & (witness->num_starts - 1)) == 0)
		{
			size_t		slots = witness->num_starts == 0 ? 1 : 2 * (size_t) witness->num_starts;

			witness->starts = realloc(witness->starts, slots * sizeof(SimStart));
			if (witness->starts == NULL)
				abort();
		}
		witness->starts[witness->num_starts++] = (SimStart) {run->server.now, is_forced};
	}
}

static void
note_starts(Run *run)
{
	const SimServer *s = &run->server;
	int64_t		other = s->checkpoints[WALSIZER_CAUSE_TIMED].number +
		s->checkpoints[WALSIZER_CAUSE_OTHER].number;

	add_starts(run, forced(s) - run->seen_forced, true);
	add_starts(run, other - run->seen_other, false);
	run->seen_forced = forced(s);
	run->seen_other = other;
}

static void
tick(Run *run)
{
	SimServer  *s = &run->server;

	if (run->options->witness != NULL)
		note_starts(run);

	if (s->now <= run->options->quiet_from)
	{
		run->early_forced = forced(s);
		run->result->early_size = s->settings.max_wal_size_mb;
	}
	switch (run->policy)
	{
		case SIM_WALSIZER:
			walsizer_tick(run);
			break;
		case SIM_CLASSIC:
		case SIM_SHRINKING:
			classic_tick(run);
			break;
		case SIM_STATIC:
		case SIM_ORACLE:
			note_window(run);
			break;
	}
	if (run->options->csv != NULL && run->policy != SIM_WALSIZER)
		plain_csv(run);
	run->next_sample += (double) run->config.sample_interval_ms;
}

/* Let the server run to this time, with the ticks on the way. */
static void
advance(Run *run, double until, double rate)
{
	SimServer  *s = &run->server;

	while (run->next_sample <= until)
	{
		if (s->apply_at > 0 && s->apply_at < run->next_sample)
		{
			sim_server_advance(s, s->apply_at, rate);
			account_size(run);
		}
		sim_server_advance(s, run->next_sample, rate);
		account_size(run);
		tick(run);
	}
	sim_server_advance(s, until, rate);
}

/* What the state file keeps over a restart; a crash loses the last window. */
static void
restart_worker(Run *run, bool crash)
{
	WalsizerState *before = run->state;

	if (run->policy != SIM_WALSIZER)
	{
		run->cycle = run->server.now;
		run->counted = run->server.requested;
		return;
	}
	if (!crash)
		walsizer_remember_window(before);
	run->state = calloc(1, sizeof(WalsizerState));
	if (run->state == NULL)
		abort();
	run->state->owner.original_mb = before->owner.original_mb;
	run->state->owner.original_by_alter_system = before->owner.original_by_alter_system;
	run->state->owner.own_mb = before->owner.own_mb;
	memcpy(run->state->learned.peaks, before->learned.peaks, sizeof(before->learned.peaks));
	free(before);
}

/* An administrator's value; the policies that have one of their own keep it. */
static void
set_size(Run *run, int64_t mb)
{
	if (run->policy == SIM_STATIC || run->policy == SIM_ORACLE)
		return;
	account_size(run);
	run->server.apply_at = 0;
	run->server.settings.max_wal_size_mb = mb;
	run->server.note = (WalsizerNote) {0};
}

/* Both ways of going down take the worker with them. */
static void
restart(Run *run, bool crash)
{
	sim_server_restart(&run->server, crash);
	account_size(run);
	restart_worker(run, crash);
	run->next_sample = run->server.now;
}

static void
happen(Run *run, SimMark mark, double value)
{
	SimServer  *s = &run->server;
	int64_t		number = (int64_t) value;

	switch (mark)
	{
		case SIM_NOTHING: break;
		case SIM_CHECKPOINT: sim_server_checkpoint(s); break;
		case SIM_RESTART: restart(run, false); break;
		case SIM_CRASH: restart(run, true); break;
		case SIM_BEGIN: sim_server_begin(s); break;
		case SIM_END: sim_server_end(s); break;
		case SIM_RESET_STATISTICS: s->requested = s->timed = 0; run->reset = true; break;
		case SIM_SWITCH: sim_server_switch(s); break;
		case SIM_BACKUP: sim_server_switch(s); sim_server_checkpoint(s); break;
		case SIM_SIZE: set_size(run, number); break;
		case SIM_MAX: run->config.max_mb = number; break;
		case SIM_PREDICT: run->config.predict = value != 0; break;
		case SIM_RECOVERY: run->config.max_recovery_ms = number; break;
		case SIM_LOOKBACK: run->config.lookback_hours = number; break;
		case SIM_TIMEOUT: s->settings.timeout_ms = number; run->num_positions = 0; break;
		case SIM_CLOCK: s->hours_ahead = number; break;
		case SIM_SLOW: s->least_writing = value; break;
		case SIM_FAILING: s->failing = value != 0; break;
		case SIM_ROOM: s->room = value * SIM_MB; break;
		case SIM_TOUCH: s->touch_bytes = value; break;
	}
}

static void
fill_result(Run *run)
{
	const SimServer *s = &run->server;
	const SimCheckpoints *at_value = &s->checkpoints[WALSIZER_CAUSE_FORCED];
	const SimCheckpoints *old_value = &s->checkpoints[WALSIZER_CAUSE_OLD_VALUE];
	SimResult  *r = run->result;
	double		writing = s->written_by_time + s->written_by_wal;

	account_size(run);
	memcpy(r->checkpoints, s->checkpoints, sizeof(r->checkpoints));
	r->forced = forced(s);
	r->forced_old_value = old_value->number;
	r->late_forced = r->forced - run->early_forced;
	r->timed = s->checkpoints[WALSIZER_CAUSE_TIMED].number;
	r->other = s->checkpoints[WALSIZER_CAUSE_OTHER].number;
	r->lasted = s->now;
	if (s->now > 0)
		r->forced_share = (at_value->intervals + old_value->intervals) / s->now;
	for (int cause = 0; cause < WALSIZER_CAUSES; cause++)
		r->hurried_time += s->checkpoints[cause].hurried_time;
	r->shortest = at_value->shortest;
	if (at_value->number == 0 ||
		(old_value->number > 0 && old_value->shortest < at_value->shortest))
		r->shortest = old_value->shortest;
	r->mean = s->now > 0 ? run->size_time / s->now : (double) s->settings.max_wal_size_mb;
	r->final = s->settings.max_wal_size_mb;
	r->wal = s->pos - 16 * SIM_MB * 64;
	r->peak_files = s->peak_files;
	r->time_paced = writing > 0.5 ? s->written_by_time / writing : -1;
}

/* Run the load from its beginning; static_mb is for SIM_STATIC and SIM_ORACLE. */
void
sim_run(SimLoad *load, SimPolicy policy, int64_t static_mb, const SimOptions *options,
		SimResult *result)
{
	Run		   *run = calloc(1, sizeof(Run));
	SimPiece	piece;
	double		restarts = 0;	/* time that restarts took, not the load's */

	if (run == NULL || (run->state = calloc(1, sizeof(WalsizerState))) == NULL)
		abort();
	memset(result, 0, sizeof(*result));
	sim_load_rewind(load);
	sim_server_init(&run->server, &load->settings);
	run->server.hot_pages = load->hot_pages;
	run->server.touch_bytes = load->touch_bytes;
	run->server.image_bytes = load->image_bytes;
	run->server.late_counters = options->late_counters;
	run->policy = policy;
	run->options = options;
	run->config = options->config;
	run->result = result;
	run->seen_size = load->settings.max_wal_size_mb;
	for (int i = 0; i < RATE_TICKS; i++)
		run->seen_pos[i] = run->server.pos;
	if (policy == SIM_STATIC || policy == SIM_ORACLE)
		run->server.settings.max_wal_size_mb = static_mb;
	run->first_size = result->peak = run->server.settings.max_wal_size_mb;
	if (options->witness != NULL)
		memset(options->witness, 0, sizeof(SimWitness));

	while (sim_next_piece(load, run->server.now - restarts, &piece))
	{
		double		before;

		advance(run, run->server.now + piece.ms,
				piece.ms > 0 ? piece.bytes / piece.ms : 0);
		before = run->server.now;
		happen(run, piece.mark, piece.value);
		restarts += run->server.now - before;
	}
	fill_result(run);
	if (options->check && policy == SIM_WALSIZER && sim_out_of_range(run->state) != NULL)
		broken(run, sim_out_of_range(run->state));
	if (options->witness != NULL)
		options->witness->state = *run->state;
	free(run->state);
	free(run);
}

/*
 * The smallest max_wal_size (MB) that never forces a checkpoint, wherever the
 * intervals begin: what the largest WAL of any T needs when nothing is forced.
 */
int64_t
sim_oracle(SimLoad *load, const SimOptions *options)
{
	SimOptions	quiet = *options;
	SimResult	result;

	quiet.csv = NULL;
	quiet.config.sample_interval_ms = options->oracle_interval;
	sim_run(load, SIM_ORACLE, INT32_MAX, &quiet, &result);
	return walsizer_size_for((int64_t) result.largest_window, &load->settings);
}
