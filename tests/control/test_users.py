# SPDX-License-Identifier: Apache-2.0
"""Servers of several users: each has one, none reaches that of another, and root's daemon serves all."""
import json
import os
import select
import signal
import subprocess
import unittest

import harness
import wire
from harness import wait_until


@unittest.skipIf(os.geteuid() != 0, "needs root, to be two users")
class Users(harness.TestCase):
    def as_user(self, uid, function):
        """Runs it in a child of that user; its result comes back as text."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            harness.become_user(uid)
            try:
                result = function()
            except Exception as error:  # the parent compares
                result = repr(error)
            os.write(writing, json.dumps(result).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as file:
            result = json.loads(file.read())
        os.waitpid(child, 0)
        return result

    def mps_as(self, uid, commands):
        done = self.run_program("nvidia-cuda-mps-control", input=commands, user=uid, group=uid,
                                extra_groups=[])
        return done.returncode, done.stdout.splitlines()

    def test_a_server_each(self):
        self.environment["SECRET"] = "of root"
        self.start()
        for uid in (2001, 2002):
            self.assertEqual(self.as_user(uid, lambda: self.client().welcome()), [0, ""])
        self.assertEqual(self.client().welcome(), (0, ""))
        self.assertEqual(len(self.servers()), 3)
        for uid in (2001, 2002):
            start, = self.server_events("start", f"uid_{uid}")
            self.assertEqual((start["uid"], start["gid"], start["groups"]), (uid, uid, [uid]))
            self.assertNotIn("SECRET", start["environment"])

    def test_users_command_their_own_servers(self):
        self.start()
        self.assertEqual(self.client().welcome(), (0, ""))
        roots, = self.servers()
        self.as_user(2001, lambda: self.client().welcome())
        own, = set(self.servers()) - {roots}
        self.assertEqual(self.mps_as(2001, "get_server_list\n"), (0, [str(own)]))
        for line in (f"get_server_status {roots}", f"shutdown_server {roots} -f",
                     f"terminate_client {roots} {os.getpid()}", f"get_client_list {roots}"):
            self.assertEqual(self.mps_as(2001, line + "\n"), (0, [f"Server {roots} not found"]))
        for line in ("quit -t 0", "set_default_active_thread_percentage 1",
                     "limit -user 0 -sm 1", f"limit -client {os.getpid()} -memory 1M",
                     f"set_active_thread_percentage {own} 50", "start_server -uid 0"):
            code, answer = self.mps_as(2001, line + "\n")
            self.assertIn("ermission denied", (answer or ["nothing"])[0])
        self.assertFalse(harness.has_number(" ".join(self.mps_as(2001, "ps\n")[1][1:]), os.getpid()))
        self.assertEqual(self.mps("get_default_active_thread_percentage\n"), ["100.0"])
        for told in ("Commands of process \\d+ of user 2001\n", "Cmd:quit -t 0\n.*ermission denied",
                     f"Cmd:terminate_client {roots} {os.getpid()}\n.*Server {roots} not found"):
            self.assertRegex(self.control_log(), told)
        self.mps_as(2001, f"shutdown_server {own} -f\n")
        wait_until(lambda: self.servers() == [roots])

    def test_servers_are_closed_to_other_users(self):
        """A user can neither see nor end the server of another user, nor stand in for it. Nor can
        the user look into the own server, which speaks for its user's programs with the daemon."""
        self.start()
        self.as_user(2001, lambda: self.client().welcome())
        server, = self.servers()
        process = f"/proc/{server}"
        attempts = {
            "descriptors": lambda: os.listdir(process + "/fd"),
            "memory": lambda: open(process + "/mem", "rb").close(),
            "environment": lambda: open(process + "/environ", "rb").read(),
            "log": lambda: open(os.path.join(self.log, "uid_2001", "server.log"), "a").close(),
            "control.log": lambda: open(os.path.join(self.log, "control.log"), "a").close(),
            "signals": lambda: os.kill(server, signal.SIGKILL),
            "signals to the daemon": lambda: os.kill(self.daemon_pid(), signal.SIGKILL),
            "the socket": lambda: os.unlink(self.socket_path),
            "a file in the pipe directory": lambda: open(os.path.join(self.pipe, "x"), "w").close(),
        }

        def succeed(names=tuple(attempts)):
            done = []
            for name in names:
                try:
                    attempts[name]()
                    done.append(name)
                except PermissionError:
                    pass
            return done

        self.assertEqual(self.as_user(2002, succeed), [])
        self.assertEqual(self.servers(), [server])
        own = ("descriptors", "memory", "environment", "log", "control.log")
        self.assertEqual(self.as_user(2001, lambda: succeed(own)), [])

    def test_a_users_daemon_serves_that_user_only(self):
        os.makedirs(self.pipe)
        os.chown(self.pipe, 2001, 2001)
        self.start(user=2001, group=2001, extra_groups=[])
        status, text = self.as_user(2002, lambda: self.client().welcome())
        self.assertEqual(status, 807)
        self.assertIn("serves user 2001 only", text)
        self.assertRegex(self.control_log(),
                         r"Client \d+ of user 2002 refused with status 807: .*user 2001 only")
        self.assertEqual(self.client().welcome()[0], 807)
        self.assertEqual(self.mps_as(2002, "get_server_list\n")[0], 1)
        self.assertNotIn("refused with status 805", self.control_log())
        self.environment["FUNNEL_DAEMON_UID"] = "2001"
        self.assertEqual(self.mps_as(2002, "get_server_list\n")[0], 1)
        self.assertRegex(self.control_log(),
                         r"of user 2002 refused with status 805: .*takes commands from user")
        self.assertEqual(self.as_user(2001, lambda: self.client().welcome()), [0, ""])
        self.assertIn("start a server for user 2002",
                      self.mps_as(2001, "start_server -uid 2002\n")[1][0])

    def test_users_find_roots_daemon(self):
        """Without a variable: their own directory first, then root's."""
        script = f"""mount -t tmpfs none /run || exit 77
            bin={self.root}/bin
            CUDA_MPS_LOG_DIRECTORY={self.log} $bin/funneld -d || exit 1
            setpriv --reuid 2001 --regid 2001 --clear-groups env XDG_RUNTIME_DIR={self.root}/none \\
                $bin/funnel status
            setpriv --reuid 2001 --regid 2001 --clear-groups env HOME=/ \\
                $bin/funnel run --no-start -- env
            echo get_default_active_thread_percentage | setpriv --reuid 2001 --regid 2001 \\
                --clear-groups $bin/nvidia-cuda-mps-control
            $bin/funnel stop --force"""
        folder = os.path.join(self.root, "lib/funnel")
        os.makedirs(folder)
        with open(os.path.join(folder, "libcuda.so.1"), "w"):
            pass
        environment = {k: v for k, v in self.environment.items() if k != "CUDA_MPS_PIPE_DIRECTORY"}
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=harness.TIMEOUT)
        if done.returncode == 77 or "unshare" in done.stdout:
            self.skipTest("cannot make a mount namespace")
        self.assertIn("pipe directory: /run/funnel", done.stdout)
        self.assertIn("CUDA_MPS_PIPE_DIRECTORY=/run/funnel", done.stdout)
        self.assertIn("100.0", done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_one_user_cannot_use_up_the_connections(self):
        self.environment["FUNNEL_FAKE"] = "hang"
        self.start()

        def connect_often():
            clients = [self.client() for _ in range(600)]
            answered = []
            while len(answered) < 80:
                ready, _, _ = select.select([c.socket for c in clients], [], [], harness.TIMEOUT)
                answered += [wire.welcome(s.recv(8192))[0] for s in ready]
                clients = [c for c in clients if c.socket not in ready]
            return sorted(set(answered))

        self.assertEqual(self.as_user(2001, connect_often), [809])
        self.assertEqual(self.mps("get_default_active_thread_percentage\n"), ["100.0"])

    def test_a_user_cannot_fill_the_log(self):
        self.start()
        for _ in range(4):
            self.mps_as(2001, ("x" * 200 + "\n") * 1000)
        self.assertIn("User 2001 causes too many lines", self.control_log())
        self.assertLess(len(self.control_log()), 400 << 10)
        self.mps("get_default_client_priority\n")
        self.assertIn("Cmd:get_default_client_priority", self.control_log())
        self.mps_as(2002, "get_server_list\n")
        self.assertIn("Cmd:get_server_list", self.control_log())

    def test_one_server_for_all_users(self):
        self.start("--multiuser-server")
        self.assertEqual(self.as_user(2001, lambda: self.client().welcome()), [0, ""])
        self.assertEqual(self.client().welcome(), (0, ""))
        self.assertEqual(len(self.servers()), 1)
        self.assertEqual([e["uid"] for e in self.server_events("client")], [2001, 0])
        self.assertEqual(self.mps_as(2001, "get_server_list\n"), (0, []))

    def test_the_server_of_all_users_has_its_own_user(self):
        self.start("--multiuser-server", "--server-user", "2009")
        for uid in (2001, 2009):
            self.assertEqual(self.as_user(uid, lambda: self.client().welcome()), [0, ""])
        self.assertEqual(self.client().welcome(), (0, ""))
        started, = self.server_events("start", "uid_2009")
        self.assertEqual((started["uid"], started["groups"]), (2009, [2009]))
        self.assertEqual([e["uid"] for e in self.server_events("client", "uid_2009")],
                         [2001, 2009, 0])
        # It is root's all the same.
        self.assertEqual(len(self.servers()), 1)
        self.assertEqual(self.mps_as(2009, "get_server_list\n"), (0, []))

    def test_a_user_for_no_server(self):
        for words in (("--server-user", "2009"), ("--multiuser-server", "--server-user", "no_one")):
            self.assertEqual(self.run_program("funneld", "-d", *words).returncode, 1)


if __name__ == "__main__":
    harness.main()
