# SPDX-License-Identifier: Apache-2.0
"""Containers of other systems, old and new, at a daemon outside of them, by nothing but the CDI
specification. They run with podman where that runs, or unshare enters them with the specification's
mounts. Some have user namespaces, and there is the image of the daemon itself."""
import json
import os
import shutil
import subprocess

import fleet

BUILD = fleet.ROOT / "build"
PACKAGES = ["libc6", "libc-bin", "bash", "coreutils", "util-linux", "python3-minimal",
            "libpython3-stdlib"]
# glibc 2.23, 2.31, 2.31, 2.41: as far back as the mirrors go.
USERLANDS = (("xenial", fleet.UBUNTU), ("focal", fleet.UBUNTU), ("bullseye", fleet.DEBIAN),
             ("trixie", fleet.DEBIAN))


class Daemon:
    def __init__(self, scene):
        self.pipe = scene.work / "pipe"
        shutil.rmtree(self.pipe, ignore_errors=True)
        self.environment = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": str(self.pipe),
                            "FUNNEL_SOFT_DEVICES": "1:sms=16,mem=1G"}
        self.funnel("start", "--device", "soft")

    def funnel(self, *arguments):
        return subprocess.run([BUILD / "bin/funnel", *arguments], env=self.environment, check=True,
                              stdout=subprocess.PIPE, text=True, timeout=60).stdout

    def specification(self, *arguments):
        return json.loads(self.funnel("cdi", *arguments))


def edits(specification, device):
    """The mounts and the environment of a device, as an engine applies them."""
    own = next(row for row in specification["devices"] if row["name"] == device)["containerEdits"]
    common = specification["containerEdits"]
    variables = dict(line.split("=", 1) for part in (common, own) for line in part.get("env", []))
    return {row["hostPath"]: row["containerPath"] for row in common["mounts"][:1] +
            common["mounts"][-1:]}, variables


def userlands(scene, daemon):
    mounts, variables = edits(daemon.specification(), "all")
    for suite, mirror in USERLANDS:
        root = fleet.Root(scene, suite=suite, packages=PACKAGES, mirror=mirror,
                          variant="extract")
        text = root.run("python3 /probe/probe.py", environment=variables,
                        binds={**mounts, fleet.HERE: "/probe"})
        scene.expect(text, "sum ok")
        scene.step(f"{suite}: {text.splitlines()[-1]}, in PID, IPC and mount namespaces of its own")
        if suite != "trixie":
            root.remove()
    return root


def user_namespaces(scene, daemon, root):
    mounts, variables = edits(daemon.specification(), "all")
    text = root.run("""
        python3 /probe/probe.py 30 0.2 &
        setpriv --reuid 1234 --regid 1234 --clear-groups unshare --user --map-root-user \
            bash -c 'id -u; python3 /probe/probe.py 3'
        wait
    """, environment=variables, binds={**mounts, fleet.HERE: "/probe"})
    if text.count("sum ok") != 2:
        raise fleet.Failed(f"a program has failed:\n{text}")
    servers = daemon.funnel("servers")
    scene.expect(servers, "1234")
    scene.step("a rootless container (root in a user namespace) has the server of its real user")


def podman(scene, daemon, root):
    """With the engine's own reading of the specification, in a copy of /etc."""
    specification = scene.work / "cdi"
    specification.mkdir(exist_ok=True)
    daemon.funnel("cdi", "--shares", "25", "-o", str(specification / "funnel.json"))
    script = f"""
        set -e
        mkdir -p /etc/cdi
        mount --bind {specification} /etc/cdi
        podman --root {scene.work}/podman --runroot {scene.work}/podman-run --runtime runc \
            --cgroup-manager=cgroupfs run --rm --network=none --ulimit nofile=1024:1024 \
            --ulimit nproc=1024:1024 --device funnel/gpu=share-25 -v {fleet.HERE}:/probe:ro \
            --rootfs {root.path} python3 /probe/share.py
    """
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=120)
    if done.returncode and "share.py" not in done.stdout and "error" in done.stdout.lower():
        scene.step(f"podman does not run containers here: {done.stdout.strip()[-200:]}")
        return
    scene.expect(done.stdout, "multiprocessors 4")
    scene.step("podman run --device funnel/gpu=share-25: 4 of 16 multiprocessors")


def musl(scene):
    """It cannot be loaded there, and the loader's message names the C library's symbol."""
    loader = "/lib/ld-musl-x86_64.so.1"
    if not os.path.exists(loader):
        scene.step("no musl on this machine: not looked at")
        return
    done = subprocess.run([loader, "--list", BUILD / "lib/funnel/libcuda.so.1"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    scene.expect(done.stdout, "__register_atfork: symbol not found")
    scene.step("musl's loader refuses the library and says which symbol of glibc it lacks")


def image(scene):
    """Twice the same image; its daemon serves its own examples."""
    packages = fleet.make_packages(scene.work)
    make = fleet.ROOT / "packaging/container/make_image"
    digests = []
    for name in ("one.tar", "two.tar"):
        done = subprocess.run([make, packages, scene.work / name], stdout=subprocess.PIPE, text=True,
                              check=True, timeout=fleet.TIMEOUT)
        digests.append(done.stdout)
    if digests[0] != digests[1]:
        raise fleet.Failed(f"the image is not reproducible: {digests}")
    size = (scene.work / "one.tar").stat().st_size >> 20
    scene.step(f"the image is reproducible, {size} MiB: {digests[0].strip()}")
    if not shutil.which("podman"):
        return
    script = f"""
        P="podman --root {scene.work}/podman-image --runroot {scene.work}/podman-image-run --runtime runc \
            --storage-driver vfs --cgroup-manager=cgroupfs"
        $P load -q -i {scene.work}/one.tar
        $P run --rm --network=none --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 \
            localhost/funnel sh -c 'FUNNEL_DEVICE=soft funneld -d &&
            funnel run -- /usr/lib/funnel/examples/vector_add -n 1000 -r 3 && funnel stop'
        $P rmi -f localhost/funnel >/dev/null
    """
    done = subprocess.run(["sh", "-ec", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=300)
    scene.log.write(done.stdout)
    scene.expect(done.stdout, "correct")
    scene.step("podman run localhost/funnel: its daemon serves its example")


def run(scene):
    daemon = Daemon(scene)
    try:
        root = userlands(scene, daemon)
        user_namespaces(scene, daemon, root)
        if shutil.which("podman"):
            podman(scene, daemon, root)
        root.remove()
        musl(scene)
        image(scene)
    finally:
        daemon.funnel("stop", "--force")
