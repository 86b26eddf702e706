/* SPDX-License-Identifier: Apache-2.0 */
/* Stream-ordered allocation from pools. */
#pragma once

#include "client_stream.h"

#include "pool_token.h"

struct allocation;

/* What of a pool concerns other processes and devices. */
struct pool_sharing {
    struct device *device;   /* NULL = of the host */
    bool shareable;          /* made with CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */
    bool imported;           /* another process's: nothing can be allocated from it */
    struct pool_token token; /* its name, once it is exported or imported */
    uint32_t reached_by;     /* bit p: the program has let the device of ordinal p use it */
};

/* False: there is no such pool. pool_sharing_set() leaves device, shareable and imported alone. */
bool pool_sharing_get(CUmemoryPool pool, struct pool_sharing *ret_sharing);
void pool_sharing_set(CUmemoryPool pool, const struct pool_sharing *sharing);

/* A pool of at most `most` bytes (0: as many as there are), of the host where `device` is NULL.
 * Returns its handle, or 0 when out of memory. */
uint64_t pool_create(struct device *device, uint64_t most);

/* A pool of another process: its handle, or NULL when out of memory. */
CUmemoryPool pool_import(struct device *device, const struct pool_token *token);

/* Called once while attaching: 0, or -1 when there is no memory for it. */
int pool_init(void);

/* Frees an allocation that heap_give() returned, and subtracts it from its pool. NULL is allowed.
 */
void pool_end(struct allocation *allocation);

/* The same for one that was freed when stream_waits() was `waits`. */
void pool_end_since(struct allocation *allocation, uint64_t waits);
