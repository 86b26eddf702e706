# SPDX-License-Identifier: Apache-2.0
"""A server whose process is stopped. Orders to it are answered with that, nothing is changed behind
its back, and other servers and their programs are not delayed."""
import os
import signal
import subprocess
import unittest

import harness
from harness import alive, wait_until


class TestCase(harness.TestCase):
    def stop(self, server):
        os.kill(server, signal.SIGSTOP)
        self.addCleanup(self.go_on, server)

        def is_stopped():
            with open(f"/proc/{server}/stat") as file:
                return file.read().rpartition(")")[2].split()[0] == "T"
        wait_until(is_stopped, "a stopped server")

    @staticmethod
    def go_on(server):
        try:
            os.kill(server, signal.SIGCONT)
        except ProcessLookupError:
            pass

    def answer(self, line):
        done = self.run_program("nvidia-cuda-mps-control", input=line + "\n")
        return done.stdout + done.stderr

    def check_silent(self, server, line):
        self.assertIn(f"Server {server} does not answer: its process is stopped", self.answer(line), line)


class Stopped(TestCase):
    def setUp(self):
        super().setUp()
        self.start()
        self.mps("server create a\nnamespace create x --server=a\n")
        self.held = harness.Client(os.path.join(self.pipe, "a", "funnel"))
        self.addCleanup(self.held.close)
        self.assertEqual(self.held.welcome(), (0, ""))
        self.server, = self.servers()
        self.stop(self.server)

    def test_orders(self):
        pid = os.getpid()
        for line in (f"limit --client {pid} --sm 50", f"limit --user {os.getuid()} --sm 50",
                     f"terminate_client {self.server} {pid}", f"client terminate {pid}", "server delete a",
                     "namespace delete x --server=a",
                     "sm-partition create p --server=a --device=0 --chunks=1"):
            self.check_silent(self.server, line)
        self.assertIn("a", " ".join(self.mps("server list --format=csv,noheader\n")))
        self.assertIn("x", " ".join(self.mps("namespace list --server=a --format=csv,noheader\n")))
        self.assertEqual(self.server_events("terminate"), [])

    def test_the_rule_is_in_force_and_kept(self):
        self.check_silent(self.server, "limit --user 4242 --sm 37")
        self.assertIn("37%", self.funnel("limits").stdout)
        with open(os.path.join(self.pipe, "funnel.servers", "settings")) as file:
            self.assertIn("limit --user 4242 --sm 37\n", file.read())

    def test_others_go_on(self):
        others = [self.client() for _ in range(3)]
        self.assertEqual({client.welcome() for client in others}, {(0, "")})
        self.assertEqual(len(self.funnel_json("status")["clients"]), 3)

    def test_a_stopped_server_is_ended_by_force(self):
        self.mps(f"shutdown_server {self.server} -f\n")
        wait_until(lambda: not alive(self.server), "the end of the server")
        self.assertIn(f"Server {self.server} did not end in time; killing it", self.control_log())

    def test_a_stopped_server_goes_on(self):
        self.go_on(self.server)
        wait_until(lambda: self.funnel_json("status")["clients"], "the server's answer")
        self.assertIn(f"Client {os.getpid()}: 50.0 % of the SMs",
                      self.answer(f"limit --client {os.getpid()} --sm 50"))

    def test_a_reload(self):
        """It is taken over, and answers when it goes on."""
        done = self.funnel("reload")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.client().welcome(), (0, ""))
        self.go_on(self.server)
        wait_until(lambda: f"Server {self.server} of a is taken over, with 1 clients" in self.control_log(),
                   "the server's answer")


class Silent(TestCase):
    fake = "silent"

    def test_stopped_when_it_has_been_asked(self):
        self.start()
        self.assertEqual(self.client().welcome(), (0, ""))
        server, = self.servers()
        command = subprocess.Popen([os.path.join(self.root, "bin", "nvidia-cuda-mps-control")],
                                   env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True)
        self.processes.append(command)
        command.stdin.write(f"limit --client {os.getpid()} --sm 50\n")
        command.stdin.close()
        wait_until(lambda: "Cmd:limit" in self.control_log(), "the order")
        self.stop(server)
        self.assertIn(f"Server {server} does not answer", command.stdout.read())


if __name__ == "__main__":
    harness.main()
