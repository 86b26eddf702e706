/* SPDX-License-Identifier: Apache-2.0 */
/* See graph_condition.h. */
#include "graph_condition.h"

#include <stdlib.h>

#include "graph_handles.h"
#include "graph_objects.h"

/* ---- values ---- */

void graph_condition_ref(struct graph_condition *condition)
{
    condition->references++;
}

void graph_condition_unref(struct graph_condition *condition)
{
    if (!condition || --condition->references > 0)
        return;
    graph_handle_remove(GRAPH_HANDLE_CONDITION, condition->handle);
    free(condition);
}

static bool keep_condition(struct graph *graph, struct graph_condition *condition)
{
    struct graph_conditions *made = &graph->conditions;
    struct graph_condition **grown =
        realloc(made->conditions, (made->count + 1) * sizeof(struct graph_condition *));

    if (!grown)
        return false;
    made->conditions = grown;
    made->conditions[made->count++] = condition;
    return true;
}

CUresult graph_condition_create(struct graph *graph, CUcontext context, unsigned default_value,
                                unsigned flags, struct graph_condition **ret_condition)
{
    struct graph_condition *condition = calloc(1, sizeof(*condition));

    if (!condition)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *condition = (struct graph_condition){.home = graph->handle,
                                          .context = context,
                                          .default_value = default_value,
                                          .flags = flags,
                                          .references = 1};
    condition->handle = graph_handle_add(GRAPH_HANDLE_CONDITION, condition);
    if (!condition->handle || !keep_condition(graph, condition)) {
        graph_condition_unref(condition);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_condition = condition;
    return CUDA_SUCCESS;
}

void graph_conditions_drop(struct graph *graph)
{
    for (unsigned i = 0; i < graph->conditions.count; i++)
        graph_condition_unref(graph->conditions.conditions[i]);
    free(graph->conditions.conditions);
}

static struct graph_condition *condition_get(uint64_t handle)
{
    return graph_handle_get(GRAPH_HANDLE_CONDITION, (const void *)(uintptr_t)handle);
}

void graph_condition_set_locked(uint64_t handle, unsigned value)
{
    struct graph_condition *condition = condition_get(handle);

    if (condition)
        condition->value = value;
}

void graph_condition_begin_locked(struct graph_condition *condition)
{
    if (condition->flags & CU_GRAPH_COND_ASSIGN_DEFAULT)
        condition->value = condition->default_value;
}

/* ---- nodes ---- */

unsigned graph_conditional_choice_locked(const struct graph_conditional *conditional)
{
    unsigned value = conditional->condition->value;

    if (conditional->type == CU_GRAPH_COND_TYPE_SWITCH)
        return value < conditional->size ? value : conditional->size;
    if (value)
        return 0;
    return conditional->type == CU_GRAPH_COND_TYPE_IF ? 1 : conditional->size;
}

/* A handle is valid in its graph and in the graphs inside of it. */
static bool is_of(const struct graph_condition *condition, const struct graph *graph)
{
    while (graph && graph->handle != condition->home)
        graph = graph->in ? graph->in->graph : NULL;
    return graph != NULL;
}

static bool is_size_of(CUgraphConditionalNodeType type, unsigned size)
{
    switch (type) {
    case CU_GRAPH_COND_TYPE_IF:
        return size == 1 || size == 2;
    case CU_GRAPH_COND_TYPE_WHILE:
        return size == 1;
    case CU_GRAPH_COND_TYPE_SWITCH:
        return size > 0;
    default:
        return false;
    }
}

static CUresult allocate_bodies(unsigned size, bool named, struct graph_conditional *conditional)
{
    conditional->size = size;
    conditional->bodies = calloc(size, sizeof(*conditional->bodies));
    conditional->handles = named ? calloc(size, sizeof(*conditional->handles)) : NULL;
    return conditional->bodies && (!named || conditional->handles) ? CUDA_SUCCESS
                                                                   : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult make_bodies(struct graph_conditional *conditional)
{
    for (unsigned i = 0; i < conditional->size; i++) {
        conditional->bodies[i] = graph_new(true);
        if (!conditional->bodies[i])
            return CUDA_ERROR_OUT_OF_MEMORY;
        conditional->handles[i] = (CUgraph)(uintptr_t)conditional->bodies[i]->handle;
    }
    return CUDA_SUCCESS;
}

/* Fills the node's fields about the condition. */
static void look_at(struct graph_conditional *conditional, struct graph_condition *condition)
{
    conditional->condition = condition;
    graph_condition_ref(condition);
    condition->nodes += conditional->handles != NULL;
}

CUresult graph_work_conditional(const struct graph *graph,
                                const CUDA_CONDITIONAL_NODE_PARAMS *params,
                                struct graph_work *ret_work)
{
    struct graph_condition *condition = condition_get(params->handle);
    struct graph_work work = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
                              .conditional = {.type = params->type}};
    CUresult result = graph_backend.context_locked(params->ctx, &work.context);

    if (result)
        return result;
    if (!graph || !condition || !is_of(condition, graph) || condition->context != work.context ||
        !is_size_of(params->type, params->size))
        return CUDA_ERROR_INVALID_VALUE;
    if (params->size > GRAPH_BODIES_MAX)
        return CUDA_ERROR_NOT_SUPPORTED;
    result = allocate_bodies(params->size, true, &work.conditional);
    if (!result) {
        look_at(&work.conditional, condition);
        result = make_bodies(&work.conditional);
    }
    if (result)
        graph_conditional_fini(&work.conditional);
    else
        *ret_work = work;
    return result;
}

CUresult graph_conditional_copy(const struct graph_conditional *conditional, bool named,
                                struct graph_conditional *ret_copy)
{
    struct graph_conditional copy = {.type = conditional->type};
    CUresult result = allocate_bodies(conditional->size, named, &copy);

    if (!result)
        look_at(&copy, conditional->condition);
    for (unsigned i = 0; !result && i < copy.size; i++)
        result = graph_copy(conditional->bodies[i], named, &copy.bodies[i]);
    if (result)
        graph_conditional_fini(&copy);
    else
        *ret_copy = copy;
    return result;
}

void graph_conditional_fini(struct graph_conditional *conditional)
{
    for (unsigned i = 0; conditional->bodies && i < conditional->size; i++)
        graph_free(conditional->bodies[i]);
    if (conditional->condition && conditional->handles)
        conditional->condition->nodes--;
    graph_condition_unref(conditional->condition);
    free(conditional->bodies);
    free(conditional->handles);
}

/* ---- graphs that have some ---- */

bool graph_has_conditional(const struct graph *graph)
{
    list_for_each (struct graph_node, node, &graph->nodes, in_graph) {
        if (node->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
            return true;
    }
    return false;
}

/* The graphs inside a node, one after the other; NULL behind the last. */
static struct graph *inner_graph(const struct graph_node *node, unsigned index)
{
    const struct graph_work *work = &node->work;

    if (work->type == CU_GRAPH_NODE_TYPE_GRAPH)
        return index == 0 ? work->child : NULL;
    if (work->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        return index < work->conditional.size ? work->conditional.bodies[index] : NULL;
    return NULL;
}

bool graph_has_unused_condition(const struct graph *graph)
{
    const struct graph *inner;

    for (unsigned i = 0; i < graph->conditions.count; i++) {
        if (graph->conditions.conditions[i]->nodes == 0)
            return true;
    }
    list_for_each (struct graph_node, node, &graph->nodes, in_graph) {
        for (unsigned i = 0; (inner = inner_graph(node, i)); i++) {
            if (graph_has_unused_condition(inner))
                return true;
        }
    }
    return false;
}

/* `context`: of the conditional node around it, NULL where there is none. */
static bool node_fits(const struct graph_node *node, CUcontext context)
{
    if (!context)
        return true;
    switch (node->work.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return node->work.context == context;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_GRAPH:
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return true;
    default:
        return false;
    }
}

static CUresult check_inside(const struct graph *graph, CUcontext context)
{
    CUresult result = CUDA_SUCCESS;

    list_for_each (struct graph_node, node, &graph->nodes, in_graph) {
        bool decides = node->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
        const struct graph *inner;

        if (!node_fits(node, context))
            return CUDA_ERROR_NOT_SUPPORTED;
        for (unsigned i = 0; !result && (inner = inner_graph(node, i)); i++)
            result = check_inside(inner, decides ? node->work.context : context);
    }
    return result;
}

CUresult graph_check_bodies(const struct graph *graph)
{
    return check_inside(graph, NULL);
}
