#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the programs on the runtime API with each CUDA toolkit that is there. It runs them
directly on a device and through Funnel, and prints one table.

    tests/api/runtimes.py [--device cuda] [--toolkit FOLDER]... [--only NAME] [--table FILE]

Toolkits are /usr/local/cuda* and the folders that are named; a folder has bin/nvcc and lib64. Each
program is built with static and with shared cudart. One that a toolkit's nvcc cannot compile counts
as too new for it. Programs of runtime_11 need a toolkit before CUDA 12.
"""
import argparse
import collections
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import run
import runtime_build

OLD_SOURCES = runtime_build.SOURCES.parent / "runtime_11"
COLUMNS = ["passed", "failed", "skipped", "too new"]


@dataclasses.dataclass(frozen=True)
class Toolkit:
    version: str
    nvcc: str


def read_toolkit(folder):
    nvcc = os.path.realpath(pathlib.Path(folder) / "bin/nvcc")
    done = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"release (\d+\.\d+)", done.stdout)
    return Toolkit(found[1], nvcc) if found else None


def find_toolkits(named):
    folders = [*named, *sorted(map(str, pathlib.Path("/usr/local").glob("cuda*")))]
    found = {}
    for folder in folders:
        toolkit = read_toolkit(folder) if os.path.exists(f"{folder}/bin/nvcc") else None
        if toolkit:
            found.setdefault(toolkit.version, toolkit)
        elif folder in named:
            sys.exit(f"{folder} has no toolkit: {folder}/bin/nvcc does not tell its release")
    return [found[version] for version in sorted(found, key=lambda v: tuple(map(int, v.split("."))))]


def sources_of(toolkit):
    old = sorted(OLD_SOURCES.glob("*.cu")) if int(toolkit.version.split(".")[0]) < 12 else []
    return [*sorted(runtime_build.SOURCES.glob("*.cu")), *old]


def build_all(toolkit, folder, only):
    """Each program with one cudart: (which cudart, run.Program). Its reason is nvcc's."""
    folder.mkdir(parents=True, exist_ok=True)
    runtime_build.keep_shared_cudart(toolkit.nvcc, folder)
    wanted = []
    for source in sources_of(toolkit):
        if only not in f"{toolkit.version}/{source.stem}" or source.stem in run.RUNTIME_FAULTS:
            continue
        program = runtime_build.RuntimeProgram(source.stem, folder, source.parent)
        wanted += [(program, variant) for variant in runtime_build.variants_of(source.stem)
                   if variant.name in ("static", "shared")]
    for (program, variant), reason in runtime_build.build(toolkit.nvcc, folder, wanted).items():
        name = f"{toolkit.version}/{program.name} {variant.cudart}"
        yield variant.cudart, run.Program(name, [program.path(variant)], reason=reason)


def check_all(runner, toolkit, options):
    """Verdicts of the toolkit's programs, by cudart."""
    counts = {"static": collections.Counter(), "shared": collections.Counter()}
    folder = options.build / "tests/api/runtimes" / toolkit.version
    for cudart, program in build_all(toolkit, folder, options.only):
        if program.reason:
            run.report(program.name, "too new", program.reason.splitlines()[1], 0)
            counts[cudart]["too new"] += 1
            continue
        counts[cudart][run.check_and_report(program.name, lambda p=program: runner.check(p))] += 1
    return counts


def table_of(rows):
    lines = [f"| toolkit | cudart | {' | '.join(COLUMNS)} |", "|---" * (2 + len(COLUMNS)) + "|"]
    for version, counts in rows:
        for cudart, verdicts in counts.items():
            cells = " | ".join(str(verdicts[column]) for column in COLUMNS)
            lines.append(f"| {version} | {cudart} | {cells} |")
    return "\n".join(lines)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=run.HERE.parent.parent / "build")
    parser.add_argument("--device", choices=["soft", "cuda"], default="soft")
    parser.add_argument("--toolkit", action="append", default=[], help="a folder with bin/nvcc")
    parser.add_argument("--timeout", type=int, default=300, help="seconds for each run")
    parser.add_argument("--only", default="", help="only programs whose name contains this")
    parser.add_argument("--table", type=pathlib.Path, help="write the table there as well")
    options = parser.parse_args()
    options.build, options.clients = options.build.resolve(), [1]
    return options


def main():
    options = parse_arguments()
    toolkits = find_toolkits(options.toolkit)
    if not toolkits:
        print("There is no CUDA toolkit: name one with --toolkit")
        return run.SKIPPED
    # For host compilers that are newer than the toolkit.
    os.environ["NVCC_APPEND_FLAGS"] = "-allow-unsupported-compiler"
    with tempfile.TemporaryDirectory(prefix="funnel-runtimes-") as folder:
        runner = run.Runner(options, folder)
        try:
            rows = [(toolkit.version, check_all(runner, toolkit, options)) for toolkit in toolkits]
        finally:
            runner.stop()
    table = table_of(rows)
    print(table)
    if options.table:
        options.table.write_text(table + "\n")
    return 1 if any(counts["failed"] for _, by in rows for counts in by.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
