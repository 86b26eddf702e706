# SPDX-License-Identifier: Apache-2.0
"""funnel reload: the daemon becomes the program that is installed, and no program and no front end
notices. Where that program or the configuration file does not do, the old one goes on."""
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import unittest

import harness
import wire
from harness import alive, wait_until

FILE = """schema_version = "1.0"
[servers.day]
active_thread_percentage = 40
"""


class TestCase(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.config = os.path.join(self.root, "funnel.toml")

    def write_config(self, text=FILE):
        with open(self.config, "w") as file:
            file.write(text)

    def reload(self):
        done = self.funnel("reload")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + self.control_log())
        self.assertIn("has been reloaded, and is Funnel", done.stdout)

    def check_refused(self, expected):
        pid = self.daemon_pid()
        done = self.funnel("reload")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(expected, done.stdout + done.stderr)
        self.assertIn("The daemon goes on as it was", done.stdout + done.stderr)
        self.assertEqual(self.daemon_pid(), pid)
        self.assertEqual(self.client().welcome(), (0, ""))

    def program(self):
        return os.path.join(self.root, "bin", "funneld")

    def replace_program(self, write):
        """As a package manager does: the new file takes the name of the old one."""
        path = self.program() + ".new"
        shutil.copy(self.program(), path)
        write(path)
        os.rename(path, self.program())

    @staticmethod
    def patch(path, old, new):
        with open(path, "rb") as file:
            data = file.read()
        assert old in data and len(old) == len(new)
        with open(path, "wb") as file:
            file.write(data.replace(old, new))

    def row(self):
        client, = self.funnel_json("status")["clients"]
        return client

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.daemon_pid()}/fd"))


class Reload(TestCase):
    def test_nothing_changes(self):
        self.start()
        client = self.client(sm_centipercent=2500, group=b"blue")
        self.assertEqual(client.welcome(), (0, ""))
        before = self.daemon_pid(), self.servers(), self.row()
        self.reload()
        descriptors = self.descriptors()
        for _ in range(5):
            self.reload()
            self.assertEqual((self.daemon_pid(), self.servers(), self.row()), before)
        self.assertEqual(self.client().welcome(), (0, ""))
        self.assertEqual(self.control_log().count("Starting new server"), 1)
        wait_until(lambda: self.descriptors() <= descriptors, "descriptors that are closed")

    def test_use_of_programs_is_kept(self):
        self.start()
        clients = [self.client() for _ in range(3)]
        self.assertEqual({client.welcome() for client in clients}, {(0, "")})
        usage = os.path.join(self.log, "usage.jsonl")
        for count, client in enumerate(clients, 1):
            self.reload()
            self.assertEqual(len(self.funnel_json("status")["clients"]), 4 - count)
            client.close()
            wait_until(lambda count=count: len(harness.json_lines(usage)) == count, "a line")

    def test_file_and_settings(self):
        self.write_config()
        self.start("--apply", self.config)
        self.mps("limit --user 7 --sm 33\nserver create night\n")
        self.write_config(FILE.replace("40", "45").replace("day", "noon"))
        self.reload()
        names = " ".join(self.mps("server list\n"))
        self.assertIn("noon", names)
        self.assertIn("night", names)
        self.assertNotIn("day", names)
        self.assertFalse(os.path.exists(os.path.join(self.pipe, "day")))
        self.assertIn("33%", self.funnel("limits").stdout)
        self.assertIn("45%", self.funnel("limits").stdout)
        for name in ("noon", "night"):
            client = harness.Client(os.path.join(self.pipe, name, "funnel"))
            self.addCleanup(client.close)
            self.assertEqual(client.welcome(), (0, ""))

    def test_a_relative_file(self):
        self.write_config()
        self.start("--apply", "funnel.toml", cwd=self.root)
        for percent in ("41", "42"):
            self.write_config(FILE.replace("40", percent))
            self.reload()
            self.assertIn(percent + "%", self.funnel("limits").stdout)

    def test_by_its_other_name_and_in_the_foreground(self):
        self.environment["NOTIFY_SOCKET"] = os.path.join(self.root, "notify")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(listener.close)
        listener.bind(self.environment["NOTIFY_SOCKET"])
        listener.settimeout(harness.TIMEOUT)
        process = subprocess.Popen([self.program(), "-f"], env=self.environment,
                                   stdout=subprocess.DEVNULL)
        self.processes.append(process)
        for _ in range(2):
            self.assertEqual(listener.recv(100), b"READY=1")
            self.assertEqual(self.daemon_pid(), process.pid)
            done = self.mps("reload\n")
            self.assertIn("has been reloaded", done[0])
        self.mps("quit\n")
        self.assertEqual(process.wait(harness.TIMEOUT), 0)

    def test_metrics_and_the_token(self):
        path = os.path.join(self.root, "metrics")
        self.start("--metrics", path)

        def token():
            with open(os.path.join(self.pipe, "http-token")) as file:
                return file.read()

        def scrape():
            with socket.socket(socket.AF_UNIX) as one:
                one.settimeout(harness.TIMEOUT)
                one.connect(path)
                one.send(b"GET /metrics HTTP/1.0\r\nAuthorization: Bearer " + token().encode() +
                         b"\r\n\r\n")
                return one.recv(100).split(b"\r\n")[0]

        before = token(), os.stat(path).st_ino
        self.assertEqual(scrape(), b"HTTP/1.1 200 OK")
        self.reload()
        self.assertEqual((token(), os.stat(path).st_ino), before)
        self.assertEqual(scrape(), b"HTTP/1.1 200 OK")

    def test_programs_that_attach_meanwhile(self):
        self.start()
        self.assertEqual(self.client().welcome(), (0, ""))
        ends, answers = threading.Event(), []

        def attach():
            while not ends.is_set():
                client = harness.Client(self.socket_path)
                answers.append(client.welcome())
                client.close()

        threads = [threading.Thread(target=attach) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(10):
                self.reload()
        finally:
            ends.set()
            for thread in threads:
                thread.join()
        self.assertGreater(len(answers), 10)
        self.assertEqual(set(answers), {(0, "")})
        self.assertEqual(self.control_log().count("Starting new server"), 1)

    def test_programs_on_their_way_to_a_server(self):
        """The daemon has sent them, and their server has not read it."""
        self.start()
        self.assertEqual(self.client().welcome(), (0, ""))
        server, = self.servers()
        os.kill(server, signal.SIGSTOP)
        try:
            clients = [self.client() for _ in range(3)]
            wait_until(lambda: self.control_log().count("is handed over") == 4, "programs on their way")
            self.reload()
        finally:
            os.kill(server, signal.SIGCONT)
        self.assertEqual({client.welcome() for client in clients}, {(0, "")})

    def test_programs_in_their_handshake(self):
        """One that has connected, and said nothing yet."""
        self.start()
        silent = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(silent.close)
        silent.settimeout(harness.TIMEOUT)
        silent.connect(self.socket_path)
        self.mps("get_server_list\n")  # so it has been accepted
        self.reload()
        silent.send(wire.hello())
        self.assertEqual(wire.welcome(silent.recv(8192)), (0, ""))

    def test_front_ends_stay_connected(self):
        self.start()
        front_end = self.front_end()
        self.reload()
        front_end.socket.send(wire.command_line("get_default_active_thread_percentage"))
        self.assertIn(b"100.0", front_end.socket.recv(8192))

    def front_end(self):
        front_end = harness.Client(self.socket_path, kind=wire.HELLO_COMMAND)
        self.addCleanup(front_end.close)
        self.assertEqual(front_end.welcome(), (0, ""))
        return front_end

    def answer(self, front_end):
        """The text of the answer; None when the connection has ended before."""
        text = b""
        while data := front_end.socket.recv(8192):
            if struct.unpack_from("<II", data)[1] == wire.COMMAND_DONE:
                return text
            text += data[8:]
        return None

    def test_front_ends_with_many_commands(self):
        self.start()
        ends, answers = threading.Event(), []

        def ask():
            front_end = self.front_end()
            while not ends.is_set():
                front_end.socket.send(wire.command_line("get_default_active_thread_percentage"))
                answers.append(self.answer(front_end))

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(5):
                self.reload()
        finally:
            ends.set()
            for thread in threads:
                thread.join()
        self.assertGreater(len(answers), 10)
        self.assertEqual(set(answers), {b"100.0"})

    def test_a_front_end_that_does_not_read(self):
        """Its answers wait in the daemon, and end with that: it must not wait for the rest."""
        self.start()
        front_end, commands = self.front_end(), 1000
        for _ in range(commands):
            front_end.socket.send(wire.command_line("get_default_active_thread_percentage"))
        wait_until(lambda: self.control_log().count("Cmd:get_default") == commands, "commands that are read")
        self.reload()
        count = 0
        while self.answer(front_end) is not None:
            count += 1
        self.assertLess(count, commands)

    def test_signals_afterwards(self):
        self.start()
        self.reload()
        os.rename(os.path.join(self.log, "control.log"), os.path.join(self.log, "old"))
        os.kill(self.daemon_pid(), signal.SIGHUP)
        wait_until(lambda: os.path.exists(os.path.join(self.log, "control.log")), "a new log")
        daemon = self.daemon_pid()
        os.kill(daemon, signal.SIGTERM)
        wait_until(lambda: not alive(daemon), "the end of the daemon")
        self.assertFalse(os.path.exists(self.socket_path))

    def test_a_server_that_dies_afterwards(self):
        """It is the child of the program before."""
        self.start()
        self.assertEqual(self.client().welcome(), (0, ""))
        server, = self.servers()
        self.reload()
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: f"Server {server} was killed by signal 9" in self.control_log(), "the line of its end")
        wait_until(lambda: not os.path.exists(f"/proc/{server}"), "the end of the process")
        self.assertNotIn(server, self.servers())


class Slow(TestCase):
    fake = "slow"

    def test_programs_that_wait_for_a_server(self):
        self.start()
        clients = [self.client() for _ in range(3)]
        wait_until(lambda: self.control_log().count("push client to pending list") >= 3, "programs that wait")
        for _ in range(2):
            self.reload()
        self.assertEqual({client.welcome() for client in clients}, {(0, "")})


class Refused(TestCase):
    def test_a_wrong_file(self):
        self.write_config()
        self.start("--apply", self.config)
        for text in ("[servers.day]\nnonsense = 1\n", "x" * 10, "[servers.day\n"):
            self.write_config(text)
            self.check_refused("funnel.toml, line")
        os.unlink(self.config)
        self.check_refused("Cannot read")
        self.assertIn("40%", self.funnel("limits").stdout)
        self.write_config()
        self.reload()

    def test_a_program_that_does_not_start(self):
        self.start()

        def fail(path):
            with open(path, "w") as file:
                file.write("#!/bin/sh\necho 'libevent is not there' >&2\nexit 3\n")

        def crash(path):
            with open(path, "w") as file:
                file.write("#!/bin/sh\nkill -SEGV $$\n")

        def break_it(path):
            with open(path, "w") as file:
                file.write("no program")

        keep = self.program() + ".good"
        shutil.copy(self.program(), keep)
        for write, expected in ((fail, "libevent is not there"), (crash, "was killed while"),
                                (break_it, "cannot be started"),
                                (lambda path: os.chmod(path, 0o600), "cannot be started")):
            shutil.copy(keep, self.program() + ".new")
            os.rename(self.program() + ".new", self.program())
            self.replace_program(write)
            self.check_refused(expected)
        os.rename(keep, self.program())
        self.reload()

    def test_a_release_without_its_server(self):
        self.start()
        self.assertEqual(self.client().welcome(), (0, ""))
        os.unlink(os.path.join(self.root, "bin", "funnel-server"))
        self.check_refused("there is no program")

    def test_the_format(self):
        done = self.run_program("funneld", "--check", environment={"FUNNEL_RELOAD_FORMAT": "77"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot go on where the running daemon stops", done.stderr)
        self.assertEqual(self.run_program("funneld", "--check").returncode, 0)

    def test_while_the_daemon_quits(self):
        self.start()
        client = self.client()
        self.assertEqual(client.welcome(), (0, ""))
        quitter = subprocess.Popen([os.path.join(self.root, "bin", "funnel"), "stop", "--wait"],
                                   env=self.environment, stdout=subprocess.DEVNULL)
        self.processes.append(quitter)
        wait_until(lambda: "Cmd:quit" in self.control_log(), "the order to quit")
        done = self.funnel("reload")
        self.assertEqual(done.returncode, 1)
        self.assertIn("The daemon is quitting", done.stdout + done.stderr)
        client.close()
        self.assertEqual(quitter.wait(harness.TIMEOUT), 0)

    @unittest.skipIf(os.geteuid() != 0, "needs root, to be two users")
    def test_another_user(self):
        self.start()
        done = self.run_program("funnel", "reload", user=2001, group=2001)
        self.assertEqual(done.returncode, 1)
        self.assertIn("Permission denied", done.stdout + done.stderr)


class Release(TestCase):
    """The same program with another number, as the next release."""

    def test_an_upgrade(self):
        self.start()
        self.assertEqual(self.client().welcome(), (0, ""))
        server, = self.servers()
        version = self.run_program("funneld", "--version").stdout.strip()
        newer = re.sub(r"\d$", lambda digit: str((int(digit[0]) + 5) % 10), version)
        self.replace_program(lambda path: self.patch(path, version.encode() + b"\0", newer.encode() + b"\0"))
        done = self.funnel("reload")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"is Funnel {newer}", done.stdout)
        self.assertEqual(self.funnel_json("status")["version"], newer)
        self.assertTrue(alive(server), "its program goes on")
        self.assertEqual(self.client().welcome(), (0, ""))


if __name__ == "__main__":
    harness.main()
