/* SPDX-License-Identifier: Apache-2.0 */
/* Ordered set of ranges [start, start + size) that do not overlap, each with a value: which
 * allocation does this address belong to?
 *
 * A sorted array: lookups are binary searches over memory that is side by side, and allocations
 * mostly come in ascending order, which only appends. Not locked: the caller sees to it that no
 * thread changes a set while another uses it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct range {
    uint64_t start;
    uint64_t size;
    void *value;
};

struct ranges {
    struct range *sorted;
    size_t count, capacity;
};

/* An empty set; nothing is allocated yet. A zeroed struct ranges is one, too. */
void ranges_init(struct ranges *ranges);

/* Frees the set's own memory, not the values. */
void ranges_fini(struct ranges *ranges);

/* 0; -EEXIST = overlaps a range of the set; -EINVAL = empty, or past the end of the address
 * space; -ENOMEM. */
int ranges_add(struct ranges *ranges, uint64_t start, uint64_t size, void *value);

/* Removes the range that starts exactly at `start`: 0 and what it was, or -ENOENT.
 * ret_removed may be NULL. */
int ranges_remove(struct ranges *ranges, uint64_t start, struct range *ret_removed);

/* The range that contains `address`, or NULL. Valid until the next add or remove. */
const struct range *ranges_find(const struct ranges *ranges, uint64_t address);

/* The first range that starts at or behind `address`, or NULL. To walk all of them: ask for 0, then
 * each time for the last one's start + 1. */
const struct range *ranges_next(const struct ranges *ranges, uint64_t address);

/* The lowest multiple of `alignment` (a power of two) from `start` on behind which `size` addresses
 * below `end` are free: 0, or -ENOSPC. */
int ranges_gap(const struct ranges *ranges, uint64_t start, uint64_t end, uint64_t size,
               uint64_t alignment, uint64_t *ret_address);
