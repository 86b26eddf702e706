#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs whisper.cpp, as npm has it for Node.js, natively and through Funnel, and compares what a tiny
model hears in noise.

    cd /tmp/whisper && npm install @fugood/whisper.node @fugood/node-whisper-linux-x64-cuda
    tests/programs/whisper.py --modules /tmp/whisper/node_modules --clients 1,4

A program in C calls the package's library; it needs no Node.js, but a C compiler. The package needs
libcudart.so.12, libcublas.so.12 and libnccl.so.2; --libraries names their folders. The model has random
weights; all runs have to hear the same tokens. The exit status is 0 when they do.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import report
import runner

HERE = pathlib.Path(__file__).resolve().parent


class WhisperWay(runner.SayingWay):
    said = re.compile(r"^said .*", re.M)

    def run_once(self, program):
        folders = [self.environment.get("LD_LIBRARY_PATH", ""), str(addon().parent), options.libraries]
        environment = dict(self.environment, LD_LIBRARY_PATH=":".join(filter(None, folders)))
        result = runner.run_command([*self.words, *program.command], None, environment,
                                    self.timeout(program))
        return self.compare(program, result)


def addon():
    return options.modules / "@fugood/node-whisper-linux-x64-cuda/index.node"


def compile_program(program):
    """The library has Node.js's functions undefined: nothing here calls them."""
    source = options.modules / "@fugood/whisper.node/whisper.cpp"
    subprocess.run(["cc", "-o", program, HERE / "whisper/hear.c", f"-I{source}/include",
                    f"-I{source}/ggml/include", f"-L{addon().parent}", f"-l:{addon().name}",
                    "-Wl,--unresolved-symbols=ignore-all"], check=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--modules", type=pathlib.Path, required=True, help="a node_modules folder")
    parser.add_argument("--libraries", default="", help="folders of CUDA's libraries, with colons")
    parser.add_argument("--tokens", default="8", help="how many the model is to hear")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build",
                        help="Funnel's build folder")
    parser.add_argument("--device", choices=["soft", "cuda"], default="soft")
    parser.add_argument("--clients", default="1,4", help="copies at once through Funnel")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for each run")
    parsed = parser.parse_args()
    parsed.clients = [int(number) for number in parsed.clients.split(",")]
    parsed.build, parsed.modules = parsed.build.resolve(), parsed.modules.resolve()
    parsed.first_only, parsed.shares = False, []
    return parsed


def main():
    with tempfile.TemporaryDirectory(prefix="funnel-programs-") as scratch:
        folder = pathlib.Path(scratch)
        model, hear = str(folder / "tiny.bin"), str(folder / "hear")
        subprocess.run([sys.executable, HERE / "whisper/tiny_model.py", model], check=True)
        compile_program(hear)
        program = runner.SayingProgram("whisper.cpp", [hear, model, options.tokens])
        ways = list(runner.ways(options, folder, WhisperWay))
        try:
            for way in ways:
                program.runs[way.title] = way.run(program)
        finally:
            runner.stop_daemon(options, scratch)
    titles = [way.title for way in ways]
    print(report.table([program], titles))
    print(program.said)
    passed = all(result.verdict == "passed" for result in program.runs.values())
    return 0 if passed and program.said else 1


if __name__ == "__main__":
    options = parse_arguments()
    sys.exit(main())
