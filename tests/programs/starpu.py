#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of StarPU, as Debian has them with CUDA, natively and through Funnel.

    apt-get install starpu-contrib-examples        # of contrib; it needs CUDA 11.8 of non-free
    tests/programs/starpu.py --clients 1,4

--examples names their folder where they are not installed, and --libraries what they need. One worker uses
the GPU, and --cpus of them the CPU. An example that has nothing for such workers waives itself. The exit
status is 0 when all agree with their first run.
"""
import argparse
import dataclasses
import os
import pathlib
import sys
import tempfile

import report
import runner

HERE = pathlib.Path(__file__).resolve().parent
WAIVED = 77  # of automake's tests
# They draw on a screen, or measure without end.
LEFT_OUT = {"gl_interop", "gl_interop_idle"}


@dataclasses.dataclass
class Example:
    name: str
    runs: dict = dataclasses.field(default_factory=dict)  # title of a way to run it -> Result


class StarpuWay(runner.Way):
    """Each run measures the bus anew, in a folder of its own."""

    def environment_in(self, folder):
        libraries = filter(None, [self.environment.get("LD_LIBRARY_PATH", ""), options.libraries])
        return dict(self.environment, STARPU_NCUDA="1", STARPU_NCPU=str(options.cpus), STARPU_NOPENCL="0",
                    STARPU_SILENT="1", STARPU_WORKERS_NOBIND="1", STARPU_HOME=folder,
                    STARPU_LIMIT_CUDA_MEM=str(options.memory), LD_LIBRARY_PATH=":".join(libraries))

    def start_words(self):
        """The software GPU's NVML is Funnel's."""
        if not self.words or options.device == "cuda":
            return self.words
        return [*self.words[:-1], "--nvml", self.words[-1]]

    def run_once(self, program):
        with tempfile.TemporaryDirectory(prefix="funnel-starpu-") as folder:
            command = [*self.start_words(), str(options.examples / program.name)]
            result = runner.run_command(command, folder, self.environment_in(folder), self.timeout(program),
                                        waived=WAIVED)
        return result


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=pathlib.Path,
                        default=pathlib.Path("/usr/lib/x86_64-linux-gnu/starpu/examples"))
    parser.add_argument("--only", default="", help="names of examples, with commas")
    parser.add_argument("--libraries", default="", help="folders of libraries, with colons")
    parser.add_argument("--cpus", type=int, default=0, help="workers on the CPU")
    parser.add_argument("--memory", type=int, default=200, help="MiB of device memory for each program")
    runner.add_way_options(parser, timeout=30)
    parsed = runner.parse_way_options(parser)
    if parsed.device == "soft":  # StarPU is linked with NVML
        nvml = str(parsed.build / "lib/funnel/nvml")
        parsed.libraries = ":".join(filter(None, [parsed.libraries, nvml]))
    return parsed


def find_examples():
    wanted = set(filter(None, options.only.split(",")))
    return [Example(path.name) for path in sorted(options.examples.iterdir())
            if path.is_file() and os.access(path, os.X_OK) and not path.suffix and path.name not in LEFT_OUT
            and (not wanted or path.name in wanted)]


def others_of(examples, title):
    """By verdict, what is no measure: an example that does not pass by itself."""
    verdicts = {}
    for example in examples:
        verdicts.setdefault(example.runs[title].verdict, []).append(example.name)
    return [f"{verdict}: {', '.join(names)}" for verdict, names in sorted(verdicts.items())]


def run_all(examples, ways):
    first, *others = ways
    for example in examples:
        example.runs[first.title] = first.run(example)
    for way in others:
        for example in examples:
            if example.runs[first.title].verdict == "passed":
                example.runs[way.title] = way.run(example)


def main():
    examples = find_examples()
    with tempfile.TemporaryDirectory(prefix="funnel-programs-") as scratch:
        titles = runner.run_ways(options, scratch, StarpuWay, lambda ways: run_all(examples, ways))
    passed = [example for example in examples if example.runs[titles[0]].verdict == "passed"]
    rest = [example for example in examples if example not in passed]
    print(report.table(passed, titles))
    print("\n".join(others_of(rest, titles[0])))
    print(report.summary(passed, titles))
    return 0 if passed and not report.differing(passed, titles) else 1


if __name__ == "__main__":
    options = parse_arguments()
    sys.exit(main())
