#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many things of a kind a program may hold: quotas, and what the program is told beyond them.
Run as: python3 test_held.py BUILD."""
import os
import subprocess
import unittest

import limits_harness
from limits_harness import MIB, TestCase, wait_until

DEVICE = "GPU-46756e6e-656c-2073-6f66-742047505500"  # the software GPU's first

OUT_OF_MEMORY = 2
NOT_PERMITTED = 800
LIMITED = {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=64M"}

# Quota, its value, how many things there are then, and how many again after half of them ended.
# Each program has two ranges of its own, and a graph of 2048 nodes takes more than 2 MiB.
HELD = [
    ("streams", "8", 8, 4),
    ("events", "20", 20, 10),
    ("modules", "20", 20, 10),
    ("arrays", "5", 5, 3),
    ("ranges", "20", 18, 9),
    ("host-memory", "32M", 8, 4),
    ("graph-memory", "4M", 1, 1),
    ("waits", "20", 20, 10),
]


class Held(TestCase):
    def test_each_kind(self):
        self.start()
        for quota, value, first, again in HELD:
            with self.subTest(quota):
                self.funnel("limit", "--quota", f"{quota}={value}")
                self.assertEqual(self.ask(quota, "64", program="quota_probe"),
                                 [[first, OUT_OF_MEMORY], [again, OUT_OF_MEMORY]])
                self.assertIn(f"and the quota {quota} is ", self.server_log())
                self.funnel("limit", "--quota", f"{quota}=default")
                self.assertEqual(self.ask(quota, "16", program="quota_probe"), [[16, 0], [8, 0]])

    def test_kept_memory(self):
        """Of 64 MiB, with 4 MiB for what is not exported; what was given back counts as well."""
        self.start()
        for percent, first in (("50", 7), ("25", 3), ("0", 0), ("default", 15)):
            with self.subTest(percent):
                self.funnel("limit", "--quota", f"kept-memory={percent}")
                self.assertEqual(self.ask("kept-memory", "64", program="quota_probe",
                                          environment=LIMITED),
                                 [[first, NOT_PERMITTED], [0, NOT_PERMITTED]])

    def lines_of_mistakes(self):
        """Of one client that makes 96 in less time than the server forgets them."""
        before = len(self.server_log().splitlines())
        self.assertEqual(self.ask("mistakes", "64", program="quota_probe", environment=LIMITED),
                         [[64, 0], [32, 0]])
        lines = self.server_log().splitlines()[before:]
        return [line for line in lines if ": out of memory: it has " in line]

    def test_lines_of_the_log(self):
        self.start()
        self.ask("sms")
        few = 20  # in 10 seconds, whatever the quota is
        self.assertGreaterEqual(len(self.lines_of_mistakes()), few)
        self.funnel("limit", "--quota", "log=1K")
        lines = self.lines_of_mistakes()
        self.assertGreater(len(lines), 0)
        self.assertLess(len(lines), few)
        self.assertIn("no more of its mistakes are logged for a while", lines[-1])


class GroupLimits(TestCase):
    """Where the kernel has limits of device memory for control groups."""

    def start_with(self, file, mebibytes):
        if os.geteuid():
            self.skipTest("a mount namespace needs root")
        with open("/proc/self/cgroup") as lines:
            path = next(line[3:].strip() for line in lines if line.startswith("0::"))
        kernel = os.path.join(self.root, "kernel")
        os.makedirs(kernel + path)
        for name, text in (("dmem.capacity", ""),
                           (f"{path}/{file}", f"x/{DEVICE}/vram0 {mebibytes * MIB}\n")):
            with open(os.path.join(kernel, name.lstrip("/")), "w") as written:
                written.write(text)
        done = subprocess.run(["unshare", "--mount", "sh", "-c",
                               f"mount --bind {kernel} /sys/fs/cgroup && "
                               f"exec {self.root}/bin/funneld -d --device soft"],
                              env=self.environment, stderr=subprocess.PIPE, text=True)
        if "unshare" in done.stderr or "mount" in done.stderr:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_hard_limit(self):
        """The programs of the group have it together."""
        self.start_with("dmem.max", 128)
        holder = self.begin("fill=32", "wait")
        self.assertEqual(holder.answer(), [4, 2])
        self.assertEqual(self.ask("fill=32"), [[0, 2]])
        self.assertIn("The programs of its control group have 128 MiB together", self.server_log())

    def test_soft_limit(self):
        """A program that has more is named."""
        self.start_with("dmem.min", 64)
        program = self.begin("info", "fill=32", "drop", "fill=32", "wait")
        program.answer()
        self.assertGreater(program.answer()[0], 2)
        program.answer()
        program.answer()
        wait_until(lambda: "more than its soft limit" in self.server_log())
        self.assertEqual(self.server_log().count("more than its soft limit of 64 MiB of device 0"), 1)
        device, = self.funnel_json("ps")[0]["devices"]
        self.assertEqual(device["memory_soft"], 64 * MIB)
        self.assertGreater(device["memory_used"], 64 * MIB)
        self.assertIn("64 MiB     normal", self.funnel("limits").stdout)
        self.assertIn("a soft limit of 64 MiB of device 0", self.control_log())


if __name__ == "__main__":
    limits_harness.main()
