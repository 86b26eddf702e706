#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the first second of programs costs. It has the first step of each kind in PyTorch, CuPy and
JAX, natively and through Funnel, each in a first process and in a second one.

Before a first process nothing has been compiled (CUDA_CACHE_PATH, and CuPy's cache, are empty
folders), and the daemon runs, but no server. A native process comes before all others and is not
counted, since it reads the framework's files. The table shows medians over --repeat passes, and
Funnel's beside native's: below 1 is faster.
"""
import argparse
import importlib.util
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import modes

PROGRAM = Path(__file__).resolve().parent / "first_steps_program.py"
FRAMEWORKS = {"torch": "PyTorch", "cupy": "CuPy", "jax": "JAX"}
STARTS = "first", "second"
TIMEOUT = 180


def say(text):
    print(text, file=sys.stderr, flush=True)


def steps_of(mode, framework, caches):
    """{step: milliseconds}"""
    environment = dict(mode.environment(), CUPY_CACHE_DIR=caches,
                       XLA_PYTHON_CLIENT_PREALLOCATE="false")
    done = subprocess.run([*mode.prefix, sys.executable, str(PROGRAM), framework], text=True,
                          env=environment, capture_output=True, timeout=TIMEOUT)
    if done.returncode:
        raise RuntimeError(f"{framework} {mode.name}: status {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(mode, framework, times, starts=STARTS):
    """Adds to times[framework, step][mode, start]."""
    caches = tempfile.mkdtemp(prefix="bench-cupy-")
    mode.start()
    try:
        for start in starts:
            for step, ms in steps_of(mode, framework, caches).items():
                times.setdefault((framework, step), {}).setdefault((mode.name, start),
                                                                   []).append(ms)
    finally:
        mode.stop()
        shutil.rmtree(caches, ignore_errors=True)


def table(times):
    yield "| | native, first | second | Funnel, first | second | first / native | second / native |"
    yield "|---|---|---|---|---|---|---|"
    for (framework, step), found in times.items():
        ms = {key: statistics.median(values) for key, values in found.items()}
        row = [ms.get((mode, start)) for mode in ("native", "funnel") for start in STARTS]
        if None in row:
            continue
        ratios = row[2] / row[0], row[3] / row[1]
        yield (f"| {FRAMEWORKS[framework]}: {step} | " + " | ".join(f"{ms:.1f}" for ms in row) +
               f" | {ratios[0]:.2f} | {ratios[1]:.2f} |")


def parse_arguments():
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(root / "build"))
    parser.add_argument("--framework", action="append", choices=FRAMEWORKS,
                        help="only this one; may be given several times")
    parser.add_argument("--repeat", type=int, default=3, help="passes (default: 3)")
    parser.add_argument("--budget", type=float, default=float("inf"), metavar="SECONDS",
                        help="no pass begins after so many seconds")
    parser.add_argument("--output", help="a file for the table as well")
    return parser.parse_args()


def measure_framework(funnel, framework, args, ends, times):
    """Leaves out what fails, and says so."""
    try:
        measure(modes.Native(funnel, "cuda"), framework, {}, STARTS[:1])
        for number in range(args.repeat):
            if number and time.monotonic() > ends:
                break
            say(f"{framework}, pass {number + 1}")
            for mode in modes.Native(funnel, "cuda"), modes.Funnel(funnel, "cuda"):
                measure(mode, framework, times)
    except (RuntimeError, subprocess.SubprocessError, OSError) as error:
        say(str(error))


def main():
    args = parse_arguments()
    funnel = Path(args.build).resolve() / "bin" / "funnel"
    wanted = [name for name in args.framework or FRAMEWORKS if importlib.util.find_spec(name)]
    ends = time.monotonic() + args.budget
    times = {}
    for number, framework in enumerate(wanted):
        now = time.monotonic()
        measure_framework(funnel, framework, args, now + (ends - now) / (len(wanted) - number),
                          times)
        if args.output:  # a time limit may end us
            Path(args.output).write_text("\n".join(table(times)) + "\n")
    print("\n".join(table(times)))


if __name__ == "__main__":
    main()
