/* SPDX-License-Identifier: Apache-2.0 */
/* Cursors count bytes and are never reduced to offsets, so a full area and an empty one differ. */
#include "output_area.h"

#include <string.h>

_Static_assert((OUTPUT_AREA_BYTES & (OUTPUT_AREA_BYTES - 1)) == 0, "cursors wrap with the area");

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void copy_in(struct output_area *area, uint32_t at, const char *bytes, size_t size)
{
    size_t start = at % OUTPUT_AREA_BYTES, first = smaller(size, OUTPUT_AREA_BYTES - start);

    memcpy(area->data + start, bytes, first);
    memcpy(area->data, bytes + first, size - first);
}

static void copy_out(const struct output_area *area, uint32_t at, char *bytes, size_t size)
{
    size_t start = at % OUTPUT_AREA_BYTES, first = smaller(size, OUTPUT_AREA_BYTES - start);

    memcpy(bytes, area->data + start, first);
    memcpy(bytes + first, area->data, size - first);
}

size_t output_area_put(struct output_area *area, uint32_t *tail, const char *bytes, size_t size)
{
    uint32_t used = *tail - atomic_load_explicit(&area->head, memory_order_acquire);

    if (used > OUTPUT_AREA_BYTES)
        return 0;
    size = smaller(size, OUTPUT_AREA_BYTES - used);
    copy_in(area, *tail, bytes, size);
    *tail += (uint32_t)size;
    atomic_store_explicit(&area->tail, *tail, memory_order_release);
    return size;
}

size_t output_area_take(struct output_area *area, uint32_t *head, char *ret_bytes, size_t size)
{
    uint32_t there = atomic_load_explicit(&area->tail, memory_order_acquire) - *head;

    if (there > OUTPUT_AREA_BYTES)
        return 0;
    size = smaller(size, there);
    copy_out(area, *head, ret_bytes, size);
    *head += (uint32_t)size;
    atomic_store_explicit(&area->head, *head, memory_order_release);
    return size;
}
