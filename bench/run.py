#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the same unmodified programs in every mode this machine offers and compares them.

Modes: `native` (each process on the driver by itself: one process has the GPU alone, several take
turns) and `funnel`. Also `mps` (NVIDIA's MPS, when its control program is installed). Every row is
run in all modes one after the other, and that is repeated. So a drift of the machine meets all
modes alike. The figures quoted are medians over the repetitions; only ratios inside one run mean
anything. What each row measures: bench/README.md.
"""

import argparse
import functools
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import clients
import modes
import report
import rows
from clients import BenchError, Skipped

ROOT = Path(__file__).resolve().parent.parent


def say(text):
    print(text, end="", file=sys.stderr, flush=True)


class Bench:
    """One run: the modes, the programs, and what was found so far."""

    def __init__(self, args):
        self.device = args.device
        self.programs = Path(args.programs or Path(args.build) / "bench")
        self.build = Path(args.build)
        self.funnel = self.build / "bin" / "funnel"
        self.modes = [mode for mode in modes.available(self.funnel, args.device, not args.no_mps)
                      if not args.mode or mode.name in args.mode]
        self.rows = rows.select(args.device, args.row, args.clients)
        self.seconds = args.seconds
        self.ends = time.monotonic() + args.budget if args.budget else None
        self.passes = 0
        self.figures = {}   # (measurement, clients) -> {mode: [{figure: value}]}
        self.took = {}      # (measurement, clients, mode) -> seconds
        self.failures = {}  # the same -> why

    def program(self, name):
        return clients.build(name, self.programs)

    def built(self, path):
        """What was built with everything else."""
        return str(self.build / path)

    def warm_up(self, mode):
        """A server's first client is another matter."""
        clients.run_together(mode, [[self.program("client"), "launch_sync", 0.05]], 1)

    def start(self):
        """A mode that does not come up is left out, and said so below the table."""
        for mode in list(self.modes):
            try:
                mode.start()
                self.warm_up(mode)
            except (BenchError, subprocess.SubprocessError, OSError) as error:
                say(f"{mode.name} does not come up: {error}\n")
                self.failures["everything", "any", mode.name] = str(error)
                self.modes.remove(mode)
                mode.stop()

    def stop(self):
        for mode in self.modes:
            mode.stop()

    def wanted(self):
        """(measurement, clients), each once, in the order of the rows."""
        return list(dict.fromkeys((row.measurement, count) for row in self.rows
                                  for count in row.clients))

    def time_for(self, key):
        expected = self.took.get(key, 2 * self.seconds + 2)
        return not self.ends or time.monotonic() + expected < self.ends

    def measure(self, name, count, mode):
        key = (name, count, mode.name)
        if not self.time_for(key) or not rows.measured_in(name, mode.name):
            return
        began = time.monotonic()
        say(f"\r\033[Kpass {self.passes + 1}  {name} {count} x {mode.name}")
        try:
            found = rows.MEASUREMENTS[name][0](self, mode, count, self.seconds)
            self.figures.setdefault((name, count), {}).setdefault(mode.name, []).append(found)
        except Skipped as reason:
            self.failures[key] = f"skipped: {reason}"
        except (BenchError, subprocess.SubprocessError, OSError) as error:
            self.failures[key] = str(error)
            say(f"\r\033[K{name} {count} x {mode.name}: {error}\n")
            mode.restart()
        self.took[key] = time.monotonic() - began

    def run_pass(self, write):
        """A time limit may end us, so the report is written behind each row of the first pass."""
        for name, count in self.wanted():
            for mode in self.modes:
                self.measure(name, count, mode)
            if not self.passes:
                write()
        self.passes += 1
        write()

    def table(self):
        """Flat rows for the report: medians and spread of each figure in each mode."""
        for row in self.rows:
            for count in row.clients:
                found = self.figures.get((row.measurement, count), {})
                shown = {mode: spread([f[row.figure] for f in results
                                       if f.get(row.figure) is not None])
                         for mode, results in found.items()}
                yield report.line(row, count, {mode: s for mode, s in shown.items() if s})

    def about(self, args):
        return {"date": time.strftime("%Y-%m-%d"), "device": device_name(args.device),
                "host": f"{os.cpu_count()} CPUs, {platform.release()}",
                "command": " ".join(["bench/run.py"] + sys.argv[1:]),
                "repeat": max(1, self.passes),
                "seconds": args.seconds,
                "failures": [f"{name} ({count} clients, {mode}): {why}"
                             for (name, count, mode), why in self.failures.items()]}


@functools.cache
def device_name(device):
    return modes.device_name(device)


def spread(values):
    if not values:
        return None
    ordered, middle = sorted(values), len(values) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return {"median": median, "min": ordered[0], "max": ordered[-1]}


def numbers(text):
    return {int(number) for number in text.split(",")}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build"),
                        help="build directory (default: build)")
    parser.add_argument("--programs",
                        help="folder of the measured programs, built there if need be (default: "
                        "BUILD/bench)")
    parser.add_argument("--prepare", action="store_true",
                        help="build the measured programs, run nothing")
    parser.add_argument("--device", choices=("auto", "cuda", "soft"), default="auto")
    parser.add_argument("--seconds", type=float, default=1.0,
                        help="length of one measurement (default: 1)")
    parser.add_argument("--repeat", type=int, default=3,
                        help="repetitions, interleaved (default: 3)")
    parser.add_argument("--budget", type=float,
                        help="repeat as often as fits into this many seconds instead")
    parser.add_argument("--row", action="append", choices=sorted(rows.MEASUREMENTS), metavar="ROW",
                        help="only this row; may be given several times")
    parser.add_argument("--clients", type=numbers, metavar="N,N",
                        help="only these numbers of clients, where a row has them")
    parser.add_argument("--mode", action="append", choices=report.MODES,
                        help="only this mode, likewise")
    parser.add_argument("--no-mps", action="store_true", help="leave NVIDIA's MPS out")
    parser.add_argument("--output", default=None,
                        help="folder for results.json, table.md and plot.svg")
    args = parser.parse_args()
    if args.device == "auto":
        args.device = "cuda" if modes.gpu_memory_used_mib() is not None else "soft"
    return args


def main():
    args = parse_arguments()
    bench = Bench(args)
    if args.prepare:
        for name in clients.PROGRAMS:
            print(bench.program(name))
        return
    output = Path(args.output or Path(args.build) / "bench" / "results")

    def write():
        report.write(output, bench.about(args), list(bench.table()))

    try:
        bench.start()
        while (time.monotonic() < bench.ends) if bench.ends else bench.passes < args.repeat:
            before = dict(bench.took)
            began = time.monotonic()
            bench.run_pass(write)
            if before and time.monotonic() - began < 0.5:  # what is left of the budget fits nothing
                break
    finally:
        bench.stop()
    say("\r\033[K")
    print((output / "table.md").read_text())
    print(f"Written to {output}")


if __name__ == "__main__":
    try:
        main()
    except (BenchError, Skipped, subprocess.SubprocessError, OSError) as problem:
        sys.exit(f"bench: {problem}")
