"""A day-shaped load: max_wal_size against what hindsight would have chosen

pgbench TPC-B at rates that follow a working day, with peaks before noon and in the
afternoon, and a bulk job at night.  A day lasts an hour: 24 times as quick.
checkpoint_timeout = 30s stands for 12 minutes, and walsizer.lookback = 7h for its
default of seven days.  With walsizer, with each --preload, and with --without on
the plain server.

What cannot be made quicker stays as it is: WAL per second, so that a day has a
24th of the WAL; the second between two of walsizer's samples; autovacuum_naptime."""

import contextlib
import os
import pathlib
import time

from harness import limits as judge, model, tps, wal, watch

TIMEOUT = 30     # checkpoint_timeout, s: the shortest
TARGET = 0.9     # checkpoint_completion_target, the server's default
SEGMENT = 16 * model.MB
START = "256MB"  # for 30 s, what 2.5GB are for the default of 5 minutes
CLIENTS = 8
FORCED = 2       # checkpoints with walsizer, at most
MOST = 1.5       # x the oracle's size

# (hour, transactions a second); straight lines between them
RATES = [(0, 30), (5, 20), (8, 300), (10, 600), (12, 900), (13, 400), (15, 650), (18, 300),
         (21, 100), (24, 30)]

# The job: at this hour, for so long, and 150 statements of 1000 rows of 140 bytes of WAL,
# which are 20 MB a second.
NIGHT, MINUTES, STATEMENTS = 2, 40, 150
JOB = "INSERT INTO loaded SELECT i, repeat('x', 80) FROM generate_series(1, 1000) i;\n"


def measure(bench):
    conditions = {"timeout": TIMEOUT, "start": START, "scale": bench.pick(10, 50, 50),
                  "day": max(2 * TIMEOUT, bench.seconds(120, 3600, 3600)),
                  "days": bench.repeated(1, 1, 2), "steps": bench.pick(24, 48, 48)}
    # in a short day it would be shorter than a window
    conditions["job"] = max(bench.seconds(60, 60, 60),
                            round(conditions["day"] * MINUTES / (24 * 60)))
    runs = []
    for subject in [*bench.subjects, *([bench.plain] if bench.without else [])]:
        bench.say(subject.name)
        runs.append({"name": subject.name, **one(bench, subject, conditions)})
    return {"conditions": conditions, "runs": runs}


def one(bench, subject, conditions):
    """One server, once.  The load begins with a checkpoint, which starts the timer."""
    settings = {"max_wal_size": START, "checkpoint_timeout": f"{TIMEOUT}s",
                "shared_buffers": "1GB"}
    if subject.library == "walsizer":
        settings["walsizer.lookback"] = "7h"
    with bench.server(subject, settings, conditions["scale"]) as server:
        server.psql("CREATE TABLE loaded (id int, filler text)")
        server.psql("SELECT count(*) FROM pgbench_accounts")
        os.sync()
        series = watch.Series(server)
        series.start()
        time.sleep(2)
        server.psql("CHECKPOINT")
        began = time.time()
        done = load(server, conditions, began)
        ended = time.time()
        time.sleep(2)  # for the last row of the series
        series.stop()
        checkpoints, changes = watch.read_log(server.log, began)
        history = (server.rows("walsizer_history ORDER BY id")
                   if subject.library == "walsizer" else [])
    first = (began, int(series.lsn_at(began)), 0, wal.size_at(series.rows, began))
    rows = [first, *(row for row in series.rows if began < row[0] <= ended)]
    return {**done, "rows": [(round(at - began, 2), lsn, mb) for at, lsn, _, mb in rows],
            "checkpoints": [{**vars(c), "at": round(c.at - began, 2)} for c in checkpoints
                            if c.at <= ended],
            "changes": [(round(at - began, 2), mb) for at, mb in changes if at <= ended],
            "history": history, "settings": server.settings}


def load(server, conditions, began):
    """One pgbench after the other, and the job beside them."""
    pathlib.Path("night.sql").write_text(JOB, encoding="ascii")
    length = conditions["day"] / conditions["steps"]
    steps, jobs = [], []
    with contextlib.ExitStack() as stack:
        for number in range(conditions["days"] * conditions["steps"]):
            hour = 24 * number / conditions["steps"]
            if hour % 24 == NIGHT:
                server.psql("TRUNCATE loaded")
                jobs.append(stack.enter_context(tps.Pgbench(
                    server, "--client=2", f"--rate={STATEMENTS}", f"--time={conditions['job']}",
                    "--file=night.sql")))
            rate = rate_at((hour + 12 / conditions["steps"]) % 24)
            # from the clock: what one step is late the next one makes up for
            seconds = max(1, round(began + (number + 1) * length - time.time()))
            with tps.Pgbench(server, f"--client={CLIENTS}", "--jobs=2", "--protocol=prepared",
                             f"--rate={rate}", f"--time={seconds}") as pgbench:
                pgbench.wait()
            steps.append({"hour": hour, "asked": rate, "tps": round(pgbench.mean, 1)})
        for job in jobs:
            job.wait()
    return {"steps": steps, "jobs": [round(job.mean, 1) for job in jobs]}


def rate_at(hour):
    """Transactions a second, at an hour of the day."""
    for (before, low), (after, high) in zip(RATES, RATES[1:]):
        if before <= hour < after:
            return round(low + (high - low) * (hour - before) / (after - before))
    raise ValueError(f"no hour of the day: {hour}")


#
# What comes of it
#

def oracle(rows, timeout):
    """The smallest max_wal_size (MB) with which no window of checkpoint_timeout, wherever
    it begins, would have forced a checkpoint."""
    return model.size_for(wal.largest_window(rows, timeout), SEGMENT, TARGET)


def forced_at(rows, size):
    """Times of the checkpoints that the same WAL would have forced at a constant size (MB)."""
    return [at for at, cause in wal.checkpoints(rows, size, SEGMENT, TARGET, TIMEOUT)
            if cause == "forced"]


def directions(start, sizes):
    """How many of the changes were raises, and how many lowerings."""
    pairs = list(zip([start, *sizes], sizes))
    return sum(new > old for old, new in pairs), sum(new < old for old, new in pairs)


def times(run, cause):
    return [c["at"] for c in run["checkpoints"] if c["cause"] == cause]


def start_of(run):
    return run["rows"][0][-1]


def final_of(run):
    return run["rows"][-1][-1]


def summary(run):
    rows = run["rows"]
    best = oracle(rows, TIMEOUT)
    raises, lowers = directions(start_of(run), [mb for _, mb in run["changes"]])
    return [run["name"], start_of(run), max(row[-1] for row in rows), final_of(run), best,
            f"{final_of(run) / best:.2f}", raises, lowers, len(times(run, "forced")),
            len(times(run, "timed")), len(forced_at(rows, start_of(run))),
            f"{(rows[-1][1] - rows[0][1]) / model.MB:.0f}"]


def by_hours(run, conditions, hours=2):
    """A row for each two hours of the day: the need in them, and what there was."""
    rows, hour = run["rows"], conditions["day"] / 24
    needs = [(at, model.size_for(wal_, SEGMENT, TARGET))
             for at, wal_ in wal.trailing(rows, TIMEOUT)]
    computed = forced_at(rows, start_of(run))
    for first in range(0, 24 * conditions["days"], hours):
        begin, end = first * hour, (first + hours) * hour

        def within(values, begin=begin, end=end):
            return sum(begin <= at < end for at in values)

        steps = [step for step in run["steps"] if first <= step["hour"] < first + hours]
        yield [run["name"], f"{first}:00",
               f"{tps.mean([(0, step['asked']) for step in steps]):.0f}",
               f"{tps.mean([(0, step['tps']) for step in steps]):.0f}",
               max((need for at, need in needs if begin <= at < end), default="-"),
               wal.size_at(rows, end), within(times(run, "forced")), within(times(run, "timed")),
               within(computed)]


def tables(data):
    conditions, runs = data["conditions"], data["runs"]
    day, minutes = conditions["day"], TIMEOUT * 24 * 60 / conditions["day"]
    yield (f"{conditions['days']} day(s) of {day} s each, from {START}. checkpoint_timeout = "
           f"{TIMEOUT} s stands for {minutes:.0f} minutes. The oracle's size is the smallest with "
           "which no window of checkpoint_timeout forces a checkpoint. What the start would have "
           "forced is computed from the WAL that was written, so it lacks the page images "
           "that more checkpoints make.",
           ["preloaded", "start, MB", "largest", "final", "oracle's", "final / oracle's", "raises",
            "lowers", "forced", "timed", "forced at the start, computed", "WAL, MB"],
           [summary(run) for run in runs])
    yield (f"Hour by hour. The job begins at {NIGHT}:00 and lasts {conditions['job']} s.",
           ["preloaded", "from", "tps asked", "tps", "needed, MB", "max_wal_size at the end",
            "forced", "timed", "forced at the start, computed"],
           [row for run in runs for row in by_hours(run, conditions)])


def limits(data):
    kept = []
    for run in data["runs"]:
        if run["name"] != "walsizer":
            continue
        kept = [judge.at_most("forced", len(times(run, "forced")), FORCED),
                judge.at_most("final size / the oracle's",
                              round(final_of(run) / oracle(run["rows"], TIMEOUT), 2), MOST)]
        if data["conditions"]["days"] > 1:
            kept.append(judge.none("forced after the first day",
                                   sum(at > data["conditions"]["day"]
                                       for at in times(run, "forced"))))
    return kept


#
# The plot
#

def draw(figure, theme, data):
    """Of the first run: WAL since the last checkpoint, and below it the sizes."""
    run, hour = data["runs"][0], data["conditions"]["day"] / 24
    figure.set_size_inches(9, 5.5)
    saw, sizes = figure.subplots(2, 1, sharex=True)
    colour = theme.colour("small" if run["name"] == "plain" else run["name"])
    draw_saw(saw, theme, run, hour, colour)
    draw_sizes(sizes, theme, run, hour, colour)
    hours = 24 * data["conditions"]["days"]
    sizes.set_xlim(0, hours)
    sizes.set_xticks(range(0, hours + 1, hours // 8))
    sizes.set_xlabel(f"hour of the day ({hour:.0f} s each)")
    figure.suptitle(f"{run['name']}, a day in {data['conditions']['day']} s, checkpoint_timeout = "
                    f"{TIMEOUT} s", fontsize=11)


def draw_saw(panel, theme, run, hour, colour):
    teeth = wal.saw_tooth(run["rows"], [0, *(c["at"] for c in run["checkpoints"])], 0,
                          run["rows"][-1][0])
    at = [second / hour for second, _, _ in teeth]
    trigger = [model.trigger_point(mb, SEGMENT, TARGET) / model.MB for _, _, mb in teeth]
    panel.plot(at, [mb for _, mb, _ in teeth], color=colour, linewidth=1)
    panel.step(at, trigger, where="post", color=theme.text, linewidth=1.2, linestyle="--",
               label="a checkpoint is forced here")
    panel.axhline(trigger[0], color=theme.colour("small"), linewidth=1, linestyle=":",
                  label="and here at the start value")
    panel.set_ylim(0, 1.2 * max(trigger))
    panel.set_ylabel("MB since the last checkpoint")
    panel.legend(loc="upper right", fontsize=8)
    panel.set_title(f"{len(times(run, 'forced'))} forced; "
                    f"{len(forced_at(run['rows'], start_of(run)))} at the start value, computed",
                    loc="left")


def draw_sizes(panel, theme, run, hour, colour):
    needs = [(at / hour, model.size_for(wal_, SEGMENT, TARGET))
             for at, wal_ in wal.trailing(run["rows"], TIMEOUT)]
    panel.fill_between([at for at, _ in needs], [need for _, need in needs],
                       color=theme.colour("large"), alpha=0.35, linewidth=0,
                       label="needed by the last 30 s")
    panel.step([row[0] / hour for row in run["rows"]], [row[-1] for row in run["rows"]],
               where="post", color=colour, label="max_wal_size")
    panel.axhline(oracle(run["rows"], TIMEOUT), color=theme.text, linewidth=1, linestyle=":",
                  label="the oracle's")
    panel.set_ylim(0, 1.3 * max(row[-1] for row in run["rows"]))
    panel.set_ylabel("MB")
    panel.legend(loc="upper right", fontsize=8)


PLOTS = {"day": draw}
