"""Two servers under load that take turns many times a second.

Whatever else the machine does, and a virtual one does much that nobody sees,
meets both of them alike.  The one whose turn it is not is frozen with all its
processes, so that what it does in the background is paid for in its own time."""

import os
import pathlib
import random
import re
import select
import signal
import subprocess
import time

from harness import server as servers

# Seconds.  The processor of a virtual machine may be taken away for as long, and at
# regular intervals: turns are shorter, and not regular.
SHORTEST, LONGEST = 0.01, 0.03
LOOK = 20  # turns between two looks for new processes; in the first ones each


class Loaded:
    """A server and its pgbench, which run or are frozen together."""

    def __init__(self, server, seconds, options):
        self.postmaster = int((server.data / "postmaster.pid").read_text().split()[0])
        self.active = 0.0
        self.turns = 0
        # pylint: disable=consider-using-with
        self.pgbench = subprocess.Popen(
            [str(server.bin / "pgbench"), f"--host={server.work}", "--username=postgres",
             "--no-vacuum", f"--time={seconds}", *options, "postgres"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.ended = os.pidfd_open(self.pgbench.pid)
        self.processes = []
        self.freeze()

    def freeze(self):
        """All at once those that are known, for that is where the turn ends; then
        who was born in it.  The postmaster is the first: nobody is born later."""
        send(signal.SIGSTOP, self.processes)
        self.turns += 1
        if self.turns > LOOK and self.turns % LOOK != 0:
            return
        known = set(self.processes)
        self.processes = [self.postmaster, *children(self.postmaster), self.pgbench.pid]
        send(signal.SIGSTOP, [pid for pid in self.processes if pid not in known])

    def turn(self):
        """False when pgbench has ended."""
        began = time.monotonic()
        send(signal.SIGCONT, self.processes)
        ended, _, _ = select.select([self.ended], [], [],
                                    random.uniform(SHORTEST, LONGEST))
        self.active += time.monotonic() - began
        if ended:
            return False
        self.freeze()
        return True

    def tps(self):
        out = self.pgbench.communicate()[0]
        if self.pgbench.returncode != 0:
            raise servers.Failure(f"pgbench failed\n{out[-2000:]}")
        return int(re.search(r"actually processed: (\d+)", out)[1]) / self.active

    def close(self):
        """Whatever happened, the server is to continue."""
        send(signal.SIGCONT, [self.postmaster, *children(self.postmaster), self.pgbench.pid])
        if self.pgbench.returncode is None:
            self.pgbench.terminate()
            self.pgbench.communicate()
        os.close(self.ended)


def send(number, processes):
    for pid in processes:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass  # it has just ended


def children(parent):
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            yield int(stat.parent.name)


def tps_of_both(one, other, seconds, options):
    """Transactions per second of two servers, each so many seconds under the
    load; the first named begins."""
    both = []
    try:
        for server in (one, other):
            both.append(Loaded(server, 2 * seconds, options))
        running = list(both)
        while running:
            running = [loaded for loaded in running if loaded.turn()]
        return [loaded.tps() for loaded in both]
    finally:
        for loaded in both:
            loaded.close()
