/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of one state space in another: local, shared, parameters, a cluster, generic.
 */
#include "address_space.h"

#include "cluster.h"
#include "warp_fault.h"

#define EACH_LANE_WRITES(expression)              \
    for (unsigned lane = 0; lane < LANES; lane++) \
        to[lane] = warp->active >> lane & 1 ? (expression) : to[lane];

/* The address, in the local state space, of something at imm in the frame. */
void run_local_address(struct warp *warp, const struct insn *insn)
{
    const uint32_t *stack = reg(warp, warp->block->grid->program->stack_pointer);
    uint64_t *to = reg(warp, insn->d);
    EACH_LANE_WRITES(stack[lane] + insn->imm)
}

/* Parameters have a state space of their own, which begins at zero. */
void run_param_address(struct warp *warp, const struct insn *insn)
{
    uint64_t *to = reg(warp, insn->d);
    EACH_LANE_WRITES(insn->imm)
}

void run_param_to_generic(struct warp *warp, const struct insn *insn)
{
    uint64_t base = (uintptr_t)warp->block->grid->params;
    const uint64_t *from = reg(warp, insn->a);
    uint64_t *to = reg(warp, insn->d);
    EACH_LANE_WRITES(from[lane] + base)
}

void run_generic_to_param(struct warp *warp, const struct insn *insn)
{
    uint64_t base = (uintptr_t)warp->block->grid->params;
    const uint64_t *from = reg(warp, insn->a);
    uint64_t *to = reg(warp, insn->d);
    EACH_LANE_WRITES(from[lane] - base)
}

void run_shared_to_generic(struct warp *warp, const struct insn *insn)
{
    const struct block *block = warp->block;
    const uint64_t *from = reg(warp, insn->a);
    uint64_t *to = reg(warp, insn->d);
    EACH_LANE_WRITES(cluster_generic(block, from[lane]))
}

void run_generic_to_shared(struct warp *warp, const struct insn *insn)
{
    const struct block *block = warp->block;
    const uint64_t *from = reg(warp, insn->a);
    uint64_t *to = reg(warp, insn->d);
    EACH_LANE_WRITES(cluster_shared(block, from[lane]))
}

void run_local_to_generic(struct warp *warp, const struct insn *insn)
{
    const uint64_t *from = reg(warp, insn->a);
    uint64_t *to = reg(warp, insn->d);
    EACH_LANE_WRITES(from[lane] + warp->local + lane * warp->local_stride)
}

void run_generic_to_local(struct warp *warp, const struct insn *insn)
{
    const uint64_t *from = reg(warp, insn->a);
    uint64_t *to = reg(warp, insn->d);
    EACH_LANE_WRITES(from[lane] - warp->local - lane * warp->local_stride)
}

static bool is_in_space(const struct warp *warp, unsigned space, bool of_cluster, uint64_t address)
{
    const struct block *block = warp->block;
    bool own = address - (uintptr_t)block->shared < block->shared_size;
    bool shared = own || cluster_holds(block, address, 1);
    bool local = address - warp->local < LANES * warp->local_stride;
    bool param = address - (uintptr_t)block->grid->params < block->grid->info->params_size;
    switch (space) {
    case PTX_SHARED:
        return of_cluster ? shared : own;
    case PTX_LOCAL:
        return local;
    case PTX_PARAM:
        return param;
    case PTX_CONST:
        return false;
    default:
        return !shared && !local;
    }
}

/* isspacep */
void run_is_space(struct warp *warp, const struct insn *insn)
{
    const uint64_t *from = reg(warp, insn->a);
    uint32_t result = 0;
    EACH_ACTIVE_LANE
    result |= (uint32_t)is_in_space(warp, insn->space, insn->mode, from[lane]) << lane;
    uint32_t *p = pred(warp, insn->d);
    *p = (*p & ~warp->active) | result;
}

/* mapa: d is where in block b of the cluster lies what is at a in its own; mode says whether a is
 * generic. */
void run_map_address(struct warp *warp, const struct insn *insn)
{
    const uint64_t *from = reg(warp, insn->a);
    const uint32_t *rank = reg(warp, insn->b);
    uint64_t *to = reg(warp, insn->d);
    const struct block *block = warp->block;
    EACH_ACTIVE_LANE
    {
        const struct block *target = cluster_block(block, rank[lane]);
        if (!target) {
            warp_fault(warp, insn, lane, CUDA_ERROR_ILLEGAL_ADDRESS,
                       "block %u of a cluster that has fewer", rank[lane]);
            return;
        }
        uint64_t at = insn->mode ? cluster_shared(block, from[lane]) : from[lane];
        to[lane] = (at & CLUSTER_OFFSET_MASK) | (uint64_t)(rank[lane] + 1) << CLUSTER_OFFSET_BITS;
        if (insn->mode)
            to[lane] = cluster_generic(block, to[lane]);
    }
}

/* getctarank */
void run_rank_of_address(struct warp *warp, const struct insn *insn)
{
    const uint64_t *from = reg(warp, insn->a);
    uint32_t *to = reg(warp, insn->d);
    const struct block *block = warp->block;
    EACH_ACTIVE_LANE
    {
        const struct block *owner =
            cluster_owner(block, insn->mode ? from[lane] : cluster_generic(block, from[lane]));
        to[lane] = owner ? owner->rank : 0;
    }
}
