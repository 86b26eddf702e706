/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which chunks of managed memory are on the device when its capacity is too small for all of them.
 * The other chunks are memory of the host, which kernels reach slowly. A chunk comes to the device
 * when kernels have used it twice since the least recently used chunks there. So chunks that
 * kernels use in turn, round and round, stay in their places: each would come too late.
 *
 * Pure: nothing here moves or locks anything. Sizes are bytes; times count uses.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum exchange_wish { WISH_NONE, WISH_HOST, WISH_DEVICE };

struct exchange_chunk {
    uint64_t address, size;
    uint64_t area; /* where the first chunk of its area is; kernels may use all of that */
    uint32_t device;
    bool out;                /* its memory is the host's */
    enum exchange_wish wish; /* where the program prefers it */
    uint64_t used;           /* when kernels have used it last, on the device; 0 = never */
    uint64_t since;          /* out: from when on its uses count; 0 = it has not been used */
};

/* Chunks of the device to send out so that `size` more bytes fit. All were used before `limit`. The
 * order is: chunks that the program prefers on the host, then the least recently used, then chunks
 * that it prefers on the device. Writes up to `most` and returns how many; 0 when all are too few.
 */
size_t exchange_plan(const struct exchange_chunk *const *chunks, size_t count, uint32_t device,
                     uint64_t size, uint64_t limit, const struct exchange_chunk **ret_out,
                     size_t most);
