# SPDX-License-Identifier: Apache-2.0
"""The reasons of errors reach the user whose program met them: the user's log, standard error where
that is asked for, and funnel why. With the real server on the software GPU."""
import json
import os
import re
import subprocess
import sys

import harness


class Reasons(harness.TestCase):
    def install(self):
        os.symlink(os.path.join(harness.BUILD, "bin"), os.path.join(self.root, "bin"))

    def setUp(self):
        super().setUp()
        self.own_log = os.path.join(self.root, "state/funnel/client.log")

    def too_large(self, *options, **environment):
        """A program that meets its memory limit; with its process id."""
        process = subprocess.Popen(
            [os.path.join(self.root, "bin/funnel"), "run", *options, "--",
             os.path.join(harness.BUILD, "examples/vector_add"), "-n", "33554432"],
            env={**self.environment, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=16M", **environment},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        out, errors = process.communicate(timeout=harness.TIMEOUT)
        self.assertNotEqual(process.returncode, 0, out)
        return process.pid, errors

    def test_program_under_funnel_run(self):
        self.start("--device", "soft")
        pid, errors = self.too_large()
        self.assertNotIn("funnel:", errors)
        with open(os.path.join(self.log, "client.log")) as log:
            line, = (line for line in log if "cuMemAlloc" in line)
        self.assertRegex(line, rf"Client +{pid}\] cuMemAlloc_v2 returned "
                               r"CUDA_ERROR_OUT_OF_MEMORY \(2\): out of memory: it has 0 MiB of "
                               "device 0, wants [0-9]+ KiB more, and its limit is 16 MiB; explained by")
        text, record = line.rstrip("\n").split("\t")
        self.assertEqual(json.loads(record), {"client": pid, "error": 2})
        self.assertIn(text + "\n", self.funnel("log").stdout)
        done = self.funnel("why", "--client", str(pid))
        self.assertEqual(done.returncode, 0, done.stderr)
        for text in (text, "its limit is 16 MiB",
                     "funnel limit --client PID --memory"):
            self.assertIn(text, done.stdout)
        self.assertIn("CUDA_ERROR_OUT_OF_MEMORY (2)", self.funnel("why").stdout)

    def test_log_without_an_error(self):
        """funnel run makes the file, and most programs write nothing to it."""
        self.start("--device", "soft")
        with open(os.path.join(self.log, "client.log"), "w") as log:
            self.assertIn("Your programs have logged no errors", self.funnel("log").stdout)
            log.write("what went wrong\n")
        self.assertEqual(self.funnel("log").stdout, "what went wrong\n")

    def test_standard_error_where_it_is_asked_for(self):
        self.start("--device", "soft")
        for options, environment in (("--verbose", {}), ("-q", {"FUNNEL_VERBOSE": "1"})):
            _, errors = self.too_large(options, **environment)
            self.assertIn("funnel: cuMemAlloc_v2 returned CUDA_ERROR_OUT_OF_MEMORY (2)", errors)

    def test_program_without_funnel_run(self):
        """It logs to the user's own file, and that is not there before something goes wrong."""
        self.start("--device", "soft")
        library = os.path.join(harness.BUILD, "lib/funnel/libcuda.so.1")
        program = [os.path.join(harness.BUILD, "examples/vector_add"), "-n"]
        environment = {**self.environment, "LD_LIBRARY_PATH": os.path.dirname(library)}

        done = subprocess.run([*program, "1024"], env=environment, capture_output=True, check=False,
                              timeout=harness.TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(os.path.exists(self.own_log))
        environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = "0=16M"
        subprocess.run([*program, "33554432"], env=environment, capture_output=True, check=False,
                       timeout=harness.TIMEOUT)
        with open(self.own_log) as log:
            self.assertIn("CUDA_ERROR_OUT_OF_MEMORY", log.read())
        self.assertIn(self.own_log, self.funnel("why").stdout)

    def test_the_program_reads_its_log(self):
        """cuLogs*(), by a program of a few lines."""
        self.start("--device", "soft")
        code = r"""
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
heard = []
@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)
def hear(user, level, text, length):
    heard.append((level, text[:length].decode()))
handle, place, size = ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_size_t(4096)
text = ctypes.create_string_buffer(4096)
assert cuda.cuInit(0) == 0
assert cuda.cuLogsRegisterCallback(hear, None, ctypes.byref(handle)) == 0
assert cuda.cuDeviceGetName(text, 10, 77) == 101
assert heard == [(0, "Returning 101 (CUDA_ERROR_INVALID_DEVICE) from cuDeviceGetName")], heard
assert cuda.cuLogsUnregisterCallback(handle) == 0
assert cuda.cuLogsUnregisterCallback(handle) == 1
assert cuda.cuLogsCurrent(ctypes.byref(place), 0) == 0
assert cuda.cuDeviceGetName(text, 10, 99) == 101
assert cuda.cuLogsDumpToMemory(ctypes.byref(place), text, ctypes.byref(size), 0) == 0
line = text.value.decode()
assert line.endswith("[CUDA][E] Returning 101 (CUDA_ERROR_INVALID_DEVICE) from cuDeviceGetName\n"), line
assert size.value == len(line) and len(heard) == 1
size.value = 4096
assert cuda.cuLogsDumpToMemory(ctypes.byref(place), text, ctypes.byref(size), 0) == 0
assert (size.value, text.value) == (0, b"")
size.value = 10
assert cuda.cuLogsDumpToMemory(None, text, ctypes.byref(size), 0) == 1
assert cuda.cuLogsDumpToFile(None, b"DUMP", 0) == 0
assert cuda.cuLogsDumpToFile(None, b"/nowhere/at/all", 0) == 1
value, size.value = ctypes.c_bool(True), 1
assert cuda.cuCoredumpGetAttributeGlobal(1, ctypes.byref(value), ctypes.byref(size)) == 0
assert not value.value
assert cuda.cuCoredumpSetAttributeGlobal(1, ctypes.byref(value), ctypes.byref(size)) == 0
value.value = True
assert cuda.cuCoredumpSetAttribute(1, ctypes.byref(value), ctypes.byref(size)) == 801
assert cuda.cuCoredumpGetAttribute(99, ctypes.byref(value), ctypes.byref(size)) == 1
size.value = 3
assert cuda.cuCoredumpGetAttribute(5, text, ctypes.byref(size)) == 1
assert cuda.cuCoredumpGetAttribute(5, None, ctypes.byref(size)) == 0 and size.value == 1024
""".replace("DUMP", os.path.join(self.root, "dump"))
        done = subprocess.run([os.path.join(self.root, "bin/funnel"), "run", "-q", "--",
                               sys.executable, "-c", code], env=self.environment,
                              capture_output=True, text=True, timeout=harness.TIMEOUT)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(os.path.join(self.root, "dump")) as dump:
            self.assertEqual(len(dump.readlines()), 4)

    def start_python(self, code):
        return subprocess.Popen([os.path.join(self.root, "bin/funnel"), "run", "-q", "--", sys.executable, "-c", code],
                                env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def test_fault_of_another_program(self):
        """A program that a fault strikes hears of the fault, and whose it was; so does the daemon of the offender."""
        self.start("--device", "soft")
        head = r"""
import ctypes
cuda, context, module, function = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
"""
        beside = self.start_python(head + "print('ready', flush=True); input(); print(cuda.cuCtxSynchronize())")
        self.assertEqual(beside.stdout.readline(), "ready\n")
        code = head + r"""
code = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry wild() { .reg .b64 %d; .reg .b32 %r; " \
       b"mov.u64 %d, 16; mov.u32 %r, 1; st.global.u32 [%d], %r; ret; }"
assert cuda.cuModuleLoadData(ctypes.byref(module), code) == 0
assert cuda.cuModuleGetFunction(ctypes.byref(function), module, b"wild") == 0
assert cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None) == 0
print(cuda.cuCtxSynchronize())
"""
        offender = self.start_python(code)
        self.assertEqual(offender.communicate(timeout=harness.TIMEOUT)[0], "700\n")
        beside.communicate("\n", timeout=harness.TIMEOUT)
        whose = rf"CUDA_ERROR_ILLEGAL_ADDRESS in kernel wild of {{PID: {offender.pid}, Context ID: [0-9]+}}"
        for pid in offender.pid, beside.pid:
            self.assertRegex(self.funnel("why", "--client", str(pid)).stdout,
                             rf"(?s){{PID: {pid}, [^}}]*}} last kernel [^\n]*{whose}.*CUDA_ERROR_ILLEGAL_ADDRESS \(700\): ")
        self.assertRegex(self.funnel("why", "--client", str(offender.pid)).stdout,
                         rf"(?s)control\.log:\n.* fatal GPU error 700 on device 0: {whose}")

    def test_code_that_cannot_be_loaded(self):
        """A kernel that is not there is an answer, code that the driver cannot load has a reason. What the server
        hears from the software GPU is no error of a program."""
        self.environment["FUNNEL_OFF"] = "sandbox"  # else it could open no log
        self.start("--device", "soft")
        code = r"""
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
head = b".version 8.0\n.target sm_80\n.address_size 64\n"
good = head + b".visible .entry nothing() { ret; }"
bad = head + b""" + '"' * 3 + r"""
.extern .func (.param .b32 result) __cudaCDP2GetDevice(.param .b64 device);
.visible .entry ask(.param .u64 device) {
.reg .b64 %d;
.param .b64 to;
.param .b32 result;
ld.param.u64 %d, [device];
st.param.b64 [to], %d;
call.uni (result), __cudaCDP2GetDevice, (to);
ret;
}
""" + '"' * 3 + r"""
context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuModuleLoadData(ctypes.byref(module), good) == 0
assert cuda.cuModuleGetFunction(ctypes.byref(function), module, b"something") == 500
assert cuda.cuModuleLoadData(ctypes.byref(module), bad) == 801
"""
        done = subprocess.run([os.path.join(self.root, "bin/funnel"), "run", "-q", "--",
                               sys.executable, "-c", code], env=self.environment,
                              capture_output=True, text=True, timeout=harness.TIMEOUT)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        out = self.funnel("why").stdout
        self.assertNotIn("NOT_FOUND", out)
        self.assertRegex(out, r"cuModuleLoadData returned CUDA_ERROR_NOT_SUPPORTED \(801\): "
                              "cuLibraryLoadData: .*__cudaCDP2GetDevice: the software GPU lacks")
        self.assertNotIn("of the software GPU returned", out)
        self.assertFalse(os.path.exists(self.own_log))

    def test_no_daemon(self):
        environment = {**self.environment, "FUNNEL_REQUIRE": "1", "FUNNEL_VERBOSE": "1",
                       "LD_LIBRARY_PATH": os.path.join(harness.BUILD, "lib/funnel")}
        done = subprocess.run([os.path.join(harness.BUILD, "examples/vector_add")], text=True,
                              env=environment, capture_output=True, check=False,
                              timeout=harness.TIMEOUT)
        self.assertIn(f"funnel: no daemon serves {self.pipe}/funnel", done.stderr)
        with open(self.own_log) as log:
            self.assertIn("start one with: funnel start", log.read())

    def test_every_error_has_a_cause_and_a_remedy(self):
        header = os.path.join(harness.HERE, "../../src/cuda/cuda_result.h")
        with open(header) as text:
            errors = re.findall(r"(CUDA_ERROR_\w+) = (\d+)", text.read())
        self.assertGreater(len(errors), 80)
        for name, number in errors:
            done = self.funnel("why", number)
            self.assertEqual(done.returncode, 0, name + done.stderr)
            heading, _, cause, remedy = done.stdout.splitlines()
            self.assertTrue(heading.startswith(f"{name} ({number}): "), heading)
            self.assertGreater(min(len(cause), len(remedy)), 10)

    def test_names_of_errors(self):
        """Those of the runtime, too, which are not all the driver's in another spelling."""
        for name, number in (("CUDA_ERROR_ILLEGAL_ADDRESS", 700), ("cudaErrorIllegalAddress", 700),
                             ("CUDAERRORILLEGALADDRESS", 700), ("illegal_address", 700),
                             ("cudaErrorMemoryAllocation", 2), ("cudaerrorlaunchfailure", 719),
                             ("cudaErrorInvalidConfiguration", 9), ("cudaErrorNotSupported", 801)):
            done = self.funnel("why", name)
            self.assertEqual((done.returncode, done.stdout),
                             (0, self.funnel("why", str(number)).stdout), name)
            self.assertIn(f"({number})", done.stdout.splitlines()[0])
        header = "/usr/local/cuda/include/driver_types.h"
        if not os.path.exists(header):
            return
        with open(header) as text:
            errors = re.findall(r"\b(cudaError\w+) *= *(\d{1,3}),", text.read())
        self.assertGreater(len(errors), 100)
        for name, number in errors:
            done = self.funnel("why", name.lower())
            self.assertIn(f"({number})", done.stdout, name + done.stderr)

    def test_dynamic_parallelism(self):
        """The software GPU and NVIDIA's driver run kernels that launch kernels."""
        out = self.funnel("why", "811").stdout
        self.assertNotIn("Funnel and MPS do not have it", out)
        self.assertIn("Funnel runs them", out)

    # A call that fails twice, and one whose failure is an answer.
    wrong_device = ("import ctypes; cuda = ctypes.CDLL('libcuda.so.1'); name = ctypes.create_string_buffer(9); "
                    "cuda.cuInit(0); cuda.cuDeviceGetName(name, 9, 77); cuda.cuCtxSynchronize(); "
                    "raise SystemExit(cuda.cuDeviceGetName(name, 9, 77))")

    def assert_one_line(self, line):
        with open(self.own_log) as log:
            lines = log.read().splitlines()
        self.assertEqual(len(lines), 1, lines)
        text, record = lines[0].split("\t")
        self.assertRegex(text, rf"Client +\d+\] {line}; explained by: funnel why 101$")
        self.assertEqual(json.loads(record)["error"], 101)
        out = self.funnel("why").stdout
        self.assertIn(text, out)
        self.assertIn("CUDA_ERROR_INVALID_DEVICE (101): ", out)

    def test_program_on_the_software_gpu(self):
        """Without Funnel: the software GPU logs the error itself."""
        out = self.funnel("why").stdout
        self.assertIn("No log has an error of your programs. Programs that run on NVIDIA's driver itself", out)
        done = self.funnel("run", "--direct", "--device", "soft", "--", sys.executable, "-c", self.wrong_device)
        self.assertEqual(done.returncode, 101)
        self.assert_one_line(r"cuDeviceGetName of the software GPU returned CUDA_ERROR_INVALID_DEVICE \(101\)")

    def test_program_that_is_passed_on(self):
        """No daemon runs, and the client library passes the calls on: it logs the error, and alone."""
        soft = os.path.join(harness.BUILD, "lib/funnel/softgpu/libcuda.so.1")
        environment = {**self.environment, "FUNNEL_DRIVER": soft,
                       "LD_LIBRARY_PATH": os.path.join(harness.BUILD, "lib/funnel")}
        done = subprocess.run([sys.executable, "-c", self.wrong_device], env=environment, text=True,
                              capture_output=True, check=False, timeout=harness.TIMEOUT)
        self.assertEqual((done.returncode, done.stderr), (101, ""))
        self.assert_one_line(r"cuDeviceGetName returned CUDA_ERROR_INVALID_DEVICE \(101\)")

    def test_wrong_questions(self):
        for wrong in (["x"], ["-1"], ["1", "2"], ["--client"], ["--client", "5", "6"]):
            self.assertEqual(self.funnel("why", *wrong).returncode, 2, wrong)
        self.assertEqual(self.funnel("why", "4000000").returncode, 1)
        self.assertEqual(self.funnel("why").returncode, 0)


class SlowStart(harness.TestCase):
    """With a server that takes three seconds to start."""
    def install(self):
        super().install()
        os.symlink(os.path.join(harness.BUILD, "lib"), os.path.join(self.root, "lib"))
        server = os.path.join(self.root, "bin/funnel-server")
        with open(server, "w") as script:
            script.write(f'#!/bin/sh\nsleep 3\nexec {harness.BUILD}/bin/funnel-server "$@"\n')

    def test_queued_behind_a_start(self):
        self.start("--device", "soft")
        done = self.funnel("run", "-v", "--", os.path.join(harness.BUILD, "examples/vector_add"))
        self.assertEqual(done.returncode, 0, done.stderr)
        reason = "s until the server took this program: it was starting, or ended after a fault"
        self.assertRegex(self.funnel("log").stdout, rf"\] waited [0-9.]+ {reason}\n")
        self.assertRegex(done.stderr, rf"(?m)^funnel: waited [0-9.]+ {reason}$")


if __name__ == "__main__":
    harness.main()
