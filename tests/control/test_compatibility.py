# SPDX-License-Identifier: Apache-2.0
"""docs/mps-compatibility.md tells the truth about what is tested, and leaves out nothing that we
have: no command, option, variable or error code."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VERDICTS = {"same", "better", "part", "missing"}
PAGE = (ROOT / "docs/mps-compatibility.md").read_text()


def read(path):
    return (ROOT / path).read_text()


def rows():
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 4 and cells[1] and cells[1] != "---":
            yield cells


def known_tests():
    for folder in ("control", "limits", "recovery"):
        for path in (ROOT / "tests" / folder).glob("test_*.py"):
            for name in re.findall(r"def test_(\w+)", path.read_text()):
                yield f"{path.stem.removeprefix('test_')}.{name}"
    for path in (ROOT / "tests/api").glob("*/*.c*"):
        yield f"{path.parent.name}/{path.stem}"
    for path in (ROOT / "tests/hostile").glob("test_*.c"):
        yield f"hostile/{path.stem.removeprefix('test_')}"


def described():
    """What stands in backquotes in the first column."""
    for subject, *_ in rows():
        yield subject
        yield from re.findall(r"`([^`]*)`", f"`{subject}`" if subject.count("`") % 2 else subject)


def sources():
    for path in (ROOT / "src").rglob("*.[ch]"):
        yield path.read_text()


class Table(unittest.TestCase):
    def test_verdicts(self):
        found = list(rows())
        self.assertGreater(len(found), 120)
        for subject, verdict, note, tests in found:
            with self.subTest(subject):
                self.assertIn(verdict, VERDICTS)
                if verdict in ("same", "better"):
                    self.assertTrue(tests, "nothing shows it")
                if verdict in ("part", "missing"):
                    self.assertTrue(note, "nothing tells what is different")

    def test_every_row_is_whole(self):
        """A row with too many or too few cells would escape the others."""
        for line in PAGE.splitlines():
            if line.startswith("|"):
                self.assertEqual(line.replace("\\|", "").count("|"), 5, line)

    def test_no_row_twice(self):
        subjects = [subject for subject, *_ in rows()]
        self.assertEqual(len(subjects), len(set(subjects)))

    def test_tests_exist(self):
        known = set(known_tests())
        for subject, _, _, tests in rows():
            for name in re.findall(r"`([^`]*)`", tests):
                with self.subTest(f"{subject}: {name}"):
                    self.assertIn(name, known)

    def test_tests_are_run(self):
        for folder in ("control", "limits"):
            listed = set(re.findall(r"'([\w ]+)'", read(f"tests/{folder}/meson.build")))
            for path in (ROOT / "tests" / folder).glob("test_*.py"):
                name = path.stem.removeprefix("test_")
                self.assertTrue(name in listed or f"{folder} {name}" in listed, path)


class Complete(unittest.TestCase):
    def contains_all(self, names):
        names, known = set(names), set(described())
        self.assertTrue(names)
        self.assertEqual(names - known, set())

    def test_every_command(self):
        self.contains_all(re.findall(r"^COMMAND\((\w+),", read("src/control/command_list.h"), re.M))
        self.contains_all(re.findall(r'^COMMAND_V3\(\s*\w+, "([^"]+)",', read("src/control/command_list_v3.h"),
                                     re.M))

    def test_every_option(self):
        options = re.findall(r'is_either\(option, "(-\w+)", "(-[\w-]+)"\)',
                             read("src/cli/mps_control.c"))
        self.assertGreater(len(options), 7)
        self.contains_all(name for pair in options for name in pair)

    def test_every_variable(self):
        """Those of MPS are rows; they and Funnel's own are in environment.md."""
        text = "".join(sources())
        names = set(re.findall(r'"(CUDA_(?:MPS_[A-Z_]+|VISIBLE_DEVICES|DEVICE_MAX_CONNECTIONS))"',
                               text))
        self.assertGreater(len(names), 8)
        for name in names:
            self.assertTrue(any(name in subject for subject in described()), name)
        environment = read("docs/environment.md")
        others = r'"(FUNNEL_[A-Z_]+|CUDA_(?:DEVICE|TASK|DISABLE)_(?!ORDER|MAX)\w+[A-Z]|GPU_[A-Z_]+)"'
        for name in names | set(re.findall(others, text)):
            if name != "CUDA_DEVICE_MAX_CONNECTIONS":  # which no program of Funnel reads
                self.assertIn(f"`{name}`", environment)

    def test_every_code(self):
        codes = re.findall(r"(CUDA_ERROR_MPS_\w+) = (\d+)", read("src/cuda/cuda_result.h"))
        self.assertGreater(len(codes), 5)
        self.contains_all(f"{number} {name}" for name, number in codes)


if __name__ == "__main__":
    sys.argv.pop(1) if len(sys.argv) > 1 else None
    unittest.main()
