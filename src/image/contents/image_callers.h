/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the kernels of an image that print or allocate on the device's heap, by direct or indirect
 * calls of vprintf or malloc. A kernel that launches kernels or calls through a pointer counts as
 * calling every function of the image. The functions hold no state and take no lock.
 */
#pragma once

#include "image_names.h"

enum image_uses {
    IMAGE_USES_PRINTF = 1,
    IMAGE_USES_MALLOC = 2,
    IMAGE_USES_UNKNOWN = 4,
};

/* The bit of a function of the device's runtime; 0 for other names. */
unsigned image_uses_of(const char *name, size_t length);

/* Adds the names of the kernels, each with `enum image_uses` as its size: false when they are not
 * known. */
bool image_part_callers(const struct image_part *part, struct image_names *callers);

/* Whether code of the part may call functions through pointers, or launch kernels. True when that
 * cannot be told. */
bool image_part_calls_pointers(const struct image_part *part);

/* ---- for the readers of parts ---- */

bool image_ptx_callers(const struct image_part *part, struct image_names *callers);
