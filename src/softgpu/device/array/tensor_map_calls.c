/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor maps: those that copies do, and an error and a message for the others. */
#include <string.h>

#include "cuda_tensor_map.h"
#include "soft.h"
#include "soft_prototypes.h"
#include "tensor_map.h"

static CUresult encode_tensor_map(const struct cuda_tensor_map *map, CUtensorMap *ret_map)
{
    const char *refusal;

    if (!cuda_tensor_map_is_valid(map))
        return CUDA_ERROR_INVALID_VALUE;
    refusal = tensor_map_refusal(map);
    if (refusal) {
        soft_log("cuTensorMapEncode: copies by tensor maps do not do %s", refusal);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    tensor_map_pack(map, ret_map);
    return CUDA_SUCCESS;
}

CUresult soft_cuTensorMapEncodeTiled(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType,
                                     cuuint32_t tensorRank, void *globalAddress,
                                     const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
                                     const cuuint32_t *boxDim, const cuuint32_t *elementStrides,
                                     CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                     CUtensorMapL2promotion l2Promotion,
                                     CUtensorMapFloatOOBfill oobFill)
{
    struct cuda_tensor_map map;

    if (!cuda_tensor_map_tiled(tensorDataType, tensorRank, globalAddress, globalDim, globalStrides,
                               boxDim, elementStrides, interleave, swizzle, l2Promotion, oobFill,
                               &map))
        return CUDA_ERROR_INVALID_VALUE;
    return encode_tensor_map(&map, tensorMap);
}

CUresult soft_cuTensorMapEncodeIm2col(
    CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
    void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
    const int *pixelBoxLowerCorner, const int *pixelBoxUpperCorner, cuuint32_t channelsPerPixel,
    cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)
{
    struct cuda_tensor_map map;

    if (!cuda_tensor_map_im2col(tensorDataType, tensorRank, globalAddress, globalDim, globalStrides,
                                pixelBoxLowerCorner, pixelBoxUpperCorner, channelsPerPixel,
                                pixelsPerColumn, elementStrides, interleave, swizzle, l2Promotion,
                                oobFill, &map))
        return CUDA_ERROR_INVALID_VALUE;
    return encode_tensor_map(&map, tensorMap);
}

/* Of compute capability 10.0. */
CUresult soft_cuTensorMapEncodeIm2colWide(
    CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
    void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
    int pixelBoxLowerCornerWidth, int pixelBoxUpperCornerWidth, cuuint32_t channelsPerPixel,
    cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
    CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
    CUtensorMapFloatOOBfill oobFill)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult soft_cuTensorMapReplaceAddress(CUtensorMap *tensorMap, void *globalAddress)
{
    struct cuda_tensor_map map;

    if (!tensor_map_unpack(tensorMap, &map) || (uintptr_t)globalAddress % 16)
        return CUDA_ERROR_INVALID_VALUE;
    map.address = (uintptr_t)globalAddress;
    tensor_map_pack(&map, tensorMap);
    return CUDA_SUCCESS;
}
