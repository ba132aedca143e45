"""Slow storage, of harness/slow-volume where the machine has it, and what it is
worth, measured."""

import os
import pathlib
import random
import time

from harness import server as servers

PAGE = b"x" * 8192
PAGES = 3000         # written in random places to measure the limit
SINGLE = 100         # written and flushed one by one
SPREAD = 1 << 17     # places for them: neighbours would be written as one
PATIENCE = 10        # s, until a limit is set
LONG = 300           # s, until as much is written as memory may hold
TOLERANCE = 1.3      # measured / asked, above which there is no limit


class Storage:
    """A place for a server's data, with a limit on writes per second if there
    can be one."""

    def __init__(self, directory, why_not):
        self.directory = pathlib.Path(directory) if directory else None
        self.why_not = why_not
        self.place = self.directory / "volume" if directory else pathlib.Path(".")

    def limit(self, writes):
        """So many per second from now on; 0: as many as can be."""
        if self.directory is None:
            return
        # what was written before is not to count
        servers.run("syncing", ["sync", "--file-system", self.place])
        self._tell(writes, PATIENCE, "the limit on writes was not set")

    def drop_from_cache(self, directory):
        """As after a failure of power.  What is not written yet cannot be dropped.  Of a
        directory on the volume, the file system below holds the pages, too."""
        os.sync()
        for path, _, names in os.walk(directory):
            for name in names:
                descriptor = os.open(os.path.join(path, name), os.O_RDONLY)
                try:
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                finally:
                    os.close(descriptor)
        if self.directory is not None and directory.is_relative_to(self.place.resolve()):
            self._tell("drop", LONG, "what is cached of the slow volume was not dropped")

    def _tell(self, line, patience, failure):
        """Have the volume carry that out, and wait (s) until it has."""
        done = self.directory / "done"
        before = done.read_text(encoding="ascii")
        with open(self.directory / "control", "w", encoding="ascii") as control:
            control.write(f"{line}\n")
        end = time.monotonic() + patience
        while done.read_text(encoding="ascii") == before:
            if time.monotonic() > end:
                raise servers.Failure(failure)
            time.sleep(0.05)

    def measure(self, writes):
        """What a limit really gives: random pages written back per second, and
        pages written and flushed one after the other."""
        self.limit(writes)
        path = self.place / "measure"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(descriptor, SPREAD * len(PAGE))
            places = random.Random(1).sample(range(SPREAD), PAGES)
            pages = rate(descriptor, places, flush_each=False)
            single = rate(descriptor, places[:SINGLE], flush_each=True)
        finally:
            os.close(descriptor)
            self.limit(0)
            path.unlink()
        limited = self.directory is not None and pages <= TOLERANCE * writes
        why_not = None if limited else self.why_not or "the limit had no effect"
        return {"asked": writes, "limited": limited, "why_not": why_not,
                "pages_per_second": round(pages), "flushes_per_second": round(single)}


def rate(descriptor, places, flush_each):
    began = time.monotonic()
    for place in places:
        os.pwrite(descriptor, PAGE, place * len(PAGE))
        if flush_each:
            os.fsync(descriptor)
    os.fsync(descriptor)
    return len(places) / (time.monotonic() - began)


def describe(measured):
    """One sentence for the table."""
    if not measured["limited"]:
        return (f"**No limit on writes: {measured['why_not']}.** The storage wrote "
                f"{measured['pages_per_second']} random pages and "
                f"{measured['flushes_per_second']} single flushes per second.")
    return (f"Storage limited to {measured['asked']} writes per second; measured: "
            f"{measured['pages_per_second']} random pages, "
            f"{measured['flushes_per_second']} single flushes per second.")
