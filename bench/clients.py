# SPDX-License-Identifier: Apache-2.0
"""Building the measured programs, and running groups of them in step.

A client prints "ready" when its context stands, and waits for a line. It works for a while and
prints one line of JSON with "correct" in it.
"""
import json
import os
import select
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

BENCH = Path(__file__).resolve().parent
READY_TIMEOUT = 60

# Machine code for Hopper; PTX for every other device, the software GPU included.
BOTH = ("-gencode", "arch=compute_75,code=compute_75", "-gencode", "arch=compute_90,code=sm_90")
ONLY_TEXT = ("-gencode", "arch=compute_75,code=compute_75")
ONLY_CODE = ("-gencode", "arch=compute_90,code=sm_90", "--no-compress")


@dataclass(frozen=True)
class Program:
    """A CUDA source and how it is compiled: by itself, or with so many parts of it (-DPART=n)."""
    source: str
    flags: tuple
    parts: int = 0


PROGRAMS = {
    "client": Program("client.cu", BOTH),
    "client_may_print": Program("client.cu", (*BOTH, "-DMAY_PRINT")),
    "modules": Program("modules.cu", BOTH),
    "rates": Program("rates.cu", BOTH),
    "variables": Program("variables.cu", BOTH),
    "large_code": Program("large.cu", ONLY_CODE, 10),
    "large_text": Program("large.cu", ONLY_TEXT, 2),
}


class BenchError(Exception):
    pass


class Skipped(Exception):
    """Why something is not measured here."""


def build(name, folder):
    """One of PROGRAMS in `folder`, which may have been built elsewhere."""
    program, binary = PROGRAMS[name], Path(folder) / name
    if binary.exists() and binary.stat().st_mtime >= (BENCH / program.source).stat().st_mtime:
        return binary
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.access(nvcc, os.X_OK):
        if binary.exists():
            return binary
        raise Skipped(f"no nvcc, and no {binary}")
    binary.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as objects:
        compile_program([nvcc, "-O2", "-std=c++17", *program.flags], program, binary, Path(objects))
    return binary


def compile_program(nvcc, program, binary, objects):
    """All parts at the same time: nvcc uses one core."""
    def compile_one(job):
        target, flags = job
        subprocess.run([*nvcc, *flags, "-c", "-o", str(target), str(BENCH / program.source)],
                       check=True)
        return str(target)

    jobs = [(objects / "main.o", [])]
    jobs += [(objects / f"part{part}.o", [f"-DPART={part}"]) for part in range(program.parts)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = list(pool.map(compile_one, jobs))
    subprocess.run([*nvcc, "-o", str(binary), *made], check=True)


class Client:
    """One running program. Use in a `with`, so that it never outlives its measurement."""

    def __init__(self, mode, command):
        self.mode, self.command = mode, [str(word) for word in command]
        self.errors = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(mode.prefix + self.command, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                        env=mode.environment())
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            try:
                stream.close()
            except BrokenPipeError:
                pass

    def failure(self, what):
        self.errors.seek(0)
        lines = self.errors.read().strip().splitlines()
        return BenchError(f"{what}: {lines[-1] if lines else 'nothing on stderr'}")

    def await_ready(self, timeout=READY_TIMEOUT):
        if not select.select([self.process.stdout], [], [], timeout)[0]:
            raise self.failure(f"not ready after {timeout} s")
        if self.process.stdout.readline().strip() != "ready":
            raise self.failure("did not come up")

    def go(self):
        try:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
        except OSError as error:
            raise self.failure("ended early") from error

    def answer(self, timeout):
        """The report of one of several rounds."""
        if not select.select([self.process.stdout], [], [], timeout)[0]:
            raise self.failure(f"no report after {timeout:.0f} s")
        try:
            return self.checked(json.loads(self.process.stdout.readline()))
        except ValueError as error:
            raise self.failure(f"ended with status {self.process.wait()}") from error

    @staticmethod
    def checked(report):
        if not report["correct"]:
            raise BenchError("computed wrong results")
        return report

    def report(self, timeout):
        try:
            out = self.process.communicate(timeout=timeout)[0]
            report = json.loads(out)
        except subprocess.TimeoutExpired as error:
            raise self.failure(f"still running after {timeout:.0f} s") from error
        except (ValueError, OSError) as error:
            raise self.failure(f"ended with status {self.process.wait()}") from error
        return self.checked(report)


def run_together(mode, commands, seconds, meanwhile=lambda pids: None,
                 ready_timeout=READY_TIMEOUT):
    """Runs the clients in step: their reports, and what `meanwhile` found out while they worked."""
    group = []
    try:
        for command in commands:
            group.append(Client(mode, command).__enter__())
        for client in group:
            client.await_ready(ready_timeout)
        for client in group:
            client.go()
        found = meanwhile([client.pid for client in group])
        return [client.report(seconds * 10 + 60) for client in group], found
    finally:
        for client in group:
            client.__exit__()


def merge(reports):
    """The figures of copies of client.cu that did the same."""
    rates = [r["rate"] for r in reports]
    return {
        "rate": sum(rates),
        "gb_per_s": sum(r["gb_per_s"] for r in reports),
        "p50_us": sorted(r["p50_us"] for r in reports)[len(reports) // 2],
        "p99_us": max(r["p99_us"] for r in reports),
        "cpu_us": sum(r["cpu_us"] for r in reports) / len(reports),
        "first_call_ms": max(r["first_call_ms"] for r in reports),
        "fairness": min(rates) / (sum(rates) / len(rates)),
    }
