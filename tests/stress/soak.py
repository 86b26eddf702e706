#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sixteen clients come and go for --seconds N; afterwards daemon and server hold what they held before.

Each place has one client after the other. It runs to its end, is killed at a random moment, has its
memory evicted or suspended, or moves between the lanes. After each round of a minute all leave. Then daemon
and server hold no more descriptors, threads and files than after the first one. Their memory is printed for
each round, since allocators keep some of it.
"""
import collections
import os
import pathlib
import random
import re
import subprocess
import threading
import time

import harness
from scene import Program

PLACES = 16
ROUND_S = 60
# Threads of a pool and of a software GPU are made when they are first needed, and so are windows.
SLACK = {"threads": 24, "windows": harness.WINDOWS_WARM * 2}


class Place(threading.Thread):
    """One client after the other, until the time is over."""

    def __init__(self, soak, seed):
        super().__init__()
        self.soak, self.funnel, self.dice = soak, soak.funnel, random.Random(seed)
        self.wrong = None

    def run(self):
        acts = (self.run_to_end, self.kill, self.evict, self.suspend, self.move)
        try:
            for act in self.dice.sample(acts, len(acts)):
                self.play(act)
            while not self.soak.budget.is_spent():
                self.play(self.dice.choice(acts))
        except Exception as error:  # the main thread reports it
            self.wrong = error

    def play(self, act):
        if not self.soak.budget.is_spent():
            act()
            self.soak.count(act.__name__)

    def order(self, *words):
        """It may be refused, where the program has what cannot move."""
        done = subprocess.run([self.funnel.binary, *map(str, words)], env=self.funnel.environment,
                              text=True, capture_output=True, timeout=2 * harness.TIMEOUT)
        if done.returncode:
            self.soak.count(words[0] + " refused")

    def run_to_end(self):
        name = self.dice.choice(sorted(harness.PROGRAMS))
        program = self.funnel.start_program(name, *harness.PROGRAMS[name])
        harness.check_end(name, program, self.soak.expected[name])

    def kill(self):
        name = self.dice.choice(sorted(harness.PROGRAMS))
        program = self.funnel.start_program(name, *harness.PROGRAMS[name][:2], "-r", "1000000")
        time.sleep(self.dice.uniform(0, 1))
        program.kill()
        program.communicate()

    def begin(self, kind):
        program = Program(self.funnel, kind)
        program.expect(kind)
        return program

    def check(self, program):
        program.tell()
        said = program.process.stdout.readline()
        assert said.startswith("right"), f"a {program.name} program says {said!r}"

    def leave(self, program):
        """Half of them without a word."""
        if self.dice.random() < 0.5:
            program.end()
        else:
            program.kill()
            program.process.stdin.close()
        program.process.stdout.close()

    def swap(self, *orders):
        program = self.begin("busy")
        for order in orders:
            self.order(*order, program.process.pid)
        self.check(program)
        self.leave(program)

    def evict(self):
        self.swap(("evict",))

    def suspend(self):
        self.swap(("suspend",), ("resume",))

    def move(self):
        program = self.begin(self.dice.choice(("busy", "wide")))
        for lane in "batch", "normal":
            self.order("limit", "--client", program.process.pid, "--class", lane)
            self.check(program)
        self.leave(program)


class Soak:
    def __init__(self, funnel, expected, dice):
        self.funnel, self.expected, self.dice = funnel, expected, dice
        self.done = collections.Counter()
        self.lock = threading.Lock()

    def count(self, what):
        with self.lock:
            self.done[what] += 1

    def play(self, seconds):
        self.budget = harness.Budget(seconds)
        places = [Place(self, self.dice.random()) for _ in range(PLACES)]
        for place in places:
            place.start()
        for place in places:
            place.join()
        for place in places:
            assert not place.wrong, f"a client of the soak: {place.wrong!r}"


def links_of(pid):
    return harness.files_of(pathlib.Path("/proc", str(pid)))


def held_by(pid):
    process = pathlib.Path("/proc", str(pid))
    files = links_of(pid)
    windows = [file for file in files if file.startswith(harness.WINDOW_FILES)]
    memory = re.search(r"^RssAnon:\s+(\d+)", (process / "status").read_text(), re.M)
    return {"descriptors": len(files) - len(windows), "windows": len(windows),
            "threads": len(list((process / "task").iterdir())), "KiB": int(memory[1])}


def files_of(funnel):
    return {"shared memory": len(list(pathlib.Path("/dev/shm").glob("*funnel*"))),
            "pipe directory": len(list((funnel.folder / "pipe").rglob("*")))}


class Holdings:
    """Of the daemon, of the server and in the file system, when all programs have left, and with them the
    lanes that only they used."""

    def __init__(self, funnel):
        self.funnel, self.server = funnel, funnel.server_pid()
        self.daemon = int((funnel.folder / "pipe/nvidia-cuda-mps-control.pid").read_text())
        self.first = self.await_idle()

    def only_main_lane(self):
        return len(re.findall(r"^Server ", self.funnel.status_text(), re.M)) == 1

    def await_idle(self):
        harness.wait_until(lambda: not self.funnel.status()["clients"], "clients are left")
        harness.wait_until(self.only_main_lane, "a lane without programs is left")
        assert self.funnel.server_pid() == self.server, "the server was replaced"
        self.funnel.await_trimmed()
        return self.look()

    def look(self):
        return {"daemon": held_by(self.daemon), "server": held_by(self.server),
                "files": files_of(self.funnel)}

    def grown(self):
        """A front end has ended a little before the daemon closes its connection."""
        self.last = self.look()
        return [f"{figure} {what} of {holder}, {self.first[holder][what]} at first"
                for holder, figures in self.last.items() for what, figure in figures.items()
                if what != "KiB" and figure > self.first[holder][what] + SLACK.get(what, 0)]

    def check(self):
        self.await_idle()
        try:
            harness.wait_until(lambda: not self.grown(), "something has grown")
        finally:
            for holder in self.daemon, self.server:
                if self.grown():
                    harness.say(f"{self.grown()}: {sorted(links_of(holder))}")
        harness.say(str(self.last))


def main():
    options = harness.arguments_of(__doc__, seconds=10)
    if os.geteuid() != 0:
        harness.say("skipped: what a server has is root's to see")
        raise SystemExit(harness.SKIPPED)
    harness.say(f"seed {options.seed}")
    budget = harness.Budget(options.seconds)
    with harness.running_funnel(options.build, options.device) as funnel:
        soak = Soak(funnel, harness.expect_lines(funnel), random.Random(options.seed))
        soak.play(min(ROUND_S, options.seconds / 2))
        holdings = Holdings(funnel)
        harness.say(f"at first {holdings.first}")
        while True:
            soak.play(min(ROUND_S, max(budget.left(), options.seconds / 2)))
            harness.say(str(dict(soak.done)))
            holdings.check()
            if budget.is_spent():
                break


harness.finish(main)
