#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pieces of managed memory change places where the client's limit has no room for all of them.
Run as: python3 test_managed_exchange.py BUILD [unittest options]."""
import os
import subprocess
import sys
import tempfile
import unittest

BUILD = None
TIMEOUT_S = 120
DEVICE = "1:sms=4,mem=64M"
SAID = "there is more managed memory than the device, or the memory limit, has room for"


class Exchange(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fnl-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.logs = folder.name + "/log"
        self.environment = dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=folder.name + "/pipe",
                                CUDA_MPS_LOG_DIRECTORY=self.logs, FUNNEL_SOFT_DEVICES=DEVICE)
        self.funnel("start", "--device", "soft")
        self.addCleanup(self.funnel, "stop", "--force")

    def funnel(self, *arguments):
        return subprocess.run([os.path.join(BUILD, "bin/funnel"), *arguments], text=True,
                              env=self.environment, capture_output=True, timeout=TIMEOUT_S,
                              check=False)

    def run_with_limit(self, limit):
        self.environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = "0=" + limit
        done = self.funnel("run", "-q", "--no-start", "--",
                           os.path.join(BUILD, "tests/api/managed_large"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("FAILED", done.stdout)
        with open(self.logs + "/client.log", encoding="utf-8") as log:
            return log.read()

    def test_pieces_change_places(self):
        log = self.run_with_limit("40M")
        if "managed memory moves" not in log:
            self.skipTest("managed memory does not move in this process")
        self.assertEqual(log.count(SAID), 1)



if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
