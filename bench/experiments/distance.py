"""WAL against the distance of checkpoints.

The same number of transactions at the same rate with checkpoints at four
distances, which max_wal_size sets, and with walsizer (and each --preload) from
the smallest."""

import statistics

from harness import fixed, limits as judge

SIZES = ["64MB", "128MB", "256MB", "4GB"]
RATE = 1000  # transactions per second
MOST = 1.15  # x the WAL of the best static size


def measure(bench):
    scale = bench.pick(20, 50, 50)
    transactions = RATE * bench.seconds(16, 70, 600)
    timeout = bench.pick(30, 60, 300)
    runs = []
    for number in range(bench.repeated(1, 1, 3)):
        series = [(size, bench.plain, size) for size in SIZES]
        series += [(subject.name, subject, SIZES[0]) for subject in bench.subjects]
        for name, subject, size in series:
            bench.say(f"{name}, run {number + 1}")
            settings = {"max_wal_size": size, "checkpoint_timeout": f"{timeout}s"}
            runs.append({"name": name, "static": subject.library is None, "run": number + 1,
                         **fixed.measure(bench, subject, settings, scale, transactions,
                                          RATE)})
    return {"scale": scale, "transactions": transactions, "rate": RATE,
            "timeout": timeout, "runs": runs}


def label(name):
    return name if name in SIZES else f"{name}, from {SIZES[0]}"


def tables(data):
    yield (f"pgbench TPC-B, scale {data['scale']}, {data['transactions']} transactions "
           f"at {data['rate']} a second, {fixed.CLIENTS} clients, "
           f"checkpoint_timeout = {data['timeout']} s.",
           ["setting", *fixed.HEADING],
           [[label(run["name"]), *fixed.cells(run)] for run in data["runs"]])


def names(data):
    return list(dict.fromkeys(run["name"] for run in data["runs"]))


def wal(data, name):
    return [run["wal_mb"] for run in data["runs"] if run["name"] == name]


def limits(data):
    if "walsizer" not in names(data):
        return []
    best = min(statistics.median(wal(data, name)) for name in names(data) if name in SIZES)
    ratio = statistics.median(wal(data, "walsizer")) / best
    return [judge.at_most("WAL / that of the best static size", round(ratio, 3), MOST)]


def draw(figure, theme, data):
    """A bar for each setting, a dot for each run."""
    axis = figure.subplots()
    figure.set_size_inches(9, 1.4 + 0.55 * len(names(data)))
    for place, name in enumerate(names(data)):
        runs = [run for run in data["runs"] if run["name"] == name]
        middle = statistics.median(run["wal_mb"] for run in runs)
        kind = "small" if name == SIZES[0] else "large" if name in SIZES else name
        axis.barh(place, middle, color=theme.colour(kind), height=0.62)
        if len(runs) > 1:
            axis.plot([run["wal_mb"] for run in runs], [place] * len(runs), "|", markersize=12,
                      color=theme.text)
        checkpoints = statistics.median(len(run["checkpoints"]) for run in runs)
        images = statistics.median(run["fpi"] for run in runs)
        axis.text(middle, place, f"   {middle:.0f} MB, {images / 1000:.0f}k page images, "
                  f"{checkpoints:.0f} checkpoint{'' if checkpoints == 1 else 's'}",
                  va="center", color=theme.text)
    axis.set_yticks(range(len(names(data))), [label(name) for name in names(data)])
    axis.invert_yaxis()
    axis.grid(False, axis="y")
    axis.set_xlim(0, 1.65 * max(run["wal_mb"] for run in data["runs"]))
    many = max(run["run"] for run in data["runs"]) > 1
    axis.set_xlabel("WAL written, MB" + (" (bar: median; mark: one run)" if many else ""))
    axis.set_ylabel("max_wal_size")
    axis.set_title(f"WAL of {data['transactions']} pgbench transactions, "
                   f"checkpoint_timeout = {data['timeout']} s")


PLOTS = {"wal": draw}
