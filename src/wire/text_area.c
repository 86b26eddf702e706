/* SPDX-License-Identifier: Apache-2.0 */
/* See text_area.h. Cursors count bytes for ever, so full and empty differ. */
#include "text_area.h"

#include <string.h>

_Static_assert((TEXT_AREA_BYTES & (TEXT_AREA_BYTES - 1)) == 0, "cursors wrap with the area");

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void copy_in(struct text_area *area, uint32_t at, const char *text, size_t size)
{
    size_t start = at % TEXT_AREA_BYTES, first = smaller(size, TEXT_AREA_BYTES - start);

    memcpy(area->data + start, text, first);
    memcpy(area->data, text + first, size - first);
}

static void copy_out(const struct text_area *area, uint32_t at, char *text, size_t size)
{
    size_t start = at % TEXT_AREA_BYTES, first = smaller(size, TEXT_AREA_BYTES - start);

    memcpy(text, area->data + start, first);
    memcpy(text + first, area->data, size - first);
}

size_t text_area_put(struct text_area *area, uint32_t *tail, const char *text, size_t size)
{
    uint32_t used = *tail - __atomic_load_n(&area->head, __ATOMIC_ACQUIRE);

    if (used > TEXT_AREA_BYTES)
        return 0;
    size = smaller(size, TEXT_AREA_BYTES - used);
    copy_in(area, *tail, text, size);
    *tail += (uint32_t)size;
    __atomic_store_n(&area->tail, *tail, __ATOMIC_RELEASE);
    return size;
}

size_t text_area_take(struct text_area *area, uint32_t *head, char *ret_text, size_t size)
{
    uint32_t there = __atomic_load_n(&area->tail, __ATOMIC_ACQUIRE) - *head;

    if (there > TEXT_AREA_BYTES)
        return 0;
    size = smaller(size, there);
    copy_out(area, *head, ret_text, size);
    *head += (uint32_t)size;
    __atomic_store_n(&area->head, *head, __ATOMIC_RELEASE);
    return size;
}
