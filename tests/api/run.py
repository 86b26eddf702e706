#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs CUDA programs directly on a device and through Funnel, and compares.

A program passes when it ends with status 0 both ways and prints the same. The programs are those on
the driver API (driver/, built with everything else), the examples, and those on the runtime API
(runtime/, built here with static and with shared cudart when there is an nvcc, or taken as they are
when they were built before; one with a folder of its name has its other units there). Ends with one line: N passed, N failed, N skipped.
"""
import argparse
import concurrent.futures
import difflib
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import guardian  # noqa: E402  (found through the path above)

SKIPPED = 77
TELLING = re.compile("fatal GPU|Fatal GPU|last kernel|has been in")

EXAMPLES = ["vector_add", "matmul", "reduction", "histogram", "n_body", "mandelbrot"]
DRIVER = ["startup", "contexts", "memory", "dma_bufs", "registers", "shared_files", "modules", "links", "starts", "launches",
          "batches", "streams", "events", "callbacks", "threads", "pointers", "graphs", "prints",
          "forks",
          "exits", "bad_handles", "vmm", "pools", "pool_shares", "graph_nodes", "captures", "graph_memory",
          "talk_calls", "tensor_copies", "tensor_maps", "warpgroups", "conditionals", "launch_attributes", "green"]
DRIVER += ["memory_atomics", "memory_order", "ipc", "ipc_peers", "managed", "managed_moves", "managed_neighbors", "managed_large", "managed_peers", "managed_random", "managed_turns", "managed_variables", "peers", "retired"]
# Kernels of these wait for the host, which needs the driver meanwhile, so nothing else may run beside
# them: a call that waits for all kernels would never end.
WAITING = [("managed_neighbors", "waits"), ("managed_turns", "waits")]
# These end the context that they share with others, so they run alone, after everything else.
FAULTS = [("faults", "null"), ("faults", "misaligned"), ("faults", "trap")]
RUNTIME_FAULTS = ["fault"]
# NVIDIA's driver may crash on handles that never were, and does on parameters set where a kernel has
# none; Funnel must not.
NOT_DIRECT_ON_CUDA = {"bad_handles", "retired"}
# The software GPU does not carry these calls: the client answers them.
NOT_DIRECT_ON_SOFT = {"retired"}
# Large headers: one variant is enough.
STATIC_ONLY = {"algorithms", "halves", "hopper_matmul", "intrinsics", "repeated_algorithms", "tensor_tiles", "warp_edges"}
EXTRA_FLAGS = {"streams": {"per_thread": ["--default-stream", "per-thread"]}}
# Programs that call the driver as well; nvcc brings a library to link them with.
DRIVER_CALLS = {"pointers"}
# Programs whose kernels launch kernels; nvcc brings the runtime on the device.
DEVICE_RUNTIME = {"device_launches"}
# Programs that several copies of are to run at once, whatever is asked for.
COPIES = {"settings": 4}
# What a program needs of the GPU, where that is more than nvcc's default.
ARCHITECTURES = {"tensor": "sm_80", "barriers": "sm_80", "clusters": "sm_90", "device_launches": "sm_90", "hopper_matmul": "sm_90a", "settings": "sm_90", "sparse": "sm_90", "tensor_tiles": "sm_90", "warp_edges": "sm_90"}
# With --long: how many rounds, where a few are the default.
LONG = {"repeated_algorithms": "200"}


class Program:
    def __init__(self, name, command, alone=False, reason=None):
        self.name = name
        self.stem = name.split("/")[1].split(" ")[0]
        self.command = [str(word) for word in command]
        self.alone = alone
        self.reason = reason  # why it is skipped


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err


# ---- programs on the runtime API ----


def find_nvcc():
    nvcc = os.environ.get("NVCC") or shutil.which("nvcc")
    if not nvcc and os.path.exists("/usr/local/cuda/bin/nvcc"):
        nvcc = "/usr/local/cuda/bin/nvcc"
    return os.path.realpath(nvcc) if nvcc else None


def architecture_flags(name):
    """For one whose features no later GPU has, nvcc keeps no PTX unless it is told to."""
    if name and name.endswith("a"):
        virtual = name.replace("sm", "compute")
        return [f"-gencode=arch={virtual},code=[{name},{virtual}]"]
    return [f"-arch={name}"] if name else []


def variants_of(name):
    common = ["-O2"] + architecture_flags(ARCHITECTURES.get(name))
    common += ["-lcuda"] if name in DRIVER_CALLS else []
    common += ["-rdc=true", "-lcudadevrt"] if name in DEVICE_RUNTIME else []
    for cudart in ("static",) if name in STATIC_ONLY else ("static", "shared"):
        yield cudart, common
    for variant, flags in EXTRA_FLAGS.get(name, {}).items():
        yield variant, common + flags


def units_of(source):
    """The program's sources: a folder of its name holds further ones, compiled separately."""
    return [source, *sorted((source.parent / source.stem).glob("*.cu"))]


def fingerprint(source, flags):
    headers = sorted(source.parent.glob("*.cuh"))
    text = b"".join(path.read_bytes() for path in [*units_of(source), *headers])
    return hashlib.sha256(text + " ".join(flags).encode()).hexdigest()


def compile_runtime(nvcc, source, variant, flags, folder):
    """The path of the program, or None and why there is none."""
    program = folder / f"{source.stem}_{variant}"
    stamp = program.with_suffix(".stamp")
    wanted = fingerprint(source, flags)
    if program.exists() and stamp.exists() and stamp.read_text() == wanted:
        return program, None
    if not nvcc:
        return None, "no nvcc"
    cudart = "shared" if variant == "shared" else "static"
    units = units_of(source)
    if len(units) > 1:
        flags = [*flags, "-rdc=true"]
    command = [nvcc, "-std=c++17", "--extended-lambda", "-cudart", cudart, "-Xlinker",
               "-rpath=$ORIGIN", *flags, "-o", str(program), *map(str, units)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return None, f"nvcc failed:\n{done.stdout}{done.stderr}"
    stamp.write_text(wanted)
    return program, None


def keep_shared_cudart(nvcc, folder):
    """Beside the programs that use it, so that they run where there is no toolkit."""
    lib = pathlib.Path(nvcc).parent.parent / "lib64"
    for library in sorted(lib.glob("libcudart.so.*")):
        if library.name.count(".") == 2 and not (folder / library.name).exists():
            shutil.copy(library.resolve(), folder / library.name)


def runtime_name(source, variant):
    return f"runtime/{source.stem} ({variant})"


def runtime_programs(build, only, is_long):
    folder = build / "tests/api/runtime"
    folder.mkdir(parents=True, exist_ok=True)
    nvcc = find_nvcc()
    if nvcc:
        keep_shared_cudart(nvcc, folder)
    wanted = [(source, variant, flags) for source in sorted((HERE / "runtime").glob("*.cu"))
              for variant, flags in variants_of(source.stem)
              if not only or only in runtime_name(source, variant)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        built = pool.map(lambda one: compile_runtime(nvcc, *one, folder), wanted)
    for (source, variant, _), (program, reason) in zip(wanted, built):
        rounds = [LONG[source.stem]] if is_long and source.stem in LONG else []
        yield Program(runtime_name(source, variant), [program, *rounds],
                      source.stem in RUNTIME_FAULTS, reason)


def all_programs(build, only, is_long):
    for name in DRIVER:
        yield Program(f"driver/{name}", [build / "tests/api" / name])
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
        left_out = NOT_DIRECT_ON_CUDA if self.options.device == "cuda" else NOT_DIRECT_ON_SOFT
        if program.stem in left_out:
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
                if direct and result.out != direct.out:
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


def explain(where, result):
    text = f"{where}: status {result.status}\n{tail(result.out)}"
    return text + (f"\n--- standard error\n{tail(result.err)}" if result.err.strip() else "")


def tail(text, lines=15):
    return "\n".join(text.rstrip().splitlines()[-lines:])


def difference(direct, through):
    lines = difflib.unified_diff(direct.splitlines(), through.splitlines(), "direct", "through",
                                 lineterm="", n=1)
    return "\n".join(list(lines)[:20])


def report(name, verdict, text):
    first, *rest = text.splitlines() or [""]
    reason = f"  ({first})" if first else ""
    print(f"{verdict:8}{name}{reason}", flush=True)
    for line in rest:
        print("        " + line, flush=True)


def run_all(runner, programs, jobs):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    together = [program for program in programs if not program.alone]
    alone = [program for program in programs if program.alone]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for program, (verdict, text) in zip(together, pool.map(runner.check, together)):
            report(program.name, verdict, text)
            counts[verdict] += 1
    for program in alone:
        verdict, text = runner.check(program)
        report(program.name, verdict, text)
        counts[verdict] += 1
    return counts


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build")
    parser.add_argument("--device", choices=["soft", "cuda"], default="soft")
    parser.add_argument("--clients", help="how many copies at once through Funnel, e.g. 1,4,8")
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for each run")
    parser.add_argument("--only", help="only programs whose name contains this")
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
                if not options.only or options.only in program.name]
    if options.compile:
        return 1 if any((p.reason or "").startswith("nvcc failed") for p in programs) else 0
    if not (options.build / "bin/funnel").exists():
        print(f"{options.build}/bin/funnel is missing: build first", file=sys.stderr)
        return 1
    guardian.protect()
    with tempfile.TemporaryDirectory(prefix="funnel-api-") as folder:
        runner = Runner(options, folder)
        try:
            counts = run_all(runner, programs, options.jobs)
        finally:
            runner.stop()
        if counts["failed"]:
            runner.show_logs()
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
