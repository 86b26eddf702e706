/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange_plan.h"

/* The order in which pieces go: by wish, then by time. */
static unsigned rank(const struct exchange_piece *piece)
{
    switch (piece->wish) {
    case WISH_HOST:
        return 0;
    case WISH_DEVICE:
        return 2;
    default:
        return 1;
    }
}

static bool goes_before(const struct exchange_piece *piece, const struct exchange_piece *other)
{
    if (rank(piece) != rank(other))
        return rank(piece) < rank(other);
    if (piece->used != other->used)
        return piece->used < other->used;
    return piece->address < other->address;
}

static bool may_go(const struct exchange_piece *piece, uint32_t device, uint64_t limit)
{
    return !piece->out && piece->device == device && piece->used < limit;
}

/* The first one behind `last` in the order; NULL when there is none. */
static const struct exchange_piece *next(const struct exchange_piece *const *pieces, size_t count,
                                         uint32_t device, uint64_t limit,
                                         const struct exchange_piece *last)
{
    const struct exchange_piece *best = NULL;

    for (size_t i = 0; i < count; i++) {
        const struct exchange_piece *piece = pieces[i];

        if (may_go(piece, device, limit) && (!last || goes_before(last, piece)) &&
            (!best || goes_before(piece, best)))
            best = piece;
    }
    return best;
}

size_t exchange_plan(const struct exchange_piece *const *pieces, size_t count, uint32_t device,
                     uint64_t size, uint64_t limit, const struct exchange_piece **ret_out,
                     size_t most)
{
    const struct exchange_piece *last = NULL;
    uint64_t freed = 0;
    size_t found = 0;

    while (freed < size && found < most) {
        last = next(pieces, count, device, limit, last);
        if (!last)
            return 0;
        ret_out[found++] = last;
        freed += last->size;
    }
    return freed < size ? 0 : found;
}
