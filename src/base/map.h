/* SPDX-License-Identifier: Apache-2.0 */
/* Hash map from uint64_t to a pointer. Open addressing with linear probing; removal moves the
 * entries behind it back, so there are no tombstones and lookups stay short. Not locked: the caller
 * sees to it that no thread changes a map while another uses it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct map_entry {
    uint64_t key;
    void *value; /* NULL = free place */
};

struct map {
    struct map_entry *entries;
    size_t capacity; /* power of two, or 0 before the first entry */
    size_t count;
};

/* An empty map; nothing is allocated yet. A zeroed struct map is one, too. */
void map_init(struct map *map);

/* Frees the map's own memory, not the values. */
void map_fini(struct map *map);

/* Adds `key`; `value`, which must not be NULL, stays the caller's. 0, -EEXIST (and no change) or
 * -ENOMEM. */
int map_put(struct map *map, uint64_t key, void *value);

/* The value of `key`, or NULL. */
void *map_get(const struct map *map, uint64_t key);

/* Takes `key` out and returns its value, or NULL when it was not there. */
void *map_remove(struct map *map, uint64_t key);

/* Walks the map: start with *cursor = 0; NULL at the end. The map must not change meanwhile. */
const struct map_entry *map_next(const struct map *map, size_t *cursor);
