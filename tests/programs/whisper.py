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
    return runner.parse_model_options(parser, "how many the model is to hear")


def main():
    with tempfile.TemporaryDirectory(prefix="funnel-programs-") as scratch:
        folder = pathlib.Path(scratch)
        model, hear = str(folder / "tiny.bin"), str(folder / "hear")
        subprocess.run([sys.executable, HERE / "whisper/tiny_model.py", model], check=True)
        compile_program(hear)
        program = runner.SayingProgram("whisper.cpp", [hear, model, options.tokens])
        return runner.compare_ways([program], options, scratch, WhisperWay)


if __name__ == "__main__":
    options = parse_arguments()
    sys.exit(main())
