/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bump allocator out of chunks that double as they are needed; a large request gets a chunk of
 * its own.
 */
#include "arena.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_SIZE 65536
#define ALIGNMENT 16

struct arena_chunk {
    struct arena_chunk *next;
    size_t used;
    size_t size;
    alignas(ALIGNMENT) unsigned char bytes[];
};

static struct arena_chunk *add_chunk(struct arena *arena, size_t size)
{
    if (size < CHUNK_SIZE)
        size = CHUNK_SIZE;
    struct arena_chunk *chunk = calloc(1, sizeof(*chunk) + size);
    if (!chunk)
        return NULL;
    chunk->size = size;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    return chunk;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    struct arena_chunk *chunk = arena->chunks;
    if (!chunk || chunk->size - chunk->used < size)
        chunk = add_chunk(arena, size);
    if (!chunk)
        return NULL;
    void *memory = chunk->bytes + chunk->used;
    chunk->used += size;
    return memory;
}

char *arena_copy_text(struct arena *arena, const char *text, size_t length)
{
    char *copy = arena_alloc(arena, length + 1);
    if (copy)
        memcpy(copy, text, length);
    return copy;
}

void arena_fini(struct arena *arena)
{
    while (arena->chunks) {
        struct arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        free(chunk);
    }
}

void *arena_grow(struct arena *arena, void *items, size_t count, size_t item_size)
{
    bool full = count == 0 || (count >= 4 && (count & (count - 1)) == 0);
    if (!full)
        return items;
    void *larger = arena_alloc(arena, (count ? 2 * count : 4) * item_size);
    if (larger && count)
        memcpy(larger, items, count * item_size);
    return larger;
}
