# SPDX-License-Identifier: Apache-2.0
"""What a process gets of a device: prints its multiprocessors, and tries to allocate: share.py [MIB]."""
import ctypes
import sys

import probe

MULTIPROCESSOR_COUNT = 16


def main():
    driver = probe.Driver()
    driver.cuInit(0)
    device = probe.make(ctypes.c_int, driver.cuDeviceGet, 0)
    count = probe.make(ctypes.c_int, driver.cuDeviceGetAttribute, MULTIPROCESSOR_COUNT, device)
    context = probe.make(ctypes.c_void_p, driver.cuDevicePrimaryCtxRetain, device)
    driver.cuCtxSetCurrent(context)
    print("multiprocessors %d" % count.value)
    if len(sys.argv) > 1:
        probe.make(ctypes.c_uint64, driver.cuMemAlloc_v2, ctypes.c_size_t(int(sys.argv[1]) << 20))
        print("allocated %s MiB" % sys.argv[1])


if __name__ == "__main__":
    main()
