/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a module image: one PTX text or one piece of machine code each. A fat binary has
 * several, perhaps compressed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "image_format.h"

struct image_part {
    enum image_kind kind; /* IMAGE_PTX or IMAGE_ELF */
    unsigned sm;          /* of the device that it is for, such as 90; 0 = it does not say */
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

/* Whether `test` holds for a wanted part of an image that is sound (image_check.h). A part that
 * does not expand, or is of a kind that is not known here, counts as if it did. The bytes of a part
 * are only valid during the call of `test`. */
bool image_any_part(const void *bytes, size_t size, const struct image_visit *visit);
