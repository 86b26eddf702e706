# SPDX-License-Identifier: Apache-2.0
"""docs/mps-compatibility.md tells the truth about what is tested, and leaves no command out."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VERDICTS = {"same", "better", "part", "missing"}


def rows():
    for line in (ROOT / "docs/mps-compatibility.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 4 and cells[0] not in ("---",) and cells[1]:
            if cells[1] != "---":
                yield cells


def known_tests():
    for folder in ("control", "limits"):
        for path in (ROOT / "tests" / folder).glob("test_*.py"):
            for name in re.findall(r"def test_(\w+)", path.read_text()):
                yield f"{path.stem.removeprefix('test_')}.{name}"


class Compatibility(unittest.TestCase):
    def test_verdicts(self):
        found = list(rows())
        self.assertGreater(len(found), 60)
        for subject, verdict, _, tests in found:
            with self.subTest(subject):
                self.assertIn(verdict, VERDICTS)
                if verdict in ("same", "better"):
                    self.assertTrue(tests)

    def test_tests_exist(self):
        known = set(known_tests())
        for subject, _, _, tests in rows():
            for name in re.findall(r"`([^`]*)`", tests):
                with self.subTest(f"{subject}: {name}"):
                    self.assertIn(name, known)

    def test_every_command(self):
        listed = (ROOT / "src/control/command_list.h").read_text()
        described = {subject.strip("`") for subject, *_ in rows()}
        for name in re.findall(r"^COMMAND\((\w+),", listed, re.MULTILINE):
            self.assertIn(name, described)
        verbs = (ROOT / "src/control/verb_list.h").read_text()
        for name in re.findall(r'^VERB\(\w+, "([^"]+)",', verbs, re.MULTILINE):
            self.assertIn(name, described)


if __name__ == "__main__":
    sys.argv.pop(1) if len(sys.argv) > 1 else None
    unittest.main()
