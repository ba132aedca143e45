"""Transactions per second over a sweep of max_wal_size, and the size that walsizer chooses

The same load on servers that differ in max_wal_size only, and on one that walsizer
(and each --preload) sizes, beginning with the smallest.

Rounds add up over several runs: see --add."""

import math
import pathlib
import shutil
import statistics

from harness import fixed, model, pairs, server as servers, sysbench, tps, watch

TIMEOUT = 30  # checkpoint_timeout, s
CLIENTS = 8
TABLES = 4  # sysbench's


#
# The loads: what prepares a template, and what runs
#

class Pgbench:
    name = "pgbench TPC-B"

    def __init__(self, bench):
        self.scale = bench.pick(20, 50, 50)

    def run(self, server, seconds):
        with tps.Pgbench(server, f"--client={CLIENTS}", "--jobs=2", f"--time={seconds}",
                         "--protocol=prepared") as pgbench:
            return [rate for _, rate, _ in pgbench.wait()]


class Sysbench:
    name = "sysbench oltp_write_only"
    scale = "sysbench"  # the template's name

    def __init__(self, bench):
        self.rows = bench.pick(50_000, 200_000, 200_000)
        self._make_template(bench)

    def _make_template(self, bench):
        """As harness.server.make_template() does it for pgbench's tables."""
        template = pathlib.Path(f"template-{self.scale}")
        if template.exists():
            return
        roomy = {"max_wal_size": "16GB", "checkpoint_timeout": "1h", "fsync": "off"}
        with bench.server(bench.plain, roomy) as server:
            sysbench.prepare(server, TABLES, self.rows)
            server.psql("VACUUM ANALYZE")
        server.data.rename(template)
        shutil.copy("template-0/postgresql.conf", template)

    def run(self, server, seconds):
        return sysbench.run(server, TABLES, self.rows, CLIENTS, seconds)


LOADS = {"pgbench": Pgbench, "sysbench": Sysbench}


#
# The measurement
#

def measure(bench):
    conditions = {"timeout": TIMEOUT, "clients": CLIENTS, "seconds": bench.seconds(8, 60, 60),
                  "sizes": bench.pick([4096, 64, 512], [4096, 64, 256, 1024],
                                      [4096, 64, 256, 1024])}
    data = bench.continue_data(conditions)
    loads = [LOADS[name](bench) for name in bench.chosen(list(LOADS), LOADS)]
    for _ in range(bench.repeated(1, 1, 5)):
        for load in loads:
            pairs.measure_round(
                bench, data, series(bench, conditions["sizes"]),
                lambda each, load=load: one(bench, each, load, conditions["seconds"]),
                load=load.name)
            yield data


def series(bench, sizes):
    """The largest size first, with which the others are compared."""
    def of(name, subject, size):
        return pairs.Series(name, subject, {"max_wal_size": f"{size}MB",
                                            "checkpoint_timeout": f"{TIMEOUT}s"})

    return [*(of(f"{size} MB", bench.plain, size) for size in sizes),
            *(of(subject.name, subject, min(sizes)) for subject in bench.subjects)]


def one(bench, each, load, seconds):
    """One server, once."""
    with bench.server(each.subject, each.settings, load.scale) as server:
        servers.settle()
        rows = watch.Series(server)
        rows.start()
        rates = load.run(server, seconds)
        rows.stop()
        checkpoints, changes = watch.read_log(server.log, rows.rows[0][0])
    (_, first, _, start_mb), (_, last, _, final_mb) = rows.rows[0], rows.rows[-1]
    return {"rates": rates, "wal_mb": (last - first) / model.MB, "start_mb": start_mb,
            "final_mb": final_mb, "raises": len(changes),
            "checkpoints": [vars(c) for c in checkpoints], "settings": server.settings}


#
# What comes of it
#

def lowest(rates):
    """The mean of the lowest 1 % of the seconds, one at least."""
    return statistics.fmean(sorted(rates)[:math.ceil(len(rates) / 100)])


TPS = pairs.Figure("tps", lambda run: statistics.fmean(run["rates"]), 0, pairs.RATE)
DEVIATION = pairs.Figure("standard deviation", lambda run: statistics.pstdev(run["rates"]), 0,
                         pairs.RATE)
LOWEST = pairs.Figure("lowest 1 %", lambda run: lowest(run["rates"]), 0, pairs.RATE)
FINAL = pairs.Figure("max_wal_size at the end, MB", lambda run: run["final_mb"], 0)
COMPARED = [TPS, LOWEST,
            pairs.Figure("WAL per transaction, kB",
                         lambda run: 1024 * run["wal_mb"] / sum(run["rates"]), 1),
            pairs.Figure("forced checkpoints", lambda run: fixed.count(run, "forced"), 0)]
SHOWN = [TPS, DEVIATION, *COMPARED[1:],
         pairs.Figure("timed", lambda run: fixed.count(run, "timed"), 0), FINAL]


def base(data):
    return f"{data['conditions']['sizes'][0]} MB"


def is_static(data, name):
    return name in [f"{size} MB" for size in data["conditions"]["sizes"]]


def tables(data):
    conditions = data["conditions"]

    def label(name):
        return name if is_static(data, name) else f"{name}, from {min(conditions['sizes'])} MB"

    for load in dict.fromkeys(each["load"] for each in data["rounds"]):
        rounds = pairs.rounds_of(data, load=load)
        yield from pairs.tables(
            f"{load}, {conditions['clients']} clients, {conditions['seconds']} s, "
            f"checkpoint_timeout = {conditions['timeout']} s", rounds, SHOWN,
            pairs.against(rounds, base(data)), COMPARED, label)
    yield pairs.machines(data["rounds"], "load")


def limits(_data):
    """None: where on the curve a load's best size lies differs from machine to
    machine."""
    return []


def draw(figure, theme, data):
    loads = list(dict.fromkeys(each["load"] for each in data["rounds"]))
    axes = figure.subplots(1, len(loads), squeeze=False)[0]
    for place, load in zip(axes, loads):
        draw_load(place, theme, data, pairs.rounds_of(data, load=load))
        place.set_title(load)
        place.set_xscale("log", base=2)
        place.set_ylim(bottom=0)
        place.set_xlabel("max_wal_size, MB")
        place.xaxis.set_major_formatter("{x:.0f}")
    axes[0].set_ylabel("transactions per second, median of the rounds")
    axes[0].legend(loc="best")


def draw_load(axes, theme, data, rounds):
    def points(names):
        return [[pairs.median(rounds, figure, name) for name in names]
                for figure in (FINAL, TPS, DEVIATION, LOWEST)]

    names = pairs.series_of(rounds)
    static = [name for name in names if is_static(data, name)]
    others = [([name], name, "*", f"{name}, at the size it chose")
              for name in names if name not in static]
    for which, kind, marker, label in [
            (static, "plain", "o", "static size: mean, standard deviation"), *others]:
        at, mean, deviation, low = points(which)
        colour = theme.colour(kind)
        axes.errorbar(at, mean, deviation, fmt=marker, color=colour, capsize=3, label=label,
                      markersize=13 if marker == "*" else 6)
        axes.plot(at, low, "v", color=theme.colour("small") if which is static else colour,
                  label="lowest 1 % of the seconds" if which is static else None)


PLOTS = {"sweep": draw}
