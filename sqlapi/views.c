/*-------------------------------------------------------------------------
 *
 * sqlapi/views.c
 *	  The functions behind the views: copy out under a shared lock, then format.
 *
 * Nothing is decided here and nothing applied.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "funcapi.h"
#include "utils/timestamp.h"

#include "sqlapi/rows.h"

PG_FUNCTION_INFO_V1(walsizer_get_status_1_0);
PG_FUNCTION_INFO_V1(walsizer_get_stats_1_0);
PG_FUNCTION_INFO_V1(walsizer_get_history_1_0);
PG_FUNCTION_INFO_V1(walsizer_get_demand_1_0);
PG_FUNCTION_INFO_V1(walsizer_get_advice_1_0);
PG_FUNCTION_INFO_V1(walsizer_get_instructions_1_0);
PG_FUNCTION_INFO_V1(walsizer_get_timeout_advice_1_0);

/* The state of things.  Before the first sample, what a sample tells is null. */
Datum
walsizer_get_status_1_0(PG_FUNCTION_ARGS)
{
	WalsizerShared *shared = walsizer_copy_shared();
	const WalsizerDecision *decision = &shared->decision;
	bool		sampled = shared->sampled_at != 0;
	WalsizerApplied trouble = walsizer_trouble_now(shared);
	WalsizerVerdict verdict = walsizer_verdict(shared, &trouble);
	char		finding[WALSIZER_SENTENCE_SIZE];
	char		remedy[WALSIZER_SENTENCE_SIZE];
	WalsizerRow row = {0};

	walsizer_verdict_text(&verdict, verdict.found.text, finding);
	walsizer_verdict_text(&verdict, verdict.found.remedy, remedy);
	walsizer_put_text(&row, verdict.state);
	walsizer_put_text(&row, psprintf("%s. %s", finding, remedy));
	walsizer_put_size(&row, decision->figures.in_effect_mb);
	walsizer_put_size(&row, decision->figures.wanted_mb);
	walsizer_put_text(&row, walsizer_limit_name(verdict.limited_by));
	walsizer_put_size(&row, shared->state.owner.original_mb);
	walsizer_put_size(&row, shared->state.owner.own_mb);
	walsizer_put_text(&row, !sampled ? NULL : shared->sample.standby ? "standby" : "primary");
	walsizer_put_text(&row, sampled ? walsizer_action_name(decision->action) : NULL);
	walsizer_put_text(&row, sampled ? walsizer_reason_code(decision->reason) : NULL);
	walsizer_put_text(&row, sampled ? walsizer_reason_text(decision->reason) : NULL);
	walsizer_put_text(&row, trouble.outcome == WALSIZER_NO_OUTCOME ? NULL :
					  walsizer_outcome_name(trouble.outcome));
	walsizer_put_text(&row, trouble.message);
	walsizer_put_size(&row, shared->boost_mb);
	walsizer_put_time(&row, walsizer_boost_until(shared));
	walsizer_put_text(&row, verdict.found.code);
	walsizer_put(&row, Int32GetDatum(shared->worker_pid), shared->worker_pid == 0);
	return walsizer_return_row(fcinfo, &row);
}

/* Null before the first sample. */
Datum
walsizer_get_stats_1_0(PG_FUNCTION_ARGS)
{
	WalsizerShared *shared = walsizer_copy_shared();
	const WalsizerFigures *figures = &shared->decision.figures;
	const WalsizerSample *sample = &shared->sample;
	WalsizerConfig config = walsizer_config(shared);
	int64		in_effect_mb = sample->settings.max_wal_size_mb;
	int64		at_worst;
	int64		now;
	WalsizerRow row = {0};

	if (shared->sampled_at == 0)
		PG_RETURN_NULL();
	walsizer_put_time(&row, shared->sampled_at);
	walsizer_put_int64(&row, figures->demand);
	walsizer_remember_window(&shared->state);
	walsizer_put_int64(&row, Max(figures->demand,
								 walsizer_learned_demand(&shared->state, sample->hour, config.lookback_hours)));
	walsizer_put_int64(&row, figures->rate);
	walsizer_put_int64(&row, Max((int64) (sample->write_lsn - sample->redo_lsn), 0));
	walsizer_put_int64(&row, figures->trigger_point);
	walsizer_put_interval(&row, figures->until_forced_ms);
	walsizer_put_interval(&row, figures->until_timed_ms);
	walsizer_put_size(&row, figures->limit_mb);
	walsizer_put_size(&row, figures->disk_limit_mb);
	walsizer_put_size(&row, figures->recovery_limit_mb);
	at_worst = walsizer_recovery_time(&config, &shared->state, sample, in_effect_mb);
	now = walsizer_recovery_time_now(&config, &shared->state, sample);
	/* WAL exceeds max_wal_size while checkpoints are late */
	walsizer_put_interval(&row, Max(at_worst, now));
	walsizer_put_interval(&row, now);
	walsizer_put_int64(&row, in_effect_mb * WALSIZER_MB * 1000 / Max(at_worst, 1));
	walsizer_put_text(&row, config.replay_rate > 0 ? "configured" :
					  config.recoveries[0].replay_ms > 0 ? "measured" : "assumed");
	walsizer_put(&row, Int64GetDatum(shared->state.disk.held), !shared->state.disk.known);
	walsizer_put(&row, Int32GetDatum(figures->padding_percent), false);
	for (int cause = 0; cause < WALSIZER_CAUSES; cause++)
		walsizer_put_int64(&row, shared->state.checkpoints.total[cause] -
						   shared->checkpoints_at_reset[cause]);
	walsizer_put_int64(&row, sample->requested);
	walsizer_put_int64(&row, sample->timed);
	walsizer_put_time(&row, shared->stats_reset);
	return walsizer_return_row(fcinfo, &row);
}

/* Oldest first. */
Datum
walsizer_get_history_1_0(PG_FUNCTION_ARGS)
{
	WalsizerEvent *events = palloc(sizeof(WalsizerEvent) * WALSIZER_HISTORY_SLOTS);
	int			number = 0;

	walsizer_attach_shared();
	InitMaterializedSRF(fcinfo, 0);
	LWLockAcquire(walsizer_shared->lock, LW_SHARED);
	for (int64 i = walsizer_first_event(walsizer_shared);
		 i <= walsizer_shared->last_event; i++)
		events[number++] = *walsizer_event(walsizer_shared, i);
	LWLockRelease(walsizer_shared->lock);

	for (int i = 0; i < number; i++)
	{
		const WalsizerEvent *event = &events[i];
		WalsizerRow row = {0};

		walsizer_put_int64(&row, event->number);
		walsizer_put_time(&row, event->at);
		walsizer_put_text(&row, walsizer_action_name(event->action));
		walsizer_put_text(&row, walsizer_reason_code(event->reason));
		walsizer_put_text(&row, walsizer_reason_text(event->reason));
		walsizer_put_size(&row, event->old_mb);
		walsizer_put_size(&row, event->wanted_mb);
		walsizer_put_size(&row, event->new_mb);
		walsizer_put_text(&row, walsizer_limit_name(event->limited_by));
		walsizer_put_text(&row, walsizer_outcome_name(event->outcome));
		walsizer_put_text(&row, event->message);
		walsizer_put_int64(&row, event->demand);
		walsizer_put_int64(&row, event->rate);
		walsizer_put_int64(&row, event->forced);
		walsizer_put_int64(&row, event->requested);
		walsizer_put_int64(&row, event->timed);
		walsizer_put_interval(&row, event->timeout_ms);
		walsizer_put(&row, Float8GetDatum(event->completion_target), false);
		walsizer_put_text(&row, event->standby ? "standby" : "primary");
		walsizer_put(&row, Int64GetDatum(event->forced_after), event->forced_after < 0);
		walsizer_store_row(fcinfo, &row);
	}
	return (Datum) 0;
}

/*
 * The hourly peaks that count, oldest first.  Hours to come are among them where
 * the clock was set back (see walsizer_is_remembered()).
 */
Datum
walsizer_get_demand_1_0(PG_FUNCTION_ARGS)
{
	WalsizerShared *shared = walsizer_copy_shared();
	WalsizerConfig config = walsizer_config(shared);

	InitMaterializedSRF(fcinfo, 0);
	if (shared->sampled_at == 0)
		return (Datum) 0;

	walsizer_remember_window(&shared->state);
	for (int64 hour = shared->sample.hour - config.lookback_hours - 1;
		 hour <= shared->sample.hour + config.lookback_hours + 1; hour++)
	{
		const WalsizerPeak *peak = walsizer_peak_of(&shared->state, hour);
		WalsizerRow row = {0};

		if (peak == NULL)
			continue;
		walsizer_put_time(&row, time_t_to_timestamptz((pg_time_t) hour * SECS_PER_HOUR));
		walsizer_put_int64(&row, peak->demand);
		walsizer_put_interval(&row, peak->timeout_ms);
		walsizer_put_size(&row, walsizer_size_with_headroom(&config, &shared->sample.settings,
															peak->demand));
		walsizer_store_row(fcinfo, &row);
	}
	return (Datum) 0;
}

/*
 * What other sizes would mean, smallest first.  A size is said to suffice exactly
 * when the classic rule would not raise it; the rules that look ahead may.
 */
Datum
walsizer_get_advice_1_0(PG_FUNCTION_ARGS)
{
	WalsizerShared *shared = walsizer_copy_shared();
	WalsizerConfig config = walsizer_config(shared);
	const WalsizerFigures *figures = &shared->decision.figures;
	int64_t		sizes[WALSIZER_CANDIDATES];
	int			number;

	InitMaterializedSRF(fcinfo, 0);
	if (shared->sampled_at == 0)
		return (Datum) 0;

	walsizer_remember_window(&shared->state);
	number = walsizer_candidates(&shared->sample.settings, figures->wanted_mb, sizes);
	for (int i = 0; i < number; i++)
	{
		WalsizerWhatIf what = walsizer_what_if(&config, &shared->state, &shared->sample,
											   figures, sizes[i]);
		WalsizerRow row = {0};

		walsizer_put_size(&row, what.size_mb);
		walsizer_put_text(&row, what.size_mb == figures->in_effect_mb ? "in effect" :
						  what.size_mb == figures->wanted_mb ? "wanted" : NULL);
		walsizer_put_int64(&row, what.trigger_point);
		walsizer_put_interval(&row, what.every_now_ms);
		walsizer_put_interval(&row, what.every_at_peak_ms);
		walsizer_put(&row, Float8GetDatum(what.forced_fraction), false);
		walsizer_put_interval(&row, what.recovery_ms);
		walsizer_put_text(&row, walsizer_limit_name(what.limited_by));
		walsizer_store_row(fcinfo, &row);
	}
	return (Datum) 0;
}

/* How to set a size (MB), everywhere: the view knows where that has an effect. */
Datum
walsizer_get_instructions_1_0(PG_FUNCTION_ARGS)
{
	WalsizerVerdict verdict = {.numbers = {0, PG_GETARG_INT64(0)}};

	InitMaterializedSRF(fcinfo, 0);
	for (const WalsizerInstruction *way = walsizer_instructions; way->place != NULL; way++)
	{
		char		text[WALSIZER_SENTENCE_SIZE];
		WalsizerRow row = {0};

		walsizer_verdict_text(&verdict, way->text, text);
		walsizer_put_text(&row, way->place);
		walsizer_put_text(&row, text);
		walsizer_store_row(fcinfo, &row);
	}
	return (Datum) 0;
}

/* A part of the WAL, to a thousandth: it is no more exact than that. */
static void
put_part(WalsizerRow *row, double part, bool known)
{
	walsizer_put(row, Float8GetDatum(rint(part * 1000) / 1000), !known);
}

/*
 * What other values of checkpoint_timeout would mean, shortest first.  The row of the
 * one in effect has what was said before it was set, and what came of that.
 */
Datum
walsizer_get_timeout_advice_1_0(PG_FUNCTION_ARGS)
{
	WalsizerShared *shared = walsizer_copy_shared();
	WalsizerConfig config = walsizer_config(shared);
	const WalsizerSample *sample = &shared->sample;
	const WalsizerSaid *said = &shared->state.curve.said;
	int64_t		timeouts[WALSIZER_TIMEOUTS];
	int			number;

	InitMaterializedSRF(fcinfo, 0);
	if (shared->sampled_at == 0)
		return (Datum) 0;

	number = walsizer_timeouts(&sample->settings, timeouts);
	for (int i = 0; i < number; i++)
	{
		WalsizerTimeoutAdvice advice = walsizer_advise_timeout(&config, &shared->state, sample,
															   &shared->decision.figures, timeouts[i]);
		bool		in_effect = timeouts[i] == sample->settings.timeout_ms;
		bool		changed = in_effect && said->before_ms > 0;
		double		saved = 0;
		bool		compared = changed && walsizer_timeout_saved(&shared->state, &saved);
		WalsizerRow row = {0};

		walsizer_put_interval(&row, timeouts[i]);
		walsizer_put_text(&row, in_effect ? "in effect" : NULL);
		put_part(&row, changed ? said->least : advice.saved_least, changed || advice.known);
		put_part(&row, changed ? said->most : advice.saved_most, changed || advice.known);
		put_part(&row, saved, compared);
		walsizer_put_interval(&row, changed ? said->before_ms : -1);
		walsizer_put_size(&row, advice.needed_mb);
		walsizer_put_interval(&row, advice.known ? advice.recovery_ms : -1);
		walsizer_put_text(&row, walsizer_limit_name(advice.limited_by));
		walsizer_put_text(&row, advice.basis);
		walsizer_store_row(fcinfo, &row);
	}
	return (Datum) 0;
}
