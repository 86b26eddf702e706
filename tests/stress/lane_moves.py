#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs move between the main lane and the batch lane and back (--kills so often), under load.

Two programs launch small kernels, wait and check their results. Two more do the same with wide
kernels, streams, events, graphs, device and managed memory. Each in turn moves by an order while it
goes on, and none of them ever stops for it. All results have to be right, and all moves have to
end.
"""
import re
import subprocess
import time

import harness
from scene import Program

KINDS = ("wide", "busy", "wide", "busy")
LANES = ("batch", "normal")


def start(funnel):
    programs = [Program(funnel, kind) for kind in KINDS]
    for program in programs:
        program.expect(program.name)
    return programs


def check(programs):
    for program in programs:
        program.tell()
    for program in programs:
        said = program.process.stdout.readline()
        assert said.startswith("right"), f"a {program.name} program says {said!r}"


def has_moved(funnel, pid, count):
    log = (funnel.folder / "log/control.log").read_text(errors="replace")
    return len(re.findall(rf"Client {pid} has moved to the server", log)) >= count


def move(funnel, program, lane, count):
    done = subprocess.run([funnel.binary, "limit", "--client", str(program.process.pid), "--class", lane],
                          env=funnel.environment, text=True, capture_output=True, timeout=harness.TIMEOUT)
    assert done.returncode == 0, done.stdout + done.stderr
    began = time.monotonic()
    while not has_moved(funnel, program.process.pid, count):
        assert time.monotonic() - began < harness.TIMEOUT, f"a {program.name} program does not move"
        time.sleep(0.05)


def play(funnel, programs, moves, budget):
    done = 0
    try:
        while done < moves and not budget.is_spent():
            turn, number = divmod(done, len(programs))
            move(funnel, programs[number], LANES[turn % 2], turn + 1)
            check(programs)
            done += 1
        for program in programs:
            program.end()
    finally:
        harness.say(f"{done} of {moves} moves of programs that were at work; all results were right")


def main():
    options = harness.arguments_of(__doc__)
    with harness.running_funnel(options.build, options.device) as funnel:
        programs = start(funnel)
        try:
            play(funnel, programs, options.kills, harness.Budget(options.seconds))
        finally:
            for program in programs:
                program.kill()


harness.finish(main)
