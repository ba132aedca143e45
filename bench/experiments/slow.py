"""Slow transactions against checkpoint_completion_target, on slow storage.

pgbench TPC-B at a fixed rate; how many transactions took longer than 100 to 500
ms at each target, once with forced and once with timed checkpoints, and with
walsizer (and each --preload) from the size that forces them."""

import time

from harness import pairs, server as servers, storage, tps, watch

SMALL, LARGE = "64MB", "4GB"
CLIENTS = 16
SCALE = 20
WRITES = 1000  # per second, the limit of the storage
RATE = 400     # transactions per second; what it falls behind counts as latency
THRESHOLDS = [100, 200, 300, 400, 500]  # ms
AHEAD = 3      # seconds by which a target is set before the timed checkpoint
START = 5      # seconds from the start of a server to that of the load


def measure(bench):
    conditions = {"timeout": bench.pick(30, 30, 120), "rate": RATE, "clients": CLIENTS,
                  "targets": bench.pick([0.9], [0, 0.3, 0.6, 0.9, 1], [0, 0.3, 0.6, 0.9, 1])}
    data = bench.continue_data(conditions)
    measured = bench.storage.measure(WRITES)
    for _ in range(bench.repeated(1, 1, 3)):
        each = pairs.measure_round(
            bench, data, series(bench),
            lambda each: one(bench, each, conditions["targets"], conditions["timeout"]))
        each["storage"] = measured
        yield data


def series(bench):
    """walsizer's checkpoints are timed ones: to see that need not be quick."""
    subjects = [] if bench.mode == "quick" else bench.subjects
    return [pairs.Series("timed", bench.plain, {"max_wal_size": LARGE}),
            pairs.Series("forced", bench.plain, {"max_wal_size": SMALL}),
            *(pairs.Series(subject.name, subject, {"max_wal_size": SMALL})
              for subject in subjects)]


def one(bench, each, targets, turn):
    """One server under one load.  In each turn, of one checkpoint_timeout, another
    target, from just before a timed checkpoint; the first turn, in which
    none begins, does not count."""
    settings = {**each.settings, "checkpoint_timeout": f"{turn}s", "shared_buffers": "1GB"}
    with bench.server(each.subject, settings, SCALE, bench.storage.place) as server:
        started = time.time()
        server.psql("SELECT count(*) FROM pgbench_accounts")
        bench.storage.limit(WRITES)
        try:
            time.sleep(max(0, started + START - time.time()))
            seconds = turn * (len(targets) + 1) - START
            boundaries = []
            with tps.Pgbench(server, f"--client={CLIENTS}", "--jobs=2", f"--time={seconds}",
                             f"--rate={RATE}", "--protocol=prepared", *tps.LOGGED) as pgbench:
                for number, target in enumerate(targets):
                    due = started + (number + 1) * turn - AHEAD
                    time.sleep(max(0, due - time.time()))
                    server.psql(f"ALTER SYSTEM SET checkpoint_completion_target = {target}")
                    server.psql("SELECT pg_reload_conf()")
                    boundaries.append(time.time())
                pgbench.wait()
        finally:
            bench.storage.limit(0)
        checkpoints, changes = watch.read_log(server.log, started)
    latencies = tps.latencies()
    phases = []
    for number, target in enumerate(targets):
        began = boundaries[number]
        ended = began + turn if number + 1 == len(targets) else boundaries[number + 1]
        # by when it began: pgbench notes the end
        inside = [ms for at, ms in latencies if began <= at - ms / 1000 < ended]
        causes = [c.cause for c in checkpoints if began <= c.at < ended]
        phases.append({"target": target, "transactions": len(inside),
                       "slow": [sum(ms > least for ms in inside) for least in THRESHOLDS],
                       "p99": tps.percentile(inside, 99), "max": max(inside, default=None),
                       "forced": causes.count("forced"), "timed": causes.count("timed")})
    if not latencies:
        raise servers.Failure("pgbench wrote no log")
    return {"phases": phases, "changes": [(round(at - started, 2), mb) for at, mb in changes],
            "checkpoints": [{**vars(c), "at": round(c.at - started, 2)} for c in checkpoints],
            "settings": server.settings}


#
# What comes of it
#

def phase_of(run, target):
    return next(phase for phase in run["phases"] if phase["target"] == target)


def figures(target):
    """Those to compare, and all."""
    def of(name, function, digits=0, needed=pairs.AMOUNT):
        return pairs.Figure(name, lambda run: function(phase_of(run, target)), digits, needed)

    slow = [of(f"> {least} ms", lambda phase, number=number: phase["slow"][number])
            for number, least in enumerate(THRESHOLDS)]
    return ([slow[0], slow[-1]],
            [of("transactions", lambda phase: phase["transactions"]), *slow,
             of("99 %, ms", lambda phase: phase["p99"], 0, pairs.RATE),
             *(of(cause, lambda phase, cause=cause: phase[cause]) for cause in ("forced", "timed"))])


def label(name):
    return {"forced": f"{SMALL}: forced", "timed": f"{LARGE}: timed"}.get(
        name, f"{name}, from {SMALL}")


def tables(data):
    conditions, rounds = data["conditions"], data["rounds"]
    yield (f"pgbench TPC-B at {conditions['rate']} transactions a second, {conditions['clients']} "
           f"clients, scale {SCALE}, shared_buffers = 1GB, checkpoint_timeout = "
           f"{conditions['timeout']} s.", ["storage"],
           [[text] for text in dict.fromkeys(storage.describe(each["storage"]) for each in rounds)])
    for target in conditions["targets"]:
        compared, shown = figures(target)
        yield from pairs.tables(f"checkpoint_completion_target = {target:g}", rounds, shown,
                                pairs.against(rounds, "timed"), compared, label)
    yield pairs.machines(rounds)


def limits(_):
    """Nothing that walsizer promises: it changes no target."""
    return []


def draw(figure, theme, data):
    """A line for each kind of checkpoint: share of transactions above 100 and 500 ms, the
    median of the rounds."""
    axis = figure.subplots()
    figure.set_size_inches(9, 3.8)
    rounds, targets = data["rounds"], data["conditions"]["targets"]
    for name in pairs.series_of(rounds):
        kind = {"forced": "small", "timed": "large"}.get(name, name)
        for number, style in ((0, "-"), (len(THRESHOLDS) - 1, ":")):
            axis.plot(targets, [pairs.median(rounds, share(target, number), name)
                                for target in targets], style, marker="o", markersize=5,
                      color=theme.colour(kind),
                      label=f"{label(name)}, above {THRESHOLDS[number]} ms")
    axis.set_xlabel("checkpoint_completion_target")
    axis.set_ylabel("transactions, %")
    axis.set_ylim(bottom=0)
    axis.set_title(f"Slow transactions at {data['conditions']['rate']} a second")
    axis.legend(fontsize=8)


def share(target, number):
    """Of the transactions of a phase, those above a threshold, in percent."""
    def of(run):
        phase = phase_of(run, target)
        return 100 * phase["slow"][number] / max(1, phase["transactions"])

    return pairs.Figure("%", of, 1)


PLOTS = {"slow": draw}
