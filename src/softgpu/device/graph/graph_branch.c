/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A conditional node is one operation, which lasts as long as the graphs that it runs. Behind each
 * of these comes a round, which looks at the value again. A worker thread does that, so that a loop
 * of any length neither nests nor keeps the lock.
 */
#include "graph_branch.h"

#include <stdlib.h>
#include <string.h>

#include "graph_condition.h"
#include "graph_objects.h"
#include "launch_abort.h"
#include "soft_context.h"
#include "soft_graph_launch.h"
#include "soft_stream.h"

struct branch {
    struct operation operation;
    struct owned_launch owned; /* a loop ends with its owner, too */
    struct graph_work work;
    struct node_list *lists; /* of each of its graphs */
    struct stream lent;      /* what launches take of it: context, priority, multiprocessors */
};

/* Behind the nodes of the graph that the branch runs. */
struct round {
    struct operation operation;
    struct branch *branch;
};

static void round_work(struct operation *operation);

static bool round_start_locked(struct operation *operation)
{
    worker_submit_locked(operation);
    return false;
}

static void round_fini(struct operation *operation)
{
    operation_unref_locked(&((struct round *)operation)->branch->operation);
}

/* Always: the branch ends by it. */
static const struct operation_type round_type = {
    .start_locked = round_start_locked, .work = round_work, .fini = round_fini, .always = true};

static struct operation *round_create_locked(struct branch *branch)
{
    struct round *round = operation_create(sizeof(*round), &round_type);

    if (!round)
        return NULL;
    round->branch = branch;
    operation_ref_locked(&branch->operation);
    return &round->operation;
}

static CUresult run_locked(struct branch *branch, const struct node_list *list)
{
    struct operation *round = round_create_locked(branch);
    uint64_t before = owned_launch_for(branch->owned.owner);
    struct steps *steps;
    CUresult result =
        round ? steps_prepare_locked(list, &branch->lent, &steps) : CUDA_ERROR_OUT_OF_MEMORY;

    owned_launch_for(before);
    if (!result) {
        operation_hold_locked(round);
        steps_begin_locked(list, branch->operation.context, steps, NULL, round);
        schedule_begin_locked(branch->operation.context, round);
        operation_release_locked(round);
        steps_drop_locked(list, steps);
    }
    operation_unref_locked(round);
    return result;
}

/* Whether the branch has come to its end, and runs nothing. */
static bool advance_locked(struct branch *branch)
{
    const struct graph_conditional *conditional = &branch->work.conditional;
    unsigned choice = graph_conditional_choice_locked(conditional);

    if (choice >= conditional->size || branch->owned.aborted || branch->operation.context->error)
        return true;
    CUresult result = run_locked(branch, &branch->lists[choice]);
    if (result)
        context_fail_locked(branch->operation.context, result,
                            "the graph of a conditional node could not be launched");
    return result != CUDA_SUCCESS;
}

static bool branch_start_locked(struct operation *operation)
{
    return advance_locked((struct branch *)operation);
}

static void round_work(struct operation *operation)
{
    struct branch *branch = ((struct round *)operation)->branch;
    SOFT_LOCKED;

    if (branch->work.conditional.type != CU_GRAPH_COND_TYPE_WHILE || advance_locked(branch))
        operation_finish_locked(&branch->operation);
}

static void branch_fini(struct operation *operation)
{
    struct branch *branch = (struct branch *)operation;

    owned_launch_remove_locked(&branch->owned);
    for (unsigned i = 0; branch->lists && i < branch->work.conditional.size; i++)
        free(branch->lists[i].nodes);
    free(branch->lists);
    if (branch->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        graph_work_fini(&branch->work);
}

static const struct operation_type branch_type = {.start_locked = branch_start_locked,
                                                  .fini = branch_fini};

static CUresult fill_branch(struct branch *branch, const struct graph_work *work, bool own_priority)
{
    const struct graph_conditional *conditional = &work->conditional;
    CUresult result = graph_work_copy(work, false, &branch->work);

    if (result)
        return result;
    branch->lists = calloc(conditional->size, sizeof(*branch->lists));
    if (!branch->lists)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; !result && i < conditional->size; i++) {
        struct node_list *list = &branch->lists[i];

        list->own_priority = own_priority;
        result = graph_list_all(branch->work.conditional.bodies[i], &list->nodes, &list->count);
    }
    return result;
}

CUresult branch_prepare_locked(const struct graph_work *work, const struct stream *stream,
                               bool own_priority, struct operation **ret_operation)
{
    struct branch *branch = operation_create(sizeof(*branch), &branch_type);

    if (!branch)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = fill_branch(branch, work, own_priority);
    if (result) {
        operation_unref_locked(&branch->operation);
        return result;
    }
    branch->lent.context = stream->context;
    branch->lent.priority = stream->priority;
    branch->lent.confined = stream->confined;
    branch->lent.part = stream->part;
    owned_launch_add_locked(&branch->owned, "conditional node", branch);
    *ret_operation = &branch->operation;
    return CUDA_SUCCESS;
}
