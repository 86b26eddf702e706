#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server loads what programs of earlier servers have used, before a program asks for it.

The server's own counters say whether a program found its code there; how long that took is never
asked. Entries that are broken, foreign or suspect are deleted, and the programs run all the same.
"""
import contextlib
import os
import subprocess
import tempfile
import time

import harness
from scene import Program

NUMBER = 7  # of the code


@contextlib.contextmanager
def server(build, cache, **variables):
    variables = {"FUNNEL_CODE_CACHE": "1", "FUNNEL_CACHE_PATH": cache, **variables}
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        with harness.running_funnel(build) as funnel:
            yield funnel
            stop(funnel)
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def stop(funnel):
    """Without force: the server saves what it has not saved yet."""
    subprocess.run([funnel.binary, "stop"], env=funnel.environment, check=True,
                   timeout=harness.TIMEOUT, stdout=subprocess.DEVNULL)


def counters(funnel):
    """From the text, because there may be no JSON; None without a cache."""
    line = [line for line in funnel.status_text().splitlines() if "code cache:" in line]
    if not line:
        return None
    words = line[0].split()
    assert words[3] == ("entry," if words[2] == "1" else "entries,"), line
    return {"entries": int(words[2]), "loaded": int(words[-7]), "used": int(words[-4])}


def await_entry(funnel):
    began = time.monotonic()
    while (now := counters(funnel))["entries"] < 1:
        assert time.monotonic() - began < harness.TIMEOUT, f"nothing is saved: {now}"
        time.sleep(0.02)


def await_log(funnel, text):
    began = time.monotonic()
    while not any(text in line for line in funnel.server_log()):
        assert time.monotonic() - began < harness.TIMEOUT, f"{text!r} is not logged"
        time.sleep(0.02)


def run_code(funnel):
    program = Program(funnel, "new-client", NUMBER)
    program.expect("done")
    program.end()


def start_server(funnel):
    """By a program that loads other code."""
    program = Program(funnel, "witness")
    program.expect("ready")
    program.end()


def list_entries(funnel):
    done = subprocess.run([funnel.binary, "cache", "list"], env=funnel.environment, text=True,
                          capture_output=True, timeout=harness.TIMEOUT)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def files(cache, ending):
    return sorted(os.path.join(cache, name) for name in os.listdir(cache) if name.endswith(ending))


def check_saved_and_loaded(build, cache):
    with server(build, cache) as funnel:
        run_code(funnel)
    with server(build, cache) as funnel:
        start_server(funnel)
        await_log(funnel, "that programs used before, from")
        before = counters(funnel)
        run_code(funnel)
        assert counters(funnel)["used"] == before["used"] + 1, (before, counters(funnel))
        assert any("software" in line for line in list_entries(funnel)), list_entries(funnel)


def check_saved_while_running(build, cache):
    """A server that is killed has saved what was used some time before."""
    subprocess.run([f"{build}/bin/funnel", "cache", "clear"], check=True, timeout=harness.TIMEOUT,
                   env={**os.environ, "FUNNEL_CACHE_PATH": cache}, stdout=subprocess.DEVNULL)
    assert not files(cache, ".code") and not files(cache, ".kernels")
    with server(build, cache) as funnel:
        run_code(funnel)
        await_entry(funnel)
        assert len(files(cache, ".code")) == 1


def flip_byte(path):
    with open(path, "r+b") as file:
        file.seek(-9, os.SEEK_END)
        byte = file.read(1)[0]
        file.seek(-9, os.SEEK_END)
        file.write(bytes([byte ^ 1]))


def check_broken(build, cache, harm):
    """All entries are harmed; they are deleted, and made again."""
    for path in files(cache, ".code"):
        harm(path)
    with server(build, cache) as funnel:
        start_server(funnel)
        run_code(funnel)
        assert counters(funnel)["loaded"] == 0, counters(funnel)
    check_saved_and_loaded(build, cache)


def check_suspect(build, cache):
    """A server has died while it loaded them: no process holds the lock that it has left."""
    for path in files(cache, ".code"):
        with open(path.replace(".code", ".loading"), "w", encoding="ascii"):
            pass
    with server(build, cache) as funnel:
        start_server(funnel)
        run_code(funnel)
        await_log(funnel, "a server has ended while it loaded them")
        assert counters(funnel)["loaded"] == 0, counters(funnel)


def check_off(build, cache, **variables):
    with server(build, cache, **variables) as funnel:
        run_code(funnel)
        assert counters(funnel) is None, counters(funnel)
        return funnel.server_log()


def check_refused(build, cache):
    os.chmod(cache, 0o755)
    log = check_off(build, cache)
    assert any("has to belong to this server's user" in line for line in log), log
    os.chmod(cache, 0o700)


def check_full(build, cache):
    """No image fits: that is no error for anybody."""
    with server(build, cache, FUNNEL_CACHE_MAXSIZE="1K") as funnel:
        run_code(funnel)
        start_server(funnel)
    with server(build, cache) as funnel:
        run_code(funnel)


def main():
    options = harness.arguments_of(__doc__)
    with tempfile.TemporaryDirectory(prefix="funnel-code-cache-") as folder:
        cache = os.path.join(folder, "caches", "funnel")
        check_saved_and_loaded(options.build, cache)
        check_saved_while_running(options.build, cache)
        check_broken(options.build, cache, flip_byte)
        check_broken(options.build, cache, lambda path: os.truncate(path, 1100))
        check_broken(options.build, cache, lambda path: os.chmod(path, 0o644))
        check_suspect(options.build, cache)
        check_refused(options.build, cache)
        check_off(options.build, cache, CUDA_CACHE_DISABLE="1")
        check_off(options.build, cache, FUNNEL_CODE_CACHE="0")
        check_full(options.build, cache)
    harness.say("code that was used is loaded by the next server, and broken entries are deleted")


harness.finish(main)
