/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collective instructions of a warp's lanes: shuffles, votes, matches, reductions.
 *
 * Each names its members; the instruction runs when all of them that are alive have come to it.
 * Groups of lanes that name different members have nothing to do with each other.
 */
#include "collective.h"

#include <string.h>

#include "atomic_op.h"
#include "warp.h"

/* The active lanes that name the same members as the first one. */
static uint32_t lanes_that_name(struct warp *warp, const uint32_t *named, uint32_t members)
{
    uint32_t differences = 0, same = 0;
    for (unsigned lane = 0; lane < LANES; lane++)
        differences |= named[lane] ^ members;
    if (differences == 0)
        return warp->active;
    EACH_ACTIVE_LANE
    same |= (uint32_t)(named[lane] == members) << lane;
    return same;
}

/*
 * True when all members are here. Lanes that name others, as the tiles of a warp do, come to the
 * instruction once more, by themselves.
 */
static bool meet_members(struct warp *warp, const struct insn *insn, uint32_t *ret_members)
{
    const uint32_t *named = reg(warp, insn->guard);
    uint32_t members = named[__builtin_ctz(warp->active)];
    uint32_t same = lanes_that_name(warp, named, members);
    *ret_members = members;
    if (same == warp->active)
        return warp_converged(warp, insn, members);
    warp_add_path(warp, insn, warp->active & ~same);
    warp_set_active(warp, same);
    warp->stop = NULL; /* behind this instruction it is the others' turn */
    return warp_converged(warp, insn, members);
}

/*
 * The same for shuffles, whose lanes need not agree on the members. The lanes that are here execute
 * it together, and may read from each other, once all members that any of them names are here too.
 */
static bool meet_any(struct warp *warp, const struct insn *insn)
{
    const uint32_t *named = reg(warp, insn->guard);
    uint32_t members = 0;
    EACH_ACTIVE_LANE
    members |= named[lane];
    bool complete = (members & warp->alive & ~warp->active) == 0;
    return complete ? warp_converged(warp, insn, members) : meet_members(warp, insn, &members);
}

/* The lane that a lane reads from, and whether that is inside the segment that the clamp (c)
 * describes. */
static bool shuffle_source(unsigned mode, unsigned lane, uint32_t by, uint32_t clamp,
                           unsigned *ret_source)
{
    uint32_t segment = clamp >> 8 & 0x1f;
    uint32_t bound = clamp & 0x1f;
    uint32_t lowest = lane & segment;
    uint32_t limit = lowest | (bound & ~segment);
    int source = 0;
    bool inside = false;
    by &= 0x1f;
    switch (mode) {
    case SHUFFLE_UP:
        source = (int)lane - (int)by;
        inside = source >= (int)limit;
        break;
    case SHUFFLE_DOWN:
        source = (int)(lane + by);
        inside = source <= (int)limit;
        break;
    case SHUFFLE_BUTTERFLY:
        source = (int)(lane ^ by);
        inside = source <= (int)limit;
        break;
    default:
        source = (int)(lowest | (by & ~segment));
        inside = source <= (int)limit;
        break;
    }
    *ret_source = inside ? (unsigned)source & 31 : lane;
    return inside;
}

/*
 * The value that each lane offers. One that does not execute the instruction offers zero. PTX
 * leaves it undefined; an H100 gives zero, be the lane on another path, not there at all, or gone.
 */
static void offered_values(struct warp *warp, const uint32_t *from, uint32_t *ret_value)
{
    memcpy(ret_value, from, LANES * sizeof(*from));
    for (uint32_t rest = ~warp->active; rest; rest &= rest - 1)
        ret_value[__builtin_ctz(rest)] = 0;
}

/* d|q = shuffle of a by b with clamp c among the members in guard. */
void run_shuffle(struct warp *warp, const struct insn *insn)
{
    if (!meet_any(warp, insn))
        return;
    uint32_t value[LANES];
    uint32_t inside = 0;
    offered_values(warp, reg(warp, insn->a), value);
    const uint32_t *by = reg(warp, insn->b);
    const uint32_t *clamp = reg(warp, insn->c);
    uint32_t *to = reg(warp, insn->d);
    EACH_ACTIVE_LANE
    {
        unsigned source;
        bool is_inside = shuffle_source(insn->mode, lane, by[lane], clamp[lane], &source);
        inside |= (uint32_t)is_inside << lane;
        to[lane] = value[source];
    }
    if (insn->p != NO_OPERAND) {
        uint32_t *q = pred(warp, insn->p);
        *q = (*q & ~warp->active) | (inside & warp->active);
    }
}

/* d = vote on the predicate a among the members in guard. */
void run_vote(struct warp *warp, const struct insn *insn)
{
    uint32_t members;
    if (!meet_members(warp, insn, &members))
        return;
    uint32_t active = warp->active;
    uint32_t voters = active & members;
    uint32_t votes =
        (*pred(warp, insn->a) ^ ((insn->flags & INSN_NEGATE_C) ? FULL_MASK : 0)) & voters;
    if (insn->mode == VOTE_BALLOT) {
        uint32_t *to = reg(warp, insn->d);
        EACH_ACTIVE_LANE
        to[lane] = votes;
        return;
    }
    bool result = insn->mode == VOTE_ALL   ? votes == voters
                  : insn->mode == VOTE_ANY ? votes != 0
                                           : votes == 0 || votes == voters;
    uint32_t *p = pred(warp, insn->d);
    *p = (*p & ~active) | (result ? active : 0);
}

static uint64_t lane_value(struct warp *warp, uint32_t offset, unsigned lane, bool wide)
{
    return wide ? ((const uint64_t *)reg(warp, offset))[lane]
                : ((const uint32_t *)reg(warp, offset))[lane];
}

static uint32_t lanes_with(struct warp *warp, uint32_t offset, uint64_t value, uint32_t among,
                           bool wide)
{
    uint32_t same = 0;
    for (unsigned lane = 0; lane < LANES; lane++)
        same |= lane_value(warp, offset, lane, wide) == value ? 1u << lane : 0;
    return same & among;
}

static void match_any(struct warp *warp, const struct insn *insn, bool wide)
{
    uint32_t members;
    if (!meet_members(warp, insn, &members))
        return;
    uint32_t result[LANES];
    EACH_ACTIVE_LANE
    {
        uint64_t value = lane_value(warp, insn->a, lane, wide);
        result[lane] = lanes_with(warp, insn->a, value, warp->active & members, wide);
    }
    uint32_t *to = reg(warp, insn->d);
    EACH_ACTIVE_LANE
    to[lane] = result[lane];
}

static void match_all(struct warp *warp, const struct insn *insn, bool wide)
{
    uint32_t members;
    if (!meet_members(warp, insn, &members))
        return;
    uint32_t voters = warp->active & members;
    uint64_t value = lane_value(warp, insn->a, (unsigned)__builtin_ctz(warp->active), wide);
    bool all = lanes_with(warp, insn->a, value, voters, wide) == voters;
    uint32_t *to = reg(warp, insn->d);
    EACH_ACTIVE_LANE
    to[lane] = all ? voters : 0;
    if (insn->p != NO_OPERAND) {
        uint32_t *q = pred(warp, insn->p);
        *q = (*q & ~warp->active) | (all ? warp->active : 0);
    }
}

void run_match_any_b32(struct warp *warp, const struct insn *insn)
{
    match_any(warp, insn, false);
}

void run_match_any_b64(struct warp *warp, const struct insn *insn)
{
    match_any(warp, insn, true);
}

void run_match_all_b32(struct warp *warp, const struct insn *insn)
{
    match_all(warp, insn, false);
}

void run_match_all_b64(struct warp *warp, const struct insn *insn)
{
    match_all(warp, insn, true);
}

static uint32_t reduce(unsigned op, bool is_signed, uint32_t x, uint32_t y)
{
    switch (op) {
    case ATOMIC_ADD:
        return x + y;
    case ATOMIC_MIN:
        return is_signed ? ((int32_t)x < (int32_t)y ? x : y) : (x < y ? x : y);
    case ATOMIC_MAX:
        return is_signed ? ((int32_t)x > (int32_t)y ? x : y) : (x > y ? x : y);
    case ATOMIC_AND:
        return x & y;
    case ATOMIC_OR:
        return x | y;
    default:
        return x ^ y;
    }
}

/* insn.mode is an atomic_op; width 1 means signed. */
void run_redux(struct warp *warp, const struct insn *insn)
{
    uint32_t members;
    if (!meet_members(warp, insn, &members))
        return;
    const uint32_t *from = reg(warp, insn->a);
    uint32_t *to = reg(warp, insn->d);
    uint32_t result = 0;
    bool first = true;
    EACH_ACTIVE_LANE
    {
        if (!(members >> lane & 1))
            continue;
        result = first ? from[lane] : reduce(insn->mode, insn->width, result, from[lane]);
        first = false;
    }
    EACH_ACTIVE_LANE
    to[lane] = result;
}

/* d|p: the lowest member, and whether it is this lane. */
void run_elect(struct warp *warp, const struct insn *insn)
{
    uint32_t members;
    if (!meet_members(warp, insn, &members))
        return;
    uint32_t voters = warp->active & members;
    unsigned leader = (unsigned)__builtin_ctz(voters ? voters : warp->active);
    if (insn->d != NO_OPERAND) {
        uint32_t *to = reg(warp, insn->d);
        EACH_ACTIVE_LANE
        to[lane] = leader;
    }
    uint32_t *p = pred(warp, insn->p);
    *p = (*p & ~warp->active) | 1u << leader;
}

void run_activemask(struct warp *warp, const struct insn *insn)
{
    uint32_t *to = reg(warp, insn->d);
    EACH_ACTIVE_LANE
    to[lane] = warp->active;
}

void run_warp_barrier(struct warp *warp, const struct insn *insn)
{
    uint32_t members;
    meet_members(warp, insn, &members);
}
