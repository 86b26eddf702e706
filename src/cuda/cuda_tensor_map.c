/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of tensor maps, as NVIDIA documents them for the driver API. */
#include "cuda_tensor_map.h"

#include <string.h>

#define STRIDE_LIMIT (UINT64_C(1) << 40)
#define DIM_MAX (UINT64_C(1) << 32)
#define BOX_MAX 256u
#define ELEMENT_STRIDE_MAX 8u
#define CHANNELS_MAX 256u
#define PIXELS_MAX 1024u

static void copy_entries(void *into, const void *from, size_t count, size_t size)
{
    if (from)
        memcpy(into, from, count * size);
}

/* Copies as many elements as the rank says; NULL stands for an array that the call does not have.
 */
static bool read_arrays(struct cuda_tensor_map *map, const cuuint64_t *dims,
                        const cuuint64_t *strides, const cuuint32_t *box,
                        const cuuint32_t *element_strides, const int *lower, const int *upper)
{
    uint32_t rank = map->rank;

    if (rank == 0 || rank > CUDA_TENSOR_RANK_MAX || (rank > 1 && !strides))
        return false;
    copy_entries(map->dims, dims, rank, sizeof(*dims));
    copy_entries(map->strides, strides, rank - 1, sizeof(*strides));
    copy_entries(map->box, box, rank, sizeof(*box));
    copy_entries(map->element_strides, element_strides, rank, sizeof(*element_strides));
    copy_entries(map->lower, lower, rank > 2 ? rank - 2 : 0, sizeof(*lower));
    copy_entries(map->upper, upper, rank > 2 ? rank - 2 : 0, sizeof(*upper));
    return true;
}

bool cuda_tensor_map_tiled(CUtensorMapDataType type, cuuint32_t rank, const void *address,
                           const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
                           const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
                           CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                           CUtensorMapFloatOOBfill fill, struct cuda_tensor_map *ret_map)
{
    *ret_map = (struct cuda_tensor_map){
        .kind = TENSOR_MAP_TILED,
        .type = type,
        .rank = rank,
        .interleave = interleave,
        .swizzle = swizzle,
        .promotion = promotion,
        .fill = fill,
        .address = (uintptr_t)address,
    };
    return read_arrays(ret_map, dims, strides, box, element_strides, NULL, NULL);
}

bool cuda_tensor_map_im2col(CUtensorMapDataType type, cuuint32_t rank, const void *address,
                            const cuuint64_t *dims, const cuuint64_t *strides, const int *lower,
                            const int *upper, cuuint32_t channels, cuuint32_t pixels,
                            const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
                            CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                            CUtensorMapFloatOOBfill fill, struct cuda_tensor_map *ret_map)
{
    *ret_map = (struct cuda_tensor_map){
        .kind = TENSOR_MAP_IM2COL,
        .type = type,
        .rank = rank,
        .interleave = interleave,
        .swizzle = swizzle,
        .promotion = promotion,
        .fill = fill,
        .address = (uintptr_t)address,
        .channels = channels,
        .pixels = pixels,
    };
    return read_arrays(ret_map, dims, strides, NULL, element_strides, lower, upper);
}

uint32_t cuda_tensor_element_size(uint32_t type)
{
    static const uint8_t sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

    return type < sizeof(sizes) ? sizes[type] : 0;
}

static bool is_packed(uint32_t type)
{
    return type >= CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B &&
           type <= CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
}

static bool is_float(uint32_t type)
{
    return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
}

static bool formats_are_valid(const struct cuda_tensor_map *map)
{
    if (!cuda_tensor_element_size(map->type) && !is_packed(map->type))
        return false;
    if (map->interleave > CU_TENSOR_MAP_INTERLEAVE_32B ||
        map->swizzle > CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B ||
        map->promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B ||
        map->fill > CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA)
        return false;
    if (map->fill && !is_float(map->type))
        return false;
    if (map->interleave != CU_TENSOR_MAP_INTERLEAVE_NONE && map->rank < 3)
        return false;
    return map->interleave != CU_TENSOR_MAP_INTERLEAVE_32B ||
           map->swizzle == CU_TENSOR_MAP_SWIZZLE_32B;
}

static uint32_t alignment(const struct cuda_tensor_map *map)
{
    return map->interleave == CU_TENSOR_MAP_INTERLEAVE_32B ||
                   map->type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B ||
                   map->type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B
               ? 32
               : 16;
}

static bool tensor_is_valid(const struct cuda_tensor_map *map)
{
    if (map->address % alignment(map))
        return false;
    for (uint32_t i = 0; i < map->rank; i++) {
        if (map->dims[i] == 0 || map->dims[i] > DIM_MAX)
            return false;
        if (map->element_strides[i] == 0 || map->element_strides[i] > ELEMENT_STRIDE_MAX)
            return false;
    }
    for (uint32_t i = 0; i + 1 < map->rank; i++)
        if (map->strides[i] % alignment(map) || map->strides[i] >= STRIDE_LIMIT)
            return false;
    return true;
}

uint32_t cuda_tensor_swizzle_span(uint32_t swizzle)
{
    switch (swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_NONE:
        return 0;
    case CU_TENSOR_MAP_SWIZZLE_32B:
        return 32;
    case CU_TENSOR_MAP_SWIZZLE_64B:
        return 64;
    default:
        return 128;
    }
}

static bool row_is_valid(const struct cuda_tensor_map *map, uint32_t elements)
{
    uint32_t span = cuda_tensor_swizzle_span(map->swizzle);
    uint32_t bytes = elements * cuda_tensor_element_size(map->type);

    if (map->interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || is_packed(map->type))
        return true;
    return bytes % 16 == 0 && (!span || bytes <= span);
}

static bool box_is_valid(const struct cuda_tensor_map *map)
{
    for (uint32_t i = 0; i < map->rank; i++)
        if (map->box[i] == 0 || map->box[i] > BOX_MAX)
            return false;
    return row_is_valid(map, map->box[0]);
}

static bool pixels_are_valid(const struct cuda_tensor_map *map)
{
    static const int32_t corner_limits[] = {32768, 128, 16};

    if (map->rank < 3 || map->channels > CHANNELS_MAX || map->pixels > PIXELS_MAX)
        return false;
    for (uint32_t i = 0; i < map->rank - 2; i++) {
        int32_t limit = corner_limits[map->rank - 3];

        if (map->lower[i] < -limit || map->lower[i] >= limit || map->upper[i] < -limit ||
            map->upper[i] >= limit)
            return false;
    }
    return row_is_valid(map, map->channels);
}

bool cuda_tensor_map_is_valid(const struct cuda_tensor_map *map)
{
    return formats_are_valid(map) && tensor_is_valid(map) &&
           (map->kind == TENSOR_MAP_TILED ? box_is_valid(map) : pixels_are_valid(map));
}
