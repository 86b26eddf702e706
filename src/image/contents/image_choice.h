/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of an image that a driver chooses for a device: the newest machine code that the device
 * runs, else the newest PTX. The other parts never reach the device. The functions hold no state
 * and take no lock.
 */
#pragma once

#include "image_parts.h"

struct image_choice {
    unsigned device_sm;
    enum image_kind kind;
    unsigned sm;
};

/* False when the device runs no part of the sound image (image_check.h), or the image is a bundle,
 * which the driver links. */
bool image_choose(const void *bytes, size_t size, unsigned device_sm,
                  struct image_choice *ret_choice);

/* Whether the part is chosen. Several parts may be: variants of the same code. */
bool image_is_chosen(const struct image_choice *choice, const struct image_part *part);
