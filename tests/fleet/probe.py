# SPDX-License-Identifier: Apache-2.0
"""A CUDA program that runs wherever there is a Python 3, however old. It adds two vectors with the
driver API, and prints "sum ok" and the C library's version: probe.py [ROUNDS [SECONDS_BETWEEN]]."""
import ctypes
import os
import sys
import time

PTX = b"""
.version 7.0
.target sm_50
.address_size 64
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<8>;
    .reg .b64 %d<8>;
    ld.param.u64 %d1, [a];
    ld.param.u64 %d2, [b];
    ld.param.u64 %d3, [c];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p, %r5, %r1;
    @%p ret;
    mul.wide.u32 %d4, %r5, 4;
    add.u64 %d1, %d1, %d4;
    add.u64 %d2, %d2, %d4;
    add.u64 %d3, %d3, %d4;
    ld.global.u32 %r6, [%d1];
    ld.global.u32 %r7, [%d2];
    add.u32 %r6, %r6, %r7;
    st.global.u32 [%d3], %r6;
    ret;
}
"""
COUNT = 10000


class Driver:
    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")

    def __getattr__(self, name):
        function = getattr(self.library, name)

        def call(*arguments):
            result = function(*arguments)
            if result != 0:
                sys.exit("%s: error %d" % (name, result))
        return call


def make(kind, function, *arguments):
    value = kind()
    function(ctypes.byref(value), *arguments)
    return value


def add_vectors(driver, kernel):
    numbers = (ctypes.c_uint32 * COUNT)(*range(COUNT))
    results = (ctypes.c_uint32 * COUNT)()
    size = ctypes.c_size_t(ctypes.sizeof(numbers))
    memory = [make(ctypes.c_uint64, driver.cuMemAlloc_v2, size) for _ in range(3)]
    for address in memory[:2]:
        driver.cuMemcpyHtoD_v2(address, numbers, size)
    values = memory + [ctypes.c_uint32(COUNT)]
    pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
    driver.cuLaunchKernel(kernel, (COUNT + 127) // 128, 1, 1, 128, 1, 1, 0, None, pointers, None)
    driver.cuMemcpyDtoH_v2(results, memory[2], size)
    for address in memory:
        driver.cuMemFree_v2(address)
    return list(results) == [2 * number for number in range(COUNT)]


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    pause = float(sys.argv[2]) if len(sys.argv) > 2 else 0
    driver = Driver()
    driver.cuInit(0)
    device = make(ctypes.c_int, driver.cuDeviceGet, 0)
    context = make(ctypes.c_void_p, driver.cuDevicePrimaryCtxRetain, device)
    driver.cuCtxSetCurrent(context)
    module = make(ctypes.c_void_p, driver.cuModuleLoadData, PTX)
    kernel = make(ctypes.c_void_p, driver.cuModuleGetFunction, module, b"add")
    for number in range(rounds):
        if not add_vectors(driver, kernel):
            sys.exit("the sum is wrong")
        if number == 0:
            print("first sum of process %d" % os.getpid())
            sys.stdout.flush()
        time.sleep(pause)
    version = ctypes.CDLL(None).gnu_get_libc_version
    version.restype = ctypes.c_char_p
    print("sum ok (glibc %s)" % version().decode())


if __name__ == "__main__":
    main()
