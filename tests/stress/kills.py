#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client is killed at a random moment, a hundred times, while two others continue to compute.

The others' results stay right, and the server stays the same one. Of the dead nothing is left: no
entry in `funnel ps`, no descriptor, thread or device memory in the server.
"""
import random
import threading
import time

import harness


class Bystander(threading.Thread):
    """Runs one program after the other until told to stop, and notes the first thing wrong."""

    def __init__(self, funnel, names, expected):
        super().__init__()
        self.funnel, self.names, self.expected = funnel, names, expected
        self.ends = threading.Event()
        self.runs = 0
        self.wrong = None

    def run(self):
        try:
            while not self.ends.is_set():
                name = self.names[self.runs % len(self.names)]
                program = self.funnel.start_program(name, *harness.PROGRAMS[name])
                harness.check_end(name, program, self.expected[name])
                self.runs += 1
        except Exception as error:  # the main thread reports it
            self.wrong = error


def run_each(funnel, expected):
    """Afterwards the server has all that it keeps for these programs."""
    for name, arguments in harness.PROGRAMS.items():
        harness.check_end(name, funnel.start_program(name, *arguments), expected[name])


def kill_one(funnel, chance):
    name = chance.choice(list(harness.PROGRAMS))
    # Far more rounds than it can do.
    program = funnel.start_program(name, *harness.PROGRAMS[name][:2], "-r", "1000000")
    time.sleep(chance.uniform(0, 0.2))
    assert program.poll() is None, f"{name} ended by itself: {program.communicate()}"
    program.kill()
    program.communicate()
    return program.pid


def await_gone(funnel, pid):
    began = time.monotonic()
    while any(client["pid"] == pid for client in funnel.status()["clients"]):
        assert time.monotonic() - began < harness.TIMEOUT, f"{pid} is still listed"
        time.sleep(0.02)


def kill_many(funnel, bystanders, chance, kills):
    for number in range(1, kills + 1):
        await_gone(funnel, kill_one(funnel, chance))
        for bystander in bystanders:
            assert not bystander.wrong, f"after {number} kills: {bystander.wrong}"
        if number % 20 == 0:
            harness.say(f"{number} killed, {sum(b.runs for b in bystanders)} others' runs right")


def kill_among_others(funnel, expected, chance, kills):
    names = list(harness.PROGRAMS)
    bystanders = [Bystander(funnel, names, expected), Bystander(funnel, names[::-1], expected)]
    for bystander in bystanders:
        bystander.start()
    try:
        kill_many(funnel, bystanders, chance, kills)
    finally:
        for bystander in bystanders:
            bystander.ends.set()
            bystander.join()
    for bystander in bystanders:
        assert not bystander.wrong, str(bystander.wrong)
        assert bystander.runs > 0, "the others never got to run"


def main():
    options = harness.arguments_of(__doc__)
    harness.say(f"seed {options.seed}")
    chance = random.Random(options.seed)
    with harness.running_funnel(options.build, options.device) as funnel:
        expected = harness.expect_lines(funnel)
        run_each(funnel, expected)
        server, before = funnel.server_pid(), funnel.await_idle()
        kill_among_others(funnel, expected, chance, options.kills)
        harness.check_nothing_grew(before, funnel.await_idle())
        assert funnel.server_pid() == server, "the server was replaced"
    harness.say(f"{options.kills} killed; the others' results were right, and nothing is left")


harness.finish(main)
