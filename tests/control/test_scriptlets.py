# SPDX-License-Identifier: Apache-2.0
"""What the packages run when they are installed, upgraded and removed. The tool dpkg runs the
scripts of packaging/debian in packages that are made of them, and a shell those of packaging/rpm.
Here systemctl is one that records how it is called, and whose reload runs `funnel reload`, as the
unit says."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import harness
from harness import alive

PACKAGING = pathlib.Path(__file__).resolve().parent.parent.parent / "packaging"
SYSTEMCTL = """#!/bin/sh
echo "$*" >>{root}/calls
case "$*" in
*is-active*) test -e {root}/active ;;
"reload funnel.service") test ! -e {root}/broken && exec {root}/bin/funnel reload ;;
esac
"""
FUNNEL = '#!/bin/sh\necho "funnel $*" >>{root}/calls\n'
# Where no systemd runs, a mount namespace has the folder by which the scripts know it.
SYSTEMD = 'test -d /run/systemd/system || { mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system; }; exec "$@"'
NAMESPACE = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]


def can_pretend():
    return shutil.which("unshare") and not subprocess.run(
        [*NAMESPACE, "sh", "-c", SYSTEMD, "sh", "true"], stderr=subprocess.DEVNULL, check=False).returncode


@unittest.skipUnless(can_pretend(), "namespaces are not allowed here")
class TestCase(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.fakes = os.path.join(self.root, "fakes")
        os.mkdir(self.fakes)
        for name, text in (("systemctl", SYSTEMCTL), ("funnel", FUNNEL)):
            path = pathlib.Path(self.fakes, name)
            path.write_text(text.replace("{root}", self.root))
            path.chmod(0o755)

    def set(self, state, holds=True):
        path = pathlib.Path(self.root, state)
        path.touch() if holds else path.unlink(missing_ok=True)

    def run_with_fakes(self, *command):
        """What it prints, and the calls of systemctl and funnel."""
        calls = pathlib.Path(self.root, "calls")
        calls.write_text("")
        done = subprocess.run([*NAMESPACE, "sh", "-c", SYSTEMD, "sh", *command], text=True, timeout=harness.TIMEOUT,
                              env={**self.environment, "PATH": f"{self.fakes}:/usr/sbin:/usr/bin:/sbin:/bin"},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout, [call for call in calls.read_text().splitlines() if "is-active" not in call]

    def start_with_program(self):
        self.start()
        client = self.client()
        self.assertEqual(client.welcome(), (0, ""))
        return self.daemon_pid(), self.servers()

    def reloads(self):
        return self.control_log().count("Reload: the daemon becomes ")


@unittest.skipUnless(shutil.which("dpkg") and shutil.which("dpkg-deb"), "there is no dpkg on this machine")
class Debian(TestCase):
    def package(self, version):
        folder = pathlib.Path(self.root, "funnel-" + version)
        control = folder / "DEBIAN"
        control.mkdir(parents=True)
        (control / "control").write_text(f"Package: funnel\nVersion: {version}\nArchitecture: all\nMaintainer: us\n"
                                         "Description: scripts of the package\n")
        for script in "postinst", "prerm":
            text = (PACKAGING / f"debian/funnel.{script}").read_text()
            self.assertIn("#DEBHELPER#\n", text)
            (control / script).write_text(text)
            (control / script).chmod(0o755)
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", folder, f"{folder}.deb"], check=True,
                       stdout=subprocess.DEVNULL)
        return f"{folder}.deb"

    def dpkg(self, *arguments):
        system = pathlib.Path(self.root, "system")
        (system / "var/lib/dpkg/info").mkdir(parents=True, exist_ok=True)
        (system / "var/lib/dpkg/updates").mkdir(exist_ok=True)
        (system / "var/lib/dpkg/status").touch()
        return self.run_with_fakes("dpkg", f"--root={system}", f"--log={self.root}/dpkg.log",
                                   "--force-script-chrootless,not-root,bad-path", *arguments)

    def test_life_of_a_package(self):
        before = self.start_with_program()
        self.set("active")
        self.assertEqual(self.dpkg("-i", self.package("1"))[1], [])
        self.assertEqual(self.dpkg("-i", self.package("2"))[1], ["daemon-reload", "reload funnel.service"])
        self.assertEqual(self.reloads(), 1)
        self.set("active", False)
        self.assertEqual(self.dpkg("-i", self.package("3"))[1], [])
        self.set("active")
        self.set("broken")
        text, calls = self.dpkg("-i", self.package("4"))
        self.assertEqual(calls, ["daemon-reload", "reload funnel.service"])
        self.assertIn("funnel: the daemon of the earlier release goes on; systemctl status funnel says why\n", text)
        self.assertEqual(self.dpkg("--remove", "funnel")[1], ["funnel divert --system --undo"])
        self.assertEqual(self.reloads(), 1)
        self.assertEqual((self.daemon_pid(), self.servers()), before)
        self.assertTrue(alive(before[0]))


class Rpm(TestCase):
    def scriptlet(self, name, count):
        spec = re.sub(r"^%systemd_\w+ .*\n", "", (PACKAGING / "rpm/funnel.spec").read_text(), flags=re.M)
        text = re.search(rf"^%{name}\n(.*?)(?=^%)", spec, re.M | re.S).group(1).replace("%{_bindir}/", "")
        self.assertNotIn("%", text)
        return self.run_with_fakes("sh", "-ec", text, "sh", str(count))[1]

    def test_life_of_a_package(self):
        before = self.start_with_program()
        self.assertEqual(self.scriptlet("posttrans", 1), [])
        self.set("active")
        self.assertEqual(self.scriptlet("posttrans", 2), ["daemon-reload", "reload funnel.service"])
        self.assertEqual(self.reloads(), 1)
        self.set("broken")
        self.assertEqual(self.scriptlet("posttrans", 2), ["daemon-reload", "reload funnel.service"])
        self.assertEqual(self.scriptlet("preun", 1), [])
        self.assertEqual(self.scriptlet("preun", 0), ["funnel divert --system --undo"])
        self.assertEqual((self.daemon_pid(), self.servers(), self.reloads()), (*before, 1))


if __name__ == "__main__":
    harness.main()
