/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that travel beside the ring, over the socket to the server. From any thread. */
#pragma once

#include <stdint.h>

#include "cuda_result.h"

/* Sends a descriptor before the command that is to use it; the command names it by *ret_blob. The
 * caller keeps `fd`. `size` is in bytes; 0 = the server finds out. CUDA_ERROR_MPS_RPC_FAILURE when
 * the server is gone. */
CUresult client_send_descriptor(int fd, uint64_t size, uint32_t *ret_blob);

/* The result of a command that names a descriptor, which was sent when client->socket_inode was
 * this. CUDA_ERROR_NOT_FOUND where it failed after that server had ended: the next one waits in
 * vain for the descriptor. */
CUresult client_descriptor_result(uint64_t connection, CUresult result);

/* The descriptor that a command of this kind makes the server send, for the caller to close. The
 * caller holds client->socket_lock since before the command, so the message answers its request and
 * no other. CUDA_ERROR_MPS_RPC_FAILURE when something else comes, or nothing for ten seconds. */
CUresult client_receive_descriptor(uint32_t kind, uint64_t value, int *ret_fd);

/* The same for a granule of device memory; -1 where the server keeps its descriptor to itself. */
CUresult client_receive_granule(uint64_t address, int *ret_fd);

/* The message behind LEAVE_GRANTED (region.h): the file of what the client's variables hold, for
 * the caller to close, and its size; -1 and 0 where there is none. With it comes a DEVICE_CHANGE
 * (attach.h), or 0. */
CUresult client_receive_variables(int *ret_fd, uint64_t *ret_size, uint32_t *ret_device_change);
