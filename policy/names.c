/*-------------------------------------------------------------------------
 *
 * policy/names.c
 *	  What the policy's actions, reasons and bounds are called.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "policy/policy.h"

/* An unknown value is a name too: nothing here may fail. */
#define NAME_OF(names, value) \
	((size_t) (value) < sizeof(names) / sizeof((names)[0]) ? (names)[value] : "unknown")

const char *
walsizer_action_name(WalsizerAction action)
{
	static const char *const names[] = {"none", "raise", "lower", "external", "revert"};

	return NAME_OF(names, action);
}

const char *
walsizer_reason_name(WalsizerReason reason)
{
	static const char *const names[] = {
		"the sample makes no sense",
		"watching has begun",
		"the value in force suffices",
		"checkpoints were forced by WAL volume",
		"a checkpoint was about to be forced by WAL volume",
		"the largest demand of the lookback needs less",
		"a bound has come down",
		"somebody else changed the setting",
		"a change by somebody else is left alone for one checkpoint_timeout",
		"the last change that was decided has not taken effect",
		"walsizer.enable is off, and max_wal_size as edited in the configuration file is hidden by walsizer's value",
		"walsizer.enable is off",
		"the primary writes more WAL than that between two checkpoints",
		"page images made WAL volume hurry timed checkpoints",
		"asked for by walsizer_revert()",
		"max_wal_size was edited in the configuration file",
		"walsizer_boost() announced a load",
		"the load that walsizer_boost() announced is over",
		"an earlier change took effect with a later reload",
	};

	return NAME_OF(names, reason);
}

const char *
walsizer_bound_name(WalsizerBound bound)
{
	static const char *const names[] = {"none", "max", "disk", "recovery"};

	return NAME_OF(names, bound);
}
