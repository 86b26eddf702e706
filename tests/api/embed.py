#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""embed.py FILE HEADER: the bytes of a file as a C array that ends in a NUL: `name_suffix`."""
import pathlib
import sys

source, header = map(pathlib.Path, sys.argv[1:])
name = source.stem + "_" + source.suffix[1:]
data = source.read_bytes() + b"\0"
rows = [", ".join(map(str, data[at : at + 20])) for at in range(0, len(data), 20)]
header.write_text(
    f"static const unsigned char {name}[] __attribute__((aligned(8), unused)) = {{\n"
    + ",\n".join(rows)
    + "};\n"
)
