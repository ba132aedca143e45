"""Transactions per second over a sweep of max_wal_size, and the size that walsizer chooses

The same load on servers that differ in max_wal_size only, and on one that walsizer
sizes, beginning with the smallest."""

import math
import pathlib
import shutil
import statistics
import time

from harness import model, sysbench, tps, watch

TIMEOUT = 30  # checkpoint_timeout, s
CLIENTS = 8
TABLES = 4  # sysbench's


def sizes(bench):
    """MB."""
    return bench.pick([64, 512, 4096], [64, 256, 512, 1024, 4096],
                      [64, 128, 256, 512, 1024, 2048, 4096, 8192])


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
        self.rows = bench.pick(50_000, 200_000, 500_000)
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


#
# The measurement
#

class Seconds:
    """Transactions of each second, and what they come to."""

    def __init__(self, rates):
        self.rates = rates
        self.mean = round(statistics.fmean(rates), 1)
        self.deviation = round(statistics.pstdev(rates), 1)
        slow = sorted(rates)[:math.ceil(len(rates) / 100)]
        self.lowest = round(statistics.fmean(slow), 1)  # 1 %, one at least


def measure(bench):
    data = {"timeout": TIMEOUT, "clients": CLIENTS, "seconds": bench.seconds(8, 45, 300),
            "loads": {}}
    for load in (Pgbench(bench), Sysbench(bench)):
        runs = data["loads"][load.name] = []
        for number in range(bench.repeated(1, 1, 1)):
            # there and back: what the machine does meanwhile is not to look like size
            for size in sizes(bench)[::-1 if number % 2 else 1]:
                bench.say(f"{load.name} at {size} MB")
                runs.append(run(bench, load, bench.plain, size, data["seconds"]))
            for subject in bench.subjects:
                bench.say(f"{load.name} with {subject.name}")
                runs.append(run(bench, load, subject, sizes(bench)[0], data["seconds"]))
    return data


def run(bench, load, subject, size, seconds):
    settings = {"checkpoint_timeout": f"{TIMEOUT}s", "max_wal_size": f"{size}MB"}
    began = time.time()
    with bench.server(subject, settings, load.scale) as server:
        series = watch.Series(server)
        series.start()
        time.sleep(2)
        rates = load.run(server, seconds)
        series.stop()
        checkpoints, changes = watch.read_log(server.log, began)
    lsn = [row[1] for row in series.rows]
    return {"preloaded": subject.name, "from": size, "to": changes[-1][1] if changes else size,
            "raises": len(changes), "tps": Seconds(rates),
            "wal_mb": (lsn[-1] - lsn[0]) // model.MB,
            "forced": sum(c.cause == "forced" for c in checkpoints),
            "timed": sum(c.cause == "timed" for c in checkpoints),
            "sizes": [row[3] for row in series.rows]}


#
# The report
#

HEADING = ["max_wal_size, MB", "tps", "standard deviation", "lowest 1 %", "of the best static",
           "WAL, MB", "WAL per transaction, kB", "forced", "timed"]


def label(one):
    if one["preloaded"] == "plain":
        return str(one["from"])
    return f"{one['preloaded']}: {one['from']} -> {one['to']}"


def best_static(runs):
    return max(one["tps"]["mean"] for one in runs if one["preloaded"] == "plain")


def row(one, runs):
    rates = one["tps"]
    return [label(one), f"{rates['mean']:.0f}", f"{rates['deviation']:.0f}",
            f"{rates['lowest']:.0f}", f"{rates['mean'] / best_static(runs):.2f}", one["wal_mb"],
            f"{1024 * one['wal_mb'] / sum(rates['rates']):.1f}", one["forced"], one["timed"]]


def tables(data):
    return [(f"{name}, {data['clients']} clients, {data['seconds']} s, checkpoint_timeout = "
             f"{data['timeout']}s", HEADING, [row(one, runs) for one in runs])
            for name, runs in data["loads"].items()]


def limits(_data):
    """None: where on the curve a load's best size lies differs from machine to
    machine."""
    return []


def draw(figure, theme, data):
    axes = figure.subplots(1, len(data["loads"]))
    for place, (name, runs) in zip(axes, data["loads"].items()):
        draw_load(place, theme, runs)
        place.set_title(name)
        place.set_xscale("log", base=2)
        place.set_ylim(bottom=0)
        place.set_xlabel("max_wal_size, MB")
        place.xaxis.set_major_formatter("{x:.0f}")
    axes[0].set_ylabel("transactions per second")
    axes[0].legend(loc="best")


def draw_load(axes, theme, runs):
    static = [one for one in runs if one["preloaded"] == "plain"]
    colour = theme.colour("plain")
    at = [one["from"] for one in static]
    axes.errorbar(at, [one["tps"]["mean"] for one in static],
                  [one["tps"]["deviation"] for one in static], fmt="o", color=colour,
                  capsize=3, label="static size: mean, standard deviation")
    axes.plot(at, [one["tps"]["lowest"] for one in static], "v", color=theme.colour("small"),
              label="lowest 1 % of the seconds")
    for one in runs:
        if one["preloaded"] != "plain":
            colour = theme.colour(one["preloaded"])
            axes.errorbar([one["to"]], [one["tps"]["mean"]], [one["tps"]["deviation"]], fmt="*",
                          markersize=13, color=colour, capsize=3,
                          label=f"{one['preloaded']}, at the size it chose")
            axes.plot([one["to"]], [one["tps"]["lowest"]], "v", color=colour)


PLOTS = {"sweep": draw}
