/* SPDX-License-Identifier: Apache-2.0 */
/* Granules of device memory and of pinned host memory; see heap.h. */
#pragma once

#include "heap.h"

/* Before the first granule of a client. */
void granules_init(void);

/* Addresses that a server gives out are checked: CUDA_ERROR_MPS_RPC_FAILURE where they are not in
 * the window, or in use. */
extern const struct heap_source device_granules, host_granules;

/* A granule of device memory, or of host memory that kernels reach at such an address. It may be
 * one of several granules in a row. It begins at *address, or for 0 where `span` bytes are free;
 * the first granule of the row says how many. Waits for the server. */
CUresult granule_create_adjacent(uint32_t part, bool host, uint64_t size, uint64_t span,
                                 uint64_t *address, int *ret_fd);

/* Puts memory of the host in the place of a device granule's, or device memory back, with the same
 * contents. The descriptor, which may be -1, takes the place of the granule's old one.
 * CUDA_ERROR_NOT_READY while the client has work; CUDA_ERROR_OUT_OF_MEMORY. */
CUresult granule_move(uint64_t address, bool host, int *ret_fd);

/* Host memory that is a part of a file that others share, here and for the device. It is released
 * as a granule of host_granules; the descriptor stays the caller's. CUDA_ERROR_NOT_SUPPORTED where
 * the server does not take such a file. Waits for the server. */
CUresult granule_create_of_file(int fd, uint64_t offset, uint64_t size, uint64_t *ret_address);

/* A number that grows when a granule goes. */
uint64_t granule_releases(void);

/* Whether the inbox of a granule of device memory, which may be -1, has a descriptor of it. */
bool granule_is_kept(int fd);

/* Takes the descriptor out of an inbox, and hands it to a new server by `adopt`, which gets the
 * inbox of that one. If that fails, the descriptor is in the inbox again, for the server after
 * that. CUDA_ERROR_NOT_FOUND when there is none. */
typedef CUresult granule_adopt(const void *context, int memory, int inbox);
CUresult granule_hand_on(int fd, granule_adopt *adopt, const void *context);

/* While the client moves to another device, such descriptors are those of the copies there
 * (attach.h). */
void granules_take_copies(bool copies);

/* Whether the client has a descriptor of each granule in the heaps of all devices: else some memory
 * has gone with its server. No other thread is inside. */
bool granules_are_whole(void);

/* The client gives up memory that its server cannot use any more. It takes what keeps it out of an
 * inbox, which may be -1, or out of the inboxes of the heaps of all devices. No other thread is
 * inside. */
void granule_give_up(int fd);
void granules_give_up(void);

/* The inbox of a new server takes the place of the last one's, which is empty now. It is of a
 * granule, or of memory of cuMemCreate by its handle. */
CUresult granule_receive_inbox(uint64_t address, int fd);

/* Gives a new server the memory of the last one. The first does so for the heaps here. The others
 * do it for one granule of another heap, and for one of host memory that is in no heap. No other
 * thread is inside. Returns the server's error. */
CUresult granule_replay_all(void);
CUresult granule_replay_device(const struct heap *heap, uint64_t address, uint64_t size, int fd);
CUresult granule_replay_hosted(const struct heap *heap, uint64_t address, uint64_t size, int fd);
CUresult granule_replay_host(uint64_t address, uint64_t size, int fd);
CUresult granule_replay_file(uint64_t address, uint64_t size, int fd, uint64_t offset);
