#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs, or their server, end in the middle of everything with managed memory.
Run as: python3 test_managed_ends.py BUILD [unittest options]."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = None
TIMEOUT_S = 60
FOR_EVER = "1000000000"  # rounds


class Ends(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fnl-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.environment = dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=folder.name + "/pipe",
                                CUDA_MPS_LOG_DIRECTORY=folder.name + "/log")
        self.ask("start", "--device", "soft")
        self.addCleanup(self.ask, "stop", "--force")

    def ask(self, *arguments):
        done = subprocess.run([os.path.join(BUILD, "bin/funnel"), *arguments], text=True,
                              env=self.environment, capture_output=True, timeout=TIMEOUT_S,
                              check=False)
        return done.stdout

    def begin(self, seed, rounds):
        command = [os.path.join(BUILD, "bin/funnel"), "run", "-q", "--no-start", "--",
                   os.path.join(BUILD, "tests/api/managed_random"), str(seed), rounds]
        child = subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL,
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
                   for row in json.loads(self.ask("ps", "--json") or "[]"))

    def all_is_free(self):
        free = re.search(r"SMs, (\S+ \S+) of (\S+ \S+) free", self.ask("status"))
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
            server = re.search(r"^Server [^(]*\((\d+)\)", self.ask("status"), re.M)
            os.kill(int(server.group(1)), 9)
            self.assertEqual(child.wait(TIMEOUT_S), 1)
        self.assertEqual(self.begin(1, "100").wait(TIMEOUT_S), 0)


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
