/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One kind of memory: granules from the server, cut into allocations. Device memory has a heap for
 * each device, pinned host memory has one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cuda_result.h"
#include "lock.h"
#include "map.h"
#include "suballoc.h"

struct context;
struct memory_kind;
struct cuda_advice;

/* What the program asked for. Found by any address inside it. */
struct allocation {
    uint64_t address;
    uint64_t size;
    uint64_t id;
    const struct memory_kind *kind; /* see address_map.h */
    struct context *context;
    unsigned flags;             /* of host memory: CU_MEMHOSTALLOC_... */
    struct cuda_advice *advice; /* of managed memory; goes with it */
    uint64_t host, device;      /* of registered memory: its two addresses; see host_register.h */
    uint64_t pool;              /* handle of the pool it is from, or 0 */
};

/* How a heap gets its granules. `create` makes one of `size` bytes, waits for the server and is
 * called without the lock; the descriptor is then the heap's. `release` gives one back. */
struct heap_source {
    CUresult (*create)(uint32_t part, uint64_t size, uint64_t *ret_address, int *ret_fd);
    void (*release)(uint64_t address, uint64_t size);
};

struct heap {
    struct lock lock;
    struct suballoc blocks;
    struct map granules; /* address -> size, and the descriptor, which keeps the memory alive */
    const struct heap_source *source;
    uint32_t part;
    uint64_t granularity;
};

/* `part` is that of the window, of a device; granules are multiples of `granularity` bytes. */
void heap_init(struct heap *heap, const struct heap_source *source, uint32_t part,
               uint64_t granularity);

/* Takes memory for `allocation`, which the caller has made with malloc() and filled but for the
 * address. The heap keeps the pointer until heap_give(). CUDA_ERROR_OUT_OF_MEMORY; may wait for the
 * server. */
CUresult heap_take(struct heap *heap, struct allocation *allocation);

/* Gives back the allocation that starts at `address` and returns it for the caller to free; NULL
 * when none does. Nothing on the device uses it any more. */
struct allocation *heap_give(struct heap *heap, uint64_t address);

/* A copy of the allocation that contains `address`: false when none does. */
bool heap_find(struct heap *heap, uint64_t address, struct allocation *ret_allocation);

/* A copy of the first allocation of `context` at or above `address`: false when there is none. */
bool heap_next(struct heap *heap, const struct context *context, uint64_t address,
               struct allocation *ret_allocation);

/* Bytes that the server counts for this client and that no allocation uses. */
uint64_t heap_unused(struct heap *heap);

/* Gives back granules that are wholly free until at most `keep` bytes of them are left. */
void heap_trim(struct heap *heap, uint64_t keep);

/* Calls `visit` for each granule until it fails, and returns its result. No other thread is
 * inside. */
CUresult heap_for_each_granule(struct heap *heap,
                               CUresult (*visit)(const struct heap *heap, uint64_t address,
                                                 uint64_t size, int fd));

/* In a child of fork: closes the descriptors, which hold the parent's memory. */
void heap_after_fork(struct heap *heap);
