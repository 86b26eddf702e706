/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fundamental types of PTX: names and sizes.
 */
#include <string.h>

#include "ptx.h"

static const struct {
    const char *name;
    unsigned size;
} types[PTX_TYPE_COUNT] = {
    [PTX_PRED] = {"pred", 1},       [PTX_B8] = {"b8", 1},
    [PTX_B16] = {"b16", 2},         [PTX_B32] = {"b32", 4},
    [PTX_B64] = {"b64", 8},         [PTX_B128] = {"b128", 16},
    [PTX_U8] = {"u8", 1},           [PTX_U16] = {"u16", 2},
    [PTX_U32] = {"u32", 4},         [PTX_U64] = {"u64", 8},
    [PTX_S8] = {"s8", 1},           [PTX_S16] = {"s16", 2},
    [PTX_S32] = {"s32", 4},         [PTX_S64] = {"s64", 8},
    [PTX_F16] = {"f16", 2},         [PTX_F16X2] = {"f16x2", 4},
    [PTX_BF16] = {"bf16", 2},       [PTX_BF16X2] = {"bf16x2", 4},
    [PTX_F32] = {"f32", 4},         [PTX_F64] = {"f64", 8},
    [PTX_TEXREF] = {"texref", 8},   [PTX_SAMPLERREF] = {"samplerref", 8},
    [PTX_SURFREF] = {"surfref", 8},
};

unsigned ptx_type_size(enum ptx_type type)
{
    return types[type].size;
}

bool ptx_type_is_reference(enum ptx_type type)
{
    return type == PTX_TEXREF || type == PTX_SAMPLERREF || type == PTX_SURFREF;
}

enum ptx_type ptx_type_from_name(const char *name, size_t length)
{
    for (unsigned i = 1; i < PTX_TYPE_COUNT; i++) {
        if (strlen(types[i].name) == length && memcmp(types[i].name, name, length) == 0)
            return (enum ptx_type)i;
    }
    return PTX_NO_TYPE;
}
