# SPDX-License-Identifier: Apache-2.0
"""What clients have used, as `funnel ps --json` says it, against what they know themselves: the
device's own clock tells programs how long their kernels ran."""
import functools
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../limits"))

import limits_harness  # noqa: E402  (found through the path above)
import harness  # noqa: E402
from harness import json_lines, wait_until  # noqa: E402
from limits_harness import MIB, SMS  # noqa: E402

# Where kernels are as short as the time between two samples, their sum is exact to a few percent.
# On a busy machine a kernel's end and its notice are further apart.
CLOSE = 0.10

# A machine that is busy enough keeps the server from looking at its clock in time, now and then.
ATTEMPTS = 5


def attempted(measurement):
    """Measures again when a figure is off; one that is wrong is off each time."""
    @functools.wraps(measurement)
    def attempt(self):
        for _ in range(ATTEMPTS - 1):
            try:
                return measurement(self)
            except AssertionError as failure:
                print(f"again: {failure}", file=sys.stderr)
        return measurement(self)
    return attempt


class UsageTest(limits_harness.TestCase):
    def setUp(self):
        super().setUp()
        self.start()

    def command(self, *arguments):
        command = super().command(*arguments)
        command[command.index(next(word for word in command if "limits_probe" in word))] = \
            os.path.join(harness.BUILD, "tests/accounting/metered")
        return command

    def meter(self, *arguments):
        program = self.begin(*(str(argument) for argument in arguments))
        self.assertEqual(program.process.stdout.readline(), "ready\n")
        return program

    @staticmethod
    def play(program):
        program.process.stdin.write("\n")
        program.process.stdin.flush()

    def usage_of(self, program):
        client = next(c for c in self.funnel_json("ps") if c["pid"] == program.pid)
        return client["usage"]

    def measure(self, *arguments):
        """What the program says, and what Funnel says that it used meanwhile."""
        program = self.meter(*arguments)
        before = self.usage_of(program)
        self.play(program)
        ran, kernels, waited = program.answer()
        after = self.usage_of(program)
        used = {key: after[key] - before[key] for key in after if key != "stall_cause"}
        print(f"{' '.join(map(str, arguments))}: kernels ran {ran / 1e9:.3f} s, "
              f"{used['gpu_seconds']:.3f} s of GPU time, {used['sm_seconds']:.3f} of SM time",
              file=sys.stderr)
        self.play(program)
        program.end()
        return ran / 1e9, kernels, used, waited / 1e9

    def assert_between(self, value, ran, waited):
        """On a busy machine the device begins late, and the program notices the end late."""
        self.assertGreater(value, ran * (1 - CLOSE) - 0.012)
        self.assertLess(value, waited * (1 + CLOSE) + 0.012)

    def assert_close(self, value, expected, slack=0.012):
        self.assertAlmostEqual(value, expected, delta=expected * CLOSE + slack)

    @attempted
    def test_one_kernel(self):
        ran, kernels, used, waited = self.measure("one", 0.5)
        self.assert_between(used["gpu_seconds"], ran, waited)
        self.assert_between(used["sm_seconds"], ran, waited)
        self.assertEqual((kernels, used["launches"]), (1, 1))

    @attempted
    def test_wait_that_comes_late(self):
        """Long after the launch, when the driver has been asked whether it is done."""
        ran, _, used, waited = self.measure("late", 0.6)
        self.assert_between(used["gpu_seconds"], ran, waited)

    @attempted
    def test_kernels_with_pauses(self):
        ran, kernels, used, waited = self.measure("paced", 2)
        self.assert_between(used["gpu_seconds"], ran, waited)
        self.assertEqual(used["launches"], kernels)

    @attempted
    def test_kernels_that_no_wait_follows(self):
        ran, kernels, used, _ = self.measure("queued", 0.5)
        self.assert_between(used["gpu_seconds"], ran, ran * 1.5)
        self.assertEqual(used["launches"], kernels)

    @attempted
    def test_multiprocessors(self):
        ran, _, used, waited = self.measure("one", 0.5, 8)
        self.assert_between(used["sm_seconds"] / 8, ran, waited)
        _, _, used, _ = self.measure("one", 0.5, 4 * SMS)
        self.assert_close(used["sm_seconds"], SMS * used["gpu_seconds"], slack=0.1)

    def test_idle_client(self):
        program = self.meter("one", 0)
        before = self.usage_of(program)
        time.sleep(0.5)
        self.assertEqual(self.usage_of(program)["gpu_seconds"], before["gpu_seconds"])

    @attempted
    def test_two_clients_share(self):
        programs = [self.meter("one", 1, 12) for _ in range(2)]
        for program in programs:
            self.play(program)
        ran = [program.answer()[0] / 1e9 for program in programs]
        used = [self.usage_of(program) for program in programs]
        self.assertGreater(min(u["shared_seconds"] for u in used), 0.5)
        for own, one in zip(ran, used):
            self.assertLessEqual(one["shared_seconds"], one["gpu_seconds"] + 0.01)
            self.assertGreater(one["gpu_seconds"], own * (1 - CLOSE))
        wall = max(one["gpu_seconds"] for one in used) + 0.4
        self.assertLessEqual(sum(one["sm_seconds"] for one in used), SMS * wall)

    def test_server_that_is_killed(self):
        """What its clients had told of before stands in the journal."""
        journal = os.path.join(self.log, "usage.jsonl")
        pids = []
        for seconds in (3, 10, 30):  # a report comes every two seconds
            program = self.meter("one", 0.1)
            pids.append(program.pid)
            self.play(program)
            program.answer()
            time.sleep(seconds)
            os.kill(self.funnel_json("status")["servers"][0]["pid"], signal.SIGKILL)
            wait_until(lambda: not self.funnel_json("ps"), "the end of the server")
            if json_lines(journal):
                break
        # The journal may get its line a moment after the list of clients is empty.
        wait_until(lambda: json_lines(journal), "a line of the journal")
        line = json_lines(journal)[0]
        self.assertIn(line["pid"], pids)
        self.assertEqual((line["status"], line["launches"]), (806, 1))
        self.assertGreater(line["devices"][0]["gpu_seconds"], 0)

    def test_bytes_each_way(self):
        program = self.meter("copies", 0)
        before = self.usage_of(program)
        self.play(program)
        program.answer()
        after = self.usage_of(program)
        way = {key: after[key] - before[key] for key in after if key.startswith("copied")}
        self.assertEqual(way, {"copied_to_device_bytes": 16 * MIB,
                               "copied_from_device_bytes": 8 * MIB,
                               "copied_within_bytes": 4 * MIB})


if __name__ == "__main__":
    harness.main()
