/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of the driver's graphs with conditional nodes. When such a graph is destroyed, the driver
 * reuses its condition handles, even while a launch still reads the value. All clients are in one
 * context, so the next owner may be another client, whose value would then control the loop.
 * Destroying the exec also waits for all kernels of the context inside the driver. So such a graph
 * stays until its launches have ended, and is destroyed together with others at an idle point.
 */
#include "graph_ending.h"

#include <stdlib.h>

#include "batch_pause.h"
#include "capacity.h"
#include "cleanup.h"
#include "exclusive.h"
#include "graph_turn.h"
#include "spare_events.h"
#include "stream.h"

/* As many graphs wait together for one idle point. */
#define ENDINGS_KEPT_MAX 16u

struct graph_ending {
    struct list link; /* session->graphs->endings, once the graph is queued to end */
    const struct device *device;
    CUgraph driver;
    CUgraphExec exec;
    CUevent behind; /* recorded behind the last launch; the driver keeps launches in order */
    bool launched;  /* there was one */
    bool goes_on;   /* batches are allowed again */
    unsigned slots; /* of the exec: capacity.h */
    uint64_t bytes; /* still charged to the session */
};

CUresult graph_prepare_ending(struct graph *graph)
{
    if (!graph->conditions.count)
        return CUDA_SUCCESS;
    struct graph_ending *ending = calloc(1, sizeof(*ending));
    if (!ending)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = spare_event_take(graph->device, &ending->behind);
    if (result != CUDA_SUCCESS) {
        free(ending);
        return result;
    }
    graph_pause_batches(graph);
    list_init(&ending->link);
    ending->device = graph->device;
    graph->ending = ending;
    return CUDA_SUCCESS;
}

CUresult graph_note_launch(const struct graph *graph, const struct stream *stream)
{
    if (!graph->ending)
        return CUDA_SUCCESS;
    graph->ending->launched = true;
    return driver.cuEventRecord(graph->ending->behind, stream->driver);
}

static bool may_run(const struct graph_ending *ending)
{
    return ending->launched && driver.cuEventQuery(ending->behind) == CUDA_ERROR_NOT_READY;
}

/* Graph batches are allowed again as soon as nothing of the graph runs. */
static void end_pause(struct graph_ending *ending)
{
    if (!ending->goes_on)
        batch_pause_end(ending->device);
    ending->goes_on = true;
}

static void destroy_driver(struct graph_ending *ending)
{
    if (ending->exec) {
        driver.cuGraphExecDestroy(ending->exec);
        capacity_give(ending->device, ending->slots);
    }
    if (ending->driver)
        driver.cuGraphDestroy(ending->driver);
}

static void forget_graph(struct session *session, struct graph_ending *ending)
{
    end_pause(ending);
    spare_event_keep(ending->device, ending->behind);
    quota_give(session, QUOTA_GRAPH_MEMORY, ending->bytes);
    list_remove(&ending->link);
    session->graphs->ending_count--;
    free(ending);
}

static void destroy_ended(struct session *session, const struct device *device)
{
    list_for_each_safe (struct graph_ending, ending, &session->graphs->endings, link) {
        if (ending->device != device || may_run(ending))
            continue;
        destroy_driver(ending);
        forget_graph(session, ending);
    }
}

/* Destroying such an exec waits for all kernels of the context, with the driver's lock held. */
static bool destroy_exclusively(struct session *session, const struct device *device,
                                bool patiently)
{
    const char *what = "cuGraphExecDestroy";
    struct exclusive_call call;

    if (session_enter(session, device) != CUDA_SUCCESS ||
        (patiently ? exclusive_begin_at_end(session, device, what, &call)
                   : exclusive_begin(session, device, what, &call)) != CUDA_SUCCESS)
        return false;
    destroy_ended(session, device);
    exclusive_end(session, device, &call);
    return true;
}

static void give_up(struct graph *graph)
{
    struct graph_ending *ending = steal_pointer(graph->ending);

    ending->exec = graph->exec;
    ending->driver = graph->driver;
    ending->slots = graph->slots;
    list_append(&graph->session->graphs->endings, &ending->link);
    graph->session->graphs->ending_count++;
    graph_endings_collect(graph->session, false);
    session_enter(graph->session, graph->device);
}

void graph_unbuild(struct graph *graph)
{
    if (graph->ending) {
        give_up(graph);
    } else {
        if (graph->exec) {
            driver.cuGraphExecDestroy(graph->exec);
            capacity_give(graph->device, graph->slots);
        }
        if (graph->driver)
            driver.cuGraphDestroy(graph->driver);
    }
    graph->exec = NULL;
    graph->driver = NULL;
}

void graph_unbuild_last(struct graph *graph, uint64_t bytes)
{
    struct graph_ending *ending = graph->ending;

    /* It is charged first, because the graph may be gone at once. */
    if (ending && bytes <= graph->bytes) {
        graph->bytes -= bytes;
        ending->bytes = bytes;
    }
    graph_unbuild(graph);
}

/* The device of a graph whose launches have ended, or NULL. */
static const struct device *find_ended(struct session *session)
{
    const struct device *found = NULL;

    list_for_each (struct graph_ending, ending, &session->graphs->endings, link) {
        if (session_enter(session, ending->device) != CUDA_SUCCESS || may_run(ending))
            continue;
        end_pause(ending);
        found = ending->device;
    }
    return found;
}

bool graph_endings_collect(struct session *session, bool all)
{
    const struct device *device = find_ended(session);

    if (!device || (!all && session->graphs->ending_count < ENDINGS_KEPT_MAX))
        return false;
    return destroy_exclusively(session, device, false);
}

/* A graph that cannot be destroyed now stays in the driver until the server ends. */
void graph_endings_finish(struct session *session)
{
    const struct device *device;

    while ((device = find_ended(session)) && destroy_exclusively(session, device, true))
        ;
    list_for_each_safe (struct graph_ending, ending, &session->graphs->endings, link)
        forget_graph(session, ending);
}
