# SPDX-License-Identifier: Apache-2.0
"""The daemon's life: one a directory, stale leftovers, signals, logs."""
import os
import re
import resource
import signal
import stat
import subprocess
import unittest

import harness
from harness import alive, wait_until


class Lifecycle(harness.TestCase):
    def test_start_status_stop(self):
        self.assertEqual(self.funnel("status").returncode, 1)
        started = self.funnel("start", "--device", "soft")
        self.assertEqual(started.returncode, 0, started.stderr)
        status = self.funnel("status")
        self.assertEqual(status.returncode, 0)
        self.assertIn("is running", status.stdout)
        self.assertIn(self.pipe, status.stdout)
        pid = self.daemon_pid()
        self.assertEqual(self.funnel("stop").returncode, 0)
        wait_until(lambda: not alive(pid))
        self.assertEqual(os.path.exists(self.socket_path), False)
        self.assertEqual(self.daemon_pid(), None)
        self.assertEqual(self.funnel("stop").returncode, 1)

    def test_second_daemon_is_refused(self):
        self.start()
        pid = self.daemon_pid()
        for name, option in (("funneld", "-d"), ("funneld", "-f"),
                             ("nvidia-cuda-mps-control", "-d")):
            second = self.run_program(name, option)
            self.assertEqual(second.returncode, 1)
            self.assertIn("An instance of this daemon is already running", second.stderr)
        second = self.funnel("start")
        self.assertEqual(second.returncode, 1)
        self.assertIn(f"it listens in {self.pipe}", second.stderr)
        self.assertEqual(self.daemon_pid(), pid)
        self.assertEqual(self.funnel("status").returncode, 0)

    def test_no_daemon(self):
        done = self.run_program("nvidia-cuda-mps-control", input="get_server_list\n")
        self.assertEqual((done.returncode, done.stdout),
                         (1, "Cannot find MPS control daemon process\n"))
        for words in (("ps",), ("limits",), ("metrics",), ("top", "--plain", "-n", "1")):
            done = self.funnel(*words)
            self.assertEqual((done.returncode, done.stderr),
                             (1, f"funnel {words[0]}: No daemon listens at {self.socket_path}; "
                                 "funnel start starts one there\n"))

    def test_leftovers_of_a_killed_daemon(self):
        self.start()
        first = self.daemon_pid()
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: not alive(first))
        self.assertTrue(os.path.exists(self.socket_path))
        self.assertEqual(self.funnel("status").returncode, 1)
        self.start()
        self.assertNotEqual(self.daemon_pid(), first)
        self.assertEqual(self.funnel("status").returncode, 0)

    def test_leftovers_of_any_kind(self):
        """The process id of another process, or nonsense; no socket, or a file in its place."""
        other = subprocess.Popen(["sleep", "1000"])
        self.processes.append(other)
        pid_file = os.path.join(self.pipe, "nvidia-cuda-mps-control.pid")
        for pid in (str(other.pid), "nonsense", "", "-1"):
            self.start()
            daemon = self.daemon_pid()
            os.kill(daemon, signal.SIGKILL)
            wait_until(lambda: not alive(daemon))
            with open(pid_file, "w") as file:
                file.write(pid)
            if pid:
                os.unlink(self.socket_path)
            self.assertEqual(self.funnel("status").returncode, 1)
            self.start()
            self.assertEqual(self.mps("get_default_active_thread_percentage\nquit\n"), ["100.0"])
        with open(self.socket_path, "w"):
            pass
        refused = self.run_program("funneld", "-d")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("Cannot listen at", refused.stderr)
        self.assertIsNone(other.poll())

    def test_quick_restarts(self):
        for _ in range(10):
            self.start()
            self.assertEqual(self.mps("quit\n"), [])

    def test_servers_of_a_killed_daemon_end(self):
        """Where no other daemon comes: test_whole.py tests how long a real server waits."""
        self.start()
        client = self.client()
        self.assertEqual(client.welcome(), (0, ""))
        server = self.servers()[0]
        os.kill(self.daemon_pid(), signal.SIGKILL)
        self.assertTrue(alive(server))
        client.close()
        wait_until(lambda: not alive(server), "the end of the server")

    def test_files(self):
        self.start()
        self.assertEqual(stat.S_IMODE(os.stat(self.socket_path).st_mode), 0o666)
        expected = 0o755 if os.geteuid() == 0 else 0o700
        self.assertEqual(stat.S_IMODE(os.stat(self.pipe).st_mode), expected)
        self.assertFalse(os.path.exists(os.path.join(self.pipe, "control")))

    def test_logs_are_the_users_alone(self):
        """They have the command lines of all programs."""
        self.addCleanup(os.umask, os.umask(0))
        self.start()
        self.client().welcome()
        wait_until(lambda: self.server_events("client"), "the log of the server")
        for name in "control.log", "server.log":
            self.assertEqual(stat.S_IMODE(os.stat(os.path.join(self.log, name)).st_mode), 0o600, name)

    def test_terminate(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            self.start()
            self.assertEqual(self.client().welcome(), (0, ""))
            server, daemon = self.servers()[0], self.daemon_pid()
            os.kill(daemon, number)
            wait_until(lambda: not alive(daemon) and not alive(server))
            self.assertFalse(os.path.exists(self.socket_path))

    def test_foreground_prints_the_log(self):
        process = subprocess.Popen([os.path.join(self.root, "bin/funneld"), "-f"],
                                   env=self.environment, stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        wait_until(lambda: self.funnel("status").returncode == 0)
        process.terminate()
        output, _ = process.communicate(timeout=harness.TIMEOUT)
        self.assertIn(f"Starting control daemon using socket {self.socket_path}", output)
        self.assertEqual(process.returncode, 0)
        line = re.compile(r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} Control +\d+\] \S")
        for text in output.splitlines() + self.control_log().splitlines():
            self.assertRegex(text, line)

    def test_hangup_reopens_logs(self):
        self.start()
        self.assertEqual(self.client().welcome(), (0, ""))
        self.settle_logs()
        for name in ("control.log", "server.log"):
            os.rename(os.path.join(self.log, name), os.path.join(self.log, name + ".1"))
        os.kill(self.daemon_pid(), signal.SIGHUP)
        wait_until(lambda: os.path.exists(os.path.join(self.log, "control.log")))
        self.mps("get_server_list\n")
        self.assertIn("Cmd:get_server_list", self.control_log())
        self.assertEqual(self.client().welcome(), (0, ""))
        self.assertEqual(len(self.server_events("client")), 1)

    def test_log_that_cannot_be_written(self):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        self.start(restore_signals=False)
        resource.prlimit(self.daemon_pid(), resource.RLIMIT_FSIZE, (0, 0))
        for _ in range(3):
            self.assertEqual(self.mps("get_default_active_thread_percentage\n"), ["100.0"])
        self.assertNotIn("Cmd:", self.control_log())

    @unittest.skipIf(os.geteuid() != 0, "needs root, to mount a disk")
    def test_full_log_disk(self):
        """The disk takes neither a byte nor a file more: everything continues, without logs."""
        os.makedirs(self.log)
        script = f"""mount -t tmpfs -o size=8k,nr_inodes=3,mode=755 none {self.log} || exit 77
            touch {self.log}/control.log && yes > {self.log}/fill 2>/dev/null
            {self.root}/bin/funneld -d || exit 1
            echo get_default_active_thread_percentage | {self.root}/bin/nvidia-cuda-mps-control"""
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], env=self.environment,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=harness.TIMEOUT)
        if done.returncode == 77 or "unshare" in done.stdout:
            self.skipTest("cannot make a mount namespace")
        self.assertEqual((done.returncode, done.stdout), (0, "100.0\n"))
        self.assertEqual(self.client().welcome(), (0, ""))
        self.assertEqual(len(self.servers()), 1)

    def test_environment_sets_defaults(self):
        self.environment.update(CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="40",
                                CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="0=1G,1=512MB",
                                CUDA_MPS_CLIENT_PRIORITY="1")
        self.start()
        self.assertEqual(self.mps("get_default_active_thread_percentage\n"
                                  "get_default_device_pinned_mem_limit 1\n"
                                  "get_default_client_priority\n"), ["40.0", "512M", "1"])

    def test_nvidia_name_and_environment(self):
        done = self.run_program("nvidia-cuda-mps-control", "-d")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(f"/proc/{self.daemon_pid()}/cmdline") as file:
            arguments = file.read().split("\0")
        self.assertEqual(os.path.basename(arguments[0]), "nvidia-cuda-mps-control")
        with open(f"/proc/{self.daemon_pid()}/environ") as file:
            self.assertIn(f"CUDA_MPS_PIPE_DIRECTORY={self.pipe}", file.read().split("\0"))

    def test_options(self):
        self.assertEqual(self.run_program("nvidia-cuda-mps-control", "-v").stdout, "13010\n")
        for arguments in (["-S"], ["-m"], ["-x"], ["-p"], ["-p", "x"], ["--protocol=-1"],
                          ["-d", "-p", "4"],
                          ["-d", "-p", "4294967298"], ["-d", "-q"], ["-d", "-a", "file.toml"],
                          ["--apply=file.toml"]):
            done = self.run_program("nvidia-cuda-mps-control", *arguments)
            self.assertEqual(done.returncode, 1, arguments)
            self.assertTrue(done.stderr, arguments)
        for arguments in ([], ["-d", "-f"], ["-d", "--device", "x"], ["-d", "x"]):
            done = self.run_program("funneld", *arguments)
            self.assertEqual(done.returncode, 1)
            self.assertTrue(done.stderr)
        self.assertIsNone(self.daemon_pid())

    def test_protocol(self):
        """The variable counts more than the option, and a daemon takes the commands of both
        versions."""
        done = self.run_program("nvidia-cuda-mps-control", "-d", "-p", "2",
                                environment={"CUDA_MPS_PROTOCOL_VERSION": "4"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("CUDA_MPS_PROTOCOL_VERSION", done.stderr)
        done = self.run_program("nvidia-cuda-mps-control", "-d", "-p", "4",
                                environment={"CUDA_MPS_PROTOCOL_VERSION": "3"})
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in (["-p", "3"], ["--protocol=2"]):
            done = self.run_program("nvidia-cuda-mps-control", *words,
                                    input="get_default_client_priority\n")
            self.assertEqual((done.returncode, done.stdout), (0, "0\n"))

    def test_long_options_and_quit(self):
        self.assertEqual(self.run_program("nvidia-cuda-mps-control", "--daemon").returncode, 0)
        pid = self.daemon_pid()
        for expected in (0, 1):
            done = self.run_program("nvidia-cuda-mps-control", ("-q", "--quit")[expected])
            self.assertEqual(done.returncode, expected)
        self.assertEqual(done.stdout, "Cannot find MPS control daemon process\n")
        wait_until(lambda: not alive(pid))

    def test_start_with_static_partitions(self):
        done = self.funnel("start", "-S", "--device", "soft")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.mps("lspart\n")), 4)

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_start_for_all_users(self):
        self.assertEqual(self.funnel("start", "--multiuser").returncode, 0)
        with open(f"/proc/{self.daemon_pid()}/cmdline") as file:
            self.assertIn("--multiuser-server", file.read().split("\0"))

    def test_help(self):
        for name in ("start", "stop", "status", "ps", "run", "servers", "clients", "devices", "log",
                     "limit", "limits", "provision"):
            done = self.funnel(name, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("Usage: funnel " + name, done.stdout)
            self.assertIn("Example", done.stdout)
            self.assertEqual(self.funnel(name, "--nonsense").returncode, 2)
        self.assertEqual(self.funnel("nonsense").returncode, 2)
        self.assertEqual(self.funnel("help").returncode, 0)


class Directories(harness.TestCase):
    def refused(self, *words, **options):
        done = self.run_program("funneld", "-d", **options)
        self.assertEqual(done.returncode, 1)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_long_path(self):
        deep = os.path.join(self.root, "d" * 120)
        self.refused("CUDA_MPS_PIPE_DIRECTORY", "shorter",
                     environment={"CUDA_MPS_PIPE_DIRECTORY": deep})
        front = self.run_program("nvidia-cuda-mps-control", input="ps\n",
                                 environment={"CUDA_MPS_PIPE_DIRECTORY": deep})
        self.assertEqual(front.returncode, 1)
        self.assertIn("Cannot find MPS control daemon process", front.stdout)
        self.assertIn("shorter", front.stderr)

    def test_longest_path(self):
        deep = self.root + "/" + "d" * (100 - len(self.root) - 1)
        self.assertEqual(len(deep), 100)
        done = self.run_program("funneld", "-d", environment={"CUDA_MPS_PIPE_DIRECTORY": deep})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.pipe = deep
        self.refused("shorter", environment={"CUDA_MPS_PIPE_DIRECTORY": deep + "d"})

    def test_a_directory_that_all_users_may_write_to(self):
        os.makedirs(self.pipe)
        os.chmod(self.pipe, 0o777)
        self.refused("chmod o-w")

    def test_not_a_directory(self):
        with open(self.pipe, "w"):
            pass
        self.refused(self.pipe, "not a directory", "CUDA_MPS_PIPE_DIRECTORY")
        for words in (("run", "true"), ("status",)):
            done = self.funnel(*words)
            self.assertEqual(done.returncode, 1)
            self.assertIn("is not a directory; choose another one with CUDA_MPS_PIPE_DIRECTORY", done.stderr)

    def test_not_a_directory_for_logs(self):
        os.mkdir(self.pipe, 0o700)
        with open(self.log, "w"):
            pass
        done = self.funnel("run", "true")
        self.assertEqual(done.returncode, 1)
        self.assertIn(self.log + " is not a directory; choose another", done.stderr)
        self.assertIn("could not be started, so the program is not run", done.stderr)
        self.assertNotIn("funnel start", done.stderr)

    @unittest.skipIf(os.geteuid() != 0, "needs root, to give a directory away")
    def test_foreign_directory(self):
        os.makedirs(self.pipe)
        os.chown(self.pipe, 65534, 65534)
        self.refused("belongs to user 65534")

    @unittest.skipIf(os.geteuid() != 0, "needs root, to give a link away")
    def test_foreign_link(self):
        os.makedirs(self.root + "/own")
        os.symlink(self.root + "/own", self.pipe)
        os.chown(self.pipe, 65534, 65534, follow_symlinks=False)
        self.refused("belongs to user")

    @unittest.skipIf(os.geteuid() != 0, "needs root, to become another user")
    def test_no_permission(self):
        self.refused("Cannot make the directory", user=65534, group=65534, extra_groups=[])

    def test_link_in_place_of_the_log(self):
        os.makedirs(self.log)
        os.symlink("/dev/null", os.path.join(self.log, "control.log"))
        self.refused("control.log")


if __name__ == "__main__":
    harness.main()
