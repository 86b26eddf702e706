# SPDX-License-Identifier: Apache-2.0
"""A clean Debian gets the packages: they start nothing, programs share the software GPU, an upgrade
leaves a running program alone, removal leaves nothing behind."""
import pathlib
import re
import subprocess
import time

import fleet

EXAMPLES = "/usr/lib/funnel/examples"
OLDER = "0.0.9"

SNAPSHOT = """
    find / -xdev \\( -path /proc -o -path /tmp -o -path /mnt -o -path /packages -o -path /older -o -path /dev -o \
        -path /run -o -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/cache -o \
        -path /var/log/apt -o -path /var/lib/systemd \\) -prune -o -print | sort
"""
VOLATILE = ("/var/log/dpkg.log", "/var/log/alternatives.log", "/etc/ld.so.cache", "/root/",
            "/etc/resolv.conf", "/etc/hosts")


def make_older(folder, target):
    """The same packages under an older version number, as the release before."""
    target.mkdir(exist_ok=True)
    for package in pathlib.Path(folder).glob("*_*.deb"):
        if "dbgsym" in package.name:
            continue
        version = re.search(r"_(.*?)_", package.name).group(1)
        content = target / "content"
        subprocess.run(["rm", "-rf", content], check=True)
        subprocess.run(["dpkg-deb", "-R", package, content], check=True)
        control = content / "DEBIAN/control"
        control.write_text(control.read_text().replace(version, OLDER))
        subprocess.run(["dpkg-deb", "-b", "--root-owner-group", content,
                        target / package.name.replace(version, OLDER)], check=True,
                       stdout=subprocess.DEVNULL)
    subprocess.run(["rm", "-rf", target / "content"], check=True)


def left_over(before, after):
    return sorted(path for path in set(after.splitlines()) - set(before.splitlines())
                  if not path.startswith(VOLATILE))


def minute(scene, root, packages):
    """From apt install to two programs that share a device."""
    began = time.monotonic()
    text = root.run(f"""
        apt-get -qq update
        apt-get -qq -y install /packages/funnel_*.deb /packages/libfunnel-cuda_*.deb \
            /packages/funnel-softgpu_*.deb >/dev/null
        funnel run --device soft -- {EXAMPLES}/n_body -n 256 -r 2000 &
        funnel run --device soft -- {EXAMPLES}/mandelbrot -n 240 -r 300 &
        for i in $(seq 100); do
            funnel ps >/tmp/ps 2>/dev/null || true
            [ "$(grep -c -e n_body -e mandelbrot /tmp/ps)" != 2 ] || break
            sleep 0.05
        done
        cat /tmp/ps
        wait
        funnel stop
    """, binds={packages: "/packages"}, network=True)
    scene.expect(text, "n_body", "mandelbrot", "correct")
    rows = [line for line in text.splitlines() if re.search(r"^\s*\d+\s.*(n_body|mandelbrot)", line)]
    if len(rows) != 2:
        raise fleet.Failed(f"funnel ps has not shown both programs:\n{text}")
    scene.step(f"a newcomer's minute: {time.monotonic() - began:.1f} s from apt install to the end of "
               "two programs that shared the software GPU")


def starts_nothing(scene, root, packages):
    text = root.run("""
        ls /etc/systemd/system/multi-user.target.wants /etc/systemd/user/default.target.wants \
            2>/dev/null || true
        for pid in /proc/[0-9]*; do readlink $pid/exe; done
        ls /run/funnel 2>&1 || true
        test -e /usr/lib/systemd/system/funnel.service
        test ! -e /usr/bin/nvidia-cuda-mps-control
        find /usr/share/bash-completion /usr/lib/tmpfiles.d /etc/logrotate.d -name 'funnel*'
        gzip -dc /usr/share/man/man1/funnel.1.gz | head -1
        PATH=/usr/lib/funnel/bin:$PATH
        nvidia-cuda-mps-control -v
        FUNNEL_DEVICE=soft nvidia-cuda-mps-control -d
        echo get_server_list | nvidia-cuda-mps-control
        nvidia-cuda-mps-control -q
    """)
    scene.expect_not(text, "funnel.service", "/usr/bin/funneld")
    scene.step("installing started and enabled nothing; the drop-in commands work")


def upgrade(scene, packages, older):
    root = fleet.Root(scene, packages=["logrotate"], name="upgrade")
    text = root.run(f"""
        printf 'of NVIDIA\\n' >/usr/bin/nvidia-cuda-mps-control
        apt-get -qq update
        apt-get -qq -y install /older/*.deb >/dev/null
        funneld -d --device soft
        funnel run -q -- {EXAMPLES}/n_body -n 256 -r 8000 &
        while ! funnel ps | grep -q n_body; do sleep 0.1; done
        dpkg -i /packages/funnel_*.deb /packages/libfunnel-cuda_*.deb \
            /packages/funnel-softgpu_*.deb >/dev/null
        dpkg-query -W funnel
        echo "running after the upgrade: $(funnel ps | grep -c n_body)"
        funnel run -q -- {EXAMPLES}/vector_add -n 1000 -r 2
        wait
        # The log is opened again where logrotate has moved it.
        printf 'x\\n' >>/var/log/funnel/control.log
        logrotate -f /etc/logrotate.d/funnel
        sleep 0.5
        ls /var/log/funnel
        funnel run -q -- {EXAMPLES}/vector_add -n 1000 -r 2
        grep -c vector_add /var/log/funnel/control.log
        funnel stop --timeout 5
        cat /usr/bin/nvidia-cuda-mps-control
    """, binds={packages: "/packages", older: "/older"}, network=True)
    scene.expect(text, "running after the upgrade: 1", "n_body: size 256", "of NVIDIA",
                 "control.log.1")
    if text.count("correct") != 3:
        raise fleet.Failed(f"a program has failed:\n{text}")
    scene.step(f"an upgrade from {OLDER} left a running program and its daemon alone")
    root.remove()


def removal(scene, packages):
    root = fleet.Root(scene, packages=["logrotate"], name="removal")
    text = root.run(f"""
        apt-get -qq update
        echo BEFORE; {SNAPSHOT}
        echo AFTER_INSTALL
        apt-get -qq -y install /packages/funnel_*.deb /packages/libfunnel-cuda_*.deb \
            /packages/funnel-softgpu_*.deb >/dev/null
        funnel enable --system >/dev/null
        funneld -d --device soft
        {EXAMPLES}/vector_add -n 1000 -r 2 >/dev/null
        funnel stop
        ldconfig -p | grep -c 'libcuda.so.1.*lib/funnel'
        apt-get -qq -y purge funnel libfunnel-cuda funnel-softgpu >/dev/null
        apt-get -qq -y autoremove --purge >/dev/null
        ! ldconfig -p | grep libcuda.so.1
        rm -rf /var/log/funnel
        echo AFTER; {SNAPSHOT}
    """, binds={packages: "/packages"}, network=True)
    before = text.partition("BEFORE\n")[2].partition("AFTER_INSTALL")[0]
    left = left_over(before, text.partition("AFTER\n")[2])
    if left:
        raise fleet.Failed("a purge has left behind:\n" + "\n".join(left))
    scene.step("a purge left nothing behind, nor in the linker's cache")
    root.remove()


def run(scene):
    packages = fleet.make_packages(scene.work)
    older = scene.work / "older"
    make_older(packages, older)
    scene.step("built the packages")
    root = fleet.Root(scene)
    scene.step("made a clean Debian 12")
    minute(scene, root, packages)
    starts_nothing(scene, root, packages)
    root.remove()
    upgrade(scene, packages, older)
    removal(scene, packages)
