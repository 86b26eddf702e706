/* SPDX-License-Identifier: Apache-2.0 */
/* Where addresses lead, and the allocations behind them. */
#ifndef FUNNEL_CLIENT_MEMORY_H
#define FUNNEL_CLIENT_MEMORY_H

#include "client_context.h"
#include "cuda_graph.h"

enum place {
    PLACE_PAGEABLE, /* the program's own memory: the GPU does not reach it */
    PLACE_DEVICE,
    PLACE_PINNED,  /* host memory of the window */
    PLACE_NOWHERE, /* inside the window, and nothing is there; or a range that leaves its allocation
                    */
};

/* Where `size` bytes at an address are; size 0 asks about the address alone. */
enum place memory_place(uint64_t address, uint64_t size);

/* The allocation that contains an address. */
bool memory_find(uint64_t address, struct allocation *ret_allocation, enum place *ret_place);

/* Tells of a variable of a module, which lies outside the window. It stays the caller's, who keeps it
 * until it has been removed. */
void memory_add_global(struct allocation *variable);
void memory_remove_global(uint64_t address);

/* The variable that contains an address. memory_find() knows none, for they cannot be freed. */
bool memory_find_global(uint64_t address, struct allocation *ret_variable);

/* Granules of either kind; see heap.h. */
extern const struct heap_source device_granules, host_granules;

/* The descriptor that a command of kind `kind` makes the server send. The caller holds the socket
 * lock since before the command, so the message answers its request and no other. */
CUresult granule_receive(uint32_t kind, uint64_t value, int *ret_fd);

/* Shows a new server the memory that the last one made. */
CUresult granule_replay_all(void);
CUresult granule_replay_host(uint64_t address, uint64_t size, int fd);

/* NULL for addresses that are in no device's part of the window. */
/* Could this be set? If it is not empty, `ret_place` says where it is. */
CUresult memset_check(const CUDA_MEMSET_NODE_PARAMS *fill, enum place *ret_place);

struct device *memory_device_of(uint64_t address);

void memory_free_all(struct context *context);

/* Frees what cuMemFreeAsync has put off and whose time has come. `wait` waits for all of it. */
void memory_reclaim(struct device *device, bool wait);

/* An allocation on the calling thread's device; the caller has checked the size. */
CUresult memory_take_like(struct heap *heap, const struct allocation *like, uint64_t *ret_address);
CUresult memory_take(struct heap *heap, struct context *context, uint64_t size, unsigned flags,
                     bool managed, uint64_t *ret_address);

#endif
