/* SPDX-License-Identifier: Apache-2.0 */
/* Stream-ordered allocation: pools, and blocks that wait for their fence. */
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

/* Whether cuMemFreeAsync() has put off the free of the memory at an address. */
bool pool_is_pending(uint64_t address);

/* cuMemFreeAsync() for memory of a device's heap: it is given back behind the work on the stream.
 * CUDA_ERROR_INVALID_VALUE when that is pending already. */
CUresult pool_give_async(const struct allocation *allocation, struct stream *stream);

/* Gives a block of the device's heap, which is of no pool, back behind a fence. The block stays
 * taken without memory for the record. */
void pool_give(const struct allocation *allocation, struct fence fence);

/* Frees an allocation that heap_give() returned, and subtracts it from its pool. NULL is allowed.
 */
void pool_end(struct allocation *allocation);
