/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI's numbers of graphs. From any thread. */
#pragma once

#include <stdint.h>

/* A launch of a graph begins: the arguments of cuGraphLaunch(), or NULL. */
void cupti_graph_launched(const void *arguments, uint32_t correlation);

/* The number of the graph that was launched; 0 when it is not known any more. */
uint32_t cupti_graph_of_launch(uint32_t correlation);
