"""Small settings against the default ones: WAL and checkpoints.

The same number of transactions at the server's defaults, at 32MB and 30 s, and
with walsizer (and each --preload) from the latter.  walsizer leaves
checkpoint_timeout alone, so it is compared with a large size at 30 s."""

import statistics

from harness import fixed, limits as judge

DEFAULTS = {"max_wal_size": "1GB", "checkpoint_timeout": "5min"}
SMALL = {"max_wal_size": "32MB", "checkpoint_timeout": "30s"}
LARGE = {"max_wal_size": "4GB", "checkpoint_timeout": "30s"}
MOST = 1.15  # x the WAL of the large size


def measure(bench):
    scale = bench.pick(20, 50, 50)
    transactions = bench.pick(60000, 100000, 1000000)
    runs = []
    for number in range(bench.repeated(1, 1, 3)):
        series = [("default", bench.plain, DEFAULTS), ("small", bench.plain, SMALL),
                  ("large", bench.plain, LARGE)]
        series += [(subject.name, subject, SMALL) for subject in bench.subjects]
        for name, subject, settings in series:
            bench.say(f"{name}, run {number + 1}")
            runs.append({"name": name, "run": number + 1,
                         **fixed.measure(bench, subject, settings, scale, transactions)})
    return {"scale": scale, "transactions": transactions, "runs": runs}


def label(name):
    return {"default": "defaults: 1GB, 5min", "small": "32MB, 30s",
            "large": "4GB, 30s"}.get(name, f"{name}, from 32MB, 30s")


def tables(data):
    yield (f"pgbench TPC-B, scale {data['scale']}, {data['transactions']} transactions, "
           f"{fixed.CLIENTS} clients.", ["setting", *fixed.HEADING],
           [[label(run["name"]), *fixed.cells(run)] for run in data["runs"]])


def limits(data):
    def wal(name):
        return statistics.median(run["wal_mb"] for run in data["runs"] if run["name"] == name)
    if not any(run["name"] == "walsizer" for run in data["runs"]):
        return []
    return [judge.at_most("WAL / that of 4GB, 30s", round(wal("walsizer") / wal("large"), 3),
                          MOST)]


def draw(figure, theme, data):
    """WAL written so far, over time; the first run of each."""
    axis = figure.subplots()
    for run in data["runs"]:
        if run["run"] == 1:
            rows = [row for row in run["series"] if row[0] <= run["seconds"]]
            style = "--" if run["name"] == "default" else "-"
            axis.plot([row[0] for row in rows], [row[1] / 1024 for row in rows], style,
                      color=theme.colour(run["name"]), label=label(run["name"]))
            axis.plot(rows[-1][0], rows[-1][1] / 1024, "o", color=theme.colour(run["name"]))
    axis.set_xlabel("seconds (a dot: all transactions are done)")
    axis.set_ylabel("WAL written so far, MB")
    axis.set_xlim(left=0)
    axis.set_ylim(bottom=0)
    axis.set_title(f"WAL of {data['transactions']} pgbench transactions")
    axis.legend(loc="upper left")


PLOTS = {"small": draw}
