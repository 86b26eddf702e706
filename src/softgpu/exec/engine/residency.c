/* SPDX-License-Identifier: Apache-2.0 */
/* See residency.h. The numbers are those of the engine's configuration, which are the hardware's.
 */
#include "residency.h"

#include "engine_config.h"
#include "lanes.h"

/* A block's part of an SM. Registers and threads come by the warp, and one KiB of shared memory is
 * the system's, as on the hardware. */
static struct share share_of(const struct sg_kernel_info *info, unsigned threads, size_t shared)
{
    unsigned whole = (threads + LANES - 1) / LANES * LANES;
    return (struct share){
        .blocks = 1,
        .threads = whole,
        .shared = (unsigned)shared + 1024,
        .registers = info->registers * whole,
    };
}

struct share share_of_grid(const struct grid *grid)
{
    struct share one = share_of(grid->info, grid->threads_per_block, grid->shared_size);
    unsigned count = grid->cluster_size;
    return (struct share){
        .blocks = count,
        .threads = count * one.threads,
        .shared = count * one.shared,
        .registers = count * one.registers,
    };
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

unsigned sg_occupancy(const struct sg_engine *engine, const struct sg_kernel_info *kernel,
                      unsigned block_threads, size_t dynamic_shared)
{
    const struct sg_engine_config *config = engine_config(engine);
    size_t shared = kernel->static_shared + dynamic_shared;
    if (block_threads == 0 || block_threads > kernel->max_threads_per_block + LANES - 1 ||
        shared > MAX_SHARED_PER_BLOCK)
        return 0;
    struct share share = share_of(kernel, block_threads, shared);
    unsigned count = least(config->blocks_per_sm, MAX_RESIDENT);
    count = least(count, config->threads_per_sm / share.threads);
    count = least(count, config->shared_per_sm / share.shared);
    return share.registers ? least(count, config->registers_per_sm / share.registers) : count;
}

static unsigned count_of(unsigned limit, unsigned used, unsigned each)
{
    return used > limit ? 0 : each ? (limit - used) / each : limit;
}

unsigned share_count(const struct sg_engine *engine, const struct share *used,
                     const struct share *each)
{
    const struct sg_engine_config *config = engine_config(engine);
    unsigned count =
        count_of(least(config->blocks_per_sm, MAX_RESIDENT), used->blocks, each->blocks);
    count = least(count, count_of(config->threads_per_sm, used->threads, each->threads));
    count = least(count, count_of(config->shared_per_sm, used->shared, each->shared));
    count = least(count, count_of(config->registers_per_sm, used->registers, each->registers));
    return used->blocks == 0 && count == 0 ? 1 : count;
}

void share_add(struct share *used, const struct share *more)
{
    used->blocks += more->blocks;
    used->threads += more->threads;
    used->shared += more->shared;
    used->registers += more->registers;
}

void share_take_away(struct share *used, const struct share *less)
{
    used->blocks -= less->blocks;
    used->threads -= less->threads;
    used->shared -= less->shared;
    used->registers -= less->registers;
}

unsigned sg_cluster_occupancy(const struct sg_engine *engine, const struct sg_kernel_info *kernel,
                              unsigned block_threads, size_t dynamic_shared, unsigned cluster_size)
{
    unsigned blocks = sg_occupancy(engine, kernel, block_threads, dynamic_shared);
    unsigned clusters = blocks / cluster_size;
    return blocks && !clusters ? 1 : clusters;
}
