/*-------------------------------------------------------------------------
 *
 * watch/output.c
 *	  What programs read: JSON, and a file for Prometheus' textfile collector.
 *
 * Sizes are bytes and times seconds, as in the views and in monitoring/.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "watch/watch.h"

/* A client requests no checkpoints. */
static const char *const causes[WALSIZER_CAUSE_DISK_FULL] = {
	[WALSIZER_CAUSE_FORCED] = "forced", [WALSIZER_CAUSE_OLD_VALUE] = "forced_old_value",
	[WALSIZER_CAUSE_TIMED] = "timed", [WALSIZER_CAUSE_OTHER] = "other",
};

/* By status. */
static const char *const verdicts[] = {"sufficient", "too small", "unknown"};

/* A size; those that are not known yet are 0. */
static int64_t
in_bytes(int64_t mb)
{
	return mb == 0 ? WATCH_UNKNOWN : mb * WALSIZER_MB;
}

/* A number: a member of an object, or a metric, which says that it is a total. */
static void
put(FILE *file, bool json, const char *name, int64_t value)
{
	const char *total = strstr(name, "_total");
	int			length = (int) (total != NULL ? total - name : (long) strlen(name));

	if (json && value == WATCH_UNKNOWN)
		fprintf(file, "  \"%.*s\": null,\n", length, name);
	else if (json)
		fprintf(file, "  \"%.*s\": %lld,\n", length, name, (long long) value);
	else if (value != WATCH_UNKNOWN)
		fprintf(file, "# TYPE walsizer_watch_%s %s\nwalsizer_watch_%s %lld\n", name,
				total != NULL ? "counter" : "gauge", name, (long long) value);
}

/* What both forms have. */
static void
put_numbers(FILE *file, bool json, const Watcher *watcher, const WatchVerdict *verdict)
{
	const WalsizerSettings *settings = &watcher->sample.settings;
	const WatchLog *log = watcher->log;
	char		name[64];

	put(file, json, "started_at", watcher->zero + watcher->began / 1000);
	put(file, json, "ended_at", watcher->zero + watcher->now / 1000);
	put(file, json, "samples_total", watcher->samples);
	put(file, json, "unseen_seconds_total", watcher->unseen_ms / 1000);
	put(file, json, "restarts_total", watcher->restarts);
	put(file, json, "wal_total", watcher->wal);
	put(file, json, "max_wal_size", in_bytes(settings->max_wal_size_mb));
	put(file, json, "wal_segment_size", settings->segment_bytes);
	put(file, json, "checkpoint_timeout", settings->timeout_ms / 1000);
	put(file, json, "trigger_point", watcher->decision.figures.trigger_point);
	put(file, json, "current_demand", watcher->decision.figures.demand);
	put(file, json, "demand", verdict->demand);
	put(file, json, "needed_size", in_bytes(verdict->needed_mb));
	put(file, json, "wanted_size", in_bytes(verdict->wanted_mb));
	put(file, json, "proposed_size", in_bytes(verdict->set_mb));
	put(file, json, "recovery_seconds", walsizer_recovery_time(&watcher->config, &watcher->state, &watcher->sample, settings->max_wal_size_mb) / 1000);
	put(file, json, "proposed_recovery_seconds", walsizer_recovery_time(&watcher->config, &watcher->state, &watcher->sample, verdict->set_mb) / 1000);
	for (int cause = 0; cause < WALSIZER_CAUSE_DISK_FULL; cause++)
	{
		snprintf(name, sizeof(name), "checkpoints_%s_total", causes[cause]);
		put(file, json, name, watcher->intervals[cause].number);
		snprintf(name, sizeof(name), "seconds_%s_total", causes[cause]);
		put(file, json, name, watcher->intervals[cause].ms / 1000);
	}
	put(file, json, "full_page_images_total", watcher->images);
	put(file, json, "full_page_image_bytes_total", watcher->image_bytes);
	if (log == NULL)
		return;
	put(file, json, "demand_at_least", log->least);
	put(file, json, "demand_at_most", log->most);
	put(file, json, "needed_size_at_least", in_bytes(walsizer_size_for(log->least, settings)));
	put(file, json, "needed_size_at_most", log->most == WATCH_UNKNOWN ? WATCH_UNKNOWN : in_bytes(walsizer_size_for(log->most, settings)));
	put(file, json, "checkpoints", log->checkpoints);
	put(file, json, "restartpoints", log->restartpoints);
	put(file, json, "warnings", log->warnings);
	put(file, json, "missing", log->missing);
}

/* A text in JSON.  All are written by us, so none needs escapes. */
static const char *
quoted(const char *value)
{
	static char text[64];

	snprintf(text, sizeof(text), value[0] != '\0' ? "\"%s\"" : "null", value);
	return text;
}

static void
put_changes(const Watcher *watcher)
{
	int64_t		first = walsizer_max(0, watcher->num_changes - WATCH_CHANGES);

	printf("  \"changes\": [");
	for (int64_t i = first; i < watcher->num_changes; i++)
	{
		const WatchChange *change = &watcher->changes[i % WATCH_CHANGES];
		const WalsizerDecision *decision = &change->decision;

		printf("%s\n    {\"at\": %lld, \"action\": \"%s\", \"reason\": \"%s\", \"old_size\": %lld, \"wanted_size\": %lld, \"new_size\": %lld, \"limited_by\": %s}",
			   i > first ? "," : "", (long long) change->at, walsizer_action_name(decision->action),
			   walsizer_reason_code(decision->reason), (long long) in_bytes(change->old_mb),
			   (long long) in_bytes(decision->wanted_mb), (long long) in_bytes(decision->target_mb),
			   quoted(walsizer_limit_name(decision->limited_by)));
	}
	printf("%s]\n", watcher->num_changes > 0 ? "\n  " : "");
}

/* What only a log has. */
static void
put_log(const WatchLog *log)
{
	static const char *const assumed[] = {"max_wal_size", "checkpoint_timeout", "checkpoint_completion_target"};
	const char *comma = "";
	int64_t		first = walsizer_max(0, log->num_stretches - WATCH_STRETCHES);

	printf("  \"assumed\": [");
	for (int i = 0; i < 3; i++)
	{
		if (!(log->assumed & 1u << i))
			continue;
		printf("%s\"%s\"", comma, assumed[i]);
		comma = ", ";
	}
	printf("],\n  \"stretches\": [");
	for (int64_t i = first; i < log->num_stretches; i++)
	{
		const WatchStretch *stretch = &log->stretches[i % WATCH_STRETCHES];

		printf("%s\n    {\"started_at\": %lld, \"ended_at\": %lld, \"max_wal_size\": %lld, \"demand\": %lld, \"verdict\": \"%s\"}",
			   i > first ? "," : "", (long long) stretch->from, (long long) stretch->to,
			   (long long) in_bytes(stretch->max_wal_size_mb), (long long) stretch->verdict.demand,
			   verdicts[stretch->verdict.status]);
	}
	printf("],\n");
}

/* One object on standard output. */
void
watch_json(const Watcher *watcher)
{
	const char *source = watcher->seen.source;
	WatchVerdict verdict = watch_judge(watcher);

	printf("{\n  \"verdict\": \"%s\",\n  \"role\": \"%s\",\n  \"source\": \"%s\",\n  \"limited_by\": %s,\n  \"checkpoint_completion_target\": %g,\n",
		   verdicts[verdict.status], watcher->seen.standby ? "standby" : "primary",
		   source[0] != '\0' ? source : "unknown", quoted(walsizer_limit_name(verdict.limited_by)),
		   watcher->sample.settings.completion_target);
	put_numbers(stdout, true, watcher, &verdict);
	if (watcher->log != NULL)
		put_log(watcher->log);
	put_changes(watcher);
	printf("}\n");
}

/* Replace the file in one step: it is read at any time.  False, having said why, if that fails. */
bool
watch_write_prometheus(const Watcher *watcher, const char *path, bool connected)
{
	WatchVerdict verdict = watch_judge(watcher);
	char		temporary[4096];
	FILE	   *file;
	bool		good;

	snprintf(temporary, sizeof(temporary), "%s.%ld.tmp", path, (long) getpid());
	file = fopen(temporary, "w");
	if (file == NULL)
	{
		watch_complain("could not create \"%s\": %s", temporary, strerror(errno));
		return false;
	}
	put(file, false, "connected", connected);
	put(file, false, "too_small", verdict.status == WATCH_TOO_SMALL);
	put_numbers(file, false, watcher, &verdict);
	good = !ferror(file);
	good = fclose(file) == 0 && good;
	if (good && rename(temporary, path) == 0)
		return true;
	watch_complain("could not write \"%s\": %s", path, strerror(errno));
	unlink(temporary);
	return false;
}
