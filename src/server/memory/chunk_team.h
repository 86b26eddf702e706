/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several threads that copy memory between devices and files (swap_file.h), because one thread is
 * far slower than a device or a disk. It creates pages of the file, copies and hashes.
 *
 *     each thread, until there is no chunk left:
 *         device ── cuMemcpyAsync ──> its page-locked buffer ── hash, write ──> file
 *         device <── cuMemcpyAsync ── its page-locked buffer <── read, hash ── file
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "chunk_hash.h"
#include "loader.h"

struct device;
struct session;

/* Memory that lies in one piece on its device and in the file. */
struct chunk_region {
    const struct device *device;
    uint64_t address, size;
    int fd;
    uint64_t offset;             /* in the file */
    uint64_t *hashes;            /* of its chunks of SWAP_FILE_CHUNK: results */
    struct chunk_hash *versions; /* the same by chunk_hash.h, unless NULL */
    const uint8_t *unchanged;    /* chunks that the file has already, unless NULL */
    bool rewrites;               /* the file has other contents there */
    bool is_gone;                /* under the lock of the watch */
};

/* Of a team that works while the session's thread goes on. */
struct chunk_watch {
    pthread_mutex_t lock; /* held while a chunk is read from its device */
    atomic_bool cancelled;
};

struct chunk_order {
    struct session *session;
    bool out; /* to the file */
    const struct chunk_region *regions;
    unsigned count;
    struct chunk_watch *watch; /* NULL = the client stands still */
    unsigned threads;          /* at most; 0 = as many as there are CPUs */
};

/* The session thread's; it waits until all is copied, and gives up when the session ends.
 * CUDA_ERROR_OPERATING_SYSTEM with *ret_error, a negative error number, for what a file caused; or
 * what the driver says. */
CUresult chunk_team_run(const struct chunk_order *order, int *ret_error);

/* The same on any thread, in a context, which may be another one afterwards. */
CUresult chunk_team_work(const struct chunk_order *order, int *ret_error);
