/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the decoders of memory accesses: modifiers, addresses, accesses of 128 bits. False
 * means that the builder has failed.
 */
#pragma once

#include "builder.h"
#include "tokens.h"

/* The modifiers of an access. */
struct access {
    enum ptx_space space;
    enum ptx_type type;
    uint8_t width;     /* elements: 1, 2 or 4 */
    bool synchronizes; /* others may be waiting for it, or it for others */
    bool releases;
    bool has_hint; /* a last operand for the cache, which we do not have */
};

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

void decode_mov_b128(struct builder *builder);
void decode_load_b128(struct builder *builder, const struct access *access);
void decode_store_b128(struct builder *builder, const struct access *access);
void decode_atomic_b128(struct builder *builder, const struct access *access, bool compares);
