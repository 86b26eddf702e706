/* SPDX-License-Identifier: Apache-2.0 */
/* See child_grid.h. */
#include "child_grid.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_error.h"
#include "grid.h"
#include "module.h"
#include "space.h"

/* The CUDA C++ Programming Guide gives the depth; 2048 launches are pending at most there, but
 * some of them run while the parent does. */
#define DEPTH_MAX 24u
#define PENDING_MAX (1u << 16)

/* Of the lists of all grids: launches by kernels are few beside what kernels do. */
static pthread_mutex_t lists = PTHREAD_MUTEX_INITIALIZER;

struct child_work {
    struct child_work *next;
    struct grid *grid; /* NULL: a copy */
    struct child_copy copy;
};

/* ---- queues ---- */

static void append_work(struct child_queue *queue, struct child_work *work)
{
    *(queue->last ? &queue->last->next : &queue->first) = work;
    queue->last = work;
}

static struct child_work *take_first(struct child_queue *queue)
{
    struct child_work *first = queue->first;

    if (!first)
        return NULL;
    queue->first = first->next;
    if (!queue->first)
        queue->last = NULL;
    return first;
}

static bool append_if_few(struct grid *parent, struct child_work *work, bool is_tail)
{
    pthread_mutex_lock(&lists);
    bool few = parent->pending_children < PENDING_MAX;
    if (few) {
        append_work(is_tail ? &parent->tails : &parent->children, work);
        parent->pending_children++;
    }
    pthread_mutex_unlock(&lists);
    return few;
}

static uint32_t queue_work(struct grid *parent, struct child_work content, bool is_tail)
{
    struct child_work *work = malloc(sizeof(*work));

    if (!work)
        return DEVICE_MEMORY_ALLOCATION;
    *work = content;
    if (append_if_few(parent, work, is_tail))
        return DEVICE_SUCCESS;
    free(work);
    return DEVICE_LAUNCH_PENDING_COUNT_EXCEEDED;
}

/* ---- launching ---- */

static bool find_kernel(const struct grid *grid, uint64_t function, unsigned *ret_kernel)
{
    const struct sg_module *module = grid->launch.instance->module;
    uint64_t index = function_index(function);

    for (unsigned i = 0; i < module->kernel_count; i++) {
        if (module->kernels[i].function->index != index)
            continue;
        *ret_kernel = i;
        return true;
    }
    return false;
}

bool child_grid_params_size(const struct grid *grid, uint64_t function, uint32_t *ret_size)
{
    unsigned kernel;

    if (!find_kernel(grid, function, &kernel))
        return false;
    *ret_size = grid->launch.instance->module->kernels[kernel].info.params_size;
    return true;
}

/* As the parent was launched, but for what the child's launch says. */
static struct sg_launch describe_launch(const struct grid *parent, const struct child_launch *child)
{
    struct sg_launch launch = parent->launch;

    launch.dynamic_shared = child->dynamic_shared;
    launch.params = child->params;
    launch.params_size = child->params_size;
    launch.cooperative = false;
    launch.workspace = 0;
    memcpy(launch.grid, child->grid, sizeof(launch.grid));
    memcpy(launch.block, child->block, sizeof(launch.block));
    memset(launch.cluster, 0, sizeof(launch.cluster));
    return launch;
}

/* Errors other than those of the shape have the same number in both. */
static uint32_t device_error(CUresult result)
{
    return result == CUDA_ERROR_INVALID_VALUE ? DEVICE_INVALID_CONFIGURATION : (uint32_t)result;
}

uint32_t child_grid_launch(struct grid *parent, const struct child_launch *launch)
{
    struct sg_launch described = describe_launch(parent, launch);
    struct grid *child = NULL;

    if (!find_kernel(parent, launch->function, &described.kernel))
        return DEVICE_INVALID_VALUE;
    if (parent->depth == DEPTH_MAX)
        return DEVICE_LAUNCH_MAX_DEPTH_EXCEEDED;
    CUresult result = grid_create(parent->engine, &described, &child);
    if (result != CUDA_SUCCESS)
        return device_error(result);
    child->parent = parent;
    child->depth = parent->depth + 1;
    child->stop = parent->stop;
    child->child_params_size = parent->child_params_size;
    child->launch_child = parent->launch_child;
    child->copy_later = parent->copy_later;
    uint32_t error = queue_work(parent, (struct child_work){.grid = child}, launch->is_tail);
    if (error != DEVICE_SUCCESS)
        grid_destroy(child);
    return error;
}

uint32_t child_grid_copy_later(struct grid *parent, const struct child_copy *copy)
{
    return queue_work(parent, (struct child_work){.copy = *copy}, copy->is_tail);
}

/* ---- copies ---- */

static bool covers(const struct grid *grid, uint64_t address, uint64_t size, unsigned access)
{
    struct range_cache range;

    return !size ||
           (space_lookup(grid->launch.space, address, &range) &&
            (range.access & access) == access && size <= range.size - (address - range.start));
}

/* Kernels that copy copy little, so the engine's lock may be held. */
static bool copy_now(const struct grid *grid, const struct child_copy *copy)
{
    void *to = (void *)(uintptr_t)copy->to;

    if (!covers(grid, copy->to, copy->size, SG_WRITE) ||
        (!copy->sets && !covers(grid, copy->from, copy->size, SG_READ)))
        return false;
    if (copy->sets)
        memset(to, copy->value, copy->size);
    else
        memmove(to, (const void *)(uintptr_t)copy->from, copy->size);
    return true;
}

static void fail_copy(struct grid *grid, const struct child_copy *copy)
{
    snprintf(grid->message, sizeof(grid->message),
             "kernel %.140s copies %llu bytes to 0x%llx, which is not all memory that there is",
             grid->info->name, (unsigned long long)copy->size, (unsigned long long)copy->to);
    grid->result = CUDA_ERROR_ILLEGAL_ADDRESS;
    grid->stopped = true;
}

/* ---- ending ---- */

static void drop_queue(struct child_queue *queue)
{
    struct child_work *work;

    while ((work = take_first(queue))) {
        if (work->grid)
            grid_destroy(work->grid);
        free(work);
    }
}

static struct child_work *take_work(struct grid *grid)
{
    struct child_work *work = take_first(&grid->children);

    return work ? work : take_first(&grid->tails);
}

/* No block of the grid runs, so no other thread accesses its lists. */
static struct grid *take_child(struct grid *grid)
{
    struct child_work *work;
    struct grid *child = NULL;

    while (!grid->stopped && !child && (work = take_work(grid))) {
        child = work->grid;
        if (!child && !copy_now(grid, &work->copy))
            fail_copy(grid, &work->copy);
        free(work);
    }
    if (grid->stopped) {
        drop_queue(&grid->children);
        drop_queue(&grid->tails);
    }
    return child;
}

static void hand_up(const struct grid *child, struct grid *parent)
{
    if (!child->stopped)
        return;
    parent->stopped = true;
    parent->result = child->result;
    memcpy(parent->message, child->message, sizeof(parent->message));
}

struct grid *child_grid_next(struct grid **grid)
{
    for (;;) {
        struct grid *ended = *grid, *child = take_child(ended), *parent = ended->parent;
        if (child || !parent)
            return child;
        hand_up(ended, parent);
        grid_destroy(ended);
        *grid = parent;
    }
}
