#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes, for fuzz_decode.c, a function for each decoder that wire_calls.h declares. It decodes
and, when the message was accepted, touches every byte that the result points to.

    list_decoders.py wire_calls.h decoders.h
"""
import re
import sys


def structures(header):
    """name -> text of the body of `struct wire_<name>`."""
    return dict(re.findall(r"^struct wire_(\w+) \{\n(.*?)^\};", header, re.S | re.M))


def touches(body):
    """The statements that read all that a decoded command points to."""
    lines = []
    for field in re.findall(r"const void \*(\w+);", body):
        lines.append(f"touch(out.{field}, out.{field}_size);")
    for field in re.findall(r"const char \*(\w+);", body):
        lines.append(f"touch(out.{field}, strlen(out.{field}));")
    return lines


def prepares(body):
    """The statements that give a reply somewhere to put its bytes, smaller than they may be."""
    lines = []
    for field in re.findall(r"(?<!const )void \*(\w+);", body):
        lines += ["static unsigned char place[64];", f"out.{field} = place;",
                  f"out.{field}_capacity = sizeof(place);"]
    return lines


def trial(name, body):
    prepare = "".join(f"    {line}\n" for line in prepares(body))
    touch = "".join(f"        {line}\n" for line in touches(body) or ["touch(&out, sizeof(out));"])
    return (f"static void try_{name}(const void *data, size_t size)\n{{\n"
            f"    struct wire_{name} out = {{}};\n{prepare}"
            f"    if (decode_{name}(data, size, &out)) {{\n{touch}    }}\n}}\n")


def main(source, target):
    header = open(source).read()
    bodies = structures(header)
    names = re.findall(r"^bool decode_(\w+)\(", header, re.M)
    text = "\n".join(trial(name, bodies[name]) for name in names)
    text += "\nstatic void (*const decoders[])(const void *data, size_t size) = {\n"
    text += "".join(f"    try_{name},\n" for name in names) + "};\n"
    open(target, "w").write(text)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
