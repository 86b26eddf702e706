/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs surface instructions: bytes of an array by coordinates, each lane by itself. x counts bytes,
 * everything else elements.
 */
#include "surface_run.h"

#include <string.h>

#include "lane_math.h"
#include "tex_run.h"
#include "warp_fault.h"

static int64_t coordinate(struct warp *warp, uint32_t offset, unsigned lane)
{
    return offset == NO_OPERAND ? 0 : ((const int32_t *)reg(warp, offset))[lane];
}

/* x, y, and the slice or the layer. */
static void read_coordinates(struct warp *warp, const struct insn *insn, unsigned lane,
                             int64_t ret_at[3])
{
    const struct insn *from = &insn[1];
    const uint32_t at[4] = {from->d, from->b, from->c, from->p};
    bool is_layered = insn->space == SG_1D_LAYERED || insn->space == SG_2D_LAYERED;
    bool is_plane = insn->space == SG_2D || insn->space == SG_2D_LAYERED || insn->space == SG_3D;
    unsigned first = is_layered ? 1 : 0;

    ret_at[0] = coordinate(warp, at[first], lane);
    ret_at[1] = is_plane ? coordinate(warp, at[first + 1], lane) : 0;
    ret_at[2] = is_layered             ? coordinate(warp, at[0], lane)
                : insn->space == SG_3D ? coordinate(warp, at[2], lane)
                                       : 0;
}

enum found {
    FOUND_FAULT,
    FOUND_OUTSIDE,
    FOUND,
};

static enum found outside(struct warp *warp, const struct insn *insn, unsigned lane,
                          const int64_t at[3])
{
    if (insn->flags == SURFACE_ZERO)
        return FOUND_OUTSIDE;
    warp_fault(warp, insn, lane, CUDA_ERROR_LAUNCH_FAILED,
               "a surface has nothing at byte %lld, row %lld, slice %lld", (long long)at[0],
               (long long)at[1], (long long)at[2]);
    return FOUND_FAULT;
}

static enum found find_texel(struct warp *warp, const struct insn *insn,
                             const struct sg_texture *surface, unsigned lane, uint64_t *ret_address)
{
    const struct sg_level *level = &surface->levels[0];
    int64_t size = (int64_t)insn->width * insn->mode, at[3];
    const int64_t last[3] = {
        (int64_t)level->width * sg_texel_size(&surface->format) / size * size - size,
        (int64_t)level->height - 1,
        (int64_t)level->depth * surface->layers - 1,
    };

    read_coordinates(warp, insn, lane, at);
    if (at[0] % size) {
        warp_fault(warp, insn, lane, CUDA_ERROR_MISALIGNED_ADDRESS,
                   "byte %lld of a surface is not a multiple of %lld", (long long)at[0],
                   (long long)size);
        return FOUND_FAULT;
    }
    for (unsigned i = 0; i < 3; i++) {
        if (at[i] >= 0 && at[i] <= last[i])
            continue;
        if (insn->flags != SURFACE_CLAMP || last[i] < 0)
            return outside(warp, insn, lane, at);
        at[i] = at[i] < 0 ? 0 : last[i];
    }
    *ret_address = level->address + (uint64_t)at[2] * level->slice +
                   (uint64_t)at[1] * level->pitch + (uint64_t)at[0];
    return FOUND;
}

/* Calls `serve` for each lane; it is told where, or 0 for nowhere. */
typedef void (*serve_fn)(struct warp *warp, const struct insn *insn, unsigned lane,
                         uint64_t address);

static void each_lane(struct warp *warp, const struct insn *insn, serve_fn serve)
{
    struct sg_texture surface;
    uint64_t known = 0;
    bool any = false;

    EACH_ACTIVE_LANE
    {
        uint64_t number = ((const uint64_t *)reg(warp, insn->a))[lane], address = 0;
        if ((!any || number != known) && !tex_object(warp, insn, lane, true, &surface))
            return;
        any = true;
        known = number;
        if (find_texel(warp, insn, &surface, lane, &address) == FOUND_FAULT)
            return;
        serve(warp, insn, lane, address);
    }
}

static void load_lane(struct warp *warp, const struct insn *insn, unsigned lane, uint64_t address)
{
    const uint32_t to[4] = {insn->d, insn->b, insn->c, insn->p};

    for (unsigned i = 0; i < insn->width; i++) {
        uint64_t value = 0;
        if (address)
            memcpy(&value, (const void *)(uintptr_t)(address + i * insn->mode), insn->mode);
        if (to[i] == NO_OPERAND)
            continue;
        if (insn->mode == 8)
            ((uint64_t *)reg(warp, to[i]))[lane] = value;
        else
            ((uint32_t *)reg(warp, to[i]))[lane] = (uint32_t)value;
    }
}

static void store_lane(struct warp *warp, const struct insn *insn, unsigned lane, uint64_t address)
{
    const uint32_t from[4] = {insn->d, insn->b, insn->c, insn->p};

    for (unsigned i = 0; address && i < insn->width; i++) {
        const unsigned char *lanes = reg(warp, from[i]);
        memcpy((void *)(uintptr_t)(address + i * insn->mode),
               lanes + (insn->mode == 8 ? 8 : 4) * lane, insn->mode);
    }
}

void run_surface_load(struct warp *warp, const struct insn *insn)
{
    each_lane(warp, insn, load_lane);
}

void run_surface_store(struct warp *warp, const struct insn *insn)
{
    each_lane(warp, insn, store_lane);
}

/* ---- Reductions ---- */

#define REDUCE(name, type)                                                                     \
    static void reduce_##name(struct warp *warp, const struct insn *insn, unsigned lane,       \
                              uint64_t address)                                                \
    {                                                                                          \
        type *memory = (type *)(uintptr_t)address, value = ((type *)reg(warp, insn->b))[lane]; \
        type old, new;                                                                         \
        if (!address)                                                                          \
            return;                                                                            \
        old = __atomic_load_n(memory, __ATOMIC_RELAXED);                                       \
        do                                                                                     \
            new = insn->imm == ATOMIC_ADD   ? old + value                                      \
                  : insn->imm == ATOMIC_MIN ? (value < old ? value : old)                      \
                  : insn->imm == ATOMIC_MAX ? (value > old ? value : old)                      \
                  : insn->imm == ATOMIC_AND ? (old & value)                                    \
                                            : (old | value);                                   \
        while (!__atomic_compare_exchange_n(memory, &old, new, false, __ATOMIC_SEQ_CST,        \
                                            __ATOMIC_RELAXED));                                \
    }                                                                                          \
    static void run_reduce_##name(struct warp *warp, const struct insn *insn)                  \
    {                                                                                          \
        each_lane(warp, insn, reduce_##name);                                                  \
    }
REDUCE(u32, uint32_t)
REDUCE(s32, int32_t)
REDUCE(u64, uint64_t)
REDUCE(s64, int64_t)
#undef REDUCE

#define BIT(op) (1u << ATOMIC_##op)

handler_fn surface_reduction(enum atomic_op op, enum ptx_type type)
{
    static const struct {
        handler_fn run;
        uint32_t allowed;
    } reductions[PTX_TYPE_COUNT] = {
        [PTX_U32] = {run_reduce_u32, BIT(ADD) | BIT(MIN) | BIT(MAX)},
        [PTX_S32] = {run_reduce_s32, BIT(ADD) | BIT(MIN) | BIT(MAX)},
        [PTX_U64] = {run_reduce_u64, BIT(ADD) | BIT(MIN) | BIT(MAX)},
        [PTX_S64] = {run_reduce_s64, BIT(MIN) | BIT(MAX)},
        [PTX_B32] = {run_reduce_u32, BIT(AND) | BIT(OR)},
        [PTX_B64] = {run_reduce_u64, BIT(AND) | BIT(OR)},
    };

    return reductions[type].allowed >> op & 1 ? reductions[type].run : NULL;
}
