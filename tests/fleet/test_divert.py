# SPDX-License-Identifier: Apache-2.0
"""`funnel divert --system`: what it puts into a system below another root, and that NVIDIA's files
are never lost. All is as it was when it is undone: test_divert.py BUILD."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import guardian  # noqa: E402  (found through the path above)

BUILD = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else pathlib.Path("build")
CONTROL, SERVER = "nvidia-cuda-mps-control", "nvidia-cuda-mps-server"
NOBODY = 65534


class Divert(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="fnl-", dir="/tmp"))
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        self.root.chmod(0o755)
        self.bin = self.root / "usr/bin"
        self.bin.mkdir(parents=True)
        for name in (CONTROL, SERVER):
            self.write(name, f"#!/bin/sh\necho NVIDIA {name}\n")
        own = self.root / str(BUILD / "bin").lstrip("/")  # as if Funnel were installed there
        own.parent.mkdir(parents=True)
        own.symlink_to(BUILD / "bin")

    def write(self, name, text):
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o751)

    def funnel(self, *arguments, status=0, **options):
        done = subprocess.run([BUILD / "bin/funnel", "divert", *arguments], timeout=60, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def divert(self, *arguments, **options):
        return self.funnel("--system", "--root", str(self.root), *arguments, **options)

    def files(self):
        return {path.name: (path.read_text(), path.stat().st_mode) for path in self.bin.iterdir()}

    def run_program(self, name, *arguments, **environment):
        return subprocess.run([self.bin / name, *arguments], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, **environment}, timeout=60).stdout

    def test_there_and_back(self):
        before = self.files()
        text = self.divert()
        self.assertIn(f"{self.bin}/{CONTROL} is Funnel's now, and NVIDIA's is "
                      f"{self.bin}/{CONTROL}.nvidia", text)
        there = self.files()
        self.assertEqual(there[CONTROL + ".nvidia"], before[CONTROL])
        self.assertEqual(there[SERVER], before[SERVER])
        self.assertGreaterEqual(int(self.run_program(CONTROL, "-v")), 13010)
        self.assertIn("is Funnel's already", self.divert())
        self.assertEqual(self.files(), there)
        self.assertIn("is NVIDIA's again", self.divert("--undo"))
        self.assertEqual(self.files(), before)
        self.assertIn("was not diverted", self.divert("--undo"))
        self.assertEqual(self.files(), before)

    def test_the_server_too(self):
        before = self.files()
        self.divert("--server")
        self.assertEqual(sorted(self.files()), [CONTROL, CONTROL + ".nvidia", SERVER,
                                                SERVER + ".nvidia"])
        own = subprocess.run([BUILD / "bin" / SERVER, "-v"], stdout=subprocess.PIPE, text=True,
                             timeout=60).stdout
        self.assertTrue(own)
        self.assertEqual(self.run_program(SERVER, "-v"), own)
        self.divert("--undo")
        self.assertEqual(self.files(), before)

    def test_where_there_is_none_of_nvidias(self):
        (self.bin / CONTROL).unlink()
        self.assertIn("NVIDIA's was not there", self.divert())
        self.assertIn("is gone", self.divert("--undo"))
        self.assertEqual(list(self.files()), [SERVER])

    def test_links_are_kept(self):
        """Debian's alternatives make the program a link."""
        target = self.bin / "nvidia-alternative"
        (self.bin / CONTROL).rename(target)
        (self.bin / CONTROL).symlink_to("nvidia-alternative")
        text = target.read_text()
        self.divert()
        self.assertEqual(target.read_text(), text)
        self.divert("--undo")
        self.assertEqual(os.readlink(self.bin / CONTROL), "nvidia-alternative")

    def test_no_file_is_lost(self):
        """NVIDIA's installer has put a newer program there meanwhile, or ours has gone."""
        self.divert()
        self.write(CONTROL, "newer")
        before = self.files()
        for arguments in ((), ("--undo",)):
            self.assertIn("both exist", self.divert(*arguments, status=1))
            self.assertEqual(self.files(), before)
        (self.bin / CONTROL).unlink()
        self.divert("--undo")
        self.assertIn("NVIDIA", self.run_program(CONTROL))

    def test_an_installation_that_has_moved(self):
        self.divert()
        there = self.files()[CONTROL][0]
        self.write(CONTROL, there.replace(str(BUILD), "/opt/older"))
        self.divert()
        self.assertEqual(self.files()[CONTROL][0], there)
        self.assertIn("NVIDIA", self.run_program(CONTROL + ".nvidia"))

    def test_without_funnel_in_that_system(self):
        before = self.files()
        (self.root / str(BUILD / "bin").lstrip("/")).unlink()
        self.assertIn("install Funnel there first", self.divert(status=1))
        self.assertEqual(self.files(), before)

    def test_wrong_arguments(self):
        before = self.files()
        for arguments, message in (([], "give --system"), (["--system", "x"], "takes no argument"),
                                   (["--system", "--root", "/nonexistent"], "No such file"),
                                   (["--sistem"], "unknown option")):
            self.assertIn(message, self.funnel(*arguments, status=2))
        self.assertEqual(self.files(), before)

    @unittest.skipIf(os.geteuid(), "needs root, to become another user")
    def test_without_permission(self):
        before = self.files()
        for arguments in ((), ("--undo",)):
            text = self.divert(*arguments, status=0 if arguments else 1, user=NOBODY, group=NOBODY)
            self.assertIn("was not diverted" if arguments else "this takes root's rights", text)
        self.divert()
        there = self.files()
        self.assertIn("this takes root's rights", self.divert("--undo", status=1, user=NOBODY,
                                                              group=NOBODY))
        self.assertEqual(self.files(), there)
        self.divert("--undo")
        self.assertEqual(self.files(), before)

    @unittest.skipUnless(shutil.which("dpkg-divert"), "dpkg-divert is not there")
    def test_upgrades_by_dpkg(self):
        """What a package brings goes where dpkg-divert says."""
        database = self.root / "var/lib/dpkg"
        for folder in ("info", "updates"):
            (database / folder).mkdir(parents=True)
        (database / "status").write_text("")
        before = self.files()

        def place():
            return subprocess.run(["dpkg-divert", "--root", self.root, "--truename",
                                   f"/usr/bin/{CONTROL}"], stdout=subprocess.PIPE, text=True,
                                  timeout=60).stdout.strip()

        self.divert()
        self.divert()
        self.assertEqual(place(), f"/usr/bin/{CONTROL}.nvidia")
        self.assertEqual(self.files()[CONTROL + ".nvidia"], before[CONTROL])
        self.write(CONTROL + ".nvidia", "newer")
        self.divert("--undo")
        self.assertEqual(place(), f"/usr/bin/{CONTROL}")
        self.assertEqual(self.files()[CONTROL][0], "newer")
        self.assertNotIn(CONTROL + ".nvidia", self.files())

    def test_the_resource_driver_starts_the_daemon(self):
        """The commands of its pod, with the directories that it mounts. Programs find the daemon
        there, and its log is where the pod reads it."""
        self.divert()
        pipe, log = self.root / "tmp/nvidia-mps", self.root / "var/log/nvidia-mps"
        text = (self.bin / CONTROL).read_text()
        self.assertIn(":-/tmp/nvidia-mps}", text)
        self.assertIn(":-/var/log/nvidia-mps}", text)
        self.write(CONTROL, text.replace(":-/", f":-{self.root}/"))  # in place of a chroot
        for folder in (pipe, log):
            folder.mkdir(parents=True)
        clean = guardian.without(os.environ, "CUDA_", "FUNNEL_")
        environment = {**clean, "PATH": f"{self.bin}:{os.environ['PATH']}", "FUNNEL_DEVICE": "soft"}

        def shell(script):
            done = subprocess.run(["sh", "-ec", script], env=environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stdout)
            return done.stdout

        self.addCleanup(subprocess.run, [self.bin / CONTROL], input="quit\n", env=environment,
                        stdout=subprocess.DEVNULL, text=True, timeout=60)
        shell(CONTROL + (" -d -M" if os.geteuid() == 0 else " -d"))
        shell(f"echo set_default_active_thread_percentage 25 | {CONTROL}")
        shell(f"echo set_default_device_pinned_mem_limit 0 512M | {CONTROL}")
        self.assertIn("set_default_active_thread_percentage 25", (log / "control.log").read_text())
        told = subprocess.run([BUILD / "bin/funnel", "run", "--no-start", "-q", "--",
                               BUILD / "examples/vector_add", "-n", "1000"],
                              env={**environment, "CUDA_MPS_PIPE_DIRECTORY": str(pipe)},
                              stdout=subprocess.PIPE, text=True, timeout=60).stdout
        self.assertIn("correct", told)
        self.assertRegex((log / "control.log").read_text(),
                         "handed over to server .* 25.0 % of the SMs, .* 512 MiB of device 0")


if __name__ == "__main__":
    guardian.protect()
    unittest.main()
