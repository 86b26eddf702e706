/* SPDX-License-Identifier: Apache-2.0 */
/* The driver compiles the PTX for the device. */
#include "own_kernel.h"

#include <time.h>

#include "clock.h"

#define PAUSE_NS (50 * NS_PER_US)

CUresult own_kernel_load(const struct device *device, const char *ptx, const char *name,
                         CUfunction *ret_function)
{
    CUlibrary library;
    CUkernel kernel;
    CUresult result = device_enter(device);

    if (result == CUDA_SUCCESS)
        result = driver.cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0);
    if (result == CUDA_SUCCESS)
        result = driver.cuLibraryGetKernel(&kernel, library, name);
    if (result == CUDA_SUCCESS)
        result = driver.cuKernelGetFunction(ret_function, kernel);
    return result;
}

CUresult own_kernel_await(CUstream stream, uint64_t limit_ns)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    uint64_t deadline = limit_ns == UINT64_MAX ? UINT64_MAX : clock_ns() + limit_ns;
    CUresult result;

    while ((result = driver.cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY && clock_ns() < deadline)
        nanosleep(&pause, NULL);
    return result;
}
