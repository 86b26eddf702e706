#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Servers die at random moments, by SIGKILL or by a program's fault, while three programs work and
wait. Each continues with the right contents in its memory, or gets an error and then that error
forever. Run as: python3 test_churn.py BUILD [--device cuda] [--seconds N] [--seed N]."""
import argparse
import os
import random
import signal
import sys
import time
import unittest

import test_recovery
from test_recovery import FAULT, FINE, GONE

WORDS = ("round", "look", "graph", "register", "share", "pinned", "callback", "threads",
         "launch", "synchronize", "allocate", "module", "questions")
# As long as most of the words take.
MOMENT = 0.06


class Churn(test_recovery.TestCase):
    seconds, seed = 10, 0

    def setUp(self):
        super().setUp()
        self.chance = random.Random(self.seed)
        self.programs = []
        self.counts = {}

    def kill_servers(self):
        for server in self.server_pids():
            os.kill(server, signal.SIGKILL)

    def fill_up(self):
        """A server may die under a program that begins."""
        while len(self.programs) < 3:
            program = self.probe()
            if program.opened() == FINE:
                self.programs.append(program)
            else:
                program.end()

    def set_an_offender_to_work(self):
        program = self.probe(program=self.other_program())
        if program.opened() == FINE:
            program.tell("fault")
        return program

    def set_to_work(self):
        for program in self.programs:
            program.word = self.chance.choice(WORDS)
            program.tell(program.word)

    def disturb(self):
        """Before or after the programs have begun with their words."""
        how = self.chance.choice(("kill first", "kill", "fault", "nothing"))
        if how == "kill first":
            self.kill_servers()
        program = self.set_an_offender_to_work() if how == "fault" else None
        time.sleep(self.chance.random() * MOMENT if how == "fault" else 0)
        self.set_to_work()
        time.sleep(self.chance.random() * MOMENT)
        if how == "kill":
            self.kill_servers()
        return program

    def check(self, program):
        """What came of its word, and what its memory holds afterwards."""
        result = program.receive(program.word)
        for word in ("synchronize", "look") if result == FINE else ():
            result = program.ask(word) if result == FINE else result
        self.assertIn(result, (FINE, FAULT, GONE), f"{program.word}: {program.said()}")
        self.counts[result] = self.counts.get(result, 0) + 1
        if result == FINE:
            return True
        self.assertEqual(program.ask("look"), result, program.said())
        program.end()
        return False

    def test_churn(self):
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            self.fill_up()
            offender = self.disturb()
            self.programs = [program for program in self.programs if self.check(program)]
            if offender:
                offender.end()
        print(self.counts)
        self.assertGreater(self.counts.get(FINE, 0), 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--device", default="soft")
    parser.add_argument("--seconds", type=float, default=Churn.seconds)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    test_recovery.BUILD, test_recovery.DEVICE = os.path.abspath(options.build), options.device
    Churn.seconds, Churn.seed = options.seconds, options.seed
    print(f"seed {options.seed}", flush=True)
    test_recovery.harness.guardian.protect()
    unittest.main(argv=sys.argv[:1], verbosity=2)
