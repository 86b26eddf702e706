/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions of a warpgroup on matrices. What they need to know is in the program's list of
 * wgmma_op.
 */
#pragma once

#include "decode.h"

void decode_wgmma(struct builder *builder, const struct tokens *tokens);
