/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a module image: one PTX text or one piece of machine code each. A fat binary has
 * several, perhaps compressed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum image_part_kind {
    IMAGE_PTX = 1,
    IMAGE_ELF = 2,
};

/* Whether `test` holds for a part of an image that is sound. A part that does not expand, or is of
 * a kind that is not known here, counts as if it did. */
bool image_any_part(const void *bytes, size_t size,
                    bool (*test)(enum image_part_kind kind, const void *part, size_t size));
