/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Special registers: a table of names and what each lane reads from them.
 */
#include "special.h"

#include <string.h>
#include <time.h>

#include "block_state.h"

typedef uint64_t (*special_fn)(const struct warp *warp, unsigned lane);

static void fill_tid(struct warp *warp, unsigned axis, uint32_t *to)
{
    const uint32_t *size = warp->block->grid->launch.block;
    uint32_t first = warp->index * LANES;
    if (size[0] == warp->block->grid->threads_per_block) {
        for (unsigned lane = 0; lane < LANES; lane++)
            to[lane] = axis == 0 ? first + lane : 0;
        return;
    }
    uint32_t at[3] = {first % size[0], first / size[0] % size[1], first / size[0] / size[1]};
    for (unsigned lane = 0; lane < LANES; lane++) {
        to[lane] = at[axis];
        if (++at[0] < size[0])
            continue;
        at[0] = 0;
        if (++at[1] < size[1])
            continue;
        at[1] = 0;
        at[2]++;
    }
}

#define UNIFORM(name, value)                                     \
    static uint64_t name(const struct warp *warp, unsigned lane) \
    {                                                            \
        return (value);                                          \
    }
UNIFORM(zero, 0)
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
UNIFORM(nsmid, warp->block->grid->sm_count)
UNIFORM(gridid, warp->block->grid->launch.grid_id)
UNIFORM(envreg1, warp->block->grid->launch.workspace >> 32)
UNIFORM(envreg2, warp->block->grid->launch.workspace)
UNIFORM(laneid, lane)
UNIFORM(lanemask_eq, 1u << lane)
UNIFORM(lanemask_lt, (1u << lane) - 1)
UNIFORM(lanemask_le, (2ull << lane) - 1)
UNIFORM(lanemask_gt, FULL_MASK & ~((2ull << lane) - 1))
UNIFORM(lanemask_ge, FULL_MASK & ~((1u << lane) - 1))
UNIFORM(dynamic_smem_size, warp->block->grid->launch.dynamic_shared)
UNIFORM(total_smem_size, warp->block->grid->shared_size)
UNIFORM(current_graph_exec, 0)
UNIFORM(reserved_begin, warp->block->shared_size - RESERVED_SHARED)
UNIFORM(reserved_second, warp->block->shared_size - RESERVED_SHARED / 2)
UNIFORM(reserved_end, warp->block->shared_size)
UNIFORM(reserved_size, RESERVED_SHARED)
UNIFORM(clusterid_x, warp->block->index[0] / warp->block->grid->cluster[0])
UNIFORM(clusterid_y, warp->block->index[1] / warp->block->grid->cluster[1])
UNIFORM(clusterid_z, warp->block->index[2] / warp->block->grid->cluster[2])
UNIFORM(nclusterid_x, warp->block->grid->launch.grid[0] / warp->block->grid->cluster[0])
UNIFORM(nclusterid_y, warp->block->grid->launch.grid[1] / warp->block->grid->cluster[1])
UNIFORM(nclusterid_z, warp->block->grid->launch.grid[2] / warp->block->grid->cluster[2])
UNIFORM(cluster_ctaid_x, warp->block->index[0] % warp->block->grid->cluster[0])
UNIFORM(cluster_ctaid_y, warp->block->index[1] % warp->block->grid->cluster[1])
UNIFORM(cluster_ctaid_z, warp->block->index[2] % warp->block->grid->cluster[2])
UNIFORM(cluster_nctaid_x, warp->block->grid->cluster[0])
UNIFORM(cluster_nctaid_y, warp->block->grid->cluster[1])
UNIFORM(cluster_nctaid_z, warp->block->grid->cluster[2])
UNIFORM(cluster_ctarank, warp->block->rank)
UNIFORM(cluster_nctarank, warp->block->grid->cluster_size)
UNIFORM(is_explicit_cluster,
        warp->block->grid->launch.cluster[0] || warp->block->grid->info->cluster[0])
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
    bool by_lane;
    bool of_block;
    bool needs_reserved;
} specials[] = {
    {"%tid.x", zero},
    {"%tid.y", zero},
    {"%tid.z", zero},
    {"%ntid.x", ntid_x},
    {"%ntid.y", ntid_y},
    {"%ntid.z", ntid_z},
    {"%ctaid.x", ctaid_x, .of_block = true},
    {"%ctaid.y", ctaid_y, .of_block = true},
    {"%ctaid.z", ctaid_z, .of_block = true},
    {"%nctaid.x", nctaid_x},
    {"%nctaid.y", nctaid_y},
    {"%nctaid.z", nctaid_z},
    {"%laneid", laneid, .by_lane = true},
    {"%warpid", warpid},
    {"%nwarpid", nwarpid},
    {"%smid", smid, .of_block = true},
    {"%nsmid", nsmid},
    {"%gridid", gridid, .is_wide = true},
    {"%envreg1", envreg1},
    {"%envreg2", envreg2},
    {"%lanemask_eq", lanemask_eq, .by_lane = true},
    {"%lanemask_lt", lanemask_lt, .by_lane = true},
    {"%lanemask_le", lanemask_le, .by_lane = true},
    {"%lanemask_gt", lanemask_gt, .by_lane = true},
    {"%lanemask_ge", lanemask_ge, .by_lane = true},
    {"%dynamic_smem_size", dynamic_smem_size},
    {"%total_smem_size", total_smem_size},
    {"%aggr_smem_size", total_smem_size},
    {"%reserved_smem_offset_begin", reserved_begin, .needs_reserved = true},
    {"%reserved_smem_offset_end", reserved_end, .needs_reserved = true},
    {"%reserved_smem_offset_cap", reserved_size, .needs_reserved = true},
    {"%reserved_smem_offset_0", reserved_begin, .needs_reserved = true},
    {"%reserved_smem_offset_1", reserved_second, .needs_reserved = true},
    {"%current_graph_exec", current_graph_exec, .is_wide = true},
    {"%is_explicit_cluster", is_explicit_cluster},
    {"%clusterid.x", clusterid_x, .of_block = true},
    {"%clusterid.y", clusterid_y, .of_block = true},
    {"%clusterid.z", clusterid_z, .of_block = true},
    {"%nclusterid.x", nclusterid_x},
    {"%nclusterid.y", nclusterid_y},
    {"%nclusterid.z", nclusterid_z},
    {"%cluster_ctaid.x", cluster_ctaid_x, .of_block = true},
    {"%cluster_ctaid.y", cluster_ctaid_y, .of_block = true},
    {"%cluster_ctaid.z", cluster_ctaid_z, .of_block = true},
    {"%cluster_nctaid.x", cluster_nctaid_x},
    {"%cluster_nctaid.y", cluster_nctaid_y},
    {"%cluster_nctaid.z", cluster_nctaid_z},
    {"%cluster_ctarank", cluster_ctarank, .of_block = true},
    {"%cluster_nctarank", cluster_nctarank},
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

bool special_is_of_block(unsigned special)
{
    return specials[special].of_block;
}

bool special_needs_reserved(unsigned special)
{
    return specials[special].needs_reserved;
}

static void fill_volatile(struct warp *warp, unsigned special, uint32_t offset)
{
    uint64_t value = specials[special].value(warp, 0);
    uint32_t *narrow = reg(warp, offset);
    uint64_t *wide = reg(warp, offset);
    EACH_ACTIVE_LANE
    {
        if (specials[special].is_wide)
            wide[lane] = value;
        else
            narrow[lane] = (uint32_t)value;
    }
}

void special_fill(struct warp *warp, unsigned special, uint32_t offset)
{
    uint32_t *narrow = reg(warp, offset);
    uint64_t *wide = reg(warp, offset);
    if (specials[special].is_volatile) {
        fill_volatile(warp, special, offset);
        return;
    }
    /* The first three are %tid. */
    if (special < 3) {
        fill_tid(warp, special, narrow);
        return;
    }
    uint64_t same = specials[special].value(warp, 0);
    for (unsigned lane = 0; lane < LANES; lane++) {
        if (specials[special].is_wide)
            wide[lane] = same;
        else
            narrow[lane] = (uint32_t)same;
    }
    for (unsigned lane = 0; specials[special].by_lane && lane < LANES; lane++)
        narrow[lane] = (uint32_t)specials[special].value(warp, lane);
}

/* Of a budget counted in backward jumps. */
#define CLOCK_COST 500

/* A warp that reads a clock again and again waits for time to pass. The time passes for the block's
 * other warps and for other blocks as well, so they get their turns soon. */
void run_read_special(struct warp *warp, const struct insn *insn)
{
    special_fill(warp, (unsigned)insn->imm, insn->d);
    warp->budget -= CLOCK_COST;
}
