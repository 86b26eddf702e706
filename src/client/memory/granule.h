/* SPDX-License-Identifier: Apache-2.0 */
/* Granules of device memory and of pinned host memory; see heap.h. */
#pragma once

#include "heap.h"

/* Before the first granule of a client. */
void granules_init(void);

/* Addresses that a server gives out are checked: CUDA_ERROR_MPS_RPC_FAILURE where they are not in
 * the window, or in use. */
extern const struct heap_source device_granules, host_granules;

/* Whether the client has a descriptor of each granule in the heap, or in the heaps of all devices:
 * else some memory has gone with its server. No other thread is inside. */
bool granule_heap_is_whole(struct heap *heap);
bool granules_are_whole(void);

/* Shows a new server the memory that the last one made: of the heaps here, or one granule of
 * another heap, or one of host memory that is in no heap. No other thread is inside. Returns the
 * server's error. */
CUresult granule_replay_all(void);
CUresult granule_replay_device(const struct heap *heap, uint64_t address, uint64_t size, int fd);
CUresult granule_replay_host(uint64_t address, uint64_t size, int fd);
