#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""FUNNEL_MANAGED_CHECK finds touches of managed memory that a kernel may be using, and only those.
Run as: python3 test_managed_check.py BUILD [unittest options]."""
import os
import subprocess
import sys
import tempfile
import unittest

BUILD = None
TIMEOUT_S = 60
ALLOWED = ["before: 1", "of the host: 1", "of another stream: 1", "afterwards: 5"]


class Check(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fnl-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.log = folder.name + "/client.log"
        self.environment = dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=folder.name + "/pipe",
                                CUDA_MPS_LOG_DIRECTORY=folder.name + "/log", FUNNEL_LOG=self.log)
        self.funnel = os.path.join(BUILD, "bin/funnel")
        subprocess.run([self.funnel, "start", "--device", "soft"], env=self.environment, check=True,
                       timeout=TIMEOUT_S, stdout=subprocess.DEVNULL)
        self.addCleanup(subprocess.run, [self.funnel, "stop", "--force"], env=self.environment,
                        timeout=TIMEOUT_S, stdout=subprocess.DEVNULL, check=False)

    def play(self, **more):
        program = subprocess.run([self.funnel, "run", "-q", "--",
                                  os.path.join(BUILD, "tests/api/managed_early")],
                                 env={**self.environment, **more}, capture_output=True, text=True,
                                 timeout=TIMEOUT_S)
        self.assertEqual(program.returncode, 0, program.stdout + program.stderr)
        return program.stdout.splitlines()

    def attached(self, **more):
        program = subprocess.run([self.funnel, "run", "-q", "--direct", "--device", "soft", "--",
                                  os.path.join(BUILD, "tests/api/managed_early"), "attached"],
                                 env={**self.environment, **more}, capture_output=True, text=True,
                                 timeout=TIMEOUT_S)
        self.assertEqual(program.returncode, 0, program.stdout + program.stderr)
        return program.stdout.splitlines()

    def test_kernels_have_no_access_to_what_is_the_hosts(self):
        """On the software GPU itself, where host and kernels take turns."""
        mine = "no longer the host's: 5"
        self.assertEqual(self.attached(), [mine, "the host's: CUDA_SUCCESS"])
        self.assertEqual(self.attached(FUNNEL_SOFT_MANAGED_TURNS="1"),
                         [mine, "the host's: CUDA_ERROR_ILLEGAL_ADDRESS"])

    def said(self):
        with open(self.log) as log:
            return log.read()

    def test_touches_in_between_are_refused(self):
        lines = self.play(FUNNEL_MANAGED="device", FUNNEL_MANAGED_CHECK="1")
        self.assertEqual([line for line in lines if "refused" in line],
                         ["read: refused", "written: refused"])
        self.assertEqual([line for line in lines if "refused" not in line], ALLOWED)
        said = self.said()
        self.assertEqual(said.count("while work is in flight"), 2, said)
        self.assertIn("reads managed memory", said)
        self.assertIn("writes managed memory", said)

    def test_without_the_switch_none_is(self):
        self.assertNotIn("refused", " ".join(self.play(FUNNEL_MANAGED="device")))


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
