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
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "watch/watch.h"

#define PATH_SIZE			4096

/* A client requests no checkpoints. */
static const char *const causes[WALSIZER_CAUSE_DISK_FULL] = {
	[WALSIZER_CAUSE_FORCED] = "forced",
	[WALSIZER_CAUSE_OLD_VALUE] = "forced_old_value",
	[WALSIZER_CAUSE_TIMED] = "timed",
	[WALSIZER_CAUSE_OTHER] = "other",
};

static long long
in_bytes(int64_t mb)
{
	return mb * WALSIZER_MB;
}

/* A member of an object; all are written by us, so no text needs escapes. */
static void
put(const char *name, int64_t value)
{
	if (value == WATCH_UNKNOWN)
		printf("  \"%s\": null,\n", name);
	else
		printf("  \"%s\": %lld,\n", name, (long long) value);
}

static void
put_text(const char *name, const char *value)
{
	const char *quote = value[0] != '\0' ? "\"" : "";

	printf("  \"%s\": %s%s%s,\n", name, quote, value[0] != '\0' ? value : "null", quote);
}

static const char *
verdict_name(int status)
{
	static const char *const names[] = {"sufficient", "too small", "unknown"};

	return names[status];
}

static void
put_changes(const Watcher *watcher)
{
	int64_t		first = watcher->num_changes > WATCH_CHANGES ?
		watcher->num_changes - WATCH_CHANGES : 0;

	printf("  \"changes\": [");
	for (int64_t i = first; i < watcher->num_changes; i++)
	{
		const WatchChange *change = &watcher->changes[i % WATCH_CHANGES];
		const WalsizerDecision *decision = &change->decision;
		const char *limit = walsizer_limit_name(decision->limited_by);
		const char *quote = limit[0] != '\0' ? "\"" : "";

		printf("%s\n    {\"at\": %lld, \"action\": \"%s\", \"reason\": \"%s\", \"old_size\": %lld, \"wanted_size\": %lld, \"new_size\": %lld, \"limited_by\": %s%s%s}",
			   i > first ? "," : "", (long long) change->at, walsizer_action_name(decision->action),
			   walsizer_reason_code(decision->reason), in_bytes(change->old_mb),
			   in_bytes(decision->wanted_mb), in_bytes(decision->target_mb), quote,
			   limit[0] != '\0' ? limit : "null", quote);
	}
	printf("%s],\n", watcher->num_changes > 0 ? "\n  " : "");
}

static void
put_hours(const Watcher *watcher)
{
	WalsizerState state = watcher->state;
	int64_t		first = (watcher->zero + watcher->began / 1000) / 3600;
	bool		any = false;

	walsizer_remember_window(&state);
	if (watcher->sample.hour - first >= WALSIZER_PEAK_SLOTS)
		first = watcher->sample.hour - WALSIZER_PEAK_SLOTS + 1;
	printf("  \"hours\": [");
	for (int64_t hour = first; hour <= watcher->sample.hour; hour++)
	{
		const WalsizerPeak *peak = walsizer_peak_of(&state, hour);

		if (peak == NULL)
			continue;
		printf("%s\n    {\"hour\": %lld, \"demand\": %lld, \"needed_size\": %lld}",
			   any ? "," : "", (long long) (hour * 3600), (long long) peak->demand,
			   in_bytes(walsizer_size_with_headroom(&watcher->config,
													&watcher->sample.settings, peak->demand)));
		any = true;
	}
	printf("%s]\n", any ? "\n  " : "");
}

/* What only a log has. */
static void
put_log(const WatchLog *log, const WalsizerSettings *settings)
{
	static const char *const assumed[] = {"max_wal_size", "checkpoint_timeout", "checkpoint_completion_target"};
	int64_t		first = log->num_stretches > WATCH_STRETCHES ? log->num_stretches - WATCH_STRETCHES : 0;
	int			number = 0;

	put("demand_at_least", log->least);
	put("demand_at_most", log->most);
	put("needed_size_at_least", in_bytes(walsizer_size_for(log->least, settings)));
	put("needed_size_at_most", log->most == WATCH_UNKNOWN ? WATCH_UNKNOWN :
			  in_bytes(walsizer_size_for(log->most, settings)));
	put("checkpoints", log->checkpoints);
	put("restartpoints", log->restartpoints);
	put("warnings", log->warnings);
	put("missing", log->missing);
	printf("  \"assumed\": [");
	for (int i = 0; i < 3; i++)
	{
		if (log->assumed & 1u << i)
			printf("%s\"%s\"", number++ > 0 ? ", " : "", assumed[i]);
	}
	printf("],\n  \"stretches\": [");
	for (int64_t i = first; i < log->num_stretches; i++)
	{
		const WatchStretch *stretch = &log->stretches[i % WATCH_STRETCHES];

		printf("%s\n    {\"started_at\": %lld, \"ended_at\": %lld, \"max_wal_size\": %lld, \"demand\": %lld, \"verdict\": \"%s\"}",
			   i > first ? "," : "", (long long) stretch->from, (long long) stretch->to,
			   in_bytes(stretch->max_wal_size_mb), (long long) stretch->demand,
			   verdict_name(stretch->status));
	}
	printf("],\n");
}

/* One object on standard output. */
void
watch_json(const Watcher *watcher)
{
	const WalsizerSettings *settings = &watcher->sample.settings;
	WatchVerdict verdict = watch_judge(watcher);
	char		text[64];

	printf("{\n");
	put_text("verdict", verdict_name(verdict.status));
	put("started_at", watcher->log != NULL ? watcher->log->from : watcher->zero + watcher->began / 1000);
	put("ended_at", watcher->log != NULL ? watcher->log->to : watcher->zero + watcher->now / 1000);
	put("samples", watcher->samples);
	put("unseen_seconds", watcher->unseen_ms / 1000);
	put("restarts", watcher->restarts);
	put_text("role", watcher->seen.standby ? "standby" : "primary");
	put("wal", watcher->wal);
	put("max_wal_size", in_bytes(settings->max_wal_size_mb));
	put_text("source", watcher->seen.source[0] != '\0' ? watcher->seen.source : "unknown");
	put("wal_segment_size", settings->segment_bytes);
	put("checkpoint_timeout", settings->timeout_ms / 1000);
	printf("  \"checkpoint_completion_target\": %g,\n", settings->completion_target);
	put("trigger_point", watcher->decision.figures.trigger_point);
	put("demand", verdict.demand);
	put("needed_size", in_bytes(verdict.needed_mb));
	put("wanted_size", in_bytes(verdict.wanted_mb));
	put("proposed_size", in_bytes(verdict.set_mb));
	if (watcher->log != NULL)
		put_log(watcher->log, settings);
	put_text("limited_by", walsizer_limit_name(verdict.limited_by));
	put("recovery_seconds", watch_recovery_time(watcher, settings->max_wal_size_mb) / 1000);
	put("proposed_recovery_seconds", watch_recovery_time(watcher, verdict.set_mb) / 1000);
	for (int cause = 0; cause < WALSIZER_CAUSE_DISK_FULL; cause++)
	{
		snprintf(text, sizeof(text), "checkpoints_%s", causes[cause]);
		put(text, watcher->intervals[cause].number);
		snprintf(text, sizeof(text), "seconds_%s", causes[cause]);
		put(text, watcher->intervals[cause].ms / 1000);
	}
	put("full_page_images", watcher->images);
	put("full_page_image_bytes", watcher->image_bytes);
	put_changes(watcher);
	put_hours(watcher);
	printf("}\n");
}

static void
put_metric(FILE *file, const char *name, const char *type, const char *help, int64_t value)
{
	fprintf(file, "# HELP walsizer_watch_%s %s\n# TYPE walsizer_watch_%s %s\nwalsizer_watch_%s %lld\n",
			name, help, name, type, name, (long long) value);
}

static void
put_metrics(FILE *file, const Watcher *watcher, bool connected)
{
	WatchVerdict verdict = watch_judge(watcher);
	const WalsizerSample *sample = &watcher->sample;

	put_metric(file, "connected", "gauge", "1 while there is a connection.", connected);
	put_metric(file, "last_sample_timestamp_seconds", "gauge", "Time of the last sample.",
			   watcher->zero + watcher->now / 1000);
	put_metric(file, "wal_bytes_total", "counter", "WAL written since the watch began.",
			   watcher->wal);
	fprintf(file, "# HELP walsizer_watch_checkpoints_total Checkpoints by cause.\n"
			"# TYPE walsizer_watch_checkpoints_total counter\n");
	for (int cause = 0; cause < WALSIZER_CAUSE_DISK_FULL; cause++)
		fprintf(file, "walsizer_watch_checkpoints_total{cause=\"%s\"} %lld\n", causes[cause],
				(long long) watcher->intervals[cause].number);
	if (watcher->samples < 2)
		return;
	put_metric(file, "max_wal_size_bytes", "gauge", "Value in effect.",
			   in_bytes(sample->settings.max_wal_size_mb));
	put_metric(file, "demand_bytes", "gauge", "WAL written within the last checkpoint_timeout.",
			   watcher->decision.figures.demand);
	put_metric(file, "largest_demand_bytes", "gauge", "Largest demand of the lookback.",
			   verdict.demand);
	put_metric(file, "needed_size_bytes", "gauge", "Size that the largest demand needs.",
			   in_bytes(verdict.needed_mb));
	put_metric(file, "wanted_size_bytes", "gauge", "The same with headroom, before limits.",
			   in_bytes(verdict.wanted_mb));
	put_metric(file, "proposed_size_bytes", "gauge", "Size to set, within the limits.",
			   in_bytes(verdict.set_mb));
	put_metric(file, "too_small", "gauge", "1 if the value in effect is too small.",
			   verdict.status == WATCH_TOO_SMALL);
}

/*
 * Replace the file, in one step, because the collector reads it at any time.
 * False, having said why, if that fails.
 */
bool
watch_write_prometheus(const Watcher *watcher, const char *path, bool connected)
{
	char		temporary[PATH_SIZE];
	FILE	   *file;
	bool		good;

	if (snprintf(temporary, sizeof(temporary), "%s.%ld.tmp", path, (long) getpid()) >=
		(int) sizeof(temporary))
	{
		watch_complain("the name of the file for Prometheus is too long");
		return false;
	}
	file = fopen(temporary, "w");
	if (file == NULL)
	{
		watch_complain("could not create \"%s\": %s", temporary, strerror(errno));
		return false;
	}
	put_metrics(file, watcher, connected);
	good = fflush(file) == 0 && !ferror(file);
	good = fclose(file) == 0 && good;
	if (good && rename(temporary, path) == 0)
		return true;
	watch_complain("could not write \"%s\": %s", path, strerror(errno));
	unlink(temporary);
	return false;
}
