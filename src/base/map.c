/* SPDX-License-Identifier: Apache-2.0 */
/* Hash map from uint64_t to a pointer: linear probing at a load of at most three quarters. */
#include "map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define MAP_FIRST_CAPACITY 16u

/* Where the search for `key` begins. Keys are often addresses or handles, whose low bits say
 * little, hence the multiplications. */
static size_t home_of(const struct map *map, uint64_t key)
{
    key ^= key >> 33;
    key *= 0xff51afd7ed558ccdull;
    key ^= key >> 33;
    key *= 0xc4ceb9fe1a85ec53ull;
    key ^= key >> 33;
    return (size_t)key & (map->capacity - 1);
}

/* The place of `key`, or the free place where it would go. There always is a free one. */
static struct map_entry *place_of(const struct map *map, uint64_t key)
{
    size_t at = home_of(map, key);
    while (map->entries[at].value && map->entries[at].key != key)
        at = (at + 1) & (map->capacity - 1);
    return &map->entries[at];
}

static int grow_map(struct map *map)
{
    struct map bigger = {.capacity = map->capacity ? map->capacity * 2 : MAP_FIRST_CAPACITY};
    bigger.entries = calloc(bigger.capacity, sizeof(*bigger.entries));
    if (!bigger.entries)
        return -ENOMEM;
    bigger.count = map->count;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->entries[i].value)
            *place_of(&bigger, map->entries[i].key) = map->entries[i];
    free(map->entries);
    *map = bigger;
    return 0;
}

void map_init(struct map *map)
{
    *map = (struct map){0};
}

void map_fini(struct map *map)
{
    free(map->entries);
    map_init(map);
}

int map_put(struct map *map, uint64_t key, void *value)
{
    if (map_get(map, key))
        return -EEXIST;
    if ((map->count + 1) * 4 > map->capacity * 3) {
        int rc = grow_map(map);
        if (rc < 0)
            return rc;
    }
    *place_of(map, key) = (struct map_entry){.key = key, .value = value};
    map->count++;
    return 0;
}

void *map_get(const struct map *map, uint64_t key)
{
    return map->capacity ? place_of(map, key)->value : NULL;
}

/* Whether the entry at `at` may move back to `gap`: not if that lies before its home. */
static bool may_move_back(const struct map *map, size_t gap, size_t at)
{
    size_t mask = map->capacity - 1;
    size_t probed = (at - home_of(map, map->entries[at].key)) & mask;
    return probed >= ((at - gap) & mask);
}

/* Every search passes over full places only, so a gap in a run is closed from behind. */
static void close_gap(struct map *map, size_t gap)
{
    size_t mask = map->capacity - 1;
    for (size_t at = (gap + 1) & mask; map->entries[at].value; at = (at + 1) & mask) {
        if (!may_move_back(map, gap, at))
            continue;
        map->entries[gap] = map->entries[at];
        gap = at;
    }
    map->entries[gap] = (struct map_entry){0};
}

void *map_remove(struct map *map, uint64_t key)
{
    void *value = map_get(map, key);
    if (!value)
        return NULL;
    close_gap(map, (size_t)(place_of(map, key) - map->entries));
    map->count--;
    return value;
}

const struct map_entry *map_next(const struct map *map, size_t *cursor)
{
    while (*cursor < map->capacity) {
        const struct map_entry *entry = &map->entries[(*cursor)++];
        if (entry->value)
            return entry;
    }
    return NULL;
}
