#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs programs of PyTorch, JAX, CuPy and others natively and through Funnel, and compares.

    tests/programs/frameworks.py --clients 1,4 --shares 10,25 --table table.md

Each program in frameworks/ compares what the GPU has computed with the CPU's results. It runs
natively, then through Funnel, as often at once as --clients says, and as --mixed says beside the
others. It has the whole GPU, and each
share of its multiprocessors that --shares names. One whose packages are not installed is waived,
and so are those for more GPUs than there are. The exit status is 0 when each program that passes
natively also passes through Funnel.
"""
import argparse
import dataclasses
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile

import runner

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = ["pytorch", "gpt2", "resnet", "jax_programs", "cupy_arrays", "triton_kernels"]


@dataclasses.dataclass
class Program:
    name: str
    command: list
    runs: dict = dataclasses.field(default_factory=dict)  # title of a way to run it -> Result


class FrameworkWay(runner.Way):
    def run_once(self, program):
        with tempfile.TemporaryDirectory(prefix="funnel-framework-") as folder:
            return runner.run_command([*self.words, *program.command], folder, self.environment,
                                      self.timeout(program))


def gpu_count():
    if not shutil.which("nvidia-smi"):
        return 0
    done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60)
    return sum(line.startswith("GPU ") for line in done.stdout.splitlines())


def distributed(ranks):
    return [options.python, "-m", "torch.distributed.run", "--standalone",
            f"--nproc-per-node={ranks}", str(HERE / "frameworks/collectives.py")]


def build_mpi(scratch):
    """The program whose ranks pass on what their kernels wrote, or None where MPI is not there."""
    program = pathlib.Path(scratch) / "mpi_exchange"
    if not shutil.which("mpicc") or not shutil.which("mpirun"):
        return None
    done = subprocess.run(["mpicc", HERE.parent / "fleet/mpi_exchange.c", "-O1", "-o", program,
                           "-ldl"], stderr=subprocess.DEVNULL, timeout=60)
    return program if done.returncode == 0 else None


def list_programs(scratch):
    for name in PROGRAMS:
        yield Program(name, [options.python, str(HERE / f"frameworks/{name}.py")])
    mpi = build_mpi(scratch)
    if mpi:
        yield Program("4 MPI ranks", ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "4",
                                      str(mpi)])
    if importlib.util.find_spec("torch"):
        for ranks in (2, 4):
            if ranks <= gpu_count():
                yield Program(f"collectives of {ranks} GPUs", distributed(ranks))
        if gpu_count() >= 2:
            yield Program("collectives of 2 GPUs by host memory",
                          ["env", "NCCL_P2P_DISABLE=1", *distributed(2)])


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="the Python with the packages")
    parser.add_argument("--only", default="", help="only programs with this in their name")
    runner.add_way_options(parser, device="cuda")
    runner.add_table_options(parser)
    runner.add_mixed_option(parser)
    return runner.parse_way_options(parser)


def main():
    with tempfile.TemporaryDirectory(prefix="funnel-programs-") as scratch:
        programs = [program for program in list_programs(scratch) if options.only in program.name]
        titles = runner.run_ways(options, scratch, FrameworkWay,
                                 lambda ways: runner.run_each(programs, ways))
    return 0 if runner.report_runs(programs, titles, options) and programs else 1


if __name__ == "__main__":
    options = parse_arguments()
    sys.exit(main())
