#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stub.py SYMBOLS SOURCE: a driver library with every name and nothing behind it.

Programs are linked against it as they would be against the stub of a CUDA toolkit. At run time they
get the real libcuda.so.1, or Funnel's. Every call returns CUDA_ERROR_STUB_LIBRARY.
"""
import pathlib
import sys

symbols, source = map(pathlib.Path, sys.argv[1:])
names = [line.strip() for line in symbols.read_text().splitlines() if line.startswith("cu")]
function = '__attribute__((visibility("default"))) int {}(void)\n{{\n    return 34;\n}}\n'
source.write_text("\n".join(function.format(name) for name in names))
