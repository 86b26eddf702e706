/* SPDX-License-Identifier: Apache-2.0 */
/* A box and where it lies, on either side of a copy. Width, pitch and slice are bytes; height
 * counts rows, depth layers. */
#pragma once

#include <stdint.h>

struct box_side {
    uint64_t address; /* of the first byte */
    uint64_t pitch;   /* from row to row */
    uint64_t slice;   /* from layer to layer */
};

struct box {
    struct box_side to, from;
    uint64_t width, height, depth;
};
