/* SPDX-License-Identifier: Apache-2.0 */
/* See line_ring.h. */
#include "line_ring.h"

#include <stdio.h>
#include <string.h>

#include "cleanup.h"

void line_ring_add(struct line_ring *ring, const char *line)
{
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&ring->lock);

    snprintf(ring->lines[ring->count++ % LINE_RING_LINES], LINE_RING_LENGTH, "%.*s\n",
             (int)LINE_RING_LENGTH - 2, line);
}

uint32_t line_ring_next(struct line_ring *ring)
{
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&ring->lock);

    return ring->count;
}

static const char *line_at(const struct line_ring *ring, uint32_t number)
{
    return ring->lines[number % LINE_RING_LINES];
}

/* The first of the lines from `from` on that are there and that fit, with their NUL. */
static uint32_t first_that_fits(const struct line_ring *ring, uint32_t from, size_t capacity)
{
    uint32_t first = ring->count;
    size_t used = 1;

    while (first > from && ring->count - first < LINE_RING_LINES) {
        used += strlen(line_at(ring, first - 1));
        if (used > capacity)
            break;
        first--;
    }
    return first;
}

size_t line_ring_copy(struct line_ring *ring, uint32_t from, char *ret_text, size_t capacity,
                      uint32_t *ret_next)
{
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&ring->lock);
    size_t size = 0;

    for (uint32_t i = first_that_fits(ring, from, capacity); i < ring->count; i++) {
        size_t length = strlen(line_at(ring, i));

        memcpy(ret_text + size, line_at(ring, i), length);
        size += length;
    }
    if (capacity)
        ret_text[size] = '\0';
    *ret_next = ring->count;
    return size;
}
