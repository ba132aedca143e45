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

#include "sqlapi/rows.h"

PG_FUNCTION_INFO_V1(walsizer_get_status_1_0);
PG_FUNCTION_INFO_V1(walsizer_get_stats_1_0);
PG_FUNCTION_INFO_V1(walsizer_get_history_1_0);
PG_FUNCTION_INFO_V1(walsizer_get_demand_1_0);
PG_FUNCTION_INFO_V1(walsizer_get_advice_1_0);
PG_FUNCTION_INFO_V1(walsizer_get_instructions_1_0);
PG_FUNCTION_INFO_V1(walsizer_get_timeout_advice_1_0);

/* A part of the WAL, to a thousandth: it is no more exact than that. */
static NullableDatum
part(double value, bool known)
{
	return column(Float8GetDatum(rint(value * 1000) / 1000), !known);
}

/*
 * All of shared memory but the history, for which no memory is allocated: nothing
 * may look there.  Raises the errors of walsizer_attach_shared(); takes the lock.
 */
static WalsizerShared *
copy_shared(void)
{
	WalsizerShared *copy = palloc(offsetof(WalsizerShared, history));

	walsizer_attach_shared();
	LWLockAcquire(walsizer_shared->lock, LW_SHARED);
	memcpy(copy, walsizer_shared, offsetof(WalsizerShared, history));
	LWLockRelease(walsizer_shared->lock);
	return copy;
}

/* The state of things.  Before the first sample, what a sample tells is null. */
Datum
walsizer_get_status_1_0(PG_FUNCTION_ARGS)
{
	WalsizerShared *shared = copy_shared();
	const WalsizerDecision *decision = &shared->decision;
	bool		sampled = shared->sampled_at != 0;
	WalsizerResult trouble = walsizer_trouble_now(shared);
	WalsizerVerdict verdict = walsizer_verdict(shared, &trouble);

	return PUT_ROW(text_of(verdict.state),
				   text_of(psprintf("%s. %s", walsizer_sentence(&verdict, verdict.found.text),
									walsizer_sentence(&verdict, verdict.found.remedy))),
				   size(decision->figures.in_effect_mb), size(decision->figures.wanted_mb),
				   text_of(walsizer_limit_name(verdict.limited_by)),
				   size(shared->state.owner.original_mb), size(shared->state.owner.own_mb),
				   text_of(!sampled ? NULL : shared->sample.standby ? "standby" : "primary"),
				   text_of(sampled ? walsizer_action_name(decision->action) : NULL),
				   text_of(sampled ? walsizer_reason_code(decision->reason) : NULL),
				   text_of(sampled ? walsizer_reason_text(decision->reason) : NULL),
				   text_of(trouble.outcome == WALSIZER_NO_OUTCOME ? NULL :
						   walsizer_outcome_name(trouble.outcome)),
				   text_of(trouble.message),
				   size(shared->boost_mb), time_of(shared->boost_until),
				   text_of(verdict.found.code),
				   column(Int32GetDatum(shared->worker_pid), shared->worker_pid == 0));
}

/* Null before the first sample. */
Datum
walsizer_get_stats_1_0(PG_FUNCTION_ARGS)
{
	WalsizerShared *shared = copy_shared();
	const WalsizerFigures *figures = &shared->decision.figures;
	const WalsizerSample *sample = &shared->sample;
	WalsizerConfig config = walsizer_config(shared);
	int64		in_effect_mb = sample->settings.max_wal_size_mb;
	int64	   *checkpoints = shared->state.checkpoints.total;
	int64		at_worst;
	int64		now;

	if (shared->sampled_at == 0)
		PG_RETURN_NULL();
	walsizer_remember_window(&shared->state);
	at_worst = walsizer_recovery_time(&config, &shared->state, sample, in_effect_mb);
	now = walsizer_recovery_time_now(&config, &shared->state, sample);
	for (int cause = 0; cause < WALSIZER_CAUSES; cause++)
		checkpoints[cause] -= shared->checkpoints_at_reset[cause];
	return PUT_ROW(time_of(shared->sampled_at),
				   number(figures->demand),
				   number(Max(figures->demand,
							  walsizer_largest_peak(&shared->state, sample->hour,
													config.lookback_hours).demand)),
				   number(figures->rate),
				   number(Max((int64) (sample->write_lsn - sample->redo_lsn), 0)),
				   number(figures->trigger_point),
				   interval_of(figures->until_forced_ms), interval_of(figures->until_timed_ms),
				   size(figures->limit_mb), size(figures->limits_mb[WALSIZER_LIMIT_DISK]),
				   size(figures->limits_mb[WALSIZER_LIMIT_RECOVERY]),
				   /* WAL exceeds max_wal_size while checkpoints are late */
				   interval_of(Max(at_worst, now)), interval_of(now),
				   number(in_effect_mb * WALSIZER_MB * 1000 / Max(at_worst, 1)),
				   text_of(config.replay_rate > 0 ? "configured" :
						   config.recoveries[0].replay_ms > 0 ? "measured" : "assumed"),
				   column(Int64GetDatum(shared->state.disk.held), !shared->state.disk.known),
				   column(Int32GetDatum(figures->padding_percent), false),
				   number(checkpoints[WALSIZER_CAUSE_FORCED]), number(checkpoints[WALSIZER_CAUSE_OLD_VALUE]),
				   number(checkpoints[WALSIZER_CAUSE_TIMED]), number(checkpoints[WALSIZER_CAUSE_OTHER]),
				   number(checkpoints[WALSIZER_CAUSE_DISK_FULL]),
				   number(sample->requested), number(sample->timed),
				   time_of(shared->stats_reset));
}

/* Oldest first. */
Datum
walsizer_get_history_1_0(PG_FUNCTION_ARGS)
{
	WalsizerHistory *history = palloc(sizeof(WalsizerHistory));

	walsizer_attach_shared();
	InitMaterializedSRF(fcinfo, 0);
	LWLockAcquire(walsizer_shared->lock, LW_SHARED);
	*history = walsizer_shared->history;
	LWLockRelease(walsizer_shared->lock);

	for (int i = 0; i < history->length; i++)
	{
		const WalsizerEvent *event = &history->events[i];
		const WalsizerDecision *decision = &event->decision;

		PUT_ROW(number(event->number), time_of(event->at),
				text_of(walsizer_action_name(decision->action)),
				text_of(walsizer_reason_code(decision->reason)),
				text_of(walsizer_reason_text(decision->reason)),
				size(event->old_mb),
				size(decision->wanted_mb), size(decision->target_mb),
				text_of(walsizer_limit_name(decision->limited_by)),
				text_of(walsizer_outcome_name(event->result.outcome)),
				text_of(event->result.message),
				number(decision->figures.demand),
				number(decision->figures.rate), number(decision->figures.forced),
				number(decision->figures.requested), number(decision->figures.timed),
				interval_of(event->settings.timeout_ms),
				column(Float8GetDatum(event->settings.completion_target), false),
				text_of(event->standby ? "standby" : "primary"),
				column(Int64GetDatum(event->forced_after), event->forced_after < 0));
	}
	return (Datum) 0;
}

/* The hourly peaks that count, oldest first; also hours to come, if the clock was set back. */
Datum
walsizer_get_demand_1_0(PG_FUNCTION_ARGS)
{
	WalsizerShared *shared = copy_shared();
	WalsizerConfig config = walsizer_config(shared);

	InitMaterializedSRF(fcinfo, 0);
	if (shared->sampled_at == 0)
		return (Datum) 0;

	walsizer_remember_window(&shared->state);
	for (int64 hour = shared->sample.hour - config.lookback_hours - 1;
		 hour <= shared->sample.hour + config.lookback_hours + 1; hour++)
	{
		const WalsizerPeak *peak = walsizer_peak_of(&shared->state, hour);

		if (peak != NULL)
			PUT_ROW(time_of(time_t_to_timestamptz((pg_time_t) hour * SECS_PER_HOUR)),
					number(peak->demand), interval_of(peak->timeout_ms),
					size(walsizer_size_with_headroom(&config, &shared->sample.settings,
													 peak->demand)));
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
	WalsizerShared *shared = copy_shared();
	WalsizerConfig config = walsizer_config(shared);
	const WalsizerFigures *figures = &shared->decision.figures;
	int64_t		sizes[WALSIZER_CANDIDATES];
	int			candidates;

	InitMaterializedSRF(fcinfo, 0);
	if (shared->sampled_at == 0)
		return (Datum) 0;

	walsizer_remember_window(&shared->state);
	candidates = walsizer_candidates(&shared->sample.settings, figures->wanted_mb, sizes);
	for (int i = 0; i < candidates; i++)
	{
		WalsizerWhatIf what = walsizer_what_if(&config, &shared->state, &shared->sample,
											   figures, sizes[i]);

		PUT_ROW(size(what.size_mb),
				text_of(what.size_mb == figures->in_effect_mb ? "in effect" :
						what.size_mb == figures->wanted_mb ? "wanted" : NULL),
				number(what.trigger_point), interval_of(what.every_now_ms),
				interval_of(what.every_at_peak_ms),
				column(Float8GetDatum(what.forced_fraction), false),
				interval_of(what.recovery_ms),
				text_of(walsizer_limit_name(what.limited_by)));
	}
	return (Datum) 0;
}

/* How to set a size (MB), everywhere: the view knows where that has an effect. */
Datum
walsizer_get_instructions_1_0(PG_FUNCTION_ARGS)
{
	WalsizerVerdict verdict = {.numbers = {0, Max(PG_GETARG_INT64(0), 0)}};

	InitMaterializedSRF(fcinfo, 0);
	for (const WalsizerInstruction *way = walsizer_instructions; way->place != NULL; way++)
		PUT_ROW(text_of(way->place), text_of(walsizer_sentence(&verdict, way->text)));
	return (Datum) 0;
}

/*
 * What other values of checkpoint_timeout would mean, shortest first.  The row of the
 * one in effect has what was said before it was set, and what came of that.
 */
Datum
walsizer_get_timeout_advice_1_0(PG_FUNCTION_ARGS)
{
	WalsizerShared *shared = copy_shared();
	WalsizerConfig config = walsizer_config(shared);
	const WalsizerSample *sample = &shared->sample;
	const WalsizerSaid *said = &shared->state.curve.said;
	int64_t		timeouts[WALSIZER_TIMEOUTS];
	int			candidates;

	InitMaterializedSRF(fcinfo, 0);
	if (shared->sampled_at == 0)
		return (Datum) 0;

	candidates = walsizer_timeouts(&sample->settings, timeouts);
	for (int i = 0; i < candidates; i++)
	{
		WalsizerTimeoutAdvice advice = walsizer_advise_timeout(&config, &shared->state, sample,
															   &shared->decision.figures, timeouts[i]);
		bool		in_effect = timeouts[i] == sample->settings.timeout_ms;
		bool		changed = in_effect && said->before_ms > 0;
		double		saved = 0;
		bool		compared = changed && walsizer_timeout_saved(&shared->state, &saved);

		PUT_ROW(interval_of(timeouts[i]),
				text_of(in_effect ? "in effect" : NULL),
				part(changed ? said->least : advice.saved_least, changed || advice.known),
				part(changed ? said->most : advice.saved_most, changed || advice.known),
				part(saved, compared),
				interval_of(changed ? said->before_ms : -1),
				size(advice.needed_mb),
				interval_of(advice.known ? advice.recovery_ms : -1),
				text_of(walsizer_limit_name(advice.limited_by)),
				text_of(advice.basis));
	}
	return (Datum) 0;
}
