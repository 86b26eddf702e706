#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients are killed while their kernels run (--kills), the server is killed (--server-kills), and
kernels fault in four ways (--faults), beside programs that none of it may harm.

A witness launches and checks its results while clients die. Programs with nothing in flight go on
after the end of each server, and what that takes is printed: the time of the first question, whose
program has the next server started, and of the others. The log names the culprit of each fault.
Runs on a GPU with --device cuda, for example with --kills 1000 --server-kills 100 --faults 100.
"""
import os
import signal
import statistics
import time

import harness
from scene import Probe, Program

AT_ONCE = 8
IDLE = 3
# What each may report: a GPU finds a shared address out of range in one of several ways.
FAULTS = {"address": [700], "misaligned": [716], "shared": [700, 717, 719], "trap": [719]}


def kill_clients(funnel, witness, kills):
    for killed in range(0, kills, AT_ONCE):
        if killed and killed % 200 == 0:
            harness.say(f"{killed} clients killed")
        clients = [Program(funnel, "always") for _ in range(min(AT_ONCE, kills))]
        for client in clients:
            client.expect("running")
        for client in clients:
            client.kill()
        witness.tell()
        witness.expect("launched")


class Times:
    def __init__(self, what):
        self.what, self.first, self.others = what, [], []

    def ask(self, probes):
        """How long each needs to go on."""
        for probe in probes:
            began = time.monotonic()
            probe.ask("look")
            (self.first if probe is probes[0] else self.others).append(time.monotonic() - began)
        for probe in probes:
            probe.ask("round")

    def say(self):
        for name, times in ("the first", self.first), ("others", self.others):
            if times:
                harness.say(f"{self.what}: {name} went on after {statistics.median(times) * 1e3:.0f} "
                            f"ms (median), {max(times) * 1e3:.0f} ms (longest) of {len(times)}")


def await_end(pid):
    began = time.monotonic()
    while os.path.exists(f"/proc/{pid}"):
        assert time.monotonic() - began < harness.TIMEOUT, f"server {pid} does not end"
        time.sleep(0.001)


def kill_servers(funnel, probes, kills):
    times = Times(f"{kills} servers killed")
    for _ in range(kills):
        os.kill(funnel.server_pid(), signal.SIGKILL)
        times.ask(probes)
    times.say()


def fault(funnel, probes, kind, number, times):
    """Its command line is another one each time, or it would be in quarantine."""
    server = funnel.server_pid()
    culprit = Program(funnel, "fault", kind, number)
    said = culprit.process.stdout.readline().strip()
    assert said in [f"error {error}" for error in FAULTS[kind]], f"{kind}: {said}"
    culprit.end()
    await_end(server)
    times.ask(probes)
    log = (funnel.folder / "log/control.log").read_text(errors="replace")
    assert f"in kernel {kind} of {{PID: {culprit.process.pid}," in log, f"not named: {kind}"


def fault_many(funnel, probes, faults):
    for kind in FAULTS:
        times = Times(f"faults, {kind}")
        for number in range(faults // len(FAULTS)):
            fault(funnel, probes, kind, number, times)
        times.say()


def kill_beside_witness(funnel, kills):
    witness = Program(funnel, "witness")
    try:
        witness.expect("ready")
        kill_clients(funnel, witness, kills)
        witness.end()
    finally:
        witness.kill()
    harness.say(f"{kills} clients killed while their kernels ran")


def main():
    options = harness.arguments_of(__doc__)
    with harness.running_funnel(options.build, options.device,
                                *(["--spare"] if options.spare else [])) as funnel:
        if options.kills:
            kill_beside_witness(funnel, options.kills)
        probes = [Probe(funnel) for _ in range(IDLE)]
        try:
            if options.server_kills:
                kill_servers(funnel, probes, options.server_kills)
            fault_many(funnel, probes, options.faults)
        finally:
            for probe in probes:
                probe.kill()


harness.finish(main)
