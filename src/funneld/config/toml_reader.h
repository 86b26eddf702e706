/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of the TOML parser: the place in the text. Every step returns 0, or a
 * negative errno with the reason said. */
#pragma once

#include "toml.h"

struct toml_reader {
    const char *at, *end; /* *end is NUL */
    unsigned line;
    unsigned depth;
    char *reason;
};

/* Text that grows. */
struct toml_buffer {
    char *text; /* NULL until something is in it */
    size_t length, capacity;
};

int toml_fail(struct toml_reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* toml_string.c */

/* toml_scalar.c */

/* A number, boolean, date or time that is all of `text`: its type and value. */
int toml_read_scalar(struct toml_reader *reader, const char *text, size_t length,
                     enum toml_type *ret_type, struct toml_buffer *ret_value);
