/* SPDX-License-Identifier: Apache-2.0 */
/* See user_object.h. */
#include "user_object.h"

#include <limits.h>
#include <stdlib.h>

#include "graph_handles.h"
struct user_object {
    uint64_t handle;
    CUhostFn destroy;
    void *user;
    uint64_t references; /* under references_lock */
};

static pthread_mutex_t references_lock = PTHREAD_MUTEX_INITIALIZER;

#define REFERENCES_LOCKED \
    _cleanup_mutex_ pthread_mutex_t *references_held = mutex_hold(&references_lock)

struct graph_keep {
    struct user_object *object;
    uint64_t count;
};

/* References that are dropped when the launches of their exec are done. */
struct leaving {
    unsigned count;
    struct graph_keep keeps[];
};

static struct user_object *object_get(CUuserObject handle)
{
    return graph_handle_get(GRAPH_HANDLE_OBJECT, handle);
}

static bool is_count(unsigned count)
{
    return count > 0 && count <= INT_MAX;
}

static void add_references(struct user_object *object, uint64_t count)
{
    REFERENCES_LOCKED;

    object->references += count;
}

static bool has(const struct user_object *object, uint64_t count)
{
    REFERENCES_LOCKED;

    return count <= object->references;
}

/* True when that was the last reference; then the caller destroys the object. */
static bool drop_references(struct user_object *object, uint64_t count)
{
    REFERENCES_LOCKED;

    object->references -= count;
    if (object->references > 0)
        return false;
    graph_handle_remove(GRAPH_HANDLE_OBJECT, object->handle);
    return true;
}

static void end_later(struct user_object *object)
{
    graph_backend.later_locked(NULL, object->destroy, object->user);
    free(object);
}

/* ---- what a graph keeps ---- */

static struct graph_keep *find_keep(const struct graph_keeps *keeps,
                                    const struct user_object *object)
{
    for (unsigned i = 0; i < keeps->count; i++) {
        if (keeps->keeps[i].object == object)
            return &keeps->keeps[i];
    }
    return NULL;
}

static CUresult keep_references(struct graph_keeps *keeps, struct user_object *object,
                                uint64_t count)
{
    struct graph_keep *known = find_keep(keeps, object);

    if (!known) {
        struct graph_keep *grown =
            realloc(keeps->keeps, (keeps->count + 1) * sizeof(*keeps->keeps));

        if (!grown)
            return CUDA_ERROR_OUT_OF_MEMORY;
        keeps->keeps = grown;
        known = &grown[keeps->count++];
        *known = (struct graph_keep){.object = object};
    }
    known->count += count;
    return CUDA_SUCCESS;
}

CUresult graph_keeps_copy(const struct graph_keeps *keeps, struct graph_keeps *to)
{
    CUresult result = CUDA_SUCCESS;

    for (unsigned i = 0; !result && i < keeps->count; i++) {
        const struct graph_keep *kept = &keeps->keeps[i];

        result = keep_references(to, kept->object, kept->count);
        if (!result)
            add_references(kept->object, kept->count);
    }
    return result;
}

void graph_keeps_drop(struct graph_keeps *keeps)
{
    for (unsigned i = 0; i < keeps->count; i++) {
        if (drop_references(keeps->keeps[i].object, keeps->keeps[i].count))
            end_later(keeps->keeps[i].object);
    }
    free(keeps->keeps);
    *keeps = (struct graph_keeps){0};
}

/* ---- what an exec keeps, until its launches are done ---- */

static unsigned count_keeps(const struct graph *graph)
{
    unsigned count = graph->keeps.count;

    list_for_each (struct graph_node, node, &graph->nodes, in_graph) {
        if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
            count += count_keeps(node->work.child);
    }
    return count;
}

static void take_keeps(struct graph *graph, struct leaving *leaving)
{
    for (unsigned i = 0; i < graph->keeps.count; i++)
        leaving->keeps[leaving->count++] = graph->keeps.keeps[i];
    graph->keeps.count = 0;
    list_for_each (struct graph_node, node, &graph->nodes, in_graph) {
        if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
            take_keeps(node->work.child, leaving);
    }
}

static void leave_object(void *user)
{
    struct leaving *leaving = user;

    for (unsigned i = 0; i < leaving->count; i++) {
        struct user_object *object = leaving->keeps[i].object;

        if (!drop_references(object, leaving->keeps[i].count))
            continue;
        object->destroy(object->user);
        free(object);
    }
    free(leaving);
}

bool graph_exec_keeps(const struct graph_exec *exec)
{
    return count_keeps(exec->graph) > 0;
}

void graph_exec_let_go(struct graph_exec *exec)
{
    unsigned count = count_keeps(exec->graph);

    if (count == 0)
        return;
    struct leaving *leaving = calloc(1, sizeof(*leaving) + count * sizeof(leaving->keeps[0]));
    if (!leaving)
        return; /* they end with the graph: perhaps too early, but they end */
    take_keeps(exec->graph, leaving);
    graph_backend.later_locked(exec, leave_object, leaving);
}

/* ---- calls ---- */

CUresult graph_cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy,
                                  unsigned int initialRefcount, unsigned int flags)
{
    if (!destroy || !is_count(initialRefcount) || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    struct user_object *object = calloc(1, sizeof(*object));
    if (!object)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *object = (struct user_object){.destroy = destroy, .user = ptr, .references = initialRefcount};
    GRAPH_LOCKED;
    object->handle = graph_handle_add(GRAPH_HANDLE_OBJECT, object);
    if (!object->handle) {
        free(object);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *object_out = (CUuserObject)(uintptr_t)object->handle;
    return CUDA_SUCCESS;
}

CUresult graph_cuUserObjectRetain(CUuserObject object, unsigned int count)
{
    GRAPH_LOCKED;
    struct user_object *found = object_get(object);

    if (!found || !is_count(count))
        return CUDA_ERROR_INVALID_VALUE;
    add_references(found, count);
    return CUDA_SUCCESS;
}

CUresult graph_cuUserObjectRelease(CUuserObject object, unsigned int count)
{
    GRAPH_LOCKED;
    struct user_object *found = object_get(object);

    if (!found || !is_count(count) || !has(found, count))
        return CUDA_ERROR_INVALID_VALUE;
    if (drop_references(found, count))
        end_later(found);
    return CUDA_SUCCESS;
}

CUresult graph_cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
                                       unsigned int flags)
{
    GRAPH_LOCKED;
    struct graph *found = graph_get(graph);
    struct user_object *kept = object_get(object);
    bool moves = flags == CU_GRAPH_USER_OBJECT_MOVE;

    if (!found || !kept || !is_count(count) || (flags && !moves))
        return CUDA_ERROR_INVALID_VALUE;
    if (moves && !has(kept, count))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = keep_references(&found->keeps, kept, count);
    if (!result && !moves)
        add_references(kept, count);
    return result;
}

CUresult graph_cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
    GRAPH_LOCKED;
    struct graph *found = graph_get(graph);
    struct user_object *kept = object_get(object);
    struct graph_keep *known = found && kept ? find_keep(&found->keeps, kept) : NULL;

    if (!known || !is_count(count) || count > known->count)
        return CUDA_ERROR_INVALID_VALUE;
    known->count -= count;
    if (known->count == 0)
        *known = found->keeps.keeps[--found->keeps.count];
    if (drop_references(kept, count))
        end_later(kept);
    return CUDA_SUCCESS;
}
