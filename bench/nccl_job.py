# SPDX-License-Identifier: Apache-2.0
"""One data-parallel training of a small network on two GPUs: nccl_job.py SECONDS. Its gradients are
summed by NCCL, whose kernels may print and wait for those of the other rank. Prints "ready", waits
for a line, and prints the steps a second as JSON."""
import json
import os
import socket
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

RANKS = 2
STEPS = 50  # between two looks at the clock


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def open_group(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.cuda.set_device(rank)
    torch.manual_seed(0)
    dist.init_process_group("nccl", rank=rank, world_size=RANKS)


def sum_is_right(rank):
    x = torch.full((1 << 20,), float(rank + 1), device="cuda")
    dist.all_reduce(x)
    return bool((x == RANKS * (RANKS + 1) / 2).all())


def make_step(rank):
    layers = [torch.nn.Linear(512, 512) for _ in range(8)]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers).cuda(),
                                                      device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.ones(64, 512, device="cuda")

    def step():
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
    return step


def goes_on(start, seconds):
    """As rank 0 says, so that all ranks end with the same step."""
    flag = torch.tensor([float(time.monotonic() - start < seconds)], device="cuda")
    dist.broadcast(flag, 0)
    return flag.item() > 0


def work(rank, port, ready, go, seconds, reports):
    open_group(rank, port)
    step = make_step(rank)
    for _ in range(20):
        step()
    torch.cuda.synchronize()
    ready.wait()
    go.wait()
    start, steps = time.monotonic(), 0
    while goes_on(start, seconds):
        for _ in range(STEPS):
            step()
        steps += STEPS
    rate = steps / (time.monotonic() - start)
    reports.put({"rate": rate, "correct": sum_is_right(rank)})
    dist.destroy_process_group()


def main():
    context, port = mp.get_context("spawn"), free_port()
    ready, go, reports = context.Barrier(RANKS + 1), context.Event(), context.Queue()
    ranks = [context.Process(target=work, daemon=True,
                             args=(rank, port, ready, go, float(sys.argv[1]), reports))
             for rank in range(RANKS)]
    for rank in ranks:
        rank.start()
    ready.wait(120)
    print("ready", flush=True)
    sys.stdin.readline()
    go.set()
    found = [reports.get() for _ in ranks]
    for rank in ranks:
        rank.join()
    print(json.dumps({"rate": min(report["rate"] for report in found),
                      "correct": all(report["correct"] for report in found)}), flush=True)


if __name__ == "__main__":
    main()
