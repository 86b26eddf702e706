#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Profiles a program of PyTorch natively and through Funnel, and compares what torch.profiler saw.

    tests/programs/profile_torch.py --build build [--beside N] [--stack] [--workers N] [--keep FOLDER]

Compares the names and counts of kernels, copies and memsets, and under which operator each kernel
was launched. Also the durations of kernels that take more than 20 us. --beside runs N other
programs through Funnel meanwhile; none of their kernels may be in the profile. --stack has the
profiler record the Python calls, and --keep keeps both Chrome traces. With --workers a DataLoader
with so many forked workers brings the batches. Exit status 77 without PyTorch or a GPU.
"""
import argparse
import collections
import gzip
import importlib.util
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
ROUNDS = 20
LONG_US = 20


def batches_of(workers):
    """The same batch again and again; with workers, as a DataLoader brings it."""
    import torch

    given = torch.randn(512, 1024)
    if not workers:
        while True:
            yield given
    data = torch.utils.data.TensorDataset(given.repeat(ROUNDS + 2, 1))
    for batch, in torch.utils.data.DataLoader(data, batch_size=512, num_workers=workers,
                                              multiprocessing_context="fork"):
        yield batch


def run_model(options):
    """The child: training steps, profiled into a Chrome trace, or without an end."""
    import time

    import torch

    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(),
                                torch.nn.Linear(4096, 1024)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step(given):
        loss = model(given.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    endless = batches_of(0)
    step(next(endless))
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        step(next(endless))
    if not options.child:
        return
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=kinds, with_stack=options.stack) as profile:
        batches = batches_of(options.workers)  # its workers begin while the program is profiled
        for _ in range(ROUNDS):
            step(next(batches))
    profile.export_chrome_trace(options.child)


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
    if any(event.get("cat") == "python_function" for event in events):
        print(f"{sum(e.get('cat') == 'python_function' for e in events)} calls of Python")
    return counts, under, {name: sorted(all)[len(all) // 2] for name, all in times.items()}


def profile(words, script, folder, name, options=()):
    """The path of the trace."""
    path = str(pathlib.Path(folder) / name)
    done = subprocess.run([*words, sys.executable, script, "--child", path, *options], timeout=600,
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


def keep(path, folder):
    """Packed, for these files are large."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(path, "rb") as trace, gzip.open(folder / f"{pathlib.Path(path).name}.json.gz", "wb") as kept:
        shutil.copyfileobj(trace, kept)


def print_durations(native, funnel):
    for name, took in sorted(native.items(), key=lambda item: -item[1]):
        if took >= LONG_US and name in funnel:
            print(f"{took:9.1f} us natively, {funnel[name]:9.1f} us through Funnel: {name[:80]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--beside", type=int, default=0)
    parser.add_argument("--stack", action="store_true")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        return run_model(options)
    if not importlib.util.find_spec("torch"):
        print("PyTorch is not installed")
        return SKIPPED
    funnel = str(pathlib.Path(options.build).resolve() / "bin/funnel")
    more = ["--stack"] * options.stack + ["--workers", str(options.workers)]
    with tempfile.TemporaryDirectory(prefix="funnel-profile-") as folder:
        paths = [profile(natively(funnel), __file__, folder, "native", more)]
        others = [subprocess.Popen([funnel, "run", "-q", "--", sys.executable, __file__, "--child", "",
                                    "--seconds", "600"]) for _ in range(options.beside)]
        try:
            paths.append(profile(through_funnel(funnel), __file__, folder, "funnel", more))
        finally:
            for other in others:
                other.kill()
                other.wait()
        native, shared = map(read_trace, paths)
        for path in paths if options.keep else ():
            keep(path, options.keep)
    differs = print_differences("count", native[0], shared[0])
    differs |= print_differences("operator", native[1], shared[1])
    print_durations(native[2], shared[2])
    print("they differ" if differs else "the same kernels, copies and operators")
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
