# SPDX-License-Identifier: Apache-2.0
"""A stock PyTorch program that speaks the protocol of client.cu.

    torch_client.py matmul|train|lenet|resnet SECONDS [ROUNDS]
    torch_client.py profiled_train SECONDS [ROUNDS]

Each round begins with a line from standard input and ends with a report of it. A profiled round is
measured under torch.profiler, after one without.
"""
import json
import sys
import time

import torch

from torch_models import resnet50


def matmul_step():
    """C = A B, of which one row is checked in the end."""
    a = torch.randn(2048, 2048, device="cuda")
    b = torch.randn(2048, 2048, device="cuda")
    c = torch.empty_like(a)

    def step():
        torch.mm(a, b, out=c)
        torch.cuda.synchronize()

    def correct():
        return bool(torch.allclose(c[0].cpu(), a[0].cpu() @ b.cpu(), rtol=1e-2, atol=1e-1))

    return step, correct


def train_step():
    """Three linear layers that learn one batch: the loss must fall."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(),
                                torch.nn.Linear(512, 512),
                                torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    x, y = torch.randn(512, 256, device="cuda"), torch.randint(0, 10, (512,), device="cuda")
    losses = []

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    return step, lambda: losses[-1] < losses[0]


def lenet_step():
    """LeNet on batches of 64 pictures of CIFAR-10's shape: the loss of one batch must fall."""
    torch.manual_seed(1)
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5),
                          nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(),
                          nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    x, y = torch.randn(64, 3, 32, 32, device="cuda"), torch.randint(0, 10, (64,), device="cuda")
    losses = []

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    return step, lambda: losses[-1] < losses[0]


def resnet_step():
    """ResNet-50 on batches of 32 pictures in bf16. The loss of each step is looked at one step later,
    so that the GPU always has work; that of one batch must fall."""
    torch.manual_seed(1)
    model = resnet50(10).cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    x = torch.randn(32, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    y = torch.randint(0, 10, (32,), device="cuda")
    losses, last = [], []

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        last.append(loss.detach())
        if len(last) > 1:
            losses.append(last.pop(0).item())

    return step, lambda: losses[-1] < losses[0]


def measure(step, seconds):
    latencies, start = [], time.perf_counter()
    while (begin := time.perf_counter()) - start < seconds:
        step()
        latencies.append(time.perf_counter() - begin)
    total = time.perf_counter() - start
    latencies.sort()
    return {"rate": len(latencies) / total, "p50_us": latencies[len(latencies) // 2] * 1e6,
            "p99_us": latencies[int(len(latencies) * 0.99)] * 1e6}


def measure_profiled(step, seconds):
    """`kept` is the share of the rate without the profiler."""
    plain = measure(step, seconds)
    with torch.profiler.profile():
        step()  # the profiler's own start
        profiled = measure(step, seconds)
    return {**profiled, "kept": profiled["rate"] / plain["rate"]}


def main():
    name = sys.argv[1].removeprefix("profiled_")
    way = measure if name == sys.argv[1] else measure_profiled
    step, correct = {"matmul": matmul_step, "train": train_step, "lenet": lenet_step,
                     "resnet": resnet_step}[name]()
    for _ in range(20):
        step()
    print("ready", flush=True)
    for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 1):
        sys.stdin.readline()
        report = way(step, float(sys.argv[2]))
        print(json.dumps({**report, "correct": correct()}), flush=True)


main()
