#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Profiles a program of PyTorch natively and through Funnel, and compares what torch.profiler saw.

    tests/programs/profile_torch.py --build build [--beside N]

Compares the names and counts of kernels, copies and memsets, under which operator each kernel was
launched, and the durations of kernels that take more than 20 us. --beside runs N other programs
through Funnel meanwhile; none of their kernels may be in the profile. Exit status 77 without PyTorch
or a GPU.
"""
import argparse
import collections
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
ROUNDS = 20
LONG_US = 20


def run_model(path, seconds):
    """The child: a training step, profiled into a Chrome trace, or without an end."""
    import time

    import torch

    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(),
                                torch.nn.Linear(4096, 1024)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    given = torch.randn(512, 1024)

    def step():
        loss = model(given.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    step()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        step()
    if not path:
        return
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=kinds) as profile:
        for _ in range(ROUNDS):
            step()
    profile.export_chrome_trace(path)


def read_trace(path):
    events = json.loads(pathlib.Path(path).read_text())["traceEvents"]
    work = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    counts = collections.Counter((e["cat"], e["name"]) for e in work)
    times = collections.defaultdict(list)
    for event in work:
        times[event["name"]].append(event["dur"])
    operators = {e["args"]["External id"]: e["name"] for e in events
                 if e.get("cat") == "cpu_op" and "External id" in e.get("args", {})}
    under = collections.Counter((operators.get(e["args"].get("External id"), "no operator"),
                                 e["name"]) for e in work if e["cat"] == "kernel")
    return counts, under, {name: sorted(all)[len(all) // 2] for name, all in times.items()}


def profile(words, script, folder, name):
    """The path of the trace."""
    path = str(pathlib.Path(folder) / name)
    done = subprocess.run([*words, sys.executable, script, "--child", path], timeout=600,
                          check=False)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: the program ended with {done.returncode}")
    return path


def natively(funnel):
    return [funnel, "run", "-q", "--direct", "--device", "cuda", "--"]


def through_funnel(funnel):
    return [funnel, "run", "-q", "--profile", "--"]


def print_differences(title, native, funnel):
    for key in sorted(set(native) | set(funnel), key=str):
        if native.get(key, 0) != funnel.get(key, 0):
            print(f"{title}: {key}: {native.get(key, 0)} natively, {funnel.get(key, 0)} through Funnel")
    return native != funnel


def print_durations(native, funnel):
    for name, took in sorted(native.items(), key=lambda item: -item[1]):
        if took >= LONG_US and name in funnel:
            print(f"{took:9.1f} us natively, {funnel[name]:9.1f} us through Funnel: {name[:80]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--beside", type=int, default=0)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        return run_model(options.child, options.seconds)
    if not importlib.util.find_spec("torch"):
        print("PyTorch is not installed")
        return SKIPPED
    funnel = str(pathlib.Path(options.build).resolve() / "bin/funnel")
    with tempfile.TemporaryDirectory(prefix="funnel-profile-") as folder:
        native = read_trace(profile(natively(funnel), __file__, folder, "native"))
        others = [subprocess.Popen([funnel, "run", "-q", "--", sys.executable, __file__, "--child", "",
                                    "--seconds", "600"]) for _ in range(options.beside)]
        try:
            shared = read_trace(profile(through_funnel(funnel), __file__, folder, "funnel"))
        finally:
            for other in others:
                other.kill()
                other.wait()
    differs = print_differences("count", native[0], shared[0])
    differs |= print_differences("operator", native[1], shared[1])
    print_durations(native[2], shared[2])
    print("they differ" if differs else "the same kernels, copies and operators")
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
