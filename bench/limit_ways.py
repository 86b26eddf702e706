# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's MPS and Funnel, asked the same: the programs of tests/limits as clients, and the
commands that both control programs know."""
import contextlib
import os
import select
import subprocess
import time
from pathlib import Path

TIMEOUT_S = 20  # seconds that nothing should take


class NoAnswer(Exception):
    """It did not come in time, or was no answer."""


class Program:
    """A client that works. Its answers are lines of words."""

    def __init__(self, command, environment):
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, text=True,
                                        bufsize=1,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.pid, self.unread = self.process.pid, b""

    def read(self, until):
        """Some more of what it wrote; nothing at its end. A line that a file object has read ahead
        would not be seen by select."""
        out = self.process.stdout.fileno()
        if not select.select([out], [], [], max(0, until - time.monotonic()))[0]:
            raise NoAnswer("nothing in time")
        return os.read(out, 4096)

    def answer(self, timeout=TIMEOUT_S):
        until = time.monotonic() + timeout
        while b"\n" not in self.unread:
            part = self.read(until)
            if not part:
                break
            self.unread += part
        line, _, self.unread = self.unread.partition(b"\n")
        return line.decode().split()

    def ready(self):
        if self.answer() != ["ready"]:
            raise NoAnswer("it did not come up")
        return self

    def go(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write("\n")

    def kill(self):
        self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # a driver may hold it
            self.process.wait(TIMEOUT_S)


class Way:
    """One of the two, with a daemon of its own."""

    def __init__(self, mode, control, build):
        self.mode, self.name = mode, mode.name
        self.control = control
        self.programs = Path(build) / "tests/limits"
        self.running = []

    # ---- the daemon ----

    def start(self, **environment):
        """A fresh daemon; `environment` is its own and not its clients'."""
        plain = self.mode.environment
        self.mode.environment = lambda: {**plain(), **environment}
        try:
            self.mode.start()
        finally:
            self.mode.environment = plain

    def stop(self):
        for program in self.running:
            program.kill()
        self.running = []
        self.mode.stop()

    def restart(self, **environment):
        self.stop()
        self.start(**environment)

    def command(self, text, timeout=TIMEOUT_S):
        """What the control program answers, as words."""
        try:
            done = subprocess.run([self.control], input=text + "\n", text=True, timeout=timeout,
                                  env=self.mode.environment(), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
        except subprocess.TimeoutExpired as error:
            raise NoAnswer(f"nothing for {timeout} s") from error
        return done.stdout.split()

    def server(self):
        """Its process id; one is started by the first client."""
        pids = self.command("get_server_list")
        if not pids:
            self.ask("sms")
            pids = self.command("get_server_list")
        return pids[0]

    def end_server(self):
        """The next client finds a new one."""
        pid = self.server()
        self.command(f"shutdown_server {pid}")
        self.wait_until(lambda: pid not in self.command("get_server_list"))

    def await_no_clients(self):
        server = self.server()
        self.wait_until(lambda: not self.command(f"get_client_list {server}"))

    @staticmethod
    def wait_until(condition, timeout=TIMEOUT_S):
        began = time.monotonic()
        while not condition():
            if time.monotonic() - began > timeout:
                raise NoAnswer(f"not so after {timeout} s")
            time.sleep(0.02)

    # ---- clients ----

    def spawn(self, program, *words, **environment):
        command = [*self.mode.prefix, str(self.programs / program), *map(str, words)]
        client = Program(command, {**self.mode.environment(), **environment})
        self.running.append(client)
        return client

    def begin(self, role, seconds, **environment):
        """One that works from go() on."""
        return self.spawn("limits_load", role, seconds, **environment).ready()

    def ask(self, *questions, **environment):
        """The answers of a program that does nothing else, as lists of numbers."""
        client = self.spawn("limits_probe", *questions, **environment)
        try:
            out = client.process.communicate(timeout=3 * TIMEOUT_S)[0]
            return [[int(word) for word in line.split()] for line in out.splitlines()]
        except (subprocess.TimeoutExpired, ValueError) as error:
            raise NoAnswer(str(error)) from error
        finally:
            client.kill()
            self.running.remove(client)

    def small_beside_flood(self, priority, seconds):
        """A client that waits for each of its small kernels. Beside it one of this priority always
        has more blocks of 1 ms waiting than fit on the GPU; None = alone. Kernels a second, median
        and 99th percentile in us."""
        others = []
        if priority:
            others.append(self.begin("flood", seconds + 2, CUDA_MPS_CLIENT_PRIORITY=priority))
        small = self.begin("small", seconds)
        for client in others:
            client.go()
        time.sleep(0.3)
        small.go()
        try:
            count, result, median, p99 = small.answer(seconds + TIMEOUT_S)
        finally:
            self.end(small, *others)
        if result != "0":
            raise NoAnswer(f"error {result}")
        return int(count) / seconds, float(median), float(p99)

    def end(self, *clients):
        for client in clients:
            client.kill()
            self.running.remove(client)
