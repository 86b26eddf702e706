/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory whose pages move between program and device, and the table of it: allocations, and
 * pages of __managed__ variables. One lock guards all of it. Threads take it briefly, with the
 * channel lock or without.
 */
#pragma once

#include "client_fence.h"
#include "client_memory.h"
#include "cuda_managed.h"
#include "managed_use.h"
#include "residence.h"

/* Threads with a page fault in an allocation sleep until launches have ended, or until pages have
 * arrived that are being copied already. */
struct managed_wait {
    bool for_launches, for_arrival;
    uint64_t since;   /* clock_ns() when a page fault had to wait for launches; 0 = none has */
    struct list link; /* of awaited allocations */
};

/* In place of the number of a thread, which is positive. */
enum { THREAD_NONE = 0, THREAD_SEVERAL = -1 };

struct managed_allocation {
    struct allocation allocation;
    struct allocation entry; /* of the heap: whole pages */
    bool of_variables;       /* pages of variables: only the bytes of these are copied */
    uint64_t host;           /* where the server and this library find the program's pages */
    struct residence residence;
    unsigned attach, first_attach; /* CU_MEM_ATTACH_... now, and when it was allocated */
    uint64_t stream;               /* CU_MEM_ATTACH_SINGLE: handle of the stream */
    struct fence arrival;          /* behind copies down on streams of the program's */
    bool fetching;                 /* a page fault brings pages down, behind a fence of its own */
    struct managed_uses uses;      /* launches that may be using it */
    struct managed_wait wait;      /* of threads with a page fault in it */
    struct list direct_link;       /* of allocations that went up on a stream of the program's */
    bool active;                   /* in the list of allocations */
    struct list link;              /* of allocations that the program may have something of */
    int thread;                    /* the only one with a page fault in it, or THREAD_... */
    unsigned prefetch_budget;      /* how many prefetches are left */
    struct list prefetch_link;     /* of prefetched allocations, while the budget lasts */
};

/* Called once while attaching. */
void managed_allocations_init(void);

/* Where managed memory moves: CUDA_ERROR_OUT_OF_MEMORY when the device or the limit of the client
 * has no capacity for it. May wait for the server. */
CUresult managed_create(struct context *context, uint64_t size, unsigned attach,
                        CUdeviceptr *ret_address);

/* Where variables are, at whole pages that are mapped: an allocation that the device has. 0 or
 * -errno. */
int managed_create_at(uint64_t address, uint64_t size);

/* Ends such an allocation. Nothing copies its host memory any more. */
void managed_destroy_at(uint64_t address);

/* Ends the allocation that starts at an address: false when there is none. Its work is done. */
bool managed_destroy(uint64_t address);
void managed_destroy_all(const struct context *context);

/* Gives back all memory that no allocation uses. */
void managed_trim(void);

/* A copy of the allocation at an address: false when there is none. */
bool managed_allocation_find(uint64_t address, struct allocation *ret_allocation);

/* Whether memory at an address moves. */
bool managed_moves(uint64_t address);

/* The lock of all that ends in _locked here. docs/design/locks.md has its place. */
void managed_allocations_lock(void);
void managed_allocations_unlock(void);

/* The allocation at an address, or NULL. */
struct managed_allocation *managed_at_locked(uint64_t address);

/* The first allocation that has something of [address, end), or NULL. */
struct managed_allocation *managed_in_range_locked(uint64_t address, uint64_t end);

/* One variable may lie in several allocations. */
#define for_each_managed_locked(managed, first, bytes)                                            \
    for (struct managed_allocation *managed = managed_in_range_locked(first, (first) + (bytes));  \
         managed; managed = managed_in_range_locked(managed->entry.address + managed->entry.size, \
                                                    (first) + (bytes)))

/* How an allocation is attached: CU_MEM_ATTACH_... */
unsigned managed_attachment_locked(const struct managed_allocation *managed);

/* Whether work on a stream may use the allocation. */
bool managed_is_for_locked(const struct managed_allocation *managed, const struct stream *stream);

/* Allocations that went up on a stream of the program's, of which other streams know nothing. */
struct list *managed_direct_locked(void);

/* Allocations that page faults wait for. */
struct list *managed_awaited_locked(void);

void managed_await_locked(struct managed_allocation *managed);

/* Wakes the threads that sleep; they repeat their page faults. */
void managed_wake_threads_locked(struct managed_allocation *managed);

/* Allocations that the program may have something of; any of them may be removed meanwhile. */
struct list *managed_active_locked(void);
void managed_activate_locked(struct managed_allocation *managed);
void managed_deactivate_locked(struct managed_allocation *managed);

/* Whether the list is not empty. Without the lock: a call sees all allocations that were made
 * before it began. */
bool managed_any_active(void);

/* Allocations that are prefetched, and the budget of one; 0 = not any more. */
struct list *managed_prefetched_locked(void);
void managed_set_prefetch_budget_locked(struct managed_allocation *managed, unsigned budget);

/* Whether there are any; as managed_any_active(). */
bool managed_any_prefetched(void);

/* The pages of an allocation in a range of bytes, within the allocation. */
struct residence_run managed_run_of(const struct managed_allocation *managed, uint64_t address,
                                    uint64_t size);

/* Around a fork. */
void managed_allocations_before_fork(void);
void managed_allocations_after_fork_in_parent(void);
