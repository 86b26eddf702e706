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

import report
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
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build",
                        help="Funnel's build folder")
    parser.add_argument("--device", choices=["soft", "cuda"], default="soft")
    parser.add_argument("--clients", default="1,4", help="copies at once through Funnel")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for each run")
    parsed = parser.parse_args()
    parsed.clients = [int(number) for number in parsed.clients.split(",")]
    parsed.build = parsed.build.resolve()
    parsed.first_only, parsed.shares = False, []
    return parsed


def main():
    programs = [runner.SayingProgram(path.stem, [str(path)])
                for path in sorted((HERE / "mumax").glob("*.mx3"))]
    with tempfile.TemporaryDirectory(prefix="funnel-programs-") as scratch:
        ways = list(runner.ways(options, pathlib.Path(scratch), MumaxWay))
        try:
            for program in programs:
                for way in ways:
                    program.runs[way.title] = way.run(program)
        finally:
            runner.stop_daemon(options, scratch)
    titles = [way.title for way in ways]
    print(report.table(programs, titles))
    for program in programs:
        print(program.said)
    passed = all(result.verdict == "passed" for program in programs for result in program.runs.values())
    return 0 if passed and all(program.said for program in programs) else 1


if __name__ == "__main__":
    options = parse_arguments()
    sys.exit(main())
