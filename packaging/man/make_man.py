#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a manual page from its prose and from what the programs themselves say of their options:
make_man.py BIN_FOLDER VERSION PAGE.in OUTPUT.

A page is roff, in which these lines are replaced:

    @help PROGRAM ARGUMENT...   what this prints
    @commands                   a section for each command of `funnel help`, with its help
    @file PATH                  a file of this folder's parent, without its comments on the licence

and everywhere @VERSION@. What a program prints cannot differ from the page, since it is the page.
"""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def output_of(folder, program, *arguments):
    done = subprocess.run([folder / program, *arguments], stdout=subprocess.PIPE, text=True,
                          check=True, timeout=60)
    return done.stdout


def escaped(text):
    """Words that roff reads as themselves: hyphens are ASCII ones, which can be copied."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("^", "\\(ha")
    text = text.replace("~", "\\(ti").replace("'", "\\(aq")
    return "\n".join("\\&" + line if line.startswith(".") else line for line in text.split("\n"))


def example(text):
    return ".nf\n" + escaped(text.strip("\n")) + "\n.fi"


def commands(folder):
    """(name, summary) of each row of `funnel help`."""
    rows = re.findall(r"^  ([a-z-]+) +(.+)$", output_of(folder, "funnel", "help"), re.M)
    return [row for row in rows if row[0] not in ("help", "version")]


def command_section(folder, name, summary):
    text = output_of(folder, "funnel", "help", name)
    return f".SS funnel {escaped(name)}\n{escaped(summary[0].upper() + summary[1:])}.\n.PP\n" + \
        example(text)


def replaced(folder, line):
    words = line.split()
    if words[0] == "@help":
        return example(output_of(folder, *words[1:]))
    if words[0] == "@commands":
        return "\n".join(command_section(folder, *row) for row in commands(folder))
    text = (HERE.parent / words[1]).read_text()
    return example(re.sub(r"^# SPDX.*\n", "", text, flags=re.M))


def page(folder, version, source):
    lines = source.replace("@VERSION@", version).split("\n")
    return "\n".join(replaced(folder, line) if re.match(r"@(help|commands|file)\b", line) else line
                     for line in lines)


def main():
    folder, version, source, output = sys.argv[1:]
    text = page(pathlib.Path(folder), version, pathlib.Path(source).read_text())
    pathlib.Path(output).write_text(text)


if __name__ == "__main__":
    main()
