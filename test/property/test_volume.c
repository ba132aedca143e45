/*-------------------------------------------------------------------------
 *
 * test_volume.c
 *	  Clusters that share a volume and do not know of each other, and other
 *	  programs that fill it.
 *
 *		test_volume [--verbose]
 *
 * Each cluster has a walsizer of its own, whose samples come at a time of their
 * own.  None may take so much of the volume that less than a twentieth is free.
 *
 * Portions Copyright (c) 2026, the walsizer developers
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define MAX_CLUSTERS	8
#define STEP			50.0	/* ms between two looks at the truth */
#define MOST_USED		0.95

typedef struct Scene
{
	int			clusters;
	double		volume;			/* MB */
	double		rate;			/* MB per second, of each */
	int64_t		interval;		/* ms */
	int64_t		segment_mb;
	int64_t		from;			/* MB */
	double		start_apart;	/* ms between their first loads */
	double		all_at;			/* ms: nearly idle after a minute until then; 0: never */
	double		duration;		/* s */

	/* another program: takes this part of the volume, and gives it back */
	double		file;
	double		file_from;		/* ms */
	double		file_rate;		/* MB per second */
	double		file_period;	/* ms that it stays, and stays away; 0: for ever */
	int			file_times;
} Scene;

typedef struct Cluster
{
	SimServer	server;
	WalsizerState state;
	double		next_tick;
	double		starts;			/* its load, ms */
	int			raises;
	int			lowers;
	int			looks;
	int			ticks;
} Cluster;

typedef struct World
{
	const Scene *scene;
	WalsizerConfig config;
	Cluster    *clusters;
	double		now;
	double		file;			/* bytes that the other program has taken */
	double		most_used;		/* part of the volume, at any time */
	double		full_at;		/* ms, -1: never */
} World;

static bool verbose;
static int	scenes;
static int	failed;

static double
occupied(const SimServer *s)
{
	double		size = (double) s->settings.segment_bytes;

	return ceil(s->files_to / size) * size - sim_segment_start(s, s->files_from);
}

static double
used(const World *w)
{
	double		sum = w->file;

	for (int i = 0; i < w->scene->clusters; i++)
		sum += occupied(&w->clusters[i].server);
	return sum;
}

static void
look(const World *w, const Cluster *c, WalsizerSample *sample)
{
	sample->disk_tried = sample->disk_read = true;
	sample->disk_wal = (int64_t) occupied(&c->server);
	sample->disk_ahead = (int64_t) fmax(0, occupied(&c->server) + sim_segment_start(&c->server, c->server.files_from) -
										sim_segment_start(&c->server, c->server.pos) - (double) c->server.settings.segment_bytes);
	sample->disk_removable = (int64_t) (sim_segment_start(&c->server, c->server.pos) -
										sim_segment_start(&c->server, c->server.files_from));
	sample->disk_free = (int64_t) fmax(0, w->scene->volume * SIM_MB - used(w));
}

static void
tick(World *w, Cluster *c)
{
	WalsizerSample sample = {0};
	WalsizerDecision d;

	sim_server_sample(&c->server, &sample);
	c->ticks++;
	if (walsizer_look_is_due(&w->config, &c->state, &sample))
	{
		c->looks++;
		look(w, c, &sample);
	}
	d = walsizer_step(&w->config, &c->state, &sample);
	if (d.action == WALSIZER_CHECKPOINT)
		sim_server_request(&c->server);
	if (d.action == WALSIZER_RAISE || d.action == WALSIZER_LOWER)
	{
		c->raises += d.action == WALSIZER_RAISE;
		c->lowers += d.action == WALSIZER_LOWER;
		c->server.note.kind = WALSIZER_NOTE_WRITTEN;
		c->server.note.written_mb = d.target_mb;
		c->server.note.original_mb = c->state.owner.original_mb;
		sim_server_apply(&c->server, d.target_mb, 50);
		if (verbose && w->scene->clusters == 1)
			printf("   %6.1f s %s to %lld of %lld (disk %lld, step %lld)\n", w->now / 1000,
				   walsizer_reason_text(d.reason), (long long) d.target_mb, (long long) d.wanted_mb,
				   (long long) d.figures.limits_mb[WALSIZER_LIMIT_DISK], (long long) d.figures.step_limit_mb);
	}
	c->next_tick += (double) w->config.sample_interval_ms;
}

/* The other program, up to this time. */
static void
fill(World *w)
{
	const Scene *s = w->scene;
	double		t = w->now - s->file_from;
	double		most = s->file * s->volume * SIM_MB;

	if (s->file <= 0 || t < 0)
		return;
	if (s->file_period > 0 && (fmod(t, 2 * s->file_period) >= s->file_period ||
							   t > 2 * s->file_period * s->file_times))
		w->file = 0;
	else
		w->file = fmin(most, fmod(t, s->file_period > 0 ? 2 * s->file_period : INFINITY) / 1000 *
					   s->file_rate * SIM_MB);
}

/* The rate of this cluster now, bytes per ms. */
static double
rate_of(const World *w, const Cluster *c)
{
	const Scene *s = w->scene;
	double		rate = w->now >= c->starts ? s->rate : 0;

	if (w->now >= c->starts + 60000 && w->now < s->all_at)
		rate = 0.05;
	return rate * SIM_MB / 1000;
}

static void
run(World *w)
{
	const Scene *s = w->scene;

	for (w->now = STEP; w->now <= s->duration * 1000; w->now += STEP)
	{
		fill(w);
		for (int i = 0; i < s->clusters; i++)
		{
			Cluster    *c = &w->clusters[i];

			sim_server_advance(&c->server, w->now, rate_of(w, c));
			if (w->now >= c->next_tick)
				tick(w, c);
		}
		w->most_used = fmax(w->most_used, used(w) / (s->volume * SIM_MB));
		if (w->full_at < 0 && used(w) > s->volume * SIM_MB)
			w->full_at = w->now;
	}
}

static void
begin(World *w, const Scene *s, int phase)
{
	SimOptions	options;
	WalsizerSettings settings = {s->segment_mb * WALSIZER_MB, s->from, 0.9, 30000};

	memset(w, 0, sizeof(*w));
	sim_default_options(&options);
	w->scene = s;
	w->config = options.config;
	w->config.max_mb = 16 * 1024;
	w->config.sample_interval_ms = s->interval;
	w->full_at = -1;
	w->clusters = calloc(MAX_CLUSTERS, sizeof(Cluster));
	if (w->clusters == NULL)
		abort();
	for (int i = 0; i < s->clusters; i++)
	{
		Cluster    *c = &w->clusters[i];

		sim_server_init(&c->server, &settings);
		c->server.min_wal = (double) s->from * SIM_MB;
		c->starts = 5000 + i * s->start_apart;
		/* all at the same moment, evenly apart, or nearly at the same */
		c->next_tick = phase == 0 ? STEP : phase == 1 ?
			STEP + i * floor((double) s->interval / s->clusters / STEP) * STEP : STEP * (1 + i);
	}
}

static void
complain(const Scene *s, const char *what)
{
	failed++;
	printf("%d clusters on %.0fMB at %.0fMB/s, a sample in %lld ms, segments of %lldMB, from %lldMB: %s\n",
		   s->clusters, s->volume, s->rate, (long long) s->interval, (long long) s->segment_mb,
		   (long long) s->from, what);
}

static void
describe(const World *w)
{
	const Scene *s = w->scene;

	printf("%d on %6.0fMB %3.0fMB/s %5lld ms %2lldMB from %3lldMB: most used %3.0f %%%s;", s->clusters,
		   s->volume, s->rate, (long long) s->interval, (long long) s->segment_mb,
		   (long long) s->from, 100 * w->most_used, w->full_at >= 0 ? ", FULL" : "");
	for (int i = 0; i < s->clusters; i++)
	{
		const Cluster *c = &w->clusters[i];

		printf(" %lld(%d+%d-,%lldf,%lldr,%d/%d)", (long long) c->server.settings.max_wal_size_mb, c->raises, c->lowers,
			   (long long) c->server.checkpoints[WALSIZER_CAUSE_FORCED].number,
			   (long long) c->server.checkpoints[WALSIZER_CAUSE_DISK_FULL].number, c->looks, c->ticks);
	}
	printf("\n");
}

static double
final_size(const World *w, bool largest)
{
	double		size = (double) w->clusters[0].server.settings.max_wal_size_mb;

	for (int i = 1; i < w->scene->clusters; i++)
	{
		double		other = (double) w->clusters[i].server.settings.max_wal_size_mb;

		size = largest ? fmax(size, other) : fmin(size, other);
	}
	return size;
}

/* What the load of one cluster alone needs at least, MB. */
static double
needed(const Scene *s)
{
	WalsizerSettings settings = {s->segment_mb * WALSIZER_MB, s->from, 0.9, 30000};

	return (double) walsizer_size_for((int64_t) (s->rate * SIM_MB * 30), &settings);
}

/*
 * A limit is followed down by a fifth and up by a tenth, not less, so equal shares
 * are not exactly equal; the smallest of them may be a step of whole segments away.
 */
static void
clusters_share(const Scene *s)
{
	double		fair = s->volume * 0.5 / (1 + 0.5 * (s->clusters - 1));
	double		slack = 2 * (double) s->segment_mb;

	for (int phase = 0; phase < 3; phase++)
	{
		World		w;

		begin(&w, s, phase);
		run(&w);
		scenes++;
		if (verbose)
			describe(&w);
		if (w.full_at >= 0)
			complain(s, "the volume was full");
		else if (w.most_used > MOST_USED)
			complain(s, "too little was left free");
		if (final_size(&w, true) > 2 * final_size(&w, false) + slack)
			complain(s, "the shares are not equal");
		if (final_size(&w, false) < fmin(0.6 * fair, needed(s)) - slack)
			complain(s, "a share is too small");
		free(w.clusters);
	}
}

/*
 * Clusters that each raised while the others were idle, and whose WAL was removed
 * since: what they claim together is more than the volume.  Then all write at once.
 */
static void
old_claims_are_given_up(void)
{
	static const double rates[] = {9, 41, 203};

	for (int n = 2; n <= 6; n += 2)
		for (int r = 0; r < 3; r++)
			for (int i = 0; i < 2; i++)
			{
				Scene		s = {
					.clusters = n, .volume = 2000, .rate = rates[r], .interval = i == 0 ? 1000 : 10000,
					.segment_mb = 16, .from = 64, .start_apart = 1200000,
					.all_at = n * 1200000, .duration = n * 1200 + 300,
				};
				World		w;

				begin(&w, &s, 2);
				run(&w);
				scenes++;
				if (verbose)
					describe(&w);
				if (w.full_at >= 0)
					complain(&s, "old claims filled the volume");
				free(w.clusters);
			}
}

/*
 * A file takes 55 % of what is free, and gives it back, each for 20 s, for four
 * minutes.  That is followed down once, and up again when it is over.
 */
static void
a_swing_is_not_followed(void)
{
	Scene		s = {
		.clusters = 1, .volume = 2000, .rate = 20, .interval = 1000, .segment_mb = 16, .from = 64,
		.duration = 660,
	};
	World		w;
	int			raises;

	begin(&w, &s, 0);
	run(&w);					/* 660 s without any */
	raises = w.clusters[0].raises;
	s.duration = 300;
	if (verbose)
		describe(&w);
	free(w.clusters);

	s.file = 0.3;
	s.file_from = 180000;
	s.file_rate = 2000;
	s.file_period = 20000;
	s.file_times = 6;
	s.duration = 180 + 240;
	begin(&w, &s, 0);
	run(&w);
	if (verbose)
		describe(&w);
	if (w.clusters[0].lowers != 1)
		complain(&s, "a swing was followed down more than once");
	if (w.clusters[0].raises > raises)
		complain(&s, "a swing was followed up");
	free(w.clusters);

	s.duration = 660;
	begin(&w, &s, 0);
	run(&w);
	if (verbose)
		describe(&w);
	if (w.clusters[0].raises <= raises)
		complain(&s, "what is free again is not used");
	free(w.clusters);
}

/* Another program fills nine tenths of the volume, and stays. */
static void
others_fill_the_volume(void)
{
	static const double rates[] = {5, 10, 20};

	for (int r = 0; r < 3; r++)
		for (int i = 0; i < 2; i++)
		{
			Scene		s = {
				.clusters = 1, .volume = 2000, .rate = 20, .interval = i == 0 ? 1000 : 10000,
				.segment_mb = 16, .from = 64, .duration = 600, .file = 0.85, .file_from = 120000,
				.file_rate = rates[r],
			};
			World		w;

			begin(&w, &s, 0);
			run(&w);
			scenes++;
			if (verbose)
				describe(&w);
			if (w.clusters[0].server.settings.max_wal_size_mb > 240)
				complain(&s, "the raise was not taken back");
			if (w.full_at >= 0)
				complain(&s, "the volume was full");
			free(w.clusters);
		}
}

int
main(int argc, char **argv)
{
	static const int clusters[] = {1, 2, 4, 6};
	static const double volumes[] = {573, 2000, 10000};
	static const double rates[] = {6, 9, 41, 203};
	static const int64_t intervals[] = {1000, 10000};

	verbose = argc > 1 && strcmp(argv[1], "--verbose") == 0;
	for (int n = 0; n < 4; n++)
		for (int v = 0; v < 3; v++)
			for (int r = 0; r < 4; r++)
				for (int i = 0; i < 2; i++)
					for (int segment = 0; segment < 2; segment++)
						for (int apart = 0; apart < 2; apart++)
						{
							Scene		s = {
								.clusters = clusters[n], .volume = volumes[v], .rate = rates[r],
								.interval = intervals[i], .segment_mb = segment ? 16 : 1,
								.from = segment ? 64 : 16, .start_apart = apart ? 40000 : 0,
								.duration = 900,
							};

							clusters_share(&s);
						}
	old_claims_are_given_up();
	a_swing_is_not_followed();
	others_fill_the_volume();
	printf("clusters on a volume: %d scenes, %d failed\n", scenes, failed);
	return failed > 0;
}
