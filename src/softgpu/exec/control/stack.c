/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stack memory of dynamic size: alloca, stacksave, stackrestore.
 *
 * Frames grow upwards from the beginning of a thread's local memory; memory of alloca grows
 * downwards from its end. So no frame changes its size, and a call need not know what was
 * allocated.
 */
#include "stack.h"

#include <string.h>

#include "block_state.h"
#include "warp_fault.h"

uint32_t stack_limit(struct warp *warp, unsigned lane)
{
    uint32_t row = warp->block->grid->program->stack_limits;
    return row ? ((const uint32_t *)reg(warp, row))[lane] : (uint32_t)warp->local_stride;
}

static uint32_t *stack_limits(struct warp *warp)
{
    return reg(warp, warp->block->grid->program->stack_limits);
}

/* d = a bytes, imm says how they are aligned; b: bytes of the function's frame. */
void run_alloca(struct warp *warp, const struct insn *insn)
{
    const uint32_t *stack = reg(warp, warp->block->grid->program->stack_pointer);
    const uint64_t *size = reg(warp, insn->a);
    uint64_t *to = reg(warp, insn->d);
    uint32_t *limit = stack_limits(warp);
    EACH_ACTIVE_LANE
    {
        uint64_t used = stack[lane] + (uint64_t)insn->b;
        uint64_t at = size[lane] <= limit[lane] ? (limit[lane] - size[lane]) & -insn->imm : 0;
        if (at < used) {
            warp_fault(warp, insn, lane, CUDA_ERROR_HARDWARE_STACK_ERROR, "the stack overflows");
            return;
        }
        to[lane] = limit[lane] = (uint32_t)at;
    }
}

void run_stack_save(struct warp *warp, const struct insn *insn)
{
    const uint32_t *limit = stack_limits(warp);
    uint64_t *to = reg(warp, insn->d);
    EACH_ACTIVE_LANE
    to[lane] = limit[lane];
}

void run_stack_restore(struct warp *warp, const struct insn *insn)
{
    const uint64_t *from = reg(warp, insn->a);
    uint32_t *limit = stack_limits(warp);
    EACH_ACTIVE_LANE
    {
        if (from[lane] > warp->local_stride) {
            warp_fault(warp, insn, lane, CUDA_ERROR_HARDWARE_STACK_ERROR,
                       "0x%llx is no place on the stack", (unsigned long long)from[lane]);
            return;
        }
        limit[lane] = (uint32_t)from[lane];
    }
}

/* Memory of alloca ends with its function: the function's frame saves the free size of its start at
 * imm. */
static unsigned char *mark_of(struct warp *warp, const struct insn *insn, unsigned lane)
{
    const uint32_t *stack = reg(warp, warp->block->grid->program->stack_pointer);
    uint64_t at = warp->local + lane * warp->local_stride + stack[lane] + insn->imm;
    return (unsigned char *)(uintptr_t)at;
}

void run_stack_mark(struct warp *warp, const struct insn *insn)
{
    const uint32_t *limit = stack_limits(warp);
    EACH_ACTIVE_LANE
    memcpy(mark_of(warp, insn, lane), &limit[lane], sizeof(limit[lane]));
}

void run_stack_release(struct warp *warp, const struct insn *insn)
{
    uint32_t *limit = stack_limits(warp);
    EACH_ACTIVE_LANE
    {
        uint32_t before;
        memcpy(&before, mark_of(warp, insn, lane), sizeof(before));
        /* The frame is the kernel's to overwrite. */
        limit[lane] = before < warp->local_stride ? before : (uint32_t)warp->local_stride;
    }
}
