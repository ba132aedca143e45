/*-------------------------------------------------------------------------
 *
 * policy/names.c
 *	  Names of actions, reasons, limits and outcomes, for people and
 *	  programs.  The manual lists them; monitoring matches them.  And how to set
 *	  max_wal_size, for views and the client.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "policy/policy.h"

/* An unknown value has a name as well: nothing here may fail. */
#define NUMBER_OF(names) (sizeof(names) / sizeof((names)[0]))
#define NAME_OF(names, value) \
	((value) < NUMBER_OF(names) ? (names)[value] : "unknown")

/* A short code, which never changes, and a sentence. */
static const struct
{
	const char *code;
	const char *text;
}			reasons[] = {
	[WALSIZER_BECAUSE_INVALID] = {"invalid_sample", "implausible sample ignored"},
	[WALSIZER_BECAUSE_STARTED] = {"started", "walsizer has just started"},
	[WALSIZER_BECAUSE_SUFFICIENT] = {"sufficient", "the value in effect suffices"},
	[WALSIZER_BECAUSE_FORCED] = {"forced", "WAL volume forced checkpoints"},
	[WALSIZER_BECAUSE_PREDICTED] = {"predicted", "WAL volume was about to force a checkpoint"},
	[WALSIZER_BECAUSE_DEMAND_FELL] = {"demand_fell", "the largest demand of the lookback needs less"},
	[WALSIZER_BECAUSE_LIMIT_FELL] = {"limit_fell", "a limit fell below the value in effect"},
	[WALSIZER_BECAUSE_CHANGED] = {"changed", "an administrator changed the setting"},
	[WALSIZER_BECAUSE_RECENTLY_CHANGED] = {"recently_changed", "an administrator changed or restored the setting less than checkpoint_timeout or five minutes ago, whichever is shorter"},
	[WALSIZER_BECAUSE_WAITING] = {"waiting", "the last change that was decided has not taken effect"},
	[WALSIZER_BECAUSE_EDIT_HIDDEN] = {"edit_hidden", "walsizer.enable is off, and walsizer's value hides an edit of max_wal_size in the configuration file"},
	[WALSIZER_BECAUSE_DISABLED] = {"disabled", "walsizer.enable is off"},
	[WALSIZER_BECAUSE_PRIMARY] = {"primary", "the primary writes more WAL within checkpoint_timeout than the value in effect allows"},
	[WALSIZER_BECAUSE_REVERT] = {"revert", "walsizer_revert() was called"},
	[WALSIZER_BECAUSE_EDITED] = {"edited", "max_wal_size was edited in the configuration file"},
	[WALSIZER_BECAUSE_BOOST] = {"boost", "walsizer_boost() asked for a planned load"},
	[WALSIZER_BECAUSE_BOOST_OVER] = {"boost_over", "the planned load is over"},
	[WALSIZER_BECAUSE_LATE] = {"late", "an earlier change took effect with a later reload or a restart"},
	[WALSIZER_BECAUSE_DISK_FULL] = {"disk_full", "WAL was about to fill its file system"},
};

const char *
walsizer_action_name(unsigned int action)
{
	static const char *const names[] = {"none", "raise", "lower", "external", "revert", "checkpoint"};

	return NAME_OF(names, action);
}

const char *
walsizer_reason_code(unsigned int reason)
{
	return reason < NUMBER_OF(reasons) ? reasons[reason].code : "unknown";
}

const char *
walsizer_reason_text(unsigned int reason)
{
	return reason < NUMBER_OF(reasons) ? reasons[reason].text : "unknown";
}

/* Empty if there is no limit. */
const char *
walsizer_limit_name(unsigned int limit)
{
	static const char *const names[] = {"", "max", "disk", "recovery"};

	return NAME_OF(names, limit);
}

const char *
walsizer_outcome_name(unsigned int outcome)
{
	static const char *const names[] = {"none", "applied", "dry run", "forbidden", "overridden", "refused", "failed"};

	return NAME_OF(names, outcome);
}

/* Where max_wal_size is set, and how; for walsizer_verdict_text(), $1 is the size. */
const WalsizerInstruction walsizer_instructions[] = {
	{"configuration files", "Correct the error that the server log names, then: SELECT pg_reload_conf();"},
	{"command line", "Where the server is started, make it -c max_wal_size=$1MB, or remove it so that walsizer can set it, and restart the server."},
	{"postgresql.conf", "max_wal_size = '$1MB'"},
	{"postgresql.auto.conf", "max_wal_size = '$1MB'"},
	{"SQL", "ALTER SYSTEM SET max_wal_size = '$1MB'; SELECT pg_reload_conf();"},
	{"Amazon RDS", "max_wal_size = $1 in the DB parameter group (unit: MB)"},
	{"Cloud SQL", "flag max_wal_size=$1 (MB; not verified, check with SHOW)"},
	{"Azure", "server parameter max_wal_size = $1 (unit: MB)"},
	{"Patroni", "patronictl edit-config -p max_wal_size=$1MB"},
	{"CloudNativePG", "spec: {postgresql: {parameters: {max_wal_size: \"$1MB\"}}}"},
	{NULL, NULL},
};
