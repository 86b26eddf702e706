/* SPDX-License-Identifier: Apache-2.0 */
/* Typed, generation-tagged handles for objects: a freed or forged handle is found out.
 *
 *     bits 63..56   55..48   47..24       23..0
 *          0        type     generation   index
 *
 * A type is never 0, so no handle is ever 0, 1 or 2 (CUDA's NULL, legacy and per-thread stream). So
 * a handle may stand in a pointer-sized opaque CUDA type.
 *
 * One side mints handles (handles_add), and the other side enters the minted ones in a table of its
 * own (handles_put). One table does only one of the two. Adding and removing lock the table;
 * getting does not. An entry is published by its handle word, which is written last and cleared
 * first. Entries never move, because storage grows in chunks. What handles_get() returns is not
 * protected against its owner freeing it: that order is the caller's. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define HANDLE_TYPE_MAX 255u
#define HANDLE_INDEX_MAX 0xffffffu

#define HANDLE_CHUNK_ENTRIES 1024u

struct handle_entry {
    _Atomic uint64_t handle; /* 0 = not live */
    void *_Atomic object;
    uint32_t generation; /* of the last handle minted here */
    uint32_t next_free;
};

struct handle_chunk {
    struct handle_entry entries[HANDLE_CHUNK_ENTRIES];
};

struct handles {
    pthread_mutex_t lock;
    struct handle_chunk *_Atomic
        *chunks;          /* each written once, with release order, under the lock */
    uint32_t limit;       /* indices are below it */
    uint32_t used;        /* indices from here on were never minted */
    uint32_t oldest_free; /* queue of freed indices, linked through the entries */
    uint32_t newest_free;
    uint32_t free_count;
    uint32_t count;
};

static inline unsigned handle_type(uint64_t handle)
{
    return (unsigned)(handle >> 48);
}

static inline uint32_t handle_generation(uint64_t handle)
{
    return (uint32_t)(handle >> 24) & 0xffffffu;
}

static inline uint32_t handle_index(uint64_t handle)
{
    return (uint32_t)handle & HANDLE_INDEX_MAX;
}

/* A table of at most `limit` live handles (1 .. HANDLE_INDEX_MAX + 1): 0, -EINVAL or -ENOMEM. */
int handles_init(struct handles *handles, uint32_t limit);

/* Frees the table, not the objects. No thread may use it any more. */
void handles_fini(struct handles *handles);

/* While there are fresh indices, a freed one rests until this many others were freed. */
#define HANDLES_REST 1024u

/* Mints a handle for `object` (not NULL). Takes the rested index that was freed longest ago, so a
 * stale handle stays recognizable for long. A peer may hear of handles from several threads. It
 * still hears of the end of one before it hears of its successor. Returns 0 when full or out of
 * memory. */
uint64_t handles_add(struct handles *handles, unsigned type, void *object);

/* Enters a handle minted elsewhere, perhaps by a liar: 0. -EINVAL: it is not a handle. -ENOSPC: its
 * index is at or above the limit. -EEXIST: its index is in use. Or -ENOMEM. */
int handles_put(struct handles *handles, uint64_t handle, void *object);

/* The entry of an index, NULL when there was none so far. Pairs with the release in
 * make_entry_locked(): a chunk is seen zeroed or not at all. */
static inline struct handle_entry *handles_entry(const struct handles *handles, uint32_t index)
{
    if (index >= handles->limit)
        return NULL;
    struct handle_chunk *chunk =
        atomic_load_explicit(&handles->chunks[index / HANDLE_CHUNK_ENTRIES], memory_order_acquire);
    return chunk ? &chunk->entries[index % HANDLE_CHUNK_ENTRIES] : NULL;
}

/* Its object while it is live with this handle, else NULL: the handle word is looked at before and
 * after the object. The acquires pair with the releases in publish() and retire(). */
static inline void *handle_entry_object(const struct handle_entry *entry, uint64_t handle)
{
    if (atomic_load_explicit(&entry->handle, memory_order_acquire) != handle)
        return NULL;
    void *object = atomic_load_explicit(&entry->object, memory_order_acquire);
    return atomic_load_explicit(&entry->handle, memory_order_acquire) == handle ? object : NULL;
}

/* The object, or NULL unless type, generation and index all match. Lock-free. */
static inline void *handles_get(const struct handles *handles, unsigned type, uint64_t handle)
{
    const struct handle_entry *entry = NULL;

    if (type != 0 && handle_type(handle) == type)
        entry = handles_entry(handles, handle_index(handle));
    return entry ? handle_entry_object(entry, handle) : NULL;
}

/* The same for a handle of which the low half is known, and so a part of its generation. */
static inline void *handles_get_by_half(const struct handles *handles, unsigned type, uint32_t half)
{
    const struct handle_entry *entry = handles_entry(handles, half & HANDLE_INDEX_MAX);
    uint64_t handle = entry ? atomic_load_explicit(&entry->handle, memory_order_acquire) : 0;

    return (uint32_t)handle == half ? handles_get(handles, type, handle) : NULL;
}

/* Ends the handle and returns its object; NULL as for handles_get(). Of two threads that remove the
 * same handle, one gets the object. */
void *handles_remove(struct handles *handles, unsigned type, uint64_t handle);

/* How many handles are live. */
uint32_t handles_count(struct handles *handles);

/* Calls `visit` for each live handle, without the lock: it may add and remove. */
void handles_for_each(struct handles *handles,
                      void (*visit)(void *context, uint64_t handle, void *object), void *context);
