#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A touch of managed memory waits for the kernel that was given it: not without end, and not for one that has gone with its
server. Run as: python3 test_managed_turns.py BUILD [unittest options]."""
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = None
TIMEOUT_S = 60
WAIT_TIMEOUT_S = 5
SAID = "which a kernel uses that has not ended"


class Turns(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fnl-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.logs = folder.name + "/log"
        self.environment = dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=folder.name + "/pipe",
                                CUDA_MPS_LOG_DIRECTORY=self.logs)
        self.ask("start", "--device", "soft")
        self.addCleanup(self.ask, "stop", "--force")

    def ask(self, *arguments):
        done = subprocess.run([os.path.join(BUILD, "bin/funnel"), *arguments], text=True,
                              env=self.environment, capture_output=True, timeout=TIMEOUT_S,
                              check=False)
        return done.stdout

    def begin(self):
        """A program whose kernel ends only when the host has touched what the kernel was given."""
        child = subprocess.Popen([os.path.join(BUILD, "bin/funnel"), "run", "-q", "--no-start", "--",
                                  os.path.join(BUILD, "tests/api/managed_turns"), "at-last"],
                                 env=self.environment, stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def log(self):
        with open(self.logs + "/client.log", encoding="utf-8") as log:
            return log.read()

    def skip_unless_it_moves(self):
        if "managed memory moves" not in self.log():
            self.skipTest("managed memory does not move in this process")

    def test_it_goes_on_at_last(self):
        child = self.begin()
        self.assertEqual(child.communicate(timeout=TIMEOUT_S)[0], "the_host_goes_on_at_last: ok\n")
        self.skip_unless_it_moves()
        self.assertEqual(self.log().count(SAID), 1)

    def test_the_server_is_killed(self):
        child = self.begin()
        time.sleep(1)
        self.skip_unless_it_moves()
        server = re.search(r"^Server [^(]*\((\d+)\)", self.ask("status"), re.M)
        began = time.monotonic()
        os.kill(int(server.group(1)), 9)
        self.assertEqual(child.wait(TIMEOUT_S), 1)
        self.assertLess(time.monotonic() - began, WAIT_TIMEOUT_S - 2)
        self.assertNotIn(SAID, self.log())


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
