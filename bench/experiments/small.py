"""Small settings against the default ones: WAL and checkpoints.

The same number of transactions at checkpoint distances that 32MB, 256MB and 4GB
set with 30 s, at the server's defaults, and with walsizer (and each --preload)
from 32MB and 30 s.  walsizer leaves checkpoint_timeout alone, so it is compared
with a large size at 30 s."""

from harness import fixed, limits as judge, pairs

TIMEOUT = "30s"  # but for the defaults
SIZES = {"large": "4GB", "small": "32MB", "medium": "256MB"}
MOST = 1.15  # x the WAL of the large size


def measure(bench):
    conditions = {"scale": bench.pick(20, 50, 50),
                  "transactions": bench.pick(60000, 100000, 500000)}
    data = bench.continue_data(conditions)
    for _ in range(bench.repeated(1, 5, 3)):
        pairs.measure_round(
            bench, data, series(bench),
            lambda each: fixed.measure(bench, each.subject, each.settings, **conditions))
        yield data


def series(bench):
    def of(name, subject, size, timeout=TIMEOUT):
        return pairs.Series(name, subject, {"max_wal_size": size, "checkpoint_timeout": timeout})

    return [*(of(name, bench.plain, size) for name, size in SIZES.items()),
            *(of(subject.name, subject, SIZES["small"]) for subject in bench.subjects),
            of("default", bench.plain, "1GB", "5min")]


#
# What comes of it
#

FIGURES = [
    pairs.Figure("forced checkpoints", lambda run: fixed.count(run, "forced"), 0),
    pairs.Figure("WAL, MB", lambda run: run["wal_mb"], 0),
    pairs.Figure("page images", lambda run: run["fpi"], 0),
    pairs.Figure("page images, MB", lambda run: run["fpi_mb"], 0),  # from 19 on
    pairs.Figure("seconds", lambda run: run["seconds"], 1, pairs.RATE),
]
SHOWN = [*FIGURES, pairs.Figure("timed checkpoints", lambda run: fixed.count(run, "timed"), 0),
         pairs.Figure("max_wal_size at the end, MB", lambda run: run["final_mb"], 0)]


LABELS = {**{kind: f"{size}, {TIMEOUT}" for kind, size in SIZES.items()},
          "default": "defaults: 1GB, 5min"}


def label(name):
    return LABELS.get(name, f"{name}, from {LABELS['small']}")


def tables(data):
    conditions, rounds = data["conditions"], data["rounds"]
    yield from pairs.tables(
        f"pgbench TPC-B, scale {conditions['scale']}, {conditions['transactions']} transactions, "
        f"{fixed.CLIENTS} clients", rounds, SHOWN, pairs.against(rounds, "large"), FIGURES, label)
    yield pairs.machines(rounds)


def limits(data):
    if "walsizer" not in pairs.names_of(data["rounds"]):
        return []
    ratio = pairs.median_ratio(data["rounds"], FIGURES[1], "walsizer", "large")
    return [judge.at_most(f"WAL / that of {label('large')}, median,", round(ratio, 3), MOST)]


def draw(figure, theme, data):
    """WAL written so far, over time; the first round."""
    axis = figure.subplots()
    for run in data["rounds"][0]["runs"]:
        if run["name"].endswith(pairs.AGAIN):
            continue
        rows = [row for row in run["series"] if row[0] <= run["seconds"]]
        style = "--" if run["name"] == "default" else "-"
        axis.plot([row[0] for row in rows], [row[1] / 1024 for row in rows], style,
                  color=theme.colour(run["name"]), label=label(run["name"]))
        axis.plot(rows[-1][0], rows[-1][1] / 1024, "o", color=theme.colour(run["name"]))
    axis.set_xlabel("seconds (a dot: all transactions are done)")
    axis.set_ylabel("WAL written so far, MB")
    axis.set_xlim(left=0)
    axis.set_ylim(bottom=0)
    axis.set_title(f"WAL of {data['conditions']['transactions']} pgbench transactions")
    axis.legend(loc="upper left")


PLOTS = {"small": draw}
