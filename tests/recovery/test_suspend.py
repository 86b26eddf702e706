#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs whose memory leaves the device and returns: by suspend and resume, beside the ends of
programs, servers and daemons. Run as: test_suspend.py BUILD [--device cuda]."""
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import test_recovery  # noqa: E402  (found through the path above)
from harness import TIMEOUT, alive, wait_until  # noqa: E402
from test_recovery import FINE, GONE  # noqa: E402


class MovedMemory(test_recovery.TestCase):
    """What tests of suspended and of checkpointed programs share."""
    devices = "1:sms=24,mem=256M"

    def order(self, *words):
        done = self.funnel(*map(str, words))
        return done.returncode, done.stdout + done.stderr

    def fine(self, *words):
        status, said = self.order(*words)
        self.assertEqual(status, 0, said + self.logs())

    def suspend(self, probe):
        self.fine("suspend", probe.process.pid)

    def resume(self, probe):
        self.fine("resume", probe.process.pid)

    def refused(self, reason, *words):
        status, said = self.order(*words)
        self.assertIn(reason, said)
        self.assertEqual(status, 1)

    def memory(self, probe):
        row = self.row(probe)
        return row["memory_used"], sum(device["memory_swapped"] for device in row["devices"])

    def suspend_to_file(self, probe):
        self.fine("suspend", "--to", self.directory(), probe.process.pid)

    def check_resumed(self, probe, word="check"):
        asker, answers = probe.ask_later(word)
        wait_until(lambda: answers or (self.row(probe) or {}).get("suspended"), "an answer")
        if not answers:
            self.order("resume", probe.process.pid)
        asker.join(TIMEOUT)
        return answers[0]

    def directory(self):
        return self.new_directory("/dev/shm")

    def daemon_pid(self):
        return json.loads(self.funnel("status", "--json").stdout)["pid"]

    def small_file_system(self):
        directory = self.directory()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4M", "none", directory],
                                 capture_output=True)
        if mounted.returncode:
            self.skipTest("a small file system needs mount()")
        self.addCleanup(subprocess.run, ["umount", "-l", directory], check=True)
        return directory

    def damage(self, path):
        with open(path, "r+b") as file:
            file.seek(5 << 20)
            file.write(b"damage")


class CleanMemory(MovedMemory):
    """What has not changed since the last return is not copied again."""

    def copies(self):
        """What server.log has of each time that a program left, as MiB copied and all that there were."""
        return [(int(copied), int(there)) for there, copied in re.findall(
            r"(\d+) MiB are in host memory, (\d+) of them copied", self.log("server"))]

    def leave(self, probe):
        before = len(self.copies())
        self.suspend(probe)
        wait_until(lambda: len(self.copies()) > before, "the line of the log")
        return self.copies()[-1]

    def leave_and_return(self, probe):
        copied, there = self.leave(probe)
        self.resume(probe)
        return copied, there

    def kept(self):
        return sum(server["swap_kept"] for server in json.loads(
            self.funnel("status", "--json").stdout)["servers"]) >> 20

    def holder(self, seed):
        probe = self.suspend_probe()
        self.assertEqual(probe.ask(f"hold 40 {seed}"), FINE)
        return probe

    def test_only_changes_are_copied(self):
        probe = self.holder(1)
        copied, there = self.leave_and_return(probe)
        self.assertEqual(copied, there, self.logs())
        self.assertGreaterEqual(there, 40)
        self.row(probe)
        self.assertEqual(self.kept(), there)
        self.assertEqual(self.leave_and_return(probe), (0, there), self.logs())
        for words, mebibytes in ((["check"], 0), (["change 7 1"], 2), (["change 39 5"], 2),
                                 (["change 6 2", "change 7 3", "change 20 4"], 4)):
            for word in words:
                self.assertEqual(probe.ask(word), FINE)
            self.assertEqual(self.leave_and_return(probe), (mebibytes, there), self.logs())
            self.assertEqual(probe.ask("check"), FINE)
        self.assertEqual(probe.ask("rush 1"), FINE)
        self.assertEqual(probe.ask("finish"), FINE)
        self.assertGreaterEqual(self.leave_and_return(probe)[0], 40)
        self.assertEqual(probe.ask("check"), FINE)
        probe.end()
        wait_until(lambda: self.kept() == 0, "the end of what is kept")
        self.assertNotIn("is copied again", self.log("server"))

    def test_the_pool_takes_what_is_kept(self):
        first, second = self.holder(1), self.holder(2)
        self.fine("limit", "--quota", "swap-memory=64M")
        self.row(first)
        self.leave_and_return(first)
        self.assertGreaterEqual(self.kept(), 40)
        for probe in (second, first, second):
            copied, there = self.leave(probe)
            self.assertEqual((copied, self.kept()), (there, 0))
            self.resume(probe)
            for each in (first, second):
                self.assertEqual(each.ask("check"), FINE)


class NoHashes(CleanMemory):
    more = {"FUNNEL_OFF": "swap-hashes"}
    test_the_pool_takes_what_is_kept = None

    def test_only_changes_are_copied(self):
        probe = self.holder(1)
        for _ in range(3):
            copied, there = self.leave_and_return(probe)
            self.assertEqual(copied, there)
            self.assertEqual(probe.ask("check"), FINE)


class FullDevice(MovedMemory):
    """The device has memory for one of two programs."""
    devices = "1:sms=24,mem=96M"

    def test_another_program_uses_the_memory(self):
        first = self.suspend_probe()
        self.assertEqual(first.ask("hold 56 1"), FINE)
        self.suspend(first)
        second = self.suspend_probe()
        self.assertEqual(second.ask("hold 56 2"), FINE, self.logs())
        self.refused("too little free memory", "resume", first.process.pid)
        self.assertEqual(second.ask("check"), FINE)
        self.suspend(second)
        self.resume(first)
        self.assertEqual(first.ask("check"), FINE)
        first.end()
        wait_until(lambda: self.row(first) is None, "the end of the session")
        self.resume(second)
        self.assertEqual(second.ask("check"), FINE)

    def test_an_evicted_program_waits_for_memory(self):
        first, second = self.suspend_probe(), self.suspend_probe()
        self.assertEqual(first.ask("hold 56 1"), FINE)
        self.fine("evict", first.process.pid)
        self.assertEqual(second.ask("hold 56 2"), FINE, self.logs())
        asker, answers = first.ask_later("check")
        wait_until(lambda: "is not resumed" in self.logs(), "a return without memory")
        self.assertEqual(answers, [])
        self.assertTrue(self.row(first)["evicted"])
        self.fine("evict", second.process.pid)
        asker.join(TIMEOUT)
        self.assertEqual(answers, [FINE], self.logs())
        self.assertEqual(self.logs().count("is not resumed"), 1)
        first.end()
        self.assertEqual(second.ask("check"), FINE)

    def test_the_program_ends(self):
        first, second = self.suspend_probe(), self.suspend_probe()
        self.assertEqual(first.ask("hold 56 1"), FINE)
        self.suspend(first)
        os.kill(first.process.pid, signal.SIGKILL)
        wait_until(lambda: self.row(first) is None, "the end of the session")
        self.assertEqual(second.ask("hold 56 2"), FINE)
        self.suspend(second)
        self.resume(second)
        self.assertEqual(second.ask("check"), FINE)

    def test_a_return_that_fails_keeps_the_file(self):
        probe, other = self.suspend_probe(), self.suspend_probe()
        self.assertEqual(probe.ask("hold 56 1"), FINE)
        self.suspend_to_file(probe)
        self.assertEqual(other.ask("hold 56 2"), FINE)
        self.refused("too little free memory", "resume", probe.process.pid)
        other.end()
        self.kill_server()
        self.assertEqual(self.check_resumed(probe), FINE, probe.said() + self.logs())


class Suspend(MovedMemory):
    def test_the_memory_leaves_and_returns(self):
        probe = self.probes(1)[0]
        used, swapped = self.memory(probe)
        self.assertGreater(used, 0)
        self.assertEqual(swapped, 0)
        for word in ("graph", "managed", "pinned", "register", "callback", "pool"):
            self.assertEqual((word, probe.ask(word)), (word, FINE))
        used, _ = self.memory(probe)
        for _ in range(3):
            self.suspend(probe)
            self.assertEqual(self.memory(probe), (0, used))
            self.assertTrue(self.row(probe)["suspended"])
            self.refused("already", "suspend", probe.process.pid)
            self.resume(probe)
            self.assertEqual(self.memory(probe), (used, 0))
            self.assertFalse(self.row(probe)["suspended"])
            self.refused("not suspended", "resume", probe.process.pid)
            for word in ("round", "graph", "managed", "pinned", "register", "threads", "pool"):
                self.assertEqual((word, probe.ask(word)), (word, FINE), self.logs())

    def test_a_call_waits_until_the_program_is_resumed(self):
        probe = self.probes(1)[0]
        self.suspend(probe)
        asker, answers = probe.ask_later("round")
        wait_until(lambda: self.waits_for_server(probe), "a call of the suspended program")
        self.assertEqual(answers, [])
        self.resume(probe)
        asker.join(TIMEOUT)
        self.assertEqual(answers, [FINE])

    def waits_for_server(self, probe):
        """Commands wait in its ring."""
        return self.row(probe)["usage"]["queue_bytes"] > 0

    def test_an_evicted_program_returns_by_itself(self):
        probe = self.suspend_probe()
        self.assertEqual(probe.ask("hold 20 1"), FINE)
        for _ in range(3):
            used, _ = self.memory(probe)
            self.fine("evict", probe.process.pid)
            self.assertEqual(self.memory(probe), (0, used))
            self.assertTrue(self.row(probe)["evicted"])
            self.assertFalse(self.row(probe)["suspended"])
            self.refused("already", "evict", probe.process.pid)
            self.refused("already", "suspend", "--to", self.directory(), probe.process.pid)
            self.assertEqual(probe.ask("check"), FINE, self.logs())
            self.assertEqual(self.memory(probe), (used, 0))
            self.assertFalse(self.row(probe)["evicted"])
        self.fine("evict", probe.process.pid)
        self.resume(probe)
        self.assertEqual(self.memory(probe), (used, 0))
        self.assertEqual(probe.ask("check"), FINE)

    def test_suspended_and_evicted_in_turn(self):
        probe = self.probes(1)[0]
        self.fine("evict", probe.process.pid)
        self.suspend(probe)
        asker, answers = probe.ask_later("round")
        wait_until(lambda: self.waits_for_server(probe), "a call of the suspended program")
        self.assertEqual(answers, [])
        self.fine("evict", probe.process.pid)
        asker.join(TIMEOUT)
        self.assertEqual(answers, [FINE])

    def test_a_busy_program_becomes_idle_first(self):
        probe = self.probes(1)[0]
        self.assertEqual(probe.ask("hold"), FINE)
        order = subprocess.Popen([os.path.join(test_recovery.BUILD, "bin/funnel"), "suspend",
                                  str(probe.process.pid)], env=self.environment)
        self.addCleanup(order.wait)
        for _ in range(5):
            self.assertFalse(self.row(probe)["suspended"])
            self.assertIsNone(order.poll())
        self.assertEqual(probe.ask("release"), FINE)
        self.assertEqual(order.wait(TIMEOUT), 0)
        self.assertTrue(self.row(probe)["suspended"])
        self.resume(probe)
        self.assertEqual(probe.ask("synchronize"), FINE)
        self.assertEqual(probe.ask("round"), FINE)

    def test_programs_with_arrays_stay_on_the_device(self):
        for word, reason in (("array", "arrays"), ("reserved", "cuMemCreate")):
            probe = self.probes(1)[0]
            self.assertEqual(probe.ask(word), FINE)
            self.refused(reason, "suspend", probe.process.pid)
            self.assertEqual(probe.ask("round"), FINE)
        sharer = self.suspend_probe()
        self.assertEqual(sharer.ask("hold 1 1"), FINE)
        self.assertEqual(sharer.ask("share"), FINE)
        self.refused("CUDA IPC", "suspend", sharer.process.pid)
        self.assertEqual(sharer.ask("check"), FINE)

    def test_memory_of_cuMemCreate(self):
        """At several addresses, with all kinds of access and none."""
        probe = self.suspend_probe()
        self.assertEqual(probe.ask("places 7"), FINE)
        used, _ = self.memory(probe)
        for away, back in ((("suspend",), "resume"), (("evict",), None),
                           (("suspend", "--to", self.directory()), "resume")):
            self.fine(*away, probe.process.pid)
            self.assertEqual(self.memory(probe), (0, used))
            if back:
                self.fine(back, probe.process.pid)
            self.assertEqual(probe.ask("seen 7"), FINE, self.logs())
            self.assertEqual(self.memory(probe), (used, 0))
        self.kill_server()
        self.assertEqual(probe.ask("seen 7"), FINE, probe.said() + self.logs())
        self.suspend_to_file(probe)
        self.kill_server()
        self.assertEqual(self.check_resumed(probe, "seen 7"), FINE, probe.said() + self.logs())

    def test_the_pool_is_bounded(self):
        first, second = self.suspend_probe(), self.suspend_probe()
        self.fine("limit", "--quota", "swap-memory=64M")
        self.assertEqual(first.ask("hold 40 1"), FINE)
        self.assertEqual(second.ask("hold 40 2"), FINE)
        self.suspend(first)
        self.refused("swap-memory", "suspend", second.process.pid)
        self.assertEqual(second.ask("check"), FINE)
        self.resume(first)
        self.suspend(second)
        self.resume(second)
        for probe in (first, second):
            self.assertEqual(probe.ask("check"), FINE)

    def test_no_such_program(self):
        self.refused("not found", "suspend", 1)
        self.refused("not found", "resume", 1)

    def test_the_server_ends_meanwhile(self):
        probe, other = self.probes(2)
        self.suspend(probe)
        self.kill_server()
        self.assertEqual(other.ask("round"), FINE)
        self.assertEqual(probe.ask("round"), GONE)
        self.assertIn("it was suspended", probe.said())

    # ---- with the contents in a file

    def test_the_contents_are_in_a_file(self):
        probe = self.suspend_probe()
        self.assertEqual(probe.ask("hold 20 7"), FINE)
        for _ in range(2):
            used, _ = self.memory(probe)
            self.suspend_to_file(probe)
            self.assertEqual(self.memory(probe), (0, used))
            self.resume(probe)
            self.assertEqual(self.memory(probe), (used, 0))
            self.assertEqual(probe.ask("check"), FINE)
            self.assertEqual(probe.ask("work 5 40"), FINE)
        self.kill_server()
        self.assertEqual(probe.ask("check"), FINE, probe.said() + self.logs())

    def test_the_file_outlives_servers(self):
        """The program calls, and waits in one server after the other until it is resumed."""
        probe, other = self.suspend_probe(), self.probes(1)[0]
        self.assertEqual(probe.ask("work 3 40"), FINE)
        self.assertEqual(probe.ask("hold 20 7"), FINE)
        self.suspend_to_file(probe)
        self.kill_server()
        self.assertEqual(other.ask("round"), FINE)
        asker, answers = probe.ask_later("check")
        for _ in range(2):
            wait_until(lambda: (self.row(probe) or {}).get("suspended"), "the move")
            self.assertGreaterEqual(self.memory(probe)[1], 20 << 20)
            self.kill_server()
            self.assertEqual(other.ask("round"), FINE)
        wait_until(lambda: (self.row(probe) or {}).get("suspended"), "the move")
        self.assertEqual(answers, [])
        self.resume(probe)
        asker.join(TIMEOUT)
        self.assertEqual(answers, [FINE], probe.said() + self.logs())
        self.assertEqual(probe.ask("work 4 40"), FINE)

    def test_all_objects_outlive_the_server(self):
        """Streams, events, graphs, managed and page-locked memory."""
        probe, other = self.probes(2)
        words = ("graph", "managed", "pinned", "register", "callback", "pool")
        for word in words:
            self.assertEqual((word, probe.ask(word)), (word, FINE))
        self.suspend_to_file(probe)
        self.kill_server()
        self.assertEqual(other.ask("round"), FINE)
        asker, answers = probe.ask_later("round")
        wait_until(lambda: (self.row(probe) or {}).get("suspended"), "the move")
        self.resume(probe)
        asker.join(TIMEOUT)
        self.assertEqual(answers, [FINE], probe.said() + self.logs())
        for word in words:
            self.assertEqual((word, probe.ask(word)), (word, FINE), probe.said() + self.logs())

    def test_launches_that_nobody_waits_for(self):
        """The program has not seen their end when its server ends."""
        probe, other = self.suspend_probe(), self.probes(1)[0]
        self.assertEqual(probe.ask("hold 1 7"), FINE)
        for order in (("suspend", "--to", self.directory()),
                      ("checkpoint", "--detach"), ("checkpoint", "--stop")):
            self.assertEqual(probe.ask("rush 40"), FINE)
            place = [self.directory() + "/checkpoint"] if order[0] == "checkpoint" else []
            self.fine(*order, probe.process.pid, *place)
            self.assertEqual(probe.ask("rush 5"), FINE)
            self.kill_server()
            self.assertEqual(other.ask("round"), FINE)
            self.assertEqual(self.check_resumed(probe, "finish"), FINE, probe.said() + self.logs())

    def test_a_resumed_program_does_not_go_back_to_its_file(self):
        probe = self.suspend_probe()
        self.assertEqual(probe.ask("hold 8 1"), FINE)
        self.suspend_to_file(probe)
        self.resume(probe)
        self.assertEqual(probe.ask("hold 8 2"), FINE)
        self.assertEqual(probe.ask("work 9 60"), FINE)
        self.kill_server()
        self.assertEqual(probe.ask("check"), FINE, probe.said() + self.logs())
        self.assertEqual(probe.ask("work 10 60"), FINE)

    def test_the_directory_is_full(self):
        directory = self.small_file_system()
        probe = self.suspend_probe()
        self.assertEqual(probe.ask("hold 20 7"), FINE)
        self.refused("is full", "suspend", "--to", directory, probe.process.pid)
        self.assertEqual(probe.ask("check"), FINE)
        self.suspend(probe)
        self.resume(probe)
        self.assertEqual(probe.ask("check"), FINE)

    def test_wrong_directories_are_refused(self):
        probe = self.probes(1)[0]
        for place, reason in (("/nowhere", "No such file"), ("/proc", "/proc"),
                              (__file__, "Not a directory"), ("/dev/shm/" + "n" * 300, "too long")):
            self.refused(reason, "suspend", "--to", place, probe.process.pid)
        self.assertEqual(probe.ask("round"), FINE)

    def test_the_file_is_damaged(self):
        """A process that may look into the one that has it can."""
        if os.geteuid():
            self.skipTest("only root looks into the server")
        probe = self.suspend_probe()
        self.assertEqual(probe.ask("hold 20 7"), FINE)
        self.suspend_to_file(probe)
        self.damage(self.file_of_the_server())
        self.refused("not as it was written", "resume", probe.process.pid)
        self.refused("not as it was written", "resume", probe.process.pid)
        self.assertTrue(self.row(probe)["suspended"])

    def file_of_the_server(self):
        server, = self.server_pids()
        folder = f"/proc/{server}/fd"
        files = [f"{folder}/{fd}" for fd in os.listdir(folder)
                 if os.readlink(f"{folder}/{fd}").startswith("/dev/shm/")]
        self.assertTrue(files)
        return files[0]

    def test_the_server_is_killed_on_the_way(self):
        """At a random time: the program has its contents, in its memory or in the file."""
        dice = random.Random(36)
        probe, other = self.suspend_probe(), self.probes(1)[0]
        self.assertEqual(probe.ask("hold 40 7"), FINE)
        for _ in range(4):
            order = subprocess.Popen([os.path.join(test_recovery.BUILD, "bin/funnel"), "suspend",
                                      "--to", self.directory(), str(probe.process.pid)],
                                     env=self.environment, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
            try:
                order.wait(dice.random() / 5)
            except subprocess.TimeoutExpired:
                pass
            self.kill_server()
            order.wait(TIMEOUT)
            self.assertEqual(other.ask("round"), FINE)
            self.assertEqual(self.check_resumed(probe), FINE, probe.said() + self.logs())

    def test_the_server_ends_later(self):
        """The program got descriptors of its new memory."""
        probe = self.probes(1)[0]
        self.assertEqual(probe.ask("managed"), FINE)
        for _ in range(2):
            self.suspend(probe)
            self.resume(probe)
            self.kill_server()
            for word in ("round", "managed", "threads"):
                self.assertEqual((word, probe.ask(word)), (word, FINE), probe.said() + self.logs())

    def test_the_daemon_ends_meanwhile(self):
        probe = self.probes(1)[0]
        self.suspend(probe)
        daemon = self.daemon_pid()
        os.kill(daemon, signal.SIGKILL)
        wait_until(lambda: not alive(daemon), "the end of the daemon")
        self.fine("start", "--device", test_recovery.DEVICE)
        wait_until(lambda: self.row(probe) is not None, "the client in the new daemon")
        self.assertTrue(self.row(probe)["suspended"])
        self.resume(probe)
        self.assertEqual(probe.ask("round"), FINE)

    def test_daemon_and_server_end(self):
        """The next daemon knows the addresses of a program whose contents are in a file."""
        probe = self.suspend_probe()
        self.assertEqual(probe.ask("hold 8 7"), FINE)
        self.suspend_to_file(probe)
        daemon = self.daemon_pid()
        os.kill(daemon, signal.SIGKILL)
        wait_until(lambda: not alive(daemon), "the end of the daemon")
        self.kill_server()
        self.fine("start", "--device", test_recovery.DEVICE)
        self.assertEqual(self.check_resumed(probe), FINE, probe.said() + self.logs())

    def test_random(self):
        """Programs that compare their memory with a copy, moved at random, some of them killed."""
        dice = random.Random(36)
        probes = [self.suspend_probe() for _ in range(3)]
        for turn in range(2):
            workers = [threading.Thread(target=self.work, args=(probe, dice.getrandbits(32)))
                       for probe in probes]
            for worker in workers:
                worker.start()
            for _ in range(4):
                victim = dice.choice(probes)
                self.order("suspend", victim.process.pid)
                self.order("resume", victim.process.pid)
                self.order("evict", dice.choice(probes).process.pid)
            for worker in workers:
                worker.join(TIMEOUT)
            self.assertEqual(self.wrong, [], self.logs())
            if turn % 2:
                victim = probes.pop()
                self.order("suspend", victim.process.pid)
                os.kill(victim.process.pid, signal.SIGKILL)
                probes.append(self.suspend_probe())

    def test_orders_at_once(self):
        """The contents outlive orders that come while others are on their way, and each is answered."""
        dice, probe = random.Random(7), self.suspend_probe()
        words = (["suspend"], ["suspend", "--to", self.directory()], ["evict"], ["resume"], ["resume"])
        self.assertEqual(probe.ask("hold 20 7"), FINE)
        for _ in range(8):
            orders = [subprocess.Popen([os.path.join(test_recovery.BUILD, "bin/funnel"), *dice.choice(words),
                                        str(probe.process.pid)], env=self.environment,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                      for _ in range(5)]
            for order in orders:
                order.wait(TIMEOUT)
            self.order("resume", probe.process.pid)
            self.assertEqual(probe.ask("check"), FINE, probe.said() + self.logs())

    def setUp(self):
        super().setUp()
        self.wrong = []

    def work(self, probe, seed):
        answer = probe.ask(f"work {seed} 40")
        if answer != FINE:
            self.wrong.append((probe.process.pid, seed, answer))


if __name__ == "__main__":
    test_recovery.main(sys.argv)
