"""Crash recovery at each size of the sweep, beside walsizer's estimate

A server under pgbench is killed with SIGKILL when there is much to replay, and
started again.  walsizer is switched off: the size is to stay what it is.  The first
two crashes measure the rate of replay: what is slow once, because it is the first
time, says little of the next."""

import statistics
import sys
import time

from experiments import recovery, sweep
from harness import model
from harness.limits import Limit

SCALE = 20
LOAD = ["--client=8", "--jobs=2", "--no-vacuum", "--protocol=prepared"]
FULL = 0.8  # of the trigger point reached: time for the crash
TARGET = 0.9  # checkpoint_completion_target, the server's default
SEGMENT = 16 * model.MB


def measure(bench):
    subject = next((one for one in bench.subjects if one.library == "walsizer"), None)
    data = {"crashes": []}
    if subject is None:  # only walsizer estimates recovery
        return data
    # commits that do not wait for the disk write more WAL in the same time
    settings = {"checkpoint_timeout": "30min", "walsizer.enable": "off",
                "max_wal_size": f"{sweep.sizes(bench)[-1]}MB", "synchronous_commit": "off"}
    with bench.server(subject, settings, SCALE) as server:
        for which in ("first", "second"):
            server.pgbench(f"--time={bench.pick(4, 15, 15)}", *LOAD)
            recovery.crash(server, which)
        for size in sweep.sizes(bench) * bench.repeated(2, 2, 5):
            bench.say(f"a crash at {size} MB")
            data["crashes"].append(crash(bench, server, size))
    return data


def crash(bench, server, size):
    server.psql(f"ALTER SYSTEM SET max_wal_size = '{size}MB'")
    server.psql("SELECT pg_reload_conf()")
    server.psql("CHECKPOINT")
    trigger = model.trigger_point(size, SEGMENT, TARGET)
    end = time.monotonic() + bench.pick(10, 60, 300)
    used = 0
    while used < FULL * trigger and time.monotonic() < end:
        server.pgbench("--time=1", *LOAD)
        used = int(server.value("SELECT pg_current_wal_lsn() - redo_lsn "
                                "FROM pg_control_checkpoint()"))
    server.value("SELECT walsizer_adjust()")
    worst = float(server.value("SELECT extract(epoch FROM recovery_time_max) "
                               "FROM walsizer_stats"))
    one = recovery.crash(server, f"{size} MB")
    print("  ", *one.row(), sep="  ", file=sys.stderr, flush=True)
    return {"size": size, "trigger_point_mb": trigger // model.MB, "worst": worst, **vars(one)}


def median_ratio(crashes):
    return statistics.median(one["ratio"] for one in crashes)


def by_size(crashes):
    sizes = {}
    for one in crashes:
        sizes.setdefault(one["size"], []).append(one)
    return sizes


def tables(data):
    heading = ["max_wal_size, MB", "WAL replayed, MB", "took, s", "estimate, s",
               "estimate / took", "worst case of this size, s"]
    return [("", heading, [
        [one["size"], f"{one['wal_mb']:.0f}", f"{one['took']:.2f}", f"{one['estimate']:.2f}",
         f"{one['ratio']:.2f}", f"{one['worst']:.1f}"] for one in data["crashes"]])]


def limits(data):
    if not data["crashes"]:
        return []
    median = median_ratio(data["crashes"])
    return [Limit(f"median of estimate / took within a factor of {recovery.WITHIN}",
                  f"{median:.2f}", 1 / recovery.WITHIN <= median <= recovery.WITHIN)]


def draw(figure, theme, data):
    """What it took and what was said beforehand, over WAL replayed."""
    axes = figure.subplots()
    crashes = sorted(data["crashes"], key=lambda one: one["wal_mb"])
    wal = [one["wal_mb"] for one in crashes]
    axes.plot(wal, [one["took"] for one in crashes], "o", color=theme.colour("plain"),
              label="recovery took")
    axes.plot(wal, [one["estimate"] for one in crashes], "x", color=theme.colour("walsizer"),
              label="walsizer's estimate just before")
    axes.set_xlabel("WAL replayed, MB")
    axes.set_ylabel("seconds")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.legend()


PLOTS = {"crash": draw}
