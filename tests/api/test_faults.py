#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a kernel does wrong on the software GPU: the error, that it stays, and the message in the
log; directly and through Funnel. Run as: python3 test_faults.py BUILD [unittest options]."""
import os
import subprocess
import sys
import tempfile
import unittest

BUILD = None
TIMEOUT_S = 120
THREAD = "block (1,0,0), thread (35,0,0): "
# What goes wrong: the error, and what the log says of it.
FAULTS = {
    "null": ("CUDA_ERROR_ILLEGAL_ADDRESS",
             THREAD + "an illegal write of 4 bytes at 0x10, PTX line "),
    "misaligned": ("CUDA_ERROR_MISALIGNED_ADDRESS",
                   THREAD + "a misaligned access of 4 bytes at 0x12, PTX line "),
    "shared": ("CUDA_ERROR_ILLEGAL_ADDRESS",
               THREAD + "an access of 4 bytes at 0x100000, beyond the 256 bytes of shared memory, "
                        "PTX line "),
    "local": ("CUDA_ERROR_ILLEGAL_ADDRESS", THREAD + "an access of 4 bytes at 0x100"),
    "stack": ("CUDA_ERROR_HARDWARE_STACK_ERROR", THREAD + "the stack overflows, PTX line "),
    "instruction": ("CUDA_ERROR_ILLEGAL_INSTRUCTION",
                    THREAD + "a branch index of 135, beyond 2 targets, PTX line "),
    "barrier": ("CUDA_ERROR_ILLEGAL_INSTRUCTION", THREAD + "barrier 99, of 16, PTX line "),
    "pointer": ("CUDA_ERROR_INVALID_PC",
                THREAD + "a call to 0x1234, where no function is, PTX line "),
    "trap": ("CUDA_ERROR_LAUNCH_FAILED", THREAD + "trap, PTX line "),
    "assert": ("CUDA_ERROR_ASSERT", THREAD + "assertion `x > 1` failed at a.cu:12, PTX line "),
    "endless": ("CUDA_ERROR_LAUNCH_TIMEOUT", "has run for more than 2000 ms"),
}
ASSERTION = "a.cu:12: a.cu: block: [1,0,0], thread: [35,0,0] Assertion `x > 1` failed.\n"


class Faults(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="fnl-", dir="/tmp")
        self.addCleanup(self.folder.cleanup)
        self.log = self.folder.name + "/soft.log"
        self.environment = dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=self.folder.name + "/pipe",
                                CUDA_MPS_LOG_DIRECTORY=self.folder.name + "/log",
                                FUNNEL_SOFT_LOG=self.log, FUNNEL_SOFT_TIMEOUT="2")
        self.funnel = os.path.join(BUILD, "bin/funnel")

    def stop(self):
        subprocess.run([self.funnel, "stop", "--force"], env=self.environment, timeout=TIMEOUT_S,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def said(self):
        if not os.path.exists(self.log):
            return ""
        with open(self.log) as log:
            return log.read()

    def check(self, kind, how):
        error, words = FAULTS[kind]
        before = len(self.said())
        program = subprocess.run([self.funnel, "run", *how, "--",
                                  os.path.join(BUILD, "tests/api/strays"), kind],
                                 env=self.environment, capture_output=True, text=True,
                                 timeout=TIMEOUT_S)
        said = self.said()[before:]
        self.assertEqual(program.returncode, 0, program.stdout + program.stderr)
        self.assertEqual(program.stdout, f"at first {error}\nthen {error}\nstill {error}\n")
        self.assertIn(f"kernel stray_{kind}", said)
        self.assertIn(words, said)
        if kind == "assert":
            self.assertEqual(program.stderr, ASSERTION)

    def test_directly(self):
        for kind in FAULTS:
            with self.subTest(kind):
                self.check(kind, ["--direct", "--device", "soft"])

    def test_through_funnel(self):
        self.addCleanup(self.stop)
        subprocess.run([self.funnel, "start", "--device", "soft"], env=self.environment, check=True,
                       timeout=TIMEOUT_S, stdout=subprocess.DEVNULL)
        for kind in FAULTS:
            with self.subTest(kind):
                self.check(kind, ["-q", "--no-start"])


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
