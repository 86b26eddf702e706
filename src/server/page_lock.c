/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One address everywhere: page-locked memory that the GPU sees elsewhere is of no use here.
 */
#include "page_lock.h"

#include <stdint.h>
#include <sys/mman.h>

/* While the driver locks pages, other threads' launches wait. Pages that are there already are
 * locked in a fifth of the time, so they are made before. Where the kernel does not know how, the
 * driver makes them. */
static void populate(void *address, size_t size)
{
    madvise(address, size, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
    madvise(address, size, MADV_POPULATE_WRITE);
#endif
}

CUresult page_lock(void *address, size_t size)
{
    CUdeviceptr seen = 0;

    populate(address, size);
    CUresult result = driver.cuMemHostRegister_v2(
        address, size, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);

    if (result != CUDA_SUCCESS)
        return result;
    result = driver.cuMemHostGetDevicePointer_v2
                 ? driver.cuMemHostGetDevicePointer_v2(&seen, address, 0)
                 : CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS && seen != (uintptr_t)address)
        result = CUDA_ERROR_NOT_SUPPORTED;
    if (result != CUDA_SUCCESS)
        page_unlock(address);
    return result;
}

void page_unlock(void *address)
{
    driver.cuMemHostUnregister(address);
}
