#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Graphs with conditional nodes that programs destroy while they run: the driver below gets to see
that only when the launches have ended. And programs beside them that set nodes, or launch so much
that the server sets nodes of its own graphs. Run as: python3 test_conditionals.py BUILD."""
import os
import subprocess
import sys
import tempfile
import unittest

BUILD = None
DEVICE = os.environ.get("FUNNEL_TEST_DEVICE", "soft")
TIMEOUT_S = 120
COPIES = 3
ROUNDS = 3


class Conditionals(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="fnl-", dir="/tmp")
        self.environment = dict(os.environ, FUNNEL_SOFT_STRICT_GRAPHS="1",
                                CUDA_MPS_PIPE_DIRECTORY=self.folder.name + "/pipe",
                                CUDA_MPS_LOG_DIRECTORY=self.folder.name + "/log")
        self.funnel = os.path.join(BUILD, "bin/funnel")
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(self.stop)

    def stop(self):
        subprocess.run([self.funnel, "stop", "--force"], env=self.environment, timeout=TIMEOUT_S,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def begin(self, *options, program="conditionals"):
        command = [self.funnel, "run", "-q", *options, "--device", DEVICE, "--",
                   os.path.join(BUILD, "tests/api", program)]
        process = subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.kill)
        return process

    def test_server_lets_launches_end(self):
        for process in [self.begin() for _ in range(COPIES)]:
            out, _ = process.communicate(timeout=TIMEOUT_S)
            self.assertEqual(process.returncode, 0, out)

    def test_others_set_nodes_meanwhile(self):
        for _ in range(ROUNDS):
            programs = ["conditionals", "graphs", "launches", "talk_calls"]
            for process in [self.begin(program=name) for name in programs]:
                out, _ = process.communicate(timeout=TIMEOUT_S)
                self.assertEqual(process.returncode, 0, out)

    @unittest.skipIf(DEVICE != "soft", "a GPU says nothing, or loses the context")
    def test_software_gpu_notices_where_none_waits(self):
        process = self.begin("--direct")
        out, _ = process.communicate(timeout=TIMEOUT_S)
        self.assertNotEqual(process.returncode, 0, out)
        self.assertIn("CUDA_ERROR_LAUNCH_FAILED", out)


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main()
