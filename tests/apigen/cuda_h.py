#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our declarations (src/cuda, api/) with the toolkit's cuda.h: cuda_h.py CC PROTOTYPES_DIR

Prototypes: ours are compiled behind cuda.h, which conflicts where they differ. Types and numbers.
One program that prints every size, offset and enumerator is compiled once with our header and once
with cuda.h, and must print the same. Exits with 77 when there is no cuda.h of the version we
describe.
"""

import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SRC = Path(__file__).resolve().parents[2] / "src" / "cuda"
VERSION = "13000"


def skip(why):
    print(why)
    sys.exit(77)


def find_toolkit():
    """The include folder of a toolkit, as a string."""
    for home in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        header = Path(home or "/nonexistent") / "include" / "cuda.h"
        if header.is_file():
            break
    else:
        skip("no cuda.h in CUDA_HOME, CUDA_PATH or /usr/local/cuda")
    found = re.search(r"^#define CUDA_VERSION (\d+)", header.read_text(), re.M).group(1)
    if found != VERSION:
        skip(f"{header} is version {found}, not {VERSION}")
    return str(header.parent)


def compile_c(cc, source, *flags):
    process = subprocess.run([*cc, "-std=gnu11", "-w", *flags, str(source)], capture_output=True,
                             text=True, check=False)
    if process.returncode:
        sys.exit(process.stderr[:4000])


def check_prototypes(cc, toolkit, prototypes, work):
    """cuda_prototypes.h asks for cuda_abi.h; here that is cuda.h itself."""
    (work / "cuda_abi.h").write_text("#define __CUDA_API_VERSION_INTERNAL\n"
                                     "#include <cuda.h>\n#include <cudaProfiler.h>\n")
    source = work / "prototypes.c"
    source.write_text('#include "cuda_prototypes.h"\n')
    compile_c(cc, source, "-fsyntax-only", f"-I{work}", f"-I{prototypes}", f"-I{toolkit}")
    (work / "cuda_abi.h").unlink()


def our_text(cc):
    """Our declarations without comments and preprocessor lines."""
    return subprocess.run([*cc, "-E", "-P", str(SRC / "cuda_structs.h")], capture_output=True,
                          text=True, check=True).stdout


def enumerators(text):
    for body in re.findall(r"enum\s*\w*\s*{(.*?)}", text, re.S):
        yield from re.findall(r"(?:^|,)\s*(\w+)", body)


def macros():
    for path in sorted(SRC.glob("*.h")):
        yield from re.findall(r"^#define (CU_\w+) ", path.read_text(), re.M)


def structures(text):
    """(type name, paths of all members) of every structure or union that we define."""
    for match in re.finditer(r"typedef (?:struct|union)\s+\w+\s*{", text):
        end = closing(text, match.end())
        name = re.match(r"\s*(\w+)", text[end:]).group(1)
        yield name, list(members(text[match.end():end - 1]))


def closing(text, start):
    """The place behind the brace that closes the one before `start`."""
    depth = 1
    while depth:
        depth += {"{": 1, "}": -1}.get(text[start], 0)
        start += 1
    return start


def members(body, prefix=""):
    while body.strip():
        nested = re.match(r"\s*(?:struct|union)\s*\w*\s*{", body)
        if nested:
            end = closing(body, nested.end())
            inner = body[nested.end():end - 1]
            name, rest = re.match(r"\s*(\w*)[^;]*;(.*)", body[end:], re.S).groups()
            if name:
                yield prefix + name
            yield from members(inner, f"{prefix}{name}." if name else prefix)
        else:
            line, rest = body.split(";", 1)
            for part in line.split(","):
                yield prefix + re.search(r"(\w+)\s*(?:\[.*\])?\s*$", part, re.S).group(1)
        body = rest


def facts(text):
    """A program that prints everything that could differ."""
    lines = ["#include <stdio.h>", "#include <stddef.h>", "#ifdef TOOLKIT", "#include <cuda.h>",
             "#include <cudaProfiler.h>", "#else", '#include "cuda_abi.h"', "#endif",
             "int main(void)", "{"]
    for name in [*enumerators(text), *macros()]:
        lines.append(f'    printf("{name} = %lld\\n", (long long){name});')
    for name, paths in structures(text):
        lines.append(f'    printf("sizeof {name} = %zu\\n", sizeof({name}));')
        for path in paths:
            lines.append(f'    printf("{name}.{path} at %zu, %zu bytes\\n", '
                         f'offsetof({name}, {path}), sizeof((({name} *)0)->{path}));')
    return "\n".join(lines + ["}", ""])


def check_facts(cc, toolkit, work):
    source = work / "facts.c"
    source.write_text(facts(our_text(cc)))
    printed = []
    for side, flags in (("ours", [f"-I{SRC}"]), ("theirs", ["-DTOOLKIT", f"-I{toolkit}"])):
        program = work / side
        compile_c(cc, source, *flags, "-o", str(program))
        printed.append(subprocess.run([program], capture_output=True, text=True,
                                      check=True).stdout.splitlines())
    differences = [line for line in difflib.unified_diff(*printed, "ours", "cuda.h", n=0,
                                                         lineterm="")]
    print("\n".join(differences[:50]) or f"{len(printed[0])} facts agree")
    return not differences and len(printed[0]) > 1000


def main(arguments):
    cc, prototypes = arguments[:-1], arguments[-1]
    toolkit = find_toolkit()
    with tempfile.TemporaryDirectory() as folder:
        check_prototypes(cc, toolkit, prototypes, Path(folder))
        return 0 if check_facts(cc, toolkit, Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
