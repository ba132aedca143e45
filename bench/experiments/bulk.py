"""Bulk loading: forced checkpoints, and what they do to readers.

pgbench -i, COPY, CREATE INDEX, INSERT ... SELECT and UPDATE of everything, one
after the other, each one statement or a few; a read-only pgbench at a fixed rate
in another database beside it."""

import time

from harness import limits as judge, model, tps, watch

START = "256MB"
READERS = 2
READS = 400   # per second
SHARE = 0.15  # of the forced checkpoints without walsizer

# each a phase: its name, and its statements
STATEMENTS = [
    ("COPY", ["CREATE TABLE copied (LIKE pgbench_accounts)",
              "COPY copied FROM '{file}'"]),
    ("CREATE INDEX", ["CREATE INDEX ON copied (aid)", "CREATE INDEX ON copied (bid, aid)"]),
    ("INSERT ... SELECT", ["CREATE TABLE inserted (LIKE pgbench_accounts)",
                           "INSERT INTO inserted SELECT * FROM copied"]),
    ("UPDATE", ["UPDATE copied SET abalance = abalance + 1"]),
]
AFTER = "afterwards"
PHASES = ["pgbench -i"] + [name for name, _ in STATEMENTS] + [AFTER]


def measure(bench):
    scale = bench.pick(20, 50, 100)
    timeout = bench.pick(30, 120, 300)
    runs = []
    for number in range(bench.repeated(1, 1, 3)):
        for subject in [bench.plain, *bench.subjects]:
            bench.say(f"{subject.name}, run {number + 1}")
            runs.append({"name": subject.name, "run": number + 1,
                         **one(bench, subject, scale, timeout)})
    return {"scale": scale, "timeout": timeout, "start": START, "reads": READS, "runs": runs}


def one(bench, subject, scale, timeout):
    settings = {"max_wal_size": START, "checkpoint_timeout": f"{timeout}s"}
    phases = []
    with bench.server(subject, settings, scale=10) as server:
        server.psql("CREATE DATABASE bulk")
        time.sleep(2)
        series = watch.Series(server)
        series.start()
        with tps.Pgbench(server, "--select-only", f"--client={READERS}", f"--rate={READS}",
                         "--time=3600", "--protocol=prepared", *tps.LOGGED):
            load(server, scale, phases)
            # one that is requested while another is running comes when that ends
            phase(phases, AFTER, lambda: wait_for_checkpoint(server, timeout))
            time.sleep(2)  # pgbench writes its log with a delay
        series.stop()
        checkpoints, changes = watch.read_log(server.log, phases[0]["began"])
        history = (server.rows("walsizer_history ORDER BY id")
                   if subject.library == "walsizer" else [])
    latencies = tps.latencies()
    began = phases[0]["began"]
    edges = [part["began"] for part in phases] + [phases[-1]["ended"]]
    for number, part in enumerate(phases):
        inside = [ms for at, ms in latencies if part["began"] <= at <= part["ended"]]
        part.update(summary(inside))
        part["wal_mb"] = ((series.lsn_at(part["ended"]) or series.rows[-1][1])
                          - (series.lsn_at(part["began"]) or series.rows[0][1])) / model.MB
        for cause in ("forced", "timed"):
            part[cause] = sum(c.cause == cause and edges[number] <= c.at < edges[number + 1]
                              for c in checkpoints)
        part["began"], part["ended"] = (round(part[when] - began, 2)
                                        for when in ("began", "ended"))
    ended = began + phases[-1]["began"]
    return {"phases": phases, "all": summary([ms for at, ms in latencies if began <= at <= ended]),
            "checkpoints": [{**vars(c), "at": round(c.at - began, 2)} for c in checkpoints],
            "changes": [(round(at - began, 2), mb) for at, mb in changes],
            "series": [(round(at - began, 2), lsn, mb) for at, lsn, _, mb in series.rows],
            "start_mb": series.rows[0][3], "final_mb": series.rows[-1][3],
            "history": history, "settings": server.settings}


def phase(phases, name, function):
    began = time.time()
    function()
    phases.append({"name": name, "began": began, "ended": time.time()})


def load(server, scale, phases):
    phase(phases, "pgbench -i", lambda: server.pgbench("--initialize", "--quiet",
                                                       f"--scale={scale}", database="bulk"))
    file = server.work / "copied"
    server.psql(f"COPY pgbench_accounts TO '{file}'", "bulk")
    for name, statements in STATEMENTS:
        # pylint: disable-next=cell-var-from-loop
        phase(phases, name, lambda: [server.psql(statement.format(file=file), "bulk")
                                     for statement in statements])
    file.unlink()


def wait_for_checkpoint(server, timeout):
    """Until the one that is running has ended, and its successor could begin."""
    end = time.monotonic() + 1.5 * timeout
    while time.monotonic() < end:
        checkpoints, _ = watch.read_log(server.log, 0)
        if not checkpoints or checkpoints[-1].total is not None:
            break
        time.sleep(0.5)
    time.sleep(2)


def summary(milliseconds):
    return {"reads": len(milliseconds),
            **{f"p{percent}": tps.percentile(milliseconds, percent) for percent in (50, 95, 99)}}


#
# What comes of it
#

def total(run, what):
    return sum(part[what] for part in run["phases"])


def tables(data):
    yield (f"From {data['start']}, checkpoint_timeout = {data['timeout']} s, scale "
           f"{data['scale']}.", ["preloaded", "run", "forced", "timed", "WAL, MB", "seconds",
                                 "reads: median, ms", "95 %", "99 %", "max_wal_size"],
           [[run["name"], run["run"], total(run, "forced"), total(run, "timed"),
             f"{total(run, 'wal_mb'):.0f}",
             f"{sum(p['ended'] - p['began'] for p in run['phases'] if p['name'] != AFTER):.0f}",
             *milliseconds(run["all"]), f"{run['start_mb']} -> {run['final_mb']} MB"]
            for run in data["runs"]])
    yield ("Phase by phase.", ["preloaded", "run", "phase", "forced", "WAL, MB", "seconds",
                               "reads: median, ms", "95 %", "99 %"],
           [[run["name"], run["run"], part["name"], part["forced"], f"{part['wal_mb']:.0f}",
             f"{part['ended'] - part['began']:.0f}", *milliseconds(part)]
            for run in data["runs"] for part in run["phases"]])


def milliseconds(of):
    return ["-" if of[f"p{percent}"] is None else f"{of[f'p{percent}']:.1f}"
            for percent in (50, 95, 99)]


def limits(data):
    forced = {name: sum(total(run, "forced") for run in data["runs"] if run["name"] == name)
              for name in ("plain", "walsizer")}
    if not any(run["name"] == "walsizer" for run in data["runs"]):
        return []
    share = forced["walsizer"] / max(1, forced["plain"])
    return [judge.at_most(f"forced, share of those without ({forced['walsizer']} of "
                          f"{forced['plain']})", round(share, 3), SHARE)]


def draw(figure, theme, data):
    """Bars: forced checkpoints in each phase; the first run of each."""
    axis = figure.subplots()
    figure.set_size_inches(9, 3.6)
    first = [run for run in data["runs"] if run["run"] == 1]
    width = 0.8 / len(first)
    for number, run in enumerate(first):
        places = [place + (number - (len(first) - 1) / 2) * width for place in range(len(PHASES))]
        values = [part["forced"] for part in run["phases"]]
        kind = "small" if run["name"] == "plain" else run["name"]
        label = START if run["name"] == "plain" else f"{run['name']}, from {START}"
        bars = axis.bar(places, values, width * 0.92, color=theme.colour(kind),
                        label=f"{label}: {total(run, 'forced')} in all")
        axis.bar_label(bars, color=theme.text, padding=2)
    axis.set_xticks(range(len(PHASES)), PHASES)
    axis.grid(False, axis="x")
    axis.margins(y=0.12)
    axis.set_ylabel("forced checkpoints")
    axis.set_title(f"Checkpoints forced by a bulk load (scale {data['scale']}, "
                   f"checkpoint_timeout = {data['timeout']} s)")
    axis.legend()


PLOTS = {"bulk": draw}
