#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes files as the C source of http_page.h: embed.py OUTPUT SHA256SUMS PATH=FILE... Files that
SHA256SUMS names have to be the ones that it means."""
import hashlib
import os
import sys

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


def read_checked(path, sums):
    with open(path, "rb") as file:
        data = file.read()
    wanted = sums.get(os.path.basename(path))
    if wanted and hashlib.sha256(data).hexdigest() != wanted:
        sys.exit(f"{path} is not the file whose checksum stands in SHA256SUMS")
    return data


def main(output, sums, *files):
    with open(sums) as file:
        sums = {name: digest for digest, name in map(str.split, file)}
    rows = ""
    with open(output, "w") as out:
        out.write('#include "http_page.h"\n\n')
        for number, (path, file) in enumerate(pair.split("=", 1) for pair in files):
            data = read_checked(file, sums)
            kind = TYPES[os.path.splitext(file)[1]]
            out.write(f"static const unsigned char file{number}[] = {{{','.join(map(str, data))}}};\n")
            rows += f'    {{"{path}", "{kind}; charset=utf-8", file{number}, sizeof(file{number})}},\n'
        out.write(f"const struct http_page_file http_page_files[] = {{\n{rows}}};\n"
                  "const size_t http_page_file_count = sizeof(http_page_files) / "
                  "sizeof(*http_page_files);\n")


main(*sys.argv[1:])
