#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the same unmodified program in every mode this machine offers and compares them.

Modes: `native` (each process on the driver by itself: one process has the GPU alone, several
take turns), `mps` (NVIDIA's MPS, when its control program is installed), `funnel`. Every row is
run in all modes one after the other, and that is repeated, so that a drift of the machine meets
all modes alike. The figures quoted are medians over the repetitions; only ratios inside one run
mean anything. What each row measures: bench/README.md.
"""

import argparse
import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import report

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent

# Row name, what is compared ("rate": higher is better; others: lower is better), client counts.
ROWS = [
    ("launch_sync", "p50_us", (1, 8)),
    ("launch_sync", "rate", (1, 2, 4, 8)),
    ("queued", "rate", (1, 2, 4, 8)),
    ("queued", "cpu_us", (1,)),
    ("small", "rate", (1, 2, 4, 8)),
    ("nbody", "rate", (1, 4, 8)),
    ("h2d_pageable", "gb_per_s", (1, 8)),
    ("d2h_pageable", "gb_per_s", (1, 8)),
    ("h2d_pageable_64m", "gb_per_s", (1,)),
    ("d2h_pageable_64m", "gb_per_s", (1,)),
    ("h2d_pinned", "gb_per_s", (1,)),
    ("d2h_pinned", "gb_per_s", (1,)),
    ("malloc", "p50_us", (1, 8)),
    ("malloc_async", "p50_us", (1,)),
    ("launch_sync", "first_call_ms", (1,)),
    ("idle", "gpu_mib", (1, 8)),
]
SOFT_ROWS = {"launch_sync", "queued", "h2d_pageable", "malloc"}
HIGHER_IS_BETTER = {"rate", "gb_per_s"}


class BenchError(Exception):
    pass


def gpu_memory_used_mib():
    """MiB in use on the first GPU, or None without nvidia-smi."""
    try:
        out = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                             capture_output=True, text=True, timeout=20, check=True).stdout
        return float(out.splitlines()[0])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None


class Native:
    name = "native"

    def __init__(self, funnel, device):
        self.prefix = [str(funnel), "run", "--direct", "--device", device, "--"] if device == "soft" else []

    def environment(self):
        env = dict(os.environ)
        env.pop("CUDA_MPS_PIPE_DIRECTORY", None)
        return env

    def start(self):
        pass

    def stop(self):
        pass


class Mps(Native):
    """NVIDIA's MPS with a daemon in directories of its own."""
    name = "mps"

    def __init__(self):
        self.prefix = []
        self.directory = tempfile.mkdtemp(prefix="bench-mps-")
        self.control = shutil.which("nvidia-cuda-mps-control")

    def environment(self):
        return dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=self.directory, CUDA_MPS_LOG_DIRECTORY=self.directory)

    def command(self, text):
        return subprocess.run([self.control], input=text + "\n", text=True, env=self.environment(),
                              capture_output=True, timeout=60)

    def start(self):
        subprocess.run([self.control, "-d"], env=self.environment(), check=True, timeout=60)
        self.command(f"start_server -uid {os.getuid()}")

    def stop(self):
        with contextlib.suppress(subprocess.SubprocessError):
            self.command("quit -t 5")
        shutil.rmtree(self.directory, ignore_errors=True)


class Funnel(Native):
    name = "funnel"

    def __init__(self, funnel, device):
        self.funnel = str(funnel)
        self.device = device
        self.directory = tempfile.mkdtemp(prefix="bench-funnel-")
        self.prefix = [self.funnel, "run", "--device", device, "--"]

    def environment(self):
        return dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=self.directory,
                    CUDA_MPS_LOG_DIRECTORY=self.directory + "/log")

    def start(self):
        subprocess.run([self.funnel, "start", "--device", self.device], env=self.environment(), check=True,
                       timeout=60)

    def stop(self):
        subprocess.run([self.funnel, "stop"], env=self.environment(), timeout=60)
        shutil.rmtree(self.directory, ignore_errors=True)


def run_group(mode, client, row, clients, seconds):
    """Runs `clients` copies of the client at once; returns what each reported."""
    command = mode.prefix + [str(client), row, str(seconds)]
    group = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=mode.environment()) for _ in range(clients)]
    try:
        for process in group:
            if process.stdout.readline().strip() != "ready":
                raise BenchError(f"{mode.name}: a client of row {row} did not come up")
        for process in group:
            process.stdin.write("go\n")
            process.stdin.flush()
        memory = hold_memory(row, seconds)
        reports = [json.loads(process.communicate(timeout=seconds * 10 + 60)[0]) for process in group]
    except (ValueError, OSError, subprocess.TimeoutExpired) as error:
        raise BenchError(f"{mode.name}: row {row} with {clients} clients failed: {error}") from error
    finally:
        for process in group:
            process.kill()
            process.wait()
    if not all(r["correct"] for r in reports):
        raise BenchError(f"{mode.name}: row {row} with {clients} clients computed wrong results")
    return merge(reports, memory)


def hold_memory(row, seconds):
    if row != "idle":
        return None
    time.sleep(seconds / 2)
    return gpu_memory_used_mib()


def merge(reports, memory):
    rates = [r["rate"] for r in reports]
    return {
        "rate": sum(rates),
        "gb_per_s": sum(r["gb_per_s"] for r in reports),
        "p50_us": sorted(r["p50_us"] for r in reports)[len(reports) // 2],
        "p99_us": max(r["p99_us"] for r in reports),
        "cpu_us": sum(r["cpu_us"] for r in reports) / len(reports),
        "first_call_ms": max(r["first_call_ms"] for r in reports),
        "fairness": min(rates) / (sum(rates) / len(rates)),
        "gpu_mib": memory,
    }


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def measure(modes, client, args):
    """{(row, clients): {mode: [merged result per repetition]}}"""
    wanted = sorted({(row, n) for row, _, counts in args.rows for n in counts}, key=lambda x: (x[1], x[0]))
    results = {key: {mode.name: [] for mode in modes} for key in wanted}
    for repetition in range(args.repeat):
        for row, clients in wanted:
            for mode in modes:
                say(f"\rpass {repetition + 1}/{args.repeat}  {row:18s} {clients} x {mode.name:8s}")
                try:
                    results[row, clients][mode.name].append(run_group(mode, client, row, clients, args.seconds))
                except BenchError as error:
                    say(f"\n{error}\n")
    say("\n")
    return results


def say(text):
    print(text, end="", file=sys.stderr, flush=True)


def table_rows(results, rows, modes):
    """Flat rows for the report: medians and spread of each figure in each mode."""
    for row, figure, counts in rows:
        for clients in counts:
            figures = {}
            for mode in modes:
                values = [r[figure] for r in results[row, clients][mode.name] if r[figure] is not None]
                if values:
                    figures[mode.name] = {"median": median(values), "min": min(values), "max": max(values)}
            if figures:
                yield {"row": row, "figure": figure, "clients": clients, "modes": figures,
                       "higher_is_better": figure in HIGHER_IS_BETTER}


def device_name(device):
    if device == "soft":
        return "Funnel software GPU"
    out = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                         capture_output=True, text=True).stdout.splitlines()
    return out[0] if out else "unknown GPU"


def build_client(args):
    if args.client:
        return Path(args.client)
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.access(nvcc, os.X_OK):
        raise BenchError("nvcc is not here; build bench/client.cu elsewhere and name it with --client")
    binary = Path(args.build) / "bench" / "client"
    binary.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([nvcc, "-O2", "-std=c++17", "-o", str(binary), str(BENCH / "client.cu")], check=True)
    return binary


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build"), help="build directory (default: build)")
    parser.add_argument("--client", help="a client built already, instead of building bench/client.cu")
    parser.add_argument("--device", choices=("auto", "cuda", "soft"), default="auto")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of one measurement (default: 1)")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions, interleaved (default: 3)")
    parser.add_argument("--row", action="append", help="only this row; may be given several times")
    parser.add_argument("--no-mps", action="store_true", help="leave NVIDIA's MPS out")
    parser.add_argument("--output", default=None, help="folder for results.json, table.md and plot.svg")
    return parser.parse_args()


def select_rows(args):
    rows = [r for r in ROWS if not args.row or r[0] in args.row]
    if args.device == "soft":
        rows = [(row, figure, tuple(n for n in counts if n <= 2) or (1,)) for row, figure, counts in rows
                if row in SOFT_ROWS]
    return rows


def main():
    args = parse_arguments()
    if args.device == "auto":
        args.device = "cuda" if gpu_memory_used_mib() is not None else "soft"
    args.rows = select_rows(args)
    funnel = Path(args.build) / "bin" / "funnel"
    client = build_client(args)
    modes = [Native(funnel, args.device), Funnel(funnel, args.device)]
    if args.device == "cuda" and shutil.which("nvidia-cuda-mps-control") and not args.no_mps:
        modes.insert(1, Mps())
    try:
        for mode in modes:
            mode.start()
        results = measure(modes, client, args)
    finally:
        for mode in modes:
            mode.stop()
    table = list(table_rows(results, args.rows, modes))
    about = {"date": time.strftime("%Y-%m-%d"), "device": device_name(args.device),
             "host": f"{os.cpu_count()} CPUs, {platform.release()}", "command": " ".join(["bench/run.py"] + sys.argv[1:]),
             "repeat": args.repeat, "seconds": args.seconds}
    output = Path(args.output or Path(args.build) / "bench" / "results")
    report.write(output, about, table)
    print((output / "table.md").read_text())
    print(f"Written to {output}")


if __name__ == "__main__":
    try:
        main()
    except (BenchError, subprocess.SubprocessError, OSError) as problem:
        sys.exit(f"bench: {problem}")
