#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs mumax3, as Debian has it, natively and through Funnel, and compares what comes out of small films.

    apt-get install mumax3                         # of contrib; it needs CUDA 11.8 of non-free
    tests/programs/mumax.py --clients 1,4

--program names it where it is not installed, and --libraries the folders of what it needs. All runs have to
print the same numbers. The exit status is 0 when they do.
"""
import argparse
import pathlib
import re
import sys
import tempfile

import runner

HERE = pathlib.Path(__file__).resolve().parent


class MumaxWay(runner.SayingWay):
    said = re.compile(r"^//\w+ \[.*\]", re.M)

    def run_once(self, program):
        old = self.environment.get("LD_LIBRARY_PATH", "")
        with tempfile.TemporaryDirectory(prefix="funnel-mumax-") as folder:
            environment = dict(self.environment,
                               LD_LIBRARY_PATH=":".join(filter(None, [old, options.libraries])))
            command = [*self.words, options.program, "-http", "", "-cache", folder, "-o", folder + "/out",
                       *program.command]
            result = runner.run_command(command, folder, environment, self.timeout(program))
        return self.compare(program, result)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="mumax3")
    parser.add_argument("--libraries", default="", help="folders of libraries, with colons")
    runner.add_way_options(parser)
    return runner.parse_way_options(parser)


def main():
    programs = [runner.SayingProgram(path.stem, [str(path)])
                for path in sorted((HERE / "mumax").glob("*.mx3"))]
    with tempfile.TemporaryDirectory(prefix="funnel-programs-") as scratch:
        return runner.compare_ways(programs, options, scratch, MumaxWay)


if __name__ == "__main__":
    options = parse_arguments()
    sys.exit(main())
