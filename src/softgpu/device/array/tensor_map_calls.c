/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor maps in an encoding of our own: what the call was given, packed. A kernel is not to look
 * into them, and no statement that uses one is decoded yet.
 */
#include <string.h>

#include "cuda_tensor_map.h"
#include "soft_prototypes.h"

#define MAGIC 0x70616d74u

/* 104 of the 128 bytes. */
struct encoding {
    uint32_t magic;
    uint8_t kind, type, rank, interleave, swizzle, promotion, fill, reserved;
    uint64_t address;
    uint32_t last[CUDA_TENSOR_RANK_MAX];        /* dimension - 1 */
    uint64_t strides[CUDA_TENSOR_RANK_MAX - 1]; /* bytes */
    uint8_t last_of_box[CUDA_TENSOR_RANK_MAX];  /* size - 1 */
    uint8_t element_strides[CUDA_TENSOR_RANK_MAX];
    int16_t lower[CUDA_TENSOR_RANK_MAX - 2], upper[CUDA_TENSOR_RANK_MAX - 2];
    uint16_t channels, pixels;
};

_Static_assert(sizeof(struct encoding) <= sizeof(CUtensorMap), "fits into a tensor map");

static void pack(const struct cuda_tensor_map *map, struct encoding *ret_encoding)
{
    *ret_encoding = (struct encoding){
        .magic = MAGIC,
        .kind = (uint8_t)map->kind,
        .type = (uint8_t)map->type,
        .rank = (uint8_t)map->rank,
        .interleave = (uint8_t)map->interleave,
        .swizzle = (uint8_t)map->swizzle,
        .promotion = (uint8_t)map->promotion,
        .fill = (uint8_t)map->fill,
        .address = map->address,
        .channels = (uint16_t)map->channels,
        .pixels = (uint16_t)map->pixels,
    };
    memcpy(ret_encoding->strides, map->strides, sizeof(map->strides));
    for (unsigned i = 0; i < map->rank; i++) {
        ret_encoding->last[i] = (uint32_t)(map->dims[i] - 1);
        ret_encoding->last_of_box[i] = (uint8_t)(map->box[i] - 1);
        ret_encoding->element_strides[i] = (uint8_t)map->element_strides[i];
    }
    for (unsigned i = 0; i + 2 < map->rank; i++) {
        ret_encoding->lower[i] = (int16_t)map->lower[i];
        ret_encoding->upper[i] = (int16_t)map->upper[i];
    }
}

static CUresult encode(const struct cuda_tensor_map *map, CUtensorMap *ret_map)
{
    struct encoding encoding;

    if (!cuda_tensor_map_is_valid(map))
        return CUDA_ERROR_INVALID_VALUE;
    pack(map, &encoding);
    memset(ret_map, 0, sizeof(*ret_map));
    memcpy(ret_map, &encoding, sizeof(encoding));
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
    struct cuda_tensor_map map = {
        .kind = TENSOR_MAP_TILED,
        .type = tensorDataType,
        .rank = tensorRank,
        .interleave = interleave,
        .swizzle = swizzle,
        .promotion = l2Promotion,
        .fill = oobFill,
        .address = (uintptr_t)globalAddress,
    };

    if (!cuda_tensor_map_read(&map, globalDim, globalStrides, boxDim, elementStrides, NULL, NULL))
        return CUDA_ERROR_INVALID_VALUE;
    return encode(&map, tensorMap);
}

CUresult soft_cuTensorMapEncodeIm2col(
    CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
    void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
    const int *pixelBoxLowerCorner, const int *pixelBoxUpperCorner, cuuint32_t channelsPerPixel,
    cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)
{
    struct cuda_tensor_map map = {
        .kind = TENSOR_MAP_IM2COL,
        .type = tensorDataType,
        .rank = tensorRank,
        .interleave = interleave,
        .swizzle = swizzle,
        .promotion = l2Promotion,
        .fill = oobFill,
        .address = (uintptr_t)globalAddress,
        .channels = channelsPerPixel,
        .pixels = pixelsPerColumn,
    };

    if (!cuda_tensor_map_read(&map, globalDim, globalStrides, NULL, elementStrides,
                              pixelBoxLowerCorner, pixelBoxUpperCorner))
        return CUDA_ERROR_INVALID_VALUE;
    return encode(&map, tensorMap);
}

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
    struct encoding encoding;

    memcpy(&encoding, tensorMap, sizeof(encoding));
    if (encoding.magic != MAGIC || (uintptr_t)globalAddress % 16)
        return CUDA_ERROR_INVALID_VALUE;
    encoding.address = (uintptr_t)globalAddress;
    memcpy(tensorMap, &encoding, sizeof(encoding));
    return CUDA_SUCCESS;
}
