#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program that launches as much as it can, forever, keeps no other from starting.

Its kernels are short or long, and the queue of its stream is never empty. Beside it new programs
load code that the server has never seen, and set a larger stack. That waits for all streams in a
driver like NVIDIA's (FUNNEL_SOFT_STALLS). A witness launches and waits. All of them must come to
their end while the flood goes on; there is no spare lane. Nothing here is a matter of time but
that. How long it took is printed.
"""
import itertools
import time

import harness
from scene import Program

# Microseconds.
FLOODS = [100], [2000], [30000], [90000], [100, 2000, 30000, 90000]
IN_TWO_STREAMS = [100], [30000], [90000]
LAUNCHES = 10

numbers = itertools.count(100)


def timed(action, *arguments):
    began = time.monotonic()
    action(*arguments)
    return time.monotonic() - began


def start(funnel, *arguments):
    program = Program(funnel, *arguments)
    try:
        program.expect("done")
        program.end()
    finally:
        program.kill()


def launch(witness):
    witness.tell()
    witness.expect("launched")


def play(funnel, witness, lengths, floods, streams=1):
    try:
        for flood in floods:
            flood.expect("running")
        starts = [timed(start, funnel, "new-client", next(numbers)) for _ in range(3)]
        stack = timed(start, funnel, "stack", 4096 + 64 * next(numbers))
        worst = max(timed(launch, witness) for _ in range(LAUNCHES))
        for flood in floods:
            assert flood.process.poll() is None, "the flood has ended"
    finally:
        for flood in floods:
            flood.kill()
    kinds = "/".join(f"{length / 1000:g}" for length in lengths)
    where = " in each of two streams" if streams == 2 else ""
    harness.say(f"{len(floods)} x {kinds} ms{where}: new programs end after "
                f"{' '.join(f'{seconds:.2f}' for seconds in starts)} s, one with a larger stack after "
                f"{stack:.2f} s, the worst launch beside them takes {worst * 1000:.1f} ms")


def main():
    options = harness.arguments_of(__doc__)
    with harness.running_funnel(options.build, options.device) as funnel:
        witness = Program(funnel, "witness")
        try:
            witness.expect("ready")
            server = funnel.server_pid()
            for lengths in FLOODS:
                play(funnel, witness, lengths, [Program(funnel, "flood", *lengths)])
            play(funnel, witness, FLOODS[0], [Program(funnel, "flood", *FLOODS[0])
                                              for _ in range(3)])
            for lengths in IN_TWO_STREAMS:
                play(funnel, witness, lengths, [Program(funnel, "flood-two", *lengths)], 2)
            witness.end()
            assert funnel.server_pid() == server, "the server was replaced"
        finally:
            witness.kill()


harness.finish(main)
