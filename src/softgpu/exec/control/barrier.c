/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barriers of a block. Lanes arrive one by one. A barrier opens when as many have come as it
 * expects; without a count that is every lane that has not exited.
 */
#include "barrier.h"

#include <string.h>

#include "warp.h"
#include "warp_fault.h"

static uint32_t arrived_lanes(const struct block *block, const struct barrier *barrier)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < block->warp_count; i++) {
        uint32_t here = barrier->arrived[i];
        /* A whole warp counts as 32, although its last lanes may not exist. */
        bool whole = here && (here | ~block->warps[i].alive) == FULL_MASK;
        count += whole ? LANES : (uint32_t)__builtin_popcount(here);
    }
    return count;
}

/* The last warps mostly come last, so they are asked first. */
static bool everyone_is_here(const struct block *block, const struct barrier *barrier)
{
    for (uint32_t i = block->warp_count; i-- > 0;) {
        if (block->warps[i].alive & ~barrier->arrived[i])
            return false;
    }
    return true;
}

static bool is_complete(const struct block *block, const struct barrier *barrier)
{
    return barrier->expected ? arrived_lanes(block, barrier) >= barrier->expected
                             : everyone_is_here(block, barrier);
}

/* The waiting lanes of this barrier that go on at this instruction. */
static uint32_t waiting_at(const struct warp *warp, unsigned number, const struct insn *pc)
{
    uint32_t lanes = 0;
    for (unsigned lane = 0; lane < LANES; lane++)
        lanes |= (uint32_t)(warp->barrier_of[lane] == number && warp->blocked_pc[lane] == pc)
                 << lane;
    return lanes & warp->at_barrier;
}

static void release_whole(struct warp *warp, unsigned number)
{
    if (warp->whole_barrier != number)
        return;
    warp_resume(warp, warp->whole_pc, warp->at_barrier);
    warp->at_barrier = 0;
    warp->whole_pc = NULL;
}

static void release_lanes(struct warp *warp, unsigned number)
{
    uint32_t left = warp->at_barrier;
    while (left) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        const struct insn *pc = warp->blocked_pc[lane];
        uint32_t released = waiting_at(warp, number, pc);
        if (released)
            warp_resume(warp, pc, released);
        warp->at_barrier &= ~released;
        left &= ~(released | 1u << lane);
    }
}

static void release_barrier(struct block *block, unsigned number)
{
    struct barrier *barrier = &block->barriers[number];
    barrier->last_count = barrier->count;
    barrier->last_any = barrier->any;
    barrier->last_all = !barrier->not_all;
    for (uint32_t i = 0; i < block->warp_count; i++) {
        struct warp *warp = &block->warps[i];
        if (warp->at_barrier && warp->whole_pc)
            release_whole(warp, number);
        else if (warp->at_barrier)
            release_lanes(warp, number);
    }
    block->barriers_in_use &= ~(1u << number);
}

void barrier_recheck(struct block *block)
{
    for (uint32_t left = block->barriers_in_use; left; left &= left - 1) {
        unsigned number = (unsigned)__builtin_ctz(left);
        if (is_complete(block, &block->barriers[number]))
            release_barrier(block, number);
    }
}

/* Resets the arrivals; the results of the last opening stay. */
static void begin_use(struct block *block, unsigned number)
{
    struct barrier *barrier = &block->barriers[number];
    memset(barrier->arrived, 0, block->warp_count * sizeof(*barrier->arrived));
    barrier->count = 0;
    barrier->any = false;
    barrier->not_all = false;
    block->barriers_in_use |= 1u << number;
}

static void arrive_warp(struct barrier *barrier, const struct warp *warp, const struct insn *insn)
{
    barrier->arrived[warp->index] |= warp->active;
    if (insn->mode < BARRIER_POPC)
        return;
    uint32_t values =
        *(const uint32_t *)(warp->regs + insn->c) ^ ((insn->flags & INSN_NEGATE_C) ? FULL_MASK : 0);
    values &= warp->active;
    barrier->count += (uint32_t)__builtin_popcount(values);
    barrier->any |= values != 0;
    barrier->not_all |= values != warp->active;
}

static void wait_at(struct warp *warp, unsigned number)
{
    warp->at_barrier |= warp->active;
    if (warp->active == warp->alive) {
        warp->whole_pc = warp->pc;
        warp->whole_barrier = number;
        return;
    }
    for (unsigned lane = 0; lane < LANES; lane++) {
        bool arrives = warp->active >> lane & 1;
        warp->blocked_pc[lane] = arrives ? warp->pc : warp->blocked_pc[lane];
        warp->barrier_of[lane] = arrives ? (uint8_t)number : warp->barrier_of[lane];
    }
}

/* a: the barrier's number, b: how many threads it expects. The result is read by the instruction
 * behind it. */
void run_barrier(struct warp *warp, const struct insn *insn)
{
    struct block *block = warp->block;
    unsigned first = (unsigned)__builtin_ctz(warp->active);
    uint32_t number = ((const uint32_t *)reg(warp, insn->a))[first];
    uint32_t expected = insn->b == NO_OPERAND ? 0 : ((const uint32_t *)reg(warp, insn->b))[first];
    if (number >= BARRIERS) {
        warp_fault(warp, insn, first, CUDA_ERROR_ILLEGAL_INSTRUCTION, "barrier %u, of %d", number,
                   BARRIERS);
        return;
    }
    struct barrier *barrier = &block->barriers[number];
    if (!(block->barriers_in_use >> number & 1))
        begin_use(block, number);
    barrier->expected = expected;
    arrive_warp(barrier, warp, insn);
    if (insn->mode != BARRIER_ARRIVE) {
        wait_at(warp, number);
        warp_leave(warp, WARP_PATH_ENDED);
    }
    if (is_complete(block, barrier))
        release_barrier(block, number);
}

/* Whether no warp has to wait: the whole block is at the barrier, and no warp waited before. */
static bool opens_at_once(struct warp *const *team, unsigned count, const struct insn *insn)
{
    const struct block *block = team[0]->block;
    if (count < block->warp_count || insn->mode != BARRIER_SYNC || insn->b != NO_OPERAND)
        return false;
    uint32_t number = ((const uint32_t *)reg(team[0], insn->a))[__builtin_ctz(team[0]->active)];
    for (unsigned i = 1; i < count; i++) {
        unsigned first = (unsigned)__builtin_ctz(team[i]->active);
        if (((const uint32_t *)reg(team[i], insn->a))[first] != number)
            return false;
    }
    return number < BARRIERS && !(block->barriers_in_use >> number & 1);
}

void team_barrier(struct warp *const *team, unsigned count, const struct insn *insn)
{
    if (opens_at_once(team, count, insn))
        return;
    for (unsigned i = 0; i < count; i++)
        run_barrier(team[i], insn);
}

/* The result of bar.red, for the lanes that have just been released: d is a register, or p a
 * predicate. */
void run_barrier_result(struct warp *warp, const struct insn *insn)
{
    unsigned first = (unsigned)__builtin_ctz(warp->active);
    uint32_t number = ((const uint32_t *)reg(warp, insn->a))[first] % BARRIERS;
    const struct barrier *barrier = &warp->block->barriers[number];
    if (insn->mode == BARRIER_POPC) {
        uint32_t *to = reg(warp, insn->d);
        EACH_ACTIVE_LANE
        to[lane] = barrier->last_count;
        return;
    }
    bool value = insn->mode == BARRIER_AND ? barrier->last_all : barrier->last_any;
    uint32_t *p = pred(warp, insn->d);
    *p = (*p & ~warp->active) | (value ? warp->active : 0);
}
