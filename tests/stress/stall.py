#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that wait for another are named in the log and in `funnel status`. A server that stands
still for longer than the stall timeout is replaced.

The driver behaves as NVIDIA's does (FUNNEL_SOFT_STALLS), and there is no spare lane. The server
makes calls that wait for all kernels at once (FUNNEL_OFF=idle-point). A program with new code waits
for a kernel that runs until it is told to end, and a witness that launches waits behind it. Then a
server is stopped by a signal, so that its heartbeat is missing.
"""
import os
import signal
import subprocess
import time

import harness
from scene import Probe, Program

LOADS = "cuLibraryGetModule", "cuKernelGetFunction", "cuLibraryGetGlobal"  # which wait for kernels


def log_of(funnel):
    return (funnel.folder / "log/control.log").read_text(errors="replace")


def await_log(funnel, text):
    began = time.monotonic()
    while text not in log_of(funnel):
        assert time.monotonic() - began < harness.TIMEOUT, f"{text!r} is not logged"
        time.sleep(0.05)


def await_call(funnel, program):
    began = time.monotonic()
    while not any(client["pid"] == program.process.pid and client["call"] in LOADS
                  for client in funnel.status()["clients"]):
        assert time.monotonic() - began < harness.TIMEOUT, "the program does not wait for the kernel"
        time.sleep(0.05)


def begin_wait(funnel):
    """The kernel, the program that waits for it, and the witness behind that."""
    witness = Program(funnel, "witness")
    witness.expect("ready")
    kernel = Program(funnel, "long")
    kernel.expect("running")
    loader = Program(funnel, "new-client", 100)
    await_call(funnel, loader)
    witness.tell()
    return kernel, loader, witness


def stalled_line(funnel):
    return next(line for line in log_of(funnel).splitlines() if "has been in" in line)


def check_named(funnel, kernel, loader, witness):
    """Until the kernel is told to end they wait, so nothing here is a matter of time."""
    await_log(funnel, "has been in")
    line = stalled_line(funnel)
    assert f"client {{PID: {loader.process.pid}," in line, line
    assert any(f"has been in {call} for" in line for call in LOADS), line
    assert "scene new-client" in line and "1 other is in a call" in line, line
    assert f"the kernel that was launched last is wait of {{PID: {kernel.process.pid}," in \
        line.replace("client ", ""), line
    clients = {client["pid"]: client for client in funnel.status()["clients"]}
    assert clients[loader.process.pid]["call"] in LOADS, clients
    assert clients[witness.process.pid]["call_ms"] >= 1000, clients
    assert not clients[kernel.process.pid]["call"], clients
    shown = subprocess.run([funnel.binary, "status"], env=funnel.environment, text=True,
                           capture_output=True, check=True).stdout
    assert "clients wait: client" in shown and "(in cu" in shown, shown


def play_named(build):
    with harness.running_funnel(build) as funnel:
        programs = kernel, loader, witness = begin_wait(funnel)
        try:
            server = funnel.server_pid()
            check_named(funnel, kernel, loader, witness)
            kernel.tell()
            witness.expect("launched")
            loader.expect("done")
            await_log(funnel, "no client waits for another any more")
            assert funnel.server_pid() == server, "the server was replaced"
        finally:
            for program in programs:
                program.kill()


def await_new_server(funnel, server):
    began = time.monotonic()
    while os.path.exists(f"/proc/{server}"):
        assert time.monotonic() - began < harness.TIMEOUT, "the server is not replaced"
        time.sleep(0.05)


def play_replaced(build):
    """The clients that have no work in flight continue, also the one whose call of the driver
    lasted so long. The others hear the error."""
    with harness.running_funnel(build, "soft", "--stall-timeout", "4") as funnel:
        probe = Probe(funnel)
        programs = kernel, loader, witness = begin_wait(funnel)
        try:
            await_new_server(funnel, funnel.server_pid())
            kernel.tell()
            for program in kernel, witness:
                assert "error" in program.process.stdout.readline()
            loader.expect("done")
            probe.ask("look")
            probe.ask("round")
            assert "has kept clients waiting for 4 s" in log_of(funnel)
        finally:
            for program in programs:
                program.kill()
            probe.process.kill()


def play_stopped(build):
    with harness.running_funnel(build, "soft", "--stall-timeout", "5") as funnel:
        probe = Probe(funnel)
        try:
            server = funnel.server_pid()
            os.kill(server, signal.SIGSTOP)
            await_log(funnel, f"Server {server} has sent no heartbeat for ")
            assert "its process is stopped" in log_of(funnel)
            await_new_server(funnel, server)
            probe.ask("look")
            probe.ask("round")
            assert "has sent no heartbeat for 5 s, the daemon's stall timeout" in log_of(funnel)
        finally:
            probe.process.kill()


def main():
    options = harness.arguments_of(__doc__)
    play_named(options.build)
    play_replaced(options.build)
    play_stopped(options.build)
    harness.say("clients that wait are named, and servers that stand still are replaced")


harness.finish(main)
