/* SPDX-License-Identifier: Apache-2.0 */
/* The end of the driver's graphs. All functions are the session thread's. */
#pragma once

#include "graph_state.h"

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
