/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fault stops its grid, and says who did what where. The first one wins.
 */
#include "warp_fault.h"

#include <stdarg.h>
#include <stdio.h>

#include "block_state.h"
#include "warp.h"

static void describe_fault(const struct warp *warp, const struct insn *insn, unsigned lane,
                           const char *what, char *text, size_t size)
{
    const struct block *block = warp->block;
    const uint32_t *shape = block->grid->launch.block;
    uint32_t thread = warp->index * LANES + lane;
    /* Names of templates can be very long; the message must still fit behind them. */
    snprintf(text, size, "kernel %.140s, block (%u,%u,%u), thread (%u,%u,%u): %s, PTX line %u",
             block->grid->info->name, block->index[0], block->index[1], block->index[2],
             thread % shape[0], thread / shape[0] % shape[1], thread / shape[0] / shape[1], what,
             insn->line);
}

void warp_fault(struct warp *warp, const struct insn *insn, unsigned lane, CUresult result,
                const char *what, ...)
{
    char text[256];
    char message[sizeof(warp->block->grid->message)];
    va_list args;
    va_start(args, what);
    vsnprintf(text, sizeof(text), what, args);
    va_end(args);
    describe_fault(warp, insn, lane, text, message, sizeof(message));
    struct grid *grid = warp->block->grid;
    grid->stop(grid, result, message);
    warp_leave(warp, WARP_FAULT);
}
