#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients are killed while their kernels run (--kills), and the server is killed (--server-kills).
Kernels fault in six ways (--faults so often in all, --kind to choose). Beside them are programs
that none of it may harm.

A witness launches and checks its results while clients die. Programs with nothing in flight go on
after the end of each server, and what that takes is printed. It is the time of the first question,
whose program has the next server started, and of the others. With --spare each server has a standby
when it is killed. The log names the offender of each fault. When the time (--seconds) is over, or a
signal comes, what has been found so far is printed. Runs on a GPU with --device cuda, for example
with --kills 1000 --server-kills 100 --faults 100.
"""
import os
import signal
import statistics
import threading
import time

import harness
from scene import Probe, Program

AT_ONCE = 16 if (os.cpu_count() or 1) >= 16 else 8
WITNESS_PAUSE = 0.02
IDLE = 3
# What each may report: a GPU finds a shared address out of range in one of several ways.
FAULTS = {"address": [700], "misaligned": [716], "shared": [700, 717, 719], "trap": [719],
          "assertion": [710], "instruction": [715]}
# A GPU may take another barrier than the one that does not exist.
FAULTS_OR_NONE = ["instruction"]


class Killers:
    """Threads that each start a client and kill it while its kernel runs, again and again."""

    def __init__(self, funnel, kills, budget):
        self.funnel, self.budget, self.left = funnel, budget, kills
        self.killed, self.error = 0, None
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.work, daemon=True)
                        for _ in range(min(AT_ONCE, kills))]
        for thread in self.threads:
            thread.start()

    def take(self):
        with self.lock:
            goes_on = self.left > 0 and not self.error and not self.budget.is_spent()
            self.left -= goes_on
            return goes_on

    def work(self):
        try:
            while self.take():
                client = Program(self.funnel, "always")
                try:
                    client.expect("running")
                finally:
                    client.kill()
                with self.lock:
                    self.killed += 1
        except (AssertionError, OSError) as error:
            self.error = error

    def are_at_work(self):
        return any(thread.is_alive() for thread in self.threads)

    def end(self):
        self.left = 0
        for thread in self.threads:
            thread.join(timeout=harness.TIMEOUT)


def kill_clients(funnel, witness, kills, budget):
    launches = 0
    killers = Killers(funnel, kills, budget)
    try:
        while killers.are_at_work():
            witness.tell()
            witness.expect("launched")
            launches += 1
            time.sleep(WITNESS_PAUSE)
        if killers.error:
            raise killers.error
    finally:
        killers.end()
        harness.say(f"{killers.killed} clients killed while their kernels ran, of {kills}; the "
                    f"witness's {launches} results were right")


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

    def say(self, wanted):
        harness.say(f"{self.what}: {len(self.first)} of {wanted}")
        for name, times in ("the first", self.first), ("others", self.others):
            if times:
                harness.say(f"{self.what}: {name} went on after {statistics.median(times) * 1e3:.0f} "
                            f"ms (median), {max(times) * 1e3:.0f} ms (longest) of {len(times)}")


def kill_servers(funnel, probes, kills, spare, budget):
    times = Times(f"servers killed{', with a standby' if spare else ''}")
    try:
        for _ in range(kills):
            if spare:
                funnel.await_standby(budget)
            if budget.is_spent():
                break
            os.kill(funnel.server_pid(), signal.SIGKILL)
            times.ask(probes)
    finally:
        times.say(kills)


def control_log(funnel):
    return (funnel.folder / "log/control.log").read_text(errors="replace")


def await_log(funnel, text):
    """The daemon hears of a fault when all clients have been told."""
    began = time.monotonic()
    while text not in control_log(funnel):
        assert time.monotonic() - began < harness.TIMEOUT, f"{text!r} is not logged"
        time.sleep(0.001)


def fault(funnel, probes, kind, times):
    """False when the device does not find this fault."""
    offender = Program(funnel, "fault", kind, is_copy=True)
    said = offender.process.stdout.readline().strip()
    offender.end()
    if said == "error 0" and kind in FAULTS_OR_NONE:
        return False
    assert said in [f"error {error}" for error in FAULTS[kind]], f"{kind}: {said}"
    await_log(funnel, f"in kernel {kind} of {{PID: {offender.process.pid},")
    times.ask(probes)
    return True


def fault_in_one_way(funnel, probes, kind, faults, spare, budget):
    times = Times(f"faults, {kind}")
    try:
        for number in range(faults):
            if spare:
                funnel.await_standby(budget)
            if budget.is_spent():
                break
            if not fault(funnel, probes, kind, times):
                harness.say(f"faults, {kind}: this device reports none")
                break
    finally:
        times.say(faults)


def fault_in_all_ways(funnel, probes, faults, kinds, spare, budget):
    for number, kind in enumerate(kinds):
        fault_in_one_way(funnel, probes, kind, max(faults // len(kinds), 1), spare,
                         budget.part(len(kinds) - number))


def kill_beside_witness(funnel, kills, budget):
    witness = Program(funnel, "witness")
    try:
        witness.expect("ready")
        kill_clients(funnel, witness, kills, budget)
        witness.end()
    finally:
        witness.kill()


def end_servers(funnel, options, budget):
    probes = [Probe(funnel) for _ in range(IDLE)]
    try:
        if options.server_kills:
            kill_servers(funnel, probes, options.server_kills, options.spare,
                         budget.part(2 if options.faults else 1))
        if options.faults:
            fault_in_all_ways(funnel, probes, options.faults, options.kind or list(FAULTS),
                              options.spare, budget)
        if options.spare:
            taken = control_log(funnel).count("takes the place of")
            harness.say(f"{taken} times a standby took the place of a server")
    finally:
        for probe in probes:
            probe.kill()


def main():
    options = harness.arguments_of(__doc__)
    budget = harness.Budget(options.seconds)
    with harness.running_funnel(options.build, options.device,
                                *(["--spare"] if options.spare else [])) as funnel:
        if options.kills:
            more = bool(options.server_kills) + bool(options.faults)
            kill_beside_witness(funnel, options.kills, budget.part(1 + more))
        if options.server_kills or options.faults:
            end_servers(funnel, options, budget)


harness.finish(main)
