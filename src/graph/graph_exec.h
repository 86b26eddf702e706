/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changing what a launchable graph does without changing its shape.
 */
#pragma once

#include "graph_objects.h"

/* Takes the work in any case; when this fails, nothing has changed. */
CUresult graph_exec_set(struct graph_exec *exec, struct graph_node *node, struct graph_work *work);

/* Lets `mine`, which is in the exec, do what `graph` does. All is compared before anything is
 * changed. */
CUresult graph_exec_update(struct graph_exec *exec, const struct graph *mine,
                           const struct graph *graph, CUgraphExecUpdateResultInfo *ret_info);
