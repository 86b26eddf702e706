/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Atomic accesses of 128 bits. All are made of one compare-and-swap, so none is ever torn.
 */
#include "exec_memory.h"

typedef unsigned __int128 wide;

#ifdef __x86_64__
__attribute__((target("cx16"))) static wide compare_and_swap(wide *memory, wide expected,
                                                             wide value)
{
    return __sync_val_compare_and_swap(memory, expected, value);
}
#else
/* Elsewhere one lock is enough: nothing but these functions touches such words atomically. */
static wide compare_and_swap(wide *memory, wide expected, wide value)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    wide old = *memory;
    *memory = old == expected ? value : old;
    pthread_mutex_unlock(&lock);
    return old;
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

static wide get(struct warp *warp, uint32_t offset, unsigned lane)
{
    const uint64_t *low = reg(warp, offset);
    return low[lane] | (wide)low[LANES + lane] << 64;
}

static void put(struct warp *warp, uint32_t offset, unsigned lane, wide value)
{
    if (offset == NO_OPERAND)
        return;
    uint64_t *low = reg(warp, offset);
    low[lane] = (uint64_t)value;
    low[LANES + lane] = (uint64_t)(value >> 64);
}

static wide *place(struct warp *warp, unsigned lane)
{
    return (wide *)(uintptr_t)warp->address[lane];
}

static bool begin(struct warp *warp, const struct insn *insn, unsigned access)
{
    if (!locate(warp, insn, sizeof(wide), sizeof(wide), access))
        return false;
    if (insn->flags & INSN_FENCE_BEFORE)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return true;
}

void run_load_b128(struct warp *warp, const struct insn *insn)
{
    if (!begin(warp, insn, SG_READ | SG_WRITE))
        return;
    EACH_ACTIVE_LANE
    put(warp, insn->d, lane, compare_and_swap(place(warp, lane), 0, 0));
    warp_synchronises(warp);
}

void run_exchange_b128(struct warp *warp, const struct insn *insn)
{
    if (!begin(warp, insn, SG_READ | SG_WRITE))
        return;
    EACH_ACTIVE_LANE
    put(warp, insn->d, lane, exchange(place(warp, lane), get(warp, insn->b, lane)));
    warp_synchronises(warp);
}

void run_compare_and_swap_b128(struct warp *warp, const struct insn *insn)
{
    if (!begin(warp, insn, SG_READ | SG_WRITE))
        return;
    EACH_ACTIVE_LANE
    {
        wide expected = get(warp, insn->b, lane), value = get(warp, insn->c, lane);
        put(warp, insn->d, lane, compare_and_swap(place(warp, lane), expected, value));
    }
    warp_synchronises(warp);
}
