/*-------------------------------------------------------------------------
 *
 * fuzz_step.c
 *	  walsizer_step() with any sequence of settings and samples.
 *
 * The first bytes of an input are a configuration and a sample, then follow
 * changes of it, each of a field or of two: small ones, so that sequences a
 * server could produce are found, and whole new values.  What is decided comes
 * into force or not, as the input says.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "fuzz/input.h"
#include "sim.h"

#define MAX_STEPS	2000

static double
take_double(Input *in)
{
	uint64_t	bits = take(in, 8);
	double		value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* Any settings that the server lets an administrator set. */
static void
take_config(Input *in, WalsizerConfig *config)
{
	config->enable = (take(in, 1) & 7) != 0;
	config->predict = (take(in, 1) & 3) != 0;
	config->prevent_disk_full = config->predict;
	config->max_mb = 2 + (int64_t) (take(in, 4) % (INT32_MAX - 1));
	config->min_mb = (int64_t) (take(in, 4) % INT32_MAX);
	config->threshold = 1 + (int) (take(in, 2) % 1000);
	config->headroom = 1.0 + (double) take(in, 2) / 65535.0 * 3.0;
	config->sample_interval_ms = 100 + (int64_t) (take(in, 2) % 59901);
	config->lookback_hours = 1 + (int64_t) (take(in, 2) % (WALSIZER_PEAK_SLOTS - 1));
	config->max_disk_percent = 1 + (int) (take(in, 1) % 100);
	config->max_recovery_ms = (int64_t) (take(in, 3) % 86401) * 1000;
	config->replay_rate = (double) take(in, 5);
	config->recoveries[0] = (WalsizerRecovery) {
		.bytes = (int64_t) take(in, 4), .replay_ms = (int64_t) take(in, 3),
		.bytes_read = (int64_t) take(in, 4), .pages_used = (int64_t) take(in, 4), .pages_written = (int64_t) take(in, 3),
		.writing_ms = (int64_t) take(in, 3),
	};
}

/* A new whole value for one field of the sample. */
static void
replace(Input *in, WalsizerSample *s)
{
	switch (take(in, 1) % 23)
	{
		case 0: s->now = (int64_t) take(in, 8); break;
		case 1: s->hour = (int64_t) take(in, 8); break;
		case 2: s->write_lsn = take(in, 8); break;
		case 3: s->redo_lsn = take(in, 8); break;
		case 4: s->checkpoint_running = take(in, 1) & 1; break;
		case 5: s->checkpoint_age = (int64_t) take(in, 8); break;
		case 6: s->requested = (int64_t) take(in, 8); break;
		case 7: s->timed = (int64_t) take(in, 8); break;
		case 8: s->counters_reset = take(in, 1) & 1; break;
		case 9: s->standby = take(in, 1) & 1; break;
		case 10: s->act_now = take(in, 1) & 1; s->revert = take(in, 1) & 1; break;
		case 11:
			s->disk_read = true;
			s->disk_free = (int64_t) take(in, 8);
			s->disk_wal = (int64_t) take(in, 8);
			s->disk_ahead = (int64_t) take(in, 8);
			s->disk_removable = (int64_t) take(in, 8);
			break;
		case 12: s->settings.segment_bytes = (int64_t) take(in, 8); break;
		case 13: s->settings.max_wal_size_mb = (int64_t) take(in, 8); break;
		case 14: s->settings.completion_target = take_double(in); break;
		case 15: s->settings.timeout_ms = (int64_t) take(in, 8); break;
		case 17: s->boost_mb = (int64_t) take(in, 3); break;
		case 18: s->boost_mb = 0; break;
		case 16: s->configured_mb = (int64_t) take(in, 4); break;
		case 19:
			s->wal.bytes = (int64_t) take(in, 8);
			s->wal.records = (int64_t) take(in, 8);
			s->wal.images = (int64_t) take(in, 8);
			s->wal.written = (int64_t) take(in, 8);
			s->wal.image_bytes = s->wal.written;	/* any value: corpora stay valid */
			s->buffers = (int64_t) take(in, 4);
			break;
		case 21: s->padding = (int64_t) take(in, 8); break;
		case 22: s->completed_lsn = take(in, 8); break;
		default:
			s->primary_redo = take(in, 8);
			s->primary_time = (int64_t) take(in, 8);
			s->primary_lsn = take(in, 8);
			break;
	}
}

/* Something that happens on a server. */
static void
go_on(Input *in, uint8_t what, WalsizerSample *s)
{
	if (s->now > INT64_MAX / 2 || s->now < 0)
		s->now = 0;
	switch (what % 8)
	{
		case 0:
		case 1:
		case 2:
			s->now += 1000;
			s->write_lsn += take(in, 2) << 12;
			break;
		case 3:
			s->now += (int64_t) take(in, 3);
			s->write_lsn += take(in, 4);
			break;
		case 4:
			s->redo_lsn = s->write_lsn;
			if (take(in, 1) & 1)
				s->timed = s->timed < INT64_MAX ? s->timed + 1 : 0;
			else
				s->requested = s->requested < INT64_MAX ? s->requested + 1 : 0;
			break;
		case 5:
			s->hour = (s->hour & 0xffffff) + (int64_t) take(in, 1);
			break;
		case 6:
			s->settings.max_wal_size_mb = (int64_t) take(in, 2) + 2;
			break;
		default:
			replace(in, s);
			break;
	}
}

static void
sensible(WalsizerSample *s)
{
	s->now = 1000;
	s->hour = 490000;
	s->write_lsn = s->redo_lsn = UINT64_C(1) << 32;
	s->settings = (WalsizerSettings) {16 * WALSIZER_MB, 1024, 0.9, 300000};
}

/* There is a verdict on any state, and it has sentences. */
static void
check_verdict(const WalsizerConfig *config, const WalsizerState *state, const WalsizerDecision *d)
{
	const WalsizerSituation situation = {
		.config = config, .state = state, .decision = d, .running = true,
		.dry_run = d->cycle, .outcome = d->limited ? WALSIZER_FORBIDDEN : WALSIZER_NO_OUTCOME,
		.held_by = (WalsizerHolder) (d->reason % 4), .message = "", .holder = "",
	};
	WalsizerVerdict verdict = walsizer_judge(&situation);
	char		text[WALSIZER_SENTENCE_SIZE];

	CHECK(verdict.found.notice >= 0 && verdict.found.notice < WALSIZER_NOTICES);
	walsizer_verdict_text(&verdict, verdict.found.text, text);
	CHECK(strlen(text) > 10);
	walsizer_verdict_text(&verdict, verdict.found.remedy, text);
	CHECK(text[strlen(text) - 1] == '.');
}

/* Does the decision keep what must hold for any input? */
static void
check(const WalsizerConfig *config, const WalsizerState *state, const WalsizerSample *s,
	  const WalsizerDecision *d)
{
	int64_t		segment = s->settings.segment_bytes / WALSIZER_MB;
	const WalsizerFigures *f = &d->figures;

	CHECK(f->demand >= 0 && f->used >= 0 && f->rate >= 0 && f->trigger_point >= 0);
	CHECK(f->projected >= 0 && f->until_timed_ms >= 0 && f->until_forced_ms >= -1);
	CHECK(f->forced >= 0 && f->requested >= 0);
	CHECK(state->window.number >= 0 && state->window.number <= WALSIZER_WINDOW_SLOTS);
	CHECK(strcmp(walsizer_reason_text(d->reason), "unknown") != 0);
	check_verdict(config, state, d);

	if (d->action == WALSIZER_RAISE)
	{
		CHECK(d->target_mb > s->settings.max_wal_size_mb && d->target_mb <= INT32_MAX);
		CHECK(d->target_mb % segment == 0 && d->target_mb >= 2 * segment);
		CHECK(d->target_mb <= config->max_mb || d->target_mb == 2 * segment);
		CHECK(config->enable);
	}
	if (d->action == WALSIZER_CHECKPOINT)
		CHECK(config->enable && config->prevent_disk_full && s->disk_read &&
			  d->target_mb == s->settings.max_wal_size_mb);
	if (d->action == WALSIZER_LOWER)
	{
		CHECK(d->target_mb < s->settings.max_wal_size_mb && d->target_mb >= 2 * segment);
		CHECK(d->target_mb >= state->owner.original_mb && state->owner.own_mb == s->settings.max_wal_size_mb);
		CHECK(config->enable);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static WalsizerState state;
	Input		in = {data, size};
	WalsizerConfig config = {0};
	WalsizerSample sample = {0};
	uint64_t	plain = take(&in, 1) & 1;

	memset(&state, 0, sizeof(state));
	sensible(&sample);
	if (plain)
	{
		config = walsizer_default;
		config.max_mb = 65536;
	}
	else
		take_config(&in, &config);

	for (int i = 0; i < MAX_STEPS && in.left > 0; i++)
	{
		uint8_t		what = (uint8_t) take(&in, 1);
		WalsizerDecision decision;

		go_on(&in, what, &sample);
		sample.disk_tried = walsizer_look_is_due(&config, &state, &sample);
		decision = walsizer_step(&config, &state, &sample);
		if (decision.reason == WALSIZER_BECAUSE_INVALID)
		{
			CHECK(decision.action == WALSIZER_NONE);
			continue;
		}
		check(&config, &state, &sample, &decision);
		if ((decision.action == WALSIZER_RAISE || decision.action == WALSIZER_LOWER) && what < 192)
		{
			sample.settings.max_wal_size_mb = sample.note.written_mb = decision.target_mb;
			sample.note.original_mb = state.owner.original_mb;
			sample.note.kind = WALSIZER_NOTE_WRITTEN;
		}
		if (what == 252)
			sample.note.kind = WALSIZER_NOTE_RESTORED;
		if (what == 255)
			walsizer_remember_window(&state);
		if (what == 254)
			walsizer_forget(&state);
		if (what == 253)
			walsizer_original_is_back(&state, sample.settings.max_wal_size_mb);
	}
	CHECK(sim_out_of_range(&state) == NULL);
	return 0;
}
