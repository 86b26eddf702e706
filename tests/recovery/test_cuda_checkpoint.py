#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints by the programs of others: NVIDIA's utility, CUDA's calls, and CRIU.
Run as: test_cuda_checkpoint.py BUILD [--device cuda]."""
import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import test_recovery  # noqa: E402  (found through the path above)
import test_suspend  # noqa: E402
from harness import TIMEOUT, wait_until  # noqa: E402
from test_recovery import FINE  # noqa: E402


class CudaCheckpoint(test_suspend.MovedMemory):
    """The options of NVIDIA's utility."""

    def utility(self, probe, *words):
        done = subprocess.run([os.path.join(test_recovery.BUILD, "bin/cuda-checkpoint"), *words,
                               "--pid", str(probe.process.pid)], env=self.environment, text=True,
                              capture_output=True, timeout=TIMEOUT)
        return done.returncode, done.stdout + done.stderr

    def act(self, probe, *words):
        status, said = self.utility(probe, *words)
        self.assertEqual(status, 0, said + self.logs())

    def is_in(self, probe, state):
        self.assertEqual(self.utility(probe, "--get-state"), (0, state + "\n"))

    def test_each_action(self):
        probe = self.suspend_probe()
        self.assertEqual(probe.ask("hold 20 7"), FINE)
        used, _ = self.memory(probe)
        for _ in range(2):
            self.is_in(probe, "running")
            self.assertNotEqual(self.utility(probe, "--action", "checkpoint")[0], 0)
            self.act(probe, "--action", "lock", "--timeout", "20000")
            self.is_in(probe, "locked")
            self.assertEqual(self.memory(probe), (used, 0))
            self.act(probe, "--action", "checkpoint")
            self.is_in(probe, "checkpointed")
            self.assertEqual(self.memory(probe), (0, used))
            self.act(probe, "--action", "restore")
            self.is_in(probe, "locked")
            self.assertEqual(self.memory(probe), (used, 0))
            asker, answers = probe.ask_later("check")
            wait_until(lambda: self.row(probe)["usage"]["queue_bytes"] > 0, "a call that waits")
            self.assertEqual(answers, [])
            self.act(probe, "--action", "unlock")
            asker.join(TIMEOUT)
            self.assertEqual(answers, [FINE], self.logs())

    def test_toggle(self):
        probe = self.suspend_probe()
        self.assertEqual(probe.ask("hold 20 7"), FINE)
        self.act(probe, "--toggle")
        self.is_in(probe, "checkpointed")
        self.act(probe, "--toggle")
        self.is_in(probe, "running")
        self.assertEqual(probe.ask("check"), FINE)
        self.assertEqual(self.utility(probe, "--get-restore-tid"), (0, f"{probe.process.pid}\n"))

    def test_a_locked_program_that_cannot_leave(self):
        probe = self.suspend_probe()
        self.assertEqual(probe.ask("hold 1 1"), FINE)
        self.assertEqual(probe.ask("share"), FINE)
        self.act(probe, "--action", "lock")
        status, said = self.utility(probe, "--action", "checkpoint")
        self.assertNotEqual(status, 0)
        self.assertIn("CUDA IPC", said)
        self.is_in(probe, "locked")
        self.act(probe, "--action", "unlock")
        self.assertEqual(probe.ask("check"), FINE)

    def test_a_lock_that_is_too_late(self):
        probe = self.probes(1)[0]
        self.assertEqual(probe.ask("hold"), FINE)
        wait_until(lambda: self.row(probe)["usage"]["queue_bytes"] == 0, "its work in the server")
        status, said = self.utility(probe, "--action", "lock", "--timeout", "300")
        self.assertNotEqual(status, 0)
        self.assertIn("timeout", said)
        self.assertEqual(probe.ask("release"), FINE)
        self.assertEqual(probe.ask("synchronize"), FINE)
        self.is_in(probe, "running")
        self.assertEqual(probe.ask("round"), FINE)

    def test_a_locked_program_is_checkpointed(self):
        probe, place = self.suspend_probe(), os.path.join(self.directory(), "checkpoint")
        self.assertEqual(probe.ask("hold 20 7"), FINE)
        self.act(probe, "--action", "lock")
        self.fine("checkpoint", probe.process.pid, place)
        self.is_in(probe, "locked")
        self.fine("checkpoint", "--detach", probe.process.pid, place + "2")
        self.assertEqual(probe.ask("check"), FINE, self.logs())


class Calls(test_suspend.MovedMemory):
    """cuCheckpointProcess*() of another process, which has not called cuInit."""
    OK, INVALID_VALUE, OUT_OF_MEMORY, ILLEGAL_STATE, NOT_READY, NOT_SUPPORTED = 0, 1, 2, 401, 600, 801
    RUNNING, LOCKED, CHECKPOINTED = 0, 1, 2

    def tool(self):
        return self.probe(program=os.path.join(test_recovery.BUILD, "tests/recovery/checkpoint_tool"))

    def call(self, tool, *words):
        tool.tell(" ".join(map(str, words)))
        said = tool.process.stdout.readline().split()
        self.assertEqual(said[0], words[0])
        return int(said[1]), int(said[2])

    def gives(self, result, tool, *words):
        self.assertEqual(self.call(tool, *words)[0], result, tool.said() + self.logs())

    def is_in(self, state, tool, pid):
        self.assertEqual(self.call(tool, "state", pid), (self.OK, state))

    def wrong(self, tool, pid, *calls):
        for name in calls:
            self.gives(self.ILLEGAL_STATE, tool, name, pid)

    def test_each_call(self):
        probe, tool = self.suspend_probe(), self.tool()
        pid = probe.process.pid
        self.assertEqual(probe.ask("hold 20 7"), FINE)
        used, _ = self.memory(probe)
        self.assertEqual(self.call(tool, "thread", pid), (self.OK, pid))
        for timeout_ms in (0, 60000):
            self.is_in(self.RUNNING, tool, pid)
            self.wrong(tool, pid, "checkpoint", "restore", "unlock")
            self.gives(self.OK, tool, "lock", pid, timeout_ms)
            self.is_in(self.LOCKED, tool, pid)
            self.wrong(tool, pid, "lock", "restore")
            self.assertEqual(self.memory(probe), (used, 0))
            self.gives(self.INVALID_VALUE, tool, "checkpoint", pid, 1)
            self.gives(self.OK, tool, "checkpoint", pid)
            self.is_in(self.CHECKPOINTED, tool, pid)
            self.wrong(tool, pid, "lock", "checkpoint", "unlock")
            self.assertEqual(self.memory(probe), (0, used))
            self.gives(self.OK, tool, "restore", pid)
            self.is_in(self.LOCKED, tool, pid)
            self.assertEqual(self.memory(probe), (used, 0))
            self.gives(self.OK, tool, "unlock", pid)
            self.assertEqual(probe.ask("check"), FINE, self.logs())
        self.assertEqual(len(json.loads(self.funnel("ps", "--json").stdout)), 1)

    def test_a_program_checkpoints_itself(self):
        tool = self.tool()
        self.gives(self.OK, tool, "fill", 77)
        for name, state in (("lock", self.LOCKED), ("checkpoint", self.CHECKPOINTED),
                            ("restore", self.LOCKED), ("unlock", self.RUNNING)):
            self.gives(self.OK, tool, name, 0)
            self.is_in(state, tool, 0)
        self.gives(self.OK, tool, "check", 77)

    def test_the_devices_of_a_restore(self):
        tool = self.tool()
        self.gives(self.OK, tool, "fill", 77)
        self.gives(self.OK, tool, "lock", 0)
        self.gives(self.OK, tool, "checkpoint", 0)
        self.gives(self.NOT_SUPPORTED, tool, "restore", 0, 2)
        self.gives(self.INVALID_VALUE, tool, "restore", 0, 3)
        self.is_in(self.CHECKPOINTED, tool, 0)
        self.gives(self.OK, tool, "restore", 0, 1)
        self.gives(self.OK, tool, "unlock", 0)
        self.gives(self.OK, tool, "check", 77)

    def test_wrong_orders_and_processes_are_refused(self):
        probe, tool = self.probes(1)[0], self.tool()
        pid = probe.process.pid
        for name in ("state", "thread", "lock", "checkpoint", "restore", "unlock"):
            self.gives(self.INVALID_VALUE, tool, name, 1)
            self.gives(self.INVALID_VALUE, tool, name, -1)
        self.assertEqual(probe.ask("hold"), FINE)
        wait_until(lambda: self.row(probe)["usage"]["queue_bytes"] == 0, "its work in the server")
        self.gives(self.NOT_READY, tool, "lock", pid, 300)
        self.is_in(self.RUNNING, tool, pid)
        self.assertEqual(probe.ask("release"), FINE)
        self.assertEqual(probe.ask("synchronize"), FINE)
        self.fine("limit", "--quota", "swap-memory=0")
        self.gives(self.OK, tool, "lock", pid)
        self.gives(self.OUT_OF_MEMORY, tool, "checkpoint", pid)
        self.is_in(self.LOCKED, tool, pid)
        self.gives(self.OK, tool, "unlock", pid)
        self.assertEqual(probe.ask("round"), FINE)

    def test_a_program_that_shares_memory(self):
        probe, tool = self.suspend_probe(), self.tool()
        pid = probe.process.pid
        self.assertEqual(probe.ask("hold 1 1"), FINE)
        self.assertEqual(probe.ask("share"), FINE)
        self.gives(self.OK, tool, "lock", pid)
        self.gives(self.NOT_SUPPORTED, tool, "checkpoint", pid)
        self.assertIn("CUDA IPC", tool.said())
        self.gives(self.OK, tool, "unlock", pid)
        self.assertEqual(probe.ask("check"), FINE)


class Criu(test_suspend.MovedMemory):
    """A process that CRIU has dumped and made again."""
    more = {"FUNNEL_OFF": "server-network"}

    def criu(self, *words):
        return subprocess.run(["criu", *words], stdout=subprocess.DEVNULL, text=True,
                              stderr=subprocess.PIPE)

    def setUp(self):
        if os.geteuid() or not shutil.which("criu") or self.criu("check").returncode:
            self.skipTest("criu does not run here")
        super().setUp()
        self.folder_of_dump = self.directory()
        self.told = os.path.join(self.folder_of_dump, "told")
        self.said = os.path.join(self.folder_of_dump, "said")
        os.mkfifo(self.told)
        open(self.said, "w").close()

    def start(self):
        """In a session of its own, with files that CRIU opens again."""
        words = os.open(self.told, os.O_RDWR)
        self.addCleanup(os.close, words)
        self.words = words
        with open(self.said, "a") as said:
            process = subprocess.Popen(
                [os.path.join(test_recovery.BUILD, "bin/funnel"), "run", "-q", "--no-start", "--",
                 os.path.join(test_recovery.BUILD, "tests/recovery/suspend_probe")],
                env=dict(self.environment, FUNNEL_MANAGED="host",
                         FUNNEL_LOG=self.folder_of_dump + "/log"),
                stdin=words, stdout=said, stderr=said, start_new_session=True)
        self.addCleanup(self.end, process)
        self.await_answers(1)
        return process

    def end(self, process):
        try:
            os.kill(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()

    def answers(self):
        with open(self.said) as said:
            return said.read().splitlines()

    def client_log(self):
        with open(self.folder_of_dump + "/log") as log:
            return log.read()

    def await_answers(self, count):
        wait_until(lambda: len(self.answers()) >= count, "an answer")

    def ask_all(self, *words):
        for word in words:
            count = len(self.answers())
            os.write(self.words, (word + "\n").encode())
            self.await_answers(count + 1)

    def test_a_dumped_process(self):
        process, place = self.start(), os.path.join(self.folder_of_dump, "checkpoint")
        images = self.directory()
        self.ask_all("work 3 40", "hold 20 7")
        self.fine("checkpoint", "--detach", process.pid, place)
        dumped = self.criu("dump", "-t", str(process.pid), "-D", images, "--ext-unix-sk")
        self.assertEqual(dumped.returncode, 0, dumped.stderr)
        process.wait()
        self.kill_server()
        restored = self.criu("restore", "-d", "-D", images, "--ext-unix-sk")
        self.assertEqual(restored.returncode, 0, restored.stderr)
        self.ask_all("check", "work 4 40", "check")
        self.assertEqual({answer.split()[1] for answer in self.answers()}, {FINE},
                         self.client_log() + self.logs())


if __name__ == "__main__":
    test_recovery.main(sys.argv)
