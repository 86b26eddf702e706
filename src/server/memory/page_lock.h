/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page-locks memory for the GPU. While the driver locks pages, it blocks the launches of all
 * clients. So it locks memory in chunks, and launches run in between. Kernels do not notice the
 * borders of chunks, but NVIDIA's driver refuses copies across one: see copy_chunks.h.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader.h"

struct gate;

/* On an H200 a chunk of this size blocks launches for about half a millisecond. */
#define PAGE_LOCK_CHUNK (8ull << 20)

struct page_lock_options {
    bool whole;     /* lock each range at once: FUNNEL_OFF=lock-chunks */
    bool populates; /* create all pages before they are locked */
};

/* The server's way of locking memory, and the amount of locked memory. */
struct page_locker {
    struct gate *gate;
    uint64_t chunk_size;             /* 0 = there are no chunks */
    bool populates;                  /* pages are created before they are locked */
    atomic_uint_fast64_t host_bytes; /* of the host granules of all windows */
};

/* Before any other thread uses it. */
void page_locker_init(struct page_locker *locker, struct gate *gate,
                      const struct page_lock_options *options);

/* Locks [address, address + size), at once or in chunks, and maps it for the GPU at the same
 * address. Returns the driver's result, or CUDA_ERROR_NOT_SUPPORTED when the address would differ.
 * The calling thread is in a context. */
CUresult page_lock(const struct page_locker *locker, void *address, size_t size);
CUresult page_lock_chunks(const struct page_locker *locker, void *address, size_t size);

/* Unlocks it. Stalls every client until the GPU is idle: called between gate_close() and
 * gate_open(). */
void page_unlock(void *address);
void page_unlock_chunks(const struct page_locker *locker, void *address, size_t size);

/* How many bytes from an address on are in the same chunk; UINT64_MAX without chunks. */
uint64_t page_lock_left(const struct page_locker *locker, uint64_t address);
