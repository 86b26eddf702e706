#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Profiles a program of JAX natively and through Funnel, and compares what JAX's profiler saw.

    tests/programs/profile_jax.py --build build

Compares the names and counts of what ran in streams, and copies with the kinds of their memory.
Also the durations of what takes more than 20 us. Exit status 77 without JAX.
"""
import argparse
import collections
import gzip
import importlib.util
import json
import os
import pathlib
import sys
import tempfile

from profile_torch import (SKIPPED, natively, print_differences, print_durations, profile,
                           through_funnel)

ROUNDS = 20


def run_steps(path):
    """The child: a product and a gradient, profiled into a trace."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    # Which of several kernels is fastest differs from run to run.
    os.environ.setdefault("XLA_FLAGS", "--xla_gpu_autotune_level=0")
    import jax
    import numpy

    value = jax.jit(lambda w, a: jax.numpy.tanh(a @ w).sum())
    gradient = jax.jit(jax.grad(lambda w, a: (jax.numpy.sin(a @ w) ** 2).mean()))
    a, w = numpy.ones((512, 1024), "f4"), jax.numpy.ones((1024, 1024))

    def step():
        value(w, a).block_until_ready()
        numpy.asarray(gradient(w, a))

    step()
    jax.profiler.start_trace(path)
    for _ in range(ROUNDS):
        step()
    jax.profiler.stop_trace()


def names_of(events, kind):
    return {(e["pid"], e.get("tid") if kind == "thread_name" else None): e["args"]["name"]
            for e in events if e.get("name") == kind}


def is_stream(event, processes, threads):
    return ("GPU" in processes.get((event["pid"], None), "")
            and "Stream" in threads.get((event["pid"], event.get("tid")), ""))


def name_of(event):
    """JAX calls every copy by its direction, and says of what memory in its details."""
    details = event.get("args", {}).get("memcpy_details", "")
    words = dict(word.split(":", 1) for word in details.split() if ":" in word)
    kinds = [words[key] for key in ("kind_src", "kind_dst") if key in words]
    return " ".join([event["name"], *kinds])


def read_trace(folder):
    """The counts and the medians of durations by name."""
    path, = pathlib.Path(folder).rglob("*.trace.json.gz")
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    processes, threads = names_of(events, "process_name"), names_of(events, "thread_name")
    times = collections.defaultdict(list)
    for event in events:
        if event.get("ph") == "X" and is_stream(event, processes, threads):
            times[name_of(event)].append(event["dur"])
    return ({name: len(all) for name, all in times.items()},
            {name: sorted(all)[len(all) // 2] for name, all in times.items()})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        return run_steps(options.child)
    if not importlib.util.find_spec("jax"):
        print("JAX is not installed")
        return SKIPPED
    funnel = str(pathlib.Path(options.build).resolve() / "bin/funnel")
    with tempfile.TemporaryDirectory(prefix="funnel-profile-") as folder:
        native = read_trace(profile(natively(funnel), __file__, folder, "native"))
        shared = read_trace(profile(through_funnel(funnel), __file__, folder, "funnel"))
    if not native[0]:
        print("the native trace has nothing of a stream")
        return SKIPPED
    differs = print_differences("count", native[0], shared[0])
    print_durations(native[1], shared[1])
    print("they differ" if differs else "the same kernels and copies")
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
