/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools, with the freed memory that they keep. Sizes are bytes. The functions need
 * soft_lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cuda_pool.h"
#include "list.h"
#include "pool_token.h"

struct context;
struct device;

struct pool {
    uint64_t handle;
    struct device *device; /* NULL = of the host */
    struct cuda_pool count;
    uint64_t kept;           /* bytes that are charged to the device and not in use */
    bool shareable;          /* made with CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */
    uint32_t reached_by;     /* of the host: bit p = the program has let the device p use it */
    bool imported;           /* another process's: nothing can be allocated from it */
    struct pool_token token; /* its name, once it is exported or imported */
    struct list link;
};

/* The pools of a place of the host, the default one and the current one. `location` is of the host.
 * CUDA_ERROR_OUT_OF_MEMORY. */
struct host_place {
    struct pool standard;
    uint64_t current; /* 0 = the default one */
};
CUresult host_place_locked(const CUmemLocation *location, struct host_place **ret_place);
