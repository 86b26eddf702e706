/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the code in one part of an image may do. The functions answer true when they cannot tell.
 * They hold no state and take no lock.
 */
#pragma once

#include <stdbool.h>

#include "image_parts.h"

/* Whether kernels may call printf. */
bool image_part_prints(const struct image_part *part);

/* Whether kernels may allocate on the device's own heap. */
bool image_part_allocates(const struct image_part *part);

/* Whether there may be variables that outlive a kernel. */
bool image_part_has_variables(const struct image_part *part);
