#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ends the processes that a test leaves behind when it is killed.

A test that starts daemons calls protect() first. That starts this file as a process of its own
session, which waits for the end of the test, however it ends. Then it kills every process whose
environment carries the mark of the test. Daemons, servers and programs inherit the mark. Process
groups would not do, because a daemon leaves the group of the test."""
import glob
import os
import select
import signal
import subprocess
import sys
import time

MARK = "FUNNEL_TEST_RUN"


def protect():
    """Marks all processes that this one starts with os.environ, and has them ended after it."""
    if MARK in os.environ:
        return
    mark = f"{os.getpid()}.{time.monotonic_ns()}"
    guardian = subprocess.Popen([sys.executable, "-SB", os.path.abspath(__file__), str(os.getpid()),
                                 mark], start_new_session=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    guardian.stdout.readline()  # it watches from here on
    guardian.stdout.close()
    guardian.returncode = 0  # it outlives this process, so that Popen must not wait for it
    os.environ[MARK] = mark


def without(environment, *prefixes):
    """The variables that begin with none of these, and the mark in any case."""
    return {name: value for name, value in environment.items()
            if name == MARK or not name.startswith(prefixes)}


def marked(mark):
    """Process ids, but not that of this process."""
    wanted = f"{MARK}={mark}".encode()
    for path in glob.glob("/proc/[0-9]*/environ"):
        pid = int(path.split("/")[2])
        try:
            with open(path, "rb") as file:
                if pid != os.getpid() and wanted in file.read().split(b"\0"):
                    yield pid
        except OSError:
            pass


def end(mark):
    """Daemons first start servers when their clients die, so this looks until none is left."""
    for _ in range(100):
        pids = list(marked(mark))
        if not pids:
            return
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)


def main():
    test, mark = int(sys.argv[1]), sys.argv[2]
    ended = os.pidfd_open(test)
    print(mark, flush=True)
    os.close(1)
    select.select([ended], [], [])
    end(mark)


if __name__ == "__main__":
    main()
