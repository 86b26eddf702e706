#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of runtime/ on the software GPU, compiled in the ways that people compile.

nvcc writes quite different PTX for a debugger, without optimization and for other generations of
GPU. Each program is built for each of them without machine code, so that its PTX runs, directly on
the software GPU. By default a few chosen ones run; --all runs every program in every way.
Ends with one line: N passed, N failed, N skipped.
"""
import argparse
import os
import pathlib
import subprocess
import sys

import run
import runtime_build

MODES = {
    "optimized": [],
    "plain": ["-O0", "-Xcicc", "-O0", "-Xptxas", "-O0"],
    "hasty": ["-Ofc=max"],
    "debug": ["-O0", "-g", "-G"],
}
TARGETS = [75, 80, 90]
# What a program needs of the GPU, where that is more than the oldest target.
NEEDS = {"tensor": 80, "barriers": 80, "clusters": 90, "sparse": 90}
# What the chosen few show: frames and calls, groups of threads, barriers, clusters, matrices.
CHOSEN = [("language", "debug", 75), ("language", "plain", 90), ("intrinsics", "debug", 90),
          ("groups", "plain", 80), ("halves", "debug", 75), ("atomics", "hasty", 90),
          ("barriers", "plain", 80), ("barriers", "debug", 90), ("clusters", "debug", 90),
          ("tensor", "plain", 90)]


def combinations(everything):
    if not everything:
        return CHOSEN
    sources = sorted(runtime_build.SOURCES.glob("*.cu"))
    return [(source.stem, mode, target) for source in sources for mode in MODES
            for target in TARGETS if target >= NEEDS.get(source.stem, 0)]


def name_of(program, mode, target):
    return f"{program} {mode} sm_{target}"


def pair_of(folder, program, mode, target):
    flags = (*MODES[mode], "-gencode", f"arch=compute_{target},code=compute_{target}")
    return (runtime_build.RuntimeProgram(program, folder),
            runtime_build.Variant(f"{mode}_{target}", flags))


def execute(program, options):
    """(verdict, text) as run.Runner.check has it."""
    log = program.with_suffix(".log")
    environment = dict(os.environ, FUNNEL_SOFT_LOG=str(log), CUDA_VISIBLE_DEVICES="0",
                       LD_LIBRARY_PATH=str(options.build / "lib/funnel/softgpu"))
    log.unlink(missing_ok=True)
    try:
        done = subprocess.run([str(program)], env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=options.timeout)
    except subprocess.TimeoutExpired:
        return "failed", f"no end within {options.timeout} s"
    out = done.stdout.decode(errors="replace")
    if done.returncode == run.SKIPPED:
        return "skipped", out.strip()
    if done.returncode == 0:
        return "passed", ""
    said = log.read_text(errors="replace") if log.exists() else ""
    return "failed", (f"status {done.returncode}\n" + run.tail(out) + "\n" +
                      run.tail(done.stderr.decode(errors="replace")) + "\n" + run.tail(said))


def check(nvcc, options, program, reason):
    if reason:
        return ("failed" if nvcc else "skipped"), reason
    return ("passed", "") if options.compile else execute(program, options)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=run.HERE.parent.parent / "build")
    parser.add_argument("--all", action="store_true", help="every program in every way")
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time")
    parser.add_argument("--timeout", type=int, default=300, help="seconds for each run")
    parser.add_argument("--only", default="", help="only combinations whose name contains this")
    parser.add_argument("--compile", action="store_true", help="build the programs, run nothing")
    options = parser.parse_args()
    options.build = options.build.resolve()
    return options


def main():
    options = parse_arguments()
    chosen = [one for one in combinations(options.all) if options.only in name_of(*one)]
    folder = options.build / "tests/api/matrix"
    folder.mkdir(parents=True, exist_ok=True)
    nvcc = runtime_build.find_nvcc()
    pairs = [pair_of(folder, *one) for one in chosen]
    reasons = runtime_build.build(nvcc, folder, pairs, options.jobs)
    paths = [program.path(variant) for program, variant in pairs]
    verdicts = run.check_side_by_side(
        [(name_of(*one), lambda path=path, reason=reason: check(nvcc, options, path, reason))
         for one, path, reason in zip(chosen, paths, reasons.values())], options.jobs)
    run.print_summary(verdicts)
    return 1 if "failed" in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
