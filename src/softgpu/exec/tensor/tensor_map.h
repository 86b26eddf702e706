/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor maps in memory: 128 bytes in an encoding of our own. Kernels may write into them, so their
 * contents are not trusted.
 */
#pragma once

#include <stdbool.h>

#include "cuda_tensor_map.h"

#define TENSOR_MAP_BYTES sizeof(CUtensorMap)

void tensor_map_pack(const struct cuda_tensor_map *map, void *bytes);
/* False when the bytes are no tensor map. The contents are not checked. */
bool tensor_map_unpack(const void *bytes, struct cuda_tensor_map *ret_map);

/* NULL, or what of a valid map copies do not do, as a part of a sentence. */
const char *tensor_map_refusal(const struct cuda_tensor_map *map);

/* Elements of a row of a box: along the innermost dimension. */
uint32_t tensor_map_row(const struct cuda_tensor_map *map);
