# SPDX-License-Identifier: Apache-2.0
"""What tests of managed memory share: a daemon with the software GPU, in directories of its own."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

BUILD = None
TIMEOUT_S = 120


class TestCase(unittest.TestCase):
    devices = None  # FUNNEL_SOFT_DEVICES

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fnl-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.logs = folder.name + "/log"
        self.environment = dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=folder.name + "/pipe",
                                CUDA_MPS_LOG_DIRECTORY=self.logs)
        if self.devices:
            self.environment["FUNNEL_SOFT_DEVICES"] = self.devices
        self.funnel("start", "--device", "soft")
        self.addCleanup(self.funnel, "stop", "--force")

    def funnel(self, *arguments):
        return subprocess.run([os.path.join(BUILD, "bin/funnel"), *arguments], text=True,
                              env=self.environment, capture_output=True, timeout=TIMEOUT_S,
                              check=False)

    def command(self, program, *arguments):
        return [os.path.join(BUILD, "bin/funnel"), "run", "-q", "--no-start", "--",
                os.path.join(BUILD, "tests/api", program), *arguments]

    def kill_server(self):
        status = self.funnel("status").stdout
        os.kill(int(re.search(r"^Server [^(]*\((\d+)\)", status, re.M).group(1)), signal.SIGKILL)

    def log(self):
        with open(self.logs + "/client.log", encoding="utf-8") as log:
            return log.read()

    def skip_unless_it_moves(self):
        if "managed memory moves" not in self.log():
            self.skipTest("managed memory does not move in this process")


def main():
    """Arguments: BUILD [unittest options]."""
    global BUILD
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(module="__main__", verbosity=2)
