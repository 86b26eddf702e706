/* SPDX-License-Identifier: Apache-2.0 */
/* What of an image a device can run. The functions hold no state and take no lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* False when no entry of a container, or not this machine code, runs on a device of compute
 * capability `sm`, such as 90. True when that is unknown: for another kind of image, or for an
 * entry of an unknown kind. */
bool image_suits(const void *image, size_t size, unsigned sm);

/* The machine code of an image for such a device, where it stands there as it is: false for PTX,
 * and for code that is compressed. */
bool image_find_machine_code(const void *image, size_t size, unsigned sm, const void **ret_code,
                             size_t *ret_size);
