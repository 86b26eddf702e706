# SPDX-License-Identifier: Apache-2.0
"""Peers of the daemon that flood it with descriptors, messages and questions, and names that would
command a terminal. Whatever they do, others are served."""
import os
import random
import signal
import socket
import stat
import unittest

import harness
import wire
from harness import wait_until

FLOODS = 200
ESCAPE = b"\x1b]0;owned\x07\x1b[31m\r\n"


class Hostile(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.start()

    def connect(self):
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        peer.settimeout(harness.TIMEOUT)
        peer.connect(os.path.join(self.pipe, "funnel"))
        self.addCleanup(peer.close)
        return peer

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.daemon_pid()}/fd"))

    def assert_serves(self):
        self.assertEqual(self.mps("get_default_client_priority\n"), ["0"])

    def test_descriptors(self):
        before = self.descriptors()
        files = [os.open("/dev/null", os.O_RDONLY) for _ in range(200)]
        for _ in range(FLOODS):
            peer = self.connect()
            try:
                socket.send_fds(peer, [wire.hello(wire.HELLO_COMMAND)], files)
                socket.send_fds(peer, [wire.command_line("get_server_list")], files)
            except OSError:
                pass
            peer.close()
        for file in files:
            os.close(file)
        wait_until(lambda: self.descriptors() <= before, "the end of the descriptors")
        self.assert_serves()

    def test_parts_of_messages(self):
        choice = random.Random(20261123)
        for _ in range(FLOODS):
            peer = self.connect()
            try:
                for whole in (wire.hello(choice.choice((wire.HELLO_COMMAND, wire.HELLO_CLIENT, wire.HELLO_AHEAD))),
                              wire.command_line("get_server_list" + "x" * choice.randrange(9000))):
                    part = bytearray(whole[:choice.randrange(1, len(whole) + 1)])
                    part[choice.randrange(len(part))] = choice.randrange(256)
                    peer.send(part)
            except OSError:
                pass
            peer.close()
        self.assert_serves()

    def test_answers_that_nobody_reads(self):
        peers = [self.connect() for _ in range(4)]
        for peer in peers:
            peer.send(wire.hello(wire.HELLO_COMMAND))
            peer.setblocking(False)
        for _ in range(20000):
            for peer in peers:
                try:
                    peer.send(wire.command_line("get_default_client_priority"))
                except OSError:
                    pass
        self.assert_serves()

    def test_names_that_command_terminals(self):
        hello = bytearray(wire.hello())
        at = bytes(hello).index(b"test\0")
        hello[at:at + len(ESCAPE)] = ESCAPE
        peer = self.connect()
        peer.send(bytes(hello))
        self.assertIsNotNone(peer.recv(8192))
        for arguments in (("ps",), ("status",), ("ps", "--json")):
            shown = self.funnel(*arguments).stdout
            self.assertNotIn("\x1b", shown, arguments)
            self.assertNotIn("\x07", shown, arguments)
        for name in os.listdir(self.log):
            with open(os.path.join(self.log, name), "rb") as log:
                self.assertNotIn(b"\x1b", log.read(), name)

    def test_memory_that_never_comes(self):
        """Who reads a program's command line in /proc reads its memory, for which it can make them
        wait: the daemon takes what the program says."""
        peer = self.connect()
        peer.send(wire.hello(command=b"what\0it\0says"))
        self.assertIsNotNone(peer.recv(8192))
        shown = self.funnel("ps").stdout
        self.assertIn("what it says", shown)
        self.assertNotIn("test_hostile.py", shown)

    def test_rows_without_end(self):
        """A server that reports far more clients than any server takes."""
        self.mps("quit\n")
        wait_until(lambda: not os.path.exists(os.path.join(self.pipe, "nvidia-cuda-mps-control.pid")),
                   "the end of the first daemon")
        self.environment["FUNNEL_FAKE"] = "endless"
        self.start()
        peer = self.connect()
        peer.send(wire.hello())
        self.assertIsNotNone(peer.recv(8192))
        rows = [line for line in self.mps("ps\n") if line.startswith(f"{os.getpid()} ")]
        self.assertEqual(len(rows), 1)
        self.assert_serves()

    def test_commands_that_command_terminals(self):
        for line in ("\x1b[31mred", "get_server_status \x1b]0;owned\x07", "quit -t \x1b[2J"):
            for answer in self.mps(line + "\n"):
                self.assertNotIn("\x1b", answer)


class Liar(harness.TestCase):
    """A server whose user has taken it over, or has got hold of its connection to the daemon."""
    fake = "liar"

    def setUp(self):
        super().setUp()
        self.start()
        self.liar = self.client(group=b"honest")
        self.assertEqual(self.liar.welcome()[0], 0)

    def test_rows(self):
        """Who a client is, the daemon knows, and it knows which clients the server has."""
        client, = self.funnel_json("ps")
        self.assertEqual((client["pid"], client["uid"], client["group"], client["id"]),
                         (os.getpid(), os.getuid(), "honest", 1))
        self.assertIn("python", client["command"])
        self.assertEqual(len(self.mps("ps\n")), 2)

    def test_use(self):
        """One line for each client that has attached, of the user who has been there. There are no
        more than fit into the time and the memory."""
        self.liar.close()
        lines = []
        wait_until(lambda: lines.extend(harness.json_lines(os.path.join(self.log, "usage.jsonl"))) or lines,
                   "the line")
        self.assertEqual(self.client().welcome()[0], 0)
        line, = harness.json_lines(os.path.join(self.log, "usage.jsonl"))
        self.assertEqual((line["pid"], line["uid"], line["group"], line["id"]),
                         (os.getpid(), os.getuid(), "honest", 1))
        device, = line["devices"]
        self.assertLess(device["gpu_seconds"], harness.TIMEOUT)
        self.assertLess(device["sm_seconds"], harness.TIMEOUT * 132)
        self.assertEqual(device["memory_peak"], 1 << 34)

    def test_lines(self):
        """The log says once that the server lies, however often it does."""
        self.liar.close()
        wait_until(lambda: "(id 1) of server" in self.control_log(), "the end of the client")
        wait_until(lambda: self.control_log().count("used more than there was") == 1, "the line")
        self.assertEqual(self.control_log().count("which the daemon has not given to it"), 1)
        self.assertNotIn("424242424", self.control_log())
        self.assertNotIn("of a stranger", self.control_log())

    def test_faults(self):
        """It can blame none but its own clients."""
        server, = self.servers()
        for _ in range(3):
            server, = self.servers()
            os.kill(server, signal.SIGUSR1)
            wait_until(lambda: "is in state FAULT" in self.control_log() or
                       "fatal GPU error" in self.control_log(), "the fault")
            os.kill(server, signal.SIGUSR2)
            wait_until(lambda: not harness.alive(server), "the end of the server")
            self.client(window_base=1).welcome()
        self.assertNotIn("quarantine", self.control_log())


@unittest.skipIf(os.geteuid() != 0, "needs root, to be two users")
class Liars(harness.TestCase):
    """Servers of two users, of which each speaks of clients that only the other may have."""
    fake = "liar"

    def come_and_go(self, uid):
        child = os.fork()
        if child == 0:
            harness.become_user(uid)
            client = harness.Client(self.socket_path)
            os._exit(client.welcome()[0] != 0)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        return child

    def test_none_is_charged_for_the_other(self):
        self.start()
        users = {self.come_and_go(uid): uid for uid in (2001, 2002, 2001)}
        journal = os.path.join(self.log, "usage.jsonl")
        wait_until(lambda: len(harness.json_lines(journal)) == 3, "three lines")
        self.mps("quit\n")
        wait_until(lambda: self.daemon_pid() is None or not harness.alive(self.daemon_pid()), "the end")
        # Two servers tell the daemon of the ends of their clients, in any order.
        self.assertCountEqual([(line["pid"], line["uid"]) for line in harness.json_lines(journal)],
                              users.items())


class Crash(harness.TestCase):
    """A server that dies before the daemon has read its log."""
    fake = "crash"

    def test_last_lines(self):
        self.start()
        self.assertEqual(self.client().welcome()[0], 805)
        self.assertEqual(len(self.server_events("start")), 1)


class Puppet(harness.TestCase):
    """Another process that has got hold of the server's connection to the daemon."""
    fake = "puppet"

    def test_messages_of_another_process(self):
        self.start()
        self.assertEqual(self.client().welcome()[0], 0)
        wait_until(lambda: "in the name of process" in self.control_log(), "the line")
        client, = self.funnel_json("ps")
        self.assertEqual(client["pid"], os.getpid())
        self.assertFalse(os.path.exists(os.path.join(self.log, "usage.jsonl")))
        self.assertEqual(self.control_log().count("in the name of process"), 1)


class Flood(harness.TestCase):
    """A server that fills the disk with its log."""
    fake = "flood"

    def setUp(self):
        super().setUp()
        self.start(environment={"FUNNEL_QUOTAS": "log-file=64K"})

    def test_size_of_logs(self):
        self.assertEqual(self.client().welcome()[0], 0)
        self.settle_logs()
        sizes = {name: os.path.getsize(os.path.join(self.log, name))
                 for name in os.listdir(self.log) if name.startswith("server.log")}
        self.assertLessEqual(max(sizes.values()), 128 << 10, sizes)
        self.assertLessEqual(len(sizes), 2)
        self.assertIn("logged more than the quota log-file in a minute", self.control_log())

    def test_no_file_of_the_daemon_is_open_in_a_server(self):
        self.assertEqual(self.client().welcome()[0], 0)
        server, = self.servers()
        folder = f"/proc/{server}/fd"
        files = [os.path.join(folder, name) for name in os.listdir(folder)]
        ours = [file for file in files if os.readlink(file).startswith(self.root)]
        pipes = [file for file in files if stat.S_ISFIFO(os.stat(file).st_mode)]
        self.assertEqual(set(ours) - set(pipes), set())
        self.assertGreaterEqual(len(pipes), 3)


if __name__ == "__main__":
    harness.main()
