/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vop{2 4}.dtype.atype.btype{.sat}{.add} d, a, b, c and vset{2 4}.atype.btype.cmp{.add} d, a, b, c.
 * Operands are whole: those that pick bytes of a register are refused.
 */
#pragma once

#include "decode.h"

void decode_video(struct builder *builder, const struct tokens *tokens);
