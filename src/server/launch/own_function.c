/* SPDX-License-Identifier: Apache-2.0 */
/* See own_function.h. */
#include "own_function.h"

#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "own_kernel.h"

static struct function *create(CUfunction made, const char *name, uint32_t params_size)
{
    struct function *function = calloc(1, sizeof(*function) + strlen(name) + 1);

    if (!function)
        return NULL;
    function->driver = made;
    function->params_size = params_size;
    strcpy(function->name, name);
    return function;
}

struct function *own_function_load(const struct device *device, const char *ptx, const char *name,
                                   uint32_t params_size, const char *otherwise)
{
    CUfunction made;
    CUresult result = own_kernel_load(device, ptx, name, &made);

    if (result == CUDA_SUCCESS)
        return create(made, name, params_size);
    log_line("Device %d: %s: %s", device->ordinal, otherwise, driver_error_name(result));
    return NULL;
}
