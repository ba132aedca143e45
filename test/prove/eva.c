/*-------------------------------------------------------------------------
 *
 * eva.c
 *	  Entry points for Frama-C's Eva: no undefined behaviour in the policy.
 *
 * Configuration and state have any values within test/prove/ranges.h, samples
 * any value at all, but for a completion target that is NaN: Eva does not know
 * that all comparisons with it are false, so that the sample is ignored.
 * test/unit/test_total.c has that case.  Where NaN appears elsewhere is an
 * alarm, though no undefined behaviour.  Afterwards the state must be within the ranges again, so
 * that by induction what is proved for one call holds for any number of them,
 * in any order: must_hold() has no alarm.
 *
 * script/lib/prove runs this.  It is no program.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <__fc_builtin.h>
#include <float.h>
#include <math.h>

#include "test/prove/ranges.h"

extern void Frama_C_show_each_out_of_range(const char *field);

static WalsizerConfig config;
static WalsizerState state;
static WalsizerSample sample;

#define ANY(object) \
	Frama_C_make_unknown((char *) &(object), sizeof(object))
#define ANY_WITHIN(field, least, most) \
	(field) = Frama_C_long_long_interval(least, most)
#define ANY_REAL(field, least, most) \
	(field) = Frama_C_double_interval(least, most)
#define ANY_FLAG(field) \
	(field) = Frama_C_interval(0, 1)

/* One assertion for all fields, which says for which it may not hold. */
static void
must_hold(int truth, const char *field)
{
	if (!truth)
		Frama_C_show_each_out_of_range(field);
	/*@ assert in_range: truth != 0; */
	(void) truth;
}

#define MUST_BE_WITHIN(field, least, most) \
	must_hold(((field) >= (least)) & ((field) <= (most)), #field)
#define NOT_CHECKED(...)		/* a truth value stays one */

static void
begin(void)
{
	ANY(config);
	ANY(state);
	ANY(sample);
	CONFIG_RANGES(&config, ANY_WITHIN, ANY_REAL, ANY_FLAG);
	STATE_RANGES(&state, ANY_WITHIN, ANY_REAL, ANY_FLAG);
	/* without the room for one more step */
	for (int i = 0; i < WALSIZER_CAUSES; i++)
		ANY_WITHIN(state.checkpoints.total[i], 0, MOST_CHECKPOINTS - 3000);	/* 1002 in a step, as far as Eva knows */
	ANY_WITHIN(state.checkpoints.failures, 0, MOST_CHECKPOINTS);
	ANY_WITHIN(state.cycle.old_value, 0, MOST_CHECKPOINTS - 1);	/* two */
	ANY_WITHIN(state.curve.intervals, 0, MOST_CHECKPOINTS);
	sample.settings.completion_target = Frama_C_double_interval(-DBL_MAX, DBL_MAX);
	if (Frama_C_nondet(0, 1))
		sample.settings.completion_target = Frama_C_nondet(0, 1) ? INFINITY : -INFINITY;
	ANY_FLAG(sample.checkpoint_running);
	ANY_FLAG(sample.counters_reset);
	ANY_FLAG(sample.standby);
	ANY_FLAG(sample.in_auto_conf);
	ANY_FLAG(sample.note.original_by_alter_system);
	ANY_FLAG(sample.act_now);
	ANY_FLAG(sample.revert);
	ANY_FLAG(sample.disk_tried);
	ANY_FLAG(sample.disk_read);
	ANY_FLAG(sample.disk_alone);
}

static void
end(void)
{
	STATE_RANGES(&state, MUST_BE_WITHIN, MUST_BE_WITHIN, NOT_CHECKED);
}

void
eva_step(void)
{
	begin();
	walsizer_look_is_due(&config, &state, &sample);
	walsizer_step(&config, &state, &sample);
	end();
}

/* What else changes a state.  Times and sizes are the worker's. */
void
eva_state(void)
{
	int64_t		now;
	int64_t		hour;
	int64_t		timeout_ms;

	begin();
	ANY_WITHIN(now, 0, LATEST);
	ANY_WITHIN(hour, INT64_MIN, LATEST);
	ANY_WITHIN(timeout_ms, INT64_MIN, MOST_TIMEOUT);
	switch (Frama_C_interval(0, 5))
	{
		case 0:
			state.last.redo_lsn = sample.redo_lsn;	/* as watch/watcher.c does */
			break;
		case 1:
			walsizer_remember(&state, &(WalsizerPeak) {hour, sample.boost_mb, timeout_ms,
							  walsizer_max(0, sample.disk_free)});
			break;
		case 2:
			walsizer_remember_window(&state);
			break;
		case 3:
			walsizer_forget(&state);
			break;
		case 4:
			walsizer_took_effect(&state, now, sample.boost_mb);
			break;
		default:
			walsizer_original_is_back(&state, sample.boost_mb);
			break;
	}
	end();
}

/* What only reads it, for a sample that walsizer_step() has accepted. */
void
eva_readers(void)
{
	WalsizerFigures figures;
	int64_t		sizes[WALSIZER_CANDIDATES];
	int64_t		timeouts[WALSIZER_TIMEOUTS];
	int64_t		mb;
	int64_t		wanted;
	int64_t		timeout_ms;
	double		saved;

	begin();
	ANY(figures);
	FIGURES_RANGES(&figures, ANY_WITHIN);
	ANY_WITHIN(mb, 0, WALSIZER_MOST_MB);
	ANY_WITHIN(wanted, INT64_MIN, INT64_MAX);
	ANY_WITHIN(timeout_ms, 1000, MOST_TIMEOUT);
	if (!walsizer_sample_valid(&sample))
		return;
	walsizer_what_if(&config, &state, &sample, &figures, mb);
	walsizer_recovery_time_now(&config, &state, &sample);
	walsizer_largest_peak(&state, sample.hour, config.lookback_hours);
	walsizer_peak_of(&state, sample.boost_mb);
	walsizer_candidates(&sample.settings, wanted, sizes);
	walsizer_advise_timeout(&config, &state, &sample, &figures, timeout_ms);
	walsizer_timeout_saved(&state, &saved);
	walsizer_timeouts(&sample.settings, timeouts);
	ANY_WITHIN(wanted, 0, WALSIZER_MOST_MB);
	walsizer_is_news(mb, &wanted);
}

/*
 * The verdict, on any state and figures that walsizer_step() gives.  Its texts are
 * the worker's.
 */
void
eva_verdict(void)
{
	WalsizerDecision decision;
	WalsizerVerdict verdict;
	char		text[WALSIZER_SENTENCE_SIZE];
	WalsizerSituation situation = {
		.config = &config, .state = &state, .decision = &decision,
		.message = "no message", .holder = "no slot",
	};

	begin();
	ANY(decision);
	FIGURES_RANGES(&decision.figures, ANY_WITHIN);
	ANY_FLAG(decision.limited);
	ANY_FLAG(decision.figures.checkpoints_fail);
	ANY_FLAG(decision.figures.inflated);
	decision.limited_by = (WalsizerLimit) Frama_C_interval(0, WALSIZER_LIMITS - 1);
	decision.figures.limit_kind = (WalsizerLimit) Frama_C_interval(0, WALSIZER_LIMITS - 1);
	ANY_FLAG(situation.running);
	ANY_FLAG(situation.client);
	ANY_FLAG(situation.early);
	ANY_FLAG(situation.dry_run);
	ANY_FLAG(situation.taken_back);
	situation.outcome = (WalsizerOutcome) Frama_C_interval(0, WALSIZER_FAILED);
	situation.held_by = (WalsizerHolder) Frama_C_interval(0, WALSIZER_HELD_BY_ARCHIVER);
	if (!walsizer_sample_valid(&state.last))
		return;
	verdict = walsizer_judge(&situation);
	must_hold(verdict.found.notice >= 0 && verdict.found.notice < WALSIZER_NOTICES, "notice");
	walsizer_verdict_text(&verdict, verdict.found.text, text);
	walsizer_verdict_text(&verdict, verdict.found.remedy, text);
}

/* Names of any value, though no enumeration has it. */
void
eva_names(void)
{
	unsigned int value;

	ANY_WITHIN(value, 0, UINT32_MAX);
	walsizer_action_name(value);
	walsizer_reason_code(value);
	walsizer_reason_text(value);
	walsizer_limit_name(value);
	walsizer_outcome_name(value);
}
