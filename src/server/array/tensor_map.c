/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor maps: pure functions of their arguments, computed by the driver. */
#include <string.h>

#include "cuda_tensor_map.h"
#include "loader.h"
#include "server_dispatch.h"
#include "session.h"

/* The driver reads `rank` entries of each array; five are present. */
static CUresult encode_tiled(const struct wire_fnTensorMap *in, CUtensorMap *ret_map)
{
    const uint32_t *formats = in->formats;

    if (!driver.cuTensorMapEncodeTiled)
        return CUDA_ERROR_NOT_SUPPORTED;
    return driver.cuTensorMapEncodeTiled(
        ret_map, (CUtensorMapDataType)formats[0], formats[1], (void *)(uintptr_t)in->address,
        in->dims, in->strides, in->box, in->element_strides, (CUtensorMapInterleave)formats[2],
        (CUtensorMapSwizzle)formats[3], (CUtensorMapL2promotion)formats[4],
        (CUtensorMapFloatOOBfill)formats[5]);
}

static CUresult encode_im2col(const struct wire_fnTensorMap *in, CUtensorMap *ret_map)
{
    const uint32_t *formats = in->formats;

    if (!driver.cuTensorMapEncodeIm2col)
        return CUDA_ERROR_NOT_SUPPORTED;
    return driver.cuTensorMapEncodeIm2col(
        ret_map, (CUtensorMapDataType)formats[0], formats[1], (void *)(uintptr_t)in->address,
        in->dims, in->strides, in->corners, in->corners + 3, in->channels, in->pixels,
        in->element_strides, (CUtensorMapInterleave)formats[2], (CUtensorMapSwizzle)formats[3],
        (CUtensorMapL2promotion)formats[4], (CUtensorMapFloatOOBfill)formats[5]);
}

static CUresult encode_wide(const struct wire_fnTensorMap *in, CUtensorMap *ret_map)
{
    const uint32_t *formats = in->formats;

    if (!driver.cuTensorMapEncodeIm2colWide)
        return CUDA_ERROR_NOT_SUPPORTED;
    return driver.cuTensorMapEncodeIm2colWide(
        ret_map, (CUtensorMapDataType)formats[0], formats[1], (void *)(uintptr_t)in->address,
        in->dims, in->strides, in->corners[0], in->corners[3], in->channels, in->pixels,
        in->element_strides, (CUtensorMapInterleave)formats[2],
        (CUtensorMapIm2ColWideMode)formats[6], (CUtensorMapSwizzle)formats[3],
        (CUtensorMapL2promotion)formats[4], (CUtensorMapFloatOOBfill)formats[5]);
}

static CUresult replace_address(const struct wire_fnTensorMap *in, CUtensorMap *ret_map)
{
    if (!driver.cuTensorMapReplaceAddress)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (in->map_size != sizeof(*ret_map))
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(ret_map, in->map, sizeof(*ret_map));
    return driver.cuTensorMapReplaceAddress(ret_map, (void *)(uintptr_t)in->address);
}

static CUresult encode_tensor_map(const struct wire_fnTensorMap *in, CUtensorMap *ret_map)
{
    bool has_rank = in->formats[1] > 0 && in->formats[1] <= CUDA_TENSOR_RANK_MAX;

    if (in->kind != TENSOR_MAP_REPLACE && !has_rank)
        return CUDA_ERROR_INVALID_VALUE;
    switch (in->kind) {
    case TENSOR_MAP_TILED:
        return encode_tiled(in, ret_map);
    case TENSOR_MAP_IM2COL:
        return encode_im2col(in, ret_map);
    case TENSOR_MAP_IM2COL_WIDE:
        return encode_wide(in, ret_map);
    case TENSOR_MAP_REPLACE:
        return replace_address(in, ret_map);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult serve_fnTensorMap(struct session *session, const struct wire_fnTensorMap *in,
                           struct wire_fnTensorMap_reply *ret_out)
{
    const struct device *device = session_find_device(session, "cuTensorMapEncode", in->device);
    CUtensorMap map = {0};
    CUresult result = device ? session_enter(session, device) : CUDA_ERROR_INVALID_DEVICE;

    if (result == CUDA_SUCCESS)
        result = encode_tensor_map(in, &map);
    if (result != CUDA_SUCCESS)
        return result;
    memcpy(ret_out->map, &map, sizeof(map));
    ret_out->map_size = sizeof(map);
    return CUDA_SUCCESS;
}
