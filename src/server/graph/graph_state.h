/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptions of graphs, and the graph subsystem's state of a session. Only its own files include
 * this. All functions are the session thread's.
 */
#pragma once

#include <pthread.h>

#include "graph.h"
#include "graph_batch.h"
#include "map.h"
#include "server_module.h"

/* Limits of one graph, and of the memory of all descriptions of a client. */
#define GRAPH_NODES_MAX (1u << 18)
#define GRAPH_EDGES_MAX (1u << 22)

/* Estimated bytes of a node in the driver. */
#define GRAPH_NODE_COST 1024u

enum graph_node_kind {
    GRAPH_NODE_EMPTY,
    GRAPH_NODE_KERNEL,
    GRAPH_NODE_COPY,
    GRAPH_NODE_MEMSET,
    GRAPH_NODE_CONDITIONAL,
};

/* A launch; the graph owns its parameters and attributes. */
struct graph_kernel {
    struct launch launch;
    size_t size;  /* charged */
    int priority; /* as the client wants it */
    unsigned attribute_count;
    CUlaunchAttribute *attributes;
    _Alignas(16) unsigned char bytes[]; /* attributes, then parameters */
};

/* A value that conditional nodes read. */
struct graph_condition {
    uint32_t default_value, flags;
    bool used;                       /* a kernel has it among its parameters */
    CUgraphConditionalHandle handle; /* the driver's, of graph->driver */
};

struct graph_conditional {
    struct graph_condition *condition;
    CUgraphConditionalNodeType type;
    uint32_t body_count;
    CUgraph *bodies; /* the driver's, as long as its node lives */
};

struct graph_node {
    enum graph_node_kind kind;
    bool disabled;
    uint32_t container; /* 1 + the conditional node that it is in, 0: none */
    uint32_t body;      /* which of that one's graphs */
    CUgraphNode driver;
    union {
        struct graph_kernel *kernel;
        CUDA_MEMCPY3D copy;
        struct wire_fnMemset memset;
        struct graph_conditional *conditional;
    };
};

/* The last launch, in one context, of a graph with conditional nodes. */
struct graph_turn {
    pthread_mutex_t lock;
    CUevent behind; /* NULL: there was none */
};

struct server_graphs {
    struct module_observer module_observer;
    struct graph_turn turns[ATTACH_DEVICES_MAX];
};

struct session_graphs {
    struct list list;    /* struct graph */
    struct list endings; /* struct graph_ending */
    unsigned ending_count;
    const struct graph_timer *timer; /* NULL: launches are not timed node by node */
};

struct stream;
struct graph_ending;

struct graph {
    struct list link; /* session->graphs->list */
    struct session *session;
    uint64_t handle; /* the client's */
    const struct device *device;
    CUresult refused; /* the first error in the description */
    bool uncharged;   /* over the quota, so it has no nodes: refused_objects.h */
    uint64_t bytes;   /* charged to the session */

    struct graph_node *nodes;
    uint32_t node_count, kernel_count;
    uint32_t widest[3];   /* the largest grid of a kernel */
    uint32_t (*edges)[2]; /* ordered by the second; see graph_edge_from() */
    uint32_t edge_count, edge_capacity;
    struct map conditions;           /* the client's name of one -> struct graph_condition */
    const struct function *last;     /* kernel of the highest number, for fault reports */
    uint32_t uses;                   /* of all of their functions: function.h */
    struct print_format_set formats; /* of its kernels that may print */
    uint64_t checked;                /* the memory's generation when the addresses were checked */
    bool is_split; /* a node is more than one call to the driver: see copy_chunks.h */

    /* The driver's graph, built when the description is complete, or later: graph_prepare(). */
    bool instantiated;
    uint32_t flags;
    CUgraph driver;
    CUgraphExec exec;
    unsigned slots; /* that the exec has: capacity.h */
    struct graph_ending
        *ending; /* with conditional nodes: its end waits for its launches; else NULL */
    unsigned session_priority; /* the client's priority when it was built */
    uint64_t exchanges;        /* memory_exchanges() at that time */
};

/* The source node of an edge; the upper bits of the same word have the port and the type. */
static inline uint32_t graph_edge_from(const uint32_t edge[2])
{
    return edge[0] & 0xffffff;
}

static inline uint32_t graph_edge_port(const uint32_t edge[2])
{
    return edge[0] >> 24 & 15;
}

static inline uint32_t graph_edge_type(const uint32_t edge[2])
{
    return edge[0] >> 28;
}

/* Charges bytes of a description: false, with an error in the log, beyond the client's limit. */
bool graph_charge(struct graph *graph, uint64_t bytes);

/* Replaces a node's description. The driver's node stays as it is. */
void graph_node_become(struct graph *graph, struct graph_node *node, const struct graph_node *what);

/* Whether all addresses of the graph still belong to the client; else the log has the error. */
bool graph_addresses_hold(struct graph *graph);

/* Takes the graph out of the session's list and frees it. Launches that are running go on. NULL is
 * allowed. The device's context is current. */
void graph_destroy(struct graph *graph);
