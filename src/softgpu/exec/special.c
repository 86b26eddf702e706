/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Special registers: a table of names and what each lane reads from them.
 */
#include <string.h>
#include <time.h>

#include "core.h"

typedef uint64_t (*special_fn)(const struct warp *warp, unsigned lane);

static unsigned thread_number(const struct warp *warp, unsigned lane)
{
    return warp->index * LANES + lane;
}

static uint64_t tid_x(const struct warp *warp, unsigned lane)
{
    return thread_number(warp, lane) % warp->block->grid->launch.block[0];
}

static uint64_t tid_y(const struct warp *warp, unsigned lane)
{
    const uint32_t *size = warp->block->grid->launch.block;
    return thread_number(warp, lane) / size[0] % size[1];
}

static uint64_t tid_z(const struct warp *warp, unsigned lane)
{
    const uint32_t *size = warp->block->grid->launch.block;
    return thread_number(warp, lane) / size[0] / size[1];
}

#define UNIFORM(name, value)                                                                                          \
    static uint64_t name(const struct warp *warp, unsigned lane)                                                      \
    {                                                                                                                 \
        return (value);                                                                                               \
    }
UNIFORM(zero, 0)
UNIFORM(one, 1)
UNIFORM(ntid_x, warp->block->grid->launch.block[0])
UNIFORM(ntid_y, warp->block->grid->launch.block[1])
UNIFORM(ntid_z, warp->block->grid->launch.block[2])
UNIFORM(ctaid_x, warp->block->index[0])
UNIFORM(ctaid_y, warp->block->index[1])
UNIFORM(ctaid_z, warp->block->index[2])
UNIFORM(nctaid_x, warp->block->grid->launch.grid[0])
UNIFORM(nctaid_y, warp->block->grid->launch.grid[1])
UNIFORM(nctaid_z, warp->block->grid->launch.grid[2])
UNIFORM(warpid, warp->index)
UNIFORM(nwarpid, 64)
UNIFORM(smid, warp->block->sm)
UNIFORM(nsmid, engine_sm_count(warp->block->grid->engine))
UNIFORM(gridid, warp->block->grid->launch.grid_id)
UNIFORM(laneid, lane)
UNIFORM(lanemask_eq, 1u << lane)
UNIFORM(lanemask_lt, (1u << lane) - 1)
UNIFORM(lanemask_le, (2ull << lane) - 1)
UNIFORM(lanemask_gt, FULL_MASK & ~((2ull << lane) - 1))
UNIFORM(lanemask_ge, FULL_MASK & ~((1u << lane) - 1))
UNIFORM(dynamic_smem_size, warp->block->grid->launch.dynamic_shared)
UNIFORM(total_smem_size, warp->block->grid->shared_size)
UNIFORM(current_graph_exec, 0)
#undef UNIFORM

static uint64_t nanoseconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t clock_now(const struct warp *warp, unsigned lane)
{
    return nanoseconds(CLOCK_MONOTONIC);
}

static uint64_t clock_high(const struct warp *warp, unsigned lane)
{
    return nanoseconds(CLOCK_MONOTONIC) >> 32;
}

static uint64_t global_timer(const struct warp *warp, unsigned lane)
{
    return nanoseconds(CLOCK_REALTIME);
}

static uint64_t global_timer_high(const struct warp *warp, unsigned lane)
{
    return nanoseconds(CLOCK_REALTIME) >> 32;
}

static const struct {
    const char *name;
    special_fn value;
    bool is_wide;
    bool is_volatile;
} specials[] = {
    {"%tid.x", tid_x},
    {"%tid.y", tid_y},
    {"%tid.z", tid_z},
    {"%ntid.x", ntid_x},
    {"%ntid.y", ntid_y},
    {"%ntid.z", ntid_z},
    {"%ctaid.x", ctaid_x},
    {"%ctaid.y", ctaid_y},
    {"%ctaid.z", ctaid_z},
    {"%nctaid.x", nctaid_x},
    {"%nctaid.y", nctaid_y},
    {"%nctaid.z", nctaid_z},
    {"%laneid", laneid},
    {"%warpid", warpid},
    {"%nwarpid", nwarpid},
    {"%smid", smid},
    {"%nsmid", nsmid},
    {"%gridid", gridid, .is_wide = true},
    {"%lanemask_eq", lanemask_eq},
    {"%lanemask_lt", lanemask_lt},
    {"%lanemask_le", lanemask_le},
    {"%lanemask_gt", lanemask_gt},
    {"%lanemask_ge", lanemask_ge},
    {"%dynamic_smem_size", dynamic_smem_size},
    {"%total_smem_size", total_smem_size},
    {"%aggr_smem_size", total_smem_size},
    {"%reserved_smem_offset_begin", zero},
    {"%reserved_smem_offset_end", zero},
    {"%reserved_smem_offset_cap", zero},
    {"%current_graph_exec", current_graph_exec, .is_wide = true},
    {"%is_explicit_cluster", zero},
    {"%clusterid.x", ctaid_x},
    {"%clusterid.y", ctaid_y},
    {"%clusterid.z", ctaid_z},
    {"%nclusterid.x", nctaid_x},
    {"%nclusterid.y", nctaid_y},
    {"%nclusterid.z", nctaid_z},
    {"%cluster_ctaid.x", zero},
    {"%cluster_ctaid.y", zero},
    {"%cluster_ctaid.z", zero},
    {"%cluster_nctaid.x", one},
    {"%cluster_nctaid.y", one},
    {"%cluster_nctaid.z", one},
    {"%cluster_ctarank", zero},
    {"%cluster_nctarank", one},
    {"%clock", clock_now, .is_volatile = true},
    {"%clock_hi", clock_high, .is_volatile = true},
    {"%clock64", clock_now, .is_wide = true, .is_volatile = true},
    {"%globaltimer", global_timer, .is_wide = true, .is_volatile = true},
    {"%globaltimer_lo", global_timer, .is_volatile = true},
    {"%globaltimer_hi", global_timer_high, .is_volatile = true},
};

int special_find(const char *name)
{
    for (unsigned i = 0; i < sizeof(specials) / sizeof(specials[0]); i++) {
        if (strcmp(specials[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

bool special_is_wide(unsigned special)
{
    return specials[special].is_wide;
}

bool special_is_volatile(unsigned special)
{
    return specials[special].is_volatile;
}

void special_fill(struct warp *warp, unsigned special, uint32_t offset)
{
    uint32_t *narrow = reg(warp, offset);
    uint64_t *wide = reg(warp, offset);
    bool changes = specials[special].is_volatile;
    uint64_t same = changes ? specials[special].value(warp, 0) : 0;
    for (unsigned lane = 0; lane < LANES; lane++) {
        if (changes && !(warp->active >> lane & 1))
            continue;
        uint64_t value = changes ? same : specials[special].value(warp, lane);
        if (specials[special].is_wide)
            wide[lane] = value;
        else
            narrow[lane] = (uint32_t)value;
    }
}
