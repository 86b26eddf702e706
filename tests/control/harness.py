# SPDX-License-Identifier: Apache-2.0
"""An installation of Funnel of its own for a test: the real daemon and front ends, in a directory
where their funnel-server is fake_server.py. Run as: python3 test_x.py BUILD [unittest options]."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import beside  # noqa: E402  (found through the path above)
import guardian  # noqa: E402
import wire  # noqa: E402

BUILD = None
waits = beside.waits
TIMEOUT = 60  # seconds after which something has gone wrong, on the busiest machine


def json_lines(path):
    """What was written to the file so far, which may be in the middle of a line."""
    try:
        with open(path) as file:
            return [json.loads(line) for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []


def texts_of(path):
    """A log without its records, which stand behind tabs."""
    with open(path) as file:
        return re.sub("\t.*", "", file.read())


def wait_until(condition, what="something"):
    """A condition that starts programs leaves half of the time to what it waits for."""
    end = time.monotonic() + TIMEOUT
    while True:
        start = time.monotonic()
        if condition():
            return
        if start > end:
            raise AssertionError(f"{what} did not come about")
        time.sleep(max(0.01, time.monotonic() - start))


def become_user(uid):
    """For a child process of root: it is that user from here on, and in its group alone."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as status:
            return status.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def has_ended(pid):
    """With all its threads: others may run on for a while after the first, which looks like the end."""
    try:
        return os.listdir(f"/proc/{pid}/task") == [str(pid)] and not alive(pid)
    except OSError:
        return True


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def with_free_port(run):
    """What run(port) has done. Another process may take a free port before the daemon does."""
    for _ in range(10):
        port = free_port()
        done = run(port)
        if "Address already in use" not in done.stderr:
            break
    return port, done


def has_number(text, number):
    """As a number of its own, not as digits of another one."""
    return re.search(rf"(?<![\d.]){number}(?![\d.])", text) is not None


def limit_time(test):
    """One that hangs fails, and cleans up, instead of being killed by Meson much later."""
    def give_up(*_):
        raise AssertionError(f"{test.id()} has taken more than {TIMEOUT * 3} seconds")

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(TIMEOUT * 3)
    test.addCleanup(signal.alarm, 0)


class Client:
    """A program, as far as the daemon sees one."""

    def __init__(self, path, **hello):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(TIMEOUT)
        self.socket.connect(path)
        self.socket.send(wire.hello(**hello))

    def welcome(self):
        data = self.socket.recv(8192)
        return wire.welcome(data) if data else None

    def close(self):
        self.socket.close()


class TestCase(unittest.TestCase):
    fake = "ready"

    def setUp(self):
        limit_time(self)
        self.root = tempfile.mkdtemp(prefix="fnl-", dir="/tmp")
        os.chmod(self.root, 0o755)
        self.pipe = os.path.join(self.root, "pipe")
        self.log = os.path.join(self.pipe, "log")
        self.install()
        self.environment = {k: v for k, v in os.environ.items()
                            if not k.startswith(("CUDA_", "FUNNEL_", "LD_", "XDG_"))}
        self.environment.update(XDG_STATE_HOME=os.path.join(self.root, "state"),
                                CUDA_MPS_PIPE_DIRECTORY=self.pipe, FUNNEL_FAKE=self.fake,
                                FUNNEL_TEST_RUN=os.environ[guardian.MARK],
                                # Some tests preload a library into programs built with ASan.
                                ASAN_OPTIONS="verify_asan_link_order=0")
        self.processes = []

    def install(self):
        binaries = os.path.join(self.root, "bin")
        os.makedirs(binaries)
        for name in ("funnel", "funneld", "nvidia-cuda-mps-control"):
            shutil.copy(os.path.join(BUILD, "bin", name), binaries)
        shutil.copy(os.path.join(HERE, "wire.py"), binaries)
        # Other users start it, too. Hundreds are started, and most of their time was site-packages'.
        python = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
        server = os.path.join(binaries, "funnel-server")
        with open(os.path.join(HERE, "fake_server.py")) as script, open(server, "w") as file:
            file.write(f"#!{python} -S\n" + script.read())
        os.chmod(server, 0o755)

    def tearDown(self):
        pid = self.daemon_pid()
        if pid and alive(pid):
            os.kill(pid, signal.SIGTERM)
            wait_until(lambda: not alive(pid), "the end of the daemon")
        for process in self.processes:
            with process:
                process.kill()
        shutil.rmtree(self.root, ignore_errors=True)

    # ---- commands ----

    def run_program(self, name, *arguments, **options):
        environment = {**self.environment, **options.pop("environment", {})}
        return subprocess.run([os.path.join(self.root, "bin", name), *arguments], env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=TIMEOUT * 3, **options)

    def funnel(self, *arguments, **options):
        return self.run_program("funnel", *arguments, **options)

    def funnel_json(self, *arguments):
        done = self.funnel(*arguments, "--json")
        if "without the jansson library" in done.stderr:
            self.skipTest("built without jansson")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def mps(self, commands, **options):
        """What the commands answer, as lines."""
        done = self.run_program("nvidia-cuda-mps-control", input=commands, **options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout.splitlines()

    def start(self, *arguments, **options):
        done = self.run_program("funneld", "-d", *arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)

    # ---- looking ----

    def daemon_pid(self):
        try:
            with open(os.path.join(self.pipe, "nvidia-cuda-mps-control.pid")) as file:
                return int(file.read())
        except (OSError, ValueError):
            return None

    @property
    def socket_path(self):
        return os.path.join(self.pipe, "funnel")

    def client(self, **hello):
        client = Client(self.socket_path, **hello)
        self.addCleanup(client.close)
        return client

    def control_log(self):
        return texts_of(os.path.join(self.log, "control.log"))

    def settle_logs(self):
        """Servers log through the daemon, which reads that before it answers a question put later."""
        with contextlib.suppress(OSError):  # it has ended, and read everything before
            client = Client(self.socket_path, kind=wire.HELLO_COMMAND)
            with client.socket:
                client.welcome()

    def server_events(self, event, *folder):
        """What the fake servers wrote down."""
        self.settle_logs()
        events = json_lines(os.path.join(self.log, *folder, "server.log"))
        return [one for one in events if one["event"] == event]

    def servers(self):
        return [int(pid) for pid in self.mps("get_server_list\n")]


def main():
    global BUILD
    BUILD = os.path.abspath(sys.argv.pop(1))
    guardian.protect()
    beside.Runner.build = BUILD
    unittest.main(module="__main__", verbosity=1, testRunner=beside.Runner)
