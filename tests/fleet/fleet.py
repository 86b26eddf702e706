# SPDX-License-Identifier: Apache-2.0
"""Clean systems to install into: roots of Debian and Ubuntu, made from their mirrors. Scripts run
in them with mounts and processes of their own, all of which end with the script.

Needs root, mmdebstrap and a mirror. Roots are kept as archives in the work folder, so that only the
first run downloads."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HERE = pathlib.Path(__file__).resolve().parent
DEBIAN = "http://deb.debian.org/debian"
UBUNTU = "http://archive.ubuntu.com/ubuntu"
TIMEOUT = 600
given_packages = None

# Mounts come first, then the root of another system, then the script. The root is that of the mount
# namespace, not one of chroot, below which no user namespace could be made. The old one is in /mnt.
ENTER = """
set -eu
mount --make-rprivate /
mount --bind "$R" "$R"
mount -t proc proc "$R/proc"
mount --rbind /dev "$R/dev"
mount -t tmpfs tmpfs "$R/dev/shm"
mount -t tmpfs tmpfs "$R/run"
mount -t tmpfs -o mode=1777 tmpfs "$R/tmp"
[ -z "${RESOLV-}" ] || { cp /etc/resolv.conf "$R/etc/resolv.conf"; cp /etc/hosts "$R/etc/hosts"; }
%s
mkdir -p "$R/mnt"
cd "$R"
pivot_root . mnt
exec chroot . /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \\
    DEBIAN_FRONTEND=noninteractive TERM=dumb %s /bin/bash -eu -o pipefail /tmp/script
"""


class Failed(Exception):
    pass


class Scene:
    """One log, and steps whose names and times are printed."""

    def __init__(self, work, name):
        self.work, self.name = pathlib.Path(work), name
        self.work.mkdir(parents=True, exist_ok=True)
        self.log = open(self.work / f"{name}.log", "w")
        self.began = self.step_began = time.monotonic()

    def say(self, text):
        print(text, flush=True)
        self.log.write(text + "\n")
        self.log.flush()

    def step(self, text):
        now = time.monotonic()
        self.say(f"  {self.name}: {text} ({now - self.step_began:.1f} s)")
        self.step_began = now

    def expect(self, text, *wanted):
        for part in wanted:
            if part not in text:
                raise Failed(f"{self.name}: \"{part}\" is not in:\n{text}")

    def expect_not(self, text, *unwanted):
        for part in unwanted:
            if part in text:
                raise Failed(f"{self.name}: \"{part}\" is in:\n{text}")


def make_archive(work, suite, packages, mirror, variant):
    """A root of that suite with these packages as an archive, made once."""
    key = hashlib.sha256(" ".join([suite, mirror, variant, *packages]).encode()).hexdigest()[:10]
    archive = pathlib.Path(work) / "cache" / f"{suite}-{key}.tar"
    if not archive.exists():
        archive.parent.mkdir(parents=True, exist_ok=True)
        trusted = "[trusted=yes] " if mirror == UBUNTU else ""
        partial = archive.with_suffix(".new.tar")
        done = subprocess.run(
            ["mmdebstrap", "--quiet", f"--variant={variant}", "--mode=root",
             "--aptopt=Apt::Install-Recommends false", "--dpkgopt=force-unsafe-io",
             f"--include={','.join(packages)}" if packages else "--include=apt",
             suite, str(partial), f"deb {trusted}{mirror} {suite} main"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT)
        if done.returncode:
            raise Failed(f"no {suite} from {mirror}:\n{done.stdout[-2000:]}")
        partial.rename(archive)
    return archive


class Root:
    def __init__(self, scene, suite="bookworm", packages=(), mirror=DEBIAN, name=None,
                 variant="apt"):
        """`variant` is mmdebstrap's: extract only unpacks, which is enough to run programs."""
        self.scene = scene
        archive = make_archive(scene.work, suite, list(packages), mirror, variant)
        self.path = scene.work / "roots" / (name or f"{scene.name}-{suite}")
        self.remove()
        self.path.mkdir(parents=True)
        subprocess.run(["tar", "-xf", archive, "-C", self.path, "--exclude=./dev/*"], check=True)

    def remove(self):
        if self.path.exists():
            shutil.rmtree(self.path)

    def command(self, script, binds=None, environment=None, network=False):
        """What runs the script in this root, and its environment."""
        mounts = ""
        for outside, inside in (binds or {}).items():
            kind = "mkdir -p" if pathlib.Path(outside).is_dir() else "touch"
            mounts += f'mkdir -p "$(dirname "$R{inside}")"; {kind} "$R{inside}"; '
            mounts += f'mount --bind {outside} "$R{inside}"\n'
        mounts += 'cat >"$R/tmp/script" <<"END_OF_SCRIPT"\n' + textwrap.dedent(script) + \
            "\nEND_OF_SCRIPT"
        variables = " ".join(f"'{name}={value}'" for name, value in (environment or {}).items())
        outer = {"PATH": os.environ["PATH"], "R": str(self.path.resolve())}
        if network:
            outer["RESOLV"] = "1"
        return (["unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "sh",
                 "-c", ENTER % (mounts, variables)], outer)

    def run(self, script, timeout=TIMEOUT, **options):
        """What the script prints; it has to succeed."""
        command, environment = self.command(script, **options)
        script = textwrap.dedent(script)
        try:
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=timeout)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"{self.scene.name}: after {timeout} s:\n{script}\n"
                         f"{(error.stdout or b'').decode()[-6000:]}") from error
        self.scene.log.write(f"{script}\n----\n{done.stdout}----\n")
        self.scene.log.flush()
        if done.returncode:
            raise Failed(f"{self.scene.name}: exit status {done.returncode} of:\n"
                         f"{script}\n{done.stdout[-3000:]}")
        return done.stdout


def why_not():
    """What is missing here, or None."""
    if os.geteuid() != 0:
        return "the scenes need root: they mount and change their root folder"
    for program in ("mmdebstrap", "unshare"):
        if not shutil.which(program):
            return f"{program} is missing; install it with: apt-get install mmdebstrap util-linux"
    if subprocess.run(["unshare", "-mp", "--fork", "true"], check=False).returncode:
        return "namespaces are not allowed here"
    return None


def make_packages(work):
    """The folder of the Debian packages of this tree, or of those that run.py was given."""
    if given_packages:
        return given_packages
    folder = pathlib.Path(work) / "packages"
    stamp = folder / "tree"
    built_from = "src api lib bin examples packaging/debian packaging/man packaging/system meson.build"
    tree = subprocess.run(f"{{ git ls-files -s {built_from}; git diff {built_from}; }} | sha256sum",
                          shell=True, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    if not stamp.exists() or stamp.read_text() != tree:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([ROOT / "packaging/make_deb", folder], check=True, stdout=sys.stderr)
        stamp.write_text(tree)
    return folder
