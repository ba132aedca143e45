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
PATIENCE = 300       # s
TOLERANCE = 1.3      # measured / asked, above which there is no limit


class Storage:
    """A place for a server's data, with a limit on writes per second if there
    can be one."""

    def __init__(self, directory, why_not):
        self.directory = pathlib.Path(directory) if directory else None
        self.why_not = why_not
        self.drops = 0
        self.place = self.directory / "volume" if directory else pathlib.Path(".")

    def limit(self, writes):
        """So many per second from now on; 0: as many as can be."""
        if self.directory is None:
            return
        # what was written before is not to count
        servers.run("syncing", ["sync", "--file-system", self.place])
        self._tell(writes, "limit", writes, "the limit on writes was not set")

    def drop_cache(self):
        """Of the volume: what the file system below it holds, which dropping files of the
        volume leaves there."""
        if self.directory is None:
            return
        self.drops += 1
        self._tell("drop", "drops", self.drops, "what is cached of the volume was not dropped")

    def _tell(self, line, file, answer, failure):
        """Wait until the file has the answer; what is to be written first may be much."""
        with open(self.directory / "control", "w", encoding="ascii") as control:
            control.write(f"{line}\n")
        end = time.monotonic() + PATIENCE
        while not self._says(file, answer):
            if time.monotonic() > end:
                raise servers.Failure(failure)
            time.sleep(0.05)

    def _says(self, file, answer):
        path = self.directory / file
        return path.exists() and path.read_text(encoding="ascii").strip() == str(answer)

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
