#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps the inputs of a fuzz target in one file, each after its size (32 bits, little-endian).

    corpus.py pack FOLDER FILE      what the folder holds, as `TARGET -merge=1 FOLDER CORPUS` made it
    corpus.py unpack FILE FOLDER    to go on from there (run.sh)"""
import pathlib
import struct
import sys


def pack(folder, path):
    inputs = sorted((file.read_bytes() for file in folder.iterdir()), key=lambda i: (len(i), i))
    path.write_bytes(b"".join(struct.pack("<I", len(data)) + data for data in inputs))
    return len(inputs)


def unpack(path, folder):
    data, at, count = path.read_bytes(), 0, 0
    folder.mkdir(parents=True, exist_ok=True)
    while at < len(data):
        size, = struct.unpack_from("<I", data, at)
        (folder / f"kept-{count:04}").write_bytes(data[at + 4:at + 4 + size])
        at, count = at + 4 + size, count + 1
    return count


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("pack", "unpack"):
        sys.exit(__doc__)
    do = pack if sys.argv[1] == "pack" else unpack
    print(f"{do(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))} inputs")
