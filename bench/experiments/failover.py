"""Checkpoints forced by WAL volume in two intervals after a promotion

A primary under pgbench, and a standby that was copied before the load began.  When
the standby has been sized for what the primary writes, the primary is killed
(every second time: stopped), the standby promoted, and the same load continues there.
The promotions are spread over an interval, because the checkpoint that one makes waits
for the end of a restartpoint.  Beside them, once, the same with two servers that nobody
sizes."""

import contextlib
import pathlib
import time

from experiments import recovery
from harness import experiment, model, server as servers, tps, watch
from harness.limits import Limit

INTERVAL = 30  # checkpoint_timeout, s
INTERVALS = 2  # after the promotion
START = "64MB"
SCALE = 20
RATE = 300     # transactions a second: the same load on both servers
SIZED = 300    # s, at most, until the standby is sized
MOMENTS = 10   # in an interval, at which the primary is taken down, in turn
SLACK = 2      # s: the clock of checkpoints counts whole seconds


def measure(bench):
    return {"interval": INTERVAL, "intervals": INTERVALS, "rate": RATE, "start": START,
            "runs": promotions(bench, bench.repeated(1, 10, 10), one)}


def promotions(bench, times, promote):
    """So many of each subject, and one of two servers that nobody sizes."""
    runs = []
    of = [(subject, number) for number in range(times) for subject in bench.subjects]
    of.append((bench.plain, 0))
    for subject, number in of:
        bench.say(f"{subject.name}, promotion {number + 1}")
        runs.append({"subject": subject.name, **promote(bench, subject, number)})
    return runs


def one(bench, subject, number):
    settings = {"max_wal_size": START, "checkpoint_timeout": f"{INTERVAL}s",
                "wal_keep_size": "2GB"}
    for name in ("primary", "standby"):
        pathlib.Path(name).mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        primary = stack.enter_context(bench.server(subject, settings, SCALE, "primary"))
        standby = stack.enter_context(running(bench, copy(bench, primary), "standby"))
        with tps.Pgbench(primary, *load()):
            wait_until_sized(subject, primary, standby)
            time.sleep(INTERVAL * (number % MOMENTS) / MOMENTS)
            before = forced_lately(primary)
            size = megabytes(standby)
            kind = take_down(primary, number)
            # it is to be stopped in order, though nobody uses it any more
            stack.callback(recovery.start_again, primary)
        promoted = time.time()
        standby.psql("SELECT pg_promote()")
        lsn = int(standby.value("SELECT pg_current_wal_lsn() - '0/0'"))
        with tps.Pgbench(standby, *load()) as pgbench:
            began = time.time()
            time.sleep(INTERVALS * INTERVAL + SLACK)
            done = sum(row[1] for row in pgbench.rows) / max(1, len(pgbench.rows))
        seconds = time.time() - began
        written = int(standby.value("SELECT pg_current_wal_lsn() - '0/0'")) - lsn
        checkpoints, changes = watch.read_log(standby.log, promoted)
    return {"kind": kind, "size": size, "forced_before": before, "tps": round(done),
            "age": round(promoted - last_restartpoint(standby, promoted), 1),
            "forced": count(checkpoints, "forced"), "own": count_own(checkpoints),
            "timed": count(checkpoints, "timed"),
            "other": count(checkpoints, "other"), "changes": changes,
            "wal_mb": written // model.MB, "seconds": round(seconds, 1)}


def load():
    return ["--client=4", "--jobs=2", "--protocol=prepared", f"--rate={RATE}", "--time=3600"]


def copy(bench, primary):
    """A standby of the primary, not started."""
    standby = servers.Server(bench.installation, "standby", {})
    servers.remove(standby.data)
    standby.log.unlink(missing_ok=True)
    servers.run("copying the primary", [
        *primary.client("pg_basebackup"), f"--pgdata={standby.data}", "--checkpoint=fast",
        "--wal-method=stream", "--write-recovery-conf", "--no-sync"])
    with open(standby.data / "postgresql.conf", "a", encoding="utf-8") as conf:
        conf.write(f"unix_socket_directories = '{standby.work}'\n")
    return standby


@contextlib.contextmanager
def running(bench, server, name):
    with server:
        try:
            yield server
        finally:
            if bench.options.keep_logs:
                experiment.keep_log(server, f"{bench.name}.{name}")


def megabytes(server):
    return int(server.value("SELECT pg_size_bytes(current_setting('max_wal_size')) / 1048576"))


def wait_until_sized(subject, primary, standby):
    """Until the standby is sized, and the primary had an interval without a forced
    checkpoint; for so long where nothing sizes them."""
    began = time.time()
    while True:
        time.sleep(1)
        waited = time.time() - began
        if subject.library is None and waited > 3 * INTERVAL:
            return
        if (subject.library is not None and waited > 2 * INTERVAL and
                forced_lately(primary) == 0 and f"{megabytes(standby)}MB" != START):
            return
        if waited > SIZED:
            if subject.library == "walsizer":
                raise servers.Failure(f"the standby was not sized within {SIZED} s")
            return


def forced_lately(primary):
    """Checkpoints forced on the primary in its last interval."""
    return count(watch.read_log(primary.log, time.time() - INTERVAL)[0], "forced")


def last_restartpoint(standby, before):
    """When the last one before a moment began."""
    return max(at for at in watch.restartpoints(standby.log) if at < before)


def take_down(primary, number):
    """A failover, or a switchover."""
    if number % 2 == 0:
        recovery.kill(primary)
        return "failover"
    servers.run("stopping the primary", [
        primary.bin / "pg_ctl", "stop", "--wait", "--silent", "--mode=fast",
        f"--pgdata={primary.data}"])
    return "switchover"


def count(checkpoints, cause):
    return sum(one.cause == cause for one in checkpoints)


def count_own(checkpoints):
    """Forced ones that the promotion would have made in any case."""
    return sum(one.cause == "forced" and "force" in one.words for one in checkpoints)


def tables(data):
    heading = ["server", "promotion", "max_wal_size of the standby, MB",
               "forced on the primary in its last interval",
               "seconds since the standby's last restartpoint began",
               f"forced in {data['intervals']} intervals after", "of these, the promotion's own",
               "timed", "WAL written, MB", "tps"]
    return [("", heading, [
        [run["subject"], run["kind"], run["size"], run["forced_before"], run["age"],
         run["forced"], run["own"], run["timed"], run["wal_mb"], run["tps"]]
        for run in data["runs"]])]


def limits(data):
    runs = [run for run in data["runs"] if run["subject"] == "walsizer"]
    if not runs:
        return []
    good = sum(run["forced"] == 0 for run in runs)
    return [Limit(f"promotions without a forced checkpoint in {data['intervals']} intervals",
                  f"{good} of {len(runs)}", good == len(runs))]


PLOTS = {}
