/* SPDX-License-Identifier: Apache-2.0 */
/* The driver compiles the PTX for the device. */
#include "own_kernel.h"

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
