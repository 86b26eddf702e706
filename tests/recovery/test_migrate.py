#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that move from one device of their server to another while they run, with all that they
have. Run as: test_migrate.py BUILD [--device cuda]."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import test_recovery  # noqa: E402  (found through the path above)
import test_suspend  # noqa: E402
from harness import wait_until  # noqa: E402
from test_recovery import FINE  # noqa: E402


class MigrateTestCase(test_suspend.MovedMemory):
    devices = "2:sms=24,mem=256M"

    def start_order(self, probe, device):
        return subprocess.Popen(
            [os.path.join(test_recovery.BUILD, "bin/funnel"), "migrate", str(probe.process.pid),
             "--device", str(device)], env=self.environment, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)

    def migrate(self, probe, device, word):
        """The program has its idle point in the next call that it makes."""
        with self.start_order(probe, device) as order:
            while order.poll() is None:
                self.assertEqual(probe.ask(word), FINE, probe.said() + self.logs())
            return order.returncode, order.stdout.read()

    def moves(self, probe, device, word):
        status, said = self.migrate(probe, device, word)
        self.assertEqual(status, 0, said + probe.said() + self.logs())
        self.assertIn(f"is on device {device}", said)

    def stays(self, probe, device, word, reason):
        status, said = self.migrate(probe, device, word)
        self.assertIn(reason, said, probe.said() + self.logs())
        self.assertEqual(status, 1)

    def used(self, probe):
        """Bytes on each device."""
        known = {device["ordinal"]: device["memory_used"] for device in self.row(probe)["devices"]}
        return [known.get(0, 0), known.get(1, 0)]

    def check(self, probe, *words):
        for word in words:
            self.assertEqual((word, probe.ask(word)), (word, FINE), probe.said() + self.logs())


class Memory(MigrateTestCase):
    def test_there_and_back(self):
        """Memory of cuMemAlloc and of cuMemCreate, compared with a shadow copy."""
        probe, neighbor = self.suspend_probe(), self.suspend_probe()
        self.check(neighbor, "work 9 40")
        self.check(probe, "hold 20 7", "places 3", "work 1 100")
        for seed, device in enumerate((1, 0, 1)):
            self.moves(probe, device, "check")
            wait_until(lambda at=device: self.used(probe)[at] > 20 << 20, "its memory there")
            self.assertLess(self.used(probe)[1 - device], 1 << 20)
            self.check(probe, "check", "seen 3", f"work {seed} 60")
        self.check(neighbor, "work 10 40")
        self.assertLess(self.used(neighbor)[1], 1 << 20)

    def test_other_ways_out(self):
        """What has moved can be suspended, comes back after the end of its server, and stays there."""
        probe = self.suspend_probe()
        self.check(probe, "hold 20 7", "work 1 60")
        self.moves(probe, 1, "check")
        self.suspend(probe)
        self.resume(probe)
        self.check(probe, "check", "work 2 40")
        self.fine("evict", probe.process.pid)
        self.check(probe, "check", "work 3 40")
        self.kill_server()
        self.check(probe, "check", "work 4 40")
        self.assertLess(self.used(probe)[0], 1 << 20)
        self.moves(probe, 0, "check")
        self.check(probe, "check", "work 5 40")

    def test_too_little_memory(self):
        """Copies that were made are dropped, and nothing of them comes back later."""
        other, probe = self.suspend_probe(), self.suspend_probe()
        self.check(other, "hold 200 2")
        self.moves(other, 1, "check")
        self.check(probe, "hold 20 1", "work 1 60", "more 100 3")
        self.stays(probe, 1, "check", "too little free memory")
        self.check(probe, "check", "work 2 40")
        self.suspend(probe)
        self.resume(probe)
        self.check(probe, "check", "work 3 40")
        self.kill_server()
        self.check(probe, "check", "work 4 40")
        self.check(other, "check")
        self.assertLess(self.used(probe)[1], 1 << 20)


class ThroughHost(MigrateTestCase):
    """Devices that do not reach each other."""
    more = {"FUNNEL_OFF": "peer-copies"}

    def test_there_and_back(self):
        probe = self.suspend_probe()
        self.check(probe, "hold 37 7", "places 3", "work 1 60")
        for device in (1, 0):
            self.moves(probe, device, "check")
            self.check(probe, "check", "seen 3", "work 2 40")
        self.assertIn("from device 0 to device 1 through host memory", self.log("server"))


class Objects(MigrateTestCase):
    """Streams, events, graphs, callbacks, variables of modules, page-locked and managed memory."""
    words = ("look", "round", "graph", "callback", "managed", "pinned", "allocate", "threads",
             "module", "round", "look", "count")

    def enter(self):
        probe = self.probe()
        self.assertEqual(probe.opened(), FINE)
        self.check(probe, "round", "count")
        return probe

    def test_there_and_back(self):
        probe, neighbor = self.enter(), self.enter()
        for device in (1, 0, 1):
            self.moves(probe, device, "synchronize")
            self.check(probe, *self.words)
        self.check(neighbor, "round", "look")

    def test_with_work_in_flight(self):
        """It is waited for, and what the server has not read goes with the program."""
        probe = self.enter()
        self.check(probe, "hold", *["launch"] * 60)
        with self.start_order(probe, 1) as order:
            wait_until(lambda: "moves to device 1 at its next idle point" in self.log("control"),
                       "the order")
            self.check(probe, "launch", "launch", "release")
            while order.poll() is None:
                self.check(probe, "synchronize")
            self.assertEqual(order.returncode, 0, order.stdout.read())
        self.check(probe, "look", "round")


class Refusals(MigrateTestCase):
    def test_reasons(self):
        probe = self.suspend_probe()
        self.refused("on that device already", "migrate", probe.process.pid, "--device", 0)
        self.refused("without that device", "migrate", probe.process.pid, "--device", 2)
        self.refused("not found", "migrate", 1, "--device", 1)
        for word, reason in (("array 1", "it has an array"), ("share", "it has shared something"),
                             ("handle 2", "it has shared something")):
            with self.subTest(word):
                holder = self.suspend_probe()
                self.check(holder, "hold 1 1", word)
                self.stays(holder, 1, "work 1 10", reason)
                self.check(holder, "work 2 10", "check")

    def test_an_order_is_taken_back(self):
        """By an order to the device on which the program is."""
        probe = self.suspend_probe()
        self.check(probe, "hold 1 1")
        with self.start_order(probe, 1) as order:
            wait_until(lambda: "moves to device 1 at its next idle point" in self.log("control"),
                       "the order")
            status, said = self.order("migrate", probe.process.pid, "--device", 0)
            self.assertIn("its move is withdrawn", said)
            self.assertEqual(status, 0)
            self.assertIn("another order came", order.stdout.read())
            self.assertEqual(order.wait(), 1)
        self.check(probe, "work 1 10", "check")
        self.assertLess(self.used(probe)[1], 1 << 20)

    def test_addresses_of_functions(self):
        """Memory may hold some, and they are others on the other device."""
        probe = self.probe()
        self.assertEqual(probe.opened(), FINE)
        self.check(probe, "pointer")
        self.stays(probe, 1, "synchronize", "calls functions through pointers")
        self.check(probe, "pointer", "round")


if __name__ == "__main__":
    test_recovery.main(sys.argv)
