# SPDX-License-Identifier: Apache-2.0
"""The limits of MPS in all their scopes, as a program sees them."""
import os
import re
import subprocess

import limits_harness
from limits_harness import MIB, SMS, wait_until

PERCENT = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
MEMORY = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"


class Shares(limits_harness.TestCase):
    def granted(self, environment=None):
        """How many SMs: as the device says, on the default stream, and on one of the program's."""
        (said,), default, own = self.ask("sms", "smid", "new-smid", environment=environment)
        self.assertEqual(default, own)
        self.assertLessEqual(len(default), said)
        return said, len(default)

    def test_none(self):
        self.start()
        self.assertEqual(self.granted(), (SMS, SMS))

    def test_rounding(self):
        self.start()
        for percent, sms in ((1, 2), (10, 2), (12.5, 2), (25, 4), (33, 4), (50, 8), (75, 12),
                             (99, 14), (100, 16)):
            with self.subTest(percent=percent):
                self.assertEqual(self.granted({PERCENT: str(percent)}), (sms, sms))

    def test_daemon_default_from_its_environment(self):
        self.start(environment={PERCENT: "50"})
        self.assertEqual(self.mps("get_default_active_thread_percentage\n"), ["50.0"])
        self.assertEqual(self.granted(), (8, 8))

    def test_the_tightest_of_server_and_program(self):
        self.start()
        self.mps("set_default_active_thread_percentage 50\n")
        self.assertEqual(self.granted(), (8, 8))
        self.assertEqual(self.granted({PERCENT: "25"}), (4, 4))
        self.assertEqual(self.granted({PERCENT: "90"}), (8, 8))
        server, = self.servers()
        self.mps(f"set_active_thread_percentage {server} 75\n")
        self.assertEqual(self.granted(), (12, 12))
        # The default is for servers that start later.
        self.mps("set_default_active_thread_percentage 25\n")
        self.assertEqual(self.granted(), (12, 12))

    def test_granted_ones_are_shown(self):
        self.start()
        program = self.begin("sms", "info", "wait", environment={PERCENT: "30"})
        granted, = program.answer()
        program.answer()
        client, = self.funnel_json("ps")
        self.assertEqual(client["devices"][0]["sm_granted"], granted)
        self.assertIn(f"{granted} of {SMS}", self.funnel("limits").stdout)
        shown = self.funnel("ps", "--columns", "pid,granted").stdout.splitlines()
        self.assertEqual(shown[1].split(), [str(program.pid), str(granted)])

    def test_programs_lie_side_by_side(self):
        self.start()
        programs = [self.begin("smid", "wait", environment={PERCENT: "25"}) for _ in range(4)]
        places = [program.answer() for program in programs]
        self.assertEqual(sorted(sm for place in places for sm in place), list(range(SMS)))

    def test_neighbours_are_made_ahead(self):
        """Partitions are created while no client works, so that the next client delays no other."""
        ahead = "A partition of device 0 is created in advance"
        self.start(environment={"FUNNEL_DEBUG": "1"})
        program = self.begin("sms", "wait", environment={PERCENT: "25"})
        self.assertEqual(program.answer(), [4])
        wait_until(lambda: self.server_log().count(ahead) == 3, "three more shares")
        self.assertEqual(self.granted({PERCENT: "25"}), (4, 4))
        self.assertEqual(self.server_log().count(ahead), 3)

    def test_shares_of_an_h100(self):
        """As measured with NVIDIA MPS on an H100."""
        self.environment["FUNNEL_SOFT_DEVICES"] = "1:sms=132,mem=1G"
        self.start()
        for percent, sms in ((5, 8), (10, 12), (25, 32), (33, 42), (50, 66), (75, 98), (99, 130)):
            with self.subTest(percent=percent):
                self.assertEqual(self.ask("sms", environment={PERCENT: str(percent)}), [[sms]])


class Contexts(limits_harness.TestCase):
    BY_CONTEXT = "CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING"

    def context(self, question, environment=None):
        """Result, SMs granted, what the device says; then the SMs of default and other streams."""
        answers = self.ask(question, "smid", "new-smid", "close", "sms", environment=environment)
        (result, granted, said), default, own, closed, (after,) = answers
        self.assertEqual((result, closed), (0, [0]))
        self.assertEqual(default, own)
        return granted, said, len(default), after

    def test_offered(self):
        self.start()
        self.assertEqual(self.ask("affinity"), [[1]])

    def test_rounded_up(self):
        self.start()
        for asked, granted in ((1, 2), (2, 2), (3, 4), (9, 10), (15, 16), (16, 16)):
            with self.subTest(asked=asked):
                self.assertEqual(self.context(f"context={asked}"), (granted, 16, granted, 16))
        self.assertEqual(self.ask("context=17"), [[224]])
        self.assertEqual(self.ask("context=0"), [[1]])

    def test_rounding_of_an_h100(self):
        """As measured with NVIDIA MPS."""
        self.environment["FUNNEL_SOFT_DEVICES"] = "1:sms=132,mem=1G"
        self.start()
        for asked, granted in ((1, 8), (3, 8), (8, 8), (9, 10), (16, 16), (33, 34), (100, 100),
                               (131, 132), (132, 132)):
            with self.subTest(asked=asked):
                self.assertEqual(self.ask(f"context={asked}"), [[0, granted, 132]])
        self.assertEqual(self.ask("context=133"), [[224]])

    def test_the_clients_share_bounds_it(self):
        self.start()
        self.assertEqual(self.context("context=12", {PERCENT: "50"})[::2], (8, 8))

    def test_percentage_by_context(self):
        self.start()
        switched = {self.BY_CONTEXT: "1"}
        self.assertEqual(self.context("percent=25", switched), (4, 4, 4, 16))
        self.assertEqual(self.context("percent=25"), (16, 16, 16, 16))
        self.assertEqual(self.context("percent=75", {**switched, PERCENT: "50"})[2], 8)
        self.assertEqual(self.context("percent=100", switched), (16, 16, 16, 16))

    def test_contexts_side_by_side(self):
        self.start()
        answers = self.ask("context=8", "smid", "context=8", "smid")
        self.assertEqual(sorted(answers[1] + answers[3]), list(range(SMS)))


class Clusters(limits_harness.TestCase):
    """Thread block clusters in shares; for a GPU with FUNNEL_TEST_DEVICE=cuda, too."""
    devices = "1:sms=132,mem=1G"

    def setUp(self):
        super().setUp()
        self.start()
        self.total = self.ask("sms")[0][0]

    def check(self, answer, sms):
        """They run. The software GPU runs one on each multiprocessor that can."""
        first, second, at_once, largest = answer
        self.assertEqual((first, second, largest), (0, 0, 8))
        if limits_harness.DEVICE == "soft":
            self.assertEqual(at_once, sms)
        else:
            self.assertGreater(at_once, 0)

    def test_shares_of_all_sizes(self):
        sizes = range(8, self.total, 2)
        answers = self.ask(*(question for size in sizes
                             for question in (f"context={size}", "cluster=8", "close")))
        for size, granted, answer in zip(sizes, answers[::3], answers[1::3]):
            with self.subTest(sms=size):
                self.assertEqual(granted, [0, size, self.total])
                self.check(answer, size // 8 * 8)

    def test_shares_of_programs(self):
        for percent in (6, 10, 25, 33, 50, 66, 80, 99):
            # Beside a program that is about to leave, the next gets what that has not, in smaller groups.
            wait_until(lambda: not self.funnel_json("ps"), "the end of the program before")
            with self.subTest(percent=percent):
                (sms,), pairs, fours, eights, sixteens = self.ask(
                    "sms", "cluster=2", "cluster=4", "cluster=8", "cluster=16",
                    environment={PERCENT: str(percent)})
                self.assertEqual(sms, max(self.total * percent // 100 // 2 * 2, 8))
                self.check(pairs, sms)
                self.check(fours, sms // 8 * 8)
                self.check(eights, sms // 8 * 8)
                self.assertEqual(sixteens, [912, 912, 0, 8])

    def test_without_a_share(self):
        eights, sixteens = self.ask("cluster=8", "cluster=16")
        self.assertEqual((eights[:2], eights[3]), ([0, 0], 16))
        self.assertEqual((sixteens[:2], sixteens[3]), ([0, 0], 16))

    def test_side_by_side(self):
        programs = [self.begin("cluster=8", "sms", "wait", environment={PERCENT: "25"})
                    for _ in range(4)]
        for program in programs:
            answer = program.answer()
            self.check(answer, program.answer()[0])


class SmallShares(limits_harness.TestCase):
    def test_too_small_for_clusters(self):
        self.start()
        self.assertEqual(self.ask("cluster=2", "cluster=4", environment={PERCENT: "25"}),
                         [[0, 0, 4, 2], [912, 912, 0, 2]])


class Memory(limits_harness.TestCase):
    def uuid(self):
        return self.mps("device_query --csv\n")[1].split(",")[3]

    def test_exact(self):
        self.start()
        (free, total), filled, (left, _), _, (again, _) = self.ask(
            "info", "fill=16", "info", "drop", "info", environment={MEMORY: "0=256M"})
        self.assertEqual(total, 1 << 30)
        self.assertLessEqual(free, 256 * MIB)
        self.assertEqual(filled, [free // (16 * MIB), 2])
        self.assertEqual(left, free - filled[0] * 16 * MIB)
        self.assertLessEqual(again, 256 * MIB)

    def test_totals_show_the_limit(self):
        """Where the program, its launcher or the operator says so: what is free stays exact."""
        self.start()
        with self.subTest("not by itself"):
            self.assertEqual(self.ask("total", environment={MEMORY: "0=256M"}), [[1 << 30]])
        (free, total), (device,), filled = self.ask(
            "info", "total", "fill=16", environment={MEMORY: "0=256M", "FUNNEL_SHOW_LIMIT": "1"})
        self.assertEqual((total, device), (256 * MIB, 256 * MIB))
        self.assertEqual(filled, [free // (16 * MIB), 2])
        command = self.command("info", "total")
        command[3:3] = ["--memory", "128M", "--show-limit"]
        done = subprocess.run(command, env=self.environment, stdout=subprocess.PIPE, text=True,
                              timeout=limits_harness.harness.TIMEOUT)
        self.assertEqual(done.stdout.split()[1:], [str(128 * MIB)] * 2)

    def test_totals_as_the_operator_says(self):
        self.start()
        self.mps("server set uid_%d --pinned-memory-limit=512M --show-limit=true\n" % os.getuid())
        program = self.begin("info", "total", "wait", "info", "total", "wait", "info", "fill=16")
        self.assertEqual(program.answer()[1:], [512 * MIB])
        self.assertEqual(program.answer(), [512 * MIB])
        limit = self.funnel("limit", "--client", str(program.pid), "--memory", "256M")
        self.assertEqual(limit.returncode, 0, limit.stderr)
        program.go_on()
        self.assertEqual(program.answer(), [256 * MIB, 256 * MIB])
        self.assertEqual(program.answer(), [512 * MIB])  # the device's stays that of the start
        limit = self.funnel("limit", "--client", str(program.pid), "--memory", "none")
        self.assertEqual(limit.returncode, 0, limit.stderr)
        program.go_on()
        free, total = program.answer()
        self.assertEqual(total, 1 << 30)
        self.assertEqual(program.answer(), [free // (16 * MIB), 2])
        self.assertEqual(program.end(), 0)
        own = {"FUNNEL_SHOW_LIMIT": "0"}
        self.assertEqual(self.ask("total", environment=own), [[1 << 30]])

    def test_a_container_of_hami(self):
        """With what HAMi's device plugin sets for a container of two devices' shares."""
        self.start()
        hami = {"CUDA_DEVICE_MEMORY_LIMIT_0": "300m", "CUDA_DEVICE_MEMORY_LIMIT_1": "200m",
                "CUDA_DEVICE_SM_LIMIT": "50", "CUDA_DEVICE_MEMORY_SHARED_CACHE": "/none/x.cache",
                "CUDA_TASK_PRIORITY": "1"}
        program = self.begin("sms", "info", "total", "wait", environment=hami)
        self.assertEqual([program.answer() for _ in range(3)],
                         [[SMS // 2], [300 * MIB, 300 * MIB], [300 * MIB]])
        self.assertIn("below normal priority", self.control_log())
        program.go_on()
        program.end()
        for more in ({"CUDA_DISABLE_CONTROL": "true"}, {"CUDA_DEVICE_MEMORY_LIMIT_0": "0m"}):
            self.assertEqual(self.ask("total", environment={**hami, **more}), [[1 << 30]])
        disabled = {**hami, "GPU_CORE_UTILIZATION_POLICY": "disable"}
        self.assertEqual(self.ask("sms", "total", environment=disabled), [[SMS], [300 * MIB]])

    def test_a_pod_of_kai(self):
        """Its binder gives bytes, for any device of the pod."""
        self.start()
        self.assertEqual(self.ask("info", environment={"GPU_MEMORY_LIMIT": str(400 * MIB)}),
                         [[400 * MIB, 400 * MIB]])

    def test_scopes(self):
        self.start()
        self.mps("set_default_device_pinned_mem_limit 0 512M\n")
        self.assertEqual(self.ask("info")[0][0], 512 * MIB)
        server, = self.servers()
        self.mps(f"set_device_pinned_mem_limit {server} 0 768M\n")
        self.assertEqual(self.ask("info")[0][0], 768 * MIB)
        self.assertEqual(self.ask("info", environment={MEMORY: "0=128MB"})[0][0], 128 * MIB)
        self.assertEqual(self.ask("info", environment={MEMORY: "0=4G"})[0][0], 768 * MIB)

    def test_by_uuid(self):
        self.start()
        self.ask("sms")
        uuid = self.uuid()
        for name in (uuid, uuid[:12]):
            self.assertEqual(self.ask("info", environment={MEMORY: f"{name}=64M"})[0][0], 64 * MIB)
        # All but the server's context and what it keeps of the libraries of earlier programs.
        self.assertGreater(self.ask("info", environment={MEMORY: "GPU-ffffffff=64M"})[0][0],
                           1013 * MIB)
        server, = self.servers()
        self.mps(f"set_device_pinned_mem_limit {server} {uuid[:12]} 32M\n")
        self.assertEqual(self.ask("info")[0][0], 32 * MIB)

    def test_most_that_was_held(self):
        self.start()
        self.mps("memacct set audit_log=true\n")
        program = self.begin("fill=16", "drop", "wait", environment={MEMORY: "0=64M"})
        self.assertEqual(program.answer(), [4, 2])
        program.answer()
        client, = self.funnel_json("ps")
        self.assertEqual(client["devices"][0]["memory_peak"], 64 * MIB)
        self.assertGreater(client["memory_refused"], 0)
        program.process.kill()
        program.process.wait()
        wait_until(lambda: "met its memory limit" in self.control_log())
        self.assertIn(f"held at most {64 * MIB} bytes", self.control_log())

    def held_after(self, end):
        """Whether control.log accounts for a program whose server ends by `end`."""
        self.start()
        self.mps("memacct set audit_log=true\n")
        program = self.begin("fill=16", "wait", environment={MEMORY: "0=64M"})
        self.assertEqual(program.answer(), [4, 2])
        end()
        wait_until(lambda: f"Audit: client {program.pid} " in self.control_log())
        self.assertIn(f"held at most {64 * MIB} bytes", self.control_log())

    def test_held_when_the_server_is_ended_by_force(self):
        self.held_after(lambda: self.mps(f"shutdown_server {self.servers()[0]} -f\n"))
        wait_until(lambda: "Destroy server context on device 0" in self.server_log())
        self.assertIn(f"Device pinned memory limit for device 0 set to {hex(64 * MIB)} bytes",
                      self.server_log())
        self.assertIn("Server Priority set to 0", self.server_log())

    def test_held_when_the_daemon_is_ended_by_force(self):
        self.held_after(lambda: self.funnel("stop", "--force"))

    def test_held_when_the_server_faults(self):
        def fault():
            self.begin("fault", "10", program="limits_load").process.communicate("\n", timeout=60)

        self.held_after(fault)

    def test_one_client_leaves_another_its_memory(self):
        self.start()
        greedy = self.begin("fill=16", "wait", environment={MEMORY: "0=512M"})
        self.assertEqual(greedy.answer(), [32, 2])
        self.assertEqual(self.ask("fill=16", environment={MEMORY: "0=256M"}), [[16, 2]])


class Devices(limits_harness.TestCase):
    devices = "3:sms=16,mem=1G"

    def fails_with(self, code, environment):
        done = self.funnel("run", "-q", "--no-start", "--", *self.command("sms")[5:],
                           environment=environment)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(str(code), done.stdout)

    def test_visible_devices_are_numbered_from_zero(self):
        self.start(environment={"CUDA_VISIBLE_DEVICES": "0,2"})
        self.assertEqual(self.ask("sms", environment={"CUDA_VISIBLE_DEVICES": "1"}), [[16]])
        self.fails_with(100, {"CUDA_VISIBLE_DEVICES": "2"})
        rows = self.mps("device_query --csv\n")[1:]
        self.assertEqual([row.split(",")[0] for row in rows], ["0", "1"])
        uuid = rows[1].split(",")[3]
        self.assertEqual(self.ask("sms", environment={"CUDA_VISIBLE_DEVICES": uuid}), [[16]])

    def test_no_more_clients_than_that(self):
        self.start(environment={"FUNNEL_MAX_CLIENTS": "2"})
        programs = [self.begin("info", "wait") for _ in range(2)]
        for program in programs:
            program.answer()
        self.fails_with(808, {})
        self.assertRegex(self.server_log(),
                         r"Client \{PID: \d+\} is refused with status 808: the server has "
                         r"reached its limit of clients \(2 clients of at most 2\)")
        # A refused client is told before the daemon is.
        wait_until(lambda: "ended with status 808: the server has reached its limit of clients"
                   in self.control_log(), "the daemon's note")
        programs[0].process.kill()
        programs[0].process.wait()
        wait_until(lambda: len(self.funnel_json("ps")) == 1)
        self.ask("sms")


    def test_clients_are_as_many_as_windows(self):
        cases = (("1:sms=16,mem=1G", 512), ("1:sms=16,mem=139G", 285), ("8:sms=16,mem=139G", 46))
        for number, (devices, clients) in enumerate(cases, 1):
            self.environment["FUNNEL_SOFT_DEVICES"] = devices
            self.start()
            self.mps(f"start_server -uid {os.getuid()}\n")
            said = re.findall(r"Takes (\d+) clients", self.server_log())
            self.assertEqual((len(said), said[-1]), (number, str(clients)))
            self.mps("quit\n")


class Priority(limits_harness.TestCase):
    def priority_of(self, environment=None):
        program = self.begin("info", "wait", environment=environment)
        program.answer()
        return [c["priority"] for c in self.clients() if c["pid"] == program.pid][0]

    def clients(self):
        return self.funnel_json("ps")

    def test_scopes(self):
        self.start()
        self.assertEqual(self.priority_of(), 0)
        self.mps("set_default_client_priority 1\n")
        self.assertEqual(self.priority_of(), 1)
        self.assertEqual(self.priority_of({"CUDA_MPS_CLIENT_PRIORITY": "0"}), 0)
        self.mps("set_default_client_priority 0\n")
        self.assertEqual(self.priority_of({"CUDA_MPS_CLIENT_PRIORITY": "1"}), 1)


class Logs(limits_harness.TestCase):
    """Who came, with which limits, and what became of it."""
    def test_of_a_client(self):
        self.start()
        program = self.begin("fill=16", "wait", environment={
            PERCENT: "25", MEMORY: "0=64M", "CUDA_MPS_CLIENT_PRIORITY": "1",
            "FUNNEL_GROUP": "batch"})
        program.answer()
        self.assertEqual(self.funnel("limit", "--client", str(program.pid), "--sm", "50",
                                     "--memory", "128M").returncode, 0)
        server, = self.servers()
        self.mps(f"terminate_client {server} {program.pid}\n")
        program.process.kill()
        program.process.wait()
        wait_until(lambda: f"Client {program.pid} (id 1) of server {server} ended with status 810\n"
                   in self.control_log())
        who = rf"of user {os.getuid()}, group batch, namespace \w+: \S*limits_probe fill=16 wait\n"
        limits = "25.0 % of the SMs, below normal priority, at most 64 MiB of device 0\n"
        self.assertRegex(self.control_log(), f"Client {program.pid} is {who}")
        self.assertIn(f"Client {program.pid} is handed over to server {server} with {limits}",
                      self.control_log())
        self.assertRegex(self.control_log(), rf"Commands of process \d+ of user {os.getuid()}\n")
        client = f"Client {{PID: {program.pid}, Context ID: 1}}"
        log = self.server_log()
        self.assertRegex(log, re.escape(client) + " is " + who)
        for text in (f" has {limits}", ": Active Threads Percentage set to 25.0 on device 0, 4 SMs",
                     ": out of memory: it has 64 MiB of device 0, wants 16384 KiB more",
                     ": limits are now 50.0 % of the SMs, below normal priority, at most 128 MiB "
                     "of device 0",
                     " is terminated by the daemon", ": 0 launches, 0 copies", " exit"):
            self.assertIn(client + text, log)


if __name__ == "__main__":
    limits_harness.main()
