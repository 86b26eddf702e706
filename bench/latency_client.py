# SPDX-License-Identifier: Apache-2.0
"""The programs of latency.py, which are stock PyTorch programs.

    latency_client.py resnet|bert|bert_graph|gpt2|tiny
    latency_client.py products|resnet_training|bert_training|flood|endless

Each line of standard input is an order, and each report a line of JSON:

    closed SECONDS         one step after the other: {"rate"}
    open SECONDS RATE      steps that are due at random times, so many a second (Poisson): {"rate",
                           "p50_ms", "p99_ms", "p999_ms"}, from the time when a step is due to its end
"""
import json
import random
import sys
import time

import torch

import torch_models

# One kernel that fills the GPU for as long as it is told, in multiply-adds of each thread.
SPIN = """template <typename T> T spin(T x, int rounds)
{ for (long i = 0; i < rounds * 1000l; i++) x = x * T(0.999) + T(0.001); return x; }"""
ENDLESS = 2_000_000_000


def synchronized(work):
    def step():
        work()
        torch.cuda.synchronize()
    return step


def inference(model, *shape):
    model, x = model.half().cuda().eval(), torch.randn(*shape, device="cuda", dtype=torch.half)
    return lambda: model(x)


def in_graph(work):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def bert_inference():
    return inference(torch_models.bert(), 1, 384, torch_models.WIDTH)


def tiny():
    """Ten small kernels, and the value that comes out."""
    x = torch.zeros(64, device="cuda")

    def step():
        y = x
        for _ in range(10):
            y = y + 1
        y[0].item()
    return step


def training(model, batch, *shape):
    """The loss of each step is looked at one step later, so that the GPU always has work."""
    model, x = model.cuda(), torch.randn(batch, *shape, device="cuda")
    optimizer, last = torch.optim.SGD(model.parameters(), lr=0.001), []

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        last.append(loss.detach())
        if len(last) > 1:
            last.pop(0).item()
    return step


def products():
    """Products of half matrices, each of which is one kernel of some 12 ms."""
    a, b = (torch.randn(16384, 16384, device="cuda", dtype=torch.half) for _ in range(2))
    c = torch.empty_like(a)
    return behind_by_one(lambda: torch.mm(a, b, out=c))


def spinning(rounds):
    spin = torch.cuda.jiterator._create_jit_fn(SPIN, rounds=0)
    threads = 2048 * torch.cuda.get_device_properties(0).multi_processor_count
    x = torch.zeros(threads, device="cuda")
    spin(x, rounds=1)  # compiles it
    return lambda: spin(x, rounds=rounds)


def behind_by_one(work):
    """The GPU always has a next step."""
    events = []

    def step():
        work()
        events.append(torch.cuda.Event(blocking=True))
        events[-1].record()
        if len(events) > 2:
            events.pop(0).synchronize()
    return step


PROGRAMS = {
    "resnet": lambda: synchronized(inference(torch_models.resnet50(1000), 1, 3, 224, 224)),
    "bert": lambda: synchronized(bert_inference()),
    "bert_graph": lambda: synchronized(in_graph(bert_inference())),
    "gpt2": lambda: synchronized(inference(torch_models.gpt2(512), 1, 1, torch_models.WIDTH)),
    "tiny": tiny,
    "products": products,
    "resnet_training": lambda: training(torch_models.resnet50(1000), 64, 3, 224, 224),
    "bert_training": lambda: training(torch_models.bert(), 32, 128, torch_models.WIDTH),
    "flood": lambda: behind_by_one(spinning(5)),
    "endless": lambda: synchronized(spinning(ENDLESS)),
}
TRAININGS = ("resnet_training", "bert_training")


def closed(step, seconds):
    began, steps = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        step()
        steps += 1
    torch.cuda.synchronize()
    return {"rate": steps / (time.perf_counter() - began)}


def due_times(seconds, rate):
    found, due = [], random.expovariate(rate)
    while due < seconds:
        found.append(due)
        due += random.expovariate(rate)
    return found


def await_time(due):
    """Sleeps up to the last millisecond: a sleep may end late."""
    while (left := due - time.perf_counter()) > 0:
        if left > 0.002:
            time.sleep(left - 0.001)


def open_loop(step, seconds, rate):
    latencies, began = [], time.perf_counter()
    for due in due_times(seconds, rate):
        await_time(began + due)
        step()
        latencies.append(1e3 * (time.perf_counter() - began - due))
    total = time.perf_counter() - began
    latencies.sort()
    return {"rate": len(latencies) / total,
            **{f"{name}_ms": latencies[int(part * len(latencies))]
               for name, part in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999))}}


def main():
    random.seed(1)
    name = sys.argv[1]
    torch.set_grad_enabled(name in TRAININGS)
    step = PROGRAMS[name]()
    for _ in range(0 if name == "endless" else 20):
        step()
    torch.cuda.synchronize()
    print("ready", flush=True)
    for line in sys.stdin:
        how, *numbers = line.split()
        report = {"closed": closed, "open": open_loop}[how](step, *map(float, numbers))
        print(json.dumps({**report, "correct": True}), flush=True)


main()
