"""Transactions per second through a forced checkpoint, on slow storage.

pgbench TPC-B with data in memory, on a volume that writes no faster than cloud
storage of the smaller kind: with a small max_wal_size, with a large one, and
with walsizer (and each --preload), which starts from the small one.

Rounds add up over several runs: see --add."""

import statistics
import time

from harness import fixed, limits as judge, model, pairs, plots, storage, tps, watch

SMALL, LARGE = "128MB", "4GB"
CLIENTS = 16
WRITES = 1000  # per second, the limit of the storage
START = 8      # seconds from the start of a server to that of the load
MEAN = 0.97    # of the mean of the large setting
WORST = 0.9    # of its worst five seconds

# (name, scale of pgbench's tables, shared_buffers): 15 MB a piece of scale
IN_MEMORY = ("data in shared_buffers", 20, "1GB")
LARGER = ("data 3 x shared_buffers", 50, "256MB")


def measure(bench):
    yield from measure_variant(bench, IN_MEMORY)


def measure_variant(bench, variant):
    name, scale, shared_buffers = variant
    conditions = {"variant": name, "scale": scale, "shared_buffers": shared_buffers,
                  "timeout": bench.pick(30, 60, 60), "seconds": bench.seconds(40, 120, 120),
                  "clients": CLIENTS}
    data = bench.continue_data(conditions)
    measured = bench.storage.measure(WRITES)
    for _ in range(bench.repeated(1, 1, 5)):
        each = pairs.measure_round(bench, data, series(bench),
                                   lambda each: one(bench, each, conditions))
        each["storage"] = measured
        yield data


def series(bench):
    return [pairs.Series("large", bench.plain, {"max_wal_size": LARGE}),
            pairs.Series("small", bench.plain, {"max_wal_size": SMALL}),
            *(pairs.Series(subject.name, subject, {"max_wal_size": SMALL})
              for subject in bench.subjects)]


def one(bench, each, conditions):
    """One server, once."""
    settings = {**each.settings, "checkpoint_timeout": f"{conditions['timeout']}s",
                "shared_buffers": conditions["shared_buffers"]}
    with bench.server(each.subject, settings, conditions["scale"], bench.storage.place) as server:
        started = time.time()
        # the tables in the cache, as on a server that has been running
        server.psql("SELECT count(*) FROM pgbench_accounts")
        bench.storage.limit(WRITES)
        try:
            time.sleep(max(0, started + START - time.time()))
            series = watch.Series(server)
            series.start()
            with tps.Pgbench(server, f"--client={CLIENTS}", "--jobs=2", "--protocol=prepared",
                             f"--time={conditions['seconds']}") as pgbench:
                rows = pgbench.wait()
            series.stop()
            history = (server.rows("walsizer_history ORDER BY id")
                       if each.subject.library == "walsizer" else [])
        finally:
            bench.storage.limit(0)
        began = rows[0][0] - 1
        checkpoints, changes = watch.read_log(server.log, began)
    ended = rows[-1][0]
    return {"rows": [(round(at - began, 2), rate, latency) for at, rate, latency in rows],
            "checkpoints": [{**vars(c), "at": round(c.at - began, 2)} for c in checkpoints
                            if c.at <= ended],
            "changes": [(round(at - began, 2), mb) for at, mb in changes],
            "start_mb": series.rows[0][3], "final_mb": series.rows[-1][3],
            "wal_mb": (series.rows[-1][1] - series.rows[0][1]) / model.MB,
            "history": history, "settings": server.settings}


#
# What comes of it
#

def before_and_after(run):
    """The mean up to the first forced checkpoint, and the worst five seconds from
    then on; of the first timed one where none was forced."""
    forced = [c["at"] for c in run["checkpoints"] if c["cause"] == "forced"]
    any_ = forced or [c["at"] for c in run["checkpoints"]]
    if not any_:
        return None, None
    return (tps.mean([row for row in run["rows"] if row[0] <= any_[0]]),
            tps.worst([row for row in run["rows"] if row[0] > any_[0]]))


FORCED = pairs.Figure("forced checkpoints", lambda run: fixed.count(run, "forced"), 0)
MEAN_TPS = pairs.Figure("tps mean", lambda run: tps.mean(run["rows"]), 0, pairs.RATE)
WORST_TPS = pairs.Figure("tps worst 5 s", lambda run: tps.worst(run["rows"]), 0, pairs.RATE)
SHOWN = [
    MEAN_TPS,
    pairs.Figure("sd", lambda run: statistics.pstdev(row[1] for row in run["rows"]), 0),
    WORST_TPS,
    pairs.Figure("mean before the first checkpoint", lambda run: before_and_after(run)[0], 0),
    pairs.Figure("worst 5 s after", lambda run: before_and_after(run)[1], 0),
    FORCED,
    pairs.Figure("timed", lambda run: fixed.count(run, "timed"), 0),
    pairs.Figure("WAL, MB", lambda run: run["wal_mb"], 0),
    pairs.Figure("max_wal_size at the end, MB", lambda run: run["final_mb"], 0),
]


def label(name):
    return {"small": SMALL, "large": LARGE}.get(name, f"{name}, from {SMALL}")


def compared(rounds):
    """All with the large size, and those that raise with the small one, too."""
    of_large = pairs.against(rounds, "large")
    return of_large + [(name, "small") for name, _ in of_large if name != "small"]


def tables(data):
    conditions, rounds = data["conditions"], data["rounds"]
    yield from pairs.tables(
        f"{conditions['variant'].capitalize()} (scale {conditions['scale']}, shared_buffers = "
        f"{conditions['shared_buffers']}), {conditions['clients']} clients, checkpoint_timeout = "
        f"{conditions['timeout']} s, {conditions['seconds']} s of load",
        rounds, SHOWN, compared(rounds), [MEAN_TPS, WORST_TPS, FORCED], label)
    caption, heading, rows = pairs.machines(rounds)
    yield (caption, [*heading, "storage"],
           [[*row, storage.describe(each["storage"])] for row, each in zip(rows, rounds)])


def limits(data):
    rounds = data["rounds"]
    if not pairs.ratios(rounds, MEAN_TPS, "walsizer", "large"):
        return []
    return [judge.at_least(f"{data['conditions']['variant']}: {figure.name} / that of {LARGE}, median,",
                           round(pairs.median_ratio(rounds, figure, "walsizer", "large"), 3), least)
            for figure, least in ((MEAN_TPS, MEAN), (WORST_TPS, WORST))]


#
# The plot
#

def draw(figure, theme, data):
    """One panel for each setting: tps, max_wal_size, checkpoints; the first round."""
    conditions, first = data["conditions"], data["rounds"][0]
    runs = [run for run in first["runs"] if not run["name"].endswith(pairs.AGAIN)]
    runs.sort(key=lambda run: (run["name"] != "small", run["name"] != "large"))
    figure.set_size_inches(9, 1 + (1.9 if len(runs) <= 3 else 1.5) * len(runs))
    panels = figure.subplots(len(runs), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    top = 1.15 * max(row[1] for run in runs for row in run["rows"])
    for panel, run in zip(panels, runs):
        draw_run(panel, theme, run, top, conditions["seconds"])
    panels[-1].set_xlabel("seconds of load")
    plots.legend_below(panels[-1], 0.4)
    limited = (f"{first['storage']['asked']} writes/s" if first["storage"]["limited"]
               else "storage not limited")
    figure.suptitle(f"Transactions per second and max_wal_size ({limited}, "
                    f"checkpoint_timeout = {conditions['timeout']} s)", fontsize=11)


def draw_run(panel, theme, run, top, seconds):
    colour = theme.colour(run["name"])
    times, rates = zip(*[row[:2] for row in run["rows"]])
    panel.plot(times, rates, color=colour, linewidth=0.8, alpha=0.55)
    smooth = [(times[i + 2], statistics.fmean(rates[i:i + 5])) for i in range(len(rates) - 4)]
    panel.plot(*zip(*smooth), color=colour, linewidth=2, label="tps (5-second mean)")
    panel.set_ylim(0, top)
    panel.set_xlim(0, seconds)
    panel.set_ylabel("tps")
    panel.set_title(f"{label(run['name'])}: {tps.mean(run['rows']):.0f} tps", loc="left", color=colour,
                    fontweight="bold")
    for cause, marker in (("forced", "v"), ("timed", "o")):
        at = [c["at"] for c in run["checkpoints"] if c["cause"] == cause]
        panel.plot(at, [0.95 * top] * len(at), marker, color=theme.text, markersize=6,
                   fillstyle="full" if cause == "forced" else "none", linestyle="none",
                   label=f"checkpoint, {'forced by WAL' if cause == 'forced' else 'timed'}")
    draw_size(panel.twinx(), theme, run, seconds)


def draw_size(axis, theme, run, seconds):
    steps = [(0, run["start_mb"]), *[(at, mb) for at, mb in run["changes"] if at <= seconds]]
    steps.append((seconds, steps[-1][1]))
    axis.step(*zip(*steps), where="post", color=theme.text, linewidth=1.2, linestyle="--")
    axis.set_yscale("log", base=2)
    axis.set_ylim(64, 8192)
    axis.set_yticks([128, 512, 2048], ["128 MB", "512 MB", "2 GB"])
    axis.set_ylabel("max_wal_size (- -)")
    axis.grid(False)


PLOTS = {"dip": draw}
