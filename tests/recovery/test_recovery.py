#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One program's kernel faults, or the server is killed: programs with nothing in flight continue with
all their memory, the others get the error. Run as: test_recovery.py BUILD [--device cuda]."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../control"))

import harness  # noqa: E402  (found through the path above)
from harness import TIMEOUT, wait_until  # noqa: E402

BUILD = None
DEVICE = "soft"
FAULT = "CUDA_ERROR_ILLEGAL_ADDRESS"
GONE = "CUDA_ERROR_MPS_RPC_FAILURE"
FINE = "CUDA_SUCCESS"


def probe_program():
    return os.path.join(BUILD, "tests/recovery/recovery_probe")


class Probe:
    def __init__(self, environment, *arguments, program=None, folder=None, **more):
        self.log = tempfile.NamedTemporaryFile("r", prefix="fnl-", dir="/tmp")
        command = [os.path.join(BUILD, "bin/funnel"), "run", "-q", "--no-start", "--",
                   program or probe_program(), *arguments]
        environment = {**environment, "FUNNEL_LOG": self.log.name, **more}
        self.process = subprocess.Popen(command, env=environment, text=True, cwd=folder,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def opened(self):
        return self.receive("open")

    def tell(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def receive(self, word):
        said = self.process.stdout.readline().split()
        assert said and said[0] == word, f"{word}: {said}"
        return said[1]

    def ask(self, word):
        self.tell(word)
        return self.receive(word.split()[0])

    def ask_later(self, word):
        """Asks in a thread of its own. Returns that thread, and the list that gets the answer."""
        answers = []
        asker = threading.Thread(target=lambda: answers.append(self.ask(word)))
        asker.start()
        return asker, answers

    def said(self):
        with open(self.log.name) as log:
            return log.read()

    def end(self):
        with self.process:
            self.process.kill()
        self.log.close()


class TestCase(unittest.TestCase):
    devices = "1:sms=24,mem=1G"
    options = []  # of the daemon
    more = {}  # in its environment

    def setUp(self):
        harness.limit_time(self)
        self.folder = self.new_directory("/tmp")
        self.addCleanup(self.keep_logs)
        self.environment = dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=self.folder + "/pipe",
                                CUDA_MPS_LOG_DIRECTORY=self.folder + "/log",
                                FUNNEL_SOFT_DEVICES=self.devices, **self.more)
        self.funnel("start", "--device", DEVICE, *self.options)
        self.addCleanup(self.funnel, "stop", "--force")

    def new_directory(self, parent):
        """A name; the directory ends with the test."""
        directory = tempfile.TemporaryDirectory(prefix="fnl-", dir=parent)
        self.addCleanup(directory.cleanup)
        return directory.name

    def funnel(self, *arguments):
        return subprocess.run([os.path.join(BUILD, "bin/funnel"), *arguments], env=self.environment,
                              timeout=TIMEOUT, check=False, text=True, capture_output=True)

    def state(self, *command):
        """What a command of funnel, such as ps, shows, as Python's objects."""
        done = self.funnel(*command, "--json")
        if "without the jansson library" in done.stderr:
            self.skipTest("built without jansson")
        return json.loads(done.stdout)

    def row(self, probe):
        """The program's row of `funnel ps`, or None."""
        rows = [row for row in self.state("ps") if row["pid"] == probe.process.pid]
        return rows[0] if rows else None

    def suspend_probe(self, **more):
        probe = self.probe(program=os.path.join(BUILD, "tests/recovery/suspend_probe"), **more)
        self.assertEqual(probe.opened(), FINE)
        return probe

    def probe(self, *arguments, **more):
        probe = Probe(self.environment, *arguments, **more)
        self.addCleanup(probe.end)
        return probe

    def probes(self, count):
        probes = [self.probe() for _ in range(count)]
        for probe in probes:
            self.assertEqual(probe.opened(), FINE)
            self.assertEqual(probe.ask("round"), FINE)
        return probes

    def other_program(self):
        """The same by another executable: after a fault all of the first are in quarantine."""
        return shutil.copy(probe_program(), tempfile.mkdtemp(dir=self.folder))

    def offender(self, **more):
        probe = self.probe(program=self.other_program(), **more)
        self.assertEqual(probe.opened(), FINE)
        self.assertEqual(probe.ask("round"), FINE)
        return probe

    def log(self, name):
        with open(f"{self.folder}/log/{name}.log") as log:
            return log.read()

    def is_server(self, pid):
        try:
            with open(f"/proc/{pid}/comm") as name:
                return name.read() == "funnel-server\n" and harness.alive(pid)
        except OSError:
            return False

    def server_pids(self):
        """Of all that the daemon has started. Their environment would tell more, and is root's to read."""
        started = re.findall(r"Starting \w+ server (\d+)", self.log("control"))
        return [int(pid) for pid in started if self.is_server(pid)]

    def kill_server(self):
        """Until all of its threads have ended it may still read a call, which is then lost."""
        server, = self.server_pids()
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: harness.has_ended(server), "the end of the server")

    def kill_daemon(self):
        with open(self.folder + "/pipe/nvidia-cuda-mps-control.pid") as file:
            os.kill(int(file.read()), signal.SIGKILL)

    def next_daemon(self):
        wait_until(lambda: self.funnel("start", "--device", DEVICE).returncode == 0, "a daemon")

    def stop(self, server):
        """Some of its threads may run on for a while after the signal, and read a call."""
        os.kill(server, signal.SIGSTOP)
        wait_until(lambda: all(self.is_stopped(server, thread)
                               for thread in os.listdir(f"/proc/{server}/task")),
                   "the stop of the server")

    def is_stopped(self, process, thread):
        with open(f"/proc/{process}/task/{thread}/stat") as status:
            return status.read().rpartition(")")[2].split()[0] == "T"

    def fault(self, offender):
        """Until the server has noticed, others may still give it work, and that is then lost. The
        daemon has heard of it then, too."""
        server, = self.server_pids()
        self.assertEqual(offender.ask("fault"), FAULT)
        wait_until(lambda: server not in self.server_pids(), "the end of the server")
        wait_until(lambda: f"Server {server} exited" in self.log("control"), "that in the log")

    def keep_logs(self):
        """In the folder that FUNNEL_TEST_LOGS names, by the name of the test."""
        if folder := os.environ.get("FUNNEL_TEST_LOGS"):
            shutil.copytree(self.folder + "/log", f"{folder}/{self.id()}", dirs_exist_ok=True)

    def logs(self):
        return self.log("control") + self.log("server")


class Recovery(TestCase):
    def everything_works(self, probe):
        for word in ("synchronize", "look", "round", "pinned", "callback", "allocate", "threads",
                     "module", "round"):
            self.assertEqual((word, probe.ask(word)), (word, FINE), probe.said() + self.logs())

    def test_fault_of_another(self):
        idle = self.probes(3)
        offender = self.offender()
        self.fault(offender)
        for probe in idle:
            self.everything_works(probe)
        self.assertEqual(offender.ask("look"), FAULT)
        self.assertEqual(self.log("control").count("moves to the next"), 3)

    def test_again_and_again(self):
        idle = self.probes(2)
        for _ in range(3):
            offender = self.offender()
            self.fault(offender)
            offender.end()
            for probe in idle:
                self.assertEqual(probe.ask("look"), FINE, probe.said())
                self.assertEqual(probe.ask("round"), FINE)

    def known_probes(self, count):
        """The daemon has heard of their windows."""
        probes = self.probes(count)
        wait_until(lambda: self.log("control").count("attached to server") == count, "their attach")
        return probes

    def test_another_daemon_has_come(self):
        """The next server of the user still knows whose window is whose."""
        idle = self.known_probes(2)
        self.kill_daemon()
        self.next_daemon()
        self.kill_server()
        for probe in idle:
            self.everything_works(probe)

    def test_another_daemon_has_come_without_an_answer(self):
        """The server ends before it has told the next daemon anything."""
        idle = self.known_probes(2)
        server, = self.server_pids()
        self.stop(server)
        self.kill_daemon()
        self.next_daemon()
        self.kill_server()
        for probe in idle:
            self.everything_works(probe)

    def test_server_ends_between_two_daemons(self):
        idle = self.known_probes(2)
        self.kill_daemon()
        self.kill_server()
        self.next_daemon()
        for probe in idle:
            self.everything_works(probe)

    def test_next_server_starts_at_once(self):
        """Before any client asks for it."""
        self.probes(2)
        server, = self.server_pids()
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: f"will take the place of server {server}" in self.log("control"),
                   "the next server")
        wait_until(lambda: self.log("control").count("Ready") == 2, "its readiness")
        self.assertNotIn("moves to the next", self.log("control"))

    def test_server_that_has_faulted_waits_for_the_next(self):
        """The driver of either would wait for the other's."""
        idle, offender = self.probes(1)[0], self.offender()
        server, = self.server_pids()
        self.assertEqual(offender.ask("fault"), FAULT)
        exited = f"Server {server} exited with status 3, after the fatal GPU error"
        wait_until(lambda: exited in self.log("control"), "its end")
        before, _ = self.log("control").split(exited)
        self.assertEqual(before.count("NEW SERVER"), 2)
        self.everything_works(idle)

    def test_no_next_server_without_clients(self):
        self.fault(self.offender())
        wait_until(lambda: "after the fatal GPU error" in self.log("control"), "the end in the log")
        self.assertEqual(self.server_pids(), [])
        self.assertEqual(self.log("control").count("Starting new server"), 1)

    def test_work_in_flight(self):
        """What the server has not read yet is not in flight."""
        idle, busy, launched = self.probes(3)
        offender = self.offender()
        for word in ("hold", "arrive"):
            self.assertEqual(busy.ask(word), FINE)
        busy.tell("synchronize")
        for word in ("launch", "arrive"):
            self.assertEqual(launched.ask(word), FINE)
        self.fault(offender)
        self.assertEqual(busy.receive("synchronize"), FAULT)
        self.assertEqual(busy.ask("look"), FAULT)
        self.assertEqual(launched.ask("synchronize"), FAULT)
        self.assertIn("work in flight", launched.said())
        self.everything_works(idle)

    def test_threads_notice_together(self):
        idle, = self.probes(1)
        self.fault(self.offender())
        self.assertEqual(idle.ask("threads"), FINE, idle.said())
        self.everything_works(idle)

    def test_killed_server(self):
        for word in ("look", "round", "launch", "threads", "allocate", "callback", "synchronize",
                     "pinned", "function", "module"):
            with self.subTest(word):
                probe = self.probes(1)[0]
                self.kill_server()
                self.assertEqual(probe.ask(word), FINE, probe.said())
                self.everything_works(probe)
                probe.end()

    def test_killed_server_that_has_not_read(self):
        """A server that is stopped takes a call, and an image, and ends without having read them."""
        for word in ("look", "module", "synchronize", "function", "callback"):
            with self.subTest(word):
                probe = self.probes(1)[0]
                server, = self.server_pids()
                self.stop(server)
                probe.tell(word)
                time.sleep(0.2)  # a call that comes later finds no server, which is right, too
                os.kill(server, signal.SIGKILL)
                self.assertEqual(probe.receive(word), FINE, probe.said())
                self.everything_works(probe)
                probe.end()

    def in_the_middle_of(self, word, rounds, end_server):
        asking = self.probes(1)[0]
        for i in range(rounds):
            asking.tell(word)
            time.sleep(0.01 * i)
            end_server()
            self.assertEqual(asking.receive(word), FINE, asking.said())
            self.everything_works(asking)

    def in_the_middle_of_questions(self, rounds, end_server):
        """They change nothing, so it does not matter which of them the server had read."""
        self.in_the_middle_of("questions", rounds, end_server)

    def test_killed_in_the_middle_of_questions(self):
        self.in_the_middle_of_questions(3, self.kill_server)  # RECOVERY_ASKED_MAX

    def test_killed_in_the_middle_of_requests(self):
        """The thread that moves the program may have the lock that others wait for."""
        self.in_the_middle_of("requests", 3, self.kill_server)  # RECOVERY_ASKED_MAX

    def test_fault_in_the_middle_of_questions(self):
        def end_server():
            offender = self.offender()
            self.fault(offender)
            offender.end()

        self.in_the_middle_of_questions(3, end_server)

    def test_copy_with_helpers(self):
        """The threads that help with a large copy notice the end of the server, too."""
        for word in ("look", "synchronize"):
            with self.subTest(word):
                probe = self.probe(FUNNEL_ALL_COPY_THREADS="1")
                self.assertEqual(probe.opened(), FINE)
                for _ in range(2):
                    self.kill_server()
                    self.assertEqual(probe.ask(word), FINE, probe.said())
                    self.everything_works(probe)
                probe.end()

    def test_objects_are_made_again(self):
        words = ("managed", "graph", "register", "share", "limit", "assertion", "environment",
                 "reserved", "unmapped", "pool")
        probe, offender = self.probes(1)[0], self.offender()
        for word in words:
            self.assertEqual((word, probe.ask(word)), (word, FINE))
        self.fault(offender)
        for word in words:
            self.assertEqual((word, probe.ask(word)), (word, FINE), probe.said() + self.logs())
        self.kill_server()
        for word in words + words:
            self.assertEqual((word, probe.ask(word)), (word, FINE), probe.said() + self.logs())
        self.everything_works(probe)

    def test_contexts_on_some_multiprocessors(self):
        """The program that was the second to have one is the first to move."""
        other, probe = self.probes(2)
        offender = self.offender()
        for client in (probe, other, probe):
            self.assertEqual(client.ask("part"), FINE)
        for end in (lambda: self.fault(offender), self.kill_server):
            end()
            for client in (other, probe, probe):
                self.assertEqual(client.ask("part"), FINE, client.said() + self.logs())
        self.everything_works(probe)

    def memory_of(self, probe):
        return self.row(probe)["memory_used"]

    def test_memory_is_charged_again(self):
        """Also memory of cuMemCreate that nothing maps."""
        probe = self.probes(1)[0]
        before = self.memory_of(probe)
        for word in ("reserved", "unmapped", "round"):
            self.assertEqual((word, probe.ask(word)), (word, FINE))
        charged = self.memory_of(probe)
        self.assertEqual(charged - before, 3 * (4 << 20))  # made, imported and mapped, unmapped
        for _ in range(2):
            self.kill_server()
            self.assertEqual(probe.ask("look"), FINE, probe.said() + self.logs())
            self.assertEqual(self.memory_of(probe), charged)
        self.assertEqual(probe.ask("unmapped"), FINE)

    def test_few_descriptors(self):
        """A program that may open few files keeps them for itself, and its memory is lost."""
        probe = self.probes(1)[0]
        for word in ("scarce", "reserved", "round"):
            self.assertEqual((word, probe.ask(word)), (word, FINE))
        self.kill_server()
        self.assertEqual(probe.ask("look"), GONE)
        self.assertIn("physical memory without a descriptor", probe.said())

    def test_arrays_are_lost(self):
        probe, = self.probes(1)
        self.assertEqual(probe.ask("array"), FINE)
        self.fault(self.offender())
        self.assertEqual(probe.ask("look"), FAULT)
        self.assertIn("array", probe.said())

    def test_times_are_lost(self):
        probe = self.probes(1)[0]
        self.assertEqual(probe.ask("time"), FINE)
        self.kill_server()
        self.assertEqual(probe.ask("time"), "CUDA_ERROR_INVALID_HANDLE")
        self.everything_works(probe)

    def test_descriptors_are_lost(self):
        probe = self.probes(1)[0]
        self.assertEqual(probe.ask("close"), FINE)
        self.kill_server()
        self.assertEqual(probe.ask("look"), GONE)
        self.assertEqual(probe.ask("round"), GONE)

    def test_limited_memory_is_kept(self):
        probe = self.probe(CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="0=512M")
        self.assertEqual((probe.opened(), probe.ask("round")), (FINE, FINE))
        self.kill_server()
        self.everything_works(probe)

    def test_exactly_limited_memory_is_lost(self):
        self.assertEqual(self.funnel("limit", "--quota", "kept-memory=0").returncode, 0)
        free = self.probe()
        limited = self.probe(CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="0=512M")
        for probe in (free, limited):
            self.assertEqual((probe.opened(), probe.ask("round")), (FINE, FINE))
        self.kill_server()
        self.assertEqual(limited.ask("look"), GONE)
        self.assertIn("it has a memory limit", limited.said())
        self.everything_works(free)

    def test_variables_are_lost(self):
        probe, = self.probes(1)
        self.assertEqual(probe.ask("variable"), FINE)
        self.fault(self.offender())
        self.assertEqual(probe.ask("look"), FAULT)
        self.assertIn("module with variables", probe.said())

    def test_addresses_of_functions_are_lost(self):
        probe, = self.probes(1)
        self.assertEqual((probe.ask("pointer"), probe.ask("pointer")), (FINE, FINE))
        self.kill_server()
        self.assertEqual(probe.ask("look"), GONE)
        self.assertIn("calls functions through pointers", probe.said())

    def test_switched_off(self):
        probe = self.probe(FUNNEL_OFF="recovery")
        self.assertEqual(probe.opened(), FINE)
        self.fault(self.offender())
        self.assertEqual(probe.ask("look"), FAULT)

    def test_unknown_names_to_switch_off_are_logged(self):
        probe = self.probe(FUNNEL_OFF="recovery,hurry")
        self.assertEqual(probe.opened(), FINE)
        self.assertIn("not known, and are ignored: hurry;", probe.said())

    def start(self, program, *arguments, folder="/"):
        probe = self.probe(*arguments, program=program, folder=folder)
        self.assertEqual(probe.opened(), FINE)
        return probe

    def is_in_quarantine(self, probe):
        said = f"Client {probe.process.pid} is in quarantine, as user {os.getuid()}'s "
        return said in self.log("control")

    def test_quarantine(self):
        """A program that has faulted gets another server than the others."""
        program = self.other_program()
        offender = self.start(program)
        self.fault(offender)
        offender.end()
        self.assertIn("has faulted. Its program is in quarantine", self.log("control"))
        other = self.probes(1)[0]
        offender = self.start(program)
        self.assertEqual(len(self.server_pids()), 2)
        shown = self.funnel("status").stdout
        self.assertIn(f"Server uid_{os.getuid()}:quarantine", shown)
        self.assertIn("it serves programs that have faulted", shown)
        self.assertEqual(other.ask("launch"), FINE)
        self.assertEqual(offender.ask("fault"), FAULT)
        self.assertEqual(other.ask("synchronize"), FINE, "the fault has reached another server")
        self.assertEqual(other.ask("round"), FINE)

    def test_quarantine_does_not_go_by_names(self):
        """The same command line in another folder is another program; another name of the same
        executable is none."""
        program, other = self.other_program(), self.other_program()
        name, folder = "./" + os.path.basename(program), os.path.dirname(program)
        self.fault(self.start(name, "1000", folder=folder))
        innocent = self.start(name, "1000", folder=os.path.dirname(other))
        self.assertFalse(self.is_in_quarantine(innocent))
        os.rename(program, folder + "/renamed")
        renamed = self.start("./renamed", "1", folder=folder)
        self.assertTrue(self.is_in_quarantine(renamed))

    def test_quarantine_of_a_script(self):
        """An interpreter is one executable for many programs."""
        python = os.path.join(os.path.dirname(self.other_program()), "python3")
        shutil.copy(probe_program(), python)
        self.fault(self.start(python, "-u", "train.py", folder=self.folder))
        for arguments, folder, is_in in ((("train.py", "--again"), self.folder, True),
                                         (("test.py",), self.folder, False),
                                         (("train.py",), "/tmp", False)):
            script = self.start(python, *arguments, folder=folder)
            self.assertEqual(self.is_in_quarantine(script), is_in, arguments)

    def test_no_server_to_move_to(self):
        probe = self.probes(1)[0]
        self.funnel("stop", "--force")
        self.assertEqual(probe.ask("round"), GONE)
        self.assertEqual(probe.ask("look"), GONE)


class SmallerDevice(TestCase):
    devices = "1:sms=24,mem=256M"

    def test_not_everything_can_be_made_again(self):
        """The program hears of it. It is no client any more, and keeps no memory from others."""
        if DEVICE != "soft":
            self.skipTest("the next device has less memory")
        failing, neighbor = self.suspend_probe(), self.suspend_probe()
        for word in ("parts 128 3", "hold 40 7", "places 3"):
            self.assertEqual((word, failing.ask(word)), (word, FINE))
        self.assertEqual((neighbor.ask("hold 4 7"), failing.ask("lent")), (FINE, "CUDA_ERROR_NOT_READY"))
        self.kill_daemon()
        self.kill_server()
        self.environment["FUNNEL_SOFT_DEVICES"] = "1:sms=24,mem=64M"
        self.next_daemon()
        self.assertEqual(failing.ask("check"), GONE)
        self.assertIn("not everything could be made again", failing.said())
        wait_until(lambda: self.row(failing) is None, "its end as a client")
        self.assertIn("not found", self.funnel("evict", str(failing.process.pid)).stderr)
        self.assertEqual((failing.ask("check"), failing.ask("lent")), (GONE, FINE))
        self.assertEqual((neighbor.ask("check"), neighbor.ask("work 1 10")), (FINE, FINE))


class TwoDevices(TestCase):
    devices = "2:mem=512M"

    def test_managed_memory(self):
        """Its devices reach each other's memory in the new server, too."""
        probe = self.probes(1)[0]
        self.assertEqual(probe.ask("managed"), FINE)
        for _ in range(3):
            self.kill_server()
            self.assertEqual(probe.ask("managed"), FINE, probe.said() + self.logs())
        self.assertEqual(probe.ask("round"), FINE)


def main(arguments):
    """Also of other files with such tests."""
    global BUILD, DEVICE
    BUILD = os.path.abspath(arguments.pop(1))
    if "--device" in arguments:
        at = arguments.index("--device")
        DEVICE = arguments[at + 1]
        del arguments[at:at + 2]
    harness.guardian.protect()
    unittest.main(argv=arguments, verbosity=2)


if __name__ == "__main__":
    main(sys.argv)
