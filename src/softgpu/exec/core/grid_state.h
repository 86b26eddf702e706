/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a grid: its launch, and its progress.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "program.h"
#include "sg_launch.h"

struct sg_engine;
struct grid;

/* A kernel's launch of another kernel. */
struct child_launch {
    uint64_t function; /* a pointer to it, which may be anything */
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t dynamic_shared;
    const void *params;
    uint32_t params_size;
    bool is_tail; /* runs when all others that the kernel launched have ended */
};

/* A kernel's copy or memset, executed in order. */
struct child_copy {
    uint64_t to;
    uint64_t from; /* of a copy */
    uint64_t size;
    bool sets; /* to this value, byte by byte */
    uint8_t value;
    bool is_tail;
};

/* A kernel's launches in order: kernels and copies. */
struct child_work;
struct child_queue {
    struct child_work *first, *last;
};

/* A launch in flight. */
struct grid {
    struct sg_engine *engine;
    /* Ends the grid because of a fault; the engine sets it, and any host thread may call it. */
    void (*stop)(struct grid *grid, CUresult result, const char *message);
    /* For a kernel that launches kernels; the engine sets them. The size of a kernel's parameters,
     * false where there is no such kernel; a launch and a copy, which return a number of
     * cudaError_t.
     */
    bool (*child_params_size)(const struct grid *grid, uint64_t function, uint32_t *ret_size);
    uint32_t (*launch_child)(struct grid *grid, const struct child_launch *launch);
    uint32_t (*copy_later)(struct grid *grid, const struct child_copy *copy);
    uint32_t sm_count; /* of the device */
    uint64_t number;   /* no two grids have the same */
    const struct program *program;
    const struct sg_kernel_info *info;
    struct sg_launch launch;
    unsigned char *params; /* 16 bytes aligned */
    uint32_t cluster[3];
    uint32_t cluster_size; /* blocks that start together */
    uint64_t block_count;
    uint64_t next_block;
    uint64_t started; /* milliseconds, when its first block went to an SM */
    uint32_t running; /* clusters on SMs */
    uint32_t shared_size;
    uint32_t threads_per_block;
    bool stopped; /* a fault or an abort: no more blocks; read without the lock */
    CUresult result;
    char message[512];
    struct grid *next;
    struct grid *parent; /* whose kernel launched it; NULL: it is a launch of the device's owner */
    uint32_t depth;      /* how many ancestors it has */
    struct child_queue children, tails; /* launched, and not in flight yet */
    uint32_t pending_children;
    uint32_t device_error; /* cudaGetLastError's; atomic */
};
