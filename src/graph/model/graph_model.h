/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs, nodes, edges, and launchable copies ("execs"). The model does not depend on what runs the
 * work. Its owner, a driver library, defines `graph_backend`. Generated code forwards the owner's
 * cuGraphX to graph_cuX (graph_prototypes.h).
 *
 * One lock, the owner's, guards all of it. graph_cuX take the lock; callers of functions named
 * _locked hold it. No code keeps a pointer to a node or a graph across two calls, only a handle.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_abi.h"
#include "graph_prototypes.h"
#include "list.h"
#include "map.h"

struct graph;
struct graph_condition;
struct graph_memory;
struct capture_stream;

/* A kernel with copies of its parameters and attributes. */
struct graph_kernel {
    CUfunction func;
    CUkernel kern; /* the same, if it is a library's, or NULL */
    unsigned grid[3], block[3];
    unsigned shared;
    unsigned param_count;
    size_t *offsets;      /* of each parameter in `buffer` */
    void **params;        /* the program gets this array and may write into it; graph_kernel.c */
    bool given_as_buffer; /* the program gets `extra` instead */
    unsigned char *buffer;
    size_t buffer_size;
    CUlaunchAttribute *attributes; /* each kind at most once */
    unsigned attribute_count;
};

/* Words that are written or waited for, in this order. */
struct graph_mem_ops {
    unsigned count;
    CUstreamBatchMemOpParams *ops;
};

/* A conditional node: a value chooses the graph that runs; graph_condition.h. */
struct graph_conditional {
    struct graph_condition *condition;
    CUgraphConditionalNodeType type;
    unsigned size;
    struct graph **bodies;
    CUgraph *handles; /* of the bodies; NULL inside an exec */
};

/* The work of a node. It owns the objects that it points to. */
struct graph_work {
    CUgraphNodeType type;
    CUcontext context; /* of kernel, memcpy, memset, words, conditional: never NULL */
    union {
        struct graph_kernel kernel;
        CUDA_MEMCPY3D copy;
        CUDA_MEMSET_NODE_PARAMS fill;
        CUDA_HOST_NODE_PARAMS host;
        CUevent event;
        struct graph_mem_ops mem_ops;
        struct graph_memory *memory; /* of allocations and frees; graph_memory.h */
        struct graph *child;         /* a clone of the program's graph */
        struct graph_conditional conditional;
    };
};

struct graph_edge {
    struct graph_node *node; /* at the other end */
    CUgraphEdgeData data;    /* all zero: an ordinary one */
};

struct graph_edges {
    struct graph_edge *edges;
    unsigned count, capacity;
};

struct graph_node {
    uint64_t handle;   /* 0 inside an exec */
    uint64_t original; /* the node that this one was cloned from, or 0 */
    struct graph *graph;
    struct graph_work work;
    struct graph_edges dependencies; /* in the order of their adding */
    struct graph_edges dependents;
    struct list in_graph;
    bool has_to_be_joined; /* the capture's origin has to wait for it, directly or not */
    /* In an exec. */
    unsigned index; /* in exec->nodes */
    bool disabled;  /* keeps its dependencies, and does nothing */
    bool in_body;   /* of a conditional node of that exec, whose value decides whether it runs */
    void *owner;    /* the backend's */
    /* Scratch space of a walk through the graph, which holds the lock throughout. */
    struct graph_node *next;
    unsigned cursor, number;
};

/* User objects, and how many references to each. */
struct graph_keeps {
    struct graph_keep *keeps;
    unsigned count;
};

/* The condition handles of a graph. */
struct graph_conditions {
    struct graph_condition **conditions;
    unsigned count;
};

struct graph {
    uint64_t handle;       /* 0 inside an exec */
    struct graph_node *in; /* the child graph or conditional node that it belongs to, or NULL */
    struct list nodes;     /* in the order of their adding */
    unsigned count;
    uint64_t exec;         /* the last one made of it */
    bool is_captured_into; /* and so can be neither destroyed nor instantiated */
    struct graph_keeps keeps;
    struct graph_conditions conditions;
};

/* A launchable copy of a graph, independent of the original. */
struct graph_exec {
    uint64_t handle;
    unsigned long long flags;
    struct graph *graph;
    /*
     * All nodes, with those of child graphs and of conditional nodes. A node comes after its
     * dependencies; the nodes of a graph inside a node follow that node directly.
     */
    struct graph_node **nodes;
    unsigned count;
    bool has_memory;   /* some nodes allocate or free */
    struct map clones; /* handle of an original -> its struct graph_node here */
    void *owner;       /* the backend's */
};

/* Where the parameters of a kernel lie. */
struct graph_kernel_info {
    size_t params_size;
    unsigned param_count;
    CUfunction func; /* the handles that stand for it in the context, as in struct graph_kernel */
    CUkernel kern;
    const void *layout; /* the backend's, for param_locked() */
};

/* The functions of the owner. Each is called with the lock held, and must not unlock it. */
struct graph_backend {
    pthread_mutex_t *lock;
    pthread_mutex_t *(*hold)(pthread_mutex_t *lock); /* as mutex_hold() */
    /* Resolves a context; NULL means the current one. */
    CUresult (*context_locked)(CUcontext given, CUcontext *ret_context);
    /* `function` is a CUfunction or a CUkernel. */
    CUresult (*kernel_locked)(const void *function, CUcontext context,
                              struct graph_kernel_info *ret_info);
    void (*param_locked)(const struct graph_kernel_info *info, unsigned index, size_t *ret_offset,
                         size_t *ret_size);
    /* Checks that the work can run: the event exists, the addresses are known, the shape is
     * possible. */
    CUresult (*check_locked)(const struct graph_work *work);
    /* Create and destroy the owner's part of an exec. After a failed creation it is not destroyed.
     */
    CUresult (*exec_create_locked)(struct graph_exec *exec);
    void (*exec_destroy_locked)(struct graph_exec *exec);
    /* The node's work has changed, or the node was enabled or disabled: for later launches. */
    CUresult (*exec_set_locked)(struct graph_exec *exec, struct graph_node *node);
    /* Reserves memory on memory->device for kernels of the context (NULL = any context of the
     * device): fills address, id and behind. The second releases it when the work of `behind` is
     * done. */
    CUresult (*memory_take_locked)(CUcontext context, struct graph_memory *memory);
    void (*memory_give_locked)(struct graph_memory *memory);
    bool (*device_exists)(CUdevice device);
    /* A thread of the owner, which holds no lock, will call a function of the program when the
     * launches of `after` are done. `after` is about to be destroyed; NULL = at once. */
    void (*later_locked)(const struct graph_exec *after, CUhostFn function, void *user);
    /* Finds the capture state of a stream (capture.h). */
    CUresult (*stream_locked)(CUstream handle, struct capture_stream **ret_stream);
    /* A stream is about to capture. May be NULL. */
    void (*capture_begins_locked)(void);
};

/* The owner defines it. */
extern const struct graph_backend graph_backend;

/* How many nodes there are, with those of the graphs inside. */
unsigned graph_count_all(const struct graph *graph);

/* Whether launches of the exec keep user objects alive. */
bool graph_exec_keeps(const struct graph_exec *exec);

/* The exec behind a handle, for launch and upload, which are the owner's; or NULL. */
struct graph_exec *graph_exec_get(CUgraphExec handle);

/* Parameters in the form of a launch, `params` or `extra`, as one buffer of info->params_size. */
CUresult graph_pack_params(const struct graph_kernel_info *info, void **params, void **extra,
                           unsigned char *ret_buffer);
/* Whether the batch is valid, whatever its addresses point to. */
CUresult graph_mem_ops_check(unsigned count, const CUstreamBatchMemOpParams *ops);
/* The address of an operation, and its size in bytes: 0 for a barrier. */
unsigned graph_mem_op_size(const CUstreamBatchMemOpParams *op, CUdeviceptr *ret_address);
/* CUfunction or CUkernel, for kernel_locked(). */
const void *graph_kernel_function(const struct graph_kernel *kernel);
/* A launch attribute of the kernel, or NULL. */
const CUlaunchAttributeValue *graph_kernel_attribute(const struct graph_kernel *kernel,
                                                     CUlaunchAttributeID id);
