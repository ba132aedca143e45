"""What a server did: a series of one row a second, its log, its worker."""

import datetime
import os
import re
import threading
import time

from harness import wal

UNITS = {"": 1, "MB": 1, "GB": 1024, "TB": 1024 * 1024, "kB": 1 / 1024}


class Series(threading.Thread):
    """Seconds of the clock, WAL written, redo pointer of the last completed
    checkpoint, max_wal_size in MB: once a second until stopped.

    Not walsizer's word: the server is asked itself."""

    QUERY = ("SELECT pg_current_wal_lsn() - '0/0', redo_lsn - '0/0', "
             "pg_size_bytes(current_setting('max_wal_size')) / 1048576 "
             "FROM pg_control_checkpoint()")

    def __init__(self, server):
        super().__init__(daemon=True)
        self.session = server.session()
        self.rows = []
        self.done = threading.Event()

    def run(self):
        due = time.time()
        while not self.done.is_set():
            lsn, redo, size = self.session.row(self.QUERY)
            self.rows.append((round(time.time(), 3), int(lsn), int(redo), int(size)))
            due = max(due + 1, time.time())
            self.done.wait(due - time.time())

    def stop(self):
        self.done.set()
        self.join(timeout=60)

    def largest_window(self, seconds, since):
        """Most WAL in so many seconds that began after a time; 0 if there were
        not so many."""
        largest = 0
        for at, lsn, *_ in self.rows:
            before = self.lsn_at(at - seconds)
            if before is not None and at - seconds >= since:
                largest = max(largest, int(lsn - before))
        return largest

    def lsn_at(self, at):
        """Between two rows; None outside of the series."""
        return wal.lsn_at(self.rows, at)


class Checkpoint:
    """One pair of lines of the log."""

    def __init__(self, at, words):
        self.at = at
        self.words = words
        # "wal time" is a timed one for which a request was waiting
        self.cause = ("forced" if "wal" in words else "timed" if "time" in words else "other")
        self.buffers = self.write = self.total = self.distance = self.paced = None

    def complete(self, match):
        self.buffers = int(match["buffers"])
        self.write = float(match["write"])
        self.total = float(match["total"])
        self.distance = int(match["distance"]) * 1024


LINE = re.compile(r"^(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) UTC \[\d+\] LOG:  (?P<text>.*)$")
COMPLETE = re.compile(r"checkpoint complete:.*wrote (?P<buffers>\d+) buffers.*"
                      r"write=(?P<write>[\d.]+) s,.*total=(?P<total>[\d.]+) s;.*"
                      r"distance=(?P<distance>\d+) kB")
CHANGED = re.compile(r'parameter "max_wal_size" changed to "(\d+) ?(\w*)"')


def clock(text):
    moment = datetime.datetime.strptime(text, "%Y-%m-%d %H:%M:%S.%f")
    return moment.replace(tzinfo=datetime.timezone.utc).timestamp()


def read_log(path, since):
    """Checkpoints, and (time, MB) of each change of max_wal_size, in order."""
    checkpoints, changes = [], []
    for at, text in lines(path):
        if at < since:
            continue
        # 19 repeats the words in the line of the end: only the start counts
        if text.startswith("checkpoint starting:"):
            checkpoints.append(Checkpoint(at, text.removeprefix("checkpoint starting:").split()))
        elif text.startswith("checkpoint complete:") and checkpoints:
            checkpoints[-1].complete(COMPLETE.search(text))
        elif CHANGED.search(text):
            number, unit = CHANGED.search(text).groups()
            changes.append((at, int(int(number) * UNITS[unit])))
    return checkpoints, changes


def restartpoints(path):
    """When each began."""
    return [at for at, text in lines(path) if text.startswith("restartpoint starting:")]


def lines(path):
    """(time, text) of each message that a server logged at LOG."""
    with open(path, encoding="utf-8", errors="replace") as log:
        for line in log:
            match = LINE.match(line.rstrip("\n"))
            if match:
                yield clock(match["at"]), match["text"]


class Worker:
    """CPU time and wake-ups of a process since this object was made."""

    def __init__(self, pid):
        self.pid = pid
        self.began = time.monotonic()
        self.cpu, self.wakeups = self._read()

    def _read(self):
        """Seconds and number, by /proc: schedstat counts nanoseconds where it
        exists, stat only ticks."""
        try:
            with open(f"/proc/{self.pid}/schedstat", encoding="ascii") as file:
                cpu = int(file.read().split()[0]) / 1e9
        except OSError:
            with open(f"/proc/{self.pid}/stat", encoding="ascii") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            text = file.read()
        return cpu, int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", text, re.M)[1])

    def share(self):
        """Share of one core, and wake-ups per second; None if it is gone."""
        try:
            cpu, wakeups = self._read()
        except (OSError, ValueError):
            return None, None
        elapsed = time.monotonic() - self.began
        return (cpu - self.cpu) / elapsed, (wakeups - self.wakeups) / elapsed
