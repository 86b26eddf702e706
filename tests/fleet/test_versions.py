# SPDX-License-Identifier: Apache-2.0
"""Neighboring releases understand each other or say that they do not: test_versions.py BUILD.

The messages of the release before are kept here as bytes, made by hand from its layout, and not by
what src/ says today. A change of what an old peer reads fails here. What all
releases always share is the beginning of the hello (magic, version, kind) and the whole welcome.
"""
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "control"))
BUILD = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else pathlib.Path("build")
SOFT = BUILD / "lib/funnel/softgpu/libcuda.so.1"

# Version 1: magic, version, kind, hash, share, priority, 32 memory limits, program, release, 8 named
# limits, group, partition. Version 2 added the window.
HELLO_1 = struct.Struct("<IHHQII32Q64s32s" + "48sQ" * 8 + "32s96s")
WELCOME = struct.Struct("<Ii472s")
HELLO_MAGIC, WELCOME_MAGIC = b"FNL1", b"FNW1"
CLIENT, COMMAND = 1, 2
CONNECTION_FAILED = 805


def hello_1(kind):
    magic = struct.unpack("<I", HELLO_MAGIC)[0]
    return HELLO_1.pack(magic, 1, kind, 0x1234, 0, 0xFFFFFFFF, *[0] * 32, b"old", b"0.0.9",
                        *(b"", 0) * 8, b"", b"")


def environment(pipe):
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith(("CUDA_", "FUNNEL_", "LD_", "XDG_"))}
    return {**clean, "CUDA_MPS_PIPE_DIRECTORY": pipe}


def read_welcome(data):
    magic, status, text = WELCOME.unpack_from(data)
    return struct.pack("<I", magic), status, text.split(b"\0")[0].decode()


class Scene(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fnl-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.pipe = os.path.join(folder.name, "pipe")
        self.log = os.path.join(folder.name, "client.log")


class OldPeers(Scene):
    """Of the release before, at today's daemon."""

    def setUp(self):
        super().setUp()
        subprocess.run([BUILD / "bin/funneld", "-d", "--device", "soft"], check=True, timeout=60,
                       env=environment(self.pipe))
        self.addCleanup(subprocess.run, [BUILD / "bin/funnel", "stop", "--force"],
                        env=environment(self.pipe), stdout=subprocess.DEVNULL, timeout=60)

    def answer(self, data):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
            peer.settimeout(60)
            peer.connect(os.path.join(self.pipe, "funnel"))
            peer.send(data)
            return read_welcome(peer.recv(8192))

    def test_both_kinds_are_told(self):
        for kind in (CLIENT, COMMAND):
            magic, status, text = self.answer(hello_1(kind))
            self.assertEqual((magic, status), (WELCOME_MAGIC, CONNECTION_FAILED))
            self.assertIn("same release", text)

    def test_one_of_the_future_is_told(self):
        future = HELLO_MAGIC + struct.pack("<HH", 99, CLIENT) + b"\0" * 4000
        magic, status, text = self.answer(future)
        self.assertEqual((magic, status), (WELCOME_MAGIC, CONNECTION_FAILED))
        self.assertIn("same release", text)


class OldDaemon(Scene):
    """Today's programs at a daemon of the release before, which refuses them in its own words."""

    WORDS = "This is funneld 0.0.9, and it does not understand the client's hello"

    def setUp(self):
        super().setUp()
        os.mkdir(self.pipe)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(os.path.join(self.pipe, "funnel"))
        self.listener.listen()
        self.heard = []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        self.addCleanup(self.listener.close)

    def serve(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            with peer:
                self.heard.append(peer.recv(8192))
                text = self.WORDS.encode()
                peer.send(WELCOME.pack(*struct.unpack("<I", WELCOME_MAGIC), CONNECTION_FAILED, text))

    def begins_as_ever(self):
        hellos = [data for data in self.heard if data]
        self.assertTrue(hellos)
        for data in hellos:
            self.assertEqual(data[:4], HELLO_MAGIC)
            self.assertIn(struct.unpack_from("<H", data, 6)[0], (CLIENT, COMMAND))

    def test_program(self):
        """It gets an error, never the driver beside the daemon, and the log says why."""
        done = subprocess.run([BUILD / "examples/vector_add", "-n", "100"], env={
            **environment(self.pipe), "LD_LIBRARY_PATH": str(BUILD / "lib/funnel"),
            "FUNNEL_DRIVER": str(SOFT), "FUNNEL_LOG": self.log},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("correct", done.stdout)
        self.assertIn(self.WORDS, pathlib.Path(self.log).read_text())
        self.begins_as_ever()

    def test_front_end(self):
        done = subprocess.run([BUILD / "bin/funnel", "status"], env=environment(self.pipe),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn(self.WORDS, done.stdout)
        self.begins_as_ever()


class Numbers(unittest.TestCase):
    def test_a_new_layout_has_a_new_number(self):
        """The size of a hello belongs to its version."""
        text = (HERE.parent.parent / "src/ipc/hello.h").read_text()
        version = int(re.search(r"#define HELLO_VERSION (\d+)", text).group(1))
        import wire
        sizes = {1: HELLO_1.size, 2: HELLO_1.size + 8, 3: HELLO_1.size + 8 + 16 + 256,
                 4: HELLO_1.size + 8 + 8 + 16 + 256, 5: HELLO_1.size + 8 + 8 + 8 + 16 + 256,
                 6: HELLO_1.size + 8 + 8 + 8 + 8 + 16 + 256}
        self.assertIn(version, sizes, "keep the layout of the version before in this test")
        self.assertEqual(wire.HELLO.size, sizes[version])


if __name__ == "__main__":
    unittest.main()
