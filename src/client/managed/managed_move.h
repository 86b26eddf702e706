/* SPDX-License-Identifier: Apache-2.0 */
/* Moves the pages of managed allocations: up before work of the device, down at page faults of the
 * program. */
#pragma once

#include "client_stream.h"
#include "managed_allocation.h"

/* Whole pages, between the addresses that the device and the library have for them. */
struct move_pages {
    uint64_t address, host, size;
    bool of_variables;
};

/* The pages of a run of an allocation. Nothing is allocated. */
struct move_pages move_pages_of(const struct managed_allocation *managed, struct residence_run run);

/* Sends their copies down on the stream of managed_copy.h, behind the copies up. */
void move_fetch_locked(const struct managed_allocation *managed, const struct move_pages *pages);

/* Allocations that went up on a stream of the program's can be fetched before its later work has
 * ended. With the locks of the channel and of allocations. */
void move_settle_direct_locked(void);

/* With the channel lock, before work is put on the stream: memory that the work may use goes up.
 * True when something was sent on the stream of managed_copy.h. */
bool move_up_for_locked(struct stream *stream);

/* The device may use a range from now on, whatever its allocation is attached to. Does nothing
 * elsewhere.
 */
void move_up(uint64_t address, uint64_t size);

/* The same with the channel lock, for a variable that comes to lie in allocations with others. From
 * then on its bytes are copied, and all of the allocations are global. */
void move_up_for_variable_locked(uint64_t address, uint64_t size);

/* Brings a range of an allocation down, behind the work on the stream. */
CUresult move_down(uint64_t address, uint64_t size, struct stream *stream);

/* Small allocations that the program has used lately come down behind the work of the stream, if no
 * other stream has any. NULL means any one stream. After the wait they are shown, so that the next
 * access is no page fault. */
void move_prefetch(struct stream *stream);
void move_show_prefetched(void);

/* The program has had a page fault in memory of the device: a small allocation may be prefetched.
 */
void move_expect_locked(struct managed_allocation *managed);

/* The contents of a range are of no use any more: its pages stay on the device, or go there without
 * a copy. */
void move_forget(uint64_t address, uint64_t size);
