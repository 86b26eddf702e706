/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a module image: PTX or machine code for one architecture each. A fat binary has
 * several, perhaps compressed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "image_format.h"

struct image_part {
    enum image_kind kind; /* IMAGE_PTX or IMAGE_ELF */
    unsigned sm;          /* of its device, such as 90; 0 = unknown */
    bool is_specific;     /* it runs on devices of exactly this architecture (sm_90a), */
    bool is_of_family;    /* or of this one and later ones of the same major number (sm_100f) */
    const void *bytes;
    size_t size;
};

typedef bool image_part_test(void *context, const struct image_part *part);

struct image_visit {
    image_part_test *wants; /* sees a part without its bytes, to spare expanding it; NULL: all */
    image_part_test *test;
    void *context;
};

/* Whether `test` is true for a wanted part of a sound image (image_check.h). A part of an unknown
 * kind, or one that does not expand, counts as true. The bytes of a part are valid only during the
 * call of `test`. */
bool image_any_part(const void *bytes, size_t size, const struct image_visit *visit);
