#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server ends and a standby has been kept ready: programs continue there, and do not wait for the
start of a driver. Which server they continue with is what the logs say; nothing here is a matter of
time. Run as: test_standby.py BUILD [--device cuda]."""
import os
import re
import signal
import sys

import test_recovery
from harness import wait_until
from test_recovery import FAULT, FINE, GONE


class TestCase(test_recovery.TestCase):
    options = ["--spare"]
    # On a busy machine kernels are long, and new programs start in the spare lane: not those of a job.
    more = {"FUNNEL_SOFT_START_MS": "500", "WORLD_SIZE": "2"}

    def serving(self):
        found = re.findall(r"^Server \S+ \((\d+)\) of user", self.funnel("status").stdout, re.M)
        return [int(pid) for pid in found]

    def standbys(self):
        found = re.findall(r"^  a standby server \((\d+)\) is ready", self.funnel("status").stdout,
                           re.M)
        return [int(pid) for pid in found]

    def await_standby(self):
        wait_until(self.standbys, "a standby")
        return self.standbys()[0]

    def kill_server(self):
        server, = self.serving()
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: f"Server {server} was killed" in self.log("control"), "its end")

    def fault(self, offender):
        server, = self.serving()
        self.assertEqual(offender.ask("fault"), FAULT)
        wait_until(lambda: server not in self.server_pids(), "the end of the server")

    def check_moved(self, probe, standby):
        for word in ("look", "round", "pinned", "callback", "allocate", "module", "round", "look"):
            self.assertEqual((word, probe.ask(word)), (word, FINE), probe.said() + self.logs())
        said = f"Client {probe.process.pid} attached to server {standby} "
        wait_until(lambda: said in self.log("control"), f"{said!r} in the log")


class Standby(TestCase):
    def test_killed_server(self):
        probes = self.probes(3)
        standby = self.await_standby()
        self.kill_server()
        for probe in probes:
            self.check_moved(probe, standby)
        self.assertEqual(self.serving(), [standby])

    def test_fault_of_another(self):
        idle, offender = self.probes(2), self.offender()
        standby = self.await_standby()
        self.fault(offender)
        for probe in idle:
            self.check_moved(probe, standby)
        self.assertEqual(offender.ask("look"), FAULT)

    def test_again_and_again(self):
        probes = self.probes(2)
        for number in range(4):
            standby = self.await_standby()
            if number % 2:
                self.kill_server()
            else:
                offender = self.offender()
                self.fault(offender)
                offender.end()
            for probe in probes:
                self.check_moved(probe, standby)

    def test_before_it_is_ready(self):
        """Each server ends as soon as it has come, with a standby or without."""
        probes = self.probes(2)
        self.await_standby()
        for _ in range(3):
            self.kill_server()
            for probe in probes:
                self.assertEqual(probe.ask("look"), FINE, probe.said() + self.logs())
        for probe in probes:
            self.assertEqual(probe.ask("round"), FINE, probe.said() + self.logs())

    def test_work_in_flight(self):
        idle, busy = self.probes(2)
        standby = self.await_standby()
        for word in ("hold", "arrive"):
            self.assertEqual(busy.ask(word), FINE)
        self.kill_server()
        self.assertEqual(busy.ask("synchronize"), GONE)
        self.check_moved(idle, standby)

    def test_none_in_quarantine(self):
        program = self.other_program()
        for _ in range(3):
            offender = self.probe(program=program)
            self.assertEqual(offender.opened(), FINE)
            self.assertEqual(offender.ask("fault"), FAULT)
            offender.end()
        self.assertNotIn(f"take the place of uid_{os.getuid()}:quarantine", self.log("control"))
        self.assertEqual(self.log("control").count("is in quarantine, as user"), 2)


if __name__ == "__main__":
    test_recovery.main(sys.argv)
