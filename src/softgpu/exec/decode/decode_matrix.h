/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the decoders of instructions on matrices. The functions hold no state and cannot fail.
 */
#pragma once

#include "fragment.h"
#include "tokens.h"

/* The matrix elements that the opcode names, in order. Returns their number. */
unsigned matrix_elements(const struct tokens *tokens, enum fragment_element ret_elements[4]);
/* A matrix of such elements, without registers. */
struct fragment matrix_fragment(enum fragment_element element);
/* Whether A and B may be of these types. */
bool matrix_may_meet(enum fragment_element a, enum fragment_element b);
/* Whether products of elements `of` may be summed up as this type. */
bool matrix_is_accumulator(enum fragment_element of, enum fragment_element accumulator);

void decode_mma(struct builder *builder, const struct tokens *tokens);
void decode_wmma(struct builder *builder, const struct tokens *tokens);
void decode_matrices(struct builder *builder, const struct tokens *tokens);
void decode_movmatrix(struct builder *builder, const struct tokens *tokens);
