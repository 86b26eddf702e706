# SPDX-License-Identifier: Apache-2.0
"""What clients notice of programs that come and go, and of a kernel that runs for long."""
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import clients
import modes
from clients import BenchError, merge, run_together

PROGRAMS_A_SECOND = 20
LONG_KERNEL_SECONDS = 4


def new_share(number):
    """Another one for each of the next 89 programs."""
    return {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(10 + 37 * number % 89)}


def time_program(mode, command, environment):
    """Milliseconds from its start to its end."""
    began = time.monotonic()
    done = subprocess.run(mode.prefix + command, env=dict(mode.environment(), **environment),
                          capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise BenchError(f"a program that came ended with status {done.returncode}: {done.stderr}")
    return (time.monotonic() - began) * 1e3


def let_programs_come(bench, mode, seconds, environment_of):
    """Median of the milliseconds that they took."""
    command, running = [bench.built("examples/vector_add")], []
    with ThreadPoolExecutor(64) as pool:
        for number in range(int(seconds * PROGRAMS_A_SECOND)):
            running.append(pool.submit(time_program, mode, command, environment_of(number)))
            time.sleep(1 / PROGRAMS_A_SECOND)
        took = sorted(program.result() for program in running)
    return took[len(took) // 2]


def beside_programs(environment_of=lambda number: {}):
    """One client runs kernels of 200 ms, another one should not notice who comes and goes."""
    def run(bench, mode, count, seconds):
        program, seconds = bench.program("client"), max(2.0, seconds)
        commands = [[program, row, seconds] for row in ("hold", "launch_sync")]
        reports, median = run_together(
            mode, commands, seconds,
            lambda pids: let_programs_come(bench, mode, seconds - 0.2, environment_of))
        return {"worst_ms": reports[1]["max_us"] / 1e3, "result_ms": median}
    return run


def play_beside_kernel(bench, mode, row, count, seconds):
    program = bench.program("client")
    with clients.Client(mode, [program, "long_kernel", LONG_KERNEL_SECONDS]) as kernel:
        kernel.await_ready()
        kernel.go()
        time.sleep(0.5)
        result = merge(run_together(mode, [[program, row, seconds]] * count, seconds)[0])
        if kernel.process.poll() is not None:
            raise BenchError(f"the kernel of {LONG_KERNEL_SECONDS} s ended too early")
        kernel.report(60)
    return result


def beside_long_kernel(row, *options):
    """`count` copies of client.cu do the same beside a kernel on one multiprocessor. With --spare
    they do it in another context than the kernel, so that the GPU slices time between the two."""
    def run(bench, mode, count, seconds):
        here = modes.Funnel(bench.funnel, bench.device, *options) if options else mode
        try:
            if options:
                here.start()
                bench.warm_up(here)
            return play_beside_kernel(bench, here, row, count, min(1.0, seconds))
        finally:
            if options:
                here.stop()
    return run
