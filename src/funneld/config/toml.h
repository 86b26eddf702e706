/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TOML 1.0: from a text to a tree of its tables, arrays and values, in the order of the text. What
 * the specification forbids is an error with its line. (Debian 12 has no C library that reads
 * TOML.)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define TOML_REASON_MAX 512
#define TOML_DEPTH_MAX 64 /* of arrays and inline tables in each other */

enum toml_type {
    TOML_TABLE,
    TOML_ARRAY,
    TOML_STRING,
    TOML_INTEGER, /* of 64 bits */
    TOML_FLOAT,
    TOML_BOOLEAN,
    TOML_DATE_TIME, /* with an offset from UTC */
    TOML_LOCAL_DATE_TIME,
    TOML_LOCAL_DATE,
    TOML_LOCAL_TIME,
};

/* How a table or array came to be, which says what may be added to it. */
enum toml_origin {
    TOML_IMPLIED,   /* by the header of a table in it: its own header may follow */
    TOML_BY_HEADER, /* [t], or an element of [[t]] */
    TOML_DOTTED,    /* by keys such as t.key: more such keys may follow */
    TOML_CLOSED,    /* {...} and [...]: complete as they are */
};

struct toml {
    struct toml *next; /* in the same table or array */
    struct toml *first, *last;
    char *key; /* NULL in arrays */
    size_t key_length;
    enum toml_type type;
    enum toml_origin origin;
    unsigned line;
    char *text; /* strings and numbers: their value, numbers in decimal without _ */
    size_t length;
};

/* Reads the `size` bytes at `text`, which end in a NUL beyond them. 0 with the root table, which
 * the caller gives back. -EINVAL or -ENOMEM with "line N: " and a message. */
int toml_parse(const char *text, size_t size, struct toml **ret_root,
               char ret_reason[TOML_REASON_MAX]);
void toml_free(struct toml *tree);

/* The child of that name, or NULL. */
struct toml *toml_find(const struct toml *table, const char *key, size_t length);
