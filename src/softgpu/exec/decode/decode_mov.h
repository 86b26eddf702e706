/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves, packing and unpacking of registers, and logic: of bits and of predicates.
 */
#pragma once

#include "decode.h"

void decode_mov(struct builder *builder, const struct tokens *tokens);
void decode_logic(struct builder *builder, const struct tokens *tokens);
void decode_lop3(struct builder *builder, const struct tokens *tokens);
