/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page-locking memory for the GPU. While the driver locks pages it holds up the launches of all
 * clients, so it may get them in pieces, and the launches come between. Kernels do not notice where
 * pieces meet, but NVIDIA's driver refuses copies across: see copy_chunks.h.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "loader.h"

/* On an H200 a piece of this size holds launches up for about half a millisecond. */
#define PAGE_LOCK_CHUNK (8ull << 20)

/* Before any other thread starts: there shall be no pieces. */
void page_lock_whole(void);

/* Before any other thread starts: the driver is the software GPU, which locks nothing. */
void page_lock_for_soft(void);

/* Locks [address, address + size) and makes the GPU see it at the same address. */
CUresult page_lock(void *address, size_t size);
CUresult page_lock_chunks(void *address, size_t size);

/* Undoes it. Stalls every client until the GPU is idle: called between quiesce_begin() and
 * quiesce_end(). */
void page_unlock(void *address);
void page_unlock_chunks(void *address, size_t size);

/* How many bytes from an address on are in the same piece, if they are locked in pieces at all. */
uint64_t page_lock_left(uint64_t address);
