# SPDX-License-Identifier: Apache-2.0
"""funnel trace: what servers write down while they are traced, with the real server on the software
GPU."""
import json
import os
import signal
import subprocess

import harness
from harness import wait_until, waits

WAIT = "waits for the device"
SLACK = 60e6  # us: the threads of a machine that is busy


class Trace(harness.TestCase):
    def install(self):
        os.symlink(os.path.join(harness.BUILD, "bin"), os.path.join(self.root, "bin"))

    def setUp(self):
        super().setUp()
        self.start("--device", "soft")
        self.file = os.path.join(self.root, "trace.json")

    def begin(self, name, *arguments):
        return self.begin_program("examples/" + name, *arguments, "-r", "100000000")

    def begin_work(self):
        """Kernels of 5 ms, of which some are always queued."""
        return self.begin_program("tests/control/at_work", "5000", "2")

    def begin_pauses(self):
        """Kernels that leave the CPU to others."""
        return self.begin_program("tests/stress/scene", "flood", "1000")

    def begin_program(self, program, *arguments):
        process = subprocess.Popen(
            [os.path.join(self.root, "bin/funnel"), "run", "-q", "--",
             os.path.join(harness.BUILD, program), *arguments],
            env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(process)
        wait_until(lambda: self.launches(process.pid) > 2, "the program's work")
        return process.pid

    def launches(self, pid):
        clients = self.funnel_json("ps", "--filter", f"pid={pid}")
        return clients[0]["launches"] if clients else 0

    def trace(self, *arguments, until):
        """The events of a trace that shows what `until` asks for. On a busy machine a second is not
        always enough for each program to have had a kernel run."""
        for seconds in ("1", "5", "25"):
            done = self.funnel("trace", "--seconds", seconds, "-o", self.file, *arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            events = self.events()
            if until(events):
                break
        return events

    def trace_kernels(self, *pids):
        return self.trace(until=lambda events: all(
            len(self.slices(events, "kernel", pid)) > 3 for pid in pids))

    def events(self):
        with open(self.file) as text:
            return json.load(text)["traceEvents"]

    def slices(self, events, category, pid=None):
        return [e for e in events if e["ph"] == "X" and e["cat"] == category and
                pid in (None, e["pid"])]

    def test_kernels_of_one_program(self):
        pid = self.begin_work()
        before = self.launches(pid)
        events = self.trace_kernels(pid)
        launched = self.launches(pid) - before
        kernels = self.slices(events, "kernel")
        self.assertGreater(len(kernels), 3)
        self.assertLessEqual(len(kernels), launched)
        for kernel in kernels:
            self.assertEqual((kernel["name"], kernel["pid"]), ("work", pid))
            self.assertEqual(kernel["args"]["grid"], [2, 1, 1])
            self.assertEqual(kernel["args"]["block"], [32, 1, 1])
            self.assertGreater(kernel["dur"], 0)
            self.assertGreaterEqual(kernel["ts"], 0)
            self.assertLess(kernel["ts"], 1e6 + SLACK)
        # One stream does one thing after the other; events tell the time to a microsecond.
        kernels.sort(key=lambda kernel: kernel["ts"])
        for first, second in zip(kernels, kernels[1:]):
            self.assertGreaterEqual(second["ts"], first["ts"] + first["dur"] - 2)
        commands = self.slices(events, "command", pid)
        self.assertIn("cuLaunchKernelEx", {command["name"] for command in commands})
        self.assertGreaterEqual(len(commands), len(kernels))

    def test_names_and_arrows(self):
        pid = self.begin_work()
        events = self.trace_kernels(pid)
        names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        self.assertEqual(list(names), [pid])
        self.assertIn("control/at_work 5000 2", names[pid])
        lines = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
        self.assertIn("commands in the server", lines.values())
        self.assertTrue(any(name.startswith("device 0, stream ") for name in lines.values()), lines)
        self.assertEqual({e["tid"] for e in events if e["ph"] == "X"}, set(lines))
        starts = {e["id"]: e["ts"] for e in events if e["ph"] == "s"}
        ends = {e["id"]: e["ts"] for e in events if e["ph"] == "f"}
        self.assertEqual(len(starts), len(self.slices(events, "kernel")))
        self.assertEqual(set(starts), set(ends))

    def test_copies_and_who_waited_for_whom(self):
        one, other = self.begin("histogram", "-n", "100000"), self.begin_work()
        events = self.trace_kernels(one, other)
        copies = self.slices(events, "copy", one) + self.slices(events, "memset", one)
        self.assertTrue(copies)
        self.assertTrue(all(copy["args"]["bytes"] > 0 for copy in copies))
        waits = [e["args"]["waited_for"] for e in self.slices(events, "kernel")
                 if "waited_for" in e["args"]]
        self.assertTrue(set(waits) <= {one, other}, waits)
        self.assertTrue(all(e["args"]["waited_for"] != e["pid"] for e in events
                            if "waited_for" in e.get("args", {})))

    def test_one_client(self):
        one, other = self.begin_pauses(), self.begin_pauses()
        only = self.trace("--client", str(other), until=lambda events: events)
        self.assertEqual({e["pid"] for e in only}, {other})
        self.assertEqual({e["pid"] for e in self.trace_kernels(one, other)}, {one, other})

    def test_program_that_comes_later(self):
        self.begin_pauses()
        tracing = self.in_background()
        late = self.begin_work()
        self.wait_for_work(late)
        self.end(tracing)
        self.assertTrue(self.slices(self.events(), "kernel", late))

    def in_background(self):
        """A trace that the daemon has ordered, and that goes on until end()."""
        process = subprocess.Popen([os.path.join(self.root, "bin/funnel"), "trace", "-o", self.file,
                                    "--seconds", "600"], env=self.environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.processes.append(process)
        wait_until(lambda: "Cmd:trace" in self.control_log(), "the trace")
        return process

    def end(self, tracing):
        tracing.send_signal(signal.SIGINT)
        self.assertEqual(tracing.wait(harness.TIMEOUT), 0)

    def wait_for_work(self, pid):
        before = self.launches(pid)
        wait_until(lambda: self.launches(pid) > before + 64, "work that is traced")

    def test_one_at_a_time(self):
        pid = self.begin_pauses()
        tracing = self.in_background()
        done = self.funnel("trace", "--seconds", "1", "--summary")
        self.assertEqual(done.returncode, 1)
        self.assertIn("does another trace go on?", done.stderr)
        self.end(tracing)
        wait_until(lambda: self.funnel("trace", "--seconds", "1", "--summary").returncode == 0,
                   "the end of the first")
        self.assertTrue(self.slices(self.trace_kernels(pid), "kernel", pid))

    def test_front_end_that_is_killed(self):
        """The servers do not go on for the rest of its ten minutes."""
        pid = self.begin_pauses()
        tracing = self.in_background()
        tracing.kill()
        tracing.wait()
        wait_until(lambda: self.funnel("trace", "--seconds", "1", "--summary").returncode == 0,
                   "the end of the first")
        self.assertTrue(self.slices(self.trace_kernels(pid), "kernel", pid))

    def test_interrupted(self):
        pid = self.begin_pauses()
        tracing = self.in_background()
        self.wait_for_work(pid)
        self.end(tracing)
        self.assertTrue(self.slices(self.events(), "kernel", pid))

    @waits
    def test_summary(self):
        pid = self.begin_pauses()
        self.trace_kernels(pid)
        done = self.funnel("trace", "--seconds", "5", "--summary")
        self.assertIn(f"Program {pid}: ", done.stdout)
        row = done.stdout.splitlines()[3].split()
        self.assertEqual((row[1], row[-1]), ("100.0%", "pause"))
        self.assertGreater(int(row[0]), 0)
        self.assertGreater(float(row[2]), 0)
        self.assertLess(float(row[2]), 60000)  # ms

    def test_ranges_of_a_program(self):
        """By NVTX, which `funnel run` has them recorded with."""
        program = os.path.join(harness.BUILD, "tests/control/ranged")
        if not os.path.exists(program):
            self.skipTest("NVTX is not installed")
        process = subprocess.Popen([os.path.join(self.root, "bin/funnel"), "run", "-q", "--",
                                    program], env=self.environment)
        self.processes.append(process)
        wait_until(lambda: self.funnel_json("ps", "--filter", f"pid={process.pid}"), "the program")
        names = {"whole", "step", "registered", "half", "wide ?", "cuProfilerStart"}
        events = self.trace(until=lambda events: names <= {
            r["name"] for r in self.slices(events, "range", process.pid)})
        ranges = [r for r in self.slices(events, "range", process.pid) if r["name"] != WAIT]
        self.assertEqual({r["name"] for r in ranges}, names)
        self.assertEqual(len({r["tid"] for r in ranges}), 1)
        steps = [r for r in ranges if r["name"] == "step"]
        inner = [r for r in ranges if r["name"] == "registered" and r["ts"] > steps[0]["ts"]]
        for one, other in zip(steps, inner):
            self.assertGreaterEqual(other["ts"], one["ts"])
            self.assertLessEqual(other["ts"] + other["dur"], one["ts"] + one["dur"] + 0.002)
        self.assertEqual({r["dur"] for r in ranges if r["name"] == "half"}, {0})
        self.assertFalse([e for e in events if e.get("name") == "fnRange"])

    def test_waits_of_a_program(self):
        """They are on the line of its thread, one behind the other."""
        pid = self.begin("histogram", "-n", "100000")
        waiting = lambda events: [r for r in self.slices(events, "range", pid) if r["name"] == WAIT]
        events = self.trace(until=waiting)
        waits = waiting(events)
        self.assertTrue(waits)
        self.assertGreater(max(wait["dur"] for wait in waits), 0)
        lines = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
        self.assertEqual({lines[wait["tid"]] for wait in waits}, {f"thread {pid} of the program"})
        waits.sort(key=lambda wait: wait["ts"])
        for first, second in zip(waits, waits[1:]):
            self.assertGreaterEqual(second["ts"], first["ts"] + first["dur"] - 0.002)

    def test_wrong(self):
        self.assertEqual(self.funnel("trace").returncode, 2)
        for wrong in (["--seconds", "0"], ["--seconds", "601"], ["--client", "x"], ["x"]):
            self.assertEqual(self.funnel("trace", "--summary", *wrong).returncode, 2, wrong)
        done = self.funnel("trace", "--summary")
        self.assertEqual(done.returncode, 1)
        self.assertIn("No server of yours runs", done.stderr)
        self.begin_pauses()
        done = self.funnel("trace", "--seconds", "1", "-o", "/nonexistent/x")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write /nonexistent/x", done.stderr)
        done = self.funnel("trace", "--seconds", "1", "--client", "999999999", "--summary")
        self.assertIn("There was no work on a device", done.stdout)


if __name__ == "__main__":
    harness.main()
