"""The figure of experiments/defaults.py that the tables do not show the parts of.

    cd bench && python3 -B -m unittest test.test_defaults"""

import unittest

from experiments import defaults


class SizeOverNeeded(unittest.TestCase):
    SAW = [(0, 0, 1024), (200, 480.5, 1024), (300, 500, 2016), (300, 0, 2016), (600, 499, 2016)]

    def test_of_the_largest_tooth(self):
        # 500 MB need 33 segments: 1008 MB, the example of doc/how-it-decides.md
        self.assertEqual(defaults.size_over_needed({"forced": 0, "final_mb": 2016, "saw": self.SAW}), 2)

    def test_not_known_if_one_was_forced(self):
        self.assertIsNone(
            defaults.size_over_needed({"forced": 1, "final_mb": 2016, "saw": self.SAW}))


if __name__ == "__main__":
    unittest.main()
