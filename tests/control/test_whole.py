# SPDX-License-Identifier: Apache-2.0
"""The daemon and the front ends with the real server, the software GPU and programs from
examples/."""
import json
import os
import signal
import subprocess
import sys
import time
import unittest

import harness
from harness import alive, wait_until


# Prints how many MiB a kernel gets from malloc and never gives back; with an argument it stays.
TAKE_ALL = r"""
import ctypes, sys, time
text = b".version 8.0\n.target sm_80\n.address_size 64\n" \
    b".extern .func (.param .b64 r) malloc(.param .b64 s);\n" \
    b".visible .entry take(.param .u64 count) {\n.reg .b64 %d<4>;\n.reg .b32 %r;\n.reg .pred %p;\n" \
    b".param .b64 s;\n.param .b64 r;\nld.param.u64 %d1, [count];\nmov.u32 %r, 0;\nagain:\n" \
    b"mov.u64 %d2, 1048576;\nst.param.b64 [s], %d2;\ncall.uni (r), malloc, (s);\n" \
    b"ld.param.b64 %d3, [r];\nsetp.eq.u64 %p, %d3, 0;\n@%p bra out;\nadd.u32 %r, %r, 1;\n" \
    b"bra again;\nout:\nst.global.u32 [%d1], %r;\nret;\n}\n"
cuda = ctypes.CDLL("libcuda.so.1")
def must(result):
    assert result == 0, result
context, module, take, count = (ctypes.c_void_p() for _ in range(4))
must(cuda.cuInit(0))
must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
must(cuda.cuCtxSetCurrent(context))
must(cuda.cuModuleLoadData(ctypes.byref(module), text))
must(cuda.cuModuleGetFunction(ctypes.byref(take), module, b"take"))
must(cuda.cuMemAlloc_v2(ctypes.byref(count), ctypes.c_size_t(4)))
parameters = (ctypes.c_void_p * 1)(ctypes.addressof(count))
must(cuda.cuLaunchKernel(take, 1, 1, 1, 1, 1, 1, 0, None, parameters, None))
found = ctypes.c_uint(0)
must(cuda.cuMemcpyDtoH_v2(ctypes.byref(found), count, ctypes.c_size_t(4)))
print(found.value, flush=True)
time.sleep(60 * (len(sys.argv) - 1))
"""


class Whole(harness.TestCase):
    def install(self):
        os.symlink(os.path.join(harness.BUILD, "bin"), os.path.join(self.root, "bin"))

    def program(self, name, *arguments):
        return [os.path.join(harness.BUILD, "examples", name), *arguments]

    def run_through(self, *command, **options):
        return self.funnel("run", "--device", "soft", "--", *command, **options)

    def in_background(self, *command):
        process = subprocess.Popen([os.path.join(self.root, "bin/funnel"), "run", "-q", "--",
                                    *command],
                                   env=self.environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        self.processes.append(process)
        return process

    def test_version_of_the_server(self):
        done = self.run_program("nvidia-cuda-mps-server", "-v")
        self.assertEqual((done.returncode, done.stdout),
                         (0, self.run_program("nvidia-cuda-mps-control", "-v").stdout))

    def test_log_of_the_server(self):
        """What support looks for in the log of NVIDIA's server."""
        self.environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = "0=64M"
        self.run_through(*self.program("vector_add"))
        self.funnel("stop", "--force")
        with open(os.path.join(self.log, "server.log")) as file:
            log = file.read()
        for line in ("CUDA MPS Server binary version: 13010", "Connecting to control daemon",
                     "Creating server context on device 0", "Server Priority set to 0",
                     "Device pinned memory limit for device 0 set to 0x4000000 bytes",
                     "}: 1 launch, 3 copies of ", "} is ACTIVE", "} is INACTIVE",
                     "Destroy server context on device 0"):
            self.assertIn(line, log)

    def test_hardware_queues(self):
        for value, line in (("16", True), ("7", False), ("33", False), ("many", False)):
            self.environment["FUNNEL_HARDWARE_QUEUES"] = value
            self.run_through(*self.program("vector_add"))
            self.funnel("stop", "--force")
            with open(os.path.join(self.log, "server.log")) as file:
                self.assertEqual("Contexts have 16 hardware queues" in file.read(), line, value)
            os.unlink(os.path.join(self.log, "server.log"))

    def test_heap_of_the_device(self):
        """What kernels take with malloc is gone with their program, and only theirs."""
        self.start("--device", "soft")
        takers = [self.in_background(sys.executable, "-c", TAKE_ALL, "stay") for _ in range(3)]
        for taker in takers:
            self.assertEqual(taker.stdout.readline(), "8\n")
        for taker in takers:
            taker.kill()
            taker.wait()
        server = self.servers()
        done = self.run_through(sys.executable, "-c", TAKE_ALL)
        self.assertEqual(done.stdout, "8\n", done.stderr)
        self.assertEqual(self.servers(), server)

    def test_one_heap_for_all(self):
        """As with NVIDIA's driver: a program finds the heap empty once no other one uses the server."""
        self.environment["FUNNEL_SOFT_ONE_HEAP"] = "1"
        self.start("--device", "soft")
        taker = self.in_background(sys.executable, "-c", TAKE_ALL, "stay")
        self.assertEqual(taker.stdout.readline(), "8\n")
        beside = self.run_through(sys.executable, "-c", TAKE_ALL)
        self.assertEqual(beside.stdout, "0\n", beside.stderr)
        server = self.servers()
        taker.kill()
        taker.wait()
        for _ in range(3):
            done = self.run_through(sys.executable, "-c", TAKE_ALL)
            self.assertEqual(done.stdout, "8\n", done.stderr)
            self.assertNotEqual(self.servers(), server)
            server = self.servers()
        self.assertIn("may have left memory in its heap", self.control_log())

    def endless(self, microseconds=2000):
        """A program that runs until the test ends it, attached and at work."""
        process = self.in_background(os.path.join(harness.BUILD, "tests/control/at_work"),
                                     str(microseconds), "2")

        def works():
            return any(c["pid"] == process.pid and c["launches"] for c in self.status()["clients"])

        wait_until(works, "the program's work")
        return process

    def status(self):
        done = self.funnel("status", "--json")
        if "without the jansson library" in done.stderr:
            self.skipTest("built without jansson")
        return json.loads(done.stdout) if done.returncode == 0 else {"clients": [], "servers": []}

    def test_server_starts_before_the_program_needs_it(self):
        self.funnel("start", "--device", "soft")
        self.run_through("true")
        wait_until(lambda: self.funnel("servers").stdout.count(" active ") == 1, "the server")

    def test_same_result_as_directly(self):
        command = self.program("vector_add")
        through = self.run_through(*command)
        directly = self.funnel("run", "--direct", "--device", "soft", "--", *command)
        self.assertEqual((through.returncode, directly.returncode), (0, 0), through.stderr)
        self.assertEqual(through.stdout, directly.stdout)
        self.assertIn("correct", through.stdout)

    def test_named_server(self):
        """A program is served by the server whose directory it was given."""
        self.start("--device", "soft")
        for line in ("server create a --allowed-devices=0", "namespace create b --server=a"):
            done = self.run_program("nvidia-cuda-mps-control", *line.split())
            self.assertEqual(done.returncode, 0, done.stdout)
        folder = os.path.join(self.pipe, "a", "b")
        done = self.run_through(*self.program("vector_add"),
                                environment={"CUDA_MPS_PIPE_DIRECTORY": folder})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("correct", done.stdout)
        server, = self.servers()
        done = self.run_program("nvidia-cuda-mps-control", "server", "get", "a", "pid")
        self.assertEqual(done.stdout.split(), [str(server)])

    def test_device_that_is_not_there(self):
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("this machine has an NVIDIA driver")
        done = self.funnel("run", "--device", "cuda", "--", *self.program("vector_add"))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("libcuda.so.1", done.stderr)

    def test_no_daemon_is_an_error_and_not_a_silent_fallback(self):
        self.start("--device", "soft")
        environment = dict(line.split("=", 1) for line in
                           self.funnel("run", "--", "env").stdout.splitlines() if "=" in line)
        self.mps("quit\n")
        done = subprocess.run(self.program("vector_add"), env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=harness.TIMEOUT)
        self.assertNotEqual(done.returncode, 0)
        with open(os.path.join(self.log, "client.log")) as log:
            self.assertIn(self.pipe, log.read())

    def test_running_programs_are_listed(self):
        self.start("--device", "soft")
        process = self.endless()
        client, = self.status()["clients"]
        self.assertEqual(client["devices"][0]["ordinal"], 0)
        self.assertGreater(client["memory_used"], 0)
        self.assertIn("at_work", client["command"])
        row = self.mps("ps\n")[1].split()
        self.assertEqual(row[0], str(process.pid))
        self.assertTrue(row[3].startswith("GPU-"))
        process.kill()
        wait_until(lambda: not self.status()["clients"], "the end of the client")

    def audited(self, pid):
        """That control.log says how much memory the program held."""
        with open(os.path.join(self.log, "control.log")) as log:
            lines = [line for line in log if f"Audit: client {pid} " in line]
        return len(lines) == 1 and "held at most" in lines[0]

    def test_audit_of_programs_that_are_ended_by_force(self):
        def start():
            self.start("--device", "soft")
            self.mps("memacct set audit_log=true\n")

        start()
        victim = self.endless()
        self.mps(f"client terminate {victim.pid}\n")
        wait_until(lambda: self.audited(victim.pid), "the audit of a terminated program")
        victim = self.endless()
        victim.kill()
        wait_until(lambda: self.audited(victim.pid), "the audit of a killed program")
        victim = self.endless()
        self.run_program("nvidia-cuda-mps-control", input="quit -t 0\n")
        self.assertTrue(self.audited(victim.pid), "quit -t 0")
        start()
        self.mps("server create night\n")
        self.environment["CUDA_MPS_PIPE_DIRECTORY"] = os.path.join(self.pipe, "night")
        victim = self.endless()
        self.environment["CUDA_MPS_PIPE_DIRECTORY"] = self.pipe
        self.mps("server delete night --force\n")
        wait_until(lambda: self.audited(victim.pid), "the audit of a deleted server's program")

    def test_audit_of_programs_whose_server_is_killed(self):
        self.start("--device", "soft")
        self.mps("memacct set audit_log=true\n")
        victim = self.endless()
        os.kill(self.servers()[0], signal.SIGKILL)
        wait_until(lambda: f"Audit: client {victim.pid} " in self.control_log(), "the audit")
        self.assertIn("is not known, because the server has died", self.control_log())

    def test_terminate_client(self):
        self.start("--device", "soft")
        victim, witness = self.endless(), self.endless()
        server = self.servers()[0]
        self.assertEqual(self.mps(f"terminate_client {server} {victim.pid}\n"), ["0"])
        output, _ = victim.communicate(timeout=harness.TIMEOUT)
        self.assertNotEqual(victim.returncode, 0)
        self.assertIn("810", output)
        self.assertIsNone(witness.poll())
        wait_until(lambda: self.mps(f"get_client_list {server}\n") == [str(witness.pid)])
        self.assertEqual(self.mps(f"terminate_client {server} {victim.pid}\n"), ["201"])

    def test_client_that_is_killed_at_work(self):
        self.start("--device", "soft")
        witness = self.endless()
        server = self.servers()
        for _ in range(3):
            victim = self.endless()
            victim.kill()
            wait_until(lambda: len(self.status()["clients"]) == 1, "the end of the client")
        launches = self.status()["clients"][0]["launches"]
        wait_until(lambda: self.status()["clients"][0]["launches"] > launches, "work that goes on")
        self.assertIsNone(witness.poll())
        self.assertEqual(self.servers(), server)

    def test_server_that_is_killed(self):
        """Its programs end when they had work in flight, so these kernels are long ones."""
        self.start("--device", "soft")
        process = self.endless(300_000)
        server = self.servers()[0]
        os.kill(server, signal.SIGKILL)
        process.communicate(timeout=harness.TIMEOUT)
        self.assertNotEqual(process.returncode, 0)
        again = self.run_through(*self.program("vector_add"))
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        self.assertNotEqual(self.servers(), [server])

    def test_daemon_that_is_killed(self):
        self.start("--device", "soft")
        process = self.endless()
        server, daemon = self.servers()[0], self.daemon_pid()
        os.kill(daemon, signal.SIGKILL)
        wait_until(lambda: not alive(daemon))
        self.start("--device", "soft")
        self.assertEqual(self.servers(), [server])
        self.assertEqual([client["pid"] for client in self.status()["clients"]], [process.pid])
        again = self.run_through(*self.program("vector_add"))
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        self.assertIsNone(process.poll())
        self.assertEqual(self.mps(f"terminate_client {server} {process.pid}\n"), ["0"])
        output, _ = process.communicate(timeout=harness.TIMEOUT)
        self.assertIn("810", output)

    def test_no_other_daemon_comes(self):
        self.start("--device", "soft", environment={"FUNNEL_DAEMON_WAIT": "1"})
        process = self.endless()
        server, daemon = self.servers()[0], self.daemon_pid()
        os.kill(daemon, signal.SIGKILL)
        wait_until(lambda: not alive(daemon))
        time.sleep(1.5)
        self.assertTrue(alive(server), "its program goes on")
        process.kill()
        wait_until(lambda: not alive(server), "the end of the server without a daemon")

    def test_stop_by_force(self):
        self.start("--device", "soft")
        process = self.endless()
        server = self.servers()[0]
        self.assertEqual(self.funnel("stop").returncode, 1)
        self.assertEqual(self.funnel("stop", "--force").returncode, 0)
        process.communicate(timeout=harness.TIMEOUT)
        self.assertNotEqual(process.returncode, 0)
        wait_until(lambda: not alive(server))

    def test_rotated_logs(self):
        self.start("--device", "soft")
        self.assertEqual(self.run_through(*self.program("vector_add")).returncode, 0)
        os.rename(os.path.join(self.log, "server.log"), os.path.join(self.log, "server.log.1"))
        os.kill(self.daemon_pid(), signal.SIGHUP)
        self.assertEqual(self.run_through(*self.program("vector_add")).returncode, 0)
        self.settle_logs()
        with open(os.path.join(self.log, "server.log")) as log:
            self.assertIn("connected", log.read())

    @unittest.skipIf(os.geteuid() != 0, "needs root, to be two users")
    def test_two_users_at_once(self):
        self.start("--device", "soft")
        for uid in (2001, 2002):
            done = self.run_through(*self.program("vector_add"), user=uid, group=uid,
                                    extra_groups=[])
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(sorted(s["uid"] for s in self.status()["servers"]), [2001, 2002])


if __name__ == "__main__":
    harness.main()
