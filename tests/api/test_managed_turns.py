#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A touch of managed memory waits for the kernel that was given it: not without end, and not for one that has gone with its
server. Run as: python3 test_managed_turns.py BUILD [unittest options]."""
import subprocess
import time

import managed_daemon

TIMEOUT_S = 60
WAIT_TIMEOUT_S = 5
SAID = "which a kernel uses that has not ended"


class Turns(managed_daemon.TestCase):
    def begin(self):
        """A program whose kernel ends only when the host has touched what the kernel was given."""
        child = subprocess.Popen(self.command("managed_turns", "at-last"), env=self.environment,
                                 stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def test_it_goes_on_at_last(self):
        child = self.begin()
        self.assertEqual(child.communicate(timeout=TIMEOUT_S)[0], "the_host_goes_on_at_last: ok\n")
        self.skip_unless_it_moves()
        self.assertEqual(self.log().count(SAID), 1)

    def test_the_server_is_killed(self):
        child = self.begin()
        time.sleep(1)
        self.skip_unless_it_moves()
        began = time.monotonic()
        self.kill_server()
        self.assertEqual(child.wait(TIMEOUT_S), 1)
        self.assertLess(time.monotonic() - began, WAIT_TIMEOUT_S - 2)
        self.assertNotIn(SAID, self.log())


if __name__ == "__main__":
    managed_daemon.main()
