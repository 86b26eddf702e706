/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of an image's variables. When all are known, the server can restore a library to its
 * state after the load. The functions hold no state and take no lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image_parts.h"

/* An image with more variables counts as one whose variables are not known. */
#define IMAGE_NAMES_MAX 4096u

struct image_name {
    char *name;
    uint64_t size;  /* bytes; 0 = not known */
    bool constant;  /* kernels cannot write to it */
    bool relocated; /* the load writes addresses into it */
};

struct image_names {
    struct image_name *names;
    uint32_t count, capacity;
};

/* An unknown number of bytes. */
#define IMAGE_BYTES_UNKNOWN UINT64_MAX

/* Adds the names of all variables of a part. False when they are not known, or the state of a
 * variable is not in its bytes. In either case *ret_bytes is their size, or IMAGE_BYTES_UNKNOWN. */
bool image_part_names(const struct image_part *part, struct image_names *names,
                      uint64_t *ret_bytes);

/* Sorts the names and removes duplicates: several parts for one device are variants of the same
 * code. */
void image_names_merge(struct image_names *names);

/* Whether no kernel writes to any of them. They are constants, or compilers and CUDA C++ libraries
 * made them: strings, tables and empty objects. */
bool image_names_are_constant(const struct image_names *names);

/* The first variable that a program may write to, from a kernel or from the host. NULL when all
 * were made by compilers and CUDA C++ libraries, as above, or are constants inside functions. */
const char *image_names_first_variable(const struct image_names *names);

void image_names_fini(struct image_names *names);

/* ---- for the readers of parts ---- */

bool image_names_add(struct image_names *names, const char *name, size_t length, uint64_t size,
                     bool constant);
bool image_names_add_like(struct image_names *names, const struct image_name *like, size_t length);

/* Adds those of machine code, and of PTX text: false as above. */
bool image_code_names(const struct image_part *part, struct image_names *names,
                      uint64_t *ret_bytes);
bool image_ptx_names(const struct image_part *part, struct image_names *names, uint64_t *ret_bytes);
