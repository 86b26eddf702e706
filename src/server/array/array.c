/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays: creation with zeroes, charges, destruction. */
#include "array_clear.h"
#include "array_spare.h"
#include "array_state.h"

#include <stdlib.h>

#include "cuda_array.h"
#include "exclusive.h"
#include "memory.h"
#include "server_dispatch.h"

static bool is_supported(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    return cuda_array_has_extent(d) && cuda_texel_size(d->Format, d->NumChannels) &&
           !(d->Flags & ~(unsigned)CUDA_ARRAY_FLAGS_CARRIED);
}

static CUresult check_array(struct session *session, const char *call, const struct array *like)
{
    const CUDA_ARRAY3D_DESCRIPTOR *d = &like->descriptor;

    if (!is_supported(d) || like->levels > cuda_array_most_levels(d)) {
        session_log_error(session, "%s: %zu x %zu x %zu, format %u, flags %#x, %u levels", call,
                          d->Width, d->Height, d->Depth, (unsigned)d->Format, d->Flags,
                          like->levels);
        return CUDA_ERROR_INVALID_VALUE;
    }
    return quota_allows(session, QUOTA_ARRAYS, 1) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* The driver does not report the size of an array. Its tiles are at least 64 bytes wide and 8 rows
 * high, and its memory consists of units of 512 bytes. */
static uint64_t size_of(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    const struct cuda_array_bytes bytes = cuda_array_bytes(descriptor);
    uint64_t rows = bytes.height > 1 ? round_up(bytes.height, 8) : 1;

    return round_up(round_up(bytes.pitch, 64) * rows * bytes.depth, 512);
}

static uint64_t size_of_all(const struct array *array)
{
    uint64_t size = 0;

    if (!array->levels)
        return size_of(&array->descriptor);
    for (unsigned level = 0; level < array->levels; level++) {
        const CUDA_ARRAY3D_DESCRIPTOR d = cuda_array_level(&array->descriptor, level);
        size += size_of(&d);
    }
    return size;
}

/* Like cuMemFree, the driver's call may wait for all work. An array that cannot be destroyed now
 * stays until the server ends. */
void array_destroy_driver(struct session *session, const struct array *array)
{
    struct exclusive_call call;

    if (exclusive_begin_at_end(session, array->device, "cuArrayDestroy", &call) != CUDA_SUCCESS)
        return;
    if (array->mipmap)
        driver.cuMipmappedArrayDestroy(array->mipmap);
    else if (array->driver)
        driver.cuArrayDestroy(array->driver);
    exclusive_end(session, array->device, &call);
}

static CUresult create_driver(struct array *array)
{
    return array->levels
               ? driver.cuMipmappedArrayCreate(&array->mipmap, &array->descriptor, array->levels)
               : driver.cuArray3DCreate_v2(&array->driver, &array->descriptor);
}

static CUresult find_level(const struct array *whole, unsigned number, struct array *ret_level)
{
    *ret_level = (struct array){
        .device = whole->device,
        .descriptor = cuda_array_level(&whole->descriptor, number),
        .references = 1,
    };
    return driver.cuMipmappedArrayGetLevel(&ret_level->driver, whole->mipmap, number);
}

static CUresult clear_array(const struct array *array)
{
    CUresult result = CUDA_SUCCESS;
    struct array level;

    if (!array->levels)
        return array_clear(array);
    for (unsigned i = 0; i < array->levels && result == CUDA_SUCCESS; i++) {
        result = find_level(array, i, &level);
        if (result == CUDA_SUCCESS)
            result = array_clear(&level);
    }
    return result;
}

static CUresult attempt_creation(struct session *session, void *array)
{
    return create_driver(array);
}

static CUresult create_and_clear(struct session *session, struct array *array)
{
    CUresult result = session_enter(session, array->device);

    if (result == CUDA_SUCCESS && !array_spare_take(array))
        result = memory_attempt_with_room(session, array->device, array->charged, attempt_creation,
                                          array);
    if (result != CUDA_SUCCESS)
        return result;
    result = clear_array(array);
    if (result != CUDA_SUCCESS)
        array_destroy_driver(session, array);
    return result;
}

static CUresult make_charged(struct session *session, struct array *array)
{
    unsigned device = (unsigned)array->device->ordinal;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    if (memory_charge(session, device, array->charged)) {
        result = create_and_clear(session, array);
        if (result != CUDA_SUCCESS)
            memory_refund(session, device, array->charged);
    }
    return result;
}

/* Copies `like` into the handle table, and creates the driver's array unless it is a level, which
 * the driver has already. */
static CUresult add_array(struct session *session, uint64_t handle, const struct array *like)
{
    struct array *array = malloc(sizeof(*array));
    CUresult result = CUDA_SUCCESS;

    if (!array)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *array = *like;
    if (!array->whole)
        result = make_charged(session, array);
    if (result != CUDA_SUCCESS) {
        free(array);
        return result;
    }
    if (array->whole)
        array->whole->references++;
    quota_add(session, QUOTA_ARRAYS, 1);
    result = session_put(session, WIRE_ARRAY, handle, array);
    if (result != CUDA_SUCCESS)
        array_unref(session, array);
    return result;
}

static CUresult create_array(struct session *session, const char *call, uint64_t handle,
                             unsigned device, struct array *like)
{
    CUresult result;

    like->device = session_find_device(session, call, device);
    if (!like->device)
        return CUDA_ERROR_INVALID_DEVICE;
    result = check_array(session, call, like);
    if (result != CUDA_SUCCESS)
        return result;
    like->charged = size_of_all(like);
    like->references = 1;
    return add_array(session, handle, like);
}

CUresult serve_cuArray3DCreate_v2(struct session *session, const struct wire_cuArray3DCreate_v2 *in)
{
    struct array like = {
        .descriptor =
            {
                .Width = in->width,
                .Height = in->height,
                .Depth = in->depth,
                .Format = (CUarray_format)in->format,
                .NumChannels = in->channels,
                .Flags = in->flags,
            },
    };

    if (!driver.cuArray3DCreate_v2 || !driver.cuArrayDestroy || !driver.cuMemAlloc_v2)
        return CUDA_ERROR_NOT_SUPPORTED;
    return create_array(session, "cuArray3DCreate", in->hArray, in->device, &like);
}

CUresult serve_cuMipmappedArrayCreate(struct session *session,
                                      const struct wire_cuMipmappedArrayCreate *in)
{
    struct array like = {
        .levels = in->levels,
        .descriptor =
            {
                .Width = in->width,
                .Height = in->height,
                .Depth = in->depth,
                .Format = (CUarray_format)in->format,
                .NumChannels = in->channels,
                .Flags = in->flags,
            },
    };

    if (!driver.cuMipmappedArrayCreate || !driver.cuMipmappedArrayGetLevel ||
        !driver.cuMipmappedArrayDestroy || !driver.cuMemAlloc_v2)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!in->levels)
        return CUDA_ERROR_INVALID_VALUE;
    return create_array(session, "cuMipmappedArrayCreate", in->hArray, in->device, &like);
}

CUresult serve_cuMipmappedArrayGetLevel(struct session *session,
                                        const struct wire_cuMipmappedArrayGetLevel *in,
                                        struct array *hMipmappedArray)
{
    struct array level;
    CUresult result;

    if (in->number >= hMipmappedArray->levels) {
        session_log_error(session, "cuMipmappedArrayGetLevel: level %u of %u", in->number,
                          hMipmappedArray->levels);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!quota_allows(session, QUOTA_ARRAYS, 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = session_enter(session, hMipmappedArray->device);
    if (result == CUDA_SUCCESS)
        result = find_level(hMipmappedArray, in->number, &level);
    if (result != CUDA_SUCCESS)
        return result;
    level.whole = hMipmappedArray;
    return add_array(session, in->level, &level);
}

/* A level has no memory of its own. */
void array_unref(struct session *session, struct array *array)
{
    struct array *whole = array->whole;

    if (--array->references)
        return;
    if (!whole && session_enter(session, array->device) == CUDA_SUCCESS)
        array_spare_keep(session, array);
    memory_refund(session, (unsigned)array->device->ordinal, array->charged);
    quota_give(session, QUOTA_ARRAYS, 1);
    free(array);
    if (whole)
        array_unref(session, whole);
}

CUresult serve_cuArrayDestroy(struct session *session, const struct wire_cuArrayDestroy *in,
                              struct array *hArray)
{
    session_remove(session, WIRE_ARRAY, in->hArray);
    array_unref(session, hArray);
    return CUDA_SUCCESS;
}
