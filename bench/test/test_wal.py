"""The arithmetic of harness/wal.py and harness/model.py, and the day of experiments/day.py.

    cd bench && python3 -B -m unittest test.test_wal"""

import random
import unittest

from experiments import day
from harness import model, wal

SEGMENT = 16 * model.MB
TARGET, TIMEOUT = 0.9, 30


def rows_of(*rates, began=0, first=5 * SEGMENT, size=256):
    """Rows of one a second, from the MB of WAL in each second."""
    rows, lsn = [(began, first, size)], first
    for number, rate in enumerate(rates, 1):
        lsn += round(rate * model.MB)
        rows.append((began + number, lsn, size))
    return rows


def counts(rows, size):
    causes = [cause for _, cause in wal.checkpoints(rows, size, SEGMENT, TARGET, TIMEOUT)]
    return causes.count("forced"), causes.count("timed")


class Positions(unittest.TestCase):
    ROWS = rows_of(10, 0, 30, began=100, first=0)

    def test_between(self):
        self.assertEqual(wal.lsn_at(self.ROWS, 100.5), 5 * model.MB)
        self.assertEqual(wal.lsn_at(self.ROWS, 102.5), 25 * model.MB)
        self.assertIsNone(wal.lsn_at(self.ROWS, 99))
        self.assertIsNone(wal.lsn_at(self.ROWS, 104))

    def test_times(self):
        self.assertEqual(wal.time_of(self.ROWS, 5 * model.MB), 100.5)
        self.assertEqual(wal.time_of(self.ROWS, 10 * model.MB), 101)
        self.assertEqual(wal.time_of(self.ROWS, 25 * model.MB), 102.5)
        self.assertEqual(wal.time_of(self.ROWS, 0), 100)
        self.assertIsNone(wal.time_of(self.ROWS, 41 * model.MB))

    def test_sizes(self):
        rows = [(0, 0, 256), (1, 0, 256), (2, 0, 512)]
        self.assertEqual([wal.size_at(rows, at) for at in (0, 1.9, 2, 3)], [256, 256, 512, 512])


class Windows(unittest.TestCase):
    def test_steady(self):
        self.assertEqual(wal.largest_window(rows_of(*100 * [2]), TIMEOUT), 60 * model.MB)

    def test_burst(self):
        """Ten seconds of 20 MB, in a window of 30 that otherwise has 1 MB a second."""
        rows = rows_of(*50 * [1], *10 * [20], *50 * [1])
        self.assertEqual(wal.largest_window(rows, TIMEOUT), 220 * model.MB)

    def test_begins_at_a_row(self):
        """No row lies where the window that begins with the burst ends."""
        rows = [(0, 0, 256), (40, 0, 256), (50, 100, 256), (60, 100, 256), (100, 140, 256)]
        self.assertEqual(wal.largest_window(rows, 30), 110)

    def test_too_short(self):
        self.assertEqual(wal.largest_window(rows_of(*20 * [2]), TIMEOUT), 0)


class Checkpoints(unittest.TestCase):
    def test_timed(self):
        """256MB is 16 segments: 8 of them force one, and 60 MB are less."""
        self.assertEqual(counts(rows_of(*100 * [2]), 256), (0, 3))

    def test_forced(self):
        """128 MB force one; at 16 MB a second that is each eight seconds."""
        found = wal.checkpoints(rows_of(*100 * [16]), 256, SEGMENT, TARGET, TIMEOUT)
        self.assertEqual(found, [(8 * number, "forced") for number in range(1, 13)])

    def test_from_the_segment(self):
        """The redo pointer lies at the end of a segment, which counts as written."""
        found = wal.checkpoints(rows_of(*10 * [16], first=6 * SEGMENT - model.MB), 256, SEGMENT,
                                TARGET, TIMEOUT)
        self.assertEqual(found[0], (113 / 16, "forced"))

    def test_forced_ones_set_the_timer(self):
        """Eight seconds of 16 MB force one, and the timed ones come 30 s after it."""
        found = wal.checkpoints(rows_of(*8 * [16], *70 * [1]), 256, SEGMENT, TARGET, TIMEOUT)
        self.assertEqual(found, [(8, "forced"), (38, "timed"), (68, "timed")])

    def test_nothing_written(self):
        self.assertEqual(counts(rows_of(*100 * [0]), 32), (0, 3))

    def test_oracle_forces_nothing(self):
        """Whatever the load and wherever the first checkpoint lies; a steady load that is a
        little larger does force some."""
        chance = random.Random(1)
        for _ in range(200):
            rates = [chance.expovariate(1 / chance.choice([1, 10, 50])) for _ in range(300)]
            rows = rows_of(*rates, first=chance.randrange(100 * SEGMENT))
            oracle = day.oracle(rows, TIMEOUT)
            self.assertEqual(counts(rows, oracle)[0], 0)
            self.assertGreater(counts(rows_of(*300 * [oracle / 50]), oracle)[0], 0)


class Day(unittest.TestCase):
    def test_rates(self):
        for hour, rate in day.RATES:
            self.assertEqual(day.rate_at(hour % 24), rate)
        self.assertEqual(day.rate_at(9), (day.rate_at(8) + day.rate_at(10)) / 2)
        self.assertEqual(day.RATES[0][1], day.RATES[-1][1])

    def test_changes(self):
        self.assertEqual(day.directions(256, [512, 1024, 640, 640, 800]), (3, 1))


if __name__ == "__main__":
    unittest.main()
