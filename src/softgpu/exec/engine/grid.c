/* SPDX-License-Identifier: Apache-2.0 */
/* See grid.h. */
#include "grid.h"

#include <stdlib.h>
#include <string.h>

#include "block_state.h"
#include "engine_config.h"
#include "module.h"
#include "residency.h"

#define MAX_BLOCK_THREADS 1024

bool grid_allows_sm(const struct grid *grid, uint32_t sm)
{
    const uint64_t *mask = grid->launch.sm_mask;
    bool any = false;
    for (unsigned i = 0; i < SG_MAX_SMS / 64; i++)
        any |= mask[i] != 0;
    return !any || (mask[sm / 64] >> (sm % 64) & 1);
}

/* The size of the clusters, by the launch or else by the kernel. */
static void find_cluster(const struct sg_launch *launch, const struct sg_kernel_info *info,
                         uint32_t ret_cluster[3])
{
    const uint32_t *asked = launch->cluster[0] ? launch->cluster : info->cluster;
    for (unsigned i = 0; i < 3; i++)
        ret_cluster[i] = asked[0] && asked[i] ? asked[i] : 1;
}

static bool clusters_fit(const struct sg_launch *launch, const struct sg_kernel_info *info)
{
    uint32_t cluster[3];
    uint64_t size = 1;
    find_cluster(launch, info, cluster);
    for (unsigned i = 0; i < 3; i++) {
        size *= cluster[i];
        if (size > SG_MAX_CLUSTER || launch->grid[i] % cluster[i])
            return false;
    }
    return true;
}

static bool shape_is_valid(const struct sg_launch *launch, const struct sg_kernel_info *info)
{
    static const uint32_t most_grid[3] = {0x7fffffff, 65535, 65535};
    static const uint32_t most_block[3] = {1024, 1024, 64};
    for (unsigned i = 0; i < 3; i++) {
        if (launch->grid[i] == 0 || launch->grid[i] > most_grid[i] || launch->block[i] == 0 ||
            launch->block[i] > most_block[i])
            return false;
        if (info->required_block[0] && launch->block[i] != info->required_block[i])
            return false;
    }
    uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
    return clusters_fit(launch, info) && threads <= info->max_threads_per_block &&
           threads <= MAX_BLOCK_THREADS;
}

static unsigned allowed_sms(const struct sg_engine *engine, const struct grid *grid)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < engine_config(engine)->sm_count; i++)
        count += grid_allows_sm(grid, i);
    return count;
}

static CUresult check_resources(const struct sg_engine *engine, const struct grid *grid)
{
    unsigned per_sm =
        sg_cluster_occupancy(engine, grid->info, grid->threads_per_block,
                             grid->shared_size - grid->info->static_shared, grid->cluster_size);
    unsigned sms = allowed_sms(engine, grid);
    if (sms == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (per_sm == 0)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (grid->launch.cooperative && grid->block_count > (uint64_t)per_sm * sms * grid->cluster_size)
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    return CUDA_SUCCESS;
}

static uint64_t new_grid_number(void)
{
    static uint64_t last;
    return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

static CUresult grid_fill(struct sg_engine *engine, struct grid *grid)
{
    const struct sg_launch *launch = &grid->launch;
    CUresult result = CUDA_SUCCESS;
    grid->engine = engine;
    grid->sm_count = engine_config(engine)->sm_count;
    grid->number = new_grid_number();
    grid->info = sg_module_kernel(launch->instance->module, launch->kernel);
    if (!shape_is_valid(launch, grid->info) || launch->params_size < grid->info->params_size)
        return CUDA_ERROR_INVALID_VALUE;
    if (launch->dynamic_shared > MAX_SHARED_PER_BLOCK)
        return CUDA_ERROR_INVALID_VALUE;
    grid->program = instance_program(launch->instance, launch->kernel, NULL, 0, &result);
    if (!grid->program)
        return result;
    grid->block_count = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    find_cluster(launch, grid->info, grid->cluster);
    grid->cluster_size = grid->cluster[0] * grid->cluster[1] * grid->cluster[2];
    grid->threads_per_block = launch->block[0] * launch->block[1] * launch->block[2];
    grid->shared_size = grid->program->dynamic_shared_start + launch->dynamic_shared;
    grid->params = aligned_alloc(64, (grid->info->params_size + 64) / 64 * 64);
    if (!grid->params)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (grid->info->params_size)
        memcpy(grid->params, launch->params, grid->info->params_size);
    return check_resources(engine, grid);
}

CUresult grid_create(struct sg_engine *engine, const struct sg_launch *launch,
                     struct grid **ret_grid)
{
    if (launch->kernel >= sg_module_kernel_count(launch->instance->module))
        return CUDA_ERROR_INVALID_VALUE;
    struct grid *grid = calloc(1, sizeof(*grid));
    if (!grid)
        return CUDA_ERROR_OUT_OF_MEMORY;
    grid->launch = *launch;
    __atomic_add_fetch(&launch->instance->references, 1, __ATOMIC_RELAXED);
    CUresult result = grid_fill(engine, grid);
    if (result != CUDA_SUCCESS)
        grid_destroy(grid);
    else
        *ret_grid = grid;
    return result;
}

void grid_destroy(struct grid *grid)
{
    sg_instance_unref(grid->launch.instance);
    free(grid->params);
    free(grid);
}
