#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The memory of programs that rest for long leaves the device, and returns for their next call.
Run as: test_rest.py BUILD [--device cuda]."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import test_recovery  # noqa: E402  (found through the path above)
import test_suspend  # noqa: E402
from harness import wait_until  # noqa: E402
from test_recovery import FINE  # noqa: E402

HELD = 32 << 20


class Resting(test_suspend.MovedMemory):
    def holder(self, **more):
        probe = self.suspend_probe(**more)
        self.assertEqual(probe.ask("hold 32 5"), FINE)
        return probe

    def await_away(self, probe):
        wait_until(lambda: self.row(probe)["evicted"], "an eviction")
        self.assertGreaterEqual(self.memory(probe)[1], HELD)


class Rest(Resting):
    def test_memory_returns_by_itself(self):
        probe, other = self.holder(), self.holder()
        self.fine("limit", "--client", probe.process.pid, "--evict-after", 1)
        for _ in range(2):
            self.await_away(probe)
            self.assertGreaterEqual(self.row(probe)["rests_seconds"], 1)
            self.assertEqual(probe.ask("check"), FINE, self.logs())
        self.assertEqual(self.memory(other)[1], 0)
        self.assertIn("is evicted because it rests", self.logs())
        self.assertGreaterEqual(self.row(probe)["usage"]["evictions"], 2)

    def test_programs_of_a_group(self):
        other = self.holder()
        self.fine("limit", "--group", "notebooks", "--evict-after", 1)
        probe = self.holder(FUNNEL_GROUP="notebooks")
        self.await_away(probe)
        self.assertEqual((self.row(probe)["evict_after"], self.row(other)["evict_after"]), (1, None))
        self.fine("limit", "--group", "notebooks", "--evict-after", "none")
        self.assertIsNone(self.row(probe)["evict_after"])
        self.assertEqual(probe.ask("check"), FINE)
        self.assertEqual(self.memory(other)[1], 0)

    def test_an_array_keeps_a_program_at_rest_on_the_device(self):
        probe = self.holder()
        self.assertEqual(probe.ask("array"), FINE)
        self.fine("limit", "--client", probe.process.pid, "--evict-after", 1)
        wait_until(lambda: "rests, and its memory cannot leave: " in self.logs(), "a refusal")
        self.assertEqual(self.memory(probe)[1], 0)
        self.assertEqual(probe.ask("check"), FINE)

    def test_an_evicted_program_is_suspended(self):
        probe = self.holder()
        self.fine("limit", "--client", probe.process.pid, "--evict-after", 1)
        self.await_away(probe)
        self.suspend(probe)
        self.assertTrue(self.row(probe)["suspended"])
        self.assertEqual(self.check_resumed(probe), FINE)


class OfAll(Resting):
    more = {"FUNNEL_EVICT_AFTER": "1"}

    def test_programs_of_the_daemon(self):
        critical, probe = self.holder(FUNNEL_CLASS="critical"), self.holder()
        self.await_away(probe)
        self.assertEqual(self.memory(critical)[1], 0)
        self.assertIn("1 s", self.funnel("limits").stdout)
        self.assertEqual(probe.ask("check"), FINE)


if __name__ == "__main__":
    test_recovery.main(sys.argv)
