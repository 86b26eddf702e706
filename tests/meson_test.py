#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `meson test` in a build, and tests that are known to be unstable again when they fail.

    tests/meson_test.py BUILD [arguments of `meson test`]

tests/unstable.list names the tests that a busy machine can make fail, with the reason. When only
such tests have failed, and at most three, each runs alone, five times. When all five pass, the run
has passed. The name is printed, and what it had printed stays above."""
import fnmatch
import json
import os
import pathlib
import subprocess
import sys

ALONE = 5  # runs in a row
MOST = 3  # tests
FAILURES = {"FAIL", "TIMEOUT", "ERROR", "INTERRUPT", "UNEXPECTEDPASS"}


def meson(build, *arguments):
    command = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools/setup")
    program = subprocess.check_output([command, "--meson"], text=True).strip()
    return subprocess.call([program, "test", "-C", build, "--print-errorlogs", *arguments])


def log_of(build):
    return os.path.join(build, "meson-logs", "testlog.json")


def forget(build):
    """A run that does not come to its tests must not be judged by an older one's log."""
    if os.path.exists(log_of(build)):
        os.unlink(log_of(build))


def failed(build):
    """The names of the tests that failed in the last run, without project and suites; [] when it did
    not come to its tests."""
    if not os.path.exists(log_of(build)):
        return []
    with open(log_of(build)) as log:
        results = [json.loads(line) for line in log]
    return [one["name"].split(" / ", 1)[-1] for one in results if one["result"] in FAILURES]


def unstable():
    """The patterns of tests/unstable.list."""
    text = pathlib.Path(__file__).with_name("unstable.list").read_text()
    return [line.split("|")[0].strip() for line in text.splitlines() if not line.startswith("#")]


def is_unstable(name, patterns):
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def timeout_multiplier(arguments):
    """The part of the arguments that holds alone as well."""
    option = "--timeout-multiplier"
    return [option, arguments[arguments.index(option) + 1]] if option in arguments else []


def passes_alone(build, name, *arguments):
    print(f"{name} failed; it runs again, alone, {ALONE} times.", flush=True)
    return meson(build, "--no-rebuild", "--num-processes", "1", "--repeat", str(ALONE), *arguments,
                 name) == 0


def main(build, *arguments):
    forget(build)
    status = meson(build, *arguments)
    names = failed(build)
    if status == 0 or not 0 < len(names) <= MOST:
        return status
    patterns = unstable()
    if not all(is_unstable(name, patterns) for name in names):
        return status
    if not all([passes_alone(build, name, *timeout_multiplier(arguments)) for name in names]):
        return 1
    print(f"Failed beside others, passed {ALONE} times alone: {', '.join(names)}.", flush=True)
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
