#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Chunks of managed memory change places where the client's limit has no capacity for all of them.
Run as: python3 test_managed_exchange.py BUILD [unittest options]."""
import subprocess

import managed_daemon

SAID = "there is more managed memory than the device, or the memory limit, has capacity for"


class Exchange(managed_daemon.TestCase):
    devices = "1:sms=4,mem=64M"

    def run_with_limit(self, limit):
        self.environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = "0=" + limit
        done = subprocess.run(self.command("managed_large"), env=self.environment, text=True,
                              capture_output=True, timeout=managed_daemon.TIMEOUT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("FAILED", done.stdout)

    def test_chunks_change_places(self):
        self.run_with_limit("40M")
        self.skip_unless_it_moves()
        self.assertEqual(self.log().count(SAID), 1)


if __name__ == "__main__":
    managed_daemon.main()
