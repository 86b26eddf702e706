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
    struct graph_turn turns[DEVICE_CONTEXTS_MAX];
};

struct session_graphs {
    struct list list;    /* struct graph */
    struct list endings; /* struct graph_ending */
    unsigned ending_count;
};

struct stream;
struct graph_ending;

struct graph {
    struct list link; /* session->graphs->list */
    struct session *session;
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

/* ---- graph_build.c ---- */

/* Builds the driver's graph, unless it exists and has the client's present priority. The device's
 * context is current. Returns the driver's result, CUDA_ERROR_NOT_SUPPORTED for a driver without
 * graphs, or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult graph_prepare(struct graph *graph);

/* Sets a node of the driver's graph to its description. Returns the driver's result. */
CUresult graph_update_node(const struct graph *graph, const struct graph_node *node);

/* ---- graph_ending.c ---- */

/* Before the driver's graph is made. CUDA_ERROR_OUT_OF_MEMORY or the driver's result. */
CUresult graph_prepare_ending(struct graph *graph);

/* Behind a launch of the driver's graph. Returns the driver's result. */
CUresult graph_note_launch(const struct graph *graph, const struct stream *stream);

/* Ends the driver's graph. One with conditional nodes is destroyed together with others, once its
 * launches have ended, at an idle point; another one at once. No lock is held, and the device's
 * context is current. */
void graph_unbuild(struct graph *graph);

/* The same when the description ends, too: `bytes` stay charged as long as the driver's graph
 * exists. */
void graph_unbuild_last(struct graph *graph, uint64_t bytes);

/* Destroys queued graphs whose launches have ended, if there are many or `all` is set. It waits for
 * an idle point. Afterwards the context of some device is current. Returns whether a graph was
 * destroyed. */
bool graph_endings_collect(struct session *session, bool all);

/* The same at the end of the session, whose work is done: empties the queue. */
void graph_endings_finish(struct session *session);

/* ---- graph_turn.c ---- */

/* Before a driver's graph with conditional nodes is made: begins a pause of graph batches, and
 * waits for launched ones. */
void graph_pause_batches(const struct graph *graph);

/* Launches a driver's graph with conditional nodes behind the last such launch in this context.
 * Returns the driver's result. */
CUresult graph_launch_in_turn(const struct graph *graph, const struct stream *stream);

/* ---- graph_conditional.c ---- */

/* Describes a conditional node with its bodies. CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED,
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult graph_describe_conditional(struct graph *graph,
                                    const struct wire_fnGraphConditionalNode *in);
void graph_conditions_free(struct graph *graph);

/* CUDA_ERROR_NOT_SUPPORTED, with an error in the log, when no kernel has the handle of some value
 * as a parameter. A kernel might read the handle from memory, where the server cannot replace it.
 */
CUresult graph_check_conditions(struct graph *graph);

/* For the driver's new graph: makes the values, and a conditional node. */
CUresult graph_make_conditions(struct graph *graph);
CUresult graph_add_conditional(struct graph *graph, struct graph_node *node,
                               const CUgraphNode *before, size_t count);
/* The driver's graph of a node. */
CUgraph graph_driver_of(const struct graph *graph, const struct graph_node *node);

/* If the graph has such values, gives the launch a copy of its parameters with the driver's
 * handles. The caller frees the copy; NULL = there is none. */
CUresult graph_translate_params(const struct graph *graph, struct launch *launch, void **ret_copy);

/* ---- graph_replay.c ---- */

/* Submits the nodes to a stream one by one, where the driver's graph cannot be used. Returns the
 * driver's result for the first node that fails. */
CUresult graph_replay(const struct graph *graph, const struct stream *stream);
