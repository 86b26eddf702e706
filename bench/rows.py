# SPDX-License-Identifier: Apache-2.0
"""What is measured, and what the table shows of it.

A measurement runs clients in one mode and gives figures. A row shows one figure of one measurement
for a number of clients, with the goal that was set for it.
"""
import copy
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, replace

import clients
import modes
from clients import BenchError, Skipped, merge, run_together
from limit_ways import NoAnswer, Way
from many_clients import FEW_CPUS, copies, on_few_cpus, trainings_of
from neighbors import LONG_KERNEL_SECONDS, beside_long_kernel, beside_programs, new_share
from observers import OBSERVERS, observed
from trainings import beside_trainings

# ---- measurements: function(bench, mode, clients, seconds) -> {figure: value} ----


def simply(row, program="client"):
    """`clients` copies of client.cu do the same."""
    def run(bench, mode, count, seconds):
        command = [bench.program(program), row, seconds]
        return merge(run_together(mode, [command] * count, seconds)[0])
    return run


def idle(bench, mode, count, seconds):
    """Clients that hold a context and do nothing; with them, their daemons and servers."""
    window = max(3.0, seconds)

    def look(pids):
        time.sleep(0.5)
        everyone = pids + mode.service_pids()
        before = sum(map(modes.cpu_seconds_of, everyone))
        time.sleep(window)
        spent = sum(map(modes.cpu_seconds_of, everyone)) - before
        return {"cpu_percent": 100 * spent / window, "gpu_mib": modes.gpu_memory_used_mib()}

    return run_together(mode, [[bench.program("client"), "idle", window + 1]] * count, window,
                        look)[1]


def stall(kind):
    """One client runs kernels of 200 ms, one disturbs, the third's launches should not notice."""
    def run(bench, mode, count, seconds):
        program, seconds = bench.program("client"), max(2.0, seconds)
        commands = [[program, row, seconds] for row in ("hold", f"disturb_{kind}", "launch_sync")]
        reports = run_together(mode, commands, seconds)[0]
        return {"worst_ms": reports[2]["max_us"] / 1e3, "p50_us": reports[1]["p50_us"] - 1000}
    return run


KERNEL_SECONDS = 3
# What a program does that starts while a kernel runs.
NEW_CLIENTS = {
    "code": (["modules"], "200 kernels that the server has not seen"),
    "text": (["client", "disturb_module", 0.001], "PTX that the server has not seen"),
    "limit": (["client", "disturb_limit", 0.001], "cudaDeviceSetLimit of a larger stack"),
}


def time_new_client(bench, mode, name, *arguments):
    """Milliseconds from its start to its report."""
    began = time.monotonic()
    with clients.Client(mode, [bench.program(name), *arguments]) as client:
        if arguments:  # a row of client.cu
            client.await_ready()
            client.go()
        client.report(60)
    return (time.monotonic() - began) * 1e3


def play_beside_kernel(bench, mode, new_client):
    program = bench.program("client")
    bench.program(new_client[0])
    with clients.Client(mode, [program, "long_kernel", KERNEL_SECONDS]) as kernel, \
         clients.Client(mode, [program, "launch_sync", KERNEL_SECONDS]) as reporter:
        for client in kernel, reporter:
            client.await_ready()
        for client in kernel, reporter:
            client.go()
        time.sleep(0.5)
        result_ms = time_new_client(bench, mode, *new_client)
        reports = [client.report(60) for client in (kernel, reporter)]
    return {"worst_ms": reports[1]["max_us"] / 1e3, "p50_us": reports[1]["p50_us"],
            "result_ms": result_ms}


def beside_kernel(kind, *options):
    """A kernel of some seconds, and a reporter with small launches. Meanwhile a program starts, in
    a server that is new to all of them. With options its standby is ready."""
    def run(bench, mode, count, seconds):
        here = modes.Funnel(bench.funnel, bench.device, *options) if options else mode
        here.restart()
        try:
            bench.warm_up(here)
            if options:
                here.await_standby()
            return play_beside_kernel(bench, here, NEW_CLIENTS[kind][0])
        finally:
            if options:
                here.stop()
    return run


def started_twice(program):
    """The same program beside a server that is new to it, with nothing compiled before, and
    again."""
    def run(bench, mode, count, seconds):
        if program == "large_code" and bench.device == "soft":
            raise Skipped("machine code needs a real GPU")
        command = [bench.program(program)]
        mode.restart()
        bench.warm_up(mode)
        reports = []
        for _ in range(2):
            with clients.Client(mode, command) as client:
                reports.append(client.report(120))
        first, second = (report["load_ms"] for report in reports)
        return {"first_load_ms": first, "second_load_ms": second, "second_of_first": second / first,
                "work_ms": reports[1].get("work_ms")}
    return run


def attach(bench, mode, count, seconds):
    """All but one are there; how long does the last take from its main() to its first result?"""
    command = [bench.program("client"), "launch_sync", seconds]
    group = []

    def add(how_many):
        added = [clients.Client(mode, command).__enter__() for _ in range(how_many)]
        group.extend(added)
        for client in added:
            client.await_ready()

    try:
        while len(group) < count - 1:
            add(min(16, count - 1 - len(group)))
        add(1)
        for client in group:
            client.go()
        reports = [client.report(seconds * 10 + 120) for client in group]
    finally:
        for client in group:
            client.__exit__()
    return dict(merge(reports), start_ms=reports[-1]["start_ms"])


def turns_on_variables(bench, mode, count, seconds):
    """variables.cu."""
    report = run_together(mode, [[bench.program("variables"), seconds]], seconds)[0][0]
    return {"p50_us": report["p50_us"]}


def rate(kernel):
    """One kernel of rates.cu. CPU time is that of the device only where the program is the
    device."""
    def run(bench, mode, count, seconds):
        report = run_together(mode, [[bench.program("rates"), kernel, seconds]], seconds)[0][0]
        figures = ("giga", "giga_a_core") if mode.name == "native" else ("giga",)
        return {figure: report[figure] for figure in figures}
    return run


def host_rate(way, all_cores=False):
    """The fma loop without CUDA: rates_host.c."""
    def run(bench, mode, count, seconds):
        threads = min(64, os.cpu_count()) if all_cores else 1
        done = subprocess.run([bench.built("bench/rates_host"), way, str(seconds), str(threads)],
                              capture_output=True, text=True, timeout=60 + 10 * seconds)
        if done.returncode == 77:
            raise Skipped("no PoCL, nor any other OpenCL")
        if done.returncode:
            raise BenchError(done.stderr.strip() or "computed wrong results")
        return json.loads(done.stdout)
    return run


def start_up(bench, mode, count, seconds):
    """A small program from its start to its end, several times."""
    command, took = mode.prefix + [bench.built("examples/vector_add")], []
    while len(took) < 5 or sum(took) < seconds:
        begin = time.monotonic()
        subprocess.run(command, env=mode.environment(), check=True, timeout=60,
                       stdout=subprocess.DEVNULL)
        took.append(time.monotonic() - begin)
    return {"whole_ms": sorted(took)[len(took) // 2] * 1e3}


def priority(bench, mode, count, seconds):
    """What a normal client has beside one below normal that floods the GPU, and alone."""
    way = Way(mode, None, bench.build)
    try:
        alone = way.small_beside_flood(None, seconds)[0]
        beside, median, p99 = way.small_beside_flood("1", seconds)
    except (NoAnswer, ValueError) as error:
        raise BenchError(str(error)) from error
    return {"kept": beside / alone, "p50_us": median, "p99_us": p99}


def need_torch(bench):
    if bench.device == "soft":
        raise Skipped("PyTorch needs a real GPU")
    if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode:
        raise Skipped("no PyTorch here")


def nccl_jobs(bench, mode, count, seconds):
    """Trainings, each on the same two GPUs."""
    need_torch(bench)
    look = "import sys, torch; sys.exit(torch.cuda.device_count() < 2)"
    if subprocess.run([sys.executable, "-c", look], capture_output=True).returncode:
        raise Skipped("two GPUs are needed")
    seconds = max(3.0, seconds)
    command = [sys.executable, clients.BENCH / "nccl_job.py", seconds]
    rates = [report["rate"] for report in run_together(mode, [command] * count, seconds,
                                                       ready_timeout=150)[0]]
    return {"rate": sum(rates), "fairness": min(rates) * len(rates) / sum(rates)}


def trainings(bench, mode, count, seconds):
    need_torch(bench)
    return beside_trainings(bench, mode, seconds)


def torch(what):
    def run(bench, mode, count, seconds):
        need_torch(bench)
        command = [sys.executable, clients.BENCH / "torch_client.py", what, max(2.0, seconds)]
        reports = run_together(mode, [command] * count, seconds)[0]
        return {figure: reports[0][figure] for figure in ("rate", "p50_us", "p99_us")}
    return run


def profiled(mode):
    """The same mode, whose programs get Funnel's CUPTI where they run through Funnel."""
    other = copy.copy(mode)
    other.environment = lambda: dict(mode.environment(), FUNNEL_PROFILE="1")
    return other


def injected(mode, library):
    """The same, whose programs are profiled without their knowledge."""
    other = profiled(mode)
    other.environment = lambda: dict(mode.environment(), FUNNEL_PROFILE="1", CUDA_INJECTION64_PATH=library)
    return other


def queued_profiled(bench, mode, count, seconds):
    """One after the other: a process has its profiler from its start."""
    command = [bench.program("client"), "queued", seconds]
    library = bench.built("bench/libprofiler.so")
    rates = [run_together(way, [command], seconds)[0][0]["rate"]
             for way in (mode, injected(mode, library))]
    return {"rate": rates[1], "kept": rates[1] / rates[0]}


def torch_profiled(bench, mode, count, seconds):
    need_torch(bench)
    command = [sys.executable, clients.BENCH / "torch_client.py", "profiled_train", 1]
    report, = run_together(profiled(mode), [command], 2)[0]  # a second without, one with a profiler
    return {figure: report[figure] for figure in ("kept", "p50_us")}


def lenet(bench, mode, count, seconds):
    need_torch(bench)
    return trainings_of("lenet")(bench, mode, count, seconds)


STALLS = {
    "nothing": "nothing",
    "module": "cuModuleLoadData",
    "malloc": "cudaMalloc + cudaFree, 64 MiB",
    "pinned": "cudaMallocHost + cudaFreeHost, 64 MiB",
    "register": "cudaHostRegister + Unregister, 64 MiB",
    "limit": "cudaDeviceSetLimit",
    "stream": "cudaStreamCreate + Destroy",
}

# What runs beside a long kernel, with the numbers of clients.
BESIDE_LONG = {"launch_sync": (1, 8), "small": (1, 8), "nbody": (1, 4)}

RATES = {
    "fma": "fma loop",
    "nbody": "n-body, 4096 bodies: interactions",
    "collatz": "steps of a loop that lanes leave one by one",
    "copy": "copy in device memory: bytes",
    "strided": "copy from every 33rd float: bytes",
    "transpose": "matrix transposed in shared memory: bytes",
    "histogram": "atomics in shared memory",
    "atomics": "atomics in device memory",
}
HOST_RATES = {
    "fma_c": (host_rate("c"), "fma loop compiled by the C compiler (-O2), one core"),
    "fma_c_all": (host_rate("c", True), "the same, all cores"),
    "fma_vectors": (host_rate("vectors"), "fma loop written for vector units, one core"),
    "fma_vectors_all": (host_rate("vectors", True), "the same, all cores"),
    "fma_opencl": (host_rate("opencl"), "fma loop in OpenCL (PoCL), all cores"),
}

# What programs do whose kernels may print, as those of NCCL may.
MAY_PRINT = {
    "launch_sync": "launch + synchronize an empty kernel",
    "queued": "queued launches",
    "crossed": "kernels of two streams",
    "small": "52 us kernels of 16 blocks, synchronized",
}

# Name: what runs, and what it is called in the table.
MEASUREMENTS = {
    "launch_sync": (copies("launch_sync"), "launch + synchronize an empty kernel"),
    "oversubscribed": (copies("launch_sync"), "the same with more clients than CPUs"),
    "queued": (copies("queued"), "queued launches"),
    "crossed": (simply("crossed"), "kernels of two streams, each behind the other's by an event"),
    **{f"{row}_may_print": (simply(row, "client_may_print"), f"{what}, of a program that may print")
       for row, what in MAY_PRINT.items()},
    "small": (copies("small"), "52 us kernels of 16 blocks, synchronized"),
    "nbody": (simply("nbody"), "all-pairs n-body, 131072 bodies"),
    "h2d_pageable": (simply("h2d_pageable"), "pageable copy to the device, 1 MiB"),
    "d2h_pageable": (simply("d2h_pageable"), "pageable copy from the device, 1 MiB"),
    "h2d_pageable_64m": (simply("h2d_pageable_64m"), "pageable copy to the device, 64 MiB"),
    "d2h_pageable_64m": (simply("d2h_pageable_64m"), "pageable copy from the device, 64 MiB"),
    "h2d_pinned": (simply("h2d_pinned"), "pinned copy to the device, 16 MiB"),
    "d2h_pinned": (simply("d2h_pinned"), "pinned copy from the device, 16 MiB"),
    "managed_kernel": (simply("managed_kernel"),
                       "kernel over 256 MiB of managed memory that the host leaves alone"),
    "managed_first": (simply("managed_first"), "the same after the host has written all of it"),
    "managed_atomics": (simply("managed_atomics"), "histogram of it, by atomics"),
    "managed_read": (simply("managed_read"), "the host reads it after a kernel"),
    "managed_turns_4k": (simply("managed_turns_4k"), "host and kernel in turns on managed 4 KiB"),
    "managed_turns_1m": (simply("managed_turns_1m"), "the same on 1 MiB"),
    "managed_turns_256m": (simply("managed_turns_256m"), "the same on 256 MiB"),
    "managed_turns_variables": (turns_on_variables,
                                "host and kernel in turns on four __managed__ variables"),
    **{f"managed_turns_{size}_prefetched": (simply(f"managed_turns_{size}_prefetched"),
                                            f"host and kernel in turns on {what}, prefetched")
       for size, what in {"4k": "4 KiB", "1m": "1 MiB", "256m": "256 MiB"}.items()},
    "managed_fill": (simply("managed_fill"), "the host fills 256 MiB of new managed memory"),
    "managed_large": (simply("managed_large"),
                      "a kernel over 768 MiB of one managed array, of which 512 fit (natively all)"),
    "managed_large_parts": (simply("managed_large_parts"),
                            "the same in 12 parts, each prefetched for 10 kernels"),
    "malloc": (simply("malloc"), "cudaMalloc + cudaFree, 4 MiB"),
    "malloc_async": (simply("malloc_async"), "cudaMallocAsync + cudaFreeAsync, 4 MiB"),
    "wake": (simply("wake"), "asleep behind a kernel of 5 ms: how late it goes on"),
    "idle": (idle, "idle clients"),
    "modules": (started_twice("modules"), "200 small kernels of one program, loaded and launched"),
    "large_code": (started_twice("large_code"), "25 MiB of machine code in 10 modules, loading"),
    "large_text": (started_twice("large_text"),
                   "10 MiB of PTX in 2 modules, compiling and loading"),
    "priority": (priority, "50 us kernels of 16 blocks beside a flood of below normal priority"),
    "attach": (attach, "many clients: the last one's start"),
    **{f"rate_{kernel}": (rate(kernel), what) for kernel, what in RATES.items()},
    **HOST_RATES,
    "start_up": (start_up, "a small program, from start to end"),
    "torch_matmul": (torch("matmul"), "PyTorch, matrix product 2048^2"),
    "trainings": (trainings, "50 us kernels of 16 blocks beside two ResNet-50 trainings"),
    "lenet": (lenet, "PyTorch, training steps of LeNet"),
    "nccl_jobs": (nccl_jobs, "PyTorch, training steps of small networks on two GPUs (NCCL)"),
    "torch_train": (torch("train"), "PyTorch, training step of a small network"),
    "torch_profiled": (torch_profiled, "the same under torch.profiler"),
    "queued_profiled": (queued_profiled, "queued launches, under a profiler that the driver loads"),
    **{f"beside_{kind}": (beside_kernel(kind), f"a kernel of {KERNEL_SECONDS} s, small launches, "
                          f"and a program that starts with {what}")
       for kind, (_, what) in NEW_CLIENTS.items()},
    **{f"spare_{kind}": (beside_kernel(kind, "--spare"), f"the same with --spare ({what})")
       for kind, (_, what) in NEW_CLIENTS.items()},
    **{f"stall_{kind}": (stall(kind), f"200 ms kernels here, {what} there: a third's worst launch")
       for kind, what in STALLS.items()},
    "stall_attach": (beside_programs(),
                     "200 ms kernels here, 20 programs a second there: another's worst launch"),
    "stall_share": (beside_programs(new_share), "the same, each with a share of its own"),
}
# Rows that are measured on few CPUs, too.
ON_FEW_CPUS = ("launch_sync", "queued", "small", "lenet")
for name, few in FEW_CPUS.items():
    for row in ON_FEW_CPUS:
        MEASUREMENTS[f"{name}_{row}"] = (on_few_cpus(MEASUREMENTS[row][0], few),
                                         f"{MEASUREMENTS[row][1]}, on {few} CPUs")
for row in BESIDE_LONG:
    what = f"{MEASUREMENTS[row][1]}, beside a kernel of {LONG_KERNEL_SECONDS} s"
    MEASUREMENTS[f"long_{row}"] = (beside_long_kernel(row), what)
    MEASUREMENTS[f"lanes_{row}"] = (beside_long_kernel(row, "--spare"), f"{what} in another lane")
OBSERVED = {
    f"{row}_{how}": (observed(MEASUREMENTS[row][0], how), f"{MEASUREMENTS[row][1]}, {what}")
    for row in ("launch_sync", "queued") for how, what in OBSERVERS.items()}
MEASUREMENTS.update(OBSERVED)
# What the software GPU does in reasonable time; others only when they are asked for.
SOFT = {"launch_sync", "oversubscribed", "queued", "h2d_pageable", "d2h_pageable", "malloc",
        "managed_turns_4k", "managed_turns_1m", "managed_turns_variables",
        "malloc_async", "wake", "idle", "modules", "large_text", "attach", "start_up", *HOST_RATES,
        *[f"rate_{kernel}" for kernel in RATES]}
# Goals that hold for it, too.
SOFT_GOALS = {"start_up", "large_text"}
# About the CPU as a GPU.
ONLY_SOFT = {*HOST_RATES, *[f"rate_{kernel}" for kernel in RATES]}
# Without CUDA there is nothing to share.
ONLY_NATIVE = {*HOST_RATES}
# No driver but ours takes so many.
ONLY_FUNNEL = {"attach", "oversubscribed", *OBSERVED, *[f"spare_{kind}" for kind in NEW_CLIENTS],
               *[f"lanes_{row}" for row in BESIDE_LONG]}
# NVIDIA's MPS has a memory limit as well, and a driver of its own for what does not fit.
NOT_MPS = {"managed_large", "managed_large_parts"}
# Clients on the software GPU, where they are not few: they are what the row is about.
MANY_CLIENTS = {"oversubscribed": (8, 64)}


def measured_in(measurement, mode):
    if measurement in ONLY_FUNNEL:
        return mode == "funnel"
    if measurement in NOT_MPS:
        return mode != "mps"
    return mode == "native" or measurement not in ONLY_NATIVE


# ---- figures and rows ----


@dataclass(frozen=True)
class Figure:
    unit: str
    higher_is_better: bool = False


FIGURES = {
    "rate": Figure("a second, all clients", True),
    "gb_per_s": Figure("GB/s, all clients", True),
    "fairness": Figure("least share, of an equal one", True),
    "p50_us": Figure("us, median"),
    "p99_us": Figure("us, 99th percentile"),
    "alone_us": Figure("us, median, while the trainings rest"),
    "low_p50_us": Figure("us, median, the trainings below normal priority"),
    "low_p99_us": Figure("us, 99th percentile, the trainings below normal priority"),
    "low_kept": Figure("what the trainings below normal priority keep", True),
    "low_rate": Figure("steps a second of the trainings below normal priority alone", True),
    "cpu_us": Figure("us of CPU time each"),
    "all_cpu_us": Figure("us of CPU time each, of programs and servers"),
    "first_call_ms": Figure("ms, first CUDA call"),
    "start_ms": Figure("ms from main() to the first result"),
    "kept": Figure("share of what it does alone", True),
    "gpu_mib": Figure("MiB of GPU memory in use"),
    "cpu_percent": Figure("% of a core, servers and clients"),
    "first_load_ms": Figure("ms, first start"),
    "second_load_ms": Figure("ms, second start"),
    "second_of_first": Figure("second start, of the first"),
    "work_ms": Figure("ms, the same launches again"),
    "worst_ms": Figure("ms"),
    "result_ms": Figure("ms, start to end of the program that starts"),
    "giga": Figure("thousand millions a second", True),
    "giga_a_core": Figure("thousand millions a second and core", True),
    "whole_ms": Figure("ms"),
}


@dataclass(frozen=True)
class Goal:
    """Funnel's figure itself is good enough, or it is by a factor `over` another mode's."""
    value: float
    over: str = None

    def __str__(self):
        return f"{self.value:g}x {self.over}" if self.over else f"{self.value:g}"


@dataclass(frozen=True)
class Row:
    measurement: str
    figure: str
    clients: tuple
    goals: dict = None  # by number of clients; None = of all

    def goal(self, count):
        return (self.goals or {}).get(count, (self.goals or {}).get(None))


def beside(mode, value=1.0):
    return Goal(value, mode)


FEW_CPUS_GOALS = {("scarce", "lenet"): {8: beside("mps", 1.1)}}

ROWS = [
    Row("launch_sync", "p50_us", (1, 8), {1: beside("native")}),
    Row("launch_sync", "p99_us", (1, 8), {1: beside("native", 1 / 1.5)}),
    Row("launch_sync", "rate", (1, 2, 4, 8, 16, 32), {8: beside("mps", 0.9), 16: Goal(400000),
                                                      32: Goal(380000)}),
    Row("launch_sync", "fairness", (8, 16, 32), {None: Goal(0.9)}),
    Row("launch_sync", "all_cpu_us", (1, 8, 16, 32)),
    Row("oversubscribed", "rate", (8, 64, 256)),
    Row("oversubscribed", "fairness", (64, 256), {None: Goal(0.9)}),
    Row("oversubscribed", "all_cpu_us", (64, 256)),
    Row("small", "rate", (1, 2, 4, 8, 16, 32), {8: beside("mps"), 16: beside("mps")}),
    Row("small", "fairness", (8, 16, 32), {None: Goal(0.9)}),
    Row("small", "all_cpu_us", (8, 16, 32)),
    Row("nbody", "rate", (1, 4, 8), {4: beside("mps"), 8: beside("mps")}),
    Row("nbody", "fairness", (8,), {8: Goal(0.9)}),
    Row("queued", "rate", (1, 2, 4, 8, 16, 32), {8: beside("mps"), 16: beside("mps", 4.5)}),
    Row("queued", "cpu_us", (1, 8), {None: Goal(0.25)}),
    Row("queued", "fairness", (8, 16, 32), {None: Goal(0.9)}),
    Row("queued", "all_cpu_us", (1, 8, 16, 32)),
    Row("crossed", "rate", (1,), {1: beside("native")}),
    Row("launch_sync_may_print", "p50_us", (1,)),
    *[Row(f"{row}_may_print", "rate", (1,)) for row in MAY_PRINT if row != "small"],
    Row("small_may_print", "rate", (1, 8), {8: beside("mps", 0.98)}),
    Row("lenet", "rate", (1, 4, 8, 16, 32), {4: beside("mps", 1.3), 8: beside("mps", 1.3),
                                             16: beside("mps", 1.1)}),
    Row("lenet", "fairness", (16, 32), {None: Goal(0.9)}),
    Row("lenet", "all_cpu_us", (4, 8, 16, 32)),
    *[Row(f"{name}_{row}", figure, (8,), goals) for name in FEW_CPUS for row in ON_FEW_CPUS
      for figure, goals in (("rate", FEW_CPUS_GOALS.get((name, row))),
                            ("fairness", {8: Goal(0.9)}), ("all_cpu_us", None))],
    Row("nccl_jobs", "rate", (1, 2, 4), {2: beside("mps"), 4: beside("mps")}),
    *[Row(measurement, "kept", (1,), {1: Goal(0.99)} if measurement.endswith("scraped") else None)
      for measurement in OBSERVED],
    Row("h2d_pageable", "gb_per_s", (1, 8), {1: beside("native"), 8: beside("mps")}),
    Row("d2h_pageable", "gb_per_s", (1, 8), {1: beside("native"), 8: beside("mps")}),
    Row("h2d_pageable", "fairness", (8,), {8: Goal(0.9)}),
    Row("d2h_pageable", "fairness", (8,), {8: Goal(0.9)}),
    Row("h2d_pageable_64m", "gb_per_s", (1,), {1: beside("native")}),
    Row("d2h_pageable_64m", "gb_per_s", (1,), {1: beside("native")}),
    Row("h2d_pinned", "gb_per_s", (1,), {1: beside("native", 0.98)}),
    Row("d2h_pinned", "gb_per_s", (1,), {1: beside("native", 0.98)}),
    *[Row(f"managed_{what}", "p50_us", (1, 2), {1: beside("native")})
      for what in ("kernel", "first", "atomics", "read")],
    Row("managed_turns_4k", "p50_us", (1,), {1: beside("native", 0.5)}),
    *[Row(f"managed_turns_{size}", "p50_us", (1,), {1: beside("native")}) for size in ("1m", "256m")],
    Row("managed_turns_variables", "p50_us", (1,), {1: beside("native", 0.5)}),
    *[Row(f"managed_turns_{size}_prefetched", "p50_us", (1,), {1: beside("native")})
      for size in ("4k", "1m", "256m")],
    Row("managed_fill", "p50_us", (1,), {1: beside("native")}),
    Row("managed_large", "p50_us", (1,)),
    Row("managed_large_parts", "p50_us", (1,)),
    Row("malloc", "p50_us", (1, 8), {None: Goal(3)}),
    Row("malloc_async", "p50_us", (1,), {1: beside("native")}),
    Row("launch_sync", "first_call_ms", (1,), {1: Goal(30)}),
    Row("idle", "gpu_mib", (8,), {8: Goal(800)}),
    Row("idle", "cpu_percent", (8,), {8: Goal(1)}),
    Row("wake", "p50_us", (1,), {1: Goal(60)}),
    Row("modules", "first_load_ms", (1,)),
    Row("modules", "second_load_ms", (1,)),
    *[Row(f"large_{what}", figure, (1,), {1: Goal(0.1)} if figure == "second_of_first" else None)
      for what in ("code", "text")
      for figure in ("first_load_ms", "second_load_ms", "second_of_first", "work_ms")],
    *[Row(f"stall_{kind}", "worst_ms", (3,), {3: Goal(1)}) for kind in STALLS],
    *[Row(f"stall_{kind}", figure, (2,), {2: Goal(most)}) for kind in ("attach", "share")
      for figure, most in (("worst_ms", 20), ("result_ms", 500))],
    *[Row(f"{where}_{row}", figure, counts) for row, counts in BESIDE_LONG.items()
      for where in ("long", "lanes") for figure in ("rate", "p50_us", "p99_us")],
    *[Row(f"{where}_{kind}", figure, (3,), {3: Goal(most)} if where == "spare" else None)
      for kind in NEW_CLIENTS for where in ("beside", "spare")
      for figure, most in (("worst_ms", 20), ("result_ms", 500))],
    Row("attach", "start_ms", (256,), {256: Goal(100)}),
    Row("start_up", "whole_ms", (1,), {1: Goal(50)}),
    Row("rate_fma", "giga_a_core", (1,)),
    *[Row(f"rate_{kernel}", "giga", (1,)) for kernel in RATES],
    *[Row(way, "giga_a_core", (1,)) for way in HOST_RATES if not way.endswith("_all")],
    *[Row(way, "giga", (1,)) for way in HOST_RATES],
    Row("priority", "kept", (2,), {2: beside("mps")}),
    Row("priority", "p50_us", (2,)),
    Row("priority", "p99_us", (2,)),
    *[Row("trainings", figure, (3,))
      for figure in ("alone_us", "p50_us", "p99_us", "kept", "rate", "low_p50_us", "low_p99_us",
                     "low_kept", "low_rate")],
    Row("torch_matmul", "rate", (1,), {1: beside("native", 0.99)}),
    Row("torch_train", "rate", (1,), {1: beside("native", 0.99)}),
    Row("torch_profiled", "kept", (1,), {1: beside("native")}),
    Row("torch_profiled", "p50_us", (1,)),
    Row("queued_profiled", "kept", (1,), {1: beside("native")}),
    Row("queued_profiled", "rate", (1,)),
]


def fewer(row):
    """The same row for a machine where the GPU is the CPU."""
    many = MANY_CLIENTS.get(row.measurement)
    if many:
        return with_counts(row, many)
    counts = tuple(n for n in row.clients if n <= 2) or (min(8, row.clients[0]),)
    return Row(row.measurement, row.figure, counts,
               row.goals if row.measurement in SOFT_GOALS else None)


def with_counts(row, wanted):
    """The row with those of its numbers of clients that are wanted."""
    return replace(row, clients=tuple(n for n in row.clients if n in wanted))


def select(device, wanted, counts=None):
    rows = [row for row in ROWS if row.measurement in wanted] if wanted else ROWS
    if device != "soft":
        rows = [row for row in rows if wanted or row.measurement not in ONLY_SOFT]
    else:
        rows = [fewer(row) for row in rows if wanted or row.measurement in SOFT]
    if counts:
        rows = [with_counts(row, counts) for row in rows if counts & set(row.clients)]
    if not rows:
        raise BenchError(f"no row that was asked for has {counts} clients")
    return rows
