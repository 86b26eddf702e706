/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One address everywhere: page-locked memory that the GPU sees elsewhere is of no use here.
 */
#include "page_lock.h"

#include <stdint.h>

CUresult page_lock(void *address, size_t size)
{
    CUdeviceptr seen = 0;
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
