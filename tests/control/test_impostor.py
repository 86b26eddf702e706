# SPDX-License-Identifier: Apache-2.0
"""Processes that listen where front ends look for the daemon. To another user's nothing is said.
The answers of the user who is trusted are lies, or end before they begin."""
import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import unittest

import harness
import wire

OWNER, SQUATTER = 61001, 61002
QUERY = 2

COMMANDS = (("status",), ("ps",), ("limits",), ("devices",), ("servers",), ("metrics",),
            ("terminate", "4711"), ("limit", "--client", "4711", "--memory", "1G"), ("stop",),
            ("trace", "--summary", "--seconds", "1"), ("top", "-n", "1"), ("run", "--", "true"))


def welcome():
    return wire.WELCOME.pack(wire.WELCOME_MAGIC, 0, b"")


def send(peer, messages):
    for message in messages:
        if message is None:
            raise OSError("the end")
        peer.send(message)


def serve(path, answers, ready, uid=None):
    """In a child: listens at the path, as that user, and answers every request in the same way; None
    closes the connection. What it is asked goes to a file beside the socket."""
    if uid is not None:
        harness.become_user(uid)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    os.chmod(path, 0o666)
    os.chmod(os.path.dirname(path), 0o777)
    listener.listen(16)
    os.write(ready, b"x")
    with open(path + ".heard", "wb", buffering=0) as heard:
        while True:
            peer, _ = listener.accept()
            with contextlib.suppress(OSError):
                while data := peer.recv(16384):
                    heard.write(data)
                    hello = data.startswith(wire.hello()[:4])
                    send(peer, [welcome()] if hello else answers)
            peer.close()


class Impostor(harness.TestCase):
    def impostor(self, path, answers, uid=None):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                serve(path, answers, writing, uid)
            os._exit(1)
        os.close(writing)
        self.addCleanup(os.waitpid, child, 0)
        self.addCleanup(os.kill, child, signal.SIGKILL)
        with os.fdopen(reading, "rb") as file:
            self.assertEqual(file.read(1), b"x")


@unittest.skipIf(os.geteuid() != 0, "needs root, to be two users")
class Squatter(Impostor):
    """The directory of a user without XDG_RUNTIME_DIR is in /tmp, where others may make it first."""

    def setUp(self):
        super().setUp()
        os.chmod(self.root, 0o777)
        self.install_client_library()
        self.runtime = f"{self.root}/runtime"
        self.folder = f"{self.runtime}/funnel"
        self.environment["CUDA_MPS_PIPE_DIRECTORY"] = self.folder
        self.impostor(f"{self.folder}/funnel",
                      [wire.answer(wire.OUTPUT, b"done"),
                       wire.answer(wire.COMMAND_DONE, b"\0\0\0\0")], SQUATTER)
        self.options = {"user": OWNER, "group": OWNER, "extra_groups": [],
                        "environment": {"HOME": "/nonexistent"}}

    def install_client_library(self):
        os.makedirs(f"{self.root}/lib/funnel")
        with open(f"{self.root}/lib/funnel/libcuda.so.1", "w"):
            pass

    def heard(self):
        with open(f"{self.folder}/funnel.heard", "rb") as file:
            return file.read()

    def test_no_front_end_believes_it(self):
        for command in COMMANDS:
            with self.subTest(command=command):
                done = self.funnel(*command, **self.options)
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn("neither root's nor this user's", done.stderr)
                self.assertIn("CUDA_MPS_PIPE_DIRECTORY", done.stderr)
        done = self.run_program("nvidia-cuda-mps-control", input="quit\n", **self.options)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.heard(), b"", "what another user's process was told")

    def test_roots_daemon_is_found_behind_it(self):
        script = f"""mount -t tmpfs none /run || exit 77
            CUDA_MPS_LOG_DIRECTORY={self.log} {self.root}/bin/funneld -d || exit 1
            setpriv --reuid {OWNER} --regid {OWNER} --clear-groups env \
                XDG_RUNTIME_DIR={self.runtime} {self.root}/bin/funnel status
            {self.root}/bin/funnel stop --force"""
        del self.environment["CUDA_MPS_PIPE_DIRECTORY"]
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], env=self.environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=harness.TIMEOUT)
        if done.returncode == 77 or "unshare" in done.stdout:
            self.skipTest("cannot make a mount namespace")
        self.assertIn("pipe directory: /run/funnel", done.stdout)
        self.assertEqual(self.heard(), b"", "what another user's process was told")

    def test_a_user_that_is_named(self):
        self.options["environment"]["FUNNEL_DAEMON_UID"] = str(SQUATTER)
        done = self.funnel("status", **self.options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(wire.answer(QUERY), self.heard())


def server_row(device_count=1, name=b"uid_0", devices=b"", free=0, stall=b"", lane=b"main"):
    return wire.answer(wire.COMMAND_SERVER, wire.COMMAND_SERVER_BODY.pack(
        4711, 0, -(1 << 62), 1, 1, 0, 2, 13000, device_count, 1, 16, 10000, 0, name, lane, b"/" * 112,
        *[free] * wire.DEVICES, devices, 0, 5000, 0, 0, 0, 0, 0, 0, stall, b"\xff" * wire.CODE_CACHE.size, b"\xff" * 16,
        b"\xfe" * (wire.DEVICES * wire.SENSORS.size)))


def client_row(fill=b"\xff"):
    return wire.answer(wire.COMMAND_CLIENT, (4711).to_bytes(4, "little") + bytes(4) +
                       fill * wire.ROW.size)


DONE = wire.answer(wire.COMMAND_DONE, b"\0\0\0\0")
ESCAPE = b"\x1b]0;owned\x07" * 20

LIES = {
    "more devices than the array has": [server_row(0xFFFFFFF0), client_row(), DONE],
    "a few more": [server_row(200), client_row(), DONE],
    "texts without an end": [server_row(32, b"x" * 128, b"y" * wire.DEVICE.size * wire.DEVICES, 1 << 63,
                                        b"z" * 768, b"l" * 64), client_row(b"w"), DONE],
    "a client without a server": [client_row(), DONE],
    "a client of another server": [server_row(), client_row(b"\0"), DONE],
    "texts that command a terminal": [server_row(1, ESCAPE[:128], ESCAPE[:128], 0, ESCAPE),
                                      client_row(b"\x1b"),
                                      wire.answer(wire.OUTPUT, ESCAPE), DONE],
    "limits and quotas of no kind": [server_row(), wire.answer(wire.COMMAND_LIMIT, b"\xff" * 256),
                                     wire.answer(wire.COMMAND_QUOTA, b"\xff" * 64), DONE],
    "no answer": [],
    "half an answer": [server_row()[:200], DONE],
}


class Liar(Impostor):
    def check(self, lie, command, answers):
        folder = tempfile.mkdtemp(dir=self.root)
        os.chmod(folder, 0o755)
        self.impostor(f"{folder}/funnel", answers or [DONE[:4]])
        done = self.funnel(*command, environment={"CUDA_MPS_PIPE_DIRECTORY": folder})
        self.assertIn(done.returncode, (0, 1, 2), (lie, command, done.stderr))
        self.assertNotIn("\x1b", done.stdout + done.stderr, (lie, command))
        # 32 devices of 2 servers, in words; the rest of the memory would be more.
        self.assertLess(len(done.stdout), 100000, (lie, command))

    def test_answers_that_are_lies(self):
        for lie, answers in LIES.items():
            for command in (("ps",), ("status",), ("limits",), ("devices",), ("status", "--json"),
                            ("top", "-n", "1")):
                with self.subTest(lie=lie, command=command):
                    self.check(lie, command, answers)


class Ending(Impostor):
    """A daemon that dies when it is asked."""
    # `run` goes on: the program says what it finds.
    commands = (*(command for command in COMMANDS if command[0] != "run"),
                ("suspend", "4711"), ("evict", "4711"), ("resume", "4711"),
                ("migrate", "4711", "--device", "0"), ("checkpoint", "4711", "checkpoint"),
                ("provision", "equal"), ("server", "create", "one"), ("namespace", "create", "one"),
                ("memory", "audit", "on"), ("reload",), ("clients",))
    said = "funneld has ended before it answered; start it again with: funnel start"

    def test_commands(self):
        self.impostor(f"{self.pipe}/funnel", [None])
        for command in self.commands:
            with self.subTest(command=command):
                done = self.funnel(*command, cwd=self.root)
                self.assertEqual((done.returncode, done.stderr),
                                 (1, f"funnel {command[0]}: {self.said}\n"))

    def test_figures_that_go_on(self):
        """The first figures are there, and the daemon is killed before the next."""
        self.start()
        with subprocess.Popen([f"{self.root}/bin/funnel", "top", "--plain", "-d", "0.1"],
                              env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as top:
            self.processes.append(top)
            self.assertTrue(top.stdout.readline())
            os.kill(self.daemon_pid(), signal.SIGKILL)
            _, said = top.communicate(timeout=harness.TIMEOUT)
        self.assertEqual((top.returncode, said), (1, f"funnel top: {self.said}\n"))


if __name__ == "__main__":
    harness.main()
