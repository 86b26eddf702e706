#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs, or their server, end in the middle of everything with managed memory.
Run as: python3 test_managed_ends.py BUILD [unittest options]."""
import json
import re
import subprocess
import time

import managed_daemon

TIMEOUT_S = 60
FOR_EVER = "1000000000"  # rounds


class Ends(managed_daemon.TestCase):
    def begin(self, seed, rounds):
        child = subprocess.Popen(self.command("managed_random", str(seed), rounds),
                                 env=self.environment, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def wait_until(self, is_so, what):
        end = time.monotonic() + TIMEOUT_S
        while not is_so():
            self.assertLess(time.monotonic(), end, "waited in vain for " + what)
            time.sleep(0.01)

    def is_at_work(self, child):
        """It has launched kernels."""
        return any(row["pid"] == child.pid and row["launches"] > 0
                   for row in json.loads(self.funnel("ps", "--json").stdout or "[]"))

    def all_is_free(self):
        free = re.search(r"SMs, (\S+ \S+) of (\S+ \S+) free", self.funnel("status").stdout)
        return free and free.group(1) == free.group(2)

    def test_programs_are_killed(self):
        self.kill_programs(5)

    def test_programs_are_killed_while_pieces_change_places(self):
        self.environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = "0=6M"
        self.kill_programs(3)

    def test_the_server_is_killed_while_pieces_change_places(self):
        self.environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = "0=6M"
        self.kill_servers(2)

    def kill_programs(self, seeds):
        for seed in range(seeds):
            child = self.begin(seed, FOR_EVER)
            self.wait_until(lambda: self.is_at_work(child), "its first kernels")
            child.kill()
            child.wait(TIMEOUT_S)
        self.wait_until(self.all_is_free, "the memory of programs that have gone")
        self.assertEqual(self.begin(1, "100").wait(TIMEOUT_S), 0)

    def test_the_server_is_killed(self):
        self.kill_servers(3)

    def kill_servers(self, seeds):
        """Its programs get an error, and none waits for pages that will never come."""
        for seed in range(seeds):
            child = self.begin(seed, FOR_EVER)
            self.wait_until(lambda: self.is_at_work(child), "its first kernels")
            self.kill_server()
            self.assertEqual(child.wait(TIMEOUT_S), 1)
        self.assertEqual(self.begin(1, "100").wait(TIMEOUT_S), 0)


if __name__ == "__main__":
    managed_daemon.main()
