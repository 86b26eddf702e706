#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server with clients ends without an order. Another starts at once, beside the old one where the
device allows that, and else when the old one has gone."""
import os
import signal

import harness
from harness import alive, json_lines, wait_until


class TestCase(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.start("--device", "soft")

    def attach(self, **hello):
        client = self.client(**hello)
        self.assertEqual(client.welcome(), (0, ""))
        return client

    def server_with_clients(self, count):
        for _ in range(count):
            self.attach()
        server, = self.servers()
        return server

    def await_next(self, server):
        wait_until(lambda: self.servers() not in ([], [server]), "the next server")
        return self.servers()[0]

    def await_log(self, text):
        wait_until(lambda: text in self.control_log(), f"{text!r} in the log")


class Replacement(TestCase):
    def test_beside_one_that_has_faulted(self):
        server = self.server_with_clients(2)
        os.kill(server, signal.SIGUSR1)
        next_one = self.await_next(server)
        self.attach(window_base=1 << 44)
        self.assertTrue(alive(server))
        self.assertIn(f"handed over to server {next_one}", self.control_log())
        wait_until(lambda: self.server_events("departure"), "the order to end")
        os.kill(server, signal.SIGUSR2)
        self.await_log(f"Server {server} exited with status 3, after the fatal GPU error")
        self.assertEqual(self.servers(), [next_one])

    def test_after_a_kill(self):
        server = self.server_with_clients(1)
        os.kill(server, signal.SIGKILL)
        self.await_log(f"will take the place of server {server}")
        self.attach(window_base=1 << 44)
        self.assertEqual(len(self.server_events("start")), 2)

    def test_none_for_the_culprit_alone(self):
        server = self.server_with_clients(1)
        os.kill(server, signal.SIGUSR1)
        self.await_log("fatal GPU error")
        os.kill(server, signal.SIGUSR2)
        self.await_log(f"Server {server} exited with status 3")
        self.assertEqual(self.servers(), [])
        self.assertEqual(len(self.server_events("start")), 1)

    def test_none_without_clients(self):
        server = self.server_with_clients(1)
        self.mps(f"terminate_client {server} {os.getpid()}\n")
        self.await_log("ended with status 810")
        os.kill(server, signal.SIGKILL)
        self.await_log(f"Server {server} was killed")
        self.assertEqual(self.servers(), [])
        self.assertEqual(len(self.server_events("start")), 1)

    def test_none_when_the_daemon_ends(self):
        self.server_with_clients(2)
        self.assertEqual(self.funnel("stop", "--force").returncode, 0)
        self.assertEqual(len(self.server_events("start")), 1)

    def test_keeps_the_limits_of_its_server(self):
        server = self.server_with_clients(1)
        self.mps(f"set_active_thread_percentage {server} 30\n")
        os.kill(server, signal.SIGKILL)
        self.await_next(server)
        self.attach()
        self.assertEqual(self.server_events("client")[-1]["share"], 3000)


class Slow(TestCase):
    """The one that has faulted is told when its context may go: that of the next one stands."""
    fake = "slow"

    def events(self):
        return [event["event"] for event in json_lines(os.path.join(self.log, "server.log"))]

    def test_departure_when_the_next_is_ready(self):
        server = self.server_with_clients(2)
        os.kill(server, signal.SIGUSR1)
        wait_until(lambda: "departure" in self.events(), "the order to end")
        before = self.events()[:self.events().index("departure")]
        self.assertEqual(before.count("ready"), 2)
        os.kill(server, signal.SIGUSR2)

    def test_departure_at_once(self):
        server = self.server_with_clients(1)
        os.kill(server, signal.SIGUSR1)
        wait_until(lambda: "departure" in self.events(), "the order to end")
        self.assertEqual(self.events().count("start"), 1)
        os.kill(server, signal.SIGUSR2)

    def test_departure_when_the_next_has_failed(self):
        server = self.server_with_clients(2)
        os.kill(server, signal.SIGUSR1)
        self.await_log("will take the place")
        next_one, = self.servers()
        os.kill(next_one, signal.SIGKILL)
        wait_until(lambda: "departure" in self.events(), "the order to end")
        os.kill(server, signal.SIGUSR2)


class Exclusive(TestCase):
    """One process at a time may have the device."""
    fake = "exclusive"

    def test_client_that_comes_after_the_start_in_vain(self):
        server = self.server_with_clients(2)
        os.kill(server, signal.SIGUSR1)
        wait_until(lambda: self.server_events("refused"), "a start in vain")
        moving = self.client(window_base=1 << 44)
        self.await_log("moves to the next")
        os.kill(server, signal.SIGUSR2)
        self.assertEqual(moving.welcome(), (0, ""))
        self.assertNotIn(server, self.servers())

    def test_client_that_waits_is_not_refused(self):
        server = self.server_with_clients(2)
        os.kill(server, signal.SIGUSR1)
        self.await_log("fatal GPU error")
        moving = self.client(window_base=1 << 44)
        wait_until(lambda: self.server_events("refused"), "a start in vain")
        os.kill(server, signal.SIGUSR2)
        self.assertEqual(moving.welcome(), (0, ""))


if __name__ == "__main__":
    harness.main()
