/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who owns an address. Each allocation has a kind: a table of what memory of its kind is and of the
 * functions that free and describe it. The registries of allocations each have a lock of their own
 * and cover a part of the address space. The order in which they are asked stands here alone.
 */
#pragma once

#include "heap.h"

struct cuda_pointer;
struct stream;

enum place {
    PLACE_NOWHERE,  /* in the window where nothing is, or a range that leaves its allocation */
    PLACE_PAGEABLE, /* the program's own memory: the GPU does not reach it */
    PLACE_DEVICE,
    PLACE_PINNED, /* host memory that the GPU reaches */
};

/* The functions hold no lock and may be NULL. */
struct memory_kind {
    enum place place;
    enum place beyond;   /* of a range that begins in an allocation and leaves it */
    bool managed;        /* the program and the device use it at one address */
    bool movable;        /* other memory may take its place, so there is no dma-buf of it */
    bool has_ipc_handle; /* cuIpcGetMemHandle() */

    /* cuMemFree() of an allocation that nothing uses any more; cuMemFreeAsync() behind what is on
     * the stream. NULL: CUDA_ERROR_INVALID_VALUE. */
    CUresult (*free)(const struct allocation *allocation);
    CUresult (*free_async)(const struct allocation *allocation, struct stream *stream);

    /* Corrects what is said of all memory alike. */
    void (*describe)(const struct allocation *allocation, struct cuda_pointer *pointer);

    /* Whether all of a range can be used. NULL: it is within one allocation. */
    bool (*covers)(uint64_t address, uint64_t size);
};

extern const struct memory_kind kind_device;           /* cuMemAlloc(); memory_calls.c */
extern const struct memory_kind kind_pool;             /* cuMemAllocAsync(); client_pool.c */
extern const struct memory_kind kind_host_pool;        /* the same of the host */
extern const struct memory_kind kind_graph;            /* graph_memory_kind.c */
extern const struct memory_kind kind_pinned;           /* cuMemHostAlloc(); host_memory.c */
extern const struct memory_kind kind_registered;       /* host_register.c */
extern const struct memory_kind kind_mapped;           /* cuMemMap(); client_vmm.c */
extern const struct memory_kind kind_opened;           /* cuIpcOpenMemHandle(); client_ipc.c */
extern const struct memory_kind kind_imported;         /* of a pool of another process; likewise */
extern const struct memory_kind kind_variable;         /* of a module; client_variable.c */
extern const struct memory_kind kind_managed_variable; /* likewise */

/* A copy of the allocation that contains an address: false when there is none. Takes the locks of
 * registries for a moment. */
bool address_map_find(uint64_t address, struct allocation *ret_allocation);

/* Where `size` bytes at an address are; size 0 asks about the address alone. As above. */
enum place address_map_place(uint64_t address, uint64_t size);

/* The address by which the device reaches an address of the allocation. */
static inline uint64_t allocation_on_device(const struct allocation *allocation, uint64_t address)
{
    return allocation->device ? allocation->device + (address - allocation->address) : address;
}
