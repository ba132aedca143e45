/*-------------------------------------------------------------------------
 *
 * policy/verdict.c
 *	  What is true of max_wal_size, and what helps: one verdict, which the log,
 *	  SQL and walsizer-watch share.
 *
 * In its sentences $ and a digit stand for: sizes (MB) 0 in effect, 1 needed, 2 the
 * limit, 3 room for WAL, 4 held back; 5 a percentage; 6 MB of WAL and 7 pages written
 * between two checkpoints.  $ and a letter: a why a change fails, b what holds WAL
 * back, c the setting that limits, d what stands before an inflated size, e who acts.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include "policy/internal.h"

#define MUCH_HELD			10	/* WAL held back that is this part (1/10) of the room */
#define MOSTLY_PADDING		50	/* percent */
#define HELPS_WITHIN		10000	/* ms, a requested checkpoint */

/* The size (MB) that is needed, or planned. */
static int64_t
needed(const WalsizerSituation *c)
{
	return walsizer_max(c->decision->figures.wanted_mb, c->state->boost.size_mb);
}

/* Room for WAL (MB), but for what is held back. */
static int64_t
room(const WalsizerSituation *c)
{
	return (c->state->disk.free + c->state->disk.wal) / WALSIZER_MB;
}

static bool
exceeds_max(const WalsizerSituation *c)
{
	return !walsizer_is_own_raise(c->state) && c->decision->figures.in_effect_mb > c->config->max_mb;
}

/*
 * The limit that keeps max_wal_size from what is wanted, or from the size of a
 * planned load, or as it is.
 */
static WalsizerLimit
limited_by(const WalsizerSituation *c)
{
	if (c->decision->limited && c->decision->reason == WALSIZER_BECAUSE_BOOST)
		return c->decision->limited_by;
	if (c->decision->figures.wanted_mb > walsizer_max(c->decision->figures.limit_mb, c->decision->figures.in_effect_mb))
		return c->decision->figures.limit_kind;
	return exceeds_max(c) ? WALSIZER_LIMIT_MAX : WALSIZER_UNLIMITED;
}

/* What walsizer is doing: the first that applies. */
static const char *
state_name(const WalsizerSituation *c)
{
	if (!c->running)
		return "not running";
	if (!c->config->enable)
		return "disabled";
	if (c->dry_run)
		return "dry run";
	if (c->outcome != WALSIZER_NO_OUTCOME)
		return "blocked";
	return limited_by(c) != WALSIZER_UNLIMITED ? "limited" : "active";
}

/* Is much WAL held back that should not be?  wal_keep_size holds back what it is set to. */
static bool
is_held(const WalsizerSituation *c)
{
	const WalsizerDisk *disk = &c->state->disk;

	return c->held_by != WALSIZER_HELD_BY_SETTING &&
		(disk->held / WALSIZER_MB > c->decision->figures.in_effect_mb ||
		 disk->held > (disk->free + disk->wal + disk->held) / MUCH_HELD);
}

static const char *
held_remedy(const WalsizerSituation *c)
{
	if (c->held_by == WALSIZER_HELD_BY_SLOT)
		return "Replication slot \"$b\" holds back $4 MB: have its consumer catch up, or drop it.";
	if (c->held_by == WALSIZER_HELD_BY_ARCHIVER)
		return "Archiving fails, last at $b, which holds back $4 MB: see the server log.";
	return "See which of these holds back $4 MB: a replication slot, \"wal_keep_size\", the archiver, or from 17 on \"summarize_wal\". If none does, the next checkpoint removes it.";
}

/*
 * What helps if the limits forbid the size needed.  Of several it is the one that
 * is hardest to move: no setting makes room.
 */
static const char *
limit_remedy(const WalsizerSituation *c)
{
	switch (walsizer_forbidding(&c->decision->figures, needed(c)))
	{
		case WALSIZER_LIMIT_DISK:
			if (needed(c) > room(c))
				return "Enlarge the file system of \"pg_wal\": it holds at most $3 MB of WAL.";
			return "Raise \"walsizer.max_disk_percent\" so that it allows $d$1 MB, or enlarge the file system of \"pg_wal\".";
		case WALSIZER_LIMIT_RECOVERY:
			return "Raise \"walsizer.max_recovery_time\" so that it allows $d$1 MB, or accept forced checkpoints.";
		case WALSIZER_LIMIT_MAX:
			return "Raise \"walsizer.max\" to $d$1 MB, or accept forced checkpoints.";
		default:
			return c->state->last.standby ?
				"walsizer raises it when the primary's load needs it; for a larger size now, set it yourself." :
				c->state->last.now < c->state->pacing.raise_not_before || (walsizer_limit_swings(c->state) &&
				walsizer_step_size(c->state, &c->decision->figures, needed(c)) == c->decision->figures.in_effect_mb) ?
				"walsizer waits, because a limit fell; for a larger size now, call walsizer_boost()." :
				c->decision->reason == WALSIZER_BECAUSE_RECENTLY_CHANGED ?
				"walsizer leaves a value that was just set alone, for five minutes at most; for a larger size now, call walsizer_boost()." :
				"walsizer raises it when a load needs it; for a larger size now, call walsizer_boost().";
	}
}

/* What helps if the value in effect is too small. */
static const char *
small_remedy(const WalsizerSituation *c)
{
	bool		allowed = c->decision->figures.limit_mb > c->decision->figures.in_effect_mb;
	bool		less = c->decision->figures.limit_mb < needed(c);

	if (c->client)
		return !allowed ? "The limits allow no more." : less ? "Set it to $2 MB." : "Set it to $1 MB.";
	if (allowed && c->outcome != WALSIZER_NO_OUTCOME)
		return "walsizer cannot raise it: $a. See walsizer_instructions.";
	if (allowed && !c->config->enable)
		return less ? "Turn on \"walsizer.enable\" to have walsizer raise it to $2 MB, which the limits allow, or set it yourself." :
			"Turn on \"walsizer.enable\" to have walsizer raise it, or set it yourself.";
	if (allowed && c->dry_run)
		return less ? "Turn off \"walsizer.dry_run\" to have walsizer raise it to $2 MB, which the limits allow." :
			"Turn off \"walsizer.dry_run\" to have walsizer raise it.";
	return limit_remedy(c);
}

/* Does something keep walsizer from a change that is due, or from what it wrote? */
static bool
is_blocked(const WalsizerSituation *c)
{
	return c->outcome >= WALSIZER_REFUSED ||
		(c->outcome != WALSIZER_NO_OUTCOME &&
		 (c->state->owner.own_mb > c->decision->figures.limit_mb ||
		  c->decision->reason == WALSIZER_BECAUSE_EDITED || c->decision->reason == WALSIZER_BECAUSE_WAITING));
}

/* Does WAL fill the disk, or did it within the last timeout, so that a checkpoint was requested? */
static bool
disk_fills(const WalsizerSituation *c)
{
	const WalsizerSample *last = &c->state->last;
	int64_t		asked_at = c->state->last_resort.asked_at;

	return c->state->last_resort.fills ||
		(asked_at > 0 && last->now - asked_at < last->settings.timeout_ms);
}

static bool
may_act(const WalsizerSituation *c)
{
	return c->config->enable && !c->dry_run && c->outcome == WALSIZER_NO_OUTCOME;
}

/* What helps if WAL fills the disk. */
static const char *
full_remedy(const WalsizerSituation *c)
{
	const WalsizerLastResort *resort = &c->state->last_resort;
	bool		lowers = walsizer_is_own_raise(c->state) && may_act(c);
	bool		too_large = !lowers && c->decision->figures.in_effect_mb > c->decision->figures.limit_mb;

	if (resort->kept > 0)
		return held_remedy(c);
	if (resort->asked_lsn != 0 && c->state->last.now - resort->asked_at > HELPS_WITHIN)
		return "The checkpoint that walsizer requested has not helped yet: see the server log, and what else fills the file system.";
	return too_large ? "$eLower \"max_wal_size\" to at most $2 MB, or enlarge the file system." :
		"$eEnlarge the file system, or remove what else fills it.";
}

/* The first that applies: what stops a server, what a size does not help against, the size. */
static WalsizerFinding
find(const WalsizerSituation *c)
{
	const WalsizerFigures *figures = &c->decision->figures;
	const WalsizerState *state = c->state;
	const WalsizerSample *last = &state->last;
	bool		acts = !c->client && may_act(c);
	bool		asks_for_more = walsizer_max(figures->wanted_mb, state->owner.own_mb) > state->owner.original_mb;
	bool		too_small;
	const WalsizerFinding small = {
		"too_small", !c->decision->limited ? "\"max_wal_size\" of $0 MB is too small: $d$1 MB are needed" :
		"\"max_wal_size\" of $0 MB is too small: $d$1 MB are needed, and \"$c\" allows $2 MB",
		small_remedy(c), c->decision->limited && c->decision->reason != WALSIZER_BECAUSE_BOOST ? 9 + (int) c->decision->limited_by : 0
	};

	if (!c->running)
		return (WalsizerFinding) {"not_running", "the walsizer worker is not running", "walsizer_start() starts it, or says why it cannot.", 0};
	if (c->decision->reason == WALSIZER_BECAUSE_INVALID)
		return (WalsizerFinding) {"no_sample", "walsizer has not taken a valid sample yet", "Look again in a second.", 0};
	too_small = walsizer_max(state->boost.size_mb,
							 walsizer_size_for(walsizer_max(figures->demand, figures->learned),
											   &last->settings)) > figures->in_effect_mb;

	if (disk_fills(c))
		return (WalsizerFinding) {"disk_full", !state->last_resort.fills ?
			"WAL was about to fill the file system of \"pg_wal\", so walsizer requested a checkpoint" :
			"WAL is about to fill the file system of \"pg_wal\", which holds at most $3 MB of WAL",
			full_remedy(c), WALSIZER_NOTICE_DISK_FULL};
	if (figures->checkpoints_fail)
		return (WalsizerFinding) {"checkpoints_fail", "checkpoints start and do not complete, so no WAL is removed",
			"The server log has the error; a larger size does not help.", 2};
	if (!c->client && state->disk.known && figures->in_effect_mb > room(c) + (is_held(c) ? state->disk.held / WALSIZER_MB : 0))
		return (WalsizerFinding) {"no_room",
			"\"max_wal_size\" of $0 MB exceeds the file system of \"pg_wal\", which holds at most $3 MB of WAL",
			"Lower it to at most $2 MB, or enlarge the file system.", 3};
	if (is_held(c))
		return (WalsizerFinding) {"held_back", "$4 MB of WAL are held back, which \"max_wal_size\" does not limit", held_remedy(c), 1};
	if (c->taken_back && acts)
		return (WalsizerFinding) {"taken_back", "another program sets \"max_wal_size\" back after each raise",
			"Have only one of the two set it: turn off \"walsizer.enable\", or take it from the other.", 4};
	if (too_small && !acts)
		return small;
	if (figures->forced_old_value > 0 && !last->standby)
		return (WalsizerFinding) {"old_value", "a statement that began before \"max_wal_size\" was raised forces checkpoints",
			"Wait for its end; call walsizer_boost() before the next one.", 5};
	if (last->checkpoint_running &&
		last->now - state->checkpoints.timer_start > last->settings.timeout_ms)
		return (WalsizerFinding) {"slow_checkpoint", "a checkpoint takes longer than \"checkpoint_timeout\"",
			"Raise that, or use faster storage; a larger \"max_wal_size\" does not help.", 6};
	if ((asks_for_more || figures->forced > 0) && figures->padding_percent >= MOSTLY_PADDING)
		return (WalsizerFinding) {"padding", "$5 % of the WAL is padding, because segments are switched before they are full",
			"See \"archive_timeout\", and what calls pg_switch_wal(); a larger size does not help.", 7};
	if (asks_for_more && state->wal_contents.few_pages && figures->demand >= state->wal_contents.last.bytes)
		return (WalsizerFinding) {"few_pages", "the same few pages are changed over and over: $6 MB of WAL between two checkpoints, for which $7 pages were written",
			"Look for the statement by \"wal_bytes\" in pg_stat_statements; a larger size helps little.", 9};
	if (too_small)
		return small;
	if (c->decision->reason == WALSIZER_BECAUSE_EDIT_HIDDEN)
		return (WalsizerFinding) {"edit_hidden", "walsizer's value hides an edit of \"max_wal_size\" in the configuration file",
			"Turn on \"walsizer.enable\", or call walsizer_revert().", 0};
	if (is_blocked(c))
		return (WalsizerFinding) {"blocked", "walsizer cannot change \"max_wal_size\": $a", "See walsizer_instructions.", 0};
	if (exceeds_max(c))
		return (WalsizerFinding) {"beyond_max",
			"\"max_wal_size\" of $0 MB exceeds \"walsizer.max\", so walsizer does not change it",
			needed(c) > c->config->max_mb ? "Raise \"walsizer.max\" to $d$1 MB, unless that is intended." :
			"Lower it, or raise \"walsizer.max\", unless that is intended.", 8};
	if (c->early)
		return (WalsizerFinding) {"so_far", "\"max_wal_size\" of $0 MB has sufficed so far",
			"It takes one \"checkpoint_timeout\" to say more.", 0};
	if (figures->wanted_mb > figures->in_effect_mb)
		return (WalsizerFinding) {"tight", "\"max_wal_size\" of $0 MB is large enough, but not with headroom, which takes $d$1 MB",
			limited_by(c) != WALSIZER_UNLIMITED ? limit_remedy(c) : "There is nothing to do.", 0};
	return (WalsizerFinding) {"large_enough", "\"max_wal_size\" of $0 MB is large enough: $d$1 MB are needed",
		"There is nothing to do.", 0};
}

/*
 * Judge the state and the decision of walsizer_step(), in this situation, whose
 * texts must outlive the verdict.
 */
WalsizerVerdict
walsizer_judge(const WalsizerSituation *c)
{
	static const char *const settings[WALSIZER_LIMITS] = {"", "walsizer.max", "walsizer.max_disk_percent", "walsizer.max_recovery_time"};
	const WalsizerFigures *figures = &c->decision->figures;
	bool		longer = c->state->learned.largest.timeout_ms > c->state->last.settings.timeout_ms;

	return (WalsizerVerdict) {
		.state = state_name(c), .limited_by = limited_by(c), .found = find(c),
		.numbers = {
			figures->in_effect_mb, needed(c), figures->limit_mb, room(c),
			walsizer_max(c->state->disk.held, c->state->last_resort.kept) / WALSIZER_MB, figures->padding_percent,
			c->state->wal_contents.last.bytes / WALSIZER_MB, c->state->wal_contents.last.written,
		},
		.texts = {c->message, c->holder, settings[c->decision->limited_by],
			(figures->inflated || (longer && figures->learned > figures->demand)) && needed(c) > c->state->boost.size_mb ? "at most " : "",
			!c->state->last_resort.fills ? "" : c->config->enable && c->config->prevent_disk_full ? "walsizer requests checkpoints. " : "Run CHECKPOINT. "},
	};
}

/*
 * A sentence of the verdict as text, into WALSIZER_SENTENCE_SIZE bytes: "found.text",
 * which has no full stop, or "found.remedy".
 */
void
walsizer_verdict_text(const WalsizerVerdict *verdict, const char *sentence, char *text)
{
	const char *end = text + WALSIZER_SENTENCE_SIZE - 1;
	char		digits[24] = "";

	for (; *sentence != '\0'; sentence++)
	{
		char	   *piece = digits + sizeof(digits) - 2;
		int			which = *sentence == '$' ? *++sentence : 0;
		const char *from = piece;

		if (which == 0)
			*piece = *sentence;
		else if (which >= 'a')
			from = verdict->texts[which - 'a'];
		else
		{
			int64_t		number = verdict->numbers[which - '0'];

			for (*piece = (char) ('0' + number % 10); (number /= 10) > 0;)
				*--piece = (char) ('0' + number % 10);
			from = piece;
		}
		while (text < end && *from != '\0')
			*text++ = *from++;
	}
	*text = '\0';
}
