"""Series that are measured in turns, and what can be said of them in pairs.

A round measures each series once, and the first, with which the others are
compared, once more at the other end: what these two differ by, between which
nothing was changed, is the machine's noise.  Every second round goes backwards
(A B C A', then A' C B A), so that a machine that becomes slower favours none.
Only runs of the same round are compared."""

import math
import os
import statistics
import time
from typing import Callable, NamedTuple

from harness import results

AGAIN = " again"  # after the name of the first series, for its second run
COVERAGE = 0.95   # of the intervals, where there are pairs enough

RATE, AMOUNT = 5, 3  # pairs before a time or a rate, or an amount of something, is judged


class Series(NamedTuple):
    name: str
    subject: object  # what is preloaded, a harness.experiment.Subject
    settings: dict


class Figure(NamedTuple):
    """What is compared: of(run) is a number, or None where there is none."""
    name: str
    of: Callable
    digits: int
    pairs: int = AMOUNT

    def text(self, value):
        return f"{value:.{self.digits}f}"


#
# Measuring
#

def in_turn(series, number):
    """The runs of a round; rounds are numbered from 1."""
    turn = [*series, series[0]._replace(name=series[0].name + AGAIN)]
    return turn if number % 2 else turn[::-1]


def rounds_of(data, /, **part):
    """The rounds so far that measured that part of the experiment, such as load="8"."""
    return [each for each in data["rounds"] if part.items() <= each.items()]


def measure_round(bench, data, series, one, /, **part):
    """Add a round to those so far: what one(series) says of each, and what it was
    measured on.  Returns it."""
    number = 1 + len(rounds_of(data, **part))
    about = {**part, "number": number, "begun": results.now(),
             "command": bench.options.command, "revision": bench.options.revision,
             "machine": results.machine(), "server": bench.installation.version()}
    began = time.monotonic()
    runs = []
    for each in in_turn(series, number):
        bench.say(" ".join([*part.values(), f"round {number}, {each.name}"]))
        runs.append({"name": each.name, **one(each)})
    data["rounds"].append({**about, "seconds": round(time.monotonic() - began),
                           "load_average_after": os.getloadavg(), "runs": runs})
    return data["rounds"][-1]


def names_of(rounds):
    """Of the series as they were measured, the base first."""
    found = [run["name"] for each in rounds if each["number"] % 2 for run in each["runs"]]
    return list(dict.fromkeys(found))


def series_of(rounds):
    """The same without the second run of the base."""
    return [name for name in names_of(rounds) if not name.endswith(AGAIN)]


def against(rounds, base):
    """What comparisons() takes: each other series with that one."""
    return [(name, base) for name in series_of(rounds) if name != base]


#
# Statistics
#

class Interval(NamedTuple):
    low: float
    high: float
    coverage: float  # the probability that the median lies between them

    def __contains__(self, value):
        return self.low <= value <= self.high


def interval(values, wanted=COVERAGE):
    """Where the median of what the values are samples of lies, whatever their
    distribution: so many of them lie below it as heads come up in so many throws.

    The narrowest two of the values that cover it with the probability that is
    wanted; where there are too few for that, smallest and largest."""
    values = sorted(values)
    number, cut, outside = len(values), 0, 2 * 0.5 ** len(values)
    while cut + 1 < number - cut - 1:
        more = outside + 2 * math.comb(number, cut + 1) * 0.5 ** number
        if more > 1 - wanted:
            break
        cut, outside = cut + 1, more
    return Interval(values[cut], values[-1 - cut], 1 - outside)


def ratio(value, base):
    """Nothing against nothing is no difference."""
    if base == 0:
        return 1.0 if value == 0 else math.inf
    return value / base


def ratios(rounds, figure, name, base):
    """One for each round that has both."""
    found = []
    for each in rounds:
        of = {run["name"]: figure.of(run) for run in each["runs"]}
        if of.get(name) is not None and of.get(base) is not None:
            found.append(ratio(of[name], of[base]))
    return found


def median_ratio(rounds, figure, name, base):
    return statistics.median(ratios(rounds, figure, name, base))


def median(rounds, figure, name):
    """Of the series itself, over all rounds."""
    return statistics.median(figure.of(run) for each in rounds for run in each["runs"]
                             if run["name"] == name)


def verdict(values, needed, noise=()):
    """In words: what the ratios show, beside those of the series against itself."""
    if len(values) < needed:
        return f"open: {needed} pairs needed"
    middle = statistics.median(values)
    if 1 in interval(values):
        return "none"
    if noise and middle in interval(noise):
        return "none: within the noise"
    if math.isinf(middle):
        return "more"
    return f"{abs(middle - 1):.1%} {'more' if middle > 1 else 'less'}".replace("%", " %")


#
# Tables
#

HEADING = ["figure", "compared", "pairs", "median ratio", "interval", "coverage", "difference"]


def comparisons(rounds, figures, compared):
    """A row for each figure and each pair of names, and one for the noise.
    compared: [(name, base), ...]; the first base is measured twice."""
    again = compared[0][1] + AGAIN, compared[0][1]
    for figure in figures:
        noise = ratios(rounds, figure, *again)
        for name, base in compared:
            values = ratios(rounds, figure, name, base)
            if values:
                yield row(figure, f"{name} / {base}", values,
                          verdict(values, figure.pairs, noise))
        if noise:
            yield row(figure, f"{again[0]} / {again[1]} (noise)", noise,
                      verdict(noise, figure.pairs))


def row(figure, compared, values, what):
    between = interval(values)
    edges = times(between.low), times(between.high)
    return [figure.name, compared, len(values), times(statistics.median(values)),
            "-" if len(values) == 1 or edges == ("-", "-") else " to ".join(edges),
            f"{100 * between.coverage:.4g} %" if len(values) > 1 else "-", what]


def times(value):
    """Of nothing there is no multiple; the verdict says that there is more."""
    return "-" if math.isinf(value) else f"{value:.3f}"


def medians(rounds, figures, label=str):
    """A row for each series: of each figure the median, smallest and largest.  label is
    asked only for the names of series, not for that of the first one's second run."""
    for name in names_of(rounds):
        runs = [run for each in rounds for run in each["runs"] if run["name"] == name]
        series = name.removesuffix(AGAIN)
        yield [label(series) + name.removeprefix(series), len(runs),
               *(spread(figure, runs) for figure in figures)]


def spread(figure, runs):
    values = [figure.of(run) for run in runs if figure.of(run) is not None]
    if not values:
        return "-"
    text = figure.text(statistics.median(values))
    low, high = figure.text(min(values)), figure.text(max(values))
    return text if low == high else f"{text} ({low} to {high})"


def tables(what, rounds, shown, compared=(), figures=None, label=str):
    """The series with the figures of shown, and how these, or others, compare; see
    comparisons().  A figure that no run has is left out."""
    runs = [run for each in rounds for run in each["runs"]]
    shown = [figure for figure in shown if any(figure.of(run) is not None for run in runs)]
    yield (f"{what}. Median (smallest to largest) of the runs.",
           ["setting", "runs", *(figure.name for figure in shown)], medians(rounds, shown, label))
    rows = list(comparisons(rounds, figures or shown, compared)) if compared else []
    if rows:
        yield (f"{what}: the ratio within each round, its median, the interval that covers it, and "
               "what that says.", HEADING, rows)


def machines(rounds, part=None):
    """The table of all rounds: when, of what, where, and how busy that was.  part: what
    tells rounds apart that measure different parts of the experiment."""
    parts = [part] if part else []
    return ("The rounds.",
            [*parts, "round", "begun", "seconds", "walsizer", "server", "machine",
             "load average before", "after"],
            [[*(each[one] for one in parts), each["number"], each["begun"], each["seconds"],
              each["revision"], each["server"].removeprefix("postgres (PostgreSQL) ").split()[0],
              describe(each["machine"]), f"{each['machine']['load_average'][0]:.1f}",
              f"{each['load_average_after'][0]:.1f}"] for each in rounds])


def describe(machine):
    return f"{machine['cpu']}, {machine['cores']} cores, {machine['memory']}"
