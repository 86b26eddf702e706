/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A warp's control flow: paths of lanes, and which one runs.
 *
 * The running path goes on until it reaches the next path's instruction (stop), and joins it there.
 * All jumps come through warp_branch, which keeps stop right. A path that uses up its budget lets
 * the others run before it, although they are not the lowest. Else a lane that spins would keep the
 * lane that it waits for from ever running.
 *
 * Warps of a block mostly do the same. So a few of them run as a team: each instruction in all of
 * them, then the next one. The CPU has work from one while it waits for another's result, and
 * arithmetic is dispatched once for the whole team. Where one goes its own way, each goes on alone
 * up to the end of its path.
 */
#include "warp.h"

#include <stdlib.h>
#include <string.h>

#include "barrier.h"
#include "cluster.h"
#include "special.h"

#define NO_STOP ((const struct insn *)UINTPTR_MAX)

void warp_set_active(struct warp *warp, uint32_t mask)
{
    warp->active = mask;
    warp->full = (mask | ~warp->alive) == FULL_MASK;
    if (warp->full)
        return;
    for (unsigned lane = 0; lane < LANES; lane++)
        warp->lane_on[lane] = (mask & 1u << lane) ? FULL_MASK : 0;
}

void warp_leave(struct warp *warp, enum warp_event event)
{
    warp->event = event;
    warp->stop = NULL;
}

void warp_add_path(struct warp *warp, const struct insn *pc, uint32_t mask)
{
    struct path *paths = warp->paths;
    uint32_t at = warp->path_count;
    while (at > 0 && paths[at - 1].pc < pc)
        at--;
    if (at > 0 && paths[at - 1].pc == pc) {
        paths[at - 1].mask |= mask;
        return;
    }
    for (uint32_t i = warp->path_count; i > at; i--)
        paths[i] = paths[i - 1];
    paths[at] = (struct path){.pc = pc, .mask = mask};
    warp->path_count++;
}

/* The nearest path above the running one. */
static void update_stop(struct warp *warp)
{
    warp->stop = NO_STOP;
    for (uint32_t i = warp->path_count; i-- > 0;) {
        if (warp->paths[i].pc > warp->pc) {
            warp->stop = warp->paths[i].pc;
            return;
        }
    }
}

void warp_resume(struct warp *warp, const struct insn *pc, uint32_t mask)
{
    warp_add_path(warp, pc, mask);
    if (warp->event == WARP_RUNS)
        update_stop(warp);
}

static uint32_t next_path(const struct warp *warp)
{
    for (uint32_t i = warp->path_count; warp->last && i-- > 0;) {
        if (warp->paths[i].pc > warp->last)
            return i;
    }
    return warp->path_count - 1;
}

static bool choose_path(struct warp *warp)
{
    if (warp->path_count == 0)
        return false;
    uint32_t at = next_path(warp);
    struct path chosen = warp->paths[at];
    warp->last = NULL;
    warp->out_of_order = at != warp->path_count - 1;
    warp->path_count--;
    for (uint32_t i = at; i < warp->path_count; i++)
        warp->paths[i] = warp->paths[i + 1];
    warp->pc = chosen.pc;
    warp_set_active(warp, chosen.mask);
    update_stop(warp);
    return true;
}

static void count_jump(struct warp *warp, const struct insn *from)
{
    if (warp->out_of_order && !warp->event)
        update_stop(warp);
    if (warp->pc <= from && --warp->budget <= 0 && !warp->event)
        warp_leave(warp, WARP_YIELD);
}

void warp_branch(struct warp *warp, const struct insn *target, uint32_t taken)
{
    const struct insn *next = warp->pc;
    uint32_t stays = warp->active & ~taken;
    if (stays == 0) {
        warp->pc = target;
    } else if (taken != 0) {
        bool backward = target < next;
        warp_add_path(warp, backward ? next : target, backward ? stays : taken);
        warp_set_active(warp, backward ? taken : stays);
        warp->pc = backward ? target : next;
        update_stop(warp);
    }
    count_jump(warp, next - 1);
}

void warp_exit_lanes(struct warp *warp, uint32_t mask)
{
    warp->alive &= ~mask;
    uint32_t rest = warp->active & ~mask;
    if (rest)
        warp_add_path(warp, warp->pc, rest);
    warp_leave(warp, WARP_PATH_ENDED);
    barrier_recheck(warp->block);
    cluster_recheck(warp->block);
}

/* No other path can run: lanes that wait for lanes on other paths go on without them. */
static bool give_up_waiting(struct warp *warp)
{
    uint32_t waiting = warp->at_sync;
    if (waiting == 0)
        return false;
    for (unsigned lane = 0; lane < LANES; lane++) {
        if (waiting >> lane & 1)
            warp_add_path(warp, warp->blocked_pc[lane], 1u << lane);
    }
    warp->at_sync = 0;
    warp->forced = true;
    return true;
}

bool warp_converged(struct warp *warp, const struct insn *insn, uint32_t members)
{
    uint32_t missing = members & warp->alive & ~warp->active;
    if (missing == 0 || warp->forced) {
        warp->forced = false;
        return true;
    }
    /* Lanes of the warp that came here before are waiting; with them it may be complete. */
    uint32_t here = 0;
    for (unsigned lane = 0; lane < LANES; lane++) {
        if ((warp->at_sync >> lane & 1) && warp->blocked_pc[lane] == insn)
            here |= 1u << lane;
    }
    warp->at_sync &= ~here;
    if ((missing & ~here) == 0) {
        warp_add_path(warp, insn, warp->active | here);
        warp_leave(warp, WARP_PATH_ENDED);
        return false;
    }
    here |= warp->active;
    for (unsigned lane = 0; lane < LANES; lane++) {
        if (here >> lane & 1)
            warp->blocked_pc[lane] = insn;
    }
    warp->at_sync |= here;
    warp_leave(warp, WARP_PATH_ENDED);
    return false;
}

/* A straight-line run of instructions that only compute needs no look at the warp's state. */
static void run_path(struct warp *warp)
{
    for (;;) {
        const struct insn *insn = warp->pc;
        if (insn >= warp->stop)
            return;
        if (insn->run_length == 0) {
            warp->pc = insn + 1;
            insn->run(warp, insn);
            continue;
        }
        warp->pc = insn + insn->run_length;
        for (const struct insn *end = warp->pc; insn < end; insn++)
            insn->run(warp, insn);
    }
}

enum standing {
    APART,    /* not all warps go on at the instruction */
    DIVERGED, /* they do, but not with all of their lanes */
    FULL,
};

static inline enum standing stand_at(struct warp *const *team, unsigned count,
                                     const struct insn *insn)
{
    bool full = true;
    for (unsigned i = 0; i < count; i++) {
        if (team[i]->pc != insn || insn >= team[i]->stop)
            return APART;
        full &= team[i]->full;
    }
    return full ? FULL : DIVERGED;
}

static inline void run_in_each(struct warp *const *team, unsigned count, const struct insn *insn)
{
    for (unsigned i = 0; i < count; i++)
        insn->run(team[i], insn);
}

/* Each instruction in all warps before the next one, for as long as none goes its own way. */
static void run_team(struct warp *const *team, unsigned count)
{
    for (;;) {
        const struct insn *insn = team[0]->pc;
        enum standing standing = stand_at(team, count, insn);
        if (standing == APART)
            return;
        const struct insn *end = insn + (insn->run_length ? insn->run_length : 1);
        for (unsigned i = 0; i < count; i++)
            team[i]->pc = end;
        for (; insn < end; insn++) {
            if (standing == FULL && (insn->flags & INSN_IN_TEAM))
                insn->in_team(team, count, insn);
            else
                run_in_each(team, count, insn);
        }
    }
}

/* Behind a path: whether the warp's turn goes on. */
static bool goes_on(struct warp *warp)
{
    if (warp->event == WARP_FAULT)
        return false;
    if (warp->event == WARP_PATH_ENDED) {
        if (--warp->budget > 0)
            return true;
        if (warp->path_count > 1)
            warp->last = warp->paths[warp->path_count - 1].pc;
        return false;
    }
    warp_add_path(warp, warp->pc, warp->active);
    if (warp->event == WARP_YIELD)
        warp->last = warp->pc;
    return warp->event != WARP_YIELD;
}

static bool begins_path(struct warp *warp)
{
    warp->event = WARP_RUNS;
    return choose_path(warp) || (give_up_waiting(warp) && choose_path(warp));
}

/* Keeps those warps of the team of which `stays` holds. */
static unsigned keep_warps(struct warp **team, unsigned count, bool (*stays)(struct warp *warp))
{
    unsigned kept = 0;
    for (unsigned i = 0; i < count; i++) {
        struct warp *warp = team[i];
        if (stays(warp))
            team[kept++] = warp;
    }
    return kept;
}

bool warps_run(struct warp *const *warps, unsigned count, int32_t budget)
{
    struct warp *team[MAX_TEAM];
    unsigned going = count;
    for (unsigned i = 0; i < count; i++) {
        team[i] = warps[i];
        team[i]->budget = budget;
    }
    while ((going = keep_warps(team, going, begins_path)) > 0) {
        if (going > 1)
            run_team(team, going);
        for (unsigned i = 0; i < going; i++)
            run_path(team[i]);
        going = keep_warps(team, going, goes_on);
    }
    bool used_up = false;
    for (unsigned i = 0; i < count; i++)
        used_up |= warps[i]->budget <= 0;
    return used_up;
}

void warp_step(struct warp *warp, unsigned steps)
{
    warp->budget = INT32_MAX;
    if (!begins_path(warp))
        return;
    for (; steps > 0 && warp->pc < warp->stop; steps--) {
        const struct insn *insn = warp->pc++;
        insn->run(warp, insn);
    }
    goes_on(warp);
}

bool warp_can_run(const struct warp *warp)
{
    return warp->path_count > 0 || warp->at_sync != 0;
}

/* By vectors: blocks of different grids may take turns in the same memory, so this happens often.
 */
static void fill_row(void *row, uint64_t bits, bool is_wide)
{
    typedef uint64_t pair __attribute__((vector_size(16)));
    uint64_t two = is_wide ? bits : (uint32_t)bits | bits << 32;
    pair *to = __builtin_assume_aligned(row, sizeof(pair));
    unsigned count = LANES * (is_wide ? 8 : 4) / sizeof(pair);
    for (unsigned i = 0; i < count; i++)
        to[i] = (pair){two, two};
}

static void fill_constants(struct warp *warp, const struct program *program)
{
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const struct constant *constant = &program->constants[i];
        fill_row(reg(warp, constant->offset), constant->bits, constant->is_wide);
    }
}

static void fill_params(struct warp *warp, const struct program *program)
{
    for (uint32_t i = 0; i < program->param_count; i++) {
        const struct param_register *param = &program->params[i];
        uint64_t bits = 0;
        memcpy(&bits, warp->block->grid->params + param->at, param->is_wide ? 8 : 4);
        fill_row(reg(warp, param->offset), bits, param->is_wide);
    }
}

/* Everyone's stack is empty. */
static void reset_stack(struct warp *warp, const struct program *program)
{
    memset(reg(warp, program->stack_pointer), 0, LANES * sizeof(uint32_t));
}

void warp_start(struct warp *warp, uint32_t lanes, bool same_grid)
{
    const struct program *program = warp->block->grid->program;
    warp->alive = lanes >= LANES ? FULL_MASK : (1u << lanes) - 1;
    warp->path_count = 0;
    warp->at_barrier = 0;
    warp->at_sync = 0;
    warp->code = program->code;
    warp_add_path(warp, program->code + program->entry, warp->alive);
    if (!same_grid) {
        fill_constants(warp, program);
        fill_params(warp, program);
    }
    if (!same_grid || program->calls)
        reset_stack(warp, program);
    uint32_t *limits = program->stack_limits ? reg(warp, program->stack_limits) : NULL;
    for (unsigned lane = 0; limits && lane < LANES; lane++)
        limits[lane] = (uint32_t)warp->local_stride;
    for (uint32_t i = 0; i < program->special_count; i++) {
        const struct special_use *use = &program->specials[i];
        if (!same_grid || special_is_of_block(use->special))
            special_fill(warp, use->special, use->offset);
    }
}

void warp_end(struct warp *warp)
{
    free(warp->returns);
    warp->returns = NULL;
}
