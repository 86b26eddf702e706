# SPDX-License-Identifier: Apache-2.0
"""Standby servers as lanes: for programs that come beside long kernels, and for batch programs."""
import itertools
import json
import os
import re

import harness
import wire
from harness import Client, wait_until
from test_lanes import BATCH_US
from test_lanes import TestCase as LaneTestCase


def await_new_program_in(case, lane):
    """Programs start until the daemon knows of the long kernel: it counts by its own clock."""
    numbers = itertools.count()

    def one_starts_there():
        case.enter(command=b"python3\0new%d.py\0" % next(numbers))
        return case.placed()[-1] == ("normal", lane)
    wait_until(one_starts_there, f"a program in the lane {lane}")


class SpareLane(LaneTestCase):
    """New programs beside long kernels in the main lane."""
    lane = "spare"
    variables = {"FUNNEL_SPARE_LANE": "1"}

    def setUp(self):
        harness.TestCase.setUp(self)
        self.environment.update(self.variables)
        self.start("--device", "soft")

    def begin(self):
        """Every server says that a long kernel runs."""
        self.enter(command=b"python3\0long.py\0")
        path = os.path.join(self.root, "bin/load.json")
        with open(path, "w") as file:
            json.dump({"main": 100, "batch": 0, "long": 1}, file)
        wait_until(lambda: len(self.server_events("heartbeat")) > 10, "heartbeats")

    def test_a_new_program_starts_there(self):
        self.begin()
        await_new_program_in(self, self.lane)

    def test_a_process_of_a_job_starts_in_the_main_lane(self):
        self.begin()
        self.enter(command=b"python3\0new.py\0", job=1)
        self.assertEqual(self.placed()[-1], ("normal", "main"))

    def test_a_program_that_the_main_lane_has_had(self):
        self.enter(command=b"python3\0known.py\0").close()
        wait_until(lambda: not self.placed(), "its end")
        self.begin()
        self.enter(command=b"python3\0known.py\0")
        self.assertEqual(self.placed()[-1], ("normal", "main"))


class NoSpareLane(SpareLane):
    lane = "main"
    variables = {}


class WarmLane(LaneTestCase):
    """With --spare the standby of the main lane becomes the spare lane."""
    options = ("--spare",)

    def standby(self, *others):
        found = []

        def is_ready():
            text = self.funnel("status").stdout
            found[:] = map(int, re.findall(r"^  a standby server \((\d+)\) is ready", text, re.M))
            return found and found[0] not in others
        wait_until(is_ready, "a standby")
        return found[0]

    def begin(self, **load):
        self.program = self.enter(command=b"python3\0long.py\0", token=bytes(range(16)))
        standby = self.standby()
        with open(os.path.join(self.root, "bin/load.new"), "w") as file:
            json.dump({"main": 100, "batch": 0, **load}, file)
        os.rename(file.name, os.path.join(self.root, "bin/load.json"))
        return standby

    def test_a_new_program_starts_there(self):
        standby = self.begin(long=1)
        await_new_program_in(self, "spare")
        self.assertEqual(self.lanes()[self.user + ":spare"], standby)
        self.assertIn(f"Server {standby}, which has stood by", self.control_log())
        self.standby(standby)

    def test_a_program_that_asks_moves_there(self):
        standby = self.begin(wish=1)
        self.moves_to_the_spare_lane()
        self.assertEqual(self.lanes()[self.user + ":spare"], standby)

    def moves_to_the_spare_lane(self):
        wait_until(lambda: any(not event["withdrawn"] for event in self.server_events("move")), "the order")
        self.assertIn("moves to the spare lane, because it is about to load code", self.control_log())
        moved = Client(os.path.join(self.pipe, "funnel"), token=bytes(range(16)), window_base=1 << 44)
        self.addCleanup(moved.close)
        self.assertEqual(moved.welcome(), (0, ""))
        self.program.close()
        wait_until(lambda: self.placed() == [("normal", "spare")], "the move")
        wait_until(lambda: "has moved to the server" in self.control_log(), "the end of the move")

    def test_its_next_server_is_the_main_lane(self):
        self.begin(wish=1)
        self.moves_to_the_spare_lane()
        again = Client(os.path.join(self.pipe, "funnel"), token=bytes(range(16)), window_base=1 << 44)
        self.addCleanup(again.close)
        self.assertEqual(again.welcome(), (0, ""))
        self.assertEqual(self.told()["server"], self.lanes()[self.user])


    def test_the_batch_lane_starts(self):
        """On the software GPU, where the threads of a batch lane are nicer from the start."""
        standby = self.begin()
        self.enter(wire.BATCH)
        self.assertNotEqual(self.lanes()[self.user + ":batch"], standby)


class NoWarmLane(WarmLane):
    """No client has seen a long kernel for long enough, so no server is started."""
    variables = {"FUNNEL_OFF": "standby"}

    def setUp(self):
        harness.TestCase.setUp(self)
        self.environment.update(self.variables)
        self.start("--device", "soft", *self.options)

    def standby(self, *others):
        return None

    def test_a_program_that_asks_moves_there(self):
        self.begin(wish=1)
        wait_until(lambda: self.server_events("move"), "the answer")
        self.assertEqual([event["withdrawn"] for event in self.server_events("move")], [1])
        self.assertEqual(self.placed(), [("normal", "main")])

    test_a_new_program_starts_there = test_its_next_server_is_the_main_lane = None
    test_the_batch_lane_starts = None


class WarmBatchLane(LaneTestCase):
    """On NVIDIA's driver the standby becomes the batch lane as well."""
    options = ("--spare",)
    variables = {"FUNNEL_FAKE_DRIVER": "1"}
    setUp, standby = NoWarmLane.setUp, WarmLane.standby

    def test_the_standby_becomes_the_batch_lane(self):
        self.enter(wire.NORMAL)
        self.assertTrue(self.told()["is_main_lane"])
        standby = self.standby()
        self.enter(wire.BATCH)
        self.assertEqual(self.lanes()[self.user + ":batch"], standby)
        self.assertFalse(self.told()["is_main_lane"], "its clients ask for no spare lane")
        self.assertEqual(self.placed(), [("normal", "main"), ("batch", "batch")])
        self.assertIn("is the lane batch from now on", self.control_log())
        wait_until(lambda: self.slices(standby)[-1:] == [BATCH_US], "its slice")
        self.standby(standby)


class Spare(LaneTestCase):
    options = ("--spare",)

    def test_the_main_lane_alone_has_a_standby(self):
        self.enter(wire.NORMAL)
        self.enter(wire.BATCH)
        lanes = self.lanes()
        wait_until(lambda: "Standby server" in self.control_log(), "a standby")
        standby, = [server for server in self.funnel_json("status")["servers"] if server["standby_pid"]]
        self.assertEqual(standby["name"], self.user)
        self.assertIn("--spare", self.arguments(lanes[self.user]))
        self.assertNotIn("--spare", self.arguments(lanes[self.user + ":batch"]))
        self.assertEqual(self.control_log().count("Starting standby server"), 1)


if __name__ == "__main__":
    harness.main()
