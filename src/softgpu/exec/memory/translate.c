/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a memory operand to addresses in this process, checked for bounds and alignment.
 *
 * The common case is one comparison for the whole warp. The lowest and the highest address lie
 * inside a range that this instruction has met before.
 */
#include "translate.h"

#include "cluster.h"
#include "space.h"
#include "warp_fault.h"

/* Whether lane l's element is the l-th of an array: then the first and the last address say all. */
static inline bool is_row(const uint64_t *address, unsigned size)
{
    uint64_t differences = 0;
    for (unsigned lane = 0; lane < LANES; lane++)
        differences |= address[lane] ^ (address[0] + lane * size);
    return differences == 0;
}

static inline void wide_addresses(struct warp *warp, const struct insn *insn)
{
    const uint64_t *base = reg(warp, insn->a);
    uint64_t offset = insn->imm;
    for (unsigned lane = 0; lane < LANES; lane++)
        warp->address[lane] = base[lane] + offset;
}

static inline void narrow_addresses(struct warp *warp, const struct insn *insn)
{
    const uint32_t *base = reg(warp, insn->a);
    uint32_t offset = (uint32_t)insn->imm;
    for (unsigned lane = 0; lane < LANES; lane++)
        warp->address[lane] = base[lane] + offset;
}

static inline void operand_addresses(struct warp *warp, const struct insn *insn)
{
    if (insn->flags & INSN_WIDE_ADDRESS)
        wide_addresses(warp, insn);
    else
        narrow_addresses(warp, insn);
    if (warp->full && warp->alive == FULL_MASK)
        return;
    uint64_t *address = warp->address;
    uint64_t some = address[__builtin_ctz(warp->active)];
    for (unsigned lane = 0; lane < LANES; lane++)
        address[lane] = warp->active >> lane & 1 ? address[lane] : some;
}

struct extent {
    uint64_t low;
    uint64_t high;
    uint64_t bits; /* of all addresses together, to see misalignment */
};

static inline struct extent measure_extent(struct warp *warp, unsigned size)
{
    const uint64_t *address = warp->address;
    struct extent extent = {.low = address[0], .high = address[LANES - 1], .bits = address[0]};
    if (is_row(address, size))
        return extent;
    for (unsigned lane = 0; lane < LANES; lane++) {
        extent.low = address[lane] < extent.low ? address[lane] : extent.low;
        extent.high = address[lane] > extent.high ? address[lane] : extent.high;
        extent.bits |= address[lane];
    }
    return extent;
}

static unsigned first_lane(const struct warp *warp,
                           bool (*is_bad)(uint64_t address, uint64_t limit), uint64_t limit)
{
    for (unsigned lane = 0; lane < LANES; lane++) {
        if ((warp->active >> lane & 1) && is_bad(warp->address[lane], limit))
            return lane;
    }
    return (unsigned)__builtin_ctz(warp->active);
}

static bool is_misaligned(uint64_t address, uint64_t align)
{
    return (address & (align - 1)) != 0;
}

static bool is_beyond(uint64_t address, uint64_t last)
{
    return address > last;
}

static bool check_alignment(struct warp *warp, const struct insn *insn, const struct extent *extent,
                            unsigned align)
{
    if ((extent->bits & (align - 1)) == 0)
        return true;
    unsigned lane = first_lane(warp, is_misaligned, align);
    warp_fault(warp, insn, lane, CUDA_ERROR_MISALIGNED_ADDRESS,
               "a misaligned access of %u bytes at 0x%llx", align,
               (unsigned long long)warp->address[lane]);
    return false;
}

/* Shared memory of any block of the cluster. Lanes that are not active get some active one's. */
static bool translate_cluster(struct warp *warp, const struct insn *insn, unsigned size)
{
    const struct block *block = warp->block;
    uint64_t some = 0;
    EACH_ACTIVE_LANE
    {
        some = cluster_generic(block, warp->address[lane]);
        if (!cluster_holds(block, some, size)) {
            warp_fault(warp, insn, lane, CUDA_ERROR_ILLEGAL_ADDRESS,
                       "an access of %u bytes at 0x%llx, beyond the cluster's shared memory", size,
                       (unsigned long long)warp->address[lane]);
            return false;
        }
        warp->address[lane] = some;
    }
    for (unsigned lane = 0; lane < LANES; lane++)
        warp->address[lane] = warp->active >> lane & 1 ? warp->address[lane] : some;
    return true;
}

/*
 * The same for 32-bit addresses of a whole warp in one pass, without a fault's details: false where
 * any lane's access may be wrong.
 */
static inline bool translate_narrow(struct warp *warp, const struct insn *insn, unsigned size,
                                    unsigned align, uint64_t base, uint64_t limit)
{
    const uint32_t *from = reg(warp, insn->a);
    uint32_t offset = (uint32_t)insn->imm, high = 0, bits = 0;
    for (unsigned lane = 0; lane < LANES; lane++) {
        uint32_t at = from[lane] + offset;
        high = at > high ? at : high;
        bits |= at;
        warp->address[lane] = base + at;
    }
    return (bits & (align - 1)) == 0 && high <= limit && limit - high >= size;
}

/* Offsets into a window of `limit` bytes that starts at base, for each lane `stride` further. */
static inline bool translate_window(struct warp *warp, const struct insn *insn, unsigned size,
                                    unsigned align, uint64_t base, uint64_t stride, uint64_t limit,
                                    const char *name)
{
    struct extent extent = measure_extent(warp, size);
    if (!check_alignment(warp, insn, &extent, align))
        return false;
    if (extent.high > limit || limit - extent.high < size) {
        if (insn->space == PTX_SHARED && extent.high > CLUSTER_OFFSET_MASK)
            return translate_cluster(warp, insn, size);
        unsigned lane = first_lane(warp, is_beyond, limit < size ? 0 : limit - size);
        warp_fault(warp, insn, lane, CUDA_ERROR_ILLEGAL_ADDRESS,
                   "an access of %u bytes at 0x%llx, beyond the %llu bytes of %s memory", size,
                   (unsigned long long)warp->address[lane], (unsigned long long)limit, name);
        return false;
    }
    for (unsigned lane = 0; lane < LANES; lane++)
        warp->address[lane] += base + lane * stride;
    return true;
}

static bool inside(uint64_t address, uint64_t size, uint64_t start, uint64_t length)
{
    return address - start < length && size <= length - (address - start);
}

static bool cache_allows(const struct range_cache *cache, uint64_t low, uint64_t high,
                         unsigned size, unsigned access, uint64_t generation)
{
    return cache->generation == generation && (cache->access & access) == access && high >= low &&
           inside(low, size, cache->start, cache->size) &&
           inside(high, size, cache->start, cache->size);
}

/* The windows that the block and the warp have in the generic address space, and the parameters. */
static enum translation in_window(const struct warp *warp, uint64_t address, unsigned size,
                                  unsigned access)
{
    const struct block *block = warp->block;
    if (inside(address, size, (uintptr_t)block->shared, block->shared_size) ||
        inside(address, size, warp->local, LANES * warp->local_stride) ||
        (block->grid->cluster_size > 1 && cluster_holds(block, address, size)))
        return TRANSLATION_OWN;
    if (!(access & SG_WRITE) &&
        inside(address, size, (uintptr_t)block->grid->params, block->grid->info->params_size))
        return TRANSLATION_GLOBAL;
    return TRANSLATION_FAULT;
}

static enum translation translate_one(struct warp *warp, const struct insn *insn, unsigned lane,
                                      unsigned size, unsigned access)
{
    uint64_t address = warp->address[lane];
    enum translation result = in_window(warp, address, size, access);
    if (result != TRANSLATION_FAULT)
        return result;
    struct sg_space *space = warp->block->grid->launch.space;
    struct range_cache *cache = &warp->ranges[range_slot(insn)];
    uint64_t generation = __atomic_load_n(warp->generation, __ATOMIC_ACQUIRE);
    if (cache_allows(cache, address, address, size, access, generation))
        return TRANSLATION_GLOBAL;
    if (space_lookup(space, address, cache) &&
        cache_allows(cache, address, address, size, access, cache->generation))
        return TRANSLATION_GLOBAL;
    warp_fault(warp, insn, lane, CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal %s of %u bytes at 0x%llx",
               (access & SG_WRITE) ? "write" : "read", size, (unsigned long long)address);
    return TRANSLATION_FAULT;
}

static inline enum translation translate_generic(struct warp *warp, const struct insn *insn,
                                                 unsigned size, unsigned align, unsigned access)
{
    struct extent extent = measure_extent(warp, size);
    if ((extent.bits & (align - 1)) && !check_alignment(warp, insn, &extent, align))
        return TRANSLATION_FAULT;
    const struct range_cache *cache = &warp->ranges[range_slot(insn)];
    const struct block *block = warp->block;
    uint64_t generation = __atomic_load_n(warp->generation, __ATOMIC_ACQUIRE);
    if (cache_allows(cache, extent.low, extent.high, size, access, generation))
        return TRANSLATION_GLOBAL;
    if (inside(extent.low, size, (uintptr_t)block->shared, block->shared_size) &&
        inside(extent.high, size, (uintptr_t)block->shared, block->shared_size))
        return TRANSLATION_OWN;
    enum translation all = TRANSLATION_OWN;
    for (unsigned lane = 0; lane < LANES; lane++) {
        if (!(warp->active >> lane & 1))
            continue;
        enum translation one = translate_one(warp, insn, lane, size, access);
        if (one == TRANSLATION_FAULT)
            return TRANSLATION_FAULT;
        if (one == TRANSLATION_GLOBAL)
            all = TRANSLATION_GLOBAL;
    }
    return all;
}

static inline enum translation translate_any(struct warp *warp, const struct insn *insn,
                                             unsigned size, unsigned align, unsigned access)
{
    struct block *block = warp->block;
    bool fine;
    switch (insn->space) {
    case PTX_SHARED:
        fine = translate_window(warp, insn, size, align, (uintptr_t)block->shared, 0,
                                block->shared_size, "shared");
        return fine ? TRANSLATION_OWN : TRANSLATION_FAULT;
    case PTX_LOCAL:
        fine = translate_window(warp, insn, size, align, warp->local, warp->local_stride,
                                warp->local_stride, "local");
        return fine ? TRANSLATION_OWN : TRANSLATION_FAULT;
    case PTX_PARAM:
        fine = translate_window(warp, insn, size, align, (uintptr_t)block->grid->params, 0,
                                block->grid->info->params_size, "parameter");
        return fine ? TRANSLATION_GLOBAL : TRANSLATION_FAULT;
    default:
        return translate_generic(warp, insn, size, align, access);
    }
}

enum translation translate(struct warp *warp, const struct insn *insn, unsigned size,
                           unsigned align, unsigned access)
{
    const struct block *block = warp->block;
    if (insn->space == PTX_SHARED && !(insn->flags & INSN_WIDE_ADDRESS) &&
        warp->active == FULL_MASK &&
        translate_narrow(warp, insn, size, align, (uintptr_t)block->shared, block->shared_size))
        return TRANSLATION_OWN;
    operand_addresses(warp, insn);
    return translate_any(warp, insn, size, align, access);
}

enum translation translate_given(struct warp *warp, const struct insn *insn, unsigned size,
                                 unsigned align, unsigned access)
{
    return translate_any(warp, insn, size, align, access);
}

bool translate_span(const struct warp *warp, const struct insn *insn, uint64_t low, uint64_t high,
                    unsigned size, unsigned access, uint64_t *ret_base)
{
    const struct block *block = warp->block;
    uint64_t shared = (uintptr_t)block->shared;
    *ret_base = insn->space == PTX_SHARED ? shared : 0;
    if (high < low || insn->space == PTX_LOCAL || insn->space == PTX_PARAM)
        return false;
    if (insn->space == PTX_SHARED)
        return inside(high, size, 0, block->shared_size);
    const struct range_cache *cache = &warp->ranges[range_slot(insn)];
    uint64_t generation = __atomic_load_n(warp->generation, __ATOMIC_ACQUIRE);
    return cache_allows(cache, low, high, size, access, generation) ||
           (inside(low, size, shared, block->shared_size) &&
            inside(high, size, shared, block->shared_size));
}

uint64_t translate_readable(struct warp *warp, uint64_t address)
{
    const struct block *block = warp->block;
    uint64_t shared = (uintptr_t)block->shared;
    uint64_t local_size = LANES * warp->local_stride;
    if (address - shared < block->shared_size)
        return block->shared_size - (address - shared);
    if (address - warp->local < local_size)
        return local_size - (address - warp->local);
    struct range_cache range;
    bool known =
        space_lookup(block->grid->launch.space, address, &range) && (range.access & SG_READ);
    return known ? range.size - (address - range.start) : 0;
}
