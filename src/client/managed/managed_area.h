/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for managed allocations. An area is device memory at an address of the window, and host
 * memory of the same size at another one. The program uses a second view of the host memory, at the
 * address of the device memory. The pages of that view are watched (page_watch.h).
 */
#pragma once

#include "client_memory.h"

/* Called once while attaching. */
void area_init(void);

/* Whether managed memory moves in this process. Otherwise it stays with the host. */
bool area_is_possible(void);

/* Logs, once, by which means it moves, or why it does not where that might be a surprise. */
void area_explain(void);

/* The heap of areas of a device; that of areas which begin with memory of the host
 * (managed_exchange.h). Then the heap that an allocation is from, and the descriptor of the watch.
 * Only where it is possible. */
struct heap *area_heap(const struct device *device);
struct heap *area_hosted_heap(const struct device *device);
struct heap *area_heap_of(uint64_t address);
int area_watch(void);

/* Gives back all areas that nothing uses. Without any lock. */
void area_trim(void);

/* Where the host memory behind an address of an area is. */
uint64_t area_host_address(uint64_t address);

/* Puts a watched view of host memory at whole pages outside the window, which the caller has
 * mapped. The caller fills the pages. Waits for the server. 0 or -errno. */
int view_create(uint64_t address, uint64_t size, uint64_t *ret_host);

/* Ends a view; nothing copies its host memory any more. The caller unmaps the pages. */
void view_destroy(uint64_t address, uint64_t size, uint64_t host);

/* Shows a new server the memory. No other thread is inside. Returns the server's error. */
CUresult area_replay(void);

/* Around a fork; see client_memory.h. */
void area_before_fork(void);
void area_after_fork_in_parent(void);
void area_after_fork_in_child(void);
