#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No program's launches wait for another's long kernel, whatever a third one loads.

A kernel runs until it is told to end. Meanwhile new clients attach and load code that the server has
never seen, and a witness launches and waits. With a spare context all of them must come to their
end while the kernel runs. Without one the witness must, and the new clients afterwards. New clients
also come to their end beside a program that always has long kernels. Nothing here is a matter of
time: what does not come to its end hangs until the test's timeout. The driver behaves as NVIDIA's
does (FUNNEL_SOFT_STALLS): a load waits for the kernel, and all launches wait for the load. When the
time (--seconds) is over, or a signal comes, what has been done so far is printed.
"""
import itertools
import time

import harness
from scene import Program

ROUNDS = 20
MOVES = 2
NEW_CLIENTS = 3
LAUNCHES = 20
FEW_STREAMS, MANY_STREAMS = 40, 300

numbers = itertools.count(100)


def launch_all(witness):
    for _ in range(LAUNCHES):
        witness.tell()
        witness.expect("launched")


def play(funnel, witness):
    """Every new client ends, and every launch of the witness, before the kernel is told to."""
    kernel = Program(funnel, "long")
    try:
        kernel.expect("running")
        new_clients = [Program(funnel, "new-client", next(numbers)) for _ in range(NEW_CLIENTS)]
        launch_all(witness)
        for new_client in new_clients:
            new_client.expect("done")
            new_client.end()
        launch_all(witness)
        kernel.tell()
        kernel.expect("done")
        kernel.end()
    finally:
        kernel.kill()


def play_in_one_context(funnel, witness):
    """The new clients' loads wait for the kernel, and the witness does not wait for the loads."""
    kernel = Program(funnel, "long")
    new_clients = []
    try:
        kernel.expect("running")
        new_clients = [Program(funnel, "new-client", next(numbers)) for _ in range(NEW_CLIENTS)]
        for _ in range(3):
            time.sleep(0.1)  # so that the new clients come to their loads
            launch_all(witness)
        kernel.tell()
        kernel.expect("done")
        kernel.end()
        for new_client in new_clients:
            new_client.expect("done")
            new_client.end()
    finally:
        for program in [kernel, *new_clients]:
            program.kill()


def play_log(funnel, witness):
    """The log says what a program has waited for, and what spares it that."""
    kernel, new_client = Program(funnel, "long"), None
    try:
        kernel.expect("running")
        new_client = Program(funnel, "new-client", next(numbers))
        time.sleep(2)  # what is worth a line
        launch_all(witness)
        kernel.tell()
        kernel.expect("done")
        kernel.end()
        new_client.expect("done")
        new_client.end()
        await_log(funnel, f"{{PID: {new_client.process.pid}, Context ID:", 1)
        await_log(funnel, "for the kernels of others before", 1)
        await_log(funnel, "funnel start --spare", 1)
    finally:
        for program in filter(None, [kernel, new_client]):
            program.kill()


def play_frees(funnel, witness):
    """What is freed waits for the kernel, and the witness does not wait for that."""
    kernel, freeing = Program(funnel, "long"), Program(funnel, "frees")
    try:
        kernel.expect("running")
        freeing.expect("ready")
        freeing.tell()
        for _ in range(3):
            time.sleep(0.1)  # so that the calls are being made
            launch_all(witness)
        kernel.tell()
        kernel.expect("done")
        kernel.end()
        freeing.expect("done")
        freeing.end()
    finally:
        kernel.kill()
        freeing.kill()


def play_streams(funnel, witness):
    """The server has room for some streams, so that they are created beside the kernel. Many wait
    for it, and the witness does not wait for them."""
    programs = [Program(funnel, "streams", FEW_STREAMS), Program(funnel, "streams", MANY_STREAMS)]
    few, many = programs
    try:
        for program in programs:
            program.expect("ready")
        kernel = Program(funnel, "long")
        programs.append(kernel)
        kernel.expect("running")
        few.tell()
        few.expect("done")
        few.end()
        many.tell()
        for _ in range(3):
            time.sleep(0.1)  # so that the calls are being made
            launch_all(witness)
        kernel.tell()
        kernel.expect("done")
        kernel.end()
        many.expect("done")
        many.end()
    finally:
        for program in programs:
            program.kill()


def play_beside_endless_work(funnel, witness):
    """The program that always has long kernels is held back for each load, and gets all done."""
    busy = Program(funnel, "always")
    try:
        busy.expect("running")
        for _ in range(NEW_CLIENTS):
            new_client = Program(funnel, "new-client", next(numbers))
            launch_all(witness)
            new_client.expect("done")
            new_client.end()
        busy.tell()
        busy.expect("done")
        busy.end()
    finally:
        busy.kill()


LONG = "Long kernels run in the primary context"


def count_lines(funnel, text):
    return sum(text in line for line in funnel.server_log())


def await_log(funnel, text, count):
    began = time.monotonic()
    while count_lines(funnel, text) < count:
        assert time.monotonic() - began < harness.TIMEOUT, f"{text!r} is not logged {count} times"
        time.sleep(0.05)


def await_calm(funnel):
    """The server says only after a calm while again that there are long kernels."""
    time.sleep(2.0)


def play_move(funnel, round):
    """A program that has worked in the primary context loads new code beside a long kernel there.
    It moves to the spare one, and back when the kernel has ended."""
    await_calm(funnel)
    before = count_lines(funnel, LONG)
    mover = Program(funnel, "mover", 1000 * (round + 1))
    try:
        mover.expect("moved")
        kernel = Program(funnel, "long")
        try:
            kernel.expect("running")
            await_log(funnel, LONG, before + 1)
            time.sleep(0.3)  # until the mover has been told, too
            mover.tell()
            mover.expect("moved")
            await_log(funnel, "leaves the primary context", round + 1)
            kernel.tell()
            kernel.expect("done")
            kernel.end()
        finally:
            kernel.kill()
        for _ in range(5):
            time.sleep(1.2)
            mover.tell()
            mover.expect("moved")
        await_log(funnel, "leaves the spare context", round + 1)
        mover.end()
    finally:
        mover.kill()


def check_status(funnel):
    text = funnel.status_text()
    assert "its spare context takes" in text, f"no spare context: {text}"


def play_rounds(funnel, rounds, budget, witness, *scenes):
    done = 0
    try:
        while done < rounds and not budget.is_spent():
            for scene in scenes:
                scene(funnel, witness)
            done += 1
    finally:
        names = ", ".join(scene.__name__ for scene in scenes)
        harness.say(f"{names}: {done} of {rounds} long kernels, and as many times {NEW_CLIENTS} new "
                    f"clients and the launches of another program beside them")


def repeat(funnel, rounds, budget, *scenes):
    witness = Program(funnel, "witness")
    try:
        witness.expect("ready")
        server = funnel.server_pid()
        play_rounds(funnel, rounds, budget, witness, *scenes)
        witness.end()
        assert funnel.server_pid() == server, "the server was replaced"
    finally:
        witness.kill()


def move(funnel, budget):
    done = 0
    try:
        while done < MOVES and not budget.is_spent():
            play_move(funnel, done)
            done += 1
    finally:
        harness.say(f"{done} of {MOVES} moves from one context to the other and back")


def main():
    options = harness.arguments_of(__doc__)
    budget = harness.Budget(options.seconds)
    with harness.running_funnel(options.build, options.device, "--spare") as funnel:
        repeat(funnel, ROUNDS, budget.part(3), play)
        move(funnel, budget.part(2))
        check_status(funnel)
    with harness.running_funnel(options.build, options.device) as funnel:
        repeat(funnel, 1, budget, play_log)
        repeat(funnel, ROUNDS // 2, budget, play_in_one_context, play_frees,
               play_streams, play_beside_endless_work)


harness.finish(main)
