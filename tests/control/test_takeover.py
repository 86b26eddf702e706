# SPDX-License-Identifier: Apache-2.0
"""A daemon that is killed, and the next one, which takes over its servers. Here is what it knows of
them by itself, what it believes of what they say, and files that are not a daemon's."""
import os
import shutil
import signal
import unittest

import harness
from harness import alive, json_lines, wait_until

USER = 2001


class TestCase(harness.TestCase):
    @property
    def folder(self):
        return os.path.join(self.pipe, "funnel.servers")

    def kill_daemon(self):
        daemon = self.daemon_pid()
        os.kill(daemon, signal.SIGKILL)
        wait_until(lambda: not alive(daemon), "the end of the daemon")

    def kill_and_restart(self, *arguments):
        self.kill_daemon()
        self.start(*arguments)

    def attach(self):
        """A client of which the daemon has heard that it has attached."""
        self.client().welcome()
        wait_until(lambda: "attached to server" in self.control_log(), "the word of the server")

    def row(self):
        client, = self.funnel_json("status")["clients"]
        return client

    def starts(self):
        return self.control_log().count("Starting new server")

    def usage(self):
        return json_lines(os.path.join(self.log, "usage.jsonl"))

    def forge(self, change, name="1"):
        path = os.path.join(self.folder, name)
        with open(path, "r+b") as file:
            change(file)
        return path


class Takeover(TestCase):
    def test_server_and_clients_stay(self):
        self.start()
        client = self.client(sm_centipercent=2500, group=b"blue")
        self.assertEqual(client.welcome(), (0, ""))
        server, before = self.servers(), self.row()
        for _ in range(3):
            self.kill_and_restart()
            self.assertEqual(self.servers(), server)
            self.assertEqual(self.row(), before)
        self.assertEqual((before["pid"], before["group"]), (os.getpid(), "blue"))
        self.assertEqual(self.client().welcome(), (0, ""))
        self.assertEqual(self.servers(), server)
        self.assertEqual(self.starts(), 1)
        numbers = [event["pid"] for event in self.server_events("client")]
        self.assertEqual(len(numbers), 2)

    def test_limits_of_the_server_stay(self):
        self.start()
        self.client().welcome()
        server, = self.servers()
        self.mps(f"set_active_thread_percentage {server} 30\n")
        self.kill_and_restart()
        self.assertEqual(self.mps(f"get_active_thread_percentage {server}\n"), ["30.0"])

    def test_a_program_that_ends_without_a_daemon_is_accounted_for_once(self):
        """The fake server tells of its end once, so it must have the daemon that is to hear of it."""
        self.start()
        other, client = self.client(), self.client()
        self.assertEqual((other.welcome(), client.welcome()), ((0, ""), (0, "")))
        self.kill_and_restart()
        self.assertEqual(len(self.funnel_json("status")["clients"]), 2)
        client.close()
        wait_until(lambda: len(self.usage()) == 1, "the line of a program")
        self.kill_and_restart()
        self.assertEqual(len(self.usage()), 1)
        self.assertEqual(len(self.funnel_json("status")["clients"]), 1)

    def test_stop_ends_servers_that_were_taken_over(self):
        self.start()
        self.client().welcome()
        server, = self.servers()
        self.kill_and_restart()
        self.assertEqual(self.funnel("stop", "--force").returncode, 0)
        wait_until(lambda: not alive(server), "the end of the server")
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_server_that_dies_later(self):
        self.start()
        self.attach()
        server, = self.servers()
        self.kill_and_restart()
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: self.servers() and self.servers() != [server], "the next server")
        # It may have come before the end of the last one was known.
        wait_until(lambda: [line["status"] for line in self.usage()] == [806], "the line of use")

    def test_a_server_that_has_died_meanwhile(self):
        self.start()
        self.attach()
        server, = self.servers()
        self.kill_daemon()
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: not alive(server), "the end of the server")
        self.start()
        self.assertIn(f"Server {server} of uid_{os.getuid()} has ended while no daemon ran",
                      self.control_log())
        self.assertEqual(self.servers(), [])
        self.assertEqual([line["status"] for line in self.usage()], [806])
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_named_server(self):
        self.start()
        self.mps("server create night\n")
        client = harness.Client(os.path.join(self.pipe, "night", "funnel"))
        self.addCleanup(client.close)
        self.assertEqual(client.welcome(), (0, ""))
        server = self.servers()
        self.kill_and_restart()
        self.assertEqual(self.servers(), server)
        self.assertEqual(self.row()["server_name"], "night")


class Forgetful(TestCase):
    fake = "forgetful"

    def test_clients_that_never_came_there(self):
        """The daemon was killed after it had noted the client, and before it had sent it."""
        self.start()
        self.assertEqual(self.client().welcome(), (0, ""))
        server = self.servers()
        self.kill_and_restart()
        wait_until(lambda: "did not come there" in self.control_log(), "the server's answer")
        self.assertEqual(self.servers(), server)
        self.assertEqual(self.usage(), [], "a client that never came has used nothing")


class Liar(TestCase):
    fake = "liar"

    def test_lies_when_it_is_taken_over(self):
        self.start()
        self.assertEqual(self.client().welcome(), (0, ""))
        server = self.servers()
        before = len(self.usage())
        self.kill_and_restart()
        self.assertEqual(self.servers(), server)
        row = self.row()
        self.assertEqual((row["pid"], row["uid"]), (os.getpid(), os.getuid()))
        self.assertEqual(len(self.usage()), before, "lines of clients that do not exist")
        self.assertEqual(self.control_log().count("is taken over, with 1 clients"), 1)


class Files(TestCase):
    def setUp(self):
        super().setUp()
        self.start()
        self.held = self.client()
        self.assertEqual(self.held.welcome(), (0, ""))
        self.server, = self.servers()
        self.kill_daemon()

    def check_refused(self, expected):
        self.start()
        self.assertIn(expected, self.control_log())
        self.assertEqual(self.servers(), [])
        self.assertTrue(alive(self.server), "its program goes on")
        self.held.close()
        wait_until(lambda: not alive(self.server), "the end of the server")

    def test_cut_off(self):
        self.forge(lambda file: file.truncate(5000))
        self.check_refused("what stands there is not whole")

    def test_changed(self):
        def change(file):
            for page in (1, 5):
                file.seek(page * 4096 + 100)
                file.write(b"x")
        self.forge(change)
        self.check_refused("what stands there is not whole")

    def test_empty(self):
        self.forge(lambda file: file.truncate(0))
        self.check_refused("what stands there is not whole")

    def test_a_file_of_another_process(self):
        def change(file):
            file.seek(40)
            file.write(b"x")
        self.forge(change)
        self.check_refused("its file does not say which process it is")

    def test_another_release(self):
        def change(file):
            for page in (1, 5):
                file.seek(page * 4096 + 12)
                file.write(b"\xff")
        self.forge(change)
        self.check_refused("it is of another release")

    def test_open_to_others(self):
        os.chmod(os.path.join(self.folder, "1"), 0o644)
        self.check_refused("is no file of the daemon's")

    def test_a_link(self):
        path = os.path.join(self.folder, "1")
        os.rename(path, self.root + "/moved")
        os.symlink(self.root + "/moved", path)
        self.check_refused("is no file of the daemon's")

    def test_the_process_of_another_server(self):
        """The number is one that a process has, but that was started at another time."""
        other = os.path.join(self.folder, "1")
        saved = self.root + "/saved"
        shutil.copy(other, saved)
        os.kill(self.server, signal.SIGKILL)
        wait_until(lambda: not alive(self.server), "the end of the server")
        self.start()
        self.client().welcome()
        self.kill_daemon()
        with open(saved, "rb") as old, open(other, "r+b") as file:
            file.write(old.read(4096))
        self.start()
        self.assertIn("has ended while no daemon ran", self.control_log())
        self.assertEqual(self.servers(), [])

    def test_no_socket(self):
        os.unlink(os.path.join(self.folder, "1.socket"))
        self.check_refused("cannot be taken over: No such file")


@unittest.skipIf(os.geteuid() != 0, "needs root, to be two users")
class Users(TestCase):
    def as_user(self, do):
        os.setegid(USER)
        os.seteuid(USER)
        try:
            return do()
        finally:
            os.seteuid(0)
            os.setegid(0)

    def test_servers_of_users(self):
        self.start()
        self.as_user(lambda: self.client().welcome())
        server = self.servers()
        self.kill_and_restart()
        self.assertEqual(self.servers(), server)
        self.assertEqual(self.row()["uid"], USER)

    def test_users_open_no_files_of_servers(self):
        self.start()
        self.as_user(lambda: self.client().welcome())
        for path in (self.folder, self.folder + "/1", self.folder + "/1.socket", self.folder + "/1.log"):
            def open_it(path=path):
                os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
            with self.assertRaises(PermissionError):
                self.as_user(open_it)

    def test_a_server_counts_as_the_users(self):
        """Of the quota that stands for all servers of a user."""
        self.start(environment={"FUNNEL_QUOTAS": "user-servers=1"})
        self.mps(f"server create a --uid={USER}\n")
        self.as_user(lambda: self.client().welcome())
        self.kill_daemon()
        self.start(environment={"FUNNEL_QUOTAS": "user-servers=1"})
        self.mps(f"server create a --uid={USER}\n")
        client = self.as_user(lambda: harness.Client(os.path.join(self.pipe, "a", "funnel")))
        self.addCleanup(client.close)
        status, text = client.welcome()
        self.assertEqual(status, 809, text + self.control_log())

    def test_a_folder_of_another_user(self):
        os.makedirs(self.folder)
        os.chown(self.folder, USER, USER)
        done = self.run_program("funneld", "-d")
        self.assertEqual(done.returncode, 1)
        self.assertIn("belongs to user", done.stderr)


if __name__ == "__main__":
    harness.main()
