# SPDX-License-Identifier: Apache-2.0
"""An installation of this build: which files it has, whose names it leaves alone, and that `make
uninstall` takes all of it away. Also what is made from the programs' help: test_install.py
BUILD."""
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
MESON = subprocess.run([ROOT / "tools/setup", "--meson"], stdout=subprocess.PIPE, text=True,
                       check=True).stdout.strip()
LOG = BUILD / "meson-logs/install-log.txt"


def run(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=100, **options)


def commands():
    text = run(BUILD / "bin/funnel", "help").stdout
    return re.findall(r"^  ([a-z-]+) +", text, re.M)


class Installation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="funnel-install-"))
        log = LOG.read_text() if LOG.exists() else None
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        if log:
            cls.addClassCleanup(LOG.write_text, log)
        cls.done = run(MESON, "install", "-C", str(BUILD), "--no-rebuild", "--destdir",
                       str(cls.folder))
        cls.files = {str(path.relative_to(cls.folder)): path for path in cls.folder.rglob("*")
                     if not path.is_dir() or path.is_symlink()}

    def test_1_names(self):
        self.assertEqual(self.done.returncode, 0, self.done.stdout)
        for end in ("bin/funnel", "bin/funneld", "bin/funnel-server", "lib/funnel/libcuda.so.1",
                    "lib/funnel/bin/nvidia-cuda-mps-control", "lib/funnel/softgpu/libcuda.so.1",
                    "lib/funnel/nvml/libnvidia-ml.so.1", "lib/funnel/cupti12/libcupti.so.12",
                    "lib/funnel/cupti13/libcupti.so.13",
                    "lib/systemd/system/funnel.service", "man/man1/funnel.1"):
            self.assertTrue(any(name.endswith("/" + end) for name in self.files), end)
        for name, path in self.files.items():
            if path.name.startswith(("libcuda", "libnvidia-ml")):
                self.assertIn("lib/funnel/", name)
            if path.name.startswith("nvidia") and "usr/bin" in name:
                self.fail(f"{name} is the name of a file of NVIDIA's packages")

    def test_1_licenses(self):
        """The text of each foreign license is installed; both packages have it, too."""
        spec, copyright = ((ROOT / "packaging" / name).read_text()
                           for name in ("rpm/funnel.spec", "debian/copyright"))
        found = list((ROOT / "src").rglob("vendor/*/LICENSE"))
        self.assertTrue(found)
        for license in found:
            name = f"share/doc/funnel/LICENSE.{license.parent.name}"
            installed = [path for file, path in self.files.items() if file.endswith(name)]
            self.assertEqual([path.read_text() for path in installed], [license.read_text()])
            self.assertIn(f"\n%license %{{_docdir}}/funnel/{os.path.basename(name)}\n", spec)
            self.assertIn(f"\nFiles: {license.parent.relative_to(ROOT)}/*\n", copyright)

    def test_2_links_lead_somewhere(self):
        for name, path in self.files.items():
            self.assertTrue(path.exists(), f"{name} points to {path.is_symlink() and os.readlink(path)}")

    def test_3_drop_in_finds_its_daemon(self):
        program = next(path for name, path in self.files.items()
                       if name.endswith("lib/funnel/bin/nvidia-cuda-mps-control"))
        self.assertEqual((program.parent / "funneld").resolve(),
                         (program.parents[3] / "bin/funneld").resolve())

    def test_4_uninstall(self):
        done = run("ninja", "-C", str(BUILD), "uninstall")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual([str(path) for path in self.folder.rglob("*") if not path.is_dir()], [])


@unittest.skipUnless((BUILD / "packaging/funnel.1").exists(), "built without manual pages")
class Made(unittest.TestCase):
    def page(self, name):
        return (BUILD / "packaging" / name).read_text()

    def test_manual_names_each_command(self):
        text = self.page("funnel.1").replace("\\-", "-")
        for name in commands():
            if name not in ("help", "version"):
                self.assertIn(f".SS funnel {name}\n", text)

    def test_manual_has_the_help(self):
        text = self.page("funneld.8").replace("\\-", "-")
        self.assertIn("stay in the foreground", text)
        self.assertNotIn("@help", text)
        self.assertNotIn("@VERSION", text)

    @unittest.skipUnless(shutil.which("man"), "there is no man on this machine")
    def test_roff(self):
        for path in (BUILD / "packaging").glob("*.[158]"):
            done = run("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", path,
                       env={**os.environ, "MANROFFSEQ": "", "LC_ALL": "C.UTF-8"})
            warnings = [line for line in done.stdout.splitlines() if "warning" in line]
            self.assertEqual((done.returncode, warnings), (0, []), path.name)

    def complete(self, *words):
        script = ("source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _funnel; "
                  "printf '%s\\n' \"${COMPREPLY[@]}\"")
        return run("bash", "-c", script, "bash", str(BUILD / "packaging/funnel"), *words,
                   cwd=BUILD).stdout.split()

    def test_bash_completion(self):
        self.assertEqual(sorted(self.complete("funnel", "")), sorted(commands()))
        self.assertEqual(self.complete("funnel", "run", "--dev"), ["--device"])
        self.assertEqual(self.complete("funnel", "run", "--device", ""), ["auto", "cuda", "soft"])
        self.assertIn("equal", self.complete("funnel", "provision", ""))
        self.assertIn("true", self.complete("funnel", "run", "--", "tru"))

    def test_other_shells(self):
        for shell, file in (("zsh", "_funnel"), ("fish", "funnel.fish")):
            text = (BUILD / "packaging" / file).read_text()
            for name in commands():
                self.assertIn(name, text)
            if shutil.which(shell):
                done = run(shell, "-n", BUILD / "packaging" / file)
                self.assertEqual((done.returncode, done.stdout), (0, ""))


class Versions(unittest.TestCase):
    def test_one_version(self):
        project = re.search(r"version: '([\d.]+)'", (ROOT / "meson.build").read_text()).group(1)
        debian = re.search(r"\(([\d.]+)\)", (ROOT / "packaging/debian/changelog").read_text())
        rpm = re.search(r"^Version: +(\S+)", (ROOT / "packaging/rpm/funnel.spec").read_text(), re.M)
        self.assertEqual((debian.group(1), rpm.group(1)), (project, project))


if __name__ == "__main__":
    unittest.main()
