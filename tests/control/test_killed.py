# SPDX-License-Identifier: Apache-2.0
"""A test that is killed leaves no process behind: neither its daemon, nor the servers, nor the
programs that it has started. The daemon is in a session of its own."""
import os
import signal
import subprocess
import sys

import harness
from harness import alive, wait_until


class Victim(harness.TestCase):
    """What is killed: a test in the middle of its work."""

    def test_until_killed(self):
        program = subprocess.Popen(["sleep", "1000"], env=self.environment)
        self.start("--device", "soft")
        self.client().welcome()
        print(self.daemon_pid(), *self.servers(), program.pid, flush=True)
        signal.pause()


class Killed(harness.TestCase):
    def kill_a_test(self, number):
        environment = {name: value for name, value in os.environ.items()
                       if name != harness.guardian.MARK}
        victim = subprocess.Popen([sys.executable, __file__, harness.BUILD, "Victim"],
                                  env=environment, stdout=subprocess.PIPE, text=True)
        with victim:
            started = [int(pid) for pid in victim.stdout.readline().split()]
            self.assertEqual(len(started), 3)
            self.assertTrue(all(map(alive, started)))
            victim.send_signal(number)
        wait_until(lambda: not any(map(alive, started)), "the end of what the test has started")

    def test_killed(self):
        self.kill_a_test(signal.SIGKILL)

    def test_terminated(self):
        self.kill_a_test(signal.SIGTERM)


if __name__ == "__main__":
    if "Victim" not in sys.argv:
        sys.argv.append("Killed")
    harness.main()
