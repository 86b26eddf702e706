# SPDX-License-Identifier: Apache-2.0
"""`funnel enable` and `funnel disable`: what they change, that they take it back, and that programs
find the library so: test_enable.py BUILD.

Changes for the machine are made in a mount namespace, to copies of /etc."""
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
SOFT = BUILD / "lib/funnel/softgpu/libcuda.so.1"
PROGRAM = BUILD / "examples/vector_add"
UNSHARE = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]


def environment(**more):
    return {**guardian.without(os.environ, "CUDA_", "FUNNEL_", "LD_", "XDG_"), **more}


def run(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=100, **options)


class Scene(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fnl-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)


class User(Scene):
    def funnel(self, *arguments):
        done = run(BUILD / "bin/funnel", *arguments, env=environment(HOME=str(self.folder)))
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def files(self):
        return {str(path.relative_to(self.folder)): path.read_text()
                for path in self.folder.rglob("*") if path.is_file()}

    def login_path(self, **more):
        return run("sh", "-lc", "printenv LD_LIBRARY_PATH",
                   env=environment(HOME=str(self.folder), **more)).stdout.strip()

    def test_login_finds_it(self):
        (self.folder / ".bash_profile").write_text("true")
        text = self.funnel("enable", "--user")
        self.assertIn(str(self.folder / ".profile"), text)
        self.assertEqual(self.login_path(), str(BUILD / "lib/funnel"))
        self.assertEqual(self.login_path(LD_LIBRARY_PATH="/x"), f"{BUILD}/lib/funnel:/x")
        self.assertIn(f"\nLD_LIBRARY_PATH={BUILD}/lib/funnel$",
                      self.files()[".config/environment.d/50-funnel.conf"])
        self.assertIn(str(BUILD), self.files()[".bash_profile"])
        self.assertNotIn(".zprofile", self.files())

    def test_with_the_library_for_monitors(self):
        both = f"{BUILD}/lib/funnel:{BUILD}/lib/funnel/nvml"
        self.assertIn(both, self.funnel("enable", "--user", "--nvml"))
        self.assertEqual(self.login_path(), both)
        self.funnel("enable", "--user")
        self.assertEqual(self.login_path(), str(BUILD / "lib/funnel"))
        self.funnel("enable", "--user", "--nvml")
        self.funnel("disable", "--user")
        self.assertEqual(self.login_path(), "")

    def test_twice_is_once(self):
        self.funnel("enable", "--user")
        once = self.files()
        self.funnel("enable", "--user")
        self.assertEqual(self.files(), once)

    def test_disable_leaves_the_rest(self):
        before = "umask 022\n# a comment\n\nexport A=1\n"
        (self.folder / ".profile").write_text(before)
        (self.folder / ".profile").chmod(0o600)
        self.funnel("enable", "--user")
        self.assertNotEqual(self.files()[".profile"], before)
        self.funnel("disable", "--user")
        self.assertEqual(self.files(), {".profile": before})
        self.assertEqual((self.folder / ".profile").stat().st_mode & 0o777, 0o600)
        self.assertIn("was not enabled", self.funnel("disable", "--user"))

    def test_wrong_arguments(self):
        for arguments in (["enable", "--nobody"], ["enable", "--user", "x"], ["disable", "--nvml"]):
            done = run(BUILD / "bin/funnel", *arguments,
                       env=environment(HOME=str(self.folder)))
            self.assertEqual(done.returncode, 2, done.stdout)
        self.assertEqual(self.files(), {})


@unittest.skipUnless(run(*UNSHARE, "true").returncode == 0 and os.path.exists("/sbin/ldconfig"),
                     "mount namespaces or ldconfig are not there")
class System(Scene):
    def scene(self, script, **more):
        """Runs the script where /etc and ldconfig's cache are copies."""
        head = """
            set -eu
            mkdir -p "$T/etc" "$T/aux"
            cp -r /etc/ld.so.* /etc/passwd /etc/group /etc/nsswitch.conf "$T/etc/" 2>/dev/null || true
            mount --bind "$T/etc" /etc
            [ ! -d /var/cache/ldconfig ] || mount --bind "$T/aux" /var/cache/ldconfig
        """
        done = run(*UNSHARE, "sh", "-c", head + script, env=environment(
            T=str(self.folder), B=str(BUILD), PROGRAM=str(PROGRAM), FUNNEL_DRIVER=str(SOFT),
            CUDA_MPS_PIPE_DIRECTORY=str(self.folder / "pipe"), **more))
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_programs_find_it_and_use_the_driver(self):
        text = self.scene("""
            $B/bin/funnel enable --system
            cat /etc/ld.so.conf.d/000-funnel.conf
            ldd $PROGRAM
            $PROGRAM -n 1000 -r 2
            $B/bin/funnel disable --system
            ls /etc/ld.so.conf.d
            ! ldd $PROGRAM | grep $B/lib/funnel
            $B/bin/funnel disable --system
        """)
        self.assertIn(f"libcuda.so.1 => {BUILD}/lib/funnel/libcuda.so.1", text)
        self.assertIn("was not enabled", text)
        self.assertEqual(text.count("000-funnel.conf"), 3, text)

    def test_monitors_find_theirs(self):
        text = self.scene("""
            $B/bin/funnel enable --system --nvml
            /sbin/ldconfig -p | grep -m1 libnvidia-ml.so.1
            $B/bin/funnel disable --system
            ! /sbin/ldconfig -p | grep "libnvidia-ml.so.1.*$B"
        """)
        self.assertIn(f"=> {BUILD}/lib/funnel/nvml/libnvidia-ml.so.1", text)

    def test_daemon_serves_them(self):
        """And one that is to run directly does so beside it."""
        text = self.scene("""
            $B/bin/funnel enable --system
            $B/bin/funneld -d --device soft
            $PROGRAM -n 1000 -r 2
            FUNNEL_DIRECT=1 $PROGRAM -n 1000 -r 2
            $B/bin/funnel run --direct --device soft -- $PROGRAM -n 1000 -r 2
            echo clients: $(grep -c 'vector_add' "$T/pipe/log/control.log")
            $B/bin/funnel stop
        """)
        self.assertIn("clients: 1\n", text)

    def test_other_folder_first(self):
        done = self.scene("""
            mkdir -p $T/other
            cp $B/lib/funnel/softgpu/libcuda.so.1 $T/other/
            echo $T/other > /etc/ld.so.conf.d/000-before.conf
            $B/bin/funnel enable --system || echo status $?
        """)
        self.assertIn("status 1", done)
        self.assertIn(f"still find {self.folder}/other/libcuda.so.1 first", done)

    @unittest.skipUnless(os.geteuid() == 0, "only root can make a program setuid")
    def test_setuid(self):
        """It takes neither driver nor log from its user."""
        text = self.scene("""
            $B/bin/funnel enable --system
            $B/bin/funneld -d --device soft
            cp $PROGRAM $T/vector_add
            chmod 4755 $T/vector_add
            mkdir -m 777 $T/logs
            export FUNNEL_LOG=$T/logs/client.log
            setpriv --reuid 65534 --clear-groups $T/vector_add -n 1000 -r 2 || echo status $?
            ls $T/logs
            grep -c vector_add $T/pipe/log/control.log || true
            $B/bin/funnel stop
        """)
        self.assertIn("no CUDA device", text)
        self.assertNotIn("client.log", text)
        self.assertIn("\n0\n", text)


if __name__ == "__main__":
    guardian.protect()
    unittest.main()
