"""What wal_writer_delay = 10ms costs: transactions, latency, and an idle server

pgbench TPC-B with 8 and with 64 clients, with 8 clients and synchronous_commit =
off, and no load at all, each with wal_writer_delay = 200ms (the default) and 10ms, at
a max_wal_size and a checkpoint_timeout that start no checkpoint.  Bulk loads are
experiment bulk's.

Rounds add up over several runs: see --add."""

import os
import time

from harness import fixed, model, pairs, tps, watch

SAMPLED = 0.1   # of the transactions, whose latency is written down
USUAL, QUICK = "200ms", "10ms"
BUFFERS = 1280  # MB, shared_buffers: all data, so that no query writes any
SETTLING = 2    # s, from the start of a server to that of the load
# s, after which an idle WAL writer sleeps 25 times as long as wal_writer_delay: the
# background writer logs its last snapshot within 15 s and wakes it, and then it has to
# find nothing to do 50 times; and s in which its wake-ups are counted
FALLING_ASLEEP, ASLEEP = 30, 30

# clients (0: none), and settings.  Where a query removes dead rows it wakes the WAL
# writer, also of an idle server: autovacuum's would do so once a minute.
LOADS = {"8": (8, {}), "64": (64, {}), "async": (8, {"synchronous_commit": "off"}),
         "idle": (0, {"autovacuum": "off"})}


def measure(bench):
    conditions = {"scale": bench.pick(10, 64, 64), "seconds": bench.seconds(10, 40, 60),
                  "idle": bench.seconds(10, ASLEEP, ASLEEP)}
    data = bench.continue_data(conditions)
    for _ in range(bench.repeated(1, 1, 5)):
        for load in bench.chosen(list(LOADS), LOADS):
            pairs.measure_round(
                bench, data, series(bench, load),
                lambda each, load=load: one(bench, each, load, conditions), load=load)
            yield data


def series(bench, load):
    settings = {"max_wal_size": "64GB", "checkpoint_timeout": "1h", "max_connections": 100,
                "shared_buffers": f"{BUFFERS}MB", **LOADS[load][1]}
    return [pairs.Series(delay, bench.plain, {**settings, "wal_writer_delay": delay})
            for delay in (USUAL, QUICK)]


def one(bench, each, load, conditions):
    """One server, once."""
    clients = LOADS[load][0]
    with bench.server(each.subject, each.settings, conditions["scale"] if clients else 0) as server:
        writer = server.worker("walwriter")
        os.sync()
        if clients:
            run = under_load(server, writer, clients, conditions["seconds"])
        else:
            time.sleep(FALLING_ASLEEP)
            run = watched(writer, lambda: time.sleep(conditions["idle"]))
        checkpoints, _ = watch.read_log(server.log, 0)
    return {**run, "checkpoints": len(checkpoints), "settings": server.settings}


def watched(writer, function):
    """What the WAL writer does meanwhile."""
    worker = watch.Worker(writer)
    function()
    cpu, wakeups = worker.share()
    return {"writer_cpu": cpu, "writer_wakeups": wakeups}


def under_load(server, writer, clients, seconds):
    server.psql("SELECT count(*) FROM pgbench_accounts")
    time.sleep(SETTLING)
    before = fixed.wal_statistics(server)
    with tps.Pgbench(server, f"--client={clients}", "--jobs=2", "--protocol=prepared",
                     f"--time={seconds}", f"--sampling-rate={SAMPLED}", *tps.LOGGED) as pgbench:
        run = watched(writer, pgbench.wait)
    after = fixed.wal_statistics(server)
    return {**run, "wal_mb": round((after["lsn"] - before["lsn"]) / model.MB, 1),
            "tps": round(pgbench.mean, 1), "transactions": pgbench.transactions,
            "p99": tps.percentile([ms for _, ms in tps.latencies()], 99)}


#
# What comes of it
#

# Of an idle server there are neither.
FIGURES = [pairs.Figure("tps", lambda run: run.get("tps"), 0, pairs.RATE),
           pairs.Figure("99 % latency, ms", lambda run: run.get("p99"), 1, pairs.RATE)]
WRITER = [pairs.Figure("WAL writer: % of a core", lambda run: 100 * run["writer_cpu"], 3,
                       pairs.RATE),
          pairs.Figure("wake-ups a second", lambda run: run["writer_wakeups"], 1)]
SHOWN = [*FIGURES,
         pairs.Figure("WAL, kB / transaction", lambda run: 1024 * run["wal_mb"]
                      / run["transactions"] if "wal_mb" in run else None, 2),
         *WRITER, pairs.Figure("checkpoints", lambda run: run["checkpoints"], 0)]


def describe(load, conditions):
    clients, settings = LOADS[load]
    if not clients:
        return f"No load, {conditions['idle']} s"
    return ", ".join([f"pgbench TPC-B, {clients} clients",
                      *(f"{name} = {value}" for name, value in settings.items()),
                      f"scale {conditions['scale']}", f"{conditions['seconds']} s"])


def tables(data):
    for load in LOADS:
        rounds = pairs.rounds_of(data, load=load)
        if rounds:
            yield from pairs.tables(
                describe(load, data["conditions"]), rounds, SHOWN, [(QUICK, USUAL)],
                [*FIGURES, *WRITER], lambda name: f"wal_writer_delay = {name}")
    yield pairs.machines(data["rounds"], "load")


def limits(_data):
    """None: walsizer is not measured."""
    return []


PLOTS = {}
