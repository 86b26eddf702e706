#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says where a random kernel's results on two devices part. It names the first statement after
which a register differs, its text, and the values of some threads before and after it.

explain_seed.py RUN_KERNELS LIBRARIES OTHER_LIBRARIES SEED...

LIBRARIES is what LD_LIBRARY_PATH is set to for a device: build/lib/funnel/softgpu for the software
GPU, '' for the system's driver. FIRST=VALUE before a path sets a variable as well, for example
FUNNEL_SOFT_VECTORS=sse2:build/lib/funnel/softgpu, and --optimization=0: before it has a GPU's driver
compile at that level.
"""
import difflib
import os
import subprocess
import sys

THREADS_SHOWN = 4


class Device:
    def __init__(self, program, place):
        self.command = [program]
        self.environment = dict(os.environ)
        if "=" in place:
            setting, place = place.split(":", 1)
            name, value = setting.split("=", 1)
            if name.startswith("--"):
                self.command += [name, value]
            else:
                self.environment[name] = value
        if place:
            self.environment["LD_LIBRARY_PATH"] = os.path.abspath(place)

    def run(self, *words):
        return subprocess.run([*self.command, *map(str, words)], env=self.environment, check=True,
                              stdout=subprocess.PIPE, text=True).stdout.splitlines()

    def trace(self, seed):
        return self.run("--trace", "--seeds", f"{seed}-{seed}")

    def dump(self, seed, limit):
        """thread -> register -> value."""
        threads = {}
        for line in self.run("--dump", seed, "--limit", limit):
            thread, values = line.split(":", 1)
            threads[thread] = dict(value.split("=") for value in values.split())
        return threads


def statement(device, seed, limit):
    """What the kernel of this many statements has, and the one with a statement less has not."""
    before = device.run("--print", seed, "--limit", limit - 1)
    after = device.run("--print", seed, "--limit", limit)
    return [line[2:] for line in difflib.ndiff(before, after) if line.startswith("+ ")]


def explain(first, second, seed):
    traces = first.trace(seed), second.trace(seed)
    at = next((i for i, lines in enumerate(zip(*traces)) if lines[0] != lines[1]), None)
    if at is None:
        print(f"seed {seed}: no difference")
        return
    print(f"seed {seed}, statement {at}:\n  {traces[0][at]}\n  {traces[1][at]}")
    if at:
        print("\n".join("    " + line for line in statement(first, seed, at)))
    before = first.dump(seed, at - 1) if at else {}
    found, other = first.dump(seed, at), second.dump(seed, at)
    shown = 0
    for thread, values in found.items():
        names = [name for name in values if values[name] != other[thread][name]]
        if not names or shown == THREADS_SHOWN:
            continue
        shown += 1
        print(f"  thread {thread}: " + ", ".join(
            f"{name} is {values[name]} and {other[thread][name]}" for name in names))
        print("    before: " + " ".join(f"{name}={value}" for name, value in
                                        before.get(thread, {}).items() if name != "padding"))


def main():
    program = os.path.abspath(sys.argv[1])
    first, second = Device(program, sys.argv[2]), Device(program, sys.argv[3])
    for seed in sys.argv[4:]:
        explain(first, second, int(seed))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
