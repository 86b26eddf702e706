#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that together have more memory than the device: they make room for each other.
Run as: test_oversubscribe.py BUILD [--device cuda]."""
import contextlib
import os
import random
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import test_recovery  # noqa: E402  (found through the path above)
from harness import TIMEOUT, wait_until  # noqa: E402
from test_recovery import FINE, GONE  # noqa: E402

FULL = "CUDA_ERROR_OUT_OF_MEMORY"


class Oversubscribe(test_recovery.TestCase):
    devices = "1:sms=24,mem=128M"
    more = {"FUNNEL_OVERSUBSCRIBE": "1", "FUNNEL_QUOTAS": "stay-seconds=1"}
    hashing = ("test_random", "test_both_at_work_at_a_time")  # the software GPU takes 2 ms a chunk

    def setUp(self):
        if self._testMethodName not in self.hashing:
            self.more = dict(self.more, FUNNEL_OFF="swap-hashes")
        super().setUp()

    def programs(self, count):
        return [self.suspend_probe() for _ in range(count)]

    def fine(self, probe, *orders):
        for order in orders:
            self.assertEqual((order, probe.ask(order)), (order, FINE), self.logs())

    def limit(self, *words):
        done = self.funnel("limit", *map(str, words))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def memory(self, probe):
        row = self.row(probe)
        return row["memory_used"] >> 20, sum(
            device["memory_swapped"] for device in row["devices"]) >> 20

    def test_two_programs_take_turns(self):
        first, second = self.programs(2)
        self.fine(first, "hold 66 1")
        self.fine(second, "hold 66 2")
        self.assertGreaterEqual(self.memory(first)[1], 66)
        for _ in range(2):
            self.fine(first, "check")
            self.assertGreaterEqual(self.memory(first)[0], 66)
            self.assertGreaterEqual(self.memory(second)[1], 66)
            self.fine(second, "check")

    def test_both_at_work_at_a_time(self):
        """They never rest, and each goes on after the other's quantum."""
        probes = self.programs(2)
        self.at_once(probes, lambda probe, number: self.fine(probe, f"hold 50 {number}"))
        self.at_once(probes, lambda probe, number: self.fine(
            probe, *["check", f"work {number} 60"] * 2))

    def holders_of_parts(self):
        """Two programs with 64 MiB each. The first one has just returned."""
        probes = self.programs(2)
        for number, probe in enumerate(probes):
            self.fine(probe, f"parts 64 {number}")
        self.fine(probes[0], "check")
        return probes

    def is_here(self, probe):
        self.assertGreaterEqual(self.memory(probe)[0], 64)

    def is_away_in_part(self, probe):
        used, swapped = self.memory(probe)
        self.assertGreaterEqual(used, 8)
        self.assertGreaterEqual(swapped, 8)
        self.assertGreaterEqual(used + swapped, 64)

    def test_a_program_leaves_in_part(self):
        probes = self.holders_of_parts()
        for turn in range(3):
            here, away = probes[turn % 2], probes[1 - turn % 2]
            self.fine(here, "check")
            self.is_here(here)
            self.is_away_in_part(away)

    def test_a_part_that_stayed_leaves_for_a_third_program(self):
        first, second = self.holders_of_parts()
        third = self.suspend_probe()
        self.fine(third, "parts 88 7")
        self.assertGreaterEqual(self.memory(second)[1], 64)
        for probe in (second, third, first):
            self.fine(probe, "check")

    def test_a_program_that_has_left_in_part_is_suspended(self):
        first, second = self.holders_of_parts()
        for _ in range(2):
            self.is_away_in_part(second)
            self.assertEqual(self.funnel("suspend", str(second.process.pid)).returncode, 0)
            self.assertGreaterEqual(self.memory(second)[1], 64)
            self.assertEqual(self.funnel("evict", str(second.process.pid)).returncode, 0)
            self.fine(second, "check")
            self.is_here(second)
            self.fine(first, "check")

    def test_a_program_that_has_left_in_part_ends(self):
        first, second = self.holders_of_parts()
        os.kill(second.process.pid, signal.SIGKILL)
        self.fine(first, "more 30 3", "check")

    def test_both_want_more_at_a_time(self):
        probes = self.programs(2)
        self.at_once(probes, lambda probe, number: self.fine(probe, f"hold 40 {number}"))
        self.at_once(probes, lambda probe, number: self.fine(
            probe, f"more 25 {number}", "check", f"work {number} 40", "check"))

    def refused(self, probe, order):
        self.assertEqual((order, probe.ask(order)), (order, FULL), self.logs())

    def test_programs_that_take_no_part(self):
        first, second = self.programs(2)
        self.limit("--client", first.process.pid, "--oversubscribe", "false")
        self.fine(first, "hold 66 1")
        self.refused(second, "hold 66 2")
        self.limit("--client", first.process.pid, "--oversubscribe", "true")
        self.limit("--client", second.process.pid, "--oversubscribe", "false")
        self.refused(second, "hold 66 2")
        self.limit("--client", second.process.pid, "--oversubscribe", "true")
        self.fine(second, "hold 66 2")
        self.fine(first, "check")
        self.fine(second, "check")

    def test_groups(self):
        self.limit("--group", "quiet", "--oversubscribe", "false")
        first, second = self.suspend_probe(FUNNEL_GROUP="quiet"), self.suspend_probe()
        self.assertFalse(self.row(first)["oversubscribes"])
        self.assertTrue(self.row(second)["oversubscribes"])
        self.fine(first, "hold 66 1")
        self.refused(second, "hold 66 2")

    def test_critical_programs_make_no_room(self):
        first, second = self.suspend_probe(FUNNEL_CLASS="critical"), self.suspend_probe()
        self.fine(first, "hold 66 1")
        self.refused(second, "hold 66 2")
        self.fine(second, "hold 36 2")
        self.fine(first, "more 30 3")
        self.assertGreaterEqual(self.memory(second)[1], 36)
        self.fine(first, "check")

    def test_a_need_beyond_all_evictions_is_refused(self):
        first, second = self.programs(2)
        self.fine(first, "hold 50 1")
        self.refused(second, "hold 150 2")
        self.fine(second, "hold 50 2")
        self.refused(second, "more 100 3")
        self.assertEqual(self.memory(first)[1], 0)
        self.limit("--quota", "stay-seconds=3600,room-seconds=0")
        self.refused(second, "more 50 3")
        self.fine(first, "check")
        self.fine(second, "check")

    def test_shared_memory_keeps_a_program_on_the_device(self):
        keeper, other = self.programs(2)
        self.fine(keeper, "hold 66 1", "share")
        self.refused(other, "hold 66 2")
        row = self.row(keeper)
        self.assertIn("CUDA IPC", row["obstacle"])
        self.assertIn("makes no room", self.funnel("why", str(keeper.process.pid)).stdout)
        self.fine(keeper, "check")
        self.fine(other, "hold 30 2", "check")

    def test_arrays_and_handles_get_room(self):
        for word in ("array", "handle"):
            first, second = self.programs(2)
            self.fine(first, "hold 66 1")
            self.fine(second, f"{word} 66")
            self.assertGreaterEqual(self.memory(first)[1], 66)
            second.end()
            self.fine(first, "check")
            first.end()

    def test_limits_hold(self):
        first, second = self.programs(2)
        self.limit("--client", first.process.pid, "--memory", "70M")
        self.fine(first, "hold 66 1")
        self.refused(first, "more 10 1")
        self.fine(second, "hold 66 2")
        self.fine(first, "check")
        self.refused(first, "more 10 1")

    def test_swapped_memory_is_shown(self):
        first, second = self.programs(2)
        self.fine(first, "hold 66 1")
        self.fine(second, "hold 66 2")
        self.assertIn("SWAPPED", self.funnel("ps").stdout)
        used = self.row(first)["usage"]
        self.assertGreaterEqual(used["evictions"], 1)
        self.assertGreaterEqual(used["swapped_out_bytes"], 66 << 20)
        self.assertTrue(self.row(first)["evicted"])
        self.assertIn("evicted", self.funnel("why", str(first.process.pid)).stdout)
        self.fine(first, "check")
        self.assertGreaterEqual(self.row(first)["usage"]["swapped_in_bytes"], 66 << 20)
        metrics = self.funnel("metrics").stdout
        self.assertRegex(metrics, r"funnel_evictions_total\{[^}]*\} [2-9]\n")
        self.assertRegex(metrics, r"funnel_swapped_bytes_total\{[^}]*\} [1-9]")
        self.assertIn("is evicted to make room for others", self.logs())

    def swap_pool(self):
        server, = self.state("status")["servers"]
        return server["swap_locked"], server["swap_used"]

    def test_host_memory_is_locked_ahead(self):
        first, second = self.programs(2)
        self.limit("--quota", "swap-ahead=64M")
        self.fine(first, "hold 55 1")
        self.assertEqual(self.swap_pool(), (0, 0))
        self.fine(second, "hold 55 2")
        wait_until(lambda: self.swap_pool() == (64 << 20, 0), "locked memory")
        self.assertIn("swap pool", self.funnel("status").stdout)
        self.fine(second, "more 50 3")
        self.assertGreaterEqual(self.swap_pool()[1], 55 << 20)
        self.fine(first, "check")
        self.fine(second, "check")

    def begin_checkpoint(self, probe, place):
        """Until the program goes on. The file is written meanwhile."""
        before, done = len(self.log("server")), []
        maker = threading.Thread(target=lambda: done.append(self.funnel(
            "checkpoint", str(probe.process.pid), place)))
        maker.start()
        wait_until(lambda: "for a checkpoint" in self.log("server")[before:] or done, "the file")
        return maker, done

    def test_memory_while_a_checkpoint_is_written(self):
        """The copy on the device takes 30 MiB, and a program needs more than what is left."""
        folder = self.new_directory("/dev/shm")
        self.limit("--quota", "room-seconds=0")
        for turn in range(2):
            probe, other = self.programs(2)
            self.fine(probe, "hold 30 1")
            self.limit("--client", probe.process.pid, "--oversubscribe", "false")
            maker, done = self.begin_checkpoint(probe, f"{folder}/{turn}")
            self.fine((probe, other)[turn % 2], "more 75 2", "check")
            maker.join(TIMEOUT)
            self.assertEqual(done[0].returncode, 0, done[0].stdout + self.logs())
            self.fine(probe, "check")
            probe.end()
            other.end()

    def test_a_program_that_is_about_to_be_locked_keeps_its_memory(self):
        """So another one makes room, though the first has as much as is missing."""
        busy, idle, third = self.probe(), self.suspend_probe(), self.suspend_probe()
        self.assertEqual((busy.opened(), busy.ask("hold")), (FINE, FINE))
        self.fine(idle, "hold 66 1")
        lock = subprocess.Popen(
            [os.path.join(test_recovery.BUILD, "bin/cuda-checkpoint"), "--action", "lock", "--pid",
             str(busy.process.pid), "--timeout", "30000"], env=self.environment)
        self.fine(third, "hold 50 2")
        self.assertGreater(self.memory(idle)[1], 0)
        self.assertIsNone(lock.poll(), "it has waited for the lock")
        self.fine(busy, "release")
        self.assertEqual(lock.wait(), 0, self.logs())

    def test_a_victim_ends_on_its_way(self):
        for seed in range(3):
            first, second = self.programs(2)
            self.fine(first, "hold 66 1")
            second.tell("hold 66 2")
            threading.Event().wait(random.Random(seed).random() / 8)
            os.kill(first.process.pid, signal.SIGKILL)
            self.assertEqual(second.receive("hold"), FINE, self.logs())
            self.fine(second, "check")
            second.end()

    def test_the_one_that_waits_ends(self):
        first = self.suspend_probe()
        self.fine(first, "hold 66 1")
        for seed in range(3):
            second = self.suspend_probe()
            second.tell("hold 66 2")
            threading.Event().wait(random.Random(seed).random() / 8)
            os.kill(second.process.pid, signal.SIGKILL)
            self.fine(first, "check")
            second.end()

    def test_random(self):
        """Programs with more memory than the device compare it with a copy, while others and the
        server are killed. They go on, or get an error, and never wrong contents."""
        dice = random.Random(int(os.environ.get("FUNNEL_TEST_SEED", "36")))
        probes = self.programs(4)
        for turn in range(int(os.environ.get("FUNNEL_TEST_TURNS", "2"))):
            answers = {}
            workers = [threading.Thread(target=self.work, args=(probe, dice.getrandbits(31), answers))
                       for probe in probes]
            for worker in workers:
                worker.start()
            threading.Event().wait(dice.random() * 3)
            if turn % 2:
                self.kill_server()
            else:
                os.kill(dice.choice(probes).process.pid, signal.SIGKILL)
            for worker in workers:
                worker.join(TIMEOUT)
                self.assertFalse(worker.is_alive(), self.logs())
            for place, probe in enumerate(probes):
                said = answers[probe]
                self.assertIn(said, (FINE, GONE, "killed"), self.logs() + probe.said())
                if said != FINE:
                    with contextlib.suppress(BrokenPipeError):  # orders that it has not read
                        probe.end()
                    probes[place] = self.suspend_probe()

    def work(self, probe, seed, answers):
        try:
            for order in ("more 35 1", f"work {seed} 25", "check"):
                if order != "more 35 1" or not hasattr(probe, "has_more"):
                    probe.has_more = True
                    answers[probe] = probe.ask(order)
                    if answers[probe] != FINE:
                        return
        except (AssertionError, OSError):
            answers[probe] = "killed"

    def at_once(self, probes, act):
        wrong = []

        def run(probe, number):
            try:
                act(probe, number)
            except AssertionError as error:
                wrong.append(error)

        threads = [threading.Thread(target=run, args=(probe, number))
                   for number, probe in enumerate(probes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIMEOUT)
        for error in wrong:
            raise error
        self.assertFalse([thread for thread in threads if thread.is_alive()], self.logs())


if __name__ == "__main__":
    test_recovery.main(sys.argv)
