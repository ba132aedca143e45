"""The statistics of harness/pairs.py.

    cd bench && python3 -B -m unittest test.test_pairs"""

import itertools
import math
import random
import unittest

from harness import pairs


def rounds_of(*of):
    """Rounds of runs that have one figure, x, from {name: x}, ..."""
    return [{"number": number, "runs": [{"name": name, "x": x} for name, x in each.items()]}
            for number, each in enumerate(of, 1)]


X = pairs.Figure("x", lambda run: run["x"], 1)


class Turns(unittest.TestCase):
    SERIES = [pairs.Series(name, None, {}) for name in "ABC"]

    def test_there_and_back(self):
        names = [[one.name for one in pairs.in_turn(self.SERIES, number)] for number in (1, 2, 3)]
        self.assertEqual(names[0], ["A", "B", "C", "A again"])
        self.assertEqual(names[1], names[0][::-1])
        self.assertEqual(names[2], names[0])

    def test_again_is_the_same(self):
        first, *_, last = pairs.in_turn(self.SERIES, 1)
        self.assertEqual(first[1:], last[1:])


class Parts(unittest.TestCase):
    DATA = {"rounds": [{"load": "8", "number": 1}, {"load": "64", "number": 1},
                       {"load": "8", "number": 2}]}

    def test_rounds_of_a_part(self):
        self.assertEqual(pairs.rounds_of(self.DATA, load="8"), self.DATA["rounds"][::2])
        self.assertEqual(pairs.rounds_of(self.DATA, load="16"), [])

    def test_all_rounds_without_parts(self):
        self.assertEqual(pairs.rounds_of(self.DATA), self.DATA["rounds"])

    def test_parts_may_be_called_data(self):
        rounds = [{"data": "1x"}, {"data": "4x"}]
        self.assertEqual(pairs.rounds_of({"rounds": rounds}, data="4x"), rounds[1:])


class Intervals(unittest.TestCase):
    def test_known_coverage(self):
        """Of the tables of the binomial distribution."""
        for number, low, high, coverage in (
                (1, 1, 1, 0), (2, 1, 2, 0.5), (3, 1, 3, 0.75), (4, 1, 4, 0.875),
                (5, 1, 5, 0.9375), (6, 1, 6, 0.96875), (8, 1, 8, 0.9921875),
                (9, 2, 8, 0.9609375), (12, 3, 10, 0.96142578125)):
            found = pairs.interval(range(1, number + 1))
            self.assertEqual((found.low, found.high), (low, high), number)
            self.assertAlmostEqual(found.coverage, coverage)

    def test_forty(self):
        """Large enough for the normal approximation to agree."""
        found = pairs.interval(range(1, 41))
        self.assertEqual((found.low, found.high), (14, 27))
        self.assertAlmostEqual(found.coverage, 0.9615, places=4)

    def test_order_does_not_matter(self):
        expected = pairs.interval([1, 2, 3, 4])
        for values in itertools.permutations([1, 2, 3, 4]):
            self.assertEqual(pairs.interval(values), expected)

    def test_covers_as_often_as_it_says(self):
        """Of a skewed distribution, whose median is log 2."""
        chance, trials = random.Random(14), 4000
        for number in (5, 9):
            inside = 0
            for _ in range(trials):
                found = pairs.interval([chance.expovariate(1) for _ in range(number)])
                inside += math.log(2) in found
            self.assertAlmostEqual(inside / trials, found.coverage, delta=0.015)


class Ratios(unittest.TestCase):
    def test_nothing(self):
        self.assertEqual(pairs.ratio(0, 0), 1)
        self.assertEqual(pairs.ratio(0, 3), 0)
        self.assertEqual(pairs.ratio(2, 0), math.inf)

    def test_within_rounds(self):
        """The second round is twice as slow, which says nothing of B against A."""
        rounds = rounds_of({"A": 100, "B": 110}, {"A": 50, "B": 55})
        for found in pairs.ratios(rounds, X, "B", "A"):
            self.assertAlmostEqual(found, 1.1)

    def test_incomplete_rounds(self):
        rounds = rounds_of({"A": 1, "B": 2}, {"A": 1}, {"A": None, "B": 1}, {"A": 1, "B": None})
        self.assertEqual(pairs.ratios(rounds, X, "B", "A"), [2])


class Verdicts(unittest.TestCase):
    def test_one_within(self):
        self.assertEqual(pairs.verdict([0.9, 0.95, 0.98, 0.97, 1.01], 5), "none")

    def test_difference(self):
        self.assertEqual(pairs.verdict([1.2, 1.25, 1.3, 1.31, 1.4], 5), "30.0 % more")
        self.assertEqual(pairs.verdict([0.6, 0.7, 0.65], 3), "35.0 % less")
        self.assertEqual(pairs.verdict([0, 0, 0], 3), "100.0 % less")
        self.assertEqual(pairs.verdict([math.inf, math.inf, 2], 3), "more")

    def test_noise(self):
        values = [1.02, 1.03, 1.04, 1.05, 1.06]
        self.assertEqual(pairs.verdict(values, 5, [0.99, 1, 1, 1.01, 1.01]), "4.0 % more")
        self.assertEqual(pairs.verdict(values, 5, [0.9, 1, 1, 1.1, 1.2]),
                         "none: within the noise")

    def test_too_few(self):
        self.assertEqual(pairs.verdict([1.2, 1.2, 1.2, 1.2], 5), "open: 5 pairs needed")
        self.assertEqual(pairs.verdict([], 3), "open: 3 pairs needed")


class Tables(unittest.TestCase):
    ROUNDS = rounds_of({"A": 100, "B": 80, "A again": 101}, {"A": 90, "B": 70, "A again": 89},
                       {"A": 110, "B": 90, "A again": 110})

    def test_comparisons(self):
        rows = list(pairs.comparisons(self.ROUNDS, [X], [("B", "A"), ("C", "A")]))
        self.assertEqual(rows, [
            ["x", "B / A", 3, "0.800", "0.778 to 0.818", "75 %", "20.0 % less"],
            ["x", "A again / A (noise)", 3, "1.000", "0.989 to 1.010", "75 %", "none"]])

    def test_one_round_has_no_interval(self):
        one, noise = pairs.comparisons(self.ROUNDS[:1], [X], [("B", "A")])
        self.assertEqual(one[2:], [1, "0.800", "-", "-", "open: 3 pairs needed"])
        self.assertEqual(noise[3:], ["1.010", "-", "-", "open: 3 pairs needed"])

    def test_more_than_none(self):
        rows = pairs.comparisons(rounds_of(*3 * [{"A": 0, "B": 2}]), [X], [("B", "A")])
        self.assertEqual([row[3:] for row in rows], [["-", "-", "75 %", "more"]])

    def test_medians(self):
        self.assertEqual(list(pairs.medians(self.ROUNDS, [X], str.lower)),
                         [["a", 3, "100.0 (90.0 to 110.0)"], ["b", 3, "80.0 (70.0 to 90.0)"],
                          ["a again", 3, "101.0 (89.0 to 110.0)"]])

    def test_against(self):
        self.assertEqual(pairs.against(self.ROUNDS, "A"), [("B", "A")])

    def test_tables(self):
        never = pairs.Figure("never", lambda run: None, 1)
        series, ratios = pairs.tables("What", self.ROUNDS, [never, X], [("B", "A")])
        self.assertEqual(series[1], ["setting", "runs", "x"])
        self.assertEqual([row[1] for row in ratios[2]], ["B / A", "A again / A (noise)"])

    def test_nothing_to_compare(self):
        never = pairs.Figure("never", lambda run: None, 1)
        self.assertEqual(len(list(pairs.tables("What", self.ROUNDS, [X]))), 1)
        self.assertEqual(len(list(pairs.tables("What", self.ROUNDS, [X], [("B", "A")], [never]))), 1)


if __name__ == "__main__":
    unittest.main()
