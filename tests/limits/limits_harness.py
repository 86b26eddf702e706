# SPDX-License-Identifier: Apache-2.0
"""What the tests of limits share: a real daemon and server, and limits_probe as the program."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../control"))

import harness  # noqa: E402  (found through the path above)
from harness import wait_until, waits  # noqa: E402,F401

SMS = 16
MIB = 1 << 20
DEVICE = os.environ.get("FUNNEL_TEST_DEVICE", "soft")


class TestCase(harness.TestCase):
    devices = f"1:sms={SMS},mem=1G"
    daemon_options = ()

    def install(self):
        os.symlink(os.path.join(harness.BUILD, "bin"), os.path.join(self.root, "bin"))

    def setUp(self):
        super().setUp()
        self.environment["FUNNEL_SOFT_DEVICES"] = self.devices

    def start(self, *arguments, **options):
        super().start("--device", DEVICE, *self.daemon_options, *arguments, **options)

    def command(self, *questions, program="limits_probe"):
        return [os.path.join(self.root, "bin/funnel"), "run", "-q", "--no-start", "--",
                os.path.join(harness.BUILD, "tests/limits", program), *questions]

    def ask(self, *questions, environment=None, program="limits_probe", **options):
        """The answers of one program, as lists of numbers."""
        done = subprocess.run(self.command(*questions, program=program),
                              env={**self.environment, **(environment or {})},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=harness.TIMEOUT * 3, **options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return [[int(word) for word in line.split()] for line in done.stdout.splitlines()]

    def begin(self, *questions, environment=None, preexec_fn=None, **options):
        """A program that stops at each `wait`."""
        program = Program(self.command(*questions, **options),
                          {**self.environment, **(environment or {})}, preexec_fn)
        self.processes.append(program.process)
        return program

    def play(self, role):
        """A program of limits_load.c that has begun."""
        program = self.begin(role, "600", program="limits_load")
        self.assertEqual(program.process.stdout.readline(), "ready\n")
        program.process.stdin.write("\n")
        program.process.stdin.flush()
        return program

    def begin_by_itself(self, *questions):
        """Without `funnel run`, which looks for a daemon first."""
        library = os.path.join(harness.BUILD, "lib/funnel")
        program = Program(self.command(*questions)[5:],
                          {**self.environment, "LD_LIBRARY_PATH": library})
        self.processes.append(program.process)
        return program

    def server_log(self):
        self.settle_logs()
        return harness.texts_of(os.path.join(self.log, "server.log"))


class Program:
    def __init__(self, command, environment, preexec_fn=None):
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, preexec_fn=preexec_fn)
        self.pid = self.process.pid

    def answer(self):
        return [int(word) for word in self.process.stdout.readline().split()]

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "on\n"

    def end(self):
        self.process.communicate(timeout=harness.TIMEOUT)
        return self.process.returncode


main = harness.main
