"""Small settings against the default ones: WAL and checkpoints.

The same number of transactions at the server's defaults, at 32MB and 30 s, and
with walsizer (and each --preload) from the latter.  walsizer leaves
checkpoint_timeout alone, so it is compared with a large size at 30 s."""

from harness import fixed, limits as judge, pairs

DEFAULTS = {"max_wal_size": "1GB", "checkpoint_timeout": "5min"}
SMALL = {"max_wal_size": "32MB", "checkpoint_timeout": "30s"}
LARGE = {"max_wal_size": "4GB", "checkpoint_timeout": "30s"}
MOST = 1.15  # x the WAL of the large size


def measure(bench):
    conditions = {"scale": bench.pick(20, 50, 50),
                  "transactions": bench.pick(60000, 100000, 1000000)}
    data = bench.continue_data(conditions)
    for _ in range(bench.repeated(1, 5, 5)):
        data["rounds"].append(pairs.measure_round(
            bench, series(bench), 1 + len(data["rounds"]),
            lambda each: fixed.measure(bench, each.subject, each.settings, **conditions)))
        yield data


def series(bench):
    return [pairs.Series("large", bench.plain, LARGE),
            pairs.Series("small", bench.plain, SMALL),
            *(pairs.Series(subject.name, subject, SMALL) for subject in bench.subjects),
            pairs.Series("default", bench.plain, DEFAULTS)]


#
# What comes of it
#

FIGURES = [
    pairs.Figure("forced checkpoints", lambda run: fixed.count(run, "forced"), 0),
    pairs.Figure("WAL, MB", lambda run: run["wal_mb"], 0),
    pairs.Figure("page images", lambda run: run["fpi"], 0),
    pairs.Figure("seconds", lambda run: run["seconds"], 1, pairs.RATE),
]
SHOWN = [*FIGURES, pairs.Figure("timed checkpoints", lambda run: fixed.count(run, "timed"), 0),
         pairs.Figure("max_wal_size at the end, MB", lambda run: run["final_mb"], 0)]


def label(name):
    return {"default": "defaults: 1GB, 5min", "small": "32MB, 30s", "large": "4GB, 30s",
            "large again": "4GB, 30s again"}.get(name, f"{name}, from 32MB, 30s")


def tables(data):
    conditions, rounds = data["conditions"], data["rounds"]
    yield (f"pgbench TPC-B, scale {conditions['scale']}, {conditions['transactions']} "
           f"transactions, {fixed.CLIENTS} clients. Median (smallest to largest) of the runs.",
           ["setting", "runs", *(figure.name for figure in SHOWN)],
           [[label(row[0]), *row[1:]] for row in pairs.medians(rounds, pairs.names_of(rounds), SHOWN)])
    compared = [(name, "large") for name in pairs.names_of(rounds) if not name.startswith("large")]
    yield ("The ratio within each round to 4GB, 30s (large), its median, the interval that "
           "covers it, and what that says.",
           pairs.HEADING, pairs.comparisons(rounds, FIGURES, compared))
    yield "The rounds.", pairs.MACHINES, pairs.machines(rounds)


def limits(data):
    if "walsizer" not in pairs.names_of(data["rounds"]):
        return []
    ratio = pairs.median_ratio(data["rounds"], FIGURES[1], "walsizer", "large")
    return [judge.at_most("WAL / that of 4GB, 30s, median,", round(ratio, 3), MOST)]


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
