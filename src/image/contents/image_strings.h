/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strings among an image's variables. All formats of its printf calls are there, apart from
 * formats that a kernel puts together, or that the host writes. The functions hold no state and
 * take no lock.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "image_parts.h"

/* Bytes; an image with more strings counts as one whose strings are not known. */
#define IMAGE_STRINGS_MAX (256u << 10)

/* One behind the other, each with its NUL. */
struct image_strings {
    char *bytes;
    size_t size, capacity;
};

/* Adds the strings that a part has: false when there are too many, or memory is short. */
bool image_part_strings(const struct image_part *part, struct image_strings *strings);

/* Adds a text, which has no NUL but that behind `length` bytes: false as above. */
bool image_strings_add(struct image_strings *strings, const char *text, size_t length);

void image_strings_fini(struct image_strings *strings);
