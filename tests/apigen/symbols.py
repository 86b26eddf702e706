#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A libcuda.so.1 of ours exports exactly what NVIDIA's does, and the symbols of ours that are
named. Usage: symbols.py LIBRARY SYMBOLS [SYMBOL...] [HEADER.h], which declares more of ours.

Exits with 77 when the library has not been built."""

import re
import subprocess
import sys
from pathlib import Path


def exported(library):
    listing = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True,
                             text=True, check=True).stdout
    return {line.split()[-1] for line in listing.splitlines()}


def declared(name):
    """The symbol itself, or those that a header exports."""
    if not name.endswith(".h"):
        return {name}
    return set(re.findall(r"^SOFT_EXPORT .*?(\w+)\(", Path(name).read_text(), re.M))


def main(library, symbols, *own):
    if not Path(library).exists():
        print(f"{library} has not been built")
        return 77
    have = exported(library)
    want = set(Path(symbols).read_text().split()).union(*map(declared, own))
    for symbol in sorted(want - have):
        print(f"missing: {symbol}")
    for symbol in sorted(have - want):
        print(f"not NVIDIA's: {symbol}")
    print(f"{len(have & want)} of {len(want)} exported")
    return 0 if have == want else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
