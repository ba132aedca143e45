"""WAL fills its file system: free space at the worst moment, with walsizer and without

pg_wal has a file system of its own, and an administrator has set a max_wal_size that is
too large for it.  The load writes messages into WAL at a rate, dirties a page for each
100 kB, and ends when several times the file system is written, or with the server."""

import contextlib
import os
import pathlib
import re
import subprocess
import threading
import time

from harness import limits as judge, server as servers

VOLUME = 974  # MB
PAGES = 8000
TABLE = f"""CREATE TABLE pages WITH (fillfactor = 10) AS
  SELECT n, 0 AS changes, repeat('x', 600) AS filler FROM generate_series(1, {PAGES}) n;
CREATE UNIQUE INDEX ON pages (n);
CHECKPOINT;
"""
# 1 MB of WAL, and ten pages
LOAD = f"""\\set n random(1, {PAGES - 9})
SELECT pg_logical_emit_message(true, 'bench', repeat('x', 1000000));
UPDATE pages SET changes = changes + 1 WHERE n BETWEEN :n AND :n + 9;
"""
REQUESTED = re.compile(r"checkpoint starting: (?:immediate|fast) force\n"
                       r".*?checkpoint complete: .*? total=([\d.]+) s", re.S)
TIMES = 2     # the load writes so many times the file system


def measure(bench):
    place = os.environ.get("WALSIZER_SMALL_FS")
    if place is None:
        raise servers.Failure("needs root, and the right to mount")
    volume = pathlib.Path(place) / "12"
    (pathlib.Path(place) / "resize").write_text(f"12 {VOLUME}m\n", encoding="utf-8")
    runs = []
    for size in bench.pick(["4GB"], ["1GB", "4GB"], ["1GB", "2GB", "4GB"]):
        for rate in bench.pick([100], [25, 100], [25, 50, 100, 200]):
            for subject in [bench.plain, *bench.subjects]:
                bench.say(f"{size}, {rate} MB/s, {subject.name}")
                runs.append({"subject": subject.name, "size": size, "rate": rate,
                             **one(bench, subject, volume, size, rate)})
    return {"volume": VOLUME, "times": TIMES, "runs": runs}


class Watch(threading.Thread):
    """The least free space, MB, ten times a second."""

    def __init__(self, volume):
        super().__init__(daemon=True)
        self.volume = volume
        self.least = VOLUME
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(0.1):
            found = os.statvfs(self.volume)
            self.least = min(self.least, found.f_bavail * found.f_frsize / 2**20)


@contextlib.contextmanager
def running(bench, subject, volume, size):
    """A server with pg_wal on the volume; it may be gone at the end."""
    settings = {"max_wal_size": size, "checkpoint_timeout": "5min"}
    if subject.library:
        settings["shared_preload_libraries"] = f"'{subject.library}'"
    template = servers.make_template(bench.installation, ".", 0)
    server = servers.Server(bench.installation, ".", settings).create(template)
    servers.run("emptying the volume", ["find", volume, "-mindepth", "1", "-delete"])
    servers.run("moving pg_wal", ["mv", server.data / "pg_wal", volume / "pg_wal"])
    (server.data / "pg_wal").symlink_to(volume / "pg_wal")
    server.start()
    try:
        if subject.library == "walsizer":
            server.psql("CREATE EXTENSION walsizer")
        yield server
    finally:
        subprocess.run([server.bin / "pg_ctl", "stop", "--silent", "--mode=immediate",
                        f"--pgdata={server.data}"], check=False, stderr=subprocess.DEVNULL)


def one(bench, subject, volume, size, rate):
    script = pathlib.Path("load.sql")
    script.write_text(LOAD, encoding="utf-8")
    with running(bench, subject, volume, size) as server:
        server.psql(TABLE)
        free = Watch(volume)
        free.start()
        began = time.monotonic()
        done = subprocess.run(
            [*server.client("pgbench"), "--no-vacuum", f"--transactions={TIMES * VOLUME}",
             f"--rate={rate}", f"--file={script}", "postgres"],
            check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lasted = time.monotonic() - began
        free.over.set()
        log = server.log.read_text(encoding="utf-8", errors="replace")
        panic = "PANIC" in log
        found = {"requests": 0, "wal_mb": None,
                 "requested_s": sum(float(total) for total in REQUESTED.findall(log))}
        if not panic and done.returncode == 0:
            found["wal_mb"] = float(server.value(
                "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') / 1048576"))
            if subject.library == "walsizer":
                found["requests"] = int(server.value("SELECT checkpoints_disk_full FROM walsizer_stats"))
    return {"seconds": round(lasted, 1), "panic": panic, "free_mb": round(free.least), **found}


#
# What comes of it
#

def cost(run):
    """Of the checkpoints requested; a server that ended has none."""
    if run["wal_mb"] is None:
        return ["-"] * 4
    return [str(run["requests"]), f"{run['requests'] * 1024 / run['wal_mb']:.1f}",
            f"{100 * run['requested_s'] / run['seconds']:.1f}", f"{run['wal_mb']:.0f}"]


def tables(data):
    heading = ["max_wal_size", "MB/s", "server", "least free, MB", "checkpoints requested",
               "per GB of WAL", "time in them, %", "WAL written, MB", "ended after, s"]
    rows = [[run["size"], str(run["rate"]), run["subject"], str(run["free_mb"]), *cost(run),
             f"{run['seconds']:.0f}, PANIC" if run["panic"] else "-"] for run in data["runs"]]
    yield (f"pg_wal on a file system of {data['volume']} MB in memory; the load writes "
           f"{data['times']} times as much.", heading, rows)


def limits(data):
    ended = sum(run["panic"] for run in data["runs"] if run["subject"] == "walsizer")
    return [judge.none("servers with walsizer that ended", ended)]


PLOTS = {}
