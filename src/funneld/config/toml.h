/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the part of TOML that configuration files of MPS v3 are written in: tables, arrays of
 * tables, and keys with strings, numbers, booleans, and arrays of these. The caller gets each
 * table and each key in turn; the reader keeps nothing. Syntax that it does not know is an error.
 */
#pragma once

#include <stdbool.h>

#define TOML_DEPTH_MAX 8
#define TOML_WORD_MAX 128
#define TOML_VALUE_MAX 512
#define TOML_REASON_MAX 512

struct toml_path {
    unsigned depth;
    char part[TOML_DEPTH_MAX][TOML_WORD_MAX];
};

struct toml_item {
    const struct toml_path *table;
    bool element;      /* the table is one of an array, [[...]] */
    const char *key;   /* NULL for a table that begins */
    const char *value; /* the text; items of an array with commas between them */
};

/* 0, or -EINVAL with a message in `reason`. */
typedef int toml_taker(void *context, const struct toml_item *item, char reason[TOML_REASON_MAX]);

/* 0, or -EINVAL with "line N: " and a message in `ret_reason`. */
int toml_read(const char *text, toml_taker *take, void *context, char ret_reason[TOML_REASON_MAX]);
