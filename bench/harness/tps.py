"""pgbench in the background, and what it got done in each second."""

import math
import pathlib
import re
import statistics
import subprocess
import threading

from harness import server as servers

PROGRESS = re.compile(r"^progress: (?P<at>[\d.]+) s, (?P<tps>[\d.]+) tps, "
                      r"lat (?P<latency>[\d.]+) ms")


class Pgbench:
    """Runs beside what a with statement does, until that ends or its time is over.

    rows: (end of the second by the clock, transactions per second, mean latency
    in ms), one for each second."""

    def __init__(self, server, *options):
        self.command = [*server.client("pgbench"), *options, "--progress=1",
                        "--progress-timestamp", "--no-vacuum", "postgres"]
        self.rows = []
        self.output = ""
        self.mean = None  # of the whole run, by pgbench itself
        self.transactions = None
        self.process = None
        self.thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self):
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        self.thread.start()
        return self

    def _read(self):
        for line in self.process.stdout:
            match = PROGRESS.match(line)
            if match:
                self.rows.append((round(float(match["at"]), 2), float(match["tps"]),
                                  float(match["latency"])))
            else:
                self.output += line

    def wait(self):
        """To the end of its --time."""
        self.process.wait()
        self.thread.join()
        if self.process.returncode != 0:
            raise servers.Failure(f"pgbench failed: {self.output[-2000:]}")
        self.mean = float(re.search(r"^tps = ([\d.]+)", self.output, re.M)[1])
        self.transactions = int(re.search(r"processed: (\d+)", self.output)[1])
        return self.rows

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.thread.join()


LOG = "pgbench_log"


def latencies(directory="."):
    """Of a pgbench with LOGGED, (end of the transaction by the clock, ms), sorted; the
    files are removed."""
    found = []
    for path in pathlib.Path(directory).glob(f"{LOG}.*"):
        for line in path.read_text(encoding="ascii").splitlines():
            # client, number, microseconds, script, second, microsecond
            words = line.split()
            # the last line of one that was ended may be a part of one
            if len(words) >= 6 and words[2].isdigit():
                _, _, time, _, second, rest, *_ = words
                found.append((int(second) + int(rest) / 1e6, int(time) / 1000))
        path.unlink()
    return sorted(found)


LOGGED = ("--log", f"--log-prefix={LOG}")


def percentile(values, percent):
    """The smallest value that so many percent do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)] if ordered else None


def mean(rows):
    return statistics.fmean(row[1] for row in rows) if rows else None


def worst(rows, seconds=5):
    """The smallest mean of so many seconds on end."""
    return min((mean(rows[i:i + seconds]) for i in range(len(rows) - seconds + 1)),
               default=None)
