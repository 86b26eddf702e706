#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs programs of HeCBench, taken at random, natively and through Funnel, and compares.

    tests/programs/hecbench.py --source /tmp/HeCBench --seed 7 --count 40 --device cuda --clients 1,6

The user fetches HeCBench and builds its programs as its README says. The same seed takes the same
programs of a checkout. Each runs with the arguments that its `make run` has. It runs alone on the
GPU, or on the software GPU, and then through Funnel, as often at once as --clients says, and
as --mixed says beside others. A program passes when it ends as it did alone, with the same verdicts
of its own (PASS, FAIL, errors, mismatches). The exit status is 0 when all agree.
"""
import argparse
import dataclasses
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile

import runner

VERDICT = re.compile(r"\b(pass(?:ed)?|fail(?:ed|ure)?|success(?:ful)?|(?:in)?correct|mismatch\w*|errors?)\b",
                     re.I)


@dataclasses.dataclass
class Program:
    name: str
    folder: pathlib.Path
    command: list = dataclasses.field(default_factory=list)
    verdicts: list = None  # of its first run
    runs: dict = dataclasses.field(default_factory=dict)  # title of a way to run it -> Result


class HecbenchWay(runner.Way):
    """The first run is the measure of the verdicts."""

    def run_once(self, program):
        result = runner.run_command([*self.words, *program.command], program.folder,
                                    self.environment, self.timeout(program))
        verdicts = [word.lower() for word in VERDICT.findall(result.output)]
        if result.verdict != "passed":
            return result
        if program.verdicts is None:
            program.verdicts = verdicts
        elif verdicts != program.verdicts:
            result.verdict = "failed"
            result.remark = f"verdicts {verdicts[:4]}, not {program.verdicts[:4]}"
        return result


def command_of(program):
    """What `make run` would run, without the compiler; -n makes nothing."""
    done = subprocess.run(["make", "-C", program.folder, "-n", "run"], capture_output=True, text=True,
                          timeout=60, check=False)
    lines = [line.strip() for line in done.stdout.splitlines()]
    commands = [line for line in lines if line.startswith("./")]
    return shlex.split(re.split(r"[;&|<>]", commands[0])[0]) if commands else []


def is_built(program):
    program.command = command_of(program)
    remark = "" if program.command else "its Makefile has no run of ./"
    if program.command and not (program.folder / program.command[0]).is_file():
        remark = f"{program.folder / program.command[0]} does not exist"
    if remark:
        program.runs["build"] = runner.Result("not built", 0, remark)
        print(f"not built  {program.name}: {remark}", flush=True)
    return not remark


def choose():
    names = sorted(path.name for path in (options.source / "src").glob("*-cuda"))
    if not names:
        sys.exit(f"{options.source}/src has no programs; --source names a checkout of HeCBench")
    chosen = random.Random(options.seed).sample(names, min(options.count, len(names)))
    return [Program(name, options.source / "src" / name) for name in chosen
            if re.search(options.only, name)]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=pathlib.Path, required=True, help="the checkout of HeCBench")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20, help="programs to take")
    parser.add_argument("--only", default="", help="of those taken, only names with this expression")
    runner.add_way_options(parser, clients="1,6", timeout=12)
    runner.add_table_options(parser)
    runner.add_mixed_option(parser)
    parsed = runner.parse_way_options(parser)
    parsed.source = parsed.source.resolve()
    return parsed


def main():
    programs = choose()
    built = [program for program in programs if is_built(program)]
    with tempfile.TemporaryDirectory(prefix="funnel-programs-") as scratch:
        titles = runner.run_ways(options, scratch, HecbenchWay,
                                 lambda ways: runner.run_each(built, ways))
    return 0 if runner.report_runs(programs, titles, options) and built else 1


if __name__ == "__main__":
    options = parse_arguments()
    sys.exit(main())
