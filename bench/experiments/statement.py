"""One statement that begins before the raise and lasts several checkpoint_timeout

An INSERT ... SELECT keeps the max_wal_size with which it began, so it forces
checkpoints at the old trigger point whatever walsizer does.  With and without
walsizer, in turns: how many, how far apart, and how many of them hurried, that is
were written in less time than checkpoint_completion_target leaves."""

import statistics
import time

from harness import limits as judge, model, pairs, watch

TIMEOUT = 30   # checkpoint_timeout, s
TARGET = 0.9   # checkpoint_completion_target, the server's default
SPREAD = TARGET * TIMEOUT  # s, that the writing of a checkpoint takes if time paces it
SOONER = 1     # s, by which the writing of a hurried one is shorter at least
START = "256MB"
BURST = 32     # MB of WAL at once, several times wal_buffers: the statement writes most
PAUSE = 2      # s, from the start of a burst to that of the next
ROW = 1060     # bytes of WAL
HURRIED = 0.1  # walsizer's limit: of the time without it
SETTLING = 5   # s

# A quick machine sleeps longer: the rate is the same on all of them.
FILL = ("INSERT INTO filled SELECT i, repeat('x', 1000) FROM generate_series(1, {rows}) i "
        "WHERE i % {burst} <> 0 OR pg_sleep(extract(epoch FROM statement_timestamp() "
        "+ i / {burst} * interval '{pause} s' - clock_timestamp())) IS NOT NULL")


def measure(bench):
    conditions = {"seconds": bench.seconds(60, 150, 300), "timeout": TIMEOUT, "start": START,
                  "rate": BURST / PAUSE}
    data = bench.continue_data(conditions)
    series = [pairs.Series(subject.name, subject, {}) for subject in [bench.plain, *bench.subjects]]
    for _ in range(bench.repeated(1, 3, 5)):
        pairs.measure_round(
            bench, data, series, lambda each: one(bench, each.subject, conditions["seconds"]))
        yield data


def one(bench, subject, seconds):
    settings = {"max_wal_size": START, "checkpoint_timeout": f"{TIMEOUT}s",
                "checkpoint_completion_target": TARGET}
    walsizer = subject.library == "walsizer"
    burst = BURST * model.MB // ROW
    with bench.server(subject, settings) as server:
        server.psql("CREATE TABLE filled (i bigint, t text)")
        time.sleep(SETTLING)
        series = watch.Series(server)
        series.start()
        began = time.time()
        server.psql(FILL.format(rows=burst * (seconds // PAUSE), burst=burst, pause=PAUSE))
        ended = time.time()
        series.stop()
        # walsizer's own account of it
        counted = (int(server.value("SELECT checkpoints_forced_old_value FROM walsizer_stats"))
                   if walsizer else None)
        history = server.rows("walsizer_history ORDER BY id") if walsizer else []
        checkpoints, changes = watch.read_log(server.log, began)
    inside = [{**vars(c), "at": round(c.at - began, 2)} for c in checkpoints if c.at < ended]
    return {"seconds": round(ended - began, 1), "checkpoints": inside,
            "wal_mb": (series.rows[-1][1] - series.rows[0][1]) / model.MB,
            "changes": [(round(at - began, 2), mb) for at, mb in changes],
            "forced_old_value": counted, "start_mb": series.rows[0][3],
            "final_mb": series.rows[-1][3], "history": history, "settings": server.settings}


#
# What comes of it
#

def count(run, cause):
    return sum(c["cause"] == cause for c in run["checkpoints"])


def written(run):
    """Those whose writing ended before the statement: with its end WAL no longer hurries."""
    return [c for c in run["checkpoints"]
            if c["total"] is not None and c["at"] + c["total"] <= run["seconds"]]


def hurried(run):
    return [c for c in written(run) if c["write"] < SPREAD - SOONER]


def hurried_seconds(run):
    return sum(c["write"] for c in hurried(run))


def raised(run):
    """When the last raise took effect; the statement began before it."""
    return run["changes"][-1][0] if run["changes"] else None


def forced_hurried_after(run):
    """Of those forced after the last raise so many were hurried."""
    since = raised(run) or 0
    return sum(c["cause"] == "forced" and c["at"] > since for c in hurried(run))


def distances(run):
    """Seconds from a checkpoint to the next, if that one was forced."""
    following = zip(run["checkpoints"], run["checkpoints"][1:])
    return [new["at"] - old["at"] for old, new in following if new["cause"] == "forced"]


FORCED = pairs.Figure("forced", lambda run: count(run, "forced"), 0)
HURRY = pairs.Figure("seconds in hurried ones", hurried_seconds, 1)
SHOWN = [
    FORCED,
    pairs.Figure("timed", lambda run: count(run, "timed"), 0),
    pairs.Figure("of all hurried", lambda run: len(hurried(run)), 0),
    HURRY,
    pairs.Figure("mean seconds to a forced one", lambda run: statistics.fmean(distances(run))
                 if distances(run) else None, 1),
    pairs.Figure("shortest", lambda run: min(distances(run), default=None), 1),
    pairs.Figure("buffers written", lambda run: sum(c["buffers"] for c in written(run)), 0),
    pairs.Figure("WAL, MB", lambda run: run["wal_mb"], 0),
    pairs.Figure("seconds", lambda run: run["seconds"], 0),
]


def of(data, name):
    return [run for each in data["rounds"] for run in each["runs"] if run["name"] == name]


def tables(data):
    conditions, rounds = data["conditions"], data["rounds"]
    yield from pairs.tables(
        f"An INSERT ... SELECT of {conditions['rate']:.0f} MB of WAL a second, from "
        f"{conditions['start']}, checkpoint_timeout = {conditions['timeout']} s",
        rounds, SHOWN, pairs.against(rounds, "plain"), [FORCED, HURRY])
    yield ("Each run.",
           ["round", "preloaded", "forced", "of which hurried after the last raise", "timed",
            "seconds of the starts", "seconds of writing", "last raise after, s", "max_wal_size",
            "at an old value, as walsizer counts"],
           [[each["number"], run["name"], count(run, "forced"), forced_hurried_after(run),
             count(run, "timed"), seconds(c["at"] for c in run["checkpoints"]),
             seconds(c["write"] for c in written(run)),
             "-" if raised(run) is None else f"{raised(run):.0f}",
             f"{run['start_mb']} -> {run['final_mb']} MB",
             "-" if run["forced_old_value"] is None else run["forced_old_value"]]
            for each in rounds for run in each["runs"]])
    # of the first three rounds it was noted only once, and stands below
    noted = [each for each in rounds if "machine" in each]
    if noted:
        yield pairs.machines(noted)


def seconds(values):
    return ", ".join(f"{value:.0f}" for value in values) or "-"


def limits(data):
    if "walsizer" not in pairs.names_of(data["rounds"]):
        return []
    return [judge.none("checkpoint that was forced after the last raise and hurried",
                       sum(map(forced_hurried_after, of(data, "walsizer")))),
            judge.at_most("median seconds in hurried checkpoints / those without",
                          round(pairs.median_ratio(data["rounds"], HURRY, "walsizer", "plain"), 3),
                          HURRIED)]


def draw(figure, theme, data):
    """Each checkpoint's writing on a line of time; the first round."""
    axis = figure.subplots()
    shown = pairs.series_of(data["rounds"])[::-1]
    figure.set_size_inches(9, 1.2 + 0.8 * len(shown))
    for place, name in enumerate(shown):
        run = of(data, name)[0]
        for number, c in enumerate(run["checkpoints"]):
            following = [later["at"] for later in run["checkpoints"][number + 1:]]
            end = min([c["at"] + (c["write"] or SPREAD), run["seconds"], *following[:1]])
            kind = ("small" if c in hurried(run) else "walsizer" if c in written(run)
                    else "plain")
            axis.broken_barh([(c["at"], end - c["at"])], (place - 0.35, 0.7),
                             color=theme.colour(kind), edgecolor=theme.text, linewidth=0.5)
            axis.text(c["at"] + 0.3, place, c["cause"][0], color=theme.text, va="center")
    axis.set_yticks(range(len(shown)), shown)
    axis.grid(False, axis="y")
    axis.set_xlabel("seconds from the start of the statement (f: forced, t: timed)")
    axis.set_title("Writing of checkpoints that WAL hurried (red) and that time paced (blue); "
                   "grey: unfinished")


PLOTS = {"statement": draw}
