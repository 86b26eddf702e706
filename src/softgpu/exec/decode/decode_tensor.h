/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies by tensor maps, and statements that change maps.
 */
#pragma once

#include "decode.h"

void decode_tensor_copy(struct builder *builder, const struct tokens *tokens);
void decode_tensor_map(struct builder *builder, const struct tokens *tokens);
