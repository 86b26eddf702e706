# SPDX-License-Identifier: Apache-2.0
"""What monitors see through Funnel's libnvidia-ml.so.1, of programs on the software GPU, and above a
library in the place of NVIDIA's. The calls are those of pynvml, nvitop and gpustat."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import harness
from harness import wait_until

HERE = pathlib.Path(__file__).resolve().parent
MONITOR = [sys.executable, str(HERE / "nvml_monitor.py")]
NAMES = HERE.parents[1] / "src/nvml/nvml_names.def"
NOT_INITIALIZED, NOT_SUPPORTED, NOT_FOUND, NO_DRIVER, NO_FUNCTION, UNKNOWN = 1, 3, 6, 9, 13, 999
INVALID = 2
LISTS = [group + version for group in ("Compute", "Graphics", "MPSCompute") for version in ("", "_v2", "_v3")]


class Monitors(harness.TestCase):
    def install(self):
        os.symlink(os.path.join(harness.BUILD, "bin"), os.path.join(self.root, "bin"))
        self.library = os.path.join(harness.BUILD, "lib/funnel/nvml/libnvidia-ml.so.1")
        self.fake = os.path.join(harness.BUILD, "tests/control/libnvml_fake.so")

    def begin(self, *options, command=None, **more):
        """A program without an end, once it has launched kernels."""
        body = [os.path.join(harness.BUILD, "tests/control/at_work"), "2000", "2"]
        process = subprocess.Popen(
            [os.path.join(self.root, "bin/funnel"), "run", "-q", "--device", "soft", *options, "--", *body],
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
        self.processes.append(process)
        wait_until(self.daemon_pid, "the daemon")
        wait_until(lambda: any(c["launches"] > 0 for c in self.clients(process.pid)), "the first launch")
        return process

    def clients(self, pid=None):
        listed = self.funnel("ps", "--json")
        found = json.loads(listed.stdout) if listed.stdout.startswith("[") else []
        return [client for client in found if pid in (None, client["pid"])]

    def monitor(self, *arguments, options=("--device", "soft"), **environment):
        done = self.funnel("run", "-q", "--nvml", *options, "--", *MONITOR, *arguments,
                           environment=environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return json.loads(done.stdout)

    def watch(self, **environment):
        """A monitor that goes on: a function that looks again."""
        process = subprocess.Popen(
            [os.path.join(self.root, "bin/funnel"), "run", "-q", "--nvml", "--device", "soft", "--", *MONITOR,
             "--watch"], env={**self.environment, **environment}, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        self.processes.append(process)

        def look():
            process.stdin.write("\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        return look

    # ---- the software GPU ----

    def test_every_name(self):
        listed = subprocess.run(["nm", "-D", "--defined-only", self.library], stdout=subprocess.PIPE,
                                text=True, check=True).stdout
        wanted = re.findall(r"NVML_(?:PASS|OWN)\((\w+)\)", NAMES.read_text())
        self.assertGreater(len(wanted), 400)
        self.assertEqual(sorted(re.findall(r" T (nvml\w+)", listed)), sorted(wanted))

    def test_the_device(self):
        found = self.monitor()
        device, = self.funnel_json("devices")
        seen = found["device"]
        self.assertEqual((found["init"], found["count"], found["shutdown"], found["beyond"]), (0, 1, 0, INVALID))
        self.assertEqual((seen["uuid"], seen["name"]), (device["uuid"], device["name"]))
        self.assertEqual(seen["same"], [True, True, True])
        self.assertEqual(seen["memory"]["total"], device["memory_total"])
        self.assertEqual(seen["memory"]["total"], seen["memory"]["free"] + seen["memory"]["used"])
        self.assertEqual({k: seen["memory_v2"][k] for k in seen["memory"]}, seen["memory"])
        self.assertEqual(set(seen["unsupported"].values()), {NOT_SUPPORTED})
        self.assertEqual([seen[name] for name in LISTS], [[]] * 9)
        self.assertEqual((seen["samples"], seen["accounted"]), (NOT_FOUND, []))
        self.assertGreaterEqual(found["cuda"], 12000)

    def test_two_programs(self):
        programs = {process.pid for process in (self.begin(), self.begin("--memory", "512M"))}
        seen = self.monitor()["device"]
        memory = {client["pid"]: client["memory_used"] for client in self.clients()}
        self.assertEqual(memory.keys(), programs)
        for version in ("", "_v2", "_v3"):
            self.assertEqual({p["pid"]: p["memory"] for p in seen["Compute" + version]}, memory)
            self.assertEqual([seen["Graphics" + version], seen["MPSCompute" + version]], [[], []])
        self.assertEqual({p["pid"]: p["memory"] for p in seen["details"]}, memory)
        self.assertEqual({p["gi"] for p in seen["Compute_v3"]}, {2 ** 32 - 1})
        self.assertGreaterEqual(seen["memory"]["used"], sum(memory.values()))
        self.assertEqual(set(seen["accounted"]), programs)
        for pid in map(str, programs):
            self.assertIn("at_work", seen["names"][pid])
            self.assertEqual(seen["stats"][pid]["running"], 1)
            self.assertGreaterEqual(seen["stats"][pid]["peak"], memory[int(pid)])
        self.assertEqual(seen["accounting"], 1)

    def test_utilization(self):
        """Shares of the multiprocessors, which both use as long as they run."""
        programs = {process.pid for process in (self.begin(), self.begin())}
        look = self.watch()

        def both_work():
            seen = look()["device"]
            return seen["rates"]["gpu"] > 0 and all(
                isinstance(seen[name], list) and {one["pid"] for one in seen[name]} == programs and
                all(0 < one["sm"] <= 100 for one in seen[name]) for name in ("samples", "uses"))

        wait_until(both_work, "the use of both")

    def test_end_of_a_program(self):
        process = self.begin()
        look = self.watch()
        self.assertEqual([p["pid"] for p in look()["device"]["Compute_v3"]], [process.pid])
        process.kill()
        wait_until(lambda: look()["device"]["Compute_v3"] == [], "an empty list")

    def test_its_own_limit(self):
        full = self.monitor("--as-client", options=("--device", "soft", "--memory", "256M"))["device"]
        self.assertGreater(full["memory"]["total"], 256 << 20)
        done = self.monitor("--as-client", options=("--device", "soft", "--memory", "256M", "--show-limit"))
        seen = done["device"]
        self.assertEqual(seen["memory"]["total"], 256 << 20)
        self.assertGreaterEqual(seen["memory"]["used"], 16 << 20)
        self.assertLessEqual(seen["memory"]["free"], 240 << 20)
        self.assertEqual(seen["memory_v2"]["total"], 256 << 20)

    def test_questions_of_pytorch(self):
        other = self.begin()
        seen = self.monitor("--as-client", "--torch", options=("--device", "soft", "--memory", "256M", "--show-limit"))
        device, = self.funnel_json("devices")
        self.assertEqual((seen["results"], seen["count"], seen["uuid"]), ([0] * 5, 1, device["uuid"]))
        self.assertLessEqual(seen["utilization"], 100)
        self.assertIn(other.pid, [process["pid"] for process in seen["processes"]])
        self.assertEqual(len(seen["processes"]), 2)
        self.assertEqual(seen["memory"], [240 << 20, 256 << 20])

    def test_pid_namespace(self):
        """A monitor in a container sees the programs there, by their numbers there."""
        outside = self.begin()
        script = """
            "$F" run -q --device soft -- "$P" 2000 2 >/dev/null 2>&1 &
            echo $!
            read unused
            "$F" run -q --nvml --device soft -- "$@"
        """
        inside = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script, "sh", *MONITOR],
            env={**self.environment, "F": os.path.join(self.root, "bin/funnel"),
                 "P": os.path.join(harness.BUILD, "tests/control/at_work")},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.processes.append(inside)
        number = inside.stdout.readline()
        if not number:
            self.skipTest("no PID namespaces here: " + inside.stderr.read())
        wait_until(lambda: len([c for c in self.clients() if c["launches"]]) == 2, "both programs")
        out, _ = inside.communicate("\n", timeout=harness.TIMEOUT)
        seen = json.loads(out)["device"]
        self.assertEqual([p["pid"] for p in seen["Compute_v3"]], [int(number)])
        self.assertEqual([s["pid"] for s in seen["samples"]], [int(number)])
        self.assertIn("at_work", seen["names"][str(int(number))])
        self.assertNotEqual(int(number), outside.pid)

    def test_before_init(self):
        self.assertEqual(self.monitor("--before-init"),
                         [NOT_INITIALIZED, NOT_INITIALIZED, "Not supported by the software GPU"])

    def test_fork_and_threads(self):
        process = self.begin()
        self.assertEqual([p["pid"] for p in self.monitor("--fork")["device"]["Compute_v3"]], [process.pid])
        for found in self.monitor("--threads"):
            self.assertEqual([p["pid"] for p in found["device"]["Compute_v3"]], [process.pid])

    # ---- above NVIDIA's library ----

    def fake_environment(self, *pids):
        device, = self.funnel_json("devices")
        return {"FUNNEL_NVML": self.fake, "FAKE_NVML_UUID": device["uuid"],
                "FAKE_NVML_PIDS": ",".join(map(str, pids))}

    def test_clients_in_place_of_the_server(self):
        process = self.begin()
        server, = self.funnel_json("servers")
        seen = self.monitor(**self.fake_environment(server["pid"], 1))["device"]
        self.assertEqual({p["pid"]: p["memory"] for p in seen["Compute_v3"]},
                         {1: 100 << 20, process.pid: self.clients()[0]["memory_used"]})
        self.assertEqual([p["pid"] for p in seen["Graphics_v3"]], [1])
        self.assertEqual({s["pid"] for s in seen["samples"]}, {1, process.pid})
        self.assertEqual([s["enc"] for s in seen["samples"] if s["pid"] == 1], [2])
        self.assertIn("at_work", seen["names"][str(process.pid)])

    def test_the_table_of_nvidia_smi(self):
        process = self.begin()
        server, = self.funnel_json("servers")
        environment = self.fake_environment(server["pid"], 1)
        seen = self.monitor("--smi", FAKE_NVML_DRIVER="580.65.06", **environment)
        (other, client), *rest = seen["lists"]
        self.assertEqual((other, rest, seen["other"]), ([1, 100 << 20, "a program"], [[], []], 7))
        self.assertEqual(client[:2], [process.pid, self.clients()[0]["memory_used"]])
        self.assertIn("at_work", client[2])
        seen = self.monitor("--smi", FAKE_NVML_DRIVER="999.1", **environment)  # may have another table
        self.assertEqual([p[0] for p in seen["lists"][0]], [server["pid"], 1])

    def test_the_rest_is_passed_on(self):
        self.begin()
        seen = self.monitor(**self.fake_environment())["device"]
        self.assertEqual((seen["temperature"], seen["five_arguments"]), (42, [11, 22]))
        self.assertEqual((seen["unsupported"]["nvmlDeviceGetPowerUsage"], seen["Compute"], seen["memory"]),
                         (NO_FUNCTION, NO_FUNCTION, NO_FUNCTION))

    def test_another_device(self):
        """One that no server serves is shown as it is."""
        self.begin()
        environment = {**self.fake_environment(5), "FAKE_NVML_UUID": "GPU-" + "-".join(["0000"] * 8)}
        seen = self.monitor(**environment)["device"]
        self.assertEqual([p["pid"] for p in seen["Compute_v3"]], [5])

    def test_daemon_that_does_not_answer(self):
        self.begin()
        server, = self.funnel_json("servers")
        look = self.watch(**self.fake_environment(server["pid"]))
        self.assertNotIn(server["pid"], [p["pid"] for p in look()["device"]["Compute_v3"]])
        os.kill(self.daemon_pid(), signal.SIGSTOP)
        try:
            wait_until(lambda: [p["pid"] for p in look()["device"]["Compute_v3"]] == [server["pid"]],
                       "the driver's own list")
        finally:
            os.kill(self.daemon_pid(), signal.SIGCONT)

    def test_no_daemon(self):
        environment = {**self.environment, "LD_LIBRARY_PATH": os.path.dirname(self.library),
                       "FAKE_NVML_UUID": "GPU-0", "FAKE_NVML_PIDS": "7"}
        for library, wanted in (("soft", NO_DRIVER), (self.fake, 0)):
            done = subprocess.run(MONITOR, env={**environment, "FUNNEL_NVML": library}, text=True,
                                  stdout=subprocess.PIPE, check=True)
            found = json.loads(done.stdout)
            self.assertEqual(found["init"], wanted)
        self.assertEqual([p["pid"] for p in found["device"]["Compute_v3"]], [7])


if __name__ == "__main__":
    harness.main()
