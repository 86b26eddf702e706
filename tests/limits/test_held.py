#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many things of a kind a program may hold: quotas, and what the program is told beyond them.
Run as: python3 test_held.py BUILD."""
import limits_harness
from limits_harness import TestCase

OUT_OF_MEMORY = 2

# Quota, its value, how many things there are then, and how many again after half of them ended.
# Each program has two ranges of its own, and a graph of 2048 nodes takes more than 2 MiB.
HELD = [
    ("streams", "8", 8, 4),
    ("events", "20", 20, 10),
    ("modules", "20", 20, 10),
    ("arrays", "5", 5, 3),
    ("ranges", "20", 18, 9),
    ("host-memory", "32M", 8, 4),
    ("graph-memory", "4M", 1, 1),
]


class Held(TestCase):
    def test_each_kind(self):
        self.start()
        for quota, value, first, again in HELD:
            with self.subTest(quota):
                self.funnel("limit", "--quota", f"{quota}={value}")
                self.assertEqual(self.ask(quota, "64", program="quota_probe"),
                                 [[first, OUT_OF_MEMORY], [again, OUT_OF_MEMORY]])
                self.assertIn(f"and the quota {quota} is ", self.server_log())
                self.funnel("limit", "--quota", f"{quota}=default")
                self.assertEqual(self.ask(quota, "16", program="quota_probe"), [[16, 0], [8, 0]])


if __name__ == "__main__":
    limits_harness.main()
