# SPDX-License-Identifier: Apache-2.0
"""usage.jsonl: a line for each client that has ended."""
import os
import resource
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../control"))

import harness  # noqa: E402  (found through the path above)
from harness import wait_until  # noqa: E402

SIZE_MAX = 16 << 20


class JournalTest(harness.TestCase):
    def path(self, suffix=""):
        return os.path.join(self.log, "usage.jsonl" + suffix)

    def lines(self, suffix=""):
        return harness.json_lines(self.path(suffix))

    def come_and_go(self, **hello):
        client = self.client(**hello)
        self.assertEqual(client.welcome()[0], 0)
        client.close()

    def test_line(self):
        self.start()
        self.come_and_go()
        wait_until(lambda: self.lines(), "the line")
        line, = self.lines()
        self.assertEqual((line["pid"], line["uid"], line["launches"]), (os.getpid(), os.getuid(), 7))
        self.assertEqual((line["copied_to_device_bytes"], line["stalled_seconds"]), (4096, 0.5))
        device, = line["devices"]
        self.assertEqual((device["gpu_seconds"], device["sm_seconds"], device["memory_peak"]),
                         (0.5, 30, 3 << 20))
        self.assertIn("python", line["command"])
        self.assertGreaterEqual(line["ended"], line["since"])
        self.assertEqual(os.stat(self.path()).st_mode & 0o777, 0o600)

    def test_rotation(self):
        self.start()
        self.come_and_go()
        wait_until(lambda: self.lines(), "the line")
        with open(self.path(), "a") as file:
            file.write(" " * SIZE_MAX + "\n")
        self.come_and_go()
        wait_until(lambda: os.path.exists(self.path(".1")), "the next file")
        wait_until(lambda: len(self.lines()) == 1, "its line")
        self.assertGreater(os.path.getsize(self.path(".1")), SIZE_MAX)

    def test_no_space(self):
        """A line that does not fit leaves nothing behind, and waits, with those that follow."""
        self.start()
        self.come_and_go()
        wait_until(lambda: self.lines(), "the line")
        size = os.path.getsize(self.path())
        with open(self.path(), "a") as file:
            file.truncate(1 << 20)
        daemon = self.daemon_pid()
        # SIGXFSZ must not end it; what is beyond the limit does not fit, as on a full disk.
        resource.prlimit(daemon, resource.RLIMIT_FSIZE, ((1 << 20) + 100, resource.RLIM_INFINITY))
        self.come_and_go()
        wait_until(lambda: "cannot be written to usage.jsonl" in self.control_log(), "the complaint")
        self.assertEqual(os.path.getsize(self.path()), 1 << 20)
        self.come_and_go()
        wait_until(lambda: "(id 3)" in self.control_log().rpartition("has left")[0].splitlines()[-1],
                   "the end of the third client")
        resource.prlimit(daemon, resource.RLIMIT_FSIZE,
                         (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        os.truncate(self.path(), size)
        wait_until(lambda: "usage.jsonl is written again" in self.control_log(), "the report")
        wait_until(lambda: len(self.lines()) == 3, "the lines that have waited")
        self.assertEqual([line["id"] for line in self.lines()], [1, 2, 3])
        self.assertEqual(self.control_log().count("cannot be written to usage.jsonl"), 1)

    @unittest.skipIf(os.geteuid() != 0, "needs root, to mount a disk")
    def test_full_disk(self):
        """On a disk that is really full clients are served, and their lines come when it has space."""
        os.makedirs(self.log)
        script = f"""mount -t tmpfs -o size=256k,mode=755 none {self.log} || exit 77
            exec {self.root}/bin/funneld -f"""
        daemon = subprocess.Popen(["unshare", "-m", "sh", "-c", script], env=self.environment,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(daemon)
        wait_until(lambda: os.path.exists(self.socket_path) or daemon.poll() is not None, "the socket")
        if daemon.poll() is not None:
            self.skipTest("no disk can be mounted here")
        self.log = f"/proc/{daemon.pid}/root{self.log}"
        filler = os.path.join(self.log, "filler")
        with self.assertRaises(OSError), open(filler, "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        for _ in range(20):
            self.come_and_go()
        self.mps("get_server_list\n")
        before = len(self.lines())
        os.unlink(filler)
        wait_until(lambda: len(self.lines()) == 20, "the lines that have waited")
        self.assertLess(before, 20)
        self.assertEqual([line["id"] for line in self.lines()], list(range(1, 21)))
        wait_until(lambda: len(self.server_events("client")) == 20, "what the server has logged")
        # It is the first line of the log where nothing before it had fitted.
        self.assertRegex(self.control_log(), r"(?m)^\[[^\n]*\] \d+ lines are missing here")


if __name__ == "__main__":
    harness.main()
