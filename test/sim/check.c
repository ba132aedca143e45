/*-------------------------------------------------------------------------
 *
 * check.c
 *	  What must hold for each decision and each state, whatever the load.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "sim.h"
#include "test/prove/ranges.h"

/* The rule that a decision about this value in effect (MB) breaks, or NULL. */
const char *
sim_broken_rule(const WalsizerConfig *config, const WalsizerSettings *settings,
				const WalsizerState *state, const WalsizerDecision *d)
{
	int64_t		in_effect_mb = settings->max_wal_size_mb;
	int64_t		segment = settings->segment_bytes / WALSIZER_MB;

	if (d->action != WALSIZER_RAISE && d->action != WALSIZER_LOWER)
		return NULL;
	if (d->target_mb % segment != 0 && d->target_mb != state->owner.original_mb)
		return "not in whole segments";
	if (d->target_mb < 2 * segment)
		return "less than two segments";
	if (d->action == WALSIZER_RAISE)
	{
		if (d->target_mb <= in_effect_mb)
			return "a raise that is none";
		if (d->target_mb > config->max_mb)
			return "raised beyond walsizer.max";
	}
	else
	{
		if (d->target_mb >= in_effect_mb)
			return "a lowering that is none";
		if (state->owner.own_mb != in_effect_mb || d->target_mb < state->owner.original_mb)
			return "lowered what was not raised by walsizer";
	}
	return NULL;
}

/* The field of a state that is not in its range, or NULL. */
const char *
sim_out_of_range(const WalsizerState *state)
{
#define MUST_BE_WITHIN(field, least, most) \
	if ((field) < (least) || (field) > (most)) \
		return #field
#define NOT_CHECKED(...)		/* the sanitizers do */

	STATE_RANGES(state, MUST_BE_WITHIN, MUST_BE_WITHIN, NOT_CHECKED);
	return NULL;
}

/* Does this line limit one of the measures, and is the limit kept? */
static bool
keeps_limit(const char *name, const char *measure, double limit, const SimMeasure *m)
{
	while (m->name != NULL && strcmp(m->name, measure) != 0)
		m++;
	if (m->name != NULL && (m->least ? m->value >= limit - 1e-9 : m->value <= limit + 1e-9))
		return true;
	printf("%s: %s is %g, the limit is %g\n", name, measure, m->value, limit);
	return false;
}

/*
 * Do these measures keep the limits that the file sets for this name?  A line is
 * NAME MEASURE LIMIT.  An unknown measure is beyond any limit, and so are a
 * line of another form and a name without a line.  The measures end with one
 * without a name.
 */
bool
sim_keeps_limits(const char *path, const char *name, const SimMeasure *measures)
{
	FILE	   *file = fopen(path, "r");
	char		line[256];
	bool		kept = true;
	int			checked = 0;

	if (file == NULL)
	{
		perror(path);
		return false;
	}
	while (fgets(line, sizeof(line), file) != NULL)
	{
		char		of[64];
		char		measure[16];
		double		limit;
		int			words;

		line[strcspn(line, "#\n")] = '\0';
		words = sscanf(line, "%63s %15s %lf", of, measure, &limit);
		if (words == 1 || words == 2)
		{
			printf("this is no limit: %s\n", line);
			kept = false;
		}
		if (words != 3 || strcmp(of, name) != 0)
			continue;
		checked++;
		kept &= keeps_limit(name, measure, limit, measures);
	}
	fclose(file);
	if (checked == 0)
		printf("%s has no limit\n", name);
	return kept && checked > 0;
}
