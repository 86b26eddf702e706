/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Branches, calls, and the wrappers around other handlers.
 */
#include "control_flow.h"

#include <fenv.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "block_state.h"
#include "lane_math.h"
#include "stack.h"
#include "warp.h"
#include "warp_fault.h"

static uint32_t guard_mask(struct warp *warp, uint32_t guard)
{
    uint32_t mask = *pred(warp, guard & ~1u);
    return warp->active & ((guard & 1) ? ~mask : mask);
}

void run_guarded(struct warp *warp, const struct insn *insn)
{
    uint32_t chosen = guard_mask(warp, insn->guard);
    uint32_t active = warp->active;
    if (chosen == active) {
        insn->inner(warp, insn);
        return;
    }
    if (chosen == 0)
        return;
    warp_set_active(warp, chosen);
    insn->inner(warp, insn);
    warp_set_active(warp, active);
}

#ifdef __SSE__
#define FLUSH_TO_ZERO 0x8040 /* FTZ and DAZ of MXCSR */

void run_in_fp_environment(struct warp *warp, const struct insn *insn)
{
    static const unsigned rounding[4] = {0x0000, 0x6000, 0x2000, 0x4000};
    unsigned saved = _mm_getcsr();
    unsigned flush = (insn->environment & FP_FLUSH) ? FLUSH_TO_ZERO : 0;
    _mm_setcsr((saved & ~0x6000u) | rounding[insn->environment & 3] | flush);
    insn->fp_inner(warp, insn);
    _mm_setcsr(saved);
}
#else
void run_in_fp_environment(struct warp *warp, const struct insn *insn)
{
    static const int rounding[4] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    int saved = fegetround();
    fesetround(rounding[insn->environment & 3]);
    insn->fp_inner(warp, insn);
    fesetround(saved);
}
#endif

void run_nop(struct warp *warp, const struct insn *insn)
{
}

void run_branch(struct warp *warp, const struct insn *insn)
{
    warp_branch(warp, warp->code + insn->imm, warp->active);
}

void run_branch_if(struct warp *warp, const struct insn *insn)
{
    uint32_t taken = guard_mask(warp, insn->guard);
    if (taken)
        warp_branch(warp, warp->code + insn->imm, taken);
}

/* Splits the running path by a value a lane; each part becomes a path of its own. */
static void scatter(struct warp *warp, const uint32_t *target, uint32_t lanes)
{
    const struct insn *code = warp->code;
    uint32_t rest = lanes;
    while (rest) {
        uint32_t first = target[__builtin_ctz(rest)];
        uint32_t same = 0;
        for (unsigned lane = 0; lane < LANES; lane++)
            same |= target[lane] == first ? 1u << lane : 0;
        same &= rest;
        if (same == warp->active) {
            warp_branch(warp, code + first, same);
            return;
        }
        warp_add_path(warp, code + first, same);
        rest &= ~same;
    }
    warp_leave(warp, WARP_PATH_ENDED);
}

/* The targets follow as nops that carry them; b says how many. */
void run_branch_indexed(struct warp *warp, const struct insn *insn)
{
    const uint32_t *index = reg(warp, insn->a);
    uint32_t target[LANES] = {0};
    EACH_ACTIVE_LANE
    {
        if (index[lane] >= insn->b) {
            warp_fault(warp, insn, lane, CUDA_ERROR_ILLEGAL_INSTRUCTION,
                       "a branch index of %u, beyond %u targets", index[lane], insn->b);
            return;
        }
        target[lane] = (uint32_t)insn[1 + index[lane]].imm;
    }
    scatter(warp, target, warp->active);
}

static bool grow_returns(struct warp *warp)
{
    uint32_t capacity = warp->returns_capacity ? 2 * warp->returns_capacity : 16;
    if (capacity > MAX_CALL_DEPTH)
        return false;
    uint32_t *returns = realloc(warp->returns, capacity * LANES * sizeof(*returns));
    if (!returns)
        return false;
    warp->returns = returns;
    warp->returns_capacity = capacity;
    return true;
}

/* insn.b: bytes of the caller's frame. The callee's frame begins behind it. */
static bool push_return(struct warp *warp, const struct insn *insn, unsigned lane,
                        uint32_t callee_frame)
{
    uint32_t *stack = reg(warp, warp->block->grid->program->stack_pointer);
    bool fits = stack[lane] + (uint64_t)insn->b + callee_frame <= stack_limit(warp, lane);
    if (!fits || (warp->depth[lane] == warp->returns_capacity && !grow_returns(warp))) {
        warp_fault(warp, insn, lane, CUDA_ERROR_HARDWARE_STACK_ERROR, "the stack overflows");
        return false;
    }
    uint32_t next = (uint32_t)(warp->pc - warp->code);
    warp->returns[warp->depth[lane]++ * LANES + lane] = next;
    stack[lane] += insn->b;
    return true;
}

void run_call(struct warp *warp, const struct insn *insn)
{
    EACH_ACTIVE_LANE
    {
        if (!push_return(warp, insn, lane, insn->c))
            return;
    }
    const struct insn *target = warp->code + insn->imm;
    warp_branch(warp, target, warp->active);
}

void run_call_pointer(struct warp *warp, const struct insn *insn)
{
    const struct program *program = warp->block->grid->program;
    const uint64_t *pointer = reg(warp, insn->a);
    uint32_t target[LANES] = {0};
    EACH_ACTIVE_LANE
    {
        uint64_t index = function_index(pointer[lane]);
        if (index >= program->function_count || !program->functions[index].may_be_called) {
            warp_fault(warp, insn, lane, CUDA_ERROR_INVALID_PC,
                       "a call to 0x%llx, where no function is", (unsigned long long)pointer[lane]);
            return;
        }
        target[lane] = program->functions[index].start;
        if (!push_return(warp, insn, lane, program->functions[index].frame))
            return;
    }
    scatter(warp, target, warp->active);
}

void run_ret(struct warp *warp, const struct insn *insn)
{
    if (!warp->block->grid->program->calls) {
        warp_exit_lanes(warp, warp->active);
        return;
    }
    const struct insn *code = warp->code;
    uint32_t *stack = reg(warp, warp->block->grid->program->stack_pointer);
    uint32_t target[LANES] = {0};
    uint32_t leaving = 0;
    EACH_ACTIVE_LANE
    {
        if (warp->depth[lane] == 0) {
            leaving |= 1u << lane;
            continue;
        }
        target[lane] = warp->returns[--warp->depth[lane] * LANES + lane];
        stack[lane] -= code[target[lane] - 1].b;
    }
    uint32_t returning = warp->active & ~leaving;
    if (leaving) {
        warp_set_active(warp, leaving);
        warp_exit_lanes(warp, leaving);
    }
    scatter(warp, target, returning);
}

void run_exit(struct warp *warp, const struct insn *insn)
{
    warp_exit_lanes(warp, warp->active);
}

void run_trap(struct warp *warp, const struct insn *insn)
{
    warp_fault(warp, insn, (unsigned)__builtin_ctz(warp->active), CUDA_ERROR_LAUNCH_FAILED, "trap");
}

void run_fence(struct warp *warp, const struct insn *insn)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* From so many nanoseconds on the host's thread may sleep, for which it takes about as long. */
#define LONG_SLEEP 10000

/* The block's turn ends, too: other blocks are what a thread that sleeps waits for. */
void run_nanosleep(struct warp *warp, const struct insn *insn)
{
    const uint32_t *nanoseconds = reg(warp, insn->a);

    if (nanoseconds[__builtin_ctz(warp->active)] >= LONG_SLEEP)
        warp->block->sleepers++;
    warp->budget = 0;
    warp_leave(warp, WARP_YIELD);
}
