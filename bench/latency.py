#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a program with short requests waits for beside one that keeps the GPU busy.

A critical program gets requests at random times (Poisson), so many that they take a part of what it
could do alone. Its latencies count from the time when a request is due. A best-effort program works
beside it as fast as it can. Natively, and under NVIDIA's MPS, also with the best-effort program at
CUDA_MPS_CLIENT_PRIORITY=1, and at 80 % of the multiprocessors. And through Funnel without and with
classes (critical, batch). All weights are random; nothing is downloaded.
"""
import argparse
import contextlib
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import clients
import modes
from clients import BenchError, Client

PROGRAM = clients.BENCH / "latency_client.py"
READY_TIMEOUT = 180
ENDLESS_TIMEOUT = 10  # for what stood behind an endless kernel, from the end of its program
CRITICAL = {"resnet": "ResNet-50, one picture", "bert": "BERT-base, one text of 384 words",
            "bert_graph": "the same as a CUDA graph", "gpt2": "GPT-2, the next of 512 words",
            "tiny": "ten tiny kernels and item()"}
BEST_EFFORT = {"products": "half products 16384^3", "resnet_training": "ResNet-50 training, 64 pictures",
               "bert_training": "BERT-base training, 32 texts", "flood": "kernels of some 50 us",
               "endless": "an endless kernel"}


@dataclass(frozen=True)
class Way:
    """A mode, and what its two programs are started with."""
    title: str
    mode: str
    critical: tuple = ()
    best_effort: tuple = ()


def variable(name, value):
    return "env", f"{name}={value}"


WAYS = {
    "native": Way("native", "native"),
    "mps": Way("NVIDIA MPS", "mps"),
    "mps_priority": Way("NVIDIA MPS, best effort at priority 1", "mps",
                        best_effort=variable("CUDA_MPS_CLIENT_PRIORITY", 1)),
    "mps_share": Way("NVIDIA MPS, best effort at 80 %", "mps",
                     best_effort=variable("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", 80)),
    "funnel": Way("Funnel", "funnel"),
    "funnel_classes": Way("Funnel, critical and batch", "funnel",
                          variable("FUNNEL_CLASS", "critical"), variable("FUNNEL_CLASS", "batch")),
}


class Program(Client):
    """latency_client.py, in one of the modes."""

    def __init__(self, mode, words, name):
        super().__init__(mode, [*words, sys.executable, PROGRAM, name])
        self.name = name

    def order(self, *words):
        try:
            self.process.stdin.write(" ".join(map(str, words)) + "\n")
            self.process.stdin.flush()
        except OSError as error:
            raise self.failure(f"{self.name} ended early") from error


def started(stack, mode, words, names):
    """All at once, since to import PyTorch takes seconds."""
    return {name: stack.enter_context(Program(mode, words, name)) for name in names}


def rate_alone(program, seconds):
    program.order("closed", seconds)
    return program.answer(seconds * 10 + 60)["rate"]


def measure_pair(critical, best_effort, seconds, rate):
    """The report of the critical program, and the rate of the other."""
    best_effort.order("closed", seconds + 0.5)
    time.sleep(0.3)
    critical.order("open", seconds, rate)
    if best_effort.name == "endless":
        return beside_endless(critical, best_effort, seconds), None
    return critical.answer(seconds * 10 + 60), best_effort.answer(seconds * 10 + 60)["rate"]


def beside_endless(critical, endless, seconds):
    """The kernel ends with its process: a program that had to wait for it has that in its latencies."""
    time.sleep(seconds + 1)
    endless.process.kill()
    return critical.answer(ENDLESS_TIMEOUT)


class Measurement:
    def __init__(self, options):
        self.options, self.rows, self.failures = options, [], []

    def add(self, way, critical, best_effort, load, report, kept=None):
        row = {"way": way, "critical": critical, "beside": best_effort, "load": load, "kept": kept,
               **{name: report[name] for name in ("p50_ms", "p99_ms", "p999_ms", "rate")}}
        self.rows.append(row)
        print(f"{WAYS[way].title}: {CRITICAL[critical]} at {load} beside {best_effort}: "
              f"p50 {row['p50_ms']:.2f}, p99 {row['p99_ms']:.2f}, p99.9 {row['p999_ms']:.2f} ms"
              + (f", which keeps {kept:.2f}" if kept is not None else ""), flush=True)

    def run(self, way, mode):
        """The endless kernel comes last, since only the end of its program ends it."""
        options = self.options
        with contextlib.ExitStack() as stack:
            critical = started(stack, mode, WAYS[way].critical, options.critical)
            others = started(stack, mode, WAYS[way].best_effort, options.beside)
            for program in (*critical.values(), *others.values()):
                program.await_ready(READY_TIMEOUT)
            peaks = {name: rate_alone(program, options.seconds / 2)
                     for name, program in (*critical.items(), *others.items()) if name != "endless"}
            for load in options.load:
                for name, program in critical.items():
                    program.order("open", options.seconds, load * peaks[name])
                    self.add(way, name, None, load, program.answer(60 + 10 * options.seconds))
            for other in sorted(others, key=lambda name: name == "endless"):
                self.beside(stack, mode, way, critical, others[other], peaks)

    def beside(self, stack, mode, way, critical, other, peaks):
        for load in self.options.load:
            for name, program in critical.items():
                if other.process.poll() is not None:  # endless, and killed
                    other = started(stack, mode, WAYS[way].best_effort, [other.name])[other.name]
                    other.await_ready(READY_TIMEOUT)
                try:
                    report, rate = measure_pair(program, other, self.options.seconds,
                                                load * peaks[name])
                except BenchError as error:
                    self.failures.append(f"{WAYS[way].title}: {name} beside {other.name}: {error}")
                    return  # neither of the two is known to go on
                self.add(way, name, other.name, load, report,
                         rate / peaks[other.name] if rate is not None else None)


def with_baseline(rows):
    """Rows beside another program, each with that of the same program alone in the same way."""
    alone = {(r["way"], r["critical"], r["load"]): r for r in rows if not r["beside"]}
    return [(row, alone[row["way"], row["critical"], row["load"]]) for row in rows if row["beside"]]


def markdown(about, rows, failures):
    lines = [f"{about['device']}; {about['date']}; `{about['command']}`. Milliseconds from the time "
             "when a request is due to its result; `keeps` is the best-effort program's rate over "
             "its rate alone.", "",
             "| critical | load | beside | way | alone p50 / p99 | p50 | p99 | p99.9 | keeps |",
             "|---|---|---|---|---|---|---|---|---|"]
    for row, alone in sorted(with_baseline(rows), key=lambda pair: (
            pair[0]["critical"], pair[0]["beside"], pair[0]["load"])):
        kept = "-" if row["kept"] is None else f"{row['kept']:.2f}"
        lines.append(f"| {CRITICAL[row['critical']]} | {row['load']} | {BEST_EFFORT[row['beside']]} "
                     f"| {WAYS[row['way']].title} | {alone['p50_ms']:.2f} / {alone['p99_ms']:.2f} "
                     f"| {row['p50_ms']:.2f} | {row['p99_ms']:.2f} | {row['p999_ms']:.2f} | {kept} |")
    if failures:
        lines += ["", "Not measured:", ""] + [f"* {failure}" for failure in failures]
    return "\n".join(lines) + "\n"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="build directory (default: build)")
    parser.add_argument("--seconds", type=float, default=5, help="length of one measurement (default: 5)")
    parser.add_argument("--load", type=float, action="append",
                        help="requests, as a part of what the program could do alone (default: 0.3 and 0.5)")
    parser.add_argument("--way", choices=WAYS, action="append", help="only this one; may be repeated")
    parser.add_argument("--critical", choices=CRITICAL, action="append", help="likewise")
    parser.add_argument("--beside", choices=BEST_EFFORT, action="append", help="likewise")
    parser.add_argument("--output", type=Path, default=Path("bench-latency"),
                        help="folder for latency.json and latency.md")
    options = parser.parse_args()
    options.load = options.load or [0.3, 0.5]
    options.critical = options.critical or list(CRITICAL)
    options.beside = options.beside or list(BEST_EFFORT)
    return options


def main():
    options = parse_arguments()
    available = {mode.name: mode for mode in
                 modes.available(Path(options.build).resolve() / "bin/funnel", "cuda", True)}
    measurement = Measurement(options)
    for way in options.way or WAYS:
        if mode := available.get(WAYS[way].mode):
            mode.start()
            try:
                measurement.run(way, mode)
            except BenchError as error:
                measurement.failures.append(f"{WAYS[way].title}: {error}")
            finally:
                mode.stop()
    about = {"date": time.strftime("%Y-%m-%d"), "device": modes.device_name("cuda"),
             "command": " ".join(sys.argv)}
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "latency.json").write_text(json.dumps(
        {"about": about, "rows": measurement.rows, "failures": measurement.failures}, indent=1) + "\n")
    (options.output / "latency.md").write_text(markdown(about, measurement.rows, measurement.failures))
    print(f"Written to {options.output}", file=sys.stderr)


main()
