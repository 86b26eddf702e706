# SPDX-License-Identifier: Apache-2.0
"""What the packages run when they are installed, upgraded and removed, with recorders in place of systemctl
and funnel: test_scriptlets.py BUILD. Needs root, for a mount namespace with a /run of its own."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDER = '#!/bin/sh\necho "${0##*/} $*" >>"$RECORD"\n[ ! -e "$RECORD.no-$1$2" ] && [ ! -e "$RECORD.no-$1" ]\n'
# As on a system that systemd has started, with what `funnel enable --system` makes.
NAMESPACE = ("mount -t tmpfs none /run && mkdir -p /run/systemd/system && mount -t tmpfs none /etc/ld.so.conf.d && "
             "touch /etc/ld.so.conf.d/000-funnel.conf && {command}; status=$?; "
             "[ ! -e /etc/ld.so.conf.d/000-funnel.conf ] || echo kept >>\"$RECORD\"; exit $status")
RELOAD = ["systemctl --quiet is-active funnel.service", "systemctl daemon-reload",
          "systemctl reload funnel.service"]


class Scriptlets(unittest.TestCase):
    def setUp(self):
        if os.geteuid() or subprocess.run(["unshare", "--mount", "true"], check=False).returncode:
            self.skipTest("a mount namespace cannot be made here")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fnl-", dir="/tmp"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.record = self.folder / "record"
        (self.folder / "bin").mkdir()
        for name in ("systemctl", "funnel"):
            (self.folder / "bin" / name).write_text(RECORDER)
            (self.folder / "bin" / name).chmod(0o755)

    def fail_at(self, words):
        (self.folder / f"record.no-{words}").touch()

    def run_there(self, command):
        """The commands that were given, and what was said on standard error."""
        self.record.write_text("")
        done = subprocess.run(["unshare", "--mount", "sh", "-c", NAMESPACE.format(command=command)],
                              env={**os.environ, "RECORD": str(self.record), "LC_ALL": "C",
                                   "PATH": f"{self.folder}/bin:{os.environ['PATH']}:/usr/sbin:/sbin"},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return self.record.read_text().splitlines(), done.stderr


@unittest.skipUnless(shutil.which("dpkg-deb"), "dpkg is missing")
class Debian(Scriptlets):
    def setUp(self):
        super().setUp()
        self.root = self.folder / "root"
        for name in ("info", "updates"):
            (self.root / "var/lib/dpkg" / name).mkdir(parents=True)
        (self.root / "var/lib/dpkg/status").touch()

    def package(self, name, version):
        """One of nothing but the scripts, as debhelper leaves them."""
        control = self.folder / f"{name}-{version}/DEBIAN"
        control.mkdir(parents=True)
        (control / "control").write_text(
            f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: none\nDescription: none\n")
        for script in ("postinst", "prerm"):
            source = ROOT / f"packaging/debian/{name}.{script}"
            if source.exists():
                (control / script).write_text(source.read_text().replace("#DEBHELPER#\n", ""))
                (control / script).chmod(0o755)
        path = self.folder / f"{name}-{version}.deb"
        subprocess.run(["dpkg-deb", "-b", "--root-owner-group", control.parent, path], check=True,
                       stdout=subprocess.DEVNULL)
        return path

    def dpkg(self, *words):
        return self.run_there(f"dpkg --root={self.root} --force-script-chrootless --log=/dev/null " +
                              " ".join(map(str, words)))

    def test_a_daemon_is_reloaded(self):
        old, new = self.package("funnel", "1.0"), self.package("funnel", "2.0")
        self.assertEqual(self.dpkg("-i", old)[0], ["kept"])
        self.assertEqual(self.dpkg("-i", new)[0], [*RELOAD, "kept"])
        self.assertEqual(self.dpkg("-r", "funnel")[0], ["funnel divert --system --undo", "kept"])

    def test_a_daemon_that_is_not_there(self):
        self.dpkg("-i", self.package("funnel", "1.0"))
        self.fail_at("--quiet")
        self.assertEqual(self.dpkg("-i", self.package("funnel", "2.0"))[0], [RELOAD[0], "kept"])

    def test_what_fails_stops_no_package(self):
        self.dpkg("-i", self.package("funnel", "1.0"))
        self.fail_at("reload")
        given, said = self.dpkg("-i", self.package("funnel", "2.0"))
        self.assertEqual(given, [*RELOAD, "kept"])
        self.assertIn("the daemon of the earlier release goes on", said)
        self.fail_at("divert")
        self.dpkg("-r", "funnel")

    def test_the_library(self):
        old, new = self.package("libfunnel-cuda", "1.0"), self.package("libfunnel-cuda", "2.0")
        self.assertEqual(self.dpkg("-i", old)[0], ["kept"])
        self.assertEqual(self.dpkg("-i", new)[0], ["kept"])
        self.assertEqual(self.dpkg("-r", "libfunnel-cuda")[0], [])


@unittest.skipUnless(shutil.which("rpmspec"), "rpmspec is missing")
class Rpm(Scriptlets):
    def setUp(self):
        super().setUp()
        spec = subprocess.run(["rpmspec", "--load", ROOT / "tests/fleet/rpm_macros", "--define",
                               f"_bindir {self.folder}/bin", "-P", ROOT / "packaging/rpm/funnel.spec"],
                              stdout=subprocess.PIPE, text=True, check=True).stdout
        self.parts = dict(re.findall(r"^(%\w+(?: -n \S+)?)\n((?:(?!%).*\n)*)", spec, re.M))

    def run_part(self, name, left):
        """`left` = how many releases of the package there are afterwards."""
        script = self.folder / "part"
        script.write_text(self.parts[name])
        return self.run_there(f"sh {script} {left}")[0]

    def test_a_daemon_is_reloaded(self):
        self.assertEqual(self.run_part("%posttrans", 2), [*RELOAD, "kept"])
        self.fail_at("reload")
        self.run_part("%posttrans", 2)
        self.fail_at("--quiet")
        self.assertEqual(self.run_part("%posttrans", 1), [RELOAD[0], "kept"])

    def test_the_end(self):
        undo = "funnel divert --system --undo"
        self.assertNotIn(undo, self.run_part("%preun", 1))
        self.assertIn(undo, self.run_part("%preun", 0))
        self.fail_at("divert")
        self.run_part("%preun", 0)

    def test_the_library(self):
        self.assertEqual(self.run_part("%preun -n libfunnel-cuda", 1), ["kept"])
        self.assertEqual(self.run_part("%preun -n libfunnel-cuda", 0), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
