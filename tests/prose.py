#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds sentences of documents and comments that are too long to be read once: tests/prose.py.

CONTRIBUTING.md has the rule: at most 25 words, and one "which". Code, links, numbers and names of
symbols are not words. Blocks of code are passed over. In a cell of a table a semicolon ends a
sentence, too."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_WORDS = 25
MOST_WHICH = 1

# What a reader takes in at once; each becomes one character, so that it ends no sentence.
NOT_PROSE = re.compile(r"`[^`]*`|\]\([^)]*\)|\*+|<[^<>]{1,60}>")
END = r"[.!?]['\")*\0]*\s+"
END_IN_CELL = r"[.!?;]['\")*\0]*\s+"
# No capital letter or underscore but at the beginning, no digit: not cuInit, FUNNEL_OFF or 1.3x.
WORD = re.compile(r"\W*[A-Za-z][a-z]*(?:[-'/][A-Za-z]?[a-z]*)*\W*")
BEGINS_ITEM = re.compile(r"^\s*(?:[*-]|\d+\.) ")


def is_code(lines):
    """For each line, whether it is in a block of code: between fences, or indented behind an empty line."""
    fenced = indented = False
    before = ""
    for line in lines:
        fence = line.lstrip().startswith("```")
        begins = not before.strip() and not BEGINS_ITEM.match(line)
        indented = line.startswith("    ") and (indented or begins) or indented and not line.strip()
        yield fence or fenced or indented
        fenced ^= fence
        before = line


def paragraphs(text):
    """The line on which each begins, its text, and whether it is a cell of a table."""
    begin, inside = 0, []
    lines = [*text.splitlines(), ""]
    for number, (line, code) in enumerate(zip(lines, is_code(lines)), 1):
        table = line.lstrip().startswith("|")
        other = code or table or not line.strip() or line.startswith(("#", "<!--"))
        if inside and (other or BEGINS_ITEM.match(line)):
            yield begin, "\n".join(inside), False
            inside = []
        if table and not code:
            yield from ((number, cell, True) for cell in line.split("|"))
        if not other:
            begin = begin if inside else number
            inside.append(BEGINS_ITEM.sub("", line))


def sentences(paragraph, in_cell):
    plain = NOT_PROSE.sub("\0", paragraph)
    return re.split(END_IN_CELL if in_cell else END, plain)


def is_hard(sentence):
    words = [word for word in sentence.split() if WORD.fullmatch(word)]
    asks = sum(word.lower().strip(".,;:()") == "which" for word in words)
    return len(words) > MOST_WORDS or asks > MOST_WHICH


def errors(name, text, lines_before=0):
    for line, paragraph, in_cell in paragraphs(text):
        for sentence in sentences(paragraph, in_cell):
            if is_hard(sentence):
                begin = " ".join(sentence.replace("\0", "").split())[:60]
                yield (f"{name}:{line + lines_before}: more than {MOST_WORDS} words, or a second \"which\", in the "
                       f"sentence that begins \"{begin}\"")


def errors_of_comments(name, code):
    """Lines that are indented in a comment are rows of a list or a drawing."""
    for comment in re.finditer(r"/\*(.*?)\*/", code, re.S):
        text = re.sub(r"^[ \t]*\*? ?", "", comment[1], flags=re.M)
        text = re.sub(r"^    .*", "", text, flags=re.M)
        first = code.count("\n", 0, comment.start())
        yield from errors(name, text, first)


def all_errors():
    """Of all pages of the tree, and of the comments in C, but for what builds have copied."""
    for path in sorted(ROOT.rglob("*.md")):
        name = str(path.relative_to(ROOT))
        if not name.startswith("build"):
            yield from errors(name, path.read_text())
    for folder in ("bench", "examples", "src", "tests"):
        for path in sorted((ROOT / folder).rglob("*.[ch]")):
            if "golden" not in path.parts:
                yield from errors_of_comments(str(path.relative_to(ROOT)), path.read_text())


if __name__ == "__main__":
    found = list(all_errors())
    print("\n".join(found) or "All sentences are short enough.")
    sys.exit(1 if found else 0)
