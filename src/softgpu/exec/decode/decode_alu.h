/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic: find the row of the opcode table, then turn operands into offsets.
 *
 * A row is looked up by the opcode as written. If there is none, modifiers that mean the same
 * everywhere (.ftz, .rn, .sat, .approx) are taken out, and the row must allow them. A type may
 * stand for the bits of its size.
 */
#pragma once

#include "decode.h"

/* Sets the handler of the insn, inside a floating-point environment if it is not the usual one;
 * environment as in insn.environment. */
void set_handler(struct insn *insn, handler_fn run, unsigned environment);

void decode_alu(struct builder *builder, const struct tokens *tokens);
void decode_limit(struct builder *builder, const struct tokens *tokens);
void decode_prmt(struct builder *builder, const struct tokens *tokens);
void decode_setp(struct builder *builder, const struct tokens *tokens);
void decode_set(struct builder *builder, const struct tokens *tokens);
