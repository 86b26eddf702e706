#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs public CUDA programs natively, on the software GPU and through Funnel, and compares.

The programs are NVIDIA's cuda-samples, which the user fetches and builds as their README says
(samples.list names those that run):

    tests/programs/run.py --samples cuda-samples --built cuda-samples/build --device cuda

With --device cuda each program runs alone on the GPU first ("native"), with --device soft on the
software GPU without Funnel ("direct"). Then it runs through Funnel, as often at once as --clients
says. The exit status is 0 when each program that passes the first run also passes the others.
"""
import argparse
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import report
import runner

HERE = pathlib.Path(__file__).resolve().parent


class Sample:
    def __init__(self, line):
        self.name, self.folder, needs, *self.arguments = line.split()
        self.needs = [] if needs == "-" else needs.split(",")
        self.runs = {}  # title of a way to run it -> Result


def read_list(path, only, skip):
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            sample = Sample(line)
            if (not only or re.search(only, sample.name)) and not (
                    skip and re.search(skip, sample.name)):
                yield sample


def why_skipped(sample, device):
    """What this machine lacks for the program, or None."""
    if device == "soft" and {"cubin", "library"} & set(sample.needs):
        return "machine code for a real GPU"
    if "mpi" in sample.needs and not shutil.which("mpirun"):
        return "no mpirun"
    return None


def find_built(samples, options):
    """The samples that can run; the others get a result that says why not."""
    for sample in samples:
        program = options.built / "Samples" / sample.folder / sample.name
        reason = why_skipped(sample, options.device)
        if reason:
            sample.runs["build"] = runner.Result("skipped", 0, reason)
        elif not program.is_file():
            sample.runs["build"] = runner.Result("not built", 0, f"{program} does not exist")
    return [sample for sample in samples if "build" not in sample.runs]


def run_all(samples, options, ways):
    """Every way for all programs; those that fault on purpose come last, one at a time."""
    together = [sample for sample in samples if "faults" not in sample.needs]
    alone = [sample for sample in samples if "faults" in sample.needs]
    for way in ways:
        def run_one(sample, way=way):
            late = time.monotonic() > options.deadline
            result = runner.Result("not run", 0, "no time left") if late else way.run(sample)
            sample.runs[way.title] = result
            runner.print_run(way, sample)

        with concurrent.futures.ThreadPoolExecutor(options.jobs if way.parallel else 1) as pool:
            list(pool.map(run_one, together))
        for sample in alone:
            run_one(sample)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=pathlib.Path, required=True,
                        help="the folder that NVIDIA's cuda-samples were fetched to")
    parser.add_argument("--built", type=pathlib.Path,
                        help="the folder that they were built in; build/ in that one by default")
    parser.add_argument("--first-only", action="store_true", help="do not run through Funnel")
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time")
    parser.add_argument("--limit", type=float, default=float("inf"),
                        help="seconds after which no further run starts")
    parser.add_argument("--only", help="only programs whose name matches this expression")
    parser.add_argument("--skip", help="no programs whose name matches this expression")
    parser.add_argument("--tsv", type=pathlib.Path, help="file for the results, tab-separated")
    runner.add_way_options(parser, clients="1", timeout=60)
    runner.add_table_options(parser)
    options = runner.parse_way_options(parser)
    options.built = (options.built or options.samples / "build").resolve()
    return options


def main():
    options = parse_arguments()
    samples = list(read_list(HERE / "samples.list", options.only, options.skip))
    if not (options.build / "bin/funnel").exists():
        print(f"{options.build}/bin/funnel is missing: build first", file=sys.stderr)
        return 1
    built = find_built(samples, options)
    if not built:
        print(f"{options.built} has none of the samples: build them as their README says",
              file=sys.stderr)
        return 1
    options.deadline = time.monotonic() + options.limit
    with tempfile.TemporaryDirectory(prefix="funnel-programs-") as scratch:
        titles = runner.run_ways(options, scratch, runner.Way,
                                 lambda ways: run_all(built, options, ways))
    if options.tsv:
        options.tsv.write_text(report.tsv(samples, titles))
    return 0 if runner.report_runs(samples, titles, options) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.SubprocessError as error:
        sys.exit(f"a helper program failed: {error}")
