#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs any command natively and through Funnel, and compares the lines of its output that a pattern finds.

    tests/programs/command.py --said 'GPU \\d+: \\w+$' --device cuda --clients 1,6 -- ./gpu_burn -m 1024 10

The folder that it starts in is the command's. `{copy}` in it is a number that each run has for itself. All
runs have to say the same lines, in any order. The exit status is 0 when they do.
"""
import argparse
import itertools
import pathlib
import re
import sys
import tempfile

import runner


class CommandWay(runner.SayingWay):
    copies = itertools.count(1)

    def run_once(self, program):
        number = str(next(self.copies))
        command = [word.replace("{copy}", number) for word in program.command]
        result = runner.run_command([*self.words, *command], options.folder, self.environment,
                                    self.timeout(program), waived=None)
        result.output = "\n".join(sorted(re.split(r"[\r\n]+", result.output)))
        return self.compare(program, result)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--said", type=lambda text: re.compile(text, re.M), required=True,
                        help="a regular expression of what has to be the same")
    parser.add_argument("--folder", type=pathlib.Path, help="where the command starts")
    parser.add_argument("--name", help="its name in the table")
    runner.add_way_options(parser)
    parser.add_argument("command", nargs="+", help="behind --")
    return runner.parse_way_options(parser)


def main():
    CommandWay.said = options.said
    program = runner.SayingProgram(options.name or pathlib.Path(options.command[0]).name, options.command)
    with tempfile.TemporaryDirectory(prefix="funnel-programs-") as scratch:
        return runner.compare_ways([program], options, scratch, CommandWay)


if __name__ == "__main__":
    options = parse_arguments()
    sys.exit(main())
