/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange_plan.h"

/* The order in which chunks go: by wish, then by time. */
static unsigned rank_of(const struct exchange_chunk *chunk)
{
    switch (chunk->wish) {
    case WISH_HOST:
        return 0;
    case WISH_DEVICE:
        return 2;
    default:
        return 1;
    }
}

static bool goes_before(const struct exchange_chunk *chunk, const struct exchange_chunk *other)
{
    if (rank_of(chunk) != rank_of(other))
        return rank_of(chunk) < rank_of(other);
    if (chunk->used != other->used)
        return chunk->used < other->used;
    return chunk->address < other->address;
}

static bool may_go(const struct exchange_chunk *chunk, uint32_t device, uint64_t limit)
{
    return !chunk->out && chunk->device == device && chunk->used < limit;
}

/* The first one behind `last` in the order; NULL when there is none. */
static const struct exchange_chunk *next_to_go(const struct exchange_chunk *const *chunks,
                                               size_t count, uint32_t device, uint64_t limit,
                                               const struct exchange_chunk *last)
{
    const struct exchange_chunk *best = NULL;

    for (size_t i = 0; i < count; i++) {
        const struct exchange_chunk *chunk = chunks[i];

        if (may_go(chunk, device, limit) && (!last || goes_before(last, chunk)) &&
            (!best || goes_before(chunk, best)))
            best = chunk;
    }
    return best;
}

size_t exchange_plan(const struct exchange_chunk *const *chunks, size_t count, uint32_t device,
                     uint64_t size, uint64_t limit, const struct exchange_chunk **ret_out,
                     size_t most)
{
    const struct exchange_chunk *last = NULL;
    uint64_t freed = 0;
    size_t found = 0;

    while (freed < size && found < most) {
        last = next_to_go(chunks, count, device, limit, last);
        if (!last)
            return 0;
        ret_out[found++] = last;
        freed += last->size;
    }
    return freed < size ? 0 : found;
}
