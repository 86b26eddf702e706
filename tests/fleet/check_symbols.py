#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether a client library can be loaded by old programs: check_symbols.py LIBRARY.

It may need nothing but the C library, in the parts that glibc 2.17 had, and no symbol that is newer.
"""
import re
import subprocess
import sys

NEWEST = (2, 17)
PARTS = re.compile(r"libc\.so\.6|libpthread\.so\.0|libdl\.so\.2|ld-linux-[\w-]+\.so\.\d")


def tool(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def foreign_libraries(dynamic):
    return [f"it needs {name}" for name in re.findall(r"NEEDED\).*\[(.*?)\]", dynamic)
            if not PARTS.fullmatch(name)]


def new_symbols(table):
    """Lines of objdump -T: value, flags (w: it may be missing), *UND*, size, (version), name."""
    for flags, version, name in re.findall(
            r"^\S+ (.*?)\*UND\*\s+\S+\s+(?:\(?(\S+?)\)?\s+)?(\S+)$", table, re.M):
        number = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version)
        if not number and "w" not in flags:
            yield f"{name} has no version of glibc's"
        elif number and tuple(map(int, number.groups())) > NEWEST:
            yield f"{name} is of {version}; glibc {NEWEST[0]}.{NEWEST[1]} lacks it"


def problems(library):
    versions = tool("readelf", "-VW", library)
    found = foreign_libraries(tool("readelf", "-dW", library))
    found += new_symbols(tool("objdump", "-T", library))
    if "GLIBC_ABI" in versions:
        found.append("it needs a feature of a newer dynamic loader (GLIBC_ABI_...)")
    return found


def main():
    found = problems(sys.argv[1])
    for line in found:
        print(f"{sys.argv[1]}: {line}")
    if not found:
        print(f"{sys.argv[1]} needs glibc {NEWEST[0]}.{NEWEST[1]} and nothing else")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
