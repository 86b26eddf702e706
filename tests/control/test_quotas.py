# SPDX-License-Identifier: Apache-2.0
"""Quotas: who sets them, who is told, and what the daemon itself counts for each user."""
import contextlib
import os
import re
import signal
import socket
import subprocess
import time
import unittest

import harness
import wire
from harness import wait_until

HELD = ["host-memory", "ranges", "modules", "streams", "events", "arrays",
                 "graph-memory", "waits"]


class Started(harness.TestCase):
    def attach(self, **hello):
        client = self.client(**hello)
        self.assertEqual(client.welcome(), (0, ""))
        return client

    def quotas(self):
        return {row["name"]: row for row in self.funnel_json("limits")["quotas"]}

    def told(self, name):
        """What the servers were told last about a quota."""
        names = list(self.quotas())
        return [event["values"][names.index(name)] for event in self.server_events("quotas")]


class Quotas(Started):
    def test_the_table(self):
        self.start("--device", "soft")
        rows = self.quotas()
        self.assertEqual(list(rows)[:len(HELD)], HELD)
        self.assertEqual({row["owner"] for row in rows.values()}, {"client", "user", "daemon"})
        for name, row in rows.items():
            self.assertEqual(row["value"], row["default"], name)
        self.assertEqual(rows["waits"]["value"], 1024)
        self.assertEqual(self.funnel_json("status")["quotas"], list(rows.values()))

    def test_an_operator_changes_it(self):
        self.start("--device", "soft")
        self.attach()
        wait_until(lambda: len(self.told("waits")) == 1, "the first table")
        done = self.funnel("limit", "--quota", "waits=7,host-memory=2G")
        self.assertIn("The quota waits of a client is now 7", done.stdout)
        self.assertEqual(self.quotas()["waits"]["value"], 7)
        self.assertIn("7", [line for line in self.funnel("limits").stdout.splitlines()
                            if line.startswith("waits ")][0].split())
        wait_until(lambda: self.told("waits") == [1024, 7], "the change in the server")
        self.assertEqual(self.told("host-memory")[-1], 2 << 30)
        self.funnel("limit", "--quota", "slots=3")  # which the server itself counts
        wait_until(lambda: self.told("slots")[-1] == 3, "the slots in the server")
        self.funnel("limit", "--quota", "waits=default")
        self.assertEqual(self.quotas()["waits"]["value"], 1024)

    def test_wrong_quotas_are_refused(self):
        self.start("--device", "soft")
        for arguments, reason in (
                (["--quota", "waits=0"], "The quota waits is 1 to 1048576 (number)"),
                (["--quota", "nothing=1"], "There is no quota \"nothing\""),
                (["--quota", "waits"], "is not NAME=VALUE"),
                (["--quota", "waits=7,events=x"], "The quota events is"),
                (["--quota", "waits=7", "--user", "root"], "stands alone")):
            done = self.funnel("limit", *arguments)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(reason, done.stderr)
        self.assertEqual(self.quotas()["waits"]["value"], 1024)

    def test_environment_and_file(self):
        config = os.path.join(self.root, "quotas.toml")
        with open(config, "w") as file:
            file.write('schema_version = "1.0"\n[quotas]\nwaits = 9\nkept_memory = 0\n')
        self.start("--device", "soft", "--apply", config,
                   environment={"FUNNEL_QUOTAS": "waits=8,ranges=77"})
        rows = self.quotas()
        self.assertEqual([rows[name]["value"] for name in ("waits", "ranges", "kept-memory")],
                         [9, 77, 0])
        with open(config, "w") as file:
            file.write("[quotas]\nwaits = 0\n")
        done = self.run_program("funneld", "-f", "--apply", config,
                                environment={"CUDA_MPS_PIPE_DIRECTORY": self.root + "/other"})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("line 2: The quota waits is 1 to", done.stderr)

    def test_objects_of_a_client_are_listed(self):
        self.start("--device", "soft")
        self.attach()
        client, = self.funnel_json("ps")
        self.assertEqual(client["held"], {name.replace("-", "_"): number for number, name in
                                          enumerate(HELD, 1)})
        self.assertEqual(client["quota_refused"], 6)

    def test_lifted_limits_leave_no_row(self):
        self.start("--device", "soft")
        for words in (("--sm", "50"), ("--memory", "1G"), ("--priority", "1")):
            self.funnel("limit", "--user", "root", *words)
        self.assertIn("user root", self.funnel("limits").stdout)
        for words in (("--sm", "none"), ("--memory", "none"), ("--priority", "0")):
            self.funnel("limit", "--user", "root", *words)
        self.assertNotIn("user root", self.funnel("limits").stdout)
        self.mps("set_default_active_thread_percentage 50\n")  # now the rule lifts something
        row, = (row for row in self.funnel("limits").stdout.splitlines() if "user root" in row)
        self.assertIn("100%", row)

    def test_a_long_log_is_put_aside(self):
        self.start("--device", "soft")
        self.attach()
        log = os.path.join(self.log, "server.log")
        with open(log, "a") as file:
            file.write("{\"event\": \"filler\"}\n" * 4000)
        self.funnel("limit", "--quota", "log-file=64K")
        self.attach()
        self.settle_logs()
        self.assertGreater(os.path.getsize(log + ".old"), 64 << 10)
        self.assertLess(os.path.getsize(log), 64 << 10)


@unittest.skipIf(os.geteuid() != 0, "needs root, to be several users")
class Users(Started):
    def setUp(self):
        super().setUp()
        self.start("--device", "soft", environment={
            "FUNNEL_QUOTAS": "servers=2,attaches=1,log-file=64K"})

    def attach_as(self, uid):
        """The socket of a program of that user, which has said hello."""
        client, = self.attach_at_once(uid, 1)
        return client

    def attach_at_once(self, uid, count):
        """By one process, since the rates are those of a second, in which a busy machine forks few."""
        connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        child = os.fork()
        if child == 0:
            try:
                harness.become_user(uid)
                peers = [self.say_hello() for _ in range(count)]
                socket.send_fds(theirs, [b"x"], [peer.fileno() for peer in peers])
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        theirs.close()
        _, descriptors, _, _ = socket.recv_fds(connection, 16, count)
        connection.close()
        return [self.client_of(descriptor) for descriptor in descriptors]

    def say_hello(self):
        """The daemon closes the connection, beyond twice its quota, before it has read anything."""
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        peer.connect(self.socket_path)
        with contextlib.suppress(ConnectionError):
            peer.send(wire.hello())
        return peer

    def client_of(self, descriptor):
        client = object.__new__(harness.Client)
        client.socket = socket.socket(fileno=descriptor)
        client.socket.settimeout(harness.TIMEOUT)
        self.addCleanup(client.close)
        return client

    def server_users(self):
        return sorted(row["uid"] for row in self.funnel_json("servers") if row["state"] == "active")

    def test_the_number_of_servers(self):
        clients = [self.attach_as(uid) for uid in (2001, 2002)]
        for client in clients:
            self.assertEqual(client.welcome(), (0, ""))
        status, text = self.attach_as(2003).welcome()
        self.assertEqual(status, 809)
        self.assertIn("as many servers as the quota servers allows", text)
        # A server without clients gives way.
        clients[0].close()
        wait_until(lambda: 0 in [row["clients"] for row in self.funnel_json("servers")],
                   "an idle server")
        self.assertEqual(self.attach_as(2003).welcome(), (0, ""))
        wait_until(lambda: self.server_users() == [2002, 2003], "the end of the idle server")

    def restart_with_subuids(self, text, quotas):
        """A daemon that sees another /etc/subuid."""
        path = os.path.join(self.root, "subuid")
        with open(path, "w") as file:
            file.write(text)
        self.mps("quit\n")
        wait_until(lambda: not os.path.exists(self.socket_path), "the end of the first daemon")
        script = f"mount --bind {path} /etc/subuid || exit 77; {self.root}/bin/funneld -d --device soft"
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=harness.TIMEOUT,
                              env={**self.environment, "FUNNEL_QUOTAS": quotas})
        if done.returncode == 77 or "unshare" in done.stdout:
            self.skipTest("cannot make a mount namespace with another /etc/subuid")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_subordinate_users_share_the_quotas_of_their_owner(self):
        """Of the users of a person's containers each would have a server, and a rate, of its own."""
        self.restart_with_subuids("2001:300000:1000\n", "servers=4,user-servers=3,attaches=1")
        clients = [self.attach_as(uid) for uid in (2001, 300000, 300999)]
        for client in clients:
            self.assertEqual(client.welcome(), (0, ""))
        status, text = self.attach_as(300500).welcome()
        self.assertEqual(status, 809)
        self.assertIn("quota user-servers", text)
        clients.append(self.attach_as(301000))
        self.assertEqual(clients[-1].welcome(), (0, ""))
        self.attach_at_once(300010, 20)
        wait_until(lambda: "of user 2001 waits: more than 1 programs a second" in self.control_log(),
                   "a program that waits")

    def starts(self, uid):
        return len(re.findall(rf"Starting new server \d+ for user {uid}\b", self.control_log()))

    def ask_ahead(self, uid):
        child = os.fork()
        if child == 0:
            harness.become_user(uid)
            front_end = harness.Client(self.socket_path, kind=wire.HELLO_AHEAD)
            os._exit(front_end.welcome()[0])
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_servers_that_end_as_fast_as_they_start(self):
        """A user can end its own server, and have another one started before any program runs."""
        begin = time.monotonic()
        for _ in range(20):
            self.ask_ahead(2001)
            for pid in self.servers():
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not self.servers(), "the end of the server")
        seconds = time.monotonic() - begin
        self.assertLessEqual(self.starts(2001), 11 + seconds // 5)
        self.assertGreaterEqual(self.starts(2001), 10)
        self.ask_ahead(2002)
        self.assertEqual(self.starts(2002), 1)
        self.assertEqual(self.attach_as(2001).welcome(), (0, ""))
        if seconds < 25:  # on a machine that is not too slow for that
            self.assertIn("of user 2001 waits: servers of this user have started too often",
                          self.control_log())

    def test_a_user_that_comes_too_often_waits(self):
        """Ten at once are allowed; those beyond come one by one, and others do not wait."""
        self.funnel("limit", "--quota", "attaches=1")
        clients = self.attach_at_once(2001, 12)
        self.assertEqual(self.attach_as(2002).welcome(), (0, ""))
        for client in clients:
            self.assertEqual(client.welcome(), (0, ""))
        self.assertIn("of user 2001 waits: more than 1 programs a second", self.control_log())
        self.assertNotIn("of user 2002 waits: more than", self.control_log())

    def answer(self, client):
        """None: the daemon has closed the connection, as it does beyond twice the quota."""
        try:
            return client.welcome()
        except ConnectionError:
            return None

    def test_a_user_with_too_many_connections_is_refused(self):
        """Ten programs go on at once; the next wait at the daemon, and others are not refused."""
        self.funnel("limit", "--quota", "connections=5")
        clients = [self.attach_as(2001)]
        self.assertEqual(clients[0].welcome(), (0, ""))
        clients = self.attach_at_once(2001, 24)
        self.assertEqual(self.attach_as(2002).welcome(), (0, ""))
        answers = [self.answer(client) for client in clients]
        self.assertIn((0, ""), answers)
        refused = [answer for answer in answers if answer and answer[0]]
        self.assertTrue(refused)
        for status, text in refused:
            self.assertEqual(status, 809)
            self.assertIn("User 2001 has more than 5 connections waiting at the daemon", text)

    def lines_about(self, uid):
        return [line for line in self.control_log().splitlines() if f"user {uid}" in line]

    def test_a_user_that_causes_many_lines(self):
        self.funnel("limit", "--quota", "control-log=1K")
        self.assertEqual(self.attach_as(2002).welcome(), (0, ""))
        for _ in range(10):
            self.attach_as(2001).close()
        wait_until(lambda: "User 2001 causes too many lines; further ones are not logged"
                   in self.control_log(), "the end of its lines")
        known = len(self.lines_about(2001))
        self.attach_as(2001).close()
        before = len(self.lines_about(2002))
        self.attach_as(2002).close()
        wait_until(lambda: len(self.lines_about(2002)) > before, "a line of another user")
        self.assertEqual(len(self.lines_about(2001)), known)
        self.assertLess(sum(map(len, self.lines_about(2001))), 2 << 10)
        self.assertEqual(self.control_log().count("User 2001 causes too many lines"), 1)


if __name__ == "__main__":
    harness.main()
