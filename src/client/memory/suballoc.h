/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An allocator over address ranges: it hands out blocks of memory and never accesses them.
 *
 * The caller adds granules (whole ranges it got from elsewhere) and takes blocks out of them.
 * Nothing here locks, and nothing here knows of CUDA.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SUBALLOC_ALIGNMENT 512u
#define SUBALLOC_BINS 1024

struct suballoc_block;

struct suballoc {
    struct suballoc_block *root;                /* every block, ordered by address */
    struct suballoc_block *bins[SUBALLOC_BINS]; /* the free ones, by size class */
    uint64_t filled[SUBALLOC_BINS / 64];        /* a bit for each bin that is not empty */
    uint64_t free_bytes;
    uint64_t whole_free_bytes; /* in granules of which nothing is taken */
    uint32_t random;
};

/* What is known of a taken block. */
struct suballoc_info {
    uint64_t address;
    uint64_t size; /* as it was asked for */
    void *user;
};

/* Empties the allocator. The second frees its bookkeeping first, not what was taken. */
void suballoc_init(struct suballoc *allocator);
void suballoc_fini(struct suballoc *allocator);

/* Adds a granule; address and size are multiples of SUBALLOC_ALIGNMENT. The second gives the whole
 * granule to one taken block of `taken_size` bytes. 0 or -ENOMEM. */
int suballoc_add_granule(struct suballoc *allocator, uint64_t address, uint64_t size);
int suballoc_add_taken(struct suballoc *allocator, uint64_t address, uint64_t size,
                       uint64_t taken_size, void *user);

/* Removes a granule that is wholly free and returns its address; 0 when there is none. */
uint64_t suballoc_remove_free_granule(struct suballoc *allocator, uint64_t *ret_size);

/* The address of a block of at least `size` bytes, or 0 when no free block is large enough. */
uint64_t suballoc_take(struct suballoc *allocator, uint64_t size, void *user);

/* Gives back the taken block that starts at `address`: 0, or -ENOENT when none does. */
int suballoc_give(struct suballoc *allocator, uint64_t address);

/* The taken block that contains `address`: false when none does. */
bool suballoc_find(const struct suballoc *allocator, uint64_t address,
                   struct suballoc_info *ret_info);

/* The first taken block at or above `address`: false when there is none. */
bool suballoc_next(const struct suballoc *allocator, uint64_t address,
                   struct suballoc_info *ret_info);
