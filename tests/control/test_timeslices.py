# SPDX-License-Identifier: Apache-2.0
"""Time slices of lanes: that of a batch lane is short, and longer while the main lane never rests."""
import json
import os

import harness
import wire
from harness import wait_until
from test_lanes import BATCH_US, MAIN_US
from test_lanes import TestCase as LaneTestCase


class Slices(LaneTestCase):
    def test_of_two_lanes(self):
        self.enter(wire.CRITICAL)
        self.enter(wire.BATCH)
        lanes = self.lanes()
        wait_until(lambda: (self.slices(lanes[self.user]), self.slices(lanes[self.user + ":batch"])) ==
                   ([MAIN_US], [BATCH_US]), "two slices")

    def test_beside_another_service(self):
        """A long slice would take that one's time."""
        self.words("server create night")
        self.enter(wire.NORMAL, "night")
        self.enter(wire.NORMAL)
        self.enter(wire.BATCH)
        batch = self.lanes()[self.user + ":batch"]
        wait_until(lambda: self.slices(batch) == [BATCH_US], "its slice")
        self.assertEqual(self.slices(self.lanes()[self.user]), [])
        self.assertEqual(self.server_events("timeslice", "night"), [])

    def test_beside_percentages(self):
        """They divide the time of the main lanes, and a batch lane takes part in no division."""
        self.words(f"server set {self.user} --timeslice-pct=75")
        self.enter(wire.NORMAL)
        self.enter(wire.BATCH)
        lanes = self.lanes()
        wait_until(lambda: (self.slices(lanes[self.user])[-1:],
                            self.slices(lanes[self.user + ":batch"])) == ([7500], [BATCH_US]),
                   "the slices")


class Share(LaneTestCase):
    """What a batch lane gets while the main lane never rests."""
    variables = {}
    slice_us = 2222  # of 22222

    def setUp(self):
        harness.TestCase.setUp(self)
        self.environment.update(self.variables)
        self.start("--device", "soft")
        self.enter(wire.NORMAL)
        self.enter(wire.BATCH)
        self.batch, self.main = (self.lanes()[self.user + lane] for lane in (":batch", ""))

    def set_load(self, main, batch, held=0):
        """Waits until both lanes have said so for more than four seconds of a real one. The daemon counts
        their heartbeats, and looks at no clock."""
        path = os.path.join(self.root, "bin/load.json")
        with open(path + ".new", "w") as file:
            json.dump({"main": main, "batch": batch, "held": held, "pause": 0.02}, file)
        os.replace(path + ".new", path)
        before = self.beats()
        wait_until(lambda: all(now >= old + 10 for now, old in zip(self.beats(), before)), "heartbeats")

    def beats(self):
        events = [event["server"] for event in self.server_events("heartbeat")]
        return [events.count(lane) for lane in (self.main, self.batch)]

    def test_while_the_main_lane_never_rests(self):
        self.set_load(100, 100)
        wait_until(lambda: self.slices(self.batch) == [BATCH_US, self.slice_us], "a longer slice")
        self.set_load(60, 100)
        wait_until(lambda: self.slices(self.batch) == [BATCH_US, self.slice_us, BATCH_US],
                   "the short slice")
        self.assertEqual(set(self.slices(self.main)), {MAIN_US})

    def test_a_busy_batch_lane_alone(self):
        """The main lane hears of its work."""
        self.set_load(89, 100)
        self.assertEqual(self.slices(self.batch), [BATCH_US])
        self.set_load(89, 0)
        told = lambda: [event["beside_batch"] for event in self.server_events("timeslice")
                        if event["server"] == self.main]
        wait_until(lambda: told() == [0, 1, 0], "what the main lane hears")


class ShareOfThirty(Share):
    variables = {"FUNNEL_BATCH_SHARE": "30"}
    slice_us = 8571  # of 28571

    def test_requests_that_follow_closely(self):
        """Both slices are shorter, and the main lane hears that the batch lane has its share."""
        def await_both(batch, main):
            wait_until(lambda: (self.slices(self.batch)[-1], self.told_main()) == (batch, main), "both slices")

        self.set_load(50, 100, held=1)
        await_both(4285, (10000, 1, 1))
        self.set_load(50, 100)
        await_both(BATCH_US, (MAIN_US, 1, 0))

    def told_main(self):
        return [(event["us"], event["beside_batch"], event["share"])
                for event in self.server_events("timeslice") if event["server"] == self.main][-1]


class ShareOfTooMuch(Share):
    variables = {"FUNNEL_BATCH_SHARE": "91", "FUNNEL_BATCH_SLICE": "0"}

    def test_a_busy_batch_lane_alone(self):
        self.assertIn('FUNNEL_BATCH_SHARE: "91" is not a number of 0 to 90; batch lanes get 10 %',
                      self.control_log())
        self.assertIn('FUNNEL_BATCH_SLICE: "0" is not a number of 50 to 20000; batch lanes get 50 us',
                      self.control_log())


class LongerSlice(Share):
    variables = {"FUNNEL_BATCH_SLICE": "1000"}

    def test_while_the_main_lane_never_rests(self):
        self.set_load(100, 100)
        wait_until(lambda: self.slices(self.batch) == [1000, self.slice_us], "a longer slice")

    def test_a_busy_batch_lane_alone(self):
        self.set_load(89, 100)
        self.assertEqual(self.slices(self.batch), [1000])


class NoShare(Share):
    variables = {"FUNNEL_BATCH_SHARE": "0"}

    def test_while_the_main_lane_never_rests(self):
        self.set_load(100, 100)
        self.assertEqual(self.slices(self.batch), [BATCH_US])


class Refused(LaneTestCase):
    fake = "no-slices"

    def test_the_status_says_so(self):
        self.enter(wire.NORMAL)
        self.assertIn("the driver sets no time slices", self.funnel("status").stdout)
        server, = self.funnel_json("status")["servers"]
        self.assertTrue(server["time_slices_refused"])


if __name__ == "__main__":
    harness.main()
