/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel changes a tensor map field by field, so in between it need not be valid: a copy checks
 * it. Values that no field holds are refused at once, for they would become others.
 */
#include "tensor_replace.h"

#include <string.h>

#include "sg_space.h"
#include "tensor_map.h"
#include "translate.h"
#include "warp.h"
#include "warp_fault.h"

#define MAP_ALIGN 16

/* PTX counts the types in another order than the driver API. */
static bool set_type(struct cuda_tensor_map *map, uint64_t value)
{
    static const uint8_t types[] = {
        CU_TENSOR_MAP_DATA_TYPE_UINT8,        CU_TENSOR_MAP_DATA_TYPE_UINT16,
        CU_TENSOR_MAP_DATA_TYPE_UINT32,       CU_TENSOR_MAP_DATA_TYPE_INT32,
        CU_TENSOR_MAP_DATA_TYPE_UINT64,       CU_TENSOR_MAP_DATA_TYPE_INT64,
        CU_TENSOR_MAP_DATA_TYPE_FLOAT16,      CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ,  CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
        CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,     CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
        CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ,
    };

    if (value >= sizeof(types))
        return false;
    map->type = types[value];
    return true;
}

static bool set_entry(struct cuda_tensor_map *map, enum tensor_field field, unsigned index,
                      uint64_t value)
{
    switch (field) {
    case TENSOR_FIELD_BOX:
        map->box[index] = (uint32_t)value;
        return value > 0 && value <= 256;
    case TENSOR_FIELD_DIM:
        map->dims[index] = (uint32_t)value;
        return value > 0;
    case TENSOR_FIELD_STRIDE:
        map->strides[index] = value;
        return true;
    default:
        map->element_strides[index] = (uint32_t)value;
        return value > 0 && value <= 8;
    }
}

static bool set_field(struct cuda_tensor_map *map, const struct insn *insn, uint64_t value)
{
    enum tensor_field field = (enum tensor_field)insn->mode;

    switch (field) {
    case TENSOR_FIELD_ADDRESS:
        map->address = value;
        return true;
    case TENSOR_FIELD_RANK:
        map->rank = (uint32_t)value + 1;
        return value < CUDA_TENSOR_RANK_MAX;
    case TENSOR_FIELD_TYPE:
        return set_type(map, value);
    case TENSOR_FIELD_INTERLEAVE:
        map->interleave = (uint32_t)value;
        return value <= CU_TENSOR_MAP_INTERLEAVE_32B;
    case TENSOR_FIELD_SWIZZLE:
        map->swizzle = (uint32_t)value;
        return value <= CU_TENSOR_MAP_SWIZZLE_128B;
    case TENSOR_FIELD_FILL:
        map->fill = (uint32_t)value;
        return value <= CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
    default:
        return set_entry(map, field, insn->width, value);
    }
}

static bool is_wide(const struct insn *insn)
{
    return insn->mode == TENSOR_FIELD_ADDRESS || insn->mode == TENSOR_FIELD_STRIDE;
}

void run_tensor_replace(struct warp *warp, const struct insn *insn)
{
    const uint32_t *narrow = reg(warp, insn->b);
    const uint64_t *wide = reg(warp, insn->b);

    if (!translate(warp, insn, TENSOR_MAP_BYTES, MAP_ALIGN, SG_READ | SG_WRITE))
        return;
    EACH_ACTIVE_LANE
    {
        void *bytes = (void *)(uintptr_t)warp->address[lane];
        uint64_t value = is_wide(insn) ? wide[lane] : narrow[lane];
        struct cuda_tensor_map map;

        if (!tensor_map_unpack(bytes, &map) || !set_field(&map, insn, value)) {
            warp_fault(warp, insn, lane, CUDA_ERROR_ILLEGAL_INSTRUCTION,
                       "0x%llx is no value of this field, or the memory has no tensor map",
                       (unsigned long long)value);
            return;
        }
        tensor_map_pack(&map, bytes);
    }
}

/* All lanes say the same, as PTX demands. */
void run_tensor_map_copy(struct warp *warp, const struct insn *insn)
{
    unsigned lane = (unsigned)__builtin_ctz(warp->active);
    unsigned char map[TENSOR_MAP_BYTES];

    if (!warp_converged(warp, insn, FULL_MASK))
        return;
    if (!translate(warp, insn + 1, TENSOR_MAP_BYTES, MAP_ALIGN, SG_READ))
        return;
    memcpy(map, (const void *)(uintptr_t)warp->address[lane], sizeof(map));
    if (!translate(warp, insn, TENSOR_MAP_BYTES, MAP_ALIGN, SG_WRITE))
        return;
    memcpy((void *)(uintptr_t)warp->address[lane], map, sizeof(map));
}
