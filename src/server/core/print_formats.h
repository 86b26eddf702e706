/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The formats of kernels that may print. The formats of a library are read from its image. A set of
 * them says what the kernels of a graph, or the launched kernels of a client, may print.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* A library's. A library whose formats are not known has NULL instead. */
struct print_formats {
    atomic_uint users;
    size_t size;
    char texts[]; /* one behind the other, each with its NUL */
};

/* `size` is 0, or the last of the bytes is a NUL. NULL when out of memory. */
struct print_formats *print_formats_create(const char *texts, size_t size);

/* NULL is allowed. */
struct print_formats *print_formats_ref(struct print_formats *formats);
void print_formats_unref(struct print_formats *formats);

/* Of more libraries than this the formats count as unknown. */
#define PRINT_FORMAT_SETS_MAX 256u

struct print_format_set {
    struct print_formats **each; /* a reference to each */
    unsigned count, capacity;
    bool has_unknown;
};

/* Whether the set has the formats. NULL stands for unknown ones. */
bool print_format_set_has(const struct print_format_set *set, const struct print_formats *formats);

/* Adds them unless they are there; where memory is short, as unknown ones. */
void print_format_set_add(struct print_format_set *set, struct print_formats *formats);

/* Drops the references of the set, which is empty then. */
void print_format_set_fini(struct print_format_set *set);
