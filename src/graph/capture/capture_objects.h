/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the capture calls and by the hooks in an owner's streams.
 */
#pragma once

#include "capture.h"
#include "graph_objects.h"

struct capture {
    uint64_t id;
    uint64_t graph;    /* its handle */
    bool is_own_graph; /* made for this capture, so the program does not have it yet */
    bool is_invalid;
    CUstreamCaptureMode mode;
    const CUstreamCaptureMode *thread; /* where its thread has its mode: that tells threads apart */
    struct capture_stream *origin;
    struct list streams;
    struct capture_tails orphans; /* of streams that were destroyed meanwhile */
    struct list in_all;
};

struct list *capture_all(void);
/* The calling thread's own. */
CUstreamCaptureMode *capture_thread_mode(void);

static inline struct graph *capture_graph(const struct capture *capture)
{
    return graph_get((CUgraph)(uintptr_t)capture->graph);
}

void capture_tails_clear(struct capture_tails *tails);
/* `data` of the edges that will lead from there; NULL: ordinary ones. */
CUresult capture_tails_add(struct capture_tails *tails, CUgraphNode node,
                           const CUgraphEdgeData *data);
CUresult capture_tails_join(struct capture_tails *tails, const struct capture_tails *more);

void capture_join(struct capture *capture, struct capture_stream *stream);
/* All streams leave the capture. A graph that was made for the capture is destroyed, another graph
 * stays. */
void capture_end(struct capture *capture);
void capture_abandon(struct capture *capture);
/* A capture in a stream for which the context's legacy stream would have to wait, or NULL. */
struct capture *capture_blocking(CUcontext context);
