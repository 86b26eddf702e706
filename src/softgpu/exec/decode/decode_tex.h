/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the decoders of texture and surface instructions: their operands.
 */
#pragma once

#include "decode.h"
#include "texture.h"

/* The geometry in the opcode, or -1. */
int tex_shape(const struct tokens *tokens);
bool tex_is_layered(int shape);
/* Whether an operand can be an object: a register, or the name of a reference. */
bool tex_is_object(struct builder *builder, const struct ptx_operand *operand);
/* [object, {coordinates}]: coordinates that are not there are NO_OPERAND. */
bool tex_place(struct builder *builder, const struct ptx_operand *place, int shape,
               enum ptx_type type, uint32_t *ret_object, uint32_t ret_at[4]);
/* Four operands in the places where handlers find them. */
void tex_set_four(struct insn *insn, const uint32_t four[4]);
/* A nop that carries four operands of the instruction before it. */
void tex_carry(struct builder *builder, const uint32_t four[4]);

void decode_tex(struct builder *builder, const struct tokens *tokens);
