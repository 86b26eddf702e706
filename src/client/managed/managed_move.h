/* SPDX-License-Identifier: Apache-2.0 */
/* Moves the pages of managed allocations: up before work of the device, down where the program
 * touches them. */
#pragma once

#include "client_stream.h"
#include "managed_block.h"

/* Whole pages, between the addresses that the device and the library have for them. */
struct move_pages {
    uint64_t address, host, size;
    bool of_variables;
};

struct move_pages move_pages_of(const struct managed_block *block, struct residence_run run);

/* Sends their copies down on the stream of managed_copy.h, behind those that bring them up. */
void move_fetch_locked(const struct managed_block *block, const struct move_pages *pages);

/* Blocks that have gone up on a stream of the program's can be fetched before what is put on that
 * stream from now on has ended. With the locks of the channel and of blocks. */
void move_settle_direct_locked(void);

/* With the channel lock, before work is put on the stream: what may be used by it goes up. True
 * when something was sent on the stream of managed_copy.h. */
bool move_up_for_locked(struct stream *stream);

/* The device may use a range from now on, whatever its block is attached to. Does nothing
 * elsewhere.
 */
void move_up(uint64_t address, uint64_t size);

/* The same with the channel lock, for a variable that comes to lie in blocks with others: its bytes
 * are copied from then on, and all of the blocks are global. */
void move_up_for_variable_locked(uint64_t address, uint64_t size);

/* Brings a range of a block down, behind what is on the stream. */
CUresult move_down(uint64_t address, uint64_t size, struct stream *stream);

/* Small blocks that the program has touched lately come down behind the work of the stream, if no
 * other stream has any; NULL = of whichever it is. When that has been waited for they are shown, so
 * that the next touch is none that has to be served. */
void move_ahead(struct stream *stream);
void move_show_ahead(void);

/* The program has touched what the device had: if the block is small, it may come down so. */
void move_expect_locked(struct managed_block *block);

/* What a range contains is of no use any more: its pages stay on the device, or go there as they
 * are.
 */
void move_forget(uint64_t address, uint64_t size);
