#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs, servers, daemons and front ends are killed at random points while the memory of a program
is suspended, checkpointed or restored, or while the program moves to another device or lane. Afterwards the program
goes on with its data, or has ended with a clear error. Run as: test_kill_points.py BUILD [--kills N] [--seed N] [--device cuda]."""
import os
import random
import shutil
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import test_migrate  # noqa: E402  (found through the path above)
import test_recovery  # noqa: E402
import test_suspend  # noqa: E402
from harness import TIMEOUT, alive, has_ended, wait_until  # noqa: E402
from test_recovery import FINE, GONE  # noqa: E402

KILLS, SEED = 100, 36
VICTIMS = ("program", "server", "daemon", "front end", "nobody")
ORDERS = ("suspend", "suspend --to", "checkpoint", "checkpoint --stop", "checkpoint --detach",
          "evict")
IN_POOL = ("suspend", "evict")
LONGEST = {"soft": 0.4, "cuda": 0.4}  # seconds from an order to the kill
LONGEST_MOVE = {"soft": 0.04, "cuda": 2}
LONGEST_AFTER_GRANT = {"soft": 0.02, "cuda": 0.5}


class KillPointsTestCase:
    """What all kinds of kills share."""

    def setUp(self):
        super().setUp()
        self.dice = random.Random(SEED)
        self.lost = 0

    def why(self):
        return f"{self.round}\n{self.program.said()}{self.logs()}"

    def new_program(self):
        probe = self.suspend_probe()
        self.assertEqual(probe.ask("work 5 30"), FINE)
        self.assertEqual(probe.ask(f"hold {self.dice.randrange(1, 40)} 7"), FINE)
        return probe

    def replace_program(self):
        self.lost += 1
        self.program.end()
        self.program = self.new_program()

    def await_point(self, process, longest=LONGEST):
        """The random point, or the end of the front end before."""
        try:
            process.wait(self.dice.random() ** 2 * longest[test_recovery.DEVICE])
        except subprocess.TimeoutExpired:
            pass

    def kill(self, victim, process):
        if victim == "program":
            self.program.process.kill()
        elif victim == "server":
            self.kill_server()
        elif victim == "daemon":
            self.kill_daemon()
        elif victim == "front end":
            process.kill()

    def kill_daemon(self):
        daemon = self.daemon_pid()
        os.kill(daemon, signal.SIGKILL)
        wait_until(lambda: not alive(daemon), "the end of the daemon")
        self.fine("start", "--device", test_recovery.DEVICE)
        wait_until(lambda: self.row(self.other) is not None, "the clients in the new daemon")


class KillPoints(KillPointsTestCase, test_suspend.MovedMemory):
    def setUp(self):
        super().setUp()
        self.place = self.directory()

    def test_random_points(self):
        self.other = self.suspend_probe()
        self.program = self.new_program()
        for number in range(KILLS):
            signal.alarm(3 * TIMEOUT)  # a round, not all of them
            self.round = (number, self.dice.choice(ORDERS), self.dice.choice(VICTIMS))
            self.kill_in_order(*self.round[1:])
            self.assertEqual(self.other.ask("work 1 3"), FINE, self.why())
            self.check_program()
            self.check_directories()
        print(f"{KILLS} kills, {self.lost} programs have ended", file=sys.stderr)

    # ---- an order, and a kill in the middle

    def words(self, order):
        pid = str(self.program.process.pid)
        if order == "suspend --to":
            return ["suspend", "--to", self.place, pid]
        if order.startswith("checkpoint"):
            name = os.path.join(self.place, f"c{self.round[0]}")
            return [*order.split(), pid, name]
        return [order, pid]

    def front_end(self, *words):
        process = subprocess.Popen([os.path.join(test_recovery.BUILD, "bin/funnel"), *words],
                                   env=self.environment, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        return process

    def kill_in_order(self, order, victim):
        """Half of the kills come while the memory returns."""
        process = self.front_end(*self.words(order))
        if self.dice.random() < 0.5:
            process.wait(TIMEOUT)
            process = self.front_end("resume", str(self.program.process.pid))
        self.await_point(process)
        self.kill(victim, process)
        process.wait(TIMEOUT)

    # ---- what has become of it

    def check_program(self):
        if self.round[2] == "program":
            self.program.process.wait()
            answer = GONE
        else:
            answer = self.answer()
        if answer == GONE and self.round[2] == "server":
            self.assertIn("only its server had its memory", self.program.said(), self.why())
            self.assertIn(self.round[1], IN_POOL, self.why())
        elif answer == GONE:
            self.assertEqual(self.round[2], "program", self.why())
        else:
            self.assertEqual(answer, FINE, self.why())
            self.assertEqual(self.program.ask("work 6 10"), FINE, self.why())
            return
        self.replace_program()

    def answer(self):
        """An order that goes on may suspend it at any time."""
        asker, answers = self.program.ask_later("check")
        while asker.is_alive():
            self.order("resume", self.program.process.pid)
            asker.join(0.2)
        return answers[0]

    def check_directories(self):
        for name in os.listdir(self.place):
            path = os.path.join(self.place, name)
            if not name.startswith("."):
                self.assertEqual(sorted(os.listdir(path)), ["manifest", "memory"], self.why())
                said = self.order("restore", path)[1]
                for word in ("not as it was written", "is no checkpoint", "its manifest says"):
                    self.assertNotIn(word, said, self.why())
            shutil.rmtree(path)


class MoveKillPoints(KillPointsTestCase, test_migrate.MigrateTestCase):
    """The program has no work in flight, so it outlives all kills but its own."""

    def check_random_points(self):
        self.other = self.suspend_probe()
        self.program = self.new_program()
        self.points = {"before": 0, "in": 0, "after": 0}
        moved = 0
        for number in range(max(1, KILLS // 8)):
            signal.alarm(3 * TIMEOUT)  # a round, not all of them
            self.round = (number, self.dice.randrange(2), self.dice.choice(VICTIMS))
            moved += self.kill_in_move(*self.round[1:])
            self.assertEqual(self.other.ask("work 1 3"), FINE, self.why())
            self.check_program()
        print(f"{number + 1} kills, {self.points['before']} of them before a move, {self.points['in']} in it and "
              f"{self.points['after']} after it; {moved} moves, {self.lost} programs have ended", file=sys.stderr)

    def kill_in_move(self, to, victim):
        """Whether the order had been carried out before."""
        grants = self.grants()
        with self.start_order(self.program, to) as order:
            at_rest = threading.Thread(target=self.rest_until, args=(order,))
            at_rest.start()
            self.await_point_of_move(order, grants)
            self.note_point(order, grants)
            self.kill(victim, order)
            order.wait(TIMEOUT)
            at_rest.join()
            return self.moved in order.stdout.read()

    def await_point_of_move(self, order, grants):
        """The front end has a longer way to the server than the program to the next one."""
        if self.dice.random() < 0.4:
            self.await_point(order, LONGEST_MOVE)
            return
        wait_until(lambda: order.poll() is not None or self.grants() > grants, "the grant")
        self.await_point(order, LONGEST_AFTER_GRANT)

    def grants(self):
        """Of servers that have let a program go."""
        return self.log("server").count("moves to another")

    def note_point(self, order, grants):
        if order.poll() is not None:
            self.points["after"] += 1
        else:
            self.points["in" if self.grants() > grants else "before"] += 1

    def rest_until(self, order):
        """A killed program answers nothing any more."""
        self.answers = set()
        while order.poll() is None and self.program.process.poll() is None:
            try:
                self.answers.add(self.program.ask("rest 20"))
            except (AssertionError, OSError):
                self.answers.add(GONE)
                break

    def check_program(self):
        if self.round[2] == "program":
            self.program.process.wait()
            self.replace_program()
            return
        self.assertLessEqual(self.answers, {FINE}, self.why())
        for word in ("check", "work 6 10", "check"):
            self.assertEqual((word, self.program.ask(word)), (word, FINE), self.why())


class MigrationKillPoints(MoveKillPoints):
    moved = "is on device"

    def test_random_points(self):
        self.check_random_points()


class LaneKillPoints(MoveKillPoints):
    """On one device."""
    devices = "1:sms=24,mem=256M"
    moved = "in its lane"

    def start_order(self, probe, to):
        return subprocess.Popen(
            [os.path.join(test_recovery.BUILD, "bin/funnel"), "limit", "--client", str(probe.process.pid),
             "--class", ("normal", "batch")[to]], env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def kill_server(self):
        """Of either lane."""
        server = self.dice.choice(self.server_pids())
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: has_ended(server), "the end of the server")

    def test_random_points(self):
        self.check_random_points()


def take_number(arguments, name, number):
    if name not in arguments:
        return number
    at = arguments.index(name)
    number = int(arguments[at + 1])
    del arguments[at:at + 2]
    return number


if __name__ == "__main__":
    KILLS, SEED = take_number(sys.argv, "--kills", KILLS), take_number(sys.argv, "--seed", SEED)
    test_recovery.main(sys.argv)
