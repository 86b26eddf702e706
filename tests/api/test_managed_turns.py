#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A touch of managed memory waits for the kernel that was given it. It does not wait without end,
nor for a kernel that has gone with its server. Run as: python3 test_managed_turns.py BUILD
[unittest options]."""
import os
import subprocess
import time

import managed_daemon

TIMEOUT_S = 60
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

    def test_the_host_goes_on_at_last(self):
        child = self.begin()
        self.assertEqual(child.communicate(timeout=TIMEOUT_S)[0], "the_host_goes_on_at_last: ok\n")
        self.skip_unless_it_moves()
        self.assertEqual(self.log().count(SAID), 1)

    def count(self):
        return self.log().count(SAID) if os.path.exists(self.logs + "/client.log") else 0

    def has_launched(self, child):
        rows = self.funnel("ps", "--columns", "pid,launches").stdout.splitlines()[1:]
        return any(pid == str(child.pid) and launches != "0" for pid, launches in map(str.split, rows))

    def await_launch(self, child):
        """Or its end: where managed memory does not move, it ends at once."""
        end = time.monotonic() + TIMEOUT_S
        while child.poll() is None and not self.has_launched(child):
            self.assertLess(time.monotonic(), end, "the program does not launch")
            time.sleep(0.01)

    def test_the_server_is_killed(self):
        """The touch ends with the server. On a busy machine it may have ended by itself before."""
        for _ in range(5):
            before = self.count()
            child = self.begin()
            self.await_launch(child)
            self.skip_unless_it_moves()
            self.kill_server()
            self.assertEqual(child.wait(TIMEOUT_S), 1)
            if self.count() == before:
                return
        self.fail("the touch has waited for the end of its time")


if __name__ == "__main__":
    managed_daemon.main()
