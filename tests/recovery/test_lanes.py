#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two lanes of one user on a device: what ends in one leaves the other running, and who moves comes
back in its lane. Run as: test_lanes.py BUILD [--device cuda]."""
import os
import signal
import subprocess
import sys

import test_recovery
from harness import TIMEOUT, wait_until
from test_recovery import FAULT, FINE, GONE

LANES = ("main", "batch")
CLASS = {"main": "normal", "batch": "batch"}


def scheduling(pid):
    """Nice value and policy of each of its threads: proc(5)."""
    found = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/stat") as status:
            fields = status.read().rpartition(")")[2].split()
            found.append((int(fields[16]), int(fields[38])))
    return found


class TestCase(test_recovery.TestCase):
    def servers(self):
        """The process of each lane."""
        return {server["lane"]: server["pid"] for server in self.state("servers")}

    def funnel_path(self):
        return os.path.join(test_recovery.BUILD, "bin/funnel")

    def enter(self, lane, **options):
        probe = self.probe(FUNNEL_CLASS=CLASS[lane], **options)
        self.assertEqual(probe.opened(), FINE)
        self.assertEqual(probe.ask("round"), FINE)
        return probe

    def lane_of(self, probe):
        return [client["lane"] for client in self.state("ps") if client["pid"] == probe.process.pid]

    def other(self, lane):
        return LANES[lane == "main"]

    def end_server(self, lane, server):
        wait_until(lambda: server not in self.server_pids(), f"the end of the {lane} lane")


class Lanes(TestCase):
    def test_results_and_scheduling(self):
        """On the software GPU the operating system's scheduler is what sets lanes apart."""
        probes = {lane: self.enter(lane) for lane in LANES}
        servers = self.servers()
        self.assertEqual(sorted(servers), ["batch", "main"])
        for lane, probe in probes.items():
            self.assertEqual(self.lane_of(probe), [lane])
            for word in ("launch", "synchronize", "look", "graph", "callback", "managed"):
                self.assertEqual((word, probe.ask(word)), (word, FINE), probe.said())
        self.assertEqual(set(scheduling(servers["main"])), {(os.nice(0), os.SCHED_OTHER)})
        expected = (min(os.nice(0) + 10, 19), os.SCHED_BATCH)
        others = [one for one in scheduling(servers["batch"]) if one != expected]
        self.assertLessEqual(len(others), 1, "but for a thread of a sanitizer all are the same")

    def test_bad_words_are_said(self):
        probe = self.probe(FUNNEL_CLASS="fast", FUNNEL_ISOLATE="each")
        self.assertEqual(probe.opened(), FINE)
        self.assertEqual(self.lane_of(probe), ["main"])
        self.assertIn('FUNNEL_CLASS: "fast" is not critical, normal or batch; ignored', probe.said())
        self.assertIn('FUNNEL_ISOLATE: "each" is not none, class, user,', probe.said())

    def share(self, owner, opener):
        done = subprocess.run(
            [self.funnel_path(), "run", "-q", "--no-start", "--",
             os.path.join(test_recovery.BUILD, "tests/recovery/lane_pair"), owner, opener],
            env=self.environment, timeout=TIMEOUT, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout + self.logs())

    def test_shared_memory(self):
        """By descriptors it works between lanes; cuIpc's names belong to a server."""
        for owner, opener in (("normal", "batch"), ("batch", "critical")):
            with self.subTest(opener):
                self.share(owner, opener)
        self.assertIn("No program of this user and server has given out this IPC handle", self.log("server"))
        self.assertNotIn("moves to the lane", self.log("control"))

    def test_a_normal_program_moves_to_the_lane_of_a_name(self):
        self.share("batch", "normal")
        self.assertIn("moves to the lane batch, because it has a name of cuIpc from there", self.log("control"))
        wait_until(lambda: "has moved to the server" in self.log("control"), "the word of the server that it left")


class MoveTestCase(TestCase):
    def begin_order(self, probe, program_class):
        return subprocess.Popen(
            [self.funnel_path(), "limit", "--client", str(probe.process.pid), "--class", program_class],
            env=self.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def order(self, probe, program_class, word="synchronize"):
        """The program has its idle point in the next call that it makes."""
        with self.begin_order(probe, program_class) as ordered:
            while ordered.poll() is None:
                self.assertEqual(probe.ask(word), FINE, probe.said() + self.logs())
            return ordered.returncode, ordered.stdout.read()

    def follow(self, probe, program_class, lane):
        status, said = self.order(probe, program_class)
        self.assertEqual(status, 0, said + probe.said() + self.logs())
        self.await_lane(probe, lane)
        self.assertEqual(self.row(probe)["class"], program_class)

    def await_lane(self, probe, lane):
        wait_until(lambda: probe.ask("synchronize") == FINE and self.lane_of(probe) == [lane],
                   "the move" + self.logs())

    def check(self, probe, *words):
        for word in words:
            self.assertEqual((word, probe.ask(word)), (word, FINE), probe.said() + self.logs())

    def stays(self, probe, reason):
        status, said = self.order(probe, "batch")
        self.assertEqual(status, 1, said + self.logs())
        self.assertIn("keeps its class, and stays in its lane: " + reason, said)
        self.assertEqual(self.lane_of(probe), ["main"])


class Moves(MoveTestCase):
    """Of running programs, ordered by an operator."""

    def test_there_and_back(self):
        probe, neighbor = self.enter("main"), self.enter("main")
        number = self.row(probe)["id"]
        for program_class, lane in (("batch", "batch"), ("critical", "main"), ("normal", "main"),
                                    ("batch", "batch")):
            with self.subTest(program_class):
                self.follow(probe, program_class, lane)
                self.assertEqual(self.row(probe)["id"], number)
                for word in ("look", "round", "graph", "callback", "managed", "pinned", "allocate",
                             "threads", "module", "round", "look"):
                    self.assertEqual((word, probe.ask(word)), (word, FINE), probe.said() + self.logs())
        self.assertEqual(neighbor.ask("round"), FINE)
        self.assertEqual(self.lane_of(neighbor), ["main"])

    def test_with_work_in_flight(self):
        """It is waited for, and what the server has not read goes with the program."""
        probe = self.enter("main")
        self.assertEqual(probe.ask("hold"), FINE)
        for _ in range(60):
            self.assertEqual(probe.ask("launch"), FINE)
        ordered = self.begin_order(probe, "batch")
        wait_until(lambda: "batch" in self.servers(), "the batch lane")
        for _ in range(3):
            self.assertEqual(probe.ask("launch"), FINE, "the wait for the work has a bound")
        self.assertEqual(self.lane_of(probe), ["main"])
        self.assertEqual(probe.ask("release"), FINE)
        self.await_lane(probe, "batch")
        ordered.communicate()
        for word in ("look", "round"):
            self.assertEqual((word, probe.ask(word)), (word, FINE), probe.said())

    def test_beside_host_functions(self):
        """The program stands still for the move until they have run."""
        probe = self.enter("main")
        for program_class, lane in (("batch", "batch"), ("normal", "main")) * 2:
            status, said = self.order(probe, program_class, "callbacks")
            self.assertEqual((status, self.lane_of(probe)), (0, [lane]), said + self.logs())
        self.check(probe, "look", "round")

    def test_comes_back_in_its_lane(self):
        probe = self.enter("main")
        self.follow(probe, "batch", "batch")
        batch = self.servers()["batch"]
        os.kill(batch, signal.SIGKILL)
        self.end_server("batch", batch)
        for word in ("look", "round"):
            self.assertEqual((word, probe.ask(word)), (word, FINE), probe.said())
        self.assertEqual(self.lane_of(probe), ["batch"])

    def test_programs_with_obstacles_stay(self):
        probe = self.enter("main")
        self.assertEqual(probe.ask("array"), FINE)
        self.stays(probe, "it has an array")
        self.assertEqual(self.row(probe)["class"], "normal")
        self.assertEqual(probe.ask("round"), FINE)
        why = self.funnel("why", "--client", str(probe.process.pid)).stdout
        self.assertIn("it has an array", why)

    def test_limits_go_with_the_program(self):
        probe = self.enter("main")
        self.funnel("limit", "--client", str(probe.process.pid), "--priority", "1")
        self.follow(probe, "batch", "batch")
        self.assertEqual(self.row(probe)["priority"], 1)


class Share(TestCase):
    def test_main_lane_that_never_rests(self):
        busy, batch = self.enter("main"), self.enter("batch")
        for word in ("hold", "arrive"):
            self.assertEqual(busy.ask(word), FINE)
        wait_until(lambda: "gets 10 % of the GPU's time while the main lane never rests" in
                   self.log("control"), "the message")
        self.assertEqual(batch.ask("round"), FINE, batch.said())
        for word in ("release", "synchronize", "look"):
            self.assertEqual((word, busy.ask(word)), (word, FINE), busy.said())


class Hold(MoveTestCase):
    """A critical program beside a batch lane at work: the GPU is held behind its requests."""

    def setUp(self):
        super().setUp()
        self.batch = self.enter("batch")
        self.check(self.batch, "hold", "arrive")
        self.critical = self.enter_critical()
        self.await_holds(self.critical, 1)

    def enter_critical(self):
        probe = self.probe(FUNNEL_CLASS="critical")
        self.assertEqual(probe.opened(), FINE)
        return probe

    def wait_behind_kernel(self, probe):
        """A request of a kernel that does not end: the hold behind it is pending."""
        self.check(probe, "hold", "await", "arrive")

    def await_holds(self, probe, servers):
        """So many servers have had some. A GPU may be done with shorter requests before they are waited for."""
        def is_held():
            self.wait_behind_kernel(probe)
            self.check(probe, "release", "join")
            return self.log("server").count("the GPU is held behind requests of critical") == servers
        wait_until(is_held, "a hold")

    def check_end(self):
        """The batch lane has lost nothing, and the main lane has room and holds."""
        self.check(self.batch, "release", "synchronize", "look", "round")
        self.check(self.enter("main"), "round")
        self.assertNotIn("no more holds", self.log("server"))

    def moves(self):
        self.wait_behind_kernel(self.critical)
        with self.begin_order(self.critical, "batch"):
            self.check(self.critical, "release", "join")
            self.await_lane(self.critical, "batch")
        self.check(self.critical, "look", "round")
        self.follow(self.critical, "critical", "main")
        self.check(self.critical, "look", *["round"] * 8)

    def is_suspended(self):
        self.wait_behind_kernel(self.critical)
        pid = str(self.critical.process.pid)
        with subprocess.Popen([self.funnel_path(), "suspend", pid], env=self.environment,
                              stdout=subprocess.DEVNULL) as order:
            self.check(self.critical, "release")
            self.assertEqual(order.wait(TIMEOUT), 0)
        self.assertTrue(self.row(self.critical)["suspended"])
        self.assertEqual(self.funnel("resume", pid).returncode, 0)
        self.check(self.critical, "join", "look", *["round"] * 8)

    def is_killed(self):
        """The software GPU ends its kernel. Else the next program gets another server."""
        self.wait_behind_kernel(self.critical)
        self.critical.process.kill()
        self.critical.process.wait()
        wait_until(lambda: len(self.state("ps")) == 1 or "its work still runs" in self.log("server"), "its end")
        self.check(self.enter_critical(), *["round"] * 8)

    def test_the_program_moves_is_suspended_and_is_killed(self):
        for change in self.moves, self.is_suspended, self.is_killed:
            change()
        self.check_end()

    def check_fault(self):
        servers, offender = self.servers(), self.enter("main", program=self.other_program())
        self.assertEqual(offender.ask("fault"), FAULT)
        wait_until(lambda: f"Server {servers['main']} exited" in self.log("control"), "the end of the main lane")
        self.assertEqual(self.servers()["batch"], servers["batch"])
        return offender

    def test_the_server_faults(self):
        """The program has no work then. It goes on in the next server, with holds."""
        self.check(self.critical, *["round"] * 8)
        self.check_fault()
        self.check(self.critical, "look")
        self.await_holds(self.critical, 2)
        self.check_end()

    def test_the_server_faults_in_a_request(self):
        self.wait_behind_kernel(self.critical)
        offender = self.check_fault()
        self.assertEqual(self.critical.ask("join"), FAULT)
        for probe in offender, self.critical:  # new ones are refused until then
            probe.process.kill()
            probe.process.wait()
        self.await_holds(self.enter_critical(), 2)
        self.check_end()


class Fate(TestCase):
    def check_fault(self, lane):
        idle, offender = self.enter(lane), self.enter(lane, program=self.other_program())
        neighbor, busy = self.enter(self.other(lane)), self.enter(self.other(lane))
        servers = self.servers()
        for word in ("hold", "arrive"):
            self.assertEqual(busy.ask(word), FINE)
        self.assertEqual(offender.ask("fault"), FAULT)
        self.end_server(lane, servers[lane])
        self.assertEqual(neighbor.ask("round"), FINE, neighbor.said())
        for word in ("release", "synchronize", "look", "round"):
            self.assertEqual((word, busy.ask(word)), (word, FINE), busy.said())
        self.assertEqual(self.servers()[self.other(lane)], servers[self.other(lane)])
        for word in ("look", "round"):
            self.assertEqual((word, idle.ask(word)), (word, FINE), idle.said())
        self.assertEqual(self.lane_of(idle), [lane])
        self.assertEqual([self.lane_of(probe) for probe in (neighbor, busy)], [[self.other(lane)]] * 2)

    def test_fault_in_the_batch_lane(self):
        self.check_fault("batch")

    def test_fault_in_the_main_lane(self):
        self.check_fault("main")

    def check_kill(self, lane):
        idle, victim = self.enter(lane), self.enter(lane)
        busy = self.enter(self.other(lane))
        servers = self.servers()
        for probe in (victim, busy):
            for word in ("hold", "arrive"):
                self.assertEqual(probe.ask(word), FINE)
        os.kill(servers[lane], signal.SIGKILL)
        self.end_server(lane, servers[lane])
        for word in ("release", "synchronize", "look", "round"):
            self.assertEqual((word, busy.ask(word)), (word, FINE), busy.said())
        self.assertEqual(victim.ask("synchronize"), GONE)
        for word in ("look", "round"):
            self.assertEqual((word, idle.ask(word)), (word, FINE), idle.said())
        self.assertEqual(self.lane_of(idle), [lane])
        self.assertEqual(self.servers()[self.other(lane)], servers[self.other(lane)])

    def test_killed_batch_lane(self):
        self.check_kill("batch")

    def test_killed_main_lane(self):
        self.check_kill("main")


class NewPrograms(TestCase):
    options = ["--isolate", "new"]

    def enter_new(self, program=None):
        probe = self.enter("main", program=program or self.other_program())
        lane, = self.lane_of(probe)
        self.assertTrue(lane.startswith("new_"), lane)
        return probe, lane

    def known(self):
        """The second start of a program that has ended well."""
        program = self.other_program()
        first = self.enter_new(program)[0]
        first.process.stdin.close()
        self.assertEqual(first.process.wait(TIMEOUT), 0)
        wait_until(lambda: f"Client {first.process.pid} (id 1)" in self.log("control"), "its end")
        second = self.enter("main", program=program)
        self.assertEqual(self.lane_of(second), ["main"])
        return second

    def test_a_move_is_no_end(self):
        """A program that has moved to another lane has not ended yet, so it is new still."""
        program = self.other_program()
        first = self.enter_new(program)[0]
        self.funnel("limit", "--client", str(first.process.pid), "--class", "batch")
        wait_until(lambda: first.ask("look") == FINE and
                   any(lane.startswith("batch_new_") for lane in self.lane_of(first)), "the move")
        self.assertEqual(first.ask("round"), FINE)
        self.enter_new(program)

    def test_a_fault_harms_no_busy_program(self):
        """Neither another new one, nor one that is known."""
        busy = [self.known()] + [self.enter_new()[0] for _ in range(2)]
        offender, lane = self.enter_new()
        server = self.servers()[lane]
        for probe in busy:
            for word in ("hold", "arrive"):
                self.assertEqual(probe.ask(word), FINE)
        self.assertEqual(offender.ask("fault"), FAULT)
        self.end_server(lane, server)
        for probe in busy:
            for word in ("release", "synchronize", "look", "round"):
                self.assertEqual((word, probe.ask(word)), (word, FINE), probe.said())


if __name__ == "__main__":
    test_recovery.main(sys.argv)
