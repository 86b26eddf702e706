#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A new program beside a long kernel starts in the spare lane, and moves to the main lane later.

A kernel runs until it is told to end. New programs with code of their own start beside it. The first
may come before the daemon knows of the kernel, and waits for it. Those that start in the spare lane, or
move there before they load code, come to their end meanwhile. One that stays moves to the main lane
when the kernel has ended, and what it has is right there. The driver behaves as NVIDIA's does
(FUNNEL_SOFT_STALLS): a load waits for the kernel.
"""
import itertools
import os
import time

import harness
from scene import Program

STARTS, MOVES = "starts in the spare lane", "moves to the spare lane"

numbers = itertools.count(100)


def count_lines(funnel, text):
    return (funnel.folder / "log/control.log").read_text(errors="replace").count(text)


def start_until_one_is_done(funnel, programs):
    began = time.monotonic()
    while True:
        programs.append(Program(funnel, "new-client", next(numbers), is_copy=True))
        if any(program.has_said(0.3) for program in programs):
            return
        assert time.monotonic() - began < harness.TIMEOUT, "every new program waits for the kernel"


def await_return(funnel, mover):
    began = time.monotonic()
    returned = f"Client {mover.process.pid} has moved to the server uid_{os.getuid()}\t"
    while not count_lines(funnel, returned):
        assert time.monotonic() - began < harness.TIMEOUT, "the program stays in the spare lane"
        time.sleep(0.1)
        mover.tell()
        mover.expect("moved")
    mover.tell()
    mover.expect("moved")


def await_end_of_spare_lane(funnel):
    began = time.monotonic()
    while ":spare" in funnel.status_text():
        assert time.monotonic() - began < harness.TIMEOUT, "the spare lane does not end"
        time.sleep(0.1)


def play(funnel, kernel, programs):
    kernel.expect("running")
    start_until_one_is_done(funnel, programs)
    assert count_lines(funnel, STARTS) + count_lines(funnel, MOVES), \
        "a new program is done, and was not in the spare lane"
    mover = Program(funnel, "mover", 1000, is_copy=True)
    mover.expect("moved")
    kernel.tell()
    kernel.expect("done")
    kernel.end()
    for program in programs:
        program.expect("done")
        program.end()
    await_return(funnel, mover)
    mover.end()
    await_end_of_spare_lane(funnel)
    harness.say(f"{count_lines(funnel, STARTS)} of {len(programs) + 1} new programs started in the spare "
                f"lane, and {count_lines(funnel, MOVES)} moved there")


def main():
    options = harness.arguments_of(__doc__)
    programs = []
    with harness.running_funnel(options.build, options.device) as funnel:
        kernel = Program(funnel, "long")
        try:
            play(funnel, kernel, programs)
        finally:
            for program in [kernel, *programs]:
                program.kill()


harness.finish(main)
