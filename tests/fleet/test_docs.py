# SPDX-License-Identifier: Apache-2.0
"""The commands in the documents by task: blocks that are marked `sh test` run, on the software GPU; in
all others each file exists. Each command of Funnel on any page exists, and has the options that are
shown: test_docs.py BUILD."""
import fnmatch
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else ROOT / "build"
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]
import guardian  # noqa: E402  (found through the path above)
import performance_page  # noqa: E402

FOLDERS = ["api", "bench", "docs", "examples", "packaging", "src", "tests", "tools"]
PAGES = ["containers", "kubernetes", "slurm-mpi", "moving-from-mps", "troubleshooting", "upgrading",
         "monitoring"]


def text_of(page):
    return (ROOT / "docs" / f"{page}.md").read_text()


def shown(page):
    return shown_in(text_of(page))


def shown_in(text):
    """Each command line that the text shows, in blocks and in words."""
    lines = re.findall(r"^    (\S.*)$", text, re.M)
    for block in re.findall(r"^```.*?\n(.*?)^```", text, re.M | re.S):
        lines += block.splitlines()
    return lines + re.findall(r"`([^`]+)`", text)


@functools.cache
def help_of(name):
    return subprocess.run([BUILD / "bin/funnel", "help", name], stdout=subprocess.PIPE, text=True,
                          timeout=60)


def options_in(text):
    return set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text))


class Commands(unittest.TestCase):
    def test_funnel(self):
        """`funnel X --option` on any page has a command X with that option."""
        seen = set()
        for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
            for line in shown_in(path.read_text()):
                for words in re.findall(r"(?:^|[;&|(] *|bin/|\$ )funnel ((?!-)[a-z]+(?: [^;&|#]*)?)", line):
                    name, _, rest = words.partition(" ")
                    if name in ("help", "version"):
                        continue
                    done = help_of(name)
                    where = f"{path.name}: {line}"
                    self.assertEqual(done.returncode, 0, where)
                    known = options_in(done.stdout) | {"--help"}
                    self.assertEqual(options_in(re.split(" -- | *>", rest)[0]) - known, set(), where)
                    seen.add(name)
        self.assertGreater(len(seen), 15)

    def test_help_and_parsers(self):
        """Each option that a parser takes is in the help of its commands, and the other way around."""
        seen = 0
        for path in [*(ROOT / "src/cli").rglob("*.c"), ROOT / "src/funneld/main.c"]:
            text = path.read_text()
            taken = set(re.findall(r'\{"([a-z-]+)",\s*(?:no|required|optional)_argument', text))
            helps = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text[text.find('"Usage: '):]))
            helps = helps.replace("\\n", "\n")
            told = set(re.findall(r"(?m)^ +(?:-\w, )?--([a-z-]+)", helps))
            for usage in re.findall(r"Usage: (?:.+\n)+", helps):
                told |= set(re.findall(r"--([a-z-]+)", usage))
            if not taken:
                continue
            where = str(path.relative_to(ROOT))
            self.assertEqual(taken - set(re.findall(r"--([a-z-]+)", helps)), set(), where)
            self.assertEqual(told - taken, set(), where)
            seen += len(taken)
        self.assertGreater(seen, 50)

    def test_make(self):
        targets = (ROOT / "Makefile").read_text()
        for page in PAGES:
            for target in re.findall(r"^make ([a-z-]+)", "\n".join(shown(page)), re.M):
                self.assertRegex(targets, rf"(?m)^{target}:", page)

    def test_files(self):
        for page in PAGES:
            for name in re.findall(r"\b((?:packaging|tests)/[\w./-]+)", text_of(page)):
                self.assertTrue((ROOT / name).exists(), f"{page}: {name}")
            for name in re.findall(r"\]\(([\w./-]+)", text_of(page)):
                self.assertTrue((ROOT / "docs" / name).exists(), f"{page}: {name}")

    def test_checklist(self):
        """Tests that a page names by file.name."""
        for page in PAGES:
            for name in re.findall(r"`checklist\.(\w+)`", text_of(page)):
                self.assertIn(f"def test_{name}(",
                              (ROOT / "tests/control/test_checklist.py").read_text())


class Coverage(unittest.TestCase):
    def test_calls_that_are_not_there(self):
        """Each call that returns CUDA_ERROR_NOT_SUPPORTED has a row in differences.md that says why."""
        missing = re.findall(r"(?m)^\| `(\w+)`[^|]*\| unsupported \|", text_of("api-coverage"))
        table = text_of("differences").split("## Calls that are not there")[1].split("\n## ")[0]
        patterns = [pattern for row in re.findall(r"(?m)^\| (`.*?) \|", table)
                    for pattern in re.findall(r"`(cu[\w*]+)`", row)]
        unexplained = [name for name in missing
                       if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]
        self.assertEqual(unexplained, [])
        self.assertGreater(len(missing), 50)


def anchors(page):
    """The names by which links reach the headings of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


class Links(unittest.TestCase):
    def all_links(self):
        """(page, target) of each link in each page of the tree."""
        pages = [page for folder in FOLDERS for page in sorted((ROOT / folder).rglob("*.md"))]
        for page in [*ROOT.glob("*.md"), *pages]:
            text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                if not re.match(r"[a-z]+:", target):
                    yield page, target

    def test_files_and_headings(self):
        """Links inside of the tree lead to files, and to headings that these have."""
        broken, seen = [], 0
        for page, target in self.all_links():
            name, _, anchor = target.partition("#")
            file = page.parent / name if name else page
            if not file.exists() or (anchor and anchor not in anchors(file)):
                broken.append(f"{page.relative_to(ROOT)}: {target}")
            seen += 1
        self.assertEqual(broken, [])
        self.assertGreater(seen, 100)

    def test_pages_in_code(self):
        """Comments and messages name pages that are there."""
        for folder in FOLDERS:
            for path in (ROOT / folder).rglob("*"):
                if path.suffix in (".c", ".h", ".py", ".build", ".api"):
                    for name in re.findall(r"\bdocs/[a-z0-9/-]+\.md", path.read_text()):
                        self.assertTrue((ROOT / name).exists(), f"{path}: {name}")


class Release(unittest.TestCase):
    def test_one_version(self):
        """The build, the packages and CHANGELOG.md name the same last release."""
        found = {name: re.search(pattern, (ROOT / name).read_text(), re.M).group(1) for name, pattern in (
            ("meson.build", r"^  version: '(.*?)'"), ("CHANGELOG.md", r"^## (\d\S*)"),
            ("packaging/debian/changelog", r"^funnel \((.*?)\)"),
            ("packaging/rpm/funnel.spec", r"^Version: +(\S+)"))}
        self.assertEqual(len(set(found.values())), 1, found)


class Performance(unittest.TestCase):
    def setUp(self):
        self.data = json.loads(performance_page.DATA.read_text())

    def test_pages_are_what_the_records_give(self):
        self.assertEqual(performance_page.check(self.data), [])

    def test_a_changed_figure_is_noticed(self):
        self.data["cards"][0]["rows"][0]["funnel"] *= 2
        self.assertIn("docs/performance.md is not", "\n".join(performance_page.check(self.data)))

    def test_a_short_row_needs_its_reason(self):
        row = next(row for row in self.data["cards"][0]["rows"] if row["row"] == "wake")
        row.update(funnel=1000, met=False)
        self.assertEqual(len(list(performance_page.unexplained(self.data))), 1)

    def test_a_new_run_replaces_its_rows(self):
        """Runs without rows that are left are dropped; other rows keep theirs."""
        card = self.data["cards"][0]
        figures = {mode: {"median": 12.34567, "min": 12, "max": 13} for mode in performance_page.MODES}
        new = [{"row": row["row"], "figure": row["figure"], "clients": row["clients"], "modes": figures,
                "met": None} for row in card["rows"] if row["run"] == card["runs"][0]["run"]]
        about = {"device": card["card"] + ", 999.1", "host": "4 CPUs", "date": "2030-01-01",
                 "command": "bench/run.py", "repeat": 2}
        count, gone = len(card["rows"]), card["runs"][0]["run"]
        performance_page.record(self.data, {"about": about, "rows": new}, "newest")
        self.assertEqual(len(card["rows"]), count)
        self.assertNotIn(gone, [run["run"] for run in card["runs"]])
        self.assertEqual([row["funnel"] for row in card["rows"] if row["run"] == "newest"],
                         [12.35] * len(new))


class Manifests(unittest.TestCase):
    def test_kubernetes(self):
        """They are YAML, and mount what they name."""
        try:
            import yaml
        except ImportError:
            self.skipTest("there is no PyYAML on this machine")
        for path in (ROOT / "packaging/kubernetes").glob("*.yaml"):
            text = yaml.safe_load(path.read_text())
            pod = text["spec"] if text["kind"] == "Pod" else text["spec"]["template"]["spec"]
            volumes = {volume["name"] for volume in pod["volumes"]}
            for container in pod["containers"] + pod.get("initContainers", []):
                for mount in container["volumeMounts"]:
                    self.assertIn(mount["name"], volumes, path.name)


class Blocks(unittest.TestCase):
    def run_block(self, page, block):
        folder = tempfile.mkdtemp(prefix="fnl-", dir="/tmp")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        clean = guardian.without(os.environ, "CUDA_", "FUNNEL_", "LD_", "XDG_")
        program = pathlib.Path(folder) / "program"
        program.write_text(f"#!/bin/sh\nexec {BUILD}/examples/vector_add -n 1000 -r 2\n")
        program.chmod(0o755)
        done = subprocess.run(["sh", "-eu", "-c", block], cwd=folder, env={
            **clean, "HOME": folder, "FUNNEL_DEVICE": "soft", "PATH": f"{BUILD}/bin:" + clean["PATH"],
            "CUDA_MPS_PIPE_DIRECTORY": folder + "/pipe"}, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, f"{page}:\n{block}\n{done.stdout}")
        return done.stdout

    def test_blocks(self):
        seen = {}
        for page in PAGES:
            for block in re.findall(r"^```sh test\n(.*?)^```", text_of(page), re.M | re.S):
                seen[page] = seen.get(page, "") + self.run_block(page, block)
        self.assertIn("correct", seen["moving-from-mps"])
        self.assertIn("50.0", seen["moving-from-mps"])
        self.assertIn("805", seen["troubleshooting"])


if __name__ == "__main__":
    guardian.protect()
    unittest.main()
