"""A simulated month of many servers with random loads, each with several policies

No real servers: the model of test/sim, on which the tests run walsizer's policy,
too, and test/sim/fleet.c, which says what the servers are like."""

import concurrent.futures
import csv
import io
import os

from harness import server as servers
from harness.limits import none

DAYS = 30
PIECE = 50  # servers of one process
EVERY_SECOND = "walsizer, every second"
# what of the lines is kept: numbers of each server, as distributions
MEASURES = {"forced": "forced checkpoints a day",
            "share": "% of the time in intervals that WAL ended",
            "mean": "mean size / the oracle's",
            "peak": "largest size / the oracle's",
            "raises": "raises a day",
            "lowers": "lowerings a day"}
OF_THE_POLICY = ["mean", "peak", "raises", "lowers"]  # nothing to be said of a fixed size
PERCENTILES = range(0, 101)
SHOWN = [50, 90, 99, 100]
NAMES = {"walsizer": "walsizer", EVERY_SECOND: EVERY_SECOND, "classic": "classic",
         "shrinking": "classic, lowering", "static": "size as found"}


def measure(bench):
    number = bench.pick(100, 1000, 10_000)
    exact = bench.pick(10, 50, 200)  # these with walsizer's default interval too
    servers.run("building the simulator", ["make", "-C", bench.sources / "test",
                                           "--no-print-directory", "fleet"])
    program = bench.sources / "test" / "build" / "walsizer_fleet"
    bench.say(f"{number} servers for {DAYS} days")
    lines = run(program, number, [])
    bench.say(f"{exact} of them every second")
    every_second = run(program, exact, ["--interval=1000", "--only-walsizer"])
    for line in every_second:
        line["policy"] = EVERY_SECOND
    held = [line for line in lines + every_second if can_be_held(line)]
    return {"days": DAYS, "servers": number, "beyond": number - len(by_policy(held)["walsizer"]),
            "broken": [f"server {line['server']}: {line['broken']}"
                       for line in lines + every_second if line["broken"]],
            "policies": {policy: distributions(some) for policy, some in by_policy(held).items()},
            # what the first servers would have had without those ticks
            "compared": distributions([line for line in by_policy(held)["walsizer"]
                                       if int(line["server"]) < exact])}


def run(program, number, options):
    """Lines of the simulator, from as many processes as there are cores."""
    def piece(first):
        out = servers.run("the simulator", [
            "nice", program.resolve(), f"--first={first}",
            f"--servers={min(PIECE, number - first)}", f"--days={DAYS}", *options])
        return list(csv.DictReader(io.StringIO(out)))

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return [line for lines in pool.map(piece, range(0, number, PIECE)) for line in lines]


CEILING = 64 * 1024  # MB, of all policies


def can_be_held(line):
    """By any size that the policies may set."""
    return int(line["oracle"]) <= CEILING


def by_policy(lines):
    policies = {}
    for line in lines:
        policies.setdefault(line["policy"], []).append(line)
    return policies


def distributions(lines):
    """Of each measure the percentiles; of all servers together the sums.  How
    large the size is is asked of those for which the size found was too small."""
    small = [line for line in lines if int(line["oracle"]) > int(line["from"])]
    values = {
        "forced": [float(line["forced"]) / DAYS for line in lines],
        "share": [100 * float(line["share"]) for line in lines],
        "mean": [float(line["mean"]) / float(line["oracle"]) for line in small],
        "peak": [float(line["peak"]) / float(line["oracle"]) for line in small],
        "raises": [float(line["raises"]) / DAYS for line in lines],
        "lowers": [float(line["lowers"]) / DAYS for line in lines]}
    return {"servers": len(lines), "too_small": len(small),
            "forced": sum(int(line["forced"]) for line in lines),
            "stale": sum(int(line["stale"]) for line in lines),
            "without_forced": sum(line["forced"] == "0" for line in lines),
            "wal_tb": sum(float(line["wal"]) for line in lines) / 1024 ** 2,
            "percentiles": {name: percentiles(some) for name, some in values.items()}}


def percentiles(values):
    values = sorted(values)
    return [round(values[round(percent / 100 * (len(values) - 1))], 4) for percent in PERCENTILES]


#
# The report
#

def total_row(name, one):
    without = 100 * one["without_forced"] / one["servers"]
    return [NAMES[name], one["servers"], one["too_small"], f"{without:.1f} %", one["forced"],
            one["stale"], f"{one['wal_tb']:.1f}"]


def tables(data):
    known = {name: data["policies"][name] for name in NAMES if name in data["policies"]}
    yield (f"{data['servers']} servers, {data['days']} days; {data['beyond']} need more than "
           f"{CEILING // 1024} GB and are left out",
           ["policy", "servers", "size found too small for", "servers without forced checkpoints",
            "forced checkpoints", "of which by statements with an old value", "WAL, TB"],
           [total_row(name, one) for name, one in known.items()])
    yield ("Of the servers, so many percent have at most",
           ["measure", "policy", *(f"{percent} %" for percent in SHOWN)],
           [[what, NAMES[name], *(f"{one['percentiles'][key][percent]:.3g}"
                                  for percent in SHOWN)]
            for key, what in MEASURES.items() for name, one in known.items()
            if name != EVERY_SECOND and not (name == "static" and key in OF_THE_POLICY)])
    first, ticks = data["compared"], data["policies"][EVERY_SECOND]
    yield (f"The first {first['servers']} servers, sampled every 10 seconds and every second",
           ["sampled", "forced checkpoints", "median of mean size / oracle's",
            "median of raises a day"],
           [["every 10 s", first["forced"], first["percentiles"]["mean"][50],
             first["percentiles"]["raises"][50]],
            ["every second", ticks["forced"], ticks["percentiles"]["mean"][50],
             ticks["percentiles"]["raises"][50]]])


def limits(data):
    return [none("invariant of the policy broken", len(data["broken"]))]


def draw(figure, theme, data):
    """How many of the servers have at most so much."""
    axes = figure.subplots(1, 3)
    colours = {"walsizer": theme.colour("walsizer"), "classic": theme.colour("small"),
               "shrinking": theme.colour("shrinking"), "static": theme.colour("plain")}
    for place, key in zip(axes, ("forced", "mean", "raises")):
        for policy, colour in colours.items():
            if policy == "static" and key in OF_THE_POLICY:
                continue
            place.plot(data["policies"][policy]["percentiles"][key], PERCENTILES,
                       color=colour, label=NAMES[policy])
        place.set_xlabel(MEASURES[key])
    axes[0].set_xscale("symlog", linthresh=0.1)
    axes[0].set_xlim(left=0)
    axes[1].set_xscale("log")
    axes[2].set_xscale("symlog", linthresh=0.1)
    axes[2].set_xlim(left=0)
    axes[0].set_ylabel("% of the servers have at most that")
    axes[0].legend(loc="lower right")


PLOTS = {"fleet": draw}
