"""The server's own defaults under a steady load: checkpoints, WAL, throughput and latency

pgbench TPC-B as fast as it goes for two checkpoint_timeout and a little, from
max_wal_size = 1GB and checkpoint_timeout = 5min, on the plain server, with
walsizer (and each --preload), and at a static size that is large enough.  Data
is as large as shared_buffers, and four times as large.

A round takes three quarters of an hour for each of the two, so rounds add up
over several runs: see --add."""

import functools
import os
import time

from harness import fixed, limits as judge, model, pairs, tps, wal, watch

CLIENTS = 8
SAMPLED = 0.1   # of the transactions, whose latency is written down
TARGET = 0.9    # checkpoint_completion_target, the server's default
SEGMENT = 16 * model.MB
FORCED = 1      # checkpoints in a run with walsizer, in the median, at most
MOST = 1.15     # x the WAL per transaction of the static size
TABLES_MB = 15  # for each one of pgbench's scale, with the indexes

# The settings that matter.  shared_buffers is a quarter of a machine with 4 GB, and
# not of the one at hand: four times a quarter of its memory is all of it, which would
# be copied before each run.
USUAL = {"start": "1GB", "timeout": 300, "shared_buffers": 1024, "large": "16GB"}
# as small as checkpoint_timeout may be, and the others with it
TINY = {"start": "112MB", "timeout": 30, "shared_buffers": 128, "large": "2GB"}

DATA = {"1x": 1, "4x": 4}  # as many times shared_buffers


def measure(bench):
    usual = bench.pick(TINY, USUAL, USUAL)
    conditions = {**usual, "seconds": bench.seconds(40, 630, 930), "clients": CLIENTS}
    data = bench.continue_data(conditions)
    for _ in range(bench.repeated(1, 1, 5)):
        for size in sizes(bench):
            pairs.measure_round(
                bench, data, series(bench, conditions),
                lambda each, size=size: one(bench, each, conditions, DATA[size]), data=size)
            yield data


def sizes(bench):
    return bench.chosen(bench.pick(["1x"], list(DATA), list(DATA)), DATA)


def series(bench, conditions):
    start = {"max_wal_size": conditions["start"],
             "checkpoint_timeout": f"{conditions['timeout']}s",
             "shared_buffers": f"{conditions['shared_buffers']}MB"}
    return [pairs.Series("plain", bench.plain, start),
            *(pairs.Series(subject.name, subject, start) for subject in bench.subjects),
            pairs.Series("static", bench.plain, {**start, "max_wal_size": conditions["large"]})]


def one(bench, each, conditions, times):
    """One server, once.  The load begins with a checkpoint, so that the timer has the
    same phase in all runs, and when what the copy of the data left to write is written."""
    scale = round(times * conditions["shared_buffers"] / TABLES_MB)
    with bench.server(each.subject, each.settings, scale) as server:
        server.psql("SELECT count(*) FROM pgbench_accounts")
        os.sync()
        series_ = watch.Series(server)
        series_.start()
        time.sleep(2)
        server.psql("CHECKPOINT")
        run = {"scale": scale, **load(server, conditions["seconds"])}
        time.sleep(2)  # for the last row of the series
        series_.stop()
        log = watch.read_log(server.log, series_.rows[0][0])
        history = (server.rows("walsizer_history ORDER BY id")
                   if each.subject.library == "walsizer" else [])
    return {**run, **course(run, series_, *log), "history": history, "settings": server.settings}


def load(server, seconds):
    """pgbench, and what it cost."""
    before = fixed.wal_statistics(server)
    with tps.Pgbench(server, f"--client={CLIENTS}", "--jobs=2", "--protocol=prepared",
                     f"--time={seconds}", f"--sampling-rate={SAMPLED}", *tps.LOGGED) as pgbench:
        rows = pgbench.wait()
    after = fixed.wal_statistics(server)
    return {"began": rows[0][0] - 1, "ended": rows[-1][0],
            "tps": round(pgbench.mean, 1), "transactions": pgbench.transactions,
            "rates": [round(rate) for _, rate, _ in rows],
            "p99": tps.percentile([ms for _, ms in tps.latencies()], 99),
            "wal_mb": round((after["lsn"] - before["lsn"]) / model.MB, 1),
            "fpi": after["wal_fpi"] - before["wal_fpi"]}


def course(run, series_, checkpoints, changes):
    """Sizes, checkpoints and the WAL between them, in seconds of the load."""
    began = run["began"]
    within = [c for c in checkpoints if began <= c.at <= run["ended"]]
    return {**{cause: sum(c.cause == cause for c in within)
               for cause in ("forced", "timed", "other")},
            "start_mb": series_.rows[0][3], "final_mb": series_.rows[-1][3],
            "changes": [(round(at - began, 2), mb) for at, mb in changes],
            "checkpoints": [{**vars(c), "at": round(c.at - began, 2)} for c in within],
            "saw": wal.saw_tooth(series_.rows, [c.at for c in checkpoints], began, run["ended"])}


#
# What comes of it
#

def size_over_needed(run):
    """max_wal_size at the end over the smallest that would have forced nothing; None if a
    checkpoint was forced, because the WAL since it began would have been more."""
    if run["forced"]:
        return None
    most = max(mb for _, mb, _ in run["saw"])
    return run["final_mb"] / model.size_for(most * model.MB, SEGMENT, TARGET)


FIGURES = [
    pairs.Figure("forced checkpoints", lambda run: run["forced"], 0),
    pairs.Figure("WAL per transaction, kB",
                 lambda run: 1024 * run["wal_mb"] / run["transactions"], 1),
    pairs.Figure("tps", lambda run: run["tps"], 0, pairs.RATE),
    pairs.Figure("99 % latency, ms", lambda run: run["p99"], 1, pairs.RATE),
]
# Who does more transactions writes more WAL: the amounts are shown, not compared.
SHOWN = [FIGURES[0], pairs.Figure("timed checkpoints", lambda run: run["timed"], 0),
         *FIGURES[1:], pairs.Figure("WAL, MB", lambda run: run["wal_mb"], 0),
         pairs.Figure("page images", lambda run: run["fpi"], 0),
         pairs.Figure("max_wal_size at the end, MB", lambda run: run["final_mb"], 0),
         pairs.Figure("times the size needed", size_over_needed, 2)]


def compared(rounds):
    of_plain = pairs.against(rounds, "plain")
    return of_plain + [(name, "static") for name, _ in of_plain if name != "static"]


def label(conditions, name):
    if name == "static":
        return f"static {conditions['large']}"
    return f"{name}{', ' if name == 'plain' else ', from '}{conditions['start']}"


def tables(data):
    conditions = data["conditions"]
    for size in DATA:
        rounds = pairs.rounds_of(data, data=size)
        if not rounds:
            continue
        yield from pairs.tables(
            f"Data {size} shared_buffers ({conditions['shared_buffers']} MB, scale "
            f"{rounds[0]['runs'][0]['scale']}), checkpoint_timeout = {conditions['timeout']} s, "
            f"pgbench TPC-B, {conditions['clients']} clients, {conditions['seconds']} s",
            rounds, SHOWN, compared(rounds), FIGURES, functools.partial(label, conditions))
    yield pairs.machines(data["rounds"], "data")


def limits(data):
    kept = []
    for size in DATA:
        rounds = pairs.rounds_of(data, data=size)
        if not pairs.ratios(rounds, FIGURES[0], "walsizer", "static"):
            continue
        kept += [judge.at_most(f"data {size}: forced checkpoints with walsizer, median,",
                               pairs.median(rounds, FIGURES[0], "walsizer"), FORCED),
                 judge.at_most(f"data {size}: WAL per transaction / that of the static size, "
                               "median,", round(pairs.median_ratio(
                                   rounds, FIGURES[1], "walsizer", "static"), 3), MOST)]
    return kept


#
# The plot
#

def draw(figure, theme, data):
    """The saw-tooth of the first round: the plain server left, walsizer right."""
    first = data["rounds"][0]
    runs = [run for name in ("plain", "walsizer") for run in first["runs"] if run["name"] == name]
    figure.set_size_inches(7, 3)  # 300 pixels high, and to be read on a phone
    panels = figure.subplots(1, len(runs), sharex=True, sharey=True, squeeze=False)[0]
    for panel, run in zip(panels, runs):
        draw_run(panel, theme, run, data["conditions"],
                 "plain server" if run["name"] == "plain" else f"with {run['name']}")
    panels[0].set_ylim(bottom=0)
    panels[0].set_ylabel("GB")
    panels[0].legend(loc="upper left", fontsize=10)
    quick = "quick run, " if data["conditions"]["mode"] == "quick" else ""
    figure.suptitle(f"WAL since the last checkpoint ({quick}pgbench TPC-B, "
                    f"checkpoint_timeout = {minutes(data['conditions']['timeout'])})", fontsize=11)


def minutes(seconds):
    return f"{seconds // 60} minutes" if seconds % 60 == 0 else f"{seconds} s"


def draw_run(panel, theme, run, conditions, title):
    """WAL since the last checkpoint, the trigger point as a line, forced checkpoints as
    crosses, and a tick for each checkpoint_timeout."""
    colour = theme.colour(run["name"])
    times, since, sizes_ = zip(*run["saw"])
    trigger = [model.trigger_point(mb, SEGMENT, TARGET) / model.MB / 1024 for mb in sizes_]
    panel.fill_between(times, [mb / 1024 for mb in since], color=colour, alpha=0.25, linewidth=0)
    panel.plot(times, [mb / 1024 for mb in since], color=colour, linewidth=1.2)
    panel.step(times, trigger, where="post", color=theme.text, linewidth=1.2, linestyle="--",
               label="trigger point")
    forced = [c["at"] for c in run["checkpoints"] if c["cause"] == "forced"]
    panel.plot(forced, [tooth_at(run["saw"], at) / 1024 for at in forced], "x",
               color=theme.colour("small"), markersize=5, markeredgewidth=1.5, label="forced checkpoint")
    timeout = conditions["timeout"]
    panel.set_xlim(0, conditions["seconds"])
    panel.set_xticks(range(0, int(conditions["seconds"]) + 1, timeout))
    panel.set_xticklabels([f"{at // 60} min" if timeout % 60 == 0 else f"{at} s"
                           for at in range(0, int(conditions["seconds"]) + 1, timeout)])
    panel.grid(axis="x", color=theme.text, alpha=0.25)
    panel.set_title(f"{title}: {run['forced']} forced, {run['timed']} timed", loc="left",
                    color=colour, fontweight="bold", fontsize=11)


def tooth_at(saw, at):
    """The top of the tooth that ended then, MB: the largest within three seconds before."""
    return max((mb for time_, mb, _ in saw if at - 3 <= time_ <= at + 0.5), default=0)


PLOTS = {"defaults": draw}
