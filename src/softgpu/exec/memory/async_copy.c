/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cp.async. The copy is made at once: a program cannot tell.
 */
#include "async_copy.h"

#include <string.h>

#include "isa.h"
#include "sg_space.h"
#include "translate.h"

/* One lane's copy; where `valid` is less than `size`, zeros follow. */
static inline void copy_lane(void *to, const void *from, uint32_t valid, unsigned size)
{
    unsigned char bytes[16] = {0};
    if (valid >= size)
        memcpy(bytes, from, size);
    else
        memcpy(bytes, from, valid);
    memcpy(to, bytes, size);
}

/* Part of a loop for each size, so that a lane's copy is a move or two. */
__attribute__((always_inline)) static inline void
copy_lanes(struct warp *warp, const uint64_t *from, const uint32_t *valid, unsigned size)
{
    EACH_ACTIVE_LANE
    copy_lane((void *)(uintptr_t)warp->address[lane], (const void *)(uintptr_t)from[lane],
              valid[lane], size);
}

/* cp.async: to a of imm from what the nop behind carries; b says how many of the bytes are copied,
 * the rest is zero. */
static void run_copy_async(struct warp *warp, const struct insn *insn)
{
    unsigned size = insn->width;
    uint64_t from[LANES];
    const uint32_t *valid = reg(warp, insn->b);
    if (!translate(warp, insn + 1, size, size, SG_READ))
        return;
    memcpy(from, warp->address, sizeof(from));
    if (!translate(warp, insn, size, size, SG_WRITE))
        return;
    if (size == 4)
        copy_lanes(warp, from, valid, 4);
    else if (size == 8)
        copy_lanes(warp, from, valid, 8);
    else
        copy_lanes(warp, from, valid, 16);
}

const handler_fn ISA_NAME(copy_async) = run_copy_async;
