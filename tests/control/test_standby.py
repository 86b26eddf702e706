# SPDX-License-Identifier: Apache-2.0
"""Standby servers: one stands by for each server, and takes its place when that ends without an
order. It is replaced itself, and is in no list of servers."""
import os
import re
import signal
import unittest

import harness
from harness import Client, alive, wait_until, waits


def kill_and_wait(test, server):
    os.kill(server, signal.SIGKILL)
    wait_until(lambda: f"Server {server} was killed by signal 9" in test.control_log())


class TestCase(harness.TestCase):
    options = ()

    def setUp(self):
        super().setUp()
        self.start("--device", "soft", "--spare", *self.options)

    def attach(self, *folder, **hello):
        client = Client(os.path.join(self.pipe, *folder, "funnel"), **hello)
        self.addCleanup(client.close)
        self.assertEqual(client.welcome(), (0, ""))
        return client

    def standbys(self):
        """As the status has them that are ready."""
        found = re.findall(r"^  a standby server \((\d+)\) is ready", self.funnel("status").stdout,
                           re.M)
        return [int(pid) for pid in found]

    def await_standby(self, *others):
        wait_until(lambda: self.standbys() and self.standbys()[0] not in others, "a standby")
        return self.standbys()[0]

    def pair(self):
        """A server with a client, and its standby."""
        self.attach()
        server, = self.servers()
        return server, self.await_standby()

    def await_server(self, pid):
        wait_until(lambda: self.servers() == [pid], f"server {pid}")

    def kill(self, server):
        kill_and_wait(self, server)

    def starts(self):
        return len(self.server_events("start"))


class Standby(TestCase):
    def test_takes_over_from_a_killed_server(self):
        server, standby = self.pair()
        self.kill(server)
        self.assertEqual(self.servers(), [standby])
        self.assertIn(f"Server {standby} takes the place of server {server}: it has stood by, and "
                      "is ready", self.control_log())
        self.attach(window_base=1 << 44)
        self.assertIn(f"handed over to server {standby}", self.control_log())
        third = self.await_standby(standby)
        self.kill(standby)
        self.assertEqual(self.servers(), [third])

    def test_takes_over_from_one_that_has_faulted(self):
        """The one that faults has not ended yet; programs that move do not wait for that."""
        server, standby = self.pair()
        os.kill(server, signal.SIGUSR1)
        self.await_server(standby)
        self.attach(window_base=1 << 44)
        self.assertTrue(alive(server))
        self.assertEqual(self.mps(f"get_server_status {standby}\n"), ["ACTIVE"])
        os.kill(server, signal.SIGUSR2)
        wait_until(lambda: not alive(server))
        self.assertEqual(self.servers(), [standby])

    def test_is_in_no_list(self):
        server, standby = self.pair()
        lists = ("get_server_list\n", "device_query\n", "ps\n", "server list\n", "device list\n")
        for command in lists:
            options = ["-p", "3"] if "list\n" in command and "_" not in command else []
            done = self.run_program("nvidia-cuda-mps-control", *options, input=command)
            self.assertEqual(done.returncode, 0, command + done.stdout)
            self.assertFalse(harness.has_number(done.stdout, standby), command)
        for view in ("servers", "devices", "ps", "metrics"):
            self.assertFalse(harness.has_number(self.funnel(view).stdout, standby), view)
        answer = self.mps(f"get_server_status {standby}\n")
        self.assertEqual(answer, [f"Server {standby} not found"])
        self.assertEqual(self.servers(), [server])
        self.assertEqual(self.funnel_json("servers")[0]["standby_pid"], standby)

    def test_ends_with_its_server(self):
        for force in ("", " -f"):
            server, standby = self.pair()
            self.mps(f"shutdown_server {server}{force}\n")
            wait_until(lambda: not alive(standby), "the end of the standby")
            if not force:
                self.assertTrue(alive(server), "it has a client")
                self.mps(f"shutdown_server {server} -f\n")
            wait_until(lambda: not alive(server))
        self.assertEqual(self.servers(), [])
        self.assertNotIn("takes the place", self.control_log())

    def test_ends_with_the_daemon(self):
        server, standby = self.pair()
        self.assertEqual(self.funnel("stop", "--force").returncode, 0)
        self.assertFalse(alive(server) or alive(standby))
        self.assertNotIn("takes the place", self.control_log())

    @waits
    def test_one_that_was_killed_is_replaced(self):
        server, standby = self.pair()
        self.kill(standby)
        self.await_standby(standby)
        self.assertEqual(self.servers(), [server])

    def test_keeps_the_limits_of_its_server(self):
        server, standby = self.pair()
        self.mps(f"set_active_thread_percentage {server} 30\n"
                 "set_default_active_thread_percentage 60\n")
        self.kill(server)
        self.assertEqual(self.servers(), [standby])
        self.attach()
        self.assertEqual(self.server_events("client")[-1]["share"], 3000)

    def test_of_a_named_server(self):
        self.mps("server create training\n")
        self.attach("training")
        server, = self.servers()
        standby = self.await_standby()
        self.kill(server)
        self.assertEqual(self.servers(), [standby])
        self.attach("training")
        self.assertEqual(len(self.server_events("client", "training")), 2)
        self.assertEqual(self.server_events("client"), [])

    def test_one_log_of_both(self):
        self.pair()
        self.assertEqual(len(self.server_events("ready")), 2)


class OfSlowDriver(TestCase):
    fake = "slow"

    def test_takes_over_while_it_starts(self):
        """A program that moves meanwhile waits until it is ready, and no third one is started."""
        self.attach()
        server, = self.servers()
        wait_until(lambda: self.starts() == 2, "the start of a standby")
        self.kill(server)
        self.attach(window_base=1 << 44)
        self.assertIn(f"Server {self.servers()[0]} takes the place of server {server}",
                      self.control_log())
        self.assertNotEqual(self.await_standby(), server)
        self.assertEqual(self.starts(), 3)


@unittest.skipIf(os.geteuid() != 0, "only root serves all users")
class OfOneServerForAll(TestCase):
    options = ("--multiuser-server",)

    def test_takes_over(self):
        server, standby = self.pair()
        self.kill(server)
        self.assertEqual(self.servers(), [standby])
        self.attach()


class Watched(TestCase):
    options = ("--stall-timeout", "4")

    def is_replaced(self):
        return re.search(r"Server \d+ takes the place of server \d+: it has stood by", self.control_log())

    @waits
    def test_one_that_is_silent_is_killed(self):
        """The fake servers send no heartbeat at all, and the serving one is replaced by its standby.
        The daemon looks once a second, and may find the younger standby silent first. On a busy
        machine the server may be silent for too long before the standby is ready."""
        for _ in range(20):
            self.attach()
            wait_until(lambda: self.is_replaced() or not self.servers(), "the end of the server")
            self.assertIn("the daemon's stall timeout; killing it", self.control_log())
            if self.is_replaced():
                return
        self.fail(self.control_log())


class Without(harness.TestCase):
    def log_of_one(self, *options, **environment):
        self.environment.update(environment)
        self.start("--device", "soft", *options)
        client = self.client()
        self.assertEqual(client.welcome(), (0, ""))
        server, = self.servers()
        kill_and_wait(self, server)
        self.assertEqual(self.client(window_base=1 << 44).welcome(), (0, ""))
        self.assertNotIn("standby server", self.funnel("status").stdout)
        return self.control_log()

    def test_without_spare(self):
        self.assertNotIn("Starting standby", self.log_of_one())

    def test_switched_off(self):
        self.assertNotIn("Starting standby", self.log_of_one("--spare", FUNNEL_OFF="standby"))

    def test_memory_is_short(self):
        """The first device has 16 GiB, and a standby would take 1200 MiB."""
        log = self.log_of_one("--spare", FUNNEL_FAKE_OWN_MIB="1200")
        self.assertNotIn("Starting standby", log)
        self.assertIn("has no standby, because that would take more than 1/16 of the memory of "
                      "device 0", log)

    def test_switched_on_by_the_environment(self):
        self.environment.update(FUNNEL_SPARE="1", FUNNEL_FAKE_OWN_MIB="1000")
        self.start("--device", "soft")
        self.assertEqual(self.client().welcome(), (0, ""))
        wait_until(lambda: "is ready; it takes about 1000 MiB of each device" in
                   self.funnel("status").stdout, "a standby")


if __name__ == "__main__":
    harness.main()
