"""Slow transactions against checkpoint_completion_target, on slow storage.

pgbench TPC-B at a fixed rate; how many transactions took longer than 100 to 500
ms at each target, once with forced and once with timed checkpoints, and with
walsizer (and each --preload) from the size that forces them."""

import time

from harness import server as servers, storage, tps, watch

SMALL, LARGE = "64MB", "4GB"
CLIENTS = 16
SCALE = 20
WRITES = 1000  # per second, the limit of the storage
RATE = 400     # transactions per second; what it falls behind counts as latency
THRESHOLDS = [100, 200, 300, 400, 500]  # ms
AHEAD = 3      # seconds by which a target is set before the timed checkpoint
START = 5      # seconds from the start of a server to that of the load


def measure(bench):
    targets = bench.pick([0, 0.9], [0, 0.3, 0.6, 0.9, 1], [0, 0.3, 0.6, 0.9, 1])
    timeout = bench.pick(30, 30, 120)
    data = {"timeout": timeout, "rate": RATE, "clients": CLIENTS, "thresholds": THRESHOLDS,
            "storage": bench.storage.measure(WRITES), "runs": []}
    for number in range(bench.repeated(1, 1, 3)):
        series = [("forced", bench.plain, SMALL), ("timed", bench.plain, LARGE)]
        # walsizer's checkpoints are timed ones: to see that need not be quick
        if bench.mode != "quick":
            series += [(subject.name, subject, SMALL) for subject in bench.subjects]
        for name, subject, size in series:
            bench.say(f"{name}, run {number + 1}")
            # forced ones come so often that half a timeout is enough
            turn = timeout // 2 if name == "forced" and bench.mode == "quick" else timeout
            data["runs"].append({"name": name, "start": size, "run": number + 1, "turn": turn,
                                 **one(bench, subject, size, targets, timeout, turn)})
    return data


def one(bench, subject, size, targets, timeout, turn):
    """One server under one load.  In each turn, of one checkpoint_timeout, another
    target, from just before a timed checkpoint; the first turn, in which
    none begins, does not count."""
    settings = {"max_wal_size": size, "checkpoint_timeout": f"{timeout}s",
                "shared_buffers": "1GB"}
    with bench.server(subject, settings, SCALE, bench.storage.place) as server:
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


def label(run):
    return {"forced": f"{SMALL}: forced", "timed": f"{LARGE}: timed"}.get(
        run["name"], f"{run['name']}, from {SMALL}")


def tables(data):
    yield (f"pgbench TPC-B at {data['rate']} transactions a second, {data['clients']} clients, "
           f"scale {SCALE}, shared_buffers = 1GB, checkpoint_timeout = {data['timeout']} s. "
           + storage.describe(data["storage"]),
           ["checkpoints", "run", "target", "seconds", "transactions",
            *[f"> {least} ms" for least in data["thresholds"]], "99 %, ms", "forced", "timed"],
           [[label(run), run["run"], f"{phase['target']:g}", run["turn"],
             phase["transactions"], *phase["slow"],
             "-" if phase["p99"] is None else f"{phase['p99']:.0f}", phase["forced"],
             phase["timed"]] for run in data["runs"] for phase in run["phases"]])


def limits(_):
    """Nothing that walsizer promises: it changes no target."""
    return []


def draw(figure, theme, data):
    """A line for each kind of checkpoint: share of transactions above 100 ms."""
    axis = figure.subplots()
    figure.set_size_inches(9, 3.8)
    for run in data["runs"]:
        if run["run"] == 1:
            kind = {"forced": "small", "timed": "large"}.get(run["name"], run["name"])
            for number, style in ((0, "-"), (len(THRESHOLDS) - 1, ":")):
                axis.plot([phase["target"] for phase in run["phases"]],
                          [100 * phase["slow"][number] / max(1, phase["transactions"])
                           for phase in run["phases"]], style, marker="o", markersize=5,
                          color=theme.colour(kind),
                          label=f"{label(run)}, above {THRESHOLDS[number]} ms")
    axis.set_xlabel("checkpoint_completion_target")
    axis.set_ylabel("transactions, %")
    axis.set_ylim(bottom=0)
    axis.set_title(f"Slow transactions at {data['rate']} a second")
    axis.legend(fontsize=8)


PLOTS = {"slow": draw}
