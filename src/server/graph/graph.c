/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of graphs: creation, destruction, and the end of modules. */
#include "graph_conditional.h"
#include "graph_ending.h"
#include "graph_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "function.h"
#include "memory.h"
#include "refused_objects.h"
#include "server_dispatch.h"
#include "window.h"

bool graph_charge(struct graph *graph, uint64_t bytes)
{
    struct session *session = graph->session;

    while (!quota_take(session, QUOTA_GRAPH_MEMORY, bytes))
        if (!graph_endings_collect(session, true))
            return false;
    graph->bytes += bytes;
    return true;
}

static void graph_refund(struct graph *graph, uint64_t bytes)
{
    quota_give(graph->session, QUOTA_GRAPH_MEMORY, bytes);
    graph->bytes -= bytes;
}

/* ---- creation ---- */

static CUresult check_create(struct session *session, const struct wire_fnGraphCreate *in,
                             const struct device **ret_device)
{
    *ret_device = session_find_device(session, "cuGraphInstantiate", in->device);
    if (!*ret_device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!in->nodes || in->nodes > GRAPH_NODES_MAX) {
        session_log_error(session, "cuGraphInstantiate: %u nodes, the limit is %u", in->nodes,
                          GRAPH_NODES_MAX);
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult add_nodes(struct graph *graph, uint32_t count)
{
    if (!graph_charge(graph, (uint64_t)count * (sizeof(*graph->nodes) + GRAPH_NODE_COST)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    graph->nodes = calloc(count, sizeof(*graph->nodes));
    if (!graph->nodes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    graph->node_count = count;
    return CUDA_SUCCESS;
}

static struct graph *graph_create(struct session *session, const struct device *device)
{
    struct graph *graph = calloc(1, sizeof(*graph));

    if (!graph)
        return NULL;
    graph->session = session;
    graph->device = device;
    list_append(&session->graphs->list, &graph->link);
    return graph;
}

/* The client goes on with the description, and gets the error when it instantiates the graph. */
static CUresult refuse_graph(struct graph *graph, CUresult reason)
{
    graph->refused = reason;
    graph->uncharged = true;
    object_charge(graph->session, QUOTA_GRAPH_MEMORY, true);
    return CUDA_SUCCESS;
}

CUresult serve_fnGraphCreate(struct session *session, const struct wire_fnGraphCreate *in)
{
    const struct device *device = NULL;
    CUresult result = check_create(session, in, &device);

    graph_endings_collect(session, false);
    if (result != CUDA_SUCCESS)
        return result;
    struct graph *graph = graph_create(session, device);
    if (!graph)
        return CUDA_ERROR_OUT_OF_MEMORY;
    graph->handle = in->graph;
    result = add_nodes(graph, in->nodes);
    if (result != CUDA_SUCCESS && object_may_be_refused(session))
        result = refuse_graph(graph, result);
    if (result == CUDA_SUCCESS)
        result = session_put(session, WIRE_GRAPH, in->graph, graph);
    if (result != CUDA_SUCCESS)
        graph_destroy(graph);
    return result;
}

/* ---- destruction ---- */

void graph_node_become(struct graph *graph, struct graph_node *node, const struct graph_node *what)
{
    if (node->kind == GRAPH_NODE_KERNEL) {
        /* No node may keep a function of a module that ends. */
        if (graph->last == node->kernel->launch.function)
            graph->last = NULL;
        graph->kernel_count--;
        graph_refund(graph, node->kernel->size);
        free(node->kernel);
    }
    if (node->kind == GRAPH_NODE_CONDITIONAL) {
        graph_refund(graph, sizeof(*node->conditional));
        free(node->conditional);
    }
    graph->kernel_count += what->kind == GRAPH_NODE_KERNEL;
    const struct graph_node was = *node;
    *node = *what;
    node->driver = was.driver;
    node->disabled = was.disabled;
    node->container = was.container;
    node->body = was.body;
}

void graph_destroy(struct graph *graph)
{
    static const struct graph_node empty = {.kind = GRAPH_NODE_EMPTY};

    if (!graph)
        return;
    graph_unbuild_last(graph, (uint64_t)graph->node_count * GRAPH_NODE_COST);
    for (uint32_t i = 0; i < graph->node_count; i++)
        graph_node_become(graph, &graph->nodes[i], &empty);
    graph_conditions_free(graph);
    graph_refund(graph, graph->bytes);
    if (graph->uncharged)
        object_uncharge(graph->session, QUOTA_GRAPH_MEMORY, true);
    list_remove(&graph->link);
    print_format_set_fini(&graph->formats);
    free(graph->nodes);
    free(graph->edges);
    free(graph);
}

CUresult serve_cuGraphExecDestroy(struct session *session, const struct wire_cuGraphExecDestroy *in,
                                  struct graph *graph)
{
    CUresult result = session_enter(session, graph->device);

    session_remove(session, WIRE_GRAPH, in->graph);
    graph_destroy(graph);
    return result;
}

/* ---- modules that end ---- */

/* Addresses in the window belong to the client; the address of a variable may soon belong to
 * another. */
static bool is_still_allowed(const struct session *session, uint64_t address)
{
    const struct window *window = session->window;

    return (address >= window->base && address < window_part_end(window, window->devices->count)) ||
           memory_covers(session, address, 1);
}

/* By now the module's variables do not belong to the client any more. */
static bool node_outlives(const struct session *session, const struct graph_node *node,
                          const struct module *module)
{
    switch (node->kind) {
    case GRAPH_NODE_KERNEL:
        return node->kernel->launch.function->module != module;
    case GRAPH_NODE_COPY:
        return is_still_allowed(session, node->copy.srcDevice) &&
               is_still_allowed(session, node->copy.dstDevice);
    case GRAPH_NODE_MEMSET:
        return is_still_allowed(session, node->memset.dst);
    default:
        return true;
    }
}

static void break_graph(struct graph *graph)
{
    graph->refused = CUDA_ERROR_INVALID_HANDLE;
    graph->last = NULL;
    graph_unbuild(graph);
}

static void forget_module(struct session *session, const struct module *module)
{
    static const struct graph_node empty = {.kind = GRAPH_NODE_EMPTY};

    list_for_each (struct graph, graph, &session->graphs->list, link) {
        for (uint32_t i = 0; i < graph->node_count; i++) {
            if (node_outlives(session, &graph->nodes[i], module))
                continue;
            break_graph(graph);
            graph_node_become(graph, &graph->nodes[i], &empty);
        }
    }
    while (graph_endings_collect(session, true))
        session_enter(session, module->device);
}

/* ---- the parts of the server and of a session ---- */

int server_graphs_init(struct server *server)
{
    struct server_graphs *graphs = calloc(1, sizeof(*graphs));

    if (!graphs)
        return -ENOMEM;
    graphs->module_observer.forget = forget_module;
    for (unsigned i = 0; i < ATTACH_DEVICES_MAX; i++)
        pthread_mutex_init(&graphs->turns[i].lock, NULL);
    server_modules_observe(server, &graphs->module_observer);
    server->graphs = graphs;
    return 0;
}

void server_graphs_fini(struct server *server)
{
    free(server->graphs);
}

void session_graphs_time(struct session *session, const struct graph_timer *timer)
{
    session->graphs->timer = timer;
}

int session_graphs_init(struct session *session)
{
    session->graphs = calloc(1, sizeof(*session->graphs));
    if (!session->graphs)
        return -ENOMEM;
    list_init(&session->graphs->list);
    list_init(&session->graphs->endings);
    return 0;
}

void session_graphs_fini(struct session *session)
{
    free(session->graphs);
}

static void forget_graph(void *context, uint64_t handle, void *object)
{
    if (handle_type(handle) == WIRE_GRAPH)
        session_remove(context, WIRE_GRAPH, handle);
}

void graphs_forget_all(struct session *session)
{
    handles_for_each(&session->objects, forget_graph, session);
    graphs_destroy_all(session);
}

void graphs_destroy_all(struct session *session)
{
    list_for_each_safe (struct graph, graph, &session->graphs->list, link) {
        session_enter(session, graph->device);
        graph_destroy(graph);
    }
    graph_endings_finish(session);
}
