/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which parts of an image a driver takes for a device: the newest machine code that the device
 * runs, else the newest text. What the other parts hold never gets to the device. The functions
 * hold no state and take no lock.
 */
#pragma once

#include "image_parts.h"

struct image_choice {
    unsigned device_sm;
    enum image_kind kind;
    unsigned sm;
};

/* False when the device runs no part of the image, which is sound (image_check.h), or the choice is
 * the driver's: of a bundle, which it links. */
bool image_choose(const void *bytes, size_t size, unsigned device_sm,
                  struct image_choice *ret_choice);

/* Whether the part is of those. There may be several: variants of the same code. */
bool image_is_chosen(const struct image_choice *choice, const struct image_part *part);
