#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""embed.py PTX HEADER: turns the text of kernels into a C string, `name_ptx`."""
import pathlib
import sys

source, header = map(pathlib.Path, sys.argv[1:])
lines = source.read_text().splitlines()
quoted = ['"' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"' for line in lines]
header.write_text(f"static const char {source.stem}_ptx[] =\n" + "\n".join(quoted) + ";\n")
