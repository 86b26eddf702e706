# SPDX-License-Identifier: Apache-2.0
"""Commands and those who send them: right and wrong arguments, many, rude and dying front ends."""
import os
import pty
import shutil
import signal
import socket
import struct
import subprocess
import unittest

import harness
import wire
from harness import wait_until


class Commands(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.start()

    def test_percentages(self):
        self.assertEqual(self.mps("get_default_active_thread_percentage\n"), ["100.0"])
        self.assertEqual(self.mps("set_default_active_thread_percentage 10\n"), ["10.0"])
        self.assertEqual(self.mps("set_default_active_thread_percentage 33.5\n"), ["33.5"])
        self.assertEqual(self.mps("set_default_active_thread_percentage 200\n"), ["100.0"])

    def test_memory_limits(self):
        self.assertEqual(self.mps("get_default_device_pinned_mem_limit 0\n"), [])
        self.assertEqual(self.mps("set_default_device_pinned_mem_limit 0 20350M\n"
                                  "get_default_device_pinned_mem_limit 0\n"), ["20350M"])
        self.assertEqual(self.mps("get_default_device_pinned_mem_limit GPU-0001\n"), [])

    def test_priority(self):
        self.assertEqual(self.mps("get_default_client_priority\n"), ["0"])
        self.assertEqual(self.mps("set_default_client_priority 7\n"),
                         ["Invalid priority value - must be 0 or 1!"])
        self.assertEqual(self.mps("set_default_client_priority 1\nget_default_client_priority\n"),
                         ["1"])

    def test_unknown(self):
        self.assertEqual(self.mps("nonsense\n"), ['Unknown command "nonsense"'])
        for word in ("lspart", "sm_partition"):
            self.assertEqual(self.mps(word + "\n"), [f'Unknown command "{word}"',
                                                     "It needs a daemon that was started with -S, "
                                                     "for static partitioning"])
        self.assertEqual(self.mps("\n  \nget_server_list"), [])
        self.assertEqual(self.mps("get_server_status 1\n"), ["Server 1 not found"])

    def test_wrong_arguments_change_nothing(self):
        commands = {
            "get_server_status": ["", "x", "-1", "99999999999999999999", "1 2"],
            "start_server": ["", "-uid", "-uid x", "-uid -1", "-uid 4294967295", "1000"],
            "shutdown_server": ["", "0", "-f", "1 -x", "1e3"],
            "get_client_list": ["", "all"],
            "ps": ["-p", "-p x", "1"],
            "set_default_active_thread_percentage":
                ["", "0", "-1", "x", "nan", "inf", "10 20", "1e999", "10%"],
            "set_active_thread_percentage": ["", "1", "1 x", "0 10"],
            "set_default_device_pinned_mem_limit":
                ["", "0", "0 1", "0 1K", "0 -1G", "0 0G", "0 99999999999999999999G",
                 "0 17179869184G", "0 1G 1", "x" * 100 + " 1G"],
            "set_device_pinned_mem_limit": ["", "1", "1 0", "1 0 x"],
            "set_default_client_priority": ["-1", "2", "x", "0 1"],
            "terminate_client": ["", "1", "1 x", "x 1", "1 2 3"],
            "quit": ["now", "-t", "-t x", "-t -1", "-t 99999999999"],
            "device_query": ["x", "1 2"],
            "get_default_client_priority": ["1"],
            "get_server_list": ["1"],
        }
        for name, wrongs in commands.items():
            for wrong in wrongs:
                with self.subTest(f"{name} {wrong}"):
                    answer = self.mps(f"{name} {wrong}\n")
                    self.assertEqual(len(answer), 1, answer)
                    self.assertRegex(answer[0], r"[A-Za-z]{3}")
        self.assertEqual(self.mps("get_default_active_thread_percentage\n"
                                  "get_default_device_pinned_mem_limit 0\n"
                                  "get_default_client_priority\nget_server_list\n"), ["100.0", "0"])

    def test_usage_names_the_grammar(self):
        self.assertEqual(self.mps("terminate_client 1\n"),
                         ["Missing argument, usage: terminate_client SERVER CLIENT"])

    def test_too_many_devices(self):
        lines = "".join(f"set_default_device_pinned_mem_limit {i} 1G\n" for i in range(65))
        self.assertEqual(len(self.mps(lines)), 1)

    def test_log_of_a_session(self):
        self.mps("set_default_active_thread_percentage 10\n")
        wait_until(lambda: "UI closed" in self.control_log())
        text = "\n".join(line.split("] ", 1)[1] for line in self.control_log().splitlines())
        self.assertIn("NEW UI\nCmd:set_default_active_thread_percentage 10\n10.0\nUI closed", text)

    def test_a_thousand(self):
        answers = self.mps("get_default_active_thread_percentage\n" * 1000)
        self.assertEqual(answers, ["100.0"] * 1000)

    def test_two_at_once(self):
        program = os.path.join(self.root, "bin/nvidia-cuda-mps-control")
        both = [subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 text=True, env=self.environment) for _ in range(2)]
        self.processes += both
        for value in (10, 20, 30):
            for process in both:
                process.stdin.write(f"set_default_active_thread_percentage {value}\n")
                process.stdin.flush()
                self.assertEqual(process.stdout.readline(), f"{value}.0\n")
        for process in both:
            process.communicate()

    def test_at_a_terminal(self):
        program = os.path.join(self.root, "bin/nvidia-cuda-mps-control")
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(program, [program], self.environment)
        os.write(terminal, b"get_default_active_thread_percentage\nquit\n")
        output = b""
        try:
            while data := os.read(terminal, 4096):
                output += data
        except OSError:  # the other end is closed
            pass
        os.close(terminal)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertIn(b"100.0", output)
        self.assertIsNone(self.daemon_pid())

    def test_exit_leaves_the_prompt_and_not_the_daemon(self):
        program = os.path.join(self.root, "bin/nvidia-cuda-mps-control")
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(program, [program], self.environment)
        os.write(terminal, b"exit\n")
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        os.close(terminal)
        self.assertEqual(self.mps("get_default_active_thread_percentage\n"), ["100.0"])

    def test_completion(self):
        """Two words of a command of version 3 and an option of it, each by its beginning."""
        program = os.path.join(self.root, "bin/nvidia-cuda-mps-control")
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(program, [program], {**self.environment, "TERM": "dumb"})
        output = b""
        while not output.endswith(b"mps> "):
            output += os.read(terminal, 4096)
        os.write(terminal, b"serv\tcr\tnight --allowed-d\t0\nqu\t\n")
        try:
            while data := os.read(terminal, 4096):
                output += data
        except OSError:  # the other end is closed
            pass
        os.close(terminal)
        os.waitpid(pid, 0)
        self.assertIn(b"Server 'night' created", output)

    def test_kubernetes_device_plugin(self):
        done = self.mps("set_default_device_pinned_mem_limit 0 20350M\n"
                        "set_default_device_pinned_mem_limit 1 20350M\n"
                        "set_default_active_thread_percentage 25\n")
        self.assertEqual(done, ["25.0"])
        self.assertEqual(self.mps("get_default_active_thread_percentage\n"), ["25.0"])


class Rudeness(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.start()

    def connection(self):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.settimeout(harness.TIMEOUT)
        connection.connect(self.socket_path)
        self.addCleanup(connection.close)
        return connection

    def console(self):
        connection = self.connection()
        connection.send(wire.hello(kind=wire.HELLO_COMMAND))
        self.assertEqual(wire.welcome(connection.recv(8192)), (0, ""))
        return connection

    def serves(self):
        self.assertEqual(self.mps("get_default_active_thread_percentage\n"), ["100.0"])

    def test_bad_hellos(self):
        good = wire.hello()
        for bad in (b"x", b"x" * 8000, good[:-1], good + b"x", wire.hello(magic=1),
                    wire.hello(version=1), wire.hello(kind=0), wire.hello(kind=4)):
            connection = self.connection()
            connection.send(bad)
            status, text = wire.welcome(connection.recv(8192))
            self.assertEqual(status, 805)
            self.assertIn("same release", text)
        self.serves()

    def test_a_program_that_is_about_to_start(self):
        for _ in range(2):
            connection = self.connection()
            connection.send(wire.hello(kind=wire.HELLO_AHEAD))
            self.assertEqual(wire.welcome(connection.recv(8192)), (0, ""))
            connection.send(wire.command_line("get_default_client_priority"))
            self.assertIn(b"0", connection.recv(8192))
            harness.wait_until(lambda: len(self.mps("get_server_list\n")) == 1, "its server")

    def test_a_message_beyond_all_bounds(self):
        connection = self.connection()
        connection.send(b"x" * 100000)
        self.assertEqual(connection.recv(8192), b"")
        self.serves()

    def test_unexpected_descriptors(self):
        connection = self.connection()
        socket.send_fds(connection, [wire.hello(kind=wire.HELLO_COMMAND)], [0, 1, 2])
        self.assertEqual(connection.recv(8192), b"")
        self.serves()

    def test_a_client_that_talks_too_early(self):
        self.environment["FUNNEL_FAKE"] = "hang"
        self.mps("quit\n")
        self.start()
        connection = self.connection()
        connection.send(wire.hello())
        connection.send(b"more")
        self.assertEqual(connection.recv(8192), b"")
        self.serves()

    def test_bad_commands(self):
        for bad in (b"x", b"\0" * 8, struct.pack("<II", wire.COMMAND_MAGIC, 99)):
            console = self.console()
            console.send(bad)
            self.assertEqual(console.recv(8192), b"")
        console = self.console()
        console.send(wire.command_line("x" * 4096))
        self.assertIn(b"Unknown command", console.recv(8192))
        self.serves()

    def test_binary_text(self):
        console = self.console()
        console.send(struct.pack("<II", wire.COMMAND_MAGIC, 1) + b"\x1b[2J" + bytes(range(1, 256)))
        self.assertTrue(console.recv(8192))
        self.serves()
        with open(os.path.join(self.log, "control.log"), "rb") as file:
            self.assertNotRegex(file.read(), b"[\0-\x09\x0b-\x1f\x7f]")

    def test_dying_midway(self):
        client = self.client()
        self.assertEqual(client.welcome(), (0, ""))
        self.mps("server create a\n")
        for line in ("ps", "memacct list", "client list", "client terminate 1",
                     "limit -user 1 -sm 50",
                     "sm-partition create x --server=a --device=0 --chunks=1", "sm-partition list",
                     "namespace create b --server=a", "namespace delete b --server=a --force",
                     "server delete a --force"):
            for _ in range(5):
                console = self.console()
                console.send(wire.command_line(line))
                console.send(struct.pack("<II", wire.COMMAND_MAGIC, 2))
                console.close()
        self.serves()
        self.assertEqual(self.mps("server list --format=csv,noheader\n")[0].split(",")[0],
                         f"uid_{os.getuid()}")

    def test_a_thousand_front_ends(self):
        """One after the other as fast as it goes; all are answered, and nothing is left of them."""
        descriptors = f"/proc/{self.daemon_pid()}/fd"
        before = len(os.listdir(descriptors))
        for i in range(1000):
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            connection.settimeout(harness.TIMEOUT)
            connection.connect(self.socket_path)
            connection.send(wire.hello(kind=wire.HELLO_COMMAND))
            self.assertEqual(wire.welcome(connection.recv(8192)), (0, ""))
            connection.send(
                wire.command_line(f"set_default_active_thread_percentage {i % 100 + 1}"))
            self.assertEqual(connection.recv(8192)[8:], f"{i % 100 + 1}.0".encode())
            connection.close()
        wait_until(lambda: len(os.listdir(descriptors)) <= before)

    def test_many_programs_at_once(self):
        """Hundreds of front ends that all wait for an answer get their own."""
        consoles = [self.console() for _ in range(200)]
        for i, console in enumerate(consoles):
            console.send(wire.command_line(f"get_server_status {i + 1}"))
        for i, console in enumerate(consoles):
            self.assertEqual(console.recv(8192)[8:], f"Server {i + 1} not found".encode())

    def test_dying_while_it_waits_for_a_server(self):
        self.environment["FUNNEL_FAKE"] = "silent"
        self.mps("quit\n")
        self.start()
        client = self.client()
        self.assertEqual(client.welcome(), (0, ""))
        for line in ("ps", "quit"):
            console = self.console()
            console.send(wire.command_line(line))
            console.close()
        wait_until(lambda: "Cmd:quit" in self.control_log())
        client.close()
        wait_until(lambda: self.daemon_pid() is None)

    def test_one_that_never_reads(self):
        console = self.console()
        console.setblocking(False)
        try:
            for _ in range(100000):
                console.send(wire.command_line("nonsense"))
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):
            pass
        self.serves()

    def test_no_descriptor_stays(self):
        def descriptors():
            return len(os.listdir(f"/proc/{self.daemon_pid()}/fd"))

        self.serves()
        before = descriptors()
        for _ in range(50):
            self.console().close()
            self.connection().close()
        wait_until(lambda: descriptors() <= before, "the end of the connections")


class Run(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = os.path.join(self.root, "lib/funnel")
        self.library = os.path.join(self.folder, "libcuda.so.1")
        self.soft = os.path.join(self.folder, "softgpu/libcuda.so.1")
        os.makedirs(os.path.dirname(self.soft))
        for path in (self.library, self.soft):
            subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", path], check=True)

    def environment_of(self, *arguments, **options):
        done = self.funnel("run", *arguments, "--", "env", **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)

    def test_starts_a_daemon_and_says_so(self):
        done = self.funnel("run", "--device", "soft", "--", "echo", "hello")
        self.assertEqual((done.returncode, done.stdout), (0, "hello\n"))
        self.assertIn("started one", done.stderr)
        self.assertIn("software GPU", done.stderr)
        again = self.funnel("run", "--", "echo", "hello")
        self.assertEqual((again.returncode, again.stdout, again.stderr), (0, "hello\n", ""))

    def test_no_start(self):
        done = self.funnel("run", "--no-start", "--", "echo")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("No daemon", done.stderr)
        self.assertIsNone(self.daemon_pid())

    def test_environment(self):
        env = self.environment_of(environment={"LD_LIBRARY_PATH": "/a:/b"})
        self.assertEqual(env["LD_PRELOAD"], self.library)
        self.assertEqual(env["LD_LIBRARY_PATH"], self.folder + ":/a:/b")
        self.assertEqual(env["CUDA_MPS_PIPE_DIRECTORY"], self.pipe)
        self.assertEqual(env["FUNNEL_REQUIRE"], "1")
        self.assertNotIn("FUNNEL_GROUP", env)
        self.assertEqual(self.environment_of("--group", "batch")["FUNNEL_GROUP"], "batch")
        self.assertEqual(self.funnel("run", "--group", "a-b", "--", "true").returncode, 2)
        self.assertEqual(env["FUNNEL_LOG"], os.path.join(self.log, "client.log"))

    def test_a_preload_stays_behind_ours(self):
        other = os.path.join(self.root, "other.so")
        shutil.copy(self.soft, other)
        env = self.environment_of(environment={"LD_PRELOAD": other})
        self.assertEqual(env["LD_PRELOAD"], self.library + ":" + other)
        # Inside another `funnel run` there is only one client library.
        env = self.environment_of(environment={"LD_PRELOAD": self.library + " " + other,
                                               "LD_LIBRARY_PATH": self.folder})
        self.assertEqual(env["LD_PRELOAD"], self.library + ":" + other)
        self.assertEqual(env["LD_LIBRARY_PATH"], self.folder)

    def test_direct(self):
        env = self.environment_of("--direct", "--device", "soft")
        self.assertEqual(env["LD_PRELOAD"], self.soft)
        env = self.environment_of("--direct", "--device", "cuda",
                                  environment={"LD_PRELOAD": self.library, "FUNNEL_REQUIRE": "1"})
        self.assertNotIn("LD_PRELOAD", env)
        self.assertNotIn("FUNNEL_REQUIRE", env)
        self.assertIsNone(self.daemon_pid())

    def test_direct_auto_says_which(self):
        done = self.funnel("run", "--direct", "--", "true")
        self.assertRegex(done.stderr, "software GPU|NVIDIA's driver")
        self.assertEqual(self.funnel("run", "--direct", "-q", "--", "true").stderr, "")

    def test_exit_status_and_signal(self):
        self.assertEqual(self.funnel("run", "--", "sh", "-c", "exit 42").returncode, 42)
        self.assertEqual(self.funnel("run", "--", "sh", "-c", "kill -TERM $$").returncode,
                         -signal.SIGTERM)
        missing = self.funnel("run", "--", "no-such-program")
        self.assertEqual(missing.returncode, 127)
        self.assertIn("no-such-program", missing.stderr)
        self.assertEqual(self.funnel("run", "--", "/etc/passwd").returncode, 126)

    def test_options_of_the_program_are_its_own(self):
        done = self.funnel("run", "echo", "--direct", "--help")
        self.assertEqual(done.stdout, "--direct --help\n")
        self.assertEqual(self.funnel("run").returncode, 2)
        self.assertEqual(self.funnel("run", "--device", "x", "--", "true").returncode, 2)

    def test_another_device_than_the_daemons(self):
        self.start("--device", "cuda")
        done = self.funnel("run", "--device", "soft", "--", "true")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--device cuda", done.stderr)
        self.assertEqual(self.funnel("run", "--device", "cuda", "--", "true").returncode, 0)

    def test_incomplete_installation(self):
        os.unlink(self.library)
        done = self.funnel("run", "--", "true")
        self.assertEqual(done.returncode, 1)
        self.assertIn("incomplete", done.stderr)

    def test_daemon_that_cannot_start(self):
        with open(self.pipe, "w"):
            pass
        done = self.funnel("run", "--", "true")
        self.assertEqual(done.returncode, 1)
        self.assertIn(self.pipe, done.stderr)
        os.unlink(self.pipe)

    def test_device_that_does_not_work(self):
        done = self.funnel("run", "--device", "cuda", "--", "echo", "never",
                           environment={"FUNNEL_FAKE": "fail"})
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("No device: load the driver's module", done.stderr)
        wait_until(lambda: self.daemon_pid() is None)

    def test_many_at_once_share_one_daemon(self):
        program = os.path.join(self.root, "bin/funnel")
        runs = [subprocess.Popen([program, "run", "--", "true"], env=self.environment,
                                 stderr=subprocess.PIPE, text=True) for _ in range(8)]
        self.processes += runs
        said = [run.communicate(timeout=harness.TIMEOUT)[1] for run in runs]
        self.assertEqual([run.returncode for run in runs], [0] * 8, said)
        self.assertEqual(sum("started one" in text for text in said), 1)


if __name__ == "__main__":
    harness.main()
