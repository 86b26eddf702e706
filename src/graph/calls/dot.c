/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph as text for Graphviz: one cluster for each graph, child graphs inside. Nodes have the
 * numbers of their order in the graph, so that the same program writes the same file.
 */
#include <stdio.h>

#include "graph_memory.h"
#include "graph_objects.h"

struct dot {
    FILE *file;
    unsigned flags;
    unsigned next_graph;
};

static const char *type_name(CUgraphNodeType type)
{
    static const char *const names[] = {
        "KERNEL",    "MEMCPY",     "MEMSET",       "HOST",           "GRAPH",
        "EMPTY",     "WAIT_EVENT", "EVENT_RECORD", "EXT_SEM_SIGNAL", "EXT_SEM_WAIT",
        "MEM_ALLOC", "MEM_FREE",   "BATCH_MEM_OP", "CONDITIONAL",
    };

    return (unsigned)type < sizeof(names) / sizeof(names[0]) ? names[type] : "UNKNOWN";
}

static bool wants(const struct dot *dot, unsigned flag)
{
    return dot->flags & (flag | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE);
}

static void write_kernel(const struct dot *dot, const struct graph_kernel *kernel)
{
    if (wants(dot, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS))
        fprintf(dot->file, "\\n<<<%ux%ux%u, %ux%ux%u, %u>>>", kernel->grid[0], kernel->grid[1],
                kernel->grid[2], kernel->block[0], kernel->block[1], kernel->block[2],
                kernel->shared);
}

static void write_copy(const struct dot *dot, const CUDA_MEMCPY3D *copy)
{
    if (wants(dot, CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS))
        fprintf(dot->file, "\\n%zu x %zu x %zu bytes", copy->WidthInBytes, copy->Height,
                copy->Depth);
}

static void write_fill(const struct dot *dot, const CUDA_MEMSET_NODE_PARAMS *fill)
{
    if (wants(dot, CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS))
        fprintf(dot->file, "\\n%zu x %zu elements of %u bytes: %#x", fill->width, fill->height,
                fill->elementSize, fill->value);
}

static void write_host(const struct dot *dot, const CUDA_HOST_NODE_PARAMS *host)
{
    if (wants(dot, CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS))
        fprintf(dot->file, "\\n%p(%p)", (void *)(uintptr_t)host->fn, host->userData);
}

static const char *condition_name(CUgraphConditionalNodeType type)
{
    static const char *const names[] = {"IF", "WHILE", "SWITCH"};

    return names[type];
}

static void write_details(const struct dot *dot, const struct graph_node *node)
{
    const struct graph_work *work = &node->work;

    switch (work->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        write_kernel(dot, &work->kernel);
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        write_copy(dot, &work->copy);
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        write_fill(dot, &work->fill);
        break;
    case CU_GRAPH_NODE_TYPE_HOST:
        write_host(dot, &work->host);
        break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        if (wants(dot, CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS))
            fprintf(dot->file, "\\n%u operations", work->mem_ops.count);
        break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        if (wants(dot, CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS))
            fprintf(dot->file, "\\n%zu bytes", work->memory->params.bytesize);
        break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        if (wants(dot, CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS))
            fprintf(dot->file, "\\n%s of %u graphs", condition_name(work->conditional.type),
                    work->conditional.size);
        break;
    default:
        break;
    }
    if (wants(dot, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
        fprintf(dot->file, "\\nhandle %#llx", (unsigned long long)node->handle);
}

static void write_graph(struct dot *dot, const struct graph *graph);

static void write_node(struct dot *dot, const struct graph_node *node, unsigned graph)
{
    fprintf(dot->file, "\"graph_%u_node_%u\" [shape=\"rectangle\" label=\"%u\\n%s", graph,
            node->number, node->number, type_name(node->work.type));
    write_details(dot, node);
    fprintf(dot->file, "\"];\n");
    if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
        write_graph(dot, node->work.child);
    for (unsigned i = 0;
         node->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL && i < node->work.conditional.size; i++)
        write_graph(dot, node->work.conditional.bodies[i]);
}

static void write_edges(const struct dot *dot, const struct graph *graph, unsigned number)
{
    list_for_each (struct graph_node, node, &graph->nodes, in_graph) {
        for (unsigned i = 0; i < node->dependents.count; i++)
            fprintf(dot->file, "\"graph_%u_node_%u\" -> \"graph_%u_node_%u\";\n", number,
                    node->number, number, node->dependents.edges[i].node->number);
    }
}

static void write_graph(struct dot *dot, const struct graph *graph)
{
    unsigned number = dot->next_graph++, node_number = 0;

    fprintf(dot->file, "subgraph cluster_%u {\nlabel=\"graph_%u\"\n", number, number);
    list_for_each (struct graph_node, node, &graph->nodes, in_graph)
        node->number = node_number++;
    list_for_each (struct graph_node, node, &graph->nodes, in_graph)
        write_node(dot, node, number);
    write_edges(dot, graph, number);
    fprintf(dot->file, "}\n");
}

CUresult graph_cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags)
{
    GRAPH_LOCKED;
    const struct graph *graph = graph_get(hGraph);
    struct dot dot = {.flags = flags};

    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    dot.file = fopen(path, "we");
    if (!dot.file)
        return CUDA_ERROR_OPERATING_SYSTEM;
    fprintf(dot.file, "digraph dot {\n");
    write_graph(&dot, graph);
    fprintf(dot.file, "}\n");
    bool failed = ferror(dot.file);
    return fclose(dot.file) || failed ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}
