/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that write tensor maps: tensormap.replace and tensormap.cp_fenceproxy.
 */
#pragma once

#include "warp_state.h"

enum tensor_field {
    TENSOR_FIELD_ADDRESS,
    TENSOR_FIELD_RANK, /* less one */
    TENSOR_FIELD_BOX,
    TENSOR_FIELD_DIM,
    TENSOR_FIELD_STRIDE, /* bytes */
    TENSOR_FIELD_ELEMENT_STRIDE,
    TENSOR_FIELD_TYPE,
    TENSOR_FIELD_INTERLEAVE,
    TENSOR_FIELD_SWIZZLE,
    TENSOR_FIELD_FILL,
    TENSOR_FIELD_COUNT,
};

/* The operand a is the map's address, mode the field, and width its index. The value is b, of 64
 * bits if the field is the address or a stride. */
void run_tensor_replace(struct warp *warp, const struct insn *insn);

/* The operand a is where the map goes, and that of the nop behind where it comes from. */
void run_tensor_map_copy(struct warp *warp, const struct insn *insn);
