#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon is killed at random moments, and started again, while programs work and others attach.

Programs that have attached notice nothing, and there is one server all the time. Each daemon lists
a program that works all the while. The file usage.jsonl has one line for each program that has
attached, with what the same program does when no daemon is killed. What commands set between the
kills is in force in each daemon.

With --reload it is reloaded instead, and no program may find it missing.
"""
import json
import os
import random
import signal
import subprocess
import threading
import time

import harness

PROGRAMS = {"vector_add": ["-n", "20000", "-r", "20"], "matmul": ["-n", "48", "-r", "10"],
            "reduction": ["-n", "20000", "-r", "20"]}
COUNTS = ("launches", "copies", "copied_to_device_bytes", "copied_from_device_bytes",
          "copied_within_bytes")
WORKERS = 3


def command(funnel, name, *arguments):
    return [funnel.binary, "run", "-q", "--no-start", "--", str(funnel.build / "examples" / name),
            *arguments]


def start_program(funnel, name, *arguments):
    return subprocess.Popen(command(funnel, name, *arguments), env=funnel.environment, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def usage_lines(funnel):
    path = funnel.folder / "log/usage.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def await_lines(funnel, count):
    began = time.monotonic()
    while len(lines := usage_lines(funnel)) < count:
        assert time.monotonic() - began < harness.TIMEOUT, f"{len(lines)} lines instead of {count}"
        time.sleep(0.02)
    return lines


class Worker(threading.Thread):
    """Starts one program after the other. One that comes while no daemon runs fails, and is noted
    as such: whether it had attached, usage.jsonl tells."""

    def __init__(self, funnel, chance):
        super().__init__()
        self.funnel, self.chance = funnel, chance
        self.ends = threading.Event()
        self.ran, self.failed = {}, {}  # PID: name, and PID: name and message

    def run(self):
        while not self.ends.is_set():
            name = self.chance.choice(list(PROGRAMS))
            program = start_program(self.funnel, name, *PROGRAMS[name])
            out, err = program.communicate(timeout=180)
            if program.returncode == 0:
                self.ran[program.pid] = name
            else:
                self.failed[program.pid] = f"{name}: {program.returncode}: {out}{err}"
                time.sleep(0.01)


def expected_counts(funnel):
    for name, arguments in PROGRAMS.items():
        program = start_program(funnel, name, *arguments)
        harness.check_end(name, program, program_output(funnel, name))
    lines = await_lines(funnel, len(PROGRAMS))
    return {name: [line[count] for count in COUNTS] for name, line in zip(PROGRAMS, lines)}


def program_output(funnel, name):
    return funnel.run_directly(name, *PROGRAMS[name])


def daemon_pid(funnel):
    return int((funnel.folder / "pipe/nvidia-cuda-mps-control.pid").read_text())


def kill_daemon(funnel):
    os.kill(daemon_pid(funnel), signal.SIGKILL)


def start_daemon(funnel, *options):
    """The lock of the dead one goes a moment after the signal."""
    began = time.monotonic()
    while True:
        done = subprocess.run([funnel.binary, "start", "--device", funnel.device, *options],
                              env=funnel.environment, capture_output=True, text=True, timeout=60)
        if done.returncode == 0:
            return
        assert time.monotonic() - began < harness.TIMEOUT, f"funnel start: {done.stderr}"
        time.sleep(0.01)


def kill_and_start(funnel, chance):
    kill_daemon(funnel)
    time.sleep(chance.choice((0, 0, 0.05, 0.2)))
    start_daemon(funnel)


def reload_daemon(funnel, chance):
    before = daemon_pid(funnel)
    ask(funnel, "reload")
    assert daemon_pid(funnel) == before, "a reload keeps the process"


def row_of(status, pid):
    rows = [client for client in status["clients"] if client["pid"] == pid]
    assert len(rows) == 1, f"the client {pid} is listed {len(rows)} times"
    return {what: rows[0][what] for what in ("pid", "id", "uid", "command", "since") if what in rows[0]}


SET = {}  # what commands have set: what it is called in `funnel limits`, and its value


def ask(funnel, *words):
    done = subprocess.run([funnel.binary, *words], env=funnel.environment, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, f"funnel {' '.join(words)}: {done.stdout}{done.stderr}"
    return done.stdout


def set_something(funnel, chance):
    """One more rule, or another value of one."""
    user, percent = 70000 + chance.randrange(10), chance.randint(1, 99)
    ask(funnel, "limit", "--user", str(user), "--sm", f"{percent}%")
    SET[f"user {user}"] = f"{percent}%"


def check_settings(funnel):
    lines = [line.split() for line in ask(funnel, "limits").splitlines()]
    shown = {" ".join(words[:2]): words[2] for words in lines if words[:1] == ["user"]}
    assert shown == SET, f"the daemon has the limits {shown}, and commands have set {SET}"


def check_daemon(funnel, server, pid, row):
    """The first answer waits for nothing but the server's."""
    began = time.monotonic()
    while funnel.server_pid() != server or row_of(funnel.status(), pid) != row:
        assert time.monotonic() - began < harness.TIMEOUT, f"the daemon shows {funnel.status_text()}"


def replace_many(funnel, chance, replace, times, pid):
    server, row = funnel.server_pid(), row_of(funnel.status(), pid)
    workers = [Worker(funnel, random.Random(chance.random())) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    try:
        for number in range(1, times + 1):
            time.sleep(chance.uniform(0, 0.25))
            if number % 3 == 0:
                set_something(funnel, chance)
            replace(funnel, chance)
            if number % 5 == 0 or number == times:
                check_daemon(funnel, server, pid, row)
                check_settings(funnel)
    finally:
        for worker in workers:
            worker.ends.set()
        for worker in workers:
            worker.join()
    check_daemon(funnel, server, pid, row)
    return workers


def check_accounts(funnel, workers, expected, steady):
    """Each program that ran has one line with what it did; one that failed had not attached."""
    ran = {pid: name for worker in workers for pid, name in worker.ran.items()}
    failed = {pid: what for worker in workers for pid, what in worker.failed.items()}
    assert ran, "no program ran"
    lines = await_lines(funnel, len(PROGRAMS) + len(ran) + 1)[len(PROGRAMS):]
    of_pid = {}
    for line in lines:
        of_pid.setdefault(line["pid"], []).append(line)
    for pid, name in ran.items():
        own = of_pid.pop(pid, [])
        assert len(own) == 1, f"{name} ({pid}) has {len(own)} lines: {own}"
        counts = [own[0][count] for count in COUNTS]
        assert own[0]["status"] == 0 and counts == expected[name], \
            f"{name} ({pid}): {counts}, not {expected[name]}: {own[0]}"
    assert len(of_pid.pop(steady)) == 1, "the program that worked all the time has one line"
    assert not of_pid, f"programs that failed had attached: {[failed.get(p, p) for p in of_pid]}"
    return len(ran), len(failed)


def count_starts(funnel):
    log = (funnel.folder / "log/control.log").read_text(errors="replace")
    return log.count("Starting new server")


def main():
    options = harness.arguments_of(__doc__)
    harness.say(f"seed {options.seed}")
    chance = random.Random(options.seed)
    with harness.running_funnel(options.build, options.device) as funnel:
        expected = expected_counts(funnel)
        steady = start_program(funnel, "matmul", "-n", "48", "-r", "1000000")
        began = time.monotonic()
        while not any(client["pid"] == steady.pid for client in funnel.status()["clients"]):
            assert time.monotonic() - began < harness.TIMEOUT, "the first program does not attach"
        replace = reload_daemon if options.reload else kill_and_start
        workers = replace_many(funnel, chance, replace, options.kills, steady.pid)
        assert steady.poll() is None, f"a program has ended: {steady.communicate()}"
        steady.kill()
        steady.communicate()
        ran, failed = check_accounts(funnel, workers, expected, steady.pid)
        assert count_starts(funnel) == 1, "another server was started"
        first = [what for worker in workers for what in worker.failed.values()][:1]
        assert not failed or not options.reload, f"{failed} programs met a reload: {first}"
    what = "reloads" if options.reload else "daemons killed"
    harness.say(f"{options.kills} {what}: {ran} programs ran, {failed} found no daemon; "
                "one server, all accounts are exact, and settings are kept")


harness.finish(main)
