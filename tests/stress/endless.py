#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client is killed while its kernel runs without end, on the software GPU.

The kernel is ended, the client disappears from `funnel ps`, and the same server runs the next
programs and is idle after them. That holds also where the client has filled its stream behind the
kernel, so that its thread of the server waits in the driver. The log names the client and the
kernel.
"""
import os
import pathlib
import subprocess
import time

import harness

IDLE_S = 1.0
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# `queued`: more launches behind the kernel than a stream takes.
ROLES = ("busy", "queued")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def begin(funnel, role):
    """A program whose kernel runs."""
    command = [funnel.binary, "run", "-q", "--device", funnel.device, "--",
               str(funnel.build / "tests/limits/limits_load"), role, "600"]
    program = subprocess.Popen(command, env=funnel.environment, text=True, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    assert program.stdout.readline() == "ready\n"
    program.stdin.write("\n")
    program.stdin.flush()
    assert "launched" in program.stdout.readline()
    return program


def await_server(funnel, what, is_true):
    began = time.monotonic()
    while not is_true():
        assert time.monotonic() - began < harness.TIMEOUT, what
        time.sleep(0.05)


def is_idle(server):
    """Whether the server used next to no CPU time in a while; its watchdog always uses some."""
    before = cpu_seconds(server)
    time.sleep(IDLE_S)
    return cpu_seconds(server) - before < IDLE_S / 10


def log_of(funnel):
    return "".join(log.read_text(errors="replace")
                   for log in (funnel.folder / "log").glob("*.log"))


def kill_one(funnel, role, witness, expected):
    victim = begin(funnel, role)
    if role == "queued":
        time.sleep(1.0)  # it launches until there is no space
    server = funnel.server_pid()
    assert not is_idle(server), "the kernel does not run"
    victim.kill()
    victim.communicate()
    await_server(funnel, f"{victim.pid} is still listed",
                 lambda: [client["pid"] for client in funnel.status()["clients"]] == [witness.pid])
    await_server(funnel, "the server is not idle", lambda: is_idle(server))
    harness.check_end("vector_add", funnel.start_program("vector_add", *harness.PROGRAMS["vector_add"]),
                      expected)
    assert funnel.server_pid() == server, "another server has taken over"
    # The log names whose kernel it was, and which.
    lines = [line for line in log_of(funnel).splitlines() if "kernel endless still ran" in line]
    assert any(f"{victim.pid}" in line for line in lines), f"the log does not name it: {lines}"


def main():
    options = harness.arguments_of(__doc__)
    with harness.running_funnel(options.build, "soft") as funnel:
        expected = funnel.run_directly("vector_add", *harness.PROGRAMS["vector_add"])
        # Not alone, or the daemon would replace the server of an abandoned kernel.
        witness = begin_witness(funnel)
        try:
            for role in ROLES:
                kill_one(funnel, role, witness, expected)
            assert witness.poll() is None, "another client has ended, too"
        finally:
            witness.kill()
            witness.communicate()
        funnel.await_idle()
    harness.say("kernels without end were ended with their clients")


def begin_witness(funnel):
    """A client that has a context and does nothing."""
    command = [funnel.binary, "run", "-q", "--device", funnel.device, "--",
               str(funnel.build / "tests/limits/limits_load"), "steady", "600"]
    program = subprocess.Popen(command, env=funnel.environment, text=True, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    assert program.stdout.readline() == "ready\n"
    return program


harness.finish(main)
