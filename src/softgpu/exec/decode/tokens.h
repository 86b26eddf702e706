/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opcodes taken apart at their dots.
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

bool tokens_split(const char *opcode, struct tokens *ret_tokens);
bool token_is(const struct tokens *tokens, unsigned index, const char *word);
bool token_starts(const struct tokens *tokens, unsigned index, const char *word);
/* The index of this word, or -1. */
int token_find(const struct tokens *tokens, const char *word);
/* 0 to 3, as insn.environment has it; -1: the word is no rounding. */
int token_rounding(const struct tokens *tokens, unsigned index);
enum ptx_type token_type(const struct tokens *tokens, unsigned index);
/* The type that ends the opcode. */
enum ptx_type last_type(const struct tokens *tokens);
