#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a file as the C source of http_page.h: embed.py INPUT OUTPUT."""
import sys

with open(sys.argv[1], "rb") as page:
    data = page.read()
with open(sys.argv[2], "w") as out:
    out.write('#include "http_page.h"\n\n'
              "const unsigned char http_page[] = {" + ",".join(map(str, data)) + "};\n"
              "const size_t http_page_size = sizeof(http_page);\n")
