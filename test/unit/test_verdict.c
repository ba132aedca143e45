/*-------------------------------------------------------------------------
 *
 * test_verdict.c
 *	  All verdicts, in a table: what is true of a server, and what is said of it.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>

#include "driver.h"

#define NOTHING		". There is nothing to do."
#define ENOUGH		"\"max_wal_size\" of 1024 MB is large enough: 900 MB are needed" NOTHING
#define SMALL		"\"max_wal_size\" of 1024 MB is too small: 1500 MB are needed"
#define AT_MOST		"\"max_wal_size\" of 1024 MB is too small: at most 1500 MB are needed"
#define FEW_PAGES	"the same few pages are changed over and over: 430 MB of WAL between two checkpoints, for which 700 pages were written. " \
	"Look for the statement by \"wal_bytes\" in pg_stat_statements; a larger size helps little."
#define BIG			.demand = 600, .wanted = 1500	/* too much for 1024 MB */
#define READ_ONLY	WALSIZER_FORBIDDEN

/*
 * A server, and its verdict.  Zero stands for what is usual: a worker that may act,
 * max_wal_size = 1024 MB, of which the administrator's demand needs 900, and a limit
 * of 16384 MB by walsizer.max.  Sizes in MB.
 */
typedef struct Server
{
	const char *code;
	const char *says;
	const char *state;			/* NULL: active */
	bool		no_worker;
	bool		no_sample;
	bool		disabled;
	bool		dry_run;
	bool		client;
	bool		early;
	bool		booted;			/* the machine, a second ago */
	bool		taken_back;
	bool		standby;
	bool		failing;
	bool		late;			/* a checkpoint */
	bool		idle;			/* none runs */
	bool		limited;
	bool		inflated;
	bool		longer;			/* timeout, of what was learned */
	bool		waits;			/* since a limit fell */
	bool		swings;			/* the limit */
	int			step;			/* what one raise may reach then */
	int			padding;
	int			few_pages;		/* MB of WAL for 700 */
	int			forced;			/* checkpoints */
	int			old_value;		/* the same */
	int			demand;
	int			learned;
	int			wanted;
	int			max;			/* walsizer.max */
	int			limit;
	WalsizerLimit kind;
	int			disk;
	int			recovery;
	int			free;
	int			wal;
	int			held;
	bool		fills;			/* WAL, the disk */
	bool		only_said;		/* walsizer.prevent_disk_full is off */
	int			kept;			/* WAL that a checkpoint would keep */
	int			asked;			/* for one, so many ms ago; < 0: and it was of use */
	int			original;
	int			own;
	int			boost;
	WalsizerOutcome outcome;
	WalsizerReason reason;
	WalsizerHolder held_by;
	WalsizerLimit limited_by;
} Server;

#define FILLS	"WAL is about to fill the file system of \"pg_wal\", which holds at most 736 MB of WAL. "
#define TOO_LARGE	.free = 636, .wal = 100, .disk = 320, .limit = 320, .kind = WALSIZER_LIMIT_DISK

static const Server servers[] = {
	{"not_running", "the walsizer worker is not running. walsizer_start() starts it, or says why it cannot.", "not running", .no_worker = true},
	{"no_sample", "walsizer has not taken a valid sample yet. Look again in a second.", .no_sample = true},

	/* what stops a server comes first */
	{"disk_full", FILLS "walsizer requests checkpoints. Enlarge the file system, or remove what else fills it.", .fills = true, .failing = true, .free = 636, .wal = 100},
	{"disk_full", FILLS "walsizer requests checkpoints. Lower \"max_wal_size\" to at most 320 MB, or enlarge the file system.", .fills = true, .asked = 10000, TOO_LARGE},
	{"disk_full", FILLS "walsizer requests checkpoints. Enlarge the file system, or remove what else fills it.", .fills = true, .free = 636, .wal = 100, .limit = 1024, .kind = WALSIZER_LIMIT_DISK},
	{"disk_full", FILLS "walsizer requests checkpoints. Enlarge the file system, or remove what else fills it.", .fills = true, .asked = 10000, .own = 1024, .original = 512, TOO_LARGE},
	{"disk_full", FILLS "Run CHECKPOINT. Lower \"max_wal_size\" to at most 320 MB, or enlarge the file system.", .fills = true, .only_said = true, TOO_LARGE},
	{"disk_full", FILLS "Run CHECKPOINT. Enlarge the file system, or remove what else fills it.", "disabled", .fills = true, .disabled = true, .free = 636, .wal = 100},
	{"disk_full", FILLS "Run CHECKPOINT. Lower \"max_wal_size\" to at most 320 MB, or enlarge the file system.", "disabled", .fills = true, .disabled = true, .own = 1024, .original = 512, TOO_LARGE},
	{"disk_full", FILLS "The checkpoint that walsizer requested has not helped yet: see the server log, and what else fills the file system.", .fills = true, .asked = 10001, TOO_LARGE},
	{"disk_full", FILLS "The checkpoint that walsizer requested has not helped yet: see the server log, and what else fills the file system.", .fills = true, .asked = 500000, TOO_LARGE},
	{"disk_full", FILLS "Replication slot \"gone\" holds back 90 MB: have its consumer catch up, or drop it.", .fills = true, .kept = 90, .held = 60, .held_by = WALSIZER_HELD_BY_SLOT, TOO_LARGE},
	{"disk_full", "WAL was about to fill the file system of \"pg_wal\", so walsizer requested a checkpoint. Lower \"max_wal_size\" to at most 320 MB, or enlarge the file system.", .asked = -299999, TOO_LARGE},
	{"no_room", "\"max_wal_size\" of 1024 MB exceeds the file system of \"pg_wal\", which holds at most 736 MB of WAL. Lower it to at most 320 MB, or enlarge the file system.", .asked = -300000, TOO_LARGE},
	{"checkpoints_fail", "checkpoints start and do not complete, so no WAL is removed. The server log has the error; a larger size does not help.", .failing = true, BIG},
	{"no_room", "\"max_wal_size\" of 1024 MB exceeds the file system of \"pg_wal\", which holds at most 736 MB of WAL. Lower it to at most 320 MB, or enlarge the file system.",
	.free = 636, .wal = 100, .disk = 320, .limit = 320, .kind = WALSIZER_LIMIT_DISK},
	/* without what is held back, it would fit, or not */
	{"held_back", "544 MB of WAL are held back, which \"max_wal_size\" does not limit. Replication slot \"gone\" holds back 544 MB: have its consumer catch up, or drop it.",
	.free = 636, .wal = 100, .held = 544, .held_by = WALSIZER_HELD_BY_SLOT, .disk = 320, .limit = 320, .kind = WALSIZER_LIMIT_DISK},
	{"no_room", "\"max_wal_size\" of 1024 MB exceeds the file system of \"pg_wal\", which holds at most 736 MB of WAL. Lower it to at most 320 MB, or enlarge the file system.",
	.free = 636, .wal = 100, .held = 144, .held_by = WALSIZER_HELD_BY_SLOT, .disk = 320, .limit = 320, .kind = WALSIZER_LIMIT_DISK},
	{"no_room", "\"max_wal_size\" of 1024 MB exceeds the file system of \"pg_wal\", which holds at most 736 MB of WAL. Lower it to at most 320 MB, or enlarge the file system.",
	.free = 636, .wal = 100, .held = 544, .held_by = WALSIZER_HELD_BY_SETTING, .disk = 320, .limit = 320, .kind = WALSIZER_LIMIT_DISK},
	{"large_enough", ENOUGH, .free = 924, .wal = 100, .disk = 2000},
	{"no_room", "\"max_wal_size\" of 1024 MB exceeds the file system of \"pg_wal\", which holds at most 1023 MB of WAL. Lower it to at most 320 MB, or enlarge the file system.",
	.free = 923, .wal = 100, .disk = 320, .limit = 320, .kind = WALSIZER_LIMIT_DISK},
	{"large_enough", ENOUGH, .client = true, .free = 500, .disk = 2000},
	{"large_enough", ENOUGH, .booted = true},
	{"held_back", "3000 MB of WAL are held back, which \"max_wal_size\" does not limit. Archiving fails, last at gone, which holds back 3000 MB: see the server log.",
	.free = 26000, .wal = 900, .held = 3000, .held_by = WALSIZER_HELD_BY_ARCHIVER, BIG},
	{"held_back", "3000 MB of WAL are held back, which \"max_wal_size\" does not limit. See which of these holds back 3000 MB: a replication slot, \"wal_keep_size\", the archiver, or from 17 on \"summarize_wal\". If none does, the next checkpoint removes it.",
	.free = 26000, .wal = 900, .held = 3000, .dry_run = true, .state = "dry run", BIG},
	{"taken_back", "another program sets \"max_wal_size\" back after each raise. Have only one of the two set it: turn off \"walsizer.enable\", or take it from the other.", .taken_back = true, BIG},
	{"too_small", SMALL ". Turn on \"walsizer.enable\" to have walsizer raise it, or set it yourself.", "disabled", .disabled = true, .taken_back = true, BIG},

	/* too small, and walsizer may not act */
	{"too_small", SMALL ". Turn on \"walsizer.enable\" to have walsizer raise it, or set it yourself.", "disabled", .disabled = true, BIG},
	{"too_small", SMALL ". Turn off \"walsizer.dry_run\" to have walsizer raise it.", "dry run", .dry_run = true, BIG, .late = true},
	{"too_small", SMALL ". Turn on \"walsizer.enable\" to have walsizer raise it to 1200 MB, which the limits allow, or set it yourself.", "disabled", .disabled = true, BIG, .limit = 1200},
	{"too_small", SMALL ". Turn off \"walsizer.dry_run\" to have walsizer raise it to 1200 MB, which the limits allow.", "dry run", .dry_run = true, BIG, .limit = 1200},
	{"too_small", SMALL ". walsizer cannot raise it: read only. See walsizer_instructions.", "blocked", .outcome = READ_ONLY, BIG},
	{"too_small", SMALL ". Raise \"walsizer.max\" to 1500 MB, or accept forced checkpoints.", "dry run", .dry_run = true, .limit = 1024, .max = 1024, BIG},
	{"too_small", SMALL ". Raise \"walsizer.max\" to 1500 MB, or accept forced checkpoints.", "disabled", .disabled = true, .limit = 1024, .max = 1024, BIG},
	{"too_small", SMALL ". Raise \"walsizer.max\" to 1500 MB, or accept forced checkpoints.", "blocked", .outcome = READ_ONLY, .limit = 1024, .max = 1024, BIG},
	{"too_small", SMALL ". Set it to 1500 MB.", .client = true, BIG},
	{"too_small", SMALL ". Set it to 1200 MB.", "limited", .client = true, .limit = 1200, BIG},
	{"too_small", SMALL ". The limits allow no more.", "limited", .client = true, .limit = 1024, BIG},

	/* what a size does not help against */
	{"old_value", "a statement that began before \"max_wal_size\" was raised forces checkpoints. Wait for its end; call walsizer_boost() before the next one.", .old_value = 1, BIG},
	{"large_enough", ENOUGH, .old_value = 1, .standby = true},
	{"slow_checkpoint", "a checkpoint takes longer than \"checkpoint_timeout\". Raise that, or use faster storage; a larger \"max_wal_size\" does not help.", .late = true, BIG},
	{"large_enough", ENOUGH, .late = true, .idle = true},
	{"padding", "97 % of the WAL is padding, because segments are switched before they are full. See \"archive_timeout\", and what calls pg_switch_wal(); a larger size does not help.", .padding = 97, BIG},
	{"padding", "50 % of the WAL is padding, because segments are switched before they are full. See \"archive_timeout\", and what calls pg_switch_wal(); a larger size does not help.", .padding = 50, .original = 512, .own = 1024},
	{"too_small", SMALL ". walsizer raises it when a load needs it; for a larger size now, call walsizer_boost().", .padding = 49, BIG},
	{"few_pages", FEW_PAGES, .few_pages = 430, BIG},
	{"few_pages", FEW_PAGES, "limited", .few_pages = 430, BIG, .limit = 1024, .max = 1024, .limited = true, .limited_by = WALSIZER_LIMIT_MAX},
	{"few_pages", FEW_PAGES, .few_pages = 430, .demand = 430, .original = 512, .own = 1024},
	{"too_small", SMALL ". Turn off \"walsizer.dry_run\" to have walsizer raise it.", "dry run", .dry_run = true, .few_pages = 430, BIG},
	{"large_enough", ENOUGH, .few_pages = 430, .demand = 430, .wanted = 900},
	/* such a load is over */
	{"large_enough", ENOUGH, .few_pages = 430, .demand = 429, .original = 512, .own = 1024},
	{"large_enough", ENOUGH, .few_pages = 430, .demand = 430, .original = 900},
	{"large_enough", ENOUGH, .padding = 97},
	{"padding", "97 % of the WAL is padding, because segments are switched before they are full. See \"archive_timeout\", and what calls pg_switch_wal(); a larger size does not help.", .padding = 97, .forced = 1},

	/* too small, and walsizer acts, as far as the limits allow */
	{"too_small", SMALL ". walsizer raises it when a load needs it; for a larger size now, call walsizer_boost().", BIG},
	{"too_small", SMALL ". walsizer raises it when a load needs it; for a larger size now, call walsizer_boost().", .learned = 600, .wanted = 1500},
	{"too_small", SMALL ". walsizer leaves a value that was just set alone, for five minutes at most; for a larger size now, call walsizer_boost().", BIG, .reason = WALSIZER_BECAUSE_RECENTLY_CHANGED},
	{"too_small", SMALL ". walsizer raises it when a load needs it; for a larger size now, call walsizer_boost().", BIG, .reason = WALSIZER_BECAUSE_WAITING},
	{"too_small", "\"max_wal_size\" of 1024 MB is too small: 8192 MB are needed. walsizer raises it when a load needs it; for a larger size now, call walsizer_boost().", .boost = 8192},
	{"too_small", "\"max_wal_size\" of 1024 MB is too small: 8192 MB are needed, and \"walsizer.max\" allows 2048 MB. Raise \"walsizer.max\" to 8192 MB, or accept forced checkpoints.", "limited", .boost = 8192, .limited = true, .limited_by = WALSIZER_LIMIT_MAX, .reason = WALSIZER_BECAUSE_BOOST, .limit = 2048, .max = 2048},
	{"too_small", SMALL ", and \"walsizer.max\" allows 1024 MB. Raise \"walsizer.max\" to 1500 MB, or accept forced checkpoints.", "limited", BIG, .limit = 1024, .max = 1024, .limited = true, .limited_by = WALSIZER_LIMIT_MAX},
	{"too_small", SMALL ", and \"walsizer.max_recovery_time\" allows 1100 MB. Raise \"walsizer.max_recovery_time\" so that it allows 1500 MB, or accept forced checkpoints.", "limited", BIG, .limit = 1100, .recovery = 1100, .kind = WALSIZER_LIMIT_RECOVERY, .limited = true, .limited_by = WALSIZER_LIMIT_RECOVERY},
	{"too_small", SMALL ", and \"walsizer.max_disk_percent\" allows 1024 MB. Raise \"walsizer.max_disk_percent\" so that it allows 1500 MB, or enlarge the file system of \"pg_wal\".", "limited", BIG, .limit = 1024, .disk = 1024, .free = 1100, .wal = 948, .kind = WALSIZER_LIMIT_DISK, .limited = true, .limited_by = WALSIZER_LIMIT_DISK},
	{"too_small", SMALL ". Enlarge the file system of \"pg_wal\": it holds at most 1400 MB of WAL.", "limited", BIG, .limit = 700, .disk = 700, .free = 500, .wal = 900, .kind = WALSIZER_LIMIT_DISK},
	{"too_small", SMALL ". Enlarge the file system of \"pg_wal\": it holds at most 1400 MB of WAL.", "limited", BIG, .limit = 700, .disk = 700, .free = 500, .wal = 900, .held = 1600, .held_by = WALSIZER_HELD_BY_SETTING, .kind = WALSIZER_LIMIT_DISK},
	{"too_small", SMALL ". walsizer raises it when the primary's load needs it; for a larger size now, set it yourself.", .standby = true, BIG},
	{"too_small", SMALL ". walsizer waits, because a limit fell; for a larger size now, call walsizer_boost().", .waits = true, BIG},
	{"too_small", SMALL ". walsizer waits, because a limit fell; for a larger size now, call walsizer_boost().", .swings = true, BIG, .step = 1330},
	{"too_small", SMALL ". walsizer raises it when a load needs it; for a larger size now, call walsizer_boost().", .swings = true, BIG, .step = 1331},
	/* what forced checkpoints inflate is no more than a bound, nor what was measured with a longer timeout */
	{"large_enough", "\"max_wal_size\" of 1024 MB is large enough: at most 900 MB are needed" NOTHING, .learned = 401, .longer = true},
	{"large_enough", ENOUGH, .learned = 400, .longer = true},
	{"too_small", AT_MOST ". walsizer raises it when a load needs it; for a larger size now, call walsizer_boost().", .inflated = true, BIG},
	{"too_small", AT_MOST ", and \"walsizer.max\" allows 1024 MB. Raise \"walsizer.max\" to at most 1500 MB, or accept forced checkpoints.", "limited", .inflated = true, BIG, .limit = 1024, .max = 1024, .limited = true, .limited_by = WALSIZER_LIMIT_MAX},
	{"too_small", AT_MOST ". Raise \"walsizer.max_disk_percent\" so that it allows at most 1500 MB, or enlarge the file system of \"pg_wal\".", "limited", .inflated = true, BIG, .limit = 1024, .disk = 1024, .free = 1100, .wal = 948, .kind = WALSIZER_LIMIT_DISK},
	{"too_small", AT_MOST ". Set it to 1500 MB.", .inflated = true, .client = true, BIG},
	{"too_small", "\"max_wal_size\" of 1024 MB is too small: 8192 MB are needed. walsizer raises it when a load needs it; for a larger size now, call walsizer_boost().", .inflated = true, .boost = 8192},
	{"large_enough", "\"max_wal_size\" of 1024 MB is large enough: at most 900 MB are needed" NOTHING, .inflated = true},
	/* walsizer.max is the limit, but to raise it would not help */
	{"too_small", SMALL ". Enlarge the file system of \"pg_wal\": it holds at most 1400 MB of WAL.", "limited", BIG, .limit = 512, .max = 512, .disk = 700, .free = 500, .wal = 900, .own = 1024, .original = 256},
	/* nor does a percentage, where WAL is held back */
	{"held_back", "1100 MB of WAL are held back, which \"max_wal_size\" does not limit. Replication slot \"gone\" holds back 1100 MB: have its consumer catch up, or drop it.", "limited", BIG, .limit = 1400, .disk = 1400, .free = 20000, .wal = 900, .held = 1100, .held_by = WALSIZER_HELD_BY_SLOT, .kind = WALSIZER_LIMIT_DISK},

	/* large enough, with something to say */
	{"edit_hidden", "walsizer's value hides an edit of \"max_wal_size\" in the configuration file. Turn on \"walsizer.enable\", or call walsizer_revert().", "disabled", .disabled = true, .reason = WALSIZER_BECAUSE_EDIT_HIDDEN},
	{"blocked", "walsizer cannot change \"max_wal_size\": read only. See walsizer_instructions.", "blocked", .outcome = WALSIZER_REFUSED},
	{"blocked", "walsizer cannot change \"max_wal_size\": read only. See walsizer_instructions.", "blocked", .outcome = WALSIZER_FAILED},
	{"blocked", "walsizer cannot change \"max_wal_size\": read only. See walsizer_instructions.", "blocked", .outcome = READ_ONLY, .reason = WALSIZER_BECAUSE_EDITED},
	{"blocked", "walsizer cannot change \"max_wal_size\": read only. See walsizer_instructions.", "blocked", .outcome = READ_ONLY, .reason = WALSIZER_BECAUSE_WAITING},
	{"blocked", "walsizer cannot change \"max_wal_size\": read only. See walsizer_instructions.", "blocked", .outcome = READ_ONLY, .original = 512, .own = 1024, .limit = 1000},
	{"large_enough", ENOUGH, "blocked", .outcome = READ_ONLY},
	{"held_back", "1100 MB of WAL are held back, which \"max_wal_size\" does not limit. Replication slot \"gone\" holds back 1100 MB: have its consumer catch up, or drop it.",
	.free = 20000, .wal = 900, .held = 1100, .held_by = WALSIZER_HELD_BY_SLOT},
	{"large_enough", ENOUGH, .free = 20000, .wal = 900, .held = 9100, .held_by = WALSIZER_HELD_BY_SETTING},
	{"large_enough", ENOUGH, .free = 20000, .wal = 900, .held = 1024, .held_by = WALSIZER_HELD_BY_SLOT},
	{"beyond_max", "\"max_wal_size\" of 1024 MB exceeds \"walsizer.max\", so walsizer does not change it. Lower it, or raise \"walsizer.max\", unless that is intended.", "limited", .max = 1000, .limit = 1000},
	{"beyond_max", "\"max_wal_size\" of 1024 MB exceeds \"walsizer.max\", so walsizer does not change it. Raise \"walsizer.max\" to 900 MB, unless that is intended.", "limited", .max = 800, .limit = 800},
	{"beyond_max", "\"max_wal_size\" of 1024 MB exceeds \"walsizer.max\", so walsizer does not change it. Lower it, or raise \"walsizer.max\", unless that is intended.", "limited", .max = 1000, .limit = 1000, .own = 1024},
	{"large_enough", ENOUGH, .max = 1000, .limit = 1000, .own = 1024, .original = 512},
	{"so_far", "\"max_wal_size\" of 1024 MB has sufficed so far. It takes one \"checkpoint_timeout\" to say more.", .early = true, .wanted = 1100},
	{"tight", "\"max_wal_size\" of 1024 MB is large enough, but not with headroom, which takes 1100 MB" NOTHING, .wanted = 1100},
	{"tight", "\"max_wal_size\" of 1024 MB is large enough, but not with headroom, which takes 1100 MB. Raise \"walsizer.max\" to 1100 MB, or accept forced checkpoints.", "limited", .wanted = 1100, .limit = 1050, .max = 1050},
	{"large_enough", ENOUGH, .held = 0},
	{"large_enough", "\"max_wal_size\" of 1024 MB is large enough: 0 MB are needed" NOTHING, .wanted = -1},
};

#define NUM_SERVERS	((int) (sizeof(servers) / sizeof(servers[0])))

static int64_t
or(int given, int64_t usual)
{
	return given != 0 ? given : usual;
}

static WalsizerVerdict
judge(const Server *s)
{
	Driver	   *d = driver_new();
	WalsizerFigures *figures = &d->last.figures;
	WalsizerSituation situation = {
		.config = &d->config, .state = &d->state, .decision = &d->last,
		.running = !s->no_worker, .client = s->client, .early = s->early,
		.dry_run = s->dry_run, .taken_back = s->taken_back, .outcome = s->outcome,
		.held_by = s->held_by, .message = "read only", .holder = "gone",
	};

	if (s->booted)
		d->sample.now = SECOND;
	d->config.enable = !s->disabled;
	d->config.max_mb = or(s->max, 16384);
	d->state.last = d->sample;
	d->state.last.standby = s->standby;
	d->state.last.checkpoint_running = !s->idle;
	d->state.checkpoints.timer_start = d->sample.now - d->sample.settings.timeout_ms - s->late;
	d->state.owner.original_mb = or(s->original, 1024);
	d->state.owner.own_mb = s->own;
	d->state.boost.size_mb = s->boost;
	d->state.learned.largest.timeout_ms = d->sample.settings.timeout_ms + s->longer;
	d->state.pacing.raise_not_before = d->sample.now + s->waits;
	d->state.pacing.hold_ms = d->sample.settings.timeout_ms + s->swings;
	d->state.disk = (WalsizerDisk) {
		.known = s->disk > 0, .free = s->free * MB, .wal = s->wal * MB, .held = s->held * MB,
	};
	d->state.wal_contents.few_pages = s->few_pages > 0;
	d->state.wal_contents.last = (WalsizerWal) {s->few_pages * MB, 5000000, 40, 700, 0};
	d->config.prevent_disk_full = !s->only_said;
	d->state.last_resort = (WalsizerLastResort) {
		.fills = s->fills, .kept = s->kept * MB, .asked_lsn = s->asked > 0,
		.asked_at = s->asked == 0 ? 0 : d->sample.now - abs(s->asked),
	};
	d->last.limited = s->limited;
	d->last.limited_by = s->limited_by;
	d->last.reason = (WalsizerReason) or((int) s->reason, WALSIZER_BECAUSE_SUFFICIENT);
	if (s->no_sample)
		d->last = (WalsizerDecision) {0};
	*figures = (WalsizerFigures) {
		.in_effect_mb = 1024, .wanted_mb = s->wanted < 0 ? 0 : or(s->wanted, 900),
		.limit_mb = or(s->limit, 16384), .limit_kind = (WalsizerLimit) or((int) s->kind, WALSIZER_LIMIT_MAX),
		.limits_mb = {0, d->config.max_mb, s->disk, s->recovery}, .step_limit_mb = s->step,
		.demand = or(s->demand, 400) * MB, .learned = s->learned * MB,
		.forced_old_value = s->old_value, .checkpoints_fail = s->failing,
		.padding_percent = s->padding, .forced = s->forced, .inflated = s->inflated,
	};
	return walsizer_judge(&situation);
}

TEST(each_server_has_its_verdict)
{
	for (int i = 0; i < NUM_SERVERS; i++)
	{
		const Server *s = &servers[i];
		WalsizerVerdict verdict = judge(s);
		char		finding[WALSIZER_SENTENCE_SIZE];
		char		remedy[WALSIZER_SENTENCE_SIZE];
		char		all[2 * WALSIZER_SENTENCE_SIZE + 2];

		walsizer_verdict_text(&verdict, verdict.found.text, finding);
		walsizer_verdict_text(&verdict, verdict.found.remedy, remedy);
		snprintf(all, sizeof(all), "%s. %s", finding, remedy);
		assert_string_equal(all, s->says);
		assert_string_equal(verdict.found.code, s->code);
		assert_string_equal(verdict.state, s->state != NULL ? s->state : "active");
	}
}

/* Those worth a line in the log have numbers of their own; the limits, one each. */
TEST(notices_are_numbered)
{
	const char *numbered[WALSIZER_NOTICES] = {NULL};

	for (int i = 0; i < NUM_SERVERS; i++)
	{
		WalsizerFinding found = judge(&servers[i]).found;
		bool		limit = servers[i].limited && servers[i].reason != WALSIZER_BECAUSE_BOOST &&
			strcmp(found.code, "too_small") == 0;

		assert_in_range(found.notice, 0, WALSIZER_NOTICES - 1);
		if (strcmp(found.code, "disk_full") == 0)
			assert_int_equal(found.notice, WALSIZER_NOTICE_DISK_FULL);
		else
			assert_int_equal(found.notice > 9, limit);
		if (limit)
			assert_int_equal(found.notice, 9 + servers[i].limited_by);
		if (found.notice > 0 && numbered[found.notice] != NULL)
			assert_string_equal(numbered[found.notice], found.code);
		numbered[found.notice] = found.notice > 0 ? found.code : NULL;
	}
	for (int i = 1; i <= 9; i++)
		assert_non_null(numbered[i]);
}

/* A text that does not fit is cut off; a number has all its digits. */
TEST(sentences_fit)
{
	WalsizerVerdict verdict = {.numbers = {INT64_C(1) << 60, 10, 0}};
	char		text[WALSIZER_SENTENCE_SIZE];
	char		shown[WALSIZER_SENTENCE_SIZE + 100];

	walsizer_verdict_text(&verdict, "$0,$1,$2", text);
	assert_string_equal(text, "1152921504606846976,10,0");
	memset(shown, 'x', sizeof(shown));
	shown[sizeof(shown) - 1] = '\0';
	verdict.texts[0] = shown;
	walsizer_verdict_text(&verdict, "<$a>", text);
	assert_int_equal(strlen(text), WALSIZER_SENTENCE_SIZE - 1);
	assert_int_equal(text[0], '<');
	assert_int_equal(text[WALSIZER_SENTENCE_SIZE - 2], 'x');
}

/* All but the first name the size. */
TEST(instructions_have_the_size)
{
	for (const WalsizerInstruction *way = walsizer_instructions + 1; way->place != NULL; way++)
		assert_non_null(strstr(way->text, "$1"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_server_has_its_verdict),
		cmocka_unit_test(notices_are_numbered),
		cmocka_unit_test(sentences_fit),
		cmocka_unit_test(instructions_have_the_size),
	};

	return cmocka_run_group_tests_name("policy, verdicts", tests, NULL, NULL);
}
