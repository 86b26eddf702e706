#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs CUDA programs directly on a device and through Funnel, and compares.

A program passes when it ends with status 0 both ways and prints the same. The programs are those on
the driver API (driver/, built with everything else), the examples, and those on the runtime API
(runtime_build.py). Ends with one line: N passed, N failed, N skipped.
"""
import argparse
import collections
import concurrent.futures
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import guardian  # noqa: E402  (found through the path above)

import runtime_build  # noqa: E402

SKIPPED = 77
TELLING = re.compile("fatal GPU|Fatal GPU|last kernel|has been in")

EXAMPLES = ["vector_add", "matmul", "reduction", "histogram", "n_body", "mandelbrot"]
DRIVER = ["startup", "contexts", "memory", "dma_bufs", "registers", "shared_files", "modules",
          "links", "starts", "launches", "batches", "streams", "events", "callbacks", "threads",
          "pointers", "graphs", "prints", "forks", "exits", "bad_handles", "vmm", "pools",
          "pool_shares", "host_pools", "graph_nodes", "captures", "graph_memory", "talk_calls", "tensor_copies",
          "tensor_maps", "warpgroups", "conditionals", "launch_attributes", "green", "newer_names",
          "memory_atomics", "memory_order", "ipc", "ipc_peers", "managed", "managed_moves",
          "managed_neighbors", "managed_large", "managed_peers", "managed_random",
          "managed_threads", "managed_turns", "managed_variables", "peers", "references", "retired"]
# Parts of programs that NVIDIA's driver does not run.
PARTS = [("managed_threads", "stack")]
# Kernels of these wait for the host, which needs the driver meanwhile, so nothing else may run
# beside them. A call that waits for all kernels would never end.
WAITING = [("managed_neighbors", "waits"), ("managed_threads", "waits"), ("managed_turns", "waits")]
# These end the context that they share with others, so they run alone, after everything else.
FAULTS = [("faults", "null"), ("faults", "misaligned"), ("faults", "trap")]
RUNTIME_FAULTS = ["fault"]
# NVIDIA's driver may crash on handles that never were, and does on parameters set where a kernel
# has none. So does the runtime in a child of fork. Funnel must not. Beside NVIDIA's driver, glibc
# ends a program that waits for a thread whose stack is managed memory, since the kernel refuses the
# futex.
NOT_DIRECT_ON_CUDA = {"bad_handles", "children", "retired", "managed_threads stack"}
# Programs that several copies of are to run at once, whatever is asked for.
COPIES = {"settings": 4}
# Kernels of these print. Of copies that run at once each gets all of its lines, and perhaps lines of
# the others, which are the same (docs/funnel.md). Other programs may have the same formats, so these
# run after everything else.
PRINTING = {"prints", "talk_calls", "device_launches", "language", "separate"}
# With --long: how many rounds, where a few are the default.
LONG = {"algorithms": "200"}


class Program:
    def __init__(self, name, command, alone=False, reason=None):
        self.name = name
        self.words = name.split("/")[1]
        self.stem = self.words.split(" ")[0]
        self.command = [str(word) for word in command]
        self.alone = alone
        self.reason = reason  # why it is skipped


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err


# ---- programs on the runtime API ----


def runtime_name(name, variant):
    return f"runtime/{name} ({variant.name})"


def wanted_variants(name, only):
    return [variant for variant in runtime_build.variants_of(name)
            if not only or only in runtime_name(name, variant)]


def runtime_programs(build, only, is_long):
    folder = build / "tests/api/runtime"
    folder.mkdir(parents=True, exist_ok=True)
    nvcc = runtime_build.find_nvcc()
    if nvcc:
        runtime_build.keep_shared_cudart(nvcc, folder)
    programs = [runtime_build.RuntimeProgram(source.stem, folder)
                for source in sorted(runtime_build.SOURCES.glob("*.cu"))]
    wanted = [(program, variant) for program in programs
              for variant in wanted_variants(program.name, only)]
    for (program, variant), reason in runtime_build.build(nvcc, folder, wanted).items():
        rounds = [LONG[program.name]] if is_long and program.name in LONG else []
        yield Program(runtime_name(program.name, variant), [program.path(variant), *rounds],
                      program.name in RUNTIME_FAULTS, reason)


def all_programs(build, only, is_long):
    for name in DRIVER:
        yield Program(f"driver/{name}", [build / "tests/api" / name])
    for name, argument in PARTS:
        yield Program(f"driver/{name} {argument}", [build / "tests/api" / name, argument])
    for name in EXAMPLES:
        yield Program(f"examples/{name}", [build / "examples" / name])
    yield from runtime_programs(build, only, is_long)
    for name, argument in WAITING + FAULTS:
        yield Program(f"driver/{name} {argument}", [build / "tests/api" / name, argument], True)


# ---- running them ----


class Runner:
    def __init__(self, options, folder):
        self.options = options
        self.funnel = str(options.build / "bin/funnel")
        self.folder = folder
        self.environment = dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=folder + "/pipe",
                                CUDA_MPS_LOG_DIRECTORY=folder + "/log")

    def call(self, arguments, command):
        words = [self.funnel, "run", "-q", *arguments, "--device", self.options.device, "--",
                 *command]
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                     env=self.environment)
            try:
                status = child.wait(self.options.timeout)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
                status = f"no end within {self.options.timeout} s"
            out.seek(0)
            err.seek(0)
            return Result(status, out.read().decode(errors="replace"),
                          err.read().decode(errors="replace"))

    def direct(self, program):
        if self.options.device == "cuda" and NOT_DIRECT_ON_CUDA & {program.stem, program.words}:
            return None
        return self.call(["--direct"], program.command)

    def through(self, program, clients):
        with concurrent.futures.ThreadPoolExecutor(clients) as pool:
            return list(pool.map(lambda _: self.call([], program.command), range(clients)))

    def copies_of(self, program):
        if program.alone:
            return [1]
        if program.stem in COPIES:
            return sorted({*self.options.clients, COPIES[program.stem]})
        return self.options.clients

    def check(self, program):
        """(verdict, text): the verdict is passed, failed or skipped."""
        if program.reason:
            failed = program.reason.startswith("nvcc failed")
            return ("failed" if failed else "skipped"), program.reason
        direct = self.direct(program)
        if direct and direct.status == SKIPPED:
            return "skipped", direct.out.strip() or "the program skips itself"
        if direct and direct.status != 0:
            return "failed", explain("directly", direct)
        for clients in self.copies_of(program):
            for result in self.through(program, clients):
                where = f"through Funnel, {clients} at once"
                if result.status != 0:
                    return "failed", explain(where, result)
                mixed = clients > 1 and program.stem in PRINTING
                if direct and not (covers if mixed else str.__eq__)(result.out, direct.out):
                    return "failed", f"{where}: other output than directly\n" + difference(
                        direct.out, result.out)
        return "passed", ""

    def stop(self):
        subprocess.run([self.funnel, "stop", "--force"], env=self.environment,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)

    def show_logs(self):
        for log in sorted(pathlib.Path(self.folder, "log").glob("*.log")):
            lines = log.read_text(errors="replace").splitlines()
            print(f"--- {log.name} (faults and stalls, and the last lines)")
            print("\n".join([line for line in lines[:-20] if TELLING.search(line)] + lines[-20:]))


def covers(through, direct):
    """Whether all lines are there, as often as directly or more often, and no other ones."""
    found, wanted = (collections.Counter(text.splitlines()) for text in (through, direct))
    return found.keys() == wanted.keys() and all(found[line] >= wanted[line] for line in wanted)


def explain(where, result):
    text = f"{where}: status {result.status}\n{tail(result.out)}"
    return text + (f"\n--- standard error\n{tail(result.err)}" if result.err.strip() else "")


def tail(text, lines=15):
    return "\n".join(text.rstrip().splitlines()[-lines:])


def difference(direct, through):
    lines = difflib.unified_diff(direct.splitlines(), through.splitlines(), "direct", "through",
                                 lineterm="", n=1)
    return "\n".join(list(lines)[:20])


def report(name, verdict, text, seconds):
    first, *rest = text.splitlines() or [""]
    reason = f"  ({first})" if first else ""
    lines = [f"{verdict:8}{seconds:6.1f} s  {name}{reason}", *("        " + line for line in rest)]
    # One write, as others print at the same time.
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def check_and_report(name, check):
    """`check` returns (verdict, text)."""
    start = time.monotonic()
    verdict, text = check()
    report(name, verdict, text, time.monotonic() - start)
    return verdict


def check_side_by_side(checks, jobs):
    """`checks` are (name, check) pairs. Each result is printed as it comes, so that a slow program
    hides none of the others'."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = [pool.submit(check_and_report, *one) for one in checks]
        return [done.result() for done in concurrent.futures.as_completed(running)]


def print_summary(verdicts):
    counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in ("passed", "failed", "skipped")]
    print(", ".join(counts))


def run_all(runner, programs, jobs):
    def check_of(program):
        return program.name, lambda: runner.check(program)

    def is_alone(program):
        return program.alone or program.stem in PRINTING

    together = [check_of(program) for program in programs if not is_alone(program)]
    alone = [check_of(program) for program in programs if is_alone(program)]
    return check_side_by_side(together, jobs) + check_side_by_side(alone, 1)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build")
    parser.add_argument("--device", choices=["soft", "cuda"], default="soft")
    parser.add_argument("--clients", help="how many copies at once through Funnel, e.g. 1,4,8")
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for each run")
    parser.add_argument("--only", help="only programs whose name contains this")
    parser.add_argument("--without", default="", help="not these programs, e.g. prints,talks")
    parser.add_argument("--long", action="store_true", help="more rounds of what repeats itself")
    parser.add_argument("--compile", action="store_true", help="build the programs, run nothing")
    options = parser.parse_args()
    clients = options.clients or ("1,4,8" if options.device == "cuda" else "1")
    options.clients = [int(number) for number in clients.split(",")]
    options.build = options.build.resolve()
    return options


def main():
    options = parse_arguments()
    programs = [program for program in all_programs(options.build, options.only, options.long)
                if (not options.only or options.only in program.name) and
                program.stem not in options.without.split(",")]
    if options.compile:
        return 1 if any((p.reason or "").startswith("nvcc failed") for p in programs) else 0
    if not (options.build / "bin/funnel").exists():
        print(f"{options.build}/bin/funnel is missing: build first", file=sys.stderr)
        return 1
    guardian.protect()
    with tempfile.TemporaryDirectory(prefix="funnel-api-") as folder:
        runner = Runner(options, folder)
        try:
            verdicts = run_all(runner, programs, options.jobs)
        finally:
            runner.stop()
        if "failed" in verdicts:
            runner.show_logs()
    print_summary(verdicts)
    return 1 if "failed" in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
