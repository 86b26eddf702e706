/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bulk copies and reductions. They are done at once, so groups of them have always ended; a barrier
 * that waits for bytes hears of them when they have come.
 *
 * An instruction is three insns: the first runs and has the destination, the nops behind it carry
 * the source and the barrier. Each lane that is active makes a copy of its own.
 */
#include "bulk.h"

#include <string.h>

#include "atomics.h"
#include "cluster.h"
#include "mbarrier.h"
#include "translate.h"
#include "warp.h"
#include "warp_fault.h"

#define BULK_ALIGN 16

/* Where the running lane's operand is; NULL behind a fault. */
static unsigned char *operand_address(struct warp *warp, const struct insn *insn, unsigned size,
                                      unsigned align, unsigned access, unsigned lane)
{
    if (!translate(warp, insn, size, align, access))
        return NULL;
    return (unsigned char *)(uintptr_t)warp->address[lane];
}

struct bulk {
    unsigned char *to;
    const unsigned char *from;
    uint64_t *barrier; /* or NULL */
    uint32_t size;
};

static void transfer(const struct insn *insn, const struct bulk *bulk)
{
    if (insn->mode == BULK_COPY)
        memmove(bulk->to, bulk->from, bulk->size);
    else
        atomic_reduce((enum atomic_op)(insn->mode - BULK_REDUCE), (enum ptx_type)insn->width,
                      bulk->to, bulk->from, bulk->size);
    if (bulk->barrier)
        mbarrier_complete(bulk->barrier, bulk->size);
}

/* To every block that the mask names. */
static void multicast_copy(struct warp *warp, const struct insn *insn, const struct bulk *bulk,
                           uint32_t mask, unsigned lane)
{
    const struct block *block = warp->block;
    for (; mask; mask &= mask - 1) {
        uint32_t rank = (uint32_t)__builtin_ctz(mask);
        struct bulk one = *bulk;
        one.to = cluster_counterpart(block, bulk->to, rank, bulk->size);
        one.barrier = bulk->barrier
                          ? (uint64_t *)(void *)cluster_counterpart(block, bulk->barrier, rank, 8)
                          : NULL;
        if (!one.to || (bulk->barrier && !one.barrier)) {
            warp_fault(warp, insn, lane, CUDA_ERROR_ILLEGAL_ADDRESS,
                       "block %u of a cluster that has fewer", rank);
            return;
        }
        transfer(insn, &one);
    }
}

static void run_lane(struct warp *warp, const struct insn *insn, unsigned lane)
{
    struct bulk bulk = {.size = ((const uint32_t *)reg(warp, insn->b))[lane]};
    unsigned access = insn->mode == BULK_COPY ? SG_WRITE : SG_READ | SG_WRITE;
    if (bulk.size % BULK_ALIGN) {
        warp_fault(warp, insn, lane, CUDA_ERROR_ILLEGAL_INSTRUCTION,
                   "a bulk copy of %u bytes, no multiple of %d", bulk.size, BULK_ALIGN);
        return;
    }
    if (bulk.size &&
        (!(bulk.from = operand_address(warp, insn + 1, bulk.size, BULK_ALIGN, SG_READ, lane)) ||
         !(bulk.to = operand_address(warp, insn, bulk.size, BULK_ALIGN, access, lane))))
        return;
    if (insn->p != NO_OPERAND && !(bulk.barrier = (uint64_t *)(void *)operand_address(
                                       warp, insn + 2, 8, 8, SG_READ | SG_WRITE, lane)))
        return;
    if (insn->c == NO_OPERAND)
        transfer(insn, &bulk);
    else
        multicast_copy(warp, insn, &bulk, ((const uint32_t *)reg(warp, insn->c))[lane] & 0xffff,
                       lane);
}

/* d: the destination's, as for other accesses; b: bytes; c: a mask of blocks, or none; p: whether a
 * barrier is told. */
void run_bulk(struct warp *warp, const struct insn *insn)
{
    uint32_t active = warp->active;
    for (uint32_t rest = active; rest && warp->event != WARP_FAULT; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        warp_set_active(warp, 1u << lane);
        run_lane(warp, insn, lane);
    }
    warp_set_active(warp, active);
}
