/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads, stores, atomics, and their addresses.
 */
#pragma once

#include "decode.h"
#include "decode_access.h"

void decode_load(struct builder *builder, const struct tokens *tokens);
void decode_store(struct builder *builder, const struct tokens *tokens);
void decode_atomic(struct builder *builder, const struct tokens *tokens);

/* skip: how many words of the opcode are not modifiers. */
bool decode_access(struct builder *builder, const struct tokens *tokens, unsigned skip,
                   struct access *ret_access);
/* Whether the word is a state space. */
bool token_space(const struct tokens *tokens, unsigned index, enum ptx_space *ret_space);
/* Fills in a, imm (bytes), space and flags; may emit code before that. */
void decode_address(struct builder *builder, const struct ptx_operand *from, enum ptx_space space,
                    struct insn *ret_insn);
/* The enum atomic_op in the opcode and which token it is, or -1. */
int decode_atomic_op(const struct tokens *tokens, unsigned *ret_at);
