# SPDX-License-Identifier: Apache-2.0
"""A user who tries to get the descriptors and the memory of the own server while that starts. Its
connection to the daemon would let the user speak in the server's name."""
import ctypes
import json
import os
import signal
import unittest

import harness
from harness import alive, wait_until

USER = 65534
STARTS = 6
CONTROL, LOG, CLAIMS = 3, 4, 5
SYS_PIDFD_OPEN, SYS_PIDFD_GETFD = 434, 438
libc = ctypes.CDLL(None)


def steal(pid):
    """What of the process can be had, as a text."""
    process = libc.syscall(SYS_PIDFD_OPEN, pid, 0)
    if process < 0:
        return ""
    for wanted in (CONTROL, LOG, CLAIMS):
        if libc.syscall(SYS_PIDFD_GETFD, process, wanted, 0) >= 0:
            return f"descriptor {wanted}"
    os.close(process)
    try:
        with open(f"/proc/{pid}/mem", "r+b"):
            return "memory"
    except OSError:
        return ""


def attack(children, report):
    """Tries every child of the daemon, without a pause, until it is ended."""
    harness.become_user(USER)
    while True:
        with open(children) as file:
            for pid in file.read().split():
                loot = steal(int(pid))
                if loot:
                    os.write(report, loot.encode())
                    os._exit(0)


def is_sanitized():
    with open(os.path.join(harness.BUILD, "meson-info/intro-buildoptions.json")) as file:
        return any(option["name"] == "b_sanitize" and option["value"] not in ("none", [])
                   for option in json.load(file))


@unittest.skipIf(os.geteuid() != 0, "needs root, to be two users")
class Theft(harness.TestCase):
    def install(self):
        os.symlink(os.path.join(harness.BUILD, "bin"), os.path.join(self.root, "bin"))

    def begin_attack(self):
        children = f"/proc/{self.daemon_pid()}/task/{self.daemon_pid()}/children"
        if not os.path.exists(children):
            self.skipTest("the kernel does not tell the children of a process")
        reading, writing = os.pipe()
        thief = os.fork()
        if thief == 0:
            attack(children, writing)
        os.close(writing)
        os.set_blocking(reading, False)
        self.addCleanup(os.close, reading)
        self.addCleanup(os.waitpid, thief, 0)
        self.addCleanup(os.kill, thief, signal.SIGKILL)
        return reading

    def start_server_once(self):
        done = self.funnel("run", "-q", "--no-start", "--", os.path.join(harness.BUILD, "examples/vector_add"),
                           user=USER, group=USER, extra_groups=[])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        server, = self.servers()
        self.mps(f"shutdown_server {server} -f\n")
        wait_until(lambda: not alive(server), "the end of the server")

    def test_descriptors_and_memory(self):
        if is_sanitized():
            self.skipTest("a server lets its sanitizer trace it")
        self.start("--device", "soft")
        report = self.begin_attack()
        for _ in range(STARTS):
            self.start_server_once()
        loot = b""
        try:
            loot = os.read(report, 100)
        except BlockingIOError:
            pass
        self.assertEqual(loot, b"")


if __name__ == "__main__":
    harness.main()
