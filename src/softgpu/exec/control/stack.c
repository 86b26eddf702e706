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

uint32_t stack_room(struct warp *warp, unsigned lane)
{
    uint32_t room = warp->block->grid->program->room;
    return room ? ((const uint32_t *)reg(warp, room))[lane] : (uint32_t)warp->local_stride;
}

static uint32_t *rooms(struct warp *warp)
{
    return reg(warp, warp->block->grid->program->room);
}

/* d = a bytes, imm says how they are aligned; b: bytes of the function's frame. */
void run_alloca(struct warp *warp, const struct insn *insn)
{
    const uint32_t *stack = reg(warp, warp->block->grid->program->stack_pointer);
    const uint64_t *size = reg(warp, insn->a);
    uint64_t *to = reg(warp, insn->d);
    uint32_t *room = rooms(warp);
    EACH_ACTIVE_LANE
    {
        uint64_t used = stack[lane] + (uint64_t)insn->b;
        uint64_t at = size[lane] <= room[lane] ? (room[lane] - size[lane]) & -insn->imm : 0;
        if (at < used) {
            warp_fault(warp, insn, lane, CUDA_ERROR_HARDWARE_STACK_ERROR, "the stack overflows");
            return;
        }
        to[lane] = room[lane] = (uint32_t)at;
    }
}

void run_stack_save(struct warp *warp, const struct insn *insn)
{
    const uint32_t *room = rooms(warp);
    uint64_t *to = reg(warp, insn->d);
    EACH_ACTIVE_LANE
    to[lane] = room[lane];
}

void run_stack_restore(struct warp *warp, const struct insn *insn)
{
    const uint64_t *from = reg(warp, insn->a);
    uint32_t *room = rooms(warp);
    EACH_ACTIVE_LANE
    {
        if (from[lane] > warp->local_stride) {
            warp_fault(warp, insn, lane, CUDA_ERROR_HARDWARE_STACK_ERROR,
                       "0x%llx is no place on the stack", (unsigned long long)from[lane]);
            return;
        }
        room[lane] = (uint32_t)from[lane];
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
    const uint32_t *room = rooms(warp);
    EACH_ACTIVE_LANE
    memcpy(mark_of(warp, insn, lane), &room[lane], sizeof(room[lane]));
}

void run_stack_release(struct warp *warp, const struct insn *insn)
{
    uint32_t *room = rooms(warp);
    EACH_ACTIVE_LANE
    {
        uint32_t before;
        memcpy(&before, mark_of(warp, insn, lane), sizeof(before));
        /* The frame is the kernel's to overwrite. */
        room[lane] = before < warp->local_stride ? before : (uint32_t)warp->local_stride;
    }
}
