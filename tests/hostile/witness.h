/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A well-behaved client beside the hostile ones: it adds vectors, and the sums must be right
 * whatever the others do.
 */
#pragma once

#include "peer.h"

struct witness {
    struct peer peer;
    uint64_t stream, module, function;
    uint64_t memory; /* a granule: three vectors */
    uint32_t seq, round;
};

/* Attaches and creates its objects. */
bool witness_start(struct witness *witness, const char *path);

/* The same where `peer` has attached, and the rest is zero. */
bool witness_begin(struct witness *witness);

/* Adds two vectors on the GPU; returns whether the sums are right. */
bool witness_is_well(struct witness *witness);

void witness_stop(struct witness *witness);

/* The steps, for peers that begin as valid clients. */
uint64_t peer_make_stream(struct peer *peer, uint32_t word);
CUresult peer_load_module(struct peer *peer, const void *image, uint64_t size,
                          uint64_t *ret_module);
CUresult peer_find_function(struct peer *peer, uint64_t module, const char *name,
                            uint64_t *ret_function);
CUresult peer_make_granule(struct peer *peer, uint64_t size, uint64_t *ret_address);

/* The same with its descriptor, which the caller closes; -1 where the server gives none. */
CUresult peer_take_granule(struct peer *peer, uint64_t size, uint64_t *ret_address, int *ret_fd);

/* Puts memory of the host in the place of a granule's, or device memory back. */
CUresult peer_move_granule(struct peer *peer, uint64_t address, bool host);

/* Shows the server host memory for the client's window. */
CUresult peer_bring_host_memory(struct peer *peer, int fd, uint64_t size, uint64_t *ret_address);

/* Host memory of the client's window, and its descriptor, which the caller closes. */
CUresult peer_make_host_granule(struct peer *peer, uint64_t size, uint64_t *ret_address,
                                int *ret_fd);

/* Launches a kernel that writes to the address, in a stream of its own: whether all was sent. */
bool peer_poke(struct peer *peer, uint64_t address);

/* PTX with vector_add(sum, a, b, n), spin(iterations) and poke(address). */
extern const char witness_ptx[];
