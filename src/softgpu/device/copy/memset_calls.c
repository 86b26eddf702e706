/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills: a value of 1, 2 or 4 bytes over rows of memory.
 */
#include <string.h>

#include "copy_prepare.h"
#include "soft_context.h"
#include "soft_memory.h"
#include "soft_stream.h"

/* Shorter fills cost less than handing them to a thread. */
#define SHORT_FILL (32u << 10)

struct fill {
    struct operation operation;
    uint64_t address, pitch;
    uint64_t width, height; /* in elements and rows */
    uint32_t value;
    unsigned element; /* bytes */
};

static void fill_row(uint64_t address, const struct fill *fill)
{
    if (fill->element == 1) {
        memset((void *)address, fill->value, fill->width);
    } else if (fill->element == 2) {
        uint16_t *row = (uint16_t *)address;

        for (uint64_t i = 0; i < fill->width; i++)
            row[i] = fill->value;
    } else {
        uint32_t *row = (uint32_t *)address;

        for (uint64_t i = 0; i < fill->width; i++)
            row[i] = fill->value;
    }
}

static void fill_work(struct operation *operation)
{
    struct fill *fill = (struct fill *)operation;

    for (uint64_t y = 0; y < fill->height; y++)
        fill_row(fill->address + y * fill->pitch, fill);
}

static bool fill_start_locked(struct operation *operation)
{
    struct fill *fill = (struct fill *)operation;

    if (fill->width * fill->height * fill->element > SHORT_FILL) {
        worker_submit_locked(operation);
        return false;
    }
    fill_work(operation);
    return true;
}

static const struct operation_type fill_type = {
    .start_locked = fill_start_locked,
    .work = fill_work,
};

static bool fill_fits(const struct fill *fill)
{
    uint64_t row, rows, size;

    if (__builtin_mul_overflow(fill->width, fill->element, &row) ||
        __builtin_mul_overflow(fill->pitch, fill->height - 1, &rows) ||
        __builtin_add_overflow(rows, row, &size) || size > UINT64_MAX - fill->address)
        return false;
    if (fill->height > 1 && (fill->pitch < row || fill->pitch % fill->element))
        return false;
    return memory_covers_locked(fill->address, size);
}

CUresult fill_prepare_locked(const CUDA_MEMSET_NODE_PARAMS *what, struct operation **ret_operation)
{
    struct fill *fill;

    if (what->width == 0 || what->height == 0 || what->dst % what->elementSize)
        return CUDA_ERROR_INVALID_VALUE;
    fill = operation_create(sizeof(*fill), &fill_type);
    if (!fill)
        return CUDA_ERROR_OUT_OF_MEMORY;
    fill->address = what->dst;
    fill->pitch = what->pitch;
    fill->width = what->width;
    fill->height = what->height;
    fill->value = what->value;
    fill->element = what->elementSize;
    if (!fill_fits(fill)) {
        operation_unref_locked(&fill->operation);
        return CUDA_ERROR_INVALID_VALUE;
    }
    *ret_operation = &fill->operation;
    return CUDA_SUCCESS;
}

/* A fill of device memory does not keep the caller waiting, synchronous or not. */
static CUresult submit_fill(CUdeviceptr address, size_t pitch, uint32_t value, unsigned element,
                            size_t width, size_t height, CUstream handle)
{
    const CUDA_MEMSET_NODE_PARAMS what = {
        .dst = address,
        .pitch = pitch,
        .value = value,
        .elementSize = element,
        .width = width,
        .height = height,
    };
    struct operation *operation;
    struct stream *stream;
    SOFT_LOCKED;
    CUresult result = stream_work_locked(handle, &stream);

    if (result || width == 0 || height == 0)
        return result;
    if (capture_is_on(&stream->capture))
        return capture_fill_locked(&stream->capture, &what);
    result = fill_prepare_locked(&what, &operation);
    if (result)
        return result;
    schedule_enqueue_locked(stream, operation);
    operation_unref_locked(operation);
    return CUDA_SUCCESS;
}

CUresult soft_cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
    return submit_fill(dstDevice, 0, uc, 1, N, 1, NULL);
}

CUresult soft_cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N)
{
    return submit_fill(dstDevice, 0, us, 2, N, 1, NULL);
}

CUresult soft_cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
    return submit_fill(dstDevice, 0, ui, 4, N, 1, NULL);
}

CUresult soft_cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
                              size_t Width, size_t Height)
{
    return submit_fill(dstDevice, dstPitch, uc, 1, Width, Height, NULL);
}

CUresult soft_cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
                               size_t Width, size_t Height)
{
    return submit_fill(dstDevice, dstPitch, us, 2, Width, Height, NULL);
}

CUresult soft_cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
                               size_t Width, size_t Height)
{
    return submit_fill(dstDevice, dstPitch, ui, 4, Width, Height, NULL);
}

CUresult soft_cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
    return submit_fill(dstDevice, 0, uc, 1, N, 1, hStream);
}

CUresult soft_cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)
{
    return submit_fill(dstDevice, 0, us, 2, N, 1, hStream);
}

CUresult soft_cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream)
{
    return submit_fill(dstDevice, 0, ui, 4, N, 1, hStream);
}

CUresult soft_cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
                                size_t Width, size_t Height, CUstream hStream)
{
    return submit_fill(dstDevice, dstPitch, uc, 1, Width, Height, hStream);
}

CUresult soft_cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
                                 size_t Width, size_t Height, CUstream hStream)
{
    return submit_fill(dstDevice, dstPitch, us, 2, Width, Height, hStream);
}

CUresult soft_cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
                                 size_t Width, size_t Height, CUstream hStream)
{
    return submit_fill(dstDevice, dstPitch, ui, 4, Width, Height, hStream);
}
