/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strings among an image's variables. They include all printf formats, except those that a
 * kernel composes or the host writes. The functions hold no state and take no lock.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "image_parts.h"

/* Bytes; the strings of an image with more count as unknown. */
#define IMAGE_STRINGS_MAX (256u << 10)

/* One behind the other, each with its NUL. */
struct image_strings {
    char *bytes;
    size_t size, capacity;
};

/* Adds the strings of a part: false when there are too many, or memory is short. */
bool image_part_strings(const struct image_part *part, struct image_strings *strings);

/* Adds a string of `length` bytes without a NUL: false as above. */
bool image_strings_add(struct image_strings *strings, const char *text, size_t length);

void image_strings_fini(struct image_strings *strings);
