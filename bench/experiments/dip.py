"""Transactions per second through a forced checkpoint, on slow storage.

pgbench TPC-B with data in memory, on a volume that writes no faster than cloud
storage of the smaller kind: with a small max_wal_size, with a large one, and
with walsizer (and each --preload), which starts from the small one."""

import statistics
import time

from harness import limits as judge, model, storage, tps, watch

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
    return measure_variant(bench, IN_MEMORY, bench.repeated(1, 2, 3))


def measure_variant(bench, variant, repetitions):
    timeout = bench.pick(30, 60, 120)
    seconds = bench.seconds(40, 120, 300)
    data = {"timeout": timeout, "seconds": seconds, "clients": CLIENTS,
            "storage": bench.storage.measure(WRITES), "variants": []}
    runs = []
    for number in range(repetitions):
        for kind, subject, size in series_of(bench):
            bench.say(f"{variant[0]}, {kind}, run {number + 1}")
            runs.append({"kind": kind, "start": size, "run": number + 1,
                         **one(bench, subject, size, variant, timeout, seconds)})
    data["variants"].append({"name": variant[0], "scale": variant[1],
                             "shared_buffers": variant[2], "runs": runs})
    return data


def series_of(bench):
    """In turns, so that what the machine does meanwhile hits all alike."""
    yield "small", bench.plain, SMALL
    yield "large", bench.plain, LARGE
    for subject in bench.subjects:
        yield subject.name, subject, SMALL


def one(bench, subject, size, variant, timeout, seconds):
    """One server, once."""
    _, scale, shared_buffers = variant
    settings = {"max_wal_size": size, "checkpoint_timeout": f"{timeout}s",
                "shared_buffers": shared_buffers}
    with bench.server(subject, settings, scale, bench.storage.place) as server:
        started = time.time()
        # the tables in the cache, as on a server that has been running
        server.psql("SELECT count(*) FROM pgbench_accounts")
        bench.storage.limit(WRITES)
        try:
            time.sleep(max(0, started + START - time.time()))
            series = watch.Series(server)
            series.start()
            with tps.Pgbench(server, f"--client={CLIENTS}", "--jobs=2", f"--time={seconds}",
                             "--protocol=prepared") as pgbench:
                rows = pgbench.wait()
            series.stop()
            history = (server.rows("walsizer_history ORDER BY id")
                       if subject.library == "walsizer" else [])
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
        return None
    first = any_[0]
    before = tps.mean([row for row in run["rows"] if row[0] <= first])
    after = tps.worst([row for row in run["rows"] if row[0] > first])
    return first, before, after


def count(run, cause):
    return sum(c["cause"] == cause for c in run["checkpoints"])


HEADING = ["setting", "run", "tps mean", "sd", "worst 5 s", "first checkpoint",
           "mean before", "worst 5 s after", "forced", "timed", "WAL, MB", "max_wal_size"]


def row_of(run):
    cells = [label(run), run["run"], f"{tps.mean(run['rows']):.0f}",
             f"{statistics.pstdev(row[1] for row in run['rows']):.0f}",
             f"{tps.worst(run['rows']):.0f}"]
    split = before_and_after(run)
    if split and None not in split:
        kind = "forced" if count(run, "forced") else "timed"
        cells += [f"{split[0]:.0f} s, {kind}", f"{split[1]:.0f}",
                  f"{split[2]:.0f} ({100 * split[2] / split[1]:.0f} %)"]
    else:
        cells += ["-", "-", "-"]
    size = (f"{run['start_mb']} MB" if run["start_mb"] == run["final_mb"]
            else f"{run['start_mb']} -> {run['final_mb']} MB")
    return cells + [count(run, "forced"), count(run, "timed"), f"{run['wal_mb']:.0f}", size]


def label(run):
    return {"small": SMALL, "large": LARGE}.get(run["kind"], f"{run['kind']}, from {SMALL}")


def tables(data):
    for variant in data["variants"]:
        yield (f"{variant['name'].capitalize()} (scale {variant['scale']}, shared_buffers = "
               f"{variant['shared_buffers']}), {data['clients']} clients, checkpoint_timeout = "
               f"{data['timeout']} s, {data['seconds']} s of load. "
               + storage.describe(data["storage"]), HEADING,
               [row_of(run) for run in variant["runs"]])


def of_kind(variant, kind, figure):
    return statistics.median(figure(run["rows"]) for run in variant["runs"]
                             if run["kind"] == kind)


def limits(data):
    kept = []
    for variant in data["variants"]:
        if any(run["kind"] == "walsizer" for run in variant["runs"]):
            for what, figure, least in (("mean tps", tps.mean, MEAN),
                                        ("worst 5-second mean", tps.worst, WORST)):
                ratio = of_kind(variant, "walsizer", figure) / of_kind(variant, "large", figure)
                kept.append(judge.at_least(f"{variant['name']}: {what} / that of {LARGE}",
                                           round(ratio, 3), least))
    return kept


#
# The plot
#

def draw(figure, theme, data):
    """One panel for each setting: tps, max_wal_size, checkpoints."""
    variant = data["variants"][0]
    first = [run for run in variant["runs"] if run["run"] == 1]
    first.sort(key=lambda run: (run["kind"] != "small", run["kind"] != "large"))
    figure.set_size_inches(9, 1 + (1.9 if len(first) <= 3 else 1.5) * len(first))
    panels = figure.subplots(len(first), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    top = 1.15 * max(row[1] for run in first for row in run["rows"])
    for panel, run in zip(panels, first):
        draw_run(panel, theme, run, top, data["seconds"])
    panels[-1].set_xlabel("seconds of load")
    limited = (f"{data['storage']['asked']} writes/s" if data["storage"]["limited"]
               else "storage not limited")
    figure.suptitle(f"Transactions per second and max_wal_size ({limited}, "
                    f"checkpoint_timeout = {data['timeout']} s)", fontsize=11)


def draw_run(panel, theme, run, top, seconds):
    colour = theme.colour(run["kind"])
    times, rates = zip(*[row[:2] for row in run["rows"]])
    panel.plot(times, rates, color=colour, linewidth=0.8, alpha=0.55)
    smooth = [(times[i + 2], statistics.fmean(rates[i:i + 5])) for i in range(len(rates) - 4)]
    panel.plot(*zip(*smooth), color=colour, linewidth=2, label="tps (5-second mean)")
    panel.set_ylim(0, top)
    panel.set_xlim(0, seconds)
    panel.set_ylabel("tps")
    panel.set_title(f"{label(run)}: {tps.mean(run['rows']):.0f} tps", loc="left", color=colour,
                    fontweight="bold")
    for cause, marker in (("forced", "v"), ("timed", "o")):
        at = [c["at"] for c in run["checkpoints"] if c["cause"] == cause]
        panel.plot(at, [0.95 * top] * len(at), marker, color=theme.text, markersize=6,
                   fillstyle="full" if cause == "forced" else "none", linestyle="none",
                   label=f"checkpoint, {'forced by WAL' if cause == 'forced' else 'timed'}")
    draw_size(panel.twinx(), theme, run, seconds)
    panel.legend(loc="lower right", ncols=3, fontsize=8)


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
