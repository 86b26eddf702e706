/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of the calls, packed. */
#include "tensor_map.h"

#include <string.h>

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

_Static_assert(sizeof(struct encoding) <= TENSOR_MAP_BYTES, "fits into a tensor map");

static void pack_entries(const struct cuda_tensor_map *map, struct encoding *encoding)
{
    memcpy(encoding->strides, map->strides, sizeof(map->strides));
    for (unsigned i = 0; i < CUDA_TENSOR_RANK_MAX; i++) {
        encoding->last[i] = (uint32_t)(map->dims[i] - 1);
        encoding->last_of_box[i] = (uint8_t)(map->box[i] - 1);
        encoding->element_strides[i] = (uint8_t)map->element_strides[i];
    }
    for (unsigned i = 0; i < CUDA_TENSOR_RANK_MAX - 2; i++) {
        encoding->lower[i] = (int16_t)map->lower[i];
        encoding->upper[i] = (int16_t)map->upper[i];
    }
}

void tensor_map_pack(const struct cuda_tensor_map *map, void *bytes)
{
    struct encoding encoding = {
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

    pack_entries(map, &encoding);
    memset(bytes, 0, TENSOR_MAP_BYTES);
    memcpy(bytes, &encoding, sizeof(encoding));
}

static void unpack_entries(const struct encoding *encoding, struct cuda_tensor_map *map)
{
    memcpy(map->strides, encoding->strides, sizeof(map->strides));
    for (unsigned i = 0; i < CUDA_TENSOR_RANK_MAX; i++) {
        map->dims[i] = (uint64_t)encoding->last[i] + 1;
        map->box[i] = encoding->last_of_box[i] + 1u;
        map->element_strides[i] = encoding->element_strides[i];
    }
    for (unsigned i = 0; i < CUDA_TENSOR_RANK_MAX - 2; i++) {
        map->lower[i] = encoding->lower[i];
        map->upper[i] = encoding->upper[i];
    }
}

bool tensor_map_unpack(const void *bytes, struct cuda_tensor_map *ret_map)
{
    struct encoding encoding;

    memcpy(&encoding, bytes, sizeof(encoding));
    if (encoding.magic != MAGIC || encoding.kind > TENSOR_MAP_IM2COL || encoding.rank == 0 ||
        encoding.rank > CUDA_TENSOR_RANK_MAX)
        return false;
    *ret_map = (struct cuda_tensor_map){
        .kind = (enum cuda_tensor_map_kind)encoding.kind,
        .type = encoding.type,
        .rank = encoding.rank,
        .interleave = encoding.interleave,
        .swizzle = encoding.swizzle,
        .promotion = encoding.promotion,
        .fill = encoding.fill,
        .address = encoding.address,
        .channels = encoding.channels,
        .pixels = encoding.pixels,
    };
    unpack_entries(&encoding, ret_map);
    return true;
}

uint32_t tensor_map_row(const struct cuda_tensor_map *map)
{
    return map->kind == TENSOR_MAP_IM2COL ? map->channels : map->box[0];
}

const char *tensor_map_refusal(const struct cuda_tensor_map *map)
{
    uint32_t size = cuda_tensor_element_size(map->type);
    uint32_t span = cuda_tensor_swizzle_span(map->swizzle);

    if (map->interleave != CU_TENSOR_MAP_INTERLEAVE_NONE)
        return "interleaved layouts";
    if (map->swizzle > CU_TENSOR_MAP_SWIZZLE_128B)
        return "swizzles of other chunks than 16 bytes";
    if (size == 0)
        return "packed elements of 4 and 6 bits";
    if (map->type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ)
        return "elements that are rounded or flushed on their way (FLOAT32_FTZ, TFLOAT32)";
    if (span && tensor_map_row(map) * size != span)
        return "rows shorter than the bytes that are swizzled";
    return NULL;
}
