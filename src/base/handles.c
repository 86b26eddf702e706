/* SPDX-License-Identifier: Apache-2.0 */
/* The handle table.
 *
 * An entry is live while its handle word is not 0. Publishing writes the object, then the handle
 * word. Ending clears the handle word, and only then may the entry be published again with another
 * object. A reader therefore reads handle word, object, handle word. When both looks at the word
 * give the handle it asked for, the object between them belongs to it. */
#include "handles.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "cleanup.h"

#define NO_INDEX UINT32_MAX
#define GENERATION_MAX 0xffffffu

static uint64_t compose(unsigned type, uint32_t generation, uint32_t index)
{
    return (uint64_t)type << 48 | (uint64_t)generation << 24 | index;
}

static uint32_t chunk_count(const struct handles *handles)
{
    return (handles->limit + HANDLE_CHUNK_ENTRIES - 1) / HANDLE_CHUNK_ENTRIES;
}

/* Pairs with the releases in publish_entry() and retire(). */
static uint64_t load_handle(const struct handle_entry *entry)
{
    return atomic_load_explicit(&entry->handle, memory_order_acquire);
}

/* The object is stored with release too: a reader that sees it also sees that the entry's former
 * handle has ended. */
static void publish_entry(struct handle_entry *entry, uint64_t handle, void *object)
{
    atomic_store_explicit(&entry->object, object, memory_order_release);
    atomic_store_explicit(&entry->handle, handle, memory_order_release);
}

static void retire(struct handle_entry *entry)
{
    atomic_store_explicit(&entry->handle, 0, memory_order_release);
}

int handles_init(struct handles *handles, uint32_t limit)
{
    if (limit == 0 || limit > HANDLE_INDEX_MAX + 1)
        return -EINVAL;
    *handles = (struct handles){.limit = limit, .oldest_free = NO_INDEX, .newest_free = NO_INDEX};
    handles->chunks = calloc(chunk_count(handles), sizeof(struct handle_chunk *));
    if (!handles->chunks)
        return -ENOMEM;
    pthread_mutex_init(&handles->lock, NULL);
    return 0;
}

void handles_fini(struct handles *handles)
{
    if (!handles->chunks)
        return;
    for (uint32_t i = 0; i < chunk_count(handles); i++)
        free(handles->chunks[i]);
    free(handles->chunks);
    handles->chunks = NULL;
    pthread_mutex_destroy(&handles->lock);
}

/* The entry of `index` (below the limit), with its chunk made if needed; NULL = out of memory. */
static struct handle_entry *make_entry_locked(struct handles *handles, uint32_t index)
{
    struct handle_entry *entry = handles_entry(handles, index);
    if (entry)
        return entry;
    struct handle_chunk *chunk = calloc(1, sizeof(*chunk));
    if (!chunk)
        return NULL;
    atomic_store_explicit(&handles->chunks[index / HANDLE_CHUNK_ENTRIES], chunk,
                          memory_order_release);
    return &chunk->entries[index % HANDLE_CHUNK_ENTRIES];
}

static uint32_t take_fresh_index_locked(struct handles *handles)
{
    if (handles->used == handles->limit || !make_entry_locked(handles, handles->used))
        return NO_INDEX;
    return handles->used++;
}

static uint32_t take_freed_index_locked(struct handles *handles)
{
    uint32_t index = handles->oldest_free;
    if (index == NO_INDEX)
        return NO_INDEX;
    handles->oldest_free = handles_entry(handles, index)->next_free;
    if (handles->oldest_free == NO_INDEX)
        handles->newest_free = NO_INDEX;
    handles->free_count--;
    return index;
}

/* NO_INDEX = full or out of memory. */
static uint32_t take_index_locked(struct handles *handles)
{
    uint32_t index = NO_INDEX;
    if (handles->free_count <= HANDLES_REST)
        index = take_fresh_index_locked(handles);
    return index != NO_INDEX ? index : take_freed_index_locked(handles);
}

/* Only indices that were minted here are queued for minting again. */
static void give_index_locked(struct handles *handles, uint32_t index)
{
    if (index >= handles->used)
        return;
    handles_entry(handles, index)->next_free = NO_INDEX;
    if (handles->newest_free == NO_INDEX)
        handles->oldest_free = index;
    else
        handles_entry(handles, handles->newest_free)->next_free = index;
    handles->newest_free = index;
    handles->free_count++;
}

uint64_t handles_add(struct handles *handles, unsigned type, void *object)
{
    if (type == 0 || type > HANDLE_TYPE_MAX || !object)
        return 0;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&handles->lock);
    uint32_t index = take_index_locked(handles);
    if (index == NO_INDEX)
        return 0;
    struct handle_entry *entry = handles_entry(handles, index);
    entry->generation = entry->generation % GENERATION_MAX + 1;
    uint64_t handle = compose(type, entry->generation, index);
    publish_entry(entry, handle, object);
    handles->count++;
    return handle;
}

int handles_put(struct handles *handles, uint64_t handle, void *object)
{
    unsigned type = handle_type(handle);
    if (type == 0 || type > HANDLE_TYPE_MAX || handle_generation(handle) == 0 || !object)
        return -EINVAL;
    if (handle_index(handle) >= handles->limit)
        return -ENOSPC;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&handles->lock);
    struct handle_entry *entry = make_entry_locked(handles, handle_index(handle));
    if (!entry)
        return -ENOMEM;
    if (load_handle(entry) != 0)
        return -EEXIST;
    publish_entry(entry, handle, object);
    handles->count++;
    return 0;
}

void *handles_remove(struct handles *handles, unsigned type, uint64_t handle)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&handles->lock);
    void *object = handles_get(handles, type, handle);
    if (!object)
        return NULL;
    retire(handles_entry(handles, handle_index(handle)));
    give_index_locked(handles, handle_index(handle));
    handles->count--;
    return object;
}

uint32_t handles_count(struct handles *handles)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&handles->lock);
    return handles->count;
}

void handles_for_each(struct handles *handles,
                      void (*visit)(void *context, uint64_t handle, void *object), void *context)
{
    for (uint32_t index = 0; index < handles->limit; index++) {
        const struct handle_entry *entry = handles_entry(handles, index);
        if (!entry) {
            index |= HANDLE_CHUNK_ENTRIES - 1; /* no chunk: on to the next one */
            continue;
        }
        uint64_t handle = load_handle(entry);
        void *object = handles_get(handles, handle_type(handle), handle);
        if (object)
            visit(context, handle, object);
    }
}
