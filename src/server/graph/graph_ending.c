/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of the driver's graphs with conditional nodes. The handle of a condition belongs to the
 * graph that it was made for, and the driver gives it to the next graph when that one is destroyed,
 * whether a launch still looks at the value or not. All clients are in one context, so the next
 * graph may be another client's: a loop would go on, or end, by the value of a stranger. To destroy
 * the exec waits for its launches there, in the driver. So such a graph stays until these have
 * ended.
 */
#include <stdlib.h>

#include "batch_pause.h"
#include "graph_state.h"
#include "spare_events.h"
#include "stream.h"

struct graph_ending {
    struct list link; /* session->graphs->endings, once the graph has been given up */
    const struct device *device;
    CUgraph driver;
    CUgraphExec exec;
    CUevent behind; /* recorded behind the last launch; the driver keeps launches in order */
    bool launched;
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

static void destroy(struct session *session, struct graph_ending *ending)
{
    if (ending->exec)
        driver.cuGraphExecDestroy(ending->exec);
    if (ending->driver)
        driver.cuGraphDestroy(ending->driver);
    spare_event_keep(ending->device, ending->behind);
    batch_pause_end(ending->device);
    quota_give(session, QUOTA_GRAPH_MEMORY, ending->bytes);
    list_remove(&ending->link);
    free(ending);
}

static bool may_run(const struct graph_ending *ending)
{
    return ending->launched && driver.cuEventQuery(ending->behind) == CUDA_ERROR_NOT_READY;
}

void graph_unbuild(struct graph *graph)
{
    struct graph_ending *ending = graph->ending;

    if (ending) {
        ending->exec = graph->exec;
        ending->driver = graph->driver;
        if (may_run(ending))
            list_append(&graph->session->graphs->endings, &ending->link);
        else
            destroy(graph->session, ending);
    } else {
        if (graph->exec)
            driver.cuGraphExecDestroy(graph->exec);
        if (graph->driver)
            driver.cuGraphDestroy(graph->driver);
    }
    graph->exec = NULL;
    graph->driver = NULL;
    graph->ending = NULL;
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

void graph_endings_collect(struct session *session, bool all)
{
    list_for_each_safe (struct graph_ending, ending, &session->graphs->endings, link) {
        if (!all && may_run(ending))
            continue;
        session_enter(session, ending->device);
        destroy(session, ending);
    }
}
