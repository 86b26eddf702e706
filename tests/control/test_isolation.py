# SPDX-License-Identifier: Apache-2.0
"""Domains of fate: --isolate gives programs a lane of their own, and what holds for the server holds there."""
import os
import unittest

import harness
import test_faults
import test_lanes
import wire
from harness import alive, wait_until


def script(name):
    """All programs of these tests are Python: they differ by what they say that it runs."""
    return b"python3\0" + name.encode()


class TestCase(test_lanes.TestCase):
    def enter_script(self, name, *arguments, **hello):
        return self.enter(*arguments, command=script(name), **hello)

    def running(self):
        return sorted(name for name, server in self.lanes().items() if server)

    def domains(self):
        """Of each client, in the order in which they came, without the hash."""
        return [lane.rsplit("_", 1)[0] if "_" in lane else lane for _, lane in self.placed()]

    def leave(self, client):
        """The daemon knows that the program has ended well."""
        count = self.control_log().count(" has left")
        client.close()
        wait_until(lambda: self.control_log().count(" has left") > count, "the end of the program")


class Programs(TestCase):
    options = ("--isolate", "program")

    def test_each_has_a_lane(self):
        for name in ("a.py", "b.py", "a.py"):
            self.enter_script(name)
        first, second, third = [lane for _, lane in self.placed()]
        self.assertEqual(self.domains(), ["program"] * 3)
        self.assertEqual(first, third)
        self.assertNotEqual(first, second)
        self.assertEqual(self.running(), sorted(f"{self.user}:{lane}" for lane in (first, second)))
        self.assertEqual([event["number"] for event in self.server_events("client")], [1, 2, 3])

    def test_limits_hold_in_all_lanes(self):
        self.enter_script("a.py")
        self.enter_script("b.py")
        first, second = self.servers()
        self.mps(f"set_active_thread_percentage {first} 30\n")
        self.assertEqual(self.mps(f"get_active_thread_percentage {second}\n"), ["30.0"])
        self.enter_script("c.py")
        self.assertEqual(self.told()["share"], 3000)

    def test_batch_programs(self):
        self.enter_script("a.py", wire.BATCH)
        self.assertEqual(self.domains(), ["batch_program"])
        server, = self.lanes().values()
        self.assertIn("--batch", self.arguments(server))
        wait_until(lambda: self.slices(server) == [test_lanes.BATCH_US], "its slice")

    def test_a_lane_ends_after_its_program(self):
        self.enter_script("a.py")
        client = self.enter_script("b.py")
        first, second = self.servers()
        client.close()
        wait_until(lambda: not alive(second), "the end of the lane")
        self.assertEqual(self.servers(), [first])

    def test_terminate_reaches_a_lane(self):
        self.enter_script("a.py")
        self.enter_script("b.py")
        _, second = self.servers()
        self.assertEqual(self.mps(f"terminate_client {second} {os.getpid()}\n"), ["0"])
        wait_until(lambda: len(self.placed()) == 1, "the end of the second program")

    def test_the_next_daemon_keeps_the_lanes(self):
        self.enter_script("a.py")
        self.enter_script("b.py")
        before = self.lanes(), self.placed()
        daemon = self.daemon_pid()
        os.kill(daemon, harness.signal.SIGKILL)
        wait_until(lambda: not alive(daemon), "the end of the daemon")
        self.start("--device", "soft", *self.options)
        self.assertEqual((self.lanes(), self.placed()), before)
        self.enter_script("a.py")
        self.assertEqual(self.placed()[-1], before[1][0])

    def test_lanes_leave_servers_to_main_lanes(self):
        """Of four servers three can be lanes. Programs beyond share the main lane, and none is refused."""
        self.assertEqual(self.funnel("limit", "--quota", "servers=4").returncode, 0)
        for number in range(5):
            self.enter_script(f"{number}.py")
        self.assertEqual(self.domains(), ["program"] * 3 + ["main"] * 2)

    def test_nothing_starts_ahead(self):
        """The program that funnel run will become is not known yet."""
        self.funnel("run", "--", "true")
        self.enter_script("a.py")
        self.assertEqual(self.control_log().count("Starting new server"), 1)


class NewPrograms(TestCase):
    options = ("--isolate", "new")

    def test_once_well(self):
        first = self.enter_script("a.py")
        self.assertEqual(self.domains(), ["new"])
        self.assertIn("has not yet ended once without a fault", self.funnel("status").stdout)
        self.leave(first)
        for name in ("a.py", "b.py", "a.py"):
            self.enter_script(name)
        self.assertEqual(self.domains(), ["main", "new", "main"])

    def test_processes_of_a_program_stay_together(self):
        first, _ = self.enter_script("a.py"), self.enter_script("a.py")
        self.leave(first)
        self.enter_script("a.py")
        self.assertEqual(self.domains(), ["new", "new"])


class FaultsOfNewPrograms(test_faults.TestCase):
    options = ["--isolate", "new"]

    def test_faulting_programs_harm_no_other(self):
        """Only one that has ended without a fault, and has not faulted since, comes to the others."""
        other = self.attach(os.getuid(), command=script("other.py"))
        new = self.attach(os.getuid(), command=script("new.py"))
        self.assertNotEqual(self.server_of(new), self.server_of(other))
        self.fault(new)
        self.assertTrue(alive(self.server_of(other)))
        new = self.attach(os.getuid(), command=script("new.py"))
        self.assertTrue(self.is_in_quarantine(new))


class Wishes(TestCase):
    """Of the program itself: FUNNEL_ISOLATE and `funnel run --isolate`."""

    def test_a_program_asks(self):
        self.enter_script("a.py")
        self.enter_script("a.py", isolation=wire.ISOLATE_PROGRAM)
        self.enter_script("a.py", isolation=wire.ISOLATE_GROUP, group=b"blue")
        self.enter_script("a.py", isolation=wire.ISOLATE_GROUP)
        self.enter_script("a.py", isolation=4711)
        self.assertEqual(self.domains(), ["main", "program", "group", "main", "main"])

    def test_wrong_ones(self):
        expected = "--isolate is none, class, user, group, new or program, not each"
        for arguments in (("funnel", "run", "--isolate", "each", "--", "true"),
                          ("funnel", "start", "--isolate", "each"),
                          ("funneld", "-d", "--isolate", "each")):
            done = self.run_program(*arguments)
            self.assertIn(done.returncode, (1, 2))
            self.assertIn(expected, done.stderr)


class File(TestCase):
    def setUp(self):
        harness.TestCase.setUp(self)
        path = os.path.join(self.root, "servers.toml")
        with open(path, "w") as file:
            file.write('[servers.night]\nisolate = "program"\ntimeslice_pct = 60\n[servers.day]\nisolate = "none"\n')
        self.start("--device", "soft", "--isolate", "new", "--apply", path)

    def test_a_server_has_its_own(self):
        self.enter_script("a.py", 0, "night")
        self.enter_script("a.py", 0, "day")
        self.enter_script("a.py")
        self.assertEqual(self.domains(), ["program", "main", "new"])

    def test_its_lanes_share_its_time(self):
        self.enter_script("a.py", 0, "night")
        self.enter_script("b.py", 0, "night")
        self.enter_script("a.py", 0, "day")
        lanes = self.lanes()
        expected = {name: [3000] for name in lanes if lanes[name] and name.startswith("night:")}
        self.assertEqual(len(expected), 2)
        wait_until(lambda: {name: self.slices(lanes[name], "night")[-1:] for name in expected} == expected,
                   "the slices")


@unittest.skipIf(os.geteuid() != 0, "needs root, to be two users")
class Users(test_faults.TestCase):
    options = ["--multiuser-server", "--isolate", "user"]

    def test_each_has_a_lane(self):
        first, other, second = self.attach(2001), self.attach(2002), self.attach(2001)
        self.assertEqual(self.server_of(first), self.server_of(second))
        self.assertNotEqual(self.server_of(first), self.server_of(other))
        self.fault(first, ends=False)
        self.assertTrue(alive(self.server_of(other)))

    def test_lanes_count_as_servers_of_their_user(self):
        """Beyond the quota a program shares the server of all."""
        self.assertEqual(self.funnel("limit", "--quota", "user-servers=2").returncode, 0)
        clients = [self.attach(2001, command=script(f"{number}.py"), isolation=wire.ISOLATE_PROGRAM)
                   for number in range(4)]
        servers = [self.server_of(client) for client in clients]
        self.assertEqual(len(set(servers)), 3)
        self.assertEqual(servers[2], servers[3])
        self.assertNotIn(self.server_of(self.attach(2002)), servers)


if __name__ == "__main__":
    harness.main()
