# SPDX-License-Identifier: Apache-2.0
"""What the stress tests share: a daemon of their own, example programs, and what a server holds."""
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import guardian  # noqa: E402  (found through the path above)

SKIPPED = 77
KEEP_LOGS = None
# Seconds after which something has gone wrong, on the busiest machine; more under a sanitizer.
TIMEOUT = float(os.environ.get("FUNNEL_TEST_TIMEOUT", 60))

# Programs of about a tenth of a second each, of every kind of work.
PROGRAMS = {
    "vector_add": ["-n", "20000", "-r", "3"],
    "matmul": ["-n", "48", "-r", "2"],
    "reduction": ["-n", "20000", "-r", "3"],
    "histogram": ["-n", "100000", "-r", "1"],
    "n_body": ["-n", "128", "-r", "4"],
    "mandelbrot": ["-n", "60", "-r", "1"],
}


# A window of addresses outlives its client and serves the next, with the pages that it has pinned.
WINDOW_FILES = ("/memfd:funnel-gpu", "/memfd:funnel-host")
# As many are kept when no client is left: WINDOWS_WARM in src/server/memory/window.c.
WINDOWS_WARM = 4
# Bytes of device memory. They are variables of libraries that are kept for the next client, and
# what the context of a software GPU takes for the heap of kernels and for printf.
LIBRARIES_KEPT = 4 << 20
CONTEXT = 9 << 20
# By how much a server may grow. It has windows for all who were there at once, the dying included,
# and the threads of the device, which are made when they are first needed.
SLACK = {"descriptors of windows": 128, "threads": 24, "device memory": LIBRARIES_KEPT}


def wait_until(condition, failure):
    """Fails with that message after TIMEOUT."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < TIMEOUT, failure
        time.sleep(0.002)


def read_link(path):
    """None for a descriptor that was closed while we looked."""
    try:
        return os.readlink(path)
    except FileNotFoundError:
        return None


def files_of(process):
    """What its descriptors lead to. Those of a server are root's to see; others find none."""
    try:
        return [file for file in map(read_link, (process / "fd").iterdir()) if file]
    except PermissionError:
        return []


class Funnel:
    def __init__(self, build, device, folder):
        self.build = pathlib.Path(build).resolve()
        self.device = device
        self.binary = str(self.build / "bin/funnel")
        self.folder = pathlib.Path(folder)
        self.environment = dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=str(self.folder / "pipe"),
                                CUDA_MPS_LOG_DIRECTORY=str(self.folder / "log"))

    def command(self, name, *arguments, direct=False):
        return [self.binary, "run", "-q", *(["--direct"] if direct else []), "--device",
                self.device, "--", str(self.build / "examples" / name), *arguments]

    def start_program(self, name, *arguments):
        """`funnel run` becomes the program, so this process is the client."""
        return subprocess.Popen(self.command(name, *arguments), env=self.environment, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def run_directly(self, name, *arguments):
        done = subprocess.run(self.command(name, *arguments, direct=True), env=self.environment,
                              text=True, capture_output=True, timeout=120)
        if done.returncode == SKIPPED:
            raise SystemExit(SKIPPED)
        assert done.returncode == 0, f"{name} fails directly: {done.stdout}{done.stderr}"
        return done.stdout

    def status(self):
        done = subprocess.run([self.binary, "status", "--json"], env=self.environment, text=True,
                              capture_output=True, timeout=30)
        assert done.returncode == 0, f"funnel status: {done.stderr}"
        return json.loads(done.stdout)

    def status_text(self):
        done = subprocess.run([self.binary, "status"], env=self.environment, text=True,
                              capture_output=True, timeout=30)
        assert done.returncode == 0, f"funnel status: {done.stderr}"
        return done.stdout

    def server_pid(self):
        """Of the main lane; from the text, because there may be no JSON on a machine with a GPU."""
        servers = re.findall(r"^Server [^\s:]+ \((\d+)\) of user", self.status_text(), re.M)
        assert len(servers) == 1, f"one server is expected: {servers}"
        return int(servers[0])

    def await_standby(self, budget):
        """None is ready at first, and for some time after a server has ended."""
        while not re.search(r"^  a standby server \(\d+\) is ready", self.status_text(), re.M):
            if budget.is_spent():
                return
            time.sleep(0.005)

    def holdings(self):
        """What the server holds of the system, of its clients and of the device."""
        process = pathlib.Path("/proc", str(self.server_pid()))
        status = self.status()
        files = files_of(process)
        windows = [file for file in files if file.startswith(WINDOW_FILES)]
        return {
            "clients": len(status["clients"]),
            "device memory": sum(device["memory_total"] - device["memory_free"]
                                 for device in status["devices"]),
            "descriptors": len(files) - len(windows),
            "descriptors of windows": len(windows),
            "threads": len(list((process / "task").iterdir())),
        }

    def await_idle(self):
        """What is held when all clients have gone; all they had comes back but for their
        libraries."""
        began = time.monotonic()
        while True:
            held = self.holdings()
            if held["clients"] == 0 and held["device memory"] <= CONTEXT + LIBRARIES_KEPT:
                return held
            assert time.monotonic() - began < TIMEOUT, f"no program runs, but there is left: {held}"
            time.sleep(0.02)

    def await_trimmed(self):
        """Some seconds after the last client all but a few windows give back what they pinned."""
        process = pathlib.Path("/proc", str(self.server_pid()))
        began = time.monotonic()
        while (kept := files_of(process)):
            windows = sum(file.startswith(WINDOW_FILES[0]) for file in kept)
            if windows <= WINDOWS_WARM:
                return
            assert time.monotonic() - began < TIMEOUT, \
                f"no program runs, but {windows} windows are kept"
            time.sleep(0.1)

    def server_log(self):
        return [line for log in (self.folder / "log").glob("server*.log")
                for line in log.read_text(errors="replace").splitlines()]

    def pool_stays(self):
        """How often workers of a pool have served clients that have left. None of a killed server."""
        return sum(map(int, re.findall(r"with workers of the pool (\d+) times",
                                       "\n".join(self.server_log()), re.M)))

    def keep_logs(self):
        """Where --logs says."""
        if KEEP_LOGS:
            shutil.copytree(self.folder / "log", KEEP_LOGS, dirs_exist_ok=True)

    def show_logs(self):
        for log in sorted((self.folder / "log").glob("*.log")):
            lines = log.read_text(errors="replace").splitlines()[-25:]
            print(f"--- {log.name}\n" + "\n".join(lines))


@contextlib.contextmanager
def running_funnel(build, device="soft", *options):
    with tempfile.TemporaryDirectory(prefix="funnel-stress-") as folder:
        funnel = Funnel(build, device, folder)
        subprocess.run([funnel.binary, "start", "--device", device, *options], env=funnel.environment,
                       check=True, stdout=subprocess.DEVNULL)
        try:
            yield funnel
        except BaseException as error:
            if "SIGINT" not in str(error):
                funnel.show_logs()
            raise
        finally:
            subprocess.run([funnel.binary, "stop", "--force"], env=funnel.environment, timeout=60,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            funnel.keep_logs()


def expect_lines(funnel):
    """What each program prints when it runs directly."""
    return {name: funnel.run_directly(name, *arguments) for name, arguments in PROGRAMS.items()}


def check_end(name, program, expected, timeout=3 * TIMEOUT):
    out, err = program.communicate(timeout=timeout)
    assert program.returncode == 0, f"{name}: status {program.returncode}: {out}{err}"
    assert out == expected, f"{name}: {out!r} instead of {expected!r}"


def check_nothing_grew(before, after):
    say(f"held before: {before}")
    say(f"held after:  {after}")
    for what in before:
        most = before[what] + SLACK.get(what, 0)
        assert after[what] <= most, f"{what}: {before[what]} before, {after[what]} after"


def say(text):
    print(text, flush=True)


class Budget:
    """The time that a run may take; without one it takes as long as it has to. A test that has
    spent it ends where it is, and says what it has found so far."""

    def __init__(self, seconds):
        self.until = time.monotonic() + seconds if seconds else float("inf")

    def left(self):
        return self.until - time.monotonic()

    def is_spent(self):
        return self.left() <= 0

    def part(self, parts):
        """For the first of so many parts of what is left."""
        return Budget(max(self.left(), 0.001) / parts if self.until < float("inf") else None)


class Interrupted(BaseException):
    """By a signal, or because it has hung. What has been found so far is said on the way out."""


def interrupt(number, _):
    signal.alarm(0)
    raise Interrupted(f"interrupted by {signal.Signals(number).name}"
                      if number != signal.SIGALRM else "failed: it hangs")


def allow_interrupts(seconds):
    """Also by the clock, when the time of the run has been over for long."""
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGALRM:
        signal.signal(number, interrupt)
    if seconds:
        signal.alarm(int(seconds + 2 * TIMEOUT))


def arguments_of(description, seconds=None):
    global KEEP_LOGS
    import argparse

    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--device", choices=["soft", "cuda"], default="soft")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 20))
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--server-kills", type=int, default=10)
    parser.add_argument("--faults", type=int, default=8)
    parser.add_argument("--at-once", type=int, default=1, help="so many faults side by side (fate.py)")
    parser.add_argument("--kind", action="append", help="only this kind of fault, or these")
    parser.add_argument("--reload", action="store_true",
                        help="reload the daemon in place of each kill (daemon_kills.py)")
    parser.add_argument("--spare", action="store_true")
    parser.add_argument("--busy", type=int, default=0,
                        help="so many programs that launch and wait all the time (chaos.py, fate.py)")
    parser.add_argument("--logs", help="a folder for the logs of daemon and servers")
    parser.add_argument("--seconds", type=float, default=seconds,
                        help="then it ends, with the figures so far")
    options = parser.parse_args()
    KEEP_LOGS = options.logs
    allow_interrupts(options.seconds)
    return options


def finish(main):
    guardian.protect()
    try:
        main()
    except AssertionError as error:
        say(f"failed: {error}")
        sys.exit(1)
    except Interrupted as interrupted:
        say(str(interrupted))
        sys.exit(1)
