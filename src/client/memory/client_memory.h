/* SPDX-License-Identifier: Apache-2.0 */
/* The heaps of this client, and what is taken from them. */
#pragma once

#include "address_map.h"
#include "client_context.h"

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

/* The heap in whose part of the window an address of the window is; NULL when there is none. */
struct heap *memory_heap_of(uint64_t address);

/* The device in whose part of the window an address of the window is; NULL when there is none. */
struct device *memory_device_of(uint64_t address);

/* Frees all that a context owns. Its work is done. */
void memory_free_all(struct context *context);

/* Frees what cuMemFreeAsync has put off and whose time has come. `wait` waits for all of it. */
void memory_free_pending(struct heap *heap, bool wait);

/* An allocation like this one, of `like->size` bytes; it gets an address and an id. The caller has
 * checked the size. CUDA_ERROR_OUT_OF_MEMORY, or the server's error. May wait for the server. */
CUresult memory_take_like(struct heap *heap, const struct allocation *like, uint64_t *ret_address);

/* The same for an allocation without anything special. */
CUresult memory_take(struct heap *heap, const struct memory_kind *kind, struct context *context,
                     uint64_t size, uint64_t *ret_address);

/* Gives back the allocation of a heap that starts at an address, which nothing uses any more. Other
 * processes cannot open it from now on. */
void memory_give(struct heap *heap, uint64_t address);
