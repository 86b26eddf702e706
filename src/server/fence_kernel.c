/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store is a release at system scope: whoever reads the number sees all that the kernel before
 * it, and the work before that, has written.
 */
#include "fence_kernel.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "objects.h"

#define NAME "funnel_fence"

/* What the GPU reads: the structure without the bytes that C adds behind it. */
#define PARAMS_SIZE (offsetof(struct fence_kernel_params, seq) + sizeof(uint32_t))

static const char ptx[] = ".version 6.4\n"
                          ".target sm_70\n"
                          ".address_size 64\n"
                          ".visible .entry " NAME "(.param .u64 word, .param .u32 seq)\n"
                          "{\n"
                          "    .reg .u64 %address;\n"
                          "    .reg .u32 %number;\n"
                          "    ld.param.u64 %address, [word];\n"
                          "    ld.param.u32 %number, [seq];\n"
                          "    cvta.to.global.u64 %address, %address;\n"
                          "    st.release.sys.global.u32 [%address], %number;\n"
                          "    ret;\n"
                          "}\n";

static struct function *function_around(CUfunction made)
{
    struct function *function = calloc(1, sizeof(*function) + sizeof(NAME));

    if (!function)
        return NULL;
    function->driver = made;
    function->params_size = PARAMS_SIZE;
    memcpy(function->name, NAME, sizeof(NAME));
    return function;
}

void fence_kernel_load(struct device *device)
{
    CUlibrary library = NULL;
    CUkernel kernel;
    CUfunction function;
    CUresult result = device_enter(device);

    if (result == CUDA_SUCCESS)
        result = driver.cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0);
    if (result == CUDA_SUCCESS)
        result = driver.cuLibraryGetKernel(&kernel, library, NAME);
    if (result == CUDA_SUCCESS)
        result = driver.cuKernelGetFunction(&function, kernel);
    if (result == CUDA_SUCCESS)
        device->fence_kernel = function_around(function);
    else
        log_line("Device %d: fences are written without a kernel: %s", device->ordinal,
                 driver_error_name(result));
}

void fence_kernel_unload(struct device *device)
{
    free(device->fence_kernel);
    device->fence_kernel = NULL;
}

struct launch fence_kernel_launch(const struct device *device,
                                  const struct fence_kernel_params *params)
{
    return (struct launch){
        .function = device->fence_kernel,
        .grid = {1, 1, 1},
        .block = {1, 1, 1},
        .params_size = PARAMS_SIZE,
        .params = params,
        .urgent = true,
    };
}
