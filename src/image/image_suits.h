/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a device can run an image at all. The function holds no state and takes no lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* False when no entry of a container, or not this machine code, runs on a device of compute
 * capability `sm`, such as 90. True when that is unknown: for another kind of image, or for an
 * entry of an unknown kind. */
bool image_suits(const void *image, size_t size, unsigned sm);
