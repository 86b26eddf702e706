/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs as their maker sees them: nodes, edges, and launchable copies ("execs"). The model is the
 * same whatever runs the work in the end; its owner (a driver library) defines `graph_backend`, and
 * the generator forwards the owner's cuGraphX to graph_cuX (graph_prototypes.h).
 *
 * Everything is under one lock, the owner's. graph_cuX take it; what is named _locked has it.
 * No code keeps a pointer to a node or a graph across two calls, only a handle.
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

/* A kernel with all that it is given, in memory of its own. */
struct graph_kernel {
    CUfunction func;
    CUkernel kern; /* the same, if it is a library's, or NULL */
    unsigned grid[3], block[3];
    unsigned shared;
    unsigned param_count;
    size_t *offsets;      /* of each parameter in `buffer` */
    void **params;        /* what the program is told, which may write into it; graph_kernel.c */
    bool given_as_buffer; /* and is told so, too: as `extra` */
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

/* Graphs of which a value, when its turn comes, chooses the one that runs; graph_condition.h. */
struct graph_conditional {
    struct graph_condition *condition;
    CUgraphConditionalNodeType type;
    unsigned size;
    struct graph **bodies;
    CUgraph *handles; /* theirs, as the program is told; NULL inside an exec */
};

/* What a node does. It owns what it points to. */
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
        struct graph *child;         /* a clone of what was given */
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
    bool has_to_be_joined; /* the capturing stream's origin has to wait for it, directly or not */
    /* In an exec. */
    unsigned index; /* in exec->nodes */
    bool disabled;  /* keeps its place among the others, and does nothing */
    bool in_body;   /* of a conditional node of that exec: it runs if that chooses it */
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

/* The values that a graph made handles for. */
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

/* A launchable copy of a graph, which no longer depends on it. */
struct graph_exec {
    uint64_t handle;
    unsigned long long flags;
    struct graph *graph;
    /*
     * All nodes, those of child graphs and of conditional nodes too. A node comes after all that
     * it depends on, and the nodes of a graph inside a node come right behind that node.
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

/* What the model asks its owner. Each is called with the lock held and must not let go of it. */
struct graph_backend {
    pthread_mutex_t *lock;
    /* The context that the handle means, NULL being the current one. */
    CUresult (*context_locked)(CUcontext given, CUcontext *ret_context);
    /* `function` is a CUfunction or a CUkernel. */
    CUresult (*kernel_locked)(const void *function, CUcontext context,
                              struct graph_kernel_info *ret_info);
    void (*param_locked)(const struct graph_kernel_info *info, unsigned index, size_t *ret_offset,
                         size_t *ret_size);
    /* Could the work be done? An event is there, addresses are known, a shape is possible. */
    CUresult (*check_locked)(const struct graph_work *work);
    /* The three ends of an exec's life. After a failed creation it is not destroyed. */
    CUresult (*exec_create_locked)(struct graph_exec *exec);
    void (*exec_destroy_locked)(struct graph_exec *exec);
    /* The node's work is another now, or it was enabled or disabled: launches to come mean that. */
    CUresult (*exec_set_locked)(struct graph_exec *exec, struct graph_node *node);
    /* Memory on memory->device for kernels of the context, NULL being any that is fit: fills
     * address, id and behind. And gives it back when what is in `behind` is over. */
    CUresult (*memory_take_locked)(CUcontext context, struct graph_memory *memory);
    void (*memory_give_locked)(struct graph_memory *memory);
    bool (*device_exists)(CUdevice device);
    /* Has a function of the program called by a thread of the owner's, which holds no lock: when
     * the launches of `after`, if it is not NULL, are done. It is about to be destroyed. */
    void (*later_locked)(const struct graph_exec *after, CUhostFn function, void *user);
    /* For calls on streams while they are captured (capture.h). */
    CUresult (*stream_locked)(CUstream handle, struct capture_stream **ret_stream);
    /* A stream is about to capture. NULL: the owner need not know. */
    void (*capture_begins_locked)(void);
};

/* The owner defines it. */
extern const struct graph_backend graph_backend;

/* How many nodes there are, with those of the graphs inside. */
unsigned graph_count_all(const struct graph *graph);

/* Whether its launches keep user objects alive. */
bool graph_exec_keeps(const struct graph_exec *exec);

/* The exec behind a handle, for launch and upload, which are the owner's; or NULL. */
struct graph_exec *graph_exec_get(CUgraphExec handle);

/* Parameters in the form of a launch, `params` or `extra`, as one buffer of info->params_size. */
CUresult graph_pack_params(const struct graph_kernel_info *info, void **params, void **extra,
                           unsigned char *ret_buffer);
/* Could this be a batch? It does not look at what the addresses lead to. */
CUresult graph_mem_ops_check(unsigned count, const CUstreamBatchMemOpParams *ops);
/* Where an operation is, and how many bytes that are: 0 for a barrier. */
unsigned graph_mem_op_size(const CUstreamBatchMemOpParams *op, CUdeviceptr *ret_address);
/* CUfunction or CUkernel, for kernel_locked(). */
const void *graph_kernel_function(const struct graph_kernel *kernel);
/* A launch attribute of the kernel, or NULL. */
const CUlaunchAttributeValue *graph_kernel_attribute(const struct graph_kernel *kernel,
                                                     CUlaunchAttributeID id);
