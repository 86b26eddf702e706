/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory whose pages move between program and device, and the table of it: allocations, and
 * pages of __managed__ variables. A lock guards all of it; it is taken with the channel lock held
 * or without, and held for a moment.
 */
#pragma once

#include "client_fence.h"
#include "client_memory.h"
#include "cuda_managed.h"
#include "managed_use.h"
#include "residence.h"

/* Threads that have touched a block sleep until launches have ended, or until pages have come that
 * are on their way already. */
struct managed_wait {
    bool for_launches, for_arrival;
    uint64_t since;   /* clock_ns() when a touch had to wait for launches; 0 = none has had to */
    struct list link; /* of blocks that are waited for */
};

/* What stands for a thread, whose number is positive. */
enum { THREAD_NONE = 0, THREAD_SEVERAL = -1 };

struct managed_block {
    struct allocation allocation;
    struct allocation entry; /* of the heap: whole pages */
    bool of_variables;       /* pages of variables: only the bytes of these are copied */
    uint64_t host;           /* where the server and this library find the program's pages */
    struct residence residence;
    unsigned attach, first_attach; /* CU_MEM_ATTACH_... now, and when it was allocated */
    uint64_t stream;               /* CU_MEM_ATTACH_SINGLE: handle of the stream */
    struct fence arrival;          /* behind copies down on streams of the program's */
    bool fetching;                 /* a touch brings pages down, behind a fence of its own */
    struct managed_uses uses;      /* launches that may be using it */
    struct managed_wait wait;      /* of threads that touch it */
    struct list direct_link;       /* of blocks that went up on a stream of the program's */
    bool active;                   /* in the list of blocks */
    struct list link;              /* of blocks that the program may have something of */
    int thread;                    /* the only one that has touched it, or THREAD_... */
    unsigned turns;                /* how often it still comes down by itself */
    struct list ahead_link;        /* of those that do, while there are turns */
};

/* Called once while attaching. */
void block_init(void);

/* Where managed memory moves: CUDA_ERROR_OUT_OF_MEMORY when the device or the limit of the client
 * has no place for it. May wait for the server. */
CUresult block_create(struct context *context, uint64_t size, unsigned attach,
                      CUdeviceptr *ret_address);

/* Where variables are, at whole pages that are mapped: a block that the device has. 0 or -errno. */
int block_create_at(uint64_t address, uint64_t size);

/* Ends such a block. Nothing copies its host memory any more. */
void block_destroy_at(uint64_t address);

/* Ends the block that starts at an address: false when there is none. Its work is done. */
bool block_destroy(uint64_t address);
void block_destroy_all(const struct context *context);

/* Gives back all memory that no block uses. */
void block_trim(void);

/* A copy of the allocation at an address: false when there is none. */
bool block_find(uint64_t address, struct allocation *ret_allocation);

/* Whether what is at an address moves. */
bool block_moves(uint64_t address);

void block_lock(void);
void block_unlock(void);

/* The block at an address, or NULL. */
struct managed_block *block_at_locked(uint64_t address);

/* The first block that has something of [address, end), or NULL. */
struct managed_block *block_next_locked(uint64_t address, uint64_t end);

/* What one variable is in may be several blocks. */
#define for_each_block_locked(block, first, bytes)                                         \
    for (struct managed_block *block = block_next_locked(first, (first) + (bytes)); block; \
         block = block_next_locked(block->entry.address + block->entry.size, (first) + (bytes)))

/* What a block is attached to: CU_MEM_ATTACH_... */
unsigned block_attachment_locked(const struct managed_block *block);

/* Whether work on a stream may use the block. */
bool block_is_for_locked(const struct managed_block *block, const struct stream *stream);

/* Blocks that have gone up on a stream of the program's, which other streams know nothing of. */
struct list *block_direct_locked(void);

/* Blocks that touches wait for. */
struct list *block_awaited_locked(void);

void block_await_locked(struct managed_block *block);

/* Those who sleep touch the block once more. */
void block_wake_locked(struct managed_block *block);

/* Blocks that the program may have something of; any of them may be removed meanwhile. */
struct list *block_active_locked(void);
void block_activate_locked(struct managed_block *block);
void block_rest_locked(struct managed_block *block);

/* Whether the list is not empty. Without the lock: a block that comes just now is not missed by a
 * call that begins when the one that made it has returned. */
bool block_any_active(void);

/* Blocks that come down by themselves, and how long this one does: 0 = not any more. */
struct list *block_ahead_locked(void);
void block_set_turns_locked(struct managed_block *block, unsigned turns);

/* Whether there are any; as block_any_active(). */
bool block_any_ahead(void);

/* The pages of a block that a range of bytes touches, in so far as it lies in the block. */
struct residence_run block_pages(const struct managed_block *block, uint64_t address,
                                 uint64_t size);

/* Around a fork. */
void block_before_fork(void);
void block_after_fork_in_parent(void);
