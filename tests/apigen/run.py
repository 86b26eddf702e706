#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the generator itself: run.py golden | refused | ledger | coverage, or run.py refresh.

golden    the small description in small/ gives exactly the files in golden/
refused   each description in refused/ is refused with the sentence in its first line
ledger    numbers given out twice, names with two numbers, numbers of nothing, symbols of nothing
coverage  docs/api-coverage.md is what api/ says
refresh   rewrites golden/ and docs/api-coverage.md
"""

import difflib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GOLDEN = HERE / "golden"
COVERAGE = ROOT / "docs" / "api-coverage.md"
GROUPS = ("cuda", "wire", "graph", "client", "server", "driver", "softgpu", "map")


def apigen(*arguments):
    """The finished process."""
    return subprocess.run([sys.executable, "-B", ROOT / "tools/apigen/apigen.py", *arguments],
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


def complaint(files):
    """What apigen says of the small description with some files added or replaced."""
    with tempfile.TemporaryDirectory() as folder:
        api = Path(folder) / "api"
        shutil.copytree(HERE / "small", api)
        for name, text in files.items():
            (api / name).write_text(text)
        process = apigen("check", api)
        return process.stderr if process.returncode else "(accepted)"


def expect(files, sentence, name):
    said = complaint(files)
    if sentence in said.splitlines():
        return []
    return [f"{name}: expected\n    {sentence}\n  not\n    " + said.strip().replace("\n", "\n    ")]


def refused():
    wrong = []
    for path in sorted((HERE / "refused").glob("*.api")):
        text = path.read_text()
        sentence = text.splitlines()[0].removeprefix("# expect: ")
        wrong += expect({path.name: text}, sentence, path.name)
    return wrong + ([] if complaint({}) == "(accepted)" else ["the small description is refused"])


def ledger():
    lock = (HERE / "small/opcodes.lock").read_text()
    symbols = (HERE / "small/symbols-1.0.txt").read_text()
    cases = (
        ("opcodes.lock", lock + "6 fnOther\n", "opcodes.lock:8: number 6 is given out twice"),
        ("opcodes.lock", lock + "7 fnLimit\n", "opcodes.lock:8: fnLimit has two numbers"),
        ("opcodes.lock", lock + "7 fnGone\n", "opcodes.lock:8: fnGone has a number but is not "
                                              "described; a retired command keeps its stanza"),
        ("symbols-1.0.txt", symbols + "cuGone\n",
         "symbols-1.0.txt:13: cuGone is exported but described nowhere"),
        ("getprocaddress.tsv", "cuGone\t0\t2000\tcuGone\n",
         "getprocaddress.tsv:1: cuGone leads to cuGone, which is not exported"),
    )
    return [line for name, text, sentence in cases for line in expect({name: text}, sentence, name)]


def coverage():
    if differs(COVERAGE.read_text(), made("coverage", ROOT / "api"), "docs/api-coverage.md"):
        return ["docs/api-coverage.md is not up to date: tests/apigen/run.py refresh"]
    return []


def refresh():
    shutil.rmtree(GOLDEN, ignore_errors=True)
    GOLDEN.mkdir()
    make_small(GOLDEN)
    COVERAGE.write_text(made("coverage", ROOT / "api"))
    return []


if __name__ == "__main__":
    TESTS = {t.__name__: t for t in (golden, refused, ledger, coverage, refresh)}
    if len(sys.argv) != 2 or sys.argv[1] not in TESTS:
        sys.exit(__doc__)
    FAILURES = TESTS[sys.argv[1]]()
    print("\n".join(FAILURES))
    sys.exit(1 if FAILURES else 0)
