/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that graphs allocate and free, as the model and its owner see it. The owner takes the
 * memory when a node is made, says after each launch and each free behind what the memory may be
 * given back, and asks here when the program frees an address.
 */
#pragma once

#include "graph_model.h"

struct graph_memory {
    uint64_t address; /* 0: given back */
    uint64_t size;
    CUdevice device;
    CUDA_MEM_ALLOC_NODE_PARAMS params;
    CUmemAccessDesc access[1];
    uint64_t home;              /* the graph that allocates it */
    unsigned nodes, allocators; /* nodes that name it, and those of them that allocate it */
    bool live;                  /* a launch has allocated it, and it was not freed since */
    bool was_live;              /* some launch has */
    bool will_live;             /* while a launch is checked */
    bool freed_at_home, freed_elsewhere;
    uint64_t id, behind; /* the owner's */
};

/* What a device's graphs use, in bytes: memory counts as used from the first launch that allocates
 * it until it is given back, freed or not, as NVIDIA's driver counts it. Highest marks begin anew
 * when the program says so. */
struct graph_memory_usage {
    uint64_t used, used_high, reserved, reserved_high;
};

/* NULL: there is no such device. */
struct graph_memory_usage *graph_memory_usage_locked(CUdevice device);

/* Nodes come and go, in graphs and in execs. */
void graph_memory_add_node(struct graph_memory *memory, CUgraphNodeType type);
void graph_memory_remove_node(struct graph_memory *memory, CUgraphNodeType type);
/* The node is in that graph now, which is the program's. */
void graph_memory_settle(struct graph_memory *memory, CUgraphNodeType type, uint64_t graph);

/* Before a launch: CUDA_ERROR_INVALID_VALUE when it allocates what is allocated already, or frees
 * what is not. And after it; `behind` is up to date by then. */
CUresult graph_memory_check_launch_locked(const struct graph_exec *exec);
void graph_memory_launched_locked(const struct graph_exec *exec);

/* The memory of node `index`, or NULL. */
struct graph_memory *graph_exec_memory(const struct graph_exec *exec, unsigned index);

/* Without the lock: is there any? */
bool graph_memory_exists(void);

/* The memory that begins there, for cuMemFree and cuMemFreeAsync. */
struct graph_memory *graph_memory_find_locked(CUdeviceptr address);
CUresult graph_memory_check_free_locked(const struct graph_memory *memory);
/* It may be gone afterwards. */
void graph_memory_freed_locked(struct graph_memory *memory);
