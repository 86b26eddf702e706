/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashes of device memory, by the hash kernel. Jobs and their results are in a table in page-locked
 * memory, which is made at the first use and stays.
 *
 * The first result of each device is compared with that of the CPU. Where they differ, and where
 * the kernel or the table cannot be made, there are no hashes.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "chunk_hash.h"
#include "device.h"
#include "swap_file.h"

struct page_locker;
struct hash_table;

/* Hashes are those of chunks of this size; the last of some memory may be shorter. */
#define HASH_CHUNK SWAP_FILE_CHUNK

enum hash_trust { HASH_UNTRIED, HASH_TRUSTED, HASH_WRONG };

struct chunk_hasher {
    const struct page_locker *locker;
    CUfunction kernels[ATTACH_DEVICES_MAX]; /* by ordinal; NULL = there is none */
    pthread_mutex_t lock;                   /* of the table, and of what follows */
    struct hash_table *table;               /* NULL before the first use */
    bool has_failed;                        /* the table could not be made */
    enum hash_trust trust[ATTACH_DEVICES_MAX];
};

/* Before any other thread uses it. The locker stays the caller's. Without the second there are no
 * hashes; it loads the kernel, before there are clients that the load could stall. */
void chunk_hasher_init(struct chunk_hasher *hasher, const struct page_locker *locker);
void chunk_hasher_load(struct chunk_hasher *hasher, const struct devices *devices);

/* Any thread: whether there may be hashes. */
bool chunk_hasher_is_loaded(const struct chunk_hasher *hasher);

/* Memory of a device that nothing writes meanwhile. Size and address are multiples of 8. */
struct hash_region {
    const struct device *device;
    uint64_t address, size;
    struct chunk_hash *hashes; /* of its chunks: results */
};

/* Any thread; the context may be another one afterwards. It waits until all is hashed, and for
 * other threads that hash. What the driver says, CUDA_ERROR_NOT_READY when kernels of clients have
 * filled the device for 100 ms, or CUDA_ERROR_NOT_SUPPORTED where there are no hashes. */
CUresult chunk_hasher_run(struct chunk_hasher *hasher, const struct hash_region *regions,
                          unsigned count);
