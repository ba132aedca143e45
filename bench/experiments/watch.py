"""What walsizer-watch costs.

Processor time of the client and of its backend, and wake-ups of the backend, of which
each sample takes one: on an idle server, on a busy one, and among many idle
connections.  Beside them that of a program that only sleeps, a second at a time, because
what a wake-up costs depends on the machine.  And the time in which a trace of a day is
replayed."""

import contextlib
import json
import pathlib
import random
import subprocess
import sys
import time

from harness import server as servers, tps, watch
from harness.limits import Limit

SETTINGS = {"checkpoint_timeout": "30s", "max_wal_size": "4GB", "max_connections": "550"}
SCALE = 20
CROWD = 500  # idle connections
LOAD = ["--client=4", "--jobs=2", "--rate=1000"]
MOST = 0.001  # of a core
DAY = 24 * 3600


def measure(bench):
    seconds = bench.seconds(20, 60, 300)
    shares = []
    with bench.server(bench.plain, SETTINGS, SCALE) as server:
        servers.settle()
        shares.append(watched(bench, server, "idle", seconds))
        with tps.Pgbench(server, f"--time={2 * seconds}", *LOAD):
            shares.append(watched(bench, server, "busy", seconds))
        for _ in range(CROWD):
            server.session().row("SELECT 1")
        shares.append(watched(bench, server, f"{CROWD} connections", seconds))
    return {"seconds": seconds, "shares": shares, "replays": list(replays(bench))}


@contextlib.contextmanager
def sleeper():
    """A process that only sleeps, a second at a time."""
    command = [sys.executable, "-c", "import time\nwhile True: time.sleep(1)"]
    with subprocess.Popen(command) as process:
        try:
            yield process
        finally:
            process.terminate()


def watched(bench, server, when, seconds):
    """Shares of a core, and wake-ups and samples per second."""
    bench.say(f"{when}, {seconds} s")
    command = [*server.client("walsizer-watch"), f"--duration={seconds + 5}s", "--json",
               "postgres"]
    with sleeper() as control, \
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
        time.sleep(3)  # the first samples find out what there is to see
        backend = int(server.value("SELECT pid FROM pg_stat_activity "
                                   "WHERE application_name = 'walsizer-watch'"))
        each = [watch.Worker(pid) for pid in (client.pid, backend, control.pid)]
        time.sleep(seconds)
        (client_cpu, _), (backend_cpu, wakeups), (sleeper_cpu, _) = (x.share() for x in each)
        samples = json.loads(client.communicate()[0])["samples"]
    return {"when": when, "client": client_cpu, "backend": backend_cpu, "sleeper": sleeper_cpu,
            "wakeups": wakeups, "samples": samples / (seconds + 5)}


#
# Replays
#

def replays(bench):
    """Seconds for a day at one sample a second, idle, and different each time."""
    program = bench.installation.bin / "walsizer-watch"
    noise = random.Random(1)
    for kind, tokens in (("idle", ["0*3600"] * 24),
                         ("busy", [str(noise.randrange(20, 60)) for _ in range(DAY)])):
        path = pathlib.Path(f"{kind}.trace")
        write_trace(path, tokens)
        began = time.monotonic()
        done = subprocess.run([program, "--replay", path, "--json"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=False)
        took = time.monotonic() - began
        samples = json.loads(done.stdout)["samples"]
        if samples != DAY:
            raise servers.Failure(f"{samples} samples instead of {DAY}")
        yield {"kind": kind, "seconds": took, "bytes": path.stat().st_size}


def write_trace(path, tokens):
    """As walsizer-watch records it; units are 256 kB.  Without its last line it is
    read as far as it goes."""
    lines = ["walsizer-trace 1", "set interval 1", "set start 1800000000", "set segment 16",
             "set max_wal_size 1024", "set completion_target 0.9", "set timeout 300",
             "begin primary 0 0", "redo 0 0", "counters 0 0", "busy 0", "wal 0"]
    tokens = tokens[:-1] + ["0*3599" if tokens[-1] == "0*3600" else ""]
    for first in range(0, len(tokens), 20):
        lines.append("wal " + " ".join(tokens[first:first + 20]))
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


#
# The report
#

def percent(share):
    return f"{100 * share:.4f} %"


def tables(data):
    yield (f"A sample each second, for {data['seconds']} s each",
           ["server", "client, of one core", "its backend", "a program that only sleeps",
            "wake-ups of the backend per second", "samples per second"],
           [[x["when"], percent(x["client"]), percent(x["backend"]), percent(x["sleeper"]),
             f"{x['wakeups']:.2f}", f"{x['samples']:.2f}"] for x in data["shares"]])
    yield ("A trace of a day",
           ["server", "size, kB", "seconds to replay it"],
           [[x["kind"], x["bytes"] // 1024, f"{x['seconds']:.3f}"] for x in data["replays"]])


def limits(data):
    slowest = max(x["seconds"] for x in data["replays"])
    return [*(Limit(f"{who} below 0.1 % of a core, {share['when']}", percent(share[who]),
                    share[who] < MOST)
              for share in data["shares"] for who in ("client", "backend")),
            Limit("a day replayed in less than a second", f"{slowest:.3f} s", slowest < 1)]


PLOTS = {}
