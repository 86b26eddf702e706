# SPDX-License-Identifier: Apache-2.0
"""funnel run --profile: programs that use CUPTI, with the real server on the software GPU."""
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "control"))

import harness  # noqa: E402  (found through the path above)

HERE = pathlib.Path(__file__).resolve().parent
ASKED = HERE / "asked_names.txt"
UNSUPPORTED = HERE.parents[1] / "src/cupti/cupti_unsupported.c"
LONG_NAME = ("a_kernel_with_a_name_that_is_as_long_as_those_of_kernels_which_templates_make_when_"
             "they_are_given_types_of_functors_with_several_parameters_and_more_than_one_namespace_"
             "around_them")
WORK = f"""popped 77
dropped 0
copy kind 1 of 4096 from cuMemcpyHtoD_v2 in 77
copy kind 1 of 5242880 from cuMemcpyHtoD_v2 in 77
copy kind 1 of 8192 from cuMemcpyHtoDAsync_v2 in 77
memset of 1024 to 3 from cuMemsetD8_v2
kernel {LONG_NAME} grid 3,2,1 block 32 shared 64+128 registers some from cuLaunchKernel in 77
kernel small grid 1,2,1 block 1 shared 0+0 registers some from cuLaunchKernel in 77
wait type 4 from cuCtxSynchronize
copy kind 2 of 4096 from cuMemcpyDtoHAsync_v2 in 77
copy kind 2 of 5242880 from cuMemcpyDtoH_v2 in 77
dropped 0
again: 1 kernels
"""
GRAPH = f"""dropped 0
kernel {LONG_NAME} grid 3,2,1 block 32 shared 64+128 registers some from cuGraphLaunch in 0
memset of 512 to 5 from cuGraphLaunch
kernel small grid 1,2,1 block 1 shared 0+0 registers some from cuGraphLaunch in 0
wait type 3 from cuStreamSynchronize
dropped 0
1 graphs, 0 kernels
"""
MANY = "dropped 0\n6000 kernels\n"
MARKS = """dropped 0
start of outer in default
start of registered in library
data 0 kind 1 color 0 category 0 flags 1 of registered
start of inner in default
mark mark in default
end of registered in library
end of inner in default
end of outer in default
mark measured in default
data 2.5 kind 0 color ff00ff00 category 7 flags 2 of measured
mark measured in default
data -3 kind 4 color 0 category 7 flags 1 of measured
a thread
start of first in default
start of registered in library
data 0 kind 1 color 0 category 0 flags 1 of registered
end of first in default
end of registered in library
1 pushed, 3 popped, 14 others
"""
RESOURCES = """the driver is ready
context
module loaded
module ends
module loaded
module ends
graph cloned
graph is instantiated
context ends, id known
context
module loaded
context ends, id known
module ends
"""
LISTED = """dropped 0
device 0, seen 1
device 1, seen 1
context on 0
stream made, flag 2, from cuStreamCreateWithPriority
allocated 4096 of kind 3, pool 0, from cuMemAlloc_v2
allocated 1536 of kind 3, pool 0, from cuMemAllocPitch_v2
allocated 8192 of kind 5, pool 0, from cuMemAllocManaged
allocated 1024 of kind 2, pool 0, from cuMemHostAlloc
freed 4096 of kind 3, pool 0, from cuMemFree_v2
freed 1536 of kind 3, pool 0, from cuMemFree_v2
freed 8192 of kind 5, pool 0, from cuMemFree_v2
freed 1024 of kind 2, pool 0, from cuMemFreeHost
pool step 1 from cuMemPoolCreate
allocated 2048 of kind 3, pool 1, from cuMemAllocAsync
allocated 1048576 of kind 3, pool 1, from cuMemAllocFromPoolAsync
freed 2048 of kind 3, pool 1, from cuMemFreeAsync
freed 1048576 of kind 3, pool 1, from cuMemFreeAsync
pool step 3 from cuMemPoolTrimTo
pool step 2 from cuMemPoolDestroy
event in the stream from cuEventRecord
event in the default stream from cuEventRecord
wait for the event
"""
GRAPHS = """1 graph, 3 nodes captured
2 kernels, 1 memsets, 3 nodes
2 graphs, 7 nodes added
4 kernels, 1 memsets, 5 nodes
7 nodes ended
1 graph, 1 clone, 3 nodes copied
2 execs, 2 ended
"""
LOOP = """dropped 0
0 kernels, 0 graphs
dropped 0
0 kernels, 1 graphs
"""
PEERS = """dropped 0
copy kind 10 of 65536 from 0 to 1
copy kind 10 of 32768 from 1 to 0
1 others
"""
THREADS = "dropped 0\n200 kernels, 200 with the number of their call\n"
RUNTIME = """call cudaMemcpy_v3020
call cudaLaunchKernel_v7000
call cudaStreamSynchronize_v3020
call cuCtxSynchronize
copy of 256 from cudaMemcpy_v3020
kernel kernel from cudaLaunchKernel_v7000
wait type 3 from cudaStreamSynchronize_v3020
wait type 4 from cuCtxSynchronize
1 launches entered, 1 left
"""
# 3 threads with 7 calls each, which CUPTI's callbacks follow.
TRACER = """21 entered, 21 left, 3 kernels, 6 copies, 3 memsets
42 entered, 42 left, 6 kernels, 12 copies, 6 memsets
"""
# Programs that check themselves, and make most things that records and callbacks name.
CHECKED = ["callbacks", "captures", "contexts", "graph_memory", "graphs", "links", "modules", "pools", "references", "vmm"]
# Which knows nothing of the library that its driver loads.
TOLD = """
import ctypes
cuda, context, module, kernel = ctypes.CDLL("libcuda.so.1"), *(ctypes.c_void_p() for _ in range(3))
assert cuda.cuInit(0) == 0 and cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
code = b".version 7.0\\n.target sm_70\\n.address_size 64\\n.visible .entry small()\\n{\\nret;\\n}\\n"
assert cuda.cuModuleLoadData(ctypes.byref(module), code) == 0
assert cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"small") == 0
for _ in range(3):
    assert cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None) == 0
assert cuda.cuCtxSynchronize() == 0
"""
CHILD = """
import ctypes, os
cupti, cuda, context = ctypes.CDLL("libcupti.so.13"), ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
assert cupti.cuptiActivityEnable(10) == 0 and cuda.cuInit(0) == 0
child = os.fork()
if child == 0:
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cupti.cuptiActivityFlushAll(0) == 0
    os.write(1, b"the child has run\\n")
    os._exit(0)
status = os.waitpid(child, 0)[1]
print(status or cupti.cuptiActivityDisable(10))
"""
VERSIONS = """
import ctypes
for name in ("libcupti.so.12", "libcupti.so.13"):
    version = ctypes.c_uint32()
    assert ctypes.CDLL(name).cuptiGetVersion(ctypes.byref(version)) == 0
    print(version.value)
"""
KINDS = """
import ctypes
cupti = ctypes.CDLL("libcupti.so.13")
answers = [(cupti.cuptiActivityEnable(kind), kind) for kind in range(1, 64)]
print(*[kind for answer, kind in answers if answer == 0])
print(*sorted({answer for answer, kind in answers if answer}))
"""
# Those which docs/profiling.md says are there, by their numbers; all others are CUPTI_ERROR_INVALID_KIND.
ACCEPTED = "1 2 3 4 5 8 9 10 11 12 13 17 22 36 37 38 39 49 50 51\n21\n"


class Profiling(harness.TestCase):
    def install(self):
        os.symlink(os.path.join(harness.BUILD, "bin"), os.path.join(self.root, "bin"))

    def setUp(self):
        super().setUp()
        self.environment["FUNNEL_SOFT_DEVICES"] = "2:sms=4,mem=256M"
        self.start("--device", "soft")

    def begin(self, *command, options=("--profile",), **environment):
        process = subprocess.Popen(
            [os.path.join(self.root, "bin/funnel"), "run", "-q", *options, "--", *command],
            env={**self.environment, **environment}, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        self.processes.append(process)
        return process

    def run_test(self, program, *arguments, **environment):
        return self.begin(os.path.join(harness.BUILD, "tests/cupti", program), *arguments, **environment)

    def profiled(self, test):
        return self.run_test("profiled", test)

    def assert_prints(self, process, text):
        output, _ = process.communicate()
        self.assertEqual((output, process.returncode), (text, 0))

    def assert_prints_lines(self, process, text):
        """In any order: the call of a wait ends while the records of the work before it are on
        their way."""
        output, _ = process.communicate()
        self.assertEqual(sorted(output.splitlines()), sorted(text.splitlines()))

    def test_work(self):
        self.assert_prints_lines(self.profiled("work"), WORK)

    def test_graph(self):
        self.assert_prints_lines(self.profiled("graph"), GRAPH)

    def test_threads_and_many_launches_beside_each_other(self):
        many, threads = self.profiled("many"), self.profiled("threads")
        self.assert_prints(threads, THREADS)
        self.assert_prints(many, MANY)

    def test_callbacks(self):
        self.assert_prints(self.profiled("callbacks"), "2 entered, 2 left, 1 contexts, 2 streams, 1 waits\n")

    def test_tracer_as_of_xla(self):
        self.assert_prints(self.run_test("tracer"), TRACER)

    def test_marks_and_ranges(self):
        self.assert_prints(self.run_test("marked"), MARKS)

    def test_marks_where_nvtx_is_told_of_cupti(self):
        library = os.path.join(harness.BUILD, "lib/funnel/cupti12/libcupti.so.12")
        self.assert_prints(self.run_test("marked", NVTX_INJECTION64_PATH=library), MARKS)

    def test_objects_of_the_program(self):
        self.assert_prints(self.run_test("listed"), LISTED)

    def test_library_that_the_driver_loads(self):
        library = os.path.join(harness.BUILD, "tests/cupti/libinjected.so")
        self.assert_prints(self.begin(sys.executable, "-c", TOLD, CUDA_INJECTION64_PATH=library),
                           "the library is there\n3 kernels were seen\n")

    def test_programs_under_a_profiler_of_everything(self):
        library = os.path.join(harness.BUILD, "tests/cupti/libinjected.so")
        for name in CHECKED:
            process = self.begin(os.path.join(harness.BUILD, "tests/api", name), CUDA_INJECTION64_PATH=library)
            output, _ = process.communicate()
            self.assertEqual(process.returncode, 0, output)
            self.assertRegex(output, r"\d+ kernels were seen")
            self.assertNotRegex(output, r"(?m)^wrong: ")

    def test_libraries_that_the_driver_does_not_load(self):
        for library in ("/nonexistent/libinjected.so", "libToolsInjection64.so", "none", "libc.so.6"):
            self.assert_prints(self.begin(sys.executable, "-c", TOLD, CUDA_INJECTION64_PATH=library), "")

    def test_resources(self):
        self.assert_prints(self.run_test("resources"), RESOURCES)

    def test_nodes_of_graphs(self):
        self.assert_prints(self.run_test("graphed", "children"), GRAPHS)

    def test_copies_between_devices(self):
        self.assert_prints(self.run_test("apart", "peers"), PEERS)

    def test_children_while_threads_launch(self):
        self.assert_prints(self.run_test("apart", "forks"), "dropped 0\n200 kernels\n")

    def test_period(self):
        self.assert_prints(self.profiled("period"), "1 kernels\n")

    def test_names_that_profilers_ask_for(self):
        library = os.path.join(harness.BUILD, "lib/funnel/cupti13/libcupti.so.13")
        listed = subprocess.run(["nm", "-D", "--defined-only", library], stdout=subprocess.PIPE, text=True,
                                check=True).stdout
        exported = {line.split()[-1].split("@")[0] for line in listed.splitlines()}
        refused = UNSUPPORTED.read_text()
        for line in ASKED.read_text().splitlines():
            if line.startswith("#"):
                continue
            answer, _, name = line.split()
            self.assertIn(name, exported)
            self.assertEqual(answer == "refused", bool(re.search(rf"^(UNSUPPORTED|REFUSED)\({name}[,)]", refused, re.M)), name)

    def test_clock(self):
        self.assert_prints(self.profiled("clock"), "dropped 0\n1 kernels\n")

    def test_refused(self):
        self.assert_prints(self.profiled("refused"), "21\n31\n1\n18\n1\nCUPTI_ERROR_NOT_SUPPORTED\n")

    def test_kinds_of_records(self):
        self.assert_prints(self.begin(sys.executable, "-c", KINDS), ACCEPTED)

    def test_graph_with_conditional_nodes(self):
        self.assert_prints(self.run_test("looped"), LOOP)

    def test_overhead(self):
        self.assert_prints(self.profiled("overhead"), "some\n")

    def test_program_without_a_buffer(self):
        self.assert_prints(self.profiled("lost"), "lost\n")

    def test_runtime(self):
        program = os.path.join(harness.BUILD, "tests/cupti/profiled_runtime")
        if not os.path.exists(program):
            self.skipTest("there is no libcudart_static.a")
        output, _ = self.begin(program).communicate()
        # By which libcudart finds the name that it tells a profiler of.
        output = output.replace("call cuKernelGetName\n", "")
        self.assertEqual(sorted(output.splitlines()), sorted(RUNTIME.splitlines()))

    def test_program_that_moves_to_another_server(self):
        process = self.profiled("moved")
        self.assertEqual(process.stdout.readline(), "1 kernels\n")
        server, = self.funnel_json("servers")
        os.kill(server["pid"], signal.SIGKILL)
        output, _ = process.communicate("go on\n")
        self.assertEqual((output, process.returncode), ("1 more\n", 0))

    def test_child_is_not_profiled(self):
        self.assert_prints(self.begin(sys.executable, "-c", CHILD), "the child has run\n0\n")

    def test_versions(self):
        self.assert_prints(self.begin(sys.executable, "-c", VERSIONS), "27\n130001\n")

    def test_variable(self):
        process = self.begin("env", options=(), FUNNEL_PROFILE="1")
        given = process.communicate()[0]
        self.assertIn("cupti13/libcupti.so.13", given)
        self.assertRegex(given, "TRITON_CUPTI_LIB_PATH=.*/cupti12\n")
        for options in ((), ("--profile", "--direct")):
            process = self.begin("env", options=options)
            self.assertNotIn("libcupti", process.communicate()[0])


if __name__ == "__main__":
    harness.main()
