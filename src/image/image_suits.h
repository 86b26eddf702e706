/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a device can run an image at all. The function holds no state and takes no lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* False when every entry of a container is for other devices than those of compute capability `sm`,
 * such as 90. True as well where that is not known: for an image of another kind, or an entry of a
 * kind that is not known here. */
bool image_suits(const void *container, size_t size, unsigned sm);
