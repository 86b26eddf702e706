#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Batch programs fault in six ways (--faults so often in all, or only in the ways of --kind), and
batch lanes are killed (--server-kills). Beside them programs in the main lane always have work, and
none of these may be lost.

Each of --busy programs, or of eight, launches a kernel, waits and checks its result, again and again.
Of each kind of end it is said how many there were, and how many of these programs were lost. It is
also said how long their worst launch took. With --at-once N as many batch programs fault side by side, each
in a lane of its own. When the time (--seconds) is over, or a signal comes, what has been found so
far is printed. On a GPU: --device cuda --faults 600 --server-kills 100, some 25 minutes on an H200,
where several at once take no less time.
"""
import contextlib
import os
import re
import signal
import threading
import time

import harness
from scene import Program

BUSY = 8  # where nothing else is said
# What each may report.
FAULTS = {"load": [700], "address": [700], "trap": [719], "instruction": [715], "assertion": [710]}
HANG = "hang"
BATCH = {"FUNNEL_CLASS": "batch"}


class Innocents:
    """Programs in the main lane, which are asked after each end of a batch lane."""

    def __init__(self, funnel, count):
        self.count = count
        self.programs = [Program(funnel, "busy") for _ in range(count)]
        self.launches, self.lost, self.lock = 0, 0, threading.Lock()
        for program in self.programs:
            program.expect("busy")

    def ask(self):
        """The worst launch since the last question in ms, and how many were lost since."""
        with self.lock:
            answers = [self.ask_one(program) for program in list(self.programs)]
        return max([worst for worst in answers if worst is not None], default=0), answers.count(None)

    def ask_one(self, program):
        """None when it is lost."""
        try:
            program.tell()
            said = program.process.stdout.readline().split()
        except BrokenPipeError:
            said = ["nothing"]
        if said[:1] == ["right"]:
            self.launches += int(said[1])
            return int(said[2]) / 1e3
        harness.say(f"failed: an innocent says {' '.join(said)!r}")
        self.programs.remove(program)
        self.lost += 1
        return None

    def kill(self):
        for program in self.programs:
            program.kill()


class Tally:
    def __init__(self, what):
        self.what, self.ends, self.worst_ms, self.lost, self.seconds = what, 0, 0, 0, 0

    def add(self, worst_ms, lost, seconds):
        self.ends += 1
        self.worst_ms, self.lost = max(self.worst_ms, worst_ms), self.lost + lost
        self.seconds += seconds

    def say(self):
        if self.ends:
            harness.say(f"{self.what}: {self.ends}; lost {self.lost}; worst launch "
                        f"{self.worst_ms:.1f} ms; {self.seconds / self.ends:.2f} s each")


def batch_lanes(funnel):
    """Processes of all lanes of batch programs."""
    found = re.findall(r"^Server \S+:batch\S* \((\d+)\) of user", funnel.status_text(), re.M)
    return set(map(int, found))


def runs(pid):
    return os.path.exists(f"/proc/{pid}")


def await_end(pids):
    began = time.monotonic()
    while any(map(runs, pids)):
        assert time.monotonic() - began < harness.TIMEOUT, f"a lane does not end: {pids}"
        time.sleep(0.005)


def fault(funnel, kind, variables):
    offender = Program(funnel, "fault", kind, is_copy=True, **variables)
    said = offender.process.stdout.readline().strip()
    offender.end()
    assert said in [f"error {error}" for error in FAULTS[kind]], f"{kind}: {said}"


def hang(funnel, variables):
    """The daemon kills a lane in which only such a kernel is left. A program that came there before
    would wait for the kernel; with --at-once each has a lane of its own."""
    offender = Program(funnel, "long", is_copy=True, **variables)
    offender.expect("running")
    lanes = set() if "FUNNEL_ISOLATE" in variables else batch_lanes(funnel)
    offender.kill()
    await_end(lanes)


def end_lane(funnel, kind, variables):
    if kind == HANG:
        hang(funnel, variables)
    else:
        fault(funnel, kind, variables)


class Ends:
    """Threads that each have one batch program after the other fault."""

    def __init__(self, funnel, innocents, options, budget):
        self.funnel, self.innocents, self.budget = funnel, innocents, budget
        kinds = options.kind or [*FAULTS, HANG]
        self.left = [kinds[i % len(kinds)] for i in range(options.faults)][::-1]
        self.tallies = {kind: Tally(f"faults, {kind}") for kind in kinds}
        self.variables = {**BATCH, **({"FUNNEL_ISOLATE": "program"} if options.at_once > 1 else {})}
        self.error, self.lock = None, threading.Lock()
        self.threads = [threading.Thread(target=self.work, daemon=True) for _ in range(options.at_once)]

    def take(self):
        with self.lock:
            goes_on = self.left and not self.error and not self.budget.is_spent()
            return self.left.pop() if goes_on else None

    def work(self):
        try:
            while kind := self.take():
                began = time.monotonic()
                end_lane(self.funnel, kind, self.variables)
                worst_ms, lost = self.innocents.ask()
                with self.lock:
                    self.tallies[kind].add(worst_ms, lost, time.monotonic() - began)
        except (AssertionError, OSError) as error:
            self.error = error

    def run(self):
        for thread in self.threads:
            thread.start()
        try:
            for thread in self.threads:
                thread.join()
        finally:
            self.left = []
            for tally in self.tallies.values():
                tally.say()
        if self.error:
            raise self.error


def kill_one(funnel):
    victim = Program(funnel, "always", **BATCH)
    try:
        victim.expect("running")
        lanes = batch_lanes(funnel)
        assert lanes, "there is no batch lane"
        for lane in lanes:
            with contextlib.suppress(ProcessLookupError):  # one whose hang has just been ended
                os.kill(lane, signal.SIGKILL)
        await_end(lanes)
    finally:
        victim.kill()


def kill_lanes(funnel, innocents, kills, budget):
    tally = Tally("killed lanes")
    try:
        for _ in range(kills):
            if budget.is_spent():
                break
            began = time.monotonic()
            kill_one(funnel)
            tally.add(*innocents.ask(), time.monotonic() - began)
    finally:
        tally.say()


def main_lane(funnel):
    server, = re.findall(r"^Server [^:\s]+ \((\d+)\) of user", funnel.status_text(), re.M)
    return server


def play(funnel, innocents, options, budget):
    server = main_lane(funnel)
    worst_ms, _ = innocents.ask()
    harness.say(f"alone: {innocents.launches} launches; worst launch {worst_ms:.1f} ms")
    try:
        Ends(funnel, innocents, options, budget.part(2 if options.server_kills and options.faults else 1)).run()
        kill_lanes(funnel, innocents, options.server_kills, budget)
    finally:
        harness.say(f"{innocents.launches} launches of {innocents.count} innocents were right, {innocents.lost} "
                    "innocents were lost")
    assert not innocents.lost, "innocents were lost"
    assert main_lane(funnel) == server, "the server of the main lane was replaced"


def main():
    options = harness.arguments_of(__doc__)
    budget = harness.Budget(options.seconds)
    with harness.running_funnel(options.build, options.device) as funnel:
        innocents = Innocents(funnel, options.busy or BUSY)
        try:
            play(funnel, innocents, options, budget)
        finally:
            innocents.kill()


harness.finish(main)
