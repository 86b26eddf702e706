/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits copies at borders of page-locked chunks, and of granules of one allocation. A box that
 * crosses a border is copied slice by slice. A slice that crosses one is copied row by row, and
 * such a row in parts.
 */
#include "copy_chunks.h"

#include "page_lock.h"
#include "server_dispatch.h"

/* An ordinary copy needs a few calls for each chunk of a window. A box that overlaps itself could
 * need any number. */
#define CALLS_MAX (1u << 18)

static uint64_t smaller_size(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* An allocation may consist of granules in host memory and in device memory. */
static uint64_t left_on_device(const struct window *window, uint64_t address)
{
    if (!window->is_divided || address < window->base || address >= window->host_base)
        return UINT64_MAX;
    return window_left(window, address);
}

/* The bytes from an address on that one call may access. */
static uint64_t left_at(const struct window *window, uint64_t address)
{
    const unsigned part = window ? window->devices->count : 0;

    if (!window)
        return UINT64_MAX;
    if (address < window_part_start(window, part) || address >= window_part_end(window, part))
        return left_on_device(window, address);
    return page_lock_left(window->page_locker, address);
}

/* ---- one row ---- */

CUresult copy_chunks(const struct window *window, CUdeviceptr dst, CUdeviceptr src, uint64_t size,
                     CUstream stream)
{
    CUresult result = CUDA_SUCCESS;

    for (uint64_t done = 0, part; done < size && result == CUDA_SUCCESS; done += part) {
        part = smaller_size(size - done,
                            smaller_size(left_at(window, dst + done), left_at(window, src + done)));
        result = driver.cuMemcpyAsync(dst + done, src + done, part, stream);
    }
    return result;
}

CUresult copy_chunks_up(const struct window *window, CUdeviceptr dst, const void *data,
                        uint64_t size, CUstream stream)
{
    CUresult result = CUDA_SUCCESS;

    for (uint64_t done = 0, part; done < size && result == CUDA_SUCCESS; done += part) {
        part = smaller_size(size - done, left_at(window, dst + done));
        result = driver.cuMemcpyHtoDAsync_v2(dst + done, (const char *)data + done, part, stream);
    }
    return result;
}

/* ---- boxes ---- */

/* One side of a box, with the distances between its rows and its slices. */
struct side {
    uint64_t address, row, slice;
    bool is_array;
};

static struct side src_of(const CUDA_MEMCPY3D *box)
{
    return (struct side){.address = box->srcDevice,
                         .row = box->srcPitch,
                         .slice = box->srcPitch * box->srcHeight,
                         .is_array = box->srcMemoryType == CU_MEMORYTYPE_ARRAY};
}

static struct side dst_of(const CUDA_MEMCPY3D *box)
{
    return (struct side){.address = box->dstDevice,
                         .row = box->dstPitch,
                         .slice = box->dstPitch * box->dstHeight,
                         .is_array = box->dstMemoryType == CU_MEMORYTYPE_ARRAY};
}

static uint64_t side_left(const struct window *window, const struct side *side, uint64_t x,
                          uint64_t y, uint64_t z)
{
    return side->is_array ? UINT64_MAX
                          : left_at(window, side->address + z * side->slice + y * side->row + x);
}

/* How many objects of `span` bytes, `distance` bytes from one to the next, fit into `left`
 * bytes. */
static uint64_t how_many(uint64_t left, uint64_t span, uint64_t distance)
{
    if (left < span)
        return 0;
    return distance ? (left - span) / distance + 1 : UINT64_MAX;
}

/* A box that is being copied. */
struct progress {
    const struct window *window;
    const CUDA_MEMCPY3D *box;
    CUstream stream;
    struct side dst, src;
    unsigned calls;
};

static CUresult send_box(struct progress *progress, uint64_t x, uint64_t y, uint64_t z,
                         uint64_t width, uint64_t height, uint64_t depth)
{
    CUDA_MEMCPY3D part = *progress->box;

    if (++progress->calls > CALLS_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    part.WidthInBytes = width;
    part.Height = height;
    part.Depth = depth;
    if (progress->dst.is_array) {
        part.dstXInBytes += x;
        part.dstY += y;
        part.dstZ += z;
    } else {
        part.dstDevice += z * progress->dst.slice + y * progress->dst.row + x;
    }
    if (progress->src.is_array) {
        part.srcXInBytes += x;
        part.srcY += y;
        part.srcZ += z;
    } else {
        part.srcDevice += z * progress->src.slice + y * progress->src.row + x;
    }
    return driver.cuMemcpy3DAsync_v2(&part, progress->stream);
}

static CUresult send_row(struct progress *progress, uint64_t y, uint64_t z)
{
    const uint64_t width = progress->box->WidthInBytes;
    CUresult result = CUDA_SUCCESS;

    for (uint64_t x = 0, part; x < width && result == CUDA_SUCCESS; x += part) {
        part = smaller_size(width - x,
                            smaller_size(side_left(progress->window, &progress->dst, x, y, z),
                                         side_left(progress->window, &progress->src, x, y, z)));
        result = send_box(progress, x, y, z, part, 1, 1);
    }
    return result;
}

static uint64_t rows_of(const struct progress *progress, const struct side *side, uint64_t y,
                        uint64_t z)
{
    return how_many(side_left(progress->window, side, 0, y, z), progress->box->WidthInBytes,
                    side->row);
}

static CUresult send_slice(struct progress *progress, uint64_t z)
{
    const CUDA_MEMCPY3D *box = progress->box;
    CUresult result = CUDA_SUCCESS;

    for (uint64_t y = 0, rows; y < box->Height && result == CUDA_SUCCESS; y += rows) {
        rows = smaller_size(box->Height - y, smaller_size(rows_of(progress, &progress->dst, y, z),
                                                          rows_of(progress, &progress->src, y, z)));
        result = rows ? send_box(progress, 0, y, z, box->WidthInBytes, rows, 1)
                      : send_row(progress, y, z);
        rows = rows ? rows : 1;
    }
    return result;
}

static uint64_t slice_span(const CUDA_MEMCPY3D *box, const struct side *side)
{
    return (box->Height - 1) * side->row + box->WidthInBytes;
}

static uint64_t slices_of(const struct progress *progress, const struct side *side, uint64_t z)
{
    return how_many(side_left(progress->window, side, 0, 0, z), slice_span(progress->box, side),
                    side->slice);
}

CUresult copy_chunks_box(const struct window *window, const CUDA_MEMCPY3D *box, CUstream stream)
{
    struct progress progress = {
        .window = window, .box = box, .stream = stream, .dst = dst_of(box), .src = src_of(box)};
    CUresult result = CUDA_SUCCESS;

    for (uint64_t z = 0, slices; z < box->Depth && result == CUDA_SUCCESS; z += slices) {
        slices = smaller_size(box->Depth - z, smaller_size(slices_of(&progress, &progress.dst, z),
                                                           slices_of(&progress, &progress.src, z)));
        result = slices ? send_box(&progress, 0, 0, z, box->WidthInBytes, box->Height, slices)
                        : send_slice(&progress, z);
        slices = slices ? slices : 1;
    }
    return result;
}

static bool splits_side(const struct window *window, const CUDA_MEMCPY3D *box,
                        const struct side *side)
{
    return side_left(window, side, 0, 0, 0) <
           (box->Depth - 1) * side->slice + slice_span(box, side);
}

bool copy_chunks_splits_box(const struct window *window, const CUDA_MEMCPY3D *box)
{
    const struct side dst = dst_of(box), src = src_of(box);

    if (!box->WidthInBytes || !box->Height || !box->Depth)
        return false;
    return splits_side(window, box, &dst) || splits_side(window, box, &src);
}

/* ---- memsets ---- */

static CUresult fill_row(const struct wire_fnMemset *in, uint64_t dst, uint64_t width,
                         CUstream stream)
{
    switch (in->element_size) {
    case 1:
        return driver.cuMemsetD8Async(dst, (unsigned char)in->value, width, stream);
    case 2:
        return driver.cuMemsetD16Async(dst, (unsigned short)in->value, width, stream);
    default:
        return driver.cuMemsetD32Async(dst, in->value, width, stream);
    }
}

static CUresult fill_rows(const struct wire_fnMemset *in, uint64_t dst, uint64_t height,
                          CUstream stream)
{
    switch (in->element_size) {
    case 1:
        return driver.cuMemsetD2D8Async(dst, in->pitch, (unsigned char)in->value, in->width, height,
                                        stream);
    case 2:
        return driver.cuMemsetD2D16Async(dst, in->pitch, (unsigned short)in->value, in->width,
                                         height, stream);
    default:
        return driver.cuMemsetD2D32Async(dst, in->pitch, in->value, in->width, height, stream);
    }
}

/* An element may cross a border where it is not aligned to its size; the driver refuses such a
 * fill. */
static CUresult fill_in_parts(const struct window *window, const struct wire_fnMemset *in,
                              uint64_t dst, CUstream stream)
{
    const uint64_t size = in->width * in->element_size;
    CUresult result = CUDA_SUCCESS;

    for (uint64_t done = 0, part; done < size && result == CUDA_SUCCESS; done += part) {
        part = smaller_size(size - done, left_at(window, dst + done));
        part = part < in->element_size ? in->element_size : part;
        result = fill_row(in, dst + done, part / in->element_size, stream);
    }
    return result;
}

CUresult copy_chunks_memset(const struct window *window, const struct wire_fnMemset *in,
                            CUstream stream)
{
    const uint64_t row = in->width * in->element_size;
    CUresult result = CUDA_SUCCESS;
    unsigned calls = 0;

    if (!in->width || !in->height)
        return CUDA_SUCCESS;
    if (in->height == 1)
        return fill_in_parts(window, in, in->dst, stream);
    for (uint64_t y = 0, rows; y < in->height && result == CUDA_SUCCESS; y += rows) {
        const uint64_t dst = in->dst + y * in->pitch;

        if (++calls > CALLS_MAX)
            return CUDA_ERROR_INVALID_VALUE;
        rows = smaller_size(in->height - y, how_many(left_at(window, dst), row, in->pitch));
        result = rows ? fill_rows(in, dst, rows, stream) : fill_in_parts(window, in, dst, stream);
        rows = rows ? rows : 1;
    }
    return result;
}

bool copy_chunks_splits_memset(const struct window *window, const struct wire_fnMemset *in)
{
    const uint64_t span = (in->height - 1) * in->pitch + in->width * in->element_size;

    return in->width && in->height && left_at(window, in->dst) < span;
}
