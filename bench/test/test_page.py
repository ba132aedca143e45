"""Whether the figures of doc/benchmarks.md are those of the tables that it links to.

    cd bench && python3 -B -m unittest test.test_page

Checked are those that have an interval, as in "1.06 times (1.02 to 1.08)": the three
numbers must stand together in a table that the same section links to, perhaps with
more digits."""

import pathlib
import re
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
RESULTS = TOP / "bench" / "results"
PAGE = TOP / "doc" / "benchmarks.md"

NUMBER = r"(\d[\d,]*(?:\.\d+)?)"
# at most a few words between the figure and its interval, no other number
IN_TEXT = re.compile(NUMBER + r"[^\d()|]{0,30}\((?:95 % interval )?" + NUMBER + r"\s+to\s+" + NUMBER)
IN_CELL = re.compile(NUMBER + r" \(" + NUMBER + r" (?:to|-) " + NUMBER + r"\)")
IN_CELLS = re.compile(r"\| " + NUMBER + r" +\| " + NUMBER + " to " + NUMBER)
LINK = re.compile(r"\]\(\.\./bench/results/(\w+\.md)\)")


def figures(pattern, text):
    return [tuple(word.replace(",", "") for word in found) for found in pattern.findall(text)]


def stands_for(said, measured):
    """Whether a number is another one, rounded."""
    digits = len(said.partition(".")[2])
    return abs(float(said) - float(measured)) <= 0.5 * 10 ** -digits + 1e-9


def in_table(said, table):
    return any(all(map(stands_for, said, measured))
               for pattern in (IN_CELL, IN_CELLS) for measured in figures(pattern, table))


def lost(page, table_of):
    """Figures of a page that are in no table of their section."""
    found = []
    for section in re.split(r"^##+ ", page, flags=re.M):
        tables = [table_of(name) for name in LINK.findall(section)]
        found += [said for said in figures(IN_TEXT, section)
                  if not any(in_table(said, table) for table in tables)]
    return found


class Page(unittest.TestCase):
    def test_figures_are_those_of_the_tables(self):
        page = PAGE.read_text(encoding="utf-8")
        self.assertGreater(len(figures(IN_TEXT, page)), 10)
        self.assertEqual(lost(page, lambda name: (RESULTS / name).read_text(encoding="utf-8")), [])


class TheCheck(unittest.TestCase):
    TABLE = ("| tps  | a / b | 5 | 1.059 | 1.019 to 1.076 | 93.75 % |\n"
             "| WAL  | 8 | 12465 (12000 to 13001) |\n| hurried | 14.1 (11.4 - 17.8) |\n")
    LINKED = "## A\n\n([table](../bench/results/a.md), `a`)\n\n"

    def lost(self, text):
        return lost(text, lambda name: {"a.md": self.TABLE, "b.md": ""}[name])

    def test_known(self):
        self.assertEqual(self.lost(self.LINKED + "1.06 times as much (1.02 to\n1.08), 12,465 MB "
                                   "(12,000 to 13,001), 14 % (11.4 to 17.8 %)"), [])

    def test_other_number(self):
        for text in ("1.05 times (1.02 to 1.08)", "1.06 times (1.03 to 1.08)",
                     "1.06 times (1.02 to 1.09)", "1.0590 times (1.02 to 1.0761)"):
            self.assertEqual(len(self.lost(self.LINKED + text)), 1, text)

    def test_other_section(self):
        other = "## B\n\n[t](../bench/results/b.md) 1.06 (1.02 to 1.08)"
        self.assertEqual(self.lost(self.LINKED + other),
                         [("1.06", "1.02", "1.08")])


if __name__ == "__main__":
    unittest.main()
