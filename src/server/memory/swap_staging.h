/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page-locked buffers through which contents go between devices and files. They are made at the
 * first use and stay, because unlocking memory waits for the work of all clients (page_lock.h).
 *
 * Functions may be called from any thread, in a context.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "swap_file.h"

struct page_locker;

#define SWAP_BUFFER SWAP_FILE_CHUNK
#define SWAP_BUFFERS 16u

struct swap_staging {
    const struct page_locker *locker;
    pthread_mutex_t lock;  /* of what follows */
    unsigned char *memory; /* NULL before the first use */
    uint32_t taken;        /* buffers, a bit each */
};

/* Before any other thread uses it. The locker stays the caller's. */
void swap_staging_init(struct swap_staging *staging, const struct page_locker *locker);

/* Takes a buffer of SWAP_BUFFER bytes. While others have all those of the staging, and where no
 * memory can be locked, it is pageable. NULL: out of memory. */
unsigned char *swap_staging_take(struct swap_staging *staging);
void swap_staging_give(struct swap_staging *staging, unsigned char *buffer);
