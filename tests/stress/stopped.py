#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stopped process (SIGSTOP) delays no other, and continues where it was.

First clients are stopped at random moments, several at a time, while others run. Then the server
is, while a client fills its ring, and it must wait asleep. All results are checked.
"""
import os
import pathlib
import random
import signal
import time

import harness

ROUNDS = 5
STOPPED = 4
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

# Rounds enough that it is still at work when the signal comes.
LONG = {"vector_add": ["-n", "20000", "-r", "3000"], "n_body": ["-n", "128", "-r", "400"]}
# Launches of a hundred bytes each, many times what a ring holds.
FLOOD = ["vector_add", "-n", "1", "-r", "200000"]


def run_beside_stopped(funnel, expected, chance):
    stopped = []
    for number in range(STOPPED):
        name = list(LONG)[number % len(LONG)]
        stopped.append((name, funnel.start_program(name, *LONG[name])))
    try:
        time.sleep(chance.uniform(0.02, 0.4))
        for _, program in stopped:
            program.send_signal(signal.SIGSTOP)
        for name, arguments in harness.PROGRAMS.items():
            harness.check_end(name, funnel.start_program(name, *arguments), expected[name])
        funnel.status()
        for name, program in stopped:
            program.send_signal(signal.SIGCONT)
        for name, program in stopped:
            harness.check_end(name, program, expected["long " + name])
    finally:
        for _, program in stopped:
            program.kill()


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def stop_server(funnel):
    """One program waits to be let in, another for space in its ring; neither burns a core."""
    expected = funnel.run_directly(*FLOOD)
    server = funnel.server_pid()
    flood = stop_under_flood(funnel, server)
    try:
        late = funnel.start_program("n_body", *LONG["n_body"])
        await_sleep([flood, late])
    finally:
        os.kill(server, signal.SIGCONT)
    harness.check_end("vector_add", flood, expected)
    late.kill()
    late.communicate()


def await_sleep(programs):
    """Until then they may have something to do: to start, or to fill a ring."""
    began = time.monotonic()
    while not all_asleep(programs):
        assert time.monotonic() - began < harness.TIMEOUT, \
            "they wait for the server, but not asleep"


def all_asleep(programs):
    """Whether they used next to no CPU time in a second."""
    before = [cpu_seconds(program.pid) for program in programs]
    time.sleep(1.0)
    for program in programs:
        assert program.poll() is None, "it did not wait for the server"
    return all(cpu_seconds(program.pid) - begin < 0.05 for program, begin in zip(programs, before))


def stop_under_flood(funnel, server):
    """On a busy machine the program may be over before this one gets to stop the server."""
    for _ in range(10):
        flood = funnel.start_program(*FLOOD)
        await_work(funnel, flood)
        os.kill(server, signal.SIGSTOP)
        time.sleep(0.5)
        if flood.poll() is None:
            return flood
        os.kill(server, signal.SIGCONT)
        flood.communicate()
    raise AssertionError("it never waited for the server")


def await_work(funnel, program):
    while all(client["pid"] != program.pid for client in funnel.status()["clients"]):
        if program.poll() is not None:
            return
        time.sleep(0.005)


def main():
    options = harness.arguments_of(__doc__)
    harness.say(f"seed {options.seed}")
    chance = random.Random(options.seed)
    with harness.running_funnel(options.build, options.device) as funnel:
        expected = harness.expect_lines(funnel)
        for name, arguments in LONG.items():
            expected["long " + name] = funnel.run_directly(name, *arguments)
        for _ in range(ROUNDS):
            run_beside_stopped(funnel, expected, chance)
        stop_server(funnel)
        funnel.await_idle()
    harness.say(f"{ROUNDS * STOPPED} clients stopped, and the server once: no other program was affected")


harness.finish(main)
