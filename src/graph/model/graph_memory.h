/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that graphs allocate and free. The owner reserves it when a node is made. After each
 * launch and each free the owner records the work behind which the memory may be released. It calls
 * this module when the program frees an address.
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

/* Memory use of a device's graphs, in bytes. As in NVIDIA's driver, memory counts as used from the
 * first launch that allocates it until it is released, freed or not. The program can reset the
 * high-water marks. */
struct graph_memory_usage {
    uint64_t used, used_high, reserved, reserved_high;
};

/* NULL: there is no such device. */
struct graph_memory_usage *graph_memory_usage_locked(CUdevice device);

/* Counts the nodes that use the memory, in graphs and in execs. */
void graph_memory_add_node(struct graph_memory *memory, CUgraphNodeType type);
void graph_memory_remove_node(struct graph_memory *memory, CUgraphNodeType type);
/* Records that the node is in this graph of the program. */
void graph_memory_settle(struct graph_memory *memory, CUgraphNodeType type, uint64_t graph);

/* The first runs before a launch: CUDA_ERROR_INVALID_VALUE when the launch would allocate memory
 * twice, or free memory that is not allocated. The second runs after the launch, with `behind` up
 * to date. */
CUresult graph_memory_check_launch_locked(const struct graph_exec *exec);
void graph_memory_launched_locked(const struct graph_exec *exec);

/* The memory of node `index`, or NULL. */
struct graph_memory *graph_exec_memory(const struct graph_exec *exec, unsigned index);

/* Without the lock: whether any such memory exists. */
bool graph_memory_exists(void);

/* The memory that begins there, for cuMemFree and cuMemFreeAsync. */
struct graph_memory *graph_memory_find_locked(CUdeviceptr address);
CUresult graph_memory_check_free_locked(const struct graph_memory *memory);
/* The program has freed the memory, which may end here. */
void graph_memory_freed_locked(struct graph_memory *memory);

/* Graphs that allocate or free memory can be neither copied nor changed, because the memory exists
 * once. */
bool graph_has_memory(const struct graph *graph);

CUresult graph_work_allocate(const CUDA_MEM_ALLOC_NODE_PARAMS *params, CUcontext context,
                             struct graph_work *ret_work);
CUresult graph_work_free(const struct graph *graph, CUdeviceptr address,
                         struct graph_work *ret_work);
