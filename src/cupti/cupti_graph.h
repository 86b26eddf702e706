/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI's numbers of graphs. From any thread. */
#pragma once

#include <stdint.h>

#include "profiler_interface.h"

/* A launch of a graph begins: the arguments of cuGraphLaunch(), or NULL. */
void cupti_graph_launched(const void *arguments, uint32_t correlation);

/* The number of the graph that was launched; 0 when it is not known any more. */
uint32_t cupti_graph_of_launch(uint32_t correlation);

/* The id of a launchable graph's node: these have no handles. */
uint64_t cupti_graph_node(const void *graph, uint32_t number);

/* That of work that is a node, else 0. */
uint64_t cupti_graph_node_of(const struct profiler_work *work);
