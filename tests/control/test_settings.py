# SPDX-License-Identifier: Apache-2.0
"""What operators set by command, over a daemon that is killed. All of it is there again, in the
order in which it was set. A file that is not the daemon's own, or not whole, changes nothing."""
import os
import re
import signal
import unittest

import harness
from harness import alive, wait_until

FILE = """schema_version = "1.0"
[quotas]
waits = "99"
[servers.day]
active_thread_percentage = 40
[servers.shift]
"""


class TestCase(harness.TestCase):
    @property
    def path(self):
        return os.path.join(self.pipe, "funnel.servers", "settings")

    def kill_daemon(self):
        daemon = self.daemon_pid()
        os.kill(daemon, signal.SIGKILL)
        wait_until(lambda: not alive(daemon), "the end of the daemon")

    def kill_and_restart(self, *arguments, **options):
        self.kill_daemon()
        self.start(*arguments, **options)

    def lines(self):
        """Those of the file that set something."""
        with open(self.path) as file:
            return file.read().splitlines()[1:-1]

    def limits(self):
        return self.funnel("limits").stdout

    def write_config(self, text=FILE):
        path = os.path.join(self.root, "funnel.toml")
        with open(path, "w") as file:
            file.write(text)
        return path


class Kept(TestCase):
    def test_everything_that_commands_set(self):
        self.start()
        self.mps("set_default_active_thread_percentage 35\n"
                 "set_default_device_pinned_mem_limit 0 3G\n"
                 "set_default_client_priority 1\n"
                 "limit --user 4242 --sm 12\n"
                 "limit --user 4242 --memory 2G\n"
                 "limit --group blue --sms 3 --priority 1\n"
                 "limit --quota waits=77\n"
                 "limit --quota ranges=555\n"
                 f"server create night --uid={os.getuid()}\n"
                 "server set night --active-thread-percentage=20 --timeslice-pct=30\n"
                 "namespace create batch --server=night\n"
                 "namespace set batch --server=night --pinned-memory-limit=512M\n"
                 "memacct set --audit_log=true\n")
        before = self.limits(), self.mps("server list\nnamespace list\nmemacct describe\n")
        for value in ("35", "3.0 GiB", "12", "2.0 GiB", "blue", "77", "555", "night", "512"):
            self.assertIn(value, before[0] + "".join(before[1]))
        for _ in range(2):
            self.kill_and_restart()
            self.assertEqual((self.limits(),
                              self.mps("server list\nnamespace list\nmemacct describe\n")), before)
        client = harness.Client(os.path.join(self.pipe, "night/batch", "funnel"))
        self.addCleanup(client.close)
        self.assertEqual(client.welcome(), (0, ""))

    def test_the_last_of_several(self):
        self.start()
        for percent in range(1, 40):
            self.mps(f"limit --user 7 --sm {percent}\nset_default_active_thread_percentage {percent}\n")
        self.assertEqual(self.lines(), ["limit --user 7 --sm 39",
                                        "set_default_active_thread_percentage 39"])

    def test_refused_commands_and_those_of_one_client(self):
        self.start()
        self.client().welcome()
        self.mps("limit --quota waits=0\n"
                 f"limit --client {os.getpid()} --sm 50\nserver delete day\nget_server_list\n")
        self.assertFalse(os.path.exists(self.path))

    def test_deleted_servers_stay_deleted(self):
        self.start()
        for name in ("a", "b"):
            self.mps(f"server create {name}\nnamespace create x --server={name}\n"
                     f"server set {name} --client-priority=1\n")
        self.mps("server delete a\nnamespace delete x --server=b\n")
        self.assertEqual(self.lines(), ["server create b", "server set b --client-priority=1"])
        self.kill_and_restart()
        names = [line.split()[0] for line in self.mps("server list --format=csv,noheader\n")]
        self.assertEqual([name.split(",")[0] for name in names], ["b"])

    def test_the_configuration_file(self):
        """What commands have changed stays changed, and all else is the file's again."""
        self.start("--apply", self.write_config())
        self.mps("server set day --active-thread-percentage=15\nserver delete shift\n")
        self.kill_and_restart("--apply", self.write_config(FILE.replace("99", "98")))
        self.assertIn("98", [line for line in self.limits().splitlines() if "waits" in line][0])
        self.assertEqual(self.mps("namespace get default day active-thread-percentage\n"), ["15"])
        self.assertNotIn("shift", " ".join(self.mps("server list\n")))
        self.mps("server create shift\nserver delete shift\n")
        self.kill_and_restart("--apply", self.write_config())
        self.assertNotIn("shift", " ".join(self.mps("server list\n")))

    def test_the_environment(self):
        self.start(environment={"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "50"})
        self.mps("set_default_client_priority 1\n")
        self.kill_and_restart(environment={"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "60"})
        self.assertEqual(self.mps("get_default_active_thread_percentage\n"
                                  "get_default_client_priority\n"), ["60.0", "1"])

    def test_a_stop_ends_them(self):
        self.start()
        self.mps("limit --user 7 --sm 20\nserver create night\n")
        self.assertEqual(self.funnel("stop", "--force").returncode, 0)
        self.start()
        self.assertEqual([line for line in self.limits().splitlines() if line.startswith("user ")], [])
        self.assertNotIn("night", " ".join(self.mps("server list\n")))

    def test_limits_of_one_client_stay_its_own(self):
        """The rule of its user was set before them."""
        self.start()
        self.client().welcome()
        self.mps(f"limit --user {os.getuid()} --sm 50\nlimit --client {os.getpid()} --sm 20\n")
        before = len(self.server_events("limits"))
        self.kill_and_restart()
        self.funnel_json("status")
        self.assertEqual(len(self.server_events("limits")), before)


class Partitions(TestCase):
    CONFIG = """schema_version = "1.0"
[servers.cut]
[[servers.cut.devices]]
uuid = "0"
[[servers.cut.devices.sm_partitions]]
name = "first"
chunks = 2
"""

    def shown(self):
        return sorted(self.mps("sm-partition list --all --format=csv,noheader\n"))

    def test_their_names_and_places(self):
        self.start("--apply", self.write_config(self.CONFIG))
        self.mps("sm-partition create a --server=cut --device=0 --chunks=1\n"
                 "sm-partition create b --server=cut --device=0 --chunks=1\n")
        before = self.shown()
        self.assertEqual(len([line for line in before if line.startswith("cut")]), 3)
        self.kill_and_restart("--apply", self.write_config(self.CONFIG))
        self.assertEqual(self.shown(), before)
        visible = [line.split(",")[-1] for line in before if ",first," in line][0].strip()
        client = harness.Client(os.path.join(self.pipe, "cut", "funnel"),
                                partition=visible.encode())
        self.addCleanup(client.close)
        self.assertEqual(client.welcome(), (0, ""))

    def test_a_hole_stays_where_it_is(self):
        self.start("--apply", self.write_config(self.CONFIG))
        self.mps("sm-partition create a --server=cut --device=0 --chunks=1\n"
                 "sm-partition create b --server=cut --device=0 --chunks=1\n")
        b = [line for line in self.shown() if ",b," in line][0].split(",")[-1].strip()
        client = harness.Client(os.path.join(self.pipe, "cut", "funnel"), partition=b.encode())
        self.addCleanup(client.close)
        self.assertEqual(client.welcome(), (0, ""))
        self.mps("sm-partition delete a --server=cut --device=0\n")
        place = [line for line in self.lines() if " b " in line]
        before = self.shown()
        self.kill_and_restart("--apply", self.write_config(self.CONFIG))
        self.funnel_json("status")
        wait_until(lambda: self.shown() == before, "the server that is taken over")
        self.assertEqual([line for line in self.lines() if " b " in line], place)
        self.assertEqual(self.mps("sm-partition create c --server=cut --device=0 --chunks=1\n")[0]
                         .split()[3], "created")

    def test_settings_of_the_daemon(self):
        self.start("-S")
        self.mps("sm_partition add 0 2\n")
        before = self.mps("lspart\n")
        visible = before[3].split()[:2]
        client = self.client(partition="/".join(visible).encode())
        self.assertEqual(client.welcome(), (0, ""))
        self.kill_and_restart("-S")
        expected = before[:3] + [re.sub("No$", "Yes", before[3])] + before[4:]
        wait_until(lambda: self.mps("lspart\n") == expected, "the server that is taken over")

    def test_a_server_that_ends_while_a_command_waits_for_it(self):
        """The fake server without programs leaves when its daemon dies."""
        self.start("-S")
        self.mps("sm_partition add 0 2\n")
        self.kill_and_restart("-S")
        done = self.run_program("nvidia-cuda-mps-control", input="lspart\n")
        self.assertTrue(done.stdout, "an answer, whichever it is")


class Commands(unittest.TestCase):
    """Operators' commands that the next daemon need not know."""
    OTHERS = {
        "quit", "reload",  # they set nothing
        "set_active_thread_percentage", "set_device_pinned_mem_limit",  # of one server, in its own file
        "feature enable", "feature disable", "context-share set",  # which can be set one way only
    }

    def test_each_is_kept_or_needs_not_be(self):
        root = os.path.join(os.path.dirname(harness.HERE), "..", "src")

        def read(path):
            with open(os.path.join(root, path)) as file:
                return file.read()

        known = set(re.findall(r'"([\w -]+)"', read("funneld/commands/settings.c")))
        commands = re.findall(r"COMMAND\(\s*(\w+), OPERATORS", read("control/command_list.h"))
        commands += re.findall(r'COMMAND_V3\(\s*\w+, "([^"]+)", OPERATORS',
                               read("control/command_list_v3.h"))
        self.assertGreater(len(commands), 15)
        self.assertEqual(set(commands) - known - self.OTHERS, set())


class Files(TestCase):
    """Forged, cut, or open to others: it is told, and the daemon starts without settings."""

    def setUp(self):
        super().setUp()
        self.start()
        self.mps("limit --user 7 --sm 21\nserver create night\n")
        self.kill_daemon()

    def text(self):
        with open(self.path) as file:
            return file.read()

    def write(self, text):
        with open(self.path, "w", encoding="latin-1") as file:
            file.write(text)

    @staticmethod
    def hash_of(data):
        """As src/base/hash.c has it."""
        def mix(value, word):
            value = (value ^ word) * 0x9e3779b97f4a7c15 & 0xffffffffffffffff
            return value ^ value >> 29

        lanes = [len(data), 1, 2, 3]
        while len(data) >= 32:
            for i in range(4):
                lanes[i] = mix(lanes[i], int.from_bytes(data[8 * i:8 * i + 8], "little"))
            data = data[32:]
        value = lanes[0]
        for lane in lanes[1:]:
            value = mix(value, lane)
        while data:
            value = mix(value, int.from_bytes(data[:8], "little"))
            data = data[8:]
        return value ^ value >> 32

    def write_lines(self, *lines):
        """As whole as the daemon's own."""
        text = "".join(line + "\n" for line in ("funnel settings 1", *lines))
        self.write(f"{text}end {self.hash_of(text.encode('latin-1')):016x}\n")

    def check_refused(self, expected):
        self.start()
        self.assertIn(expected, self.control_log())
        self.assertNotIn("21", self.limits())
        self.assertNotIn("night", " ".join(self.mps("server list\n")))
        self.mps("limit --user 7 --sm 22\n")
        self.kill_daemon()
        self.start()
        self.assertIn("22", self.limits())

    def test_cut(self):
        self.write(self.text()[:-30])
        self.check_refused("it is not whole")

    def test_changed(self):
        self.write(self.text().replace("--sm 21", "--sm 99"))
        self.check_refused("it is not whole")

    def test_empty_and_long(self):
        for text in ("", "\0" * 100, "x" * (2 << 20)):
            self.write(text)
            self.start()
            self.assertIn("cannot be used", self.control_log())
            self.assertNotIn("21", self.limits())
            self.kill_daemon()

    def test_open_to_others(self):
        os.chmod(self.path, 0o604)
        self.check_refused("not a file of the daemon's user alone")

    def test_a_link(self):
        os.rename(self.path, self.root + "/moved")
        os.symlink(self.root + "/moved", self.path)
        self.check_refused("cannot be used")

    def test_a_pipe(self):
        os.unlink(self.path)
        os.mkfifo(self.path, 0o600)
        self.check_refused("not a file of the daemon's user alone")

    @unittest.skipIf(os.geteuid() != 0, "needs root, to be two users")
    def test_of_another_user(self):
        os.chown(self.path, 2001, 2001)
        self.check_refused("not a file of the daemon's user alone")

    def test_lines_that_set_nothing(self):
        """Each is told and left out, and those beside it are in force."""
        wrong = ("quit", "shutdown_server 1 -f", "limit", "limitless --user 1", "limit --client 1 --sm 5",
                 "partition", "partition -", "partition nothing a 0 2 0 0 abcdefghijklmno 0 -",
                 "partition - a 0 9999 0 0 abcdefghijklmno 0 -", "server create " + "x" * 5000,
                 "server create ../../evil", "end 0", "\x1b[2J", "limit --user 7 --sm " + "9" * 400,
                 "limit --quota " + "waits=64," * 200, "namespace create x --server=none")
        self.write_lines("limit --user 5 --sm 31", *wrong, "limit --group red --sm 32")
        self.start()
        self.assertIn("31%", self.limits())
        self.assertIn("32%", self.limits())
        self.assertEqual(self.lines(), ["limit --user 5 --sm 31", "limit --group red --sm 32"])
        self.assertIn('"quit" in funnel.servers/settings is no setting', self.control_log())
        self.assertNotIn("\x1b", self.control_log())

    def test_more_than_there_may_be(self):
        self.write_lines(*(f"limit --group g{i} --sm 5" for i in range(2000)),
                         *(f"server create s{i}" for i in range(100)))
        self.start()
        self.assertEqual(len(self.lines()), 64 + 64)

    def test_mode(self):
        self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o600)


if __name__ == "__main__":
    harness.main()
