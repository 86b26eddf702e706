/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More managed memory than the capacity of a device, or the limit of the client. Each area
 * (managed_area.h) has its chunks here. Each chunk is on the device, or out. Then memory of the
 * host is in its place, at the same address, and kernels reach that. exchange_plan.h decides which
 * chunks change places. They do so only while the client has no work, and keep their contents.
 *
 * The functions wait for the server, and the caller has no lock, unless their comments say
 * otherwise.
 */
#pragma once

#include "exchange_plan.h"

/* Called once while attaching. */
void exchange_init(void);

/* A chunk comes, with the descriptor of its memory, or -1. False when there is no memory for its
 * description. */
bool exchange_enter(const struct exchange_chunk *chunk, int fd);

/* The chunk at an address goes: its size, and its descriptor for the caller to close. */
uint64_t exchange_leave(uint64_t address, int *ret_fd);

/* The chunk at an address. No other thread is inside. */
void exchange_look(uint64_t address, struct exchange_chunk *ret_chunk, int *ret_fd);

/* Whether the client has a descriptor of each chunk. No other thread is inside. */
bool exchange_is_whole(void);

/* Gives up the memory of all chunks. No other thread is inside. */
void exchange_give_up(void);

/* A kernel with these parameters is about to be launched. The pointers among them tell which memory
 * it uses. One load while no chunk is out. */
void exchange_use(const void *params, size_t size);

/* The program wants a range on the device, or on the host. */
void exchange_prefetch(uint64_t address, uint64_t size, bool on_device);

/* The preferred location of a range, if that is most of its area. */
void exchange_prefer(uint64_t address, uint64_t size, enum exchange_wish wish);

/* Sends chunks out, so that `size` more bytes of the device are free: false when that is not
 * possible. */
bool exchange_free_capacity(uint32_t device, uint64_t size);

/* Around a fork. */
void exchange_before_fork(void);
void exchange_after_fork_in_parent(void);
void exchange_after_fork_in_child(void);
