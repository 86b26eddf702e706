/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor maps: the server's driver encodes them, and checks what they are made of. */
#include <string.h>

#include "client_context.h"
#include "client_prototypes.h"
#include "cuda_tensor_map.h"
#include "host_register.h"
#include "wire_calls.h"

/* No context is needed, but the server asks the driver on some device. */
static uint32_t device_index(void)
{
    struct context *context;

    return context_current(&context) == CUDA_SUCCESS ? context->device->index
                                                     : client->devices[0].index;
}

static CUresult ask_server(const struct wire_fnTensorMap *in, CUtensorMap *ret_map)
{
    CUtensorMap map;
    struct wire_fnTensorMap_reply out = {.map = &map, .map_capacity = sizeof(map)};
    CUresult result = wire_fnTensorMap(&client->channel, in, &out);

    if (result != CUDA_SUCCESS)
        return result;
    if (out.map_size != sizeof(map))
        return CUDA_ERROR_MPS_RPC_FAILURE;
    memcpy(ret_map, &map, sizeof(map)); /* which need not be aligned as the type is */
    return CUDA_SUCCESS;
}

static CUresult encode(const struct cuda_tensor_map *map, CUtensorMap *ret_map)
{
    struct wire_fnTensorMap in = {
        .device = device_index(),
        .kind = map->kind,
        .formats = {map->type, map->rank, map->interleave, map->swizzle, map->promotion, map->fill,
                    map->mode},
        .address = host_register_on_device(map->address),
        .channels = map->channels,
        .pixels = map->pixels,
    };

    memcpy(in.dims, map->dims, sizeof(in.dims));
    memcpy(in.strides, map->strides, sizeof(in.strides));
    memcpy(in.box, map->box, sizeof(in.box));
    memcpy(in.element_strides, map->element_strides, sizeof(in.element_strides));
    memcpy(in.corners, map->lower, sizeof(map->lower));
    memcpy(in.corners + 3, map->upper, sizeof(map->upper));
    return ask_server(&in, ret_map);
}

CUresult client_cuTensorMapEncodeTiled(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType,
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
    return encode(&map, tensorMap);
}

CUresult client_cuTensorMapEncodeIm2col(
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
    return encode(&map, tensorMap);
}

CUresult client_cuTensorMapEncodeIm2colWide(
    CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
    void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
    int pixelBoxLowerCornerWidth, int pixelBoxUpperCornerWidth, cuuint32_t channelsPerPixel,
    cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
    CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
    CUtensorMapFloatOOBfill oobFill)
{
    struct cuda_tensor_map map;

    if (!cuda_tensor_map_im2col(tensorDataType, tensorRank, globalAddress, globalDim, globalStrides,
                                NULL, NULL, channelsPerPixel, pixelsPerColumn, elementStrides,
                                interleave, swizzle, l2Promotion, oobFill, &map))
        return CUDA_ERROR_INVALID_VALUE;
    map.kind = TENSOR_MAP_IM2COL_WIDE;
    map.mode = mode;
    map.lower[0] = pixelBoxLowerCornerWidth;
    map.upper[0] = pixelBoxUpperCornerWidth;
    return encode(&map, tensorMap);
}

CUresult client_cuTensorMapReplaceAddress(CUtensorMap *tensorMap, void *globalAddress)
{
    const struct wire_fnTensorMap in = {
        .device = device_index(),
        .kind = TENSOR_MAP_REPLACE,
        .address = host_register_on_device((uintptr_t)globalAddress),
        .map = tensorMap,
        .map_size = sizeof(*tensorMap),
    };

    return ask_server(&in, tensorMap);
}
