"""Checkpoints forced by WAL volume after a promotion, by bursts after idleness

As experiment failover otherwise, but the primary is idle, then writes in 25 s many
times what the original size holds, is idle again, and so on; autovacuum is off.  An
idle primary skips its timed checkpoints, so that what a standby sees of a burst is
one checkpoint after minutes.  The primary is killed (every second time: stopped) in
an idle time, the standby promoted, and the burst repeated there.  Each burst begins
just after the checkpoint timer has fired, so that all of it lies between two timed
checkpoints."""

import contextlib
import pathlib
import time

from experiments import failover, loads, recovery
from harness import model, tps, watch
from harness.limits import Limit

INTERVAL = failover.INTERVAL
INTERVALS = failover.INTERVALS
IDLE = 2         # intervals without a load, beside what is left of those after a burst
BURST = 25       # s
BURSTS = 2       # before the promotion
RATE = 100       # statements a second, about 14 MB of WAL
SEGMENT = 16 * model.MB
TARGET = 0.9     # checkpoint_completion_target


def measure(bench):
    return {"interval": INTERVAL, "intervals": INTERVALS, "start": failover.START,
            "idle": IDLE, "burst": BURST, "bursts": BURSTS, "rate": RATE,
            "runs": failover.promotions(bench, bench.repeated(1, 3, 10), one)}


def one(bench, subject, number):
    settings = {"max_wal_size": failover.START, "checkpoint_timeout": f"{INTERVAL}s",
                "wal_keep_size": "4GB", "autovacuum": "off"}
    for name in ("primary", "standby"):
        pathlib.Path(name).mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        primary = stack.enter_context(bench.server(subject, settings, 0, "primary"))
        primary.psql("CREATE TABLE bulk (id int, filler text)")
        standby = stack.enter_context(
            failover.running(bench, failover.copy(bench, primary), "standby"))
        primary.psql("CHECKPOINT")
        for _ in range(BURSTS):
            time.sleep(IDLE * INTERVAL)
            before = burst(primary)
        time.sleep(IDLE * INTERVAL)
        size = failover.megabytes(standby)
        kind = failover.take_down(primary, number)
        # it is to be stopped in order, though nobody uses it any more
        stack.callback(recovery.start_again, primary)
        promoted = time.time()
        standby.psql("SELECT pg_promote()")
        # the promotion's own checkpoint begins the first interval
        while not watch.read_log(standby.log, promoted)[0]:
            time.sleep(0.2)
        time.sleep(INTERVAL)
        after = burst(standby)
    return {"kind": kind, "size": size, "forced_before": before["forced"],
            "needed": model.size_for(after["wal"], SEGMENT, TARGET),
            "enough": model.trigger_point(size, SEGMENT, TARGET) >= after["wal"],
            "wal_mb": after["wal"] // model.MB, **after}


def burst(server):
    """One burst, and all of two intervals from its start on."""
    pathlib.Path("burst.sql").write_text(loads.BURST_SCRIPT, encoding="ascii")
    wait_for_timer(server)
    began = time.time()
    lsn = position(server)
    with tps.Pgbench(server, "--client=4", "--jobs=2", f"--rate={RATE}", f"--time={BURST}",
                     "--file=burst.sql") as pgbench:
        pgbench.wait()
    wal = position(server) - lsn
    time.sleep(max(0, INTERVALS * INTERVAL + failover.SLACK - (time.time() - began)))
    checkpoints, changes = watch.read_log(server.log, began)
    causes = {cause: failover.count(checkpoints, cause) for cause in ("forced", "timed", "other")}
    return {**causes, "changes": changes, "wal": wal}


def wait_for_timer(server):
    """Until the timer for checkpoints has just fired.  A checkpoint that is skipped
    because the server is idle leaves no line, and the timer its phase."""
    last = watch.read_log(server.log, 0)[0][-1].at
    time.sleep(INTERVAL - (time.time() - last) % INTERVAL + failover.SLACK)


def position(server):
    return int(server.value("SELECT pg_current_wal_lsn() - '0/0'"))


def tables(data):
    heading = ["server", "promotion", "max_wal_size of the standby, MB", "needed, MB",
               "forced on the primary by its last burst",
               f"forced in {data['intervals']} intervals after the burst", "timed", "changes",
               "WAL of the burst, MB"]
    return [("", heading, [
        [run["subject"], run["kind"], run["size"], run["needed"], run["forced_before"],
         run["forced"], run["timed"], len(run["changes"]), run["wal_mb"]]
        for run in data["runs"]])]


def limits(data):
    runs = [run for run in data["runs"] if run["subject"] == "walsizer"]
    if not runs:
        return []
    enough = sum(run["enough"] for run in runs)
    good = sum(run["forced"] == 0 for run in runs)
    return [Limit("standbys large enough for the burst when promoted",
                  f"{enough} of {len(runs)}", enough == len(runs)),
            Limit(f"promotions without a forced checkpoint in {data['intervals']} intervals",
                  f"{good} of {len(runs)}", good == len(runs))]


PLOTS = {}
