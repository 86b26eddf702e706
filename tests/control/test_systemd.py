# SPDX-License-Identifier: Apache-2.0
"""The units of packaging/systemd, as they are installed: systemd understands every line, and they
run this build."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else ""
UNITS = pathlib.Path(BUILD) / "packaging"
README = pathlib.Path(__file__).resolve().parent.parent.parent / "packaging/systemd/README.md"


@unittest.skipUnless(shutil.which("systemd-analyze"), "there is no systemd-analyze on this machine")
class Units(unittest.TestCase):
    def problems(self, name, change=lambda text: text):
        """What systemd says of the unit, with the programs of this build."""
        with tempfile.TemporaryDirectory() as folder:
            text = re.sub(r"/[\w/]+/bin/(?=funnel)", os.path.join(BUILD, "bin/"),
                          (UNITS / name).read_text())
            unit = os.path.join(folder, name)
            pathlib.Path(unit).write_text(change(text))
            scope = ["--user"] if name.endswith("-user.service") else ["--system"]
            done = subprocess.run(["systemd-analyze", *scope, "--man=no", "verify", unit], text=True,
                                  timeout=60, env={**os.environ, "XDG_RUNTIME_DIR": folder},
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        about_this = [line for line in done.stdout.splitlines() if name in line]
        return about_this or ([done.stdout] if done.returncode else [])

    def test_each(self):
        names = sorted(path.name for path in UNITS.glob("*.service"))
        self.assertEqual(names, ["funnel-user.service", "funnel.service"])
        for name in names:
            self.assertEqual(self.problems(name), [], name)

    def test_a_mistake_is_found(self):
        self.assertTrue(self.problems("funnel.service",
                                        lambda text: text.replace("Restart=", "Restrat=")))
        self.assertTrue(self.problems("funnel.service",
                                        lambda text: text.replace("bin/funneld", "bin/x")))


class Words(unittest.TestCase):
    def test_programs(self):
        """The units call programs that an installation has."""
        for path in UNITS.glob("*.service"):
            for program in re.findall(r"=-?/[\w/]+/bin/([\w-]+)", path.read_text()):
                self.assertTrue(os.path.exists(os.path.join(BUILD, "bin", program)), program)

    def test_servers_outlive_the_daemon(self):
        """systemd would end them, and remove the directory by which the next daemon finds them."""
        for path in UNITS.glob("*.service"):
            self.assertIn("\nKillMode=process\n", path.read_text(), path.name)
        self.assertIn("\nRuntimeDirectoryPreserve=restart\n", (UNITS / "funnel.service").read_text())

    def test_a_reload_keeps_programs(self):
        for path in UNITS.glob("*.service"):
            self.assertRegex(path.read_text(), r"\nExecReload=/[\w/]+/bin/funnel reload\n", path.name)

    def test_readme_names_them(self):
        text = README.read_text()
        for path in UNITS.glob("*.service"):
            self.assertIn(path.name + ".in", text)


if __name__ == "__main__":
    unittest.main()
