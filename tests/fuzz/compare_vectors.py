#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs random kernels on the software GPU once for each width of vector units: all must give the
same.

compare_vectors.py BUILD [FIRST LAST]     the seeds; what differs is said with its seed
"""
import ctypes
import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path

WIDTHS = ("sse2", "avx2", "avx512")
SIZE = 1 << 16          # of the memory that a kernel works in, and of what it gives
WARP_MEMORY = 4096
WARP_SHARED = 2048
INTEGER = ["add.s32", "sub.s32", "mul.lo.s32", "and.b32", "or.b32", "xor.b32", "min.s32", "max.u32",
           "shl.b32", "shr.u32", "shr.s32"]
FLOAT = ["add.f32", "sub.f32", "mul.f32", "min.f32", "max.f32", "add.ftz.f32", "mul.rz.f32"]
FLOAT_ALONE = ["neg.f32", "abs.f32", "rcp.rn.f32", "sqrt.rn.f32", "cvt.rzi.f32.f32"]
MEMORY = [("u8", 1), ("s8", 1), ("u16", 2), ("s16", 2), ("b32", 4)]
VECTOR = {1: "", 2: ".v2", 4: ".v4"}

# Warps have memory of their own, so that the order in which they run does not matter.
HEAD = f""".version 8.0
.target sm_80
.address_size 64
.entry k(.param .u64 buffer, .param .u64 out)
{{
.reg .b32 %r<8>, %a<2>, %c<2>, %warp, %room; .reg .f32 %f<8>; .reg .pred %p<2>;
.reg .b64 %d, %mine, %o;
.shared .align 16 .b8 room[{3 * WARP_SHARED}];
ld.param.u64 %mine, [buffer];
ld.param.u64 %o, [out];
shr.u32 %warp, %tid.x, 5;
mov.u32 %room, room;
mad.lo.u32 %room, %warp, {WARP_SHARED}, %room;
mad.lo.u32 %a0, %laneid, 64, %room;
{"".join(f"st.shared.b32 [%a0+{at}], {at};" for at in range(0, 64, 4))}
bar.warp.sync 0xffffffff;
mad.wide.u32 %mine, %warp, {WARP_MEMORY}, %mine;
mad.wide.u32 %o, %tid.x, 64, %o;
setp.lt.u32 %p0, %tid.x, 20;
setp.lt.u32 %p1, %tid.x, 70;
"""


class Kernel:
    """The text of a random kernel: arithmetic, loads and stores of all shapes, branches and
    loops."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.labels = 0
        for i in range(8):
            self.say(f"mad.lo.s32 %r{i}, %tid.x, {self.random.randrange(-9999, 9999)}, "
                     f"{self.random.randrange(1 << 31)}")
            self.say(f"cvt.rn.f32.s32 %f{i}, %r{i}")
        self.body(40, 0)
        for i in range(8):
            self.say(f"st.global.b32 [%o+{8 * i}], %r{i}")
            self.say(f"st.global.f32 [%o+{8 * i + 4}], %f{i}")
        self.text = HEAD + "\n".join(self.lines) + "\nret;\n}\n"

    def say(self, line):
        self.lines.append(line + ";")

    def r(self):
        return f"%r{self.random.randrange(8)}"

    def f(self):
        return f"%f{self.random.randrange(8)}"

    def p(self):
        return f"%p{self.random.randrange(2)}"

    def guard(self):
        return self.random.choice(["", "", "", "@%p0 ", "@!%p1 "])

    def body(self, count, depth):
        for _ in range(count):
            statement = self.random.choice([self.arithmetic] * 6 + [self.compare] * 2
                                           + [self.access] * 2 +
                                           [self.atomic] + [self.branch, self.loop])
            if depth < 2 or statement not in (self.branch, self.loop):
                statement(depth)

    def arithmetic(self, _):
        r, f, choose = self.r, self.f, self.random.choice
        self.say(self.guard() + choose([
            f"{choose(INTEGER)} {r()}, {r()}, {choose([r(), str(self.random.randrange(99))])}",
            f"{choose(FLOAT)} {f()}, {f()}, {f()}", f"{choose(FLOAT_ALONE)} {f()}, {f()}",
            f"fma.rn.f32 {f()}, {f()}, {f()}, {f()}", f"selp.b32 {r()}, {r()}, {r()}, {self.p()}"]))

    def compare(self, _):
        choose = self.random.choice
        self.say(self.guard() + choose([
            f"setp.{choose(['lt', 'ne', 'ge', 'eq'])}.{choose(['s32', 'u32'])} {self.p()}, "
            f"{self.r()}, {self.r()}",
            f"setp.{choose(['lt', 'neu', 'geu', 'num', 'nan'])}.f32 {self.p()}, {self.f()}, "
            f"{self.f()}"]))

    def access(self, _):
        """A row, one place, or 64 places that lanes choose."""
        width, (kind, size) = self.random.choice([1, 1, 2, 4]), self.random.choice(MEMORY)
        step, offset = width * size, width * size * self.random.randrange(16)
        names = self.random.sample([f"%r{i}" for i in range(8)], width)
        registers = names[0] if width == 1 else "{" + ", ".join(names) + "}"
        self.say(f"mov.u32 %a0, {self.random.choice(['%tid.x', '0', self.r(), '%laneid'])}")
        self.say("and.b32 %a0, %a0, 63")
        if self.random.random() < 0.4:
            space, address = "shared", "%a1"
            self.say(f"mad.lo.u32 %a1, %a0, {step}, %room")
        else:
            space, address = "global", "%d"
            self.say(f"mad.wide.u32 %d, %a0, {step}, %mine")
        if self.random.random() < 0.5:
            self.say(f"{self.guard()}st.{space}{VECTOR[width]}.{kind} [{address}+{offset}], "
                     f"{registers}")
        else:
            self.say(f"{self.guard()}ld.{space}{VECTOR[width]}.{kind} {registers}, "
                     f"[{address}+{offset}]")

    def atomic(self, _):
        operation = self.random.choice(["add.u32", "max.s32", "xor.b32", "exch.b32"])
        self.say(f"and.b32 %a0, {self.r()}, {self.random.choice([0, 3, 63])}")
        self.say("mad.wide.u32 %d, %a0, 4, %mine")
        self.say(f"{self.guard()}atom.global.{operation} {self.r()}, [%d], {self.r()}")

    def label(self):
        self.labels += 1
        return f"L{self.labels}"

    def branch(self, depth):
        label = self.label()
        self.say(f"setp.lt.u32 %p0, {self.r()}, {self.r()}")
        self.say(f"@%p0 bra {label}")
        self.body(self.random.randrange(1, 6), depth + 1)
        self.lines.append(label + ":")

    def loop(self, depth):
        label, predicate = self.label(), self.p()
        self.say(f"and.b32 %c{depth}, {self.r()}, 3")
        self.lines.append(label + ":")
        self.body(self.random.randrange(1, 6), depth + 1)
        self.say(f"sub.s32 %c{depth}, %c{depth}, 1")
        self.say(f"setp.gt.s32 {predicate}, %c{depth}, 0")
        self.say(f"@{predicate} bra {label}")


class Device:
    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)
        self.buffer, self.out = ctypes.c_uint64(), ctypes.c_uint64()
        for memory in (self.buffer, self.out):
            self.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(SIZE))

    def call(self, name, *arguments):
        result = getattr(self.driver, name)(*arguments)
        if result:
            raise RuntimeError(f"{name}: {result}")

    def load(self, text):
        module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), text.encode())
        self.call("cuModuleGetFunction", ctypes.byref(kernel), module, b"k")
        return module, kernel

    def run(self, kernel, threads):
        """What is in memory afterwards, in short."""
        addresses = [ctypes.addressof(memory) for memory in (self.buffer, self.out)]
        arguments = (ctypes.c_void_p * 2)(*addresses)
        found = ctypes.create_string_buffer(2 * SIZE)
        data = random.Random(1).randbytes(SIZE)
        self.call("cuMemcpyHtoD_v2", self.buffer, data, ctypes.c_size_t(SIZE))
        self.call("cuMemcpyHtoD_v2", self.out, data, ctypes.c_size_t(SIZE))
        self.call("cuLaunchKernel", kernel, 1, 1, 1, threads, 1, 1, 0, None, arguments, None)
        self.call("cuMemcpyDtoH_v2", found, self.buffer, ctypes.c_size_t(SIZE))
        self.call("cuMemcpyDtoH_v2", ctypes.byref(found, SIZE), self.out, ctypes.c_size_t(SIZE))
        return hashlib.sha256(found.raw).hexdigest()


def run_seeds(first, last):
    device = Device()
    for seed in range(first, last):
        module, kernel = device.load(Kernel(seed).text)
        for threads in (96, 87):
            print(seed, threads, device.run(kernel, threads), flush=True)
        device.call("cuModuleUnload", module)


def main():
    if sys.argv[1] == "--seeds":
        run_seeds(int(sys.argv[2]), int(sys.argv[3]))
        return 0
    seeds = sys.argv[2:4] or ["0", "20"]
    libraries = Path(sys.argv[1]).resolve() / "lib" / "funnel" / "softgpu"
    found = []
    for width in WIDTHS:
        environment = dict(os.environ, LD_LIBRARY_PATH=str(libraries), FUNNEL_SOFT_VECTORS=width)
        found.append(subprocess.run([sys.executable, "-B", __file__, "--seeds", *seeds],
                                    env=environment, check=True, stdout=subprocess.PIPE,
                                    text=True).stdout.splitlines())
    differ = [lines for lines in zip(*found) if len(set(lines)) > 1]
    for lines in differ:
        print("differs between", *WIDTHS, *lines, sep="\n  ")
    print(f"{len(found[0])} launches, {len(differ)} differ")
    return 1 if differ or not found[0] else 0


if __name__ == "__main__":
    sys.exit(main())
