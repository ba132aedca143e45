"""Stopping and starting a server under load, by max_wal_size

A server runs pgbench TPC-B for some minutes at a max_wal_size of 1GB, 4GB and 16GB.
Then it is stopped in mode fast, and started again.  At 16GB also with a CHECKPOINT just
before the stop.  What a CHECKPOINT takes is not part of what the stop takes: the server
works meanwhile.

Rounds add up over several runs: see --add."""

import os
import time

from harness import model, pairs, tps

# Commits that do not wait for the disk change more pages in the same time.
LOAD = ["--client=8", "--jobs=2", "--protocol=prepared"]
SETTINGS = {"shared_buffers": "1GB", "synchronous_commit": "off", "checkpoint_timeout": "5min"}
SIZES = ["1GB", "4GB", "16GB"]
LARGE, BEFORE = SIZES[-1], "CHECKPOINT before"
PATIENCE = 600  # s, longer than a stop takes


def measure(bench):
    conditions = {"scale": bench.pick(10, 60, 60), "seconds": bench.seconds(10, 100, 250)}
    data = bench.continue_data(conditions)
    for _ in range(bench.repeated(1, 1, 5)):
        pairs.measure_round(bench, data, series(bench), lambda each: one(bench, each, conditions))
        yield data


def series(bench):
    of_sizes = [pairs.Series(size, bench.plain, {**SETTINGS, "max_wal_size": size})
                for size in SIZES]
    return [*of_sizes, of_sizes[-1]._replace(name=f"{LARGE}, {BEFORE}")]


def one(bench, each, conditions):
    """One server, once."""
    with bench.server(each.subject, each.settings, conditions["scale"]) as server:
        server.psql("SELECT count(*) FROM pgbench_accounts")
        os.sync()
        with tps.Pgbench(server, *LOAD, f"--time={conditions['seconds'] + PATIENCE}"):
            time.sleep(conditions["seconds"])
            if each.name.endswith(BEFORE):
                server.psql("CHECKPOINT")
            since = float(server.value("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), redo_lsn) "
                                       "FROM pg_control_checkpoint()"))
            stop = timed(server.stop)
        return {"since_mb": round(since / model.MB), "stop": stop, "start": timed(server.start),
                "settings": server.settings}


def timed(function):
    """Seconds."""
    began = time.monotonic()
    function()
    return round(time.monotonic() - began, 2)


#
# What comes of it
#

FIGURES = [pairs.Figure("stop, s", lambda run: run["stop"], 1, pairs.RATE),
           pairs.Figure("start, s", lambda run: run["start"], 2, pairs.RATE)]
SHOWN = [pairs.Figure("WAL since the last checkpoint, MB", lambda run: run["since_mb"], 0),
         *FIGURES]


def tables(data):
    conditions, rounds = data["conditions"], data["rounds"]
    yield from pairs.tables(
        f"pgbench TPC-B, 8 clients, scale {conditions['scale']}, {conditions['seconds']} s, "
        "synchronous_commit = off", rounds, SHOWN, pairs.against(rounds, SIZES[0]), FIGURES,
        lambda name: f"max_wal_size = {name}")
    yield pairs.machines(rounds)


def limits(_data):
    """None: walsizer is not measured."""
    return []


PLOTS = {}
