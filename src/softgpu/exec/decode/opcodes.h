/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opcode table: which function decodes an opcode.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "builder.h"
#include "tokens.h"

typedef void (*decode_fn)(struct builder *builder, const struct tokens *tokens);

struct opcode {
    const char *name;
    decode_fn decode;
    bool is_control;   /* a guard on it makes lanes part */
    const char *forms; /* for the coverage table */
};
/* The opcode's first word, without its dots; NULL: it is not supported. The results of both
 * functions live forever; any thread may call them. */
const struct opcode *opcode_find(const char *name, size_t length);
/* NULL behind the last. */
const struct opcode *opcode_at(unsigned index);
