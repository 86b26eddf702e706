#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs llama.cpp, as npm has it for Node.js, natively and through Funnel, and compares what a tiny
model says.

    cd /tmp/llama && npm install @fugood/llama.node @fugood/node-llama-linux-x64-cuda
    tests/programs/llama.py --modules /tmp/llama/node_modules --clients 1,4

The package needs libcudart.so.12, libcublas.so.12 and libnccl.so.2; --libraries names their folders.
The model has random weights; all runs have to say the same tokens. The exit status is 0 when they do.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import runner

HERE = pathlib.Path(__file__).resolve().parent


class LlamaWay(runner.SayingWay):
    said = re.compile(r"^said .*", re.M)

    def run_once(self, program):
        old = self.environment.get("LD_LIBRARY_PATH", "")
        environment = dict(self.environment, NODE_PATH=str(options.modules),
                           LD_LIBRARY_PATH=":".join(filter(None, [old, options.libraries])))
        result = runner.run_command([*self.words, *program.command], None, environment,
                                    self.timeout(program))
        return self.compare(program, result)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    return runner.parse_model_options(parser, "how many the model is to say")


def main():
    with tempfile.TemporaryDirectory(prefix="funnel-programs-") as scratch:
        model = os.path.join(scratch, "tiny.gguf")
        subprocess.run([sys.executable, HERE / "llama/tiny_model.py", model], check=True)
        program = runner.SayingProgram("llama.cpp", ["node", str(HERE / "llama/complete.js"), model,
                                                     options.tokens])
        return runner.compare_ways([program], options, scratch, LlamaWay)


if __name__ == "__main__":
    options = parse_arguments()
    sys.exit(main())
