#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a program pays for Funnel's library where no daemon runs: passthrough.py BUILD [DRIVER].

Runs bench/call_cost alternately on a driver library and on Funnel's, which passes calls on to it.
It prints start, a short call and a queued launch for both. DRIVER is NVIDIA's libcuda.so.1, or
without it the software GPU. The least of many runs counts, since a busy machine only adds.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

STARTS = 40
RUNS = 4


def environment(folder, driver, pipe):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA_", "FUNNEL_", "LD_"))}
    return {**clean, "LD_LIBRARY_PATH": str(folder), "FUNNEL_DRIVER": str(driver),
            "CUDA_MPS_PIPE_DIRECTORY": pipe}


def run(build, environment_, *arguments):
    began = str(time.monotonic() * 1e3)
    done = subprocess.run([build / "bench/call_cost", began, *arguments], env=environment_,
                          stdout=subprocess.PIPE, text=True, check=True, timeout=120)
    return [float(word) for word in done.stdout.split()]


def measure(build, driver):
    """{"directly" | "passed on": (start in ms, call in ns, launch in ns)}"""
    with tempfile.TemporaryDirectory(prefix="fnl-") as pipe:
        ways = {"directly": environment(driver.parent, driver, pipe),
                "passed on": environment(build / "lib/funnel", driver, pipe)}
        starts = {name: [] for name in ways}
        rest = {name: [] for name in ways}
        for _ in range(STARTS):
            for name, way in ways.items():
                starts[name].append(run(build, way, "start")[0])
        for _ in range(RUNS):
            for name, way in ways.items():
                rest[name].append(run(build, way)[1:])
    return {name: (min(starts[name]), *map(min, zip(*rest[name]))) for name in ways}


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    soft = build / "lib/funnel/softgpu/libcuda.so.1"
    found = measure(build, pathlib.Path(sys.argv[2]).absolute() if len(sys.argv) > 2 else soft)
    print(f"{'':12} {'start':>10} {'short call':>12} {'launch':>12}")
    for name, (start, call, launch) in found.items():
        print(f"{name:12} {start:7.3f} ms {call:9.2f} ns {launch:9.1f} ns")
    one, two = found.values()
    print(f"{'more':12} {two[0] - one[0]:7.3f} ms {two[1] - one[1]:9.2f} ns "
          f"{(two[2] / one[2] - 1) * 100:10.2f} %")


if __name__ == "__main__":
    main()
