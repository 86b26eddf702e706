/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX text cut into its module-level statements, no deeper than linking needs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct span {
    const char *text;
    size_t size;
};

enum statement_kind {
    STATEMENT_HEADER,   /* .version, .target, .address_size */
    STATEMENT_DROPPED,  /* debug information */
    STATEMENT_FUNCTION, /* .func or .entry, with or without a body */
    STATEMENT_VARIABLE,
    STATEMENT_OTHER,
};

struct statement {
    enum statement_kind kind;
    struct span text;
    struct span name; /* of a function or variable */
    size_t head_size; /* of a function: up to its body */
    bool has_body;
    bool is_extern;
    bool is_shared_name; /* .visible, .weak, .common or .extern: means the same in every part */
    bool is_kernel;
};

/* The next statement of [*cursor, end), which moves on: false at the end. */
bool statement_next(const char **cursor, const char *end, struct statement *ret_statement);

/* The token at the cursor, behind white space and comments: false at the end. */
bool token_next(const char **cursor, const char *end, struct span *ret_token);
bool token_is_name(struct span token);
bool span_is(struct span span, const char *text);
bool span_equal(struct span one, struct span other);
