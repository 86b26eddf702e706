/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays: made with zeroes, charged, destroyed.
 */
#include "array.h"

#include <stdlib.h>

#include "cuda_array.h"
#include "memory.h"
#include "server_dispatch.h"

static CUDA_ARRAY3D_DESCRIPTOR description_of(const struct wire_cuArray3DCreate_v2 *in)
{
    return (CUDA_ARRAY3D_DESCRIPTOR){
        .Width = in->width,
        .Height = in->height,
        .Depth = in->depth,
        .Format = (CUarray_format)in->format,
        .NumChannels = in->channels,
        .Flags = in->flags,
    };
}

static CUresult check(struct session *session, const struct wire_cuArray3DCreate_v2 *in)
{
    if (!driver.cuArray3DCreate_v2 || !driver.cuArrayDestroy || !driver.cuMemAlloc_v2)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!in->width || in->width > CUDA_ARRAY_EXTENT_MAX || in->height > CUDA_ARRAY_EXTENT_MAX ||
        in->depth > CUDA_ARRAY_EXTENT_MAX ||
        !cuda_texel_size((CUarray_format)in->format, in->channels) ||
        in->flags & ~(uint32_t)CUDA_ARRAY_FLAGS_CARRIED) {
        session_complain(session, "cuArray3DCreate: %llu x %llu x %llu, format %u, flags %#x",
                         (unsigned long long)in->width, (unsigned long long)in->height,
                         (unsigned long long)in->depth, in->format, in->flags);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (session->arrays >= SESSION_ARRAYS_MAX) {
        session_complain(session, "cuArray3DCreate: more than %u arrays", SESSION_ARRAYS_MAX);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* The driver does not tell what an array takes. Its tiles are at least 64 bytes wide and 8 rows
 * high, and it hands out memory by the 512 bytes. */
static uint64_t size_of(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    const struct cuda_array_bytes bytes = cuda_array_bytes(descriptor);
    uint64_t rows = bytes.height > 1 ? round_up(bytes.height, 8) : 1;

    return round_up(round_up(bytes.pitch, 64) * rows * bytes.depth, 512);
}

static CUresult make(struct session *session, struct array *array)
{
    CUresult result = session_enter(session, array->device);

    if (result == CUDA_SUCCESS)
        result = driver.cuArray3DCreate_v2(&array->driver, &array->descriptor);
    if (result != CUDA_SUCCESS)
        return result;
    result = array_clear(array);
    if (result != CUDA_SUCCESS)
        driver.cuArrayDestroy(array->driver);
    return result;
}

static CUresult make_charged(struct session *session, struct array *array)
{
    unsigned device = (unsigned)array->device->ordinal;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    if (memory_charge(session, device, array->charged)) {
        result = make(session, array);
        if (result != CUDA_SUCCESS)
            memory_refund(session, device, array->charged);
    }
    return result;
}

CUresult serve_cuArray3DCreate_v2(struct session *session, const struct wire_cuArray3DCreate_v2 *in)
{
    const struct device *device = session_find_device(session, "cuArray3DCreate", in->device);
    CUresult result = device ? check(session, in) : CUDA_ERROR_INVALID_DEVICE;

    if (result != CUDA_SUCCESS)
        return result;
    struct array *array = calloc(1, sizeof(*array));
    if (!array)
        return CUDA_ERROR_OUT_OF_MEMORY;
    array->device = device;
    array->descriptor = description_of(in);
    array->charged = size_of(&array->descriptor);
    array->references = 1;
    result = make_charged(session, array);
    if (result != CUDA_SUCCESS) {
        free(array);
        return result;
    }
    session->arrays++;
    result = session_put(session, WIRE_ARRAY, in->hArray, array);
    if (result != CUDA_SUCCESS)
        array_unref(session, array);
    return result;
}

void array_unref(struct session *session, struct array *array)
{
    if (--array->references)
        return;
    if (session_enter(session, array->device) == CUDA_SUCCESS)
        driver.cuArrayDestroy(array->driver);
    memory_refund(session, (unsigned)array->device->ordinal, array->charged);
    session->arrays--;
    free(array);
}

CUresult serve_cuArrayDestroy(struct session *session, const struct wire_cuArrayDestroy *in,
                              struct array *hArray)
{
    session_remove(session, WIRE_ARRAY, in->hArray);
    array_unref(session, hArray);
    return CUDA_SUCCESS;
}
