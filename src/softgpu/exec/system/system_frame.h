/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments and results of calls into the system, at offsets in the caller's frame. What does not
 * lie in a lane's local memory is read as 0, and not written.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#include "block_state.h"

static inline unsigned char *frame_place(struct warp *warp, uint32_t offset, unsigned lane,
                                         size_t size)
{
    const uint32_t *stack = reg(warp, warp->block->grid->program->stack_pointer);
    uint64_t at = (uint64_t)stack[lane] + offset;

    return at + size <= warp->local_stride
               ? (unsigned char *)(uintptr_t)(warp->local + lane * warp->local_stride + at)
               : NULL;
}

static inline uint64_t frame_argument(struct warp *warp, uint32_t offset, unsigned lane)
{
    uint64_t value = 0;
    const unsigned char *place = frame_place(warp, offset, lane, sizeof(value));

    if (place)
        memcpy(&value, place, sizeof(value));
    return value;
}

static inline void frame_set_result(struct warp *warp, uint32_t offset, unsigned lane,
                                    const void *value, size_t size)
{
    unsigned char *place = frame_place(warp, offset, lane, size);

    if (place)
        memcpy(place, value, size);
}
