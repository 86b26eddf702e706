#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Managed memory under ThreadSanitizer: threads touch pages, launch, prefetch and free through Funnel, in a client library
that is built with it. Run as: python3 test_managed_races.py BUILD [unittest options]."""
import os
import subprocess
import sys
import tempfile
import unittest

BUILD = None
TIMEOUT_S = 240
RACE = 66


class Races(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fnl-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.reports = folder.name + "/race"
        self.environment = dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=folder.name + "/pipe",
                                CUDA_MPS_LOG_DIRECTORY=folder.name + "/log",
                                FUNNEL_SOFT_DEVICES="1:sms=4,mem=64M")
        # What the server and the software GPU do is not looked at here.
        self.funnel("exitcode=0 log_path=" + folder.name + "/server", "start", "--device", "soft")
        self.addCleanup(self.funnel, "exitcode=0", "stop", "--force")

    def funnel(self, options, *arguments):
        return subprocess.run([os.path.join(BUILD, "bin/funnel"), *arguments], text=True,
                              env=dict(self.environment, TSAN_OPTIONS=options),
                              capture_output=True, timeout=TIMEOUT_S, check=False)

    def report(self):
        folder, name = os.path.split(self.reports)
        text = ""
        for entry in os.listdir(folder):
            if entry.startswith(name):
                with open(os.path.join(folder, entry), encoding="utf-8") as file:
                    text += file.read()
        return text

    def expect_none(self, *command):
        done = self.funnel(f"exitcode={RACE} log_path={self.reports}", "run", "-q", "--no-start",
                           "--", os.path.join(BUILD, "tests/api", command[0]), *command[1:])
        self.assertEqual(done.returncode, 0, self.report() + done.stdout + done.stderr)

    def test_random(self):
        for seed in range(3):
            self.expect_none("managed_random", str(seed), "40")

    def test_moves(self):
        self.expect_none("managed_moves")

    def test_turns(self):
        self.expect_none("managed_turns")
        self.expect_none("managed_turns", "waits")

    def test_threads(self):
        self.expect_none("managed_threads")
        self.expect_none("managed_threads", "waits")
        self.expect_none("managed_threads", "stack")

    def test_pieces_change_places(self):
        self.environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = "0=6M"
        self.expect_none("managed_random", "3", "40")


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
