/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory as the driver knows it: every range that a program was given or has registered, by
 * address. A device address is the host address of the same bytes. Sizes are bytes. Functions named
 * _locked need soft_lock. A struct memory is the driver's until it is freed, and a pointer to one
 * is good for as long as the lock is held.
 */
#pragma once

#include "cuda_advice.h"
#include "cuda_managed.h"
#include "soft.h"

struct context;
struct device;

enum memory_kind {
    MEMORY_DEVICE, /* cuMemAlloc: ours to unmap */
    MEMORY_MANAGED,
    MEMORY_HOST,            /* cuMemHostAlloc: ours to unmap */
    MEMORY_REGISTERED,      /* cuMemHostRegister: the program's own pages */
    MEMORY_MAPPED,          /* cuMemMap: lies in a reservation */
    MEMORY_IMPORTED,        /* cuIpcOpenMemHandle: another process's */
    MEMORY_VARIABLE,        /* a module's variables */
    MEMORY_SHARED_VARIABLE, /* a library's __managed__ variable: every context's */
};

struct memory {
    enum memory_kind kind;
    uint64_t address;
    uint64_t size;    /* as asked for */
    uint64_t charged; /* of the device's memory */
    unsigned long long id;
    unsigned flags;
    unsigned access;         /* of kernels; 0 = none yet */
    struct context *context; /* NULL for what belongs to none: mapped, or a library's */
    struct device *device;
    struct allocation *allocation; /* of MEMORY_MAPPED */
    uint64_t pool;                 /* handle of the pool it is from, or 0 */
    uint64_t arena_offset;         /* see memory_is_in_arena() */
    int ipc_slot;                  /* under which other processes may open it, or -1 */
    struct cuda_advice *advice;    /* of managed memory, once it is asked about or advised */
    struct ipc_import *import;     /* of MEMORY_IMPORTED */
    /* Of MEMORY_VARIABLE: finds the variable that contains an address; false for padding. NULL: the
     * range is one allocation. */
    bool (*variable_at_locked)(const struct memory *memory, uint64_t address, uint64_t *ret_start,
                               uint64_t *ret_size);
    struct list in_context;
};

/* Fresh zeroed pages of the kind, charged to the context's device if it is device memory:
 * CUDA_ERROR_INVALID_VALUE for no bytes, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult memory_allocate_locked(struct context *context, enum memory_kind kind, uint64_t size,
                                struct memory **ret_memory);
/* Zeroed pages for the managed variables of a library, or NULL; and their end. */
void *memory_map_variables_locked(uint64_t size);
void memory_unmap_variables(void *pages, uint64_t size);
/* It stays when the context ends. */
void memory_leave_context_locked(struct memory *memory);
/* Enters a range that exists already; its pages stay whose they are. CUDA_ERROR_INVALID_VALUE when
 * it meets one that is known, CUDA_ERROR_OUT_OF_MEMORY. The context may be NULL. */
CUresult memory_enter_locked(struct context *context, enum memory_kind kind, uint64_t address,
                             uint64_t size, unsigned access, struct memory **ret_memory);
/* Ends it at once: nothing that runs may still need it. */
void memory_free_locked(struct memory *memory);
/* Of ipc_calls.c: the memory ends, and with it its names and openings. */
void ipc_forget_memory_locked(struct memory *memory);

/* The memory that contains the address, or NULL. */
struct memory *memory_find_locked(uint64_t address);
/* The first that begins at or behind the address, or NULL. */
struct memory *memory_next_locked(uint64_t address);
/* Whether one memory contains all of [address, address + size), or mapped ranges in a row do. */
bool memory_covers_locked(uint64_t address, uint64_t size);
/* How many of these bytes, from the first on, they contain. */
uint64_t memory_covered_locked(uint64_t address, uint64_t size);
bool memory_overlaps_locked(uint64_t address, uint64_t size);
/* Whether other processes can be given it. */
bool memory_is_in_arena(const struct memory *memory);
/* In whole pages. */
uint64_t memory_mapped_size(uint64_t size);
bool memory_is_managed(const struct memory *memory);
bool memory_is_host(const struct memory *memory);
/* The part that contains the address: the allocation, or one of a module's variables. False for
 * padding. */
bool memory_extent_locked(const struct memory *memory, uint64_t address, uint64_t *ret_start,
                          uint64_t *ret_size);
/* Of reservation_calls.c: the reservation that contains the address, or nothing is written. */
void memory_find_reservation_locked(uint64_t address, uint64_t *ret_start, uint64_t *ret_size);
/* Whether [address, address + size) lies in one reservation. */
bool memory_is_reserved_locked(uint64_t address, uint64_t size);
/* Of vmm_calls.c: the file that MEMORY_MAPPED is the beginning of. */
int memory_mapped_file(const struct memory *memory);
/* Of vmm_calls.c: the CUmemAllocationHandleType flags that it may be exported by. */
unsigned memory_handle_types(const struct memory *memory);

/* Sets the access of kernels: SG_READ and SG_WRITE, or 0. */
void memory_set_access_locked(struct memory *memory, unsigned access);
/* A context that becomes active gets access to all present host memory. */
void memory_show_shared_locked(struct context *context);
/* Grants a context access to the memory of another, and revokes it. */
void memory_show_peer_locked(struct context *owner, struct context *context);
void memory_hide_peer_locked(struct context *owner, struct context *context);
/* Frees all that the context has: nothing of it runs any more. */
void memory_drop_context_locked(struct context *context);
