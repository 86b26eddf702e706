# SPDX-License-Identifier: Apache-2.0
"""Daemon, server and program that may open few files (RLIMIT_NOFILE): each says so, with the remedy, and
goes on where it can."""
import itertools
import os
import resource
import signal
import subprocess
import sys

import harness
import wire
from harness import alive, wait_until

REMEDY = "ulimit -Hn, LimitNOFILE="


# Opens all files that it may, allocates more than there is in a granule, and uses that.
WITHOUT_ANY = r"""
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
files = []
try:
    while True:
        files.append(open("/dev/null"))
except OSError:
    print(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(64 << 20)),
          cuda.cuMemsetD8_v2(memory, 1, ctypes.c_size_t(64 << 20)), cuda.cuCtxSynchronize())
"""


def limited(most):
    """Run in a child between fork and exec."""
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def welcome_behind_reset(client):
    """The daemon refuses it without having read its hello, which the kernel reports first."""
    try:
        return client.welcome()
    except ConnectionResetError:
        return client.welcome()


class Descriptors(harness.TestCase):
    def install(self):
        os.symlink(os.path.join(harness.BUILD, "bin"), os.path.join(self.root, "bin"))

    def start_limited(self, most):
        return self.run_program("funneld", "-d", "--device", "soft", preexec_fn=limited(most))

    def client_log(self):
        with open(os.path.join(self.log, "client.log")) as file:
            return file.read()

    def program(self, most=None):
        return self.funnel("run", "-q", "--device", "soft", "--",
                           os.path.join(harness.BUILD, "examples/vector_add"), "-n", "1000", "-r", "1",
                           **({"preexec_fn": limited(most)} if most else {}))

    def witness(self):
        """A program that waits until it is told to end: it, and whether it has attached."""
        process = subprocess.Popen(
            [os.path.join(self.root, "bin/funnel"), "run", "-q", "--device", "soft", "--",
             os.path.join(harness.BUILD, "tests/stress/scene"), "witness"],
            env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process, process.stdout.readline() == "ready\n"

    def test_a_daemon_that_cannot_serve(self):
        for most in (8, 16, 24, 40):
            done = self.start_limited(most)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(f"the hard limit of open files is {most}, and has to be 64 or more", done.stderr)
            self.assertIn(REMEDY, done.stderr)
        self.assertFalse(os.path.exists(self.pipe))

    def test_the_least_that_serves(self):
        done = self.start_limited(64)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("The limit of open files is 64", self.control_log())
        done = self.program()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_soft_limit_does_not_count(self):
        """Shells have a low one, below a hard limit that servers raise it to."""
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        self.assertEqual(self.run_program(
            "funneld", "-d", "--device", "soft",
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))).returncode, 0)
        ranges = min(65536, max(hard // 8, min(hard // 4, 1024)))
        self.assertRegex(self.funnel("limits").stdout, rf"(?m)^ranges +client +{ranges} ")

    def test_a_program_with_few(self):
        self.start("--device", "soft")
        done = self.program(6)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("its limit of open files (ulimit -n) is 6", self.client_log())
        done = self.program(16)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_program_that_has_none(self):
        """It gets memory as natively, without the descriptors by which that would outlive the server."""
        self.start("--device", "soft")
        done = self.funnel("run", "-q", "--device", "soft", "--", sys.executable, "-c", WITHOUT_ANY,
                           preexec_fn=limited(64))
        self.assertEqual((done.returncode, done.stdout), (0, "0 0 0\n"), done.stderr + self.client_log())

    def test_a_server_that_is_full(self):
        """What it has goes on, and the next program attaches when some have left."""
        self.assertEqual(self.start_limited(72).returncode, 0)
        attached = []
        while (begun := self.witness())[1]:
            attached.append(begun[0])
            self.assertLess(len(attached), 72)
        self.assertEqual(begun[0].wait(harness.TIMEOUT), 1)
        self.assertIn("the server has too few descriptors left", self.client_log())
        self.assertIn(REMEDY, self.client_log())
        for process in attached:
            process.stdin.write("\n")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), "launched\n")
        for process in attached[:3]:
            process.stdin.close()
            self.assertEqual(process.wait(harness.TIMEOUT), 0)
        wait_until(lambda: self.program().returncode == 0, "the next program")
        self.assertNotIn("has closed its connection", harness.texts_of(os.path.join(self.log, "server.log")))

    def test_a_descriptor_that_is_lost(self):
        """That of a client on its way to a server which has no number left for it."""
        self.start("--device", "soft")
        self.assertEqual(self.program().returncode, 0)
        server = self.servers()[0]
        usual = resource.prlimit(server, resource.RLIMIT_NOFILE)
        resource.prlimit(server, resource.RLIMIT_NOFILE, (3, usual[1]))  # no new one gets a number
        self.assertEqual(self.program().returncode, 1)
        resource.prlimit(server, resource.RLIMIT_NOFILE, usual)
        self.assertEqual(self.program().returncode, 0)
        self.assertEqual(self.servers(), [server])
        wait_until(lambda: not self.funnel_json("status")["clients"], "the end of all clients")
        self.settle_logs()
        log = harness.texts_of(os.path.join(self.log, "server.log"))
        self.assertIn("came without its descriptor", log)
        self.assertNotIn("has closed its connection", log)

    def kill_daemon(self):
        daemon = self.daemon_pid()
        os.kill(daemon, signal.SIGKILL)
        wait_until(lambda: not alive(daemon), "the end of the daemon")

    def take_all_descriptors(self, process):
        """No new one gets a number, unless an old one is given up for it."""
        taken = {int(name) for name in os.listdir(f"/proc/{process}/fd")}
        free = next(number for number in itertools.count() if number not in taken)
        usual = resource.prlimit(process, resource.RLIMIT_NOFILE)
        resource.prlimit(process, resource.RLIMIT_NOFILE, (free, usual[1]))

    def test_a_server_without_any_accepts_the_next_daemon(self):
        """The server keeps one for its connection."""
        self.start("--device", "soft")
        program, attached = self.witness()
        self.assertTrue(attached)
        server, = self.servers()
        self.take_all_descriptors(server)
        for _ in range(2):
            self.kill_daemon()
            self.start("--device", "soft")
            wait_until(lambda: "is taken over, with 1 clients" in self.control_log(), "its answer")
            os.unlink(os.path.join(self.log, "control.log"))
        self.assertEqual(self.servers(), [server])
        program.stdin.close()
        self.assertEqual(program.wait(harness.TIMEOUT), 0)

    def test_a_daemon_that_is_full(self):
        self.assertEqual(self.start_limited(64).returncode, 0)
        front_ends = []
        status = 0
        while not status:
            self.assertLess(len(front_ends), 64)
            front_ends.append(self.client(kind=wire.HELLO_COMMAND))
            status, said = welcome_behind_reset(front_ends[-1])
        self.assertIn("its limit of open files is 64", said)
        self.assertIn(REMEDY, said)
        self.assertIn("Cannot accept connections: Too many open files", self.control_log())
        for front_end in front_ends:
            front_end.close()
        wait_until(lambda: self.program().returncode == 0, "the next program")


if __name__ == "__main__":
    harness.main()
