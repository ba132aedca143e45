"""A simulated month of many servers with random loads, each with several policies

No real servers: the model of test/sim, on which the tests run walsizer's policy,
too, and test/sim/fleet.c, which says what the servers are like.

A hurried checkpoint is one whose writing WAL paced, so that it took less than
checkpoint_completion_target * checkpoint_timeout."""

import concurrent.futures
import csv
import io
import os
import random

from harness import server as servers
from harness.limits import at_most, none

DAYS = 30
PIECE = 50  # servers of one process
EVERY_SECOND = "walsizer, every second"
# what of the lines is kept: numbers of each server, as distributions
MEASURES = {"forced": "forced checkpoints a day",
            "share": "% of the time in intervals that WAL ended",
            "hurried": "% of the time in hurried checkpoints",
            "mean": "mean size / the oracle's",
            "peak": "largest size / the oracle's",
            "raises": "raises a day",
            "lowers": "lowerings a day"}
OF_THE_POLICY = ["mean", "peak", "raises", "lowers"]  # nothing to be said of a fixed size
PERCENTILES = range(0, 101)
SHOWN = [50, 90, 99, 100]
SECONDS = DAYS * 24 * 3600
RESAMPLES = 400  # for the intervals of what all servers have together
# walsizer's limits: shares
OLD_VALUE_HURRIED = 0.1  # of the checkpoints forced at an old value
HURRIED_OF_CLASSIC = 0.25  # time in hurried checkpoints / that of the classic rule
HURRIED_TIME = 0.003  # the same / the month, for 99 of 100 servers
NAMES = {"walsizer": "walsizer", EVERY_SECOND: EVERY_SECOND, "classic": "classic",
         "shrinking": "classic, lowering", "static": "size as found"}


def measure(bench):
    number = bench.repeated(100, 1000, 10_000)
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
        "hurried": [100 * float(line["hurried_seconds"]) / SECONDS for line in lines],
        "mean": [float(line["mean"]) / float(line["oracle"]) for line in small],
        "peak": [float(line["peak"]) / float(line["oracle"]) for line in small],
        "raises": [float(line["raises"]) / DAYS for line in lines],
        "lowers": [float(line["lowers"]) / DAYS for line in lines]}
    return {"servers": len(lines), "too_small": len(small),
            "forced": sum(int(line["forced"]) for line in lines),
            "without_forced": sum(line["forced"] == "0" for line in lines),
            "hurried_seconds": per_server(lines, "hurried_seconds"),
            "shortest": min((float(line["shortest"]) for line in lines
                             if line["forced"] != "0"), default=None),
            "old_value": old_value(lines),
            "old_value_by_target": {
                target: old_value([line for line in lines
                                   if line["completion_target"] == target])
                for target in sorted({line["completion_target"] for line in lines},
                                     reverse=True)},
            "wal_tb": sum(float(line["wal"]) for line in lines) / 1024 ** 2,
            "percentiles": {name: percentiles(some) for name, some in values.items()}}


def old_value(lines):
    """What the checkpoints cost that a statement's old value forced.  Their
    intervals are counted in checkpoint_timeout."""
    lines = [line for line in lines if line["forced_old_value"] != "0"]
    number = [int(line["forced_old_value"]) for line in lines]
    hurried = [int(line["hurried_old_value"]) for line in lines]
    return {"servers": len(lines), "forced": sum(number), "hurried": sum(hurried),
            "hurried_share": ratio(hurried, number),
            "hurried_seconds": sum(int(line["hurried_old_value_seconds"]) for line in lines),
            "interval": ratio([int(line["old_value_seconds"]) / int(line["timeout"])
                               for line in lines], number),
            "shortest": min((float(line["shortest_old_value"]) for line in lines),
                            default=None)}


def per_server(lines, column):
    return ratio([float(line[column]) for line in lines], [1] * len(lines))


def ratio(above, below):
    """Sum by sum, and its 95 % interval over random choices of as many servers."""
    if not below:
        return None
    chance = random.Random(1)
    found = []
    for _ in range(RESAMPLES):
        some = chance.choices(range(len(below)), k=len(below))
        found.append(sum(above[i] for i in some) / sum(below[i] for i in some))
    found.sort()
    return [sum(above) / sum(below), found[round(0.025 * RESAMPLES)],
            found[round(0.975 * RESAMPLES) - 1]]


def percentiles(values):
    values = sorted(values)
    return [round(values[round(percent / 100 * (len(values) - 1))], 4) for percent in PERCENTILES]


#
# The report
#

def total_row(name, one):
    without = 100 * one["without_forced"] / one["servers"]
    return [NAMES[name], one["servers"], one["too_small"], f"{without:.1f} %", one["forced"],
            one["old_value"]["forced"], with_interval(one["hurried_seconds"], "{:.0f}"),
            shown(one["shortest"], "{:.0f}"), f"{one['wal_tb']:.1f}"]


def old_value_row(name, target, one):
    share = one["hurried_share"] and [100 * part for part in one["hurried_share"]]
    return [NAMES[name], target, one["servers"], one["forced"], one["hurried"],
            with_interval(share, "{:.1f}"), one["hurried_seconds"],
            with_interval(one["interval"], "{:.2f}"), shown(one["shortest"], "{:.0f}")]


def with_interval(found, form):
    return "-" if found is None else "{} ({} - {})".format(*(form.format(part) for part in found))


def shown(value, form):
    return "-" if value is None else form.format(value)


def tables(data):
    known = {name: data["policies"][name] for name in NAMES if name in data["policies"]}
    yield (f"{data['servers']} servers, {data['days']} days; {data['beyond']} need more than "
           f"{CEILING // 1024} GB and are left out.  In brackets 95 % intervals over random "
           "choices of servers",
           ["policy", "servers", "size found too small for", "servers without forced checkpoints",
            "forced checkpoints", "of which by statements with an old value",
            "seconds in hurried checkpoints, each server", "shortest interval ended by WAL, s",
            "WAL, TB"],
           [total_row(name, one) for name, one in known.items()])
    yield ("Checkpoints that statements with an old value forced, by checkpoint_completion_target",
           ["policy", "completion target", "servers", "forced", "of which hurried",
            "% hurried", "seconds in hurried ones, all servers",
            "mean interval / checkpoint_timeout", "shortest interval, s"],
           [old_value_row(name, target, some) for name, one in known.items()
            for target, some in one["old_value_by_target"].items() if some["forced"]])
    yield ("Of the servers, so many percent have at most",
           ["measure", "policy", *(f"{percent} %" for percent in SHOWN)],
           [[what, NAMES[name], *(f"{one['percentiles'][key][percent]:.3g}"
                                  for percent in SHOWN)]
            for key, what in MEASURES.items() for name, one in known.items()
            if name != EVERY_SECOND and not (name == "static" and key in OF_THE_POLICY)])
    first, ticks = data["compared"], data["policies"][EVERY_SECOND]
    yield (f"The first {first['servers']} servers, sampled every 10 seconds and every second",
           ["sampled", "forced checkpoints", "seconds in hurried ones, each server",
            "median of mean size / oracle's", "median of raises a day"],
           [[when, one["forced"], with_interval(one["hurried_seconds"], "{:.0f}"),
             one["percentiles"]["mean"][50], one["percentiles"]["raises"][50]]
            for when, one in (("every 10 s", first), ("every second", ticks))])


def limits(data):
    walsizer, classic = data["policies"]["walsizer"], data["policies"]["classic"]
    most = HURRIED_TIME * 100
    return [none("invariant of the policy broken", len(data["broken"])),
            at_most("hurried, share of those that statements with an old value forced",
                    round((walsizer["old_value"]["hurried_share"] or [0])[0], 3),
                    OLD_VALUE_HURRIED),
            at_most("seconds in hurried checkpoints / those of the classic rule",
                    round(walsizer["hurried_seconds"][0] / classic["hurried_seconds"][0], 3),
                    HURRIED_OF_CLASSIC),
            at_most("% of the time in hurried checkpoints, 99 of 100 servers",
                    walsizer["percentiles"]["hurried"][99], most)]


# of the logarithmic axes that have a zero
THRESHOLDS = {"forced": {"linthresh": 0.1}, "hurried": {"linthresh": 0.01},
              "raises": {"linthresh": 0.1}}


def draw(figure, theme, data):
    """How many of the servers have at most so much."""
    axes = figure.subplots(2, 2).flat
    figure.set_size_inches(9, 7)
    colours = {"walsizer": theme.colour("walsizer"), "classic": theme.colour("small"),
               "shrinking": theme.colour("shrinking"), "static": theme.colour("plain")}
    for place, key in zip(axes, ("forced", "hurried", "mean", "raises")):
        for policy, colour in colours.items():
            if policy == "static" and key in OF_THE_POLICY:
                continue
            place.plot(data["policies"][policy]["percentiles"][key], PERCENTILES,
                       color=colour, label=NAMES[policy])
        place.set_xlabel(MEASURES[key])
        place.set_xscale("log" if key == "mean" else "symlog", **THRESHOLDS.get(key, {}))
        if key != "mean":
            place.set_xlim(left=0)
    for place in (axes[0], axes[2]):
        place.set_ylabel("% of the servers have at most that")
    axes[0].legend(loc="lower right")


PLOTS = {"fleet": draw}
