#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Profiles a program of Triton with its profiler, proton, natively and through Funnel.

    tests/programs/profile_proton.py --build build

The program has scopes, a kernel of Triton, kernels of PyTorch, and launches of a CUDA graph. Compares
under which scope each kernel was, how often, and the durations of what takes more than 20 us. Exit
status 77 without Triton.
"""
import argparse
import importlib.util
import json
import pathlib
import sys
import tempfile

from profile_torch import (SKIPPED, natively, print_differences, print_durations, profile,
                           through_funnel)

ROUNDS = 20


def run_steps(path):
    import torch
    import triton.profiler as proton
    import triton_step

    torch.manual_seed(1)
    x = torch.randn(1 << 22, device="cuda")
    a = torch.randn(1024, 1024, device="cuda")
    triton_step.double(x)
    torch.mm(a, a)
    proton.start(path)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        triton_step.double(x)
        x.add_(1)
    for _ in range(ROUNDS):
        with proton.scope("step"):
            triton_step.double(x)
            torch.mm(a, a)
        with proton.scope("replay"):
            graph.replay()
    torch.cuda.synchronize()
    proton.finalize()


def add_scopes(node, path, counts, times):
    frame = node["frame"]["name"]
    path = [*path, frame]
    metrics = node["metrics"]
    if "count" in metrics and metrics.get("time (ns)"):
        name = "/".join(path[1:])
        counts[name] = counts.get(name, 0) + metrics["count"]
        times[name] = metrics["time (ns)"] / metrics["count"] / 1000
    for child in node["children"]:
        add_scopes(child, path, counts, times)


def read_profile(path):
    """Counts and mean durations by scope and kernel."""
    counts, times = {}, {}
    roots = json.loads(pathlib.Path(path + ".hatchet").read_text())
    add_scopes(roots[0], [], counts, times)
    return counts, times


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        return run_steps(options.child)
    if not importlib.util.find_spec("triton"):
        print("Triton is not installed")
        return SKIPPED
    funnel = str(pathlib.Path(options.build).resolve() / "bin/funnel")
    with tempfile.TemporaryDirectory(prefix="funnel-profile-") as folder:
        native = read_profile(profile(natively(funnel), __file__, folder, "native"))
        shared = read_profile(profile(through_funnel(funnel), __file__, folder, "funnel"))
    differs = print_differences("count", native[0], shared[0])
    print_durations(native[1], shared[1])
    print("they differ" if differs else f"the same scopes and kernels: {sum(native[0].values())}")
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
