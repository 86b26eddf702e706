#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that compare all their memory with a shadow copy, while it leaves their devices, returns and
moves from one device to the other at random, also by orders that cross. They have memory of cuMemAlloc, pools and cuMemCreate, and
together more than a device. Run as: test_random_moves.py BUILD [--rounds N] [--seed N] [--device cuda]."""
import os
import random
import re
import shutil
import signal
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import test_checkpoint  # noqa: E402  (found through the path above)
import test_kill_points  # noqa: E402
import test_migrate  # noqa: E402
import test_recovery  # noqa: E402
from harness import TIMEOUT  # noqa: E402
from test_recovery import FINE, GONE  # noqa: E402

ROUNDS, SEED = 25, 1
OPERATORS, ORDERS = 3, 12
PROGRAMS = 3
HELD = 40  # MiB that each has besides what it allocates at random
# What is in the pool of a server ends with it.
LOST = "only its server had its memory|or was suspended with some"


class RandomMoves(test_migrate.MigrateTestCase):
    devices = "2:sms=24,mem=192M"
    more = {"FUNNEL_OVERSUBSCRIBE": "1"}

    def setUp(self):
        super().setUp()
        self.dice = random.Random(SEED)
        self.place = self.directory()
        self.done = {}

    def test_shadow_copies(self):
        acts = (self.work, self.work, self.work, self.change, self.evict, self.suspend_and_resume,
                self.checkpoint, self.move, self.move, self.end_program, self.end_server)
        self.programs = [self.new_program() for _ in range(PROGRAMS)]
        for number in range(ROUNDS):
            signal.alarm(3 * TIMEOUT)  # a round, not all of them
            act = self.dice.choice(acts)
            self.round = (number, act.__name__)
            act(self.dice.randrange(PROGRAMS))
        for program in self.programs:
            self.ask(program, "work 2 20", "check")
        print(" ".join(f"{name}:{count}" for name, count in sorted(self.done.items())), file=sys.stderr)

    def new_program(self):
        program = self.suspend_probe()
        self.assertEqual(program.ask(f"hold {HELD} {self.dice.randrange(99)}"), FINE)
        return program

    def ask(self, program, *words):
        for word in words:
            self.assertEqual(program.ask(word), FINE,
                             f"{self.round} {word}\n{program.said()}{self.logs()}")

    def count(self, what):
        self.done[what] = self.done.get(what, 0) + 1

    # ---- acts, each on a program

    def work(self, at):
        self.ask(self.programs[at], f"work {self.dice.randrange(999)} {self.dice.randrange(1, 60)}")

    def change(self, at):
        """One chunk of two MiB differs from what is kept of the last time."""
        self.ask(self.programs[at], f"change {self.dice.randrange(HELD)} {self.dice.randrange(99)}",
                 "check")

    def evict(self, at):
        """It may be away already, to make room for another one."""
        status, said = self.order("evict", self.programs[at].process.pid)
        self.assertTrue(status == 0 or "already" in said, said + self.logs())
        self.count("evicted")

    def suspend_and_resume(self, at):
        pid = self.programs[at].process.pid
        way = self.dice.choice(((), ("--to", self.place)))
        status, said = self.order("suspend", *way, pid)
        self.assertTrue(status == 0 or "already" in said, said + self.logs())
        status, said = self.order("resume", pid)
        if status:
            self.assertIn("too little", said, self.logs())
            self.fine("evict", pid)  # it returns for its next call, and others make room
        self.ask(self.programs[at], "check")
        self.count("suspended")

    def checkpoint(self, at):
        """It works while most of its memory is written."""
        path = os.path.join(self.place, "checkpoint")
        order = threading.Thread(target=self.order,
                                 args=("checkpoint", self.programs[at].process.pid, path))
        order.start()
        while order.is_alive():
            self.work(at)
        order.join()
        shutil.rmtree(path, ignore_errors=True)
        self.count("checkpoints")

    def move(self, at):
        status, said = self.migrate(self.programs[at], self.dice.randrange(2), "work 7 3")
        self.assertTrue(status == 0 or "on that device" in said or "too little" in said,
                        said + self.logs())
        self.count("moved" if status == 0 else "not moved")

    def end_program(self, at):
        self.programs[at].end()
        self.programs[at] = self.new_program()

    def end_server(self, at):
        """What is in its pool ends with it. All others have their memory again before a new one comes."""
        self.kill_server()
        answers = [program.ask("check") for program in self.programs]
        for i, answer in enumerate(answers):
            said = self.programs[i].said()
            if answer == GONE:
                self.assertRegex(said, LOST, self.logs())
                self.end_program(i)
                self.count("lost")
            else:
                self.assertEqual(answer, FINE, said + self.logs())
        self.count("servers")


class RandomOrders(test_migrate.MigrateTestCase):
    """Operators whose orders for one program cross. Each takes back what makes it stand still."""
    devices = "2:sms=24,mem=1G"

    def test_operators(self):
        self.program, place = self.suspend_probe(), self.directory()
        self.assertEqual(self.program.ask("hold 20 7"), FINE)
        self.said, self.unknown = [], []
        operators = [threading.Thread(target=self.operate, args=(random.Random(SEED + i), f"{place}/{i}"))
                     for i in range(OPERATORS)]
        for operator in operators:
            operator.start()
        while any(operator.is_alive() for operator in operators):
            self.check("work 3 10")
        for operator in operators:
            operator.join()
        self.check("check")
        self.assertEqual(self.unknown, [], self.logs())
        for status, said, path, is_whole in self.said:
            self.assertEqual(status == 0, is_whole, f"{path}: {said}{self.logs()}")

    def check(self, word):
        asker, answers = self.program.ask_later(word)
        asker.join(TIMEOUT)
        self.assertEqual(answers, [FINE], f"{self.program.said()}{self.logs()}{self.row(self.program)}")

    def operate(self, dice, path):
        pid = self.program.process.pid
        for _ in range(ORDERS):
            act = dice.choice((("suspend",), ("evict",), ("checkpoint",), ("checkpoint", "--stop"),
                               ("migrate", "--device", dice.randrange(2)),
                               ("limit", "--class", dice.choice(("normal", "batch")), "--client")))
            if act[0] == "checkpoint":
                self.checkpoint([*act, pid, path], path)
            else:
                self.order_known(*act, pid)
            if act[0] in ("suspend", "checkpoint"):
                self.order_known("resume", pid)

    def order_known(self, *words):
        """The program is there all the time, also while it is on its way from one server to the next."""
        said = self.order(*words)[1]
        if re.search("not found|no such client|has ended|has left", said):
            self.unknown.append((words, said))

    def checkpoint(self, words, path):
        """A checkpoint has all contents when it is said to be one, and else no directory."""
        status, said = self.order(*words)
        if "not found" in said or "has ended" in said:
            self.unknown.append((words, said))
        is_whole = os.path.exists(path) and test_checkpoint.is_whole(path)
        self.said.append((status, said, path, is_whole))
        shutil.rmtree(path, ignore_errors=True)


if __name__ == "__main__":
    ROUNDS = test_kill_points.take_number(sys.argv, "--rounds", ROUNDS)
    SEED = test_kill_points.take_number(sys.argv, "--seed", SEED)
    test_recovery.main(sys.argv)
