/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of an image's variables. With all of them, a library can be put back into the state in
 * which it was loaded. The functions hold no state and take no lock.
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
    uint64_t size; /* bytes; 0 = not known */
    bool constant; /* kernels cannot write to it */
};

struct image_names {
    struct image_name *names;
    uint32_t count, capacity;
};

/* What stands for a number of bytes that cannot be known. */
#define IMAGE_BYTES_UNKNOWN UINT64_MAX

/* Adds the names of all variables that a part has: false when they cannot be known, or a variable
 * is of a kind whose state is not in its bytes. *ret_bytes is what all of them take in either case,
 * or IMAGE_BYTES_UNKNOWN. */
bool image_part_names(const struct image_part *part, struct image_names *names,
                      uint64_t *ret_bytes);

/* Keeps one of each name, in order: several parts for one device are variants of the same code. */
void image_names_merge(struct image_names *names);

/* Whether no kernel writes to any of them: they are constant, or compilers and the libraries of
 * CUDA C++ have made them, for texts, tables and objects without contents. */
bool image_names_are_constant(const struct image_names *names);

/* The first that a program may write to, from a kernel or from the host; NULL when all of them were
 * made by compilers and the libraries of CUDA C++, as above, or are constants inside functions. */
const char *image_names_first_variable(const struct image_names *names);

void image_names_fini(struct image_names *names);

/* ---- for the readers of parts ---- */

bool image_names_add(struct image_names *names, const char *name, size_t length, uint64_t size,
                     bool constant);

/* Adds those of machine code, and of PTX text: false as above. */
bool image_code_names(const struct image_part *part, struct image_names *names,
                      uint64_t *ret_bytes);
bool image_ptx_names(const struct image_part *part, struct image_names *names, uint64_t *ret_bytes);
