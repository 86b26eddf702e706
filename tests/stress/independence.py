#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""With a spare context no program waits for another's long kernel, whatever a third one loads.

A kernel runs until it is told to end. Meanwhile new clients attach and load code that the server has
never seen, and a witness launches and waits. All of them must come to their end while the kernel
runs: nothing here is a matter of time, so what does not come to its end hangs until the test's
timeout. The driver behaves as NVIDIA's does (FUNNEL_SOFT_STALLS): without --spare the first
new client waits for the kernel, and with it the witness does.
"""
import itertools

import harness
from scene import Program

ROUNDS = 8
NEW_CLIENTS = 3
LAUNCHES = 20

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


def check_status(funnel):
    devices = funnel.status()["devices"]
    assert all(device["has_spare_context"] for device in devices), f"no spare context: {devices}"


def main():
    options = harness.arguments_of(__doc__)
    with harness.running_funnel(options.build, options.device, "--spare") as funnel:
        witness = Program(funnel, "witness")
        try:
            witness.expect("ready")
            check_status(funnel)
            server = funnel.server_pid()
            for _ in range(ROUNDS):
                play(funnel, witness)
            witness.end()
            assert funnel.server_pid() == server, "the server was replaced"
        finally:
            witness.kill()
    harness.say(f"{ROUNDS} long kernels: {ROUNDS * NEW_CLIENTS} new clients and "
                f"{ROUNDS * LAUNCHES * 2} launches of another program were done before them")


harness.finish(main)
