/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates an exec from a graph of the same shape. Nodes have no names, so a walk pairs them. It
 * starts at the nodes without dependents, in the order of creation, and follows dependencies in the
 * order in which they were added. Programs that build or capture a graph twice in the same way get
 * the pairs that they expect.
 */
#include <stdlib.h>

#include "graph_condition.h"
#include "graph_exec.h"

struct pair {
    struct graph_node *mine;
    const struct graph_node *theirs;
    struct graph_work work; /* a copy of theirs */
    bool has_work;
};

struct pairs {
    struct pair *pairs;
    unsigned count, capacity;
    CUgraphExecUpdateResultInfo info;
};

/* Numbers all nodes that can be reached from `node`, dependencies first. */
static unsigned walk_nodes(struct graph_node *node, struct graph_node **order, unsigned count)
{
    node->next = NULL;
    node->cursor = 1;
    while (node) {
        struct graph_node *to = node->cursor <= node->dependencies.count
                                    ? node->dependencies.edges[node->cursor - 1].node
                                    : NULL;

        node->cursor++;
        if (!to) {
            node->number = count;
            order[count++] = node;
            node = node->next;
        } else if (to->cursor == 0) {
            to->next = node;
            to->cursor = 1;
            node = to;
        }
    }
    return count;
}

/* NULL: no memory. Nodes that only lead into a cycle are left out. */
static struct graph_node **find_order(const struct graph *graph, unsigned *ret_count)
{
    struct graph_node **order = calloc(graph->count + 1, sizeof(*order));
    unsigned count = 0;

    if (!order)
        return NULL;
    list_for_each (struct graph_node, node, &graph->nodes, in_graph)
        node->cursor = 0;
    list_for_each (struct graph_node, node, &graph->nodes, in_graph) {
        if (node->dependents.count == 0)
            count = walk_nodes(node, order, count);
    }
    *ret_count = count;
    return order;
}

static CUresult fail_update(struct pairs *pairs, CUgraphExecUpdateResult why,
                            const struct graph_node *node, const struct graph_node *from)
{
    pairs->info.result = why;
    pairs->info.errorNode = node ? graph_node_handle(node) : NULL;
    pairs->info.errorFromNode = from ? graph_node_handle(from) : NULL;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

static CUresult compare_nodes(struct pairs *pairs, const struct graph_node *mine,
                              const struct graph_node *theirs)
{
    if (mine->work.type != theirs->work.type)
        return fail_update(pairs, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, theirs, NULL);
    if (mine->work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
        mine->work.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        return fail_update(pairs, CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, theirs, NULL);
    if (mine->dependencies.count != theirs->dependencies.count)
        return fail_update(pairs, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, theirs, NULL);
    for (unsigned i = 0; i < mine->dependencies.count; i++) {
        const struct graph_node *other = theirs->dependencies.edges[i].node;

        if (mine->dependencies.edges[i].node->number != other->number)
            return fail_update(pairs, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, theirs, other);
    }
    if (!graph_work_can_become(&mine->work, &theirs->work) ||
        (mine->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL &&
         (mine->work.conditional.type != theirs->work.conditional.type ||
          mine->work.conditional.size != theirs->work.conditional.size)))
        return fail_update(pairs, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, theirs, NULL);
    if (mine->work.context == theirs->work.context)
        return CUDA_SUCCESS;
    return fail_update(pairs,
                       mine->work.type == CU_GRAPH_NODE_TYPE_KERNEL
                           ? CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE
                           : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED,
                       theirs, NULL);
}

static CUresult remember_pair(struct pairs *pairs, struct graph_node *mine,
                              const struct graph_node *theirs)
{
    if (pairs->count == pairs->capacity) {
        unsigned capacity = pairs->capacity ? pairs->capacity * 2 : 64;
        struct pair *grown = realloc(pairs->pairs, capacity * sizeof(*grown));

        if (!grown)
            return CUDA_ERROR_OUT_OF_MEMORY;
        pairs->pairs = grown;
        pairs->capacity = capacity;
    }
    pairs->pairs[pairs->count++] = (struct pair){.mine = mine, .theirs = theirs};
    return CUDA_SUCCESS;
}

static CUresult match(struct pairs *pairs, const struct graph *mine, const struct graph *theirs);

/* A conditional node is paired, too, because it may read another value. */
static CUresult match_bodies(struct pairs *pairs, struct graph_node *mine,
                             const struct graph_node *theirs)
{
    const struct graph_conditional *here = &mine->work.conditional;
    CUresult result = remember_pair(pairs, mine, theirs);

    for (unsigned i = 0; !result && i < here->size; i++)
        result = match(pairs, here->bodies[i], theirs->work.conditional.bodies[i]);
    return result;
}

static CUresult match(struct pairs *pairs, const struct graph *mine, const struct graph *theirs)
{
    unsigned count = 0, other = 0;
    _cleanup_free_ struct graph_node **my_order = find_order(mine, &count);
    _cleanup_free_ struct graph_node **their_order = find_order(theirs, &other);
    CUresult result = CUDA_SUCCESS;

    if (!my_order || !their_order)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (mine->count != theirs->count || count != other)
        return fail_update(pairs, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL, NULL);
    for (unsigned i = 0; !result && i < count; i++) {
        result = compare_nodes(pairs, my_order[i], their_order[i]);
        if (!result && my_order[i]->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
            result = match(pairs, my_order[i]->work.child, their_order[i]->work.child);
        else if (!result && my_order[i]->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
            result = match_bodies(pairs, my_order[i], their_order[i]);
        else if (!result)
            result = remember_pair(pairs, my_order[i], their_order[i]);
    }
    return result;
}

static CUresult copy_works(struct pairs *pairs)
{
    CUresult result = CUDA_SUCCESS;

    for (unsigned i = 0; !result && i < pairs->count; i++) {
        struct pair *pair = &pairs->pairs[i];

        if (pair->mine->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
            continue;
        result = graph_work_copy(&pair->theirs->work, false, &pair->work);
        pair->has_work = !result;
    }
    return result;
}

static CUresult look_at(struct graph_exec *exec, struct graph_node *mine,
                        struct graph_condition *condition)
{
    struct graph_condition *before = mine->work.conditional.condition;

    if (condition == before)
        return CUDA_SUCCESS;
    mine->work.conditional.condition = condition;
    CUresult result = graph_backend.exec_set_locked(exec, mine);
    if (result) {
        mine->work.conditional.condition = before;
        return result;
    }
    graph_condition_ref(condition);
    graph_condition_unref(before);
    return CUDA_SUCCESS;
}

static CUresult apply_pairs(struct graph_exec *exec, struct pairs *pairs)
{
    CUresult result = CUDA_SUCCESS;

    for (unsigned i = 0; !result && i < pairs->count; i++) {
        struct pair *pair = &pairs->pairs[i];

        if (!pair->has_work) {
            result = look_at(exec, pair->mine, pair->theirs->work.conditional.condition);
            continue;
        }
        pair->has_work = false;
        result = graph_exec_set(exec, pair->mine, &pair->work);
    }
    return result;
}

CUresult graph_exec_update(struct graph_exec *exec, const struct graph *mine,
                           const struct graph *graph, CUgraphExecUpdateResultInfo *ret_info)
{
    struct pairs pairs = {0};
    CUresult result = match(&pairs, mine, graph);

    if (!result)
        result = copy_works(&pairs);
    if (!result)
        result = apply_pairs(exec, &pairs);
    for (unsigned i = 0; i < pairs.count; i++) {
        if (pairs.pairs[i].has_work)
            graph_work_fini(&pairs.pairs[i].work);
    }
    free(pairs.pairs);
    if (result && !pairs.info.result)
        pairs.info.result = CU_GRAPH_EXEC_UPDATE_ERROR;
    *ret_info = pairs.info;
    return result;
}
