/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block: its warps, and the memory they share. One host thread runs all of it at a time, and the
 * other blocks of its cluster as well.
 */
#include "block.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "space.h"
#include "warp.h"
#include "warp_fault.h"

/* Backward jumps that a warp may take before the next one has its turn. */
#define WARP_BUDGET 2000
/* Turns of all warps, when barriers make them change, before other blocks have theirs. */
#define BLOCK_TURNS 512

/*
 * Warps with time slices of equal length could meet in the same state each time, and back off from
 * each other forever. So the slices vary at times.
 */
#define DRIFT_TURNS 32
#define DRIFT_STEPS 64

/* Where the parts of a block's memory begin. */
struct parts {
    size_t warps;
    size_t files;
    size_t local;
    size_t shared;
    size_t end;
    size_t local_stride;
};

static size_t align_up(size_t value, size_t align)
{
    return (value + align - 1) & ~(align - 1);
}

/* A function that may be entered again keeps more on the stack than a real compiler would. */
#define STACK_FACTOR 8

/* Whether the kernel needs more of the stack than can be known before it runs. */
static bool has_open_stack(const struct program *program)
{
    return program->recursive || program->stack_limits;
}

/* The system's part is behind the program's, and only there where the program asks for it. */
static uint32_t shared_size(const struct grid *grid)
{
    return grid->program->uses_reserved
               ? (uint32_t)align_up(grid->shared_size, 16) + RESERVED_SHARED
               : grid->shared_size;
}

static struct parts plan_parts(const struct grid *grid, uint32_t warp_count)
{
    const struct program *program = grid->program;
    uint32_t stack = grid->launch.stack_size ? grid->launch.stack_size : 1024;
    struct parts parts;
    parts.local_stride = align_up(
        program->local_size + (has_open_stack(program) ? (size_t)stack * STACK_FACTOR : 0), 16);
    parts.warps = align_up(sizeof(struct block), 64);
    parts.files = align_up(parts.warps + warp_count * sizeof(struct warp), 64);
    parts.local = align_up(parts.files + (size_t)warp_count * align_up(program->file_size, 64), 64);
    parts.shared = align_up(parts.local + (size_t)warp_count * LANES * parts.local_stride, 1024);
    parts.end = parts.shared + shared_size(grid);
    return parts;
}

static void release_memory(struct block_memory *memory)
{
    if (memory->bytes)
        munmap(memory->bytes, memory->size);
    *memory = (struct block_memory){0};
}

void block_pool_fini(struct block_pool *pool)
{
    while (pool->count > 0)
        release_memory(&pool->kept[--pool->count]);
}

/* The one that was in use last is most likely in the caches. */
static struct block_memory take_memory(struct block_pool *pool, size_t size)
{
    for (unsigned i = pool->count; i-- > 0;) {
        struct block_memory found = pool->kept[i];
        if (found.size < size)
            continue;
        pool->kept[i] = pool->kept[--pool->count];
        return found;
    }
    if (pool->count > 0)
        release_memory(&pool->kept[--pool->count]);
    return (struct block_memory){0};
}

#define KEEP_BYTES (16u << 20)

static void keep_memory(struct block_pool *pool, struct block_memory memory)
{
    size_t kept = memory.size;
    for (unsigned i = 0; i < pool->count; i++)
        kept += pool->kept[i].size;
    if (pool->count > 0 && (pool->count == POOL_BLOCKS || kept > KEEP_BYTES))
        release_memory(&memory);
    else
        pool->kept[pool->count++] = memory;
}

/* Another context's data is cleared; that of the same grid may stay. */
static bool provide(struct block_pool *pool, size_t size, const struct sg_space *space,
                    struct block_memory *ret_memory)
{
    struct block_memory memory = take_memory(pool, size);
    if (memory.bytes && memory.space != space) {
        memset(memory.bytes, 0, memory.size);
        memory.grid = 0;
    }
    if (!memory.bytes) {
        memory.size = align_up(size, 1 << 16);
        memory.bytes = mmap(NULL, memory.size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory.bytes == MAP_FAILED)
            return false;
    }
    memory.space = space;
    *ret_memory = memory;
    return true;
}

static void start_warps(struct block *block, struct block_pool *pool)
{
    const struct grid *grid = block->grid;
    const struct parts parts = plan_parts(grid, block->warp_count);
    const uint64_t *generation = space_generation(grid->launch.space);
    size_t file = align_up(grid->program->file_size, 64);
    bool same_grid = block->memory.grid == grid->number;
    for (uint32_t i = 0; i < block->warp_count; i++) {
        struct warp *warp = &block->warps[i];
        uint32_t first = i * LANES;
        memset(warp, 0, offsetof(struct warp, lane_on));
        warp->block = block;
        warp->ranges = pool->ranges;
        warp->generation = generation;
        warp->index = i;
        warp->regs = block->memory.bytes + parts.files + i * file;
        warp->local =
            (uintptr_t)(block->memory.bytes + parts.local + i * LANES * parts.local_stride);
        warp->local_stride = parts.local_stride;
        warp_start(warp, grid->threads_per_block - first, same_grid);
    }
    block->memory.grid = grid->number;
}

/* Where in the grid the block of this rank of a cluster is. */
static void find_index(const struct grid *grid, uint64_t cluster, uint32_t rank,
                       uint32_t ret_index[3])
{
    for (unsigned i = 0; i < 3; i++) {
        uint32_t clusters = grid->launch.grid[i] / grid->cluster[i];
        ret_index[i] = (uint32_t)(cluster % clusters) * grid->cluster[i] + rank % grid->cluster[i];
        cluster /= clusters;
        rank /= grid->cluster[i];
    }
}

static struct block *block_create(struct grid *grid, uint64_t cluster, uint32_t rank, uint32_t sm,
                                  struct block_pool *pool)
{
    struct block_memory memory;
    uint32_t warp_count = (grid->threads_per_block + LANES - 1) / LANES;
    struct parts parts = plan_parts(grid, warp_count);
    if (!provide(pool, parts.end, grid->launch.space, &memory))
        return NULL;
    struct block *block = (struct block *)memory.bytes;
    memset(block, 0, offsetof(struct block, barriers));
    block->grid = grid;
    block->rank = rank;
    block->warp_count = warp_count;
    block->warps = (struct warp *)(memory.bytes + parts.warps);
    block->shared = memory.bytes + parts.shared;
    block->shared_size = shared_size(grid);
    block->memory = memory;
    block->sm = sm;
    find_index(grid, cluster, rank, block->index);
    return block;
}

static void block_destroy(struct block *block, struct block_pool *pool)
{
    for (uint32_t i = 0; i < block->warp_count; i++)
        warp_end(&block->warps[i]);
    keep_memory(pool, block->memory);
}

void cluster_destroy(struct block *lead, struct block_pool *pool)
{
    while (lead) {
        struct block *next = lead->next;
        block_destroy(lead, pool);
        lead = next;
    }
}

struct block *cluster_create(struct grid *grid, uint64_t number, uint32_t sm,
                             struct block_pool *pool)
{
    struct block *lead = NULL, **at = &lead;
    for (uint32_t rank = 0; rank < grid->cluster_size; rank++) {
        struct block *block = block_create(grid, number / grid->cluster_size, rank, sm, pool);
        if (!block) {
            cluster_destroy(lead, pool);
            return NULL;
        }
        *at = block;
        at = &block->next;
        block->lead = lead;
        start_warps(block, pool);
    }
    return lead;
}

static bool has_ended(const struct block *block)
{
    for (uint32_t i = 0; i < block->warp_count; i++) {
        if (block->warps[i].alive)
            return false;
    }
    return true;
}

static bool is_stopped(const struct block *block)
{
    return __atomic_load_n(&block->grid->stopped, __ATOMIC_RELAXED);
}

/* Every thread that is left waits at a barrier which cannot open. */
static void report_deadlock(struct block *block)
{
    for (uint32_t i = 0; i < block->warp_count; i++) {
        struct warp *warp = &block->warps[i];
        uint32_t waiting = warp->at_barrier | warp->at_cluster;
        if (!waiting)
            continue;
        unsigned lane = (unsigned)__builtin_ctz(waiting);
        const struct insn *next =
            warp->at_barrier && warp->whole_pc ? warp->whole_pc : warp->blocked_pc[lane];
        warp_fault(warp, next - 1, lane, CUDA_ERROR_LAUNCH_FAILED,
                   "a barrier that the %s other threads never reach",
                   warp->at_barrier ? "block's" : "cluster's");
        return;
    }
}

enum block_state {
    BLOCK_RUNS,
    BLOCK_WAITS, /* nothing in it can run */
    BLOCK_ENDED,
};

/* The next warps that can run, from *at on; moves it behind them. */
static unsigned next_team(struct block *block, uint32_t *at, struct warp **ret_team)
{
    unsigned count = 0;
    for (; *at < block->warp_count && count < MAX_TEAM; ++*at) {
        struct warp *warp = &block->warps[*at];
        if (warp_can_run(warp))
            ret_team[count++] = warp;
    }
    return count;
}

/* Moves each warp on by a few instructions, by another number of them each time. */
static void drift(struct block *block)
{
    for (uint32_t i = 0; i < block->warp_count; i++) {
        uint32_t mixed = (block->turns + i * 7919) * 2654435761u;
        if (warp_can_run(&block->warps[i]))
            warp_step(&block->warps[i], (mixed >> 16) % DRIFT_STEPS);
    }
}

static enum block_state block_run(struct block *block)
{
    struct warp *team[MAX_TEAM];
    for (unsigned turn = 0; turn < BLOCK_TURNS; turn++) {
        uint32_t ran = 0;
        bool used_up = false;
        block->sleepers = 0;
        for (uint32_t i = 0, count; (count = next_team(block, &i, team)) > 0;) {
            if (is_stopped(block))
                return BLOCK_ENDED;
            ran += count;
            used_up |= warps_run(team, count, WARP_BUDGET);
        }
        block->asleep = ran > 0 && block->sleepers >= ran;
        if (!ran)
            return has_ended(block) ? BLOCK_ENDED : BLOCK_WAITS;
        if (!used_up)
            continue;
        if (++block->turns % DRIFT_TURNS == 1)
            drift(block);
        return BLOCK_RUNS;
    }
    return BLOCK_RUNS;
}

static bool can_run(const struct block *block)
{
    for (uint32_t i = 0; i < block->warp_count; i++) {
        if (warp_can_run(&block->warps[i]))
            return true;
    }
    return false;
}

/* No block ran: a waiting block must have been released by a later block. */
static bool is_stuck(struct block *lead)
{
    struct block *waits = NULL;
    for (struct block *block = lead; block; block = block->next) {
        if (can_run(block))
            return false;
        if (!has_ended(block))
            waits = block;
    }
    if (waits)
        report_deadlock(waits);
    return true;
}

bool cluster_run(struct block *lead)
{
    bool runs = false, waits = false, asleep = true;
    for (struct block *block = lead; block; block = block->next) {
        enum block_state state = block_run(block);
        runs |= state == BLOCK_RUNS;
        waits |= state == BLOCK_WAITS;
        asleep &= state != BLOCK_RUNS || block->asleep;
    }
    lead->asleep = runs && asleep;
    if (is_stopped(lead))
        return false;
    return runs || (waits && !is_stuck(lead));
}
