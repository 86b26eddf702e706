/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranges that kernels may access: a sorted array with a reader-writer lock.
 *
 * Lookups are rare, because every warp caches its ranges. A removal changes the generation, which
 * invalidates these caches.
 */
#include "space.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tex.h"
#include "tex_table.h"

struct range {
    uint64_t start;
    uint64_t size;
    unsigned access;
    uint64_t owner; /* of memory from the kernels' malloc */
};

/* The heap memory of one owner's kernels. */
struct heap {
    struct heap *next;
    uint64_t owner;
    uint64_t used;
};

/* A range's access may also say that it came from the kernels' malloc. */
#define FROM_HEAP 4u
#define DEFAULT_HEAP (8u << 20)

struct sg_space {
    pthread_rwlock_t lock;
    struct heap *heaps;
    uint64_t heap_limit; /* of each */
    struct range *ranges;
    size_t count;
    size_t capacity;
    uint64_t generation;
    struct tex_table textures;
};

/* Of all spaces, so that what was remembered of one is never taken for another's. */
static uint64_t new_generation(void)
{
    static uint64_t last;
    return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

struct sg_space *sg_space_create(void)
{
    struct sg_space *space = calloc(1, sizeof(*space));
    if (!space)
        return NULL;
    pthread_rwlock_init(&space->lock, NULL);
    space->generation = new_generation();
    space->heap_limit = DEFAULT_HEAP;
    return space;
}

void sg_space_destroy(struct sg_space *space)
{
    if (!space)
        return;
    for (size_t i = 0; i < space->count; i++) {
        if (space->ranges[i].access & FROM_HEAP)
            free((void *)(uintptr_t)space->ranges[i].start);
    }
    while (space->heaps) {
        struct heap *heap = space->heaps;
        space->heaps = heap->next;
        free(heap);
    }
    pthread_rwlock_destroy(&space->lock);
    tex_table_fini(&space->textures);
    free(space->ranges);
    free(space);
}

/* The first range that starts above the address. */
static size_t upper_bound(const struct sg_space *space, uint64_t address)
{
    size_t low = 0, high = space->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (space->ranges[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int grow_space(struct sg_space *space)
{
    size_t capacity = space->capacity ? 2 * space->capacity : 16;
    struct range *ranges = realloc(space->ranges, capacity * sizeof(*ranges));
    if (!ranges)
        return -ENOMEM;
    space->ranges = ranges;
    space->capacity = capacity;
    return 0;
}

static int add_locked(struct sg_space *space, const struct range *range)
{
    size_t at = upper_bound(space, range->start);
    const struct range *before = at > 0 ? &space->ranges[at - 1] : NULL;
    const struct range *after = at < space->count ? &space->ranges[at] : NULL;
    if ((before && range->start - before->start < before->size) ||
        (after && after->start - range->start < range->size))
        return -EEXIST;
    if (space->count == space->capacity && grow_space(space) < 0)
        return -ENOMEM;
    memmove(&space->ranges[at + 1], &space->ranges[at], (space->count - at) * sizeof(*range));
    space->ranges[at] = *range;
    space->count++;
    return 0;
}

int sg_space_add(struct sg_space *space, uint64_t base, uint64_t size, unsigned access)
{
    if (size == 0 || base + size < base)
        return -EINVAL;
    struct range range = {.start = base, .size = size, .access = access};
    pthread_rwlock_wrlock(&space->lock);
    int result = add_locked(space, &range);
    pthread_rwlock_unlock(&space->lock);
    return result;
}

static struct heap **find_heap_locked(struct sg_space *space, uint64_t owner)
{
    struct heap **at = &space->heaps;
    while (*at && (*at)->owner != owner)
        at = &(*at)->next;
    return at;
}

/* Takes the bytes from the owner's heap, which begins with its first bytes. */
static bool heap_charge(struct sg_space *space, uint64_t owner, uint64_t size)
{
    uint64_t limit = __atomic_load_n(&space->heap_limit, __ATOMIC_RELAXED);
    pthread_rwlock_wrlock(&space->lock);
    struct heap **at = find_heap_locked(space, owner), *heap = *at;
    if (!heap && (heap = calloc(1, sizeof(*heap)))) {
        heap->owner = owner;
        *at = heap;
    }
    bool fits = heap && heap->used <= limit && size <= limit - heap->used;
    if (fits)
        heap->used += size;
    pthread_rwlock_unlock(&space->lock);
    return fits;
}

/* Of an owner that is forgotten there is nothing to give back to. */
static void heap_refund(struct sg_space *space, uint64_t owner, uint64_t size)
{
    pthread_rwlock_wrlock(&space->lock);
    struct heap *heap = *find_heap_locked(space, owner);
    if (heap)
        heap->used -= size;
    pthread_rwlock_unlock(&space->lock);
}

/* Only a range that has all the `kind` bits. */
static int remove_range(struct sg_space *space, uint64_t base, unsigned kind,
                        struct range *ret_range)
{
    int result = -ENOENT;
    pthread_rwlock_wrlock(&space->lock);
    size_t at = upper_bound(space, base);
    if (at > 0 && space->ranges[at - 1].start == base &&
        (space->ranges[at - 1].access & kind) == kind) {
        *ret_range = space->ranges[at - 1];
        memmove(&space->ranges[at - 1], &space->ranges[at],
                (space->count - at) * sizeof(*space->ranges));
        space->count--;
        __atomic_store_n(&space->generation, new_generation(), __ATOMIC_RELEASE);
        result = 0;
    }
    pthread_rwlock_unlock(&space->lock);
    return result;
}

int sg_space_remove(struct sg_space *space, uint64_t base)
{
    struct range range;
    return remove_range(space, base, 0, &range);
}

void sg_space_set_heap_limit(struct sg_space *space, uint64_t bytes)
{
    __atomic_store_n(&space->heap_limit, bytes, __ATOMIC_RELAXED);
}

static void *add_to_heap(struct sg_space *space, uint64_t owner, uint64_t size)
{
    void *memory = aligned_alloc(16, size);
    struct range range = {.start = (uintptr_t)memory,
                          .size = size,
                          .access = SG_READ | SG_WRITE | FROM_HEAP,
                          .owner = owner};
    if (!memory)
        return NULL;
    memset(memory, 0, size);
    pthread_rwlock_wrlock(&space->lock);
    int error = add_locked(space, &range);
    pthread_rwlock_unlock(&space->lock);
    if (!error)
        return memory;
    free(memory);
    return NULL;
}

uint64_t heap_allocate(struct sg_space *space, uint64_t owner, uint64_t size)
{
    if (size == 0 || size > __atomic_load_n(&space->heap_limit, __ATOMIC_RELAXED))
        return 0;
    size = (size + 15) & ~15ull;
    if (!heap_charge(space, owner, size))
        return 0;
    void *memory = add_to_heap(space, owner, size);
    if (!memory)
        heap_refund(space, owner, size);
    return (uintptr_t)memory;
}

bool heap_release(struct sg_space *space, uint64_t address)
{
    struct range range;
    if (remove_range(space, address, FROM_HEAP, &range) < 0)
        return false;
    heap_refund(space, range.owner, range.size);
    free((void *)(uintptr_t)address);
    return true;
}

/* Keeps the other ranges, in their order. */
static void free_ranges_locked(struct sg_space *space, uint64_t owner)
{
    size_t kept = 0;
    for (size_t i = 0; i < space->count; i++) {
        const struct range *range = &space->ranges[i];
        if ((range->access & FROM_HEAP) && range->owner == owner)
            free((void *)(uintptr_t)range->start);
        else
            space->ranges[kept++] = *range;
    }
    space->count = kept;
}

void sg_space_forget_owner(struct sg_space *space, uint64_t owner)
{
    pthread_rwlock_wrlock(&space->lock);
    struct heap **at = find_heap_locked(space, owner), *heap = *at;
    if (heap) {
        *at = heap->next;
        free_ranges_locked(space, owner);
        __atomic_store_n(&space->generation, new_generation(), __ATOMIC_RELEASE);
    }
    pthread_rwlock_unlock(&space->lock);
    free(heap);
}

const uint64_t *space_generation(const struct sg_space *space)
{
    return &space->generation;
}

bool space_lookup(struct sg_space *space, uint64_t address, struct range_cache *ret_range)
{
    bool found = false;
    pthread_rwlock_rdlock(&space->lock);
    size_t at = upper_bound(space, address);
    if (at > 0 && address - space->ranges[at - 1].start < space->ranges[at - 1].size) {
        const struct range *range = &space->ranges[at - 1];
        *ret_range = (struct range_cache){
            .start = range->start,
            .size = range->size,
            .access = range->access,
            .generation = space->generation,
        };
        found = true;
    }
    pthread_rwlock_unlock(&space->lock);
    return found;
}

bool sg_space_allows(struct sg_space *space, uint64_t address, uint64_t size, unsigned access)
{
    struct range_cache range;
    while (space_lookup(space, address, &range) && (range.access & access) == access) {
        uint64_t here = range.size - (address - range.start);
        if (size <= here)
            return true;
        size -= here;
        address += here;
    }
    return false;
}

int sg_space_add_texture(struct sg_space *space, const struct sg_texture *texture,
                         uint64_t *ret_number)
{
    pthread_rwlock_wrlock(&space->lock);
    int result = tex_table_add(&space->textures, texture, ret_number);
    pthread_rwlock_unlock(&space->lock);
    return result;
}

int sg_space_remove_texture(struct sg_space *space, uint64_t number)
{
    pthread_rwlock_wrlock(&space->lock);
    int result = tex_table_remove(&space->textures, number);
    pthread_rwlock_unlock(&space->lock);
    return result;
}

bool space_texture(struct sg_space *space, uint64_t number, struct sg_texture *ret_texture)
{
    pthread_rwlock_rdlock(&space->lock);
    const struct sg_texture *texture = tex_table_get(&space->textures, number);
    if (texture)
        *ret_texture = *texture;
    pthread_rwlock_unlock(&space->lock);
    return texture != NULL;
}
