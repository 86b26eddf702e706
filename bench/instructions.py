#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of the calls that programs make most, in the client and in the server.

valgrind's callgrind counts them on the software GPU, so the numbers do not move with the weather.
Two runs with different numbers of calls are subtracted: what is done once drops out. The
server's count leaves out the driver's own instructions, and the client's the waiting itself.
"""
import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = 77
FEW, MANY = 500, 10500
# (row of calls.c, what it is, the calls of it in the client, whether the server's count is steady:
# how a launch and its fence go to the driver is decided by what took how long)
ROWS = [("launch", "a queued launch", ["cuLaunchKernel"], True),
        ("launch_and_wait", "a launch and its wait", ["cuLaunchKernel", "cuStreamSynchronize"], False),
        ("copy", "a copy of 64 bytes to the device", ["cuMemcpyHtoDAsync_v2"], True)]
# What depends on how fast the other side is.
WAITING = ["fence_wait_traced", "ring_wake_consumer"]
# What these ask of the driver.
DRIVER = ["cuLaunchKernelEx", "cuGraphLaunch", "cuGraphExecKernelNodeSetParams_v2",
          "cuStreamWriteValue32_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoDAsync_v2",
          "cuMemcpyAsync", "cuEventCreate", "cuEventRecord", "cuEventQuery", "cuGraphExecDestroy", "cuGraphDestroy"]
CALLGRIND = ["valgrind", "--quiet", "--tool=callgrind", "--compress-strings=no",
             "--compress-pos=no"]


def counting(functions, out):
    """Counts inside of these functions. One that is called by another stops the count."""
    return [*CALLGRIND, *(f"--toggle-collect={name}" for name in functions),
            f"--callgrind-out-file={out}"]


class Tree:
    """A build whose server runs under callgrind: programs find their siblings by their own path."""

    def __init__(self, build, folder):
        self.build, self.folder = Path(build).resolve(), Path(folder)
        (self.folder / "bin").mkdir()
        for program in ("funnel", "funneld"):
            shutil.copy(self.build / "bin" / program, self.folder / "bin")
        (self.folder / "lib").symlink_to(self.build / "lib")

    def count_server_in(self, out):
        command = counting(["server_dispatch", *DRIVER], out)
        self.write_server(f"exec {' '.join(command)} {self.build}/bin/funnel-server \"$@\"")

    def leave_server_alone(self):
        self.write_server(f"exec {self.build}/bin/funnel-server \"$@\"")

    def write_server(self, command):
        server = self.folder / "bin" / "funnel-server"
        server.write_text(f"#!/bin/sh\n{command}\n")
        server.chmod(0o755)

    def run(self, row, times, before=()):
        """Runs one program that makes so many calls, with a daemon and a server of its own."""
        pipe = self.folder / "pipe"
        env = dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=str(pipe), FUNNEL_OFF="sandbox",
                   CUDA_MPS_LOG_DIRECTORY=str(self.folder / "log"))
        funnel = str(self.folder / "bin" / "funnel")
        quiet = {"env": env, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL,
                 "timeout": 120}
        program = [str(self.build / "bench" / "calls"), "-r", str(times), row]
        subprocess.run([funnel, "start", "--device", "soft"], check=True, **quiet)
        try:
            subprocess.run([funnel, "run", "-q", "--", *before, *program], check=True, **quiet)
        finally:
            subprocess.run([funnel, "stop", "--timeout", "20"], check=True, **quiet)


def costs(path):
    """{function: instructions of its own} of a callgrind file."""
    found = collections.Counter()
    function, inclusive = "", False
    for line in Path(path).read_text(errors="replace").splitlines():
        if line.startswith("fn="):
            function = line[3:]
        elif line.startswith("calls="):
            inclusive = True
        elif re.match(r"^[\d*+-]", line):
            if not inclusive:
                found[function] += int(line.split()[-1])
            inclusive = False
    return found


def per_call(measure):
    """Of every function, by the difference of two runs."""
    few, many = measure(FEW), measure(MANY)
    return {key: (many[key] - few[key]) / (MANY - FEW) for key in many}


def client_costs(tree, folder, row, calls):
    def measure(times):
        out = folder / f"client.{row}.{times}"
        tree.run(row, times, counting([*calls, *WAITING], out))
        return costs(out)

    tree.leave_server_alone()
    return per_call(measure)


def server_costs(tree, folder, row):
    def measure(times):
        out = folder / f"server.{row}.{times}"
        tree.count_server_in(out)
        tree.run(row, times)
        return costs(out)

    return per_call(measure)


def show(title, found, functions):
    print(f"{title}: {sum(found.values()):.0f} instructions")
    ordered = sorted(found.items(), key=lambda item: -item[1])
    for function, cost in ordered[:functions]:
        if cost >= 0.5:
            print(f"    {cost:6.0f}  {function}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--functions", type=int, default=12, help="how many to list (default: 12)")
    args = parser.parse_args()
    if not shutil.which("valgrind"):
        print("skipped: no valgrind here")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="bench-count-") as folder:
        tree = Tree(args.build, folder)
        for row, title, calls, steady in ROWS:
            show(f"{title}, in the client", client_costs(tree, Path(folder), row, calls),
                 args.functions)
            if steady:
                show(f"{title}, in the server without the driver",
                     server_costs(tree, Path(folder), row), args.functions)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, subprocess.SubprocessError) as problem:
        sys.exit(f"instructions: {problem}")
