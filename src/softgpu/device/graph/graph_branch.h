/* SPDX-License-Identifier: Apache-2.0 */
/* Conditional nodes on the software GPU. */
#pragma once

#include "graph_model.h"

struct operation;
struct stream;

/* An operation that runs the graph that the value chooses when its turn comes, again and again if
 * it is a loop. It has a copy of the work; the stream lends priority and multiprocessors. */
CUresult branch_prepare_locked(const struct graph_work *work, const struct stream *stream,
                               bool own_priority, struct operation **ret_operation);
