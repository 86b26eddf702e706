# SPDX-License-Identifier: Apache-2.0
"""Lanes: batch programs have a server of their own in each service. It starts on demand, and ends when
it is idle."""
import os
import re
import signal
import subprocess

import harness
import wire
from harness import Client, alive, wait_until, waits

MAIN_US, BATCH_US = 20000, 50


class TestCase(harness.TestCase):
    options = ()

    def setUp(self):
        super().setUp()
        self.start("--device", "soft", *self.options)

    @property
    def user(self):
        return f"uid_{os.getuid()}"

    def enter(self, program_class=0, *folder, **hello):
        client = Client(os.path.join(self.pipe, *folder, "funnel"), program_class=program_class,
                        **hello)
        self.addCleanup(client.close)
        self.assertEqual(client.welcome(), (0, ""))
        return client

    def words(self, line, status=0):
        done = self.run_program("nvidia-cuda-mps-control", *line.split())
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout.splitlines()

    def lanes(self):
        """The process of each lane, by the name of its server."""
        return {server["name"]: server["pid"] for server in self.funnel_json("status")["servers"]}

    def placed(self):
        """Class and lane of each client, in the order in which they came."""
        clients = sorted(self.funnel_json("ps"), key=lambda client: client["id"])
        return [(client["class"], client["lane"]) for client in clients]

    def told(self, *folder):
        """What servers got about the last client."""
        return self.server_events("client", *folder)[-1]

    def slices(self, server, *folder):
        return [event["us"] for event in self.server_events("timeslice", *folder)
                if event["server"] == server]

    def arguments(self, server, *folder):
        event, = [one for one in self.server_events("start", *folder) if one["server"] == server]
        return event["argv"]


class Placement(TestCase):
    def test_batch_has_a_lane_of_its_own(self):
        for program_class in (wire.NORMAL, wire.BATCH, wire.CRITICAL, wire.BATCH, 0, 4711):
            self.enter(program_class)
        self.assertEqual(self.placed(), [("normal", "main"), ("batch", "batch"), ("critical", "main"),
                                         ("batch", "batch"), ("normal", "main"), ("normal", "main")])
        lanes = self.lanes()
        self.assertEqual(list(lanes), [self.user, self.user + ":batch"])
        self.assertEqual(self.servers(), list(lanes.values()))
        self.assertNotIn("--batch", self.arguments(lanes[self.user]))
        self.assertIn("--batch", self.arguments(lanes[self.user + ":batch"]))
        columns = self.funnel("ps").stdout.splitlines()[0].split()
        self.assertIn("CLASS", columns)
        self.assertIn("LANE", columns)
        self.assertIn("it is the lane of batch programs", self.funnel("status").stdout)

    def test_ids_are_unique_over_lanes(self):
        for program_class in (wire.BATCH, wire.NORMAL, wire.BATCH):
            self.enter(program_class)
        self.assertEqual([event["number"] for event in self.server_events("client")], [1, 2, 3])

    def test_nothing_changes_without_a_class(self):
        self.enter()
        self.enter(wire.NORMAL)
        self.enter(wire.CRITICAL)
        self.assertEqual(list(self.lanes()), [self.user])
        self.assertEqual(self.server_events("timeslice"), [])

    def test_a_batch_program_alone(self):
        """It needs no main lane."""
        self.enter(wire.BATCH)
        self.assertEqual(list(self.lanes()), [self.user + ":batch"])

    def test_terminate_reaches_a_lane(self):
        self.enter(wire.NORMAL)
        self.enter(wire.BATCH)
        server = self.lanes()[self.user + ":batch"]
        self.assertEqual(self.mps(f"get_client_list {server}\n"), [str(os.getpid())])
        self.assertEqual(self.mps(f"terminate_client {server} {os.getpid()}\n"), ["0"])
        wait_until(lambda: self.placed() == [("normal", "main")], "the end of the batch program")

    def test_named_server(self):
        self.words("server create night")
        self.enter(wire.BATCH, "night")
        self.enter(wire.NORMAL, "night")
        lanes = self.lanes()
        self.assertEqual(sorted(lanes), ["night", "night:batch"])
        rows = self.words("client list --server=night --format=csv,noheader")
        self.assertEqual(sorted(row.split(",")[1] for row in rows), ["night", "night:batch"])
        self.assertEqual(self.words("server get night pid"), [str(lanes["night"])])
        self.assertIn("has 2 clients", self.words("server delete night", 1)[0])
        self.words("server delete night --force")
        wait_until(lambda: not any(map(alive, lanes.values())), "the end of both lanes")

    @waits
    def test_an_idle_lane_ends(self):
        self.enter(wire.NORMAL)
        client = self.enter(wire.BATCH)
        lanes = self.lanes()
        client.close()
        wait_until(lambda: not alive(lanes[self.user + ":batch"]), "the end of the batch lane")
        self.assertEqual(self.lanes(), {self.user: lanes[self.user]})
        wait_until(lambda: self.slices(lanes[self.user]) == [MAIN_US, 0], "the driver's slice")
        self.enter(wire.BATCH)
        self.assertEqual(self.placed()[-1], ("batch", "batch"))


class Fate(TestCase):
    def test_a_killed_lane_is_replaced_as_a_lane(self):
        for victim, other in (("", ":batch"), (":batch", "")):
            with self.subTest(victim or "main"):
                self.enter(wire.NORMAL)
                self.enter(wire.BATCH)
                before = self.lanes()
                os.kill(before[self.user + victim], signal.SIGKILL)
                wait_until(lambda: self.lanes().get(self.user + victim) not in
                           (None, before[self.user + victim]), "another server")
                self.assertEqual(self.lanes()[self.user + other], before[self.user + other])
                self.enter(wire.BATCH if victim else wire.NORMAL)
                self.assertIn(("batch", "batch") if victim else ("normal", "main"), self.placed())

    def test_lanes_outlive_the_daemon(self):
        self.enter(wire.CRITICAL)
        self.enter(wire.BATCH)
        lanes, placed = self.lanes(), self.placed()
        wait_until(lambda: self.slices(lanes[self.user + ":batch"]) == [BATCH_US], "its slice")
        daemon = self.daemon_pid()
        os.kill(daemon, signal.SIGKILL)
        wait_until(lambda: not alive(daemon), "the end of the daemon")
        self.start("--device", "soft")
        self.assertEqual(self.lanes(), lanes)
        self.assertEqual(self.placed(), placed)
        wait_until(lambda: self.slices(lanes[self.user])[-1] == MAIN_US and
                   self.slices(lanes[self.user + ":batch"])[-1] == BATCH_US, "the slices")
        self.enter(wire.BATCH)
        self.assertEqual(self.lanes(), lanes)
        self.assertEqual(self.placed(), placed + [("batch", "batch")])


class OneProcess(TestCase):
    """Where one process at a time may use the device, all programs share its server."""
    fake = "exclusive"

    def test_batch_shares_the_main_lane(self):
        self.enter(wire.NORMAL)
        self.enter(wire.BATCH)
        self.assertEqual(self.placed(), [("normal", "main"), ("batch", "main")])
        self.assertEqual(self.told()["priority"], 1)

    def test_normal_shares_the_batch_lane(self):
        self.enter(wire.BATCH)
        self.enter(wire.NORMAL)
        self.assertEqual(self.placed(), [("batch", "batch"), ("normal", "batch")])
        self.assertEqual([event["priority"] for event in self.server_events("client")], [0, 0])


class Limits(TestCase):
    def test_of_a_server_hold_in_both_lanes(self):
        self.enter(wire.NORMAL)
        main, = self.servers()
        self.mps(f"set_active_thread_percentage {main} 30\n")
        self.mps(f"set_device_pinned_mem_limit {main} 0 2G\n")
        self.enter(wire.BATCH)
        self.assertEqual((self.told()["share"], self.told()["memory"]), (3000, [2 << 30, 0]))
        batch = self.lanes()[self.user + ":batch"]
        self.assertEqual(self.mps(f"get_active_thread_percentage {batch}\n"), ["30.0"])
        self.mps(f"set_active_thread_percentage {batch} 40\n")
        self.assertEqual(self.mps(f"get_active_thread_percentage {main}\n"), ["40.0"])

    def test_of_a_user_and_a_group_hold_in_both_lanes(self):
        self.funnel("limit", "--user", str(os.getuid()), "--memory", "3G")
        self.funnel("limit", "--group", "blue", "--memory", "1G")
        for program_class in (wire.NORMAL, wire.BATCH):
            self.enter(program_class, group=b"blue")
            self.assertEqual(self.told()["memory"], [1 << 30, 1 << 30])
            self.enter(program_class)
            self.assertEqual(self.told()["memory"], [3 << 30, 3 << 30])

    def test_of_a_named_server_hold_in_both_lanes(self):
        self.words("server create night")
        self.words("server set night --pinned-memory-limit=4G --active-thread-percentage=20")
        for program_class in (wire.NORMAL, wire.BATCH):
            self.enter(program_class, "night")
            self.assertEqual((self.told("night")["share"], self.told("night")["memory"]),
                             (2000, [4 << 30, 4 << 30]))


class Operators(TestCase):
    """The class that an operator sets is the one without a wish, and the highest."""

    def classes(self, *folder, **hello):
        for program_class in (0, wire.CRITICAL, wire.NORMAL, wire.BATCH):
            self.enter(program_class, *folder, **hello)
        return [event["program_class"] for event in self.server_events("client", *folder)[-4:]]

    def test_user_and_group(self):
        self.assertEqual(self.funnel("limit", "--group", "blue", "--class", "batch").returncode, 0)
        self.assertEqual(self.classes(), [wire.NORMAL, wire.CRITICAL, wire.NORMAL, wire.BATCH])
        self.assertEqual(self.classes(group=b"blue"), [wire.BATCH] * 4)
        self.funnel("limit", "--user", str(os.getuid()), "--class", "normal")
        self.assertEqual(self.classes(), [wire.NORMAL, wire.NORMAL, wire.NORMAL, wire.BATCH])
        self.assertEqual(self.classes(group=b"blue"), [wire.BATCH] * 4)
        self.assertRegex(self.funnel("limits").stdout, r"group blue .* batch\b")

    def test_named_server_and_namespace(self):
        self.words("server create night")
        self.words("server set night --class=normal")
        self.words("namespace create small --server=night")
        self.words("namespace set small --server=night --class=batch")
        self.assertEqual(self.classes("night"), [wire.NORMAL, wire.NORMAL, wire.NORMAL, wire.BATCH])
        client = self.enter(wire.CRITICAL, "night", "small")
        self.assertEqual(self.told("night")["program_class"], wire.BATCH)
        client.close()

    def test_wrong_values(self):
        expected = "expected critical, normal or batch"
        self.words("server create night")
        self.assertIn(expected, self.words("server set night --class=fast", 2)[0])
        done = self.funnel("limit", "--group", "blue", "--class", "fast")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(expected, done.stdout + done.stderr)
        done = self.funnel("run", "--class", "fast", "--", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--class is critical, normal or batch, not fast", done.stderr)


class Moves(TestCase):
    """Of running programs: the server is asked, and the program comes back with its token."""
    token, other_token = bytes(range(16)), bytes(range(1, 17))

    def order(self, program_class, *selection):
        selection = selection or ("--client", str(os.getpid()))
        return subprocess.Popen(
            [os.path.join(self.root, "bin/funnel"), "limit", *selection, "--class", program_class],
            env=self.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def moves(self):
        return [(event["number"], event["withdrawn"]) for event in self.server_events("move")]

    def follow(self, client, token, expected):
        self.followed = getattr(self, "followed", 0) + 1
        wait_until(lambda: len(self.moves()) == self.followed, "the order to the server")
        self.assertEqual(self.moves()[-1], (expected, 0))
        after = self.enter(token=token, window_base=1)
        client.close()
        return after

    def said(self, ordered):
        return ordered.communicate(timeout=harness.TIMEOUT)[0]

    def test_there_and_back(self):
        client = self.enter(token=self.token)
        since = {row["id"]: row["since"] for row in self.funnel_json("ps")}
        for program_class, lane in (("batch", "batch"), ("normal", "main"), ("batch", "batch")):
            ordered = self.order(program_class)
            client = self.follow(client, self.token, 1)
            self.said(ordered)
            self.assertEqual(self.placed(), [(program_class, lane)])
        self.assertEqual({row["id"]: row["since"] for row in self.funnel_json("ps")}, since)

    def test_use_goes_with_the_program(self):
        """Each server says 7 launches and 0.5 s of every client."""
        client = self.enter(token=self.token)
        ordered = self.order("batch")
        client = self.follow(client, self.token, 1)
        self.said(ordered)
        wait_until(lambda: [row["launches"] for row in self.funnel_json("ps")] == [14], "the sum")
        metrics = self.funnel("metrics").stdout
        self.assertRegex(metrics, r"funnel_client_launches_total\{[^}]*\} 14\n")
        sums = re.findall(r"funnel_user_launches_total\{[^}]*\} (\d+)", metrics)
        self.assertEqual(sum(map(int, sums)), 14)
        client.close()

    def test_the_program_stays_in_its_lane_after_the_end_of_its_server(self):
        client = self.enter(token=self.token)
        ordered = self.order("batch")
        client = self.follow(client, self.token, 1)
        self.said(ordered)
        batch = self.lanes()[self.user + ":batch"]
        os.kill(batch, signal.SIGKILL)
        wait_until(lambda: not alive(batch), "the end of the lane")
        client.close()
        self.enter(token=self.token, window_base=1)
        self.assertEqual(self.placed(), [("batch", "batch")])
        self.enter(token=self.other_token)
        self.assertEqual(self.placed()[-1], ("normal", "main"))

    def test_the_next_daemon_knows(self):
        client = self.enter(token=self.token)
        ordered = self.order("batch")
        client = self.follow(client, self.token, 1)
        self.said(ordered)
        daemon, batch = self.daemon_pid(), self.lanes()[self.user + ":batch"]
        os.kill(daemon, signal.SIGKILL)
        wait_until(lambda: not alive(daemon), "the end of the daemon")
        self.start("--device", "soft")
        os.kill(batch, signal.SIGKILL)
        wait_until(lambda: not alive(batch), "the end of the lane")
        client.close()
        self.enter(token=self.token, window_base=1)
        self.assertEqual(self.placed(), [("batch", "batch")])

    def test_a_class_of_the_same_lane(self):
        self.enter(token=self.token)
        self.said(self.order("critical"))
        self.assertEqual(self.placed(), [("critical", "main")])
        self.assertEqual(self.moves(), [])

    def test_another_order_withdraws_the_first(self):
        client = self.enter(token=self.token)
        first = self.order("batch")
        wait_until(lambda: self.moves() == [(1, 0)], "the order to the server")
        self.said(self.order("normal"))
        self.assertIn("stays in its lane: another order came", self.said(first))
        self.assertEqual(self.moves(), [(1, 0), (1, 1)])
        client.close()
        self.enter(token=self.token, window_base=1)
        self.assertEqual(self.placed(), [("normal", "main")])

    def test_one_that_leaves_instead(self):
        client = self.enter(token=self.token)
        ordered = self.order("batch")
        wait_until(lambda: self.moves() == [(1, 0)], "the order to the server")
        os.kill(self.servers()[0], signal.SIGKILL)
        self.assertIn("stays in its lane: it has ended", self.said(ordered))
        client.close()

    def test_of_a_user(self):
        client = self.enter(token=self.token)
        ordered = self.order("batch", "--user", str(os.getuid()))
        client = self.follow(client, self.token, 1)
        self.said(ordered)
        self.assertEqual(ordered.returncode, 0)
        self.assertEqual(self.placed(), [("batch", "batch")])
        client.close()

    def test_limits_go_with_the_program(self):
        client = self.enter(token=self.token)
        self.funnel("limit", "--client", str(os.getpid()), "--sm", "25", "--memory", "2G")
        ordered = self.order("batch")
        client = self.follow(client, self.token, 1)
        self.said(ordered)
        self.assertEqual((self.told()["share"], self.told()["memory"]), (2500, [2 << 30, 2 << 30]))
        client.close()


class Unmovable(TestCase):
    fake = "arrays"

    def test_the_reason_is_said(self):
        self.enter(token=bytes(range(16)))
        done = self.funnel("limit", "--client", str(os.getpid()), "--class", "batch")
        self.assertEqual(done.returncode, 1)
        self.assertIn("keeps its class, and stays in its lane: it has an array",
                      done.stdout + done.stderr)
        self.assertEqual(self.placed(), [("normal", "main")])
        self.assertIn("it has an array", self.control_log())


class Ahead(TestCase):
    def test_funnel_run_starts_the_lane(self):
        """While the program itself has not said a word."""
        self.funnel("run", "--class", "batch", "--", "true")
        wait_until(lambda: self.server_events("start"), "the start of a server")
        self.assertEqual(["--batch" in event["argv"] for event in self.server_events("start")], [True])


class File(harness.TestCase):
    def apply(self, text):
        path = os.path.join(self.root, "servers.toml")
        with open(path, "w") as file:
            file.write(text)
        return self.run_program("funneld", "-d", "--device", "soft", "--apply", path)

    def test_classes(self):
        done = self.apply('[servers.night]\nclass = "batch"\n[groups.blue]\nclass = "batch"\n'
                          f'[users.{os.getuid()}]\nclass = "normal"\n')
        self.assertEqual(done.returncode, 0, done.stderr)
        Client(os.path.join(self.pipe, "night", "funnel")).welcome()
        self.assertEqual(self.server_events("client", "night")[-1]["program_class"], wire.BATCH)
        for hello, expected in (({"group": b"blue"}, wire.BATCH),
                                ({"program_class": wire.CRITICAL}, wire.NORMAL)):
            self.client(**hello).welcome()
            self.assertEqual(self.server_events("client")[-1]["program_class"], expected)

    def test_wrong_ones(self):
        for text, message in (('[groups.blue]\nclass = "fast"\n', "critical, normal or batch"),
                              ('[users.0]\nclasses = "batch"\n', "there is no key 'classes'"),
                              ('[groups."b-l"]\nclass = "batch"\n', "a group is a name"),
                              ('[users.no_such_user_]\nclass = "batch"\n', "there is no user")):
            with self.subTest(text):
                done = self.apply(text)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(message, done.stdout + done.stderr)


if __name__ == "__main__":
    harness.main()
