/*-------------------------------------------------------------------------
 *
 * sqlapi/advice.c
 *	  What if max_wal_size were another: the function walsizer_advice().
 *
 * Only advice: nothing here changes anything.  The figures are
 * policy/whatif.c's.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"

#include "server/walsizer.h"
#include "sqlapi/rows.h"

PG_FUNCTION_INFO_V1(walsizer_advice);

static void
store_candidate(FunctionCallInfo fcinfo, const WalsizerShared *shared, const WalsizerWhatIf *what)
{
	const WalsizerFigures *figures = &shared->decision.figures;
	WalsizerRow row = {0};

	walsizer_put_size(&row, what->size);
	walsizer_put_text(&row, what->size == figures->in_force ? "in force" :
					  what->size == figures->wanted ? "wanted" : NULL);
	walsizer_put_int64(&row, what->capacity);
	walsizer_put_interval(&row, what->spacing_now);
	walsizer_put_interval(&row, what->spacing_peak);
	walsizer_put_datum(&row, Float8GetDatum(what->forced_hours));
	walsizer_put_size(&row, what->size);
	walsizer_put_interval(&row, what->recovery_time);
	walsizer_put_datum(&row, BoolGetDatum(what->forbidden_by == WALSIZER_UNBOUND));
	walsizer_put_bound(&row, what->forbidden_by);
	walsizer_store_row(fcinfo, &row);
}

/*
 * One row per candidate, smallest first.  A size is said to suffice exactly
 * when the classic rule would not raise it; the rules that look ahead may.
 */
Datum
walsizer_advice(PG_FUNCTION_ARGS)
{
	WalsizerShared *shared = walsizer_copy_shared();
	WalsizerConfig config = walsizer_config(walsizer_measured_replay_rate(shared));
	const WalsizerFigures *figures = &shared->decision.figures;
	int64_t		sizes[WALSIZER_CANDIDATES];
	int			number;

	InitMaterializedSRF(fcinfo, 0);
	if (shared->sampled_at == 0)
		return (Datum) 0;

	walsizer_settle(&shared->state);
	number = walsizer_candidates(&shared->sample.settings, figures->wanted, sizes);
	for (int i = 0; i < number; i++)
	{
		WalsizerWhatIf what = walsizer_what_if(&config, &shared->state, &shared->sample,
											   figures, sizes[i]);

		store_candidate(fcinfo, shared, &what);
	}
	return (Datum) 0;
}
