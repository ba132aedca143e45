"""Crash recovery at the worst moment, against walsizer.max_recovery_time

A server under load is killed with SIGKILL when there is as much to replay as
walsizer.max_recovery_time lets be: just before a checkpoint at full size completes.
Some recoveries find the data in the page cache, others do not; on storage without a
limit, and on slow storage.  On each of them two recoveries only measure its speed.

What a recovery takes is counted from the beginning of replay until connections are
accepted, which includes the checkpoint at its end.  Before that the server syncs its
data directory, which no max_wal_size changes: that time has a column of its own."""

import datetime
import os
import re
import signal
import statistics
import time

from harness import limits as judge, model, results, server as servers, storage, tps

SCALE = 50
WRITES = 3000        # per second, of the slow storage
FULL = 0.9           # of max_wal_size is to be replayed: the checkpoint is about to complete
WORST, TRIES = 0.8, 5    # at least as much of it was replayed, or the crash is repeated
NEAR = 0.8           # of the limit, at least, is max_wal_size
PATIENCE = 1500      # s, until that is so
MOST, LEAST = 1.25, 0.5  # x walsizer.max_recovery_time, of all and in the median

# Transactions that change pages here and there, and statements that change many rows.
# Commits that do not wait for the disk write more WAL in the same time.
LOADS = {"TPC-B": ["--client=8", "--jobs=2", "--protocol=prepared"],
         "updates": ["--client=4", "--jobs=2", "--file=updates.sql"]}
UPDATES = f"""\\set first random(1, {(SCALE - 1) * 100000})
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid BETWEEN :first AND :first + 9999;
"""
SETTINGS = {"checkpoint_timeout": "1h", "max_wal_size": "512MB", "synchronous_commit": "off",
            "walsizer.max": "64GB", "walsizer.max_recovery_time": "1s"}

# a third of the data; all of it, or the storage would slow the load down, too
BUFFERS = {"free": {"shared_buffers": "256MB"}, "slow": {"shared_buffers": "1GB"}}

HEADING = ["storage", "load", "cache", "max_wal_size, MB", "WAL replayed, MB",
           "read from storage, MB", "before replay, s", "replay, s", "checkpoint, s", "took, s",
           "max_recovery_time, s", "took / that", "recovery_time_now before, s"]


# What walsizer.max_recovery_time allows, s.
PLAN = {"free": [("TPC-B", 5), ("updates", 20), ("TPC-B", 10), ("updates", 80), ("updates", 40),
                 ("TPC-B", 8)],
        "slow": [("TPC-B", 40), ("updates", 60), ("TPC-B", 60), ("updates", 40)]}


def plan(bench, where):
    """(load, seconds allowed, is everything cached?), in this order."""
    for load, allowed in PLAN[where][:bench.pick(1, None, None)] * bench.pick(1, 1, 2):
        yield from ((load, allowed, cached) for cached in (True, False))


def measure(bench):
    """A round is a crash."""
    data = bench.continue_data({"scale": SCALE, "writes": WRITES})
    data["storage"] = bench.storage.measure(WRITES)
    subject = next((one for one in bench.subjects if one.library == "walsizer"), None)
    if subject is None:  # nobody else makes a promise
        return
    with open("updates.sql", "w", encoding="ascii") as script:
        script.write(UPDATES)
    for where in bench.chosen(list(PLAN), PLAN):
        place, writes = (".", 0) if where == "free" else (bench.storage.place, WRITES)
        with bench.server(subject, {**SETTINGS, **BUFFERS[where]}, SCALE, place) as server:
            bench.storage.limit(writes)
            try:
                measure_speed(bench, server, where)
                for load, allowed, cached in plan(bench, where):
                    bench.say(f"{where} storage, {load}, {allowed} s, "
                              f"{'cached' if cached else 'not cached'}")
                    data["rounds"].append({"storage": where, "load": load, "cached": cached,
                                           "begun": results.now(),
                                           "revision": bench.options.revision,
                                           **at_worst(bench, server, load, cached, allowed)})
                    yield data
            finally:
                bench.storage.limit(0)


def measure_speed(bench, server, where):
    """Two recoveries that only tell walsizer how fast this server is."""
    for cached in (True, False):
        bench.say(f"{where} storage: measuring the speed of recovery")
        server.psql("CHECKPOINT")
        load_until(server, "TPC-B", lambda: unsaved(server) > 400)
        crash(bench, server, cached)


def at_worst(bench, server, load, cached, allowed):
    """A crash when there is as much to replay as that limit (s) allows.  Not the worst is
    one that came when the checkpoint had just completed: that does not count."""
    for _ in range(TRIES):
        found = at_limit(bench, server, load, cached, allowed)
        if found["wal_mb"] > WORST * found["size"]:
            return found
    raise servers.Failure("checkpoints always complete before the server is killed")


def at_limit(bench, server, load, cached, allowed):
    # A crash loses the counts that tell autovacuum what to do: after a few of
    # them, dead rows would fill the slow volume.
    server.psql("VACUUM")
    server.psql(f"ALTER SYSTEM SET walsizer.max_recovery_time = '{allowed}s'")
    server.psql("SELECT pg_reload_conf()")
    found = {}

    def full():
        size, limit, now = map(float, server.psql(
            "SELECT max_wal_size / 1048576, recovery_limit / 1048576, "
            "extract(epoch FROM recovery_time_now) FROM walsizer_status, walsizer_stats")[0])
        found.update(size=size, estimate=now)
        # more than the size allows: a checkpoint of a larger one is not complete yet
        return NEAR * limit <= size <= limit / NEAR and FULL * size < unsaved(server) < size / FULL

    load_until(server, load, full)
    return {"allowed": allowed, **found, **crash(bench, server, cached)}


def unsaved(server):
    """MB of WAL to be replayed after a crash."""
    return float(server.value("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), redo_lsn) / 1048576 "
                              "FROM pg_control_checkpoint()"))


def load_until(server, load, reached):
    end = time.monotonic() + PATIENCE
    with tps.Pgbench(server, *LOADS[load], f"--time={2 * PATIENCE}"):
        while not reached():
            if time.monotonic() > end:
                raise servers.Failure(f"{load}: there was never enough to replay")
            time.sleep(0.1)
        kill(server)


def kill(server):
    pid = int((server.data / "postmaster.pid").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)


def start_again(server):
    wait_for_end(server)
    server.start()


def crash(bench, server, cached):
    """What was killed is started again, and what that took is read from its log."""
    wait_for_end(server)
    if not cached:
        bench.storage.drop_from_cache(server.data)
    offset = server.log.stat().st_size
    before = last_measured(server)
    server.start()
    with open(server.log, encoding="utf-8", errors="replace") as log:
        log.seek(offset)
        found = read_recovery(log.read())
    return {**found, "measured": new_measurement(server, before)}


def last_measured(server):
    """What walsizer's newest measurement of a recovery is, or None; see server/statetext.c."""
    file = server.data / "pg_stat" / "walsizer.state"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    found = [line.split()[1:] for line in lines if line.startswith("recovery ")]
    return dict(zip(found[0][::2], map(int, found[0][1::2]))) if found else None


def new_measurement(server, before):
    """The worker writes it when it starts; too short a recovery is not measured."""
    end = time.monotonic() + 15
    while last_measured(server) == before and time.monotonic() < end:
        time.sleep(0.1)
    after = last_measured(server)
    return after if after != before else None


def wait_for_end(server):
    """The last process of the killed server lets go of the shared memory."""
    end = time.monotonic() + 120
    while subprocesses(server.data):
        if time.monotonic() > end:
            raise servers.Failure("a killed server did not end")
        time.sleep(0.1)


def subprocesses(data):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/cwd") == str(data):
                found.append(pid)
        except OSError:
            pass
    return found


#
# What the server's log tells
#

LINE = r"^(\d+-\d+-\d+ \d+:\d+:\d+\.\d+) UTC \[\d+\] LOG:  "
BEGINS = re.compile(LINE + "database system was interrupted", re.M)
STARTS = re.compile(LINE + r"redo starts at ([0-9A-F]+/[0-9A-F]+)", re.M)
DONE = re.compile(LINE + r"redo done at ([0-9A-F]+/[0-9A-F]+) .*elapsed: ([\d.]+) s", re.M)
CHECKPOINT = re.compile(LINE + r"checkpoint complete: .* total=([\d.]+) s", re.M)
READY = re.compile(LINE + "database system is ready to accept connections", re.M)


def read_recovery(text):
    begins, starts, done, checkpoint, ready = (
        pattern.search(text) for pattern in (BEGINS, STARTS, DONE, CHECKPOINT, READY))
    if None in (begins, starts, done, checkpoint, ready):
        raise servers.Failure(f"the server was killed, but did not recover\n{text[-2000:]}")
    return {"wal_mb": (position(done[2]) - position(starts[2])) / model.MB,
            "before": seconds(begins, starts), "replay": float(done[3]),
            "checkpoint": float(checkpoint[2]), "took": seconds(starts, ready)}


def position(lsn):
    high, low = lsn.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def seconds(first, second):
    moments = [datetime.datetime.strptime(line[1], "%Y-%m-%d %H:%M:%S.%f")
               for line in (first, second)]
    return (moments[1] - moments[0]).total_seconds()


#
# What comes of it
#

def share(one):
    return one["took"] / one["allowed"]


def read_mb(one):
    """By the startup process: WAL, and pages that were not cached."""
    return f"{one['measured']['bytes_read'] / model.MB:.0f}" if one["measured"] else "-"


def tables(data):
    yield (storage.describe(data["storage"]).replace("Storage limited", "Slow storage: limited"),
           HEADING,
           [[one["storage"], one["load"], "yes" if one["cached"] else "no", f"{one['size']:.0f}",
             f"{one['wal_mb']:.0f}", read_mb(one), f"{one['before']:.1f}", f"{one['replay']:.1f}",
             f"{one['checkpoint']:.1f}", f"{one['took']:.1f}", one["allowed"],
             f"{share(one):.2f}", f"{one['estimate']:.1f}"] for one in data["rounds"]])
    groups = {}
    for one in data["rounds"]:
        groups.setdefault((one["storage"], one["cached"]), []).append(share(one))
    yield ("What it took, divided by walsizer.max_recovery_time.",
           ["storage", "cached", "crashes", "smallest", "median", "largest"],
           [[where, "yes" if cached else "no", len(shares), f"{min(shares):.2f}",
             f"{statistics.median(shares):.2f}", f"{max(shares):.2f}"]
            for (where, cached), shares in groups.items()])


def limits(data):
    shares = [share(one) for one in data["rounds"]]
    if not shares:
        return []
    return [judge.at_most("recovery / walsizer.max_recovery_time, largest,",
                          round(max(shares), 3), MOST),
            judge.at_least("recovery / walsizer.max_recovery_time, median,",
                           round(statistics.median(shares), 3), LEAST)]


def draw(figure, theme, data):
    """What recovery took over what was allowed."""
    axes = figure.subplots()
    for where, marker in (("free", "o"), ("slow", "s")):
        for cached, filled in ((True, True), (False, False)):
            chosen = [one for one in data["rounds"]
                      if (one["storage"], one["cached"]) == (where, cached)]
            colour = theme.colour("walsizer" if where == "free" else "plain")
            axes.plot([one["allowed"] for one in chosen], [one["took"] for one in chosen], marker,
                      color=colour, fillstyle="full" if filled else "none",
                      label=f"{where} storage, {'cached' if cached else 'not cached'}")
    most = 1.1 * max((one["allowed"] for one in data["rounds"]), default=1)
    for factor, style, what in ((MOST, ":", f"{MOST} times"), (1, "--", "the limit"),
                                (LEAST, ":", f"{LEAST} times")):
        axes.plot([0, most], [0, factor * most], style, color=theme.text, linewidth=1)
        axes.annotate(what, (most, factor * most), (4, 0), textcoords="offset points",
                      va="center", annotation_clip=False)
    axes.set_xlabel("walsizer.max_recovery_time, s")
    axes.set_ylabel("recovery took, s")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.legend()


PLOTS = {"recovery": draw}
