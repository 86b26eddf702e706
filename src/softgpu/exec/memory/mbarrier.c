/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barriers in shared memory. Only the host thread that runs the block accesses them, so nothing
 * here is atomic; lanes are processed one after another.
 */
#include "mbarrier.h"

#include "sg_space.h"
#include "translate.h"
#include "warp_fault.h"

#define COUNT_BITS 20
#define COUNT_MASK ((1u << COUNT_BITS) - 1)

/* A phase ends when no arrival is missing and as many bytes have come as were expected. */
struct mbarrier {
    uint32_t expected; /* arrivals of the next phase */
    uint32_t pending;  /* arrivals still missing in this one */
    int32_t bytes;     /* expected, less those that came */
    uint32_t phase;    /* of which only the last three bits are kept */
};

static struct mbarrier unpack_mbarrier(uint64_t bits)
{
    return (struct mbarrier){
        .expected = (uint32_t)bits & COUNT_MASK,
        .pending = (uint32_t)(bits >> COUNT_BITS) & COUNT_MASK,
        .bytes = (int32_t)((int64_t)(bits << 3) >> (3 + 2 * COUNT_BITS)),
        .phase = (uint32_t)(bits >> 61),
    };
}

static uint64_t pack_mbarrier(const struct mbarrier *barrier)
{
    uint64_t bytes = (uint32_t)barrier->bytes & (2 * COUNT_MASK + 1);
    return (barrier->expected & COUNT_MASK) |
           (uint64_t)(barrier->pending & COUNT_MASK) << COUNT_BITS | bytes << 2 * COUNT_BITS |
           (uint64_t)barrier->phase << 61;
}

static void end_phase_if_complete(struct mbarrier *barrier)
{
    if (barrier->pending || barrier->bytes)
        return;
    barrier->phase++;
    barrier->pending = barrier->expected;
}

static bool arrive_threads(struct mbarrier *barrier, uint32_t count, bool drops)
{
    if (count > barrier->pending)
        return false;
    barrier->pending -= count;
    barrier->expected -= drops ? count : 0;
    end_phase_if_complete(barrier);
    return true;
}

static bool apply_operation(struct mbarrier *barrier, const struct insn *insn, uint32_t count)
{
    switch (insn->mode) {
    case MBARRIER_INIT:
        *barrier = (struct mbarrier){.expected = count, .pending = count};
        return count > 0 && count <= COUNT_MASK;
    case MBARRIER_INVALIDATE:
        *barrier = (struct mbarrier){0};
        return true;
    case MBARRIER_EXPECT:
        barrier->bytes += (int32_t)count;
        return true;
    case MBARRIER_COMPLETE:
        barrier->bytes -= (int32_t)count;
        end_phase_if_complete(barrier);
        return true;
    case MBARRIER_ARRIVE_EXPECT:
        barrier->bytes += (int32_t)count;
        return arrive_threads(barrier, 1, insn->width & MBARRIER_DROPS);
    case MBARRIER_ARRIVE:
        return arrive_threads(barrier, count, insn->width & MBARRIER_DROPS);
    default:
        return true;
    }
}

void mbarrier_complete(uint64_t *memory, uint32_t bytes)
{
    struct mbarrier barrier = unpack_mbarrier(*memory);
    barrier.bytes -= (int32_t)bytes;
    end_phase_if_complete(&barrier);
    *memory = pack_mbarrier(&barrier);
}

/* Leaves in warp->address where each lane's barrier is; false behind a fault. */
static bool translate_barriers(struct warp *warp, const struct insn *insn)
{
    enum translation where = translate(warp, insn, 8, 8, SG_READ | SG_WRITE);
    if (where == TRANSLATION_GLOBAL)
        warp_fault(warp, insn, (unsigned)__builtin_ctz(warp->active), CUDA_ERROR_ILLEGAL_ADDRESS,
                   "a barrier outside of shared memory");
    return where == TRANSLATION_OWN;
}

void run_mbarrier(struct warp *warp, const struct insn *insn)
{
    if (!translate_barriers(warp, insn))
        return;
    const uint32_t *count = reg(warp, insn->b);
    uint64_t *state = insn->d == NO_OPERAND ? NULL : reg(warp, insn->d);
    EACH_ACTIVE_LANE
    {
        uint64_t *memory = (uint64_t *)(uintptr_t)warp->address[lane];
        uint64_t before = *memory;
        struct mbarrier barrier = unpack_mbarrier(before);
        if (!apply_operation(&barrier, insn, count[lane])) {
            warp_fault(warp, insn, lane, CUDA_ERROR_LAUNCH_FAILED,
                       "a count of %u at a barrier that lacks %u arrivals", count[lane],
                       unpack_mbarrier(before).pending);
            return;
        }
        *memory = pack_mbarrier(&barrier);
        if (state)
            state[lane] = before;
    }
}

/* A waiting lane lets others run. */
void run_mbarrier_test(struct warp *warp, const struct insn *insn)
{
    if (!translate_barriers(warp, insn))
        return;
    const uint64_t *state = reg(warp, insn->b);
    const uint32_t *parity = reg(warp, insn->b);
    uint32_t complete = 0;
    EACH_ACTIVE_LANE
    {
        uint32_t phase = (uint32_t)(*(uint64_t *)(uintptr_t)warp->address[lane] >> 61);
        bool is_over = insn->mode ? (phase & 1) != (parity[lane] & 1) : phase != state[lane] >> 61;
        complete |= (uint32_t)is_over << lane;
    }
    if (insn->d != NO_OPERAND)
        *pred(warp, insn->d) = (*pred(warp, insn->d) & ~warp->active) | complete;
    if (complete != warp->active)
        warp->budget = 0;
    warp->saw_phase_end |= complete != 0;
}

void run_mbarrier_pending(struct warp *warp, const struct insn *insn)
{
    const uint64_t *state = reg(warp, insn->a);
    uint32_t *to = reg(warp, insn->d);
    EACH_ACTIVE_LANE
    to[lane] = unpack_mbarrier(state[lane]).pending;
}
