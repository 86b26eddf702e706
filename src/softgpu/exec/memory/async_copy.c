/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cp.async. The copy is made at once: a program cannot tell.
 */
#include "async_copy.h"

#include <string.h>

#include "sg_space.h"
#include "translate.h"

/* cp.async: to a of imm from what the nop behind carries; b says how many of the bytes are copied,
 * the rest is zero. */
void run_copy_async(struct warp *warp, const struct insn *insn)
{
    unsigned size = insn->width;
    uint64_t from[LANES];
    const uint32_t *valid = reg(warp, insn->b);
    if (!translate(warp, insn + 1, size, size, SG_READ))
        return;
    memcpy(from, warp->address, sizeof(from));
    if (!translate(warp, insn, size, size, SG_WRITE))
        return;
    EACH_ACTIVE_LANE
    {
        unsigned char bytes[16] = {0};
        memcpy(bytes, (const void *)(uintptr_t)from[lane], valid[lane] < size ? valid[lane] : size);
        memcpy((void *)(uintptr_t)warp->address[lane], bytes, size);
    }
}
