/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of this client: its heaps, the allocations behind addresses, and where those lead. */
#pragma once

#include "client_context.h"
#include "heap.h"

enum place {
    PLACE_PAGEABLE, /* the program's own memory: the GPU does not reach it */
    PLACE_DEVICE,
    PLACE_PINNED,  /* host memory of the window */
    PLACE_NOWHERE, /* in the window where nothing is, or a range that leaves its allocation */
};

/* Called once while attaching: 0, or -1 when there is no memory for it. */
int memory_init(void);

/* Around a fork: the locks of the heaps are held from the first to the second or third. A child
 * gives up the parent's memory, but gets registered memory as a copy of its own. */
void memory_before_fork(void);
void memory_after_fork_in_parent(void);
void memory_after_fork_in_child(void);

/* The heap of a device, and that of pinned host memory. */
struct heap *memory_device_heap(const struct device *device);
struct heap *memory_host_heap(void);

/* Where `size` bytes at an address are; size 0 asks about the address alone. Takes locks of this
 * folder for a moment, as memory_find(). */
enum place memory_place(uint64_t address, uint64_t size);

/* A copy of the allocation that contains an address: false when there is none. */
bool memory_find(uint64_t address, struct allocation *ret_allocation, enum place *ret_place);

/* Enters a variable of a module, which lies outside the window. It stays the caller's, who keeps it
 * until it has been removed. Takes client->lock, as the next two. */
void memory_add_global(struct allocation *variable);
void memory_remove_global(uint64_t address);

/* A copy of the variable that contains an address: false when none does. memory_find() knows none,
 * for they cannot be freed. */
bool memory_find_global(uint64_t address, struct allocation *ret_variable);

/* The device in whose part of the window an address of the window is; NULL when there is none. */
struct device *memory_device_of(uint64_t address);

/* Frees all that a context owns. Its work is done. */
void memory_free_all(struct context *context);

/* Frees what cuMemFreeAsync has put off and whose time has come. `wait` waits for all of it. */
void memory_reclaim(struct device *device, bool wait);

/* An allocation like this one, of `like->size` bytes; it gets an address and an id. The caller has
 * checked the size. CUDA_ERROR_OUT_OF_MEMORY, or the server's error. May wait for the server. */
CUresult memory_take_like(struct heap *heap, const struct allocation *like, uint64_t *ret_address);

/* The same for an allocation without anything special. */
CUresult memory_take(struct heap *heap, struct context *context, uint64_t size, unsigned flags,
                     bool managed, uint64_t *ret_address);
