#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the generator itself: run.py golden | refused | ledger | page | agreement | coverage |
protocol, or run.py refresh.

golden    the small description in small/ gives exactly the files in golden/
refused   each description in refused/ is refused with the message in its first line
ledger    numbers given out twice, names with two numbers, numbers of nothing, symbols of nothing
page      directives of protocol.md.in that cannot be carried out
agreement WIRE_API_HASH changes with what client and server share, and with nothing else
coverage  docs/api-coverage.md is what api/ says
protocol  docs/protocol.md is what api/ and the headers say
refresh   rewrites golden/, docs/api-coverage.md and docs/protocol.md
"""

import difflib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GOLDEN = HERE / "golden"
COVERAGE = ROOT / "docs" / "api-coverage.md"
PROTOCOL = ROOT / "docs" / "protocol.md"
BEYOND = "opcodes.lock:8: number {} is not below 128, as CHANNEL_OPS in src/wire/channel.h demands; " \
    "raise both"
GROUPS = ("cuda", "wire", "graph", "reference", "client", "server", "driver", "softgpu", "map", "protocol")


def apigen(*arguments):
    """The finished process."""
    return subprocess.run([sys.executable, "-SB", ROOT / "tools/apigen/apigen.py", *arguments],
                          capture_output=True, text=True, check=False)


def made(*arguments):
    """What apigen printed, or the end of the test."""
    process = apigen(*arguments)
    if process.returncode != 0:
        sys.exit(process.stderr)
    return process.stdout


def make_small(out):
    for group in GROUPS:
        made("emit", group, HERE / "small", out)
    (Path(out) / "coverage.md").write_text(made("coverage", HERE / "small"))
    (Path(out) / "protocol.md").write_text(made("protocol", HERE / "small"))


def differs(expected, got, name):
    """Prints how two texts differ; whether they do."""
    lines = list(difflib.unified_diff(expected.splitlines(), got.splitlines(), f"{name} (expected)",
                                      f"{name} (made)", lineterm="", n=2))
    print("\n".join(lines[:40]))
    return bool(lines)


def golden():
    with tempfile.TemporaryDirectory() as out:
        make_small(out)
        expected = {p.name: p.read_text() for p in GOLDEN.iterdir()}
        got = {p.name: p.read_text() for p in Path(out).iterdir()}
    wrong = [name for name in sorted(expected.keys() | got.keys())
             if differs(expected.get(name, ""), got.get(name, ""), name)]
    return [f"{name} differs; if that is meant: tests/apigen/run.py refresh" for name in wrong]


def error_of(files, command="check"):
    """What apigen says of the small description with some files added or replaced."""
    with tempfile.TemporaryDirectory() as folder:
        api = Path(folder) / "api"
        shutil.copytree(HERE / "small", api)
        for name, text in files.items():
            (api / name).write_text(text)
        process = apigen(command, api)
        return process.stderr if process.returncode else "(accepted)"


def expect(files, message, name, command="check"):
    said = error_of(files, command)
    if message in said.splitlines():
        return []
    return [f"{name}: expected\n    {message}\n  not\n    " + said.strip().replace("\n", "\n    ")]


def refused():
    wrong = []
    for path in sorted((HERE / "refused").glob("*.api")):
        text = path.read_text()
        message = text.splitlines()[0].removeprefix("# expect: ")
        wrong += expect({path.name: text}, message, path.name)
    return wrong + ([] if error_of({}) == "(accepted)" else ["the small description is refused"])


def ledger():
    lock = (HERE / "small/opcodes.lock").read_text()
    symbols = (HERE / "small/symbols-1.0.txt").read_text()
    cases = (
        ("opcodes.lock", lock + "6 fnOther\n", "opcodes.lock:8: number 6 is given out twice"),
        ("opcodes.lock", lock + "7 fnLimit\n", "opcodes.lock:8: fnLimit has two numbers"),
        ("opcodes.lock", lock + "7 fnGone\n", "opcodes.lock:8: fnGone has a number but is not "
                                              "described; a retired command keeps its stanza"),
        ("opcodes.lock", lock + "128 fnOther\n", BEYOND.format(128)),
        ("opcodes.lock", lock + "0 fnOther\n", BEYOND.format(0)),
        ("symbols-1.0.txt", symbols + "cuGone\n",
         "symbols-1.0.txt:13: cuGone is exported but described nowhere"),
        ("getprocaddress.tsv", "cuGone\t0\t2000\tcuGone\n",
         "getprocaddress.tsv:1: cuGone leads to cuGone, which is not exported"),
    )
    return [line for name, text, message in cases for line in expect({name: text}, message, name)]


def page():
    text = (HERE / "small/protocol.md.in").read_text()
    header = (HERE / "small/small.h").read_text()
    end = len(text.splitlines()) + 1
    cases = (
        ("{{struct small.h nothing}}", header, "struct nothing is in none of the headers"),
        ("{{enum small.h nothing}}", header, "enum nothing is in none of the headers"),
        ("{{constants small.h NOTHING}}", header, "NOTHING is in none of the headers"),
        ("{{nothing}}", header, "there is no {{nothing}}"),
        ("{{struct small.h bare}}", header + "struct bare {\n    uint32_t word;\n};\n",
         "struct bare: word has no comment"),
        ("{{struct small.h odd}}", header + "struct odd {\n    size_t word; /* of this machine */\n};\n",
         "cannot tell the size of 'size_t'"),
    )
    return [line for directive, changed, message in cases
            for line in expect({"protocol.md.in": text + directive + "\n", "small.h": changed},
                               f"protocol.md.in:{end}: {message}", directive, "protocol")]


def hash_with(header):
    """WIRE_API_HASH of the small description, with another small.h."""
    with tempfile.TemporaryDirectory() as folder:
        api = Path(folder) / "api"
        shutil.copytree(HERE / "small", api)
        (api / "small.h").write_text(header)
        made("emit", "wire", api, folder)
        return re.search(r"WIRE_API_HASH (\w+)", (Path(folder) / "wire_calls.h").read_text())[1]


def agreement():
    header = (HERE / "small/small.h").read_text()
    changes = (
        ("a member of another type", "uint64_t address;", "int64_t address;"),
        ("another name", "uint64_t address;", "uint64_t length; "),
        ("another place", "unsigned char pad1[4];", "unsigned char pad1[12];"),
        ("another count", "#define SMALL_WORDS 3u", "#define SMALL_WORDS 4u"),
        ("another value", "SMALL_ONE = 4,", "SMALL_ONE = 5,"),
        ("a structure inside", "int32_t x, y;", "int32_t x, y, z;"),
    )
    wrong = [f"{what}: the hash is the same" for what, old, new in changes
             if hash_with(header.replace(old, new)) == hash_with(header)]
    if hash_with(header.replace("/* the words */", "/* words */")) != hash_with(header):
        wrong.append("a comment changes the hash")
    return wrong


def protocol():
    if differs(PROTOCOL.read_text(), made("protocol", ROOT / "api"), "docs/protocol.md"):
        return ["docs/protocol.md is not up to date: tests/apigen/run.py refresh"]
    return []


def coverage():
    if differs(COVERAGE.read_text(), made("coverage", ROOT / "api"), "docs/api-coverage.md"):
        return ["docs/api-coverage.md is not up to date: tests/apigen/run.py refresh"]
    return []


def refresh():
    shutil.rmtree(GOLDEN, ignore_errors=True)
    GOLDEN.mkdir()
    make_small(GOLDEN)
    COVERAGE.write_text(made("coverage", ROOT / "api"))
    PROTOCOL.write_text(made("protocol", ROOT / "api"))
    return []


if __name__ == "__main__":
    TESTS = {t.__name__: t for t in (golden, refused, ledger, page, agreement, coverage, protocol,
                                   refresh)}
    if len(sys.argv) != 2 or sys.argv[1] not in TESTS:
        sys.exit(__doc__)
    FAILURES = TESTS[sys.argv[1]]()
    print("\n".join(FAILURES))
    sys.exit(1 if FAILURES else 0)
