# SPDX-License-Identifier: Apache-2.0
"""Programs that need more CPUs than there are: what they get done together, and for how much CPU time
of programs, servers and daemons."""
import contextlib
import os
import sys
import time

import clients
import modes

# What pods have.
FEW_CPUS = {"scarce": 4, "two_cpus": 2}

# Of a measurement, so that neither its start nor its end is counted.
WATCHED_PART = 0.8

READY_TIMEOUT = 150


class CpuWatch:
    """CPU seconds a second of a mode's clients and services, while the clients work."""

    def __init__(self, mode, seconds):
        self.mode, self.seconds = mode, WATCHED_PART * seconds

    def spent(self, pids):
        return sum(map(modes.cpu_seconds_of, pids + self.mode.service_pids()))

    def __call__(self, pids):
        before, began = self.spent(pids), time.monotonic()
        time.sleep(self.seconds)
        return (self.spent(pids) - before) / (time.monotonic() - began)


def with_cpu_time(mode, commands, seconds, **options):
    """The reports of clients that work together, and the CPU time of all for one unit of work."""
    reports, load = clients.run_together(mode, commands, seconds, CpuWatch(mode, seconds), **options)
    rates = [report["rate"] for report in reports]
    return reports, {"rate": sum(rates), "fairness": min(rates) * len(rates) / sum(rates),
                     "all_cpu_us": load / sum(rates) * 1e6}


def copies(row):
    """Copies of client.cu."""
    def run(bench, mode, count, seconds):
        reports, found = with_cpu_time(mode, [[bench.program("client"), row, seconds]] * count, seconds)
        return {**clients.merge(reports), **found}
    return run


def trainings_of(network):
    """Trainings in PyTorch. Their first seconds are spent on imports."""
    def run(bench, mode, count, seconds):
        seconds = max(2.0, seconds)
        command = [sys.executable, clients.BENCH / "torch_client.py", network, seconds]
        return with_cpu_time(mode, [command] * count, seconds, ready_timeout=READY_TIMEOUT)[1]
    return run


@contextlib.contextmanager
def cpus(count):
    """What starts meanwhile runs on so many CPUs."""
    all_cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(all_cpus)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_cpus)


def on_few_cpus(measure, few):
    """The same where daemon, server and programs have so few CPUs together."""
    def run(bench, mode, count, seconds):
        try:
            with cpus(few):
                mode.restart()
                bench.warm_up(mode)
                return measure(bench, mode, count, seconds)
        finally:
            mode.restart()
    return run
