/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a grid: what was launched, and how far it has come.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "program.h"
#include "sg_launch.h"

struct sg_engine;

/* A launch in flight. */
struct grid {
    struct sg_engine *engine;
    /* Ends the grid because of a fault; the engine sets it, and any host thread may call it. */
    void (*stop)(struct grid *grid, CUresult result, const char *message);
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
};
