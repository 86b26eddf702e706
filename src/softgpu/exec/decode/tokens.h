/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opcodes taken apart at their dots. Tokens point into the opcode, which has to outlive them. The
 * functions hold no state. Where an index is asked for that is not there, the answer is no.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ptx.h"

#define MAX_TOKENS 24

/* An opcode taken apart at its dots. */
struct tokens {
    const char *text[MAX_TOKENS];
    size_t length[MAX_TOKENS];
    unsigned count;
};

/* False, and nothing is written, when a word is empty or there are more than MAX_TOKENS. */
bool tokens_split(const char *opcode, struct tokens *ret_tokens);
bool token_is(const struct tokens *tokens, unsigned index, const char *word);
bool token_starts(const struct tokens *tokens, unsigned index, const char *word);
/* The index of this word, or -1. */
int token_find(const struct tokens *tokens, const char *word);
/* 0 to 3, as insn.environment has it; -1: the word is no rounding. */
int token_rounding(const struct tokens *tokens, unsigned index);
/* Of an index that is there; what ptx_type_from_name() says. */
enum ptx_type token_type(const struct tokens *tokens, unsigned index);
/* The type that ends the opcode. */
enum ptx_type last_type(const struct tokens *tokens);
