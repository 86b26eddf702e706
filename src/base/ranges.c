/* SPDX-License-Identifier: Apache-2.0 */
/* Disjoint ranges in a sorted array. */
#include "ranges.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define RANGES_FIRST_CAPACITY 16u

/* How many ranges start below `address`: the index of the first one that does not. */
static size_t count_below(const struct ranges *ranges, uint64_t address)
{
    size_t low = 0, high = ranges->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges->sorted[middle].start < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int ensure_capacity(struct ranges *ranges)
{
    if (ranges->count < ranges->capacity)
        return 0;
    size_t capacity = ranges->capacity ? ranges->capacity * 2 : RANGES_FIRST_CAPACITY;
    struct range *bigger = realloc(ranges->sorted, capacity * sizeof(*bigger));
    if (!bigger)
        return -ENOMEM;
    ranges->sorted = bigger;
    ranges->capacity = capacity;
    return 0;
}

void ranges_init(struct ranges *ranges)
{
    *ranges = (struct ranges){0};
}

void ranges_fini(struct ranges *ranges)
{
    free(ranges->sorted);
    ranges_init(ranges);
}

int ranges_add(struct ranges *ranges, uint64_t start, uint64_t size, void *value)
{
    if (size == 0 || size - 1 > UINT64_MAX - start)
        return -EINVAL;
    size_t at = count_below(ranges, start);
    if (at > 0 && start - ranges->sorted[at - 1].start < ranges->sorted[at - 1].size)
        return -EEXIST;
    if (at < ranges->count && ranges->sorted[at].start - start < size)
        return -EEXIST;
    int rc = ensure_capacity(ranges);
    if (rc < 0)
        return rc;

    struct range *place = &ranges->sorted[at];
    memmove(place + 1, place, (ranges->count - at) * sizeof(*place));
    *place = (struct range){.start = start, .size = size, .value = value};
    ranges->count++;
    return 0;
}

int ranges_remove(struct ranges *ranges, uint64_t start, struct range *ret_removed)
{
    size_t at = count_below(ranges, start);
    if (at == ranges->count || ranges->sorted[at].start != start)
        return -ENOENT;
    struct range *place = &ranges->sorted[at];
    if (ret_removed)
        *ret_removed = *place;
    ranges->count--;
    memmove(place, place + 1, (ranges->count - at) * sizeof(*place));
    return 0;
}

const struct range *ranges_find(const struct ranges *ranges, uint64_t address)
{
    size_t at = count_below(ranges, address);
    if (at < ranges->count && ranges->sorted[at].start == address)
        return &ranges->sorted[at];
    if (at == 0)
        return NULL;
    const struct range *before = &ranges->sorted[at - 1];
    return address - before->start < before->size ? before : NULL;
}

const struct range *ranges_next(const struct ranges *ranges, uint64_t address)
{
    size_t at = count_below(ranges, address);
    return at < ranges->count ? &ranges->sorted[at] : NULL;
}

static bool align_up(uint64_t value, uint64_t alignment, uint64_t *ret_aligned)
{
    if (value > UINT64_MAX - (alignment - 1))
        return false;
    *ret_aligned = (value + alignment - 1) & ~(alignment - 1);
    return true;
}

int ranges_gap(const struct ranges *ranges, uint64_t start, uint64_t end, uint64_t size,
               uint64_t alignment, uint64_t *ret_address)
{
    const struct range *inside = ranges_find(ranges, start);
    uint64_t address = inside ? inside->start + inside->size : start;

    while (align_up(address, alignment, &address)) {
        const struct range *next = ranges_next(ranges, address), *at;
        uint64_t hole_end = next && next->start < end ? next->start : end;

        if ((at = ranges_find(ranges, address)) == NULL && hole_end >= address &&
            hole_end - address >= size) {
            *ret_address = address;
            return 0;
        }
        if (!at)
            at = next;
        if (!at || at->start >= end)
            return -ENOSPC;
        address = at->start + at->size;
    }
    return -ENOSPC;
}
