/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuCoredump*(): the server owns the GPU's context, and all clients share it, so a program gets no
 * core dump of the GPU. The settings answer as NVIDIA's driver does before any is changed, and one
 * that would ask for a dump is refused.
 */
#include <stdbool.h>
#include <string.h>

#include "client_log.h"
#include "client_prototypes.h"

#define TEXT_SIZE 1024 /* of the settings that are paths */

static bool is_text(CUcoredumpSettings setting)
{
    return setting == CU_COREDUMP_FILE || setting == CU_COREDUMP_PIPE;
}

/* The size of the setting's value in bytes; 0 for an unknown setting. */
static size_t size_of(CUcoredumpSettings setting)
{
    if (setting < CU_COREDUMP_ENABLE_ON_EXCEPTION || setting >= CU_COREDUMP_MAX)
        return 0;
    if (is_text(setting))
        return TEXT_SIZE;
    return setting == CU_COREDUMP_GENERATION_FLAGS ? sizeof(unsigned) : 1;
}

static CUresult get_setting(CUcoredumpSettings setting, void *value, size_t *size)
{
    size_t wanted = size_of(setting);

    if (!size || !wanted || (value && *size < wanted))
        return CUDA_ERROR_INVALID_VALUE;
    if (value)
        memset(value, 0, wanted);
    *size = wanted;
    return CUDA_SUCCESS;
}

static bool is_zero(const unsigned char *value, size_t size)
{
    while (size && !value[size - 1])
        size--;
    return size == 0;
}

/* The client accepts only values that ask for no core dump. */
static CUresult set_setting(CUcoredumpSettings setting, const void *value, const size_t *size)
{
    size_t wanted = size_of(setting);
    bool fits = size && (is_text(setting) ? *size <= wanted : *size == wanted);

    if (!value || !wanted || !fits)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_zero(value, *size))
        return CUDA_SUCCESS;
    client_log_to_file(CUDA_ERROR_NOT_SUPPORTED,
                       "cuCoredumpSetAttribute: programs that share a GPU get no core dumps of it");
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult client_cuCoredumpGetAttribute(CUcoredumpSettings attrib, void *value, size_t *size)
{
    return get_setting(attrib, value, size);
}

CUresult client_cuCoredumpGetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size)
{
    return get_setting(attrib, value, size);
}

CUresult client_cuCoredumpSetAttribute(CUcoredumpSettings attrib, void *value, size_t *size)
{
    return set_setting(attrib, value, size);
}

CUresult client_cuCoredumpSetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size)
{
    return set_setting(attrib, value, size);
}
