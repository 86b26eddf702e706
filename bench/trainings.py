# SPDX-License-Identifier: Apache-2.0
"""A program that launches kernels of some 50 us and 16 blocks, each waited for. Beside it are two
trainings of ResNet-50 (PyTorch, bf16), of normal and of below-normal priority.

Starting a training takes several times as long as measuring it. So all four are started at once,
and two of them wait while the others work.
"""
import contextlib
import sys

import clients
from clients import Client

TOGETHER = 2
ROUNDS = 2  # alone, beside the small kernels
READY_TIMEOUT = 120
BELOW_NORMAL = ["env", "CUDA_MPS_CLIENT_PRIORITY=1"]


def rate_of(group, timeout):
    return sum(client.answer(timeout)["rate"] for client in group)


def begin(group):
    for client in group:
        client.go()


def train(group, timeout):
    begin(group)
    return rate_of(group, timeout)


def run_small(bench, mode, group, seconds, timeout):
    """The report of the small kernels, and how fast the trainings were beside them."""
    with Client(mode, [bench.program("client"), "small", 0.8 * seconds]) as small:
        small.await_ready()
        begin([*group, small])
        return small.report(timeout), rate_of(group, timeout)


def beside_trainings(bench, mode, seconds):
    seconds, timeout = max(2.0, seconds), 10 * seconds + 60
    command = [sys.executable, clients.BENCH / "torch_client.py", "resnet", seconds, ROUNDS]
    figures = {}
    with contextlib.ExitStack() as stack:
        groups = {prefix: [stack.enter_context(Client(mode, [*words, *command]))
                           for _ in range(TOGETHER)]
                  for prefix, words in (("", []), ("low_", BELOW_NORMAL))}
        for client in [client for group in groups.values() for client in group]:
            client.await_ready(READY_TIMEOUT)
        figures["alone_us"] = run_small(bench, mode, [], seconds, timeout)[0]["p50_us"]
        for prefix, group in groups.items():
            alone = train(group, timeout)
            small, beside = run_small(bench, mode, group, seconds, timeout)
            figures.update({f"{prefix}p50_us": small["p50_us"], f"{prefix}p99_us": small["p99_us"],
                            f"{prefix}kept": beside / alone, f"{prefix}rate": alone})
    return figures
