/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call's frame in local memory: arguments, results, and registers that are kept across
 * it.
 */
#include "frames.h"

#include <string.h>

#include "block_state.h"
#include "warp_fault.h"

/* Copies bytes between two places of each lane's local memory: arguments into the callee's frame,
 * results back. */
void run_copy_local(struct warp *warp, const struct insn *insn)
{
    const uint32_t *stack = reg(warp, warp->block->grid->program->stack_pointer);
    uint32_t from = insn->a, to = insn->d, size = insn->b;
    EACH_ACTIVE_LANE
    {
        unsigned char *memory =
            (unsigned char *)(uintptr_t)(warp->local + lane * warp->local_stride) + stack[lane];
        uint64_t space = warp->local_stride - stack[lane];
        if (from + (uint64_t)size > space || to + (uint64_t)size > space) {
            warp_fault(warp, insn, lane, CUDA_ERROR_HARDWARE_STACK_ERROR, "the stack overflows");
            return;
        }
        memcpy(memory + to, memory + from, size);
    }
}

/*
 * The registers of a function that may be entered again, kept in the frame across a call. They are
 * a window of the register file that starts at d. Of them, b have 64 bits, c have 32, and p are
 * predicates; a is where in the frame they go.
 */
static void save_lane(struct warp *warp, const struct insn *insn, unsigned lane,
                      unsigned char *memory)
{
    const uint64_t *wide = reg(warp, insn->d);
    const uint32_t *narrow = (const uint32_t *)(wide + insn->b * LANES);
    const uint32_t *predicates = narrow + insn->c * LANES;
    for (uint32_t i = 0; i < insn->b; i++, memory += 8)
        memcpy(memory, &wide[i * LANES + lane], 8);
    for (uint32_t i = 0; i < insn->c; i++, memory += 4)
        memcpy(memory, &narrow[i * LANES + lane], 4);
    for (uint32_t i = 0; i < insn->p; i++)
        *memory++ = predicates[i] >> lane & 1;
}

static void restore_lane(struct warp *warp, const struct insn *insn, unsigned lane,
                         const unsigned char *memory)
{
    uint64_t *wide = reg(warp, insn->d);
    uint32_t *narrow = (uint32_t *)(wide + insn->b * LANES);
    uint32_t *predicates = narrow + insn->c * LANES;
    for (uint32_t i = 0; i < insn->b; i++, memory += 8)
        memcpy(&wide[i * LANES + lane], memory, 8);
    for (uint32_t i = 0; i < insn->c; i++, memory += 4)
        memcpy(&narrow[i * LANES + lane], memory, 4);
    for (uint32_t i = 0; i < insn->p; i++)
        predicates[i] = (predicates[i] & ~(1u << lane)) | (uint32_t)*memory++ << lane;
}

/* Where lane's saved registers are, or NULL behind a fault. */
static unsigned char *saved_registers(struct warp *warp, const struct insn *insn, unsigned lane)
{
    const uint32_t *stack = reg(warp, warp->block->grid->program->stack_pointer);
    uint64_t at = stack[lane] + (uint64_t)insn->a;
    if (at + insn->b * 8ull + insn->c * 4ull + insn->p > warp->local_stride) {
        warp_fault(warp, insn, lane, CUDA_ERROR_HARDWARE_STACK_ERROR, "the stack overflows");
        return NULL;
    }
    return (unsigned char *)(uintptr_t)(warp->local + lane * warp->local_stride + at);
}

void run_save_registers(struct warp *warp, const struct insn *insn)
{
    EACH_ACTIVE_LANE
    {
        unsigned char *memory = saved_registers(warp, insn, lane);
        if (!memory)
            return;
        save_lane(warp, insn, lane, memory);
    }
}

void run_restore_registers(struct warp *warp, const struct insn *insn)
{
    EACH_ACTIVE_LANE
    {
        const unsigned char *memory = saved_registers(warp, insn, lane);
        if (!memory)
            return;
        restore_lane(warp, insn, lane, memory);
    }
}
