/* SPDX-License-Identifier: Apache-2.0 */
/* The cuMemset family: rows of equal elements, put on a stream. */
#include "memset.h"

#include "client_capture.h"
#include "client_prototypes.h"
#include "host_register.h"
#include "managed_hooks.h"
#include "stream_commands.h"
#include "stream_wait.h"
#include "wire_calls.h"

/* Elements and rows, as nodes of graphs describe them. */
static bool valid_fill(const CUDA_MEMSET_NODE_PARAMS *fill)
{
    uint64_t row = (uint64_t)fill->width * fill->elementSize;

    if (fill->dst % fill->elementSize != 0 || row / fill->elementSize != fill->width)
        return false;
    if (fill->height > 1 && (fill->pitch < row || fill->pitch % fill->elementSize != 0))
        return false;
    return fill->height == 1 || fill->height <= UINT64_MAX / fill->pitch;
}

static CUresult send_fill(const CUDA_MEMSET_NODE_PARAMS *fill, struct stream *stream)
{
    struct wire_fnMemset in = {
        .dst = host_register_on_device(fill->dst),
        .pitch = fill->pitch,
        .value = fill->value,
        .element_size = fill->elementSize,
        .width = fill->width,
        .height = fill->height,
        .hStream = stream->handle,
    };
    CUresult result;

    stream_begin(stream);
    result = wire_fnMemset(&client->channel, &in);
    stream_end();
    return result;
}

static uint64_t fill_extent(const CUDA_MEMSET_NODE_PARAMS *fill)
{
    return (fill->height - 1) * fill->pitch + (uint64_t)fill->width * fill->elementSize;
}

CUresult memset_check(const CUDA_MEMSET_NODE_PARAMS *fill, enum place *ret_place)
{
    enum place place;

    if (fill->width == 0 || fill->height == 0)
        return CUDA_SUCCESS;
    if (!valid_fill(fill))
        return CUDA_ERROR_INVALID_VALUE;
    place = address_map_place(fill->dst, fill_extent(fill));
    if (place != PLACE_DEVICE && place != PLACE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_place = place;
    return CUDA_SUCCESS;
}

/* The synchronous calls wait only where the program can read the memory itself. */
static CUresult set_memory(const CUDA_MEMSET_NODE_PARAMS *fill, CUstream handle, bool sync)
{
    struct stream *stream;
    enum place place = PLACE_NOWHERE;
    CUresult result = stream_enter(handle, &stream);

    if (result != CUDA_SUCCESS)
        return result;
    if (fill->width == 0 || fill->height == 0)
        return CUDA_SUCCESS;
    if (!valid_fill(fill))
        return CUDA_ERROR_INVALID_VALUE;
    if (capture_takes_fill(stream, fill, sync, &result))
        return result;
    result = memset_check(fill, &place);
    if (result != CUDA_SUCCESS)
        return result;
    bool managed = managed_holds(fill->dst);
    managed_use(fill->dst, fill_extent(fill));
    result = send_fill(fill, stream);
    if (managed)
        managed_work();
    if (result == CUDA_SUCCESS && sync && (place == PLACE_PINNED || managed))
        result = stream_synchronize(stream);
    return result;
}

CUresult client_cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
    return set_memory(&(CUDA_MEMSET_NODE_PARAMS){dstDevice, N, uc, 1, N, 1}, NULL, true);
}

CUresult client_cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N)
{
    return set_memory(&(CUDA_MEMSET_NODE_PARAMS){dstDevice, 2 * N, us, 2, N, 1}, NULL, true);
}

CUresult client_cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned ui, size_t N)
{
    return set_memory(&(CUDA_MEMSET_NODE_PARAMS){dstDevice, 4 * N, ui, 4, N, 1}, NULL, true);
}

CUresult client_cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
                                size_t Width, size_t Height)
{
    return set_memory(&(CUDA_MEMSET_NODE_PARAMS){dstDevice, dstPitch, uc, 1, Width, Height}, NULL,
                      true);
}

CUresult client_cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
                                 size_t Width, size_t Height)
{
    return set_memory(&(CUDA_MEMSET_NODE_PARAMS){dstDevice, dstPitch, us, 2, Width, Height}, NULL,
                      true);
}

CUresult client_cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned ui, size_t Width,
                                 size_t Height)
{
    return set_memory(&(CUDA_MEMSET_NODE_PARAMS){dstDevice, dstPitch, ui, 4, Width, Height}, NULL,
                      true);
}

CUresult client_cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
    return set_memory(&(CUDA_MEMSET_NODE_PARAMS){dstDevice, N, uc, 1, N, 1}, hStream, false);
}

CUresult client_cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N,
                                 CUstream hStream)
{
    return set_memory(&(CUDA_MEMSET_NODE_PARAMS){dstDevice, 2 * N, us, 2, N, 1}, hStream, false);
}

CUresult client_cuMemsetD32Async(CUdeviceptr dstDevice, unsigned ui, size_t N, CUstream hStream)
{
    return set_memory(&(CUDA_MEMSET_NODE_PARAMS){dstDevice, 4 * N, ui, 4, N, 1}, hStream, false);
}

CUresult client_cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
                                  size_t Width, size_t Height, CUstream hStream)
{
    return set_memory(&(CUDA_MEMSET_NODE_PARAMS){dstDevice, dstPitch, uc, 1, Width, Height},
                      hStream, false);
}

CUresult client_cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
                                   size_t Width, size_t Height, CUstream hStream)
{
    return set_memory(&(CUDA_MEMSET_NODE_PARAMS){dstDevice, dstPitch, us, 2, Width, Height},
                      hStream, false);
}

CUresult client_cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned ui,
                                   size_t Width, size_t Height, CUstream hStream)
{
    return set_memory(&(CUDA_MEMSET_NODE_PARAMS){dstDevice, dstPitch, ui, 4, Width, Height},
                      hStream, false);
}
