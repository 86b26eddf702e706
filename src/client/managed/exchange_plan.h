/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pieces of managed memory are on the device when it has no room for all of them. The others
 * are memory of the host, which kernels reach as well, but slowly. A piece that kernels use comes
 * to the device when it has been used twice since the least recently used ones there; so pieces
 * that are used one after the other, round and round, stay where they are, for each would come too
 * late.
 *
 * Pure: nothing here moves or locks anything. Sizes are bytes; times count uses.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum exchange_wish { WISH_NONE, WISH_HOST, WISH_DEVICE };

struct exchange_piece {
    uint64_t address, size;
    uint64_t area; /* where the first piece of its area is; kernels may use all of that */
    uint32_t device;
    bool out;                /* its memory is the host's */
    enum exchange_wish wish; /* where the program would rather have it */
    uint64_t used;           /* when kernels have used it last, on the device; 0 = never */
    uint64_t since;          /* out: from when on its uses count; 0 = it has not been used */
};

/* Pieces to send out, so that `size` more bytes fit: those of the device that were used before
 * `limit`, what the program would rather have on the host first, then the least recently used;
 * what it would rather have on the device last. Writes up to `most` of them, and returns how many;
 * 0 when all of them together are too few. */
size_t exchange_plan(const struct exchange_piece *const *pieces, size_t count, uint32_t device,
                     uint64_t size, uint64_t limit, const struct exchange_piece **ret_out,
                     size_t most);
