# SPDX-License-Identifier: Apache-2.0
"""Several devices: of one daemon, divided among daemons, and divided among servers of one
daemon."""
import json
import os

import limits_harness
from limits_harness import wait_until

VISIBLE = "CUDA_VISIBLE_DEVICES"


class TestCase(limits_harness.TestCase):
    devices = "3:sms=16,mem=1G"

    def view(self, name, pipe):
        done = self.funnel(name, "--json", environment={"CUDA_MPS_PIPE_DIRECTORY": pipe})
        if "without the jansson library" in done.stderr:
            self.skipTest("built without jansson")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def device_of(self, pipe, environment=None):
        """The ordinals and UUIDs of the devices that a program works on, as its server knows
        them."""
        program = self.begin("info", "wait", environment={"CUDA_MPS_PIPE_DIRECTORY": pipe,
                                                          **(environment or {})})
        self.assertEqual(len(program.answer()), 2)
        client, = [c for c in self.view("ps", pipe) if c["pid"] == program.pid]
        program.process.kill()
        program.process.wait()
        return [(d["ordinal"], d["uuid"]) for d in client["devices"]]

    def refused(self, pipe, environment):
        done = self.funnel("run", "-q", "--no-start", "--", *self.command("sms")[5:],
                           environment={"CUDA_MPS_PIPE_DIRECTORY": pipe, **environment})
        return done.returncode != 0 and "100" in done.stdout


class OneDaemon(TestCase):
    def test_one_program_on_two(self):
        self.start()
        program = self.begin("fill=16", "device=2", "fill=16", "wait",
                             environment={"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=64M,2=128M"})
        self.assertEqual([program.answer() for _ in range(3)], [[4, 2], [3], [12, 2]])
        client, = self.funnel_json("ps")
        self.assertEqual([(d["ordinal"], d["memory_limit"], d["memory_used"])
                          for d in client["devices"]],
                         [(0, 64 << 20, 64 << 20), (2, 128 << 20, 128 << 20)])
        row = self.mps("get_device_client_list\n")
        self.assertEqual(row, ["Device 0", str(program.pid), "Device 2", str(program.pid)])
        self.assertEqual(len(self.mps("ps\n")), 3)

    def test_devices_of_a_container(self):
        """HAMi's plugin gives a container two of three devices, and a limit for each by its place
        in the list."""
        self.start()
        whole = [self.device_of(self.pipe, {VISIBLE: str(i)})[0][1] for i in range(3)]
        hami = {"NVIDIA_VISIBLE_DEVICES": f"{whole[2]},{whole[1]}",
                "CUDA_DEVICE_MEMORY_LIMIT_0": "64m", "CUDA_DEVICE_MEMORY_LIMIT_1": "128m",
                "CUDA_DEVICE_SM_LIMIT": "0"}
        program = self.begin("device=0", "total", "fill=16", "device=1", "total", "fill=16", "wait",
                             environment=hami)
        self.assertEqual([program.answer() for _ in range(6)],
                         [[2], [128 << 20], [8, 2], [2], [64 << 20], [12, 2]])
        client, = self.funnel_json("ps")
        self.assertEqual([(d["ordinal"], d["memory_used"]) for d in client["devices"]],
                         [(1, 128 << 20), (2, 64 << 20)])
        self.assertEqual(self.device_of(self.pipe, {**hami, VISIBLE: "1"}), [(2, whole[2])])
        self.assertTrue(self.refused(self.pipe, {**hami, VISIBLE: whole[0]}))
        self.assertTrue(self.refused(self.pipe, {"NVIDIA_VISIBLE_DEVICES": "GPU-ffffffff"}))
        for others in ("all", "0"):
            self.assertEqual(self.device_of(self.pipe, {"NVIDIA_VISIBLE_DEVICES": others}),
                             [(0, whole[0])])

    def test_logged_by_their_numbers(self):
        """Each device of a client has one line about its share, with the device's number."""
        self.start()
        program = self.begin("info", "wait",
                             environment={"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25"})
        self.assertEqual(len(program.answer()), 2)
        self.assertIn("; 1 client\n", self.funnel("status").stdout)
        client = f"Client {{PID: {program.pid}, Context ID: 1}}: "
        lines = [line.partition(client)[2] for line in self.server_log().splitlines()
                 if "Active Threads Percentage" in line]
        self.assertEqual(lines, [f"Active Threads Percentage set to 25.0 on device {i}, 4 SMs"
                                 for i in range(3)])
        program.process.kill()
        program.process.wait()
        wait_until(lambda: "; 0 clients\n" in self.funnel("status").stdout, "its end")

    def test_divided_among_its_servers(self):
        self.start()
        for name, devices in (("a", "0"), ("b", "2,1")):
            done = self.run_program("nvidia-cuda-mps-control", "server", "create", name,
                                    "--allowed-devices=" + devices)
            self.assertEqual(done.returncode, 0, done.stdout)
        whole = [self.device_of(self.pipe, {VISIBLE: str(i)})[0][1] for i in range(3)]
        self.assertEqual(len(set(whole)), 3)
        self.assertEqual(self.device_of(self.pipe + "/a"), [(0, whole[0])])
        self.assertEqual(self.device_of(self.pipe + "/b"), [(0, whole[2])])
        self.assertEqual(self.device_of(self.pipe + "/b", {VISIBLE: "1"}), [(1, whole[1])])
        self.assertTrue(self.refused(self.pipe + "/a", {VISIBLE: "1"}))

    def test_connections_are_the_servers(self):
        """CUDA_DEVICE_MAX_CONNECTIONS of a program neither helps nor harms."""
        self.start()
        for value in ("1", "32", "x"):
            self.assertEqual(self.ask("sms", environment={"CUDA_DEVICE_MAX_CONNECTIONS": value}),
                             [[16]])


class TwoDaemons(TestCase):
    """At the same time, in different pipe directories, with different devices."""

    def setUp(self):
        super().setUp()
        self.pipes = [self.pipe, os.path.join(self.root, "second")]
        for pipe, visible in zip(self.pipes, ("2", "1,0")):
            self.start(environment={"CUDA_MPS_PIPE_DIRECTORY": pipe, VISIBLE: visible})

    def tearDown(self):
        self.quit(self.pipes[1])
        super().tearDown()

    def quit(self, pipe):
        self.run_program("nvidia-cuda-mps-control", input="quit -t 0\n",
                         environment={"CUDA_MPS_PIPE_DIRECTORY": pipe})

    def test_each_numbers_its_devices_from_zero(self):
        (_, third), = self.device_of(self.pipes[0])
        (_, second), = self.device_of(self.pipes[1])
        (number, first), = self.device_of(self.pipes[1], {VISIBLE: "1"})
        self.assertEqual(number, 1)
        self.assertEqual(len({first, second, third}), 3)
        self.assertTrue(self.refused(self.pipes[0], {VISIBLE: "1"}))
        self.assertEqual(self.device_of(self.pipes[1], {VISIBLE: first}), [(1, first)])
        self.assertTrue(self.refused(self.pipes[0], {VISIBLE: first}))

    def clients(self, pipe):
        return [client["pid"] for client in self.view("ps", pipe)]

    def test_several_directories(self):
        """A program, with funnel run and by itself, takes the first in which a daemon answers."""
        self.environment["CUDA_MPS_PIPE_DIRECTORY"] = ":".join(
            [os.path.join(self.root, "none"), *self.pipes])
        programs = [self.begin("info", "wait"), self.begin_by_itself("info", "wait")]
        for program in programs:
            program.answer()
        self.assertEqual(sorted(self.clients(self.pipes[0])), sorted(p.pid for p in programs))
        self.assertEqual(len(self.funnel_json("ps")), 2)
        self.assertEqual(self.clients(self.pipes[1]), [])
        done = self.run_program("funneld", "-d", "--device", "soft")
        self.assertEqual(done.returncode, 1)
        self.assertIn("names several directories, and a daemon has one", done.stderr)
        for program in programs:
            program.go_on()
            self.assertEqual(program.end(), 0)
        self.quit(self.pipes[0])
        programs = [self.begin("info", "wait"), self.begin_by_itself("info", "wait")]
        for program in programs:
            program.answer()
        self.assertEqual(sorted(self.clients(self.pipes[1])), sorted(p.pid for p in programs))
        self.assertEqual(len(self.funnel_json("ps")), 2)

    def daemon_of(self, **environment):
        """Which of the two daemons a program uses that knows of both, and the device there."""
        program = self.begin("info", "wait", environment={
            "CUDA_MPS_PIPE_DIRECTORY": ":".join(self.pipes), **environment})
        program.answer()
        found = [(number, device["ordinal"]) for number, pipe in enumerate(self.pipes)
                 for client in self.view("ps", pipe) for device in client["devices"]]
        self.assertEqual(len(found), 1)
        program.go_on()
        self.assertEqual(program.end(), 0)
        wait_until(lambda: not any(self.clients(pipe) for pipe in self.pipes))
        return found[0]

    def test_the_directory_that_has_the_device(self):
        """Of several, a program takes the one whose daemon has a device that it is to see."""
        (_, third), = self.device_of(self.pipes[0])
        (_, first), = self.device_of(self.pipes[1], {VISIBLE: "1"})
        wait_until(lambda: not any(self.clients(pipe) for pipe in self.pipes))
        self.assertEqual(self.daemon_of(), (0, 0))
        self.assertEqual(self.daemon_of(CUDA_VISIBLE_DEVICES=third), (0, 0))
        self.assertEqual(self.daemon_of(CUDA_VISIBLE_DEVICES=first), (1, 1))
        self.assertEqual(self.daemon_of(NVIDIA_VISIBLE_DEVICES=first), (1, 1))
        self.assertEqual(self.daemon_of(CUDA_VISIBLE_DEVICES="1"), (1, 1))
        self.assertTrue(self.refused(":".join(self.pipes), {VISIBLE: "GPU-ffff"}))

    def test_neither_knows_of_the_other(self):
        programs = [self.begin("info", "wait", environment={"CUDA_MPS_PIPE_DIRECTORY": pipe})
                    for pipe in self.pipes]
        for program in programs:
            program.answer()
        for pipe, program in zip(self.pipes, programs):
            self.assertEqual([c["pid"] for c in self.view("ps", pipe)], [program.pid])
        self.mps("set_default_active_thread_percentage 25\n")
        self.quit(self.pipes[0])
        self.assertIsNone(self.daemon_pid())
        programs[1].go_on()
        self.assertEqual(self.ask("sms", environment={"CUDA_MPS_PIPE_DIRECTORY": self.pipes[1]}),
                         [[16]])
        self.start(environment={VISIBLE: "2"})
        self.assertEqual(self.ask("sms"), [[16]])


if __name__ == "__main__":
    limits_harness.main()
