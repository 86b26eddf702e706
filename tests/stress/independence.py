#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No program's launches wait for another's long kernel, whatever a third one loads.

A kernel runs until it is told to end. Meanwhile new clients attach and load code that the server has
never seen, and a witness launches and waits. With a spare lane all of them must come to their
end while the kernel runs. Without one the witness must, and the new clients afterwards. New clients
also come to their end beside a program that always has long kernels. What does not come to its end
hangs until the test's timeout; only a move between lanes may take several tries. The driver behaves
as NVIDIA's does (FUNNEL_SOFT_STALLS): a load waits for the kernel, and all launches wait for the load.
When the time (--seconds) is over, or a signal comes, what has been done so far is printed.
"""
import itertools
import os
import time

import harness
from scene import Program

ROUNDS = 8
MOVES = 2
TRIES = 5  # for each move
NUMBERS = 1000000  # of a mover: it loads new code for each word, and waits for its way back by words
PATIENCE = 10  # seconds, beside a kernel that has no end
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


def count_lines(funnel, text):
    return sum(text in line for line in funnel.server_log())


def await_log(funnel, text, count):
    began = time.monotonic()
    while count_lines(funnel, text) < count:
        assert time.monotonic() - began < harness.TIMEOUT, f"{text!r} is not logged {count} times"
        time.sleep(0.05)


def count_in_journal(funnel, text):
    return (funnel.folder / "log/control.log").read_text(errors="replace").count(text)


def starts_in_spare_lane(funnel, waiting):
    """A new program, which comes to its end or joins those that wait for the kernel."""
    text = "starts in the spare lane"
    before = count_in_journal(funnel, text)
    new_client = Program(funnel, "new-client", next(numbers), is_copy=True)
    waiting.append(new_client)
    if new_client.has_said(PATIENCE):
        end_all([waiting.pop()])
    return count_in_journal(funnel, text) > before


def end_all(programs):
    while programs:
        programs[-1].expect("done")
        programs.pop().end()


def await_known(funnel, is_long, waiting):
    """The daemon knows that a long kernel runs in the main lane, or that none does. It hears of one
    after the server has told its clients."""
    harness.wait_until(lambda: starts_in_spare_lane(funnel, waiting) == is_long,
                       "the daemon does not hear of kernels")


def count_moves(funnel, program):
    """To the spare lane, and to the main lane."""
    client, main = f"Client {program.process.pid}", f"uid_{os.getuid()}"
    starts = count_in_journal(funnel, f"{client} of user {os.getuid()} starts in the spare lane")
    return (starts + count_in_journal(funnel, f"{client} has moved to the server {main}:spare"),
            count_in_journal(funnel, f"{client} has moved to the server {main}\t"))


def await_main_lane(funnel, mover):
    began = time.monotonic()
    while (moves := count_moves(funnel, mover))[0] != moves[1]:
        assert time.monotonic() - began < harness.TIMEOUT, f"the mover stays in the spare lane: {moves}"
        mover.tell()
        mover.expect("moved")
    return moves[0]


def await_departure(funnel, mover, before):
    """The daemon hears of it from the server that the mover has left. That may wait for the kernel."""
    harness.wait_until(lambda: count_moves(funnel, mover)[0] != before,
                       "the mover has not left the main lane")


def leave(funnel, mover):
    """Whether the mover comes to its end beside the kernel. A program that gets no other lane, since
    its work was not done in time, waits for the kernel."""
    waiting = []
    await_known(funnel, False, waiting)
    kernel = Program(funnel, "long")
    try:
        kernel.expect("running")
        await_known(funnel, True, waiting)
        mover.tell()
        has_moved = mover.has_said(PATIENCE)
        kernel.tell()
        kernel.expect("done")
        kernel.end()
        mover.expect("moved")
        end_all(waiting)
    finally:
        for program in [kernel, *waiting]:
            program.kill()
    return has_moved


def leave_in_some_try(funnel, mover):
    for _ in range(TRIES):
        before = await_main_lane(funnel, mover)
        if leave(funnel, mover):
            await_departure(funnel, mover, before)
            after = await_main_lane(funnel, mover)
            assert after == before + 1, f"the mover has left the main lane {after - before} times"
            return
    raise AssertionError(f"the mover waits for {TRIES} of {TRIES} kernels")


def play_move(funnel, round):
    """A program that has worked in the main lane loads new code beside a long kernel there.
    It moves to the spare lane, and back when the kernel has ended."""
    mover = Program(funnel, "mover", NUMBERS * (round + 1), is_copy=True)
    try:
        mover.expect("moved")
        leave_in_some_try(funnel, mover)
        mover.end()
    finally:
        mover.kill()


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


def repeat(funnel, rounds, budget, *scenes, has_standby=False):
    witness = Program(funnel, "witness")
    try:
        witness.expect("ready")
        if has_standby:
            funnel.await_standby(budget)
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
        harness.say(f"{done} of {MOVES} moves from one lane to the other and back")


def main():
    options = harness.arguments_of(__doc__)
    budget = harness.Budget(options.seconds)
    with harness.running_funnel(options.build, options.device, "--spare") as funnel:
        repeat(funnel, ROUNDS, budget.part(3), play, has_standby=True)
        move(funnel, budget.part(2))
    with harness.running_funnel(options.build, options.device) as funnel:
        repeat(funnel, 1, budget, play_log)
        repeat(funnel, ROUNDS // 2, budget, play_in_one_context, play_frees,
               play_streams, play_beside_endless_work)


harness.finish(main)
