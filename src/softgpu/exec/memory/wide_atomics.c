/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Atomic operations on 128 bits. All are made of one compare-and-swap.
 */
#include "wide_atomics.h"

#include <pthread.h>

#include "ordering.h"
#include "sg_space.h"
#include "translate.h"
#include "wide_access.h"

typedef unsigned __int128 wide;

/* Where the CPU's moves of 16 bytes are not atomic, this is held for each strong access. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void wide_load_locked(void *to, const void *from)
{
    pthread_mutex_lock(&lock);
    wide_load(to, from);
    pthread_mutex_unlock(&lock);
}

void wide_store_locked(void *to, const void *from)
{
    pthread_mutex_lock(&lock);
    wide_store(to, from);
    pthread_mutex_unlock(&lock);
}

static wide compare_and_swap_locked(wide *memory, wide expected, wide value)
{
    pthread_mutex_lock(&lock);
    wide old = *memory;
    *memory = old == expected ? value : old;
    pthread_mutex_unlock(&lock);
    return old;
}

#ifdef __x86_64__
static wide compare_and_swap(wide *memory, wide expected, wide value)
{
    if (!wide_moves_are_atomic())
        return compare_and_swap_locked(memory, expected, value);
    return __sync_val_compare_and_swap(memory, expected, value);
}
#else
static wide compare_and_swap(wide *memory, wide expected, wide value)
{
    return compare_and_swap_locked(memory, expected, value);
}
#endif

static wide exchange(wide *memory, wide value)
{
    wide old = compare_and_swap(memory, 0, 0);
    for (;;) {
        wide found = compare_and_swap(memory, old, value);
        if (found == old)
            return old;
        old = found;
    }
}

static wide get_wide(struct warp *warp, uint32_t offset, unsigned lane)
{
    const uint64_t *low = reg(warp, offset);
    return low[lane] | (wide)low[LANES + lane] << 64;
}

static void put_wide(struct warp *warp, uint32_t offset, unsigned lane, wide value)
{
    if (offset == NO_OPERAND)
        return;
    uint64_t *low = reg(warp, offset);
    low[lane] = (uint64_t)value;
    low[LANES + lane] = (uint64_t)(value >> 64);
}

static wide *lane_address(struct warp *warp, unsigned lane)
{
    return (wide *)(uintptr_t)warp->address[lane];
}

static bool begin_atomic(struct warp *warp, const struct insn *insn)
{
    if (!translate(warp, insn, sizeof(wide), sizeof(wide), SG_READ | SG_WRITE))
        return false;
    if (insn->flags & INSN_FENCE_BEFORE)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return true;
}

void run_exchange_b128(struct warp *warp, const struct insn *insn)
{
    if (!begin_atomic(warp, insn))
        return;
    EACH_ACTIVE_LANE
    put_wide(warp, insn->d, lane,
             exchange(lane_address(warp, lane), get_wide(warp, insn->b, lane)));
    warp_synchronizes(warp);
}

void run_compare_and_swap_b128(struct warp *warp, const struct insn *insn)
{
    if (!begin_atomic(warp, insn))
        return;
    EACH_ACTIVE_LANE
    {
        wide expected = get_wide(warp, insn->b, lane), value = get_wide(warp, insn->c, lane);
        put_wide(warp, insn->d, lane, compare_and_swap(lane_address(warp, lane), expected, value));
    }
    warp_synchronizes(warp);
}
