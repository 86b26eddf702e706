/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bump allocator: everything a parsed module owns is freed at once, so nothing in it needs an
 * owner.
 */
#pragma once

#include <stddef.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks;
};

/* Zeroed memory, aligned for any type; NULL when there is none. */
void *arena_alloc(struct arena *arena, size_t size);
char *arena_copy_text(struct arena *arena, const char *text, size_t length);
void arena_fini(struct arena *arena);

/* For arrays that grow by one: `items` with capacity for one more, moved when `count` has reached a
 * power of two. */
void *arena_grow(struct arena *arena, void *items, size_t count, size_t item_size);
