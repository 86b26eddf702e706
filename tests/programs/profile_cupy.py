#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Profiles a program of CuPy with CUPTI natively and through Funnel: kernels, copies, and NVTX ranges.

    tests/programs/profile_cupy.py --build build

The profiler is observe.c, preloaded. Compares names and counts, and the durations of what takes more
than 20 us. Exit status 77 without CuPy or CUPTI's headers.
"""
import argparse
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

from profile_torch import SKIPPED, natively, print_differences, print_durations, through_funnel

CUDA = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
ROUNDS = 20


def run_steps(path):
    """The child, whose calls are recorded since it began."""
    import ctypes

    import cupy
    from cupy.cuda import nvtx

    triple = cupy.RawKernel("""
extern "C" __global__ void triple(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        x[i] *= 3;
}
""", "triple")
    a = cupy.random.default_rng(1).random((1024, 1024), dtype="f4")
    for _ in range(ROUNDS):
        nvtx.RangePush("step")
        b = cupy.sort(a @ a, axis=1)
        triple((4096,), (256,), (b, cupy.int32(b.size)))
        nvtx.RangePush("sum")
        b.sum().get()
        nvtx.RangePop()
        cupy.asarray(cupy.asnumpy(b))
        nvtx.RangePop()
    cupy.cuda.Device().synchronize()
    ctypes.CDLL(os.environ["OBSERVE"]).observe_report(str(path).encode())


def compile_observer(folder):
    library = folder / "observe.so"
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{CUDA}/include", "-o", library,
                    pathlib.Path(__file__).parent / "observe.c", f"-L{CUDA}/lib64", f"-Wl,-rpath,{CUDA}/lib64",
                    "-lcupti", "-lpthread"], check=True)
    return library


def observe(words, folder, name, **environment):
    """Counts and medians by name."""
    library, path = folder / "observe.so", folder / name
    # What `funnel run` preloads comes first, so the shell puts both together.
    script = 'LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD:}$OBSERVE" exec "$@"'
    program = ["sh", "-c", script, "sh", sys.executable, __file__, "--child", path]
    subprocess.run([*words, *program], check=True, timeout=600,
                   env={**os.environ, **environment, "OBSERVE": str(library)})
    rows = [line.split(" ", 2) for line in path.read_text().splitlines()]
    return ({name: int(count) for count, _, name in rows}, {name: float(us) for _, us, name in rows})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        return run_steps(options.child)
    if not importlib.util.find_spec("cupy") or not (CUDA / "include/cupti.h").exists():
        print("CuPy or CUPTI's headers are not installed")
        return SKIPPED
    funnel = str(pathlib.Path(options.build).resolve() / "bin/funnel")
    with tempfile.TemporaryDirectory(prefix="funnel-profile-") as name:
        folder = pathlib.Path(name)
        compile_observer(folder)
        native = observe(natively(funnel), folder, "native",
                         NVTX_INJECTION64_PATH=str(CUDA / "lib64/libcupti.so"))
        shared = observe(through_funnel(funnel), folder, "funnel")
    differs = print_differences("count", native[0], shared[0])
    print_durations(native[1], shared[1])
    print("they differ" if differs else f"the same kernels, copies and ranges: {sum(native[0].values())}")
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
