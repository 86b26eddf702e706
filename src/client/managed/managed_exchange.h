/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More managed memory than a device, or the limit of the client, has room for. Each area
 * (managed_area.h) has its pieces here, each of which is on the device, or out: then the host's
 * memory is in its place, at the same address, and kernels reach that. exchange_plan.h says which
 * pieces change places. They do so only while the client has no work, and what they contain stays.
 *
 * The functions wait for the server and are called without any lock, unless their comment says
 * otherwise.
 */
#pragma once

#include "exchange_plan.h"

/* Called once while attaching. */
void exchange_init(void);

/* A piece comes, with the descriptor of its memory, or -1. False when there is no memory for its
 * description. */
bool exchange_enter(const struct exchange_piece *piece, int fd);

/* The piece at an address goes: its size, and its descriptor for the caller to close. */
uint64_t exchange_leave(uint64_t address, int *ret_fd);

/* What the piece at an address is. No other thread is inside. */
void exchange_look(uint64_t address, struct exchange_piece *ret_piece, int *ret_fd);

/* Whether the client has a descriptor of each piece. No other thread is inside. */
bool exchange_is_whole(void);

/* A kernel with these parameters is about to be launched: pointers among them say what it uses. One
 * load while nothing is out. */
void exchange_use(const void *params, size_t size);

/* The program wants a range on the device, or on the host. */
void exchange_prefetch(uint64_t address, uint64_t size, bool on_device);

/* Where it would rather have a range, if that is most of its area. */
void exchange_prefer(uint64_t address, uint64_t size, enum exchange_wish wish);

/* Sends pieces out, so that `size` more bytes of the device are free: false when that is not
 * possible. */
bool exchange_make_room(uint32_t device, uint64_t size);

/* Around a fork. */
void exchange_before_fork(void);
void exchange_after_fork_in_parent(void);
void exchange_after_fork_in_child(void);
