#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the tree to docs/design/folders.md: tests/architecture.py [BUILD].

The table of folders there is what the code is checked against, so the two cannot drift apart.
With a build folder, the libraries that each final program links are checked too. The sentences of
the documents and comments keep to the rule of tests/prose.py.
"""

import pathlib
import re
import subprocess
import sys

import prose

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/design/folders.md"
# Pages whose names of files and functions are checked.
PAGES = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs/design").glob("*.md"))]
# The page whose cases of tests are checked.
ATTACKS = ROOT / "docs/attacks.md"
MOST_LINES = 800

# What a folder may use besides our own, and how its headers begin.
LIBRARIES = {"libevent": "event2/", "libzstd": "zstd.h", "liblz4": "lz4.h", "jansson": "jansson.h",
             "libedit": "editline/", "ncurses": "ncurses.h"}

# The folders whose library each final program is made of.
PROGRAMS = {"bin/funneld": "funneld", "bin/funnel": "cli", "bin/nvidia-cuda-mps-control": "cli",
            "bin/funnel-server": "server", "lib/funnel/libcuda.so.1": "client",
            "lib/funnel/softgpu/libcuda.so.1": "softgpu/device",
            "lib/funnel/nvml/libnvidia-ml.so.1": "nvml"}

# What the server defines in libc's place, except under sanitizers, which define a lock of their own.
IN_PLACE_OF_LIBC = {"ioctl", "pthread_mutex_lock"}

# api/generated/X belongs to src/X, with exceptions.
GENERATED_FOR = {"graph": "graph/model", "softgpu": "softgpu/device/core", "client": "client/core",
                 "server": "server/core"}

WRITTEN = {".c", ".h", ".cu", ".cuh", ".def", ".py", ".api", ".sh", ".md", ".build"}
FOLDERS = ["api", "bench", "bin", "docs", "examples", "lib", "packaging", "src", "tests", "tools"]
# Inputs that must be wrong or tiny, and what the generator made.
NO_LICENCE = ["tests/apigen/refused"]
NO_LIMIT = ["tests/apigen/golden", "docs/api-coverage.md", "docs/protocol.md"]


class Folders:
    """The folders that each folder of src/ may use, as the table says."""

    def __init__(self, page):
        self.uses = {}
        for folders, uses in re.findall(r"^\| (`src/.*?) \|.*\| (.*?) \|$", page, re.M):
            words = [word.strip() for word in re.split("[,;]", uses)]
            for folder in re.findall(r"`src/(.*?)/`", folders):
                self.uses[folder] = [word for word in words if word not in ("-", "libc")]

    def reach(self, folder):
        """The folder, and all that it uses directly or through others."""
        found, left = set(), [folder]
        while left:
            name = left.pop()
            if name not in found:
                found.add(name)
                left += self.uses.get(name, [])
        return found


def headers():
    """Each header's name and the folders that have one: our own, and generated ones."""
    owners = {}
    for path in (ROOT / "src").rglob("*"):
        if path.suffix in (".h", ".def"):
            owners.setdefault(path.name, []).append(str(path.parent.relative_to(ROOT / "src")))
    for build in (ROOT / "api/generated").glob("*/meson.build"):
        folder = GENERATED_FOR.get(build.parent.name, build.parent.name)
        for name in set(re.findall(r"'(\w+\.h)'", build.read_text())):
            owners.setdefault(name, []).append(folder)
    return owners


def sources():
    return sorted(path for path in (ROOT / "src").rglob("*") if path.suffix in (".c", ".h", ".def"))


def folder_errors(table):
    folders = {str(path.parent.relative_to(ROOT / "src")) for path in sources()}
    for folder in sorted(folders - set(table.uses)):
        yield f"src/{folder}: has no row in {PAGE.name}"
    for folder in sorted(set(table.uses) - folders):
        yield f"{PAGE.name}: there is no src/{folder}/"
    for folder, uses in table.uses.items():
        for name in uses:
            if name not in folders and name not in LIBRARIES:
                yield (f"{PAGE.name}: src/{folder}/ may use '{name}', "
                       "which is no folder and no library")


def include_errors(table):
    owners = headers()
    for path in sources():
        folder = str(path.parent.relative_to(ROOT / "src"))
        allowed = table.reach(folder)
        text = path.read_text()
        where = path.relative_to(ROOT)
        for name in re.findall(r'^\s*#\s*include "(.*?)"', text, re.M):
            homes = owners.get(name, [])
            if folder not in homes and not allowed.intersection(homes):
                yield (f"{where}: '{name}' belongs to {' and '.join(homes) or 'no folder'}, "
                       f"not to what {folder} may use")
        for name in re.findall(r"^\s*#\s*include <(.*?)>", text, re.M):
            for library, start in LIBRARIES.items():
                if name.startswith(start) and library not in table.uses[folder]:
                    yield f"{where}: <{name}> is {library}'s, which {folder} may not use"


def name_errors():
    """The generated tables of entry points are there once for each driver library."""
    for name, folders in sorted(headers().items()):
        if len(folders) > 1 and name != "entry_points.h":
            yield f"src: {name} is there twice, in {' and '.join(sorted(folders))}"


def written_files():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in WRITTEN and path.is_file():
                yield path, str(path.relative_to(ROOT))


def file_errors():
    for path, name in written_files():
        lines = path.read_text().splitlines()
        licensed = any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:2])
        if not licensed and not name.startswith(tuple(NO_LICENCE)):
            yield f"{name}: the first line is not its SPDX line"
        if len(lines) > MOST_LINES and not name.startswith(tuple(NO_LIMIT)):
            yield f"{name}: {len(lines)} lines; a file of more than {MOST_LINES} has two ideas"


def page_errors(name, page):
    """What a page names is there: files of src, and functions by their full names."""
    everything = "\n".join(path.read_text() for path in sources())
    generated = "\n".join(path.read_text() for path in (ROOT / "tools/apigen").glob("*.py"))
    files = {path.name for path in sources()}
    for word in re.findall(r"`([\w./]+)`", page):
        if word.startswith(("src/", "tools/", "api/", "tests/", "docs/")) and not (ROOT / word).exists():
            yield f"{name}: there is no {word}"
        elif re.fullmatch(r"\w\w+\.[ch]", word) and word not in files and word not in generated:
            yield f"{name}: there is no {word}"
        elif re.match(r"(client|serve|soft)_cu[A-Z]\w", word) and word + "(" not in everything:
            yield f"{name}: there is no {word}"


def test_sources(name):
    """The text of the files of a test. "control users" is test_users.py, and "image names" is
    test_image_names.c."""
    stem = name.split()[-1]
    stems = (stem, "test_" + stem, "test_" + name.replace(" ", "_"))
    paths = [path for found in stems for path in (ROOT / "tests").rglob(found + ".*")]
    return "\n".join(path.read_text() for path in paths if path.suffix in (".c", ".py"))


def case_errors(name, page):
    """The cases that a page names behind their test are there: `suite test`: case, case."""
    for test, cases in re.findall(r"`(\w+ [\w ]+)`: ([\w, ]+)", page):
        text = test_sources(test)
        for case in re.findall(r"\w+_\w+", cases):
            if not re.search(rf"(def |void )(test_)?{case}\(", text):
                yield f"{name}: `{test}` has no {case}"


def link_errors(table, build):
    """What goes into each program. funneld, above all, must not hold what loads a driver."""
    rules = dict(re.findall(r"^build (\S+): c_LINKER\S* (.*)$", (build / "build.ninja").read_text(),
                            re.M))
    for program, folder in PROGRAMS.items():
        if program not in rules:
            yield f"{build}: {program} is not built"
            continue
        for linked in sorted(set(re.findall(r"src/(\S+)/lib\w+\.a", rules[program]))):
            if linked not in table.reach(folder):
                yield f"{program}: links src/{linked}, which {folder} may not use"


def export_errors(build):
    """A driver finds what the server defines in libc's place only where the program exports it."""
    program = build / "bin/funnel-server"
    exported = subprocess.check_output(["nm", "--dynamic", "--defined-only", program], text=True)
    names = {line.split()[-1] for line in exported.splitlines()}
    return [f"{program}: {name} is not exported" for name in IN_PLACE_OF_LIBC - names]


def main():
    page = PAGE.read_text()
    table = Folders(page)
    errors = list(folder_errors(table))
    if not errors:
        errors += include_errors(table)
    errors += [*name_errors(), *file_errors()]
    for path in PAGES:
        errors += page_errors(path.relative_to(ROOT), path.read_text())
    errors += case_errors(ATTACKS.relative_to(ROOT), ATTACKS.read_text())
    errors += prose.all_errors()
    if len(sys.argv) > 1:
        build = pathlib.Path(sys.argv[1])
        errors += [*link_errors(table, build), *export_errors(build)]
    print("\n".join(errors) or f"{len(table.uses)} folders keep to {PAGE.name}.")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
