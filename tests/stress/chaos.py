#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs start, are killed and stopped, move between contexts, and lose their server, at random.

Rounds follow each other until the time is over (--seconds). In the first part of a round programs
compute beside long kernels, and some of them are killed or stopped for a while. Every program that
was not killed ends with the results that it has alone. In the second part a kernel faults, or the
server is killed or stopped. The programs that stay, which have nothing in flight then, go on with
the results that they had. The seed is printed; --seed makes the same choices again.

With --busy N so many programs more launch and wait all the time in the first part of each round.
A pool of workers serves them where they fill the CPUs (FUNNEL_CPUS).
"""
import os
import random
import signal
import time

import harness
from scene import Probe, Program

STAY = 3  # programs of either kind that live as long as the test
STEPS = 12


class Chaos:
    def __init__(self, funnel, chance, expected, budget, busy):
        self.funnel, self.chance, self.expected = funnel, chance, expected
        self.budget = budget
        self.busy_count, self.busy = busy, []
        self.started = []  # (name, process)
        self.stopped = []
        self.kernels = []
        self.numbers = iter(range(100000, 10 ** 9, 10000))
        self.count = dict.fromkeys(("ended", "killed", "stopped", "long", "moved", "faulted",
                                    "server killed", "server stopped", "rounds"), 0)
        self.movers = [self.start_mover() for _ in range(STAY)]
        self.probes = [Probe(funnel) for _ in range(STAY)]

    def start_mover(self):
        mover = Program(self.funnel, "mover", next(self.numbers))
        mover.expect("moved")
        return mover

    # ---- what does not end a server ----

    def start_busy(self):
        self.busy = [Program(self.funnel, "busy") for _ in range(self.busy_count)]
        for program in self.busy:
            program.expect("busy")

    def end_busy(self):
        """A program whose sums are right has nothing in flight when it says so."""
        while self.busy:
            program = self.busy.pop()
            program.tell()
            said = program.process.stdout.readline()
            assert said.startswith("right "), f"a busy program says {said!r}"
            program.end()

    def start(self):
        name = self.chance.choice(sorted(harness.PROGRAMS))
        self.started.append((name, self.funnel.start_program(name, *harness.PROGRAMS[name])))

    def kill(self):
        running = [entry for entry in self.started if entry not in self.stopped]
        if not running:
            return
        entry = self.chance.choice(running)
        self.started.remove(entry)
        entry[1].kill()
        entry[1].communicate()
        self.count["killed"] += 1

    def stop(self):
        for _, process in self.stopped:
            process.send_signal(signal.SIGCONT)
        self.stopped = self.chance.sample(self.started, min(2, len(self.started)))
        for _, process in self.stopped:
            process.send_signal(signal.SIGSTOP)
        self.count["stopped"] += len(self.stopped)

    def begin_kernel(self):
        if self.kernels:
            return
        kernel = Program(self.funnel, "long")
        self.kernels.append(kernel)
        kernel.expect("running")
        self.count["long"] += 1

    def end_kernel(self):
        while self.kernels:
            kernel = self.kernels.pop()
            kernel.tell()
            kernel.expect("done")
            kernel.end()

    def move(self):
        """It may have to wait for the kernel, if that has begun just now."""
        mover = self.chance.choice(self.movers)
        mover.tell()
        if not mover.has_said(0.5):
            self.end_kernel()
        mover.expect("moved")
        self.count["moved"] += 1

    def ask(self):
        self.chance.choice(self.probes).ask(self.chance.choice(("look", "round", "allocate")))

    def settle(self):
        """Every program that was not killed has its results."""
        for _, process in self.stopped:
            process.send_signal(signal.SIGCONT)
        self.stopped = []
        self.end_kernel()
        for name, process in self.started:
            harness.check_end(name, process, self.expected[name], timeout=harness.TIMEOUT)
            self.count["ended"] += 1
        self.started = []
        self.end_busy()

    # ---- what does ----

    def fault(self):
        offender = Probe(self.funnel, is_copy=True)
        offender.tell("fault")
        said = offender.process.stdout.readline()
        assert said.startswith("fault CUDA_ERROR_ILLEGAL_ADDRESS"), said
        offender.kill()
        self.count["faulted"] += 1

    def kill_server(self):
        os.kill(self.funnel.server_pid(), signal.SIGKILL)
        self.count["server killed"] += 1

    def stop_server(self):
        server = self.funnel.server_pid()
        os.kill(server, signal.SIGSTOP)
        time.sleep(self.chance.random() / 4)
        os.kill(server, signal.SIGCONT)
        self.count["server stopped"] += 1

    def check_all_stay(self):
        for probe in self.probes:
            probe.ask("look")
            probe.ask("round")
        for mover in self.movers:
            mover.tell()
            mover.expect("moved")

    # ---- a round ----

    def play(self):
        self.start_busy()
        for _ in range(STEPS):
            if self.budget.is_spent():
                break
            step = self.chance.choice((self.start, self.start, self.start, self.kill, self.stop,
                                       self.begin_kernel, self.end_kernel, self.move, self.ask))
            step()
            time.sleep(self.chance.random() / 20)
        self.settle()
        self.chance.choice((self.fault, self.kill_server, self.stop_server))()
        self.check_all_stay()
        self.count["rounds"] += 1

    def end(self):
        for program in [*self.movers, *self.probes, *self.kernels, *self.busy]:
            program.kill()
        for _, process in self.started:
            process.kill()
            process.communicate()


def main():
    options = harness.arguments_of(__doc__, seconds=8)
    budget = harness.Budget(options.seconds)
    harness.say(f"seed {options.seed}")
    with harness.running_funnel(options.build, options.device, "--spare") as funnel:
        expected = harness.expect_lines(funnel)
        chaos = Chaos(funnel, random.Random(options.seed), expected, budget, options.busy)
        try:
            while not budget.is_spent():
                chaos.play()
        finally:
            harness.say(", ".join(f"{count} {what}" for what, count in chaos.count.items()))
            harness.say(f"workers of a pool served clients {funnel.pool_stays()} times")
            chaos.end()
        for name, arguments in harness.PROGRAMS.items():
            harness.check_end(name, funnel.start_program(name, *arguments), expected[name])


harness.finish(main)
