# SPDX-License-Identifier: Apache-2.0
"""The RPM packages of packaging/rpm/funnel.spec, built with Debian's rpmbuild and installed into an empty
folder. A system of Fedora's takes no part: what its macros define stands in rpm_macros."""
import os
import re
import shutil
import subprocess

import fleet

SPEC = fleet.ROOT / "packaging/rpm/funnel.spec"


def build(scene, folder):
    version = re.search(r"^Version: +(\S+)", SPEC.read_text(), re.M).group(1)
    (folder / "SOURCES").mkdir(parents=True)
    subprocess.run(["git", "archive", f"--prefix=funnel-{version}/", "HEAD", "-o",
                    folder / f"SOURCES/funnel-{version}.tar.gz"], cwd=fleet.ROOT, check=True)
    done = subprocess.run(
        ["rpmbuild", "-bb", "--nodeps", "--load", fleet.HERE / "rpm_macros", "--define",
         f"_topdir {folder}", "--define", "debug_package %{nil}", SPEC],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1800)
    scene.log.write(done.stdout)
    if done.returncode:
        raise fleet.Failed(f"rpmbuild: exit status {done.returncode}\n{done.stdout[-3000:]}")
    return sorted((folder / "RPMS").glob("*/*.rpm"))


def run(scene):
    if not shutil.which("rpmbuild"):
        raise fleet.Failed("rpmbuild is missing; install it with: apt-get install rpm")
    folder = (scene.work / "rpm").resolve()
    shutil.rmtree(folder, ignore_errors=True)
    packages = build(scene, folder)
    scene.step("built " + ", ".join(package.name for package in packages))
    root = folder / "root"
    root.mkdir()
    for command in (["--initdb"], ["-i", "--nodeps", "--noscripts", *packages]):
        subprocess.run(["rpm", "--root", root, *command], check=True, stderr=subprocess.DEVNULL)
    environment = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": str(folder / "pipe")}
    funnel = root / "usr/bin/funnel"
    text = subprocess.run([funnel, "run", "-q", "--device", "soft", "--",
                           root / "usr/lib/funnel/examples/vector_add", "-n", "20000"],
                          env=environment, stdout=subprocess.PIPE, text=True, timeout=60).stdout
    subprocess.run([funnel, "stop", "--force"], env=environment, timeout=60, stdout=subprocess.DEVNULL)
    scene.expect(text, "vector_add", "correct")
    files = subprocess.run(["rpm", "--root", root, "-qal"], stdout=subprocess.PIPE, text=True).stdout
    scene.expect(files, "/usr/lib/funnel/libcuda.so.1", "/usr/lib/systemd/system/funnel.service",
                 "/usr/share/man/man1/funnel.1", "/usr/share/doc/funnel/LICENSE.uplot")
    scene.step("installed them into an empty folder, where an example runs")
    shutil.rmtree(folder)
