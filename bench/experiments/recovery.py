"""Recovery after a crash: is what walsizer says beforehand what it takes, and
does walsizer.max_recovery_time keep its promise?

A server under pgbench is killed with SIGKILL again and again.  The first time
only measures the rate of replay."""

import os
import re
import signal
import statistics
import sys
import time

from harness import model, results, server as servers

SCALE = 50
LOAD = 20  # seconds of pgbench before each crash
LIMIT = 1  # walsizer.max_recovery_time, s
ROUNDS = 5  # unless --repeat says more
WITHIN = 1.5  # the median of estimate / truth, either way

HEADING = ["crash", "WAL replayed, MB", "rate used, MB/s", "estimate, s", "took, s",
           "estimate / took"]


class Crash:
    def __init__(self, kind, stats, estimate, replay):
        self.kind = kind
        self.rate_mb = stats["replay_rate"] / model.MB
        self.source = stats["replay_rate_source"]
        self.estimate = estimate
        self.wal_mb = (position(replay["done"]) - position(replay["starts"])) / model.MB
        self.took = float(replay["took"])
        self.ratio = estimate / self.took

    def row(self):
        return [self.kind, f"{self.wal_mb:.0f}", f"{self.rate_mb:.0f} ({self.source})",
                f"{self.estimate:.2f}", f"{self.took:.2f}", f"{self.ratio:.2f}"]


# the lines of the startup process; what follows "redo done at" is its use of
# the processor
REPLAY = re.compile(r"redo starts at (?P<starts>[0-9A-F/]+)$.*"
                    r"redo done at (?P<done>[0-9A-F/]+) .*elapsed: (?P<took>[\d.]+) s",
                    re.M | re.S)


def position(lsn):
    high, low = lsn.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def kill(server):
    pid = int((server.data / "postmaster.pid").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)


def start_again(server):
    """As soon as the last process of the killed server is gone."""
    end = time.monotonic() + 120
    while True:
        try:
            return server.__enter__()
        except servers.Failure:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def crash(server, kind):
    """Kill it now, start it, and compare."""
    server.value("SELECT walsizer_adjust()")
    stats = server.rows("walsizer_stats")[0]
    estimate = float(server.value("SELECT extract(epoch FROM recovery_time_now) "
                                  "FROM walsizer_stats"))
    offset = server.log.stat().st_size
    kill(server)
    start_again(server)
    with open(server.log, encoding="utf-8", errors="replace") as log:
        log.seek(offset)
        replay = REPLAY.search(log.read())
    if replay is None:
        raise servers.Failure("the server was killed, but did not recover")
    return Crash(kind, stats, estimate, replay)


def estimates(server, rounds, seconds):
    """Crashes with different amounts of WAL to replay."""
    for number in range(rounds + 1):
        server.psql("CHECKPOINT")
        server.pgbench("--client=8", f"--time={max(2, seconds * (1 + number % 3) // 2)}",
                       "--no-vacuum", "--protocol=prepared")
        yield crash(server, "estimate" if number > 0 else "first")


def at_worst(server, seconds):
    """A crash when there is as much to replay as the limit allows."""
    server.psql(f"ALTER SYSTEM SET walsizer.max_recovery_time = '{LIMIT}s'")
    server.psql("ALTER SYSTEM SET walsizer.enable = on")
    server.psql("ALTER SYSTEM SET max_wal_size = '64MB'")
    # an administrator's change is left alone for one checkpoint_timeout: the first
    # start notices it, the second has forgotten when that was
    for _ in range(2):
        server.__exit__()
        server.__enter__()
        server.value("SELECT walsizer_adjust()")
    end = time.monotonic() + 20 * seconds
    while time.monotonic() < end:
        server.pgbench("--client=8", "--time=1", "--no-vacuum", "--protocol=prepared")
        server.value("SELECT walsizer_adjust()")
        now, most, limited = server.psql(
            "SELECT extract(epoch FROM recovery_time_now), extract(epoch FROM recovery_time_max),"
            " limited_by FROM walsizer_status, walsizer_stats")[0]
        if limited == "recovery" and float(now) > 0.6 * float(most):
            break
    return crash(server, f"limit {LIMIT} s")


def main(options, parser):
    if any(subject.library != "walsizer" for subject in options.subjects):
        parser.error("only walsizer estimates recovery")
    print("building ...", file=sys.stderr, flush=True)
    installation = servers.Installation(".", options.pg_config).build("src")
    template = servers.make_template(installation, ".", SCALE)
    settings = {"shared_preload_libraries": "walsizer", "checkpoint_timeout": "30min",
                "max_wal_size": "8GB", "walsizer.enable": "off", **options.subjects[0].gucs,
                **options.gucs}
    rounds = max(options.repeat, ROUNDS)
    seconds = max(1, round(LOAD * options.time_factor))
    crashes = []
    with servers.Server(installation, ".", settings).create(template) as server:
        server.psql("CREATE EXTENSION walsizer")
        for one in estimates(server, rounds, seconds):
            print(*one.row(), sep="  ", file=sys.stderr, flush=True)
            crashes.append(one)
        crashes.append(at_worst(server, seconds))
    median = statistics.median(c.ratio for c in crashes if c.kind == "estimate")
    kept = 1 / WITHIN <= median <= WITHIN
    results.write("recovery", {
        "experiment": "recovery", "command": options.command, "revision": options.revision,
        "server": installation.version(), "machine": results.machine(), "median": median,
        "crashes": crashes})
    print(results.table(HEADING, [c.row() for c in crashes]))
    print(f"\n{'PASS' if kept else 'FAIL'}  median of estimate / took between "
          f"{1 / WITHIN:.2f} and {WITHIN}: {median:.2f}")
    print(f"With walsizer.max_recovery_time = {LIMIT}s recovery took {crashes[-1].took:.2f} s.")
    return 0 if kept else 1
